//! Long queues of messages or receives, as tables by source and tag.

use crate::schedule::ANY;
use nicety_kernel::prefetch;
use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;

/// A message or a receive, as an entry of a queue.
pub(super) trait Side: Copy {
    fn source(&self) -> u32;
    fn tag(&self) -> u32;
}

/// A kind of search: by source or any source, and by tag or any tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Both = 0,
    Source = 1,
    Tag = 2,
    All = 3,
}

const VIEWS: [View; 4] = [View::Both, View::Source, View::Tag, View::All];

pub(super) fn view(source: u32, tag: u32) -> View {
    match (source == ANY, tag == ANY) {
        (false, false) => View::Both,
        (false, true) => View::Source,
        (true, false) => View::Tag,
        (true, true) => View::All,
    }
}

/// Returns the key of a source and a tag in the table of a view.
fn key(view: View, source: u32, tag: u32) -> u64 {
    match view {
        View::Both => u64::from(source) << 32 | u64::from(tag),
        View::Source => u64::from(source),
        View::Tag => u64::from(tag),
        View::All => 0,
    }
}

/// A long queue.
#[derive(Debug)]
pub(super) enum Tables<T> {
    /// The table for a schedule without wildcards.
    Exact(Exact<T>),
    /// The tables for a schedule with wildcards.
    Views(Views<T>),
}

impl<T: Side> Tables<T> {
    pub(super) fn new(views: Option<[bool; 4]>) -> Tables<T> {
        match views {
            None => Tables::Exact(Exact::new()),
            Some(views) => Tables::Views(Views::new(views)),
        }
    }

    pub(super) fn push(&mut self, waiting: T) {
        match self {
            Tables::Exact(exact) => exact.push(waiting),
            Tables::Views(views) => views.push(waiting),
        }
    }

    /// Finds the earliest among the first entries of some lists, removes it and returns it. Without wildcards there is one list.
    pub(super) fn take(&mut self, asked: &[(View, u32, u32)]) -> Option<T> {
        match (self, asked) {
            (Tables::Exact(exact), [(_, source, tag), ..]) => exact.take(*source, *tag),
            (Tables::Exact(_), []) => None,
            (Tables::Views(views), asked) => views.take(asked),
        }
    }

    /// Prefetches the table entry of a source and a tag into the CPU cache, if there are no wildcards.
    pub(super) fn prefetch(&self, source: u32, tag: u32) {
        if let Tables::Exact(exact) = self {
            exact.prefetch(source, tag);
        }
    }

    /// Returns all entries in order. Without wildcards, the order is by source.
    pub(super) fn all(&self) -> Vec<T> {
        match self {
            Tables::Exact(exact) => exact.all(),
            Tables::Views(views) => views.all(),
        }
    }
}

/// A long queue without wildcards. It is a hash table by source and tag with open addressing. Each place has the first entry with
/// its key, and a list of later entries with that key. So most searches read one cache line.
#[derive(Debug)]
pub(super) struct Exact<T> {
    /// The places of the table. Their number is a power of two, and at most half of them are in use.
    places: Vec<Place<T>>,
    taken: usize,
    slots: Vec<(T, u32)>,
    free: u32,
}

#[derive(Clone, Copy, Debug)]
struct Place<T> {
    /// The key of the place; [`EMPTY`] if it is free.
    key: u64,
    first: T,
    head: u32,
    tail: u32,
}

/// The key of a wildcard source with a wildcard tag. This table never has it.
const EMPTY: u64 = u64::MAX;
const FEWEST: usize = 64;

fn hash(key: u64, mask: usize) -> usize {
    // Sources and tags differ mostly in the low bits of each half, and the product is best mixed in its high bits.
    (key.wrapping_mul(0xf135_7aea_2e62_a9c5) >> 40) as usize & mask
}

impl<T: Side> Exact<T> {
    const fn new() -> Exact<T> {
        Exact { places: Vec::new(), taken: 0, slots: Vec::new(), free: NONE }
    }

    /// Returns the place of a key, or the free place for it.
    fn find(&self, key: u64) -> usize {
        let mask = self.places.len() - 1;
        let mut at = hash(key, mask);
        while self.places[at].key != key && self.places[at].key != EMPTY {
            at = (at + 1) & mask;
        }
        at
    }

    fn push(&mut self, waiting: T) {
        if self.taken * 2 >= self.places.len() {
            self.grow(waiting);
        }
        let key = key(View::Both, waiting.source(), waiting.tag());
        let at = self.find(key);
        if self.places[at].key == EMPTY {
            self.places[at] = Place { key, first: waiting, head: NONE, tail: NONE };
            self.taken += 1;
            return;
        }
        let slot = if self.free == NONE {
            self.slots.push((waiting, NONE));
            (self.slots.len() - 1) as u32
        } else {
            let slot = self.free;
            self.free = std::mem::replace(&mut self.slots[slot as usize], (waiting, NONE)).1;
            slot
        };
        match std::mem::replace(&mut self.places[at].tail, slot) {
            NONE => self.places[at].head = slot,
            last => self.slots[last as usize].1 = slot,
        }
    }

