//! Executes extension F: arithmetic on float registers, and the control and status register of floats.

use crate::context::Context;
use crate::decode::{DYNAMIC, Kind, Operands, csr};
use crate::float::{self, Rounding};
use crate::op::Op;
use crate::width::Width;

const SIGN: u32 = 1 << 31;

impl Context {
    /// Executes an instruction of F. Returns false if `frm` has a reserved rounding mode.
    #[inline(never)]
    pub(crate) fn float(&mut self, op: &Op) -> bool {
        let whole = self.regs[op.rs1 as usize & 63];
        let (a, b) = (whole as u32, self.regs[op.rs2 as usize & 63] as u32);
        let c = || self.regs[Operands::rs3(op.imm)] as u32;
        let mode = match Operands::rounding(op.imm) {
            DYNAMIC => self.fcsr >> 5,
            fixed => fixed,
        };
        let Some(rounding) = Rounding::from_number(mode) else { return false };
        let mut flags = 0;
        let f = &mut flags;
        let result = match op.kind {
            Kind::Fadd => float::add(a, b, rounding, f),
            Kind::Fsub => float::sub(a, b, rounding, f),
            Kind::Fmul => float::mul(a, b, rounding, f),
            Kind::Fdiv => float::div(a, b, rounding, f),
            Kind::Fsqrt => float::sqrt(a, rounding, f),
            Kind::Fmadd => float::fused(a, b, c(), rounding, f),
            Kind::Fmsub => float::fused(a, b, c() ^ SIGN, rounding, f),
            Kind::Fnmsub => float::fused(a ^ SIGN, b, c(), rounding, f),
            Kind::Fnmadd => float::fused(a ^ SIGN, b, c() ^ SIGN, rounding, f),
            Kind::Fsgnj => a & !SIGN | b & SIGN,
            Kind::Fsgnjn => a & !SIGN | !b & SIGN,
            Kind::Fsgnjx => a ^ b & SIGN,
            Kind::Fmin => float::min_max(a, b, false, f),
            Kind::Fmax => float::min_max(a, b, true, f),
            Kind::Feq => u32::from(float::equal(a, b, f)),
            Kind::Flt => u32::from(float::less(a, b, false, f)),
            Kind::Fle => u32::from(float::less(a, b, true, f)),
            Kind::Fclass => float::class(a),
            Kind::FcvtWS => float::to_i32(a, rounding, f),
            Kind::FcvtWuS => float::to_u32(a, rounding, f),
            Kind::FcvtSW => float::from_i32(a, rounding, f),
            Kind::FcvtSWu => float::from_u32(a, rounding, f),
            Kind::FcvtSL => float::from_i64(whole, rounding, f),
            Kind::FcvtSLu => float::from_u64(whole, rounding, f),
            Kind::FcvtLS | Kind::FcvtLuS => 0,
            Kind::Fmv => a,
            Kind::FloatCsr => self.float_csr(op, a),
            kind => unreachable!("{kind:?} is not of extension F"),
        };
        let result = match op.kind {
            Kind::FcvtLS => float::to_i64(a, rounding, f),
            Kind::FcvtLuS => float::to_u64(a, rounding, f),
            _ => u64::extended(result),
        };
        self.fcsr |= flags;
        self.write(op.rd & 63, result);
        true
    }

    /// Reads `fflags`, `frm` or `fcsr` and writes it as the instruction requires. Returns its old value.
    fn float_csr(&mut self, op: &Op, operand: u32) -> u32 {
        let (number, funct3) = csr::unpack(op.imm);
        let (shift, mask) = match number {
            csr::FFLAGS => (0, 0x1f),
            csr::FRM => (5, 0x07),
            _ => (0, 0xff),
        };
        let old = self.fcsr >> shift & mask;
        let operand = if funct3 & csr::IMMEDIATE != 0 { u32::from(op.rs1) } else { operand };
        let new = match funct3 & 3 {
            1 => operand,
            2 => old | operand,
            _ => old & !operand,
        };
        self.fcsr = self.fcsr & !(mask << shift) | (new & mask) << shift;
        old
    }
}
