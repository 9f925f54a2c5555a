//! Every instruction that RV64 adds, or executes on 64 bits, in cases computed by hand.

use crate::common::*;
use nicety_hpu::asm::*;
use nicety_hpu::{Context, Core, CycleCosts, Exit, Extension, Illegal, Image, Isa, TrapKind};

const MIN: u64 = 1 << 63;
const MAX: u64 = MIN - 1;
const ONES: u64 = u64::MAX;
/// The extreme values of words, sign-extended.
const MIN_WORD: u64 = 0xffff_ffff_8000_0000;
const MAX_WORD: u64 = 0x7fff_ffff;

type One = fn(u32, u32) -> u32;
type Two = fn(u32, u32, u32) -> u32;

fn check_two(cases: &[(Two, u64, u64, u64)]) {
    for &(instruction, a, b, expected) in cases {
        let word = instruction(A0, A0, A1);
        let result = eval_64(&[word], &[a, b]);
        assert!(result == expected, "{word:#010x} of {a:#x} and {b:#x} is {result:#x}, not {expected:#x}");
        let into_x0 = [instruction(ZERO, A0, A1), add(A0, ZERO, ZERO)];
        assert_eq!(eval_64(&into_x0, &[a, b]), 0, "{word:#010x}");
    }
}

fn check_one(cases: &[(One, u64, u64)]) {
    for &(instruction, a, expected) in cases {
        let word = instruction(A0, A0);
        let result = eval_64(&[word], &[a]);
        assert!(result == expected, "{word:#010x} of {a:#x} is {result:#x}, not {expected:#x}");
        assert_eq!(eval_64(&[instruction(ZERO, A0), mv(A0, ZERO)], &[a]), 0, "{word:#010x}");
    }
}

#[test]
fn arithmetic_of_64_bits() {
    check_two(&[
        (add, ONES, 1, 0),
        (add, MAX, 1, MIN),
        (add, 0xffff_ffff, 1, 1 << 32),
        (sub, 0, 1, ONES),
        (sub, MIN, 1, MAX),
        (sll, 1, 63, MIN),
        (sll, 1, 64, 1), // only the low six bits count
        (sll, 3, 33, 3 << 33),
        (slt, MIN, MAX, 1),
        (slt, 1 << 31, 0, 0),
        (slt, ONES, 0, 1),
        (sltu, ONES, 0, 0),
        (sltu, 1, 1 << 32, 1),
        (xor, ONES, 1, ONES - 1),
        (or, MIN, 1, MIN + 1),
        (and, ONES, MIN, MIN),
        (srl, MIN, 63, 1),
        (srl, ONES, 127, 1),
        (sra, MIN, 63, ONES),
        (sra, MAX, 62, 1),
        (sra, MIN, 64, MIN),
        (mul, ONES, ONES, 1),
        (mul, 0x1_0000_0001, 0x1_0000_0001, 0x2_0000_0001),
        (mulh, ONES, ONES, 0),
        (mulh, MIN, MIN, 1 << 62),
        (mulh, MIN, MAX, 0xc000_0000_0000_0000),
        (mulhsu, ONES, ONES, ONES),
        (mulhsu, MAX, ONES, MAX - 1),
        (mulhsu, MIN, ONES, MIN),
        (mulhu, ONES, ONES, ONES - 1),
        (mulhu, MIN, 2, 1),
        (div, 7, 2, 3),
        (div, 7u64.wrapping_neg(), 2, 3u64.wrapping_neg()),
        (div, 7, 0, ONES),
        (div, MIN, ONES, MIN),
        (div, MIN_WORD, ONES, 1 << 31),
        (divu, ONES, 2, MAX),
        (divu, 7, 0, ONES),
        (divu, MIN, ONES, 0),
        (rem, 7u64.wrapping_neg(), 2, ONES),
        (rem, 7, 2u64.wrapping_neg(), 1),
        (rem, MIN, 0, MIN),
        (rem, MIN, ONES, 0),
        (remu, ONES, 10, 5),
        (remu, ONES, 0, ONES),
        (remu, MIN, ONES, MIN),
    ]);
}

