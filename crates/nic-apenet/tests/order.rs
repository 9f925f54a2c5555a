//! Messages that arrive in another order than the order of their numbers. Separate units of a card serve replies, puts
//! and gets, and do not wait for each other.

use super::support::Rig;
use nicety_nic_apenet::EventKind;
use nicety_types::Time;
use std::cell::Cell;
use std::rc::Rc;

const LATER: Time = Time::from_ps(1_000_000_000);

#[test]
fn a_reply_that_waited_behind_many_puts_is_no_duplicate() {
    let mut rig = Rig::new(2, &[]);
    let address = Rc::new(Cell::new(0));
    let there = address.clone();
    rig.process(0, 0, async move |user| {
        let buffer = user.room(1 << 20);
        address.set(buffer.0);
        user.register(buffer).await.unwrap();
        user.sim.until(LATER).await;
        // The buffers have the same address on both nodes. The second reply begins when the first reply has ended.
        let long = user.get(user.to(1, buffer, buffer.0)).await.unwrap();
        let short = user.get(user.to(1, (buffer.0, 8), buffer.0)).await.unwrap();
        for get in [long, short] {
            assert_eq!(user.wait(get).await.unwrap().kind, EventKind::Fetched(get));
        }
    });
    rig.process(1, 0, async move |user| {
        let buffer = user.room(1 << 20);
        user.register(buffer).await.unwrap();
        user.sim.until(LATER).await;
        for _ in 0..200 {
            user.put(user.to(0, (buffer.0, 8), there.get())).await.unwrap();
        }
    });
    rig.run();
    let counted = rig.cards[0].statistics();
    assert_eq!((counted.unusable, counted.stale_replies, counted.abandoned), (0, 0, 0));
}

#[test]
fn a_put_that_waits_for_an_engine_is_no_duplicate_though_many_gets_pass_it() {
    let few = ["dma.receive_engines=1", "dma.setup=100 us", "dma.fifo=100", "limits.gets=200"];
    let mut rig = Rig::new(2, &few);
    rig.process(0, 0, async |user| {
        let buffer = user.room(100);
        user.register(buffer).await.unwrap();
        user.sim.until(LATER).await;
        for _ in 0..5 {
            user.put(user.to(1, buffer, buffer.0)).await.unwrap();
        }
        for _ in 0..100 {
            user.get(user.to(1, (buffer.0, 0), buffer.0)).await.unwrap();
        }
    });
    rig.process(1, 0, async |user| {
        let buffer = user.room(100);
        user.register(buffer).await.unwrap();
        for _ in 0..5 {
            assert_eq!(user.event().await.unwrap().kind, EventKind::Received);
        }
    });
    rig.run();
    assert_eq!((rig.cards[1].statistics().unusable, rig.cards[1].statistics().gets_served), (0, 100));
}

#[test]
fn a_put_keeps_the_addresses_that_it_began_with() {
    let mut rig = Rig::new(1, &[]);
    rig.process(0, 0, async |user| {
        let buffer = user.room(64 * 4096);
        user.register(buffer).await.unwrap();
        user.sim.until(LATER).await;
        let poster = user.clone();
        user.sim.spawn(async move {
            poster.put(poster.to(0, buffer, buffer.0)).await.unwrap();
        });
        // At this time, the driver is writing descriptors of the put.
        user.sim.delay(nicety_types::Duration::from_us(1)).await;
        user.card.set_physical(true);
        while user.event().await.unwrap().kind != EventKind::Received {}
        assert_eq!(user.card.statistics().tlb_hits, 64);
    });
    rig.run();
}
