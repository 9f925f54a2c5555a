//! Data caches: the lines of each, which of them it has changed, and what an access finds.
//!
//! They hold no bytes: what a program reads is always what was written last, and caches decide on times alone. Where
//! nothing keeps them coherent, they tell accesses to words that the card's own caches would have older bytes of.

use crate::cache::CacheShape;
use crate::stale::Writers;

/// What keeps caches from holding different bytes of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coherence {
    /// Nothing: each cache is on its own, and software has to see to it.
    None,
    /// A cache that stores owns the line: others give theirs up before, and it hands the line over to those that come later.
    Ownership,
}

/// How caches store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// Into the line, which is fetched before if it is missing, and written to memory when it makes room.
    Back,
    /// To memory, and into the line if it is there.
    Through,
}

/// What an access finds of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is in the cache.
    Hit {
        /// The cycle from which on it is there.
        ready: u64,
        /// Other caches have given theirs up.
        taken: bool,
    },
    /// Another cache has changed it, and hands it over: memory is not asked.
    Owner {
        /// The cycle from which on the owner has it.
        ready: u64,
    },
    /// Memory has its bytes.
    Memory {
        /// Other caches have given theirs up.
        taken: bool,
    },
}

/// What an access past the caches meets there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Other caches have given the line up.
    pub taken: bool,
    /// A cache had changed it, and has written it to memory.
    pub written_back: bool,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    /// Its number, or [`NONE`].
    number: u64,
    /// The cycle from which on it is there.
    ready: u64,
    /// When it was last used, in uses of the caches.
    used: u64,
    /// When it was filled in, in the same.
    filled: u64,
    /// Memory does not have its bytes yet.
    changed: bool,
    /// No other cache has it.
    alone: bool,
}

const NONE: u64 = u64::MAX;
const EMPTY: Line = Line { number: NONE, ready: 0, used: 0, filled: 0, changed: false, alone: false };

/// Caches of one shape, each of a core or of several.
#[derive(Clone, Debug)]
pub struct DataCaches {
    shape: CacheShape,
    writes: Writes,
    coherence: Coherence,
    /// Number of sets, a power of two, less one.
    mask: u64,
    /// Of each cache, its lines by set.
    lines: Vec<Box<[Line]>>,
    uses: u64,
    /// Who wrote each word, where caches may differ.
    writers: Option<Writers>,
}

impl DataCaches {
    /// Empty caches.
    ///
    /// # Panics
    /// When the line or the number of sets is no power of two, or the bytes are not a multiple of a set's.
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

    /// The shape of each.
    pub const fn shape(&self) -> CacheShape {
        self.shape
    }

    /// How they store.
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

    /// A cache looks for the line of this number, for a load. Unless it hits, [`fill`](DataCaches::fill) comes next.
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

    /// The same for a store. Where caches write through, the line is not filled in.
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

    /// A cache has the line of this number from cycle `ready` on, after a [`load`](DataCaches::load) or a
    /// [`store`](DataCaches::store) missed it. Returns the line that makes room, if it is written to memory.
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

    /// A cache's core accesses memory itself, past the caches: the line leaves its own, and by ownership the others.
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

    /// Others have written the line to memory, or have nothing more to do with it: it leaves a cache as it is.
    pub fn drop_line(&mut self, cache: usize, number: u64) {
        self.remove(cache, number);
    }

    fn in_others(&mut self, cache: usize, mut act: impl FnMut(&mut DataCaches, usize)) {
        if self.coherence == Coherence::Ownership {
            (0..self.lines.len()).filter(|&other| other != cache).for_each(|other| act(self, other));
        }
    }

    /// Takes a line from a cache: whether it had changed it, if it was there.
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

    /// Whether caches may differ: several without coherence. Only then [`is_stale`](DataCaches::is_stale) finds anything.
    pub const fn may_differ(&self) -> bool {
        self.writers.is_some()
    }

    /// Whether a cache, which has looked for these words of one line and filled it in, would see an older value of one on
    /// the card: another cache has written it, and had not written it to memory when the line was filled in. Without
    /// the line, it is memory that would have the older value.
    pub fn is_stale(&mut self, cache: usize, address: u64, bytes: u32) -> bool {
        let number = address / u64::from(self.shape.line);
        let now = self.uses;
        let filled = self.line(cache, number).map_or(now, |line| line.filled);
        self.writers.as_ref().is_some_and(|writers| writers.is_stale(cache, address, bytes, filled))
    }

    /// A cache has stored these words of one line.
    pub fn stored(&mut self, cache: usize, address: u64, bytes: u32) {
        let reached = (self.writes == Writes::Through).then_some(self.uses);
        if let Some(writers) = &mut self.writers {
            writers.stored(Some(cache), address, bytes, reached);
        }
    }

    /// These words have been written in memory, past the caches.
    pub fn stored_in_memory(&mut self, address: u64, bytes: u32) {
        let now = self.uses;
        if let Some(writers) = &mut self.writers {
            writers.stored(None, address, bytes, Some(now));
        }
    }
}
