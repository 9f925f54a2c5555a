//! Every instruction of RV32IMAC and Zicsr, in cases computed by hand.

use crate::common::*;
use nicety_hpu::asm::*;
use nicety_hpu::{Context, Core, Exit, Extension, Image, Isa};

const MIN: u32 = 0x8000_0000;
const MAX: u32 = 0x7fff_ffff;
const ONES: u32 = 0xffff_ffff;

#[test]
fn register_arithmetic() {
    type Instruction = fn(u32, u32, u32) -> u32;
    let cases: &[(Instruction, u32, u32, u32)] = &[
        (add, 1, 2, 3),
        (add, ONES, 1, 0),
        (add, MAX, 1, MIN),
        (sub, 1, 2, ONES),
        (sub, MIN, 1, MAX),
        (sll, 1, 31, MIN),
        (sll, 1, 32, 1), // only the low five bits count
        (sll, 3, 33, 6),
        (slt, ONES, 0, 1),
        (slt, 0, ONES, 0),
        (slt, MIN, MAX, 1),
        (slt, 5, 5, 0),
        (sltu, ONES, 0, 0),
        (sltu, 0, ONES, 1),
        (xor, 0b1100, 0b1010, 0b0110),
        (srl, MIN, 31, 1),
        (srl, ONES, 63, 1),
        (sra, MIN, 31, ONES),
        (sra, MAX, 31, 0),
        (sra, MIN, 32, MIN),
        (or, 0b1100, 0b1010, 0b1110),
        (and, 0b1100, 0b1010, 0b1000),
        (mul, ONES, ONES, 1),
        (mul, 0x1_0001, 0x1_0001, 0x2_0001),
        (mulh, ONES, ONES, 0),
        (mulh, MIN, MIN, 0x4000_0000),
        (mulh, MIN, MAX, 0xc000_0000),
        (mulhsu, ONES, ONES, ONES), // -1 x 4294967295
        (mulhsu, MAX, ONES, 0x7fff_fffe),
        (mulhsu, MIN, ONES, MIN),
        (mulhu, ONES, ONES, 0xffff_fffe),
        (mulhu, MIN, 2, 1),
        (div, 7, 2, 3),
        (div, 7u32.wrapping_neg(), 2, 3u32.wrapping_neg()),
        (div, 7, 2u32.wrapping_neg(), 3u32.wrapping_neg()),
        (div, 7, 0, ONES),
        (div, MIN, ONES, MIN),
        (divu, ONES, 2, MAX),
        (divu, 7, 0, ONES),
        (divu, MIN, ONES, 0),
        (rem, 7, 2, 1),
        (rem, 7u32.wrapping_neg(), 2, ONES),
        (rem, 7, 2u32.wrapping_neg(), 1),
        (rem, 7, 0, 7),
        (rem, MIN, ONES, 0),
        (remu, ONES, 10, 5),
        (remu, 7, 0, 7),
        (remu, MIN, ONES, MIN),
    ];
    for &(instruction, a, b, expected) in cases {
        let word = instruction(A0, A0, A1);
        assert_eq!(eval(&[word], &[a, b]), expected, "{word:#010x} of {a:#x} and {b:#x}");
        // With x0 as the target it does nothing, and x0 as an operand is zero.
        assert_eq!(eval(&[instruction(ZERO, A0, A1), add(A0, ZERO, ZERO)], &[a, b]), 0, "{word:#010x}");
    }
}

#[test]
fn immediate_arithmetic() {
    type Instruction = fn(u32, u32, i32) -> u32;
    let cases: &[(Instruction, u32, i32, u32)] = &[
        (addi, 1, -1, 0),
        (addi, 0, -2048, 0xffff_f800),
        (addi, MAX, 1, MIN),
        (slti, ONES, 0, 1),
        (slti, 0, -1, 0),
        (sltiu, 0, -1, 1), // the immediate is extended, then taken as unsigned
        (sltiu, ONES, -1, 0),
        (sltiu, 0, 1, 1),
        (xori, 0x55, -1, !0x55),
        (ori, 0x50, 0x7ff, 0x7ff),
        (ori, 0, -2048, 0xffff_f800),
        (andi, ONES, 0x7ff, 0x7ff),
        (andi, ONES, -16, 0xffff_fff0),
    ];
    for &(instruction, a, imm, expected) in cases {
        assert_eq!(
            eval(&[instruction(A0, A0, imm)], &[a]),
            expected,
            "{:#010x} of {a:#x}",
            instruction(A0, A0, imm)
        );
    }
    for (instruction, a, amount, expected) in [
        (slli as fn(u32, u32, u32) -> u32, 1, 31, MIN),
        (slli, ONES, 0, ONES),
        (srli, MIN, 31, 1),
        (srai, MIN, 31, ONES),
        (srai, MIN, 1, 0xc000_0000),
        (srai, MAX, 30, 1),
    ] {
        assert_eq!(eval(&[instruction(A0, A0, amount)], &[a]), expected);
    }
}