#[test]
fn arithmetic_of_words_extends_the_sign_of_its_result() {
    check_two(&[
        (addw, MAX_WORD, 1, MIN_WORD),
        (addw, 0xdead_0000_ffff_ffff, 1, 0),
        (addw, 0xffff_fffe, 1, ONES),
        (subw, 0, 1, ONES),
        (subw, MIN_WORD, 1, MAX_WORD),
        (subw, 1 << 32, 0, 0),
        (sllw, 1, 31, MIN_WORD),
        (sllw, 1, 32, 1), // only the low five bits count
        (sllw, 0xffff_ffff, 4, 0xffff_ffff_ffff_fff0),
        (srlw, MIN_WORD, 0, MIN_WORD),
        (srlw, MIN_WORD, 31, 1),
        (srlw, 0xffff_ffff_0000_0010, 4, 1),
        (sraw, 0x8000_0000, 31, ONES),
        (sraw, 0x8000_0000, 32, MIN_WORD),
        (sraw, 0xffff_ffff_7fff_ffff, 30, 1),
        (mulw, 0x1_0001, 0x1_0001, 0x2_0001),
        (mulw, MAX_WORD, 2, ONES - 1),
        (mulw, 1 << 32, 5, 0),
        (divw, 7u64.wrapping_neg(), 2, 3u64.wrapping_neg()),
        (divw, 7, 0, ONES),
        (divw, 0x8000_0000, 0xffff_ffff, MIN_WORD), // overflow
        (divw, 0x1_0000_0007, 0xffff_ffff_0000_0002, 3),
        (divuw, 0xffff_ffff, 1, ONES),
        (divuw, 0x8000_0000, 0xffff_ffff, 0),
        (divuw, 7, 1 << 32, ONES), // a divisor of zero
        (divuw, ONES, 2, MAX_WORD),
        (remw, 0xffff_fff9, 2, ONES),
        (remw, 0x8000_0000, 0, MIN_WORD),
        (remw, 0x8000_0000, 0xffff_ffff, 0),
        (remuw, 0xffff_ffff, 10, 5),
        (remuw, 0xffff_ffff, 0, ONES),
        (remuw, 0x8000_0000, 0xffff_ffff, MIN_WORD),
    ]);
    for (word, a, expected) in [
        (addiw(A0, A0, 1), MAX_WORD, MIN_WORD),
        (addiw(A0, A0, 0), 0x1234_5678_8765_4321, 0xffff_ffff_8765_4321), // sext.w
        (addiw(A0, A0, -2048), 0, 0xffff_ffff_ffff_f800),
        (slliw(A0, A0, 31), 1, MIN_WORD),
        (slliw(A0, A0, 0), 0xffff_ffff, ONES),
        (srliw(A0, A0, 31), ONES, 1),
        (srliw(A0, A0, 0), 0x8000_0000, MIN_WORD),
        (sraiw(A0, A0, 31), 0x8000_0000, ONES),
        (sraiw(A0, A0, 1), 0x1_7fff_ffff, 0x3fff_ffff),
    ] {
        assert_eq!(eval_64(&[word], &[a]), expected, "{word:#010x} of {a:#x}");
    }
}

