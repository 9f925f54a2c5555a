//! Computes the due times of frames at a rate.

use crate::expression::{Arrivals, Rate};
use nicety_kernel::Rng;
use nicety_types::NodeId;

/// Picoseconds per second.
const SECOND: u128 = 1_000_000_000_000;

/// Computes the due time of each frame at a rate. A unit of work is a frame or a bit.
pub(crate) struct Clock {
    arrivals: Arrivals,
    /// Units of work per second.
    rate: u64,
    /// Whether a unit of work is a frame. Otherwise it is a bit of a frame.
    by_packet: bool,
    /// Units of work in the frames so far.
    units: u128,
    /// For Poisson arrivals: the next frame's due time, and the mean gap between frames, in picoseconds. If `gap` is
    /// `None`, the size of each frame gives the mean gap after it.
    next: Option<u64>,
    gap: Option<u64>,
    /// Number of frames left in the current burst, and the burst's due time.
    burst: (u64, Option<u64>),
    rng: Rng,
}

impl Clock {
    /// Returns the clock for a rate, or `None` for `Wire` and `Recorded`. `bytes` is the mean size of frames, if it is
    /// known.
    pub(crate) fn new(rate: Rate, arrivals: Arrivals, bytes: Option<f64>, seed: u64) -> Option<Clock> {
        let (rate, by_packet) = match rate {
            Rate::Wire | Rate::Recorded => return None,
            Rate::BitsPerSecond(rate) => (rate, false),
            Rate::PacketsPerSecond(rate) => (rate, true),
        };
        let rng = Rng::named(seed, NodeId(0), "traffic arrivals");
        let units = if by_packet { Some(1.0) } else { bytes.map(|bytes| 8.0 * bytes) };
        let gap = units.map(|units| (units * SECOND as f64 / rate as f64) as u64);
        Some(Clock { arrivals, rate, by_packet, units: 0, next: Some(0), gap, burst: (0, None), rng })
    }

    /// Returns the time that the frames so far take at the rate, in picoseconds, at most 2^64 - 1. It includes the gap
    /// after the last frame.
    pub(crate) fn lasts(&self) -> u64 {
        self.time_of(self.units).unwrap_or(u64::MAX)
    }

    /// Returns the time that `units` units of work take at the rate, in picoseconds. `None` if it has more than 64
    /// bits.
    fn time_of(&self, units: u128) -> Option<u64> {
        u64::try_from(units.checked_mul(SECOND)? / u128::from(self.rate)).ok()
    }

