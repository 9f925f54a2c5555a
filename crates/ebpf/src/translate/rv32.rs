//! Instructions for pairs of 32-bit registers.

use super::code::{Coder, line};
use super::demand::Part;
use super::fact::{Note, WORD, fits};
use super::ir::{Ins, Kind, Value};
use super::rv64::name;
use crate::op::{Alu, Width};

/// The halves of a number.
fn halves(number: i64) -> (i32, i32) {
    (number as i32, (number >> 32) as i32)
}

impl Coder<'_> {
    pub(super) fn step32(&mut self, at: usize) {
        let (ins, note) = (self.function.ins[at], self.notes[at]);
        let dst = (ins.dst as usize).min(9);
        let part = self.behind[at][dst];
        let (low, high) = (self.low[dst], self.high[dst]);
        match ins.kind {
            Kind::Load(width, signed, acquire) => {
                return self.load32(&ins, &note, width, (signed, acquire), part);
            }
            Kind::Store(width, release) => return self.store32(&ins, &note, width, release),
            Kind::Atomic(atomic, false) => return self.atomic32(&ins, atomic, at),
            Kind::Atomic(atomic, true) => return self.atomic_pair(&ins, &note, atomic, at),
            Kind::Branch(condition, wide) => {
                let (condition, target) = self.way(at, condition);
                return self.branch32(&ins, &note, (condition, wide), &target);
            }
            _ if part == Part::None => return,
            Kind::Alu(alu, true) if self.calls_library(at) => return self.divide_pair(&ins, &note, alu, at),
            // The upper half is not read, or 0.
            Kind::Alu(alu, true) if part == Part::Low || note.out <= WORD => self.low_alu(&ins, &note, alu),
            Kind::Alu(alu, true) => return self.pair(&ins, &note, alu),
            Kind::Alu(alu, false) => self.word(&ins, alu, note.a, false),
            Kind::Neg(wide) => {
                let a = self.low_of(ins.a, "t0");
                if wide && part == Part::Whole {
                    let upper = self.high_of(ins.a, note.a, "t1");
                    line!(self, "snez t0, {a}");
                    line!(self, "neg {low}, {a}");
                    line!(self, "neg {high}, {upper}");
                    line!(self, "sub {high}, {high}, t0");
                    return;
                }
                line!(self, "neg {low}, {a}");
            }
            Kind::Extend(width, wide) => {
                self.extend32(low, ins.b, width);
                if wide && part == Part::Whole {
                    line!(self, "srai {high}, {low}, 31");
                    return;
                }
            }
            Kind::Truncate(Width::B8) => return,
            Kind::Truncate(width) => {
                let a = self.low_of(ins.a, "t0");
                self.masked32(low, a, width);
            }
            Kind::Swap(width) => {
                self.swap32(&ins, &note, width, part);
                if width == Width::B8 {
                    return;
                }
            }
            _ => return,
        }
        if part == Part::Whole {
            line!(self, "li {high}, 0");
        }
    }

    /// The register of the high half, or `temporary` with it.
    pub(super) fn high_of(&mut self, value: Value, max: u64, temporary: &'static str) -> &'static str {
        match value {
            Value::Const(number) => match halves(number).1 {
                0 => "zero",
                upper => {
                    line!(self, "li {temporary}, {upper}");
                    temporary
                }
            },
            Value::Reg(register) if max > WORD => self.high[register as usize],
            _ => "zero",
        }
    }

    pub(super) fn high_into(&mut self, to: &str, value: Value, max: u64) {
        let from = self.high_of(value, max, "t2");
        if from != to {
            line!(self, "mv {to}, {from}");
        }
    }

    /// A 64-bit operation without the upper half of its result.
    fn low_alu(&mut self, ins: &Ins, note: &Note, alu: Alu) {
        let to = self.low[ins.dst as usize];
        match (alu, ins.b) {
            (Alu::Mov, value) => self.low_into(to, value),
            (Alu::Lsh, Value::Const(count)) if count & 63 >= 32 => line!(self, "li {to}, 0"),
            (Alu::Rsh | Alu::Arsh, Value::Const(count)) => self.shift_down(ins, note, alu, count as u32 & 63),
            (Alu::Lsh | Alu::Rsh | Alu::Arsh, Value::Reg(_)) => self.shift_by(ins, note, alu, false),
            _ => self.word(ins, alu, note.a, true),
        }
    }

    /// A 32-bit operation. The operands of a division of 64-bit numbers have no upper halves.
    fn word(&mut self, ins: &Ins, alu: Alu, largest: u64, wide: bool) {
        let to = self.low[ins.dst as usize];
        if let (Value::Const(number), true) = (ins.b, alu != Alu::Sub) {
            let power = (number > 0 && number.count_ones() == 1).then(|| number.trailing_zeros());
            let number = number as i32;
            let a = if alu == Alu::Mov { "zero" } else { self.low_of(ins.a, "t0") };
            let mask = number as u32;
            match (alu, power) {
                (Alu::Mov, _) => return line!(self, "li {to}, {number}"),
                (Alu::Add, _) => return self.plus(to, a, i64::from(number)),
                (Alu::And, _) if largest <= u64::from(mask) && mask & mask.wrapping_add(1) == 0 => {
                    return self.low_into(to, ins.a);
                }
                (Alu::And, _) if mask == 0xffff => return self.masked32(to, a, Width::B2),
                (Alu::And | Alu::Or | Alu::Xor, _) if fits(i64::from(number)) => {
                    return line!(self, "{}i {to}, {a}, {number}", name(alu));
                }
                (Alu::Lsh | Alu::Rsh | Alu::Arsh, _) => {
                    return line!(self, "{}i {to}, {a}, {}", name(alu), number & 31);
                }
                (Alu::Mul, Some(shift)) if shift < 32 => return line!(self, "slli {to}, {a}, {shift}"),
                (Alu::Div, Some(shift)) if shift < 32 => return line!(self, "srli {to}, {a}, {shift}"),
                (Alu::Div, _) if !self.options.isa.divides => return self.divide_by(to, a, mask),
                (Alu::Mod, Some(shift)) if shift < 12 => {
                    return line!(self, "andi {to}, {a}, {}", (1 << shift) - 1);
                }
                _ => {}
            }
        }
        if alu == Alu::Mov {
            return self.low_into(to, ins.b);
        }
        let (a, b) = (self.low_of(ins.a, "t0"), self.low_of(ins.b, "t1"));
        if matches!(alu, Alu::Div | Alu::SignedDiv | Alu::Mod | Alu::SignedMod) {
            // Numbers without an upper half are not negative.
            let alu = match alu {
                Alu::SignedDiv if wide => Alu::Div,
                Alu::SignedMod if wide => Alu::Mod,
                other => other,
            };
            return self.divide64(to, (a, b), alu, ins.b, false);
        }
        line!(self, "{} {to}, {a}, {b}", name(alu));
    }

    fn masked32(&mut self, to: &str, from: &str, width: Width) {
        match width {
            Width::B1 => line!(self, "andi {to}, {from}, 255"),
            Width::B2 if self.options.isa.zbb => line!(self, "zext.h {to}, {from}"),
            Width::B2 => {
                line!(self, "slli {to}, {from}, 16");
                line!(self, "srli {to}, {to}, 16");
            }
            _ if to == from => {}
            _ => line!(self, "mv {to}, {from}"),
        }
    }

    fn extend32(&mut self, to: &str, value: Value, width: Width) {
        let from = self.low_of(value, "t0");
        match width {
            Width::B1 if self.options.isa.zbb => line!(self, "sext.b {to}, {from}"),
            Width::B2 if self.options.isa.zbb => line!(self, "sext.h {to}, {from}"),
            Width::B1 | Width::B2 => {
                let count = 32 - 8 * width.bytes();
                line!(self, "slli {to}, {from}, {count}");
                line!(self, "srai {to}, {to}, {count}");
            }
            _ if to == from => {}
            _ => line!(self, "mv {to}, {from}"),
        }
    }

    fn swap32(&mut self, ins: &Ins, note: &Note, width: Width, part: Part) {
        let dst = ins.dst as usize;
        let (to, high) = (self.low[dst], self.high[dst]);
        let from = self.low_of(ins.a, "t0");
        match width {
            Width::B8 => {
                let upper = self.high_of(ins.a, note.a, "t1");
                if part == Part::Low {
                    return self.reversed(to, upper);
                }
                if upper == "zero" {
                    self.reversed(high, from);
                    return line!(self, "li {to}, 0");
                }
                if to != from {
                    self.reversed(to, upper);
                    return self.reversed(high, from);
                }
                self.reversed(to, from);
                self.reversed(high, upper);
                line!(self, "mv t0, {to}");
                line!(self, "mv {to}, {high}");
                line!(self, "mv {high}, t0");
            }
            Width::B4 => self.reversed(to, from),
            _ if self.options.isa.zbb => {
                line!(self, "rev8 {to}, {from}");
                line!(self, "srli {to}, {to}, 16");
            }
            _ if note.a <= 0xffff => {
                line!(self, "srli t0, {from}, 8");
                line!(self, "andi t1, {from}, 255");
                line!(self, "slli t1, t1, 8");
                line!(self, "or {to}, t0, t1");
            }
            _ => {
                line!(self, "srli t0, {from}, 8");
                line!(self, "andi t0, t0, 255");
                line!(self, "andi t1, {from}, 255");
                line!(self, "slli t1, t1, 8");
                line!(self, "or {to}, t0, t1");
            }
        }
    }

    fn reversed(&mut self, to: &str, from: &str) {
        match self.options.isa.zbb {
            true => line!(self, "rev8 {to}, {from}"),
            false => self.swap_word(to, from),
        }
    }

    /// A 64-bit operation with both halves of its result.
    fn pair(&mut self, ins: &Ins, note: &Note, alu: Alu) {
        match alu {
            Alu::Mov => {
                self.low_into(self.low[ins.dst as usize], ins.b);
                self.high_into(self.high[ins.dst as usize], ins.b, note.b);
            }
            Alu::Add => self.add_pair(ins, note),
            Alu::Sub => self.sub_pair(ins, note),
            Alu::Mul => self.mul_pair(ins, note),
            Alu::Or | Alu::And | Alu::Xor => self.bits_pair(ins, note, alu),
            Alu::Lsh | Alu::Rsh | Alu::Arsh => match ins.b {
                Value::Const(count) => self.shift_pair(ins, note, alu, count as u32 & 63),
                _ => self.shift_by(ins, note, alu, true),
            },
            // Divisions of words have no upper half, and others are calls.
            Alu::Div | Alu::SignedDiv | Alu::Mod | Alu::SignedMod => {}
        }
    }

    fn add_pair(&mut self, ins: &Ins, note: &Note) {
        let (to, high) = (self.low[ins.dst as usize], self.high[ins.dst as usize]);
        let a = self.low_of(ins.a, "t0");
        let upper = self.high_of(ins.a, note.a, "t2");
        if let Value::Const(number) = ins.b {
            let (low, up) = halves(number);
            if fits(i64::from(low)) && fits(i64::from(up)) {
                if low != 0 {
                    line!(self, "addi {to}, {a}, {low}");
                    line!(self, "sltiu t1, {to}, {low}");
                } else if to != a {
                    line!(self, "mv {to}, {a}");
                }
                let mut from = upper;
                if up != 0 {
                    line!(self, "addi {high}, {from}, {up}");
                    from = high;
                }
                if low != 0 {
                    line!(self, "add {high}, {from}, t1");
                } else if from != high {
                    line!(self, "mv {high}, {from}");
                }
                return;
            }
        }
        let b = self.low_of(ins.b, "t1");
        // The carry is found before the operand that it is found by changes.
        if to == b && to == a {
            line!(self, "srli t0, {a}, 31");
            line!(self, "add {to}, {a}, {b}");
        } else {
            let kept = if to == b { a } else { b };
            line!(self, "add {to}, {a}, {b}");
            line!(self, "sltu t0, {to}, {kept}");
        }
        let other = self.high_of(ins.b, note.b, "t1");
        self.add_high(high, upper, other, "add");
    }

    /// Adds or subtracts upper halves, and t0.
    fn add_high(&mut self, high: &str, a: &str, b: &str, name: &str) {
        if b == "zero" {
            line!(self, "{name} {high}, {a}, t0");
        } else if a == "zero" && name == "add" {
            line!(self, "add {high}, {b}, t0");
        } else {
            line!(self, "{name} {high}, {a}, {b}");
            line!(self, "{name} {high}, {high}, t0");
        }
    }

    fn sub_pair(&mut self, ins: &Ins, note: &Note) {
        let (to, high) = (self.low[ins.dst as usize], self.high[ins.dst as usize]);
        let (a, b) = (self.low_of(ins.a, "t1"), self.low_of(ins.b, "t2"));
        line!(self, "sltu t0, {a}, {b}");
        line!(self, "sub {to}, {a}, {b}");
        let a = self.high_of(ins.a, note.a, "t1");
        let b = self.high_of(ins.b, note.b, "t2");
        self.add_high(high, a, b, "sub");
    }

    fn mul_pair(&mut self, ins: &Ins, note: &Note) {
        let (to, high) = (self.low[ins.dst as usize], self.high[ins.dst as usize]);
        if let Value::Const(number) = ins.b
            && number > 0
            && number.count_ones() == 1
        {
            return self.shift_pair(ins, note, Alu::Lsh, number.trailing_zeros());
        }
        let (a, b) = (self.low_of(ins.a, "t0"), self.low_of(ins.b, "t2"));
        let upper = self.high_of(ins.a, note.a, "t1");
        let zero = |value: Value, max: u64| match value {
            Value::Const(number) => halves(number).1 == 0,
            _ => max <= WORD,
        };
        let (a_zero, b_zero) = (zero(ins.a, note.a), zero(ins.b, note.b));
        if a_zero && b_zero {
            line!(self, "mulhu {high}, {a}, {b}");
            line!(self, "mul {to}, {a}, {b}");
            return;
        }
        // The product of the upper halves is beyond 64 bits.
        if !a_zero {
            line!(self, "mul t1, {upper}, {b}");
        }
        if !b_zero {
            let other = self.high_of(ins.b, note.b, "t0");
            line!(self, "mul {high}, {a}, {other}");
            if !a_zero {
                line!(self, "add {high}, {high}, t1");
            }
        } else {
            line!(self, "mv {high}, t1");
        }
        line!(self, "mulhu t1, {a}, {b}");
        line!(self, "add {high}, {high}, t1");
        line!(self, "mul {to}, {a}, {b}");
    }

    fn bits_pair(&mut self, ins: &Ins, note: &Note, alu: Alu) {
        let high = self.high[ins.dst as usize];
        self.word(ins, alu, u64::MAX, true);
        let a = self.high_of(ins.a, note.a, "t0");
        let b = self.high_of(ins.b, note.b, "t1");
        match alu {
            Alu::And if a == "zero" || b == "zero" => line!(self, "li {high}, 0"),
            Alu::And if matches!(ins.b, Value::Const(number) if halves(number).1 == -1) => {
                if high != a {
                    line!(self, "mv {high}, {a}");
                }
            }
            Alu::Or | Alu::Xor if b == "zero" => {
                if high != a {
                    line!(self, "mv {high}, {a}");
                }
            }
            _ => line!(self, "{} {high}, {a}, {b}", name(alu)),
        }
    }

    /// The low half of a shift right by a constant.
    fn shift_down(&mut self, ins: &Ins, note: &Note, alu: Alu, count: u32) {
        let to = self.low[ins.dst as usize];
        let a = self.low_of(ins.a, "t0");
        let upper = self.high_of(ins.a, note.a, "t1");
        let name = name(alu);
        match count {
            0 => self.low_into(to, ins.a),
            32.. if upper == "zero" => line!(self, "li {to}, 0"),
            32 if to != upper => line!(self, "mv {to}, {upper}"),
            32.. => line!(self, "{name}i {to}, {upper}, {}", count - 32),
            _ if upper == "zero" => line!(self, "srli {to}, {a}, {count}"),
            _ => {
                line!(self, "slli t0, {upper}, {}", 32 - count);
                line!(self, "srli {to}, {a}, {count}");
                line!(self, "or {to}, {to}, t0");
            }
        }
    }

    fn shift_pair(&mut self, ins: &Ins, note: &Note, alu: Alu, count: u32) {
        let (to, high) = (self.low[ins.dst as usize], self.high[ins.dst as usize]);
        if alu != Alu::Lsh {
            self.shift_down(ins, note, alu, count);
            let upper = self.high_of(ins.a, note.a, "t1");
            return match (alu, count) {
                (_, 0) => self.high_into(high, ins.a, note.a),
                (Alu::Rsh, 32..) => line!(self, "li {high}, 0"),
                (Alu::Rsh, _) => line!(self, "srli {high}, {upper}, {count}"),
                (_, 32..) => line!(self, "srai {high}, {upper}, 31"),
                _ => line!(self, "srai {high}, {upper}, {count}"),
            };
        }
        let a = self.low_of(ins.a, "t0");
        let upper = self.high_of(ins.a, note.a, "t1");
        match count {
            0 => {
                self.low_into(to, ins.a);
                self.high_into(high, ins.a, note.a);
            }
            32.. => {
                line!(self, "slli {high}, {a}, {}", count - 32);
                line!(self, "li {to}, 0");
            }
            _ if upper == "zero" => {
                line!(self, "srli {high}, {a}, {}", 32 - count);
                line!(self, "slli {to}, {a}, {count}");
            }
            _ => {
                line!(self, "srli t2, {a}, {}", 32 - count);
                line!(self, "slli {high}, {upper}, {count}");
                line!(self, "or {high}, {high}, t2");
                line!(self, "slli {to}, {a}, {count}");
            }
        }
    }

    /// A shift by a register.
    fn shift_by(&mut self, ins: &Ins, note: &Note, alu: Alu, whole: bool) {
        let (to, high) = (self.low[ins.dst as usize], self.high[ins.dst as usize]);
        let (a, count) = (self.low_of(ins.a, "t0"), self.low_of(ins.b, "t2"));
        let upper = self.high_of(ins.a, note.a, "t1");
        let (far, done) = (self.label(), self.label());
        // The count outlives a destination that is the same register.
        if count != "t2" {
            line!(self, "mv t2, {count}");
        }
        if alu == Alu::Lsh && !whole {
            line!(self, "sll {to}, {a}, t2");
            line!(self, "andi t2, t2, 32");
            line!(self, "beqz t2, {done}");
            line!(self, "li {to}, 0");
            return self.mark(&done);
        }
        let name = name(alu);
        line!(self, "slli t1, t2, 26");
        line!(self, "bltz t1, {far}");
        line!(self, "not t1, t2");
        if alu == Alu::Lsh {
            line!(self, "srli t0, {a}, 1");
            line!(self, "srl t0, t0, t1");
            line!(self, "sll {high}, {upper}, t2");
            line!(self, "or {high}, {high}, t0");
            line!(self, "sll {to}, {a}, t2");
            line!(self, "j {done}");
            self.mark(&far);
            line!(self, "sll {high}, {a}, t2");
            line!(self, "li {to}, 0");
            return self.mark(&done);
        }
        line!(self, "slli t0, {upper}, 1");
        line!(self, "sll t0, t0, t1");
        line!(self, "srl {to}, {a}, t2");
        line!(self, "or {to}, {to}, t0");
        if whole {
            line!(self, "{name} {high}, {upper}, t2");
        }
        line!(self, "j {done}");
        self.mark(&far);
        line!(self, "{name} {to}, {upper}, t2");
        if whole && alu == Alu::Rsh {
            line!(self, "li {high}, 0");
        } else if whole {
            line!(self, "srai {high}, {upper}, 31");
        }
        self.mark(&done);
    }

    /// Whether the operands of a division have no upper halves.
    pub(super) fn divides_words(&self, ins: &Ins, note: &Note) -> bool {
        let word = |value: Value, max: u64| match value {
            Value::Const(number) => (0..=WORD as i64).contains(&number),
            _ => max <= WORD,
        };
        word(ins.a, note.a) && word(ins.b, note.b)
    }

    /// A 64-bit division, by the compiler's library.
    fn divide_pair(&mut self, ins: &Ins, note: &Note, alu: Alu, at: usize) {
        let (name, quotient) = match alu {
            Alu::Div => ("__udivdi3", true),
            Alu::Mod => ("__umoddi3", false),
            Alu::SignedDiv => ("__divdi3", true),
            _ => ("__moddi3", false),
        };
        let dst = ins.dst as usize;
        let kept = self.kept_around(at, dst);
        for (register, place) in &kept {
            line!(self, "sw {register}, {place}(sp)");
        }
        // Operands may be in the registers of arguments.
        self.low_into("t0", ins.a);
        self.high_into("t1", ins.a, note.a);
        self.high_into("a3", ins.b, note.b);
        self.low_into("t2", ins.b);
        line!(self, "mv a2, t2");
        line!(self, "mv a0, t0");
        line!(self, "mv a1, t1");
        let (zero, done) = (self.label(), self.label());
        let checked = !matches!(ins.b, Value::Const(1..));
        if checked {
            line!(self, "or t0, a2, a3");
            line!(self, "beqz t0, {zero}");
        }
        line!(self, "call {name}");
        if checked {
            line!(self, "j {done}");
            self.mark(&zero);
            if quotient {
                line!(self, "li a0, 0");
                line!(self, "li a1, 0");
            }
            self.mark(&done);
        }
        line!(self, "mv t0, a0");
        line!(self, "mv t1, a1");
        for (register, place) in &kept {
            line!(self, "lw {register}, {place}(sp)");
        }
        line!(self, "mv {}, t0", self.low[dst]);
        if self.behind[at][dst] == Part::Whole {
            line!(self, "mv {}, t1", self.high[dst]);
        }
    }

    /// Registers that a call would change, with places to keep them.
    fn kept_around(&self, at: usize, dst: usize) -> Vec<(&'static str, i32)> {
        let mut kept = Vec::new();
        for register in (0..=5).filter(|&register| register != dst) {
            let part = self.behind[at][register];
            if part != Part::None {
                kept.push(self.low[register]);
            }
            if part == Part::Whole {
                kept.push(self.high[register]);
            }
        }
        (0..)
            .map(|at| self.frame.kept + 4 * at)
            .zip(kept)
            .map(|(place, register)| (register, place))
            .collect()
    }
}
