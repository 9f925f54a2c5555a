//! Observers of handlers: they change nothing, and see every instruction and command exactly once.

use crate::support::code::{Code, number, program_for, result};
use crate::support::*;
use nicety_fabric::Faults;
use nicety_hpu::asm::*;
use nicety_hpu::{OrderPoint, Trap};
use nicety_kernel::Config;
use nicety_nic_processors::observe::{Command, Instruction, Observe};
use nicety_nic_processors::running::{Ended, Running};
use nicety_nic_processors::{HandlerStatistics, Handlers, LevelUse, map};
use nicety_types::{HandlerRun, Level, Recorder, Time};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Packets of 8 bytes that arrive back to back within a cycle of the processors.
const AT_ONCE: [&str; 5] =
    ["packet.payload=8 B", "link.gap=1 ps/B", "match.first=0 ns", "match.further=0 ns", "send.gap=0 ns"];

/// The cores and memories of the runs.
const CARDS: [&[&str]; 7] = [
    &["hpu.cores=3", "memory.state=ideal"],
    &["hpu.cores=4", "memory.state=l1", "memory.l1.banks=2", "memory.l1.load=5", "memory.l1.occupancy=3"],
    &["hpu.cores=2", "memory.state=l1", "memory.l1.occupancy=3", "hpu.pipeline=in-order"],
    &["hpu.cores=2", "hpu.pipeline=out-of-order", "memory.state=l1", "hpu.overlap.load=5"],
    &["hpu.cores=2", "memory.instructions.size=64 B", "memory.instructions.fill=9", "memory.state=l1"],
    &["hpu.cores=2", "hpu.cycles.load_use=2", "memory.stack=l1", "memory.packet=l1", "memory.arguments=l1"],
    &[
        "hpu.cores=16",
        "hpu.scheduling=home-cluster",
        "hpu.packets.beat=64 B",
        "hpu.packets.schedule=4",
        "hpu.packets.copy=16",
        "hpu.packets.feedback=1",
        "hpu.packets.in_flight=20",
        "hpu.packets.copies=8",
        "hpu.packets.burst=2 KiB",
        "hpu.packets.bank_groups=2",
        "memory.cluster=8",
        "memory.state=l1",
        "memory.packet=l1",
        "hpu.code=64 KiB",
    ],
];

/// Counts reports, and checks their order.
#[derive(Default)]
struct Counter {
    /// Instructions reported for each run.
    runs: RefCell<Vec<u64>>,
    begun: Cell<u64>,
    ended: Cell<u64>,
    commands: Cell<u64>,
    commanded: Cell<u64>,
    in_turn: Cell<u64>,
    traps: RefCell<Vec<u32>>,
    last: Cell<Time>,
}

