//! Growth of packet times during a run. Packets need more and more of the processors, for example because tables fill up and
//! lists grow. Or they wait longer and longer.
//!
//! The mean of such a run includes its first packets, so it does not predict the next ones.

use nicety::Duration;
use schemars::JsonSchema;
use serde::Serialize;

/// Handler core time that grew during the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Growth")]
pub struct GrowthRow {
    /// Time per packet in the first quarter of the packets.
    pub first_ns: f64,
    /// Time per packet in the last quarter; or in the last packets, after a jump within that quarter.
    pub last_ns: f64,
    /// Time per packet, the mean.
    pub mean_ns: f64,
}

/// Times of packets, in order of arrival, in picoseconds. In order of completion the longest of the last packets would come last. A sum covers a number of packets, which doubles so that the number
/// of sums stays bounded.
#[derive(Default)]
pub(super) struct Series {
    sums: Vec<u64>,
    /// Packets of each complete sum, less one; the current sum, and its packets.
    more_each: u64,
    sum: u64,
    packets: u64,
}

impl Series {
    /// Maximum number of sums. At this number, pairs are merged.
    const MOST: usize = 128;
    /// Minimum number of sums for a result.
    const LEAST: usize = 32;
    /// Threshold of growth that matters and is not chance: relative to the first quarter for each quarter, or relative to the
    /// mean.
    const MATTERS: f64 = 0.05;
    /// Tolerance for a decrease from one quarter to the next, by chance.
    const CHANCE: f64 = 0.02;
    /// Standard errors by which the last quarter must exceed the first one.
    const ERRORS: f64 = 5.0;
    /// Standard errors of a quarter's mean within which its distance from the mean of all is chance.
    const ERRORS_OF_QUARTER: f64 = 4.0;
    /// The number of last sums above all others that is not chance. Of 32 sums in random order it happens once in 4960 times.
    const END: usize = 3;
    /// Factor by which they must exceed the mean of the others.
    const JUMP: f64 = 1.25;

    /// Adds a part of the time of the next packet to complete.
    pub(super) fn add(&mut self, time: Duration) {
        self.sum += time.ps();
    }

    /// Completes a packet.
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

    /// Returns quarters of the packets: means of their sums, with the standard errors; none for too few sums.
    fn quarters(&self) -> Option<[(f64, f64); 4]> {
        if self.sums.len() < Self::LEAST {
            return None;
        }
        let each = self.sums.len() / 4;
        let last_ones = &self.sums[self.sums.len() - 4 * each..];
        let quarters: Vec<(f64, f64)> = last_ones.chunks_exact(each).map(mean_and_error).collect();
        quarters.try_into().ok()
    }

    /// Mean time per packet, in picoseconds: of all packets if quarters differ by chance alone, otherwise of the later half.
    /// None without packets.
    ///
    /// The later half of few packets may have more slow ones than the traffic has.
    pub(super) fn steady_ps(&self) -> Option<f64> {
        let (mean, _) = mean_and_error(&self.sums);
        let by_chance = self.quarters().is_some_and(|quarters| {
            quarters.iter().all(|(quarter, error)| (quarter - mean).abs() <= Self::ERRORS_OF_QUARTER * error)
        });
        let later = &self.sums[if by_chance { 0 } else { self.sums.len() / 2 }..];
        (!later.is_empty()).then(|| mean_and_error(later).0 / (self.more_each + 1) as f64)
    }

    /// Whether packets take longer and longer: each quarter grows by at least half of the even increase, and all by more than chance. A
    /// burst, a temporary queue, a rising rate without waits, and packets of random lengths do not match this.
    pub(super) fn goes_on(&self) -> bool {
        let Some(quarters) = self.quarters() else { return false };
        let [first, .., last] = quarters;
        let even = (last.0 - first.0) / 3.0;
        even >= Self::MATTERS * first.0
            && even >= 1.0
            && last.0 - first.0 >= by_chance(first.1, last.1)
            && quarters.windows(2).all(|two| two[1].0 - two[0].0 >= even / 2.0)
    }

    /// Whether the last `END` sums, or up to a quarter of all, are above all others.
    fn jumps(&self) -> bool {
        (Self::END..=self.sums.len() / 4).any(|count| {
            let (before, end) = self.sums.split_at(self.sums.len() - count);
            let least = end.iter().min().copied().unwrap_or_default();
            Some(&least) > before.iter().max() && least as f64 > mean_and_error(before).0 * Self::JUMP
        })
    }

