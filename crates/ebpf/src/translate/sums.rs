//! Sums of the Internet checksum in place: of few bytes, from a seed, such as that of a new IP header.
//!
//! A sum with an end-around carry does not depend on the order of additions. It is 0 where all words are.

use super::code::{Coder, line};
use super::demand::Part;
use super::fact::{Known, Note};
use super::ir::{Function, Ins, Kind, Value};
use crate::helper::Helper;

/// The most bytes.
const MOST: i64 = 40;

/// Turns sums into steps of their own.
pub(super) fn find(function: &mut Function, notes: &[Note]) {
    for (ins, note) in function.ins.iter_mut().zip(notes) {
        if ins.kind != Kind::Helper(Helper::CsumDiff as u32) {
            continue;
        }
        let number = |register: usize| match note.arguments[register - 1] {
            Known::Is(Value::Const(number)) => Some(i64::from(number as u32)),
            _ => None,
        };
        if let (Some(0), Some(bytes @ 4..=MOST)) = (number(2), number(4))
            && bytes % 4 == 0
        {
            let seed = number(5).map_or(Value::Reg(5), Value::Const);
            *ins = Ins { kind: Kind::Sum { bytes: bytes as u32 }, dst: 0, a: Value::Reg(3), b: seed, to: 0 };
        }
    }
}

impl Coder<'_> {
    /// A folded sum in r0.
    pub(super) fn sum(&mut self, bytes: u32, at: usize) {
        let ins = self.function.ins[at];
        let part = self.behind[at][0];
        let (Value::Reg(base), true) = (ins.a, part != Part::None) else { return };
        let (base, to) = (self.low[base as usize], self.low[0]);
        match self.wide() {
            true => self.sum64(bytes, base, ins.b),
            false => self.sum32(bytes, base, ins.b),
        }
        // The upper half of the sum of both halves, with the carry of the lower one.
        let (short, right) = if self.wide() { ("w", "srliw") } else { ("", "srli") };
        line!(self, "slli{short} t1, t0, 16");
        line!(self, "{right} t2, t0, 16");
        line!(self, "or t1, t1, t2");
        line!(self, "add{short} t0, t0, t1");
        line!(self, "{right} {to}, t0, 16");
        if part == Part::Whole && !self.wide() {
            line!(self, "li {}, 0", self.high[0]);
        }
    }

    /// The sum of words in t0. The upper half has the carries until the end.
    fn sum64(&mut self, bytes: u32, base: &str, seed: Value) {
        line!(self, "lwu t0, 0({base})");
        if seed != Value::Const(0) {
            let seed = self.low_of(seed, "t1");
            line!(self, "slli t1, {seed}, 32");
            line!(self, "srli t1, t1, 32");
            line!(self, "add t0, t0, t1");
        }
        for (to, word) in ["t1", "t2"].into_iter().cycle().zip((4..bytes).step_by(4)) {
            line!(self, "lwu {to}, {word}({base})");
            line!(self, "add t0, t0, {to}");
        }
        line!(self, "srli t1, t0, 32");
        line!(self, "addw t0, t0, t1");
        line!(self, "sltu t1, t0, t1");
        line!(self, "addw t0, t0, t1");
    }

    fn sum32(&mut self, bytes: u32, base: &str, seed: Value) {
        line!(self, "lw t0, 0({base})");
        if seed != Value::Const(0) {
            let seed = self.low_of(seed, "t1");
            self.add_around(seed);
        }
        for word in (4..bytes).step_by(4) {
            line!(self, "lw t1, {word}({base})");
            self.add_around("t1");
        }
    }

    /// Adds a word with the carry to t0.
    fn add_around(&mut self, word: &str) {
        line!(self, "add t0, t0, {word}");
        line!(self, "sltu t2, t0, {word}");
        line!(self, "add t0, t0, t2");
    }
}
