//! Tests of queues at their limits: the transmit ring, event queues, gets.

use super::support::Rig;
use nicety_kernel::timeout;
use nicety_nic_apenet::{ApenetError, EventKind, Notify, Operation, Refusal};
use nicety_types::{Duration, Time};
use std::cell::Cell;
use std::rc::Rc;

const LATER: Time = Time::from_ps(1_000_000_000);

#[test]
fn a_full_ring_makes_the_driver_wait() {
    for entries in ["ring.entries=1", "ring.entries=3", "ring.entries=7"] {
        let mut rig = Rig::new(1, &[entries, "ring.fetch=2", "dma.fifo=1"]);
        rig.process(0, 0, async |user| {
            let bytes: Vec<u8> = (0..20 * 4096 + 5).map(|at| (at / 7) as u8).collect();
            let (from, into) = (user.bytes(&bytes), user.room(bytes.len() as u64));
            user.register(from).await.unwrap();
            user.register(into).await.unwrap();
            let put = user.put(user.to(0, from, into.0)).await.unwrap();
            assert_eq!(user.wait(put).await.unwrap().kind, EventKind::Sent(put));
            assert_eq!(user.event().await.unwrap().kind, EventKind::Received);
            assert!(user.look(into) == bytes);
        });
        rig.run();
        let counted = rig.cards[0].statistics();
        assert_eq!((counted.descriptors, counted.packets_sent, counted.packets_received), (21, 21, 21));
        assert!(counted.ring_full > 0 && counted.doorbells > 1, "{counted:?}");
    }
}

#[test]
fn lost_events_are_counted_and_reported_once() {
    for (overrides, kept) in
        [(["events.entries=4", "events.user=100"], 4), (["events.entries=100", "events.user=5"], 5)]
    {
        let mut rig = Rig::new(2, &overrides);
        let address = Rc::new(Cell::new(0));
        let there = address.clone();
        rig.process(0, 0, async move |user| {
            let buffer = user.bytes(&[1; 8]);
            user.register(buffer).await.unwrap();
            user.sim.until(LATER).await;
            for _ in 0..12 {
                let put = user.put(user.to(1, buffer, there.get())).await.unwrap();
                user.wait(put).await.unwrap();
            }
        });
        rig.process(1, 1, async move |user| {
            // If only the queue of process 0 is short, this process polls. Its polls move events out of the card's
            // queue.
            if kept == 5 {
                let poll = user.process.poll(&mut nicety_types::Path::clock(user.sim.now())).await;
                assert_eq!(poll, Ok(None));
                user.sim.until(LATER + Duration::from_us(200)).await;
                let poll = user.process.poll(&mut nicety_types::Path::clock(user.sim.now())).await;
                assert_eq!(poll, Ok(None));
            }
        });
        rig.process(1, 0, async move |user| {
            let buffer = user.room(8);
            address.set(buffer.0);
            user.register(buffer).await.unwrap();
            user.sim.until(LATER + Duration::from_us(500)).await;
            let error = user.event().await.unwrap_err();
            assert_eq!(error, ApenetError::EventsLost { events: 12 - kept, process: 0 });
            for _ in 0..kept {
                assert_eq!(user.event().await.unwrap().kind, EventKind::Received);
            }
            // The payloads of all puts have arrived.
            assert_eq!(user.look(buffer), [1; 8]);
        });
        rig.run();
        assert_eq!(rig.cards[1].statistics().events_lost, 12 - kept);
    }
}

#[test]
fn gets_are_bounded_at_both_ends() {
    let mut rig = Rig::new(2, &["limits.gets=2"]);
    let address = Rc::new(Cell::new(0));
    let there = address.clone();
    rig.process(0, 0, async move |user| {
        let buffer = user.room(3 * 10_000);
        user.register(buffer).await.unwrap();
        user.sim.until(LATER).await;
        let get = |at: u64| user.to(1, (buffer.0 + at, 10_000), there.get());
        let gets = [user.get(get(0)).await.unwrap(), user.get(get(10_000)).await.unwrap()];
        assert_eq!(user.get(get(20_000)).await, Err(ApenetError::Gets { limit: 2 }));
        for get in gets {
            assert_eq!(user.wait(get).await.unwrap().kind, EventKind::Fetched(get));
        }
        let last = user.get(get(20_000)).await.unwrap();
        user.wait(last).await.unwrap();
        assert_eq!(user.look(buffer), vec![6; 30_000]);
    });
    rig.process(1, 0, async move |user| {
        let buffer = user.bytes(&[6; 10_000]);
        address.set(buffer.0);
        user.register(buffer).await.unwrap();
    });
    rig.run();
    assert_eq!(rig.cards[1].statistics().gets_served, 3);
}