#[test]
fn immediates_are_sign_extended_to_64_bits() {
    for (word, a, expected) in [
        (addi(A0, A0, -1), 0, ONES),
        (addi(A0, A0, 1), 0xffff_ffff, 1 << 32),
        (slti(A0, A0, 0), MIN, 1),
        (slti(A0, A0, 0), 0x8000_0000, 0),
        (sltiu(A0, A0, -1), 0xffff_ffff, 1),
        (xori(A0, A0, -1), 0x55, !0x55),
        (ori(A0, A0, -2048), 0, 0xffff_ffff_ffff_f800),
        (andi(A0, A0, -16), ONES, 0xffff_ffff_ffff_fff0),
        (slli(A0, A0, 63), 1, MIN),
        (slli(A0, A0, 32), ONES, 0xffff_ffff_0000_0000),
        (srli(A0, A0, 63), MIN, 1),
        (srli(A0, A0, 32), ONES, 0xffff_ffff),
        (srai(A0, A0, 63), MIN, ONES),
        (srai(A0, A0, 32), MIN, MIN_WORD),
        (lui(A0, 0x8_0000), 0, MIN_WORD),
        (lui(A0, 0x7_ffff), 0, 0x7fff_f000),
        (auipc(A0, 0), 0, CODE.into()),
        (auipc(A0, 0x7_ffff), 0, u64::from(CODE) + 0x7fff_f000),
        (auipc(A0, 0x8_0000), 0, u64::from(CODE).wrapping_sub(0x8000_0000)),
    ] {
        assert_eq!(eval_64(&[word], &[a]), expected, "{word:#010x} of {a:#x}");
    }
    for value in
        [0, 1, ONES, MIN, MAX, 0xffff_ffff, 0x8000_0000, 0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]
    {
        assert_eq!(eval_64(&li_64(A0, value), &[]), value);
    }
}

#[test]
fn bit_manipulation_of_64_bits() {
    check_two(&[
        (sh1add, MIN, 1, 1),
        (sh2add, 3, 100, 112),
        (sh3add, 1 << 61, 5, 5),
        (andn, ONES, 1, ONES - 1),
        (orn, 0, 1, ONES - 1),
        (xnor, 0, 1, ONES - 1),
        (max, ONES, 1, 1),
        (max, MIN, MAX, MAX),
        (max, 0x8000_0000, 1, 0x8000_0000),
        (maxu, ONES, 1, ONES),
        (min, ONES, 1, ONES),
        (min, MAX, MIN, MIN),
        (minu, ONES, 1, 1),
        (rol, MIN + 1, 1, 3),
        (rol, 0x0123_4567_89ab_cdef, 68, 0x1234_5678_9abc_def0),
        (ror, 1, 1, MIN),
        (ror, 0x0123_4567_89ab_cdef, 64, 0x0123_4567_89ab_cdef),
        (bclr, ONES, 63, MAX),
        (bclr, ONES, 64, ONES - 1),
        (bext, MIN, 63, 1),
        (bext, 1 << 32, 0, 0),
        (binv, 0, 63, MIN),
        (bset, 0, 32, 1 << 32),
        (bset, 1, 64, 1),
    ]);
    check_one(&[
        (clz, 0, 64),
        (clz, 1, 63),
        (ctz, 0, 64),
        (ctz, MIN, 63),
        (cpop, ONES, 64),
        (sext_b, 0x80, 0xffff_ffff_ffff_ff80),
        (sext_h, 0x8000, 0xffff_ffff_ffff_8000),
        (sext_h, 0xffff_ffff_0000_7fff, 0x7fff),
        (zext_h_64, ONES, 0xffff),
        (orc_b, 0x0100_0000_0000_8000, 0xff00_0000_0000_ff00),
        (orc_b, 0x7f80_0180_1001_8001, ONES),
        (rev8_64, 0x0123_4567_89ab_cdef, 0xefcd_ab89_6745_2301),
    ]);
    for (word, a, expected) in [
        (rori(A0, A0, 63), 1, 2),
        (rori(A0, A0, 1), 1, MIN),
        (bclri(A0, A0, 63), ONES, MAX),
        (bclri(A0, A0, 31), ONES, 0xffff_ffff_7fff_ffff),
        (bexti(A0, A0, 63), MIN, 1),
        (bexti(A0, A0, 31), 1 << 32, 0),
        (binvi(A0, A0, 32), 0, 1 << 32),
        (binvi(A0, A0, 31), 0, 0x8000_0000),
        (bseti(A0, A0, 31), 0, 0x8000_0000),
        (bseti(A0, A0, 63), 0, MIN),
    ] {
        assert_eq!(eval_64(&[word], &[a]), expected, "{word:#010x} of {a:#x}");
    }
}

