//! Matching of messages and receives: the first in order with an equal source or any, and an equal tag or any.
//!
//! A queue is a list as long as it is short. A longer one has tables by source and tag, so that finding, adding and taking cost
//! the same however long it is. A wildcard on the side that asks is looked up in tables by source only, by tag only, or in the
//! whole queue; one on the side that waits is a key like others.

use crate::schedule::{ANY, Kind, Schedule};
use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;
/// The longest queue that is a list.
const LONGEST: u32 = 12;

/// A message that no receive has taken, or a receive that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) source: u32,
    pub(super) tag: u32,
    /// The operation, of the sender or of the receiver.
    pub(super) op: u32,
    pub(super) cpu: u8,
    pub(super) nic: u8,
    pub(super) size: u64,
    /// Until when a CPU receives the message.
    pub(super) until: u64,
}

/// How a queue may be asked: with a source or any, and with a tag or any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Both = 0,
    Source = 1,
    Tag = 2,
    All = 3,
}

const VIEWS: [View; 4] = [View::Both, View::Source, View::Tag, View::All];

/// The views that a schedule's wildcards need, of each of the two queues.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Views {
    posted: [bool; 4],
    unexpected: [bool; 4],
}

impl Views {
    pub(super) fn of(schedule: &Schedule) -> Views {
        let mut views =
            Views { posted: [true, false, false, false], unexpected: [true, false, false, false] };
        for op in schedule.ops() {
            match op.kind {
                Kind::Send => views.posted[View::Source as usize] |= op.tag == ANY,
                Kind::Recv => views.unexpected[view(op.peer, op.tag) as usize] = true,
                Kind::Calc => {}
            }
        }
        views
    }
}

fn view(source: u32, tag: u32) -> View {
    match (source == ANY, tag == ANY) {
        (false, false) => View::Both,
        (false, true) => View::Source,
        (true, false) => View::Tag,
        (true, true) => View::All,
    }
}

/// The key of a pair in the table of a view.
fn key(view: View, source: u32, tag: u32) -> u64 {
    match view {
        View::Both => u64::from(source) << 32 | u64::from(tag),
        View::Source => u64::from(source),
        View::Tag => u64::from(tag),
        View::All => 0,
    }
}

/// Memory of the short queues of many hosts.
#[derive(Debug)]
pub(super) struct Slab {
    slots: Vec<(Waiting, u32)>,
    free: u32,
}

impl Slab {
    pub(super) fn new() -> Slab {
        Slab { slots: Vec::new(), free: NONE }
    }

    fn insert(&mut self, waiting: Waiting) -> u32 {
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

    fn remove(&mut self, at: u32) -> (Waiting, u32) {
        let slot = &mut self.slots[at as usize];
        let found = *slot;
        slot.1 = self.free;
        self.free = at;
        found
    }
}

/// Receives that are posted, or messages that are unexpected, of a host.
#[derive(Debug)]
pub(super) struct Line {
    head: u32,
    tail: u32,
    length: u32,
    tables: Option<Box<Tables>>,
}

impl Line {
    pub(super) const EMPTY: Line = Line { head: NONE, tail: NONE, length: 0, tables: None };

    fn push(&mut self, slab: &mut Slab, waiting: Waiting, views: [bool; 4]) {
        self.length += 1;
        if let Some(tables) = &mut self.tables {
            return tables.push(waiting);
        }
        if self.length > LONGEST {
            let mut tables = Box::new(Tables::new(views));
            let mut next = std::mem::replace(&mut self.head, NONE);
            self.tail = NONE;
            while next != NONE {
                let (waiting, after) = slab.remove(next);
                tables.push(waiting);
                next = after;
            }
            tables.push(waiting);
            self.tables = Some(tables);
            return;
        }
        let at = slab.insert(waiting);
        match self.tail {
            NONE => self.head = at,
            tail => slab.slots[tail as usize].1 = at,
        }
        self.tail = at;
    }

