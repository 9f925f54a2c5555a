//! Exchange patterns: all to all, all to one, one to all, neighbours in a grid, and a pipeline.

use super::Program;

pub(super) fn pairwise(program: &mut Program<'_>) {
    let (rank, ranks, size) = (u64::from(program.rank), u64::from(program.shape.ranks), program.shape.size);
    let mut after = Vec::new();
    for step in 1..ranks {
        let sent = program.send(size, ((rank + step) % ranks) as u32, 0, &after);
        let got = program.recv(size, ((rank + ranks - step) % ranks) as u32, 0);
        after = vec![sent, got];
    }
}

/// Exchanges messages with all other ranks at once. `sizes` returns the bytes to and from each rank.
pub(crate) fn linear(program: &mut Program<'_>, sizes: &dyn Fn(u32) -> (u64, u64), tag: u32) {
    let (rank, ranks) = (u64::from(program.rank), u64::from(program.shape.ranks));
    let others = (1..ranks).map(|step| ((rank + step) % ranks) as u32);
    for other in others.clone() {
        program.recv(sizes(other).1, other, tag);
    }
    for other in others {
        program.send(sizes(other).0, other, tag, &[]);
    }
}

/// Each rank sends to the root. `sizes` returns the bytes of each rank.
pub(crate) fn gather(program: &mut Program<'_>, sizes: &dyn Fn(u32) -> u64) {
    if program.rank > 0 {
        program.send(sizes(program.rank), 0, 0, &[]);
        return;
    }
    for from in 1..program.shape.ranks {
        program.recv(sizes(from), from, 0);
    }
}

/// The root sends to each rank. `sizes` returns the bytes for each rank.
pub(crate) fn scatter(program: &mut Program<'_>, sizes: &dyn Fn(u32) -> u64) {
    if program.rank > 0 {
        program.recv(sizes(program.rank), 0, 0);
        return;
    }
    for to in 1..program.shape.ranks {
        program.send(sizes(to), to, 0, &[]);
    }
}

pub(crate) fn pipeline(program: &mut Program<'_>) {
    let (rank, size) = (program.rank, program.shape.size);
    let got: Vec<u32> = rank.checked_sub(1).map(|from| program.recv(size, from, 0)).into_iter().collect();
    let done = program.calc(program.shape.compute_ns, &got);
    if rank + 1 < program.shape.ranks {
        program.send(size, rank + 1, 0, &done);
    }
}

/// A grid of ranks in two or three dimensions that are as equal as possible. Consecutive ranks are neighbours in the last
/// dimension.
pub(super) struct Grid(Vec<u32>);

impl Grid {
    pub(super) fn of(ranks: u32, dimensions: u32) -> Grid {
        let mut lengths = Vec::new();
        let mut left = ranks;
        for dimension in (2..=dimensions).rev() {
            let most = f64::from(left).powf(1.0 / f64::from(dimension)).round() as u32;
            let length = (1..=most.max(1)).rev().find(|length| left.is_multiple_of(*length)).unwrap_or(1);
            lengths.push(length);
            left /= length;
        }
        lengths.push(left);
        Grid(lengths)
    }

    /// Returns the neighbours of a rank. Each has the number of its direction: twice the dimension, plus one for the upper
    /// neighbour.
    fn neighbours(&self, rank: u32) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let mut stride = 1;
        for (dimension, length) in (0..).zip(&self.0) {
            let at = rank / stride % length;
            if at > 0 {
                found.push((rank - stride, 2 * dimension));
            }
            if at + 1 < *length {
                found.push((rank + stride, 2 * dimension + 1));
            }
            stride *= length;
        }
        found
    }
}

pub(super) fn halo(program: &mut Program<'_>, grid: &Grid) {
    let size = program.shape.size;
    let neighbours = grid.neighbours(program.rank);
    for (other, direction) in &neighbours {
        // The neighbour sends in the opposite direction.
        program.recv(size, *other, direction ^ 1);
    }
    let done = program.calc(program.shape.compute_ns, &[]);
    for (other, direction) in neighbours {
        program.send(size, other, direction, &done);
    }
}
