//! Every instruction of Zba, Zbb, Zbs and F, by cases worked out by hand.

mod common;

use common::*;
use nicety_hpu::asm::*;
use nicety_hpu::{Core, Exit, Extension, Illegal, Isa, TrapKind};

const MIN: u32 = 0x8000_0000;
const MAX: u32 = 0x7fff_ffff;
const ONES: u32 = 0xffff_ffff;

type One = fn(u32, u32) -> u32;
type Two = fn(u32, u32, u32) -> u32;

#[test]
fn bit_manipulation_of_two_registers() {
    let cases: &[(Two, u32, u32, u32)] = &[
        (sh1add, 3, 100, 106),
        (sh1add, MIN, 1, 1),
        (sh2add, 3, 100, 112),
        (sh3add, 3, 100, 124),
        (sh3add, 0x2000_0001, ONES, 7),
        (andn, 0b1100, 0b1010, 0b0100),
        (orn, 0b1100, 0b1010, 0xffff_fffd),
        (xnor, 0b1100, 0b1010, 0xffff_fff9),
        (max, ONES, 1, 1),
        (max, MIN, MAX, MAX),
        (maxu, ONES, 1, ONES),
        (min, ONES, 1, ONES),
        (min, MIN, MAX, MIN),
        (minu, ONES, 1, 1),
        (rol, 0x8000_0001, 1, 3),
        (rol, 0x1234_5678, 36, 0x2345_6781), // only the low five bits count
        (ror, 0x8000_0001, 1, 0xc000_0000),
        (ror, 0x1234_5678, 32, 0x1234_5678),
        (bclr, ONES, 31, MAX),
        (bclr, ONES, 32, ONES - 1),
        (bext, MIN, 31, 1),
        (bext, MIN, 30, 0),
        (bext, 2, 33, 1),
        (binv, 0b101, 0, 0b100),
        (binv, 0b101, 33, 0b111),
        (bset, 0, 31, MIN),
        (bset, 1, 32, 1),
    ];
    for &(instruction, a, b, expected) in cases {
        let word = instruction(A0, A0, A1);
        assert_eq!(eval_on(&everything(), &[word], &[a, b]), expected, "{word:#010x} of {a:#x} and {b:#x}");
        let into_x0 = [instruction(ZERO, A0, A1), add(A0, ZERO, ZERO)];
        assert_eq!(eval_on(&everything(), &into_x0, &[a, b]), 0, "{word:#010x}");
    }
}

#[test]
fn bit_manipulation_of_one_register() {
    let cases: &[(One, u32, u32)] = &[
        (clz, 0, 32),
        (clz, 1, 31),
        (clz, MIN, 0),
        (ctz, 0, 32),
        (ctz, 1, 0),
        (ctz, MIN, 31),
        (cpop, 0, 0),
        (cpop, ONES, 32),
        (cpop, 0x8421_0001, 5),
        (sext_b, 0x1234_567f, 0x7f),
        (sext_b, 0x80, 0xffff_ff80),
        (sext_h, 0x1234_7fff, 0x7fff),
        (sext_h, 0x8000, 0xffff_8000),
        (zext_h, 0x1234_8765, 0x8765),
        (orc_b, 0, 0),
        (orc_b, 0x0100_8000, 0xff00_ff00),
        (orc_b, 0x0010_0001, 0x00ff_00ff),
        (orc_b, 0x7f80_0180, ONES),
        (rev8, 0x1234_5678, 0x7856_3412),
    ];
    for &(instruction, a, expected) in cases {
        let word = instruction(A0, A0);
        assert_eq!(eval_on(&everything(), &[word], &[a]), expected, "{word:#010x} of {a:#x}");
        assert_eq!(eval_on(&everything(), &[instruction(ZERO, A0), mv(A0, ZERO)], &[a]), 0, "{word:#010x}");
    }
    let cases: &[(Two, u32, u32, u32)] = &[
        (rori, 0x1234_5678, 8, 0x7812_3456),
        (rori, ONES - 1, 0, ONES - 1),
        (bclri, ONES, 0, ONES - 1),
        (bclri, ONES, 31, MAX),
        (bexti, 0b10, 1, 1),
        (bexti, MIN, 31, 1),
        (bexti, MAX, 31, 0),
        (binvi, 0, 31, MIN),
        (binvi, 0b11, 1, 1),
        (bseti, 0, 0, 1),
        (bseti, 1, 31, 0x8000_0001),
    ];
    for &(instruction, a, amount, expected) in cases {
        let word = instruction(A0, A0, amount);
        assert_eq!(eval_on(&everything(), &[word], &[a]), expected, "{word:#010x} of {a:#x}");
    }
}