#[test]
fn a_card_refuses_gets_that_it_cannot_hold() {
    let mut rig = Rig::new(3, &["limits.gets=2"]);
    let refused = Rc::new(Cell::new(0));
    for node in [0, 1] {
        let seen = refused.clone();
        rig.process(node, 0, async move |user| {
            let buffer = user.room(100 * 4096);
            user.register(buffer).await.unwrap();
            user.sim.until(LATER).await;
            for _ in 0..2 {
                user.get(user.to(2, buffer, buffer.0)).await.unwrap();
            }
            for _ in 0..2 {
                match user.event().await.unwrap().kind {
                    EventKind::Refused(_, why) => {
                        assert_eq!(why, Refusal::Busy);
                        seen.set(seen.get() + 1);
                    }
                    kind => assert!(matches!(kind, EventKind::Fetched(_))),
                }
            }
        });
    }
    rig.process(2, 0, async |user| {
        let buffer = user.room(100 * 4096);
        user.register(buffer).await.unwrap();
    });
    rig.run();
    assert_eq!(refused.get(), 2);
}

#[test]
fn a_message_may_be_as_long_as_the_limit() {
    let mut rig = Rig::new(1, &["limits.message=8 KiB"]);
    rig.process(0, 0, async |user| {
        let buffer = user.room(8193);
        user.register(buffer).await.unwrap();
        user.put(user.to(0, (buffer.0, 8192), buffer.0)).await.unwrap();
        let error = ApenetError::Message { bytes: 8193, limit: 8192 };
        assert_eq!(user.put(user.to(0, buffer, buffer.0)).await, Err(error));
    });
    rig.run();
}

#[test]
fn a_wait_hears_that_events_were_lost_and_then_of_no_operation() {
    for notify in [Notify::Poll, Notify::Interrupt] {
        let mut rig = Rig::new(1, &["events.user=1"]);
        rig.process(0, 0, async move |user| {
            let buffer = user.room(64);
            user.register(buffer).await.unwrap();
            user.card.set_notify(notify);
            let poster = user.clone();
            user.sim.spawn(async move {
                poster.sim.delay(Duration::from_us(50)).await;
                for _ in 0..2 {
                    poster.put(poster.to(1 - 1, buffer, 64)).await.unwrap();
                }
            });
            // Each of the two puts has an event for its sent bytes and an event for its refusal. The queue has room for
            // one event.
            let mut path = nicety_types::Path::clock(user.sim.now());
            let lost = user.process.received(&mut path).await;
            assert!(matches!(lost, Err(ApenetError::EventsLost { process: 0, .. })), "{lost:?}");
            let first = user.event().await.unwrap();
            user.sim.delay(Duration::from_us(50)).await;
            while !matches!(user.process.poll(&mut path).await, Ok(None)) {}
            let operation = first.operation().map_or(0, |operation| operation.0) + 1;
            let wait = user.wait(Operation(operation)).await;
            assert_eq!(wait, Err(ApenetError::NoOperation { operation, process: 0 }));
        });
        rig.run();
    }
}

