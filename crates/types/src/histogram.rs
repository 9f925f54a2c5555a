//! A histogram: percentiles of any number of values, in constant memory.

use std::cmp::Ordering;

/// Number of bits below a value's highest set bit that select the value's bucket.
const BITS: u32 = 9;
/// Counts values in buckets. Each value below 1024 has its own bucket; larger values are exact to 1 part in 512.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

/// Returns the bucket of a value.
#[inline]
fn bucket(value: u64) -> usize {
    let shift = (64 - value.leading_zeros()).saturating_sub(BITS + 1);
    ((shift as usize) << BITS) + (value >> shift) as usize
}

/// Returns the largest value of a bucket.
fn largest(bucket: usize) -> u64 {
    let shift = (bucket >> BITS).saturating_sub(1) as u32;
    let first = (bucket - ((shift as usize) << BITS)) as u64;
    (((u128::from(first) + 1) << shift) - 1).min(u64::MAX.into()) as u64
}

impl Histogram {
    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let at = bucket(value);
        match self.counts.get_mut(at) {
            Some(count) => *count += 1,
            None => self.first_in(at),
        }
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// Counts a value in a bucket behind all others.
    #[cold]
    fn first_in(&mut self, at: usize) {
        self.counts.resize(at + 1, 0);
        self.counts[at] = 1;
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, other)| *own += other);
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of the values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean of the values; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The largest value; 0 without values.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The nearest-rank percentile: the smallest value that `per_mille` of 1000 values do not exceed. The result is at
    /// most 1 part in 512 above the exact percentile. Returns 0 without values.
    pub fn percentile(&self, per_mille: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut below = 0u128;
        for (at, count) in self.counts.iter().enumerate() {
            below += u128::from(*count);
            if below.cmp(&rank) != Ordering::Less {
                return largest(at).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_together_are_as_one_of_all_values() {
        let of = |values: &[u64]| {
            let mut made = Histogram::default();
            values.iter().for_each(|&value| made.add(value));
            made
        };
        for (a, b) in [([1, 70_000], [5, 900]), ([1, 2], [3, 1 << 40]), ([u64::MAX, 7], [0, 0])] {
            let mut both = of(&a);
            both.merge(&of(&b));
            assert_eq!(both, of(&[a, b].concat()));
            let mut alone = Histogram::default();
            alone.merge(&both);
            assert_eq!(alone, both);
        }
    }

    #[test]
    fn every_value_is_in_its_bucket() {
        for value in (0..5000).chain([1 << 40, (1 << 40) - 1, u64::MAX / 3, u64::MAX]) {
            let at = bucket(value);
            assert!(largest(at) >= value, "{value}");
            assert!(at == 0 || largest(at - 1) < value, "{value}");
            assert!(largest(at) - value <= value / 512, "{value}");
        }
    }
}
