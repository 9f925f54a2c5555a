//! The order of what happens at one instant: node, class (arrivals first), source, the source's own count.

use nicety_kernel::{Config, QueueKind, Signal, Sim, WireRx, World};
use nicety_types::{Duration, NodeId, Time};
use std::cell::RefCell;
use std::rc::Rc;

type Log = Rc<RefCell<Vec<String>>>;

const AT: Time = Time::from_ps(10_000);

fn worlds() -> impl Iterator<Item = World<u32>> {
    [QueueKind::Wheel, QueueKind::BinaryHeap].into_iter().map(|q| World::with_queue(Config::default(), q))
}

fn log_arrivals(sim: &Sim, rx: WireRx<u32>, log: &Log) {
    let log = log.clone();
    sim.spawn(async move {
        loop {
            let message = rx.recv().await;
            log.borrow_mut().push(format!("{} message {message}", rx.link()));
        }
    });
}

fn log_at(sim: &Sim, what: &str, log: &Log) {
    let (sim, what, log) = (sim.clone(), what.to_owned(), log.clone());
    sim.clone().spawn(async move {
        sim.until(AT).await;
        log.borrow_mut().push(what);
    });
}

#[test]
fn nodes_come_in_their_order_each_with_all_it_does_at_the_instant() {
    for mut world in worlds() {
        let log = Log::default();
        let nodes: Vec<NodeId> = (0..3).map(|_| world.add_node()).collect();
        for &node in nodes.iter().rev() {
            let sim = world.sim(node);
            let (l, name) = (log.clone(), node.to_string());
            sim.clone().spawn(async move {
                sim.until(AT).await;
                l.borrow_mut().push(name.clone());
                sim.yield_now().await;
                l.borrow_mut().push(format!("{name} again"));
            });
        }
        world.run().unwrap();
        let expected = ["node 0", "node 0 again", "node 1", "node 1 again", "node 2", "node 2 again"];
        assert_eq!(*log.borrow(), expected);
    }
}

#[test]
fn arrivals_come_before_own_events_and_by_link_and_count() {
    for mut world in worlds() {
        let log = Log::default();
        let (a, b) = (world.add_node(), world.add_node());
        let wires: Vec<_> = (0..3).map(|_| world.wire(a, b, Duration::from_ns(1))).collect();
        let sim = world.sim(b);
        // The first own event is there long before anything is sent.
        let (s, l) = (sim.clone(), log.clone());
        let (txs, rxs): (Vec<_>, Vec<_>) = wires.into_iter().unzip();
        let rxs = Rc::new(rxs);
        let all = rxs.clone();
        sim.spawn(async move {
            s.until(AT).await;
            let waiting: Vec<usize> = all.iter().map(WireRx::len).collect();
            l.borrow_mut().push(format!("{waiting:?} have arrived"));
            for rx in all.iter() {
                while let Some(message) = rx.try_recv() {
                    l.borrow_mut().push(format!("{} message {message}", rx.link()));
                }
            }
        });
        let sender = world.sim(a);
        let s = sender.clone();
        sender.spawn(async move {
            s.until(Time::from_ps(9_000)).await;
            for (tx, message) in [(2, 20), (0, 1), (1, 10), (0, 2)] {
                txs[tx].send(AT, message);
            }
        });
        world.run().unwrap();
        let expected = [
            "[2, 1, 1] have arrived",
            "link 0 message 1",
            "link 0 message 2",
            "link 1 message 10",
            "link 2 message 20",
        ];
        assert_eq!(*log.borrow(), expected);
    }
}

#[test]
fn receivers_are_woken_by_link_not_by_when_was_sent() {
    for mut world in worlds() {
        let log = Log::default();
        let (a, b, c) = (world.add_node(), world.add_node(), world.add_node());
        let (early, rx_early) = world.wire(c, b, Duration::from_ns(1));
        let (late, rx_late) = world.wire(a, b, Duration::from_ns(1));
        let sim = world.sim(b);
        log_arrivals(&sim, rx_late, &log);
        log_arrivals(&sim, rx_early, &log);
        late.send(AT, 1);
        early.send(AT, 2);
        world.run().unwrap();
        assert_eq!(*log.borrow(), ["link 0 message 2", "link 1 message 1"]);
    }
}

