//! Seen sequence numbers, to detect duplicates. The network is not trusted.

use std::collections::BTreeSet;

/// The sequence numbers of one sender to one receiver: a window of `MOST` numbers. Numbers before it count as seen.
#[derive(Clone, Debug, Default)]
pub struct Window<const MOST: u64> {
    /// All lower numbers have been seen, or are too old.
    next: u64,
    /// Seen numbers above `next`, less than `MOST` away.
    ahead: BTreeSet<u64>,
}

impl<const MOST: u64> Window<MOST> {
    /// Records a number with these low 32 bits. Returns whether it is new.
    pub fn note(&mut self, low: u32) -> bool {
        // The nearest number with these bits.
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
        // 3 has not arrived. 6 is the last number with 3 in the window.
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
        /// No number is new twice. A number is new once if fewer than the window are between it and the largest one
        /// before.
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
