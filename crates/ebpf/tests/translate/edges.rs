//! Every operation at the edges of its operands, beside the interpreter. Operands have all known widths, or are the same register.
//! Results are read whole or by half.

use super::random::{Case, compare};
use crate::generate::Random;
use nicety_ebpf::asm::*;
use nicety_ebpf::instruction::{ALU32, ALU64, JMP, JMP32, LDX, MODE_SIGNED, REGISTER};
use nicety_ebpf::{Helper, Instruction};

const EDGES: [u64; 14] = [
    0,
    1,
    2,
    31,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x0123_4567_89ab_cdef,
    0xfedc_ba98_7654_3210,
    i64::MAX as u64,
    i64::MIN as u64,
    u64::MAX,
    0xffff_ffff_8000_0000,
];

const IMMEDIATES: [i32; 14] =
    [1, 2, 3, 7, 255, 1024, 2047, 2048, -1, -2048, -2049, 0xffff, i32::MAX, i32::MIN];

/// Results of one program, eight bytes each behind the operands.
const RESULTS: i16 = 40;

/// Blocks of code, each with a result.
pub(super) struct Blocks {
    programs: Vec<Vec<Instruction>>,
    results: i16,
}

impl Blocks {
    pub(super) fn new() -> Blocks {
        Blocks { programs: Vec::new(), results: RESULTS }
    }

    /// Adds a block with r1 and r2 from the packet at r7, and a result in `from`; `half` stores 32 bits of it.
    pub(super) fn add(&mut self, loads: (u8, u8), code: &[Instruction], from: u8, half: bool) {
        if self.results == RESULTS {
            self.programs.push(vec![mov(6, 1), load(W, 7, 6, 0)]);
            self.results = 0;
        }
        let at = 16 + 8 * self.results;
        let program = self.programs.last_mut().unwrap();
        program.extend([load(loads.0, 1, 7, 0), load(loads.1, 2, 7, 8)]);
        program.extend(code);
        program.push(store(if half { W } else { DW }, 7, at, from));
        self.results += 1;
    }

    /// Runs all programs on pairs of edges.
    pub(super) fn compare(self) {
        self.compare_on(&[
            ("rv32imac_zicsr", true),
            ("rv64imac_zicsr", true),
            ("rv32imac_zicsr_zba_zbb", false),
            ("rv64imac_zicsr_zba_zbb", false),
        ]);
    }

    /// The same on cores with or without misaligned accesses.
    pub(super) fn compare_on(mut self, cores: &[(&str, bool)]) {
        for program in &mut self.programs {
            program.extend([mov_imm(0, 0), exit()]);
        }
        let mut random = Random(1);
        let mut packets: Vec<Vec<u8>> = Vec::new();
        for (at, a) in EDGES.iter().enumerate() {
            // All values of one, with each other value once, and a random one.
            for b in
                [EDGES[at], EDGES[(at + 1) % 14], EDGES[(at + 5) % 14], EDGES[(at + 8) % 14], random.next()]
            {
                let mut packet = [a.to_le_bytes(), b.to_le_bytes()].concat();
                packet.resize(16 + 8 * RESULTS as usize, 0);
                packets.push(packet);
            }
        }
        let cases: Vec<Case> = self
            .programs
            .into_iter()
            .enumerate()
            .map(|(number, slots)| Case { name: format!("edges_{number}"), slots, packets: packets.clone() })
            .collect();
        cores.iter().for_each(|(isa, misaligned)| compare(isa, *misaligned, &cases));
    }
}

fn slot(code: u8, dst: u8, src: u8, offset: i16, imm: i32) -> Instruction {
    Instruction { code, dst, src, offset, imm }
}

/// Classes, and operations with their variants for signs.
fn operations() -> Vec<(u8, u8, i16)> {
    let plain = [ADD, SUB, MUL, DIV, OR, AND, LSH, RSH, MOD, XOR, ARSH, MOV];
    let mut all: Vec<(u8, u8, i16)> = Vec::new();
    for class in [ALU32, ALU64] {
        all.extend(plain.iter().map(|operation| (class, *operation, 0)));
        all.extend([(class, DIV, 1), (class, MOD, 1)]);
    }
    all
}