    /// Returns the growth, if any: from quarter to quarter and by more than chance, or by a jump at the end.
    pub(super) fn growth(&self) -> Option<GrowthRow> {
        let quarters = self.quarters()?;
        let ([first, .., last], (mean, _)) = (quarters, mean_and_error(&self.sums));
        let rises = quarters.windows(2).all(|two| two[1].0 >= two[0].0 * (1.0 - Self::CHANCE));
        let by_quarters =
            rises && last.0 > mean * (1.0 + Self::MATTERS) && last.0 - first.0 >= by_chance(first.1, last.1);
        let (in_the_end, _) = mean_and_error(&self.sums[self.sums.len() - Self::END..]);
        let last = match by_quarters {
            // The quarter's mean, without a jump within it.
            true if in_the_end < last.0 * Self::JUMP || !self.jumps() => last.0,
            false if !self.jumps() => return None,
            _ => in_the_end,
        };
        let of_packet = |sum: f64| sum / (self.more_each + 1) as f64 / 1000.0;
        Some(GrowthRow { first_ns: of_packet(first.0), last_ns: of_packet(last), mean_ns: of_packet(mean) })
    }
}

impl GrowthRow {
    /// The time of packets at the end over the mean.
    pub(super) fn times(&self) -> f64 {
        self.last_ns / self.mean_ns
    }
}

/// Returns the difference of two means with these standard errors that may be chance.
fn by_chance(first: f64, last: f64) -> f64 {
    Series::ERRORS * first.hypot(last)
}

/// Returns the mean of values, and its standard error.
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
            // A table is full after a third of the packets.
            let filled = growth(packets, |number| 1_000 * (100 + (300 * number / packets).min(100))).unwrap();
            assert!((filled.last_ns - 200.0).abs() < 2.0 && filled.times() > 1.08, "{filled:?}");
        }
    }

    #[test]
    fn small_or_random_changes_are_no_growth() {
        for packets in [20, 128, 1_000, 10_000] {
            assert_eq!(growth(packets, |_| 64_000), None);
            // No handler has run.
            assert_eq!(growth(packets, |_| 0), None);
            // Growth below a twentieth, only at the start, falling, and up and down.
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
        // From packet 2048 on each takes 20 us: the last three of 66 sums of 32 have them.
        let full = |number| if number < 2048 { 100_000 + 10 * number } else { 20_000_000 };
        let found = growth(2048 + 96, full).unwrap();
        assert!((found.last_ns - 20_000.0).abs() < 1e-6 && found.first_ns < 110.0, "{found:?}");
        // The same with more such packets.
        let found = growth(2048 + 400, full).unwrap();
        assert!((found.last_ns - 20_000.0).abs() < 1e-6, "{found:?}");
        // A single long packet, and one that ends behind all others, are no jump.
        assert_eq!(growth(2048 + 32, full), None);
        assert_eq!(growth(2048, |number| if number == 2000 { 20_000_000 } else { 100_000 }), None);
        // A small increase at the end does not matter.
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
            // Only at the start.
            assert!(!goes_on(packets, |number| 100 + number.min(20)), "{packets}");
        }
        // Only at the end, and small enough to be chance.
        assert!(!goes_on(1_000, |number| 100 + number.saturating_sub(900)));
        assert!(!goes_on(1_000, |number| 10_000 + number));
        assert!(!goes_on(20, |number| number), "too few");
    }

    #[test]
    fn packets_of_random_lengths_do_not_stay_longer_and_longer() {
        // A twelfth of them takes 24 times as long. The means of four quarters rise by chance once in 24.
        for seed in 0..500 {
            let mut rng = Rng::named(seed, NodeId(0), "stays");
            let mut stays = Series::default();
            for _ in 0..400 {
                stays.add(Duration::from_ps(if rng.below(12) == 0 { 2_300_000 } else { 94_000 }));
                stays.done();
            }
            assert!(!stays.goes_on(), "seed {seed}");
        }
    }

    #[test]
    fn the_later_half_counts_alone_only_beyond_chance() {
        let steady = |packets: u64, time: &mut dyn FnMut(u64) -> u64| {
            let mut times = Series::default();
            for number in 0..packets {
                times.add(Duration::from_ps(time(number)));
                times.done();
            }
            times.steady_ps()
        };
        assert_eq!(steady(0, &mut |_| 1), None);
        // Too few for chance: the later half.
        assert_eq!(steady(4, &mut |number| number), Some(2.5));
        // The first half is faster, and the last packet is not part of a sum.
        assert_eq!(steady(1_000, &mut |number| if number < 496 { 100 } else { 200 }), Some(200.0));
        // One packet in fifty takes 50 times as long. Only packets after the last sum are missing from the mean.
        for seed in 0..50 {
            let mut rng = Rng::named(seed, NodeId(0), "steady");
            let mut all = 0;
            let mean = steady(8_192, &mut |_| {
                let time = if rng.below(50) == 0 { 5_000 } else { 100 };
                all += time;
                time
            });
            assert!((mean.unwrap() / (all as f64 / 8_192.0) - 1.0).abs() < 0.01, "seed {seed}: {mean:?}");
        }
    }

    #[test]
    fn too_few_packets_tell_nothing() {
        assert_eq!(growth(20, |number| 1_000 * number), None);
    }
}
