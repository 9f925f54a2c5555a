//! Units: a task can take a unit from the unit's place in the order of arrivals on. The arrival is an event only if a
//! task waits for it.

use nicety_kernel::{Arrived, Config, Handler, RunError, Units, WireTx, World};
use nicety_types::{Duration, NodeId, Time};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const LATENCY: Duration = Duration::from_ps(10);

fn ps(ps: u64) -> Time {
    Time::from_ps(ps)
}

/// A message or unit to send. `at` is the send time in ps, and `after` is the delay in ps in addition to the wire's
/// latency.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: u64,
    wire: usize,
    after: u64,
    unit: bool,
}

/// Arrivals of messages and of awaited units at a node. An entry has the time in ps, the wire, and whether it is a
/// unit. The last value is the number of units of each wire so far.
type Arrivals = Vec<(u64, usize, bool, Vec<u64>)>;

/// A node that counts the units of all its wires at every event, and waits for the units of some wires.
struct Counter {
    sim: nicety_kernel::Sim,
    units: RefCell<Vec<Units<bool>>>,
    counts: RefCell<Vec<u64>>,
    seen: RefCell<Arrivals>,
}

impl Counter {
    fn look(&self, wire: usize, unit: bool, wait: bool) {
        let units = self.units.borrow();
        let mut counts = self.counts.borrow_mut();
        units.iter().zip(&mut *counts).for_each(|(units, count)| *count += units.take());
        self.seen.borrow_mut().push((self.sim.now().ps(), wire, unit, counts.clone()));
        if wait {
            // Waits for units of the message's wire and of the next wire. Sometimes such a wait has already begun.
            units[wire].wait();
            units[(wire + 1) % units.len()].wait();
        }
    }
}

impl Handler<bool> for Counter {
    fn message(&self, number: u32, wait: bool) {
        self.look(number as usize, false, wait);
    }

    fn units(&self, number: u32) {
        self.look(number as usize, true, false);
    }
}

/// Whether a message makes the node wait for units: a message that arrives at an even time.
fn waits(time: u64) -> bool {
    time.is_multiple_of(2)
}

fn run(wires: usize, sent: &[Sent], shards: usize) -> (Arrivals, u64, u64) {
    let mut world: World<bool> = World::new(Config { shards, ..Config::default() });
    let far = world.add_node();
    let counter = Rc::new(Counter {
        sim: world.sim(far),
        units: RefCell::default(),
        counts: RefCell::new(vec![0; wires]),
        seen: RefCell::default(),
    });
    for wire in 0..wires {
        let near = world.add_node();
        let (tx, rx) = world.wire(near, far, LATENCY);
        counter.units.borrow_mut().push(rx.handle(counter.clone(), wire as u32));
        let mine: Vec<Sent> = sent.iter().copied().filter(|s| s.wire == wire).collect();
        let sim = world.sim(near);
        sim.clone().spawn_program("sender", async move {
            for Sent { at, after, unit, .. } in mine {
                sim.until(ps(at)).await;
                send(&tx, sim.now() + LATENCY + Duration::from_ps(after), unit);
            }
        });
    }
    let summary = world.run().unwrap();
    let seen = counter.seen.borrow().clone();
    (seen, summary.events, summary.end.ps())
}

fn send(tx: &WireTx<bool>, arrival: Time, unit: bool) {
    if unit { tx.send_unit(arrival) } else { tx.send(arrival, waits(arrival.ps())) }
}

/// Computes the expected arrivals at the node from the list of all sent messages and units.
fn expected(wires: usize, sent: &[Sent]) -> Arrivals {
    let mut arrivals: Vec<(u64, usize, usize, bool)> = sent
        .iter()
        .enumerate()
        .map(|(count, s)| (s.at + LATENCY.ps() + s.after, s.wire, count, s.unit))
        .collect();
    arrivals.sort_unstable();
    let (mut counts, mut waited, mut seen) = (vec![0; wires], vec![false; wires], Vec::new());
    for (time, wire, _, unit) in arrivals {
        if unit {
            counts[wire] += 1;
        }
        if !unit || std::mem::take(&mut waited[wire]) {
            seen.push((time, wire, unit, counts.clone()));
        }
        if !unit && waits(time) {
            waited[wire] = true;
            waited[(wire + 1) % wires] = true;
        }
    }
    seen
}

fn traffic() -> impl Strategy<Value = (usize, Vec<Sent>)> {
    (1..4usize).prop_flat_map(|wires| {
        let one = (0..6u64, 0..wires, 0..40u64, prop::bool::weighted(0.7));
        let all = prop::collection::vec(one, 1..120);
        all.prop_map(move |all| {
            let mut at = 0;
            let timed = all.into_iter().map(|(gap, wire, after, unit)| {
                at += gap;
                Sent { at, wire, after, unit }
            });
            (wires, timed.collect())
        })
    })
}

proptest! {
    #[test]
    fn units_have_their_place_among_arrivals((wires, sent) in traffic()) {
        let expected = expected(wires, &sent);
        let last = sent.iter().map(|s| s.at + LATENCY.ps() + s.after).max().unwrap_or(0);
        let one = run(wires, &sent, 1);
        prop_assert_eq!(&one.0, &expected);
        prop_assert_eq!(one.2, last, "the run ends with the last unit");
        for shards in [2, 4] {
            prop_assert_eq!(&run(wires, &sent, shards), &one);
        }
    }
}