const NX: u32 = 1;
const UF: u32 = 2;
const OF: u32 = 4;
const DZ: u32 = 8;
const NV: u32 = 16;

const ONE: u32 = 0x3f80_0000;
const TWO: u32 = 0x4000_0000;
const THREE: u32 = 0x4040_0000;
const MINUS: u32 = 0x8000_0000;
const HUGE: u32 = 0x7f7f_ffff; // the largest finite number
const TINY: u32 = 1; // the smallest subnormal one
const NORMAL: u32 = 0x0080_0000; // the smallest normal one
const INF: u32 = 0x7f80_0000;
const NAN: u32 = 0x7fc0_0000;
const QUIET: u32 = 0x7fc1_2345;
const SIGNALING: u32 = 0x7f80_0001;
/// Half the distance from one to the next number.
const HALF_STEP: u32 = 0x3380_0000;

/// The bits that one instruction leaves in fa0 and a0, and the flags it raises, with operands in fa0, fa1, fa2 and a0.
fn float(word: u32, operands: &[u32]) -> (u32, u32, u32) {
    let mut machine = Machine::on(&everything(), &[word, ret()]);
    machine.call(operands);
    for (register, &bits) in operands.iter().enumerate() {
        machine.context.set_freg(FA0 as usize + register, bits);
    }
    let Exit::Return(a0) = machine.finish() else { panic!("{word:#010x} does not return") };
    assert_eq!(machine.context.fcsr() >> 5, 0);
    (machine.context.freg(FA0 as usize), a0, machine.context.fcsr())
}

/// Cases of a float instruction: operands, then bits and flags.
fn check(word: u32, cases: &[(&[u32], u32, u32)]) {
    for &(operands, bits, flags) in cases {
        let (result, _, raised) = float(word, operands);
        assert_eq!((result, raised), (bits, flags), "{word:#010x} of {operands:x?} gives {result:#x}");
    }
}

#[test]
fn addition_and_subtraction() {
    check(
        fadd_s(FA0, FA0, FA1),
        &[
            (&[ONE, TWO], THREE, 0),
            (&[ONE, HALF_STEP], ONE, NX),         // a tie, to even
            (&[ONE + 1, HALF_STEP], ONE + 2, NX), // a tie, to even upwards
            (&[ONE, HALF_STEP + 1], ONE + 1, NX), // more than a tie
            (&[ONE, MINUS | TINY], ONE, NX),
            (&[ONE, MINUS | ONE], 0, 0),
            (&[MINUS, MINUS], MINUS, 0),
            (&[0, MINUS], 0, 0),
            (&[TINY, TINY], 2, 0), // sums of subnormals are exact
            (&[NORMAL, MINUS | TINY], NORMAL - 1, 0),
            (&[HUGE, HUGE], INF, OF | NX),
            (&[HUGE, 0x7300_0000], INF, OF | NX), // half a step beyond
            (&[HUGE, 0x72ff_ffff], HUGE, NX),
            (&[INF, HUGE], INF, 0),
            (&[INF, MINUS | INF], NAN, NV),
            (&[ONE, QUIET], NAN, 0),
            (&[SIGNALING, ONE], NAN, NV),
        ],
    );
    check(
        fsub_s(FA0, FA0, FA1),
        &[
            (&[THREE, TWO], ONE, 0),
            (&[ONE, ONE], 0, 0),
            (&[ONE, HALF_STEP], ONE - 1, 0), // below one the steps are half as long
            (&[MINUS, 0], MINUS, 0),
            (&[INF, INF], NAN, NV),
            (&[INF, MINUS | INF], INF, 0),
        ],
    );
}

