//! Data caches in front of a memory level: cycles counted by hand, and properties that hold for any handler.

use crate::levels::{both, outcome};
use crate::support::code::{Code, payload};
use nicety_hpu::asm::*;
use nicety_nic_processors::{CacheCounts, map};
use proptest::prelude::*;

const MHARTID: u32 = 0xf14;

/// A cache line has one word of each bank, and arrives 20 cycles after the miss. A load that hits takes 2 cycles, and a
/// store that hits takes 1 cycle.
const CACHED: [&str; 7] = [
    "memory.l1.cached=true",
    "memory.l1.banks=4",
    "memory.l1.load=20",
    "memory.cache.size=256 B",
    "memory.cache.line=16 B",
    "memory.cache.load=2",
    "memory.cache.invalidate=7",
];
const BACK: [&str; 1] = ["memory.cache.transfer=9"];

/// Returns the cycles of two processors with write-back caches that run this code.
fn back(code: Code) -> [u64; 2] {
    both(&[&CACHED[..], &BACK].concat(), code)
}

/// Returns the cycles and the cache counters of one processor that runs one handler.
fn alone(overrides: &[&str], code: Code) -> (u64, CacheCounts) {
    let keys = [&["hpu.cores=1"], &CACHED[..], &BACK, overrides].concat();
    let found = outcome(&keys, &payload(code), 1);
    (found.cycles[0].1, found.caches[0].counters)
}

fn load() -> Code {
    Code::new().with(&[lw(T1, 0, S0)])
}

#[test]
fn a_line_is_fetched_once() {
    // The second processor finds the banks occupied for one cycle.
    assert_eq!(back(Code::new().with(&[lw(T1, 0, S0), lw(T2, 12, S0)])), [22 + 2, 23 + 2]);
    assert_eq!(back(Code::new().with(&[lw(T1, 0, S0), lw(T2, 16, S0)])), [22 + 22, 23 + 22]);
    // In an uncontended level, no access waits for a bank, but accesses wait for lines.
    let keys = [&CACHED[..], &BACK, &["memory.l1.contended=false"]].concat();
    assert_eq!(both(&keys, Code::new().with(&[lw(T1, 0, S0), sw(ZERO, 4, S0)])), [22 + 1 + 7, 22 + 9 + 1]);
    // With one cache for both processors, the second processor waits for the line that the first processor fetches.
    let keys = [&CACHED[..], &BACK, &["memory.cache.of=cluster"]].concat();
    assert_eq!(both(&keys, Code::new().with(&[lw(T1, 0, S0), sw(ZERO, 4, S0)])), [22 + 1, 22 + 1]);
    // A line from another cluster's memory takes longer than a local line, by the same time as a word. A hit takes no
    // longer.
    let keys = [&CACHED[..], &BACK, &["memory.cluster=1", "memory.l1.remote=5"]].concat();
    assert_eq!(both(&keys, Code::new().with(&[lw(T1, 0, S0), lw(T1, 4, S0)])), [22 + 2, 22 + 1 + 5 + 2]);
}

#[test]
fn a_changed_line_is_written_when_it_makes_room() {
    let code = || Code::enter().with(&[sw(ZERO, 0, S0), lw(T1, 16, S0), lw(T2, 0, S0)]).returns(0);
    let counts =
        CacheCounts { accesses: 3, misses: 3, written_back: 1, waited: 60, ..CacheCounts::default() };
    assert_eq!(alone(&["memory.cache.size=16 B"], code()), (4 + 21 + 22 + 22, counts));
    // A cache with two ways or two sets has room for both lines.
    let counts = CacheCounts { hits: 1, misses: 2, written_back: 0, waited: 40, ..counts };
    for ways in ["memory.cache.ways=1", "memory.cache.ways=2"] {
        assert_eq!(alone(&["memory.cache.size=32 B", ways], code()), (4 + 21 + 22 + 2, counts));
    }
    // A bank that takes 10 cycles per word moves four words in 40 cycles. The write-back of the evicted line delays the
    // next fetch.
    let slow = ["memory.cache.size=16 B", "memory.l1.banks=1", "memory.l1.occupancy=10"];
    let (cycles, counts) = alone(&slow, code());
    // A fetch takes 30 more cycles. The second fetch begins at cycle 51, and the line is written back from cycle 91 to
    // 131.
    let fetched = 20 + 30;
    assert_eq!(cycles, 4 + (fetched + 1) + (fetched + 2) + (131 - 103 + fetched + 2));
    assert_eq!(counts.waited, 3 * fetched + 28);
}

