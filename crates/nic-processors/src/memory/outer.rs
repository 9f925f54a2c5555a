//! The caches of all cores behind the data caches. A line that misses there is looked up in one after another, and is
//! filled into those before the one that has it.
//!
//! They hold times alone, as data caches do. No access waits for another one at such a cache.

use crate::spec::OuterCachesSpec;
use nicety_hpu::{Coherence, DataCaches, Found, Writes};

/// A cache of all cores.
struct Outer {
    caches: DataCaches,
    /// Cycles until a line arrives from here.
    fill: u64,
}

impl Outer {
    /// Returns the cycle from which a line is here, if it is. A store changes the line.
    fn find(&mut self, number: u64, stores: bool) -> Option<u64> {
        let found = match stores {
            true => self.caches.store(0, number),
            false => self.caches.load(0, number),
        };
        match found {
            Found::Hit { ready, .. } => Some(ready),
            Found::Owner { .. } | Found::Memory { .. } => None,
        }
    }
}

/// The caches of all cores, the nearest first.
#[derive(Default)]
pub(super) struct OuterCaches {
    outer: Vec<Outer>,
    deposit: Option<usize>,
}

impl OuterCaches {
    /// Returns empty caches.
    pub(super) fn new(spec: &OuterCachesSpec) -> OuterCaches {
        let outer = spec.caches.iter().flatten().map(|cache| Outer {
            caches: DataCaches::new(1, cache.shape, Writes::Back, Coherence::None),
            fill: cache.fill,
        });
        OuterCaches { outer: outer.collect(), deposit: spec.deposit }
    }

    /// Fetches a line for a data cache at this cycle. `memory` returns the cycles of a fetch from memory. Returns the
    /// cycles until its arrival. Changed lines that make room and are in no cache any more go into `evicted`.
    pub(super) fn fetch(
        &mut self,
        number: u64,
        cycle: u64,
        memory: impl FnOnce() -> u64,
        evicted: &mut Vec<u64>,
    ) -> u64 {
        let outer = self.outer.iter_mut().enumerate();
        let found = outer.map(|(index, cache)| (index, cache.find(number, false), cache.fill));
        let hit = found.into_iter().find_map(|(index, ready, fill)| Some((index, ready?.max(cycle + fill))));
        let (before, ready) = hit.unwrap_or_else(|| (self.outer.len(), cycle + memory()));
        (0..before).for_each(|index| self.fill(index, number, ready, false, evicted));
        ready - cycle
    }

    /// Takes a changed line that makes room in the cache before the one with this index.
    pub(super) fn write(&mut self, index: usize, number: u64, cycle: u64, evicted: &mut Vec<u64>) {
        match self.outer.get_mut(index).map(|cache| cache.find(number, true)) {
            None => evicted.push(number),
            Some(Some(_)) => {}
            Some(None) => self.fill(index, number, cycle, true, evicted),
        }
    }

    fn fill(&mut self, index: usize, number: u64, ready: u64, changed: bool, evicted: &mut Vec<u64>) {
        if let Some(goes) = self.outer[index].caches.fill(0, number, ready, changed) {
            self.write(index + 1, goes, ready, evicted);
        }
    }

    /// Takes a line that the card writes. It leaves all caches but the one that gets it.
    pub(super) fn deposit(&mut self, number: u64, cycle: u64, evicted: &mut Vec<u64>) {
        self.outer.iter_mut().for_each(|cache| cache.caches.drop_line(0, number));
        if let Some(index) = self.deposit {
            self.fill(index, number, cycle, true, evicted);
        }
    }
}