#[test]
fn multiplication() {
    check(
        fmul_s(FA0, FA0, FA1),
        &[
            (&[TWO, THREE], 0x40c0_0000, 0),
            (&[MINUS | TWO, THREE], 0xc0c0_0000, 0),
            (&[ONE + 1, ONE + 1], ONE + 2, NX),
            (&[MINUS | TWO, 0], MINUS, 0),
            (&[HUGE, TWO], INF, OF | NX),
            (&[TINY, 0x3f00_0000], 0, UF | NX), // half of the smallest: a tie, to zero
            (&[3, 0x3f00_0000], 2, UF | NX),    // a tie, to even
            (&[NORMAL, 0x3f00_0000], NORMAL / 2, 0), // tiny but exact: no underflow
            (&[0x0100_0000, 0x3f00_0000], NORMAL, 0),
            (&[0x3f7f_f800, 0x0080_0400], NORMAL, NX), // 2^-126 (1 - 2^-26): with 24 bits it rounds up, not tiny
            (&[0x3f7f_f000, 0x0080_0800], NORMAL, UF | NX), // 2^-126 (1 - 2^-24): 24 bits hold it, tiny
            (&[INF, 0], NAN, NV),
            (&[INF, MINUS | TINY], MINUS | INF, 0),
            (&[QUIET, SIGNALING], NAN, NV),
        ],
    );
}

#[test]
fn division_and_square_roots() {
    check(
        fdiv_s(FA0, FA0, FA1),
        &[
            (&[THREE, TWO], 0x3fc0_0000, 0),
            (&[ONE, THREE], 0x3eaa_aaab, NX),
            (&[ONE, 0], INF, DZ),
            (&[ONE, MINUS], MINUS | INF, DZ),
            (&[0, 0], NAN, NV),
            (&[INF, INF], NAN, NV),
            (&[INF, 0], INF, 0),
            (&[ONE, INF], 0, 0),
            (&[0, THREE], 0, 0),
            (&[TINY, TWO], 0, UF | NX),
            (&[TINY, TINY], ONE, 0),
            (&[HUGE, TINY], INF, OF | NX),
            (&[NAN, 0], NAN, 0),
        ],
    );
    check(
        fsqrt_s(FA0, FA0),
        &[
            (&[0x4110_0000], THREE, 0), // of nine
            (&[TWO], 0x3fb5_04f3, NX),
            (&[TINY], 0x1a35_04f3, NX), // of 2^-149: 2^-75 times the root of two
            (&[2], 0x1a80_0000, 0),     // of 2^-148
            (&[HUGE], 0x5f7f_ffff, NX),
            (&[MINUS], MINUS, 0),
            (&[MINUS | ONE], NAN, NV),
            (&[INF], INF, 0),
            (&[MINUS | INF], NAN, NV),
            (&[QUIET], NAN, 0),
            (&[SIGNALING], NAN, NV),
        ],
    );
}

#[test]
fn fused_operations_round_once() {
    check(
        fmadd_s(FA0, FA0, FA1, FA2),
        &[
            (&[TWO, THREE, ONE], 0x40e0_0000, 0),
            // (1 + 2^-23)^2 - (1 + 2^-22) is 2^-46, which rounding twice would lose.
            (&[ONE + 1, ONE + 1, MINUS | (ONE + 2)], 0x2880_0000, 0),
            (&[HUGE, TWO, MINUS | HUGE], HUGE, 0), // the product alone would overflow
            (&[ONE, HALF_STEP, ONE], ONE, NX),
            (&[ONE + 1, HALF_STEP, ONE], ONE + 1, NX), // a little more than a tie
            (&[ONE, MINUS | ONE, ONE], 0, 0),
            (&[0, ONE, MINUS], 0, 0),
            (&[MINUS, ONE, MINUS], MINUS, 0),
            (&[TINY, TINY, 0], 0, UF | NX),
            (&[TINY, TINY, ONE], ONE, NX),
            (&[0, TINY, TWO], TWO, 0),
            (&[INF, ONE, MINUS | INF], NAN, NV),
            (&[ONE, ONE, INF], INF, 0),
            (&[INF, 0, QUIET], NAN, NV),
            (&[ONE, ONE, QUIET], NAN, 0),
        ],
    );
    check(fmsub_s(FA0, FA0, FA1, FA2), &[(&[TWO, THREE, ONE], 0x40a0_0000, 0), (&[ONE, ONE, ONE], 0, 0)]);
    check(fnmsub_s(FA0, FA0, FA1, FA2), &[(&[TWO, THREE, ONE], 0xc0a0_0000, 0), (&[ONE, ONE, ONE], 0, 0)]);
    check(
        fnmadd_s(FA0, FA0, FA1, FA2),
        &[(&[TWO, THREE, ONE], 0xc0e0_0000, 0), (&[ONE, MINUS | ONE, ONE], 0, 0), (&[0, ONE, 0], MINUS, 0)],
    );
}

