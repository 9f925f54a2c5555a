//! The share of data lines that are still in a cache at their next touch.
//!
//! A cache is a count of the lines that were filled into it. Fills of any thread evict lines. The fills since the last
//! touch of a set of lines are a share of the capacity. The set has lost this share of its lines. So a thread that
//! sleeps longer, or has busier neighbours, finds less of its data, and sharing needs no other rule. Fractions of lines
//! are carried over from touch to touch, so that rounding loses none.

use super::account::Group;
use super::spec::CachesSpec;
use std::cell::{Cell, RefCell};

/// Lines that belong together and are touched together: a connection's state, a packet's header, a thread's stack.
#[derive(Debug, Default)]
pub struct Data {
    lines: u64,
    last: Cell<Option<Touch>>,
}

/// Place and fill counts of the last touch.
#[derive(Clone, Copy, Debug)]
struct Touch {
    core: usize,
    first: u64,
    second: u64,
}

impl Data {
    /// Returns `lines` lines that are in no cache.
    pub const fn new(lines: u64) -> Data {
        Data { lines, last: Cell::new(None) }
    }

    /// Records that a card has written the lines to memory: no cache holds them any more.
    pub fn forget(&self) {
        self.last.set(None);
    }
}

/// A page of memory. A piece of work within the page uses an entry of its core's TLB.
#[derive(Debug, Default)]
pub struct Page {
    /// Fill count of each core's TLB after the last use there.
    last: RefCell<Vec<Option<u64>>>,
}

/// Misses of cache lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// In the core's first level.
    pub first: u64,
    /// First-level misses that also missed the second level.
    pub second: u64,
}

/// A cache, modelled by its fills.
#[derive(Debug)]
struct Level {
    capacity: u64,
    filled: u64,
    /// Lines missed, in shares of the capacity, that do not make a whole line yet.
    rest: u64,
}

impl Level {
    fn new(bytes: u64, line: u64) -> Level {
        Level { capacity: (bytes / line).max(1), filled: 0, rest: 0 }
    }

    /// Returns the number of `lines` that were evicted since their last touch at fill count `then`.
    fn gone(&mut self, lines: u64, then: u64) -> u64 {
        let newer = (self.filled - then).min(self.capacity);
        let beyond = lines.saturating_sub(self.capacity);
        let shares = (lines - beyond) * newer + self.rest;
        self.rest = shares % self.capacity;
        beyond + shares / self.capacity
    }
}

/// A core's instruction cache, or its TLB for code, where a line is a page. The code of a function group is one set with as
/// many lines as its instructions take. Kernels go through it once per packet, nearly without loops.
#[derive(Debug)]
struct Code {
    line: u64,
    level: Level,
    /// Fill count after the last run of each group's code.
    last: [Option<u64>; Group::ALL.len()],
}

/// Bytes of an instruction.
const INSTRUCTION: u64 = 4;

impl Code {
    /// Returns an empty cache with room for `lines` lines.
    fn new(lines: u64, line: u64) -> Code {
        Code { line, level: Level::new(lines, 1), last: Default::default() }
    }

    fn fetch(&mut self, group: Group, instructions: u64) -> u64 {
        let lines = instructions.saturating_mul(INSTRUCTION).div_ceil(self.line);
        let last = &mut self.last[group as usize];
        let missed = last.map_or(lines, |then| self.level.gone(lines, then));
        self.level.filled = self.level.filled.saturating_add(missed);
        *last = Some(self.level.filled);
        missed
    }
}

/// The caches of a processor.
#[derive(Debug)]
pub(super) struct Caches {
    first: Vec<Level>,
    second: Level,
    /// One per core; empty if instruction caches are not modelled.
    code: Vec<Code>,
    /// TLBs for data, one per core; empty if translations are not modelled.
    tlbs: Vec<Level>,
    /// TLBs for code, one per core; empty if translations of code are not modelled.
    code_tlbs: Vec<Code>,
}

impl Caches {
    pub(super) fn new(cores: usize, spec: &CachesSpec) -> Caches {
        let each = |code: Option<(u64, u64)>| -> Vec<Code> {
            code.iter().flat_map(|&(lines, line)| (0..cores).map(move |_| Code::new(lines, line))).collect()
        };
        Caches {
            first: (0..cores).map(|_| Level::new(spec.first, spec.line)).collect(),
            second: Level::new(spec.second, spec.line),
            code: each(spec.code.map(|code| (code.first / code.line, code.line))),
            tlbs: spec.tlb.iter().flat_map(|tlb| (0..cores).map(|_| Level::new(tlb.entries, 1))).collect(),
            code_tlbs: each(spec.code_tlb.map(|tlb| (tlb.entries, tlb.page))),
        }
    }

