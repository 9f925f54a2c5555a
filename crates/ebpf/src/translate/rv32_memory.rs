//! Memory accesses with pairs of 32-bit registers.

use super::code::{Coder, line};
use super::demand::Part;
use super::fact::{Note, fits};
use super::ir::{Ins, Kind, Value};
use super::rv64::letter;
use crate::op::{Atomic, Width};

impl Coder<'_> {
    pub(super) fn load32(
        &mut self,
        ins: &Ins,
        note: &Note,
        width: Width,
        (signed, acquire): (bool, bool),
        part: Part,
    ) {
        if part == Part::None && !acquire {
            return;
        }
        let (to, high) = (self.low[ins.dst as usize], self.high[ins.dst as usize]);
        if self.is_split(ins, note, width) && !acquire {
            self.load_bytes32(ins, width, signed, part);
        } else {
            let (place, base) = self.place(ins, width.bytes(), "t0");
            let name = match (width, signed) {
                (Width::B1, false) => "lbu",
                (Width::B1, true) => "lb",
                (Width::B2, false) => "lhu",
                (Width::B2, true) => "lh",
                _ => "lw",
            };
            if width == Width::B8 && (part == Part::Whole || acquire) {
                let upper = further(&place);
                // The base is read last.
                let (first, second) = if base == Some(to) {
                    ((high, upper), (to, place))
                } else {
                    ((to, place), (high, upper))
                };
                line!(self, "lw {}, {}", first.0, first.1);
                line!(self, "lw {}, {}", second.0, second.1);
            } else {
                line!(self, "{name} {to}, {place}");
            }
            if acquire {
                line!(self, "fence r, rw");
            }
        }
        if part == Part::Whole && width != Width::B8 {
            match signed {
                true => line!(self, "srai {high}, {to}, 31"),
                false => line!(self, "li {high}, 0"),
            }
        }
    }

    fn load_bytes32(&mut self, ins: &Ins, width: Width, signed: bool, part: Part) {
        let (base, at) = self.bytes_at(ins, width);
        let (to, high) = (self.low[ins.dst as usize], self.high[ins.dst as usize]);
        if width == Width::B8 && part == Part::Whole {
            self.join_bytes(high, base, at + 4, 4, false);
        }
        self.join_bytes(to, base, at, width.bytes().min(4), signed);
    }

    /// Joins bytes in a register; it uses t1 and t2.
    fn join_bytes(&mut self, to: &str, base: &str, at: i64, count: usize, signed: bool) {
        for byte in (0..count).rev() {
            let top = byte + 1 == count;
            let name = if top && signed { "lb" } else { "lbu" };
            line!(self, "{name} {}, {}({base})", if top { "t1" } else { "t2" }, at + byte as i64);
            if !top {
                line!(self, "slli t1, t1, 8");
                line!(self, "or t1, t1, t2");
            }
        }
        line!(self, "mv {to}, t1");
    }

    pub(super) fn store32(&mut self, ins: &Ins, note: &Note, width: Width, release: bool) {
        let low = self.low_of(ins.b, "t1");
        if release {
            line!(self, "fence rw, w");
        } else if self.is_split(ins, note, width) {
            let (base, at) = self.bytes_at(ins, width);
            self.store_bytes(low, base, at, width.bytes().min(4));
            if width == Width::B8 {
                let high = self.high_of(ins.b, note.b, "t1");
                self.store_bytes(high, base, at + 4, 4);
            }
            return;
        }
        let (place, _) = self.place(ins, width.bytes(), "t0");
        if width == Width::B8 {
            line!(self, "sw {low}, {place}");
            let high = self.high_of(ins.b, note.b, "t1");
            line!(self, "sw {high}, {}", further(&place));
            return;
        }
        line!(self, "s{} {low}, {place}", letter(width));
    }

    fn store_bytes(&mut self, from: &str, base: &str, at: i64, count: usize) {
        line!(self, "sb {from}, {at}({base})");
        for byte in 1..count {
            line!(self, "srli t2, {from}, {}", 8 * byte);
            line!(self, "sb t2, {}({base})", at + byte as i64);
        }
    }

    pub(super) fn atomic32(&mut self, ins: &Ins, atomic: Atomic, at: usize) {
        let base = self.low_of(ins.a, "t0");
        let address = if ins.to == 0 { base } else { "t0" };
        self.plus(address, base, i64::from(ins.to));
        let src = self.low_of(ins.b, "t1");
        if atomic == Atomic::CompareExchange {
            let (again, other, done) = (self.label(), self.label(), self.label());
            self.mark(&again);
            line!(self, "lr.w.aqrl t2, ({address})");
            line!(self, "bne t2, {}, {other}", self.low[0]);
            line!(self, "sc.w.rl t2, {src}, ({address})");
            line!(self, "bnez t2, {again}");
            line!(self, "j {done}");
            self.mark(&other);
            line!(self, "mv {}, t2", self.low[0]);
            self.mark(&done);
            return self.upper_zero(at, 0);
        }
        let Value::Reg(register) = ins.b else { return };
        let name = amo(atomic);
        if !atomic.fetches() || self.behind[at][register as usize] == Part::None {
            return line!(self, "{name}.w zero, {src}, ({address})");
        }
        line!(self, "{name}.w.aqrl {src}, {src}, ({address})");
        self.upper_zero(at, register as usize);
    }

    fn upper_zero(&mut self, at: usize, register: usize) {
        if self.behind[at][register] == Part::Whole {
            line!(self, "li {}, 0", self.high[register]);
        }
    }

    /// A 64-bit atomic operation: under one of the locks, which the address chooses.
    pub(super) fn atomic_pair(&mut self, ins: &Ins, note: &Note, atomic: Atomic, at: usize) {
        let Value::Reg(register) = ins.b else { return };
        if self.options.flow_processor && atomic == Atomic::Add {
            return self.add_by_memory(ins, note);
        }
        let place = self.lock(ins);
        let (low, high) = (self.low[register as usize], self.high_of(ins.b, note.b, "zero"));
        let own_high = self.high[register as usize];
        line!(self, "lw t0, {place}");
        line!(self, "lw t1, {}", further(&place));
        if atomic == Atomic::CompareExchange {
            let skip = self.label();
            line!(self, "bne t0, {}, {skip}", self.low[0]);
            line!(self, "bne t1, {}, {skip}", self.high[0]);
            line!(self, "sw {low}, {place}");
            line!(self, "sw {high}, {}", further(&place));
            self.mark(&skip);
            line!(self, "mv {}, t0", self.low[0]);
            line!(self, "mv {}, t1", self.high[0]);
            return self.unlock(ins);
        }
        let fetches = atomic.fetches() && self.behind[at][register as usize] != Part::None;
        // The new value is in the source register where that gets the old one.
        let (new, new_high) = if fetches { (low, own_high) } else { ("t0", "t1") };
        match atomic {
            Atomic::Exchange => {
                line!(self, "sw {low}, {place}");
                line!(self, "sw {high}, {}", further(&place));
            }
            Atomic::Add | Atomic::FetchAdd => {
                let kept = if fetches { "t0" } else { low };
                line!(self, "add {new}, t0, {low}");
                line!(self, "sw {new}, {place}");
                line!(self, "sltu {new}, {new}, {kept}");
                line!(self, "add {new_high}, t1, {high}");
                line!(self, "add {new_high}, {new_high}, {new}");
                line!(self, "sw {new_high}, {}", further(&place));
            }
            _ => {
                let name = match atomic {
                    Atomic::Or | Atomic::FetchOr => "or",
                    Atomic::And | Atomic::FetchAnd => "and",
                    _ => "xor",
                };
                line!(self, "{name} {new}, t0, {low}");
                line!(self, "sw {new}, {place}");
                line!(self, "{name} {new_high}, t1, {high}");
                line!(self, "sw {new_high}, {}", further(&place));
            }
        }
        if fetches {
            line!(self, "mv {low}, t0");
            line!(self, "mv {own_high}, t1");
        }
        self.unlock(ins);
    }

    /// A 64-bit addition by the memory: of the low word, and of the high one where that has an addend or a carry. Sums are right once
    /// all additions are done, as additions commute.
    fn add_by_memory(&mut self, ins: &Ins, note: &Note) {
        let base = self.low_of(ins.a, "t0");
        let address = if ins.to == 0 { base } else { "t0" };
        self.plus(address, base, i64::from(ins.to));
        let low = self.low_of(ins.b, "t1");
        let high = self.high_of(ins.b, note.b, "t2");
        let done = self.label();
        line!(self, "amoadd.w t1, {low}, ({address})");
        line!(self, "add t1, t1, {low}");
        line!(self, "sltu t1, t1, {low}");
        if high != "zero" {
            line!(self, "add t1, t1, {high}");
        }
        line!(self, "beqz t1, {done}");
        line!(self, "addi t0, {address}, 4");
        line!(self, "amoadd.w zero, t1, (t0)");
        self.mark(&done);
    }

    /// The place of an atomic operation, with its lock in t2 taken. No other core sees the stack.
    fn lock(&mut self, ins: &Ins) -> String {
        let (place, _) = self.place(ins, 8, "ra");
        if matches!(ins.a, Value::Frame(_)) {
            return place;
        }
        let base = place.split_once('(').map_or("zero", |(_, base)| base.trim_end_matches(')')).to_owned();
        let from = if base == "ra" { 0 } else { i64::from(ins.to) };
        self.plus("t2", &base, from);
        line!(self, "andi t2, t2, {}", 8 * (super::LOCKS - 1));
        self.address("t0", super::LOCK_NAME);
        line!(self, "add t2, t2, t0");
        let again = self.label();
        self.mark(&again);
        line!(self, "li t0, 1");
        line!(self, "amoswap.w.aq t0, t0, (t2)");
        line!(self, "bnez t0, {again}");
        place
    }

    fn unlock(&mut self, ins: &Ins) {
        if !matches!(ins.a, Value::Frame(_)) {
            line!(self, "amoswap.w.rl zero, zero, (t2)");
        }
    }

    /// Whether an atomic operation needs a register for its address.
    pub(super) fn needs_spare(&self, ins: &Ins) -> bool {
        let far = !fits(i64::from(ins.to)) || !fits(i64::from(ins.to) + 8);
        let atomic = matches!(ins.kind, Kind::Atomic(_, true));
        !self.wide() && atomic && (far || !matches!(ins.a, Value::Reg(_) | Value::Frame(_)))
    }
}

/// The place four bytes behind another.
fn further(place: &str) -> String {
    let (at, base) = place.split_once('(').unwrap_or((place, ""));
    format!("{}({base}", at.parse::<i64>().unwrap_or(0) + 4)
}

fn amo(atomic: Atomic) -> &'static str {
    match atomic {
        Atomic::Add | Atomic::FetchAdd => "amoadd",
        Atomic::Or | Atomic::FetchOr => "amoor",
        Atomic::And | Atomic::FetchAnd => "amoand",
        Atomic::Xor | Atomic::FetchXor => "amoxor",
        Atomic::Exchange | Atomic::CompareExchange => "amoswap",
    }
}
