//! Futures dropped at every await: nothing that they held is lost or duplicated.

use nicety_kernel::{
    Channel, Config, Credits, Either, Pool, Rng, Server, Signal, Sim, World, join, race, timeout,
};
use nicety_types::{Duration, Time};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

fn ps(n: u64) -> Duration {
    Duration::from_ps(n)
}

fn world(seed: u64) -> (World<u32>, Sim) {
    let mut world = World::new(Config { seed, ..Config::default() });
    let node = world.add_node();
    let sim = world.sim(node);
    (world, sim)
}

/// Runs `future`, or drops it after a random time that often coincides with another event. A random bit decides which
/// side of the race is polled first.
async fn at_most<F: Future>(sim: &Sim, rng: &RefCell<Rng>, future: F) -> Option<F::Output> {
    let delay = sim.delay(ps(rng.borrow_mut().below(12)));
    let first = rng.borrow_mut().chance(0.5);
    if first {
        match race(future, delay).await {
            Either::Left(value) => Some(value),
            Either::Right(()) => None,
        }
    } else {
        match race(delay, future).await {
            Either::Left(()) => None,
            Either::Right(value) => Some(value),
        }
    }
}

/// Counts the holders of a resource.
#[derive(Default)]
struct Held(Cell<u64>);

impl Held {
    fn hold(&self, amount: u64, limit: u64) -> impl Drop + '_ {
        struct Back<'a>(&'a Held, u64);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                self.0.0.set(self.0.0.get() - self.1);
            }
        }
        self.0.set(self.0.get() + amount);
        assert!(self.0.get() <= limit, "{} held, {limit} there are", self.0.get());
        Back(self, amount)
    }
}

#[test]
fn no_credit_is_lost_or_made() {
    for seed in 0..300 {
        let (mut world, sim) = world(seed);
        let credits = Credits::new(&sim, 5);
        let (server, pool) = (Server::new(&sim), Pool::new(&sim, 2));
        let held = Rc::new((Held::default(), Held::default(), Held::default()));
        for task in 0..12 {
            let rng = RefCell::new(sim.rng(&format!("task {task}")));
            let (s, credits, server, pool) = (sim.clone(), credits.clone(), server.clone(), pool.clone());
            let held = held.clone();
            sim.spawn_program(format!("{task}"), async move {
                for _ in 0..20 {
                    let (choice, time, amount) = {
                        let mut rng = rng.borrow_mut();
                        (rng.below(6), ps(rng.below(6)), rng.below(6))
                    };
                    let (credits_held, server_held, pool_held) = &*held;
                    match choice {
                        0 | 1 => {
                            let using = async {
                                let permit = credits.acquire(amount).await;
                                let _held = credits_held.hold(permit.amount(), 5);
                                s.delay(time).await;
                                if choice == 1 {
                                    permit.forget();
                                    credits.release(amount);
                                }
                            };
                            at_most(&s, &rng, using).await;
                        }
                        2 => drop(at_most(&s, &rng, server.serve(time)).await),
                        3 => {
                            let using = async {
                                let _guard = server.acquire().await;
                                let _held = server_held.hold(1, 1);
                                s.delay(time).await;
                            };
                            at_most(&s, &rng, using).await;
                        }
                        4 => {
                            let using = async {
                                let _permit = pool.acquire().await;
                                let _held = pool_held.hold(1, 2);
                                s.delay(time).await;
                            };
                            at_most(&s, &rng, using).await;
                        }
                        _ => drop(at_most(&s, &rng, pool.serve(time)).await),
                    }
                }
            });
        }
        world.run().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let left = (credits.available(), credits.waiting(), server.is_free(), server.waiting());
        assert_eq!(left, (5, 0, true, 0), "seed {seed}");
        assert_eq!((pool.available(), pool.waiting()), (2, 0), "seed {seed}");
    }
}

#[test]
fn a_service_is_the_time_of_one_at_most() {
    // Services that run to their end never overlap, even if other services are cancelled.
    for seed in 0..200 {
        let (mut world, sim) = world(seed);
        let server = Server::new(&sim);
        let done: Rc<RefCell<Vec<(Time, Time)>>> = Rc::default();
        for task in 0..8 {
            let rng = RefCell::new(sim.rng(&format!("task {task}")));
            let (s, server, done) = (sim.clone(), server.clone(), done.clone());
            sim.spawn_program(format!("{task}"), async move {
                for _ in 0..20 {
                    let time = ps(rng.borrow_mut().below(5));
                    if let Some(began) = at_most(&s, &rng, server.serve(time)).await {
                        assert!(s.now() >= began + time);
                        done.borrow_mut().push((began, began + time));
                    }
                }
            });
        }
        world.run().unwrap();
        let mut done = done.take();
        done.sort_unstable();
        assert!(done.len() > 20, "seed {seed}: the test is to see services");
        assert!(done.windows(2).all(|pair| pair[0].1 <= pair[1].0), "seed {seed}: {done:?}");
    }
}