    /// Returns the due time of the next frame, which has `bytes` bytes, in picoseconds after the first frame. Call this
    /// method once per frame, in order. `None` if the due time has more than 64 bits.
    pub(crate) fn due(&mut self, bytes: u64) -> Option<u64> {
        let units = if self.by_packet { 1 } else { u128::from(bytes) * 8 };
        let paced = self.time_of(self.units);
        self.units += units;
        match self.arrivals {
            Arrivals::Paced => paced,
            Arrivals::Poisson => {
                // If the mean size is unknown, the frame's size gives the mean gap after it.
                let mean = match self.gap {
                    Some(gap) => gap,
                    None => self.time_of(units).unwrap_or(u64::MAX),
                };
                let due = self.next?;
                self.next = due.checked_add(self.rng.exponential(mean));
                Some(due)
            }
            Arrivals::Bursts(length) => {
                let (left, due) = &mut self.burst;
                if *left == 0 {
                    (*left, *due) = (length, paced);
                }
                *left -= 1;
                *due
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::Sizes;
    use proptest::prelude::*;

    fn all(rate: Rate, arrivals: Arrivals, sizes: &[u64]) -> Vec<u64> {
        let mut clock = Clock::new(rate, arrivals, None, 3).unwrap();
        sizes.iter().map(|&bytes| clock.due(bytes).unwrap()).collect()
    }

    #[test]
    fn frames_are_due_by_their_bits_or_one_by_one() {
        // This rate is a byte per nanosecond.
        let rate = Rate::BitsPerSecond(8_000_000_000);
        assert_eq!(all(rate, Arrivals::Paced, &[64, 100, 64]), [0, 64_000, 164_000]);
        assert_eq!(all(rate, Arrivals::Bursts(2), &[64, 100, 64]), [0, 0, 164_000]);
        let three = Rate::PacketsPerSecond(3);
        let third = 333_333_333_333;
        assert_eq!(all(three, Arrivals::Paced, &[1; 4]), [0, third, 2 * third, 1_000_000_000_000]);
    }

    #[test]
    fn a_frame_that_is_due_behind_all_times_has_none() {
        for arrivals in [Arrivals::Paced, Arrivals::Poisson, Arrivals::Bursts(2)] {
            // At a bit per second, 2.3 million bytes take 18 446 744 s, which are 2^64 ps. A frame has a million bytes.
            let mut clock = Clock::new(Rate::BitsPerSecond(1), arrivals, Some(1e6), 3).unwrap();
            let due: Vec<_> = (0..40).map(|_| clock.due(1_000_000)).collect();
            let last = due.iter().position(Option::is_none).unwrap();
            assert!(due[..last].is_sorted() && due[last..].iter().all(Option::is_none), "{due:?}");
            if arrivals == Arrivals::Paced {
                assert_eq!(due[..last], [0, 8_000_000, 16_000_000].map(|s| Some(s * SECOND as u64)));
            }
            assert_eq!(clock.lasts(), u64::MAX);
        }
    }

    #[test]
    fn frames_last_as_long_as_their_rate_says_however_they_arrive() {
        for arrivals in [Arrivals::Paced, Arrivals::Poisson, Arrivals::Bursts(7)] {
            let mut clock = Clock::new(Rate::BitsPerSecond(8_000_000_000), arrivals, Some(90.0), 3).unwrap();
            for bytes in [64, 100, 64] {
                clock.due(bytes);
            }
            assert_eq!(clock.lasts(), 228_000);
            let mut clock = Clock::new(Rate::PacketsPerSecond(3), arrivals, None, 3).unwrap();
            for _ in 0..4 {
                clock.due(64);
            }
            assert_eq!(clock.lasts(), 1_333_333_333_333);
        }
    }

    #[test]
    fn gaps_of_poisson_arrivals_have_their_mean_and_variance() {
        let due = all(Rate::PacketsPerSecond(1_000_000), Arrivals::Poisson, &[64; 100_001]);
        let exponential = |due: &[u64]| {
            let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            assert!((mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
        };
        exponential(&due);
        // The same holds for frames of different sizes at a rate of bits, after a frame of any size.
        let sizes = Sizes::Weighted(vec![(60, 3), (1500, 1)]);
        assert_eq!((sizes.mean(), Sizes::Range(60, 101).mean()), (420.0, 80.5));
        let rate = Rate::BitsPerSecond(3_360_000_000);
        let mut clock = Clock::new(rate, Arrivals::Poisson, Some(sizes.mean()), 3).unwrap();
        let bytes = |number| if number % 4 == 0 { 1500 } else { 60 };
        exponential(&(0..100_001).map(|number| clock.due(bytes(number)).unwrap()).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn times_never_fall(
            sizes in prop::collection::vec(14u64..9000, 1..60),
            rate in 1_000u64..400_000_000_000,
            by_packet: bool,
            arrivals in prop_oneof![
                Just(Arrivals::Paced), Just(Arrivals::Poisson), (1u64..9).prop_map(Arrivals::Bursts)
            ],
        ) {
            let rate = if by_packet { Rate::PacketsPerSecond(rate) } else { Rate::BitsPerSecond(rate) };
            let due = all(rate, arrivals, &sizes);
            prop_assert!(due.is_sorted() && due[0] == 0);
        }
    }
}
