//! Queues at their limits: the transmit ring, event queues, gets.

use super::support::Rig;
use nicety_nic::apenet::{ApenetError, EventKind};
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
            // Polls for others, so that events leave the card's queue where only a process's own queue is short.
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
            // The payload of all is there.
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
fn a_wait_that_never_ends_says_for_what() {
    let mut rig = Rig::new(1, &[]);
    rig.process(0, 2, async |user| drop(user.event().await));
    let error = rig.fail().to_string();
    assert!(error.contains("an event (process 2)"), "{error}");
}
