//! Matching of messages and receives. The first entry in the queue matches that has the same source and the same tag. A wildcard
//! equals every source or tag.
//!
//! A short queue is a list. A longer queue has tables by source and tag, so search, insertion and removal take constant time. If
//! the searching side has a wildcard, the search uses a table by source only, a table by tag only, or the whole queue. A wildcard
//! of a waiting entry is an ordinary key of the tables.

use super::tables::{Side, Tables, View, view};
use crate::schedule::{ANY, Kind, Schedule};
use nicety_kernel::prefetch;

const NONE: u32 = u32::MAX;
/// Maximum length of a queue in the form of a list.
const LONGEST: u32 = 32;
/// A flag in the length of a queue. It means that the queue has tables.
const LONG: u32 = 1 << 31;

/// A receive that waits for its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Receive {
    pub(super) source: u32,
    pub(super) tag: u32,
    pub(super) op: u32,
}

/// An unexpected message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) source: u32,
    pub(super) tag: u32,
    /// The number of the sender's operation.
    pub(super) op: u32,
    pub(super) cpu: u8,
    pub(super) nic: u8,
    pub(super) size: u64,
    /// The time at which a CPU has finished the receive of the message.
    pub(super) until: u64,
}

impl Side for Receive {
    fn source(&self) -> u32 {
        self.source
    }

    fn tag(&self) -> u32 {
        self.tag
    }
}

impl Side for Message {
    fn source(&self) -> u32 {
        self.source
    }

    fn tag(&self) -> u32 {
        self.tag
    }
}

/// The shared memory of the queues of many hosts, for receives or for messages.
#[derive(Debug)]
struct Slab<T> {
    slots: Vec<(T, u32)>,
    free: u32,
    tables: Vec<Tables<T>>,
    free_tables: Vec<u32>,
    /// The kinds of search (views) that the schedule's wildcards need; `None` if the schedule has no wildcards.
    views: Option<[bool; 4]>,
}

impl<T: Side> Slab<T> {
    fn new(views: Option<[bool; 4]>) -> Slab<T> {
        Slab { slots: Vec::new(), free: NONE, tables: Vec::new(), free_tables: Vec::new(), views }
    }

    fn insert(&mut self, waiting: T) -> u32 {
        if self.free == NONE {
            self.slots.push((waiting, NONE));
            (self.slots.len() - 1) as u32
        } else {
            let at = self.free;
            let slot = &mut self.slots[at as usize];
            self.free = slot.1;
            *slot = (waiting, NONE);
            at
        }
    }

    fn remove(&mut self, at: u32) -> (T, u32) {
        let slot = &mut self.slots[at as usize];
        let found = *slot;
        slot.1 = self.free;
        self.free = at;
        found
    }
}

/// The posted receives or the unexpected messages of a host. They are in a slab.
#[derive(Debug)]
struct Line {
    /// The first entry of the list, or the index of the tables in the slab.
    head: u32,
    tail: u32,
    length: u32,
}

impl Line {
    const EMPTY: Line = Line { head: NONE, tail: NONE, length: 0 };

    fn is_long(&self) -> bool {
        self.length & LONG != 0
    }

    fn push<T: Side>(&mut self, slab: &mut Slab<T>, waiting: T) {
        self.length += 1;
        if self.is_long() {
            return slab.tables[self.head as usize].push(waiting);
        }
        if self.length > LONGEST {
            return self.lengthen(slab, waiting);
        }
        let at = slab.insert(waiting);
        match self.tail {
            NONE => self.head = at,
            tail => slab.slots[tail as usize].1 = at,
        }
        self.tail = at;
    }

    #[cold]
    fn lengthen<T: Side>(&mut self, slab: &mut Slab<T>, waiting: T) {
        let at = slab.free_tables.pop().unwrap_or_else(|| {
            slab.tables.push(Tables::new(slab.views));
            (slab.tables.len() - 1) as u32
        });
        let mut next = std::mem::replace(&mut self.head, at);
        while next != NONE {
            let (waiting, after) = slab.remove(next);
            slab.tables[at as usize].push(waiting);
            next = after;
        }
        slab.tables[at as usize].push(waiting);
        (self.tail, self.length) = (NONE, self.length | LONG);
    }

    /// Removes and returns the first match in a list.
    fn take_listed<T: Side>(
        &mut self,
        slab: &mut Slab<T>,
        steps: &mut u64,
        fits: impl Fn(u32, u32) -> bool,
    ) -> Option<T> {
        let mut before = NONE;
        let mut at = self.head;
        while at != NONE {
            *steps += 1;
            let (waiting, next) = slab.slots[at as usize];
            if fits(waiting.source(), waiting.tag()) {
                match before {
                    NONE => self.head = next,
                    before => slab.slots[before as usize].1 = next,
                }
                if self.tail == at {
                    self.tail = before;
                }
                slab.remove(at);
                self.length -= 1;
                return Some(waiting);
            }
            before = at;
            at = next;
        }
        None
    }

    /// Removes and returns the first match in the given lists of the tables.
    fn take_from_tables<T: Side>(
        &mut self,
        slab: &mut Slab<T>,
        steps: &mut u64,
        asked: &[(View, u32, u32)],
    ) -> Option<T> {
        *steps += asked.len() as u64;
        let taken = slab.tables[self.head as usize].take(asked)?;
        self.length -= 1;
        if self.length == LONG {
            slab.free_tables.push(self.head);
            *self = Line::EMPTY;
        }
        Some(taken)
    }

