//! One point of a benchmark on a grid: the whole cluster or one part of it, and the times of its iterations.

use super::shape::Grid;
use nicety::{Buffer, Cluster};
use nicety_types::{Duration, Time};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The inputs and results of a point's programs.
pub(super) struct Point<'p> {
    pub(super) cluster: &'p mut Cluster,
    pub(super) grid: &'p Grid,
    pub(super) seed: u64,
    /// Bytes of a face, or of the vector.
    pub(super) size: u64,
    pub(super) rounds: Rc<RefCell<Rounds>>,
    /// The buffers with the results, by rank. The check reads them after the run.
    pub(super) results: BTreeMap<u32, Vec<Buffer>>,
}

impl Point<'_> {
    /// Returns the ranks with programs in this part of the cluster.
    pub(super) fn ranks(&self) -> Vec<u32> {
        (0..self.grid.ranks()).filter(|rank| self.cluster.runs(*rank)).collect()
    }
}

/// The iterations of all ranks.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Rounds {
    pub(super) warmup: u64,
    pub(super) iterations: u64,
    /// For each measured iteration, its begin and end on each rank.
    times: Vec<Vec<(Time, Time)>>,
    /// Maximum bytes that one rank has sent in one iteration.
    pub(super) sent: u64,
}

impl Rounds {
    pub(super) fn new(warmup: u64, iterations: u64) -> Rounds {
        Rounds { warmup, iterations, times: vec![Vec::new(); iterations as usize], sent: 0 }
    }

    /// The number of iterations, including warm-up.
    pub(super) fn all(&self) -> u64 {
        self.warmup + self.iterations
    }

    /// Records the end of an iteration on a rank, with the bytes that the rank sent in it.
    pub(super) fn ended(&mut self, round: u64, (begun, ended): (Time, Time), sent: u64) {
        self.sent = self.sent.max(sent);
        if let Some(round) = round.checked_sub(self.warmup) {
            self.times[round as usize].push((begun, ended));
        }
    }

    /// Adds the iterations of other ranks.
    pub(super) fn add(&mut self, more: Rounds) {
        self.sent = self.sent.max(more.sent);
        self.times.iter_mut().zip(more.times).for_each(|(own, more)| own.extend(more));
    }

    /// Returns the duration of each iteration on each rank.
    pub(super) fn each(&self) -> impl Iterator<Item = Duration> + '_ {
        self.times.iter().flatten().map(|(begun, ended)| ended.since(*begun))
    }

    /// Returns the duration of each iteration, from its begin on the first rank to its end on the last rank.
    pub(super) fn whole(&self) -> impl Iterator<Item = Duration> + '_ {
        self.times.iter().filter_map(|ranks| {
            let begun = ranks.iter().map(|(begun, _)| *begun).min()?;
            Some(ranks.iter().map(|(_, ended)| *ended).max()?.since(begun))
        })
    }
}
