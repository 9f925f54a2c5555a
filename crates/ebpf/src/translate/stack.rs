//! Knowledge of the stack: what a program keeps in aligned places of eight bytes, such as pointers around calls.

use super::bytes::is_apart;
use super::fact::{ANY, Fact, Facts, Known, PLACE_BYTES, PLACES, Place, REGISTERS, base, operand};
use super::ir::{Ins, Kind, Value};
use crate::helper::Helper;
use crate::op::Width;

/// The fact's number for the place at a distance from the end of the stack.
fn place(at: i32) -> Option<usize> {
    let number = at.checked_neg()? / PLACE_BYTES - 1;
    (at % PLACE_BYTES == 0 && (0..PLACES as i32).contains(&number)).then(|| REGISTERS + number as usize)
}

/// The distance of an access, if it is one to the stack.
fn distance(facts: &Facts, ins: &Ins) -> Option<i32> {
    match base(facts, ins.a, ins.to) {
        (Value::Frame(at), to) => at.checked_add(to),
        _ => None,
    }
}

/// The fact of a load of a whole place.
pub(super) fn loaded(facts: &Facts, ins: &Ins) -> Option<Fact> {
    let Kind::Load(Width::B8, false, false) = ins.kind else { return None };
    let fact = facts[place(distance(facts, ins)?)?];
    (fact != ANY).then_some(fact)
}

/// Keeps what a step stores on the stack, and forgets what it may change there.
pub(super) fn change(next: &mut Facts, facts: &Facts, ins: &Ins) {
    match ins.kind {
        Kind::Store(width, _) => {
            forget(next, facts, ins, width.bytes() as i32);
            let at = distance(facts, ins).filter(|_| width == Width::B8).and_then(place);
            if let Some(at) = at {
                next[at] = stored(facts, ins.b);
            }
        }
        Kind::Atomic(_, wide) => forget(next, facts, ins, if wide { 8 } else { 4 }),
        Kind::Helper(number) if leaves_stack(number) => {}
        Kind::Helper(_) | Kind::Call => next[REGISTERS..].fill(ANY),
        _ => {}
    }
}

/// Forgets the places that an access of some bytes may change.
fn forget(next: &mut Facts, facts: &Facts, ins: &Ins, bytes: i32) {
    let Some(at) = distance(facts, ins) else {
        let place = operand(facts, ins.a).place;
        if !is_apart(place) && place != Place::Context {
            next[REGISTERS..].fill(ANY);
        }
        return;
    };
    for begin in at - PLACE_BYTES + 1..at + bytes {
        if let Some(number) = place(begin) {
            next[number] = ANY;
        }
    }
}

/// The fact of a stored operand.
fn stored(facts: &Facts, value: Value) -> Fact {
    let fact = operand(facts, value);
    match (value, fact.known) {
        (Value::Reg(register), Known::Nothing) => Fact { known: Known::Sum(register, 0), ..fact },
        _ => fact,
    }
}

/// Whether a helper writes none of the stack: it writes no memory that an argument names.
fn leaves_stack(number: u32) -> bool {
    use Helper as H;
    matches!(
        Helper::of(number),
        Some(H::MapLookup | H::MapLookupPercpu | H::MapUpdate | H::MapDelete | H::MapPush)
            | Some(H::AdjustHead | H::AdjustMeta | H::AdjustTail | H::BuffLen | H::CsumDiff | H::StoreBytes)
            | Some(H::Redirect | H::RedirectMap | H::Random | H::Cpu | H::Jiffies)
            | Some(H::KtimeGet | H::KtimeGetBoot | H::KtimeGetCoarse | H::KtimeGetTai)
            | Some(H::RingbufReserve | H::RingbufOutput | H::RingbufSubmit | H::RingbufDiscard)
            | Some(H::PerfEventOutput)
    )
}
