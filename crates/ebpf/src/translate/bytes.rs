//! Numbers that are made of bytes of memory one by one, as compilers read packed structures: one load makes them as well.

use super::fact::{Facts, Known, Place, base, operand};
use super::ir::{Ins, Kind, Value};
use crate::op::{Alu, Width};

/// The bytes that a load gives.
pub(super) fn loaded(facts: &Facts, ins: &Ins, width: Width) -> Known {
    let count = width.bytes() as u8;
    let place = operand(facts, ins.a).place;
    match base(facts, ins.a, ins.to) {
        (Value::Frame(frame), to) => {
            Known::Bytes { base: Value::Frame(0), at: frame.wrapping_add(to), count, shift: 0 }
        }
        (base @ Value::Reg(_), at) if is_apart(place) => Known::Bytes { base, at, count, shift: 0 },
        _ => Known::Nothing,
    }
}

/// Whether a pointer is one into other memory than the stack.
pub(super) fn is_apart(place: Place) -> bool {
    matches!(place, Place::Packet | Place::Value | Place::Present)
}

/// The bytes of an operand.
fn of(facts: &Facts, value: Value) -> Option<(Value, i32, u8, u8)> {
    let known = match operand(facts, value).known {
        Known::Sum(register, 0) => facts[register as usize].known,
        known => known,
    };
    match known {
        Known::Bytes { base, at, count, shift } => Some((base, at, count, shift)),
        _ => None,
    }
}

/// The bytes of a shift up, or of two rows of bytes in one number.
pub(super) fn joined(facts: &Facts, ins: &Ins, alu: Alu, wide: bool) -> Known {
    let most = if wide { 64 } else { 32 };
    let bytes = |base, at, count: u8, shift: u8| {
        let fits = u32::from(8 * count) + u32::from(shift) <= most;
        if fits { Known::Bytes { base, at, count, shift } } else { Known::Nothing }
    };
    let Some((base, at, count, shift)) = of(facts, ins.a) else { return Known::Nothing };
    if let (Alu::Lsh, Some(by)) = (alu, operand(facts, ins.b).constant()) {
        let by = by as u8 & 63;
        return if by.is_multiple_of(8) {
            bytes(base, at, count, shift.saturating_add(by))
        } else {
            Known::Nothing
        };
    }
    let (Alu::Or, Some((other, there, more, up))) = (alu, of(facts, ins.b)) else { return Known::Nothing };
    let follows = |(at, count, shift): (i32, u8, u8), (to, up): (i32, u8)| {
        at.checked_add(i32::from(count)) == Some(to) && shift.checked_add(8 * count) == Some(up)
    };
    match base == other {
        true if follows((at, count, shift), (there, up)) => bytes(base, at, count + more, shift),
        true if follows((there, more, up), (at, shift)) => bytes(base, there, count + more, up),
        _ => Known::Nothing,
    }
}

/// The width of a load of bytes.
pub(super) fn width(count: u8) -> Option<Width> {
    [Width::B2, Width::B4, Width::B8].into_iter().find(|width| width.bytes() == count as usize)
}

/// Forgets bytes that a step may change.
pub(super) fn forget(next: &mut Facts, facts: &Facts, ins: &Ins) {
    let (stack, others) = match ins.kind {
        Kind::Store(..) | Kind::Atomic(..) => match ins.a {
            Value::Frame(_) => (true, false),
            value => {
                let place = operand(facts, value).place;
                (!is_apart(place), place != Place::Stack)
            }
        },
        Kind::Helper(_) | Kind::Call => (true, true),
        Kind::Push(_) => (false, true),
        _ => return,
    };
    for fact in next.iter_mut() {
        if let Known::Bytes { base, .. } = fact.known {
            let on_stack = matches!(base, Value::Frame(_));
            if (on_stack && stack) || (!on_stack && others) {
                fact.known = Known::Nothing;
            }
        }
    }
}
