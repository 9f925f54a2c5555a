//! Noise of operating systems: it takes a CPU now and then, and lengthens what the CPU does for calculations and messages.
//!
//! Each CPU of each host has a stream of its own, so that noise does not depend on threads. An operation that finds its CPU in an
//! interval of noise begins at its end; one that meets noise goes on behind it.

use nicety_host::{Intervals, Timeline};
use nicety_kernel::Rng;
use nicety_types::{Duration, NodeId, Time};

/// Noise on the CPUs of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noise {
    /// What it is like.
    pub intervals: Intervals,
    /// The only host that has it; none for all.
    pub rank: Option<u32>,
    /// Of the random streams.
    pub seed: u64,
}

/// The noise of the hosts of a shard, CPU by CPU.
#[derive(Debug)]
pub(super) struct Noises<'n> {
    noise: &'n Noise,
    /// The first host.
    first: u32,
    hosts: Vec<Vec<Timeline>>,
}

impl<'n> Noises<'n> {
    pub(super) fn new(noise: &'n Noise, hosts: std::ops::Range<u32>) -> Noises<'n> {
        Noises { noise, first: hosts.start, hosts: hosts.map(|_| Vec::new()).collect() }
    }

    /// When a CPU is done with so much work that begins now.
    pub(super) fn after(&mut self, host: u32, cpu: u8, now: u64, work: u64) -> u64 {
        if self.noise.rank.is_some_and(|rank| rank != host) {
            return now.saturating_add(work);
        }
        let timelines = &mut self.hosts[(host - self.first) as usize];
        while timelines.len() <= usize::from(cpu) {
            let rng =
                Rng::named(self.noise.seed, NodeId(host), &format!("noise on core {}", timelines.len()));
            timelines.push(self.noise.intervals.timeline(rng));
        }
        let (mut now, mut left) = (Time::from_ps(now), Duration::from_ps(work));
        while !left.is_zero() && now < Time::MAX {
            now = timelines[usize::from(cpu)].work(now, &mut left, u32::MAX, |_, _, _| {});
        }
        now.ps()
    }
}
