//! Events, and queues of them.

use nicety_kernel::prefetch;
use serde::{Deserialize, Serialize};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EventKind {
    /// An operation of the host may start.
    Send,
    Recv,
    Calc,
    /// A message arrives. The event's operation is the sender's operation.
    Message,
    /// A receive has taken a long message, so the sender's operation ends.
    Complete,
    /// The CPU and the interface may be free for the first event in a lane.
    RetrySend,
    RetryCalc,
    RetryMessage,
}

/// The position of an event in the order of a run. No two events have the same key.
///
/// By nicety's own rules, four fields order events. They are the time, the time of the causing event, the causing host, and that
/// host's count of caused events. None of these depends on the assignment of hosts to threads. By LogGOPSim's rules, `born` is
/// the number of the event over all hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) time: u64,
    pub(super) born: u64,
    /// The host that caused the event. For a message it is the sender.
    pub(super) source: u32,
    pub(super) count: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Event {
    pub(super) key: Key,
    /// Bytes of a message, or nanoseconds of a calculation.
    pub(super) size: u64,
    pub(super) tag: u32,
    /// The number of the operation in its rank.
    pub(super) op: u32,
    /// The host at which the event occurs.
    pub(super) host: u32,
    pub(super) what: EventKind,
    pub(super) cpu: u8,
    pub(super) nic: u8,
}

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        self.key == other.key
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Event) -> Ordering {
        self.key.cmp(&other.key)
    }
}

/// The index that means no event, or no queue.
const NONE: u32 = u32::MAX;
/// Maximum length of a queue in the form of a list. A longer queue has memory of its own.
const LONGEST: u32 = 24;
/// Maximum number of events at the end of the sorted run that an insertion may move.
const MOVED: usize = 8;
/// A flag in the length of a queue. It means that the queue has memory of its own.
const LONG: u32 = 1 << 31;

/// The shared memory of the queues of many hosts.
#[derive(Debug)]
pub(super) struct Slab {
    slots: Vec<(Event, u32)>,
    free: u32,
    long: Vec<Long>,
    free_long: Vec<u32>,
}

impl Slab {
    pub(super) fn new() -> Slab {
        Slab { slots: Vec::new(), free: NONE, long: Vec::new(), free_long: Vec::new() }
    }

    #[inline]
    fn insert(&mut self, event: Event, next: u32) -> u32 {
        if self.free == NONE {
            self.slots.push((event, next));
            (self.slots.len() - 1) as u32
        } else {
            let at = self.free;
            let slot = &mut self.slots[at as usize];
            self.free = slot.1;
            *slot = (event, next);
            at
        }
    }

    #[inline]
    fn remove(&mut self, at: u32) -> (Event, u32) {
        let slot = &mut self.slots[at as usize];
        let found = *slot;
        slot.1 = self.free;
        self.free = at;
        found
    }
}

/// The events of a long queue: a sorted run, and a heap for events that arrive out of order.
#[derive(Debug, Default)]
struct Long {
    run: VecDeque<Event>,
    heap: BinaryHeap<Reverse<Event>>,
}

impl Long {
    fn push(&mut self, event: Event) {
        let behind = self.run.iter().rev().take(MOVED + 1).take_while(|other| event < **other).count();
        match behind {
            0 => self.run.push_back(event),
            1..=MOVED => self.run.insert(self.run.len() - behind, event),
            _ => self.heap.push(Reverse(event)),
        }
    }

    fn first(&self) -> Option<&Event> {
        match (self.run.front(), self.heap.peek()) {
            (Some(a), Some(Reverse(b))) => Some(a.min(b)),
            (Some(a), None) => Some(a),
            (None, heap) => heap.map(|Reverse(b)| b),
        }
    }

    fn pop(&mut self) -> Option<Event> {
        match (self.run.front(), self.heap.peek()) {
            (Some(a), Some(Reverse(b))) if b < a => self.heap.pop().map(|Reverse(event)| event),
            (Some(_), _) => self.run.pop_front(),
            (None, _) => self.heap.pop().map(|Reverse(event)| event),
        }
    }
}

