//! The CPU cache: the lines of host memory in it, and the lines that a loop over memory fetches.
//!
//! All cores share one fully associative LRU cache. A missing line is fetched when it is read or partly written. A line
//! that is wholly written is not fetched, as with streaming stores. A dirty line is written back once. The write-back
//! is counted when the line becomes dirty. A write by a card removes the cached copy of a line.

use std::collections::HashMap;
use std::ops::Range;

/// Numbers of lines moved between cache and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Number of lines read from memory into the cache.
    pub fetched: u64,
    /// Number of lines written in the cache, and later written back to memory.
    pub written: u64,
}

/// The end of a list of places.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Place {
    line: u64,
    dirty: bool,
    /// The place used just before this one, and the place used just after it.
    older: u32,
    newer: u32,
}

/// The cached lines of memory, in the order of their last use.
#[derive(Debug)]
pub(crate) struct Cache {
    line_bytes: u64,
    capacity: usize,
    at: HashMap<u64, u32>,
    places: Vec<Place>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl Cache {
    /// Returns an empty cache of `bytes` bytes in lines of `line_bytes`.
    pub(crate) fn new(bytes: u64, line_bytes: u64) -> Cache {
        Cache {
            line_bytes,
            capacity: usize::try_from(bytes / line_bytes).expect("a cache that fits the address space"),
            at: HashMap::new(),
            places: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
        }
    }

    /// A CPU reads `bytes`. Adds the moved lines to `lines`.
    pub(crate) fn read(&mut self, bytes: Range<u64>, lines: &mut Lines) {
        for line in self.lines_of(&bytes) {
            match self.use_line(line) {
                Some(_) => {}
                None => {
                    lines.fetched += 1;
                    self.insert(line, false);
                }
            }
        }
    }

    /// A CPU writes `bytes`. Adds the moved lines to `lines`.
    pub(crate) fn write(&mut self, bytes: Range<u64>, lines: &mut Lines) {
        for line in self.lines_of(&bytes) {
            match self.use_line(line) {
                Some(place) => {
                    let was_dirty = std::mem::replace(&mut self.places[place as usize].dirty, true);
                    lines.written += u64::from(!was_dirty);
                }
                None => {
                    let start = line * self.line_bytes;
                    let whole = bytes.start <= start && start + self.line_bytes <= bytes.end;
                    lines.fetched += u64::from(!whole);
                    lines.written += 1;
                    self.insert(line, true);
                }
            }
        }
    }

    /// A card writes `bytes` to memory, so the cache drops its copies of these lines.
    pub(crate) fn forget(&mut self, bytes: Range<u64>) {
        if self.at.is_empty() {
            return;
        }
        for line in self.lines_of(&bytes) {
            if let Some(place) = self.at.remove(&line) {
                self.unlink(place);
                self.free.push(place);
            }
        }
    }

    fn lines_of(&self, bytes: &Range<u64>) -> Range<u64> {
        match bytes.is_empty() {
            true => 0..0,
            false => bytes.start / self.line_bytes..bytes.end.div_ceil(self.line_bytes),
        }
    }

    /// Makes a cached line the most recently used one, and returns its place.
    fn use_line(&mut self, line: u64) -> Option<u32> {
        let place = *self.at.get(&line)?;
        if place != self.newest {
            self.unlink(place);
            self.link(place);
        }
        Some(place)
    }

    fn insert(&mut self, line: u64, dirty: bool) {
        if self.capacity == 0 {
            return;
        }
        if self.at.len() == self.capacity {
            let oldest = self.oldest;
            self.at.remove(&self.places[oldest as usize].line);
            self.unlink(oldest);
            self.free.push(oldest);
        }
        let new = Place { line, dirty, older: NONE, newer: NONE };
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = new;
                place
            }
            None => {
                self.places.push(new);
                self.places.len() as u32 - 1
            }
        };
        self.at.insert(line, place);
        self.link(place);
    }

    /// Makes a place the most recently used one.
    fn link(&mut self, place: u32) {
        self.places[place as usize].older = self.newest;
        self.places[place as usize].newer = NONE;
        match self.newest {
            NONE => self.oldest = place,
            newest => self.places[newest as usize].newer = place,
        }
        self.newest = place;
    }

    fn unlink(&mut self, place: u32) {
        let Place { older, newer, .. } = self.places[place as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.places[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.places[newer as usize].older = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(fetched: u64, written: u64) -> Lines {
        Lines { fetched, written }
    }

    #[test]
    fn cached_lines_are_not_fetched_again() {
        let mut cache = Cache::new(256, 64);
        let mut seen = Lines::default();
        cache.read(10..200, &mut seen);
        assert_eq!(seen, lines(4, 0));
        cache.read(0..256, &mut seen);
        assert_eq!(seen, lines(4, 0));
        // The cache holds four lines. A fifth line replaces the least recently used line, which is the first.
        cache.read(256..257, &mut seen);
        cache.read(64..256, &mut seen);
        assert_eq!(seen, lines(5, 0));
        cache.read(0..1, &mut seen);
        assert_eq!(seen, lines(6, 0));
    }

    #[test]
    fn whole_lines_are_written_without_being_fetched() {
        let mut cache = Cache::new(1024, 64);
        let mut seen = Lines::default();
        cache.write(64..192, &mut seen);
        assert_eq!(seen, lines(0, 2));
        cache.write(100..260, &mut seen);
        // Two of the four written lines are already dirty. The third is wholly written, and the fourth is partly
        // written.
        assert_eq!(seen, lines(1, 4));
        cache.write(0..0, &mut seen);
        assert_eq!(seen, lines(1, 4));
    }

    #[test]
    fn lines_written_by_a_card_are_fetched_again() {
        let mut cache = Cache::new(1024, 64);
        let mut seen = Lines::default();
        cache.write(0..256, &mut seen);
        cache.forget(70..80);
        cache.forget(5000..6000);
        cache.read(0..256, &mut seen);
        assert_eq!(seen, lines(1, 4));
        // The card's write removed the copy of a line, so this line becomes dirty again.
        cache.write(0..256, &mut seen);
        assert_eq!(seen, lines(1, 5));
    }

    #[test]
    fn a_cache_of_nothing_keeps_nothing() {
        let mut cache = Cache::new(0, 64);
        let mut seen = Lines::default();
        cache.read(0..128, &mut seen);
        cache.read(0..128, &mut seen);
        cache.write(0..64, &mut seen);
        assert_eq!(seen, lines(4, 1));
    }

    /// A reference cache: a list of lines with the last used line at its end.
    #[derive(Default)]
    struct Plain(Vec<(u64, bool)>);

    impl Plain {
        fn touch(&mut self, line: u64, write: bool, whole: bool, capacity: usize, seen: &mut Lines) {
            let found = self.0.iter().position(|(l, _)| *l == line).map(|at| self.0.remove(at));
            seen.fetched += u64::from(found.is_none() && !(write && whole));
            let dirty = found.is_some_and(|(_, dirty)| dirty);
            seen.written += u64::from(write && !dirty);
            self.0.push((line, dirty || write));
            if self.0.len() > capacity {
                self.0.remove(0);
            }
        }
    }

    proptest! {
        #[test]
        fn the_cache_is_a_list_by_last_use(
            capacity in 1usize..6,
            uses in prop::collection::vec((0u8..3, 0u64..800, 0u64..200), 0..60),
        ) {
            let mut cache = Cache::new(64 * capacity as u64, 64);
            let mut plain = Plain::default();
            let (mut seen, mut expected) = (Lines::default(), Lines::default());
            for (kind, start, length) in uses {
                let bytes = start..start + length;
                match kind {
                    0 => cache.read(bytes, &mut seen),
                    1 => cache.write(bytes, &mut seen),
                    _ => cache.forget(bytes),
                }
                for line in (start / 64..(start + length).div_ceil(64)).filter(|_| length > 0) {
                    let whole = start <= line * 64 && (line + 1) * 64 <= start + length;
                    match kind {
                        2 => plain.0.retain(|(l, _)| *l != line),
                        _ => plain.touch(line, kind == 1, whole, capacity, &mut expected),
                    }
                }
                prop_assert_eq!(seen, expected);
                prop_assert_eq!(cache.at.len(), plain.0.len());
            }
        }
    }
}
