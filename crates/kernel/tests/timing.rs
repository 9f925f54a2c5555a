//! The virtual time of each primitive, computed by hand.

use nicety_kernel::{
    Channel, Config, Credits, Either, Elapsed, Needed, Pool, Server, Signal, Sim, TrySendError, World, join,
    join_all, race, timeout,
};
use nicety_types::{Duration, NodeId, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Events and their times, in nanoseconds.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<(u64, String)>>>);

impl Log {
    fn add(&self, sim: &Sim, what: impl Into<String>) {
        self.0.borrow_mut().push((sim.now().ps() / 1000, what.into()));
    }

    fn is(&self, expected: &[(u64, &str)]) {
        let log = self.0.borrow();
        let log: Vec<(u64, &str)> = log.iter().map(|(at, what)| (*at, what.as_str())).collect();
        assert_eq!(log, expected);
    }
}

fn ns(n: u64) -> Duration {
    Duration::from_ns(n)
}

fn world() -> (World<()>, Sim) {
    let mut world = World::new(Config::default());
    let node = world.add_node();
    let sim = world.sim(node);
    (world, sim)
}

#[test]
fn a_task_may_begin_later_and_the_run_goes_on_to_what_is_expected() {
    let (mut world, sim) = world();
    let log = Log::default();
    for (at, what) in [(7, "later"), (0, "now"), (3, "before")] {
        let (s, l) = (sim.clone(), log.clone());
        sim.spawn_at(Time::from_ps(1000 * at), [Needed::NOTHING; 2], || async move { l.add(&s, what) });
    }
    let (s, l) = (sim.clone(), log.clone());
    sim.spawn(async move {
        s.delay(ns(2)).await;
        l.add(&s, "two");
        let (other, theirs) = (s.clone(), l.clone());
        // The start time has passed, so the task starts now like any other spawned task.
        s.spawn_at(Time::ZERO, [Needed::NOTHING; 2], || async move { theirs.add(&other, "at once") });
        s.expect(Time::from_ps(9_000));
        s.expect(Time::from_ps(8_000));
    });
    let summary = world.run().unwrap();
    log.is(&[(0, "now"), (2, "two"), (2, "at once"), (3, "before"), (7, "later")]);
    assert_eq!((summary.end, summary.events), (Time::from_ps(9_000), 6));
}

#[test]
fn a_delay_takes_its_time_and_none_at_all_takes_no_event() {
    let (mut world, sim) = world();
    let log = Log::default();
    let (s, l) = (sim.clone(), log.clone());
    sim.spawn_program("p", async move {
        s.delay(ns(5)).await;
        l.add(&s, "five");
        s.delay(Duration::ZERO).await;
        s.until(Time::ZERO).await;
        l.add(&s, "still five");
        let delay = s.until(Time::from_ps(9_000));
        assert_eq!(delay.deadline(), Time::from_ps(9_000));
        delay.await;
        l.add(&s, "nine");
    });
    let summary = world.run().unwrap();
    log.is(&[(5, "five"), (5, "still five"), (9, "nine")]);
    assert_eq!(summary.end, Time::from_ps(9_000));
    assert_eq!(summary.events, 3); // the start and two delays
}

#[test]
fn delays_to_the_same_instant_end_in_the_order_in_which_they_began() {
    let (mut world, sim) = world();
    let log = Log::default();
    for i in 0..3 {
        let (s, l) = (sim.clone(), log.clone());
        sim.spawn_program(format!("p{i}"), async move {
            s.delay(ns(3 - i)).await;
            s.until(Time::from_ps(10_000)).await;
            l.add(&s, format!("{i}"));
            s.yield_now().await;
            l.add(&s, format!("{i} again"));
        });
    }
    world.run().unwrap();
    log.is(&[(10, "2"), (10, "1"), (10, "0"), (10, "2 again"), (10, "1 again"), (10, "0 again")]);
}

