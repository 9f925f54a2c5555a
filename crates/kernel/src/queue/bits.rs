//! A set of small numbers that finds its next member in a few instructions.

/// The numbers of a set are below this limit.
pub(super) const SIZE: usize = 64 * 64;

/// A set of numbers below [`SIZE`], searched cyclically.
pub(super) struct Bits {
    words: [u64; 64],
    /// The nonzero words.
    summary: u64,
}

impl Bits {
    pub(super) fn new() -> Bits {
        Bits { words: [0; 64], summary: 0 }
    }

    pub(super) fn insert(&mut self, i: usize) {
        self.words[i / 64] |= 1 << (i % 64);
        self.summary |= 1 << (i / 64);
    }

    pub(super) fn remove(&mut self, i: usize) {
        self.words[i / 64] &= !(1 << (i % 64));
        if self.words[i / 64] == 0 {
            self.summary &= !(1 << (i / 64));
        }
    }

    /// Returns the first member at or after `i`, continuing from zero after the last number.
    pub(super) fn next_from(&self, i: usize) -> Option<usize> {
        let word = i / 64;
        let rest = self.words[word] & (!0 << (i % 64));
        if rest != 0 {
            return Some(word * 64 + rest.trailing_zeros() as usize);
        }
        // `!1 << word` has the bits above `word`, without overflow at the last word.
        let later = self.summary & (!1 << word);
        let candidates = if later != 0 { later } else { self.summary };
        if candidates == 0 {
            return None;
        }
        let word = candidates.trailing_zeros() as usize;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_next_member_is_found_in_circles(
            members in proptest::collection::btree_set(0..SIZE, 0..40),
            removed in proptest::collection::vec(0..SIZE, 0..40),
            from in 0..SIZE,
        ) {
            let mut bits = Bits::new();
            let mut reference: BTreeSet<usize> = members.clone();
            for &i in &members {
                bits.insert(i);
            }
            for i in removed.into_iter().chain(members.iter().copied().step_by(2)) {
                bits.remove(i);
                reference.remove(&i);
            }
            let expected = reference.range(from..).next().or(reference.first()).copied();
            prop_assert_eq!(bits.next_from(from), expected);
        }
    }
}
