//! The patterns broadcast, reduce, barrier and allreduce.

use super::{Program, part};
use std::ops::Range;

/// Returns the parent of a rank in a binomial tree over all ranks, and its children. The child with the largest subtree comes
/// first.
fn tree(rank: u32, ranks: u32) -> (Option<u32>, Vec<u32>) {
    let lowest = if rank == 0 { ranks.next_power_of_two() } else { rank & rank.wrapping_neg() };
    let parent = (rank > 0).then(|| rank - lowest);
    let bits = (0..lowest.trailing_zeros()).rev().map(|bit| u64::from(rank) + (1 << bit));
    (parent, bits.filter(|child| *child < u64::from(ranks)).map(|child| child as u32).collect())
}

pub(crate) fn broadcast(program: &mut Program<'_>) {
    let (parent, children) = tree(program.rank, program.shape.ranks);
    let mut after: Vec<u32> =
        parent.map(|parent| program.recv(program.shape.size, parent, 0)).into_iter().collect();
    for child in children {
        after = vec![program.send(program.shape.size, child, 0, &after)];
    }
}

pub(crate) fn reduce(program: &mut Program<'_>) {
    let (parent, children) = tree(program.rank, program.shape.ranks);
    let mut after = Vec::new();
    // The smallest subtrees finish first.
    for child in children.into_iter().rev() {
        after.push(program.recv(program.shape.size, child, 0));
        after = program.calc(program.shape.compute_ns, &after);
    }
    if let Some(parent) = parent {
        program.send(program.shape.size, parent, 0, &after);
    }
}

pub(crate) fn dissemination(program: &mut Program<'_>) {
    let (rank, ranks, size) = (u64::from(program.rank), u64::from(program.shape.ranks), program.shape.size);
    let mut after = Vec::new();
    let mut distance = 1;
    while distance < ranks {
        program.send(size, ((rank + distance) % ranks) as u32, 0, &after);
        after = vec![program.recv(size, ((rank + ranks - distance) % ranks) as u32, 0)];
        distance *= 2;
    }
}

pub(crate) fn recursive_doubling(program: &mut Program<'_>) {
    let (rank, ranks, size) = (program.rank, program.shape.ranks, program.shape.size);
    let compute = program.shape.compute_ns;
    let group = 1 << ranks.ilog2();
    // `group` is a power of two. A rank from `group` on gives its vector to the rank that is lower by `group`, and gets the sum
    // from it.
    if rank >= group {
        program.send(size, rank - group, 0, &[]);
        program.recv(size, rank - group, 1);
        return;
    }
    let folded = (rank + group < ranks).then_some(rank + group);
    let mut after = Vec::new();
    if let Some(other) = folded {
        let vector = program.recv(size, other, 0);
        after = program.calc(compute, &[vector]);
    }
    let mut distance = 1;
    while distance < group {
        let partner = rank ^ distance;
        let sent = program.send(size, partner, 2, &after);
        let vector = program.recv(size, partner, 2);
        after = program.calc(compute, &[sent, vector]);
        distance *= 2;
    }
    if let Some(other) = folded {
        program.send(size, other, 1, &after);
    }
}

/// Adds a ring allreduce of `size` bytes with this tag. It begins after operation `after`, or in the current part of the pattern.
/// Each addition of a part takes `compute_ns`.
pub(crate) fn allreduce_ring(
    program: &mut Program<'_>,
    size: u64,
    compute_ns: u64,
    tag: u32,
    after: Option<u32>,
) {
    let ranks = program.shape.ranks;
    ring(program, &|number| part(size, ranks, number), 0..2 * (ranks - 1), compute_ns, tag, after);
}

/// Adds steps of a ring. In the first `ranks - 1` steps, parts of a vector are added up. In the other steps, the sums go round to
/// all ranks.
pub(crate) fn ring(
    program: &mut Program<'_>,
    parts: &dyn Fn(u32) -> u64,
    steps: Range<u32>,
    compute_ns: u64,
    tag: u32,
    after: Option<u32>,
) {
    let (rank, ranks) = (program.rank, program.shape.ranks);
    let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    let mut ready: Vec<u32> = after.into_iter().collect();
    for step in steps {
        // In each step a rank passes on the part that it got in the step before.
        let sends = (u64::from(rank) + 2 * u64::from(ranks) - u64::from(step)) % u64::from(ranks);
        let gets = (sends + u64::from(ranks) - 1) % u64::from(ranks);
        program.send(parts(sends as u32), next, tag, &ready);
        let got = program.recv(parts(gets as u32), before, tag);
        let is_reduced = step < ranks - 1;
        ready = program.calc(if is_reduced { compute_ns } else { 0 }, &[got]);
    }
}
