//! Transactions, times, turns and bandwidth, compared with results computed by hand.

use super::*;
use crate::{Bus, BusSpec};
use nicety_kernel::{Config, World, join, join_all};
use nicety_types::{Frequency, NodeId};
use proptest::prelude::*;
use std::cell::Cell;

/// A bus with 64 bits and a clock of 15 ns.
const SPEC: PciSpec = PciSpec {
    clock: Frequency::from_hz(66_666_667),
    width: 8,
    wait: 12,
    arbitration: 2,
    combine: 32,
    burst: 128,
    latency: Duration::ZERO,
    command: 64,
    event: 64,
    counter: 16,
};

/// The duration of a clock in picoseconds.
const T: u64 = 15_000;

fn on<F: Future<Output = ()> + 'static>(spec: PciSpec, program: impl FnOnce(Sim, Rc<Bus>) -> F) {
    let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
    let node = world.add_node();
    let sim = world.sim(node);
    let bus = Rc::new(Bus::new(&sim, BusSpec::Pci(spec)));
    sim.spawn_program("test", program(sim.clone(), bus));
    world.run().unwrap();
}

fn message(sequence: u64) -> MessageId {
    MessageId { source: NodeId(0), sequence }
}

fn now(sim: &Sim) -> Path {
    Path::from(sim.now())
}

#[test]
fn transactions_take_their_phases() {
    // An address phase, 12 wait clocks, the data phases, and the turnaround.
    assert_eq!([8, 16, 32, 128].map(|bytes| SPEC.transaction(0, bytes)), [15, 16, 18, 30]);
    // Bytes that lie in two data phases take both.
    assert_eq!(
        [(4, 8), (7, 1), (7, 2)].map(|(address, bytes)| SPEC.transaction(address, bytes)),
        [16, 15, 16]
    );
    let narrow = PciSpec { width: 4, ..SPEC };
    assert_eq!(narrow.transaction(0, 32), 22);
    // Each full buffer is a burst. Each data phase of the last buffer is a transaction.
    let programmed: Vec<_> = [0, 1, 8, 16, 31, 32, 33, 128].map(|bytes| SPEC.programmed(bytes)).into();
    assert_eq!(programmed, [0, 15, 15, 30, 60, 18, 33, 72]);
    // Without write-combining, each data phase is a transaction.
    assert_eq!(PciSpec { combine: 8, ..SPEC }.programmed(32), 60);
    let bursts = |address, bytes| SPEC.bursts(address, bytes).collect::<Vec<_>>();
    assert_eq!(bursts(0, 300), [(0, 128), (128, 256), (256, 300)]);
    assert_eq!(bursts(100, 300), [(0, 28), (28, 156), (156, 284), (284, 300)]);
    assert_eq!(bursts(5, 0), []);
    assert_eq!(SPEC.mastered(0, 4096), 32 * 30);
}

#[test]
fn a_transfer_takes_arbitration_transactions_and_the_bridge() {
    let spec = PciSpec { latency: Duration::from_ns(100), ..SPEC };
    on(spec, |sim, bus| async move {
        let stored = bus.store(message(0), 1024, now(&sim)).await;
        assert_eq!(stored.path.at().ps(), (2 + 32 * 18) * T);
        assert_eq!(stored.landed.ps(), (2 + 32 * 18) * T + 100_000);
        assert_eq!(sim.now(), stored.path.at());
        let start = sim.now();
        let written = bus.deposit(message(1), 4096, 4096, now(&sim)).await;
        assert_eq!(written.landed.since(start).ps(), (2 + 32 * 30) * T + 100_000);
        let start = sim.now();
        let read = bus.read(message(2), 4096, 1000, 4096, now(&sim)).await;
        assert_eq!(sim.now().since(start).ps(), 2 * T);
        let flight = read.packet(0).await;
        // The read takes seven bursts of 128 B and one burst of 104 B, which has 13 data phases.
        assert_eq!(flight.tail.since(start).ps(), (2 + 7 * 30 + 27) * T + 100_000);
        let path = flight.landed();
        assert_eq!(path.total(Stage::FETCH), path.at().since(path.origin()));
    });
}