#[test]
fn bit_manipulation_of_words() {
    check_two(&[
        (add_uw, ONES, 1, 1 << 32),
        (add_uw, 0xdead_0000_8000_0000, 0, 0x8000_0000), // zext.w
        (sh1add_uw, ONES, 1, 0x1_ffff_ffff),
        (sh2add_uw, MIN_WORD, 1, 0x2_0000_0001),
        (sh3add_uw, MIN_WORD, ONES, 0x3_ffff_ffff),
        (rolw, 0x8000_0001, 1, 3),
        (rolw, 0x4000_0000, 33, MIN_WORD),
        (rorw, 1, 1, MIN_WORD),
        (rorw, 0xffff_ffff_0000_0001, 32, 1),
    ]);
    check_one(&[
        (clzw, 0, 32),
        (clzw, 1 << 32, 32),
        (clzw, ONES, 0),
        (ctzw, 0, 32),
        (ctzw, 1 << 32, 32),
        (ctzw, MIN_WORD, 31),
        (cpopw, ONES, 32),
        (cpopw, 0xffff_ffff_0000_0001, 1),
    ]);
    for (word, a, expected) in [
        (roriw(A0, A0, 1), 1, MIN_WORD),
        (roriw(A0, A0, 31), 0x4000_0000, MIN_WORD),
        (slli_uw(A0, A0, 1), ONES, 0x1_ffff_fffe),
        (slli_uw(A0, A0, 63), 1, MIN),
        (slli_uw(A0, A0, 32), 0x8000_0000, MIN),
    ] {
        assert_eq!(eval_64(&[word], &[a]), expected, "{word:#010x} of {a:#x}");
    }
}

#[test]
fn branches_compare_64_bits() {
    for (branch, a, b, taken) in [
        (beq as fn(u32, u32, i32) -> u32, 1 << 32, 0, false),
        (bne, 1 << 32, 0, true),
        (blt, MIN, 0, true),
        (blt, 0x8000_0000, 0, false),
        (bge, MAX, MIN, true),
        (bltu, 0, MIN, true),
        (bgeu, 1 << 32, ONES, false),
    ] {
        let code = [branch(A0, A1, 12), addi(A0, ZERO, 0), j(8), addi(A0, ZERO, 1)];
        assert_eq!(eval_64(&code, &[a, b]), u64::from(taken), "{a:#x} {b:#x}");
    }
    // A link is an address of the card, above and below 2 GiB.
    for base in [CODE, 0xc000_0000] {
        let image = Image::from_words(base, &[jal(T0, 8), ret(), mv(A0, T0), ret()], &everything_64());
        let mut context = Context::new(0);
        context.call(&image, base, 0, &[], 100);
        let exit = context.run(&image, &mut Default::default(), &mut Default::default(), u64::MAX);
        assert_eq!((exit, context.reg(A0 as usize)), (Exit::Return(base + 4), u64::from(base) + 4));
    }
}

#[test]
fn floats_and_integers_of_64_bits() {
    for (word, a, bits) in [
        (fcvt_s_l(FA0, A0), ONES, 0xbf80_0000u32),
        (fcvt_s_lu(FA0, A0), ONES, 0x5f80_0000),
        (fcvt_s_w(FA0, A0), 0x7_ffff_ffff, 0xbf80_0000),
        (fcvt_s_wu(FA0, A0), 0x7_ffff_ffff, 0x4f80_0000),
    ] {
        assert_eq!(eval_64(&[word, fmv_x_w(A0, FA0)], &[a]), bits as i32 as u64, "{word:#010x}");
    }
    for (word, bits, expected) in [
        (fcvt_l_s(A0, FA0), 0xbf80_0000u64, ONES),
        (fcvt_l_s(A0, FA0), 0x7f80_0000, MAX),
        (fcvt_l_s(A0, FA0), 0xff80_0000, MIN),
        (fcvt_l_s(A0, FA0), 0x5e80_0000, 1 << 62),
        (fcvt_lu_s(A0, FA0), 0x5f00_0000, MIN),
        (fcvt_lu_s(A0, FA0), 0xbf80_0000, 0),
        (fcvt_lu_s(A0, FA0), 0x7fc0_0000, ONES),
        (fcvt_w_s(A0, FA0), 0x4f80_0000, MAX_WORD),
        (fcvt_wu_s(A0, FA0), 0x4f00_0000, MIN_WORD), // 2^31, sign-extended
        (fmv_x_w(A0, FA0), 0x8000_0000, MIN_WORD),
        (feq_s(A0, FA0, FA0), 0x3f80_0000, 1),
    ] {
        assert_eq!(eval_64(&[fmv_w_x(FA0, A0), word], &[bits]), expected, "{word:#010x} of {bits:#x}");
    }
}

