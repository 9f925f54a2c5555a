//! Speed of handlers: instructions per second in a loop, in order and overlapped, and short handler calls per second.
//! Both are compared with QEMU's user-mode emulator, where it is installed.
//!
//! Prints one `name  value  unit` line per figure: the best of several rounds, or the median of rounds that alternate
//! with QEMU.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Load, data, elf};
use cpu_time::ThreadTime;
use nicety_hpu::{
    AddressSpace, Context, Core, CycleCosts, Exit, Image, Misaligned, Overlap, Region, Reservations, asm::*,
    bare,
};
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
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

/// Copies words through a small transformation with a data-dependent branch. Half of the instructions are loads, stores
/// and branches.
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
    let start = ThreadTime::now();
    for _ in 0..4_000 {
        context.call(image, CODE, STACK + 1024, &[WORDS, PACKET, MEMORY, 0], u64::MAX);
        let exit = context.run(image, &mut space, &mut reservations, u64::MAX);
        assert!(matches!(black_box(exit), Exit::Return(_)));
    }
    (context.instret(), start.elapsed().as_secs_f64())
}

/// Thirty instructions of a small handler: a frame, a read of a header, counters, and a loop of three rounds.
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

/// Calls on 32 cores in turn. Each has its own stack and packet, and all share a memory. The address space is built for
/// each call, as a card does.
fn handlers(image: &Arc<Image>) -> (u64, f64) {
    const CORES: usize = 32;
    const RUNS: usize = 400_000;
    let mut stacks = vec![0; CORES * 1024];
    let mut packets = vec![17; CORES * 2048];
    let mut memory = vec![0; 1 << 16];
    let mut contexts: Vec<_> = (0..CORES as u32).map(Context::new).collect();
    let mut reservations = Reservations::new();
    let before: u64 = contexts.iter().map(Context::instret).sum();
    let start = ThreadTime::now();
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

/// A dot product, a running sum and a scaled copy: half of the instructions are float instructions.
fn float_words() -> Vec<u32> {
    let mut words = vec![
        // a0: words left, a1: from, a2: to
        flw(FT0, 0, A1),
        flw(FT1, 4, A1),
        fmadd_s(FA0, FT0, FT1, FA0),
        fadd_s(FA1, FA1, FT0),
        fmul_s(FT2, FT0, FT1),
        fsw(FT2, 0, A2),
        addi(A1, A1, 4),
        addi(A2, A2, 4),
        addi(A0, A0, -1),
    ];
    words.push(bne(A0, ZERO, -4 * words.len() as i32));
    words
}

/// Returns a program that runs the loop over 512 words `repeats` times and exits with the low bits of its sum.
fn whole_program(body: &[u32], repeats: u32) -> Vec<u8> {
    const CODE: u32 = 0x10_0000;
    const DATA: u32 = 0x20_0000;
    let mut words = li(S1, repeats).to_vec();
    let start = words.len();
    words.extend([&[addi(A0, ZERO, 512)][..], &li(A1, DATA), &li(A2, DATA + 4096), body].concat());
    words.push(addi(S1, S1, -1));
    words.push(bne(S1, ZERO, 4 * (start as i32 - words.len() as i32)));
    words.extend([andi(A0, A3, 127), addi(A7, ZERO, 93), ecall()]);
    let code = bytes(&words);
    let size = code.len() as u32;
    let load = Load { address: CODE, flags: common::READABLE | common::EXECUTABLE, bytes: code, size };
    // Floats between one and two.
    let memory: Vec<u8> =
        (0..1024u32).flat_map(|i| (0x3f80_0000 | i.wrapping_mul(2_654_435_761) >> 9).to_le_bytes()).collect();
    elf(CODE, &[load, data(DATA, &memory, 16384)])
}

/// Returns the seconds that QEMU takes to run the file, which exits with `code` if given.
fn qemu_seconds(file: &Path, code: Option<i32>) -> Option<f64> {
    let start = Instant::now();
    let mut command = Command::new("qemu-riscv32");
    let status = command.args(["-cpu", "rv32"]).arg(file).stderr(Stdio::null()).status().ok()?;
    assert!(code.is_none_or(|code| status.code() == Some(code)), "QEMU ends with {status}");
    Some(start.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints our instructions per second on a whole program, and the ratio to QEMU's, without QEMU's start time.
fn beside_qemu(name: &str, body: &[u32], repeats: u32) {
    let core = Core { isa: "rv32imafc_zicsr".parse().expect("an isa"), ..core() };
    let (once, program) = (whole_program(body, 1), whole_program(body, repeats));
    let folder = std::env::temp_dir();
    let [once_file, file] = ["once", "all"]
        .map(|kind| folder.join(format!("nicety-hpu-bench-{kind}-{}.elf", std::process::id())));
    for (file, bytes) in [(&once_file, &once), (&file, &program)] {
        std::fs::write(file, bytes).expect("the temporary folder can be written");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("our own file");
        }
    }
    let (mut ours, mut theirs, mut instructions) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let image = Image::load(&program, &core).expect("a program");
        let start = Instant::now();
        let result = bare::run(&image, None, u64::MAX, &mut std::io::sink()).expect("it runs");
        ours.push(start.elapsed().as_secs_f64());
        assert!(result.exit_code.is_some(), "{:?}", result.trap);
        instructions = result.instructions;
        if let Some((start, all)) = qemu_seconds(&once_file, None).zip(qemu_seconds(&file, result.exit_code))
        {
            theirs.push(all - start);
        }
    }
    for file in [once_file, file] {
        std::fs::remove_file(file).expect("our own file");
    }
    let ours = median(ours);
    println!("{name}_per_s  {:.0}  instructions/s", instructions as f64 / ours);
    if theirs.is_empty() {
        println!("{name}_to_qemu  -  (qemu-riscv32 is not installed)");
    } else {
        println!("{name}_to_qemu  {:.2}  times qemu-riscv32's instructions/s", median(theirs) / ours);
    }
}

fn main() {
    let core = core();
    let image = Image::from_words(CODE, &loop_words(), &core);
    best("instructions_per_s", "instructions/s", || instructions(&image));
    let overlap = Overlap { width: 3, window: 40, alus: 2, loads: 1, stores: 1, mispredict: 8 };
    let image = Image::from_words(CODE, &loop_words(), &Core { overlap: Some(overlap), ..core });
    best("overlapped_instructions_per_s", "instructions/s", || instructions(&image));
    let image = Image::from_words(CODE, &handler_words(), &core);
    best("handler_runs_per_s", "runs/s", || handlers(&image));
    let integers = loop_words();
    // Without the return at the end.
    beside_qemu("integer_program", &integers[..integers.len() - 2], 40_000);
    beside_qemu("float_program", &float_words(), 10_000);
}
