//! Programs that can be a card's frame handler themselves, and the steps at which a frame may have other bounds than on arrival.
//!
//! A handler has no context, so it reads the context's fields in the frame. It keeps neither the first bounds of the packet nor
//! metadata: no program that needs them is such a handler.

use super::demand::{Demand, Part, arguments};
use super::fact::{Facts, Known, Note, Place, operand};
use super::facts::after;
use super::ir::{Function, Ins, Kind, Value};
use crate::helper::Helper;
use crate::op::{Alu, Width};

/// The fields of Linux's context, each of four bytes.
pub(super) const FIELDS: [i32; 6] = [0, 4, 8, 12, 16, 20];

/// The possible changes of a frame in front of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Changes {
    /// Whether its first byte may have moved.
    head: bool,
    any: bool,
}

/// For each step whether the frame's bounds may have changed behind it; none if the program needs a context.
pub(super) fn changed(
    function: &Function,
    at_blocks: &[Option<Facts>],
    begin: &[Demand],
) -> Option<Vec<bool>> {
    let blocks = function.blocks();
    let mut number = vec![usize::MAX; function.ins.len()];
    blocks.iter().enumerate().for_each(|(block, &(first, _))| number[first] = block);
    let mut known: Vec<Option<Changes>> = vec![None; blocks.len()];
    let mut changed = vec![false; function.ins.len()];
    known[0] = Some(Changes::default());
    let mut waiting = std::collections::BTreeSet::from([0]);
    while let Some(block) = waiting.pop_first() {
        let (Some(mut changes), Some(mut facts)) = (known[block], at_blocks[block]) else { continue };
        let (first, last) = blocks[block];
        for (ins, changed) in function.ins[first..=last].iter().zip(&mut changed[first..=last]) {
            changes = behind(&facts, ins, changes)?;
            *changed |= changes.any;
            facts = after(&facts, ins);
        }
        for next in function.next(last) {
            let target = number[next];
            let arriving = at_blocks[target].as_ref()?;
            if loses_context(&facts, arriving, &begin[next]) {
                return None;
            }
            let joined = known[target].map_or(changes, |other| Changes {
                head: other.head || changes.head,
                any: other.any || changes.any,
            });
            if known[target] != Some(joined) {
                known[target] = Some(joined);
                waiting.insert(target);
            }
        }
    }
    Some(changed)
}

/// Whether a register that is read later has the context on one way alone.
fn loses_context(facts: &Facts, joined: &Facts, read: &Demand) -> bool {
    let lost = |at: usize| facts[at].place == Place::Context && joined[at].place != Place::Context;
    (0..10).any(|at| lost(at) && read[at] != Part::None)
}

/// The changes behind a step; none if the step needs a context.
fn behind(facts: &Facts, ins: &Ins, changes: Changes) -> Option<Changes> {
    let is_context = |value: Value| operand(facts, value).place == Place::Context;
    let allowed = match ins.kind {
        Kind::Load(Width::B4, false, false) if is_context(ins.a) => FIELDS.contains(&ins.to),
        Kind::Alu(Alu::Mov, true) | Kind::Nothing | Kind::Jump => true,
        Kind::Alu(Alu::Mov, false) => !is_context(ins.b),
        Kind::Helper(number) => return behind_helper(&is_context, number, changes),
        _ => !is_context(ins.a) && !is_context(ins.b),
    };
    allowed.then_some(changes)
}

fn behind_helper(is_context: &dyn Fn(Value) -> bool, number: u32, changes: Changes) -> Option<Changes> {
    let passes = |at: u8| is_context(Value::Reg(at));
    let others = (2..=arguments(number).len() as u8).any(passes);
    match Helper::of(number) {
        _ if others => None,
        // The first byte on arrival is that of the frame as long as it did not move.
        Some(Helper::AdjustHead) if passes(1) && !changes.head => Some(Changes { head: true, any: true }),
        Some(Helper::AdjustTail) if passes(1) => Some(Changes { any: true, ..changes }),
        Some(Helper::BuffLen) if passes(1) => Some(changes),
        _ if !arguments(number).is_empty() && passes(1) => None,
        Some(Helper::AdjustHead | Helper::AdjustTail | Helper::BuffLen) => None,
        _ => Some(changes),
    }
}

/// Turns moves of the first byte by a known number of bytes, for which the headroom is long enough, into commands to the card.
pub(super) fn push(function: &mut Function, notes: &[Note], headroom: u32) {
    for (ins, note) in function.ins.iter_mut().zip(notes) {
        if ins.kind != Kind::Helper(Helper::AdjustHead as u32) {
            continue;
        }
        let Known::Is(Value::Const(by)) = note.arguments[1] else { continue };
        let by = by as i32;
        if by < 0 && by.unsigned_abs() <= headroom {
            ins.kind = Kind::Push(by.unsigned_abs());
        }
    }
}