#[test]
fn a_server_serves_one_after_the_other() {
    let (mut world, sim) = world();
    let (log, server) = (Log::default(), Server::new(&sim));
    for (i, arrival) in [0, 2, 3, 40].into_iter().enumerate() {
        let (s, l, server) = (sim.clone(), log.clone(), server.clone());
        sim.spawn_program(format!("p{i}"), async move {
            s.delay(ns(arrival)).await;
            let began = server.serve(ns(10)).await;
            l.add(&s, format!("{i} from {}", began.ps() / 1000));
        });
    }
    world.run().unwrap();
    log.is(&[(10, "0 from 0"), (20, "1 from 10"), (30, "2 from 20"), (50, "3 from 40")]);
    assert!(server.is_free());
}

#[test]
fn guards_and_services_stand_in_one_line() {
    let (mut world, sim) = world();
    let (log, server) = (Log::default(), Server::new(&sim));
    let (s, l, v) = (sim.clone(), log.clone(), server.clone());
    sim.spawn_program("guard", async move {
        let guard = v.acquire().await;
        assert!(v.try_acquire().is_none() && !v.is_free());
        s.delay(ns(7)).await;
        assert_eq!(v.waiting(), 2);
        drop(guard);
        assert!(v.try_acquire().is_none(), "it belongs to the next in line by now");
        l.add(&s, "guard dropped");
    });
    let (s, l, v) = (sim.clone(), log.clone(), server.clone());
    sim.spawn_program("no time", async move {
        let began = v.serve(Duration::ZERO).await;
        l.add(&s, format!("nothing from {}", began.ps() / 1000));
        assert_eq!(v.serve(Duration::ZERO).await, s.now());
    });
    let (s, l, v) = (sim.clone(), log.clone(), server.clone());
    sim.spawn_program("second", async move {
        s.delay(ns(1)).await;
        let _guard = v.acquire().await;
        l.add(&s, "second guard");
    });
    world.run().unwrap();
    log.is(&[(7, "guard dropped"), (7, "nothing from 7"), (7, "second guard")]);
    assert_eq!(server.try_acquire().unwrap().amount(), 1);
}

#[test]
fn a_pool_serves_as_many_as_it_has() {
    let (mut world, sim) = world();
    let (log, pool) = (Log::default(), Pool::new(&sim, 2));
    assert_eq!((pool.servers(), pool.available()), (2, 2));
    for i in 0..5 {
        let (s, l, pool) = (sim.clone(), log.clone(), pool.clone());
        sim.spawn_program(format!("p{i}"), async move {
            if i == 1 {
                let _permit = pool.acquire().await;
                assert!(pool.try_acquire().is_none());
                s.delay(ns(4)).await;
                assert_eq!(pool.waiting(), 3);
            } else {
                pool.serve(ns(10)).await;
            }
            l.add(&s, format!("{i}"));
        });
    }
    world.run().unwrap();
    log.is(&[(4, "1"), (10, "0"), (14, "2"), (20, "3"), (24, "4")]);
}

#[test]
fn credits_are_not_overtaken() {
    let (mut world, sim) = world();
    let (log, credits) = (Log::default(), Credits::new(&sim, 4));
    for (i, amount) in [3, 3, 1].into_iter().enumerate() {
        let (s, l, credits) = (sim.clone(), log.clone(), credits.clone());
        sim.spawn_program(format!("p{i}"), async move {
            let permit = credits.acquire(amount).await;
            l.add(&s, format!("{i} has {}", permit.amount()));
            s.delay(ns(10)).await;
            if i == 1 {
                permit.forget();
                s.delay(ns(5)).await;
                credits.release(3);
            }
        });
    }
    let credit = credits.clone();
    sim.spawn(async move {
        assert!(credit.try_acquire(1).is_none(), "one is left, but others wait");
        assert_eq!((credit.available(), credit.waiting()), (1, 2));
    });
    world.run().unwrap();
    log.is(&[(0, "0 has 3"), (10, "1 has 3"), (10, "2 has 1")]);
    assert_eq!(credits.available(), 4);
    assert_eq!(credits.try_acquire(4).unwrap().amount(), 4);
}

