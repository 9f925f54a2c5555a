//! The share of a thread's data lines that are still in a cache when the thread touches them again.
//!
//! A cache is modelled by the number of lines that were filled into it. Fills by any thread evict lines. The model
//! takes the number of fills since the last touch of a set of lines, divided by the cache's capacity. This share of the
//! set was evicted. So a thread that sleeps longer, or has busier neighbours, finds less of its data. Sharing needs no
//! other rule. Fractions of lines are carried over to later touches, so that rounding loses none.

use super::account::Group;
use super::spec::CachesSpec;
use std::cell::{Cell, RefCell};

/// Lines that belong together and are touched together: a connection's state, a packet's header, a thread's stack.
#[derive(Debug, Default)]
pub struct Data {
    lines: u64,
    last: Cell<Option<Touch>>,
}

/// The core of the last touch, and the fill counts of the caches at that time.
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

    /// Records that a card has written the lines to memory. No cache holds them any more.
    pub fn forget(&self) {
        self.last.set(None);
    }
}

/// A page of memory. Work on the page uses an entry of its core's TLB.
#[derive(Debug, Default)]
pub struct Page {
    /// The fill count of each core's TLB after the last use of the page on that core. The index is the core.
    last: RefCell<Vec<Option<u64>>>,
}

/// Number of cache lines that were missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// Misses of the core's first level.
    pub first: u64,
    /// First-level misses that also missed the second level.
    pub second: u64,
}

/// A cache, modelled by its number of fills.
#[derive(Debug)]
struct Level {
    capacity: u64,
    filled: u64,
    /// The remainder of missed lines that is not a whole line yet, in units of 1 / capacity.
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

/// A core's instruction cache. A TLB for code is modelled in the same way, with pages as lines. The code of a function
/// group is one set of lines, as large as its instructions. Kernels run through this code once per packet, nearly
/// without loops.
#[derive(Debug)]
struct Code {
    line: u64,
    level: Level,
    /// The fill count after the last run of each group's code. The index is the group.
    last: [Option<u64>; Group::ALL.len()],
}

/// Size of an instruction in bytes.
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
    /// The instruction cache of each core; empty if instruction caches are not modelled.
    code: Vec<Code>,
    /// The TLB for data of each core; empty if translations are not modelled.
    tlbs: Vec<Level>,
    /// The TLB for code of each core; empty if translations of code are not modelled.
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

    /// A thread on this core runs `instructions` instructions of a group's code. Returns the number of lines that come
    /// from the second level.
    pub(super) fn fetch(&mut self, core: usize, group: Group, instructions: u64) -> u64 {
        self.code.get_mut(core).map_or(0, |code| code.fetch(group, instructions))
    }

    /// A thread on this core runs `instructions` instructions of a group's code. Returns the number of misses in the
    /// core's TLB for code.
    pub(super) fn translate_code(&mut self, core: usize, group: Group, instructions: u64) -> u64 {
        self.code_tlbs.get_mut(core).map_or(0, |tlb| tlb.fetch(group, instructions))
    }

    /// A thread on this core uses a page. Returns the number of misses in the core's TLB, which then holds the page.
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

    /// A thread on this core touches data. The core's caches then hold the data.
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

    /// A thread on this core goes once through `lines` uncached lines, and does not touch them again.
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

    /// Each of two cores has a first level of 16 lines. The common second level has 64 lines.
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
        // Four fills of 16 lines evict a quarter of the 8 lines. In the second level, 4 fills of 64 lines evict 1/16 of
        // the 2 missed lines: an eighth of a line.
        assert_eq!(caches.stream(0, 4), misses(4, 4));
        assert_eq!(caches.touch(0, &state), misses(2, 0));
        // As many fills as the cache has lines evict all lines.
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
        // Before each touch, one of 16 lines is filled. So one touch in 16 misses. The missed line is a fill, too.
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
        // Each core's instruction cache has 16 lines of 8 instructions.
        let mut caches = caches();
        assert_eq!(caches.fetch(0, Group::Stack, 64), 8);
        assert_eq!(caches.fetch(0, Group::Stack, 60), 0);
        // Four fills of 16 lines evict a quarter of the 8 lines.
        assert_eq!(caches.fetch(0, Group::Driver, 32), 4);
        assert_eq!(caches.fetch(0, Group::Stack, 64), 2);
        // Another core has its own cache. Data lines do not use the instruction cache.
        assert_eq!(caches.fetch(1, Group::Stack, 64), 8);
        caches.stream(0, 100);
        assert_eq!(caches.fetch(0, Group::Stack, 64), 0);
        // The code has 20 lines, more than the cache.
        assert_eq!(caches.fetch(0, Group::Copy, 160), 20);
        assert_eq!(caches.fetch(0, Group::Stack, 64), 8);
    }

    #[test]
    fn pages_stay_in_a_tlb_until_others_come() {
        let (mut caches, pages) = (caches(), [(); 9].map(|()| Page::default()));
        assert_eq!([caches.translate(0, &pages[0]), caches.translate(0, &pages[0])], [1, 0]);
        // Two fills of four entries evict half of the page's entry. So every second use of the page misses.
        assert_eq!([caches.translate(0, &pages[1]), caches.translate(0, &pages[2])], [1, 1]);
        assert_eq!(caches.translate(0, &pages[0]), 0);
        assert_eq!([caches.translate(0, &pages[3]), caches.translate(0, &pages[4])], [1, 1]);
        assert_eq!(caches.translate(0, &pages[0]), 1);
        // Another core has its own TLB. Four fills evict all four entries.
        assert_eq!([caches.translate(1, &pages[0]), caches.translate(0, &pages[0])], [1, 0]);
        for page in &pages[5..] {
            caches.translate(0, page);
        }
        assert_eq!([caches.translate(0, &pages[0]), caches.translate(1, &pages[0])], [1, 0]);
    }

    #[test]
    fn pages_of_code_stay_in_a_tlb_until_others_come() {
        // Each core's TLB has four entries. A page has 64 instructions.
        let mut caches = caches();
        assert_eq!([65, 64, 128].map(|n| caches.translate_code(0, Group::Stack, n)), [2, 0, 0]);
        // Two fills of four entries evict one of the group's two pages. The next run misses this page.
        assert_eq!([128, 1].map(|n| caches.translate_code(0, Group::Driver, n)), [2, 0]);
        assert_eq!(caches.translate_code(0, Group::Stack, 128), 1);
        // Another core has its own TLB for code. Pages of data use other entries.
        assert_eq!(caches.translate_code(1, Group::Stack, 128), 2);
        for _ in 0..4 {
            caches.translate(0, &Page::default());
        }
        assert_eq!(caches.translate_code(0, Group::Stack, 128), 0);
        // The code has five pages, more than the TLB has entries.
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
