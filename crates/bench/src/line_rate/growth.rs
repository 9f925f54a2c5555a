//! Whether packets take longer and longer while a run goes on: they need more and more of the processors, as where tables fill up and lists
//! grow, or they wait longer and longer.
//!
//! The mean of such a run is what its first packets took, too, and not what the next ones will.

use nicety::Duration;
use schemars::JsonSchema;
use serde::Serialize;

/// Handler processor time that grew while the run went on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Growth")]
pub struct GrowthRow {
    /// Time of a packet in the first quarter of the packets.
    pub first_ns: f64,
    /// The same in the last quarter; or, where it has jumped behind that began, in the last packets.
    pub last_ns: f64,
    /// The same over all of them.
    pub mean_ns: f64,
}

/// A time of packets, in the order in which they were done, in picoseconds: sums over equal numbers of packets, which double so that there
/// are never many sums.
#[derive(Default)]
pub(super) struct Series {
    sums: Vec<u64>,
    /// Packets of each sum, less one; and the one that is being added up, with its packets.
    more_each: u64,
    sum: u64,
    packets: u64,
}

impl Series {
    /// Most sums: with as many, pairs are put together.
    const MOST: usize = 128;
    /// Fewer tell nothing.
    const LEAST: usize = 32;
    /// Growth below which it does not matter, or may be chance: as a part of the first quarter from one quarter to the next, or of the mean.
    const MATTERS: f64 = 0.05;
    /// What a quarter may have less than the one before and still not be less: what chance does.
    const CHANCE: f64 = 0.02;
    /// Standard errors by which the last quarter has to be above the first one.
    const ERRORS: f64 = 5.0;
    /// So many last sums above all others are no chance: of 32 in any order they are that once in 4960 times.
    const END: usize = 3;
    /// How far above the mean of these they have to be.
    const JUMP: f64 = 1.25;

    /// A part of the time of the packet that is done next.
    pub(super) fn add(&mut self, time: Duration) {
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

    /// Quarters of the packets: means of their sums, with the standard errors; none of too few.
    fn quarters(&self) -> Option<[(f64, f64); 4]> {
        if self.sums.len() < Self::LEAST {
            return None;
        }
        let each = self.sums.len() / 4;
        let last_ones = &self.sums[self.sums.len() - 4 * each..];
        let quarters: Vec<(f64, f64)> = last_ones.chunks_exact(each).map(mean_and_error).collect();
        quarters.try_into().ok()
    }

    /// Whether packets take longer and longer: from each quarter to the next by half at least of what would be even. A burst, a queue that
    /// comes and goes, and a rate that rises while nothing waits do not do that.
    pub(super) fn goes_on(&self) -> bool {
        let Some(quarters) = self.quarters() else { return false };
        let [first, .., last] = quarters.map(|(mean, _)| mean);
        let even = (last - first) / 3.0;
        even >= Self::MATTERS * first
            && even >= 1.0
            && quarters.windows(2).all(|two| two[1].0 - two[0].0 >= even / 2.0)
    }

    /// Whether so many last sums, or more up to a quarter of all, are above all others.
    fn jumps(&self) -> bool {
        (Self::END..=self.sums.len() / 4).any(|count| {
            let (before, end) = self.sums.split_at(self.sums.len() - count);
            let least = end.iter().min().copied().unwrap_or_default();
            Some(&least) > before.iter().max() && least as f64 > mean_and_error(before).0 * Self::JUMP
        })
    }

    /// How they grew, if they did: from quarter to quarter and by more than what chance does, or in the end.
    pub(super) fn growth(&self) -> Option<GrowthRow> {
        let quarters = self.quarters()?;
        let ([first, .., last], (mean, _)) = (quarters, mean_and_error(&self.sums));
        let rises = quarters.windows(2).all(|two| two[1].0 >= two[0].0 * (1.0 - Self::CHANCE));
        let by_chance = Self::ERRORS * (first.1.powi(2) + last.1.powi(2)).sqrt();
        let by_quarters = rises && last.0 > mean * (1.0 + Self::MATTERS) && last.0 - first.0 >= by_chance;
        let (in_the_end, _) = mean_and_error(&self.sums[self.sums.len() - Self::END..]);
        let last = match by_quarters {
            // Unless it jumped behind the last one began.
            true if in_the_end < last.0 * Self::JUMP || !self.jumps() => last.0,
            false if !self.jumps() => return None,
            _ => in_the_end,
        };
        let of_packet = |sum: f64| sum / (self.more_each + 1) as f64 / 1000.0;
        Some(GrowthRow { first_ns: of_packet(first.0), last_ns: of_packet(last), mean_ns: of_packet(mean) })
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
        let mut costs = Series::default();
        for number in 0..packets {
            // Two handlers of a packet.
            let time = time(number);
            costs.add(Duration::from_ps(time / 3));
            costs.add(Duration::from_ps(time - time / 3));
            costs.done();
        }
        assert!(costs.sums.len() < Series::MOST);
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
    fn a_table_that_is_full_near_the_end_jumps() {
        // From packet 2048 on each takes 20 us: of 66 sums of 32 the last three have them.
        let full = |number| if number < 2048 { 100_000 + 10 * number } else { 20_000_000 };
        let found = growth(2048 + 96, full).unwrap();
        assert!((found.last_ns - 20_000.0).abs() < 1e-6 && found.first_ns < 110.0, "{found:?}");
        // Likewise if more of them have.
        let found = growth(2048 + 400, full).unwrap();
        assert!((found.last_ns - 20_000.0).abs() < 1e-6, "{found:?}");
        // A single long packet, and one that ends behind all others, are no jump.
        assert_eq!(growth(2048 + 32, full), None);
        assert_eq!(growth(2048, |number| if number == 2000 { 20_000_000 } else { 100_000 }), None);
        // A little more in the end does not matter.
        assert_eq!(growth(2048, |number| if number < 1900 { 100_000 } else { 120_000 }), None);
    }

    #[test]
    fn packets_stay_longer_from_the_first_to_the_last() {
        let goes_on = |packets: u64, stayed: fn(u64) -> u64| {
            let mut stays = Series::default();
            for number in 0..packets {
                stays.add(Duration::from_ps(stayed(number)));
                stays.done();
            }
            stays.goes_on()
        };
        for packets in [100, 255, 256, 257, 5_000, 1_000_000] {
            assert!(goes_on(packets, |number| 100 + number), "{packets}");
            assert!(!goes_on(packets, |number| 100 + number % 7), "{packets}");
            // At the start alone.
            assert!(!goes_on(packets, |number| 100 + number.min(20)), "{packets}");
        }
        // At the end alone, and so little that it may be chance.
        assert!(!goes_on(1_000, |number| 100 + number.saturating_sub(900)));
        assert!(!goes_on(1_000, |number| 10_000 + number));
        assert!(!goes_on(20, |number| number), "too few");
    }

    #[test]
    fn too_few_packets_tell_nothing() {
        assert_eq!(growth(20, |number| 1_000 * number), None);
    }
}