#[test]
fn every_rounding_mode_rounds() {
    // One, plus or minus a quarter, half or three quarters of a step: how far above one in steps each mode ends.
    let quarter = 0x3300_0000;
    let three_quarters = 0x33c0_0000;
    for (sign, addend, modes) in [
        (0, quarter, [(RNE, 0), (RTZ, 0), (RDN, 0), (RUP, 1), (RMM, 0)]),
        (0, HALF_STEP, [(RNE, 0), (RTZ, 0), (RDN, 0), (RUP, 1), (RMM, 1)]),
        (0, three_quarters, [(RNE, 1), (RTZ, 0), (RDN, 0), (RUP, 1), (RMM, 1)]),
        (MINUS, quarter, [(RNE, 0), (RTZ, 0), (RDN, 1), (RUP, 0), (RMM, 0)]),
        (MINUS, HALF_STEP, [(RNE, 0), (RTZ, 0), (RDN, 1), (RUP, 0), (RMM, 1)]),
        (MINUS, three_quarters, [(RNE, 1), (RTZ, 0), (RDN, 1), (RUP, 0), (RMM, 1)]),
    ] {
        for (mode, steps) in modes {
            let word = with_rounding(fadd_s(FA0, FA0, FA1), mode);
            check(word, &[(&[sign | ONE, sign | addend], (sign | ONE) + steps, NX)]);
        }
    }
    for (mode, overflow, negative, opposites) in [
        (RNE, INF, MINUS | INF, 0),
        (RTZ, HUGE, MINUS | HUGE, 0),
        (RDN, HUGE, MINUS | INF, MINUS),
        (RUP, INF, MINUS | HUGE, 0),
        (RMM, INF, MINUS | INF, 0),
    ] {
        let word = with_rounding(fadd_s(FA0, FA0, FA1), mode);
        check(
            word,
            &[
                (&[HUGE, HUGE], overflow, OF | NX),
                (&[MINUS | HUGE, MINUS | HUGE], negative, OF | NX),
                (&[ONE, MINUS | ONE], opposites, 0),
                (&[0, MINUS], opposites, 0),
            ],
        );
    }
    // The mode of frm, where the instruction says so.
    let words = [csrrwi(ZERO, FRM, RUP), fadd_s(FA0, FA0, FA1), csrrs(A0, FCSR, ZERO), ret()];
    let mut machine = Machine::on(&everything(), &words);
    machine.call(&[]);
    machine.context.set_freg(FA0 as usize, ONE);
    machine.context.set_freg(FA1 as usize, TINY);
    assert_eq!(machine.finish(), Exit::Return(RUP << 5 | NX));
    assert_eq!(machine.context.freg(FA0 as usize), ONE + 1);
}

#[test]
fn signs_minima_and_maxima() {
    check(
        fsgnj_s(FA0, FA0, FA1),
        &[(&[ONE, MINUS], MINUS | ONE, 0), (&[MINUS | SIGNALING, ONE], SIGNALING, 0)],
    );
    check(fsgnjn_s(FA0, FA0, FA1), &[(&[ONE, MINUS], ONE, 0), (&[ONE, ONE], MINUS | ONE, 0)]);
    check(fsgnjx_s(FA0, FA0, FA1), &[(&[MINUS | ONE, MINUS], ONE, 0), (&[ONE, MINUS], MINUS | ONE, 0)]);
    check(
        fmin_s(FA0, FA0, FA1),
        &[
            (&[ONE, TWO], ONE, 0),
            (&[MINUS | ONE, MINUS | TWO], MINUS | TWO, 0),
            (&[0, MINUS], MINUS, 0),
            (&[MINUS, 0], MINUS, 0),
            (&[QUIET, ONE], ONE, 0),
            (&[ONE, SIGNALING], ONE, NV),
            (&[QUIET, QUIET], NAN, 0),
        ],
    );
    check(
        fmax_s(FA0, FA0, FA1),
        &[
            (&[ONE, TWO], TWO, 0),
            (&[MINUS | ONE, MINUS | TWO], MINUS | ONE, 0),
            (&[0, MINUS], 0, 0),
            (&[MINUS, 0], 0, 0),
            (&[MINUS | INF, QUIET], MINUS | INF, 0),
            (&[SIGNALING, QUIET], NAN, NV),
        ],
    );
}