fn add(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

impl Observe for Counter {
    fn begins(&self, running: &mut Running) {
        add(&self.begun);
        assert_eq!(running.number, self.begun.get());
        assert_eq!(running.thread.state.borrow().context.instret(), 0);
        self.runs.borrow_mut().push(0);
    }

    fn instruction(&self, at: &mut Instruction<'_, '_>) {
        let seen = &mut self.runs.borrow_mut()[at.run.number as usize - 1];
        // Inside a slice, the count is that at its begin.
        let completed = at.context.instret();
        let is_exact = at.order.is_none() || completed == *seen;
        assert!(completed <= *seen && is_exact, "run {}, pc {:#x}", at.run.number, at.context.pc());
        *seen += 1;
        assert!(at.image.is_code(at.context.pc()));
        assert!(at.space.regions().iter().any(|region| region.name() == "the state"));
        if let Some(point) = at.order {
            add(&self.in_turn);
            assert!(at.context.is_ordered_next(at.image, at.space), "{point:?}");
            if point != OrderPoint::Fence {
                assert!(self.last.get() <= at.time(), "accesses have their turns in the order of time");
                self.last.set(at.time());
            }
        }
    }

    fn command(&self, running: &mut Running, command: &Command) {
        add(&self.commands);
        let Command::Call(registers) = command else { panic!("{command:?}") };
        assert_eq!(*registers, running.thread.state.borrow().context.args());
    }

    fn commanded(&self, running: &mut Running, _: &Command) {
        add(&self.commanded);
        assert_eq!(running.thread.state.borrow().context.args()[0], result::OK);
    }

    fn traps(&self, running: &mut Running, trap: &Trap) {
        assert_eq!(running.thread.state.borrow().context.pc(), trap.pc);
        self.traps.borrow_mut().push(trap.pc);
    }

    fn ends(&self, running: &mut Running, _: &Ended) {
        add(&self.ended);
        let seen = self.runs.borrow()[running.number as usize - 1];
        let trapped = self.traps.borrow().len() as u64;
        let completed = running.thread.state.borrow().context.instret();
        assert!(seen == completed || trapped > 0 && seen == completed + 1, "{seen} reports of {completed}");
    }
}

/// The figures of a run that must not depend on an observer.
#[derive(Debug, PartialEq)]
struct Outcome {
    runs: Vec<(Time, Time, HandlerRun)>,
    statistics: HandlerStatistics,
    levels: Vec<LevelUse>,
    lines: u64,
    bytes: [Vec<u8>; 2],
    failures: Vec<String>,
}

/// Returns the outcome of one message of `packets` packets.
fn outcome(overrides: &[&str], code: &Code, packets: u64, observer: Option<Rc<dyn Observe>>) -> Outcome {
    let all: Vec<_> = AT_ONCE.iter().chain(overrides).copied().collect();
    let handlers: Handlers = program_for(spec(&all).hpu.core, None, Some(code.clone()), None);
    let recorder = Recorder::new(Level::Packets, 10_000);
    let mut rig =
        Rig::recorded(&all, Config::default(), &Faults::default(), [Recorder::off(), recorder.clone()]);
    rig.program(0, async move |a| {
        let request = a.request(&a.alloc(&vec![1; 8 * packets as usize]), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async move |b| {
        let memory = b.alloc(&vec![0; 8 * packets as usize]);
        b.append_with(entry(&memory, 5), &handlers, &[0; 256]).await.unwrap();
    });
    let card = rig.nodes[1].card.clone();
    if let Some(observer) = observer {
        card.processors().observed_by(observer);
    }
    rig.run();
    let mut runs: Vec<_> =
        recorder.take().handler_runs.into_iter().map(|run| (run.start, run.end, run)).collect();
    runs.sort_by_key(|(start, end, run)| (*start, *end, run.hpu));
    Outcome {
        runs,
        statistics: card.processors().handler_statistics(),
        levels: card.processors().memory_levels(),
        lines: card.processors().code_lines_filled(),
        bytes: card.processors().shared_bytes(),
        failures: rig.failures().into_iter().map(|failure| failure.text).collect(),
    }
}

/// A part of a handler, on a word of its state or of its packet.
#[derive(Clone, Debug)]
enum Part {
    Load(u32),
    Store(u32),
    Packet,
    Stack,
    Add(u32),
    Increment(u32),
    Locked(u32),
    Fence,
    Command,
    Stamp(u32),
    Work(u32),
}

fn part() -> impl Strategy<Value = Part> {
    let word = || 8..32u32;
    prop_oneof![
        word().prop_map(Part::Load),
        word().prop_map(Part::Store),
        Just(Part::Packet),
        Just(Part::Stack),
        word().prop_map(Part::Add),
        word().prop_map(Part::Increment),
        word().prop_map(Part::Locked),
        Just(Part::Fence),
        Just(Part::Command),
        word().prop_map(Part::Stamp),
        (1..200u32).prop_map(Part::Work),
    ]
}

impl Part {
    fn code(&self) -> Code {
        let at = |word: u32| 4 * word as i32;
        let code = Code::new();
        match *self {
            Part::Load(word) => code.with(&[lw(T0, at(word), S0), addi(T0, T0, 1)]),
            Part::Store(word) => code.with(&[sw(T0, at(word), S0)]),
            Part::Packet => code.set(T2, map::PACKET).with(&[lw(T0, 0, T2), sw(T0, 4, T2)]),
            Part::Stack => code.with(&[addi(SP, SP, -16), sw(T0, 4, SP), lw(T1, 4, SP), addi(SP, SP, 16)]),
            Part::Add(word) => code.with(&[addi(T2, S0, at(word)), amoadd_w(T1, T0, T2)]),
            Part::Increment(word) => code.with(&[
                addi(T2, S0, at(word)),
                lr_w(T0, T2),
                addi(T0, T0, 1),
                sc_w(T1, T0, T2),
                bne(T1, ZERO, -12),
            ]),
            // A lock of the first word, released by a store behind a fence.
            Part::Locked(word) => code
                .small(T0, 1)
                .with(&[amoswap_w(T1, T0, S0), bne(T1, ZERO, -4), fence()])
                .with(&[lw(T1, at(word), S0), addi(T1, T1, 1), sw(T1, at(word), S0)])
                .with(&[fence(), sw(ZERO, 0, S0)]),
            Part::Fence => code.with(&[fence()]),
            Part::Command => code.at(A0, 8).at(A1, 16).small(A2, 1).small(A3, 0).command(number::FADD),
            Part::Stamp(word) => code.stamp(at(word)),
            Part::Work(rounds) => code.spin(rounds),
        }
    }
}

fn handler(parts: &[Part]) -> Code {
    parts.iter().fold(Code::enter(), |code, part| code.then(&part.code())).returns(0)
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(60))]

    #[test]
    fn an_observer_changes_nothing_and_sees_everything_once(
        parts in prop::collection::vec(part(), 1..12),
        card in 0..CARDS.len(),
        packets in 1u64..9,
    ) {
        let code = handler(&parts);
        let plain = outcome(CARDS[card], &code, packets, None);
        let counter = Rc::new(Counter::default());
        let seen = outcome(CARDS[card], &code, packets, Some(counter.clone()));
        prop_assert_eq!(&plain, &seen);
        prop_assert_eq!(&plain.failures, &Vec::<String>::new());
        let reported: u64 = counter.runs.borrow().iter().sum();
        prop_assert_eq!(reported, plain.statistics.instructions);
        prop_assert_eq!((counter.begun.get(), counter.ended.get()), (packets, packets));
        let commands = packets * parts.iter().filter(|part| matches!(part, Part::Command)).count() as u64;
        prop_assert_eq!((counter.commands.get(), counter.commanded.get()), (commands, commands));
    }
}

/// Calls a function at each instruction.
struct Each<F>(F);

impl<F: Fn(&mut Instruction<'_, '_>)> Observe for Each<F> {
    fn instruction(&self, at: &mut Instruction<'_, '_>) {
        self.0(at);
    }
}

#[test]
fn a_trap_is_reported_at_its_instruction() {
    let code = Code::enter().with(&[nop(), lw(T0, 0, ZERO)]).returns(0);
    let counter = Rc::new(Counter::default());
    let plain = outcome(CARDS[1], &code, 1, None);
    assert_eq!(outcome(CARDS[1], &code, 1, Some(counter.clone())), plain);
    assert_eq!(plain.failures.len(), 1);
    assert_eq!(*counter.traps.borrow(), [map::CODE + 8]);
    assert_eq!((counter.runs.borrow()[0], counter.ended.get()), (3, 1));
}

#[test]
fn atomics_are_reported_in_their_turns() {
    // Two cores that begin at once, the second one with more instructions before its atomic.
    let code = Code::enter()
        .with(&[csrrs(T0, 0xf14, ZERO), beq(T0, ZERO, 16), nop(), nop(), nop()])
        .small(T0, 1)
        .with(&[amoadd_w(T1, T0, S0)])
        .returns(0);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = seen.clone();
    let observer = Each(move |at: &mut Instruction<'_, '_>| {
        if let Some(OrderPoint::Atomic { address, .. }) = at.order {
            let word = at.space.read(address, 4).unwrap()[0];
            log.borrow_mut().push((at.run.core, word));
        }
    });
    outcome(CARDS[1], &code, 2, Some(Rc::new(observer)));
    assert_eq!(*seen.borrow(), [(0, 0), (1, 1)]);
}

#[test]
fn an_observer_may_change_registers_memory_and_the_pc() {
    // Stores 5, adds 1 atomically, and then traps.
    let code = Code::enter()
        .small(T0, 5)
        .with(&[sw(T0, 40, S0), addi(T2, S0, 44), amoadd_w(T1, T0, T2), lw(T0, 0, ZERO)])
        .returns(0);
    let trap = map::CODE + 4 * 5;
    let observer = Each(move |at: &mut Instruction<'_, '_>| {
        if at.context.pc() == map::CODE + 8 {
            at.context.set_reg(T0 as usize, 7);
        } else if at.order.is_some_and(|point| matches!(point, OrderPoint::Atomic { .. })) {
            // To another word, which needs its own turn.
            let word = at.context.reg(T2 as usize) + 4;
            at.context.set_reg(T2 as usize, word);
            at.space.write(word as u32, 4).unwrap().copy_from_slice(&100u32.to_le_bytes());
        } else if at.context.pc() == trap {
            at.context.set_pc(trap + 4);
        }
    });
    let found = outcome(CARDS[1], &code, 1, Some(Rc::new(observer)));
    assert_eq!(found.failures, Vec::<String>::new());
    let word = |at: usize| u32::from_le_bytes(*found.bytes[0][at..].first_chunk().unwrap());
    assert_eq!((word(40), word(44), word(48)), (7, 0, 107));
}
