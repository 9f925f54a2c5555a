//! The ways in which a run ends: deadlocks with the wait of each program, interrupts, limits, panics, misuse.

use nicety_kernel::{
    Channel, Config, Credits, Interrupt, Pool, RunError, SendError, Server, Signal, Sim, TrySendError,
    Waiting, World, describe, join, race, timeout,
};
use nicety_types::{Duration, NodeId, Time};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

fn ns(n: u64) -> Duration {
    Duration::from_ns(n)
}

fn world() -> (World<u32>, Sim) {
    let mut world = World::new(Config::default());
    let node = world.add_node();
    let sim = world.sim(node);
    (world, sim)
}

/// Returns the description of a program that awaits `future`.
fn why<F: Future<Output = ()> + 'static>(future: impl FnOnce(&mut World<u32>, Sim) -> F) -> String {
    let (mut world, sim) = world();
    let future = future(&mut world, sim.clone());
    sim.spawn_program("p", future);
    match world.run() {
        Err(RunError::Deadlock { waiting, .. }) if waiting.len() == 1 => waiting[0].why.clone(),
        other => panic!("not the expected deadlock: {other:?}"),
    }
}

#[test]
fn a_deadlock_names_programs_and_what_they_wait_for() {
    for shards in [1, 2] {
        let mut world: World<u32> = World::new(Config { shards, ..Config::default() });
        let (a, b) = (world.add_node(), world.add_node());
        let (tx, rx) = world.wire(a, b, ns(10));
        let (sa, sb) = (world.sim(a), world.sim(b));
        let s = sb.clone();
        sb.spawn_program("pong", async move {
            assert_eq!(rx.recv().await, 1);
            let text = || format!("a second message from {}", rx.from());
            describe(text, rx.recv()).await;
            s.delay(ns(1)).await;
        });
        let (s, signal) = (sa.clone(), Signal::new(&sa));
        sa.spawn_program("ping", async move {
            tx.send(s.now() + ns(12), 1);
            s.delay(ns(3)).await;
            describe(|| "the answer".to_owned(), describe(|| "an event".to_owned(), signal.wait())).await;
        });
        sa.spawn_program("fine", async {});
        let never = Signal::new(&sa);
        sa.spawn(async move { never.wait().await }); // a service may wait for ever
        let error = world.run().unwrap_err();
        let expected = "deadlock at 12 ns: nothing can happen any more, and 2 programs wait\n  \
                        node 0, program 'ping', waits since 3 ns for the answer -> an event\n  \
                        node 1, program 'pong', waits since 12 ns for a second message from node 0";
        assert_eq!(error.to_string(), expected);
        // A second run gives the same descriptions.
        assert_eq!(world.run().unwrap_err(), error);
    }
}

#[test]
fn primitives_say_what_they_are() {
    assert_eq!(why(|_, sim| async move { Signal::new(&sim).wait().await }), "a signal");
    assert_eq!(why(|_, sim| async move { Signal::new(&sim).wait_until(|| false).await }), "a signal");
    let credits = why(|_, sim| async move { drop(Credits::new(&sim, 2).acquire(3).await) });
    assert_eq!(credits, "3 units of a resource with 2 free and 1 in line");
    let server = why(|_, sim| async move {
        let server = Server::new(&sim);
        let _guard = server.acquire().await;
        server.serve(ns(1)).await;
    });
    assert_eq!(server, "a unit of a resource with 0 free and 1 in line");
    let channel = why(|_, sim| async move { assert!(Channel::<u32>::new(&sim, 1).recv().await.is_none()) });
    assert_eq!(channel, "a unit of a resource with 0 free and 1 in line");
    let wire = why(|world, sim| {
        let (_, rx) = world.wire(sim.node(), sim.node(), ns(1));
        async move { assert_eq!(rx.recv().await, 0) }
    });
    assert_eq!(wire, "a message on link 0 from node 0");
    assert_eq!(why(|_, _| std::future::pending()), "something outside virtual time");
}

