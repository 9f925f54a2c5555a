//! A queue of hosts by window, as a radix heap. Windows are taken in ascending order.

/// The queue: pairs of a window and a host.
#[derive(Debug)]
pub(super) struct Radix {
    /// Bucket 0 has the current window. Bucket i + 1 has windows that differ from the current one in bit i, and in no higher bit.
    buckets: Vec<Vec<(u64, u32)>>,
    current: u64,
    length: usize,
}

impl Radix {
    pub(super) fn new() -> Radix {
        Radix { buckets: (0..=64).map(|_| Vec::new()).collect(), current: 0, length: 0 }
    }

    fn bucket(&self, window: u64) -> usize {
        debug_assert!(window >= self.current);
        (64 - (window ^ self.current).leading_zeros()) as usize
    }

    pub(super) fn push(&mut self, window: u64, host: u32) {
        let bucket = self.bucket(window);
        self.buckets[bucket].push((window, host));
        self.length += 1;
    }

    /// Returns the next window, and does not advance to it. So an earlier window may still be pushed.
    pub(super) fn peek(&self) -> Option<u64> {
        let (number, bucket) = self.buckets.iter().enumerate().find(|(_, bucket)| !bucket.is_empty())?;
        match number {
            0 => Some(self.current),
            _ => bucket.iter().map(|(window, _)| *window).min(),
        }
    }

    /// Advances to the next window.
    pub(super) fn next(&mut self) -> Option<u64> {
        if self.length == 0 {
            return None;
        }
        let bucket = self.buckets.iter().position(|bucket| !bucket.is_empty())?;
        if bucket > 0 {
            let moved = std::mem::take(&mut self.buckets[bucket]);
            self.current = moved.iter().map(|(window, _)| *window).min()?;
            for (window, host) in &moved {
                let bucket = self.bucket(*window);
                self.buckets[bucket].push((*window, *host));
            }
            // The bucket's memory is used again.
            self.buckets[bucket] = moved;
            self.buckets[bucket].clear();
        }
        Some(self.current)
    }

    /// Returns the hosts of the current window. Keeps the empty list `empty` in their place.
    pub(super) fn take(&mut self, empty: Vec<(u64, u32)>) -> Vec<(u64, u32)> {
        let taken = std::mem::replace(&mut self.buckets[0], empty);
        self.length -= taken.len();
        taken
    }
}
