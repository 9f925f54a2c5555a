//! Calls: helpers, lookups in arrays, other programs, and the ends of functions.

use super::code::{Coder, HIGH32, LOW32, LOW64, line};
use super::demand::{self, Argument, Part};
use super::fact::{Known, Note, WORD};
use super::facts;
use super::ir::{Ins, Kind, Value};
use super::{direct, inline, names};
use crate::helper::Helper;
use crate::op::Condition;

impl Coder<'_> {
    pub(super) fn result_into(&mut self, result: Value) -> &'static str {
        // The C caller of a program reads a0; functions have their result in r0.
        let (to, high) = if self.function.is_main && !self.program.tail {
            ("a0", None)
        } else {
            (if self.wide() { LOW64[0] } else { LOW32[0] }, Some(HIGH32[0]))
        };
        match result {
            // The ABI extends the sign of a 32-bit result.
            Value::Reg(register) if to == "a0" && self.wide() => {
                line!(self, "sext.w a0, {}", self.low[register as usize]);
            }
            Value::Const(number) if to == "a0" => line!(self, "li a0, {}", number as i32),
            value => self.low_into(to, value),
        }
        if let Some(high) = high.filter(|_| !self.wide()) {
            let max = match result {
                Value::Const(number) => number as u64,
                _ => u64::MAX,
            };
            self.high_into(high, result, max);
        }
        to
    }

    /// A call of a helper, or its instructions.
    pub(super) fn helper(&mut self, number: u32, at: usize) {
        let result = self.behind[at][0];
        match Helper::of(number) {
            Some(Helper::Cpu) => {
                self.cpu(self.low[0]);
                if result == Part::Whole && !self.wide() {
                    line!(self, "li {}, 0", self.high[0]);
                }
                return;
            }
            Some(Helper::TailCall) => return self.tail_call(at),
            _ => {}
        }
        if !self.wide() && demand::arguments(number).len() == 5 {
            line!(self, "sw {}, 0(sp)", self.low[5]);
            if demand::arguments(number)[4] == Argument::Whole {
                line!(self, "sw {}, 4(sp)", self.high[5]);
            }
        }
        let name = match Helper::of(number) {
            Some(Helper::MapLookup) if !self.options.flow_processor => {
                let [map, key, ..] = self.notes[at].arguments;
                names::lookup(self.maps, map, key)
            }
            Some(Helper::CsumDiff) => names::csum_diff(&self.notes[at].arguments),
            _ => match direct::helper(number).filter(|_| self.direct.is_some()) {
                Some(name) => name.to_owned(),
                None => names::helper(number),
            },
        };
        if self.is_last(number, at) {
            self.leave();
            line!(self, "tail {name}");
            return;
        }
        line!(self, "call {name}");
        // The result stays there until r1 needs the register.
        self.returned = result;
        if result != Part::None {
            self.low[0] = "a0";
            self.high[0] = if self.wide() { "zero" } else { "a1" };
        }
    }

    /// Whether a helper's result is that of the program, so that the helper returns to the program's caller.
    pub(super) fn is_last(&self, number: u32, at: usize) -> bool {
        let result = match self.function.ins.get(at + 1) {
            Some(next) => next.kind == Kind::Exit && next.a == Value::Reg(0),
            None => false,
        };
        // The ABI extends the sign of a 32-bit result.
        let short = !self.wide() || facts::returned(number).max <= WORD >> 1;
        let alone = !self.function.leads.get(at + 1).copied().unwrap_or(false);
        let main = self.function.is_main && !self.program.tail && self.direct.is_none();
        main && result && short && alone && self.frame.end == 0 && self.is_uncounted(at)
    }

    /// The core's number, from 0 on.
    fn cpu(&mut self, to: &str) {
        line!(self, "csrr {to}, mhartid");
        if let Some(cluster) = self.options.cluster {
            // The core in five bits, the cluster above them.
            line!(self, "srli t1, {to}, 5");
            line!(self, "andi {to}, {to}, 31");
            line!(self, "li t2, {cluster}");
            line!(self, "mul t1, t1, t2");
            line!(self, "add {to}, {to}, t1");
        }
    }

    /// The address of an array's value, or 0; where a test follows, a way to its end instead of 0.
    pub(super) fn array(&mut self, number: u32, entries: u32, at: usize) {
        let (ins, note) = (self.function.ins[at], self.notes[at]);
        let map = &self.maps[number as usize];
        let (result, high) = (self.low[0], self.high[0]);
        let demanded = self.behind[at][0];
        if demanded == Part::None {
            return;
        }
        let key = self.key(&ins, &note);
        let inside = matches!(ins.kind, Kind::Array { number: true, .. }) && note.a < u64::from(entries);
        let (missing, test) = self.missing(at);
        let high_too = demanded == Part::Whole && !self.wide();
        if !inside {
            if test.is_none_or(|(_, read)| read) {
                line!(self, "li {result}, 0");
                if high_too {
                    line!(self, "li {high}, 0");
                }
            }
            if entries == 1 {
                line!(self, "bnez {key}, {missing}");
            } else {
                line!(self, "li t1, {}", entries as i32);
                line!(self, "bgeu {key}, t1, {missing}");
            }
        }
        let memory = names::memory(self.maps, number);
        let mut from = if entries == 1 { "zero" } else { key };
        if inline::is_per_cpu(map) && self.options.cpus > 1 {
            from = self.per_cpu(from);
        }
        let stride = inline::stride(map);
        self.address(result, &memory);
        if from != "zero" {
            self.scaled(from, stride);
            line!(self, "add {result}, {result}, t0");
        }
        if high_too && test.is_some_and(|(_, read)| !read) {
            line!(self, "li {high}, 0");
        }
        if let Some((Condition::Unequal, _)) = test {
            let label = self.jump_label(at + 1);
            line!(self, "j {label}");
        }
        if !matches!(test, Some((Condition::Equal, _))) {
            self.mark(&missing);
        }
    }

    /// The place for a key that is missing; the test behind the lookup, and whether that place reads r0.
    fn missing(&mut self, at: usize) -> (String, Option<(Condition, bool)>) {
        let Some(next) = self.function.ins.get(at + 1) else { return (self.label(), None) };
        let read = |step: usize| self.begin[step][0] != Part::None;
        match next.kind {
            Kind::Tested(Condition::Equal) => {
                let target = next.to as usize - self.function.first;
                (self.jump_label(at + 1), Some((Condition::Equal, read(target))))
            }
            Kind::Tested(condition) => (self.label(), Some((condition, read(at + 2)))),
            _ => (self.label(), None),
        }
    }

    /// The register of a lookup's key, with the key as an unsigned number or with its sign extended.
    fn key(&mut self, ins: &Ins, note: &Note) -> &'static str {
        match (ins.kind, ins.a) {
            (Kind::Array { number: true, .. }, Value::Reg(register)) if !self.wide() || note.a <= WORD => {
                self.low[register as usize]
            }
            (Kind::Array { number: true, .. }, Value::Reg(register)) => {
                line!(self, "sext.w t0, {}", self.low[register as usize]);
                "t0"
            }
            (Kind::Array { number: true, .. }, value) => self.low_of(value, "t0"),
            _ => {
                let (place, _) = self.place(ins, 4, "t0");
                line!(self, "lw t0, {place}");
                "t0"
            }
        }
    }

    /// The number of the core's value of an entry, in t0.
    fn per_cpu(&mut self, entry: &'static str) -> &'static str {
        // r1 is free behind a lookup.
        if entry != "zero" {
            self.scaled(entry, i64::from(self.options.cpus));
        }
        self.cpu("a0");
        match entry {
            "zero" => line!(self, "mv t0, a0"),
            _ => line!(self, "add t0, t0, a0"),
        }
        "t0"
    }

    /// A register times a constant, in t0.
    fn scaled(&mut self, from: &str, factor: i64) {
        match factor {
            1 if from == "t0" => {}
            1 => line!(self, "mv t0, {from}"),
            _ if factor.count_ones() == 1 => line!(self, "slli t0, {from}, {}", factor.trailing_zeros()),
            _ => {
                line!(self, "li t1, {factor}");
                line!(self, "mul t0, {from}, t1");
            }
        }
    }

    /// Goes on in another program, at an address of an array. Behind a miss r0 keeps no promise.
    fn tail_call(&mut self, at: usize) {
        let Known::Is(Value::Map(number)) = self.notes[at].arguments[1] else {
            // Refused before.
            return;
        };
        let missed = self.label();
        let entries = self.maps[number as usize].max_entries;
        let memory = names::memory(self.maps, number);
        line!(self, "beqz s11, {missed}");
        match self.wide() {
            true => {
                line!(self, "slli t0, {}, 32", self.low[3]);
                line!(self, "srli t0, t0, 32");
            }
            false => line!(self, "mv t0, {}", self.low[3]),
        }
        line!(self, "li t1, {entries}");
        line!(self, "bgeu t0, t1, {missed}");
        line!(self, "slli t0, t0, 2");
        self.address("t1", &memory);
        line!(self, "add t0, t0, t1");
        line!(self, "lw{} t0, 0(t0)", if self.wide() { "u" } else { "" });
        line!(self, "beqz t0, {missed}");
        line!(self, "addi s11, s11, -1");
        self.leave();
        line!(self, "jr t0");
        self.mark(&missed);
    }

    /// Moves the result of a helper to the register of r0 where the step, or a way from it, needs that.
    pub(super) fn before(&mut self, at: usize) {
        if self.returned == Part::None {
            return;
        }
        let ins = &self.function.ins[at];
        let later = self.behind[at][0] != Part::None;
        let read = |to: i32| self.begin[to as usize - self.function.first][0] != Part::None;
        match ins.kind {
            kind if kind.changes_as_a_call() => self.forget_result(),
            Kind::Branch(..) if read(ins.to) => self.settle(),
            Kind::Jump if later && !self.ends(at) => self.settle(),
            _ if later && self.writes_first(at) => self.settle(),
            _ => {}
        }
    }

    /// The same behind the step.
    pub(super) fn behind_step(&mut self, at: usize) {
        let ins = &self.function.ins[at];
        if self.returned == Part::None {
            return;
        }
        let later = self.behind[at][0];
        let enters = self.function.leads.get(at + 1).copied().unwrap_or(true);
        match ins.kind {
            // Other ways to the next step have r0 in its own register.
            Kind::Helper(_) if enters => self.settle(),
            Kind::Helper(_) => {}
            _ if later == Part::None => self.forget_result(),
            Kind::Exit => self.forget_result(),
            Kind::Jump if self.ends(at) => self.forget_result(),
            Kind::Branch(..) if self.begin[at + 1][0] == Part::None => self.forget_result(),
            Kind::Branch(..) if !self.targets[at + 1] => {}
            _ if enters => self.settle(),
            _ if ins.dst == 0 => self.returned = later,
            _ => {}
        }
    }

    /// Whether a jump is the end of the function itself.
    pub(super) fn ends(&self, at: usize) -> bool {
        let target = self.function.ins[at].to as usize - self.function.first;
        target != at + 1 && self.function.ins[target].kind == Kind::Exit
    }

    /// Whether a step writes r1, which has the register of a result.
    fn writes_first(&self, at: usize) -> bool {
        let ins = &self.function.ins[at];
        match ins.kind {
            Kind::Atomic(atomic, _) => atomic.fetches() && ins.b == Value::Reg(1),
            Kind::Store(..) | Kind::Branch(..) | Kind::Tested(_) | Kind::Nothing => false,
            Kind::Jump | Kind::Exit => false,
            _ => ins.dst == 1 && self.behind[at][1] != Part::None,
        }
    }

    /// Moves a helper's result to the register of r0.
    fn settle(&mut self) {
        let part = self.returned;
        if part == Part::None {
            return;
        }
        self.forget_result();
        line!(self, "mv {}, a0", self.low[0]);
        if part == Part::Whole && !self.wide() {
            line!(self, "mv {}, a1", self.high[0]);
        }
    }

    /// Gives r0 its own register again.
    pub(super) fn forget_result(&mut self) {
        self.returned = Part::None;
        self.low[0] = if self.wide() { LOW64[0] } else { LOW32[0] };
        self.high[0] = if self.wide() { "zero" } else { HIGH32[0] };
    }
}
