//! A filter of message numbers that were seen, to detect duplicates. It trusts no number from the network.

use std::collections::VecDeque;

/// The largest `MOST` message numbers that one sender has used. When `MOST` numbers are known, all lower numbers count
/// as seen.
#[derive(Clone, Debug, Default)]
pub struct DuplicateFilter<const MOST: usize> {
    /// The numbers in ascending order.
    numbers: VecDeque<u64>,
}

impl<const MOST: usize> DuplicateFilter<MOST> {
    /// Whether a number has been seen, or is lower than `MOST` known numbers.
    pub fn has(&self, number: u64) -> bool {
        let at = self.numbers.partition_point(|&seen| seen < number);
        self.numbers.get(at) == Some(&number) || (at == 0 && self.numbers.len() == MOST)
    }

    /// Records a number. Returns whether it is new.
    pub fn note(&mut self, number: u64) -> bool {
        if self.has(number) {
            return false;
        }
        let at = self.numbers.partition_point(|&seen| seen < number);
        self.numbers.insert(at, number);
        if self.numbers.len() > MOST {
            self.numbers.pop_front();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn old_numbers_and_those_seen_are_not_new() {
        let mut seen = DuplicateFilter::<3>::default();
        assert_eq!([5, 2, 5, 2, 9].map(|number| seen.note(number)), [true, true, false, false, true]);
        // The filter has 2, 5 and 9. Number 1 is older than all three, and number 7 replaces number 2.
        assert!(!seen.note(1) && seen.note(7) && !seen.note(2) && !seen.has(8));
        assert!(seen.note(6) && !seen.note(5) && !seen.note(9));
    }

    proptest! {
        /// No number is new twice, and numbers in order are all new.
        #[test]
        fn no_number_is_new_twice(numbers in prop::collection::vec(0..40u64, 0..200)) {
            let (mut seen, mut once) = (DuplicateFilter::<8>::default(), BTreeSet::new());
            for &number in &numbers {
                let had = seen.has(number);
                prop_assert_eq!(seen.note(number), !had);
                prop_assert!(had || once.insert(number), "{number} is new twice");
                prop_assert!(seen.has(number) && seen.numbers.len() <= 8);
            }
            let top = numbers.iter().max().map_or(0, |&most| most + 1);
            prop_assert!((top..top + 20).all(|number| seen.note(number)));
        }
    }
}
