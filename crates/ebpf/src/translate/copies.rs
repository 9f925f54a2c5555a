//! Copies of bytes in a row, such as the addresses of stations, as copies of words.
//!
//! A compiler copies byte by byte where it cannot see that an address is aligned. A core that makes misaligned accesses copies more
//! at once.

use super::demand::{self, Demand, Part, Rules};
use super::fact::{Facts, Note, Place};
use super::ir::{Function, Ins, Kind, Value};
use super::reached_of;
use crate::op::Width;

/// A load of a byte, and the store of it behind.
#[derive(Clone, Copy)]
struct Pair {
    from: (Value, i32),
    to: (Value, i32),
    register: u8,
}

/// Joins copies of bytes.
pub(super) fn join(function: &mut Function, notes: &[Note], at_blocks: &[Option<Facts>], rules: Rules) {
    let (_, behind) = demand::parts(function, notes, &reached_of(function, at_blocks), rules);
    let mut at = 0;
    while at + 1 < function.ins.len() {
        let pairs = row(function, notes, &behind, at);
        if pairs.len() > 1 {
            write(function, at, &pairs, rules.wide);
        }
        at += (2 * pairs.len()).max(1);
    }
}

/// The pairs from a step on that copy neighbours one after another, upwards or downwards.
fn row(function: &Function, notes: &[Note], behind: &[Demand], first: usize) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    let mut step = 0;
    for at in (first..function.ins.len().saturating_sub(1)).step_by(2) {
        let Some(pair) = pair(function, notes, behind, at) else { break };
        if let Some(last) = pairs.last() {
            let ahead = pair.from.1 - last.from.1;
            let same = pair.from.0 == last.from.0 && pair.to.0 == last.to.0 && ahead == pair.to.1 - last.to.1;
            // The register of the row is not that of an address in a later pair.
            let kept = ![pair.from.0, pair.to.0].contains(&Value::Reg(last.register));
            if function.leads[at] || !same || !kept || ahead.abs() != 1 || (step != 0 && ahead != step) {
                break;
            }
            step = ahead;
        }
        pairs.push(pair);
    }
    pairs
}

fn pair(function: &Function, notes: &[Note], behind: &[Demand], at: usize) -> Option<Pair> {
    let (load, store) = (&function.ins[at], &function.ins[at + 1]);
    let plain =
        load.kind == Kind::Load(Width::B1, false, false) && store.kind == Kind::Store(Width::B1, false);
    let passed = store.b == Value::Reg(load.dst) && store.a != Value::Reg(load.dst);
    let read_later = behind[at + 1][load.dst as usize] != Part::None;
    let joined = plain && passed && !read_later && !function.leads[at + 1];
    (joined && are_apart(notes[at].place, notes[at + 1].place)).then_some(Pair {
        from: (load.a, load.to),
        to: (store.a, store.to),
        register: load.dst,
    })
}

/// Whether bytes of two places are never the same.
pub(super) fn are_apart(one: Place, other: Place) -> bool {
    let memory = |place| match place {
        Place::Packet => Some(0),
        Place::Stack => Some(1),
        Place::Value | Place::Present => Some(2),
        Place::Unknown | Place::Context => None,
    };
    matches!((memory(one), memory(other)), (Some(one), Some(other)) if one != other)
}

/// Writes the copies of a row in as few steps as possible, in the place of its first ones.
fn write(function: &mut Function, first: usize, pairs: &[Pair], wide: bool) {
    let lowest = pairs.iter().min_by_key(|pair| pair.from.1).copied().unwrap_or(pairs[0]);
    let register = pairs[0].register;
    let (mut done, mut at) = (0, first);
    while done < pairs.len() {
        let width = widest(pairs.len() - done, wide);
        let (from, to) = (lowest.from.1 + done as i32, lowest.to.1 + done as i32);
        let load =
            Ins { kind: Kind::Load(width, false, false), dst: register, to: from, ..function.ins[first] };
        let store =
            Ins { kind: Kind::Store(width, false), b: Value::Reg(register), to, ..function.ins[first + 1] };
        (function.ins[at], function.ins[at + 1]) = (load, store);
        (done, at) = (done + width.bytes(), at + 2);
    }
    for ins in &mut function.ins[at..first + 2 * pairs.len()] {
        ins.kind = Kind::Nothing;
    }
}

fn widest(bytes: usize, wide: bool) -> Width {
    match bytes {
        8.. if wide => Width::B8,
        4.. => Width::B4,
        2.. => Width::B2,
        _ => Width::B1,
    }
}
