//! Hardware threads that share the issue of a core, and caches of all cores behind data caches: cycles counted by hand.

use crate::levels::outcome;
use crate::support::code::{Code, payload};
use nicety_hpu::asm::*;
use nicety_nic_processors::map;
use proptest::prelude::*;

/// Returns the cycles of handlers that begin at the same time, in the order of the processors.
fn cycles(keys: &[&str], code: Code, packets: u64) -> Vec<u64> {
    let handlers = payload(Code::enter().then(&code).returns(0));
    outcome(keys, &handlers, packets).cycles.into_iter().map(|(_, cycles)| cycles).collect()
}

/// A move, a load of a constant and a return of two cycles.
fn empty() -> Code {
    Code::new()
}

#[test]
fn threads_of_a_core_issue_in_turn() {
    let two = ["hpu.cores=1", "hpu.threads=2", "memory.state=ideal"];
    assert_eq!(cycles(&two, empty(), 1), [4]);
    // The first thread issues in cycles 0, 2 and 4, and the second one in cycles 1, 3 and 5. The return takes two.
    assert_eq!(cycles(&two, empty(), 2), [6, 7]);
    // Two ports, or two cores, issue for both.
    assert_eq!(cycles(&[&two[..], &["hpu.issue=2"]].concat(), empty(), 2), [4, 4]);
    let apart = ["hpu.cores=2", "hpu.threads=1", "memory.state=ideal"];
    assert_eq!(cycles(&apart, empty(), 2), [4, 4]);
    // Processors 0 and 2 are threads of the first core, and 1 of the second one.
    let cores = ["hpu.cores=2", "hpu.threads=2", "memory.state=ideal"];
    assert_eq!(cycles(&cores, empty(), 3), [6, 4, 7]);
}

#[test]
fn a_thread_that_waits_for_a_load_leaves_the_core_to_others() {
    let keys = ["hpu.cores=1", "hpu.threads=2", "memory.l1.contended=false", "memory.l1.load=5"];
    let load = || Code::new().with(&[lw(T0, 0, S0)]);
    assert_eq!(cycles(&keys, load(), 1), [9]);
    // The loads issue in cycles 2 and 3, and end in 7 and 8. The first thread issues in cycles 7 and 8. The second one
    // issues in cycles 9 and 10.
    assert_eq!(cycles(&keys, load(), 2), [10, 12]);
    // A long load hides the other thread's instructions: 16 threads take not much longer than one.
    let keys = ["hpu.cores=1", "hpu.threads=16", "memory.l1.contended=false", "memory.l1.load=200"];
    let sixteen = cycles(&keys, load(), 16);
    // The last load issues in cycle 31 and ends in cycle 231. Then at most 32 instructions issue.
    assert!(sixteen.iter().all(|&cycles| (204..=231 + 33).contains(&cycles)), "{sixteen:?}");
}

/// Cores with a data cache of one line of 16 bytes, before caches of 4 and 8 lines.
const CACHES: [&str; 15] = [
    "hpu.cores=1",
    "memory.l1.cached=true",
    "memory.l1.contended=false",
    "memory.l1.outer=true",
    "memory.l1.banks=4",
    "memory.l1.load=20",
    "memory.cache.size=16 B",
    "memory.cache.line=16 B",
    "memory.cache.load=2",
    "memory.cache.coherence=none",
    "memory.cache.second.size=64 B",
    "memory.cache.second.fill=5",
    "memory.cache.third.size=128 B",
    "memory.cache.third.fill=11",
    "hpu.threads=1",
];

