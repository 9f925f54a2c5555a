//! Levels of memory with banks that cores share: waits counted by hand, and properties that hold for any program.

use crate::support::code::{Code, number, payload, program_for};
use crate::support::*;
use nicety_fabric::Faults;
use nicety_hpu::asm::*;
use nicety_kernel::Config;
use nicety_nic_processors::{CacheUse, HandlerStatistics, Handlers, LevelUse, map};
use nicety_nic_testing::profile::has_each_cycle_once;
use nicety_types::{Duration, Frequency, Level, Recorder, Time};
use proptest::prelude::*;

/// Overrides that make packets of 8 bytes arrive back to back, within one cycle of the processors.
const AT_ONCE: [&str; 6] = [
    "packet.payload=8 B",
    "link.gap=1 ps/B",
    "match.first=0 ns",
    "match.further=0 ns",
    "send.gap=0 ns",
    "memory.state=l1",
];

const MHARTID: u32 = 0xf14;

pub(crate) struct Outcome {
    /// The processor and the cycles of each run, in the order of the processors.
    pub(crate) cycles: Vec<(u32, u64)>,
    /// The start and the end of each run, in the order of `cycles`.
    times: Vec<(Time, Time)>,
    pub(crate) levels: Vec<LevelUse>,
    /// The use of the data caches in front of the levels.
    pub(crate) caches: Vec<CacheUse>,
    pub(crate) statistics: HandlerStatistics,
    /// Number of code lines filled into instruction caches.
    lines: u64,
}

