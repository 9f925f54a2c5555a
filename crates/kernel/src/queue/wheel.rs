//! Timing wheels with sorted buckets.
//!
//! Virtual time is divided into buckets of 2^10 ps, and 2048 buckets make a span. Events of the current span and the next
//! span are in one list per bucket. Later events, up to 4095 spans ahead, are in one list per span. All other events are
//! in a heap. So an event less than 2 us ahead is put into its bucket at once. An event less than 8 ms ahead is put into
//! a span, and later moved into its bucket. A bucket is sorted when its time arrives. The lists are linked through the
//! events themselves. So nothing is allocated, and an event is cancelled in constant time.

use super::bits::{Bits, SIZE};
use super::{Entry, Events, Key, NONE, Place};
use crate::prefetch::prefetch;
use nicety_types::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// log2 of the bucket size in picoseconds.
const BUCKET_BITS: u32 = 10;
/// log2 of the span size in buckets. Half of the near lists belong to one span.
const SPAN_BITS: u32 = (SIZE / 2).ilog2();
const MASK: u64 = SIZE as u64 - 1;
/// Maximum number of noted events of a near list.
const NOTED: usize = 32;
/// Late events are inserted into the current bucket while it has fewer events than this. Later ones go into a heap.
const SHORT: usize = 64;

/// A ring of lists of events.
struct Lists {
    heads: Box<[u32; SIZE]>,
    /// The lists that are not empty.
    used: Bits,
}

impl Lists {
    fn new() -> Lists {
        Lists { heads: Box::new([NONE; SIZE]), used: Bits::new() }
    }

    fn push(&mut self, events: &mut Events, list: usize, index: u32) {
        let head = std::mem::replace(&mut self.heads[list], index);
        events.slots[index as usize].next = head;
        events.slots[index as usize].prev = NONE;
        if head == NONE {
            self.used.insert(list);
        } else {
            events.slots[head as usize].prev = index;
        }
    }

    fn remove(&mut self, events: &mut Events, list: usize, index: u32) {
        let (prev, next) = (events.slots[index as usize].prev, events.slots[index as usize].next);
        if next != NONE {
            events.slots[next as usize].prev = prev;
        }
        if prev != NONE {
            events.slots[prev as usize].next = next;
        } else {
            self.heads[list] = next;
            if next == NONE {
                self.used.remove(list);
            }
        }
    }

    /// Empties a list and returns its head.
    fn take(&mut self, list: usize) -> u32 {
        self.used.remove(list);
        std::mem::replace(&mut self.heads[list], NONE)
    }

    /// Whether all events of a list are after `key`.
    fn all_after(&self, events: &Events, list: usize, key: Key) -> bool {
        let mut index = self.heads[list];
        while index != NONE {
            let event = &events.slots[index as usize];
            if event.key < key {
                return false;
            }
            index = event.next;
        }
        true
    }

    /// Returns the earliest time in a list that is not empty.
    fn earliest(&self, events: &Events, list: usize) -> Time {
        let mut index = self.heads[list];
        let mut earliest = Time::MAX;
        while index != NONE {
            let event = &events.slots[index as usize];
            earliest = earliest.min(event.key.time());
            index = event.next;
        }
        earliest
    }
}

pub(crate) struct Wheel {
    pub(super) events: Events,
    /// The number of the current bucket, counted from the start of time. All events before the end of this bucket are
    /// in `current` or `late`. The near lists hold the later buckets of this span and of the next span.
    bucket: u64,
    /// The events of the current bucket, sorted. The next event is last.
    current: Vec<Entry>,
    /// True from the change to the current bucket until the next call of [`Wheel::coming`].
    turned: bool,
    /// Whether the current bucket had more events than its notes hold.
    crowded: bool,
    late: BinaryHeap<Reverse<Entry>>,
    near: Lists,
    /// The first events of each near list. With these notes, a visit follows no links between events. Empty until the
    /// first call of [`Wheel::coming`].
    notes: Vec<[u32; NOTED]>,
    /// Number of notes of each list. The numbers are in separate memory, so that adding a note does not read other
    /// notes.
    noted: Vec<u8>,
    far: Lists,
    beyond: BinaryHeap<Reverse<Entry>>,
    /// Number of cancelled events in `beyond`.
    beyond_dead: usize,
}

