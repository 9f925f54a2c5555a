//! Data races: two accesses to a byte, at least one of them a store, by runs that nothing orders.
//!
//! Each byte of shared memory keeps its last plain store, and a few loads and atomic stores (FastTrack, PLDI 2009). A run is a
//! thread. So a race is found although the runs were on one core, or far apart in time.

use crate::calls::Site;
use crate::clocks::Clock;
use crate::run::Behind;
use rustc_hash::FxHashMap;

/// Bytes of a page.
const PAGE: usize = 64;
/// Loads and atomic stores kept of a byte.
const LOADS: usize = 3;
const ATOMICS: usize = 2;

/// An access of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// The number of the run, and its step.
    pub run: u32,
    pub step: u32,
    pub site: Site,
    pub store: bool,
    /// Whether it is an atomic operation, or an atomic load or store.
    pub atomic: bool,
    /// Whether it is a store of a process in one reference, or a load that polls a word.
    pub single: bool,
    pub polls: bool,
    /// The place of a plain store behind a fence.
    pub behind: Behind,
    /// The core, for an address that depends on its number.
    pub by_core: Option<u32>,
}

impl Access {
    /// Whether it precedes an access, or belongs to the same run.
    fn precedes(&self, access: &Access, clock: &Clock) -> bool {
        let same_core = self.by_core.is_some() && self.by_core == access.by_core;
        self.run == access.run || same_core || clock.covers(self.run, self.step)
    }

    /// Whether a plain store may be C11's relaxed store of a flag, which an atomic access takes. Both are the same
    /// instruction.
    fn is_flag_for(&self, other: &Access) -> bool {
        other.atomic && self.behind >= if other.store { Behind::Stores } else { Behind::Earlier }
    }
}

#[derive(Clone, Copy, Default)]
struct Byte {
    /// The last plain store.
    store: Option<Access>,
    /// Atomic stores and loads since then.
    atomics: [Option<Access>; ATOMICS],
    loads: [Option<Access>; LOADS],
}

/// The accesses to the bytes of a page.
enum Page {
    /// All bytes have the same ones, as after a transfer.
    Whole(Byte),
    Bytes(Box<[Byte; PAGE]>),
}

impl Page {
    /// Returns the bytes apart.
    fn bytes(&mut self) -> &mut [Byte; PAGE] {
        if let Page::Whole(byte) = self {
            *self = Page::Bytes(Box::new([*byte; PAGE]));
        }
        match self {
            Page::Bytes(bytes) => bytes,
            Page::Whole(_) => unreachable!("just taken apart"),
        }
    }
}

/// The accesses to shared memory.
#[derive(Default)]
pub(crate) struct Races {
    pages: FxHashMap<u32, Page>,
}

impl Races {
    /// Takes an access to bytes. Returns an earlier access with which it races.
    pub fn access(
        &mut self,
        access: Access,
        mut address: u32,
        mut bytes: u32,
        clock: &Clock,
    ) -> Option<Access> {
        let mut found = None;
        while bytes > 0 {
            let at = address as usize % PAGE;
            let part = (PAGE - at).min(bytes as usize);
            let page =
                self.pages.entry(address / PAGE as u32).or_insert_with(|| Page::Whole(Byte::default()));
            if let (Page::Whole(byte), PAGE) = (&mut *page, part) {
                found = found.or(byte.take(access, clock));
            } else {
                for byte in &mut page.bytes()[at..at + part] {
                    found = found.or(byte.take(access, clock));
                }
            }
            address = address.wrapping_add(part as u32);
            bytes -= part as u32;
        }
        found
    }
}

impl Byte {
    fn take(&mut self, access: Access, clock: &Clock) -> Option<Access> {
        let again = |known: &Option<Access>| {
            known.is_some_and(|known| (known.run, known.step) == (access.run, access.step))
        };
        // The present record says as much: nothing weaker than a store of this step was there since.
        let only_store = self.atomics.iter().chain(&self.loads).all(Option::is_none);
        if only_store && again(&self.store) {
            return None;
        }
        let race = self.race(&access, clock);
        let next_to = |known: &[Option<Access>]| {
            let place =
                known.iter().position(|known| known.is_none_or(|known| known.precedes(&access, clock)));
            place.unwrap_or(0)
        };
        match access {
            Access { store: true, atomic: false, .. } => {
                *self = Byte { store: Some(access), ..Byte::default() }
            }
            Access { store: true, .. } => self.atomics[next_to(&self.atomics)] = Some(access),
            _ => self.loads[next_to(&self.loads)] = Some(access),
        }
        race
    }

    /// Returns an earlier access with which this one races.
    fn race(&self, access: &Access, clock: &Clock) -> Option<Access> {
        let earlier = |other: &Option<Access>| other.filter(|other| !other.precedes(access, clock));
        // A loop of a process may wait for a word that another process stores in one reference.
        let stored =
            earlier(&self.store).filter(|store| !(store.single && access.polls || store.is_flag_for(access)));
        if stored.is_some() || access.atomic || !access.store {
            // A plain load beside an atomic store is C11's relaxed load: both are the same instruction.
            return stored;
        }
        let counts = |load: &Access| !(access.single && load.polls || access.is_flag_for(load));
        let stored = self.atomics.iter().filter_map(earlier).find(|store| !access.is_flag_for(store));
        stored.or_else(|| self.loads.iter().filter_map(earlier).find(counts))
    }
}
