//! The extensions Zba, Zbb and Zbs, and the divisions of words of RV64.

use crate::context::Context;
use crate::decode::Kind;
use crate::op::Op;
use crate::width::Width;

impl Context {
    /// Executes an instruction of Zba, Zbb, Zbs or F, or a division of words. Returns false for others, and for those
    /// of F that cannot be executed. A separate function, since inside the loop it would slow down all other
    /// instructions.
    #[inline(never)]
    pub(super) fn extended<W: Width>(&mut self, op: &Op, a: W, b: W) -> bool {
        let one = W::plain(1);
        let value = match op.kind {
            Kind::Sh1add => a.left(1).plus(b),
            Kind::Sh2add => a.left(2).plus(b),
            Kind::Sh3add => a.left(3).plus(b),
            Kind::Andn => a & !b,
            Kind::Orn => a | !b,
            Kind::Xnor => !(a ^ b),
            Kind::Clz => W::plain(a.zeros_before()),
            Kind::Ctz => W::plain(a.zeros_behind()),
            Kind::Cpop => W::plain(a.ones()),
            Kind::Max if a.signed() > b.signed() => a,
            Kind::Min if a.signed() < b.signed() => a,
            Kind::Max | Kind::Min => b,
            Kind::Maxu => a.max(b),
            Kind::Minu => a.min(b),
            Kind::SextB => W::extended(a.low() as i8 as u32),
            Kind::SextH => W::extended(a.low() as i16 as u32),
            Kind::Rol => a.rotated_left(b.low()),
            Kind::Ror => a.rotated_left(b.low().wrapping_neg()),
            Kind::Rori => a.rotated_left(op.imm.wrapping_neg()),
            Kind::OrcB => a.bytes_combined(),
            Kind::Rev8 => a.bytes_swapped(),
            Kind::Bclr => a & !one.left(b.low()),
            Kind::Bext => a.right(b.low()) & one,
            Kind::Bexti => a.right(op.imm) & one,
            Kind::Binv => a ^ one.left(b.low()),
            Kind::Bset => a | one.left(b.low()),
            kind if kind.is_float() => return self.float(op),
            _ if W::WIDE => match wide(op, a.kept(), b.kept()) {
                Some(value) => W::of(value),
                None => return false,
            },
            _ => return false,
        };
        self.regs[op.rd as usize & 63] = value.kept();
        true
    }
}

/// Returns the result of a division of words, or of a form of Zba, Zbb or Zbs that only RV64 has.
fn wide(op: &Op, a: u64, b: u64) -> Option<u64> {
    let (low, other) = (a as u32, b as u32);
    Some(match op.kind {
        Kind::Divw => u64::extended(low.quotient(other)),
        Kind::Divuw => u64::extended(low.quotient_unsigned(other)),
        Kind::Remw => u64::extended(low.remainder(other)),
        Kind::Remuw => u64::extended(low.remainder_unsigned(other)),
        Kind::AddUw => b.plus(u64::from(low)),
        Kind::Sh1addUw => b.plus(u64::from(low) << 1),
        Kind::Sh2addUw => b.plus(u64::from(low) << 2),
        Kind::Sh3addUw => b.plus(u64::from(low) << 3),
        Kind::SlliUw => u64::from(low).left(op.imm),
        Kind::Clzw => u64::from(low.leading_zeros()),
        Kind::Ctzw => u64::from(low.trailing_zeros()),
        Kind::Cpopw => u64::from(low.count_ones()),
        Kind::Rolw => u64::extended(low.rotated_left(other)),
        Kind::Rorw => u64::extended(low.rotated_left(other.wrapping_neg())),
        Kind::Roriw => u64::extended(low.rotated_left(op.imm.wrapping_neg())),
        Kind::Bclri => a & !(1 << op.imm),
        Kind::Binvi => a ^ 1 << op.imm,
        Kind::Bseti => a | 1 << op.imm,
        _ => return None,
    })
}