    /// A thread on this core runs `instructions` instructions of a group's code. Returns the lines that come from the
    /// second level.
    pub(super) fn fetch(&mut self, core: usize, group: Group, instructions: u64) -> u64 {
        self.code.get_mut(core).map_or(0, |code| code.fetch(group, instructions))
    }

    /// A thread on this core runs `instructions` instructions of a group's code. Returns the misses in its TLB for code.
    pub(super) fn translate_code(&mut self, core: usize, group: Group, instructions: u64) -> u64 {
        self.code_tlbs.get_mut(core).map_or(0, |tlb| tlb.fetch(group, instructions))
    }

    /// A thread on this core uses a page. Returns the number of misses in its TLB, which holds the page afterwards.
    pub(super) fn translate(&mut self, core: usize, page: &Page) -> u64 {
        let Some(tlb) = self.tlbs.get_mut(core) else { return 0 };
        let mut last = page.last.borrow_mut();
        if last.len() <= core {
            last.resize(core + 1, None);
        }
        let missed = last[core].map_or(1, |then| tlb.gone(1, then));
        tlb.filled += missed;
        last[core] = Some(tlb.filled);
        missed
    }

    /// A thread on this core touches data, and the core's caches hold it afterwards.
    pub(super) fn touch(&mut self, core: usize, data: &Data) -> Misses {
        let (lines, last) = (data.lines, data.last.get());
        let near = last.filter(|touch| touch.core == core);
        let first = near.map_or(lines, |touch| self.first[core].gone(lines, touch.first));
        let second = last.map_or(first, |touch| self.second.gone(first, touch.second));
        self.fill(core, Misses { first, second });
        let touch = Touch { core, first: self.first[core].filled, second: self.second.filled };
        data.last.set(Some(touch));
        Misses { first, second }
    }

    /// A thread on this core goes once through `lines` uncached lines, and does not return to them.
    pub(super) fn stream(&mut self, core: usize, lines: u64) -> Misses {
        let misses = Misses { first: lines, second: lines };
        self.fill(core, misses);
        misses
    }

