//! Events, and queues of them.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// An operation of the host can start.
    Send,
    Recv,
    Calc,
    /// A message arrives. Its operation is the sender's.
    Message,
    /// A receive has taken a long message: the sender's operation is done.
    Complete,
    /// The CPU or interface may be free for the first of the operations that wait for it, or of the messages.
    RetrySend,
    RetryCalc,
    RetryMessage,
}

/// The place of an event in the order of a run. No two events have the same.
///
/// By nicety's own rules it is the time, then when the event's cause happened, then the host that caused it and that host's
/// count of what it has caused: nothing that depends on how hosts are spread over threads. By those of LogGOPSim `born` is a
/// count over all hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) time: u64,
    pub(super) born: u64,
    /// The host that caused it; of a message the sender.
    pub(super) source: u32,
    pub(super) count: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) key: Key,
    /// Bytes, or nanoseconds.
    pub(super) size: u64,
    pub(super) tag: u32,
    /// The operation, by its number in its rank.
    pub(super) op: u32,
    /// The host where it happens.
    pub(super) host: u32,
    pub(super) what: What,
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

/// No event.
const NONE: u32 = u32::MAX;
/// The longest list; a queue that is longer has memory of its own.
const LONGEST: u32 = 12;

/// Memory of the short queues of many hosts, used again and again.
#[derive(Debug)]
pub(super) struct Slab {
    slots: Vec<(Event, u32)>,
    free: u32,
}

impl Slab {
    pub(super) fn new() -> Slab {
        Slab { slots: Vec::new(), free: NONE }
    }

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

    fn remove(&mut self, at: u32) -> (Event, u32) {
        let slot = &mut self.slots[at as usize];
        let found = *slot;
        slot.1 = self.free;
        self.free = at;
        found
    }
}

/// Events in their order: a list in a slab as long as they are few, and then a sorted run with a heap for what is not in the
/// order of that.
#[derive(Debug)]
pub(super) struct Queue {
    head: u32,
    length: u32,
    many: Option<Box<Many>>,
}

#[derive(Debug, Default)]
struct Many {
    run: VecDeque<Event>,
    heap: BinaryHeap<Reverse<Event>>,
}

impl Many {
    fn push(&mut self, event: Event) {
        match self.run.back() {
            Some(last) if event < *last => self.heap.push(Reverse(event)),
            _ => self.run.push_back(event),
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

impl Queue {
    pub(super) const EMPTY: Queue = Queue { head: NONE, length: 0, many: None };

    pub(super) fn push(&mut self, slab: &mut Slab, event: Event) {
        self.length += 1;
        if let Some(many) = &mut self.many {
            return many.push(event);
        }
        if self.length > LONGEST {
            return self.spill(slab, event);
        }
        let mut before = NONE;
        let mut next = self.head;
        while next != NONE && slab.slots[next as usize].0 < event {
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
    fn spill(&mut self, slab: &mut Slab, event: Event) {
        let mut many = Box::<Many>::default();
        let mut next = std::mem::replace(&mut self.head, NONE);
        while next != NONE {
            let (event, after) = slab.remove(next);
            many.push(event);
            next = after;
        }
        many.push(event);
        self.many = Some(many);
    }

    pub(super) fn first(&self, slab: &Slab) -> Option<Key> {
        if let Some(many) = &self.many {
            return many.first().map(|event| event.key);
        }
        (self.head != NONE).then(|| slab.slots[self.head as usize].0.key)
    }

    pub(super) fn pop(&mut self, slab: &mut Slab) -> Option<Event> {
        self.length = self.length.checked_sub(1)?;
        if let Some(many) = &mut self.many {
            let event = many.pop();
            if self.length == 0 {
                self.many = None;
            }
            return event;
        }
        let (event, next) = slab.remove(self.head);
        self.head = next;
        Some(event)
    }
}