#[test]
fn a_channel_holds_what_it_has_room_for() {
    let (mut world, sim) = world();
    let (log, channel) = (Log::default(), Channel::new(&sim, 2));
    let (s, l, c) = (sim.clone(), log.clone(), channel.clone());
    sim.spawn_program("sender", async move {
        for i in 0..4 {
            c.send(i).await.unwrap();
            l.add(&s, format!("sent {i}"));
        }
        assert_eq!(c.try_send(9), Err(TrySendError::Full(9)));
        c.close();
        assert_eq!(c.try_send(9), Err(TrySendError::Closed(9)));
        assert_eq!(c.send(9).await.unwrap_err().0, 9);
    });
    let (s, l, c) = (sim.clone(), log.clone(), channel.clone());
    sim.spawn_program("receiver", async move {
        s.delay(ns(10)).await;
        assert_eq!((c.len(), c.is_empty(), c.capacity()), (2, false, 2));
        assert_eq!(c.try_recv(), Some(0));
        l.add(&s, "took 0");
        s.delay(ns(10)).await;
        while let Some(i) = c.recv().await {
            l.add(&s, format!("took {i}"));
            s.delay(ns(1)).await;
        }
        assert!(c.is_closed() && c.try_recv().is_none());
    });
    world.run().unwrap();
    let expected =
        [(0, "sent 0"), (0, "sent 1"), (10, "took 0"), (10, "sent 2"), (20, "took 1"), (20, "sent 3")];
    log.is(&[&expected[..], &[(21, "took 2"), (22, "took 3")]].concat());
}

#[test]
fn closing_a_channel_fails_its_waiters() {
    let (mut world, sim) = world();
    let (full, empty) = (Channel::new(&sim, 1), Channel::<u32>::new(&sim, 1));
    let done = Rc::new(Cell::new(0));
    full.try_send(1).unwrap();
    let (f, d) = (full.clone(), done.clone());
    sim.spawn_program("sender", async move {
        assert_eq!(f.send(2).await.unwrap_err().0, 2);
        d.set(d.get() + 1);
    });
    let (e, d) = (empty.clone(), done.clone());
    sim.spawn_program("receiver", async move {
        assert_eq!(e.recv().await, None);
        d.set(d.get() + 1);
    });
    let s = sim.clone();
    sim.spawn(async move {
        s.delay(ns(1)).await;
        full.close();
        empty.close();
        assert_eq!(full.recv().await, Some(1), "what is in a closed channel can be taken");
        assert_eq!(full.recv().await, None);
    });
    world.run().unwrap();
    assert_eq!(done.get(), 2);
}

#[test]
fn a_signal_wakes_one_or_all_and_remembers_nothing() {
    let (mut world, sim) = world();
    let (log, signal) = (Log::default(), Signal::new(&sim));
    signal.notify_one();
    for i in 0..4 {
        let (s, l, signal) = (sim.clone(), log.clone(), signal.clone());
        sim.spawn_program(format!("p{i}"), async move {
            signal.wait().await;
            l.add(&s, format!("{i}"));
        });
    }
    let s = sim.clone();
    sim.spawn(async move {
        s.delay(ns(1)).await;
        assert_eq!(signal.waiting(), 4);
        signal.notify_one();
        s.delay(ns(1)).await;
        signal.notify_all();
        assert_eq!(signal.waiting(), 0);
    });
    world.run().unwrap();
    log.is(&[(1, "0"), (2, "1"), (2, "2"), (2, "3")]);
}

#[test]
fn a_condition_is_checked_again_after_each_notification() {
    let (mut world, sim) = world();
    let (log, signal, value) = (Log::default(), Signal::new(&sim), Rc::new(Cell::new(0)));
    for want in [0, 2, 1] {
        let (s, l, signal, v) = (sim.clone(), log.clone(), signal.clone(), value.clone());
        sim.spawn_program(format!("for {want}"), async move {
            signal.wait_until(|| v.get() >= want).await;
            l.add(&s, format!("{want}"));
        });
    }
    let s = sim.clone();
    sim.spawn(async move {
        for i in 1..=2 {
            s.delay(ns(1)).await;
            value.set(i);
            signal.notify_all();
        }
        assert_eq!(signal.waiting(), 0);
    });
    world.run().unwrap();
    log.is(&[(0, "0"), (1, "1"), (2, "2")]);
}