#[test]
fn each_value_sent_is_received_once_and_in_order() {
    for seed in 0..300 {
        let (mut world, sim) = world(seed);
        let channel: Channel<(u64, u64)> = Channel::new(&sim, 2);
        let sent = Rc::new(RefCell::new(Vec::new()));
        let received = Rc::new(RefCell::new(Vec::new()));
        let senders = Rc::new(Cell::new(4));
        for task in 0..4 {
            let rng = RefCell::new(sim.rng(&format!("sender {task}")));
            let (s, channel, sent, senders) = (sim.clone(), channel.clone(), sent.clone(), senders.clone());
            sim.spawn_program(format!("sender {task}"), async move {
                for i in 0..20 {
                    if let Some(result) = at_most(&s, &rng, channel.send((task, i))).await {
                        result.unwrap();
                        sent.borrow_mut().push((task, i));
                    }
                }
                senders.set(senders.get() - 1);
                if senders.get() == 0 {
                    channel.close();
                }
            });
        }
        for task in 0..3 {
            let rng = RefCell::new(sim.rng(&format!("receiver {task}")));
            let (s, channel, received) = (sim.clone(), channel.clone(), received.clone());
            sim.spawn_program(format!("receiver {task}"), async move {
                loop {
                    assert!(channel.len() <= channel.capacity());
                    match at_most(&s, &rng, channel.recv()).await {
                        Some(Some(value)) => received.borrow_mut().push(value),
                        Some(None) => return,
                        None => (),
                    }
                }
            });
        }
        world.run().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let (mut sent, mut received) = (sent.take(), received.take());
        assert!(sent.len() > 10, "seed {seed}: the test is to see values");
        let of = |values: &[(u64, u64)], task| -> Vec<u64> {
            values.iter().filter(|v| v.0 == task).map(|v| v.1).collect()
        };
        assert!((0..4).all(|task| of(&received, task).is_sorted()), "seed {seed}: {received:?}");
        sent.sort_unstable();
        received.sort_unstable();
        assert_eq!(sent, received, "seed {seed}");
    }
}

#[test]
fn each_message_of_a_wire_is_received_once() {
    for seed in 0..100 {
        let (mut world, sim) = world(seed);
        let (tx, rx) = world.wire(sim.node(), sim.node(), ps(3));
        let (s, rng) = (sim.clone(), RefCell::new(sim.rng("sender")));
        sim.spawn(async move {
            for i in 0..100 {
                let ahead = rng.borrow_mut().below(3);
                tx.send(s.now() + ps(3 + ahead), i);
                let pause = rng.borrow_mut().below(6);
                s.delay(ps(pause)).await;
            }
        });
        let (s, rng) = (sim.clone(), RefCell::new(sim.rng("receiver")));
        sim.spawn_program("receiver", async move {
            let mut seen = [false; 100];
            while seen.contains(&false) {
                if let Some(message) = at_most(&s, &rng, rx.recv()).await {
                    assert!(!std::mem::replace(&mut seen[message as usize], true));
                }
            }
        });
        world.run().unwrap();
    }
}

/// At 5 ps the first waiter in line gets a resource, but is dropped at the same instant, before its poll. The second
/// waiter must get the resource at 5 ps.
fn given_up_when_granted<F, W>(wait: impl Fn(&Sim) -> (F, W))
where
    F: FnOnce() + 'static,
    W: Fn() -> Pin<Box<dyn Future<Output = ()>>> + 'static,
{
    let (mut world, sim) = world(0);
    let (grant, wait) = wait(&sim);
    let wait = Rc::new(wait);
    let s = sim.clone();
    sim.spawn(async move {
        s.delay(ps(5)).await;
        grant();
    });
    let (s, w) = (sim.clone(), wait.clone());
    sim.spawn_program("first", async move {
        assert_eq!(race(s.delay(ps(5)), w()).await, Either::Left(()));
        assert_eq!(s.now(), Time::from_ps(5));
    });
    let s = sim.clone();
    sim.spawn_program("second", async move {
        wait().await;
        assert_eq!(s.now(), Time::from_ps(5));
    });
    world.run().unwrap();
}