#[test]
fn an_event_at_the_end_of_time_ends_the_run() {
    let long = Duration::from_ps(u64::MAX / 2);
    let limit = RunError::TimeLimit { at: Time::MAX };
    for shards in [1, 2] {
        // A delay beyond the end of time: one delay, or the last of several, in a program or in a service.
        for (program, times) in [(true, 1), (true, 3), (false, 3)] {
            let mut world: World<u32> = World::new(Config { shards, ..Config::default() });
            let (sim, _) = (world.add_node(), world.add_node());
            let sim = world.sim(sim);
            let s = sim.clone();
            let sleep = async move {
                for _ in 0..times {
                    s.delay(if times == 1 { Duration::MAX } else { long }).await;
                }
            };
            if program {
                sim.spawn_program("p", sleep)
            } else {
                sim.spawn(sleep)
            }
            assert_eq!(world.run().unwrap_err(), limit);
        }
        // A message or a unit that would arrive after the end of time.
        for unit in [false, true] {
            let mut world: World<u32> = World::new(Config { shards, ..Config::default() });
            let (a, b) = (world.add_node(), world.add_node());
            let (tx, _rx) = world.wire(a, b, ns(10));
            let s = world.sim(a);
            world.sim(a).spawn_program("sends", async move {
                let arrival = s.now() + Duration::MAX + ns(10);
                if unit { tx.send_unit(arrival) } else { tx.send(arrival, 1) }
            });
            assert_eq!(world.run().unwrap_err(), limit);
        }
    }
    let text = "virtual time came to its end, 2^64 ps (213 days), and there was more to happen";
    assert_eq!(limit.to_string(), text);
}

#[test]
fn a_cancelled_timer_at_the_end_of_time_ends_nothing() {
    let (mut world, sim) = world();
    let s = sim.clone();
    sim.spawn_program("p", async move {
        race(s.delay(ns(1)), s.until(Time::MAX)).await;
    });
    assert_eq!(world.run().unwrap().end, Time::from_ps(1_000));
}

#[test]
fn descriptions_side_by_side_are_joined() {
    let text = why(|_, sim| async move {
        let (a, b) = (Signal::new(&sim), Signal::new(&sim));
        let both = join(
            describe(|| "a".to_owned(), describe(|| "b".to_owned(), a.wait())),
            describe(|| "c".to_owned(), b.wait()),
        );
        describe(|| "both".to_owned(), both).await;
    });
    assert_eq!(text, "both -> a -> b and c");
    let text = why(|_, sim| async move {
        let (a, b) = (Signal::new(&sim), Signal::new(&sim));
        join(a.wait(), b.wait()).await;
    });
    assert_eq!(text, "a signal and a signal");
}

#[test]
fn a_condition_that_came_true_unnoticed_does_not_let_a_dead_program_run_on() {
    let (mut world, sim) = world();
    let (flag, ran) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
    let (signal, f, r) = (Signal::new(&sim), flag.clone(), ran.clone());
    sim.spawn_program("p", async move {
        signal.wait_until(|| f.get()).await;
        r.set(true);
    });
    let s = sim.clone();
    sim.spawn(async move {
        s.delay(ns(1)).await;
        flag.set(true); // without a notification of the signal
    });
    assert!(matches!(world.run(), Err(RunError::Deadlock { at, .. }) if at == Time::from_ps(1_000)));
    assert!(!ran.get());
}

