//! Early ends of a program, written behind its other code.
//!
//! A compiler for eBPF often writes a short way to the program's end between a test and the code that most packets reach. On a card a
//! jump that is taken costs more than one that is not. So the test is inverted, and these packets jump instead.

use super::code::Coder;
use super::inline::is_inline;
use super::ir::Kind;
use super::sites::Later;
use crate::op::Condition;
use std::ops::Range;

/// The most steps of an early end.
const LONGEST: usize = 32;

impl Coder<'_> {
    /// The steps between a jump and its target, if they are an early end. Others may jump into it behind its first step.
    fn early_out(&self, at: usize) -> Option<Range<usize>> {
        let ins = self.function.ins[at];
        let Kind::Branch(condition, _) = ins.kind else { return None };
        inverse(condition)?;
        let target = ins.to as usize - self.function.first;
        // A known end has a label of its own.
        if self.known_end(at).is_some() {
            return None;
        }
        // The target is written next.
        if target >= self.limit {
            return None;
        }
        let steps = at + 1..target;
        let last = target.checked_sub(1).filter(|&last| last > at && self.reached[last])?;
        let ends = matches!(self.function.ins[last].kind, Kind::Exit | Kind::Jump);
        let begins = self.function.leads[at + 1] && !self.targets[at + 1];
        let is_short = steps.len() <= LONGEST && steps.clone().all(|step| self.is_of_an_end(step, &steps));
        (begins && ends && is_short).then_some(steps)
    }

    /// Whether a step calls no function and leads to no other code than ends.
    fn is_of_an_end(&self, step: usize, steps: &Range<usize>) -> bool {
        let ins = &self.function.ins[step];
        match ins.kind {
            Kind::Call => false,
            Kind::Helper(number) => is_inline(number),
            _ if ins.jumps() => {
                let to = ins.to as usize - self.function.first;
                let ends = self.aside[to] || self.function.ins[to].kind == Kind::Exit;
                // The end has no jump to the code that is next now.
                steps.contains(&to) || (ends && to != steps.end)
            }
            _ => self.reached[step],
        }
    }

    /// The condition and the label of a jump.
    pub(super) fn way(&mut self, at: usize, condition: Condition) -> (Condition, String) {
        match (self.early_out(at), inverse(condition)) {
            (Some(steps), Some(inverse)) => (inverse, self.step_label(self.function.first + steps.start)),
            _ => (condition, self.jump_label(at)),
        }
    }

    /// The early end behind a step that was just written.
    pub(super) fn set_aside(&mut self, at: usize) -> Option<Later> {
        let steps = self.early_out(at)?;
        self.aside[steps.clone()].fill(true);
        let later = Later { steps, returned: self.returned, low: self.low[0], high: self.high[0] };
        // The jump's target has r0 in its own register, or does not read it.
        self.forget_result();
        Some(later)
    }

    pub(super) fn take_up(&mut self, later: &Later) {
        (self.returned, self.low[0], self.high[0]) = (later.returned, later.low, later.high);
    }
}

fn inverse(condition: Condition) -> Option<Condition> {
    Some(match condition {
        Condition::Equal => Condition::Unequal,
        Condition::Unequal => Condition::Equal,
        Condition::Above => Condition::BelowOrEqual,
        Condition::AboveOrEqual => Condition::Below,
        Condition::Below => Condition::AboveOrEqual,
        Condition::BelowOrEqual => Condition::Above,
        Condition::Greater => Condition::LessOrEqual,
        Condition::GreaterOrEqual => Condition::Less,
        Condition::Less => Condition::GreaterOrEqual,
        Condition::LessOrEqual => Condition::Greater,
        Condition::Test => return None,
    })
}