#[test]
fn whoever_stores_owns_the_line() {
    // The first owner of the line hands it over as soon as it has it.
    assert_eq!(back(Code::new().with(&[sw(ZERO, 0, S0)])), [20 + 1, 20 + 9 + 1]);
    // Both caches have the line. The first processor to store takes the line from the other cache. The other processor
    // then takes it back.
    assert_eq!(back(Code::new().with(&[lw(T1, 0, S0), sw(ZERO, 4, S0)])), [22 + 1 + 7, 23 + 9 + 1]);
    // With write-through, a cache keeps the line when its processor stores.
    let through = [&CACHED[..], &["memory.cache.writes=through"]].concat();
    assert_eq!(both(&through, Code::new().with(&[sw(ZERO, 0, S0)])), [1, 2]);
    assert_eq!(both(&through, Code::new().with(&[lw(T1, 0, S0), sw(ZERO, 4, S0)])), [22 + 1 + 7, 23 + 1 + 7]);
}

#[test]
fn atomic_operations_go_past_the_caches() {
    let add = |code: Code| code.with(&[amoadd_w(T1, ZERO, S0)]);
    assert_eq!(back(add(Code::new())), [20, 21]);
    // The other processor's cache gives up its line, and then the processor accesses memory itself.
    assert_eq!(back(add(load())), [22 + 20 + 7, 23 + 20]);
    assert_eq!(back(load().with(&[lr_w(T1, S0)])), [22 + 20 + 7, 23 + 20]);
    // A changed line is first written back.
    let own = Code::new().with(&[csrrs(T0, MHARTID, ZERO), slli(T0, T0, 4), add_(T0, T0, S0), sw(T1, 0, T0)]);
    assert_eq!(back(own.with(&[amoadd_w(T1, ZERO, T0)])), [3 + 21 + 1 + 20, 3 + 22 + 2 + 20]);
    let code = Code::enter().with(&[sw(ZERO, 0, S0), amoadd_w(T1, ZERO, S0), lw(T1, 0, S0)]).returns(0);
    let counts = CacheCounts {
        accesses: 3,
        misses: 2,
        passed: 1,
        written_back: 1,
        waited: 40,
        ..CacheCounts::default()
    };
    assert_eq!(alone(&[], code).1, counts);
}

fn add_(to: u32, a: u32, b: u32) -> u32 {
    nicety_hpu::asm::add(to, a, b)
}

#[test]
fn without_coherence_stale_accesses_are_told() {
    let base: Vec<&str> = CACHED.into_iter().filter(|key| !key.contains("invalidate")).collect();
    let keys = [&["hpu.cores=2", "memory.cache.coherence=none"], &base[..]].concat();
    let code = || Code::new().with(&[lw(T1, 0, S0), sw(ZERO, 4, S0)]);
    assert_eq!(both(&keys, code()), [22 + 1, 23 + 1]);
    let found = outcome(&keys, &payload(Code::enter().then(&code()).returns(0)), 2);
    // Both processors change the same word. The later processor does not see the value of the earlier one.
    assert_eq!(found.caches[0].counters.stale, 1);
    assert_eq!(found.caches[0].stale_lines, [("pc 0x1d000008".to_owned(), 1)]);
    // With write-through, both writes reach memory. Only a later load of the word is stale.
    let through = [&keys[..], &["memory.cache.writes=through"]].concat();
    let again = Code::enter().then(&code()).with(&[lw(T1, 0, S0), lw(T1, 4, S0)]).returns(0);
    let found = outcome(&through, &payload(again), 2);
    assert_eq!(found.caches[0].counters.stale, 1);
    // A word that only atomic operations change is up to date in memory.
    let add = Code::enter().with(&[amoadd_w(T1, ZERO, S0), amoadd_w(T1, ZERO, S0)]).returns(0);
    assert_eq!(outcome(&keys, &payload(add), 4).caches[0].counters.stale, 0);
}

#[test]
fn a_packet_is_in_no_cache_when_its_handler_begins() {
    let code =
        Code::enter().set(T0, map::PACKET).with(&[lw(T1, 0, T0), lw(T1, 4, T0), lw(T1, 0, S0)]).returns(0);
    // The packet and the state map to the same cache sets.
    let places = ["hpu.cores=1", "memory.packet=l1", "memory.cache.ways=2"];
    let found = outcome(&[&places, &CACHED[..], &BACK].concat(), &payload(code), 3);
    let counts = found.caches[0].counters;
    // The state stays in the cache.
    assert_eq!((counts.accesses, counts.misses, counts.hits), (9, 3 + 1, 3 + 2));
    assert_eq!((found.levels[0].accesses, found.statistics.shared_accesses), (9, 9));
    let statistics = found.statistics;
    assert_eq!((statistics.cache_hits, statistics.cache_misses, statistics.cache_waits), (5, 4, 80));
    assert_eq!(found.caches[0].lines.iter().map(|line| (line.waits, line.cycles)).max(), Some((3, 60)));
}