    /// Doubles the table. `filler` fills the free places.
    fn grow(&mut self, filler: T) {
        let length = (self.places.len() * 2).max(FEWEST);
        let empty = Place { key: EMPTY, first: filler, head: NONE, tail: NONE };
        let before = std::mem::replace(&mut self.places, vec![empty; length]);
        for place in before.into_iter().filter(|place| place.key != EMPTY) {
            let at = self.find(place.key);
            self.places[at] = place;
        }
    }

    fn take(&mut self, source: u32, tag: u32) -> Option<T> {
        if self.places.is_empty() {
            return None;
        }
        let at = self.find(key(View::Both, source, tag));
        let place = &mut self.places[at];
        if place.key == EMPTY {
            return None;
        }
        let taken = place.first;
        if place.head == NONE {
            self.remove(at);
            return Some(taken);
        }
        let slot = place.head;
        let (first, next) = self.slots[slot as usize];
        (place.first, place.head) = (first, next);
        if next == NONE {
            place.tail = NONE;
        }
        self.slots[slot as usize].1 = self.free;
        self.free = slot;
        Some(taken)
    }

    /// Frees a place, and moves later entries up if a search would otherwise miss them.
    fn remove(&mut self, mut hole: usize) {
        let mask = self.places.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let place = self.places[at];
            if place.key == EMPTY {
                break;
            }
            let home = hash(place.key, mask);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.places[hole] = place;
                hole = at;
            }
        }
        self.places[hole].key = EMPTY;
        self.taken -= 1;
    }

    fn prefetch(&self, source: u32, tag: u32) {
        if !self.places.is_empty() {
            prefetch(&self.places[hash(key(View::Both, source, tag), self.places.len() - 1)]);
        }
    }

    fn all(&self) -> Vec<T> {
        let mut places: Vec<_> = self.places.iter().filter(|place| place.key != EMPTY).collect();
        places.sort_unstable_by_key(|place| place.key);
        let mut found = Vec::new();
        for place in places {
            found.push(place.first);
            let mut at = place.head;
            while at != NONE {
                let (waiting, next) = self.slots[at as usize];
                found.push(waiting);
                at = next;
            }
        }
        found
    }
}

/// The first and the last entry with a key.
#[derive(Clone, Copy, Debug)]
struct Ends {
    head: u32,
    tail: u32,
}

#[derive(Debug)]
struct Slot<T> {
    waiting: T,
    /// The position of the entry in the queue's order.
    number: u64,
    /// For each view, the previous and the next entry with the same key.
    links: [(u32, u32); 4],
}

/// A long queue with wildcards: for each needed view, a list of entries for each key.
#[derive(Debug)]
pub(super) struct Views<T> {
    views: [bool; 4],
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    next: u64,
    lists: [FxHashMap<u64, Ends>; 4],
}

impl<T: Side> Views<T> {
    fn new(views: [bool; 4]) -> Views<T> {
        Views { views, slots: Vec::new(), free: Vec::new(), next: 0, lists: Default::default() }
    }

    fn push(&mut self, waiting: T) {
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
                .entry(key(view, waiting.source(), waiting.tag()))
                .or_insert(Ends { head: at, tail: NONE });
            let last = std::mem::replace(&mut ends.tail, at);
            if last != NONE {
                self.slots[last as usize].links[v].1 = at;
                self.slots[at as usize].links[v].0 = last;
            }
        }
    }

    /// Finds the earliest among the first entries of some lists, removes it and returns it.
    fn take(&mut self, asked: &[(View, u32, u32)]) -> Option<T> {
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

    fn unlink(&mut self, view: View, at: u32, waiting: T, (before, behind): (u32, u32)) {
        let v = view as usize;
        let key = key(view, waiting.source(), waiting.tag());
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

    fn all(&self) -> Vec<T> {
        let mut is_free = vec![false; self.slots.len()];
        self.free.iter().for_each(|at| is_free[*at as usize] = true);
        let slots = self.slots.iter().zip(is_free).filter(|(_, is_free)| !is_free);
        let mut found: Vec<_> = slots.map(|(slot, _)| (slot.number, slot.waiting)).collect();
        found.sort_unstable_by_key(|(number, _)| *number);
        found.into_iter().map(|(_, waiting)| waiting).collect()
    }
}
