//! How fast handlers run here: instructions a second in a loop, and short handler calls a second.
//!
//! Prints one `name  value  unit` line a figure, the best of several rounds.

use nicety_hpu::{
    AddressSpace, Context, Core, CycleCosts, Exit, Image, Misaligned, Region, Reservations, asm::*,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const CODE: u32 = 0x1d00_0000;
const PACKET: u32 = 0x1000_0000;
const MEMORY: u32 = 0x1c00_0000;
const STACK: u32 = 0x1f00_0000;
const ROUNDS: u32 = 7;

/// PsPIN's costs, so that the accounting has penalties to count.
fn core() -> Core {
    let costs = CycleCosts { load_use: 1, branch_taken: 3, jump_register: 2, ..CycleCosts::SINGLE_CYCLE };
    Core { costs, misaligned: Misaligned::Trap, ..Core::default() }
}

fn best(name: &str, unit: &str, mut round: impl FnMut() -> (u64, f64)) {
    let rate =
        (0..ROUNDS).map(|_| round()).map(|(count, seconds)| count as f64 / seconds).fold(0.0, f64::max);
    println!("{name}  {rate:.0}  {unit}");
}

/// Copies words through a small transformation with a data-dependent branch: loads, stores and branches are half of it.
fn loop_words() -> Vec<u32> {
    let mut words = vec![
        // a0: words left, a1: from, a2: to, a3: sum
        lw(T0, 0, A1),
        lw(T1, 4, A1),
        add(A3, A3, T0),
        xor(T2, T0, T1),
        andi(T3, T2, 16),
        beq(T3, ZERO, 12),
        srli(T2, T2, 3),
        addi(A3, A3, 1),
        sw(T2, 0, A2),
        sb(T1, 4, A2),
        addi(A1, A1, 4),
        addi(A2, A2, 4),
        addi(A0, A0, -1),
    ];
    words.push(bne(A0, ZERO, -4 * words.len() as i32));
    words.extend([mv(A0, A3), ret()]);
    words
}

fn instructions(image: &Image) -> (u64, f64) {
    const WORDS: u32 = 512;
    let mut packet: Vec<u8> =
        (0..4 * WORDS + 8).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    let (mut memory, mut stack) = (vec![0; 1 << 16], vec![0; 1024]);
    let mut space = AddressSpace::new();
    space.push(Region::stack("stack", STACK, &mut stack, 256));
    space.push(Region::memory("packet", PACKET, &mut packet));
    space.push(Region::memory("handler memory", MEMORY, &mut memory));
    let mut reservations = Reservations::new();
    let mut context = Context::new(0);
    let start = Instant::now();
    for _ in 0..4_000 {
        context.call(image, CODE, STACK + 1024, &[WORDS, PACKET, MEMORY, 0], u64::MAX);
        let exit = context.run(image, &mut space, &mut reservations, u64::MAX);
        assert!(matches!(black_box(exit), Exit::Return(_)));
    }
    (context.instret(), start.elapsed().as_secs_f64())
}

/// Thirty instructions as a small handler has them: a frame, a header looked at, counters kept, a loop of three.
fn handler_words() -> Vec<u32> {
    vec![
        addi(SP, SP, -16),
        sw(RA, 12, SP),
        sw(S0, 8, SP),
        lw(T0, 0, A0),
        lbu(T1, 9, A0),
        addi(T2, ZERO, 17),
        beq(T1, T2, 8),
        addi(T0, T0, 1),
        lw(T3, 0, A1),
        addi(T3, T3, 1),
        sw(T3, 0, A1),
        addi(S0, ZERO, 3),
        lw(T4, 16, A0), // three times five
        add(T0, T0, T4),
        addi(A0, A0, 4),
        addi(S0, S0, -1),
        bne(S0, ZERO, -16),
        lw(RA, 12, SP),
        lw(S0, 8, SP),
        addi(SP, SP, 16),
        ret(),
    ]
}

/// Calls on 32 cores in turn, each with a stack and a packet of its own and a memory that all share; the address
/// space is built for each call, as a card does.
fn handlers(image: &Arc<Image>) -> (u64, f64) {
    const CORES: usize = 32;
    const RUNS: usize = 400_000;
    let mut stacks = vec![0; CORES * 1024];
    let mut packets = vec![17; CORES * 2048];
    let mut memory = vec![0; 1 << 16];
    let mut contexts: Vec<_> = (0..CORES as u32).map(Context::new).collect();
    let mut reservations = Reservations::new();
    let before: u64 = contexts.iter().map(Context::instret).sum();
    let start = Instant::now();
    for run in 0..RUNS {
        let core = run % CORES;
        let context = &mut contexts[core];
        let mut space = AddressSpace::new();
        space.push(Region::stack("stack", STACK, &mut stacks[core * 1024..][..1024], 256));
        let (header, payload) = packets[core * 2048..][..2048].split_at_mut(64);
        space.push(Region::read_only("header", PACKET, header));
        space.push(Region::memory("packet", PACKET + 64, payload));
        space.push(Region::memory("handler memory", MEMORY, &mut memory));
        let limit = context.cycle() + 100_000;
        context.call(image, CODE, STACK + 1024, &[PACKET, MEMORY], limit);
        let exit = context.run(image, &mut space, &mut reservations, limit);
        assert!(matches!(black_box(exit), Exit::Return(_)));
    }
    let seconds = start.elapsed().as_secs_f64();
    let instructions = contexts.iter().map(Context::instret).sum::<u64>() - before;
    assert_eq!(instructions, 30 * RUNS as u64);
    (RUNS as u64, seconds)
}

fn main() {
    let core = core();
    let image = Image::from_words(CODE, &loop_words(), &core);
    best("instructions_per_s", "instructions/s", || instructions(&image));
    let image = Image::from_words(CODE, &handler_words(), &core);
    best("handler_runs_per_s", "runs/s", || handlers(&image));
}