#[test]
fn comparisons_and_classes() {
    for (word, cases) in [
        (
            feq_s(A0, FA0, FA1),
            [
                (ONE, ONE, 1, 0),
                (0, MINUS, 1, 0),
                (ONE, TWO, 0, 0),
                (QUIET, ONE, 0, 0),
                (SIGNALING, ONE, 0, NV),
            ],
        ),
        (
            flt_s(A0, FA0, FA1),
            [
                (ONE, ONE, 0, 0),
                (0, MINUS, 0, 0),
                (ONE, TWO, 1, 0),
                (QUIET, ONE, 0, NV),
                (ONE, SIGNALING, 0, NV),
            ],
        ),
        (
            fle_s(A0, FA0, FA1),
            [
                (ONE, ONE, 1, 0),
                (0, MINUS, 1, 0),
                (TWO, ONE, 0, 0),
                (ONE, QUIET, 0, NV),
                (MINUS | INF, INF, 1, 0),
            ],
        ),
    ] {
        for (a, b, expected, flags) in cases {
            let (_, result, raised) = float(word, &[a, b]);
            assert_eq!((result, raised), (expected, flags), "{word:#010x} of {a:#x} and {b:#x}");
        }
    }
    for (bits, class) in [
        (MINUS | INF, 0),
        (MINUS | ONE, 1),
        (MINUS | TINY, 2),
        (MINUS, 3),
        (0, 4),
        (NORMAL - 1, 5),
        (NORMAL, 6),
        (INF, 7),
        (SIGNALING, 8),
        (MINUS | QUIET, 9),
    ] {
        let (_, result, flags) = float(fclass_s(A0, FA0), &[bits]);
        assert_eq!((result, flags), (1 << class, 0), "{bits:#x}");
    }
}

