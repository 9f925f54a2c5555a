//! The order of events at one instant: node, class (arrivals first), source, sequence number at the source.

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
        // The node's own event is queued long before any message is sent.
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
        // The message arrives first and wakes its receiver. But the events of the delays were queued before this wake.
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
        // The middle link wakes a task. Handlers get the messages of the other two links, and one handler sends an
        // answer.
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

/// The steps of a node's tasks, with their times.
type Steps = Vec<(Time, u32)>;

/// Returns the steps of tasks of three nodes, by node, with their times. Each task waits, sends to the next node,
/// yields and starts tasks, according to random numbers.
fn steps(passes: bool, mut world: World<u32>, seed: u64) -> (Vec<Steps>, u64, Time) {
    let nodes: Vec<NodeId> = (0..3).map(|_| world.add_node()).collect();
    let logs: Vec<Rc<RefCell<Steps>>> = nodes.iter().map(|_| Rc::default()).collect();
    let wires: Vec<_> =
        (0..3).map(|n| world.wire(nodes[n], nodes[(n + 1) % 3], Duration::from_ps(700))).collect();
    for (n, (tx, rx)) in wires.into_iter().enumerate() {
        let (log, sim) = (logs[(n + 1) % 3].clone(), world.sim(nodes[(n + 1) % 3]));
        sim.clone().spawn(async move {
            loop {
                let message = rx.recv().await;
                log.borrow_mut().push((sim.now(), 1000 + message));
            }
        });
        let tx = Rc::new(tx);
        for task in 0..4 {
            let (sim, log, tx) = (world.sim(nodes[n]), logs[n].clone(), tx.clone());
            let mut state = seed ^ (n as u64) << 8 ^ u64::from(task) << 16;
            let mut number = move |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            sim.clone().spawn_program(format!("task {task}"), async move {
                for step in 0..60 {
                    // Most waits end at the same instants as other waits, and few waits are long.
                    let short = 50 * number(8);
                    let wait = [50, 700, short, 1_000_000, 9_000_000_000][number(37) as usize / 9];
                    let until = sim.now() + Duration::from_ps(wait);
                    match passes {
                        true => sim.pass_until(until).await,
                        false => sim.until(until).await,
                    }
                    log.borrow_mut().push((sim.now(), 100 * task + step));
                    match number(5) {
                        0 => tx.send(sim.now() + Duration::from_ps(700 + number(3)), 100 * task + step),
                        1 => sim.yield_now().await,
                        2 => {
                            let (log, now) = (log.clone(), sim.now());
                            sim.spawn(async move { log.borrow_mut().push((now, 500 + 100 * task + step)) });
                        }
                        _ => (),
                    }
                }
            });
        }
    }
    let summary = world.run().unwrap();
    let logs = logs.iter().map(|log| log.borrow().clone()).collect();
    (logs, summary.events, summary.end)
}

#[test]
fn time_that_passes_at_once_changes_nothing() {
    for seed in 0..40 {
        let plain = steps(false, World::new(Config::default()), seed);
        for shards in 1..=3 {
            for kind in [QueueKind::Wheel, QueueKind::BinaryHeap] {
                let world = World::with_queue(Config { shards, ..Config::default() }, kind);
                assert_eq!(steps(true, world, seed), plain, "seed {seed}, {shards} shards");
            }
        }
    }
}

#[test]
fn time_passes_at_once_where_nothing_comes_before() {
    for mut world in worlds() {
        let (a, b) = (world.add_node(), world.add_node());
        let (sim, other) = (world.sim(a), world.sim(b));
        other.clone().spawn_program("other", async move { other.until(AT).await });
        sim.clone().spawn_program("one", async move {
            let ps = Time::from_ps;
            sim.until(ps(1)).await;
            assert!(sim.try_pass_until(ps(9_999)) && sim.now() == ps(9_999));
            // Node 1 has an event at `AT`. It comes after an event of node 0 at `AT`, and before a later event of node
            // 0.
            assert!(sim.try_pass_until(AT) && sim.now() == AT);
            assert!(!sim.try_pass_until(ps(10_001)) && sim.now() == AT);
            sim.until(ps(10_001)).await;
            assert!(sim.try_pass_until(ps(2_000_000)) && sim.try_pass_until(ps(7)));
            assert_eq!(sim.now(), ps(2_000_000));
            // Woken tasks run before the clock advances.
            let (s, woken) = (sim.clone(), Signal::new(&sim));
            let w = woken.clone();
            sim.spawn(async move {
                w.wait().await;
                assert_eq!(s.now(), ps(2_000_000));
            });
            sim.yield_now().await;
            woken.notify_one();
            assert!(!sim.try_pass_until(ps(2_000_001)));
            sim.pass_until(ps(2_000_001)).await;
            assert_eq!(sim.now(), ps(2_000_001));
        });
        world.run().unwrap();
    }
}

#[test]
fn a_task_that_goes_first_goes_before_what_was_woken_and_then_whoever_let_it_go() {
    for mut world in worlds() {
        let log = Log::default();
        let node = world.add_node();
        let sim = world.sim(node);
        let signal = Signal::new(&sim);
        for name in ["first", "second"] {
            let (signal, log) = (signal.clone(), log.clone());
            sim.spawn(async move {
                signal.wait().await;
                log.borrow_mut().push(name.to_owned());
            });
        }
        let (s, l) = (sim.clone(), log.clone());
        sim.spawn_program("that lets go", async move {
            let other = l.clone();
            s.spawn(async move { other.borrow_mut().push("woken before".to_owned()) });
            for _ in 0..3 {
                signal.go_first().await;
                l.borrow_mut().push("behind it".to_owned());
            }
        });
        world.run().unwrap();
        assert_eq!(*log.borrow(), ["first", "behind it", "second", "behind it", "behind it", "woken before"]);
    }
}
