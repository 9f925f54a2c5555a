//! The text of a function: labels, frames, calls, lines. The instructions of a width are in `rv64` and `rv32`.

use super::debug::Refusal;
use super::demand::{self, Demand, Part};
use super::fact::{Note, Place, fits};
use super::inline::is_inline;
use super::ir::{Function, Ins, Kind, Value};
use super::schedule::fill_waits;
use super::sites::{Aborts, Later};
use super::text::Text;
use super::{Options, Program, names};
use crate::helper::Helper;
use crate::object::MapDefinition;
use crate::op::{Alu, Width};
use std::collections::VecDeque;
use std::ops::Range;

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
    /// The place of the frame's address in a handler that changes its bounds.
    pub handed: Option<i32>,
    /// Saved registers with their places.
    pub saved: Vec<(&'static str, i32)>,
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
    /// If the function is the card's frame handler itself, whether the frame may have changed its bounds behind each step.
    pub direct: Option<&'p [bool]>,
    pub frame: Frame,
    /// Names of r0 to r9: the low and the high half.
    pub low: [&'static str; 10],
    pub high: [&'static str; 10],
    /// The part of r0 that is still where a helper left it: in a0, and in a1 on RV32.
    pub returned: Part,
    /// Whether a jump goes to each step.
    pub targets: Vec<bool>,
    /// Whether each step is in an early end that is written later.
    pub aside: Vec<bool>,
    /// The end of the steps that are written in a row.
    pub limit: usize,
    labels: usize,
    /// Labels of ends with a known result, and whether the frame may have changed its bounds there.
    pub ends: Vec<(i64, bool, String)>,
    /// Counters of `XDP_ABORTED`.
    pub aborts: Aborts,
    /// Traps of an unverified program.
    pub refusals: Vec<Refusal>,
}

pub(super) const LOW64: [&str; 10] = ["a5", "a0", "a1", "a2", "a3", "a4", "s1", "s2", "s3", "s4"];
pub(super) const LOW32: [&str; 10] = ["t3", "a0", "a2", "a4", "a6", "t5", "s0", "s2", "s4", "s6"];
pub(super) const HIGH32: [&str; 10] = ["t4", "a1", "a3", "a5", "a7", "t6", "s1", "s3", "s5", "s7"];
/// Registers for r6 to r9 in a function where no call comes between a write and a read.
const SHORT64: [&str; 4] = ["t3", "t4", "t5", "t6"];

impl<'p> Coder<'p> {
    pub fn new(
        options: &'p Options,
        maps: &'p [MapDefinition],
        program: &'p Program<'p>,
        function: &'p Function,
        passes: (&'p [Note], &'p [Demand], &'p [Demand], &'p [bool]),
        aborts: Aborts,
        direct: Option<&'p [bool]>,
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
            direct,
            frame: Frame::default(),
            low: if wide { LOW64 } else { LOW32 },
            high: if wide { ["zero"; 10] } else { HIGH32 },
            returned: Part::None,
            targets: vec![false; function.ins.len()],
            aside: vec![false; function.ins.len()],
            limit: 0,
            labels: 0,
            ends: Vec::new(),
            aborts,
            refusals: Vec::new(),
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
        self.text.put_other(format_args!("{label}:"));
    }

    /// Whether a step calls a function of C or of the program.
    fn calls(&self, at: usize) -> bool {
        let ins = &self.function.ins[at];
        match ins.kind {
            // A lookup calls the runtime where an update has moved an entry meanwhile.
            Kind::Call | Kind::Hash { .. } => true,
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
        let handed = self.direct.is_some_and(|changed| changed.contains(&true)).then_some(begin);
        let begin = begin + if handed.is_some() { 8 } else { 0 };
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
        self.frame = Frame { size, end, kept, handed, saved: places.collect() };
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
                Kind::Array { number: false, .. } | Kind::Hash { .. } => {
                    depth = depth.max(far(ins.a, ins.to))
                }
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
        self.text.put_other(format_args!("\t.type {name}, @function"));
        self.mark(&name);
        if self.frame.size > 0 {
            line!(self, "addi sp, sp, -{}", self.frame.size);
        }
        for (register, place) in self.frame.saved.clone() {
            line!(self, "s{size} {register}, {place}(sp)");
        }
        self.push_stack(self.depth());
        self.keep_frame();
        let mut waiting = VecDeque::new();
        self.write_steps(0..self.function.ins.len(), &mut waiting);
        while let Some(later) = waiting.pop_front() {
            self.take_up(&later);
            self.write_steps(later.steps, &mut waiting);
        }
        self.text.is_far = false;
        self.rare_ends();
        self.refused_ends();
        let end = super::debug::end_label(&name);
        self.text.put_other(format_args!("{end}:\n\t.size {name}, .-{name}"));
        if !self.options.unverified && !self.options.flow_processor {
            fill_waits(&mut self.text.rows);
        }
    }

    /// Writes steps. Early ends among them wait.
    fn write_steps(&mut self, steps: Range<usize>, waiting: &mut VecDeque<Later>) {
        let mut at = steps.start;
        self.limit = steps.end;
        while at < steps.end {
            if self.reached[at] {
                self.write_step(at);
            }
            let later = self.reached[at].then(|| self.set_aside(at)).flatten();
            at = later.as_ref().map_or(at + 1, |later| later.steps.end);
            waiting.extend(later);
        }
    }

    fn write_step(&mut self, at: usize) {
        let step = self.function.first + at;
        if self.function.leads[at] {
            let label = self.step_label(step);
            self.mark(&label);
        }
        let slot = self.program.linked.code.slots[step] as usize;
        let place = self.program.linked.line(slot).map(|line| (self.program.file(&line.file), line.line));
        self.text.line = place.or(self.text.line);
        let access = matches!(self.function.ins[at].kind, Kind::Load(..) | Kind::Store(..));
        self.text.is_far = access && !matches!(self.notes[at].place, Place::Unknown | Place::Stack);
        self.before(at);
        self.guard(at);
        self.step(at);
        self.behind_step(at);
    }

    fn step(&mut self, at: usize) {
        let ins = self.function.ins[at];
        match ins.kind {
            Kind::Nothing | Kind::Tested(_) => {}
            Kind::Array { map, entries, .. } => self.array(map, entries, at),
            Kind::Hash { map } => self.hash(map, at),
            Kind::Sum { bytes } => self.sum(bytes, at),
            Kind::Push(bytes) => self.push(bytes, at),
            Kind::Load(..) if self.load_bound(at) => {}
            Kind::Jump => {
                let target = ins.to as usize - self.function.first;
                if self.ends(at) {
                    // One jump less.
                    let result = self.result_at(at, self.function.ins[target].a);
                    self.end(result, at);
                } else if target != at + 1 {
                    let label = self.step_label(ins.to as usize);
                    line!(self, "j {label}");
                }
            }
            Kind::Exit => {
                let before = at.checked_sub(1).map(|before| self.function.ins[before].kind);
                match before {
                    // The helper has returned.
                    Some(Kind::Helper(number)) if self.is_last(number, at - 1) => {
                        let site = self.site(at - 1);
                        self.aborts.rest = Some(self.aborts.number(site));
                    }
                    // Other ways come by jumps.
                    Some(Kind::Jump | Kind::Exit) | None => self.end(ins.a, at),
                    Some(_) => self.end(ins.a, at - 1),
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
    pub fn leave(&mut self) {
        self.pop_stack();
        let size = if self.wide() { "d" } else { "w" };
        for (register, place) in self.frame.saved.clone() {
            line!(self, "l{size} {register}, {place}(sp)");
        }
        if self.frame.size > 0 {
            line!(self, "addi sp, sp, {}", self.frame.size);
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