#[test]
fn arithmetic_of_registers() {
    let mut blocks = Blocks::new();
    for (class, operation, offset) in operations() {
        let code = class | REGISTER | operation;
        for loads in [(DW, DW), (W, W), (DW, W), (W, DW), (B, H)] {
            blocks.add(loads, &[slot(code, 1, 2, offset, 0)], 1, false);
            blocks.add(loads, &[slot(code, 1, 2, offset, 0)], 1, true);
            blocks.add(loads, &[mov(3, 1), slot(code, 3, 2, offset, 0)], 3, false);
            blocks.add(loads, &[mov(3, 2), mov(2, 1), slot(code, 2, 3, offset, 0)], 2, false);
        }
        blocks.add((DW, DW), &[slot(code, 1, 1, offset, 0)], 1, false);
        blocks.add((W, W), &[slot(code, 2, 2, offset, 0)], 2, false);
    }
    blocks.compare();
}

#[test]
fn arithmetic_with_constants() {
    let mut blocks = Blocks::new();
    for (class, operation, offset) in operations() {
        let bits = if class == ALU64 { 64 } else { 32 };
        let shift = [LSH, RSH, ARSH].contains(&operation);
        let shifts = [0, 1, 8, 31, 32, 33, 48, 63];
        let constants = if shift { &shifts[..] } else { &IMMEDIATES[..] };
        for &imm in constants.iter().filter(|imm| !shift || **imm < bits) {
            for loads in [(DW, DW), (W, W), (B, B)] {
                blocks.add(loads, &[slot(class | operation, 1, 0, offset, imm)], 1, false);
                blocks.add(loads, &[mov(3, 1), slot(class | operation, 3, 0, offset, imm)], 3, imm % 2 == 0);
            }
        }
    }
    blocks.compare();
}

#[test]
fn moves_byte_orders_and_shifts_in_pairs() {
    let mut blocks = Blocks::new();
    for loads in [(DW, DW), (W, W), (H, H), (B, B)] {
        for half in [false, true] {
            for bits in [16, 32, 64] {
                for code in [ALU32 | 0xd0, ALU32 | 0xd8, ALU64 | 0xd0] {
                    blocks.add(loads, &[slot(code, 1, 0, 0, bits)], 1, half);
                    blocks.add(loads, &[mov(4, 1), slot(code, 4, 0, 0, bits)], 4, half);
                }
            }
            for (class, bits) in [(ALU32, 8), (ALU32, 16), (ALU64, 8), (ALU64, 16), (ALU64, 32)] {
                blocks.add(loads, &[slot(class | REGISTER | MOV, 3, 1, bits, 0)], 3, half);
            }
            for class in [ALU32, ALU64] {
                blocks.add(loads, &[slot(class | 0x80, 1, 0, 0, 0)], 1, half);
            }
            for count in [8, 16, 32, 40, 48, 56] {
                for right in [RSH, ARSH] {
                    blocks.add(loads, &[alu64_imm(LSH, 1, count), alu64_imm(right, 1, count)], 1, half);
                }
            }
        }
    }
    for size in [B, H, W] {
        blocks.add((DW, DW), &[slot(LDX | MODE_SIGNED | size, 3, 7, 4, 0)], 3, false);
        blocks.add(
            (DW, DW),
            &[slot(LDX | MODE_SIGNED | size, 7, 7, 3, 0), mov(3, 7), load(W, 7, 6, 0)],
            3,
            false,
        );
    }
    blocks.compare();
}

const CONDITIONS: [u8; 11] = [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xb0, 0xc0, 0xd0];

#[test]
fn jumps_of_all_conditions() {
    let mut blocks = Blocks::new();
    for class in [JMP, JMP32] {
        for condition in CONDITIONS {
            let after = [mov_imm(5, 0), mov_imm(4, 77)];
            for loads in [(DW, DW), (W, W), (DW, W), (W, DW), (B, B)] {
                let jump = slot(class | REGISTER | condition, 1, 2, 1, 0);
                blocks.add(loads, &[&[mov_imm(5, 1), jump][..], &after].concat(), 5, false);
            }
            for imm in IMMEDIATES.into_iter().chain([0]) {
                for loads in [(DW, DW), (W, W), (B, B)] {
                    let jump = slot(class | condition, 1, 0, 1, imm);
                    blocks.add(loads, &[&[mov_imm(5, 1), jump][..], &after].concat(), 5, false);
                    // The value is read behind the jump, where its largest number may be known.
                    let kept = [jump, alu64_imm(ADD, 1, 1), alu64_imm(RSH, 1, 1)];
                    blocks.add(loads, &kept, 1, false);
                }
            }
        }
    }
    blocks.compare();
}

