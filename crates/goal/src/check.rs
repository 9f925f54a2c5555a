//! Finds operations that depend on each other in a cycle.

use crate::schedule::{Rank, Schedule};

/// A cycle of operations of a rank. Each operation depends on the next one, and the last on the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// The rank.
    pub rank: u32,
    /// The numbers of the operations.
    pub ops: Vec<u32>,
}

impl Cycle {
    /// Describes the cycle for an error.
    pub fn describe(&self, schedule: &Schedule) -> String {
        const MOST: usize = 6;
        let ops = schedule.rank(self.rank).ops;
        let name = |op: u32| named(op, &ops[op as usize]);
        let mut text = format!("rank {}: operations wait for each other: {}", self.rank, name(self.ops[0]));
        for op in self.ops.iter().skip(1).take(MOST) {
            text += &format!(", which waits for {}", name(*op));
        }
        if self.ops.len() > MOST + 1 {
            text += &format!(", and so on for {} more", self.ops.len() - MOST - 1);
        }
        text + &format!(", which waits for operation {}", self.ops[0])
    }
}

/// Describes an operation for an error: its number, its line if it has one, and its text.
pub(crate) fn named(number: u32, op: &crate::schedule::Op) -> String {
    match op.line {
        0 => format!("operation {number} ({op})"),
        line => format!("operation {number} (line {line}: {op})"),
    }
}

/// Returns a cycle of operations in the first rank that has one; `None` if no rank has a cycle.
pub fn find_cycle(schedule: &Schedule) -> Option<Cycle> {
    (0..schedule.ranks()).find_map(|rank| {
        let ops = cycle_of(schedule.rank(rank))?;
        Some(Cycle { rank, ops })
    })
}

/// Calls `visit` with each operation of a rank, after all operations on which it depends. Skips operations in cycles, and
/// operations that depend on these. Returns for each operation the number of unmet dependencies.
pub(crate) fn in_order(rank: Rank<'_>, mut visit: impl FnMut(u32)) -> Vec<u32> {
    let mut left: Vec<u32> = rank.ops.iter().map(|op| op.dependencies).collect();
    let mut free: Vec<u32> = (0..rank.ops.len() as u32).filter(|op| left[*op as usize] == 0).collect();
    while let Some(op) = free.pop() {
        visit(op);
        for dependent in rank.dependents(op as usize) {
            let left = &mut left[dependent.op() as usize];
            *left -= 1;
            if *left == 0 {
                free.push(dependent.op());
            }
        }
    }
    left
}

fn cycle_of(rank: Rank<'_>) -> Option<Vec<u32>> {
    let left = in_order(rank, |_| {});
    let start = left.iter().position(|left| *left > 0)?;
    // Each operation that is left depends on another operation that is left.
    let mut waits_for = vec![u32::MAX; left.len()];
    for first in (0..left.len()).filter(|op| left[*op] > 0) {
        for dependent in rank.dependents(first) {
            waits_for[dependent.op() as usize] = first as u32;
        }
    }
    let mut seen = vec![false; left.len()];
    let mut at = start as u32;
    while !std::mem::replace(&mut seen[at as usize], true) {
        at = waits_for[at as usize];
    }
    let mut ops = vec![at];
    let mut next = waits_for[at as usize];
    while next != at {
        ops.push(next);
        next = waits_for[next as usize];
    }
    Some(ops)
}
