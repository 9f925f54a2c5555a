//! All-reduce by rings. First a reduce-scatter goes along the ring of each dimension in turn. Then an all-gather goes along the
//! ring of each dimension, in the opposite order.
//!
//! In a reduce-scatter, each of the n ranks in a ring divides its vector into n parts. In each of n - 1 steps it sends one part
//! to the next rank, and adds the part that arrives. At the end each rank has the sum of one part. This part is the vector of the
//! next dimension. (Ring: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69,
//! 2009.)

use super::rig::{Point, Rounds};
use super::shape::Grid;
use super::values;
use nicety::{Buffer, Error, Host, Work};
use nicety_types::{Duration, Gap};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// The state of a rank.
struct Rank {
    host: Host,
    grid: Grid,
    vector: Buffer,
    /// The buffer for the part that arrives and will be added.
    arriving: Buffer,
    /// The number of messages sent so far in this iteration.
    messages: u64,
    /// The number of bytes sent so far in this iteration.
    sent: u64,
}

/// The sum that every rank must have after an iteration. It is computed once for all ranks.
#[derive(Default)]
struct Expected {
    round: Option<u64>,
    sum: Vec<u64>,
}

/// Returns a lower bound of the time of any all-reduce, in nanoseconds. Each node's link must carry 2 (n - 1) / n of the vector's
/// bytes (the same paper, theorem 1).
pub(super) fn lower_bound(ranks: u32, size: u64, link: Gap) -> f64 {
    2.0 * f64::from(ranks - 1) / f64::from(ranks) * size as f64 * link.ps_per_byte() / 1e3
}

/// Gives every rank its program.
pub(super) fn programs(point: &mut Point<'_>) -> Result<(), Error> {
    let expected = Rc::new(RefCell::new(Expected::default()));
    let (seed, size) = (point.seed, point.size);
    for rank in point.ranks() {
        let host = point.cluster.host(rank);
        let first = point.grid.dimensions().next().map_or(1, |dimension| point.grid.size(dimension));
        let longest = (size / values::BYTES).div_ceil(u64::from(first)) * values::BYTES;
        let (vector, arriving) = (host.alloc(size)?, host.alloc(longest)?);
        let (grid, rounds, expected) = (point.grid.clone(), point.rounds.clone(), expected.clone());
        point.cluster.program(rank, move |host| async move {
            let mut own = Rank { host, grid, vector, arriving, messages: 0, sent: 0 };
            let all = rounds.borrow().all();
            for round in 0..all {
                own.iteration(round, seed, &rounds).await?;
                let mut expected = expected.borrow_mut();
                expected.compute(round, seed, &own);
                let place = || format!("the sum on rank {rank} in iteration {round}");
                values::check(&own.vector, &expected.sum, place)?;
            }
            Ok(())
        });
    }
    Ok(())
}

/// Returns the values of a rank's vector before an iteration.
fn vector(seed: u64, rank: u32, round: u64, values: u64) -> impl Iterator<Item = u64> {
    (0..values).map(move |index| values::initial(seed, rank, round, index))
}

impl Expected {
    fn compute(&mut self, round: u64, seed: u64, rank: &Rank) {
        if self.round == Some(round) {
            return;
        }
        self.round = Some(round);
        self.sum = vec![0; rank.values() as usize];
        for rank in 0..rank.grid.ranks() {
            let own = vector(seed, rank, round, self.sum.len() as u64);
            self.sum.iter_mut().zip(own).for_each(|(sum, value)| *sum = sum.wrapping_add(value));
        }
    }
}

impl Rank {
    fn values(&self) -> u64 {
        self.vector.len() / values::BYTES
    }

    async fn iteration(&mut self, round: u64, seed: u64, rounds: &RefCell<Rounds>) -> Result<(), Error> {
        values::write(&self.vector, vector(seed, self.host.rank(), round, self.values()));
        (self.messages, self.sent) = (0, 0);
        self.host.barrier().await;
        let begun = self.host.now();
        let mut part = 0..self.values();
        let mut scattered = Vec::new();
        for dimension in self.grid.clone().dimensions() {
            scattered.push((dimension, part.clone()));
            part = self.reduce_scatter(dimension, part).await?;
        }
        for (dimension, part) in scattered.into_iter().rev() {
            self.all_gather(dimension, part).await?;
        }
        rounds.borrow_mut().ended(round, (begun, self.host.now()), self.sent);
        Ok(())
    }