#[test]
fn atomic_operations_on_the_stack_and_through_pointers() {
    let mut blocks = Blocks::new();
    for operation in [0, 0x40, 0x50, 0xa0, 1, 0x41, 0x51, 0xa1, 0xe1, 0xf1] {
        for size in [W, DW] {
            for result in [0, 2, 3, 4] {
                let begin = [store(DW, 10, -16, 1), mov(0, 2), mov(3, 10), alu64_imm(ADD, 3, -16)];
                let some = [mov_imm(2, -5), mov(4, 3), alu64(SUB, 4, 10)];
                // The old value equals r0, or differs.
                let equal = if result == 3 { vec![mov(0, 1)] } else { Vec::new() };
                let run = [atomic(size, operation, 3, 0, 2), load(DW, 3, 10, -16)];
                blocks.add((DW, DW), &[&begin[..], &some, &equal, &run].concat(), result, false);
            }
        }
    }
    for (size, code) in [(B, 0), (H, 1), (W, 2), (DW, 3)] {
        let acquire = slot(0xc3 | size, 3, 10, -8, 0x100);
        let release = slot(0xc3 | size, 10, 1, -8, 0x110);
        let code = [store(DW, 10, -8, 2), release, mov_imm(4, code), acquire];
        blocks.add((DW, DW), &code, 3, false);
        blocks.add((DW, DW), &[&code[..], &[load(DW, 3, 10, -8)]].concat(), 3, false);
    }
    blocks.compare();
}

#[test]
fn a_tail_call_of_a_function_returns_to_its_caller() {
    let slots = crate::instructions::tail_call_of_a_function(12);
    let case =
        || Case { name: "tail".to_owned(), slots: slots.clone(), packets: vec![vec![0; 64], vec![1; 64]] };
    compare("rv32imac_zicsr", true, &[case()]);
    compare("rv64imac_zicsr", true, &[case()]);
}

/// Joins bytes at r7 or on the stack from the last to the first.
fn bytes(base: u8, at: i16, count: i16, between: &[Instruction]) -> Vec<Instruction> {
    let mut code = vec![load(B, 3, base, at)];
    for byte in 1..count {
        code.push(load(B, 4, base, at + byte));
        if byte + 1 == count {
            code.extend(between);
        }
        code.extend([alu64_imm(LSH, 4, 8 * i32::from(byte)), alu64(OR, 3, 4)]);
    }
    code
}

#[test]
fn bytes_that_are_joined_are_those_of_their_time() {
    let mut blocks = Blocks::new();
    let wide = |base| {
        let half = |at, register: u8| {
            let code = [load(H, register, base, at + 2), alu32_imm(LSH, register, 16), load(H, 5, base, at)];
            [&code[..], &[alu32(OR, register, 5)]].concat()
        };
        [half(0, 3), half(4, 4), vec![alu64_imm(LSH, 4, 32), alu64(OR, 3, 4)]].concat()
    };
    let stack = [store(DW, 10, -16, 1), mov(0, 10), alu64_imm(ADD, 0, -16)];
    for count in 2..=8 {
        blocks.add((DW, DW), &bytes(7, 1, count, &[]), 3, false);
        blocks.add((DW, DW), &[&stack[..], &bytes(10, -16, count, &[])].concat(), 3, false);
        // Stores to the same bytes and to others, and another base.
        for between in [store_imm(B, 7, 2, 9), store_imm(B, 10, -24, 9), mov(7, 7), alu64_imm(ADD, 7, 3)] {
            let back = [load(W, 7, 6, 0), store(DW, 7, 0, 1)];
            blocks.add((DW, DW), &[&bytes(7, 1, count, &[between])[..], &back].concat(), 3, false);
        }
        for between in [store_imm(B, 10, -15, 9), store_imm(B, 0, 1, 9), store_imm(B, 7, 20, 9)] {
            let code = [&stack[..], &bytes(10, -16, count, &[between])].concat();
            blocks.add((DW, DW), &code, 3, false);
        }
    }
    blocks.add((DW, DW), &wide(7), 3, false);
    blocks.add((DW, DW), &[&stack[..], &wide(0)].concat(), 3, true);
    blocks.compare();
}