/// Returns the outcome of one message to these handlers. The message has `packets` packets.
pub(crate) fn outcome(overrides: &[&str], handlers: &Handlers, packets: u64) -> Outcome {
    let recorder = Recorder::new(Level::Packets, 10_000);
    let all: Vec<_> = AT_ONCE.iter().chain(overrides).copied().collect();
    let mut rig =
        Rig::recorded(&all, Config::default(), &Faults::default(), [Recorder::off(), recorder.clone()]);
    rig.program(0, async move |a| {
        let request = a.request(&a.alloc(&vec![1; 8 * packets as usize]), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    let handlers = handlers.clone();
    rig.program(1, async move |b| {
        let memory = b.alloc(&vec![0; 8 * packets as usize]);
        b.append_with(entry(&memory, 5), &handlers, &[0; 1024]).await.unwrap();
    });
    rig.nodes[1].card.processors().profile();
    rig.run();
    assert_eq!(rig.failures(), []);
    has_each_cycle_once(rig.nodes[1].card.processors());
    let runs = recorder.take().handler_runs;
    let mut cycles: Vec<_> = runs.iter().map(|run| (run.hpu, run.cycles)).collect();
    cycles.sort_unstable();
    let mut times: Vec<_> = runs.iter().map(|run| (run.start, run.end)).collect();
    times.sort_unstable();
    let card = &rig.nodes[1].card;
    Outcome {
        cycles,
        times,
        levels: card.processors().memory_levels(),
        caches: card.processors().data_caches(),
        statistics: card.processors().handler_statistics(),
        lines: card.processors().code_lines_filled(),
    }
}

/// Returns the cycles of two handlers that begin at the same time on two processors. The four cycles of `enter` and
/// `returns` are not counted.
pub(crate) fn both(overrides: &[&str], code: Code) -> [u64; 2] {
    let all: Vec<_> = ["hpu.cores=2"].iter().chain(overrides).copied().collect();
    let core = spec(&[&AT_ONCE, &all[..]].concat()).hpu.core;
    let handlers = program_for(core, None, Some(Code::enter().then(&code).returns(0)), None);
    let cycles = outcome(&all, &handlers, 2).cycles;
    assert_eq!(cycles.iter().map(|(core, _)| *core).collect::<Vec<_>>(), [0, 1]);
    [cycles[0].1 - 4, cycles[1].1 - 4]
}

/// Returns code that loads the word with the processor's number as its index.
fn load_own() -> Code {
    Code::new().with(&[csrrs(T0, MHARTID, ZERO), slli(T0, T0, 2), add(T0, T0, S0), lw(T1, 0, T0)])
}

#[test]
fn one_of_two_cores_at_a_bank_waits_for_its_occupancy() {
    let load = || Code::new().with(&[lw(T0, 0, S0)]);
    assert_eq!(both(&["memory.l1.load=5"], load()), [5, 6]);
    assert_eq!(both(&["memory.l1.load=5", "memory.l1.occupancy=3"], load()), [5, 8]);
    // Both processors load in the same cycle. The bank accepts the second access after the occupancy of the first, for
    // any latency.
    assert_eq!(both(&["memory.l1.load=21", "memory.l1.occupancy=3"], load()), [21, 24]);
    let store = Code::new().with(&[sw(ZERO, 4, S0)]);
    assert_eq!(both(&["memory.l1.load=5", "memory.l1.store=2", "memory.l1.occupancy=4"], store), [2, 6]);
    // In a level that is uncontended or ideal, a load never waits.
    assert_eq!(both(&["memory.l1.load=5", "memory.l1.contended=false"], load()), [5, 5]);
    assert_eq!(both(&["memory.state=ideal"], load()), [1, 1]);
    assert_eq!(both(&["memory.state=core", "memory.core.load=3"], load()), [3, 3]);
}

/// Loads of a handler overlap if no other handler can access the level. In a contended level, loads follow one another.
#[test]
fn loads_overlap_but_in_a_contended_level() {
    let loads = || Code::new().with(&[lw(T0, 0, S0), lw(T1, 4, S0), lw(T2, 8, S0), lw(T3, 12, S0)]);
    let cycles = |level: &str| {
        let pipeline = ["hpu.cores=1", "hpu.pipeline=out-of-order", "hpu.overlap.load=5"];
        let all: Vec<_> = pipeline.into_iter().chain(["memory.state=l1", level]).collect();
        let code = Code::enter().then(&loads()).returns(0);
        let handlers = program_for(spec(&all).hpu.core, None, Some(code), None);
        let [(0, cycles)] = outcome(&all, &handlers, 1).cycles[..] else { panic!("one handler") };
        cycles
    };
    // The move in `enter` has its result in cycle 1. From then on, one load begins per cycle. The last load has its
    // value in cycle 9. The two instructions of `returns` leave in the same cycle.
    assert_eq!(cycles("memory.l1.contended=false"), 9);
    // Each load begins when the previous load has ended. The two instructions of `returns` leave in the same cycle.
    assert_eq!(cycles("memory.l1.contended=true"), 1 + 4 * 5 + 1);
}

#[test]
fn words_of_two_banks_are_loaded_at_once() {
    let three = 3;
    for (overrides, wait) in [
        (&["memory.l1.banks=2"][..], 0),
        (&["memory.l1.banks=2", "memory.l1.interleave=8 B"], 2),
        (&["memory.l1.banks=1"], 2),
    ] {
        let all: Vec<_> =
            ["memory.l1.load=5", "memory.l1.occupancy=2"].iter().chain(overrides).copied().collect();
        assert_eq!(both(&all, load_own()), [three + 5, three + 5 + wait], "{overrides:?}");
    }
    // Each cluster has one core. The second core's words are in the memory of the first cluster, which has a longer
    // latency.
    let clusters = ["memory.cluster=1", "memory.l1.load=5", "memory.l1.remote=7"];
    assert_eq!(both(&clusters, load_own()), [three + 5, three + 5 + 1 + 7]);
    // In an uncontended level, the latency is the same without the wait.
    let alone = ["memory.cluster=1", "memory.l1.load=5", "memory.l1.remote=7", "memory.l1.contended=false"];
    assert_eq!(both(&alone, load_own()), [three + 5, three + 5 + 7]);
    let levels =
        outcome(&[&["hpu.cores=2"], &alone[..]].concat(), &payload(Code::enter().returns(0)), 2).levels;
    assert_eq!(levels, []);
}

/// Each processor has its own packet, stack and arguments, in any level. In this test, each of these has 64 bytes.
#[test]
fn private_memory_of_processors_is_disjoint() {
    let packet = || Code::new().set(T0, map::PACKET).with(&[lw(T1, 0, T0)]);
    let stack = || Code::new().with(&[addi(T0, SP, -8), addi(T0, T0, 0), lw(T1, 0, T0)]);
    let arguments = || Code::new().with(&[addi(T0, A0, 0), addi(T0, T0, 0), lw(T1, 0, T0)]);
    let pieces = [("packet", packet()), ("stack", stack()), ("arguments", arguments())];
    for (level, clusters) in [("l1", "2"), ("l2", "2"), ("l2", "1"), ("device", "1")] {
        for (piece, code) in &pieces {
            for (banks, wait) in [("64 B", 0), ("128 B", 1)] {
                let keys = [
                    "memory.state=ideal".to_owned(),
                    format!("memory.{piece}={level}"),
                    format!("memory.cluster={clusters}"),
                    format!("memory.{level}.banks=2"),
                    format!("memory.{level}.interleave={banks}"),
                    "hpu.stack=64 B".into(),
                ];
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                assert_eq!(
                    both(&keys, code.clone()),
                    [3, 3 + wait],
                    "{piece} in {level}, {clusters} a cluster"
                );
            }
        }
    }
}

/// Both processors load in the same cycle. The simulation processes the second processor's load first.
#[test]
fn in_a_cycle_cores_come_by_their_numbers() {
    let code = || {
        let other = [lw(T1, 4, S0), beq(ZERO, ZERO, 28)];
        Code::new()
            .with(&[csrrs(T0, MHARTID, ZERO), bne(T0, ZERO, 12)])
            .with(&other)
            .with(&[addi(ZERO, ZERO, 0); 6])
            .with(&[lw(T1, 0, S0)])
    };
    for clock in ["hpu.clock=2.5 GHz", "hpu.clock=3 GHz"] {
        let keys = [clock, "memory.l1.banks=2", "memory.l1.load=5", "hpu.cycles.branch_taken=1"];
        // The code takes one cycle to read the processor's number, one for the branch, six until the second load, and
        // five for this load.
        assert_eq!(both(&keys, code()), [13, 14], "{clock}");
    }
}

/// A processor that has been busy since the start stays aligned to the edges of its clock, for any frequency.
#[test]
fn handlers_follow_one_another_without_a_gap() {
    for hz in [2_500_000_000, 3_000_000_000, 1_234_567_891] {
        let clock = format!("hpu.clock={hz} Hz");
        for state in ["memory.state=ideal", "memory.state=l1"] {
            let handlers = payload(Code::enter().with(&[addi(T0, T0, 1); 46]).returns(0));
            let found = outcome(&["hpu.cores=1", state, &clock], &handlers, 40);
            assert_eq!(found.cycles, [(0, 50); 40]);
            let (begun, ended) = (found.times[0].0, found.times[39].1);
            let cycles = Frequency::from_hz(hz).cycles(40 * 50);
            let most = match state {
                // The first handler may wait for a clock edge.
                "memory.state=l1" => cycles + Frequency::from_hz(hz).cycles(1),
                // Each handler begins when the previous handler has ended, at most 1 ps after a clock edge.
                _ => cycles + Duration::from_ps(40),
            };
            assert!(
                (cycles..=most).contains(&ended.since(begun)),
                "{hz} Hz, {state}: {}",
                ended.since(begun)
            );
        }
    }
}

/// LR takes the time of a load, plus the difference between the cost of an atomic instruction and the cost of a load.
#[test]
fn lr_takes_as_much_longer_as_a_load() {
    let with = |overrides: &[&str]| {
        let costs = ["hpu.cycles.atomic=4", "hpu.cycles.load=2"];
        both(&[&costs, overrides].concat(), Code::new().with(&[lr_w(T1, S0)]))
    };
    assert_eq!(with(&["memory.state=ideal"]), [4, 4]);
    assert_eq!(with(&["memory.l1.load=5", "memory.l1.contended=false"]), [4 + 3, 4 + 3]);
    assert_eq!(with(&["memory.l1.load=5", "memory.l1.occupancy=2"]), [4 + 3, 4 + 3 + 2]);
    // A wait counts in full, even if the load itself is hidden by the instruction's cost.
    assert_eq!(with(&["memory.l1.load=2"]), [4, 4 + 1]);
    // An atomic operation executed at the core takes at least the time of its load.
    let add = || Code::new().with(&[amoadd_w(T1, T0, S0)]);
    assert_eq!(both(&["memory.state=core", "memory.core.load=9"], add()), [9, 9]);
    assert_eq!(both(&["memory.state=core", "memory.core.load=9", "hpu.cycles.atomic=12"], add()), [12, 12]);
}

#[test]
fn atomics_are_at_the_core_the_bank_or_the_memory() {
    let add = || Code::new().with(&[amoadd_w(T1, T0, S0)]);
    let own = |op: u32| Code::new().with(&[csrrs(T0, MHARTID, ZERO), slli(T0, T0, 2), add_(T0), op]);
    fn add_(register: u32) -> u32 {
        nicety_hpu::asm::add(register, register, S0)
    }
    let base =
        ["memory.l1.banks=2", "memory.l1.load=5", "memory.l1.atomic=8", "memory.l1.atomic_occupancy=6"];
    let with = |more: &'static str, code: Code| {
        let all: Vec<_> = base.iter().copied().chain([more]).collect();
        both(&all, code)
    };
    assert_eq!(with("memory.l1.atomics=bank", add()), [8, 14]);
    assert_eq!(with("memory.l1.atomics=bank", own(amoadd_w(T1, T1, T0))), [11, 11]);
    assert_eq!(with("memory.l1.atomics=memory", own(amoadd_w(T1, T1, T0))), [11, 17]);
    // The bank is busy from the load (5 cycles) until the store has been served (1 cycle), or longer.
    assert_eq!(with("memory.l1.atomics=core", add()), [8, 14]);
    let core = ["memory.l1.load=5", "memory.l1.atomic=8", "memory.l1.atomics=core"];
    assert_eq!(both(&core, add()), [8, 14]);
    assert_eq!(both(&[&core[..], &["memory.l1.atomic_occupancy=9"]].concat(), add()), [8, 17]);
    // The command accesses 8 bytes: one word in each of two banks.
    let command = Code::new().at(A0, 0).at(A1, 8).small(A2, 1).small(A3, 0).command(number::FADD);
    assert_eq!(with("memory.l1.atomics=bank", command), [5 + 8, 5 + 14]);
}

#[test]
fn a_report_names_the_bank_and_its_waits() {
    let code = Code::enter().with(&[lw(T0, 8, S0), lw(T0, 8, S0), sw(T0, 12, S0)]).returns(0);
    let found = outcome(&["hpu.cores=2", "memory.l1.banks=4", "memory.l1.occupancy=3"], &payload(code), 2);
    let [level] = &found.levels[..] else { panic!("{:?}", found.levels) };
    assert_eq!((level.level, level.accesses, &*level.busiest), ("l1", 6, "bank 2 of l1"));
    // The loads are at cycles 1, 1 (waits 3), 2 (waits 5) and 5 (waits 5). The bank is busy from cycle 1 to cycle 13.
    assert_eq!((level.busiest_accesses, level.busiest_busy.ps()), (4, 4 * 3 * 400));
    assert_eq!((level.waited_cycles, level.busiest_waited_cycles), (13, 13));
    assert_eq!(level.lines.len(), 2);
    assert_eq!((&*level.lines[0].place, level.lines[0].cycles), ("pc 0x1d000008", 10));
    assert_eq!((found.statistics.accesses, found.statistics.shared_accesses), (6, 6));
    assert_eq!(found.statistics.memory_waits, 13);
}

#[test]
fn code_is_fetched_through_a_cache() {
    // The code has 15 instructions of 4 bytes, in four lines, and takes 16 cycles.
    let handlers = payload(Code::enter().with(&[addi(T0, T0, 1); 12]).returns(0));
    let with = |cores: &str, size: &str, packets| {
        let keys = [
            cores.to_owned(),
            format!("memory.instructions.size={size}"),
            "memory.instructions.fill=9".into(),
        ];
        let found = outcome(&keys.iter().map(String::as_str).collect::<Vec<_>>(), &handlers, packets);
        (found.cycles, found.lines, found.statistics.fetch_waits)
    };
    // Two handlers begin at once. Each waits for the four lines. The next two handlers find the lines in the cache.
    let cold = 16 + 4 * 9;
    let both = vec![(0, 16), (0, cold), (1, 16), (1, cold)];
    assert_eq!(with("hpu.cores=2", "64 B", 4), (both, 4, 2 * 4 * 9));
    // The cache has one line, so every run fetches all four lines.
    assert_eq!(with("hpu.cores=1", "16 B", 3), (vec![(0, cold); 3], 12, 12 * 9));
    // If the program's memory level is contended, a fill counts as four word accesses to this level.
    let keys =
        ["hpu.cores=1", "memory.constants=l2", "memory.instructions.size=64 B", "memory.instructions.fill=9"];
    let found = outcome(&keys, &handlers, 2);
    assert_eq!((found.lines, found.levels[0].level, found.levels[0].busiest_accesses), (4, "l2", 16));
    assert_eq!(found.statistics.shared_accesses, 0);
    // Fills do not count as accesses of handlers.
    assert_eq!((found.levels[0].accesses, found.levels[0].waited_cycles), (0, 0));
}

#[test]
fn a_command_on_two_banks_is_one_access() {
    let code = Code::enter().at(A0, 0).at(A1, 8).small(A2, 1).small(A3, 0).command(number::FADD).returns(0);
    let found = outcome(&["hpu.cores=1", "memory.l1.banks=2"], &payload(code), 3);
    let [level] = &found.levels[..] else { panic!("{:?}", found.levels) };
    assert_eq!((level.accesses, level.busiest_accesses, found.statistics.shared_accesses), (3, 3, 3));
}

/// The action of a random handler on a word of its state.
#[derive(Clone, Debug)]
struct Step {
    word: u32,
    own: bool,
    kind: u32,
    before: u32,
}

fn handler(steps: &[Step]) -> Code {
    let mut code = Code::enter().with(&[csrrs(T2, MHARTID, ZERO), slli(T2, T2, 2), add(T2, T2, S0)]);
    for step in steps {
        let base = if step.own { T2 } else { S0 };
        let at = (4 * step.word) as i32;
        code = code.with(&vec![addi(ZERO, ZERO, 0); step.before as usize]);
        code = match step.kind {
            0 => code.with(&[lw(T0, at, base)]),
            1 => code.with(&[sw(T2, at, base)]),
            _ => code.with(&[addi(T3, base, at), amoadd_w(T1, T0, T3)]),
        };
    }
    code.returns(0)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0u32..8, any::<bool>(), 0u32..3, 0u32..4).prop_map(|(word, own, kind, before)| Step {
        word,
        own,
        kind,
        before,
    });
    prop::collection::vec(step, 1..12)
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(40))]

    /// No access is lost. The busy time of every bank is the time of its accesses, and cores wait only for banks. The
    /// same seed gives the same run.
    #[test]
    fn accesses_and_waits_add_up(
        steps in steps(),
        cores in 1u32..9,
        banks in prop::sample::select(vec![1u32, 2, 4, 8]),
        occupancy in 1u32..5,
        load in 1u32..9,
        packets in 1u64..24,
    ) {
        let keys = [
            format!("hpu.cores={cores}"),
            format!("memory.l1.banks={banks}"),
            format!("memory.l1.occupancy={occupancy}"),
            format!("memory.l1.load={load}"),
        ];
        let overrides: Vec<&str> = keys.iter().map(String::as_str).collect();
        let handlers = payload(handler(&steps));
        let found = outcome(&overrides, &handlers, packets);
        let accesses = packets * steps.len() as u64;
        let level = &found.levels[0];
        prop_assert_eq!(found.cycles.len() as u64, packets);
        prop_assert_eq!((level.accesses, found.statistics.shared_accesses), (accesses, accesses));
        prop_assert!(level.busiest_busy.ps() == level.busiest_accesses * u64::from(occupancy) * 400);
        prop_assert!(level.busiest_accesses * u64::from(banks) >= accesses);
        let alone = outcome(&overrides, &handlers, 1);
        prop_assert_eq!(alone.statistics.memory_waits, waits_alone(&steps, banks, occupancy, load));
        let unloaded = alone.cycles[0].1 - alone.statistics.memory_waits;
        let waited: u64 = found.cycles.iter().map(|(_, cycles)| cycles - unloaded).sum();
        prop_assert_eq!(waited, level.waited_cycles);
        let lines: u64 = level.lines.iter().map(|line| line.cycles).sum();
        prop_assert!(lines <= waited && (level.lines.len() == 8 || lines == waited));
        let again = outcome(&overrides, &handlers, packets);
        prop_assert_eq!((again.cycles, again.levels), (found.cycles, found.levels));
    }
}

/// Returns the cycles for which a single core waits for its own earlier accesses, if a bank stays busy after an access
/// has ended.
fn waits_alone(steps: &[Step], banks: u32, occupancy: u32, load: u32) -> u64 {
    let (mut cycle, mut free, mut waited) = (4, [0u64; 8], 0);
    for step in steps {
        // The core is the first processor, so its own words are the same as the shared words.
        let bank = &mut free[(step.word % banks) as usize];
        cycle += u64::from(step.before) + u64::from(step.kind == 2);
        let start = cycle.max(*bank);
        waited += start - cycle;
        *bank = start + u64::from(occupancy);
        // A store takes the one cycle of hpu.cycles. An atomic operation at the bank takes the time of a load.
        cycle = start + if step.kind == 1 { 1 } else { u64::from(load) };
    }
    waited
}
