//! Noise of operating systems: it takes a CPU at intervals, and lengthens the CPU's work for calculations and messages.
//!
//! Each CPU of each host has a stream of its own, so noise does not depend on threads. An operation that begins in an interval of noise is
//! delayed to its end. An operation that meets an interval is interrupted, and continues after it.

use nicety_host::{Intervals, Timeline};
use nicety_kernel::Rng;
use nicety_types::{Duration, NodeId, Time};

/// Noise on the CPUs of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noise {
    /// The intervals of noise.
    pub intervals: Intervals,
    /// The only host that has it; none for all.
    pub rank: Option<u32>,
    /// The seed of the random streams.
    pub seed: u64,
}

/// The most intervals of noise in one operation: they take some seconds to go through, and a run cannot be interrupted meanwhile.
const MOST_INTERVALS: u32 = 1 << 27;
/// Intervals between two checks for an interrupt.
const MANY_INTERVALS: u32 = 1 << 22;

/// The noise of the hosts of a shard, CPU by CPU.
#[derive(Debug)]
pub(super) struct Noises<'n> {
    noise: &'n Noise,
    /// Intervals since the last check.
    passed: u32,
    /// The most intervals in one operation.
    most: u32,
    /// The first host.
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

    /// Returns whether many intervals have passed since the last call.
    pub(super) fn were_many(&mut self) -> bool {
        let many = self.passed >= MANY_INTERVALS;
        self.passed = if many { 0 } else { self.passed };
        many
    }

    /// Returns the end of CPU work that begins now; beyond the largest time if it meets too many intervals.
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
        // Noise leaves a third of the time.
        assert!((26_000..=30_000).contains(&end), "{end}");
        assert!((18..=21).contains(&passed), "{passed}");
        assert_eq!(after(passed), (end, passed));
        assert_eq!(after(passed - 1), (u64::MAX, passed - 1));
    }
}