#[test]
fn results_of_helpers_reach_all_ways() {
    let begin = |more: &[Instruction]| {
        let call = [mov(6, 1), load(W, 7, 6, 0), load(B, 8, 7, 0), call(Helper::BuffLen)];
        [&call[..], more].concat()
    };
    let exit = exit();
    // r8 is 0 or 1, and the jump is taken or not.
    let jump = |distance| jump_imm(JEQ, 8, 0, distance);
    let programs = [
        begin(&[goto(0), exit]),
        begin(&[goto(1), mov_imm(0, 3), exit]),
        begin(&[jump(1), exit, exit]),
        begin(&[jump(1), alu64_imm(ADD, 0, 5), exit]),
        begin(&[jump(1), goto(1), alu64_imm(ADD, 0, 7), exit]),
        begin(&[jump(1), mov_imm(0, 9), mov(1, 0), alu64(ADD, 0, 1), exit]),
        begin(&[mov_imm(1, 5), jump(1), alu64(ADD, 0, 1), store(DW, 7, 8, 0), store(DW, 7, 16, 1), exit]),
        begin(&[mov(1, 0), mov_imm(0, 2), jump_imm(JEQ, 1, 0, 1), alu64(ADD, 0, 1), exit]),
        begin(&[
            alu64_imm(MUL, 0, 3),
            mov_imm(2, 7),
            alu64(XOR, 0, 2),
            store(DW, 7, 8, 0),
            mov_imm(1, 1),
            exit,
        ]),
        begin(&[mov(9, 0), mov(1, 6), call(Helper::BuffLen), alu64(ADD, 0, 9), exit]),
        begin(&[jump(2), mov(1, 6), call(Helper::BuffLen), alu64_imm(SUB, 0, 1), exit]),
        begin(&[jump_imm(JGT, 0, 60, 2), mov_imm(1, 4), alu64(SUB, 0, 1), alu64_imm(ADD, 0, 100), exit]),
        begin(&[load(DW, 1, 7, 8), alu64(DIV, 0, 1), load(DW, 1, 7, 16), alu64(ADD, 0, 1), exit]),
        begin(&[load(DW, 2, 7, 8), mov(1, 0), alu64(MOD, 2, 0), store(DW, 7, 24, 2), alu64(ADD, 0, 1), exit]),
    ];
    let packets: Vec<Vec<u8>> = [(0, 60), (1, 60), (0, 70), (1, 70)]
        .map(|(first, length)| (0..length).map(|at| if at == 0 { first } else { at as u8 }).collect())
        .to_vec();
    let numbered = programs.into_iter().enumerate();
    let cases: Vec<Case> = numbered
        .map(|(at, slots)| Case { name: format!("results_{at}"), slots, packets: packets.clone() })
        .collect();
    compare("rv32imac_zicsr", true, &cases);
    compare("rv64imac_zicsr", true, &cases);
}

/// A copy of bytes, one by one in the order of `places`.
fn copied(places: &[i16], from: (u8, i16), to: (u8, i16)) -> Vec<Instruction> {
    let bytes = places.iter().flat_map(|at| [load(B, 3, from.0, from.1 + at), store(B, to.0, to.1 + at, 3)]);
    bytes.collect()
}

#[test]
fn rows_of_bytes_are_copied() {
    let mut blocks = Blocks::new();
    for count in 1..=11i16 {
        let up: Vec<i16> = (0..count).collect();
        let down: Vec<i16> = up.iter().rev().copied().collect();
        // Not in a row: two at each place, and two halves in the wrong order.
        let mixed: Vec<i16> = up.iter().map(|at| at ^ 1).collect();
        for places in [&up, &down, &mixed] {
            let clear = [mov_imm(4, 0), store(DW, 10, -16, 4), store(DW, 10, -8, 4)];
            let to_stack = [&clear[..], &copied(places, (7, 3), (10, -16))].concat();
            for (from, result) in [(-16, 4), (-8, 4)] {
                blocks.add((DW, DW), &[&to_stack[..], &[load(DW, result, 10, from)]].concat(), result, false);
            }
            // The last byte is read later.
            blocks.add((DW, DW), &to_stack, 3, false);
            // In one packet, a byte may be one that was copied before.
            let smeared = [&copied(places, (7, 2), (7, 3))[..], &[load(DW, 4, 7, 4)]].concat();
            blocks.add((DW, DW), &smeared, 4, false);
            // The last load takes the place of the address.
            let mut own = [&[mov(5, 7)][..], &to_stack[..3], &copied(places, (5, 3), (10, -16))].concat();
            let last = own.len() - 2;
            (own[last].dst, own[last + 1].src) = (5, 5);
            own.push(load(DW, 4, 10, -16));
            blocks.add((DW, DW), &own, 4, false);
        }
    }
    blocks.compare();
}
