//! Named random streams, the same on every machine.

use nicety_types::NodeId;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};

/// A stream of random numbers by xoshiro256++. SplitMix64 seeds it from the run's seed, the node and the stream's name
/// (hashed by FNV-1a). All three algorithms are fixed, so a seed means the same on every machine and in every version.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// Returns the stream of a seed, a node and a name. [`Sim::rng`](crate::Sim::rng) uses the seed of the run.
    pub fn named(seed: u64, node: NodeId, name: &str) -> Rng {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..].copy_from_slice(&node.0.to_le_bytes());
        let hash = bytes.iter().chain(name.as_bytes()).fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Rng(Xoshiro256PlusPlus::seed_from_u64(hash))
    }

    /// Returns a uniform 64-bit number.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniform number from 0 to `bound`, exclusive.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero");
        // Lemire, 'Fast random integer generation in an interval', ACM TOMACS 29(1), 2019.
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Returns a uniform number from 0 to 1, exclusive, a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns true with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Returns an exponentially distributed number with this mean, rounded down. The algorithm uses only comparisons,
    /// so that the result is the same on every machine. Source: von Neumann, 'Various techniques used in connection
    /// with random digits', 1951.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        let mut whole = 0u64;
        loop {
            // A falling run of uniform numbers has odd length with probability 1 - 1/e. The first number of such a run
            // is distributed like the fraction.
            let first = self.next_u64();
            let (mut last, mut odd) = (first, true);
            loop {
                let next = self.next_u64();
                if next >= last {
                    break;
                }
                (last, odd) = (next, !odd);
            }
            if odd {
                let fraction = (u128::from(mean) * u128::from(first)) >> 64;
                return whole.saturating_mul(mean).saturating_add(fraction as u64);
            }
            whole += 1;
        }
    }

    /// Fills a slice with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    /// Shuffles a slice.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng(seed: u64, node: u32, name: &str) -> Rng {
        Rng::named(seed, NodeId(node), name)
    }

    #[test]
    fn a_stream_depends_on_seed_node_and_name_only() {
        let first = |mut rng: Rng| rng.next_u64();
        assert_eq!(first(rng(1, 2, "loss")), first(rng(1, 2, "loss")));
        let all =
            [rng(1, 2, "loss"), rng(2, 2, "loss"), rng(1, 3, "loss"), rng(1, 2, "jitter"), rng(1, 2, "")];
        let mut all: Vec<u64> = all.into_iter().map(first).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 5);
    }

    #[test]
    fn numbers_are_in_their_range_and_spread() {
        let mut rng = rng(7, 0, "range");
        let mut counts = [0u32; 10];
        for _ in 0..10_000 {
            counts[rng.below(10) as usize] += 1;
            assert!((0.0..1.0).contains(&rng.unit()));
        }
        assert!(counts.iter().all(|&n| (850..1150).contains(&n)), "{counts:?}");
        assert_eq!(rng.below(1), 0);
        assert!(rng.below(u64::MAX) < u64::MAX);
        let heads = (0..10_000).filter(|_| rng.chance(0.25)).count();
        assert!((2300..2700).contains(&heads), "{heads}");
        assert!(!rng.chance(0.0) && rng.chance(1.0));
    }

    #[test]
    fn exponential_numbers_have_their_mean_and_median() {
        let mut rng = rng(1, 0, "exponential");
        let mut numbers: Vec<u64> = (0..100_000).map(|_| rng.exponential(1_000_000)).collect();
        numbers.sort_unstable();
        let mean = numbers.iter().sum::<u64>() / 100_000;
        assert!((990_000..1_010_000).contains(&mean), "{mean}");
        // The median is ln 2 times the mean. The 95th percentile is ln 20 times the mean.
        assert!((683_000..703_000).contains(&numbers[50_000]), "{}", numbers[50_000]);
        assert!((2_950_000..3_042_000).contains(&numbers[95_000]), "{}", numbers[95_000]);
    }

    #[test]
    fn exponential_numbers_of_a_tiny_mean_end() {
        let mut rng = rng(2, 0, "exponential");
        assert!((0..1000).all(|_| rng.exponential(1) < 64));
        assert_eq!(rng.exponential(0), 0);
    }

    #[test]
    fn a_shuffle_keeps_what_there_is() {
        let mut rng = rng(7, 0, "shuffle");
        let mut items: Vec<u32> = (0..100).collect();
        rng.shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
        let mut bytes = [0; 64];
        rng.fill(&mut bytes);
        assert!(bytes.iter().any(|&b| b != 0));
    }
}