#[test]
fn a_wake_comes_after_everything_of_its_node_that_is_due_already() {
    for mut world in worlds() {
        let log = Log::default();
        let (a, b) = (world.add_node(), world.add_node());
        let (tx, rx) = world.wire(a, b, Duration::from_ns(1));
        let sim = world.sim(b);
        log_arrivals(&sim, rx, &log);
        tx.send(AT, 1);
        let signal = Signal::new(&sim);
        let (s, l) = (signal.clone(), log.clone());
        sim.spawn(async move {
            s.wait().await;
            l.borrow_mut().push("signal".into());
        });
        let (s, l) = (sim.clone(), log.clone());
        sim.spawn(async move {
            s.until(AT).await;
            l.borrow_mut().push("first delay".into());
            signal.notify_one();
            let (t, l2) = (s.clone(), l.clone());
            s.spawn(async move {
                l2.borrow_mut().push("child".into());
                t.delay(Duration::from_ps(1)).await;
                l2.borrow_mut().push("child, later".into());
            });
        });
        log_at(&sim, "second delay", &log);
        world.run().unwrap();
        // The message arrives first of all and wakes its receiver, but the delays are older than that wake.
        let expected = ["first delay", "second delay", "link 0 message 1", "signal", "child", "child, later"];
        assert_eq!(*log.borrow(), expected);
    }
}

#[test]
fn handlers_get_messages_on_arrival_before_the_tasks_they_wake() {
    for shards in [1, 2] {
        let mut world: World<u32> = World::new(Config { shards, ..Config::default() });
        let log = Log::default();
        let (a, b) = (world.add_node(), world.add_node());
        let sim = world.sim(b);
        let wires: Vec<_> = (0..3).map(|_| world.wire(a, b, Duration::from_ps(1))).collect();
        let (back, answers) = world.wire(b, a, Duration::from_ps(5));
        let back = Rc::new(back);
        let (senders, mut receivers): (Vec<_>, Vec<_>) = wires.into_iter().unzip();
        log_at(&sim, "own", &log);
        // The link in the middle wakes a task; the others are handled, and one of them answers.
        log_arrivals(&sim, receivers.remove(1), &log);
        for (number, rx) in receivers.into_iter().enumerate() {
            let (log, sim, back) = (log.clone(), sim.clone(), back.clone());
            let handler = move |message| {
                log.borrow_mut().push(format!("handler {number} gets {message} at {}", sim.now()));
                if number == 0 {
                    back.send(sim.now() + Duration::from_ps(5), message + 100);
                }
            };
            rx.handle(Rc::new(handler), 0);
        }
        log_arrivals(&world.sim(a), answers, &log);
        for (number, tx) in [0, 1, 2].into_iter().zip(senders).rev() {
            tx.send(AT, number);
            tx.send(AT, number + 10);
        }
        let summary = world.run().unwrap();
        assert_eq!(
            *log.borrow(),
            [
                "handler 0 gets 0 at 10 ns",
                "handler 0 gets 10 at 10 ns",
                "handler 1 gets 2 at 10 ns",
                "handler 1 gets 12 at 10 ns",
                "own",
                "link 1 message 1",
                "link 1 message 11",
                "link 3 message 100",
                "link 3 message 110",
            ]
        );
        assert_eq!(summary.end, Time::from_ps(10_005));
    }
}

#[test]
fn a_world_drops_its_handlers() {
    let held = Rc::new(());
    let mut world: World<u32> = World::new(Config::default());
    let (a, b) = (world.add_node(), world.add_node());
    let (to_b, at_b) = world.wire(a, b, Duration::from_ps(1));
    let (to_a, at_a) = world.wire(b, a, Duration::from_ps(1));
    for (rx, tx) in [(at_b, to_a), (at_a, to_b)] {
        let held = held.clone();
        rx.handle(Rc::new(move |_| drop((held.clone(), tx.link()))), 0);
    }
    assert_eq!(Rc::strong_count(&held), 3);
    drop(world);
    assert_eq!(Rc::strong_count(&held), 1);
}