    fn fill(&mut self, core: usize, misses: Misses) {
        self.first[core].filled += misses.first;
        self.second.filled += misses.second;
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::{CodeSpec, CodeTlbSpec, TlbSpec};
    use super::*;
    use nicety_types::Duration;
    use proptest::prelude::*;

    /// 16 lines for each of two cores, 64 lines for both.
    fn caches_spec() -> CachesSpec {
        CachesSpec {
            line: 64,
            first: 1024,
            second: 4096,
            second_latency: Duration::ZERO,
            memory_latency: Duration::ZERO,
            overlap: 1,
            code: Some(CodeSpec { first: 512, line: 32 }),
            tlb: Some(TlbSpec { entries: 4, miss: Duration::ZERO }),
            code_tlb: Some(CodeTlbSpec { entries: 4, page: 256, miss: Duration::ZERO }),
        }
    }

    fn caches() -> Caches {
        Caches::new(2, &caches_spec())
    }

    const fn misses(first: u64, second: u64) -> Misses {
        Misses { first, second }
    }

    #[test]
    fn data_stays_until_others_come() {
        let (mut caches, state) = (caches(), Data::new(8));
        assert_eq!(caches.touch(0, &state), misses(8, 8));
        assert_eq!(caches.touch(0, &state), misses(0, 0));
        // Four of sixteen lines evict a quarter of the eight. In the second level 4 of 64 evict an eighth of one.
        assert_eq!(caches.stream(0, 4), misses(4, 4));
        assert_eq!(caches.touch(0, &state), misses(2, 0));
        // As many lines as the cache has evict all.
        caches.stream(0, 16);
        assert_eq!(caches.touch(0, &state).first, 8);
    }

    #[test]
    fn another_core_has_them_in_the_second_level_only() {
        let (mut caches, state) = (caches(), Data::new(8));
        caches.touch(0, &state);
        assert_eq!(caches.touch(1, &state), misses(8, 0));
        assert_eq!(caches.touch(1, &state), misses(0, 0));
        assert_eq!(caches.touch(0, &state), misses(8, 0));
    }

    #[test]
    fn writes_of_a_card_are_in_no_cache() {
        let (mut caches, header) = (caches(), Data::new(2));
        caches.touch(0, &header);
        header.forget();
        assert_eq!(caches.touch(0, &header), misses(2, 2));
    }

    #[test]
    fn fractions_of_lines_add_up() {
        let (mut caches, state) = (caches(), Data::new(1));
        caches.touch(0, &state);
        // Each time one of sixteen lines is new. One touch in sixteen misses, and its own line is also new.
        let missed: u64 = (0..160)
            .map(|_| {
                caches.stream(0, 1);
                caches.touch(0, &state).first
            })
            .sum();
        assert_eq!(missed, 10);
    }

    #[test]
    fn data_larger_than_a_cache_never_fits() {
        let (mut caches, buffer) = (caches(), Data::new(20));
        caches.touch(0, &buffer);
        assert_eq!(caches.touch(0, &buffer), misses(4, 0));
    }

    #[test]
    fn code_stays_until_other_code_comes() {
        // 16 lines of 8 instructions for each core.
        let mut caches = caches();
        assert_eq!(caches.fetch(0, Group::Stack, 64), 8);
        assert_eq!(caches.fetch(0, Group::Stack, 60), 0);
        // Four of sixteen lines evict a quarter of the eight.
        assert_eq!(caches.fetch(0, Group::Driver, 32), 4);
        assert_eq!(caches.fetch(0, Group::Stack, 64), 2);
        // Another core has its own cache, and data is elsewhere.
        assert_eq!(caches.fetch(1, Group::Stack, 64), 8);
        caches.stream(0, 100);
        assert_eq!(caches.fetch(0, Group::Stack, 64), 0);
        // More code than fits.
        assert_eq!(caches.fetch(0, Group::Copy, 160), 20);
        assert_eq!(caches.fetch(0, Group::Stack, 64), 8);
    }

    #[test]
    fn pages_stay_in_a_tlb_until_others_come() {
        let (mut caches, pages) = (caches(), [(); 9].map(|()| Page::default()));
        assert_eq!([caches.translate(0, &pages[0]), caches.translate(0, &pages[0])], [1, 0]);
        // Two of four entries are new: every second use of the page misses.
        assert_eq!([caches.translate(0, &pages[1]), caches.translate(0, &pages[2])], [1, 1]);
        assert_eq!(caches.translate(0, &pages[0]), 0);
        assert_eq!([caches.translate(0, &pages[3]), caches.translate(0, &pages[4])], [1, 1]);
        assert_eq!(caches.translate(0, &pages[0]), 1);
        // Another core has its own, and four new entries replace all.
        assert_eq!([caches.translate(1, &pages[0]), caches.translate(0, &pages[0])], [1, 0]);
        for page in &pages[5..] {
            caches.translate(0, page);
        }
        assert_eq!([caches.translate(0, &pages[0]), caches.translate(1, &pages[0])], [1, 0]);
    }

    #[test]
    fn pages_of_code_stay_in_a_tlb_until_others_come() {
        // Four entries for each core. A page has 64 instructions.
        let mut caches = caches();
        assert_eq!([65, 64, 128].map(|n| caches.translate_code(0, Group::Stack, n)), [2, 0, 0]);
        // Two of four entries are new, so one of the two pages is gone, and comes back.
        assert_eq!([128, 1].map(|n| caches.translate_code(0, Group::Driver, n)), [2, 0]);
        assert_eq!(caches.translate_code(0, Group::Stack, 128), 1);
        // Another core has its own, and data has other entries.
        assert_eq!(caches.translate_code(1, Group::Stack, 128), 2);
        for _ in 0..4 {
            caches.translate(0, &Page::default());
        }
        assert_eq!(caches.translate_code(0, Group::Stack, 128), 0);
        // More pages than entries.
        assert_eq!(caches.translate_code(0, Group::Copy, 5 * 64), 5);
        assert_eq!(caches.translate_code(0, Group::Stack, 128), 2);
    }

    #[test]
    fn code_takes_no_time_where_its_cache_is_left_out() {
        let mut caches = Caches::new(2, &CachesSpec { code: None, ..caches_spec() });
        assert_eq!(caches.fetch(0, Group::Stack, 64), 0);
    }

    proptest! {
        #[test]
        fn no_more_misses_than_lines(
            touches in prop::collection::vec((0usize..2, 0usize..4, 0u64..40), 1..200),
        ) {
            let mut caches = caches();
            let data = [Data::new(1), Data::new(7), Data::new(16), Data::new(100)];
            for (core, which, streamed) in touches {
                let lines = data[which].lines;
                let missed = caches.touch(core, &data[which]);
                prop_assert!(missed.first <= lines && missed.second <= missed.first);
                caches.stream(core, streamed);
            }
        }
    }
}