    /// Takes the first that fits, of a list.
    fn take_listed(
        &mut self,
        slab: &mut Slab,
        steps: &mut u64,
        fits: impl Fn(&Waiting) -> bool,
    ) -> Option<Waiting> {
        let mut before = NONE;
        let mut at = self.head;
        while at != NONE {
            *steps += 1;
            let (waiting, next) = slab.slots[at as usize];
            if fits(&waiting) {
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

    fn take_from_tables(&mut self, steps: &mut u64, asked: &[(View, u32, u32)]) -> Option<Waiting> {
        let tables = self.tables.as_mut()?;
        *steps += asked.len() as u64;
        let taken = tables.take(asked)?;
        self.length -= 1;
        if self.length == 0 {
            self.tables = None;
        }
        Some(taken)
    }

    /// Everything in it, in order.
    pub(super) fn all(&self, slab: &Slab) -> Vec<Waiting> {
        if let Some(tables) = &self.tables {
            return tables.all();
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

/// Both queues of a host.
#[derive(Debug)]
pub(super) struct Matching {
    pub(super) posted: Line,
    pub(super) unexpected: Line,
}

impl Matching {
    pub(super) const EMPTY: Matching = Matching { posted: Line::EMPTY, unexpected: Line::EMPTY };

    /// The receive that takes a message, or none: then the message waits.
    pub(super) fn arrive(
        &mut self,
        slab: &mut Slab,
        views: &Views,
        steps: &mut u64,
        message: Waiting,
    ) -> Option<Waiting> {
        let Waiting { source, tag, .. } = message;
        let found = if self.posted.tables.is_none() {
            self.posted.take_listed(slab, steps, |posted| {
                (posted.source == source || posted.source == ANY)
                    && (posted.tag == tag || posted.tag == ANY || tag == ANY)
            })
        } else if tag == ANY {
            self.posted.take_from_tables(steps, &[(View::Source, source, ANY), (View::Source, ANY, ANY)])
        } else {
            let pairs = [(source, tag), (source, ANY), (ANY, tag), (ANY, ANY)];
            self.posted.take_from_tables(steps, &pairs.map(|(source, tag)| (View::Both, source, tag)))
        };
        if found.is_none() {
            self.unexpected.push(slab, message, views.unexpected);
        }
        found
    }

    /// The message that a receive takes, or none: then the receive waits.
    pub(super) fn post(
        &mut self,
        slab: &mut Slab,
        views: &Views,
        steps: &mut u64,
        receive: Waiting,
    ) -> Option<Waiting> {
        let Waiting { source, tag, .. } = receive;
        let found = if self.unexpected.tables.is_none() {
            self.unexpected.take_listed(slab, steps, |message| {
                (message.source == source || source == ANY)
                    && (message.tag == tag || message.tag == ANY || tag == ANY)
            })
        } else {
            let view = view(source, tag);
            self.unexpected.take_from_tables(steps, &[(view, source, tag), (view, source, ANY)])
        };
        if found.is_none() {
            self.posted.push(slab, receive, views.posted);
        }
        found
    }
}

/// The first and the last of those with a key.
#[derive(Clone, Copy, Debug)]
struct Ends {
    head: u32,
    tail: u32,
}

#[derive(Debug)]
struct Slot {
    waiting: Waiting,
    /// The place in the order.
    number: u64,
    /// In each view: the one before and the one behind.
    links: [(u32, u32); 4],
}

/// A long queue: lists by key, in the views that are needed.
#[derive(Debug)]
struct Tables {
    views: [bool; 4],
    slots: Vec<Slot>,
    free: Vec<u32>,
    next: u64,
    lists: [FxHashMap<u64, Ends>; 4],
}

impl Tables {
    fn new(views: [bool; 4]) -> Tables {
        Tables { views, slots: Vec::new(), free: Vec::new(), next: 0, lists: Default::default() }
    }

    fn push(&mut self, waiting: Waiting) {
        let slot = Slot { waiting, number: self.next, links: [(NONE, NONE); 4] };
        self.next += 1;
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        for view in VIEWS {
            let v = view as usize;
            if !self.views[v] {
                continue;
            }
            let ends = self.lists[v]
                .entry(key(view, waiting.source, waiting.tag))
                .or_insert(Ends { head: at, tail: NONE });
            let last = std::mem::replace(&mut ends.tail, at);
            if last != NONE {
                self.slots[last as usize].links[v].1 = at;
                self.slots[at as usize].links[v].0 = last;
            }
        }
    }

    /// Takes the earliest of the first ones of some lists.
    fn take(&mut self, asked: &[(View, u32, u32)]) -> Option<Waiting> {
        let heads = asked.iter().filter_map(|(view, source, tag)| {
            self.lists[*view as usize].get(&key(*view, *source, *tag)).map(|ends| ends.head)
        });
        let at = heads.min_by_key(|head| self.slots[*head as usize].number)?;
        let Slot { waiting, links, .. } = self.slots[at as usize];
        for view in VIEWS {
            let v = view as usize;
            if self.views[v] {
                self.unlink(view, at, waiting, links[v]);
            }
        }
        self.free.push(at);
        Some(waiting)
    }

    fn unlink(&mut self, view: View, at: u32, waiting: Waiting, (before, behind): (u32, u32)) {
        let v = view as usize;
        let key = key(view, waiting.source, waiting.tag);
        if before == NONE && behind == NONE {
            self.lists[v].remove(&key);
            return;
        }
        if before != NONE {
            self.slots[before as usize].links[v].1 = behind;
        }
        if behind != NONE {
            self.slots[behind as usize].links[v].0 = before;
        }
        let ends = self.lists[v].get_mut(&key).expect("it is in this list");
        if ends.head == at {
            ends.head = behind;
        }
        if ends.tail == at {
            ends.tail = before;
        }
    }

    fn all(&self) -> Vec<Waiting> {
        let mut is_free = vec![false; self.slots.len()];
        self.free.iter().for_each(|at| is_free[*at as usize] = true);
        let slots = self.slots.iter().zip(is_free).filter(|(_, is_free)| !is_free);
        let mut found: Vec<_> = slots.map(|(slot, _)| (slot.number, slot.waiting)).collect();
        found.sort_unstable_by_key(|(number, _)| *number);
        found.into_iter().map(|(_, waiting)| waiting).collect()
    }
}
