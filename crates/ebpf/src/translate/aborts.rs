//! Counters of `XDP_ABORTED` at the ends of a program, by the last line in front of each.
//!
//! A frame with another verdict pays for them only where an end's result is known at run time alone: one comparison with 0.

use super::code::{Coder, line};
use super::ir::{Kind, Value};
use super::sites::{ABORTED_NAME, End, Rare};
use crate::aborted::Site;

/// Whether a result can be `XDP_ABORTED`, which the lower half tells.
fn can_abort(result: Value) -> bool {
    !matches!(result, Value::Const(number) if number as u32 != 0)
}

impl Coder<'_> {
    /// The place of a step of this function.
    pub(super) fn site(&self, at: usize) -> Site {
        self.program.linked.site(self.function.first + at)
    }

    /// Whether a helper's call is the first in front of an end. No code looks at its result, so the frames without a counter are its.
    pub(super) fn is_uncounted(&self, at: usize) -> bool {
        let could_be = |other: usize| {
            let is_helper = matches!(self.function.ins[other].kind, Kind::Helper(_));
            let ends = self.function.ins.get(other + 1).is_some_and(|next| next.kind == Kind::Exit);
            is_helper && ends && self.reached[other]
        };
        !(0..at).any(could_be)
    }

    /// Returns the result at a jump to the function's end. The own result of the end is `result`.
    pub(super) fn result_at(&self, at: usize, result: Value) -> Value {
        match (result, self.notes[at].result) {
            (Value::Reg(0), Some(number)) => Value::Const(number),
            _ => result,
        }
    }

    /// The known result at the end that a jump of the program goes to.
    pub(super) fn known_end(&self, at: usize) -> Option<i64> {
        let result = self.notes[at].result.filter(|_| self.function.is_main)?;
        self.function.end_of(at).map(|_| result)
    }

    /// The label of the end with a result that is not `XDP_ABORTED`.
    fn end_label(&mut self, number: i64, at: usize) -> String {
        let changed = self.is_changed(at);
        let known = self.ends.iter().find(|end| (end.0, end.1) == (number, changed));
        if let Some((.., label)) = known {
            return label.clone();
        }
        let label = self.label();
        self.ends.push((number, changed, label.clone()));
        let end = End::With(Value::Const(number));
        self.aborts.rare.push(Rare { label: label.clone(), origin: at, end });
        label
    }

    /// The label that a jump goes to: that of a step, or of an end of its own where the program may end with `XDP_ABORTED`.
    pub(super) fn jump_label(&mut self, at: usize) -> String {
        let to = self.function.ins[at].to as usize;
        let target = self.function.ins[to - self.function.first];
        let result = self.result_at(at, target.a);
        if let Some(number) = self.known_end(at).filter(|number| *number as u32 != 0) {
            return self.end_label(number, at);
        }
        if !self.function.is_main || target.kind != Kind::Exit || !can_abort(result) {
            return self.step_label(to);
        }
        let label = self.label();
        self.aborts.rare.push(Rare { label: label.clone(), origin: at, end: End::With(result) });
        label
    }

    /// The end of a function with a result. `origin` is the step in front of it.
    pub(super) fn end(&mut self, result: Value, origin: usize) {
        if self.direct.is_some() {
            return self.end_handler(result, origin);
        }
        let register = self.result_into(result);
        match result {
            _ if !self.function.is_main || !can_abort(result) => {}
            Value::Const(_) => self.count(origin),
            _ => {
                let label = self.label();
                match self.wide() && self.program.tail {
                    true => {
                        line!(self, "sext.w t0, {register}");
                        line!(self, "beqz t0, {label}");
                    }
                    false => line!(self, "beqz {register}, {label}"),
                }
                self.aborts.rare.push(Rare { label, origin, end: End::Aborted });
            }
        }
        self.leave();
        line!(self, "ret");
    }

    /// Counts a frame at a place.
    pub(super) fn count(&mut self, origin: usize) {
        let site = self.site(origin);
        let number = self.aborts.number(site);
        self.address("t0", &format!("{ABORTED_NAME}+{}", 4 * number));
        line!(self, "li t1, 1");
        line!(self, "amoadd.w zero, t1, (t0)");
    }

    /// Writes the ends that other code jumps to.
    pub(super) fn rare_ends(&mut self) {
        while let Some(Rare { label, origin, end }) = self.aborts.rare.pop() {
            self.mark(&label);
            let slot = self.program.linked.code.slots[self.function.first + origin] as usize;
            if let Some(line) = self.program.linked.line(slot) {
                self.text.line = Some((self.program.file(&line.file), line.line));
            }
            match end {
                End::With(result) => self.end(result, origin),
                End::Chain(chain) => self.end_chain(&chain),
                End::TooLong => self.end_too_long(),
                End::Aborted if self.direct.is_some() => self.end_elsewhere(origin),
                End::Aborted => {
                    self.count(origin);
                    self.leave();
                    line!(self, "ret");
                }
            }
        }
    }
}