#[test]
fn one_waiting_program_is_singular() {
    let waiting =
        vec![Waiting { node: NodeId(3), program: "p".into(), why: "rain".into(), since: Time::ZERO }];
    let error = RunError::Deadlock { at: Time::from_ps(1), waiting };
    let expected = "deadlock at 1 ps: nothing can happen any more, and a program waits\n  \
                    node 3, program 'p', waits since 0 ns for rain";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_deadlock_of_many_programs_lists_the_first_ones() {
    let text = |programs: u32| {
        let waits =
            |node| Waiting { node: NodeId(node), program: "p".into(), why: "rain".into(), since: Time::ZERO };
        RunError::Deadlock { at: Time::ZERO, waiting: (0..programs).map(waits).collect() }.to_string()
    };
    let (eight, many) = (text(8), text(1024));
    assert_eq!(eight.lines().count(), 9);
    assert!(eight.ends_with("node 7, program 'p', waits since 0 ns for rain"), "{eight}");
    assert!(
        many.starts_with("deadlock at 0 ns: nothing can happen any more, and 1024 programs wait\n"),
        "{many}"
    );
    assert_eq!(many.lines().nth(8), eight.lines().nth(8));
    assert_eq!(many.lines().skip(9).collect::<Vec<_>>(), ["  and 1016 more"]);
}

#[test]
fn an_interrupt_ends_a_run_and_it_may_go_on() {
    let flag = Arc::new(AtomicBool::new(false));
    let config = Config { interrupt: Some(flag.clone().into()), ..Config::default() };
    let mut world: World<()> = World::new(config);
    let node = world.add_node();
    let sim = world.sim(node);
    let (s, f) = (sim.clone(), flag.clone());
    sim.spawn_program("p", async move {
        for i in 0..20_000 {
            if i == 5_000 {
                f.store(true, Ordering::Relaxed);
            }
            s.delay(ns(1)).await;
        }
    });
    let Err(RunError::Interrupted { at }) = world.run() else { panic!("not interrupted") };
    assert!(at >= Time::from_ps(5_000_000) && at < Time::from_ps(7_000_000), "{at}");
    assert_eq!(world.run().unwrap_err().to_string(), format!("interrupted at {at} of virtual time"));
    flag.store(false, Ordering::Relaxed);
    assert_eq!(world.run().unwrap().end, Time::from_ps(20_000_000));
}

#[test]
fn an_interrupt_reaches_a_run_that_stands_still() {
    let flag = Arc::new(AtomicBool::new(false));
    let mut world: World<()> =
        World::new(Config { interrupt: Some(flag.clone().into()), ..Config::default() });
    let node = world.add_node();
    let sim = world.sim(node);
    let s = sim.clone();
    sim.spawn(async move {
        s.delay(ns(7)).await;
        flag.store(true, Ordering::Relaxed);
        loop {
            s.yield_now().await;
        }
    });
    assert_eq!(world.run(), Err(RunError::Interrupted { at: Time::from_ps(7_000) }));
}

#[test]
fn a_task_may_have_the_interrupt_checked_after_its_event() {
    let looks = Arc::new(AtomicU32::new(0));
    let counted = looks.clone();
    let interrupt = Interrupt::new(move || counted.fetch_add(1, Ordering::Relaxed) == 3);
    let mut world: World<()> = World::new(Config { interrupt: Some(interrupt), ..Config::default() });
    let node = world.add_node();
    let sim = world.sim(node);
    let s = sim.clone();
    sim.spawn(async move {
        loop {
            s.delay(ns(1)).await;
            s.check_interrupt();
        }
    });
    // The interrupt is checked once before the run, and then after each event that requested a check.
    assert_eq!(world.run(), Err(RunError::Interrupted { at: Time::from_ps(3_000) }));
    assert_eq!(looks.load(Ordering::Relaxed), 4);
}

#[test]
fn a_run_stops_at_its_limit() {
    let run = |max_ns: u64, shards| {
        let max_time = Some(Time::from_ps(max_ns * 1_000));
        let mut world: World<()> = World::new(Config { max_time, shards, ..Config::default() });
        for _ in 0..2 {
            let node = world.add_node();
            let sim = world.sim(node);
            sim.clone().spawn_program("p", async move {
                sim.delay(ns(5)).await;
                sim.delay(ns(5)).await;
            });
        }
        world.run()
    };
    for shards in [1, 2] {
        assert_eq!(run(10, shards).unwrap().end, Time::from_ps(10_000), "the limit itself is allowed");
        let error = run(9, shards).unwrap_err();
        assert_eq!(error, RunError::TimeLimit { at: Time::from_ps(9_000) });
        let expected = "the run came to its limit of 9 ns of virtual time, and there was more to happen";
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_world_may_be_run_again_with_more_to_do() {
    for shards in [1, 3] {
        let mut world: World<u32> = World::new(Config { shards, ..Config::default() });
        let nodes: Vec<_> = (0..3).map(|_| world.add_node()).collect();
        let (tx, rx) = world.wire(nodes[0], nodes[1], ns(1));
        let sim = world.sim(nodes[0]);
        let s = sim.clone();
        sim.spawn_program("first", async move { s.delay(ns(20)).await });
        assert_eq!(world.run().unwrap().end, Time::from_ps(20_000));
        let sim = world.sim(nodes[1]);
        assert_eq!(sim.now(), Time::from_ps(20_000), "all clocks stand at the end");
        tx.send(Time::from_ps(21_000), 5);
        let s = sim.clone();
        sim.spawn_program("second", async move {
            assert_eq!(rx.recv().await, 5);
            s.delay(ns(1)).await;
        });
        assert_eq!(world.run().unwrap().end, Time::from_ps(22_000));
    }
}

#[test]
fn cancelled_events_neither_keep_a_run_alive_nor_move_its_end() {
    for far in [10, 5_000, 50_000, 100_000_000, 1_000_000_000_000] {
        let (mut world, sim) = world();
        let s = sim.clone();
        sim.spawn_program("p", async move {
            timeout(&s, ns(far), s.delay(ns(1))).await.unwrap();
            race(s.delay(ns(1)), s.delay(ns(far))).await;
        });
        assert_eq!(world.run().unwrap().end, Time::from_ps(2_000), "{far} ns");
    }
}

#[test]
#[should_panic(expected = "the model is wrong")]
fn a_panic_in_a_task_comes_out_of_the_run() {
    let (mut world, sim) = world();
    let s = sim.clone();
    sim.spawn(async move {
        s.delay(ns(1)).await;
        panic!("the model is wrong");
    });
    let _ = world.run();
}

#[test]
fn after_a_panic_everything_else_is_dropped_in_order() {
    let (mut world, sim) = world();
    let credits = Credits::new(&sim, 1);
    let c = credits.clone();
    let s = sim.clone();
    sim.spawn(async move {
        let _permit = c.acquire(1).await;
        s.delay(ns(2)).await;
    });
    let (s, c) = (sim.clone(), credits.clone());
    sim.spawn(async move {
        let _waiting = c.clone();
        let (a, b) = (c.acquire(1), s.delay(ns(1)));
        race(a, b).await;
        panic!("now");
    });
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
    assert!(result.is_err());
    assert_eq!(sim.now(), Time::from_ps(1_000));
    drop(world);
    assert_eq!(credits.available(), 1, "the world's end drops the task that held it");
    sim.spawn(async { unreachable!("there is no world any more") });
}

#[test]
#[should_panic(expected = "cannot arrive at 9 ns: sent at 0 ns with a latency of at least 10 ns")]
fn a_message_cannot_be_faster_than_its_wire() {
    let (mut world, sim) = world();
    let (tx, _rx) = world.wire(sim.node(), sim.node(), ns(10));
    tx.send(Time::from_ps(9_000), 1);
}

#[test]
#[should_panic(expected = "without latency")]
fn a_wire_has_a_latency() {
    let (mut world, sim) = world();
    let _ = world.wire(sim.node(), sim.node(), Duration::ZERO);
}

#[test]
#[should_panic(expected = "node 7 does not exist: there are 1 nodes")]
fn a_wire_connects_nodes_that_exist() {
    let (mut world, sim) = world();
    let _ = world.wire(sim.node(), NodeId(7), ns(1));
}

#[test]
fn nodes_share_nothing() {
    for shards in [1, 2] {
        let mut world: World<()> = World::new(Config { shards, ..Config::default() });
        let (a, b) = (world.add_node(), world.add_node());
        let (sa, sb) = (world.sim(a), world.sim(b));
        sa.spawn(async move { sb.delay(ns(1)).await });
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run())).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains("something of node 1 was used outside a task of node 1"), "{text}");
    }
}

