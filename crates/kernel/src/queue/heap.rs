//! The standard library's binary heap as the event queue: the reference for tests and benchmarks of the wheel.

use super::{Entry, Events, Key, Place};
use nicety_types::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(crate) struct Heap {
    pub(super) events: Events,
    heap: BinaryHeap<Reverse<Entry>>,
}

impl Heap {
    pub(super) fn new() -> Heap {
        Heap { events: Events::new(), heap: BinaryHeap::new() }
    }

    pub(super) fn push(&mut self, key: Key, data: u64) -> u32 {
        let index = self.events.insert(key, data, Place::Beyond);
        self.heap.push(Reverse(Entry { key, index }));
        index
    }

    pub(super) fn head(&mut self) -> Option<Key> {
        while let Some(&Reverse(Entry { key, index })) = self.heap.peek() {
            if !self.events.is_dead(index) {
                return Some(key);
            }
            self.events.release(index);
            self.heap.pop();
        }
        None
    }

    pub(super) fn next_time(&mut self) -> Option<Time> {
        self.head().map(|key| key.time())
    }

    pub(super) fn comes_after(&mut self, key: Key) -> bool {
        self.head().is_none_or(|head| head > key)
    }

    pub(super) fn pop_head(&mut self) -> Option<(Key, u64)> {
        let Reverse(Entry { key, index }) = self.heap.pop()?;
        Some((key, self.events.take(index)))
    }

    pub(super) fn pop_before(&mut self, limit: Time) -> Option<(Key, u64)> {
        match self.head() {
            Some(key) if key.time() < limit => self.pop_head(),
            _ => None,
        }
    }

    pub(super) fn remove(&mut self, index: u32) {
        self.events.retire(index, Place::Dead);
        // If most entries are cancelled, removes them, so that cancelled timeouts do not accumulate.
        if self.heap.len() > 64 && self.heap.len() > 2 * self.events.live {
            let events = &mut self.events;
            self.heap.retain(|&Reverse(Entry { index, .. })| {
                let dead = events.is_dead(index);
                if dead {
                    events.release(index);
                }
                !dead
            });
        }
    }
}