fn with(more: &[&'static str]) -> Vec<&'static str> {
    [&CACHES[..], more].concat()
}

fn loads(places: &[i32]) -> Code {
    Code::new().with(&places.iter().map(|&at| lw(T0, at, S0)).collect::<Vec<_>>())
}

#[test]
fn a_line_comes_from_the_nearest_cache_that_has_it() {
    let taken = |code, more: &[&'static str]| cycles(&with(more), code, 1)[0] - 4;
    // Two lines from memory. The first one is then in the second cache.
    assert_eq!(taken(loads(&[0, 16, 0]), &[]), 22 + 22 + 7);
    // Byte 64 is in the set of byte 0 in the second cache, and in another one in the third cache.
    assert_eq!(taken(loads(&[0, 64, 0]), &[]), 22 + 22 + 13);
    // The line is in the second cache again.
    assert_eq!(taken(loads(&[0, 64, 0, 16, 0]), &[]), 22 + 22 + 13 + 22 + 7);
    // Byte 128 is in the set of byte 0 everywhere.
    assert_eq!(taken(loads(&[0, 128, 0]), &[]), 22 + 22 + 22);
    // A changed line goes from cache to cache.
    let store = Code::new().with(&[sw(ZERO, 0, S0)]);
    assert_eq!(taken(store.then(&loads(&[64, 0, 64])), &[]), 21 + 22 + 7 + 13);
    // With two ways, the second cache has room for both lines.
    assert_eq!(taken(loads(&[0, 64, 0]), &["memory.cache.second.ways=2"]), 22 + 22 + 7);
}

#[test]
fn the_card_writes_packets_into_a_cache() {
    let code = || Code::new().set(T1, map::PACKET).with(&[lw(T0, 0, T1), lw(T0, 0, T1)]);
    let taken = |more: &[&'static str], packets| {
        let keys = [&with(&["memory.packet=l1"])[..], more].concat();
        cycles(&keys, code(), packets).into_iter().map(|cycles| cycles - 6).collect::<Vec<_>>()
    };
    assert_eq!(taken(&[], 1), [22 + 2]);
    assert_eq!(taken(&["memory.cache.deposit=second"], 1), [7 + 2]);
    assert_eq!(taken(&["memory.cache.deposit=third"], 1), [13 + 2]);
    // The next packet has the same place, or another one. It is in no data cache in either case.
    assert_eq!(taken(&[], 2), [24, 24]);
    assert_eq!(taken(&["hpu.ring=4", "memory.cache.deposit=second"], 3), [9, 9, 9]);
}

#[test]
fn the_first_access_of_a_handler_takes_longer() {
    let taken = |packets| cycles(&with(&["memory.l1.first=9"]), loads(&[0, 4]), packets);
    assert_eq!(taken(1), [4 + 9 + 22 + 2]);
    // The second handler finds the line. Its first access takes longer as well.
    assert_eq!(taken(2), [4 + 9 + 2 + 2, 4 + 9 + 22 + 2]);
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(24))]

    /// The waits for issue are the only further cycles, and all instructions issue one a cycle. The harness checks that
    /// a profile has each cycle once.
    #[test]
    fn threads_take_the_issue_of_a_core_in_full(
        threads in 1u64..9,
        adds in 0usize..20,
        load in 1u64..60,
        packets in 1u64..12,
    ) {
        let keys = [
            "hpu.cores=1".to_owned(),
            format!("hpu.threads={threads}"),
            "memory.l1.contended=false".to_owned(),
            format!("memory.l1.load={load}"),
        ];
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let code = Code::enter().with(&vec![addi(T1, T1, 1); adds]).with(&[lw(T0, 0, S0)]).returns(0);
        let found = outcome(&keys, &payload(code), packets);
        let own = 4 + adds as u64 + load;
        let waits: u64 = found.cycles.iter().map(|(_, cycles)| cycles - own).sum();
        prop_assert_eq!(found.statistics.issue_waits, waits);
        prop_assert!(threads > 1 || waits == 0);
        let instructions = found.statistics.instructions;
        prop_assert_eq!(instructions, packets * (4 + adds as u64));
        let alone = threads.min(packets);
        let last = found.cycles.iter().map(|(_, cycles)| *cycles).max().unwrap();
        // A handler waits at most for one instruction of each other thread before each of its own.
        prop_assert!(last <= own + (alone - 1) * (4 + adds as u64));
        prop_assert_eq!(outcome(&keys, &payload(Code::enter().with(&vec![addi(T1, T1, 1); adds])
            .with(&[lw(T0, 0, S0)]).returns(0)), packets).cycles, found.cycles);
    }
}
