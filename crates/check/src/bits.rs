//! Rules of definedness: the undefined bits of an instruction's result, from those of its operands.
//!
//! The rules are memcheck's (Seward and Nethercote, USENIX 2005). An undefined bit of an operand makes those bits of the result
//! undefined that may depend on it. Sums carry upwards, masks define.

use nicety_hpu::Kind;

/// An operand: its value, and a one for each undefined bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    pub value: u64,
    pub undefined: u64,
}

/// All bits from the lowest undefined one upwards: a carry may reach them.
const fn upwards(undefined: u64) -> u64 {
    undefined | undefined.wrapping_neg()
}

const fn whole(undefined: u64) -> u64 {
    if undefined == 0 { 0 } else { u64::MAX }
}

/// Sign-extends the low 32 bits.
pub(crate) const fn extended(word: u64) -> u64 {
    word as u32 as i32 as u64
}

/// Returns the undefined bits of `a & b`. A defined zero defines a bit.
const fn and(a: Operand, b: Operand) -> u64 {
    (a.undefined | b.undefined) & (a.undefined | a.value) & (b.undefined | b.value)
}

/// Returns the undefined bits of `a | b`. A defined one defines a bit.
const fn or(a: Operand, b: Operand) -> u64 {
    (a.undefined | b.undefined) & (a.undefined | !a.value) & (b.undefined | !b.value)
}

const fn not(a: Operand) -> Operand {
    Operand { value: !a.value, ..a }
}

/// Whether the comparison of two operands for equality depends on undefined bits: no defined bit differs.
pub(crate) const fn equality_depends(a: Operand, b: Operand) -> bool {
    let undefined = a.undefined | b.undefined;
    undefined != 0 && (a.value ^ b.value) & !undefined == 0
}

/// Whether a signed or unsigned comparison depends on undefined bits. That with zero depends on the sign alone, or on equality.
pub(crate) const fn order_depends(a: Operand, b: Operand, signed: bool, bits: u32) -> bool {
    let sign = 1 << (bits - 1);
    match (signed, b.value == 0 && b.undefined == 0, a.value == 0 && a.undefined == 0) {
        (true, true, _) => a.undefined & sign != 0,
        (false, _, true) => equality_depends(b, Operand { value: 0, undefined: 0 }),
        _ => a.undefined | b.undefined != 0,
    }
}

/// Returns the undefined bits of the result of an instruction without memory, in a register of `bits` bits. `b` is the second operand,
/// or the immediate.
pub(crate) fn of_result(kind: Kind, a: Operand, b: Operand, bits: u32) -> u64 {
    if a.undefined | b.undefined == 0 {
        return 0;
    }
    let mask = u64::MAX >> (64 - bits);
    if let Some(of_word) = of_word(kind, a, b) {
        return of_word & mask;
    }
    let amount = (b.value & u64::from(bits - 1)) as u32;
    let amount_undefined = b.undefined & u64::from(bits - 1) != 0;
    let compared = |depends: bool| u64::from(depends);
    let undefined = match kind {
        Kind::Xori | Kind::Xor | Kind::Xnor => a.undefined | b.undefined,
        Kind::Andi | Kind::And => and(a, b),
        Kind::Ori | Kind::Or => or(a, b),
        Kind::Andn => and(a, not(b)),
        Kind::Orn => or(a, not(b)),
        Kind::Slli | Kind::Sll if !amount_undefined => a.undefined << amount,
        Kind::Srli | Kind::Srl if !amount_undefined => (a.undefined & mask) >> amount,
        Kind::Srai | Kind::Sra if !amount_undefined => {
            ((a.undefined << (64 - bits)) as i64 >> (64 - bits) >> amount) as u64
        }
        Kind::Slti | Kind::Slt => compared(order_depends(a, b, true, bits)),
        Kind::Sltiu if b.value == 1 => compared(equality_depends(a, Operand { value: 0, undefined: 0 })),
        Kind::Sltiu | Kind::Sltu => compared(order_depends(a, b, false, bits)),
        Kind::Addi | Kind::Add | Kind::Sub | Kind::Mul => upwards(a.undefined | b.undefined),
        Kind::Sh1add => upwards(a.undefined << 1 | b.undefined),
        Kind::Sh2add => upwards(a.undefined << 2 | b.undefined),
        Kind::Sh3add => upwards(a.undefined << 3 | b.undefined),
        _ => whole(a.undefined | b.undefined),
    };
    undefined & mask
}

/// Returns the same for the word forms of RV64, or `None` for other instructions.
fn of_word(kind: Kind, a: Operand, b: Operand) -> Option<u64> {
    let (low, other) = (a.undefined & 0xffff_ffff, b.undefined & 0xffff_ffff);
    let amount = (b.value & 31) as u32;
    let certain = b.undefined & 31 == 0;
    Some(match kind {
        Kind::Addiw | Kind::Addw | Kind::Subw | Kind::Mulw => extended(upwards(low | other)),
        Kind::Slliw | Kind::Sllw if certain => extended(low << amount),
        Kind::Srliw | Kind::Srlw if certain => extended(low >> amount),
        Kind::Sraiw | Kind::Sraw if certain => extended((low as u32 as i32 >> amount) as u64),
        _ => return None,
    })
}