#[test]
fn a_unit_is_an_event_where_it_is_waited_for() {
    let unit = |at| Sent { at, wire: 0, after: 0, unit: true };
    let message = |at| Sent { at, wire: 0, after: 0, unit: false };
    let (_, events, end) = run(1, &[unit(1), unit(2), message(3), unit(5)], 1);
    // One event starts the sender, four events end its delays, and one event is the message's arrival.
    assert_eq!((events, end), (6, 15));
    let (seen, events, _) = run(1, &[unit(1), unit(2), message(4), unit(5), unit(6)], 1);
    assert_eq!(seen, [(14, 0, false, vec![2]), (15, 0, true, vec![3])]);
    assert_eq!(events, 1 + 5 + 2);
}

#[test]
fn a_task_gets_units_and_messages_in_their_order_and_is_woken_once_where_it_waits() {
    for shards in [1, 2] {
        let mut world: World<u32> = World::new(Config { shards, ..Config::default() });
        let (a, b) = (world.add_node(), world.add_node());
        let (tx, rx) = world.wire(a, b, LATENCY);
        for (time, message) in [(20, None), (30, None), (40, Some(1)), (40, None), (50, None), (60, Some(2))]
        {
            match message {
                Some(message) => tx.send(ps(time), message),
                None => tx.send_unit(ps(time)),
            }
        }
        let got = Rc::new(RefCell::new(Vec::new()));
        let (log, sim) = (got.clone(), world.sim(b));
        sim.clone().spawn(async move {
            loop {
                let arrived = rx.next().await;
                log.borrow_mut().push((sim.now().ps(), arrived));
                if arrived == Arrived::Message(1) {
                    rx.wait_for_units();
                }
            }
        });
        world.run().unwrap();
        let (message, units) = (Arrived::Message, Arrived::Units);
        // A unit has arrived at the same time as the message, but after it. So the task does not wait for another unit.
        let expected = [(40, units(2)), (40, message(1)), (40, units(1)), (60, units(1)), (60, message(2))];
        assert_eq!(*got.borrow(), expected);
    }
}

#[test]
fn a_later_unit_that_arrives_sooner_wakes_the_waiter() {
    let mut world: World<u32> = World::new(Config::default());
    let (a, b) = (world.add_node(), world.add_node());
    let (tx, rx) = world.wire(a, b, LATENCY);
    tx.send_unit(ps(100));
    rx.wait_for_units();
    let sender = world.sim(a);
    sender.clone().spawn(async move {
        sender.until(ps(20)).await;
        tx.send_unit(ps(50));
    });
    let when = Rc::new(RefCell::new(Vec::new()));
    let (log, sim) = (when.clone(), world.sim(b));
    sim.clone().spawn_program("waits", async move {
        for _ in 0..2 {
            let arrived = rx.next().await;
            log.borrow_mut().push((sim.now().ps(), arrived));
            rx.wait_for_units();
        }
    });
    assert_eq!(world.run().unwrap().end, ps(100));
    assert_eq!(*when.borrow(), [(50, Arrived::Units(1)), (100, Arrived::Units(1))]);
}

#[test]
fn units_without_a_receiver_are_discarded() {
    let mut world: World<u32> = World::new(Config::default());
    let (a, b) = (world.add_node(), world.add_node());
    let (tx, rx) = world.wire(a, b, LATENCY);
    tx.send_unit(ps(30));
    drop(rx);
    tx.send_unit(ps(40));
    assert_eq!(world.run().unwrap().end, ps(40));

    let (tx, rx) = world.wire(a, b, LATENCY);
    tx.send_unit(ps(70));
    let waited = Rc::new(Cell::new(false));
    let (done, sim) = (waited.clone(), world.sim(b));
    sim.clone().spawn_program("does not ask for units", async move {
        let _ = rx.next().await;
        done.set(true);
    });
    let error = world.run().unwrap_err();
    let RunError::Deadlock { at, waiting } = error else { panic!("{error}") };
    assert_eq!((at, waited.get()), (ps(70), false));
    assert_eq!(waiting[0].why, "a message on link 1 from node 0");
}

#[test]
fn a_unit_after_the_limit_of_time_is_too_late() {
    let limit = |ps| Config { max_time: Some(Time::from_ps(ps)), ..Config::default() };
    for (at, fits) in [(40, true), (39, false)] {
        let mut world: World<u32> = World::new(limit(at));
        let (a, b) = (world.add_node(), world.add_node());
        let (tx, _rx) = world.wire(a, b, LATENCY);
        tx.send_unit(ps(40));
        assert_eq!(world.run().is_ok(), fits);
    }
}

#[test]
#[should_panic(expected = "arrives at 10 ps or later")]
fn units_take_the_wire_s_latency() {
    let mut world: World<u32> = World::new(Config::default());
    let (a, b) = (NodeId(0), NodeId(1));
    assert_eq!((world.add_node(), world.add_node()), (a, b));
    let (tx, _rx) = world.wire(a, b, LATENCY);
    tx.send_unit(ps(9));
}
