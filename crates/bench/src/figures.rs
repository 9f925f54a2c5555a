//! Statistics of repeated measurements.

use nicety_types::Duration;

/// Statistics of repeated measurements, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub mean: f64,
    pub min: f64,
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl Spread {
    /// Returns the statistics of measurements, divided by `parts`. For example, `parts` is 2 if round trips were measured, and
    /// the figure is half of one.
    ///
    /// # Panics
    /// When there are no measurements.
    pub(super) fn of(measured: impl IntoIterator<Item = Duration>, parts: u64) -> Spread {
        let mut sorted: Vec<Duration> = measured.into_iter().collect();
        assert!(!sorted.is_empty(), "nothing was measured");
        sorted.sort_unstable();
        // Whole picoseconds are divided only once, so that exact figures print exactly.
        let ns = |d: Duration, of: u64| d.ps() as f64 / (1000 * parts * of) as f64;
        let total: Duration = sorted.iter().copied().sum();
        let percentile = |per_mille| ns(nearest_rank(&sorted, per_mille), 1);
        Spread {
            mean: ns(total, sorted.len() as u64),
            min: ns(sorted[0], 1),
            p50: percentile(500),
            p99: percentile(990),
            p999: percentile(999),
            max: ns(sorted[sorted.len() - 1], 1),
        }
    }
}

/// Returns the nearest-rank percentile. It is the smallest sorted value that at least `per_mille` of 1000 values do not exceed.
pub fn nearest_rank<T: Copy>(sorted: &[T], per_mille: usize) -> T {
    sorted[rank(sorted.len(), per_mille)]
}

/// Returns the index of the nearest-rank percentile in this number of sorted values, at least one.
pub fn rank(values: usize, per_mille: usize) -> usize {
    (values * per_mille).div_ceil(1000).max(1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_types::Histogram;
    use proptest::prelude::*;

    #[test]
    fn percentiles_by_hand() {
        // An example of the nearest-rank method: the median of 15, 20, 35, 40, 50 is 35.
        assert_eq!(nearest_rank(&[15, 20, 35, 40, 50], 500), 35);
        assert_eq!(nearest_rank(&[15, 20, 35, 40, 50], 990), 50);
        let thousand: Vec<u32> = (1..=1000).collect();
        assert_eq!([500, 990, 999].map(|p| nearest_rank(&thousand, p)), [500, 990, 999]);
        let two_thousand: Vec<u32> = (1..=2000).collect();
        assert_eq!([500, 990, 999].map(|p| nearest_rank(&two_thousand, p)), [1000, 1980, 1998]);
        assert_eq!([500, 990, 999].map(|p| nearest_rank(&[7], p)), [7; 3]);
        assert_eq!([500, 990, 999].map(|p| nearest_rank(&[7, 8], p)), [7, 8, 8]);
    }

    #[test]
    fn half_a_round_trip() {
        let spread = Spread::of([3, 1, 2].map(Duration::from_ns), 2);
        assert_eq!((spread.mean, spread.min, spread.p50, spread.max), (1.0, 0.5, 1.0, 1.5));
    }

    proptest! {
        #[test]
        fn a_percentile_is_the_smallest_that_enough_do_not_exceed(
            mut values in prop::collection::vec(0u64..50, 1..200), per_mille in 1usize..=1000,
        ) {
            values.sort_unstable();
            let found = nearest_rank(&values, per_mille);
            let up_to = |limit: u64| values.iter().filter(|&&v| v <= limit).count() * 1000;
            prop_assert!(up_to(found) >= per_mille * values.len());
            prop_assert!(found == 0 || up_to(found - 1) < per_mille * values.len());
        }

        #[test]
        fn percentiles_of_histograms_are_those_of_all_values(
            values in prop::collection::vec(0u64..1 << 40, 1..300),
            small in prop::collection::vec(0u64..1000, 0..300),
            per_mille in 1u64..=1000,
        ) {
            let mut all = [values, small].concat();
            let mut histogram = Histogram::default();
            all.iter().for_each(|value| histogram.add(*value));
            all.sort_unstable();
            let exact = nearest_rank(&all, per_mille as usize);
            let found = histogram.percentile(per_mille);
            prop_assert!(found >= exact && found - exact <= exact / 512, "{} {}", found, exact);
            prop_assert_eq!(histogram.max(), all[all.len() - 1]);
            prop_assert_eq!(histogram.count(), all.len() as u64);
            prop_assert_eq!(histogram.sum(), all.iter().map(|value| u128::from(*value)).sum::<u128>());
        }

        #[test]
        fn figures_are_in_order(values in prop::collection::vec(0u64..1_000_000_000, 1..50)) {
            let spread = Spread::of(values.into_iter().map(Duration::from_ps), 1);
            let ordered = [spread.min, spread.p50, spread.p99, spread.p999, spread.max];
            prop_assert!(ordered.is_sorted());
            prop_assert!(spread.min <= spread.mean && spread.mean <= spread.max);
        }
    }
}