#[test]
fn constants() {
    assert_eq!(eval(&[lui(A0, 0xf_ffff)], &[]), 0xffff_f000);
    assert_eq!(eval(&[nop(), auipc(A0, 0)], &[]), CODE + 4);
    assert_eq!(eval(&[auipc(A0, 0xf_ffff)], &[]), CODE - 4096);
    for value in [0, 1, 0x7ff, 0x800, 0xfff, 0x1000, MAX, MIN, ONES, 0xdead_beef] {
        assert_eq!(eval(&li(A0, value), &[]), value);
    }
}

#[test]
fn x0_stays_zero() {
    let writes = [
        addi(ZERO, ZERO, 5),
        lui(ZERO, 5),
        auipc(ZERO, 5),
        lw(ZERO, 0, A0),
        lb(ZERO, 0, A0),
        amoadd_w(ZERO, A1, A0),
        lr_w(ZERO, A0),
        jal(ZERO, 4),
        mul(ZERO, A1, A1),
        csrrs(ZERO, 0xc00, ZERO),
    ];
    for write in writes {
        let mut machine = Machine::new(&[write, add(A0, ZERO, ZERO), ret()]);
        machine.set_word(0, ONES);
        machine.call(&[MEMORY, 3]);
        assert_eq!(machine.finish(), Exit::Return(0), "{write:#010x}");
    }
    // jalr to the next instruction, without the return address.
    assert_eq!(eval(&[auipc(T0, 0), jalr(ZERO, T0, 8), add(A0, ZERO, ZERO)], &[9]), 0);
}

#[test]
fn loads_extend_and_stores_truncate() {
    let mut machine = Machine::new(&[0]);
    machine.set_word(8, 0x8f7f_80ff);
    let memory = machine.memory.clone();
    for (load, expected) in [
        (lb(A0, 8, A0), ONES),
        (lb(A0, 9, A0), 0xffff_ff80),
        (lb(A0, 10, A0), 0x7f),
        (lbu(A0, 8, A0), 0xff),
        (lbu(A0, 11, A0), 0x8f),
        (lh(A0, 8, A0), 0xffff_80ff),
        (lh(A0, 10, A0), 0xffff_8f7f),
        (lhu(A0, 8, A0), 0x80ff),
        (lw(A0, 8, A0), 0x8f7f_80ff),
    ] {
        // Twice: the first load looks its region up, the second one remembers it.
        let mut machine = Machine::new(&[mv(A1, A0), load, mv(A0, A1), load, ret()]);
        machine.memory.copy_from_slice(&memory);
        machine.call(&[MEMORY]);
        assert_eq!(machine.finish(), Exit::Return(expected), "{load:#010x}");
    }
    let value = 0x1234_5678;
    for (store, expected) in [
        (sb(A1, 1, A0), 0xffff_78ff),
        (sh(A1, 2, A0), 0x5678_ffff),
        (sw(A1, 0, A0), value),
        (sb(A1, 3, A0), 0x78ff_ffff),
    ] {
        let mut machine = Machine::new(&[store, store, ret()]);
        machine.set_word(0, ONES);
        machine.set_word(4, ONES);
        machine.call(&[MEMORY, value]);
        assert_eq!(machine.finish(), Exit::Return(MEMORY));
        assert_eq!((machine.word(0), machine.word(4)), (expected, ONES), "{store:#010x}");
    }
    // A negative offset, and an address that wraps around.
    let mut machine = Machine::new(&[sw(A1, -4, A0), lw(A0, -2048, A2), ret()]);
    machine.call(&[MEMORY + 8, 77, MEMORY + 4 + 2048]);
    assert_eq!(machine.finish(), Exit::Return(77));
}

