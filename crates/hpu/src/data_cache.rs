//! Data caches: their lines, the changed lines, and the result of a lookup.
//!
//! They hold no bytes. A program always reads the last written value, and caches decide on times alone. If no hardware
//! keeps them coherent, they detect accesses for which the card's own caches would return older bytes.

use crate::cache::CacheShape;
use crate::stale::Writers;

/// The mechanism that keeps caches from holding different bytes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coherence {
    /// None: each cache is independent, and software is responsible for coherence.
    None,
    /// A cache that stores owns the line. Others are invalidated before, and the owner hands the line over to later
    /// accesses.
    Ownership,
}

/// The way in which caches store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// Into the line, which is fetched first if it is missing, and written to memory when it is evicted.
    Back,
    /// To memory, and into the line if it is present.
    Through,
}

/// The result of looking up a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is in the cache.
    Hit {
        /// The cycle from which it is present.
        ready: u64,
        /// Whether copies in other caches were invalidated.
        taken: bool,
    },
    /// Another cache has changed it, and hands it over without an access to memory.
    Owner {
        /// The cycle from which the owner has it.
        ready: u64,
    },
    /// Memory has its bytes.
    Memory {
        /// Whether copies in other caches were invalidated.
        taken: bool,
    },
}

/// The effect of an access past the caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Whether copies in other caches were invalidated.
    pub taken: bool,
    /// Whether a cache had changed the line, and wrote it to memory.
    pub written_back: bool,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    /// Its number, or [`NONE`].
    number: u64,
    /// The cycle from which it is present.
    ready: u64,
    /// Its last use, counted in uses of the caches.
    used: u64,
    /// Its fill, counted likewise.
    filled: u64,
    /// Whether memory does not have its bytes yet.
    changed: bool,
    /// Whether no other cache has it.
    alone: bool,
}

const NONE: u64 = u64::MAX;
const EMPTY: Line = Line { number: NONE, ready: 0, used: 0, filled: 0, changed: false, alone: false };

/// Caches of one shape. Each belongs to one core or to several.
#[derive(Clone, Debug)]
pub struct DataCaches {
    shape: CacheShape,
    writes: Writes,
    coherence: Coherence,
    /// Number of sets minus one. The number of sets is a power of two.
    mask: u64,
    /// The lines of each cache, by set.
    lines: Vec<Box<[Line]>>,
    uses: u64,
    /// The last writer of each word, if caches may differ.
    writers: Option<Writers>,
}

impl DataCaches {
    /// Empty caches.
    ///
    /// # Panics
    /// If the line or the number of sets is no power of two, or the bytes are not a multiple of a set's.
    pub fn new(caches: usize, shape: CacheShape, writes: Writes, coherence: Coherence) -> DataCaches {
        let CacheShape { bytes, ways, line } = shape;
        assert!(line.is_power_of_two() && line >= 4 && ways > 0, "{shape:?}");
        assert!(bytes > 0 && bytes.is_multiple_of(line * ways), "{shape:?}");
        assert!(shape.sets().is_power_of_two(), "{shape:?}");
        DataCaches {
            shape,
            writes,
            coherence,
            mask: u64::from(shape.sets()) - 1,
            lines: vec![vec![EMPTY; (bytes / line) as usize].into(); caches],
            uses: 0,
            writers: (coherence == Coherence::None && caches > 1).then(|| Writers::new(line)),
        }
    }

    /// The shape of each cache.
    pub const fn shape(&self) -> CacheShape {
        self.shape
    }

    /// The way in which they store.
    pub const fn writes(&self) -> Writes {
        self.writes
    }

    #[inline]
    fn set(&mut self, cache: usize, number: u64) -> &mut [Line] {
        let ways = self.shape.ways as usize;
        let first = (number & self.mask) as usize * ways;
        &mut self.lines[cache][first..first + ways]
    }

    #[inline]
    fn line(&mut self, cache: usize, number: u64) -> Option<&mut Line> {
        self.set(cache, number).iter_mut().find(|line| line.number == number)
    }

    /// Looks up the line of this number in a cache for a load. Unless it hits, [`fill`](DataCaches::fill) follows.
    #[inline]
    pub fn load(&mut self, cache: usize, number: u64) -> Found {
        self.uses += 1;
        let uses = self.uses;
        if let Some(line) = self.line(cache, number) {
            line.used = uses;
            return Found::Hit { ready: line.ready, taken: false };
        }
        let mut owner = None;
        self.in_others(cache, |caches, other| {
            if let Some(line) = caches.line(other, number) {
                line.alone = false;
                if line.changed {
                    owner = Some(line.ready);
                }
            }
        });
        owner.map_or(Found::Memory { taken: false }, |ready| Found::Owner { ready })
    }