#[test]
fn futures_side_by_side() {
    let (mut world, sim) = world();
    let s = sim.clone();
    sim.spawn_program("p", async move {
        let after = async |n: u64| {
            s.delay(ns(n)).await;
            n
        };
        assert_eq!(join(after(3), after(5)).await, (3, 5));
        assert_eq!(s.now(), Time::from_ps(5_000));
        assert_eq!(race(after(3), after(2)).await, Either::Right(2));
        assert_eq!(race(after(3), after(3)).await, Either::Left(3), "the first counts");
        assert_eq!(s.now(), Time::from_ps(10_000));
        assert_eq!(join_all([4, 1, 9].map(after)).await, [4, 1, 9]);
        assert_eq!(join_all([0u64; 0].map(after)).await, []);
        assert_eq!(s.now(), Time::from_ps(19_000));
        assert_eq!(timeout(&s, ns(5), after(4)).await, Ok(4));
        assert_eq!(timeout(&s, ns(5), after(5)).await, Ok(5), "the last instant counts");
        let elapsed = timeout(&s, ns(5), after(6)).await.unwrap_err();
        assert_eq!(elapsed, Elapsed { after: ns(5) });
        assert_eq!(elapsed.to_string(), "not done after 5 ns");
        assert_eq!(s.now(), Time::from_ps(33_000));
    });
    let summary = world.run().unwrap();
    assert_eq!(summary.end, Time::from_ps(33_000), "what was dropped leaves no event behind");
}

#[test]
fn a_wire_takes_its_latency_and_keeps_order() {
    let mut world: World<u32> = World::new(Config::default());
    let (a, b) = (world.add_node(), world.add_node());
    assert_eq!((world.nodes(), b), (2, NodeId(1)));
    let (tx, rx) = world.wire(a, b, ns(10));
    let (tx2, rx2) = world.wire(a, b, ns(10));
    assert_eq!((tx.link(), tx.to(), tx.min_latency()), (rx.link(), b, ns(10)));
    assert_eq!((rx.from(), rx2.link().0), (a, 1));
    let (sim, log) = (world.sim(b), Log::default());
    tx2.send(Time::from_ps(10_000), 100);
    tx.send(Time::from_ps(12_000), 1);
    tx.send(Time::from_ps(10_000), 2);
    tx.send(Time::from_ps(10_000), 3);
    let (s, l) = (sim.clone(), log.clone());
    sim.spawn_program("first", async move {
        for _ in 0..3 {
            let message = rx.recv().await;
            l.add(&s, format!("{message}, {} more", rx.len()));
        }
        assert!(rx.is_empty() && rx.try_recv().is_none());
    });
    let (s, l) = (sim.clone(), log.clone());
    sim.spawn_program("second", async move {
        l.add(&s, format!("{}", rx2.recv().await));
    });
    let summary = world.run().unwrap();
    log.is(&[(10, "2, 1 more"), (10, "3, 0 more"), (10, "100"), (12, "1, 0 more")]);
    assert_eq!(summary.end, world.now());
}

#[test]
fn prefetched_tasks_of_a_large_world_may_be_gone() {
    let mut world: World<u64> = World::new(Config::default());
    let (a, b) = (world.add_node(), world.add_node());
    // With this number of wires a world is large, and values are kept near.
    let mut wires: Vec<_> = (0..3000).map(|_| world.wire(a, b, ns(10))).collect();
    let (sender, receiver) = (world.sim(a), world.sim(b));
    let log = Log::default();
    for _ in 0..20 {
        receiver.keep_near(&*Box::new([0_u64; 100]));
    }
    let (tx, rx) = wires.pop().unwrap();
    rx.prepare(|message| assert!(*message < 4));
    let (sim, l) = (receiver.clone(), log.clone());
    receiver.spawn_program("receives", async move {
        for _ in 0..4 {
            let number = rx.recv().await;
            let (own, theirs) = (sim.clone(), l.clone());
            let needs = [Needed::of(&*Box::new(number)), Needed::NOTHING];
            sim.spawn_at(sim.now() + ns(50), needs, || async move { theirs.add(&own, number.to_string()) });
        }
    });
    // No task receives these messages.
    for (idle, _) in &wires[..100] {
        idle.send(Time::ZERO + ns(30), 9);
    }
    sender.clone().spawn(async move {
        for number in 0..4 {
            tx.send(sender.now() + ns(20), number);
            sender.delay(ns(7)).await;
        }
    });
    world.run().unwrap();
    log.is(&[(70, "0"), (77, "1"), (84, "2"), (91, "3")]);
}
