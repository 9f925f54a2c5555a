//! Speed of the interpreter: instructions per second, beside those of rbpf's interpreter. Rounds alternate in one run.
//!
//! The programs are ones that both run right: loops of arithmetic, of memory, of packets' bytes, and of calls. The figure for each is
//! the median of the rounds' ratios, and the best rate of either.

use cpu_time::ThreadTime;
use nicety_ebpf::asm::*;
use nicety_ebpf::instruction::{JMP, REGISTER};
use nicety_ebpf::{Instruction, Limits, Linked, Machine, Packet};

const ROUNDS: usize = 9;
/// Rounds of a program's loop.
const LOOPS: i32 = 200_000;
const LENGTH: usize = 64;

/// A loop with a counter in r9, on the packet at r7 and with a result in r6.
struct Program {
    name: &'static str,
    body: Vec<Instruction>,
    functions: Vec<Instruction>,
}

impl Program {
    /// All of the program, with the way to the packet.
    fn slots(&self, begin: &[Instruction]) -> Vec<Instruction> {
        let mut slots = begin.to_vec();
        slots.extend([mov_imm(6, 1), mov_imm(9, LOOPS)]);
        slots.extend(&self.body);
        slots.push(alu64_imm(SUB, 9, 1));
        slots.push(jump_imm(JNE, 9, 0, -(self.body.len() as i16) - 2));
        slots.extend([mov(0, 6), exit()]);
        slots.extend(&self.functions);
        slots
    }
}

fn programs() -> Vec<Program> {
    let arithmetic = vec![
        alu64_imm(MUL, 6, 31),
        alu64_imm(ADD, 6, 7),
        mov(2, 6),
        alu64_imm(RSH, 2, 13),
        alu64(XOR, 6, 2),
        alu32_imm(AND, 2, 0xffff),
        alu32(ADD, 3, 2),
        alu64_imm(LSH, 3, 3),
        alu64(SUB, 6, 3),
    ];
    let memory = vec![
        store(DW, 10, -8, 6),
        load(W, 2, 10, -8),
        load(W, 3, 10, -4),
        alu64(ADD, 2, 3),
        store(H, 10, -16, 2),
        load(H, 4, 10, -16),
        alu64(ADD, 6, 4),
    ];
    // A sum of the packet's first 16 words, with a jump for each.
    let mut packet = vec![];
    for at in (0..32).step_by(4) {
        packet.extend([load(W, 2, 7, at), alu64(ADD, 6, 2)]);
        packet.extend([jump_imm(JGT, 2, 0x7fff_0000, 1), alu64_imm(ADD, 6, 1)]);
    }
    packet.extend([
        store(B, 7, 40, 6),
        Instruction { code: JMP | REGISTER | 0x50, dst: 6, src: 7, offset: 0, imm: 0 },
    ]);
    // The function is behind the loop's end: the counter, the jump, the result and the exit.
    let calls = vec![mov(1, 6), call_local(5), mov(6, 0)];
    let function = vec![mov(0, 1), alu64_imm(ADD, 0, 3), exit()];
    let plain = |name, body| Program { name, body, functions: Vec::new() };
    vec![
        plain("arithmetic", arithmetic),
        plain("memory", memory),
        plain("packet", packet),
        Program { name: "calls", body: calls, functions: function },
    ]
}

/// A round: the result, and the seconds.
fn timed(run: impl FnOnce() -> u64) -> (u64, f64) {
    let begin = ThreadTime::now();
    let result = run();
    (result, begin.elapsed().as_secs_f64())
}

fn main() {
    let bytes: Vec<u8> = (0..LENGTH as u8).collect();
    for program in programs() {
        let own = program.slots(&[load(W, 7, 1, 0)]);
        let mut machine = Machine::empty(Limits::default());
        let number = machine.add_program(Linked::of_slots(program.name, own).unwrap());
        let other: Vec<u8> = program.slots(&[mov(7, 1)]).iter().flat_map(|slot| slot.bytes()).collect();
        let peer = rbpf::EbpfVmRaw::new(Some(&other)).unwrap();
        let mut instructions = 0;
        let (mut rates, mut peers, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let mut packet = Packet::new(&bytes, 0).unwrap();
            let (result, seconds) = timed(|| {
                let outcome = machine.run(number, &mut packet).unwrap();
                instructions = outcome.instructions;
                u64::from(outcome.value)
            });
            let mut memory = bytes.clone();
            let (expected, peer_seconds) = timed(|| peer.execute_program(&mut memory).unwrap());
            assert_eq!(result, expected & 0xffff_ffff, "{}", program.name);
            rates.push(instructions as f64 / seconds);
            peers.push(instructions as f64 / peer_seconds);
            ratios.push(peer_seconds / seconds);
        }
        ratios.sort_by(f64::total_cmp);
        let best = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max) / 1e6;
        let name = program.name;
        println!("{name}  {:.0}  million instructions/s", best(&rates));
        println!("{name}_rbpf  {:.0}  million instructions/s", best(&peers));
        println!("{name}_ratio  {:.2}  times rbpf", ratios[ROUNDS / 2]);
    }
}
