//! The root complex and the last-level cache behind it: the cost of a card's access to host memory.
//!
//! A read hits or misses the cache, and does not allocate. A write updates a cached line. A missing line is allocated
//! in one of the ways that DMA may use, as with Intel's DDIO. It replaces the least recently used line of these ways.
//! Without such ways, writes go to memory and remove the cached line. A line that is partly written is read and merged
//! first. A read of the card waits until the card's earlier writes are in the cache.
//!
//! The state of the cache is known only to a benchmark that declares it ([`Bus::root_cache`](crate::Bus::root_cache)).
//! Until then every access hits.

use nicety_types::{Duration, Time};
use std::ops::Range;

/// Size of a line in bytes.
const LINE: u64 = 64;

/// The specification of the last-level cache, as a root complex uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootSpec {
    /// Size of the cache in bytes.
    pub cache: u64,
    /// Number of ways.
    pub ways: u64,
    /// Number of ways in which writes of cards are allocated. Zero: they go to memory.
    pub io_ways: u64,
    /// Time that a read takes longer if a line is not in the cache.
    pub miss: Duration,
    /// Time until a partly written line is merged, after the arrival of the write.
    pub partial: Duration,
    /// Time until a dirty line has made room for another line.
    pub write_back: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The line's number plus one. Zero: the place is empty.
    line: u64,
    /// The last use.
    used: u64,
    is_dirty: bool,
}

/// The state of a last-level cache, and the writes on their way to it.
#[derive(Debug)]
pub struct RootCache {
    spec: RootSpec,
    sets: u64,
    places: Vec<Place>,
    uses: u64,
    /// The time at which all writes so far are in the cache.
    written: Time,
}

impl RootCache {
    /// Returns an empty cache.
    pub(crate) fn new(spec: RootSpec) -> RootCache {
        let sets = (spec.cache / LINE / spec.ways).max(1);
        let places = vec![Place::default(); (sets * spec.ways) as usize];
        RootCache { spec, sets, places, uses: 0, written: Time::ZERO }
    }

    /// The host's CPUs write `bytes`: the lines are then in the cache, in any way.
    pub fn warm(&mut self, bytes: Range<u64>) {
        for line in lines_of(&bytes) {
            let (ways, is_dirty) = (self.spec.ways, true);
            if self.find(line, is_dirty).is_none() {
                self.allocate(line, ways);
            }
        }
    }

    /// Returns the time that a card's read of `bytes` takes longer than a read that hits. The lines are read side by
    /// side.
    pub fn read(&mut self, bytes: Range<u64>) -> Duration {
        let missing = lines_of(&bytes).filter(|&line| self.find(line, false).is_none()).count();
        if missing > 0 { self.spec.miss } else { Duration::ZERO }
    }

    /// A card writes `bytes`. Returns the time until the bytes are in the cache or in memory.
    pub fn write(&mut self, bytes: Range<u64>) -> Duration {
        lines_of(&bytes).map(|line| self.write_line(line, &bytes)).max().unwrap_or(Duration::ZERO)
    }

    fn write_line(&mut self, line: u64, bytes: &Range<u64>) -> Duration {
        let is_whole = bytes.start <= line * LINE && (line + 1) * LINE <= bytes.end;
        let merge = if is_whole { Duration::ZERO } else { self.spec.partial };
        if self.spec.io_ways == 0 {
            let was_cached = self.forget(line);
            let fetch = if is_whole || was_cached { Duration::ZERO } else { self.spec.miss };
            return merge + fetch;
        }
        if self.find(line, true).is_some() {
            return merge;
        }
        let fetch = if is_whole { Duration::ZERO } else { self.spec.miss };
        let room = if self.allocate(line, self.spec.io_ways) { self.spec.write_back } else { Duration::ZERO };
        merge + fetch.max(room)
    }

    /// A write arrives at `at`. Reads that arrive later wait until its bytes are in the cache.
    pub(crate) fn write_at(&mut self, at: Time, bytes: Range<u64>) {
        let cost = self.write(bytes);
        self.written = self.written.max(at + cost);
    }

    /// A read arrives at `at`. Returns the time at which a read that hits begins, in its place.
    pub(crate) fn read_at(&mut self, at: Time, bytes: Range<u64>) -> Time {
        at.max(self.written) + self.read(bytes)
    }

    /// Uses a line, if it is in the cache, and returns its place.
    fn find(&mut self, line: u64, writes: bool) -> Option<usize> {
        let set = self.set_of(line);
        let place = set.clone().find(|&place| self.places[place].line == line + 1)?;
        self.uses += 1;
        self.places[place].used = self.uses;
        self.places[place].is_dirty |= writes;
        Some(place)
    }

