//! Division by constants on cores that multiply and do not divide.

use super::code::{Coder, line};
use super::fact::{Note, WORD};
use super::ir::{Function, Kind, Value};
use super::refuse;
use crate::error::ObjectError;
use crate::object::Linked;
use crate::op::Alu;

/// A multiplier and a shift: n / d is the upper word of n times the multiplier, shifted right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reciprocal {
    /// The multiplier has 32 bits.
    Short { multiplier: u32, shift: u32 },
    /// It has 33, and the highest is not in `multiplier`. The shift is at least 1.
    Long { multiplier: u32, shift: u32 },
}

/// The reciprocal of a divisor that is no power of two and at most 2^31.
///
/// The multiplier is 2^(32 + s) / d, rounded up. It is exact for all n below 2^32 if the rounding adds at most 2^s to its product with
/// d. That holds at the latest where 2^s is above d.
fn reciprocal(divisor: u32) -> Reciprocal {
    let divisor = u128::from(divisor);
    let mut shift = 0;
    loop {
        let power = 1u128 << (32 + shift);
        let multiplier = power.div_ceil(divisor);
        if multiplier * divisor - power <= 1 << shift {
            // A multiplier of 33 bits needs the longer code.
            return match u32::try_from(multiplier) {
                Ok(multiplier) => Reciprocal::Short { multiplier, shift },
                Err(_) => Reciprocal::Long { multiplier: multiplier as u32, shift },
            };
        }
        shift += 1;
    }
}

impl Coder<'_> {
    /// The quotient of a word by a constant that is no power of two.
    pub(super) fn divide_by(&mut self, to: &str, from: &str, divisor: u32) {
        match divisor {
            // As in eBPF.
            0 => line!(self, "li {to}, 0"),
            0x8000_0001.. => {
                line!(self, "li t2, {}", divisor as i32);
                line!(self, "sltu {to}, {from}, t2");
                line!(self, "xori {to}, {to}, 1");
            }
            _ => match reciprocal(divisor) {
                Reciprocal::Short { multiplier, shift } => {
                    line!(self, "li t2, {}", multiplier as i32);
                    line!(self, "mulhu {to}, {from}, t2");
                    if shift > 0 {
                        line!(self, "srli {to}, {to}, {shift}");
                    }
                }
                Reciprocal::Long { multiplier, shift } => {
                    // (n - t) / 2 + t is the half of n + t, without a carry.
                    line!(self, "li t2, {}", multiplier as i32);
                    line!(self, "mulhu t2, {from}, t2");
                    line!(self, "sub {to}, {from}, t2");
                    line!(self, "srli {to}, {to}, 1");
                    line!(self, "add {to}, {to}, t2");
                    if shift > 1 {
                        line!(self, "srli {to}, {to}, {}", shift - 1);
                    }
                }
            },
        }
    }
}

/// Refuses divisions that such a core has no code for.
pub(super) fn check(
    linked: &Linked,
    function: &Function,
    notes: &[Note],
    reached: &[bool],
) -> Result<(), ObjectError> {
    for (at, ins) in function.ins.iter().enumerate().filter(|(at, _)| reached[*at]) {
        let divides = |alu| matches!(alu, Alu::Div | Alu::Mod | Alu::SignedDiv | Alu::SignedMod);
        let Kind::Alu(alu, wide) = ins.kind else { continue };
        let constant = matches!(ins.b, Value::Const(0..));
        let word = !wide || notes[at].a <= WORD;
        let shift = matches!(ins.b, Value::Const(number) if number > 0 && number.count_ones() == 1 && number < 1 << 11);
        if divides(alu) && !(constant && word && (alu == Alu::Div || (alu == Alu::Mod && shift))) {
            let problem = "the card's cores do not divide";
            return refuse(linked, function.first + at, problem, "divide a __u32 by a constant");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The code of [`Coder::divide_by`] in words.
    fn quotient(n: u32, d: u32) -> u32 {
        let upper = |multiplier: u32| ((u64::from(n) * u64::from(multiplier)) >> 32) as u32;
        match reciprocal(d) {
            Reciprocal::Short { multiplier, shift } => upper(multiplier) >> shift,
            Reciprocal::Long { multiplier, shift } => {
                let t = upper(multiplier);
                (((n - t) >> 1) + t) >> (shift - 1)
            }
        }
    }

    #[test]
    fn usual_divisors() {
        // 2^33 / 3, rounded up, is 0xaaaaaaab. The reciprocal of 7 has 33 bits.
        assert_eq!(reciprocal(3), Reciprocal::Short { multiplier: 0xaaaa_aaab, shift: 1 });
        assert_eq!(reciprocal(7), Reciprocal::Long { multiplier: 0x2492_4925, shift: 3 });
        for d in [3, 5, 6, 7, 10, 641, 1000, 0x7fff_ffff] {
            for n in [0, 1, d - 1, d, d + 1, 2 * (d / 2), u32::MAX - 1, u32::MAX] {
                assert_eq!(quotient(n, d), n / d, "{n} / {d}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_quotient_is_that_of_a_division(n: u32, d in 3u32..=1 << 31) {
            prop_assume!(!d.is_power_of_two());
            prop_assert_eq!(quotient(n, d), n / d);
            let multiple = n / d * d;
            prop_assert_eq!(quotient(multiple, d), n / d);
            prop_assert_eq!(quotient(multiple.saturating_sub(1), d), multiple.saturating_sub(1) / d);
        }
    }
}