/// A sorted queue of events. A short queue is a list in a slab.
#[derive(Debug)]
pub(super) struct Queue {
    /// The first event of the list; for a long queue, its index in the slab.
    head: u32,
    tail: u32,
    length: u32,
}

impl Queue {
    pub(super) const EMPTY: Queue = Queue { head: NONE, tail: NONE, length: 0 };

    fn is_long(&self) -> bool {
        self.length & LONG != 0
    }

    #[inline]
    pub(super) fn push(&mut self, slab: &mut Slab, event: Event) {
        self.length += 1;
        if self.is_long() {
            return slab.long[self.head as usize].push(event);
        }
        if self.length > LONGEST {
            return self.lengthen(slab, event);
        }
        if self.tail == NONE {
            self.head = slab.insert(event, NONE);
            self.tail = self.head;
        } else if slab.slots[self.tail as usize].0 < event {
            let at = slab.insert(event, NONE);
            slab.slots[self.tail as usize].1 = at;
            self.tail = at;
        } else {
            self.push_before(slab, event);
        }
    }

    /// Adds an event that is not the last one in order.
    fn push_before(&mut self, slab: &mut Slab, event: Event) {
        let mut before = NONE;
        let mut next = self.head;
        while slab.slots[next as usize].0 < event {
            before = next;
            next = slab.slots[next as usize].1;
        }
        let at = slab.insert(event, next);
        if before == NONE {
            self.head = at;
        } else {
            slab.slots[before as usize].1 = at;
        }
    }

    #[cold]
    fn lengthen(&mut self, slab: &mut Slab, event: Event) {
        let at = slab.free_long.pop().unwrap_or_else(|| {
            slab.long.push(Long::default());
            (slab.long.len() - 1) as u32
        });
        let mut next = std::mem::replace(&mut self.head, at);
        while next != NONE {
            let (event, after) = slab.remove(next);
            slab.long[at as usize].push(event);
            next = after;
        }
        slab.long[at as usize].push(event);
        (self.tail, self.length) = (NONE, self.length | LONG);
    }

    #[inline]
    pub(super) fn first(&self, slab: &Slab) -> Option<Key> {
        if self.is_long() {
            return slab.long[self.head as usize].first().map(|event| event.key);
        }
        (self.head != NONE).then(|| slab.slots[self.head as usize].0.key)
    }

    #[inline]
    pub(super) fn pop(&mut self, slab: &mut Slab) -> Option<Event> {
        if self.is_long() {
            let event = slab.long[self.head as usize].pop();
            self.length -= 1;
            if self.length == LONG {
                slab.long[self.head as usize] = Long::default();
                slab.free_long.push(self.head);
                *self = Queue::EMPTY;
            }
            return event;
        }
        self.length = self.length.checked_sub(1)?;
        let (event, next) = slab.remove(self.head);
        self.head = next;
        if next == NONE {
            self.tail = NONE;
        }
        Some(event)
    }

    /// Prefetches the first event of a list, or the head of a long queue, into the CPU cache.
    pub(super) fn prefetch(&self, slab: &Slab) {
        if self.is_long() {
            prefetch(&slab.long[self.head as usize]);
        } else if let Some(slot) = slab.slots.get(self.head as usize) {
            prefetch(slot);
        }
    }

    /// Prefetches the first events of a long queue into the CPU cache, after its head.
    pub(super) fn prefetch_long(&self, slab: &Slab) {
        if self.is_long() {
            let long = &slab.long[self.head as usize];
            long.run.front().inspect(|event| prefetch(*event));
            long.heap.peek().inspect(|event| prefetch(*event));
        }
    }

    /// Returns the first event.
    pub(super) fn front<'s>(&self, slab: &'s Slab) -> Option<&'s Event> {
        match self.is_long() {
            true => slab.long[self.head as usize].first(),
            false => slab.slots.get(self.head as usize).map(|slot| &slot.0),
        }
    }
}
