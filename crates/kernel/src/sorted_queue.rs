//! A sorted queue of few values, stored in place.

use crate::prefetch::prefetch;
use std::collections::VecDeque;

/// A queue sorted by value, for values that arrive nearly in order. Up to `N` values are stored inside the queue
/// object. If there are more, all values are in separate memory.
#[derive(Debug)]
pub struct SortedQueue<T, const N: usize> {
    near: [T; N],
    /// Number of values in `near`.
    len: u8,
    /// All values, from the insertion that overflows `near` until the queue is empty.
    far: VecDeque<T>,
}

impl<T: Copy + Default + Ord, const N: usize> SortedQueue<T, N> {
    /// An empty queue.
    pub fn new() -> SortedQueue<T, N> {
        const { assert!(N > 0 && N < 256) };
        SortedQueue { near: [T::default(); N], len: 0, far: VecDeque::new() }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        usize::from(self.len) + self.far.len()
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The smallest value, or `None` if the queue is empty.
    pub fn first(&self) -> Option<T> {
        if self.len > 0 { Some(self.near[0]) } else { self.far.front().copied() }
    }

    /// Adds a value.
    pub fn insert(&mut self, value: T) {
        let len = usize::from(self.len);
        if len < N && self.far.is_empty() {
            let larger = self.near[..len].iter().rev().take_while(|other| **other > value).count();
            self.near.copy_within(len - larger..len, len - larger + 1);
            self.near[len - larger] = value;
            self.len += 1;
        } else {
            self.far.extend(&self.near[..len]);
            self.len = 0;
            let larger = self.far.iter().rev().take_while(|other| **other > value).count();
            self.far.insert(self.far.len() - larger, value);
        }
    }

    /// Removes the smallest value repeatedly, as long as `goes` returns true for it. Returns the number of removed
    /// values.
    pub fn take_while(&mut self, goes: impl Fn(T) -> bool) -> usize {
        let (len, before) = (usize::from(self.len), self.far.len());
        let taken = self.near[..len].iter().take_while(|first| goes(**first)).count();
        if taken > 0 {
            self.near.copy_within(taken..len, 0);
            self.len -= taken as u8;
        }
        while self.far.front().is_some_and(|first| goes(*first)) {
            self.far.pop_front();
        }
        taken + before - self.far.len()
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.take_while(|_| true);
    }

    /// Prefetches the memory of the smallest and the largest value, if the values are in separate memory.
    pub fn prefetch(&self) {
        for value in self.far.front().iter().chain(&self.far.back()) {
            prefetch(*value);
        }
    }
}

impl<T: Copy + Default + Ord, const N: usize> Default for SortedQueue<T, N> {
    fn default() -> SortedQueue<T, N> {
        SortedQueue::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_sorted_queue(steps in proptest::collection::vec((0u64..40, 0usize..4), 0..60)) {
            let mut queue: SortedQueue<(u64, usize), 3> = SortedQueue::new();
            let mut reference: Vec<(u64, usize)> = Vec::new();
            for (number, (value, take)) in steps.into_iter().enumerate() {
                queue.insert((value, number));
                reference.push((value, number));
                reference.sort_unstable();
                prop_assert_eq!(queue.first(), reference.first().copied());
                if take == 0 {
                    let taken = reference.iter().take_while(|first| first.0 < value).count();
                    prop_assert_eq!(queue.take_while(|first| first.0 < value), taken);
                    reference.drain(..taken);
                }
                prop_assert_eq!((queue.len(), queue.is_empty()), (reference.len(), reference.is_empty()));
            }
            queue.clear();
            prop_assert_eq!(queue.first(), None);
        }
    }
}