/// Whether the second operand of an instruction is its immediate.
pub(crate) fn is_immediate(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Addi
            | Kind::Slti
            | Kind::Sltiu
            | Kind::Xori
            | Kind::Ori
            | Kind::Andi
            | Kind::Slli
            | Kind::Srli
            | Kind::Srai
            | Kind::Addiw
            | Kind::Slliw
            | Kind::Srliw
            | Kind::Sraiw
            | Kind::Rori
            | Kind::Roriw
            | Kind::Bexti
            | Kind::Bclri
            | Kind::Binvi
            | Kind::Bseti
            | Kind::SlliUw
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The value of an instruction in RV32.
    fn value(kind: Kind, a: u32, b: u32) -> u32 {
        match kind {
            Kind::Add => a.wrapping_add(b),
            Kind::Sub => a.wrapping_sub(b),
            Kind::Mul => a.wrapping_mul(b),
            Kind::And => a & b,
            Kind::Or => a | b,
            Kind::Xor => a ^ b,
            Kind::Andn => a & !b,
            Kind::Orn => a | !b,
            Kind::Sll => a << (b & 31),
            Kind::Srl => a >> (b & 31),
            Kind::Sra => (a as i32 >> (b & 31)) as u32,
            Kind::Slt => u32::from((a as i32) < b as i32),
            Kind::Sltu => u32::from(a < b),
            Kind::Sh2add => (a << 2).wrapping_add(b),
            Kind::Mulhu => ((u64::from(a) * u64::from(b)) >> 32) as u32,
            Kind::Divu => a.checked_div(b).unwrap_or(u32::MAX),
            _ => unreachable!("not among the tested ones"),
        }
    }

    const KINDS: [Kind; 16] = [
        Kind::Add,
        Kind::Sub,
        Kind::Mul,
        Kind::And,
        Kind::Or,
        Kind::Xor,
        Kind::Andn,
        Kind::Orn,
        Kind::Sll,
        Kind::Srl,
        Kind::Sra,
        Kind::Slt,
        Kind::Sltu,
        Kind::Sh2add,
        Kind::Mulhu,
        Kind::Divu,
    ];

    /// All values of an operand with these undefined bits.
    fn values(value: u32, undefined: u32) -> Vec<u32> {
        let bits: Vec<u32> = (0..32).filter(|bit| undefined >> bit & 1 == 1).collect();
        (0..1u32 << bits.len())
            .map(|choice| {
                let set: u32 = bits.iter().enumerate().map(|(at, bit)| (choice >> at & 1) << bit).sum();
                value & !undefined | set
            })
            .collect()
    }

    fn few_bits() -> impl Strategy<Value = u32> {
        prop::collection::vec(0u32..32, 0..4).prop_map(|bits| bits.iter().fold(0, |all, bit| all | 1 << bit))
    }

    fn interesting() -> impl Strategy<Value = u32> {
        prop_oneof![any::<u32>(), 0u32..3, Just(u32::MAX), Just(1 << 31)]
    }

    proptest! {
        #[test]
        fn every_bit_that_may_differ_is_undefined(
            kind in prop::sample::select(&KINDS[..]),
            (a, b) in (interesting(), interesting()),
            (a_bits, b_bits) in (few_bits(), few_bits()),
        ) {
            let of = |value: u32, undefined: u32| Operand { value: value.into(), undefined: undefined.into() };
            let undefined = of_result(kind, of(a, a_bits), of(b, b_bits), 32) as u32;
            let first = value(kind, a, b);
            for left in values(a, a_bits) {
                for right in values(b, b_bits) {
                    let differs = value(kind, left, right) ^ first;
                    prop_assert_eq!(differs & !undefined, 0, "{:?} of {:#x} and {:#x}", kind, left, right);
                }
            }
        }

        #[test]
        fn a_comparison_depends_where_its_result_differs(
            (a, b) in (interesting(), interesting()),
            (a_bits, b_bits) in (few_bits(), few_bits()),
        ) {
            let of = |value: u32, undefined: u32| Operand { value: value.into(), undefined: undefined.into() };
            let (left, right) = (of(a, a_bits), of(b, b_bits));
            let all: Vec<(u32, u32)> =
                values(a, a_bits).iter().flat_map(|&x| values(b, b_bits).into_iter().map(move |y| (x, y))).collect();
            let differs = |test: &dyn Fn(u32, u32) -> bool| all.iter().any(|&(x, y)| test(x, y) != test(a, b));
            // Exact for equality.
            prop_assert_eq!(differs(&|x, y| x == y), equality_depends(left, right));
            prop_assert!(!differs(&|x, y| x < y) || order_depends(left, right, false, 32));
            prop_assert!(!differs(&|x, y| (x as i32) < y as i32) || order_depends(left, right, true, 32));
        }
    }

    #[test]
    fn masks_define_and_sums_carry() {
        let low_byte = Operand { value: 0, undefined: 0xff };
        let mask = |value| Operand { value, undefined: 0 };
        assert_eq!(of_result(Kind::Andi, low_byte, mask(0xf0), 32), 0xf0);
        assert_eq!(of_result(Kind::Ori, low_byte, mask(0x0f), 32), 0xf0);
        assert_eq!(of_result(Kind::Addi, low_byte, mask(1), 32), 0xffff_ffff);
        assert_eq!(of_result(Kind::Slli, low_byte, mask(4), 32), 0xff0);
        assert_eq!(of_result(Kind::Srai, Operand { value: 0, undefined: 1 << 31 }, mask(4), 32), 0xf800_0000);
        assert_eq!(of_result(Kind::Sltiu, Operand { value: 0x100, undefined: 0xff }, mask(1), 32), 0);
        assert_eq!(of_result(Kind::Addiw, low_byte, mask(1), 64), u64::MAX);
    }
}
