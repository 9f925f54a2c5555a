//! Sets of positions as disjoint ranges: bytes that arrived before earlier bytes.

use std::collections::BTreeMap;

/// Maps the first position of each range to the position after its last. No two ranges touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(BTreeMap<i64, i64>);

impl Ranges {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a range, and merges it with the ranges that it touches.
    pub fn insert(&mut self, mut start: i64, mut end: i64) {
        if let Some((&first, &last)) = self.0.range(..=start).next_back()
            && last >= start
        {
            if last >= end {
                return;
            }
            start = first;
        }
        while let Some((&first, &last)) = self.0.range(start..=end).next() {
            end = end.max(last);
            self.0.remove(&first);
        }
        self.0.insert(start, end);
    }

    /// Returns the range that contains a position: its first position, and the position after its last.
    pub fn around(&self, position: i64) -> Option<(i64, i64)> {
        let (&start, &end) = self.0.range(..=position).next_back()?;
        (position < end).then_some((start, end))
    }

    /// Removes the ranges that begin at or before `position`, or at the end of a removed range. Returns the end of the
    /// last removed range, or `position` if it is later.
    pub fn absorb(&mut self, mut position: i64) -> i64 {
        while let Some(entry) = self.0.first_entry().filter(|entry| *entry.key() <= position) {
            position = position.max(entry.remove());
        }
        position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut ranges = Ranges::default();
        for (start, end) in [(10, 20), (30, 40), (50, 60), (20, 25), (28, 30), (12, 15)] {
            ranges.insert(start, end);
        }
        assert_eq!(
            ranges.0.iter().map(|(&a, &b)| (a, b)).collect::<Vec<_>>(),
            [(10, 25), (28, 40), (50, 60)]
        );
        assert_eq!((ranges.around(24), ranges.around(25)), (Some((10, 25)), None));
        ranges.insert(5, 50);
        assert_eq!(ranges.around(59), Some((5, 60)));
        assert_eq!(ranges.absorb(4), 4);
        assert_eq!(ranges.absorb(7), 60);
        assert!(ranges.is_empty());
    }
}
