//! Pairs of counters by key.

/// A key and its two counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub key: u64,
    pub counts: [u64; 2],
}

/// Counters by key: a hash table, and its entries in one piece. A run has mostly the keys of the one before in the same order.
/// So keys stay, and the entry behind the last one is looked at first.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    entries: Vec<Entry>,
    /// For each hash, the index of an entry plus one, or zero.
    places: Box<[u32]>,
    /// The entries that are used, in the order of first use.
    used: Vec<u32>,
    /// The entry used last: loops use the same one again.
    last: usize,
}

/// Places of a new table, a power of two.
const FIRST: usize = 128;

impl Default for Counts {
    fn default() -> Counts {
        Counts { entries: Vec::new(), places: vec![0; FIRST].into(), used: Vec::new(), last: 0 }
    }
}

impl Counts {
    /// Adds to the counters of a key, zeros at first. Returns the index of its entry.
    #[inline]
    pub(crate) fn add(&mut self, key: u64, counts: [u64; 2]) -> usize {
        if self.entries.get(self.last).is_none_or(|entry| entry.key != key) {
            let next = self.last.wrapping_add(1);
            let follows = self.entries.get(next).is_some_and(|entry| entry.key == key);
            self.last = if follows { next } else { self.find(key) };
        }
        let sums = &mut self.entries[self.last].counts;
        if *sums == [0; 2] {
            self.used.push(self.last as u32);
        }
        *sums = [sums[0] + counts[0], sums[1] + counts[1]];
        self.last
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

    /// The entries of all keys, by index.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries since the last [`clear`](Counts::clear), in the order of first use.
    pub(crate) fn used(&self) -> impl Iterator<Item = Entry> {
        self.used.iter().map(|&index| self.entries[index as usize])
    }

    /// Sets all counters to zero.
    pub(crate) fn clear(&mut self) {
        for index in self.used.drain(..) {
            self.entries[index as usize].counts = [0; 2];
        }
        // The entry behind it is the first one.
        self.last = usize::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The table has the sums of a map, in the order of the keys' first use. It also has them after a clear.
        #[test]
        fn counts_are_sums_by_key(
            adds in prop::collection::vec((0u64..200, 1u64..5), 0..600),
            stride in prop::sample::select(vec![1u64, 1 << 32, (1 << 40) + 6]),
        ) {
            let mut counts = Counts::default();
            for round in 0..3 {
                let adds = if round == 2 { &adds[adds.len() / 2..] } else { &adds[..] };
                let (mut sums, mut order) = (BTreeMap::new(), Vec::new());
                for &(key, amount) in adds {
                    let index = counts.add(key * stride, [amount, 1]);
                    prop_assert_eq!(counts.entries()[index].key, key * stride);
                    let sum = sums.entry(key).or_insert_with(|| { order.push(key); [0, 0] });
                    *sum = [sum[0] + amount, sum[1] + 1];
                }
                let expected: Vec<Entry> =
                    order.iter().map(|key| Entry { key: key * stride, counts: sums[key] }).collect();
                prop_assert_eq!(counts.used().collect::<Vec<_>>(), expected);
                counts.clear();
                prop_assert_eq!(counts.used().count(), 0);
            }
        }
    }
}
