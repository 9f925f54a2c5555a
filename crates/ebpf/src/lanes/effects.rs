//! Effects on memory, and the dependences that follow: the conditions of Bernstein for two operations.

use super::facts::{Area, Known, State};
use super::operation::{Operation, touches_memory};
use crate::helper::Helper;

/// The effect of an operation on memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Effect {
    None,
    Load(Area),
    Store(Area),
    /// A helper that reads memory, and changes none that a program can load.
    Reader,
    /// Anything.
    Barrier,
    /// A check of the packet's length.
    Guard,
}

/// The effect of an operation in a state.
pub(super) fn effect(operation: &Operation, state: &State) -> Effect {
    match *operation {
        Operation::Load { base, at, bytes, .. } => Effect::Load(state.area(base, at, bytes)),
        Operation::Store { base, at, bytes, .. } => Effect::Store(state.area(base, at, bytes)),
        Operation::Plain(step) if touches_memory(step.op) => Effect::Barrier,
        Operation::Helper(number) if is_reader(number) => Effect::Reader,
        Operation::Helper(_) => Effect::Barrier,
        Operation::Guard { .. } => Effect::Guard,
        _ => Effect::None,
    }
}

fn is_reader(number: u32) -> bool {
    matches!(
        Helper::of(number),
        Some(
            Helper::MapLookup
                | Helper::Redirect
                | Helper::RedirectMap
                | Helper::CsumDiff
                | Helper::KtimeGet
                | Helper::Random
                | Helper::Cpu
        )
    )
}

/// The least distance in rows between two operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Distance {
    pub rows: usize,
    /// Whether the second one reads the result of the first one. In the next row it must then be in the same lane.
    pub forwards: bool,
}

/// The distance from an operation to a later one of the program; none where they are independent.
pub(super) fn distance(first: (&Operation, Effect), second: (&Operation, Effect)) -> Option<Distance> {
    let registers = by_registers(first.0, second.0);
    let memory = by_memory(first, second).map(|rows| Distance { rows, forwards: false });
    match (registers, memory) {
        (Some(a), Some(b)) => Some(Distance { rows: a.rows.max(b.rows), forwards: a.forwards }),
        (a, b) => a.or(b),
    }
}

fn by_registers(first: &Operation, second: &Operation) -> Option<Distance> {
    let of = |rows, forwards| Some(Distance { rows, forwards });
    let (written, rewritten) = (first.writes(), second.writes());
    if written.is_some_and(|register| second.reads() >> register & 1 != 0) {
        return match (first, second) {
            // The exit lets the pipeline run empty, and the module of helpers takes its arguments behind the lanes: both find results
            // of their own row. The published programs of the paper have calls in the row of their last argument.
            (Operation::Helper(_), Operation::Exit | Operation::Helper(_)) => of(1, false),
            (_, Operation::Exit | Operation::Helper(_)) => of(0, false),
            _ => of(1, true),
        };
    }
    if written.is_some() && written == rewritten {
        return of(1, false);
    }
    let overwrites = rewritten.is_some_and(|register| first.reads() >> register & 1 != 0);
    match (overwrites, first) {
        // A helper takes its arguments at the end of its row.
        (true, Operation::Helper(_)) => of(1, false),
        _ if overwrites || second.is_control() => of(0, false),
        _ => None,
    }
}

fn by_memory(first: (&Operation, Effect), second: (&Operation, Effect)) -> Option<usize> {
    use Effect::{Barrier, Guard, Load, None as Nothing, Reader, Store};
    match (first.1, second.1) {
        (Store(a), Load(b) | Store(b)) => a.meets(&b).then_some(1),
        (Load(a), Store(b)) => a.meets(&b).then_some(0),
        (Load(_), Barrier) => Some(0),
        (Store(_) | Barrier, Reader | Barrier) => Some(1),
        (Reader, Barrier) => Some(1),
        (Barrier, Load(_) | Store(_)) => Some(1),
        (Reader, Store(_)) => Some(0),
        // One module has all helpers.
        (Reader, Reader) => Some(1),
        // Effects in front of a check take place where it ends the program.
        (Store(_) | Barrier | Reader, Guard) => Some(1),
        (Guard, Load(area)) => {
            matches!(area.region, Known::Packet(_) | Known::Any | Known::PacketEnd).then_some(0)
        }
        (Guard, Store(_) | Barrier | Reader | Guard) => Some(0),
        (Load(_) | Nothing, _) | (_, Nothing) | (Reader, Load(_)) => None,
    }
}
