//! Every instruction of Zba, Zbb and Zbs, in cases computed by hand, and the required names in `isa`.

use crate::common::*;
use nicety_hpu::asm::*;
use nicety_hpu::{Core, Extension, Illegal, Isa, TrapKind};

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

/// The words of instructions of an extension.
fn words_of(extension: Extension) -> Vec<u32> {
    match extension {
        Extension::Zba => vec![sh1add(A0, A0, A0), sh2add(A0, A0, A0), sh3add(A0, A0, A0)],
        Extension::Zbb => vec![
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
        ],
        Extension::Zbs => vec![
            bclr(A0, A0, A0),
            bclri(A0, A0, 1),
            bext(A0, A0, A0),
            bexti(A0, A0, 1),
            binv(A0, A0, A0),
            binvi(A0, A0, 1),
            bset(A0, A0, A0),
            bseti(A0, A0, 1),
        ],
        Extension::F => words_of_floats(),
        other => unreachable!("no test of {other}"),
    }
}

fn words_of_floats() -> Vec<u32> {
    vec![
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
    ]
}

#[test]
fn instructions_of_an_extension_that_the_isa_does_not_name_are_illegal() {
    for extension in [Extension::Zba, Extension::Zbb, Extension::Zbs, Extension::F] {
        // All others are there.
        let isa = Extension::ALL.iter().filter(|&&e| e != extension).fold(Isa::RV32I, |isa, &e| isa.with(e));
        for word in words_of(extension) {
            let mut machine = Machine::on(&Core { isa, ..Core::default() }, &[word, ret()]);
            machine.call(&[MEMORY]);
            let trap = machine.trap();
            // Compressed ones are padded with a c.nop.
            let found = if word & 3 == 3 { word } else { word & 0xffff };
            let why = Illegal::Needs(extension);
            assert_eq!(trap.kind, TrapKind::IllegalInstruction { word: found, why });
            let text = trap.to_string();
            assert!(text.contains(&format!("it needs extension {extension}, ")), "{text}");
            // With it, the word runs, though not to an end.
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
        orc_b(A0, A0) | 8 << 20,
        rev8(A0, A0) ^ 1 << 20,
        zext_h(A0, A0) | 1 << 20,
    ] {
        let mut machine = Machine::on(&everything(), &[word, ret()]);
        machine.call(&[MEMORY]);
        let kind = TrapKind::IllegalInstruction { word, why: Illegal::Unknown };
        assert_eq!(machine.trap().kind, kind, "{word:#010x}");
    }
}