#[test]
fn conversions() {
    const HALF: u32 = 0x3f00_0000;
    const ONE_AND_A_HALF: u32 = 0x3fc0_0000;
    const TWO_AND_A_HALF: u32 = 0x4020_0000;
    let minus = u32::wrapping_neg;
    for (mode, cases) in [
        (RNE, [(ONE_AND_A_HALF, 2), (TWO_AND_A_HALF, 2), (MINUS | TWO_AND_A_HALF, minus(2))]),
        (RTZ, [(ONE_AND_A_HALF, 1), (TWO_AND_A_HALF, 2), (MINUS | TWO_AND_A_HALF, minus(2))]),
        (RDN, [(ONE_AND_A_HALF, 1), (TWO_AND_A_HALF, 2), (MINUS | TWO_AND_A_HALF, minus(3))]),
        (RUP, [(ONE_AND_A_HALF, 2), (TWO_AND_A_HALF, 3), (MINUS | TWO_AND_A_HALF, minus(2))]),
        (RMM, [(ONE_AND_A_HALF, 2), (TWO_AND_A_HALF, 3), (MINUS | TWO_AND_A_HALF, minus(3))]),
    ] {
        for (bits, expected) in cases {
            let (_, result, flags) = float(with_rounding(fcvt_w_s(A0, FA0), mode), &[bits]);
            assert_eq!((result, flags), (expected, NX), "{bits:#x} in mode {mode}");
        }
    }
    let to_signed: &[(u32, u32, u32)] = &[
        (THREE, 3, 0),
        (MINUS | TINY, 0, NX),
        (0x4eff_ffff, 0x7fff_ff80, 0),
        (0x4f00_0000, MAX, NV), // 2^31
        (0xcf00_0000, MIN, 0),  // -2^31
        (0xcf00_0001, MIN, NV),
        (INF, MAX, NV),
        (MINUS | INF, MIN, NV),
        (MINUS | QUIET, MAX, NV),
    ];
    let to_unsigned: &[(u32, u32, u32)] = &[
        (THREE, 3, 0),
        (MINUS | HALF, 0, NX), // rounds to zero, which fits
        (MINUS | ONE, 0, NV),
        (0x4f00_0000, MIN, 0),
        (0x4f7f_ffff, 0xffff_ff00, 0),
        (0x4f80_0000, ONES, NV), // 2^32
        (MINUS | INF, 0, NV),
        (SIGNALING, ONES, NV),
    ];
    for (instruction, cases) in [(fcvt_w_s as One, to_signed), (fcvt_wu_s, to_unsigned)] {
        for &(bits, expected, flags) in cases {
            let (_, result, raised) = float(with_rounding(instruction(A0, FA0), RTZ), &[bits]);
            assert_eq!((result, raised), (expected, flags), "{bits:#x}");
        }
    }
    let from: &[(One, u32, u32, u32, u32)] = &[
        (fcvt_s_w, RNE, 0, 0, 0),
        (fcvt_s_w, RNE, minus(3), MINUS | THREE, 0),
        (fcvt_s_w, RNE, MIN, 0xcf00_0000, 0),
        (fcvt_s_w, RNE, 0x0100_0001, 0x4b80_0000, NX), // 2^24 + 1: a tie, to even
        (fcvt_s_w, RUP, 0x0100_0001, 0x4b80_0001, NX),
        (fcvt_s_w, RNE, MAX, 0x4f00_0000, NX),
        (fcvt_s_w, RTZ, MAX, 0x4eff_ffff, NX),
        (fcvt_s_wu, RNE, ONES, 0x4f80_0000, NX),
        (fcvt_s_wu, RDN, ONES, 0x4f7f_ffff, NX),
        (fcvt_s_wu, RNE, MIN, 0x4f00_0000, 0),
    ];
    for &(instruction, mode, value, expected, flags) in from {
        let (bits, _, raised) = float(with_rounding(instruction(FA0, A0), mode), &[value]);
        assert_eq!((bits, raised), (expected, flags), "{value:#x} in mode {mode}");
    }
}

#[test]
fn moves_loads_and_stores_keep_every_bit() {
    for bits in [0, MINUS, SIGNALING, QUIET, ONES, 0xdead_beef] {
        assert_eq!(float(fmv_x_w(A0, FA0), &[bits]), (bits, bits, 0));
        assert_eq!(float(fmv_w_x(FA0, A0), &[bits]), (bits, bits, 0));
        let words = [
            flw(FT11, 4, A0),
            fsw(FT11, -4, SP),
            flw(FT0, -4, SP),
            fsw(FT0, 16, A0),
            0xe504_6544, // c.flw fs1, 12(a0); c.fsw fs1, 8(a0)
            ret(),
        ];
        let mut machine = Machine::on(&everything(), &words);
        machine.set_word(4, bits);
        machine.set_word(12, !bits);
        machine.call(&[MEMORY]);
        assert_eq!(machine.finish(), Exit::Return(MEMORY));
        assert_eq!((machine.word(8), machine.word(16)), (!bits, bits));
        assert_eq!(machine.context.freg(FT11 as usize), bits);
    }
    // Into x0 nothing is moved, and the flags are raised all the same.
    let (_, a0, flags) = float(with_rounding(fcvt_w_s(ZERO, FA0), RTZ), &[0x3f00_0000]);
    assert_eq!((a0, flags), (0x3f00_0000, NX));
    assert_eq!(eval_on(&everything(), &[fmv_w_x(FT0, A0), fmv_x_w(ZERO, FT0), mv(A0, ZERO)], &[7]), 0);
}

