//! Stores of a number's bytes in a row, as compilers write to packed structures, as stores of words.
//!
//! The bytes of a number come by shifts to the right. A core that makes misaligned accesses stores more at once. The first store of
//! a row takes the others with it, so that no access between them may touch the same bytes.

use super::copies::are_apart;
use super::fact::{Note, WORD};
use super::ir::{Function, Ins, Kind, Value};
use crate::op::{Alu, Width};

/// A part of a number: the number shifted to the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    number: u32,
    shift: u32,
    /// The first bit that the part lacks.
    limit: u32,
}

/// A store of a part.
#[derive(Clone, Copy, Debug)]
struct Piece {
    at: usize,
    part: Part,
    to: i32,
    bytes: i32,
}

impl Piece {
    /// The first byte of the number that it has.
    fn begin(&self) -> usize {
        self.part.shift as usize / 8
    }
}

/// Joins stores of bytes.
pub(super) fn join(function: &mut Function, notes: &[Note], wide: bool) {
    for (first, last) in function.blocks() {
        let mut parts = Parts::new();
        for at in first..=last {
            if let Some(piece) = parts.piece(&function.ins[at], at) {
                let row = row(function, notes, (piece, parts), last);
                write(function, &row, &parts, wide);
            }
            parts.after(&function.ins[at], &notes[at]);
        }
    }
}

/// The parts in registers.
#[derive(Clone, Copy)]
struct Parts {
    of: [Part; 11],
    numbers: u32,
}

impl Parts {
    fn new() -> Parts {
        let of = std::array::from_fn(|number| Part { number: number as u32, shift: 0, limit: 64 });
        Parts { of, numbers: 11 }
    }

    fn piece(&self, ins: &Ins, at: usize) -> Option<Piece> {
        let (Kind::Store(width, false), Value::Reg(from)) = (ins.kind, ins.b) else { return None };
        let part = self.of[from as usize];
        let (bytes, bits) = (width.bytes() as i32, 8 * width.bytes() as u32);
        (matches!(ins.a, Value::Reg(_)) && part.shift.is_multiple_of(8) && part.shift + bits <= part.limit)
            .then_some(Piece { at, part, to: ins.to, bytes })
    }

    fn after(&mut self, ins: &Ins, note: &Note) {
        let of = |value: Value| match value {
            Value::Reg(register) => Some(self.of[register as usize]),
            _ => None,
        };
        let short = |part: Part| Part { limit: part.limit.min(part.shift + 32), ..part };
        let found = match (ins.kind, note.number) {
            (Kind::Alu(Alu::Mov, true), _) => of(ins.b),
            (Kind::Alu(Alu::Mov, false), _) => {
                of(ins.b).map(|part| if note.b <= WORD { part } else { short(part) })
            }
            (Kind::Alu(Alu::Rsh, wide), Some(by)) => {
                let by = by as u32 & if wide { 63 } else { 31 };
                let part = of(ins.a).map(|part| if wide { part } else { short(part) });
                part.map(|part| Part { shift: part.shift + by, ..part })
            }
            _ => None,
        };
        match ins.kind {
            kind if kind.changes_as_a_call() => (0..=5).for_each(|at| self.renew(at)),
            Kind::Atomic(..) => (0..10).for_each(|at| self.renew(at)),
            Kind::Store(..)
            | Kind::Nothing
            | Kind::Jump
            | Kind::Branch(..)
            | Kind::Tested(_)
            | Kind::Exit => {}
            _ => match found {
                Some(part) => self.of[ins.dst as usize] = part,
                None => self.renew(ins.dst as usize),
            },
        }
    }

    /// Whether a register has some bytes of a number from a bit on.
    fn has(&self, register: u8, number: u32, shift: u32, bytes: usize) -> bool {
        let part = self.of[register as usize];
        part.number == number && part.shift == shift && part.limit >= shift + 8 * bytes as u32
    }

    fn renew(&mut self, register: usize) {
        self.of[register] = Part { number: self.numbers, shift: 0, limit: 64 };
        self.numbers += 1;
    }
}

/// The stores from one on that have parts of the same number, each as far from the first in memory as in the number.
fn row(function: &Function, notes: &[Note], (first, parts): (Piece, Parts), last: usize) -> Vec<Piece> {
    let (base, mut parts, mut row) = (function.ins[first.at].a, parts, Vec::new());
    let place = notes[first.at].place;
    let steps = function.ins[..=last].iter().zip(notes).enumerate().skip(first.at);
    for (at, (ins, note)) in steps {
        let piece = parts.piece(ins, at).filter(|piece| {
            let ahead = 8 * i64::from(piece.to) - 8 * i64::from(first.to);
            let shifted = i64::from(piece.part.shift) - i64::from(first.part.shift);
            ins.a == base && piece.part.number == first.part.number && ahead == shifted
        });
        match (ins.kind, piece) {
            (_, Some(piece)) => row.push(piece),
            (Kind::Load(_, _, false), _) if are_apart(place, note.place) => {}
            (Kind::Store(_, false), _) if are_apart(place, note.place) => {}
            // Other bytes behind the same pointer: none of those that later stores of the row may have.
            (Kind::Store(width, false), _) if ins.a == base && !reaches(&first, ins.to, width) => {}
            (
                Kind::Alu(..)
                | Kind::Neg(_)
                | Kind::Extend(..)
                | Kind::Truncate(_)
                | Kind::Swap(_)
                | Kind::Nothing,
                _,
            ) => {}
            _ => break,
        }
        let writes = !matches!(ins.kind, Kind::Store(..) | Kind::Nothing);
        if writes && Value::Reg(ins.dst) == base {
            break;
        }
        parts.after(ins, note);
    }
    row
}

/// Whether a store has bytes in the place of the whole number.
fn reaches(first: &Piece, to: i32, width: Width) -> bool {
    let begin = i64::from(first.to) - i64::from(first.part.shift / 8);
    i64::from(to) < begin + 8 && begin < i64::from(to) + width.bytes() as i64
}

/// Puts the widest possible store in the place of the first one. A register must have the number from the row's lowest byte on.
fn write(function: &mut Function, row: &[Piece], parts: &Parts, wide: bool) {
    let Some(first) = row.first() else { return };
    let mut has = [false; 8];
    for piece in row {
        let end = (piece.begin() + piece.bytes as usize).min(8);
        has[piece.begin()..end].fill(true);
    }
    let begin = (0..=first.begin()).rev().take_while(|&at| has[at]).last().unwrap_or(first.begin());
    let run = has[begin..].iter().take_while(|&&byte| byte).count();
    let widths = [(8, Width::B8), (4, Width::B4), (2, Width::B2)];
    let Some((bytes, width)) = widths.into_iter().find(|&(bytes, _)| bytes <= run && (wide || bytes < 8))
    else {
        return;
    };
    let inside =
        |piece: &&Piece| begin <= piece.begin() && piece.begin() + piece.bytes as usize <= begin + bytes;
    let joined: Vec<&Piece> = row.iter().filter(inside).collect();
    let covers: usize = joined.iter().map(|piece| piece.bytes as usize).sum();
    let from = (0..10u8).find(|&register| parts.has(register, first.part.number, 8 * begin as u32, bytes));
    let (Some(from), true) = (from, joined.len() > 1 && covers >= bytes && joined[0].at == first.at) else {
        return;
    };
    for piece in &joined {
        function.ins[piece.at].kind = Kind::Nothing;
    }
    let store = &mut function.ins[first.at];
    (store.kind, store.b) = (Kind::Store(width, false), Value::Reg(from));
    store.to -= (first.begin() - begin) as i32;
}
