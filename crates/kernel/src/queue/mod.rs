//! The event queue: events in the same order in every run of a model.
//!
//! Keys are unique, so the order of events is total, and no choice inside a queue can change a result. [`Wheel`] is the
//! queue of every run. [`Heap`], the standard library's heap, is the reference for its tests and benchmarks.

mod bits;
mod heap;
mod wheel;

use heap::Heap;
use nicety_types::{LinkId, NodeId, Time};
use wheel::Wheel;

/// An index that refers to no event, such as the end of a list.
const NONE: u32 = u32::MAX;
/// The `count` of a slot that holds no future event.
const GONE: u64 = u64::MAX;

/// The place of an event in the order: time, node, class, source, count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    time: Time,
    /// Node, class and link in one number: 32 bits, 1 bit, 31 bits.
    rank: u64,
    count: u64,
}

impl Key {
    /// The arrival of the `count`th message of a link at a node: class 0.
    pub(crate) fn arrival(time: Time, node: NodeId, link: LinkId, count: u64) -> Key {
        debug_assert!(link.0 < 1 << 31);
        Key { time, rank: u64::from(node.0) << 32 | u64::from(link.0), count }
    }

    /// An event of the node's own: class 1.
    pub(crate) fn own(time: Time, node: NodeId, count: u64) -> Key {
        Key { time, rank: u64::from(node.0) << 32 | 1 << 31, count }
    }

    pub(crate) fn time(&self) -> Time {
        self.time
    }

    pub(crate) fn node(&self) -> NodeId {
        NodeId((self.rank >> 32) as u32)
    }

    /// Whether this is the key of `event`.
    pub(crate) fn is_of(&self, event: EventRef) -> bool {
        !self.is_arrival() && self.count == event.count
    }

    pub(crate) fn is_arrival(&self) -> bool {
        self.rank & 1 << 31 == 0
    }
}

/// A reference to an event in the queue. The count shows whether the event has already happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventRef {
    index: u32,
    count: u64,
}

/// The place of an event in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In a bucket list of the wheel.
    Near(u16),
    /// In a span list of the wheel.
    Far(u16),
    /// In the heap of events beyond the wheel's range.
    Beyond,
    /// In the bucket that is being emptied.
    Current,
    /// Cancelled, but one of the heaps still refers to it.
    Dead,
    Free,
}

/// An event in a queue, in a reusable slot.
struct Event {
    key: Key,
    data: u64,
    next: u32,
    prev: u32,
    place: Place,
}

/// Events by index. Slots are reused, so that a run in steady state allocates nothing.
struct Events {
    slots: Vec<Event>,
    free: u32,
    live: usize,
}

impl Events {
    fn new() -> Events {
        Events { slots: Vec::new(), free: NONE, live: 0 }
    }

    #[inline]
    fn insert(&mut self, key: Key, data: u64, place: Place) -> u32 {
        self.live += 1;
        let event = Event { key, data, next: NONE, prev: NONE, place };
        if self.free == NONE {
            self.slots.push(event);
            u32::try_from(self.slots.len() - 1).expect("more than 2^32 events at once")
        } else {
            let index = self.free;
            let slot = &mut self.slots[index as usize];
            self.free = slot.next;
            *slot = event;
            index
        }
    }

    /// Marks an event as past or cancelled. Its slot stays occupied.
    fn retire(&mut self, index: u32, place: Place) {
        self.live -= 1;
        let slot = &mut self.slots[index as usize];
        slot.key.count = GONE;
        slot.place = place;
    }

    /// Frees the slot of a retired event.
    fn release(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.place = Place::Free;
        slot.next = self.free;
        self.free = index;
    }

    /// Removes an event and frees its slot.
    #[inline]
    fn take(&mut self, index: u32) -> u64 {
        self.live -= 1;
        let slot = &mut self.slots[index as usize];
        slot.key.count = GONE;
        slot.place = Place::Free;
        slot.next = std::mem::replace(&mut self.free, index);
        slot.data
    }

    fn is_dead(&self, index: u32) -> bool {
        self.slots[index as usize].place == Place::Dead
    }
}

