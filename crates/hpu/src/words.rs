//! Words of memory with ordered accesses.

/// Bits that tell quickly that a word is not there: one for words in 256 KiB of memory.
const MARKS: u32 = 1 << 16;

/// A set of words by their addresses, multiples of four.
///
/// Cores ask for each access to shared memory, and most words are not in the set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderedWords {
    sorted: Vec<u32>,
    /// No bits before the first word.
    marks: Vec<u64>,
}

impl OrderedWords {
    /// Returns the number of words.
    pub const fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether it has no words.
    pub const fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Adds the word at an address, a multiple of four.
    pub fn insert(&mut self, address: u32) {
        if let Err(at) = self.sorted.binary_search(&address) {
            self.sorted.insert(at, address);
            self.marks.resize(MARKS as usize / 64, 0);
            let (at, bit) = mark(address);
            self.marks[at] |= bit;
        }
    }

    /// Whether it has the word at an address, a multiple of four.
    #[inline]
    pub fn contains(&self, address: u32) -> bool {
        let (at, bit) = mark(address);
        self.marks.get(at).is_some_and(|marks| marks & bit != 0) && self.finds(address)
    }

    #[inline(never)]
    fn finds(&self, address: u32) -> bool {
        self.sorted.binary_search(&address).is_ok()
    }

    /// Returns the first word at or behind an address.
    pub(crate) fn first_from(&self, address: u32) -> Option<u32> {
        self.sorted.get(self.sorted.partition_point(|&word| word < address)).copied()
    }
}

impl FromIterator<u32> for OrderedWords {
    fn from_iter<I: IntoIterator<Item = u32>>(words: I) -> OrderedWords {
        let mut set = OrderedWords::default();
        words.into_iter().for_each(|word| set.insert(word));
        set
    }
}

/// The place and the bit of a word's mark.
const fn mark(address: u32) -> (usize, u64) {
    let number = address / 4 % MARKS;
    (number as usize / 64, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_with_the_same_mark_are_told_apart() {
        let words: OrderedWords = [0x1000, 0x1000 + 4 * MARKS, 8, 0x1000].into_iter().collect();
        assert_eq!(words.len(), 3);
        assert!([8, 0x1000, 0x1000 + 4 * MARKS].iter().all(|&word| words.contains(word)));
        assert!([0, 4, 12, 0x1000 + 8 * MARKS].iter().all(|&word| !words.contains(word)));
        assert_eq!([0, 9, 0xffff_fffc].map(|at| words.first_from(at)), [Some(8), Some(0x1000), None]);
        assert!(!OrderedWords::default().contains(0));
    }

    proptest! {
        #[test]
        fn it_has_the_words_that_were_added(
            added in prop::collection::vec(0u32..1 << 18, 0..40),
            asked in prop::collection::vec(0u32..1 << 18, 40),
        ) {
            let words: OrderedWords = added.iter().map(|word| word * 4).collect();
            for word in added.iter().chain(&asked) {
                prop_assert_eq!(words.contains(word * 4), added.contains(word));
            }
        }
    }
}
