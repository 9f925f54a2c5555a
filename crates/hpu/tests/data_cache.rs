//! Data caches: each way in which a line is filled and removed, and random accesses compared with a naive model.

use crate::common::cases;
use nicety_hpu::{CacheShape, Coherence, DataCaches, Found, Passed, Writes};
use proptest::prelude::*;

/// Two sets of two ways.
const SMALL: CacheShape = CacheShape { bytes: 64, ways: 2, line: 16 };

const fn hit(ready: u64) -> Found {
    Found::Hit { ready, taken: false }
}
const MEMORY: Found = Found::Memory { taken: false };

#[test]
fn a_changed_line_that_makes_room_is_written_to_memory() {
    let mut caches = DataCaches::new(1, SMALL, Writes::Back, Coherence::Ownership);
    assert_eq!(caches.load(0, 0), MEMORY);
    assert_eq!(caches.fill(0, 0, 10, false), None);
    assert_eq!(caches.store(0, 2), MEMORY);
    assert_eq!(caches.fill(0, 2, 20, true), None);
    assert_eq!(caches.store(0, 0), hit(10));
    // Line 2 was used before line 0. Both are changed.
    assert_eq!(caches.load(0, 4), MEMORY);
    assert_eq!(caches.fill(0, 4, 30, false), Some(2));
    assert_eq!((caches.load(0, 0), caches.load(0, 4)), (hit(10), hit(30)));
    assert_eq!(caches.pass(0, 0), Passed { taken: false, written_back: true });
    assert_eq!(caches.pass(0, 4), Passed::default());
    assert_eq!((caches.load(0, 0), caches.load(0, 4)), (MEMORY, MEMORY));
}

#[test]
fn a_cache_that_stores_owns_the_line() {
    let mut caches = DataCaches::new(3, SMALL, Writes::Back, Coherence::Ownership);
    for cache in 0..2 {
        assert_eq!(caches.load(cache, 5), MEMORY);
        caches.fill(cache, 5, 7, false);
    }
    // The other one gives its line up. From then on the owner stores without asking.
    assert_eq!(caches.store(0, 5), Found::Hit { ready: 7, taken: true });
    assert_eq!(caches.store(0, 5), hit(7));
    // It hands its line over to a load and keeps it: both have it now.
    assert_eq!(caches.load(1, 5), Found::Owner { ready: 7 });
    caches.fill(1, 5, 9, false);
    assert_eq!(caches.store(0, 5), Found::Hit { ready: 7, taken: true });
    // For a store it gives the line up, without an access to memory.
    assert_eq!(caches.store(2, 5), Found::Owner { ready: 7 });
    caches.fill(2, 5, 11, true);
    assert_eq!(caches.load(0, 5), Found::Owner { ready: 11 });
    // An access past the caches removes the line everywhere.
    assert_eq!(caches.pass(0, 5), Passed { taken: true, written_back: true });
    assert_eq!(caches.load(2, 5), MEMORY);
}

#[test]
fn caches_that_write_through_have_no_changed_line() {
    let mut caches = DataCaches::new(2, SMALL, Writes::Through, Coherence::Ownership);
    assert_eq!(caches.store(0, 1), MEMORY);
    // It is not filled in.
    assert_eq!(caches.load(0, 1), MEMORY);
    caches.fill(0, 1, 3, false);
    assert_eq!(caches.store(1, 1), Found::Memory { taken: true });
    assert_eq!(caches.load(0, 1), MEMORY);
    caches.fill(0, 1, 4, false);
    assert_eq!(caches.store(0, 1), hit(4));
    assert_eq!(caches.pass(0, 1), Passed::default());
}