fn bucket_of(time: Time) -> u64 {
    time.ps() >> BUCKET_BITS
}

fn span_of(time: Time) -> u64 {
    time.ps() >> (BUCKET_BITS + SPAN_BITS)
}

impl Wheel {
    pub(super) fn new() -> Wheel {
        Wheel {
            events: Events::new(),
            bucket: 0,
            current: Vec::with_capacity(SHORT),
            turned: false,
            crowded: false,
            late: BinaryHeap::new(),
            near: Lists::new(),
            notes: Vec::new(),
            noted: Vec::new(),
            far: Lists::new(),
            beyond: BinaryHeap::new(),
            beyond_dead: 0,
        }
    }

    pub(super) fn push(&mut self, key: Key, data: u64) -> u32 {
        let index = self.events.insert(key, data, Place::Current);
        let bucket = bucket_of(key.time());
        if bucket <= self.bucket {
            self.push_current(Entry { key, index });
            return index;
        }
        let spans_ahead = (bucket >> SPAN_BITS) - (self.bucket >> SPAN_BITS);
        if spans_ahead <= 1 {
            self.push_near(index, bucket);
        } else if spans_ahead < SIZE as u64 {
            let list = (bucket >> SPAN_BITS) & MASK;
            self.events.slots[index as usize].place = Place::Far(list as u16);
            self.far.push(&mut self.events, list as usize, index);
        } else {
            self.events.slots[index as usize].place = Place::Beyond;
            self.beyond.push(Reverse(Entry { key, index }));
        }
        index
    }

    fn push_near(&mut self, index: u32, bucket: u64) {
        let list = bucket & MASK;
        self.events.slots[index as usize].place = Place::Near(list as u16);
        self.near.push(&mut self.events, list as usize, index);
        if let Some(noted) = self.noted.get_mut(list as usize)
            && let Some(place) = self.notes[list as usize].get_mut(usize::from(*noted))
        {
            *place = index;
            *noted += 1;
        }
    }

    fn push_current(&mut self, entry: Entry) {
        if self.current.len() < SHORT {
            let at = self.current.partition_point(|e| *e > entry);
            self.current.insert(at, entry);
        } else {
            self.late.push(Reverse(entry));
        }
    }

    /// Returns the next event, if it is in the current bucket.
    #[inline]
    pub(super) fn head(&mut self) -> Option<Key> {
        match self.late.is_empty() {
            true => self.current.last().map(|entry| entry.key),
            false => self.head_with_late(),
        }
    }

    /// [`Wheel::head`] with late events, which few buckets have.
    #[inline(never)]
    fn head_with_late(&mut self) -> Option<Key> {
        while let Some(&Reverse(Entry { index, .. })) = self.late.peek() {
            if !self.events.is_dead(index) {
                break;
            }
            self.events.release(index);
            self.late.pop();
        }
        match (self.current.last(), self.late.peek()) {
            (Some(a), Some(Reverse(b))) => Some(a.key.min(b.key)),
            (Some(a), None) => Some(a.key),
            (None, Some(Reverse(b))) => Some(b.key),
            (None, None) => None,
        }
    }

    /// Whether every event is after `key`. May return false without a search if `key` is beyond the next span.
    pub(super) fn comes_after(&mut self, key: Key) -> bool {
        if let Some(head) = self.head() {
            return head > key;
        }
        let bucket = bucket_of(key.time());
        if bucket >> SPAN_BITS > (self.bucket >> SPAN_BITS) + 1 {
            return false;
        }
        let Some(list) = self.near.used.next_from(((self.bucket + 1) & MASK) as usize) else { return true };
        let next = self.bucket + ((list as u64).wrapping_sub(self.bucket) & MASK);
        next > bucket || next == bucket && self.near.all_after(&self.events, list, key)
    }

