//! Whether packets need more and more of the processors while a run goes on: tables that fill up, lists that grow.
//!
//! The mean of such a run is what its first packets needed, too, and not what the next ones will.

use nicety::Duration;
use schemars::JsonSchema;
use serde::Serialize;

/// Handler processor time that grew while the run went on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Growth")]
pub struct GrowthRow {
    /// Time of a packet in the first quarter of the packets.
    pub first_ns: f64,
    /// The same in the last quarter.
    pub last_ns: f64,
    /// The same over all of them.
    pub mean_ns: f64,
}

/// Handler processor time of packets in the order in which they were done, in picoseconds: sums over equal numbers of packets, which double
/// so that there are never many sums.
#[derive(Default)]
pub(super) struct Costs {
    sums: Vec<u64>,
    /// Packets of each sum, less one; and the one that is being added up, with its packets.
    more_each: u64,
    sum: u64,
    packets: u64,
}

impl Costs {
    /// Most sums: with as many, pairs are put together.
    const MOST: usize = 128;
    /// Fewer tell nothing.
    const LEAST: usize = 32;
    /// Growth of the last quarter over all, as a part of that, below which it does not matter.
    const MATTERS: f64 = 0.05;
    /// What a quarter may have less than the one before and still not be less: what chance does.
    const CHANCE: f64 = 0.02;
    /// Standard errors by which the last quarter has to be above the first one.
    const ERRORS: f64 = 5.0;

    /// A handler has run for so long.
    pub(super) fn ran(&mut self, time: Duration) {
        self.sum += time.ps();
    }

    /// A packet is done.
    pub(super) fn done(&mut self) {
        self.packets += 1;
        if self.packets <= self.more_each {
            return;
        }
        self.sums.push(std::mem::take(&mut self.sum));
        self.packets = 0;
        if self.sums.len() == Self::MOST {
            self.sums = self.sums.chunks_exact(2).map(|two| two[0] + two[1]).collect();
            self.more_each = 2 * self.more_each + 1;
        }
    }

    /// How they grew, if they did: from quarter to quarter, and by more than what chance does.
    pub(super) fn growth(&self) -> Option<GrowthRow> {
        if self.sums.len() < Self::LEAST {
            return None;
        }
        let of_quarter = self.sums.len() / 4;
        let last_ones = &self.sums[self.sums.len() - 4 * of_quarter..];
        let quarters: Vec<(f64, f64)> = last_ones.chunks_exact(of_quarter).map(mean_and_error).collect();
        let [first, .., last] = quarters[..] else { return None };
        let (mean, _) = mean_and_error(&self.sums);
        let rises = quarters.windows(2).all(|two| two[1].0 >= two[0].0 * (1.0 - Self::CHANCE));
        let by_chance = Self::ERRORS * (first.1.powi(2) + last.1.powi(2)).sqrt();
        if !rises || last.0 <= mean * (1.0 + Self::MATTERS) || last.0 - first.0 < by_chance {
            return None;
        }
        let of_packet = |(sum, _): (f64, f64)| sum / (self.more_each + 1) as f64 / 1000.0;
        Some(GrowthRow {
            first_ns: of_packet(first),
            last_ns: of_packet(last),
            mean_ns: of_packet((mean, 0.0)),
        })
    }
}

impl GrowthRow {
    /// How many times as long packets take in the end as in the mean.
    pub(super) fn times(&self) -> f64 {
        self.last_ns / self.mean_ns
    }
}

/// The mean of values, and its standard error.
fn mean_and_error(values: &[u64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<u64>() as f64 / count;
    let squares: f64 = values.iter().map(|value| (*value as f64 - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0) / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_kernel::Rng;
    use nicety_types::NodeId;

    fn growth(packets: u64, mut time: impl FnMut(u64) -> u64) -> Option<GrowthRow> {
        let mut costs = Costs::default();
        for number in 0..packets {
            // Two handlers of a packet.
            let time = time(number);
            costs.ran(Duration::from_ps(time / 3));
            costs.ran(Duration::from_ps(time - time / 3));
            costs.done();
        }
        assert!(costs.sums.len() < Costs::MOST);
        costs.growth()
    }

    #[test]
    fn packets_that_take_longer_and_longer_grow() {
        for packets in [128, 1_000, 65_536, 100_000] {
            let found = growth(packets, |number| 1_000_000 * number / packets).unwrap();
            // 0 to 1 us evenly: quarters of 125, 375, 625 and 875 ns.
            for (is, should) in [(found.first_ns, 125.0), (found.last_ns, 875.0), (found.mean_ns, 500.0)] {
                assert!((is - should).abs() < 0.05 * should + 5.0, "{packets}: {found:?}");
            }
            // A table is full after a third of them.
            let filled = growth(packets, |number| 1_000 * (100 + (300 * number / packets).min(100))).unwrap();
            assert!((filled.last_ns - 200.0).abs() < 2.0 && filled.times() > 1.08, "{filled:?}");
        }
    }

    #[test]
    fn what_does_not_matter_or_is_by_chance_does_not_grow() {
        for packets in [20, 128, 1_000, 10_000] {
            assert_eq!(growth(packets, |_| 64_000), None);
            // No handler has run.
            assert_eq!(growth(packets, |_| 0), None);
            // By less than a twentieth, at the start alone, falling, and up and down.
            assert_eq!(growth(packets, |number| 64_000 + 3_000 * number / packets), None);
            assert_eq!(growth(packets, |number| 64_000 + 1_000 * number.min(5)), None);
            assert_eq!(growth(packets, |number| 64_000 - 30_000 * number / packets), None);
            assert_eq!(growth(packets, |number| 64_000 + 10_000 * (8 * number / packets % 2)), None);
        }
        // One packet in twelve takes 25 times as long.
        for seed in 0..200 {
            let mut rng = Rng::named(seed, NodeId(0), "growth");
            let found = growth(1_000, |_| if rng.below(12) == 0 { 1_500_000 } else { 60_000 });
            assert_eq!(found, None, "seed {seed}");
        }
    }

    #[test]
    fn too_few_packets_tell_nothing() {
        assert_eq!(growth(20, |number| 1_000 * number), None);
    }
}