#[test]
fn branches() {
    type Branch = fn(u32, u32, i32) -> u32;
    let cases: &[(Branch, u32, u32, bool)] = &[
        (beq, 1, 1, true),
        (beq, 1, 2, false),
        (bne, 1, 1, false),
        (bne, 1, 2, true),
        (blt, ONES, 0, true),
        (blt, 0, ONES, false),
        (blt, 1, 1, false),
        (bge, 0, ONES, true),
        (bge, 1, 1, true),
        (bge, MIN, MAX, false),
        (bltu, ONES, 0, false),
        (bltu, 0, ONES, true),
        (bgeu, 0, ONES, false),
        (bgeu, ONES, ONES, true),
    ];
    for &(branch, a, b, taken) in cases {
        let forwards = [branch(A0, A1, 12), addi(A0, ZERO, 0), ret(), addi(A0, ZERO, 1)];
        assert_eq!(eval(&forwards, &[a, b]), u32::from(taken), "{:#010x}", forwards[0]);
        let backwards = [j(12), addi(A0, ZERO, 1), ret(), branch(A0, A1, -8), addi(A0, ZERO, 0)];
        assert_eq!(eval(&backwards, &[a, b]), u32::from(taken), "{:#010x}", backwards[3]);
    }
}

/// Whether a jump of `offset` bytes from the middle of the code reaches its target. It traps anywhere else.
fn lands(jump: impl Fn(i32) -> u32, offset: i32) -> bool {
    let reach = (offset.unsigned_abs() as usize).div_ceil(4) + 4;
    let mut words = vec![0; 2 * reach];
    words[0] = j(4 * reach as i32);
    words[reach] = jump(offset);
    let target = (reach as i32 + offset / 4) as usize;
    words[target] = addi(A0, ZERO, 1);
    words[target + 1] = ret();
    let mut machine = Machine::new(&words);
    machine.call(&[]);
    machine.finish() == Exit::Return(1)
}

#[test]
fn every_bit_of_an_offset_counts() {
    // The two words of the target must not overlap the jump itself.
    let apart = |offset: &i32| *offset < -4 || *offset > 0;
    let around = |bit: u32| [1i32 << bit, (1 << bit) - 4, -(1i32 << bit), 4 - (1 << bit), -(1 << bit) - 4];
    for offset in (3..12).flat_map(around).chain([-4096, 4092]).filter(apart) {
        assert!(lands(|offset| beq(ZERO, ZERO, offset), offset), "a branch of {offset} bytes");
    }
    for offset in (3..20).flat_map(around).filter(apart) {
        assert!(lands(|offset| jal(ZERO, offset), offset), "a jump of {offset} bytes");
    }
}

#[test]
fn jumps_link_and_clear_bit_0() {
    assert_eq!(eval(&[mv(T1, RA), jal(RA, 8), nop(), mv(A0, RA), mv(RA, T1)], &[]), CODE + 8);
    // rd and rs1 may be the same: the target is read before the link is written.
    assert_eq!(eval(&[auipc(T0, 0), jalr(T0, T0, 12), nop(), mv(A0, T0)], &[]), CODE + 8);
    assert_eq!(eval(&[auipc(T0, 0), jalr(T1, T0, 13), nop(), mv(A0, T1)], &[]), CODE + 8);
    assert_eq!(eval(&[auipc(T0, 1), addi(T0, T0, -2048), jalr(A0, T0, -2048 + 12)], &[]), CODE + 12);
}

#[test]
fn atomics() {
    type Amo = fn(u32, u32, u32) -> u32;
    let cases: &[(Amo, u32, u32, u32)] = &[
        (amoswap_w, 5, 9, 9),
        (amoadd_w, ONES, 2, 1),
        (amoxor_w, 0b1100, 0b1010, 0b0110),
        (amoand_w, 0b1100, 0b1010, 0b1000),
        (amoor_w, 0b1100, 0b1010, 0b1110),
        (amomin_w, ONES, 1, ONES),
        (amomin_w, 1, ONES, ONES),
        (amomax_w, ONES, 1, 1),
        (amomax_w, MIN, MAX, MAX),
        (amominu_w, ONES, 1, 1),
        (amomaxu_w, ONES, 1, ONES),
    ];
    for &(amo, old, operand, new) in cases {
        let mut machine = Machine::new(&[amo(A0, A1, A0), ret()]);
        machine.set_word(0, old);
        machine.call(&[MEMORY, operand]);
        assert_eq!(machine.finish(), Exit::Return(old), "{:#010x}", amo(A0, A1, A0));
        assert_eq!(machine.word(0), new, "{:#010x}", amo(A0, A1, A0));
    }
    // A pair that succeeds, and one without a reservation that fails and stores nothing.
    let mut machine =
        Machine::new(&[lr_w(T0, A0), addi(T0, T0, 1), sc_w(T1, T0, A0), sc_w(A0, A1, A0), ret()]);
    machine.set_word(0, 41);
    machine.call(&[MEMORY, 99]);
    assert_eq!(machine.finish(), Exit::Return(1));
    assert_eq!((machine.word(0), machine.context.reg(T1 as usize)), (42, 0));
}