#[test]
fn a_grant_to_a_cancelled_waiter_goes_to_the_next() {
    given_up_when_granted(|sim| {
        let credits = Credits::new(sim, 0);
        let c = credits.clone();
        (
            move || c.release(1),
            move || {
                let acquire = credits.acquire(1);
                Box::pin(async move { drop(acquire.await) })
            },
        )
    });
    given_up_when_granted(|sim| {
        let signal = Signal::new(sim);
        let s = signal.clone();
        (move || s.notify_one(), move || Box::pin(signal.wait()))
    });
    given_up_when_granted(|sim| {
        let signal = Signal::new(sim);
        let s = signal.clone();
        (move || s.notify_all(), move || Box::pin(signal.wait()))
    });
    given_up_when_granted(|sim| {
        let channel = Channel::new(sim, 1);
        let c = channel.clone();
        (
            move || c.try_send(7).unwrap(),
            move || {
                let recv = channel.recv();
                Box::pin(async move { assert_eq!(recv.await, Some(7)) })
            },
        )
    });
    given_up_when_granted(|sim| {
        let channel = Channel::new(sim, 1);
        channel.try_send(7).unwrap();
        let c = channel.clone();
        (
            move || assert_eq!(c.try_recv(), Some(7)),
            move || {
                let send = channel.send(8);
                Box::pin(async move { send.await.unwrap() })
            },
        )
    });
    given_up_when_granted(|sim| {
        let server = Server::new(sim);
        let guard = server.try_acquire();
        (
            move || drop(guard),
            move || {
                let serve = server.serve(Duration::ZERO);
                Box::pin(async move { _ = serve.await })
            },
        )
    });
}

#[test]
fn a_cancelled_large_request_lets_those_behind_pass() {
    let (mut world, sim) = world(0);
    let credits = Credits::new(&sim, 2);
    let (s, c) = (sim.clone(), credits.clone());
    sim.spawn_program("much", async move {
        assert!(timeout(&s, ps(5), c.acquire(3)).await.is_err());
    });
    let (s, c) = (sim.clone(), credits.clone());
    sim.spawn_program("little", async move {
        let _permit = c.acquire(1).await;
        assert_eq!(s.now(), Time::from_ps(5));
    });
    world.run().unwrap();
}

#[test]
fn a_closed_channel_frees_the_place_of_a_granted_sender() {
    let (mut world, sim) = world(0);
    let channel = Channel::new(&sim, 1);
    channel.try_send(1).unwrap();
    let c = channel.clone();
    sim.spawn_program("sender", async move {
        assert_eq!(c.send(2).await.unwrap_err().0, 2, "closed before it was its turn");
    });
    let s = sim.clone();
    sim.spawn(async move {
        s.delay(ps(1)).await;
        assert_eq!(channel.try_recv(), Some(1)); // gives the free place to the waiting sender
        channel.close();
    });
    world.run().unwrap();
}

#[test]
fn a_future_may_move_from_one_task_to_another() {
    // One task polls each future once. Then another task awaits the future, and must be woken.
    let (mut world, sim) = world(0);
    let (signal, credits, server) = (Signal::new(&sim), Credits::new(&sim, 0), Server::new(&sim));
    let guard = server.try_acquire();
    type Boxed = Pin<Box<dyn Future<Output = ()>>>;
    let (wait, acquire, serve, busy) = (signal.wait(), credits.acquire(1), server.serve(ps(4)), {
        let other = Server::new(&sim);
        async move { _ = other.serve(ps(20)).await }
    });
    let mut futures: Vec<Boxed> = vec![
        Box::pin(wait),
        Box::pin(async move { drop(acquire.await) }),
        Box::pin(async move { _ = serve.await }),
        Box::pin(busy),
        Box::pin(sim.delay(ps(12))),
    ];
    let s = sim.clone();
    sim.spawn(async move {
        poll_fn(|context| {
            assert!(futures.iter_mut().all(|future| future.as_mut().poll(context).is_pending()));
            Poll::Ready(())
        })
        .await;
        for (future, ends) in futures.into_iter().zip([10, 10, 14, 20, 12]) {
            let t = s.clone();
            s.spawn_program(format!("until {ends}"), async move {
                future.await;
                assert_eq!(t.now(), Time::from_ps(ends));
            });
        }
    });
    let s = sim.clone();
    sim.spawn(async move {
        s.delay(ps(10)).await;
        signal.notify_one();
        credits.release(1);
        drop(guard);
    });
    world.run().unwrap();
}