/// A key and the index of its event, in sorted order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    key: Key,
    index: u32,
}

/// The structure that holds the events of a run. Results cannot depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// Timing wheels with sorted buckets.
    #[default]
    Wheel,
    /// The standard library's binary heap, for comparison.
    BinaryHeap,
}

/// The future events of a shard.
pub(crate) enum Queue {
    Wheel(Box<Wheel>),
    Heap(Heap),
}

macro_rules! either {
    ($self:ident, $queue:ident => $what:expr) => {
        match $self {
            Queue::Wheel($queue) => $what,
            Queue::Heap($queue) => $what,
        }
    };
}

impl Queue {
    pub(crate) fn new(kind: QueueKind) -> Queue {
        match kind {
            QueueKind::Wheel => Queue::Wheel(Box::new(Wheel::new())),
            QueueKind::BinaryHeap => Queue::Heap(Heap::new()),
        }
    }

    /// Adds an event. When the event is taken, it is returned with `data`.
    pub(crate) fn push(&mut self, key: Key, data: u64) -> EventRef {
        let index = either!(self, queue => queue.push(key, data));
        EventRef { index, count: key.count }
    }

    /// Takes the next event if it is before `limit`.
    pub(crate) fn pop_before(&mut self, limit: Time) -> Option<(Key, u64)> {
        either!(self, queue => queue.pop_before(limit))
    }

    /// Takes the next event if it is an event of `node` at `time`, which is the time of the last event.
    pub(crate) fn pop_at(&mut self, time: Time, node: NodeId) -> Option<(Key, u64)> {
        either!(self, queue => match queue.head() {
            Some(key) if key.time() == time && key.node() == node => queue.pop_head(),
            _ => None,
        })
    }

    /// Whether every event is after this key. May return false without an exact answer, if the answer would need an
    /// advance of the queue.
    #[inline]
    pub(crate) fn comes_after(&mut self, key: Key) -> bool {
        either!(self, queue => queue.comes_after(key))
    }

    /// Whether the queue has already sorted the event that is `places` after the next event.
    pub(crate) fn has_ahead(&self, places: usize) -> bool {
        match self {
            Queue::Wheel(queue) => queue.has_ahead(places),
            Queue::Heap(_) => false,
        }
    }

    /// If the queue has already sorted the event that is `places` after the next event, returns whether it is an
    /// arrival, and its data. Later events may change the order, so this is only a hint.
    pub(crate) fn ahead(&self, places: usize) -> Option<(bool, u64)> {
        match self {
            Queue::Wheel(queue) => queue.ahead(places),
            Queue::Heap(_) => None,
        }
    }

    /// Visits events of the next few buckets. Passes whether the event is an arrival, its data, and the number of
    /// steps, from 1 to `steps`, until it happens. Visits an event once per step. Returns false if the current bucket
    /// has more events than such visits can cover.
    pub(crate) fn coming(&mut self, steps: usize, visit: impl FnMut(bool, u64, usize)) -> bool {
        match self {
            Queue::Wheel(queue) => queue.coming(steps + 1, visit),
            Queue::Heap(_) => false,
        }
    }

    /// Returns the time of the next event.
    pub(crate) fn next_time(&mut self) -> Option<Time> {
        either!(self, queue => queue.next_time())
    }

    fn events(&mut self) -> &mut Events {
        either!(self, queue => &mut queue.events)
    }

    /// Number of future events.
    pub(crate) fn len(&mut self) -> usize {
        self.events().live
    }

    /// Cancels an event of class 1, unless it has happened. Returns whether it was cancelled.
    pub(crate) fn cancel(&mut self, event: EventRef) -> bool {
        let pending = self.events().slots[event.index as usize].key.count == event.count;
        if pending {
            either!(self, queue => queue.remove(event.index));
        }
        pending
    }

    /// Changes the data of an event of class 1, unless it has happened.
    pub(crate) fn retarget(&mut self, event: EventRef, data: u64) {
        let slot = &mut self.events().slots[event.index as usize];
        if slot.key.count == event.count {
            slot.data = data;
        }
    }
}

#[cfg(test)]
mod tests;