#[test]
fn nothing_takes_no_transaction() {
    on(SPEC, |sim, bus| async move {
        assert_eq!(bus.store(message(0), 0, now(&sim)).await.landed.ps(), 0);
        assert_eq!(bus.read(message(1), 0, 0, 64, now(&sim)).await.packet(0).await.tail.ps(), 0);
        assert_eq!(bus.write(message(2), 0, 0, now(&sim)).landed.ps(), 0);
        assert_eq!(bus.deposit(message(2), 0, 0, now(&sim)).await.landed.ps(), 0);
        assert_eq!(bus.busy(), (Duration::ZERO, Duration::ZERO));
    });
}

#[test]
fn a_push_is_a_command_and_packets_behind_it() {
    on(SPEC, |sim, bus| async move {
        // The push has 64 B of command and 100 B of payload: five full buffers, and one data phase for the last four
        // bytes.
        let push = bus.push(message(0), 100, 64, now(&sim));
        let first = push.packet(0).await;
        assert_eq!((first.head.ps(), first.tail.ps()), ((2 + 3 * 18) * T, (2 + 4 * 18) * T));
        let second = push.packet(64).await;
        assert_eq!((second.head.ps(), second.tail.ps()), ((2 + 5 * 18) * T, (2 + 5 * 18 + 15) * T));
        assert_eq!(second.landed().total(Stage::BUS).ps(), (2 + 5 * 18 + 15) * T);
        assert_eq!(
            bus.push(message(1), 0, 64, now(&sim)).packet(0).await.tail.ps(),
            (2 + 5 * 18 + 15 + 36) * T
        );
    });
}

#[test]
fn both_directions_take_turns() {
    on(SPEC, |sim, bus| async move {
        // Programmed I/O and a deposit are concurrent and have four bursts each. Their bursts of 18 and 30 clocks take
        // turns.
        let stored = bus.store(message(0), 128, now(&sim));
        let written = bus.deposit(message(1), 0, 512, now(&sim));
        let (stored, written) = join(stored, written).await;
        assert_eq!(stored.landed.ps(), (2 + 4 * 18 + 3 * 30) * T);
        assert_eq!(stored.path.total(Stage::BUS_QUEUED).ps(), 3 * 30 * T);
        assert_eq!(written.landed.ps(), (2 + 4 * 18 + 4 * 30) * T);
        assert_eq!(written.path.total(Stage::DEPOSIT_QUEUED).ps(), 4 * 18 * T);
        assert_eq!(bus.busy(), (Duration::from_ps(72 * T), Duration::from_ps(120 * T)));
    });
}

#[test]
fn arbitration_is_hidden_behind_another_transaction() {
    on(SPEC, |sim, bus| async move {
        bus.write(message(0), 0, 8, now(&sim)); // ends at clock 17
        let behind = bus.write(message(1), 0, 8, now(&sim));
        assert_eq!((behind.landed.ps(), behind.path.total(Stage::DEPOSIT_QUEUED).ps()), (32 * T, 15 * T));
    });
}

/// Returns the rate of `users` users together, in bytes per microsecond. Each user moves `bytes` bytes per transfer,
/// one transfer after another.
fn rate(users: usize, bytes: u64, program: bool) -> f64 {
    let done = Rc::new(Cell::new(0.0));
    let seen = done.clone();
    on(SPEC, move |sim, bus| async move {
        const ROUNDS: u64 = 50;
        let user = |user: u64| {
            let (sim, bus) = (sim.clone(), bus.clone());
            async move {
                for round in 0..ROUNDS {
                    let id = message(user * ROUNDS + round);
                    if program {
                        bus.store(id, bytes, now(&sim)).await;
                    } else {
                        bus.deposit(id, 0, bytes, now(&sim)).await;
                    }
                }
            }
        };
        join_all((0..users as u64).map(user)).await;
        seen.set((users as u64 * ROUNDS * bytes) as f64 / (sim.now().ps() as f64 / 1e6));
    });
    done.get()
}