#[test]
fn the_float_control_and_status_register() {
    let run = |words: &[u32], a1: u32| eval_on(&everything(), words, &[0, a1]);
    assert_eq!(run(&[csrrw(A0, FCSR, A1), csrrs(A0, FCSR, ZERO)], ONES), 0xff);
    assert_eq!(run(&[csrrw(A0, FCSR, A1), csrrs(A0, FFLAGS, ZERO)], 0x72), 0x12);
    assert_eq!(run(&[csrrw(A0, FCSR, A1), csrrs(A0, FRM, ZERO)], 0x72), 3);
    assert_eq!(run(&[csrrw(ZERO, FCSR, A1), csrrw(A0, FRM, ZERO)], 0x72), 3); // what it was
    assert_eq!(run(&[csrrw(ZERO, FRM, A1), csrrs(A0, FCSR, ZERO)], 0xff), 7 << 5);
    assert_eq!(run(&[csrrw(ZERO, FFLAGS, A1), csrrs(A0, FCSR, ZERO)], 0xff), 31);
    assert_eq!(run(&[csrrwi(ZERO, FFLAGS, 9), csrrsi(ZERO, FFLAGS, 2), csrrs(A0, FFLAGS, ZERO)], 0), 11);
    assert_eq!(run(&[csrrwi(ZERO, FFLAGS, 31), csrrci(ZERO, FFLAGS, 9), csrrs(A0, FFLAGS, ZERO)], 0), 22);
    assert_eq!(run(&[csrrwi(ZERO, FCSR, 31), csrrc(ZERO, FCSR, A1), csrrs(A0, FCSR, ZERO)], 3), 28);
    // Flags stay until they are cleared.
    let sticky = [csrrwi(ZERO, FFLAGS, 16), fcvt_s_w(FT0, A1), csrrs(A0, FFLAGS, ZERO)];
    assert_eq!(run(&sticky, 0x0100_0001), 17);
    // A call begins with none, and with zeros in all registers.
    let mut machine = Machine::on(&everything(), &[csrrwi(ZERO, FCSR, 31), fmv_w_x(FA0, A0), ret()]);
    machine.call(&[5]);
    assert_eq!(machine.finish(), Exit::Return(5));
    assert_eq!((machine.context.fcsr(), machine.context.freg(FA0 as usize)), (31, 5));
    machine.call(&[5]);
    assert_eq!((machine.context.fcsr(), machine.context.freg(FA0 as usize)), (0, 0));
}

#[test]
fn a_reserved_rounding_mode_is_illegal() {
    for mode in [5, 6] {
        let word = with_rounding(fadd_s(FA0, FA0, FA1), mode);
        let mut machine = Machine::on(&everything(), &[word, ret()]);
        machine.call(&[]);
        let kind = TrapKind::IllegalInstruction { word, why: Illegal::RoundingMode(mode) };
        assert_eq!(machine.trap().kind, kind);
        assert!(machine.trap().to_string().contains("rounding mode"));
    }
    for mode in [5, 6, 7] {
        // Only what rounds looks at it.
        let word = fmul_s(FA0, FA0, FA1);
        let words = [csrrwi(ZERO, FRM, mode), fmin_s(FA0, FA0, FA1), nop(), word, ret()];
        let mut machine = Machine::on(&everything(), &words);
        machine.call(&[]);
        let trap = machine.trap();
        assert_eq!(trap.kind, TrapKind::IllegalInstruction { word, why: Illegal::RoundingMode(mode) });
        assert_eq!((trap.pc, machine.context.instret(), machine.context.cycle()), (CODE + 12, 3, 3));
    }
}

