//! A window of sequence numbers that were seen, to detect duplicates. It trusts no number from the network.

use std::collections::BTreeSet;

/// The sequence numbers from one sender to one receiver: a window of `MOST` numbers. Numbers before the window count as
/// seen.
#[derive(Clone, Debug, Default)]
pub struct Window<const MOST: u64> {
    /// The first number of the window. All lower numbers have been seen, or are too old.
    next: u64,
    /// Seen numbers above `next`. The distance from `next` is less than `MOST`.
    ahead: BTreeSet<u64>,
}

impl<const MOST: u64> Window<MOST> {
    /// Records the number with these low 32 bits. Returns whether the number is new.
    pub fn note(&mut self, low: u32) -> bool {
        // The number is the nearest one with these low 32 bits.
        let distance = low.wrapping_sub(self.next as u32);
        if distance.cast_signed() < 0 {
            return false;
        }
        let number = self.next + u64::from(distance);
        if !self.ahead.insert(number) {
            return false;
        }
        if let Some(least) = (number + 1).checked_sub(MOST).filter(|&least| least > self.next) {
            self.next = least;
            self.ahead = self.ahead.split_off(&least);
        }
        while self.ahead.remove(&self.next) {
            self.next += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_before_the_window_and_those_seen_are_not_new() {
        let mut window = Window::<4>::default();
        assert_eq!(
            [0, 0, 2, 1, 2, 1].map(|number| window.note(number)),
            [true, false, true, true, false, false]
        );
        // Number 3 has not arrived. Number 6 is the last number that leaves number 3 in the window.
        assert!(window.note(6) && window.note(3) && !window.note(3));
        assert!(window.note(8) && window.note(5) && !window.note(4) && window.note(7));
        assert_eq!((window.next, window.ahead.len()), (9, 0));
    }

    #[test]
    fn numbers_go_on_after_32_bits() {
        let mut window = Window::<4> { next: (1 << 32) - 1, ahead: BTreeSet::new() };
        let found = [u32::MAX, 1, 0, u32::MAX, 1, 0, 2].map(|number| window.note(number));
        assert_eq!(found, [true, true, true, false, false, false, true]);
        assert_eq!(window.next, (1 << 32) + 3);
    }

    proptest! {
        /// No number is new twice. A number is new once if its distance from the largest earlier number is less than
        /// the window.
        #[test]
        fn a_number_in_the_window_is_new_once(numbers in prop::collection::vec(0..40u32, 0..200)) {
            let (mut window, mut seen, mut top) = (Window::<8>::default(), BTreeSet::new(), 0);
            for number in numbers {
                let new = window.note(number);
                top = top.max(number);
                prop_assert_eq!(new, !seen.contains(&number) && number + 8 > top, "{} below {}", number, top);
                if new {
                    seen.insert(number);
                }
                prop_assert!(window.ahead.len() < 8);
            }
        }
    }
}
