//! Noise of operating systems. It occupies a CPU at intervals, and so lengthens the CPU's work for calculations and messages.
//!
//! Each CPU of each host has its own random stream, so noise does not depend on threads. An operation that would begin during an
//! interval of noise begins at the end of the interval. An operation during which an interval begins is interrupted, and
//! continues after the interval.

use nicety_host::{Intervals, Timeline};
use nicety_kernel::Rng;
use nicety_types::{Duration, NodeId, Time};

/// Noise on the CPUs of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noise {
    /// The intervals during which noise occupies CPUs.
    pub intervals: Intervals,
    /// The only host with noise; `None` if all hosts have it.
    pub rank: Option<u32>,
    /// The seed of the random streams.
    pub seed: u64,
}

/// Maximum number of noise intervals in one operation. Simulating them takes some seconds of real time, and a run cannot be
/// interrupted meanwhile.
const MOST_INTERVALS: u32 = 1 << 27;
/// Number of intervals between two checks for an interrupt.
const MANY_INTERVALS: u32 = 1 << 22;

/// The noise of the hosts in a shard, for each CPU.
#[derive(Debug)]
pub(super) struct Noises<'n> {
    noise: &'n Noise,
    /// Number of intervals since the last check.
    passed: u32,
    /// Maximum number of intervals in one operation.
    most: u32,
    /// The first host of the shard.
    first: u32,
    hosts: Vec<Vec<Timeline>>,
}

impl<'n> Noises<'n> {
    pub(super) fn new(noise: &'n Noise, hosts: std::ops::Range<u32>) -> Noises<'n> {
        Noises {
            noise,
            passed: 0,
            most: MOST_INTERVALS,
            first: hosts.start,
            hosts: hosts.map(|_| Vec::new()).collect(),
        }
    }

    /// Returns whether `MANY_INTERVALS` intervals have passed since it last returned true.
    pub(super) fn were_many(&mut self) -> bool {
        let many = self.passed >= MANY_INTERVALS;
        self.passed = if many { 0 } else { self.passed };
        many
    }

    /// Returns the end of CPU work that begins now. It is the largest time if the work meets too many intervals.
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
        let (mut left, mut intervals) = (Duration::from_ps(work), self.most);
        let end =
            timelines[usize::from(cpu)].work(Time::from_ps(now), &mut left, &mut intervals, |_, _, _| {});
        self.passed = self.passed.saturating_add(self.most - intervals);
        if left.is_zero() { end.ps() } else { u64::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_host::NoiseTrace;

    #[test]
    fn an_operation_that_meets_too_many_intervals_never_ends() {
        let trace = NoiseTrace::parse("0 1\n2 1\n").unwrap();
        let noise = Noise { intervals: Intervals::Recorded(trace.into()), rank: None, seed: 1 };
        let after = |most| {
            let mut noises = Noises { most, ..Noises::new(&noise, 0..1) };
            (noises.after(0, 0, 0, 10_000), noises.passed)
        };
        let (end, passed) = after(MOST_INTERVALS);
        // Noise leaves a third of the CPU time.
        assert!((26_000..=30_000).contains(&end), "{end}");
        assert!((18..=21).contains(&passed), "{passed}");
        assert_eq!(after(passed), (end, passed));
        assert_eq!(after(passed - 1), (u64::MAX, passed - 1));
    }
}