#[test]
fn empty_messages_wait_for_the_fifo_and_the_ring_like_any() {
    let few = ["ring.entries=8", "ring.fetch=2", "dma.fifo=2", "buffer.packets=2", "dma.receive_engines=1"];
    let mut rig = Rig::new(2, &[&few[..], &["tlb.entries=1", "processor.register=10 ms"]].concat());
    let card = rig.cards[0].clone();
    let address = Rc::new(Cell::new(0));
    let there = address.clone();
    rig.process(0, 0, async move |user| {
        let buffer = user.bytes(&[1; 8]);
        user.process.set_up(buffer.0, 8).unwrap();
        user.sim.until(LATER + Duration::from_us(100)).await;
        // Two puts wait at the receiver, where the embedded processor is busy. The other puts wait at this host.
        for _ in 0..3 {
            user.put(user.to(1, buffer, there.get())).await.unwrap();
        }
        for _ in 0..100 {
            user.put(user.to(1, (buffer.0, 0), there.get())).await.unwrap();
        }
    });
    rig.process(0, 1, async move |user| {
        user.sim.until(LATER + Duration::from_us(5000)).await;
        assert!((10..25).contains(&card.statistics().puts), "{}", card.statistics().puts);
    });
    rig.process(1, 0, async move |user| {
        let buffer = user.room(8);
        user.process.set_up(buffer.0, 8).unwrap();
        address.set(buffer.0);
        // The buffer's page is no longer in the TLB.
        user.process.set_up(user.room(8).0, 8).unwrap();
        user.sim.until(LATER).await;
        user.register(user.room(8)).await.unwrap();
        for _ in 0..103 {
            assert_eq!(user.event().await.unwrap().kind, EventKind::Received);
        }
    });
    rig.run();
    assert_eq!(rig.cards[0].statistics().packets_sent, 103);
}

#[test]
fn refusals_that_wait_for_the_link_stop_what_comes() {
    // The link is slow, and the refusing card fills it with packets of its own.
    let mut rig = Rig::new(2, &["link.gap=2 ns/B", "driver.operation=0 ns"]);
    let cards = rig.cards.clone();
    rig.process(0, 0, async move |user| {
        user.register(user.room(1 << 20)).await.unwrap();
        user.sim.until(LATER).await;
        let mut most = 0;
        for _ in 0..1000 {
            // No process has this number.
            let mut put = user.to(1, (0, 0), 8);
            put.peer.process = 9;
            user.put(put).await.unwrap();
            let [refused, told] = [&cards[1], &cards[0]].map(|card| card.statistics());
            most = most.max(refused.refused - told.refused_by_peer);
        }
        // At most 64 refusals wait, plus one for each slot of the packet buffer. A refusal and a message may also be on
        // the link.
        assert!((64..64 + 16 + 3).contains(&most), "{most}");
        let mut refused = 0;
        while refused < 1000 {
            let event = user.event().await.unwrap();
            refused += u32::from(matches!(event.kind, EventKind::Refused(_, Refusal::NoProcess)));
        }
    });
    rig.process(1, 0, async move |user| {
        let buffer = user.room(1 << 20);
        user.register(buffer).await.unwrap();
        user.sim.until(LATER).await;
        user.put(user.to(0, buffer, buffer.0)).await.unwrap();
    });
    rig.run();
}

#[test]
fn a_registration_that_is_dropped_unlocks_its_pages() {
    let mut rig = Rig::new(1, &[]);
    rig.process(0, 2, async |user| {
        let buffer = user.room(1 << 20);
        // The drop comes before the kernel locks the pages, during the lock, after the lock, or after the answer of the
        // embedded processor.
        for (limit, pins) in [(10, 1), (20_000, 2), (48_000, 3), (1_000_000, 4)] {
            let kept = timeout(&user.sim, Duration::from_ns(limit), user.register(buffer)).await.ok();
            user.sim.delay(Duration::from_us(1000)).await;
            user.restart();
            let counters = user.card.kernel().counters();
            assert!(
                counters.pins <= pins && counters.unpins == counters.pins - u64::from(kept.is_some()),
                "{counters:?}"
            );
        }
        let counters = user.card.kernel().counters();
        assert!(counters.unpins >= 1 && counters.pins == counters.unpins + 1, "{counters:?}");
    });
    rig.run();
}

#[test]
fn a_wait_that_never_ends_says_for_what() {
    let mut rig = Rig::new(1, &[]);
    rig.process(0, 2, async |user| drop(user.event().await));
    let error = rig.fail().to_string();
    assert!(error.contains("an event (process 2)"), "{error}");
}
