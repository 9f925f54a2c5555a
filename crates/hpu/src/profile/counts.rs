//! Pairs of counters by key, in the order of first use.

/// A key and its two counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub key: u64,
    pub counts: [u64; 2],
}

/// Counters by key: a hash table, and its entries in one piece, so that a run's few entries are read and cleared
/// quickly.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    entries: Vec<Entry>,
    /// For each hash, the index of an entry plus one, or zero.
    places: Box<[u32]>,
    /// The entry used last: loops use the same one again.
    last: usize,
}

/// Places of a new table, a power of two.
const FIRST: usize = 128;

impl Default for Counts {
    fn default() -> Counts {
        Counts { entries: Vec::new(), places: vec![0; FIRST].into(), last: 0 }
    }
}

impl Counts {
    /// The counters of a key, zeros at first.
    #[inline]
    pub(crate) fn of(&mut self, key: u64) -> &mut [u64; 2] {
        if self.entries.get(self.last).is_none_or(|entry| entry.key != key) {
            self.last = self.find(key);
        }
        &mut self.entries[self.last].counts
    }

    /// Adds to the counters of a key. Returns the index of its entry.
    pub(crate) fn add(&mut self, entry: &Entry) -> usize {
        let index = self.find(entry.key);
        let counts = &mut self.entries[index].counts;
        *counts = [counts[0] + entry.counts[0], counts[1] + entry.counts[1]];
        index
    }

    #[inline]
    fn find(&mut self, key: u64) -> usize {
        let mut place = self.first_place(key);
        loop {
            match self.places[place] {
                0 => return self.insert(key, place),
                index if self.entries[index as usize - 1].key == key => return index as usize - 1,
                _ => place = (place + 1) & (self.places.len() - 1),
            }
        }
    }

    /// Multiplicative hashing: the high bits of a product depend on all bits of the key.
    #[inline]
    fn first_place(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.places.len() - 1)
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, key: u64, place: usize) -> usize {
        self.entries.push(Entry { key, counts: [0; 2] });
        let index = self.entries.len();
        self.places[place] = index as u32;
        if 2 * index > self.places.len() {
            self.grow();
        }
        index - 1
    }

    fn grow(&mut self) {
        self.places = vec![0; 2 * self.places.len()].into();
        for index in 0..self.entries.len() {
            let mut place = self.first_place(self.entries[index].key);
            while self.places[place] != 0 {
                place = (place + 1) & (self.places.len() - 1);
            }
            self.places[place] = index as u32 + 1;
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Forgets all keys.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.places.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The table has the sums of a map, in the order of the keys' first use, also after it has been cleared.
        #[test]
        fn counts_are_sums_by_key(
            adds in prop::collection::vec((0u64..200, 1u64..5), 0..600),
            stride in prop::sample::select(vec![1u64, 1 << 32, (1 << 40) + 6]),
        ) {
            let mut counts = Counts::default();
            for _ in 0..2 {
                let (mut sums, mut order) = (BTreeMap::new(), Vec::new());
                for &(key, amount) in &adds {
                    let pair = counts.of(key * stride);
                    *pair = [pair[0] + amount, pair[1] + 1];
                    let sum = sums.entry(key).or_insert_with(|| { order.push(key); [0, 0] });
                    *sum = [sum[0] + amount, sum[1] + 1];
                }
                let expected: Vec<Entry> =
                    order.iter().map(|key| Entry { key: key * stride, counts: sums[key] }).collect();
                prop_assert_eq!(counts.entries(), &expected[..]);
                counts.clear();
                prop_assert!(counts.entries().is_empty());
            }
        }
    }
}