#[test]
#[should_panic(expected = "of node 1 was used outside a task of node 1")]
fn a_task_of_another_node_cannot_be_woken() {
    let mut world: World<()> = World::new(Config::default());
    let (a, b) = (world.add_node(), world.add_node());
    let (sa, sb) = (world.sim(a), world.sim(b));
    let signal = Signal::new(&sb);
    let s = signal.clone();
    sb.spawn(async move { s.wait().await });
    sa.clone().spawn(async move {
        sa.delay(ns(1)).await;
        signal.notify_one();
    });
    let _ = world.run();
}

#[test]
#[should_panic(expected = "two tasks receive from link 0 at once")]
fn a_wire_has_one_consumer() {
    let (mut world, sim) = world();
    let (_tx, rx) = world.wire(sim.node(), sim.node(), ns(1));
    let rx = Rc::new(rx);
    for _ in 0..2 {
        let rx = rx.clone();
        sim.spawn(async move { assert_eq!(rx.recv().await, 0) });
    }
    let _ = world.run();
}

#[test]
fn arrivals_without_a_receiver_are_discarded() {
    let token = Arc::new(());
    for shards in [1, 2] {
        let mut world: World<Arc<()>> = World::new(Config { shards, ..Config::default() });
        let (a, b) = (world.add_node(), world.add_node());
        let (tx, rx) = world.wire(a, b, ns(1));
        for at in [1_000, 2_000, 3_000] {
            tx.send(Time::from_ps(at), token.clone());
        }
        let sim = world.sim(b);
        let s = sim.clone();
        sim.spawn(async move {
            s.until(Time::from_ps(2_500)).await;
            assert_eq!(rx.len(), 2);
        });
        assert_eq!(world.run().unwrap().end, Time::from_ps(3_000));
        assert_eq!(Arc::strong_count(&token), 1);
    }
}

