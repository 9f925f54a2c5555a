//! Jumps that compare pairs of 32-bit registers.

use super::code::{Coder, line};
use super::fact::{Note, fits};
use super::ir::{Ins, Value};
use crate::op::Condition;

impl Coder<'_> {
    pub(super) fn branch32(
        &mut self,
        ins: &Ins,
        note: &Note,
        (condition, wide): (Condition, bool),
        target: &str,
    ) {
        if condition == Condition::Test {
            return self.test32(ins, note, wide, target);
        }
        let (a, b) = (self.low_of(ins.a, "t0"), self.low_of(ins.b, "t1"));
        if !wide {
            return self.compare(condition, a, b, target);
        }
        let upper = self.high_of(ins.a, note.a, "t2");
        let other =
            if upper == "t2" { self.high_of(ins.b, note.b, "ra") } else { self.high_of(ins.b, note.b, "t2") };
        let low = match condition {
            Condition::Greater => Condition::Above,
            Condition::GreaterOrEqual => Condition::AboveOrEqual,
            Condition::Less => Condition::Below,
            Condition::LessOrEqual => Condition::BelowOrEqual,
            same => same,
        };
        if upper == "zero" && other == "zero" {
            return self.compare(low, a, b, target);
        }
        let skip = self.label();
        match condition {
            Condition::Equal => line!(self, "bne {upper}, {other}, {skip}"),
            Condition::Unequal | Condition::Test => line!(self, "bne {upper}, {other}, {target}"),
            _ => {
                let strict = match condition {
                    Condition::Above | Condition::AboveOrEqual => Condition::Above,
                    Condition::Below | Condition::BelowOrEqual => Condition::Below,
                    Condition::Greater | Condition::GreaterOrEqual => Condition::Greater,
                    _ => Condition::Less,
                };
                // A number without a sign is never below 0.
                let never = (strict == Condition::Above && upper == "zero")
                    || (strict == Condition::Below && other == "zero");
                if !never {
                    self.compare(strict, upper, other, target);
                }
                line!(self, "bne {upper}, {other}, {skip}");
            }
        }
        self.compare(low, a, b, target);
        self.mark(&skip);
    }

    fn test32(&mut self, ins: &Ins, note: &Note, wide: bool, target: &str) {
        let a = self.low_of(ins.a, "t0");
        match ins.b {
            Value::Const(number) if fits(number) => line!(self, "andi t0, {a}, {number}"),
            value => {
                let b = self.low_of(value, "t1");
                line!(self, "and t0, {a}, {b}");
            }
        }
        line!(self, "bnez t0, {target}");
        if !wide {
            return;
        }
        let (upper, other) = (self.high_of(ins.a, note.a, "t0"), self.high_of(ins.b, note.b, "t1"));
        if upper != "zero" && other != "zero" {
            line!(self, "and t0, {upper}, {other}");
            line!(self, "bnez t0, {target}");
        }
    }
}