#[test]
fn without_coherence_a_word_that_another_cache_has_changed_is_stale() {
    let mut caches = DataCaches::new(2, SMALL, Writes::Back, Coherence::None);
    let store = |caches: &mut DataCaches, cache, address: u64| {
        if caches.store(cache, address / 16) == MEMORY {
            caches.fill(cache, address / 16, 0, true);
        }
        let stale = caches.is_stale(cache, address, 4);
        caches.stored(cache, address, 4);
        stale
    };
    let load = |caches: &mut DataCaches, cache, address: u64| {
        if caches.load(cache, address / 16) == MEMORY {
            caches.fill(cache, address / 16, 0, false);
        }
        caches.is_stale(cache, address, 4)
    };
    assert!(!store(&mut caches, 0, 20));
    // Its own value, and other words of the line, are current.
    assert!(!load(&mut caches, 0, 20) && !load(&mut caches, 1, 16) && !store(&mut caches, 1, 24));
    assert!(load(&mut caches, 1, 20), "cache 0 has not written it to memory");
    assert!(store(&mut caches, 1, 20), "one of the two writes is lost");
    assert!(load(&mut caches, 0, 20), "cache 1 has written it since");
    // In memory it belongs to no cache.
    assert_eq!(caches.pass(1, 1), Passed { taken: false, written_back: true });
    assert!(load(&mut caches, 0, 20), "an old line is still there");
    assert_eq!(caches.pass(0, 1), Passed { taken: false, written_back: true });
    assert!(!load(&mut caches, 0, 20) && !load(&mut caches, 1, 20));
    caches.pass(0, 1);
    caches.stored_in_memory(20, 4);
    assert!(load(&mut caches, 1, 20) && !load(&mut caches, 0, 20));
    // There is no other writer.
    let one = DataCaches::new(1, SMALL, Writes::Back, Coherence::None);
    assert!(!one.may_differ() && caches.may_differ());
}

/// The state of a line in one naive cache.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Naive {
    number: u64,
    ready: u64,
    changed: bool,
}

/// The sets of each cache as lists, with the least recently used line in front.
struct Model {
    shape: CacheShape,
    writes: Writes,
    coherent: bool,
    sets: Vec<Vec<Vec<Naive>>>,
}

impl Model {
    fn set(&mut self, cache: usize, number: u64) -> &mut Vec<Naive> {
        let sets = u64::from(self.shape.sets());
        &mut self.sets[cache][(number % sets) as usize]
    }

    fn others(&mut self, cache: usize, number: u64) -> Vec<usize> {
        let has =
            |model: &mut Model, other: usize| model.set(other, number).iter().any(|l| l.number == number);
        let all = if self.coherent { 0..self.sets.len() } else { 0..0 };
        all.filter(|&other| other != cache && has(self, other)).collect()
    }

    fn take(&mut self, cache: usize, number: u64) -> Option<Naive> {
        let set = self.set(cache, number);
        let at = set.iter().position(|line| line.number == number)?;
        Some(set.remove(at))
    }

    fn access(&mut self, cache: usize, number: u64, stores: bool) -> Found {
        let own = self.take(cache, number);
        if let Some(mut line) = own {
            line.changed |= stores && self.writes == Writes::Back;
            self.set(cache, number).push(line);
        }
        let others = self.others(cache, number);
        let changed = others.iter().find_map(|&other| {
            self.set(other, number).iter().find(|line| line.number == number && line.changed).copied()
        });
        if stores {
            for &other in &others {
                self.take(other, number);
            }
        }
        match (own, changed) {
            (Some(line), _) => Found::Hit { ready: line.ready, taken: stores && !others.is_empty() },
            (None, Some(owner)) => Found::Owner { ready: owner.ready },
            (None, None) => Found::Memory { taken: stores && !others.is_empty() },
        }
    }

    fn fill(&mut self, cache: usize, number: u64, ready: u64, changed: bool) -> Option<u64> {
        let ways = self.shape.ways as usize;
        let set = self.set(cache, number);
        let goes = (set.len() == ways).then(|| set.remove(0));
        set.push(Naive { number, ready, changed });
        goes.filter(|line| line.changed).map(|line| line.number)
    }

    fn pass(&mut self, cache: usize, number: u64) -> Passed {
        let mut written_back = self.take(cache, number).is_some_and(|line| line.changed);
        let others = self.others(cache, number);
        for &other in &others {
            written_back |= self.take(other, number).is_some_and(|line| line.changed);
        }
        Passed { taken: !others.is_empty(), written_back }
    }
}

