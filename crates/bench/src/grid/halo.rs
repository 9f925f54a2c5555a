//! Halo exchange. Every rank has a cell at each of its faces. The next value of a cell depends on two adjacent cells, and one of
//! these is on another rank.
//!
//! So each dimension of the grid is a ring of cells, with two cells of each rank. A cell is a column of values with the length of
//! a face. In an iteration, each value becomes the sum of itself and the same values in both adjacent cells.

use super::rig::{Point, Rounds};
use super::shape::Grid;
use super::values;
use nicety::{Buffer, Error, Host};
use std::cell::RefCell;
use std::rc::Rc;

/// The faces of a rank in one dimension.
const FACES: usize = 2;

/// A face of a rank.
#[derive(Clone)]
struct Face {
    /// The rank on the other side of the face.
    peer: u32,
    /// The number of the face on its rank. The opposite face has the number before or after it.
    number: usize,
    /// The cell at the face.
    cell: Buffer,
    /// A copy of the cell on the other rank.
    halo: Buffer,
}

/// Returns the number of faces of a rank. Each face has a neighbour. If a dimension has two ranks, the other rank is the
/// neighbour at both faces.
pub(super) fn faces(grid: &Grid) -> u64 {
    (FACES * grid.dimensions().count()) as u64
}

/// Gives every rank its program.
pub(super) fn programs(point: &mut Point<'_>) -> Result<(), Error> {
    let grid = point.grid;
    for rank in point.ranks() {
        let host = point.cluster.host(rank);
        let mut mine = Vec::new();
        for dimension in grid.dimensions() {
            for side in 0..FACES {
                let steps = if side == 0 { grid.size(dimension) - 1 } else { 1 };
                let (cell, halo) = (host.alloc(point.size)?, host.alloc(point.size)?);
                let number = mine.len();
                values::write(&cell, column(point.seed, rank, number, point.size));
                mine.push(Face { peer: grid.on(rank, dimension, steps), number, cell, halo });
            }
        }
        point.results.insert(rank, mine.iter().map(|face| face.cell.clone()).collect());
        let rounds = point.rounds.clone();
        point.cluster.program(rank, move |host| run(host, mine, rounds));
    }
    Ok(())
}

/// Returns the initial cell at a face.
fn column(seed: u64, rank: u32, face: usize, size: u64) -> impl Iterator<Item = u64> {
    (0..size / values::BYTES).map(move |index| values::initial(seed, rank, face as u64, index))
}

async fn run(host: Host, faces: Vec<Face>, rounds: Rc<RefCell<Rounds>>) -> Result<(), Error> {
    host.barrier().await;
    let all = rounds.borrow().all();
    for round in 0..all {
        let begun = host.now();
        let mut posted = Vec::with_capacity(faces.len());
        for face in &faces {
            let opposite = face.number ^ 1;
            posted.push(host.post_recv(&face.halo, Some(face.peer), Some(tag(round, opposite))).await?);
        }
        let send = |Face { cell, peer, number, .. }: Face| {
            host.spawn(move |host| async move { host.send(&cell, peer, tag(round, number)).await })
        };
        let sends: Vec<_> = faces.iter().cloned().map(send).collect();
        for receive in posted {
            host.received(receive).await?;
        }
        for send in sends {
            send.join().await?;
        }
        for pair in faces.chunks_exact(FACES) {
            let [low, high, before, behind] =
                [&pair[0].cell, &pair[1].cell, &pair[0].halo, &pair[1].halo].map(values::read);
            values::write(&pair[0].cell, sums(&before, &low, &high));
            values::write(&pair[1].cell, sums(&low, &high, &behind));
        }
        let sent = faces.iter().map(|face| face.cell.len()).sum();
        rounds.borrow_mut().ended(round, (begun, host.now()), sent);
    }
    Ok(())
}

/// Returns the tag of a face's message in an iteration.
fn tag(round: u64, face: usize) -> u64 {
    round * 6 + face as u64
}

fn sums<'v>(a: &'v [u64], b: &'v [u64], c: &'v [u64]) -> impl Iterator<Item = u64> + 'v {
    a.iter().zip(b).zip(c).map(|((a, b), c)| a.wrapping_add(*b).wrapping_add(*c))
}

/// Compares the cells of the ranks in this part of the cluster with a sequential reference computation of the rings.
pub(super) fn check(point: &Point<'_>) -> Result<(), Error> {
    let (grid, results, all) = (point.grid, &point.results, point.rounds.borrow().all());
    for (nth, dimension) in grid.dimensions().enumerate() {
        let firsts = (0..grid.ranks()).filter(|&rank| grid.place(rank, dimension) == 0);
        for first in firsts {
            let places: Vec<(u32, usize)> = grid
                .ring(first, dimension)
                .flat_map(|rank| [(rank, FACES * nth), (rank, FACES * nth + 1)])
                .collect();
            if !places.iter().any(|(rank, _)| results.contains_key(rank)) {
                continue;
            }
            let initial =
                |&(rank, face): &(u32, usize)| column(point.seed, rank, face, point.size).collect::<Vec<_>>();
            let mut ring: Vec<Vec<u64>> = places.iter().map(initial).collect();
            for _ in 0..all {
                let cells = ring.len();
                let next = |at: usize| {
                    sums(&ring[(at + cells - 1) % cells], &ring[at], &ring[(at + 1) % cells]).collect()
                };
                ring = (0..cells).map(next).collect();
            }
            for ((rank, face), expected) in places.into_iter().zip(ring) {
                let place = || {
                    let side = ["low", "high"][face % FACES];
                    let axis = ["x", "y", "z"][dimension];
                    format!("the cell of rank {rank} at its {side} face of {axis}, after {all} iterations,")
                };
                if let Some(faces) = results.get(&rank) {
                    values::check(&faces[face], &expected, place)?;
                }
            }
        }
    }
    Ok(())
}