    /// Takes the event returned by the last [`Wheel::head`].
    #[inline]
    pub(super) fn pop_head(&mut self) -> Option<(Key, u64)> {
        let Entry { key, index } = match self.late.is_empty() {
            true => self.current.pop(),
            false => self.pop_with_late(),
        }?;
        Some((key, self.events.take(index)))
    }

    /// Takes the first of the current and the late events.
    #[inline(never)]
    fn pop_with_late(&mut self) -> Option<Entry> {
        let from_late = match (self.current.last(), self.late.peek()) {
            (Some(a), Some(Reverse(b))) => b < a,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if from_late { self.late.pop().map(|Reverse(entry)| entry) } else { self.current.pop() }
    }

    /// Whether the current bucket has an event that is `places` after the next event.
    pub(super) fn has_ahead(&self, places: usize) -> bool {
        self.current.len() > places
    }

    /// Returns whether the event `places` after the next event in the current bucket is an arrival, and its data.
    pub(super) fn ahead(&self, places: usize) -> Option<(bool, u64)> {
        let at = self.current.len().checked_sub(places + 1)?;
        let Entry { key, index } = self.current[at];
        Some((key.is_arrival(), self.events.slots[index as usize].data))
    }

    /// Visits the noted events of the next nonempty buckets, once per current bucket. Passes whether an event is an
    /// arrival, its data, and the number of its bucket among the nonempty buckets, from 1. Only prefetches the events
    /// of bucket number `buckets`. Returns whether the notes covered all events of the current bucket.
    pub(super) fn coming(&mut self, buckets: usize, visit: impl FnMut(bool, u64, usize)) -> bool {
        if self.notes.is_empty() {
            self.notes.resize(SIZE, [0; NOTED]);
            self.noted.resize(SIZE, 0);
        }
        if std::mem::take(&mut self.turned) {
            self.visit(buckets, visit);
        }
        !self.crowded
    }

    fn visit(&self, buckets: usize, mut visit: impl FnMut(bool, u64, usize)) {
        let mut ahead = 0;
        for place in 1..=buckets {
            let from = self.bucket + ahead + 1;
            let Some(list) = self.near.used.next_from((from & MASK) as usize) else { return };
            let next = (list as u64).wrapping_sub(self.bucket) & MASK;
            if next <= ahead {
                return; // the search has gone once around the ring of lists
            }
            ahead = next;
            for index in &self.notes[list][..usize::from(self.noted[list])] {
                let event = &self.events.slots[*index as usize];
                if place == buckets {
                    prefetch(event);
                } else {
                    visit(event.key.is_arrival(), event.data, place);
                }
            }
        }
    }

    pub(super) fn pop_before(&mut self, limit: Time) -> Option<(Key, u64)> {
        loop {
            match self.head() {
                Some(key) if key.time() < limit => return self.pop_head(),
                Some(_) => return None,
                None if self.advance(limit) => (),
                None => return None,
            }
        }
    }

    /// Advances to the next bucket with events, if the bucket begins before `limit`. Does not advance further, because
    /// messages from other shards may still arrive before that bucket.
    fn advance(&mut self, limit: Time) -> bool {
        let begins_before = |bucket: u64| bucket << BUCKET_BITS < limit.ps();
        let span = self.bucket >> SPAN_BITS;
        if let Some(list) = self.near.used.next_from(((self.bucket + 1) & MASK) as usize) {
            let bucket = self.bucket + ((list as u64).wrapping_sub(self.bucket) & MASK);
            if !begins_before(bucket) {
                return false;
            }
            self.bucket = bucket;
            if bucket >> SPAN_BITS != span {
                self.load(span + 2);
            }
            self.fill_current(list);
            return true;
        }
        let Some(next) = self.next_span() else { return false };
        if !begins_before(next << SPAN_BITS) {
            return false;
        }
        // Goes to the end of the span before `next`, so that all buckets of `next` are ahead.
        self.bucket = (next << SPAN_BITS) - 1;
        self.load(next);
        true
    }

    /// Sorts a bucket into `current`, which is empty.
    fn fill_current(&mut self, list: usize) {
        self.turned = true;
        let mut index = self.near.take(list);
        if let Some(noted) = self.noted.get_mut(list) {
            *noted = 0;
        }
        while index != NONE {
            let event = &mut self.events.slots[index as usize];
            event.place = Place::Current;
            self.current.push(Entry { key: event.key, index });
            index = event.next;
        }
        self.crowded = self.current.len() > NOTED;
        if self.current.len() > 1 {
            self.current.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// Puts the events of `span`, which follows the current span, into their buckets.
    fn load(&mut self, span: u64) {
        let mut index = self.far.take((span & MASK) as usize);
        while index != NONE {
            let event = &self.events.slots[index as usize];
            let (next, bucket) = (event.next, bucket_of(event.key.time()));
            debug_assert_eq!(bucket >> SPAN_BITS, span);
            self.push_near(index, bucket);
            index = next;
        }
        while let Some(&Reverse(Entry { key, index })) = self.beyond.peek() {
            if self.events.is_dead(index) {
                self.events.release(index);
                self.beyond_dead -= 1;
            } else if span_of(key.time()) <= span {
                self.push_near(index, bucket_of(key.time()));
            } else {
                break;
            }
            self.beyond.pop();
        }
    }

    /// Returns the time of the earliest event in `beyond` that is not cancelled.
    fn beyond_time(&mut self) -> Option<Time> {
        while let Some(&Reverse(Entry { key, index })) = self.beyond.peek() {
            if !self.events.is_dead(index) {
                return Some(key.time());
            }
            self.events.release(index);
            self.beyond_dead -= 1;
            self.beyond.pop();
        }
        None
    }

    /// Returns the far list of the next span that has events.
    fn next_far(&self) -> Option<usize> {
        self.far.used.next_from((((self.bucket >> SPAN_BITS) + 1) & MASK) as usize)
    }

    /// Returns the next span with events, when the near wheel is empty.
    fn next_span(&mut self) -> Option<u64> {
        let span = self.bucket >> SPAN_BITS;
        let far = self.next_far().map(|list| span + ((list as u64).wrapping_sub(span) & MASK));
        let beyond = self.beyond_time().map(span_of);
        far.into_iter().chain(beyond).min()
    }

    /// Returns the time of the next event, without advancing.
    pub(super) fn next_time(&mut self) -> Option<Time> {
        if let Some(key) = self.head() {
            return Some(key.time());
        }
        if let Some(list) = self.near.used.next_from(((self.bucket + 1) & MASK) as usize) {
            return Some(self.near.earliest(&self.events, list));
        }
        let far = self.next_far().map(|list| self.far.earliest(&self.events, list));
        far.into_iter().chain(self.beyond_time()).min()
    }

    pub(super) fn remove(&mut self, index: u32) {
        let slot = &self.events.slots[index as usize];
        let (key, place) = (slot.key, slot.place);
        match place {
            Place::Near(list) => self.near.remove(&mut self.events, usize::from(list), index),
            Place::Far(list) => self.far.remove(&mut self.events, usize::from(list), index),
            Place::Current => {
                let entry = Entry { key, index };
                match self.current.binary_search_by(|e| entry.cmp(e)) {
                    Ok(at) => drop(self.current.remove(at)),
                    // The entry stays in the heap of late events until `head` reaches it.
                    Err(_) => return self.events.retire(index, Place::Dead),
                }
            }
            Place::Beyond => {
                self.events.retire(index, Place::Dead);
                self.beyond_dead += 1;
                if self.beyond_dead > 64 && self.beyond_dead > self.beyond.len() / 2 {
                    self.sweep();
                }
                return;
            }
            Place::Dead | Place::Free => unreachable!("an event that is gone has no place in the queue"),
        }
        self.events.take(index);
    }

    /// Removes cancelled events beyond the wheels, so that cancelled timeouts do not accumulate.
    fn sweep(&mut self) {
        let events = &mut self.events;
        self.beyond.retain(|&Reverse(Entry { index, .. })| {
            let dead = events.is_dead(index);
            if dead {
                events.release(index);
            }
            !dead
        });
        self.beyond_dead = 0;
    }
}