#[test]
fn rates_depend_on_the_burst_size() {
    // With programmed I/O, one burst of 32 B takes 2 + 18 clocks. From 128 B on, the rate is within 3 % of its limit.
    for (bytes, clocks) in [(8, 17), (16, 32), (32, 20), (64, 38), (128, 74), (1024, 578)] {
        let expected = bytes as f64 / (clocks as f64 * 0.015);
        assert!((rate(1, bytes, true) / expected - 1.0).abs() < 1e-6, "{bytes}");
    }
    let limit = 32.0 / 0.27;
    assert!(rate(1, 128, true) > 0.97 * limit && rate(1, 64, true) < 0.97 * limit);
    // With two users, arbitration overlaps with transactions: 128 B take 30 clocks.
    assert!((rate(2, 4096, false) / (128.0 / 0.45) - 1.0).abs() < 1e-3);
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Store,
    Deposit,
    Write,
    Read,
    Push,
}

fn operations() -> impl Strategy<Value = Vec<(u64, Operation, u64, u64)>> {
    use Operation::{Deposit, Push, Read, Store, Write};
    let kind = prop_oneof![Just(Store), Just(Deposit), Just(Write), Just(Read), Just(Push)];
    prop::collection::vec((0..40_000_000_u64, kind, 0..5000_u64, 0..5000_u64), 1..12)
}

fn specs() -> impl Strategy<Value = PciSpec> {
    (any::<bool>(), 0..20_u64, 0..4_u64, 3..8_u32, 3..10_u32, 0..200_u64).prop_map(
        |(wide, wait, arbitration, combine, burst, latency)| PciSpec {
            width: if wide { 8 } else { 4 },
            wait,
            arbitration,
            combine: 1 << combine,
            burst: 1 << burst,
            latency: Duration::from_ns(latency),
            ..SPEC
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64 * ProptestConfig::default().cases / 256))]

    /// Every transfer ends, the stages of each path add up, and the bus is busy exactly for the clocks of its
    /// transactions.
    #[test]
    fn random_traffic_adds_up(spec in specs(), operations in operations()) {
        let clocks = Rc::new(Cell::new((0, 0)));
        let (expected, all) = (clocks.clone(), operations.clone());
        on(spec, move |sim, bus| async move {
            let each = all.into_iter().enumerate().map(|(i, (delay, operation, address, bytes))| {
                let (sim, bus, clocks) = (sim.clone(), bus.clone(), clocks.clone());
                async move {
                    sim.delay(Duration::from_ps(delay)).await;
                    let (path, id) = (now(&sim), message(i as u64));
                    let path = match operation {
                        Operation::Store => bus.store(id, bytes, path).await.path,
                        Operation::Deposit => bus.deposit(id, address, bytes, path).await.path,
                        Operation::Write => bus.write(id, address, bytes, path).path,
                        Operation::Read => {
                            bus.read(id, address, bytes, 8192, path).await.packet(0).await.landed()
                        }
                        Operation::Push => bus.push(id, bytes, 8192, path).packet(0).await.landed(),
                    };
                    let sum: Duration = path.stages().map(|(_, time)| time).sum();
                    assert_eq!(sum, path.at().since(path.origin()));
                    let (programmed, mastered) = (spec.programmed(bytes), spec.mastered(address, bytes));
                    let (to_card, to_host) = clocks.get();
                    clocks.set(match operation {
                        Operation::Store => (to_card + programmed, to_host),
                        Operation::Push => (to_card + spec.programmed(bytes + spec.command), to_host),
                        Operation::Read => (to_card + mastered, to_host),
                        Operation::Write | Operation::Deposit => (to_card, to_host + mastered),
                    });
                    sim.until(path.at()).await;
                }
            });
            let ends = join_all(each.collect::<Vec<_>>());
            ends.await;
            let (to_card, to_host) = bus.busy();
            let (card, host) = expected.get();
            // The duration of each transaction is rounded up to picoseconds separately.
            let near = |busy: Duration, clocks: u64| {
                let least = spec.clock.cycles(clocks).ps();
                assert!((least.saturating_sub(1)..least + 5000).contains(&busy.ps()), "{busy:?}, {clocks} clocks");
            };
            near(to_card, card);
            near(to_host, host);
        });
    }
}
