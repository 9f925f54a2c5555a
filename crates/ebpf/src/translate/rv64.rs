//! Instructions for registers of 64 bits.

use super::code::{Coder, line};
use super::demand::{Part, compares_whole, keeps_zeros};
use super::fact::{Note, WORD, fits};
use super::ir::{Ins, Kind, Value};
use crate::op::{Alu, Atomic, Condition, Width};

/// The largest number that is the same with its sign extended from 32 bits.
const HALF: u64 = WORD >> 1;

impl Coder<'_> {
    pub(super) fn step64(&mut self, at: usize) {
        let (ins, note) = (self.function.ins[at], self.notes[at]);
        let part = self.behind[at][(ins.dst as usize).min(9)];
        match ins.kind {
            Kind::Load(width, signed, acquire) => self.load64(&ins, &note, width, (signed, acquire), part),
            Kind::Store(width, release) => self.store64(&ins, &note, width, release),
            Kind::Atomic(atomic, wide) => self.atomic64(&ins, atomic, wide, at),
            Kind::Branch(condition, wide) => {
                let (condition, target) = self.way(at, condition);
                self.branch64(&ins, &note, (condition, wide), &target);
            }
            _ if part == Part::None => {}
            Kind::Alu(Alu::Mov, true) => {
                let from = match ins.b {
                    Value::Const(number) if part == Part::Low => Value::Const(i64::from(number as i32)),
                    other => other,
                };
                self.low_into(self.low[ins.dst as usize], from);
            }
            Kind::Alu(alu, true) => self.alu64(&ins, &note, alu),
            Kind::Alu(alu, false) => self.alu64_word(&ins, &note, alu, part == Part::Whole),
            Kind::Neg(wide) => {
                let (to, from) = (self.low[ins.dst as usize], self.low_of(ins.a, "t0"));
                line!(self, "neg{} {to}, {from}", if wide { "" } else { "w" });
                if !wide && part == Part::Whole {
                    self.clear(to, to);
                }
            }
            Kind::Extend(width, wide) => self.extend64(&ins, width, wide, part),
            Kind::Truncate(width) => {
                let (to, from) = (self.low[ins.dst as usize], self.low_of(ins.a, "t0"));
                self.masked(to, from, width);
            }
            Kind::Swap(width) => {
                let (to, from) = (self.low[ins.dst as usize], self.low_of(ins.a, "t0"));
                self.swap64(to, from, width, note.a);
            }
            _ => {}
        }
    }

    /// Clears the upper half.
    fn clear(&mut self, to: &str, from: &str) {
        if self.options.isa.zba {
            line!(self, "zext.w {to}, {from}");
            return;
        }
        line!(self, "slli {to}, {from}, 32");
        line!(self, "srli {to}, {to}, 32");
    }

    /// Keeps the low bytes.
    fn masked(&mut self, to: &str, from: &str, width: Width) {
        match width {
            Width::B1 => line!(self, "andi {to}, {from}, 255"),
            Width::B2 if self.options.isa.zbb => line!(self, "zext.h {to}, {from}"),
            Width::B2 => {
                line!(self, "slli {to}, {from}, 48");
                line!(self, "srli {to}, {to}, 48");
            }
            Width::B4 => self.clear(to, from),
            Width::B8 if to == from => {}
            Width::B8 => line!(self, "mv {to}, {from}"),
        }
    }

    fn alu64(&mut self, ins: &Ins, note: &Note, alu: Alu) {
        let to = self.low[ins.dst as usize];
        if let (Value::Const(number), false) =
            (ins.b, matches!(alu, Alu::Sub | Alu::Mod | Alu::SignedMod | Alu::SignedDiv))
        {
            let from = self.low_of(ins.a, "t0");
            if self.alu64_constant(to, from, alu, number, note) {
                return;
            }
        }
        if let (Alu::Mod, Value::Const(number)) = (alu, ins.b)
            && number > 0
            && number.count_ones() == 1
        {
            let from = self.low_of(ins.a, "t0");
            return self.and64(to, from, number - 1);
        }
        let (a, b) = (self.low_of(ins.a, "t0"), self.low_of(ins.b, "t1"));
        if matches!(alu, Alu::Div | Alu::Mod | Alu::SignedDiv | Alu::SignedMod) {
            let word = note.a <= HALF && note.b <= HALF;
            return self.divide64(to, (a, b), alu, ins.b, word);
        }
        line!(self, "{} {to}, {a}, {b}", name(alu));
    }

    /// An operation with a constant, where it has a form of its own.
    fn alu64_constant(&mut self, to: &str, from: &'static str, alu: Alu, number: i64, note: &Note) -> bool {
        let power = (number > 0 && number.count_ones() == 1).then(|| number.trailing_zeros());
        match (alu, power) {
            (Alu::Add, _) => self.plus(to, from, number),
            (Alu::And, _)
                if note.a <= number as u64 && (number as u64).wrapping_add(1) & number as u64 == 0 =>
            {
                if to != from {
                    line!(self, "mv {to}, {from}");
                }
            }
            (Alu::And, _) => self.and64(to, from, number),
            (Alu::Or | Alu::Xor, _) if fits(number) => line!(self, "{}i {to}, {from}, {number}", name(alu)),
            (Alu::Lsh | Alu::Rsh | Alu::Arsh, _) => {
                line!(self, "{}i {to}, {from}, {}", name(alu), number & 63)
            }
            (Alu::Mul, Some(shift)) => line!(self, "slli {to}, {from}, {shift}"),
            (Alu::Div, Some(shift)) => line!(self, "srli {to}, {from}, {shift}"),
            _ => return false,
        }
        true
    }

    fn and64(&mut self, to: &str, from: &str, number: i64) {
        let ones = (number as u64).trailing_ones();
        match number {
            _ if fits(number) => line!(self, "andi {to}, {from}, {number}"),
            // A row of ones at the end.
            _ if ones > 0 && number as u64 == u64::MAX >> (64 - ones) => {
                if ones == 32 {
                    return self.clear(to, from);
                }
                line!(self, "slli {to}, {from}, {}", 64 - ones);
                line!(self, "srli {to}, {to}, {}", 64 - ones);
            }
            _ => {
                line!(self, "li t2, {number}");
                line!(self, "and {to}, {from}, t2");
            }
        }
    }

    /// Division; by 0 it gives 0, and the remainder is the dividend, as RISC-V has it.
    pub(super) fn divide64(&mut self, to: &str, (a, b): (&str, &str), alu: Alu, divisor: Value, word: bool) {
        let word = if word { "w" } else { "" };
        let (name, quotient) = match alu {
            Alu::Div => ("divu", true),
            Alu::Mod => ("remu", false),
            Alu::SignedDiv => ("div", true),
            _ => ("rem", false),
        };
        if !quotient || matches!(divisor, Value::Const(1..)) {
            line!(self, "{name}{word} {to}, {a}, {b}");
            return;
        }
        let (zero, b) = (self.label(), b.to_owned());
        let kept = if to == b { "t1" } else { to };
        line!(self, "{name}{word} {kept}, {a}, {b}");
        if kept != to {
            line!(self, "snez {to}, {b}");
            line!(self, "neg {to}, {to}");
            line!(self, "and {to}, {to}, {kept}");
            return;
        }
        line!(self, "bnez {b}, {zero}");
        line!(self, "li {to}, 0");
        self.mark(&zero);
    }

    /// A 32-bit operation. `whole` asks for an upper half of 0.
    fn alu64_word(&mut self, ins: &Ins, note: &Note, alu: Alu, whole: bool) {
        let to = self.low[ins.dst as usize];
        let keeps = keeps_zeros(alu, ins, note);
        let short = |alu: Alu| matches!(alu, Alu::Or | Alu::And | Alu::Xor);
        match (alu, ins.b) {
            (Alu::Mov, Value::Const(number)) => {
                let number = if whole { i64::from(number as u32) } else { i64::from(number as i32) };
                line!(self, "li {to}, {number}");
                return;
            }
            (Alu::Mov, value) => {
                let from = self.low_of(value, "t0");
                if whole && !keeps {
                    self.clear(to, from);
                } else if to != from {
                    line!(self, "mv {to}, {from}");
                }
                return;
            }
            (Alu::And, Value::Const(mask)) if fits(mask) && mask >= 0 => {
                let from = self.low_of(ins.a, "t0");
                line!(self, "andi {to}, {from}, {mask}");
                return;
            }
            (_, Value::Const(number)) => {
                let from = self.low_of(ins.a, "t0");
                let number = i64::from(number as i32);
                if self.word_constant(to, from, alu, number) {
                    let exact = matches!(alu, Alu::Rsh) && number & 31 != 0;
                    if whole && !exact && note.out > HALF && !(short(alu) && keeps) {
                        self.clear(to, to);
                    }
                    return;
                }
            }
            _ => {}
        }
        let (a, b) = (self.low_of(ins.a, "t0"), self.low_of(ins.b, "t1"));
        match alu {
            Alu::Div | Alu::Mod | Alu::SignedDiv | Alu::SignedMod => {
                self.divide_word(to, (a, b), alu, ins.b);
            }
            _ if short(alu) => line!(self, "{} {to}, {a}, {b}", name(alu)),
            _ => line!(self, "{}w {to}, {a}, {b}", name(alu)),
        }
        let plain = if short(alu) { keeps } else { note.out <= HALF };
        if whole && !plain {
            self.clear(to, to);
        }
    }

    fn divide_word(&mut self, to: &str, (a, b): (&'static str, &'static str), alu: Alu, divisor: Value) {
        // The test of the divisor sees 32 bits.
        let b = match divisor {
            Value::Const(_) => b,
            _ if alu == Alu::Mod || alu == Alu::SignedMod => b,
            _ => {
                line!(self, "sext.w t1, {b}");
                "t1"
            }
        };
        self.divide64(to, (a, b), alu, divisor, true);
    }

    fn word_constant(&mut self, to: &str, from: &str, alu: Alu, number: i64) -> bool {
        let power = (number > 0 && number.count_ones() == 1).then(|| number.trailing_zeros());
        match (alu, power) {
            (Alu::Add, _) if fits(number) => line!(self, "addiw {to}, {from}, {number}"),
            (Alu::Or | Alu::Xor | Alu::And, _) if fits(number) => {
                line!(self, "{}i {to}, {from}, {number}", name(alu));
            }
            (Alu::Lsh | Alu::Rsh | Alu::Arsh, _) => {
                line!(self, "{}iw {to}, {from}, {}", name(alu), number & 31)
            }
            (Alu::Mul, Some(shift)) => line!(self, "slliw {to}, {from}, {shift}"),
            (Alu::Div, Some(shift)) => line!(self, "srliw {to}, {from}, {shift}"),
            _ => return false,
        }
        true
    }

    fn extend64(&mut self, ins: &Ins, width: Width, wide: bool, part: Part) {
        let (to, from) = (self.low[ins.dst as usize], self.low_of(ins.b, "t0"));
        match width {
            Width::B4 => line!(self, "sext.w {to}, {from}"),
            Width::B1 if self.options.isa.zbb => line!(self, "sext.b {to}, {from}"),
            Width::B2 if self.options.isa.zbb => line!(self, "sext.h {to}, {from}"),
            _ => {
                let count = 64 - 8 * width.bytes();
                line!(self, "slli {to}, {from}, {count}");
                line!(self, "srai {to}, {to}, {count}");
            }
        }
        if !wide && part == Part::Whole {
            self.clear(to, to);
        }
    }

    fn swap64(&mut self, to: &str, from: &str, width: Width, max: u64) {
        if self.options.isa.zbb {
            line!(self, "rev8 {to}, {from}");
            if width != Width::B8 {
                line!(self, "srli {to}, {to}, {}", 64 - 8 * width.bytes());
            }
            return;
        }
        match width {
            Width::B2 => {
                line!(self, "srli t0, {from}, 8");
                if max > 0xffff {
                    line!(self, "andi t0, t0, 255");
                }
                line!(self, "andi t1, {from}, 255");
                line!(self, "slli t1, t1, 8");
                line!(self, "or {to}, t0, t1");
            }
            Width::B4 => self.swap_word(to, from),
            Width::B8 => {
                line!(self, "srli a6, {from}, 32");
                self.swap_word("a7", from);
                self.swap_word(to, "a6");
                line!(self, "slli a7, a7, 32");
                line!(self, "or {to}, {to}, a7");
            }
            Width::B1 => {}
        }
    }

    /// Reverses four bytes; the upper half gets 0. It uses t0 to t2.
    pub(super) fn swap_word(&mut self, to: &str, from: &str) {
        let wide = self.wide();
        line!(self, "li t2, 0xff00ff");
        line!(self, "srli t0, {from}, 8");
        line!(self, "and t0, t0, t2");
        line!(self, "and t1, {from}, t2");
        line!(self, "slli t1, t1, 8");
        line!(self, "or t0, t0, t1");
        line!(self, "slli t1, t0, {}", if wide { 48 } else { 16 });
        if wide {
            line!(self, "srli t1, t1, 32");
        }
        line!(self, "srli t0, t0, 16");
        line!(self, "or {to}, t0, t1");
    }

    fn load64(&mut self, ins: &Ins, note: &Note, width: Width, (signed, acquire): (bool, bool), part: Part) {
        if part == Part::None && !acquire {
            return;
        }
        let to = if part == Part::None { "zero" } else { self.low[ins.dst as usize] };
        if self.is_split(ins, note, width) && !acquire {
            return self.load_bytes64(ins, to, width, signed);
        }
        let (place, _) = self.place(ins, width.bytes(), "t0");
        let name = match (width, signed || part != Part::Whole) {
            (Width::B1, _) => {
                if signed {
                    "lb"
                } else {
                    "lbu"
                }
            }
            (Width::B2, _) => {
                if signed {
                    "lh"
                } else {
                    "lhu"
                }
            }
            (Width::B4, true) => "lw",
            (Width::B4, false) => "lwu",
            (Width::B8, true) if part == Part::Low && !acquire => "lw",
            (Width::B8, _) => "ld",
        };
        line!(self, "{name} {to}, {place}");
        if acquire {
            line!(self, "fence r, rw");
        }
    }

    /// Joins bytes from an address that need not be a multiple of their number.
    fn load_bytes64(&mut self, ins: &Ins, to: &str, width: Width, signed: bool) {
        let (base, to_byte) = self.bytes_at(ins, width);
        let count = width.bytes();
        for byte in (0..count).rev() {
            let name = if byte + 1 == count && signed { "lb" } else { "lbu" };
            let into = if byte + 1 == count { "t1" } else { "t2" };
            line!(self, "{name} {into}, {}({base})", to_byte + byte as i64);
            if byte + 1 < count {
                line!(self, "slli t1, t1, 8");
                line!(self, "or t1, t1, t2");
            }
        }
        line!(self, "mv {to}, t1");
    }

    /// Base and distance of bytes; t0 may have the base.
    pub(super) fn bytes_at(&mut self, ins: &Ins, width: Width) -> (&'static str, i64) {
        let to = i64::from(ins.to);
        match ins.a {
            Value::Reg(register) if fits(to) && fits(to + width.bytes() as i64) => {
                (self.low[register as usize], to)
            }
            value => {
                let base = self.low_of(value, "t0");
                self.plus("t0", base, to);
                ("t0", 0)
            }
        }
    }

    fn store64(&mut self, ins: &Ins, note: &Note, width: Width, release: bool) {
        let from = self.low_of(ins.b, "t1");
        if release {
            line!(self, "fence rw, w");
        } else if self.is_split(ins, note, width) {
            let (base, to) = self.bytes_at(ins, width);
            line!(self, "sb {from}, {to}({base})");
            for byte in 1..width.bytes() {
                line!(self, "srli t2, {from}, {}", 8 * byte);
                line!(self, "sb t2, {}({base})", to + byte as i64);
            }
            return;
        }
        let (place, _) = self.place(ins, width.bytes(), "t0");
        line!(self, "s{} {from}, {place}", letter(width));
    }

    fn atomic64(&mut self, ins: &Ins, atomic: Atomic, wide: bool, at: usize) {
        let size = if wide { "d" } else { "w" };
        let base = self.low_of(ins.a, "t0");
        let address = if ins.to == 0 { base } else { "t0" };
        self.plus(address, base, i64::from(ins.to));
        let src = self.low_of(ins.b, "t1");
        let name = match atomic {
            Atomic::Add | Atomic::FetchAdd => "amoadd",
            Atomic::Or | Atomic::FetchOr => "amoor",
            Atomic::And | Atomic::FetchAnd => "amoand",
            Atomic::Xor | Atomic::FetchXor => "amoxor",
            Atomic::Exchange => "amoswap",
            Atomic::CompareExchange => return self.exchange64(address, src, size, at),
        };
        let Value::Reg(register) = ins.b else { return };
        let part = self.behind[at][register as usize];
        if !atomic.fetches() || part == Part::None {
            line!(self, "{name}.{size} zero, {src}, ({address})");
            return;
        }
        line!(self, "{name}.{size}.aqrl {src}, {src}, ({address})");
        if !wide && part == Part::Whole {
            self.clear(src, src);
        }
    }

    fn exchange64(&mut self, address: &str, src: &str, size: &str, at: usize) {
        let (again, done) = (self.label(), self.label());
        let expected = if size == "w" { "a6" } else { self.low[0] };
        if size == "w" {
            line!(self, "sext.w a6, {}", self.low[0]);
        }
        self.mark(&again);
        line!(self, "lr.{size}.aqrl t2, ({address})");
        line!(self, "bne t2, {expected}, {done}");
        line!(self, "sc.{size}.rl a7, {src}, ({address})");
        line!(self, "bnez a7, {again}");
        self.mark(&done);
        if size == "w" && self.behind[at][0] == Part::Whole {
            self.clear(self.low[0], "t2");
        } else {
            line!(self, "mv {}, t2", self.low[0]);
        }
    }

    fn branch64(&mut self, ins: &Ins, note: &Note, (condition, wide): (Condition, bool), target: &str) {
        if condition == Condition::Test {
            return self.test64(ins, wide, target);
        }
        let whole = wide || compares_whole(condition, ins, note);
        let side = |coder: &mut Self, value: Value, temporary: &'static str| match value {
            Value::Reg(_) if !whole => {
                let from = coder.low_of(value, temporary);
                line!(coder, "sext.w {temporary}, {from}");
                temporary
            }
            _ => coder.low_of(value, temporary),
        };
        let (a, b) = (side(self, ins.a, "t0"), side(self, ins.b, "t1"));
        self.compare(condition, a, b, target);
    }

    /// A jump that compares registers.
    pub(super) fn compare(&mut self, condition: Condition, a: &str, b: &str, target: &str) {
        let (name, a, b) = match condition {
            Condition::Equal => ("beq", a, b),
            Condition::Unequal | Condition::Test => ("bne", a, b),
            Condition::Above => ("bltu", b, a),
            Condition::AboveOrEqual => ("bgeu", a, b),
            Condition::Below => ("bltu", a, b),
            Condition::BelowOrEqual => ("bgeu", b, a),
            Condition::Greater => ("blt", b, a),
            Condition::GreaterOrEqual => ("bge", a, b),
            Condition::Less => ("blt", a, b),
            Condition::LessOrEqual => ("bge", b, a),
        };
        line!(self, "{name} {a}, {b}, {target}");
    }

    fn test64(&mut self, ins: &Ins, wide: bool, target: &str) {
        let a = self.low_of(ins.a, "t0");
        match ins.b {
            Value::Const(number) if fits(number) && (wide || number >= 0) => {
                line!(self, "andi t0, {a}, {number}");
            }
            value => {
                let b = self.low_of(value, "t1");
                line!(self, "and t0, {a}, {b}");
                if !wide {
                    line!(self, "sext.w t0, t0");
                }
            }
        }
        line!(self, "bnez t0, {target}");
    }
}

/// The letter of a store's width.
pub(super) fn letter(width: Width) -> &'static str {
    match width {
        Width::B1 => "b",
        Width::B2 => "h",
        Width::B4 => "w",
        Width::B8 => "d",
    }
}

pub(super) fn name(alu: Alu) -> &'static str {
    match alu {
        Alu::Add => "add",
        Alu::Sub => "sub",
        Alu::Mul => "mul",
        Alu::Or => "or",
        Alu::And => "and",
        Alu::Xor => "xor",
        Alu::Lsh => "sll",
        Alu::Rsh => "srl",
        Alu::Arsh => "sra",
        Alu::Div => "divu",
        Alu::SignedDiv => "div",
        Alu::Mod => "remu",
        Alu::SignedMod => "rem",
        Alu::Mov => "mv",
    }
}
