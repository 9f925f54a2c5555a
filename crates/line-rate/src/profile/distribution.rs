//! Values of runs, most of them small, for percentiles.

/// Values below it are counted.
const SMALL: u64 = 1 << 10;

/// Values: counters of the small ones, and the others.
#[derive(Clone, Debug, Default)]
pub(super) struct Distribution {
    small: Vec<u32>,
    large: Vec<u64>,
    /// Number of small values.
    counted: usize,
}

impl Distribution {
    pub(super) fn add(&mut self, value: u64) {
        if value >= SMALL {
            self.large.push(value);
            return;
        }
        let value = value as usize;
        if value >= self.small.len() {
            self.small.resize((value + 1).next_power_of_two(), 0);
        }
        self.small[value] += 1;
        self.counted += 1;
    }

    /// Number of values.
    pub(super) const fn len(&self) -> usize {
        self.counted + self.large.len()
    }

    /// Returns the value at `index` in ascending order. With zeros there are `all` values.
    pub(super) fn nth(&mut self, all: usize, index: usize) -> u64 {
        let Some(index) = index.checked_sub(all - self.len()) else { return 0 };
        if let Some(index) = index.checked_sub(self.counted) {
            return *self.large.select_nth_unstable(index).1;
        }
        let mut below = 0;
        let reaches = |&count: &u32| {
            below += count as usize;
            below > index
        };
        self.small.iter().position(reaches).unwrap_or_default() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each value is that of the sorted list, with zeros at its begin.
        #[test]
        fn values_are_those_of_the_sorted_list(
            values in prop::collection::vec(prop_oneof![0u64..5, 1000u64..1050, any::<u64>()], 0..200),
            zeros in 0usize..50,
        ) {
            let mut distribution = Distribution::default();
            values.iter().for_each(|&value| distribution.add(value));
            let mut sorted = values;
            sorted.resize(sorted.len() + zeros, 0);
            sorted.sort_unstable();
            for (index, value) in sorted.iter().enumerate() {
                prop_assert_eq!(distribution.nth(sorted.len(), index), *value);
            }
        }
    }
}
