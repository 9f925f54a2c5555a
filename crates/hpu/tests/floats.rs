//! Every instruction of F, in cases computed by hand.

use crate::common::*;
use nicety_hpu::asm::*;
use nicety_hpu::{Exit, Illegal, TrapKind};

const MIN: u32 = 0x8000_0000;
const MAX: u32 = 0x7fff_ffff;
const ONES: u32 = 0xffff_ffff;
const NX: u32 = 1;
const UF: u32 = 2;
const OF: u32 = 4;
const DZ: u32 = 8;
const NV: u32 = 16;

type One = fn(u32, u32) -> u32;

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

/// Returns the bits that one instruction leaves in fa0 and a0, and its flags, with operands in fa0, fa1, fa2 and a0.
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
    // One, plus or minus a quarter, half or three quarters of a step: the result of each mode in steps above one.
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
    // The mode of frm, if the instruction selects it.
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
    // With x0 as the target nothing is moved, but the flags are raised.
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
    // A call begins without flags, and with zeros in all registers.
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
        // Only instructions that round use it.
        let word = fmul_s(FA0, FA0, FA1);
        let words = [csrrwi(ZERO, FRM, mode), fmin_s(FA0, FA0, FA1), nop(), word, ret()];
        let mut machine = Machine::on(&everything(), &words);
        machine.call(&[]);
        let trap = machine.trap();
        assert_eq!(trap.kind, TrapKind::IllegalInstruction { word, why: Illegal::RoundingMode(mode) });
        assert_eq!((trap.pc, machine.context.instret(), machine.context.cycle()), (CODE + 12, 3, 3));
    }
}