#[test]
fn everything_says_what_it_is() {
    let (mut world, sim) = world();
    let (tx, rx) = world.wire(sim.node(), sim.node(), ns(1));
    let (channel, credits) = (Channel::new(&sim, 2), Credits::new(&sim, 3));
    channel.try_send(1).unwrap();
    let (full, closed) = (TrySendError::Full(1), TrySendError::Closed(1));
    let texts = [
        (format!("{sim:?}"), "Sim(node 0 at 0 ns)"),
        (format!("{tx:?}"), "WireTx(link 0 from node 0 to node 0)"),
        (format!("{rx:?}"), "WireRx(link 0 from node 0 to node 0)"),
        (format!("{channel:?}"), "Channel(1 of 2)"),
        (format!("{credits:?}"), "Credits(3 available, 0 waiting)"),
        (format!("{:?}", credits.try_acquire(2)), "Some(Permit(2))"),
        (format!("{:?}", Pool::new(&sim, 4)), "Pool(4 available, 0 waiting of 4)"),
        (format!("{:?}", Signal::new(&sim)), "Signal(0 waiting)"),
        (format!("{:?}", join(async {}, async {})), "Join"),
        (format!("{full:?}, {full}"), "Full(..), the channel is full"),
        (format!("{closed:?}, {closed}"), "Closed(..), the channel is closed"),
        (format!("{:?}, {}", SendError(1), SendError(1)), "SendError(..), the channel is closed"),
    ];
    for (text, expected) in texts {
        assert_eq!(text, expected);
    }
}

#[test]
fn an_event_that_repeats_itself_can_know_that_it_is_alone() {
    for shards in [1, 2] {
        let mut world: World<u32> = World::new(Config { shards, ..Config::default() });
        let (a, b) = (world.add_node(), world.add_node());
        let _ = world.wire(a, b, ns(10));
        let (sim, other) = (world.sim(a), world.sim(b));
        let seen = Rc::new(Cell::new(0));
        for (sim, every) in [(sim.clone(), 3), (other.clone(), 5)] {
            let seen = seen.clone();
            sim.clone().spawn(async move {
                loop {
                    let repeat = sim.repeat();
                    sim.delay(ns(every)).await;
                    drop(repeat);
                    if !sim.has_other_events() || sim.now() > Time::ZERO + ns(100) {
                        break;
                    }
                    seen.set(sim.now().ps());
                }
            });
        }
        let never = Signal::new(&other);
        other.clone().spawn_program("p", async move {
            other.delay(ns(20)).await;
            never.wait().await;
        });
        let RunError::Deadlock { waiting, .. } = world.run().unwrap_err() else { panic!("no deadlock") };
        assert_eq!(waiting[0].since, Time::ZERO + ns(20));
        // A shard does not know the events of another one.
        assert_eq!(seen.get() / 1000, if shards == 1 { 18 } else { 100 });
    }
}