#[test]
fn divisions_of_both_sizes_have_costs_of_their_own() {
    let costs = CycleCosts { mul: 3, div: 40, div_word: 20, ..CycleCosts::SINGLE_CYCLE };
    for (word, cycles) in [
        (div(T0, T0, T0), 40),
        (remu(T0, T0, T0), 40),
        (divw(T0, T0, T0), 20),
        (remuw(T0, T0, T0), 20),
        (mulw(T0, T0, T0), 3),
        (mul(T0, T0, T0), 3),
        (addiw(T0, T0, 1), 1),
        (sraw(T0, T0, T0), 1),
        (divw(ZERO, T0, T0), 20),
    ] {
        let mut machine = Machine::on(&Core { costs, ..everything_64() }, &[word, ret()]);
        machine.call(&[]);
        machine.finish();
        assert_eq!(machine.context.cycle(), cycles + 1, "{word:#010x}");
    }
}

#[test]
fn instructions_of_the_other_width_are_illegal() {
    let word = |core: &Core, word| {
        let mut machine = Machine::on(core, &[word]);
        machine.call(&[MEMORY]);
        matches!(machine.trap().kind, TrapKind::IllegalInstruction { why: Illegal::Unknown, .. })
    };
    let narrow = [
        ld(A0, 0, A0),
        sd(A0, 0, A0),
        lwu(A0, 0, A0),
        addiw(A0, A0, 1),
        addw(A0, A0, A0),
        slli(A0, A0, 32),
        lr_d(A0, A0),
        amoadd_d(A0, A0, A0),
        zext_h_64(A0, A0),
        rev8_64(A0, A0),
        fcvt_l_s(A0, FA0),
    ];
    assert!(narrow.into_iter().all(|other| word(&everything(), other)));
    let wide = [zext_h(A0, A0), rev8(A0, A0)];
    assert!(wide.into_iter().all(|other| word(&everything_64(), other)));
    // Extensions count for the forms of RV64.
    for (other, extension) in [
        (mulw(A0, A0, A0), Extension::M),
        (divw(A0, A0, A0), Extension::M),
        (add_uw(A0, A0, A0), Extension::Zba),
        (slli_uw(A0, A0, 40), Extension::Zba),
        (rolw(A0, A0, A0), Extension::Zbb),
        (clzw(A0, A0), Extension::Zbb),
        (bseti(A0, A0, 40), Extension::Zbs),
        (lr_d(A0, A0), Extension::A),
    ] {
        let mut machine = Machine::on(&Core { isa: Isa::RV64I, ..Core::default() }, &[other]);
        machine.call(&[MEMORY]);
        let kind = machine.trap().kind;
        let why = Illegal::Needs(extension);
        assert!(matches!(kind, TrapKind::IllegalInstruction { why: found, .. } if found == why), "{kind:?}");
    }
    let zmmul = Core { isa: "rv64i_zmmul".parse().unwrap(), ..Core::default() };
    assert_eq!(eval_on(&zmmul, &[mulw(A0, A0, A0)], &[7]), 49);
}
