//! Programs that are a card's frame handler themselves.
//!
//! The wrapper in C makes Linux's context for a program: six words from a frame's three, and what the helpers need. A program
//! that reads the bounds of its packet alone can read them in the frame. No helper sees its context. Its result is then a
//! destination of the frame instead of a verdict.

use super::code::{Coder, line};
use super::demand::{Part, arguments};
use super::fact::{Facts, Place, operand};
use super::facts::after;
use super::ir::{Function, Ins, Kind, Value};
use super::sites::Rare;
use crate::op::{Alu, Width};

/// The runtime's function for verdicts that are no destination by themselves.
const VERDICT: &str = "nicety_xdp_verdict";
/// Linux's offsets of `data` and `data_end` in a context.
const DATA: i32 = 0;
const DATA_END: i32 = 4;
/// Verdicts with a destination: drop, pass, send back. The destination is the verdict less one.
const DESTINATIONS: std::ops::RangeInclusive<i64> = 1..=3;

/// Whether a program reads the bounds of its packet alone, and hands its context to no one.
pub(super) fn reads_bounds_alone(function: &Function, at_blocks: &[Option<Facts>]) -> bool {
    let blocks = function.blocks().into_iter().zip(at_blocks);
    blocks.filter_map(|(block, facts)| Some((block, (*facts)?))).all(|((first, last), mut facts)| {
        (first..=last).all(|at| {
            let ins = &function.ins[at];
            let reads = reads_bounds(&facts, ins);
            facts = after(&facts, ins);
            reads
        })
    })
}

fn reads_bounds(facts: &Facts, ins: &Ins) -> bool {
    let is_context = |value: Value| operand(facts, value).place == Place::Context;
    match ins.kind {
        Kind::Load(Width::B4, false, false) if is_context(ins.a) => [DATA, DATA_END].contains(&ins.to),
        Kind::Alu(Alu::Mov, true) | Kind::Nothing | Kind::Jump => true,
        Kind::Helper(number) => (1..=arguments(number).len() as u8).all(|at| !is_context(Value::Reg(at))),
        _ => !is_context(ins.a) && !is_context(ins.b),
    }
}

impl Coder<'_> {
    /// Loads a bound of the packet from the frame, if the step does so.
    pub(super) fn load_bound(&mut self, ins: &Ins, place: Place, part: Part) -> bool {
        if !self.direct || place != Place::Context || part == Part::None {
            return false;
        }
        let Value::Reg(frame) = ins.a else { return false };
        let (frame, to) = (self.low[frame as usize], self.low[ins.dst as usize]);
        // Addresses of a card have 32 bits. The frame's address of its first byte has the width of registers.
        let (load, length) = if self.wide() { ("lwu", 8) } else { ("lw", 4) };
        if ins.to == DATA {
            line!(self, "{load} {to}, 0({frame})");
        } else {
            line!(self, "{load} t0, 0({frame})");
            line!(self, "{load} {to}, {length}({frame})");
            line!(self, "add {to}, {to}, t0");
        }
        if part == Part::Whole && !self.wide() {
            line!(self, "li {}, 0", self.high[ins.dst as usize]);
        }
        true
    }

    /// The end of a handler: the destination for a verdict.
    pub(super) fn end_handler(&mut self, verdict: Value, origin: usize) {
        match verdict {
            Value::Const(number) if DESTINATIONS.contains(&i64::from(number as i32)) => {
                line!(self, "li a0, {}", number as i32 - 1);
                self.leave();
                line!(self, "ret");
            }
            Value::Const(number) => {
                if number as u32 == 0 {
                    self.count(origin);
                }
                line!(self, "li a0, {}", number as i32);
                self.leave();
                line!(self, "tail {VERDICT}");
            }
            value => {
                let other = self.label();
                let from = self.low_of(value, "a0");
                let short = if self.wide() { "addiw" } else { "addi" };
                line!(self, "{short} a0, {from}, -1");
                line!(self, "li t0, {}", DESTINATIONS.end());
                line!(self, "bgeu a0, t0, {other}");
                self.leave();
                line!(self, "ret");
                self.aborts.rare.push(Rare { label: other, origin, result: None });
            }
        }
    }

    /// The end for a verdict in a0, less one, that is no destination by itself.
    pub(super) fn end_elsewhere(&mut self, origin: usize) {
        let other = self.label();
        line!(self, "addi a0, a0, 1");
        line!(self, "bnez a0, {other}");
        self.count(origin);
        self.mark(&other);
        self.leave();
        line!(self, "tail {VERDICT}");
    }
}