#[test]
fn instructions_of_an_extension_that_the_isa_does_not_name_are_illegal() {
    let zba = [sh1add(A0, A0, A0), sh2add(A0, A0, A0), sh3add(A0, A0, A0)];
    let zbb = [
        andn(A0, A0, A0),
        orn(A0, A0, A0),
        xnor(A0, A0, A0),
        clz(A0, A0),
        ctz(A0, A0),
        cpop(A0, A0),
        max(A0, A0, A0),
        maxu(A0, A0, A0),
        min(A0, A0, A0),
        minu(A0, A0, A0),
        sext_b(A0, A0),
        sext_h(A0, A0),
        zext_h(A0, A0),
        rol(A0, A0, A0),
        ror(A0, A0, A0),
        rori(A0, A0, 1),
        orc_b(A0, A0),
        rev8(A0, A0),
    ];
    let zbs = [
        bclr(A0, A0, A0),
        bclri(A0, A0, 1),
        bext(A0, A0, A0),
        bexti(A0, A0, 1),
        binv(A0, A0, A0),
        binvi(A0, A0, 1),
        bset(A0, A0, A0),
        bseti(A0, A0, 1),
    ];
    let f = [
        flw(FA0, 0, A0),
        fsw(FA0, 0, A0),
        fadd_s(FA0, FA0, FA0),
        fsub_s(FA0, FA0, FA0),
        fmul_s(FA0, FA0, FA0),
        fdiv_s(FA0, FA0, FA0),
        fsqrt_s(FA0, FA0),
        fmadd_s(FA0, FA0, FA0, FA0),
        fmsub_s(FA0, FA0, FA0, FA0),
        fnmsub_s(FA0, FA0, FA0, FA0),
        fnmadd_s(FA0, FA0, FA0, FA0),
        fsgnj_s(FA0, FA0, FA0),
        fsgnjn_s(FA0, FA0, FA0),
        fsgnjx_s(FA0, FA0, FA0),
        fmin_s(FA0, FA0, FA0),
        fmax_s(FA0, FA0, FA0),
        feq_s(A0, FA0, FA0),
        flt_s(A0, FA0, FA0),
        fle_s(A0, FA0, FA0),
        fclass_s(A0, FA0),
        fcvt_w_s(A0, FA0),
        fcvt_wu_s(A0, FA0),
        fcvt_s_w(FA0, A0),
        fcvt_s_wu(FA0, A0),
        fmv_x_w(A0, FA0),
        fmv_w_x(FA0, A0),
        csrrs(A0, FCSR, ZERO),
        csrrwi(ZERO, FRM, 0),
        csrrw(A0, FFLAGS, A0),
        0x0001_6544, // c.flw
        0x0001_e504, // c.fsw
        0x0001_6502, // c.flwsp
        0x0001_e002, // c.fswsp
    ];
    for (extension, words) in
        [(Extension::Zba, &zba[..]), (Extension::Zbb, &zbb), (Extension::Zbs, &zbs), (Extension::F, &f)]
    {
        // All others are there.
        let isa = Extension::ALL.iter().filter(|&&e| e != extension).fold(Isa::RV32I, |isa, &e| isa.with(e));
        for &word in words {
            let mut machine = Machine::on(&Core { isa, ..Core::default() }, &[word, ret()]);
            machine.call(&[MEMORY]);
            let trap = machine.trap();
            // Compressed ones stand there with a c.nop.
            let found = if word & 3 == 3 { word } else { word & 0xffff };
            let why = Illegal::Needs(extension);
            assert_eq!(trap.kind, TrapKind::IllegalInstruction { word: found, why });
            let text = trap.to_string();
            assert!(text.contains(&format!("it needs extension {extension}, ")), "{text}");
            // With it, the word runs, if not to an end.
            let mut machine = Machine::on(&everything(), &[word, ret()]);
            machine.call(&[MEMORY]);
            let exit = machine.finish();
            assert!(!format!("{exit:?}").contains("IllegalInstruction"), "{word:#010x}: {exit:?}");
        }
    }
}

#[test]
fn words_like_float_instructions_are_illegal() {
    for word in [
        fadd_s(FA0, FA0, FA1) | 1 << 25, // fadd.d
        fmadd_s(FA0, FA0, FA1, FA2) | 1 << 25,
        flw(FA0, 0, A0) | 1 << 12, // fld
        fsqrt_s(FA0, FA0) | 1 << 20,
        fmv_x_w(A0, FA0) | 1 << 20,
        with_rounding(fmin_s(FA0, FA0, FA1), 2),
        with_rounding(feq_s(A0, FA0, FA1), 3),
        with_rounding(fmv_w_x(FA0, A0), 1),
        fcvt_w_s(A0, FA0) | 2 << 20,
        clz(A0, A0) | 3 << 20,
        rev8(A0, A0) ^ 1 << 20,
        zext_h(A0, A0) | 1 << 20,
    ] {
        let mut machine = Machine::on(&everything(), &[word, ret()]);
        machine.call(&[MEMORY]);
        let kind = TrapKind::IllegalInstruction { word, why: Illegal::Unknown };
        assert_eq!(machine.trap().kind, kind, "{word:#010x}");
    }
}