/// The action of a random handler on a word of its state.
#[derive(Clone, Debug)]
struct Step {
    word: u32,
    own: bool,
    kind: u32,
}

fn handler(steps: &[Step]) -> Code {
    let mut code = Code::enter().with(&[csrrs(T2, MHARTID, ZERO), slli(T2, T2, 2), add(T2, T2, S0)]);
    for step in steps {
        let base = if step.own { T2 } else { S0 };
        let at = (4 * step.word) as i32;
        code = match step.kind {
            0 | 1 => code.with(&[lw(T0, at, base)]),
            2 => code.with(&[sw(T2, at, base)]),
            _ => code.with(&[addi(T3, base, at), amoadd_w(T1, T0, T3)]),
        };
    }
    code.returns(0)
}

/// A reference model of the cache. A set has its lines in the order of their last use, each with whether it is changed.
/// Returns the number of hits, misses and written lines, and the cycles in addition to those of the handler's entry.
fn naive(steps: &[Step], sets: u64, ways: usize, through: bool) -> [u64; 4] {
    let mut lines: Vec<Vec<(u64, bool)>> = vec![Vec::new(); sets as usize];
    let [mut hits, mut misses, mut written_back, mut cycles] = [0; 4];
    for step in steps {
        let number = u64::from(step.word) / 4;
        let set = &mut lines[(number % sets) as usize];
        let own = set.iter().position(|line| line.0 == number).map(|at| set.remove(at));
        let stores = step.kind == 2;
        if step.kind == 3 {
            written_back += u64::from(own.is_some_and(|line| line.1));
            // One more instruction computes the address.
            cycles += 1 + 20;
            continue;
        }
        (hits, misses) = (hits + u64::from(own.is_some()), misses + u64::from(own.is_none()));
        cycles += if stores { 1 } else { 2 };
        let filled = own.is_none() && !(stores && through);
        if filled {
            cycles += 20;
            if set.len() == ways {
                written_back += u64::from(set.remove(0).1);
            }
        }
        if own.is_some() || filled {
            set.push((number, own.is_some_and(|line| line.1) || stores && !through));
        }
    }
    [hits, misses, written_back, cycles]
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(40))]

    #[test]
    fn hits_misses_and_atomic_operations_are_all_accesses(
        steps in prop::collection::vec(
            (0u32..64, any::<bool>(), 0u32..4).prop_map(|(word, own, kind)| Step { word, own, kind }),
            1..40,
        ),
        cores in 1u32..9,
        sets in prop::sample::select(vec![1u64, 2, 4]),
        ways in 1usize..4,
        through in any::<bool>(),
        coherent in any::<bool>(),
        packets in 1u64..24,
    ) {
        let mut keys: Vec<String> = CACHED[..3].iter().map(|&key| key.to_owned()).collect();
        keys.extend([
            format!("hpu.cores={cores}"),
            "memory.cache.line=16 B".into(),
            "memory.cache.load=2".into(),
            format!("memory.cache.size={} B", 16 * sets * ways as u64),
            format!("memory.cache.ways={ways}"),
            format!("memory.cache.writes={}", if through { "through" } else { "back" }),
            format!("memory.cache.coherence={}", if coherent { "ownership" } else { "none" }),
        ]);
        if coherent {
            keys.push("memory.cache.invalidate=7".into());
            keys.extend((!through).then(|| BACK[0].to_owned()));
        }
        let overrides: Vec<&str> = keys.iter().map(String::as_str).collect();
        let handlers = payload(handler(&steps));
        let found = outcome(&overrides, &handlers, packets);
        let counts = found.caches[0].counters;
        let accesses = packets * steps.len() as u64;
        prop_assert_eq!(counts.hits + counts.misses + counts.passed, counts.accesses);
        prop_assert_eq!((counts.accesses, found.levels[0].accesses), (accesses, accesses));
        prop_assert_eq!(found.statistics.shared_accesses, accesses);
        prop_assert!(counts.stale == 0 || !coherent && cores > 1);
        prop_assert!(counts.written_back <= counts.misses + counts.passed + counts.hits);
        let again = outcome(&overrides, &handlers, packets);
        prop_assert_eq!((again.cycles, again.caches), (found.cycles, found.caches));
        // One processor runs alone, so no access contends with its accesses. The level is uncontended, so its own
        // accesses do not either.
        let idle = [&overrides[..], &["memory.l1.contended=false"]].concat();
        let alone = outcome(&idle, &handlers, 1);
        let counts = alone.caches[0].counters;
        let [hits, misses, written_back, cycles] = naive(&steps, sets, ways, through);
        prop_assert_eq!((counts.hits, counts.misses, counts.written_back), (hits, misses, written_back));
        prop_assert_eq!(alone.cycles[0].1, 4 + 3 + cycles);
    }
}