#[test]
fn counters() {
    const ALL: [(u32, u32); 11] = [
        (0xc00, 0x1234_5679), // cycle: one nop in
        (0xc80, 2),
        (0xc01, 0x1234_5679 + 5),
        (0xc81, 2),
        (0xc02, 1),
        (0xc82, 0),
        (0xb00, 0x1234_5679),
        (0xb80, 2),
        (0xb02, 1),
        (0xb82, 0),
        (0xf14, 7),
    ];
    for read in [csrrs, csrrc, csrrsi, csrrci] {
        for (number, expected) in ALL {
            let mut machine = Machine::new(&[nop(), read(A0, number, ZERO), ret()]);
            machine.context.set_cycle(0x2_1234_5678);
            machine.context.set_time_base(5);
            machine.call(&[]);
            assert_eq!(machine.finish(), Exit::Return(expected), "CSR {number:#x}");
        }
    }
    assert_eq!(Context::new(31).hart(), 31);
}

#[test]
fn fences_change_nothing() {
    assert_eq!(eval(&[fence(), 0x0100_000f /* pause */, addi(A0, A0, 1)], &[1]), 2);
    let isa = Isa::RV32I.with(Extension::Zifencei);
    let mut machine = Machine::on(&Core { isa, ..Core::default() }, &[fence_i(), ret()]);
    machine.call(&[3]);
    assert_eq!(machine.finish(), Exit::Return(3));
}

/// Compressed instructions among others, at addresses that are multiples of two only.
#[test]
fn compressed_code_runs() {
    let halves: [u16; 12] = [
        0x1141, // c.addi sp, -16
        0xc606, // c.swsp ra, 12(sp)
        0x4585, // c.li a1, 1
        0x952e, // 1: c.add a0, a1
        0x0585, // c.addi a1, 1
        0x0000, 0x0000, // bge a2, a1, 1b: four bytes in the middle of words
        0x2021, // c.jal 2f
        0x40b2, // c.lwsp ra, 12(sp)
        0x0141, // c.addi sp, 16
        0x8082, // c.jr ra
        0x0506, // 2: c.slli a0, 1
    ];
    let mut code: Vec<u8> = halves.iter().flat_map(|h| h.to_le_bytes()).collect();
    code[10..14].copy_from_slice(&bge(A2, A1, -4).to_le_bytes());
    code.extend(0x8082u16.to_le_bytes()); // c.jr ra
    let mut machine = Machine::of(&Core::default(), &code);
    machine.call(&[100, 0, 4]);
    // c.jal 2f is at 14 and 2f at 22: the offset is 8.
    assert_eq!(machine.finish(), Exit::Return(2 * (100 + 1 + 2 + 3 + 4)));
    assert_eq!(machine.context.instret(), 3 + 4 * 3 + 1 + 2 + 3);
    assert_eq!(machine.context.sp(), STACK_TOP);
}

#[test]
fn atomic_additions_and_exchanges_are_told_from_others() {
    // amoadd.w, amoswap.w and amoxor.w a0, a1, (a2); sc.w a0, a1, (a2); add a0, a1, a2.
    let words = [0x00b6_252f, 0x08b6_252f, 0x20b6_252f, 0x18b6_252f, 0x00c5_8533];
    let image = Image::from_words(CODE, &words, &Core::default());
    let of = |what: fn(&Image, u32) -> bool| -> Vec<bool> {
        (0..words.len() as u32 + 1).map(|at| what(&image, CODE + 4 * at)).collect()
    };
    assert_eq!(of(Image::adds_at), [true, false, false, false, false, false]);
    assert_eq!(of(Image::swaps_at), [false, true, false, false, false, false]);
}