/// The value of a word in each cache and in memory, by the number of the write.
#[derive(Clone, Default)]
struct Values {
    memory: u64,
    cached: Vec<Option<u64>>,
    /// Caches with a value that memory does not have.
    dirty: Vec<bool>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(300)))]

    #[test]
    fn caches_are_as_lists_of_lines(
        caches in 1usize..4,
        ways in 1u32..4,
        sets in prop::sample::select(vec![1u32, 2, 4]),
        back in any::<bool>(),
        coherent in any::<bool>(),
        accesses in prop::collection::vec((0usize..4, 0u64..12, 0u32..4), 1..300),
    ) {
        let shape = CacheShape { bytes: 16 * ways * sets, ways, line: 16 };
        let writes = if back { Writes::Back } else { Writes::Through };
        let coherence = if coherent { Coherence::Ownership } else { Coherence::None };
        let mut found = DataCaches::new(caches, shape, writes, coherence);
        let mut model = Model { shape, writes, coherent, sets: vec![vec![Vec::new(); sets as usize]; caches] };
        for (cycle, &(cache, number, kind)) in accesses.iter().enumerate() {
            let (cache, cycle) = (cache % caches, cycle as u64);
            if kind == 3 {
                prop_assert_eq!(found.pass(cache, number), model.pass(cache, number));
                continue;
            }
            let stores = kind == 2;
            let seen = if stores { found.store(cache, number) } else { found.load(cache, number) };
            prop_assert_eq!(seen, model.access(cache, number, stores));
            if !matches!(seen, Found::Hit { .. }) && (back || !stores) {
                prop_assert_eq!(found.fill(cache, number, cycle, stores), model.fill(cache, number, cycle, stores));
            }
        }
    }

    /// With one word per line, accesses that are not stale have the last value, and all others are stale.
    #[test]
    fn stale_is_whatever_is_not_the_last_value(
        caches in 2usize..4,
        back in any::<bool>(),
        accesses in prop::collection::vec((0usize..4, 0u64..6, 0u32..4), 1..300),
    ) {
        let shape = CacheShape { bytes: 16, ways: 2, line: 4 };
        let writes = if back { Writes::Back } else { Writes::Through };
        let mut found = DataCaches::new(caches, shape, writes, Coherence::None);
        let empty = Values { memory: 0, cached: vec![None; caches], dirty: vec![false; caches] };
        let mut words = vec![empty; 6];
        let (mut lost, mut latest) = (vec![false; 6], vec![(0u64, usize::MAX); 6]);
        for (count, &(cache, number, kind)) in accesses.iter().enumerate() {
            let (cache, new) = (cache % caches, 1 + count as u64);
            let at = number as usize;
            let (last, by) = latest[at];
            if kind == 3 {
                found.pass(cache, number);
                let word = &mut words[at];
                if word.dirty[cache] {
                    word.memory = word.cached[cache].unwrap();
                    word.dirty[cache] = false;
                }
                word.cached[cache] = None;
                let stale = found.is_stale(cache, 4 * number, 4);
                if !lost[at] && by != cache {
                    prop_assert_eq!(stale, word.memory != last);
                }
                lost[at] |= stale;
                word.memory = new;
                found.stored_in_memory(4 * number, 4);
                latest[at] = (new, usize::MAX);
                continue;
            }
            let stores = kind == 2;
            let seen = if stores { found.store(cache, number) } else { found.load(cache, number) };
            if seen == MEMORY && (back || !stores) {
                let memory = words[at].memory;
                words[at].cached[cache] = Some(memory);
                if let Some(goes) = found.fill(cache, number, 0, stores) {
                    let word = &mut words[goes as usize];
                    word.memory = word.cached[cache].unwrap();
                    word.dirty[cache] = false;
                }
            }
            if seen == MEMORY && !back && stores {
                words[at].cached[cache] = None;
            }
            let sees = words[at].cached[cache];
            let stale = found.is_stale(cache, 4 * number, 4);
            if let (Some(sees), false) = (sees, lost[at]) {
                if by != cache {
                    prop_assert_eq!(stale, sees != last, "{:?}", (count, cache, number, kind));
                } else {
                    prop_assert!(!stale);
                }
            }
            if stores {
                // If neither of two values succeeds the other, the word is not distinguished any more.
                lost[at] |= back && stale;
                let word = &mut words[at];
                if back {
                    word.dirty[cache] = true;
                } else {
                    word.memory = new;
                }
                if word.cached[cache].is_some() {
                    word.cached[cache] = Some(new);
                }
                found.stored(cache, 4 * number, 4);
                latest[at] = (new, cache);
            }
        }
    }
}
