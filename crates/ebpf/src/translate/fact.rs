//! The knowledge of a register at a step: its number, its origin, its place.

use super::ir::Value;

/// Where a register points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Place {
    /// Not known to be a pointer.
    #[default]
    Unknown,
    Context,
    Packet,
    Stack,
    /// The value of a map or a record, or null.
    Value,
    /// The value of a map or a record.
    Present,
}

/// The known origin of a register's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Nothing,
    Is(Value),
    /// Another register plus a constant.
    Sum(u8, i32),
    /// Bytes of memory as a number, shifted up by bits. The base is a register that does not point to the stack, or the stack.
    Bytes {
        base: Value,
        at: i32,
        count: u8,
        shift: u8,
    },
}

/// The knowledge of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    pub known: Known,
    /// The largest number that it can be.
    pub max: u64,
    pub place: Place,
}

impl Known {
    /// Whether it holds only while a register has its value.
    pub fn is_of(self, register: u8) -> bool {
        match self {
            Known::Sum(of, _) => of == register,
            Known::Bytes { base, .. } => base == Value::Reg(register),
            _ => false,
        }
    }
}

/// The largest 32-bit number.
pub(super) const WORD: u64 = u32::MAX as u64;

/// Registers of a program, r0 to r10.
pub(super) const REGISTERS: usize = 11;

/// Bytes of a place on the stack with a fact of its own.
pub(super) const PLACE_BYTES: i32 = 8;
/// Such places of a function's stack.
pub(super) const PLACES: usize = (super::STACK / PLACE_BYTES) as usize;

/// The facts of registers, and behind them those of places on the stack (`stack`).
pub(super) type Facts = [Fact; REGISTERS + PLACES];

pub(super) const ANY: Fact = Fact { known: Known::Nothing, max: u64::MAX, place: Place::Unknown };

impl Fact {
    pub fn of(value: Value) -> Fact {
        match value {
            Value::Const(number) => {
                Fact { known: Known::Is(value), max: number as u64, place: Place::Unknown }
            }
            Value::Frame(_) => Fact { known: Known::Is(value), max: WORD, place: Place::Stack },
            Value::Data(..) | Value::Memory(..) => {
                Fact { known: Known::Is(value), max: WORD, place: Place::Present }
            }
            _ => Fact { known: Known::Is(value), max: WORD, place: Place::Unknown },
        }
    }

    pub fn up_to(max: u64) -> Fact {
        Fact { max, ..ANY }
    }

    pub fn pointer(place: Place) -> Fact {
        Fact { known: Known::Nothing, max: WORD, place }
    }

    pub fn constant(self) -> Option<i64> {
        match self.known {
            Known::Is(Value::Const(number)) => Some(number),
            _ => None,
        }
    }

    pub fn is_pointer(self) -> bool {
        self.place != Place::Unknown
    }

    pub fn joined(self, other: Fact) -> Fact {
        Fact {
            known: if self.known == other.known { self.known } else { Known::Nothing },
            max: self.max.max(other.max),
            place: if self.place == other.place { self.place } else { Place::Unknown },
        }
    }
}

/// The facts that choose the code of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    /// The largest numbers of the operands and of the result.
    pub a: u64,
    pub b: u64,
    pub out: u64,
    /// Where operand `a` points.
    pub place: Place,
    /// The known number of operand `b`.
    pub number: Option<i64>,
    /// The known values of r1 to r5.
    pub arguments: [Known; 5],
    /// The known number of r0 in front of the step.
    pub result: Option<i64>,
}

pub(super) fn operand(facts: &Facts, value: Value) -> Fact {
    match value {
        Value::Reg(register) => facts[register as usize],
        other => Fact::of(other),
    }
}

/// Whether a number is an immediate of RISC-V.
pub(super) fn fits(number: i64) -> bool {
    (-2048..2048).contains(&number)
}

/// The base and the distance of an access.
pub(super) fn base(facts: &Facts, value: Value, to: i32) -> (Value, i32) {
    let Value::Reg(register) = value else { return (value, to) };
    match facts[register as usize].known {
        Known::Is(frame @ Value::Frame(_)) => (frame, to),
        Known::Is(data @ (Value::Data(..) | Value::Memory(..))) => (data, to),
        Known::Sum(of, at)
            if fits(i64::from(at) + i64::from(to)) && fits(i64::from(at) + i64::from(to) + 8) =>
        {
            (Value::Reg(of), at + to)
        }
        _ => (value, to),
    }
}
