//! A cache of lines: its contents, the cycle from which each line is present, and LRU eviction.

/// The shape of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheShape {
    /// Its capacity in bytes.
    pub bytes: u32,
    /// Associativity: the number of places for a line.
    pub ways: u32,
    /// Bytes of a line, a power of two.
    pub line: u32,
}

impl CacheShape {
    /// Number of sets. A line's address selects its set.
    pub const fn sets(&self) -> u32 {
        self.bytes / (self.line * self.ways)
    }
}

/// Counters of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Lines filled in.
    pub fills: u64,
    /// Lines evicted.
    pub evictions: u64,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    /// Its number, or [`NONE`].
    number: u32,
    /// The cycle from which it is present.
    ready: u64,
    /// Its last use, counted in uses of the cache.
    used: u64,
}

/// No line: no program contains the last byte of the address space.
const NONE: u32 = u32::MAX;

/// A cache that evicts the least recently used line of a set.
#[derive(Clone, Debug)]
pub struct Cache {
    shape: CacheShape,
    /// Offset bits and index bits of an address, if sets are a power of two. The lookup is a good part of an
    /// instruction's cost here, and a division would be most of it.
    line_bits: u32,
    set_mask: Option<u32>,
    lines: Box<[Line]>,
    uses: u64,
    counters: CacheCounters,
}

impl Cache {
    /// An empty cache.
    ///
    /// # Panics
    /// If the line is no power of two above two, or the bytes are not a multiple of its ways.
    pub fn new(shape: CacheShape) -> Cache {
        let CacheShape { bytes, ways, line } = shape;
        assert!(line.is_power_of_two() && line > 2 && ways > 0, "{shape:?}");
        assert!(bytes > 0 && bytes.is_multiple_of(line * ways), "{shape:?}");
        let empty = Line { number: NONE, ready: 0, used: 0 };
        let lines = vec![empty; (bytes / line) as usize].into();
        let sets = shape.sets();
        let set_mask = sets.is_power_of_two().then(|| sets - 1);
        Cache { shape, line_bits: line.ilog2(), set_mask, lines, uses: 0, counters: CacheCounters::default() }
    }

    /// Its shape.
    pub const fn shape(&self) -> CacheShape {
        self.shape
    }

    /// Its counters.
    pub const fn counters(&self) -> CacheCounters {
        self.counters
    }

    #[inline]
    fn set(&mut self, number: u32) -> &mut [Line] {
        let ways = self.shape.ways as usize;
        let set = self.set_mask.map_or_else(|| number % self.shape.sets(), |mask| number & mask);
        let first = set as usize * ways;
        &mut self.lines[first..first + ways]
    }

    /// Uses the line of an address. Returns the cycle from which it is present, or `None` if it is missing.
    #[inline]
    pub fn find(&mut self, address: u32) -> Option<u64> {
        self.uses += 1;
        let uses = self.uses;
        let number = address >> self.line_bits;
        let line = self.set(number).iter_mut().find(|line| line.number == number)?;
        line.used = uses;
        Some(line.ready)
    }

    /// Fills in the line of an address, which is present from cycle `ready` on.
    pub fn fill(&mut self, address: u32, ready: u64) {
        self.uses += 1;
        let uses = self.uses;
        let number = address >> self.line_bits;
        let set = self.set(number);
        let own = set.iter().position(|line| line.number == number);
        let oldest = (0..set.len()).min_by_key(|&at| (set[at].number != NONE, set[at].used)).expect("a way");
        let place = &mut set[own.unwrap_or(oldest)];
        let evicts = own.is_none() && place.number != NONE;
        *place = Line { number, ready, used: uses };
        self.counters.fills += 1;
        self.counters.evictions += u64::from(evicts);
    }

    /// Returns the first line of `from..to` that is missing or not yet present at `cycle`.
    #[inline]
    pub(crate) fn missing(&mut self, from: u32, to: u32, cycle: u64) -> Option<u32> {
        let line = self.shape.line;
        if from >= to {
            return None;
        }
        let (mut at, last) = (from & !(line - 1), (to - 1) & !(line - 1));
        loop {
            if self.find(at).is_none_or(|ready| ready > cycle) {
                return Some(at);
            }
            if at == last {
                return None;
            }
            at = at.wrapping_add(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sets of two ways.
    const SMALL: CacheShape = CacheShape { bytes: 64, ways: 2, line: 16 };

    #[test]
    fn the_line_used_longest_ago_makes_room() {
        let mut cache = Cache::new(SMALL);
        assert_eq!(cache.find(0), None);
        for (address, ready) in [(0, 10), (32, 20), (16, 30)] {
            cache.fill(address, ready);
        }
        assert_eq!([15, 47, 16].map(|address| cache.find(address)), [Some(10), Some(20), Some(30)]);
        assert_eq!(cache.find(0), Some(10));
        // Set 0 has lines 0 and 32. 32 was used before 0.
        cache.fill(64, 40);
        assert_eq!([0, 32, 64, 16].map(|address| cache.find(address).is_some()), [true, false, true, true]);
        assert_eq!(cache.counters(), CacheCounters { fills: 4, evictions: 1 });
        // A line that is already present evicts none.
        cache.fill(64, 50);
        assert_eq!((cache.find(0), cache.find(64)), (Some(10), Some(50)));
    }

    #[test]
    fn a_line_is_missing_until_it_is_there() {
        let mut cache = Cache::new(SMALL);
        assert_eq!(cache.missing(4, 40, 100), Some(0));
        cache.fill(0, 105);
        assert_eq!(cache.missing(4, 40, 100), Some(0));
        assert_eq!(cache.missing(4, 40, 105), Some(16));
        cache.fill(16, 0);
        assert_eq!(cache.missing(4, 32, 105), None);
        assert_eq!(cache.missing(4, 33, 105), Some(32));
        assert_eq!(cache.missing(33, 33, 0), None);
    }
}