    /// Returns all entries in order.
    fn all<T: Side>(&self, slab: &Slab<T>) -> Vec<T> {
        if self.is_long() {
            return slab.tables[self.head as usize].all();
        }
        let mut found = Vec::new();
        let mut at = self.head;
        while at != NONE {
            let (waiting, next) = slab.slots[at as usize];
            found.push(waiting);
            at = next;
        }
        found
    }
}

/// The posted receives and the unexpected messages of a host.
#[derive(Debug)]
pub(super) struct Lines {
    posted: Line,
    unexpected: Line,
}

impl Lines {
    pub(super) const EMPTY: Lines = Lines { posted: Line::EMPTY, unexpected: Line::EMPTY };
}

/// The queues of all hosts.
#[derive(Debug)]
pub(super) struct Matching {
    posted: Slab<Receive>,
    unexpected: Slab<Message>,
    /// Whether any operation of the schedule has a wildcard.
    has_wildcards: bool,
    /// Number of queue entries and lists searched.
    pub(super) steps: u64,
}

/// The wildcards of a schedule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wildcards {
    /// The views that are needed of the queues of receives, and of the queues of messages.
    views: [[bool; 4]; 2],
    any: bool,
}

impl Wildcards {
    pub(super) fn of(schedule: &Schedule) -> Wildcards {
        let mut views = [[true, false, false, false]; 2];
        let mut any = false;
        for op in schedule.ops() {
            match op.kind {
                Kind::Send => {
                    views[0][View::Source as usize] |= op.tag == ANY;
                    any |= op.tag == ANY;
                }
                Kind::Recv => {
                    let view = view(op.peer, op.tag);
                    views[1][view as usize] = true;
                    any |= view != View::Both;
                }
                Kind::Calc => {}
            }
        }
        Wildcards { views, any }
    }
}

impl Matching {
    pub(super) fn new(wildcards: &Wildcards) -> Matching {
        let [posted, unexpected] = wildcards.views.map(|views| wildcards.any.then_some(views));
        Matching {
            posted: Slab::new(posted),
            unexpected: Slab::new(unexpected),
            has_wildcards: wildcards.any,
            steps: 0,
        }
    }

    /// Returns the receive that takes a message. If there is none, queues the message as unexpected.
    pub(super) fn arrive(&mut self, lines: &mut Lines, message: Message) -> Option<u32> {
        let Message { source, tag, .. } = message;
        let (line, slab, steps) = (&mut lines.posted, &mut self.posted, &mut self.steps);
        let found = if !line.is_long() {
            line.take_listed(slab, steps, |from, with| {
                (from == source || from == ANY) && (with == tag || with == ANY || tag == ANY)
            })
        } else if tag == ANY {
            line.take_from_tables(slab, steps, &[(View::Source, source, ANY), (View::Source, ANY, ANY)])
        } else if self.has_wildcards {
            let pairs = [(source, tag), (source, ANY), (ANY, tag), (ANY, ANY)];
            line.take_from_tables(slab, steps, &pairs.map(|(source, tag)| (View::Both, source, tag)))
        } else {
            line.take_from_tables(slab, steps, &[(View::Both, source, tag)])
        };
        if found.is_none() {
            lines.unexpected.push(&mut self.unexpected, message);
        }
        found.map(|receive| receive.op)
    }

    /// Returns the message that a receive takes. If there is none, queues the receive as posted.
    pub(super) fn post(&mut self, lines: &mut Lines, receive: Receive) -> Option<Message> {
        let Receive { source, tag, .. } = receive;
        let (line, slab, steps) = (&mut lines.unexpected, &mut self.unexpected, &mut self.steps);
        let found = if line.is_long() && !self.has_wildcards {
            line.take_from_tables(slab, steps, &[(View::Both, source, tag)])
        } else if line.is_long() {
            let view = view(source, tag);
            line.take_from_tables(slab, steps, &[(view, source, tag), (view, source, ANY)])
        } else {
            line.take_listed(slab, steps, |from, with| {
                (from == source || source == ANY) && (with == tag || with == ANY || tag == ANY)
            })
        };
        if found.is_none() {
            lines.posted.push(&mut self.posted, receive);
        }
        found
    }

    /// Returns a host's posted receives and unexpected messages, in order.
    pub(super) fn left(&self, lines: &Lines) -> (Vec<Receive>, Vec<Message>) {
        (lines.posted.all(&self.posted), lines.unexpected.all(&self.unexpected))
    }

    /// Prefetches the first posted receive of a host into the CPU cache, if the queue is a list.
    pub(super) fn prefetch(&self, lines: &Lines) {
        if let Some(slot) = self.posted.slots.get(lines.posted.head as usize)
            && !lines.posted.is_long()
        {
            prefetch(slot);
        }
    }

    /// Prefetches the table entry in which a message finds its receive into the CPU cache, if the queue has tables.
    pub(super) fn prefetch_receive(&self, lines: &Lines, source: u32, tag: u32) {
        if lines.posted.is_long() {
            self.posted.tables[lines.posted.head as usize].prefetch(source, tag);
        }
    }

    /// Returns the first posted receive of a host, if the queue is a list.
    pub(super) fn first_posted(&self, lines: &Lines) -> Option<u32> {
        (!lines.posted.is_long())
            .then(|| self.posted.slots.get(lines.posted.head as usize).map(|slot| slot.0.op))?
    }
}
