//! Decodes extension F. The float registers have numbers 32 to 63, after the integer ones.

use super::{Inst, Kind};
use crate::float::Rounding;
use crate::isa::{Extension, Isa};
use crate::trap::Illegal;

/// The offset from a float register's field to its number.
const F: u8 = 32;

/// The rounding mode of an instruction that uses `frm`.
pub(crate) const DYNAMIC: u32 = 7;

/// The rounding mode of an instruction and its third operand, if any.
pub(crate) struct Operands;

impl Operands {
    const fn pack(rounding: u32, rs3: u8) -> u32 {
        rounding | (rs3 as u32) << 8
    }

    pub(crate) const fn rounding(imm: u32) -> u32 {
        imm & 7
    }

    pub(crate) const fn rs3(imm: u32) -> usize {
        (imm >> 8 & 63) as usize
    }
}

/// Decodes loads, stores and arithmetic of F: all words of its own opcodes.
pub(super) fn decode(word: u32, isa: &Isa) -> Result<Inst, Illegal> {
    let rd = (word >> 7 & 31) as u8;
    let rs1 = (word >> 15 & 31) as u8;
    let rs2 = (word >> 20 & 31) as u8;
    let funct3 = word >> 12 & 7;
    let funct7 = word >> 25;
    let opcode = word & 0x7f;
    let inst = |kind, rd, rs1, rs2, imm| {
        let reads = (1u64 << rs1 | 1u64 << rs2) & !1;
        Inst { kind, rd, rs1, rs2, imm, reads, len: 4 }
    };
    let single = match opcode {
        0x07 | 0x27 => funct3 == 2,
        _ => funct7 & 3 == 0,
    };
    if !single {
        return Err(Illegal::Unknown);
    }
    if !isa.has(Extension::F) {
        return Err(Illegal::Needs(Extension::F));
    }
    let rounding = || match funct3 {
        DYNAMIC => Ok(DYNAMIC),
        mode if Rounding::from_number(mode).is_some() => Ok(mode),
        mode => Err(Illegal::RoundingMode(mode)),
    };
    let fused = |kind| {
        let rs3 = F + (word >> 27) as u8;
        let imm = Operands::pack(rounding()?, rs3);
        let inst = inst(kind, F + rd, F + rs1, F + rs2, imm);
        Ok(Inst { reads: inst.reads | 1 << rs3, ..inst })
    };
    // From and to float registers, with and without rounding.
    let binary = |kind| Ok(inst(kind, F + rd, F + rs1, F + rs2, Operands::pack(rounding()?, 0)));
    let select = |kind| Ok(inst(kind, F + rd, F + rs1, F + rs2, 0));
    let compare = |kind| Ok(inst(kind, rd, F + rs1, F + rs2, 0));
    let to_integer = |kind| Ok(inst(kind, rd, F + rs1, 0, Operands::pack(rounding()?, 0)));
    let from_integer = |kind| Ok(inst(kind, F + rd, rs1, 0, Operands::pack(rounding()?, 0)));

    match (opcode, funct7, funct3, rs2) {
        // Apart from the registers, loads and stores are those of words.
        (0x07, ..) => Ok(inst(Kind::Lw, F + rd, rs1, 0, super::sign_extend(word >> 20, 12))),
        (0x27, ..) => {
            let offset = super::sign_extend(funct7 << 5 | u32::from(rd), 12);
            Ok(inst(Kind::Sw, 0, rs1, F + rs2, offset))
        }
        (0x43, ..) => fused(Kind::Fmadd),
        (0x47, ..) => fused(Kind::Fmsub),
        (0x4b, ..) => fused(Kind::Fnmsub),
        (0x4f, ..) => fused(Kind::Fnmadd),
        (_, 0x00, ..) => binary(Kind::Fadd),
        (_, 0x04, ..) => binary(Kind::Fsub),
        (_, 0x08, ..) => binary(Kind::Fmul),
        (_, 0x0c, ..) => binary(Kind::Fdiv),
        (_, 0x2c, _, 0) => {
            let root = inst(Kind::Fsqrt, F + rd, F + rs1, 0, Operands::pack(rounding()?, 0));
            Ok(root)
        }
        (_, 0x10, 0, _) => select(Kind::Fsgnj),
        (_, 0x10, 1, _) => select(Kind::Fsgnjn),
        (_, 0x10, 2, _) => select(Kind::Fsgnjx),
        (_, 0x14, 0, _) => select(Kind::Fmin),
        (_, 0x14, 1, _) => select(Kind::Fmax),
        (_, 0x50, 0, _) => compare(Kind::Fle),
        (_, 0x50, 1, _) => compare(Kind::Flt),
        (_, 0x50, 2, _) => compare(Kind::Feq),
        (_, 0x60, _, 0) => to_integer(Kind::FcvtWS),
        (_, 0x60, _, 1) => to_integer(Kind::FcvtWuS),
        (_, 0x68, _, 0) => from_integer(Kind::FcvtSW),
        (_, 0x68, _, 1) => from_integer(Kind::FcvtSWu),
        (_, 0x60, _, 2) if isa.is_wide() => to_integer(Kind::FcvtLS),
        (_, 0x60, _, 3) if isa.is_wide() => to_integer(Kind::FcvtLuS),
        (_, 0x68, _, 2) if isa.is_wide() => from_integer(Kind::FcvtSL),
        (_, 0x68, _, 3) if isa.is_wide() => from_integer(Kind::FcvtSLu),
        (_, 0x70, 0, 0) => Ok(inst(Kind::Fmv, rd, F + rs1, 0, 0)),
        (_, 0x70, 1, 0) => Ok(inst(Kind::Fclass, rd, F + rs1, 0, 0)),
        (_, 0x78, 0, 0) => Ok(inst(Kind::Fmv, F + rd, rs1, 0, 0)),
        _ => Err(Illegal::Unknown),
    }
}