    /// Sums a part of the vector over a ring. Returns the range for which this rank has the sum.
    async fn reduce_scatter(&mut self, dimension: usize, part: Range<u64>) -> Result<Range<u64>, Error> {
        let (n, place) = (self.grid.size(dimension), self.grid.place(self.host.rank(), dimension));
        for step in 0..n - 1 {
            let [out, coming] = [n - step, n - step - 1].map(|back| piece(&part, n, place + back));
            let own = self.slice(&coming)?;
            let arriving = self.arriving.slice(0, own.len())?;
            self.exchange(dimension, self.slice(&out)?, arriving.clone()).await?;
            if own.is_empty() {
                continue;
            }
            // An addition takes one cycle. Accesses to memory take longer, unless the vector is in the cache.
            let compute = self.host.duration(Duration::ZERO, coming.end - coming.start)?;
            let reads = vec![arriving.addresses(), own.addresses()];
            self.host.work(&Work { compute, reads, writes: vec![own.addresses()] }).await?;
            let sums = values::read(&own).into_iter().zip(values::read(&arriving));
            values::write(&own, sums.map(|(a, b)| a.wrapping_add(b)));
        }
        Ok(piece(&part, n, place + 1))
    }

    /// Sends the pieces of a part to all ranks of a ring. Each rank starts with one piece.
    async fn all_gather(&mut self, dimension: usize, part: Range<u64>) -> Result<(), Error> {
        let (n, place) = (self.grid.size(dimension), self.grid.place(self.host.rank(), dimension));
        for step in 0..n - 1 {
            let [out, coming] = [n - step + 1, n - step].map(|back| piece(&part, n, place + back));
            self.exchange(dimension, self.slice(&out)?, self.slice(&coming)?).await?;
        }
        Ok(())
    }

    /// Sends `out` to the next rank of a ring, and receives into `into` from the previous rank.
    async fn exchange(&mut self, dimension: usize, out: Buffer, into: Buffer) -> Result<(), Error> {
        let (rank, n) = (self.host.rank(), self.grid.size(dimension));
        let (next, before) = (self.grid.on(rank, dimension, 1), self.grid.on(rank, dimension, n - 1));
        let tag = self.messages;
        self.messages += 1;
        self.sent += out.len();
        let posted = match into.is_empty() {
            true => None,
            false => Some(self.host.post_recv(&into, Some(before), Some(tag)).await?),
        };
        let send = match out.is_empty() {
            true => None,
            false => Some(self.host.spawn(move |host| async move { host.send(&out, next, tag).await })),
        };
        if let Some(posted) = posted {
            self.host.received(posted).await?;
        }
        if let Some(send) = send {
            send.join().await?;
        }
        Ok(())
    }

    fn slice(&self, values: &Range<u64>) -> Result<Buffer, Error> {
        self.vector.slice(values.start * values::BYTES, (values.end - values.start) * values::BYTES)
    }
}

/// Returns piece `number` modulo n of the n pieces of a part. The lengths of pieces differ by at most one value.
fn piece(part: &Range<u64>, n: u32, number: u32) -> Range<u64> {
    let (length, n, number) = (part.end - part.start, u64::from(n), u64::from(number % n));
    part.start + length * number / n..part.start + length * (number + 1) / n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_part() {
        assert_eq!(
            [0, 1, 2, 3, 4].map(|number| piece(&(10..21), 3, number)),
            [10..13, 13..17, 17..21, 10..13, 13..17]
        );
        assert_eq!([0, 1, 2].map(|number| piece(&(5..6), 3, number)), [5..5, 5..5, 5..6]);
    }

    #[test]
    fn the_bound_by_hand() {
        // Each of 8 nodes sends 14/8 of 1000 bytes, at 20 ps per byte.
        assert_eq!(lower_bound(8, 1000, Gap::new(20, 1)), 35.0);
        assert_eq!(lower_bound(2, 8, Gap::new(20, 1)), 0.16);
    }
}
