//! The text of a function: labels, frames, calls, lines. The instructions of a width are in `rv64` and `rv32`.

use super::demand::{self, Argument, Demand, Part};
use super::facts::{self, Known, Note, Place, WORD, fits};
use super::ir::{Function, Ins, Kind, Value};
use super::{Options, Program, inline, names};
use crate::helper::Helper;
use crate::object::MapDefinition;
use crate::op::{Alu, Condition, Width};
use std::fmt::Write;

/// A line of assembly.
macro_rules! line {
    ($code:expr, $($text:tt)*) => {
        $code.text.put(format_args!($($text)*))
    };
}
pub(super) use line;

/// The stack of a function: arguments of calls, saved values, the program's bytes, and saved registers, from below.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    /// Bytes of all.
    pub size: i32,
    /// The end of the program's bytes.
    pub end: i32,
    /// The first byte for registers around calls of the compiler's library.
    pub kept: i32,
    /// Saved registers with their places.
    pub saved: Vec<(&'static str, i32)>,
}

/// Written lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    pub out: String,
    /// Instructions and pseudo-instructions.
    pub count: usize,
}

impl Text {
    /// Writes an instruction.
    pub fn put(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.out, "\t{text}");
        self.count += 1;
    }
}

/// The code of a function.
pub(super) struct Coder<'p> {
    pub text: Text,
    pub options: &'p Options,
    pub maps: &'p [MapDefinition],
    pub program: &'p Program<'p>,
    pub function: &'p Function,
    pub notes: &'p [Note],
    pub begin: &'p [Demand],
    pub behind: &'p [Demand],
    pub reached: &'p [bool],
    pub frame: Frame,
    /// Names of r0 to r9: the low and the high half.
    pub low: [&'static str; 10],
    pub high: [&'static str; 10],
    /// The part of r0 that is still where a helper left it: in a0, and in a1 on RV32.
    returned: Part,
    /// Whether a jump goes to each step.
    targets: Vec<bool>,
    labels: usize,
}

const LOW64: [&str; 10] = ["a5", "a0", "a1", "a2", "a3", "a4", "s1", "s2", "s3", "s4"];
const LOW32: [&str; 10] = ["t3", "a0", "a2", "a4", "a6", "t5", "s0", "s2", "s4", "s6"];
const HIGH32: [&str; 10] = ["t4", "a1", "a3", "a5", "a7", "t6", "s1", "s3", "s5", "s7"];
/// Registers for r6 to r9 in a function where no call comes between a write and a read.
const SHORT64: [&str; 4] = ["t3", "t4", "t5", "t6"];

impl<'p> Coder<'p> {
    pub fn new(
        options: &'p Options,
        maps: &'p [MapDefinition],
        program: &'p Program<'p>,
        function: &'p Function,
        passes: (&'p [Note], &'p [Demand], &'p [Demand], &'p [bool]),
    ) -> Coder<'p> {
        let (notes, begin, behind, reached) = passes;
        let wide = options.isa.wide;
        let mut coder = Coder {
            text: Text::default(),
            options,
            maps,
            program,
            function,
            notes,
            begin,
            behind,
            reached,
            frame: Frame::default(),
            low: if wide { LOW64 } else { LOW32 },
            high: if wide { ["zero"; 10] } else { HIGH32 },
            returned: Part::None,
            targets: vec![false; function.ins.len()],
            labels: 0,
        };
        for (at, ins) in function.ins.iter().enumerate() {
            if reached[at] && ins.jumps() {
                coder.targets[ins.to as usize - function.first] = true;
            }
        }
        coder.lay_out();
        coder
    }

    pub fn wide(&self) -> bool {
        self.options.isa.wide
    }

    /// A new local label.
    pub fn label(&mut self) -> String {
        self.labels += 1;
        format!(".L{}_{}_{}", self.program.symbol, self.function.first, self.labels)
    }

    /// The label of a step.
    pub fn step_label(&self, step: usize) -> String {
        format!(".L{}_step_{step}", self.program.symbol)
    }

    pub fn mark(&mut self, label: &str) {
        let _ = writeln!(self.text.out, "{label}:");
    }

    /// Whether a step calls a function of C or of the program.
    fn calls(&self, at: usize) -> bool {
        let ins = &self.function.ins[at];
        match ins.kind {
            Kind::Call => true,
            Kind::Helper(number) => !is_inline(number) && !self.is_last(number, at),
            _ => self.calls_library(at),
        }
    }

    /// Whether a step is a 64-bit division in 32-bit code.
    pub fn calls_library(&self, at: usize) -> bool {
        let (ins, note) = (&self.function.ins[at], &self.notes[at]);
        let Kind::Alu(Alu::Div | Alu::Mod | Alu::SignedDiv | Alu::SignedMod, true) = ins.kind else {
            return false;
        };
        !self.wide() && !self.divides_words(ins, note) && self.behind[at][ins.dst as usize] != Part::None
    }

    /// Chooses the places of the stack and the registers to save.
    fn lay_out(&mut self) {
        let function = self.function;
        let steps = || (0..function.ins.len()).filter(|&at| self.reached[at]);
        let library = steps().any(|at| self.calls_library(at));
        let arguments =
            if self.wide() { 0 } else { 8 * i32::from(steps().any(|at| self.has_stack_argument(at))) };
        let kept = arguments;
        let begin = kept + if library { 8 * 6 } else { 0 };
        let end = (begin + self.depth() + 7) / 8 * 8;
        self.frame.end = end;
        let calls: Vec<usize> = steps().filter(|&at| self.calls(at)).collect();
        let mut saved: Vec<&'static str> = Vec::new();
        if !calls.is_empty() || steps().any(|at| self.needs_spare(&function.ins[at])) {
            saved.push("ra");
        }
        for register in 6..10 {
            let most = steps().map(|at| self.behind[at][register]).max().unwrap_or_default();
            let over_call = calls.iter().any(|&at| self.behind[at][register] != Part::None);
            if self.wide() && !over_call {
                self.low[register] = SHORT64[register - 6];
                continue;
            }
            if most != Part::None {
                saved.push(self.low[register]);
            }
            if most == Part::Whole && !self.wide() {
                saved.push(self.high[register]);
            }
        }
        let word = if self.wide() { 8 } else { 4 };
        let size = (end + word * saved.len() as i32 + 15) / 16 * 16;
        let places = saved.iter().enumerate().map(|(at, name)| (*name, size - word * (at as i32 + 1)));
        self.frame = Frame { size, end, kept, saved: places.collect() };
    }

    fn has_stack_argument(&self, at: usize) -> bool {
        matches!(self.function.ins[at].kind, Kind::Helper(number) if demand::arguments(number).len() == 5)
    }

    /// Bytes of stack that the program uses.
    fn depth(&self) -> i32 {
        let mut depth = 0;
        for (at, ins) in self.function.ins.iter().enumerate().filter(|(at, _)| self.reached[*at]) {
            let far = |value: Value, to: i32| if let Value::Frame(at) = value { -(at + to) } else { 0 };
            match ins.kind {
                Kind::Array { number: false, .. } => depth = depth.max(far(ins.a, ins.to)),
                Kind::Load(..) | Kind::Store(..) | Kind::Atomic(..) => {
                    depth = depth.max(far(ins.a, ins.to));
                    let stored = matches!(ins.b, Value::Frame(_));
                    let unknown = self.notes[at].place == Place::Stack && !matches!(ins.a, Value::Frame(_));
                    if (stored && !matches!(ins.kind, Kind::Load(..))) || unknown {
                        return super::STACK;
                    }
                }
                Kind::Alu(Alu::Mov, true) => depth = depth.max(far(ins.b, 0)),
                Kind::Alu(..) if self.notes[at].place == Place::Stack => return super::STACK,
                Kind::Alu(..) if matches!(ins.b, Value::Frame(_)) => return super::STACK,
                // Others see the stack.
                Kind::Call => return super::STACK,
                Kind::Helper(number)
                    if matches!(Helper::of(number), Some(Helper::Loop | Helper::ForEachMapElem)) =>
                {
                    return super::STACK;
                }
                _ => {}
            }
        }
        depth.clamp(0, super::STACK)
    }

    /// Writes the function.
    pub fn write(&mut self) {
        let name = names::function(self.program, self.function.first);
        let size = if self.wide() { "d" } else { "w" };
        let _ = writeln!(self.text.out, "\t.type {name}, @function");
        self.mark(&name);
        if self.frame.size > 0 {
            line!(self, "addi sp, sp, -{}", self.frame.size);
        }
        for (register, place) in self.frame.saved.clone() {
            line!(self, "s{size} {register}, {place}(sp)");
        }
        let mut shown = None;
        for at in 0..self.function.ins.len() {
            if !self.reached[at] {
                continue;
            }
            let step = self.function.first + at;
            if self.function.leads[at] {
                let label = self.step_label(step);
                self.mark(&label);
            }
            let slot = self.program.linked.code.slots[step] as usize;
            let place = self.program.linked.line(slot).map(|line| (self.program.file(&line.file), line.line));
            if let Some((file, row)) = place.filter(|_| place != shown) {
                let _ = writeln!(self.text.out, "\t.loc {file} {row}");
                shown = place;
            }
            self.before(at);
            self.step(at);
            self.behind_step(at);
        }
        let end = super::debug::end_label(&name);
        let _ = writeln!(self.text.out, "{end}:\n\t.size {name}, .-{name}");
    }

    /// Moves the result of a helper to the register of r0 where the step, or a way from it, needs that.
    fn before(&mut self, at: usize) {
        if self.returned == Part::None {
            return;
        }
        let ins = &self.function.ins[at];
        let later = self.behind[at][0] != Part::None;
        let read = |to: i32| self.begin[to as usize - self.function.first][0] != Part::None;
        match ins.kind {
            Kind::Helper(_) | Kind::Call | Kind::Array { .. } => self.forget_result(),
            Kind::Branch(..) if read(ins.to) => self.settle(),
            Kind::Jump if later && !self.ends(at) => self.settle(),
            _ if later && self.writes_first(at) => self.settle(),
            _ => {}
        }
    }

    /// The same behind the step.
    fn behind_step(&mut self, at: usize) {
        let ins = &self.function.ins[at];
        if matches!(ins.kind, Kind::Helper(_)) || self.returned == Part::None {
            return;
        }
        let later = self.behind[at][0];
        let enters = self.function.leads.get(at + 1).copied().unwrap_or(true);
        match ins.kind {
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
    fn ends(&self, at: usize) -> bool {
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
    fn forget_result(&mut self) {
        self.returned = Part::None;
        self.low[0] = if self.wide() { LOW64[0] } else { LOW32[0] };
        self.high[0] = if self.wide() { "zero" } else { HIGH32[0] };
    }

    fn step(&mut self, at: usize) {
        let ins = self.function.ins[at];
        match ins.kind {
            Kind::Nothing | Kind::Tested(_) => {}
            Kind::Array { map, entries, .. } => self.array(map, entries, at),
            Kind::Jump => {
                let target = ins.to as usize - self.function.first;
                if self.ends(at) {
                    // One jump less.
                    self.exit(&self.function.ins[target]);
                } else if target != at + 1 {
                    let label = self.step_label(ins.to as usize);
                    line!(self, "j {label}");
                }
            }
            Kind::Exit => {
                let before = at.checked_sub(1).map(|before| self.function.ins[before].kind);
                match before {
                    // The helper has returned.
                    Some(Kind::Helper(number)) if self.is_last(number, at - 1) => {}
                    _ => self.exit(&ins),
                }
            }
            Kind::Call => {
                let name = names::function(self.program, ins.to as usize);
                line!(self, "call {name}");
            }
            Kind::Helper(number) => self.helper(number, at),
            _ if self.wide() => self.step64(at),
            _ => self.step32(at),
        }
    }

    /// Restores registers and frees the stack.
    fn leave(&mut self) {
        let size = if self.wide() { "d" } else { "w" };
        for (register, place) in self.frame.saved.clone() {
            line!(self, "l{size} {register}, {place}(sp)");
        }
        if self.frame.size > 0 {
            line!(self, "addi sp, sp, {}", self.frame.size);
        }
    }

    fn exit(&mut self, ins: &Ins) {
        // The C caller of a program reads a0; functions have their result in r0.
        let (to, high) = if self.function.is_main && !self.program.tail {
            ("a0", None)
        } else {
            (if self.wide() { LOW64[0] } else { LOW32[0] }, Some(HIGH32[0]))
        };
        match ins.a {
            // The ABI extends the sign of a 32-bit result.
            Value::Reg(register) if to == "a0" && self.wide() => {
                line!(self, "sext.w a0, {}", self.low[register as usize]);
            }
            Value::Const(number) if to == "a0" => line!(self, "li a0, {}", number as i32),
            value => self.low_into(to, value),
        }
        if let Some(high) = high.filter(|_| !self.wide()) {
            let max = match ins.a {
                Value::Const(number) => number as u64,
                _ => u64::MAX,
            };
            self.high_into(high, ins.a, max);
        }
        self.leave();
        line!(self, "ret");
    }

    /// A call of a helper, or its instructions.
    fn helper(&mut self, number: u32, at: usize) {
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
        if self.is_last(number, at) {
            self.leave();
            line!(self, "tail {}", names::helper(number));
            return;
        }
        line!(self, "call {}", names::helper(number));
        // The result stays there until r1 needs the register.
        self.returned = result;
        if result != Part::None {
            self.low[0] = "a0";
            self.high[0] = if self.wide() { "zero" } else { "a1" };
        }
    }

    /// Whether a helper's result is that of the program, so that the helper returns to the program's caller.
    fn is_last(&self, number: u32, at: usize) -> bool {
        let result = match self.function.ins.get(at + 1) {
            Some(next) => next.kind == Kind::Exit && next.a == Value::Reg(0),
            None => false,
        };
        // The ABI extends the sign of a 32-bit result.
        let short = !self.wide() || facts::returned(number).max <= WORD >> 1;
        let alone = !self.function.leads.get(at + 1).copied().unwrap_or(false);
        let main = self.function.is_main && !self.program.tail;
        main && result && short && alone && self.frame.end == 0
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
    fn array(&mut self, number: u32, entries: u32, at: usize) {
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
            let label = self.step_label(self.function.ins[at + 1].to as usize);
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
                let target = next.to as usize;
                (self.step_label(target), Some((Condition::Equal, read(target - self.function.first))))
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

    /// Loads the address of a name.
    pub fn address(&mut self, to: &str, name: &str) {
        match self.wide() {
            true => line!(self, "lla {to}, {name}"),
            false => {
                line!(self, "lui {to}, %hi({name})");
                line!(self, "addi {to}, {to}, %lo({name})");
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

    /// Puts the low half, or all of 64 bits, of a value into a register.
    pub fn low_into(&mut self, to: &str, value: Value) {
        match value {
            Value::Reg(register) => {
                if self.low[register as usize] != to {
                    line!(self, "mv {to}, {}", self.low[register as usize]);
                }
            }
            Value::Const(number) if self.wide() => line!(self, "li {to}, {number}"),
            Value::Const(number) => line!(self, "li {to}, {}", number as i32),
            Value::Frame(at) => {
                let at = i64::from(self.frame.end + at);
                self.plus(to, "sp", at);
            }
            other => {
                let name = names::value(self.maps, self.program, other);
                self.address(to, &name);
            }
        }
    }

    /// The register of the low half, or `temporary` with it.
    pub fn low_of(&mut self, value: Value, temporary: &'static str) -> &'static str {
        match value {
            Value::Reg(register) => self.low[register as usize],
            Value::Const(0) => "zero",
            other => {
                self.low_into(temporary, other);
                temporary
            }
        }
    }

    /// The sum of a register and a constant.
    pub fn plus(&mut self, to: &str, from: &str, number: i64) {
        if fits(number) {
            if number != 0 || to != from {
                line!(self, "addi {to}, {from}, {number}");
            }
            return;
        }
        let temporary = if from == "t2" { "t1" } else { "t2" };
        line!(self, "li {temporary}, {number}");
        line!(self, "add {to}, {from}, {temporary}");
    }

    /// The base register and the distance of an access to `bytes` bytes, as an operand.
    pub fn place(
        &mut self,
        ins: &Ins,
        bytes: usize,
        temporary: &'static str,
    ) -> (String, Option<&'static str>) {
        let end = bytes as i64;
        let (base, to) = match ins.a {
            Value::Frame(at) => ("sp", i64::from(self.frame.end + at + ins.to)),
            Value::Reg(register) => (self.low[register as usize], i64::from(ins.to)),
            Value::Const(0) => ("zero", i64::from(ins.to)),
            Value::Data(..) | Value::Memory(..) if self.wide() || bytes < 8 => {
                return (self.named(ins, temporary), Some(temporary));
            }
            other => {
                self.low_into(temporary, other);
                (temporary, i64::from(ins.to))
            }
        };
        if fits(to) && fits(to + end) {
            return (format!("{to}({base})"), Some(base));
        }
        self.plus(temporary, base, to);
        (format!("0({temporary})"), Some(temporary))
    }

    /// The operand of an access to a name plus a constant.
    fn named(&mut self, ins: &Ins, temporary: &'static str) -> String {
        let name = format!("{}+{}", names::value(self.maps, self.program, ins.a), ins.to);
        if !self.wide() {
            line!(self, "lui {temporary}, %hi({name})");
            return format!("%lo({name})({temporary})");
        }
        let label = self.label();
        self.mark(&label);
        line!(self, "auipc {temporary}, %pcrel_hi({name})");
        format!("%pcrel_lo({label})({temporary})")
    }

    /// Loads of one instruction, or of bytes where words must be aligned.
    pub fn is_split(&self, ins: &Ins, note: &Note, width: Width) -> bool {
        !self.options.misaligned && width != Width::B1 && !demand::is_aligned(ins, note.place, width.bytes())
    }
}

/// Whether a helper is a few instructions here.
fn is_inline(number: u32) -> bool {
    matches!(Helper::of(number), Some(Helper::Cpu | Helper::TailCall))
}