#[test]
fn a_wake_of_an_ended_task_does_not_reach_its_successor() {
    let (mut world, sim) = world(0);
    let (signal, stash) = (Signal::new(&sim), Rc::new(RefCell::new(Vec::new())));
    let mut futures: Vec<Pin<Box<dyn Future<Output = ()>>>> =
        vec![Box::pin(signal.wait()), Box::pin(sim.delay(ps(7)))];
    let kept = stash.clone();
    sim.spawn(async move {
        poll_fn(|context| {
            assert!(futures.iter_mut().all(|future| future.as_mut().poll(context).is_pending()));
            Poll::Ready(())
        })
        .await;
        // The futures outlive the task that they would wake.
        kept.borrow_mut().append(&mut futures);
    });
    let (s, polls) = (sim.clone(), Rc::new(Cell::new(0)));
    let p = polls.clone();
    sim.spawn(async move {
        s.delay(ps(1)).await;
        let other = Signal::new(&s);
        let end = other.wait();
        s.spawn(async move {
            let mut end = pin!(end);
            poll_fn(|context| {
                p.set(p.get() + 1);
                end.as_mut().poll(context)
            })
            .await;
        });
        s.delay(ps(2)).await;
        signal.notify_one();
        s.delay(ps(20)).await;
        other.notify_one();
    });
    world.run().unwrap();
    assert_eq!(stash.borrow().len(), 2);
    assert_eq!(polls.get(), 2, "at its start and at its end");
}

/// Runs one program. Returns the end of the run in ps, and the number of its events.
fn run_of<F: Future<Output = ()> + 'static>(program: impl FnOnce(Sim) -> F) -> (u64, u64) {
    let (mut world, sim) = world(0);
    sim.spawn_program("p", program(sim.clone()));
    let summary = world.run().unwrap();
    (summary.end.ps(), summary.events)
}

#[test]
fn cancelled_services_leave_no_event_behind() {
    // The service is cancelled while it runs.
    let used = run_of(|sim| async move {
        let server = Server::new(&sim);
        assert!(timeout(&sim, ps(3), server.serve(ps(9))).await.is_err());
        assert!(server.is_free());
    });
    assert_eq!(used, (3, 2));
    // The service first waits in line, and is cancelled while it runs.
    let in_line = run_of(|sim| async move {
        let server = Server::new(&sim);
        let waits = timeout(&sim, ps(3), server.serve(ps(9)));
        assert!(join(server.serve(ps(2)), waits).await.1.is_err());
        assert!(server.is_free());
    });
    assert_eq!(in_line, (3, 3));
}

#[test]
fn one_event_is_enough_for_all_that_a_task_waits_for_at_an_instant() {
    let delays = run_of(|sim| async move {
        join(sim.delay(ps(5)), sim.delay(ps(5))).await;
    });
    assert_eq!(delays, (5, 2));
    let kept = run_of(|sim| async move {
        let (mut a, mut b) = (sim.delay(ps(5)), sim.delay(ps(5)));
        join(&mut a, &mut b).await;
        sim.delay(ps(1)).await;
        drop((a, b));
    });
    assert_eq!(kept, (6, 3));
    let served = run_of(|sim| async move {
        let server = Server::new(&sim);
        join(sim.delay(ps(5)), server.serve(ps(5))).await;
    });
    assert_eq!(served, (5, 2));
    let in_line = run_of(|sim| async move {
        let server = Server::new(&sim);
        join(sim.delay(ps(5)), join(server.serve(ps(2)), server.serve(ps(3)))).await;
    });
    assert_eq!(in_line, (5, 3));
}

#[test]
fn both_sides_of_a_join_may_stand_in_one_line() {
    let (mut world, sim) = world(0);
    let server = Server::new(&sim);
    let s = sim.clone();
    sim.spawn_program("p", async move {
        let ends = join(server.serve(ps(3)), server.serve(ps(4))).await;
        assert_eq!(ends, (Time::ZERO, Time::from_ps(3)));
        assert_eq!(s.now(), Time::from_ps(7));
    });
    world.run().unwrap();
}