    /// Looks up the line for a store. If caches write through, the line is not filled in.
    #[inline]
    pub fn store(&mut self, cache: usize, number: u64) -> Found {
        self.uses += 1;
        let (uses, changes) = (self.uses, self.writes == Writes::Back);
        let own = self.line(cache, number).map(|line| {
            line.used = uses;
            line.changed |= changes;
            (line.ready, std::mem::replace(&mut line.alone, true))
        });
        if let Some((ready, true)) = own {
            return Found::Hit { ready, taken: false };
        }
        let (mut taken, mut owner) = (false, None);
        self.in_others(cache, |caches, other| {
            if let Some(line) = caches.line(other, number) {
                taken = true;
                if line.changed {
                    owner = Some(line.ready);
                }
                *line = EMPTY;
            }
        });
        match (own, owner) {
            (Some((ready, _)), _) => Found::Hit { ready, taken },
            (None, Some(ready)) => Found::Owner { ready },
            (None, None) => Found::Memory { taken },
        }
    }

    /// Fills in a line from cycle `ready` on, after a [`load`](DataCaches::load) or a [`store`](DataCaches::store)
    /// missed it. Returns the evicted line if it is written to memory.
    pub fn fill(&mut self, cache: usize, number: u64, ready: u64, stores: bool) -> Option<u64> {
        self.uses += 1;
        let used = self.uses;
        let set = self.set(cache, number);
        let place = set.iter_mut().min_by_key(|line| (line.number != NONE, line.used)).expect("a way");
        let new = Line { number, ready, used, filled: used, changed: stores, alone: stores };
        let before = std::mem::replace(place, new);
        let goes = before.changed.then_some(before.number)?;
        self.wrote_back(cache, goes);
        Some(goes)
    }

    /// Accesses memory past the caches, for a core of this cache. The line is removed from this cache and, with
    /// ownership, from the others.
    pub fn pass(&mut self, cache: usize, number: u64) -> Passed {
        self.uses += 1;
        let mut passed = Passed { taken: false, written_back: self.remove(cache, number) == Some(true) };
        if passed.written_back {
            self.wrote_back(cache, number);
        }
        self.in_others(cache, |caches, other| {
            if let Some(changed) = caches.remove(other, number) {
                passed = Passed { taken: true, written_back: passed.written_back || changed };
            }
        });
        passed
    }

    /// Removes a line from a cache without a write-back. Others have written it to memory, or do not need it.
    pub fn drop_line(&mut self, cache: usize, number: u64) {
        self.remove(cache, number);
    }

    fn in_others(&mut self, cache: usize, mut act: impl FnMut(&mut DataCaches, usize)) {
        if self.coherence == Coherence::Ownership {
            (0..self.lines.len()).filter(|&other| other != cache).for_each(|other| act(self, other));
        }
    }

    /// Removes a line from a cache. Returns whether it was changed, if it was present.
    fn remove(&mut self, cache: usize, number: u64) -> Option<bool> {
        let line = self.line(cache, number)?;
        Some(std::mem::replace(line, EMPTY).changed)
    }

    fn wrote_back(&mut self, cache: usize, number: u64) {
        let now = self.uses;
        if let Some(writers) = &mut self.writers {
            writers.reached_memory(cache, number, now);
        }
    }

    /// Whether caches may differ: there are several without coherence. Only then can [`is_stale`](DataCaches::is_stale)
    /// return true.
    pub const fn may_differ(&self) -> bool {
        self.writers.is_some()
    }

    /// Whether a cache would see an older value of one of these words of a line on the card. The cache has looked them
    /// up and filled the line in. The value is older if another cache wrote the word, and had not written it to memory
    /// before the fill. Without the line, memory would have the older value.
    pub fn is_stale(&mut self, cache: usize, address: u64, bytes: u32) -> bool {
        let number = address / u64::from(self.shape.line);
        let now = self.uses;
        let filled = self.line(cache, number).map_or(now, |line| line.filled);
        self.writers.as_ref().is_some_and(|writers| writers.is_stale(cache, address, bytes, filled))
    }

    /// Records that a cache has stored these words of a line.
    pub fn stored(&mut self, cache: usize, address: u64, bytes: u32) {
        let reached = (self.writes == Writes::Through).then_some(self.uses);
        if let Some(writers) = &mut self.writers {
            writers.stored(Some(cache), address, bytes, reached);
        }
    }

    /// Records that these words were written in memory, past the caches.
    pub fn stored_in_memory(&mut self, address: u64, bytes: u32) {
        let now = self.uses;
        if let Some(writers) = &mut self.writers {
            writers.stored(None, address, bytes, Some(now));
        }
    }
}