    /// Puts a written line into the least recently used one of the first `ways` ways. Returns whether a dirty line had
    /// to leave.
    fn allocate(&mut self, line: u64, ways: u64) -> bool {
        let set = self.set_of(line);
        let places = set.start..set.start + ways as usize;
        let place = places.min_by_key(|&place| self.places[place].used).expect("a set has a way at least");
        self.uses += 1;
        let left = std::mem::replace(
            &mut self.places[place],
            Place { line: line + 1, used: self.uses, is_dirty: true },
        );
        left.is_dirty
    }

    /// Removes a line. Returns whether it was in the cache.
    fn forget(&mut self, line: u64) -> bool {
        let place = self.find(line, false);
        if let Some(place) = place {
            self.places[place] = Place::default();
        }
        place.is_some()
    }

    fn set_of(&self, line: u64) -> Range<usize> {
        let first = (line % self.sets * self.spec.ways) as usize;
        first..first + self.spec.ways as usize
    }
}

fn lines_of(bytes: &Range<u64>) -> Range<u64> {
    if bytes.is_empty() { 0..0 } else { bytes.start / LINE..bytes.end.div_ceil(LINE) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ns(time: u64) -> Duration {
        Duration::from_ns(time)
    }

    /// A cache of four sets and three ways. `io_ways` of them take writes of cards.
    fn small(io_ways: u64) -> RootCache {
        RootCache::new(RootSpec {
            cache: 4 * 3 * 64,
            ways: 3,
            io_ways,
            miss: ns(50),
            partial: ns(20),
            write_back: ns(70),
        })
    }

    #[test]
    fn reads_hit_what_the_host_wrote_and_do_not_allocate() {
        let mut cache = small(1);
        assert_eq!(cache.read(0..64), ns(50));
        assert_eq!(cache.read(0..64), ns(50));
        cache.warm(0..128);
        assert_eq!(cache.read(10..120), ns(0));
        // Any missing line makes the read wait, and lines are read side by side.
        assert_eq!(cache.read(0..300), ns(50));
        assert_eq!(cache.read(0..0), ns(0));
    }

    #[test]
    fn writes_use_their_own_ways_only() {
        let mut cache = small(1);
        let line = |number: u64| number * 64..(number + 1) * 64;
        // Lines 0, 4, 8, 12 and 16 share set 0. The host's lines fill its three ways. The card's lines replace the line
        // in the first way, and then one another.
        for number in [0, 4, 8] {
            cache.warm(line(number));
        }
        assert_eq!(cache.write(line(12)), ns(70));
        assert_eq!(cache.write(line(16)), ns(70));
        let hits = [0, 4, 8, 12, 16].map(|number| cache.read(line(number)) == ns(0));
        assert_eq!(hits, [false, true, true, false, true]);
    }

    #[test]
    fn an_empty_way_costs_no_write_back() {
        let mut cache = small(2);
        assert_eq!(cache.write(0..64), ns(0));
        assert_eq!(cache.write(4 * 64..5 * 64), ns(0));
        assert_eq!(cache.write(8 * 64..9 * 64), ns(70));
    }

    #[test]
    fn a_partly_written_line_is_merged() {
        let mut cache = small(1);
        // The line is not in the cache: it is fetched, and then merged.
        assert_eq!(cache.write(8..16), ns(70));
        assert_eq!(cache.write(8..16), ns(20));
        assert_eq!(cache.write(0..64), ns(0));
        assert_eq!(cache.write(0..65), ns(70));
    }

    #[test]
    fn without_own_ways_writes_go_to_memory() {
        let mut cache = small(0);
        cache.warm(0..64);
        assert_eq!(cache.read(0..64), ns(0));
        assert_eq!(cache.write(0..64), ns(0));
        assert_eq!(cache.read(0..64), ns(50));
    }

    #[test]
    fn a_read_waits_for_earlier_writes() {
        let mut cache = small(1);
        cache.write_at(Time::from_ps(1_000), 8..16);
        assert_eq!(cache.read_at(Time::from_ps(2_000), 8..16), Time::from_ps(71_000));
        assert_eq!(cache.read_at(Time::from_ps(90_000), 8..16), Time::from_ps(90_000));
    }

    proptest! {
        #[test]
        fn the_last_written_line_is_in_the_cache(
            io_ways in 1u64..=3,
            writes in prop::collection::vec((0u64..100, 0u64..64), 1..50),
        ) {
            let mut cache = small(io_ways);
            for (line, offset) in writes {
                let bytes = line * 64 + offset..(line + 1) * 64;
                prop_assert!(cache.write(bytes.clone()) <= ns(90));
                prop_assert_eq!(cache.read(bytes.clone()), ns(0));
                prop_assert_eq!(cache.write(bytes), if offset == 0 { ns(0) } else { ns(20) });
            }
        }
    }
}
