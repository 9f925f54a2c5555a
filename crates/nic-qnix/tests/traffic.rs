//! Traffic of many processes: every byte arrives, in order, under any contention.

use super::support::{Rig, User, at};
use nicety_nic_qnix::TransferMethod;
use nicety_types::Duration;
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// Returns the bytes of message number `n` of a sending interface.
fn pattern(from: (u32, u32), n: u64, bytes: u64) -> Vec<u8> {
    let salt = u64::from(from.0) * 31 + u64::from(from.1) * 7 + n * 13;
    (0..bytes).map(|i| ((i * 2_654_435_761 + salt * 97) >> 3) as u8).collect()
}

#[test]
fn sixty_four_processes_at_once_get_every_byte() {
    let mut rig = Rig::new(2, &[]);
    for node in 0..2 {
        for number in 0..64 {
            rig.process(node, number, async move |user: User| {
                let own = user.open().await.unwrap();
                // The process sends to the next interface number on the other node, and receives from the previous one.
                let (to, from) = ((own + 1) % 64, (own + 63) % 64);
                user.sim.delay(Duration::from_ns(200_000)).await;
                let sizes = [0, 1, 1024, 1025, 5000, 40_000];
                let mut receives = Vec::new();
                for (n, bytes) in sizes.into_iter().enumerate() {
                    let buffer = user.room(bytes);
                    let receive = user
                        .receive(buffer, Some(at(1 - node, from)), None, TransferMethod::Auto)
                        .await
                        .unwrap();
                    receives.push((receive, buffer, n as u64));
                }
                let mut sends = Vec::new();
                for (n, bytes) in sizes.into_iter().enumerate() {
                    let buffer = user.bytes(&pattern((node, own), n as u64, bytes));
                    sends.push(
                        user.send(buffer, at(1 - node, to), n as u64, TransferMethod::Auto).await.unwrap(),
                    );
                }
                for send in sends {
                    user.wait(send).await.unwrap();
                }
                for (receive, buffer, n) in receives {
                    let completed = user.wait(receive).await.unwrap();
                    assert_eq!((completed.tag, completed.bytes), (n, buffer.1), "in order");
                    assert_eq!(user.look(buffer), pattern((1 - node, from), n, buffer.1));
                }
            });
        }
    }
    let cards = rig.cards.clone();
    rig.run();
    for card in cards {
        assert_eq!((card.statistics().sends, card.statistics().receives), (64 * 6, 64 * 6));
        assert_eq!(card.memory().used, 0);
        // Each process makes one system call to register. A buffer of 5000 B or 40 000 B needs one more at either end,
        // but a buffer of 1025 B needs none.
        let kernel = card.kernel().counters();
        assert_eq!((kernel.interrupts, kernel.wakes), (0, 0));
        assert_eq!(kernel.calls, 64 + kernel.pins);
    }
}

#[test]
fn nothing_enters_the_kernel_between_set_up_and_the_end() {
    let mut rig = Rig::new(2, &[]);
    let counted = Rc::new(RefCell::new(Vec::new()));
    for node in 0..2 {
        let counted = counted.clone();
        rig.process(node, 0, async move |user: User| {
            user.open().await.unwrap();
            let pool = user.pool(1 << 20).await.unwrap();
            user.sim.delay(Duration::from_ns(1_000_000)).await;
            let before = user.process.card().kernel().counters();
            let private = user.room(60_000);
            for (bytes, how) in [
                (0, TransferMethod::Auto),
                (1024, TransferMethod::Pio),
                (60_000, TransferMethod::Pool),
                (60_000, TransferMethod::Copy),
                (900, TransferMethod::Auto),
            ] {
                let address = if how == TransferMethod::Pool { pool.address() + 400_000 } else { private.0 };
                let receive = user.receive(
                    (address, bytes),
                    None,
                    None,
                    if how == TransferMethod::Pool { how } else { TransferMethod::Copy },
                );
                let receive = receive.await.unwrap();
                let send = user.send((address, bytes), at(1 - node, 0), 0, how).await.unwrap();
                user.wait(send).await.unwrap();
                while user.test(receive).await.unwrap().is_none() {}
            }
            counted.borrow_mut().push((before, user.process.card().kernel().counters()));
        });
    }
    rig.run();
    let counted = counted.take();
    assert_eq!(counted.len(), 2);
    for (before, after) in counted {
        assert_eq!((before.calls, before.pins), (2, 1), "to register, and for the pool");
        assert_eq!(before, after);
    }
}

#[test]
fn senders_share_the_link_equally() {
    let mut rig = Rig::new(2, &[]);
    let ends = Rc::new(RefCell::new(Vec::new()));
    for number in 0..8_u32 {
        rig.process(1, number, async move |user: User| {
            user.open().await.unwrap();
            let buffer = user.room(1 << 20);
            let receive = user.receive(buffer, None, None, TransferMethod::Translate).await.unwrap();
            user.wait(receive).await.unwrap();
        });
        let ends = ends.clone();
        rig.process(0, number, async move |user: User| {
            user.open().await.unwrap();
            user.sim.delay(Duration::from_ns(500_000)).await;
            let send =
                user.send(user.room(1 << 20), at(1, number), 0, TransferMethod::Translate).await.unwrap();
            user.wait(send).await.unwrap();
            ends.borrow_mut().push(user.sim.now().ps());
        });
    }
    rig.run();
    let ends = ends.take();
    let (first, last) = (ends.iter().min().unwrap(), ends.iter().max().unwrap());
    // 8 MiB take 42 ms on the link. One packet from each of the eight senders takes 0.17 ms.
    assert!(last - first < 1_000_000_000, "{ends:?}");
}

#[test]
fn interfaces_take_turns_at_the_link() {
    // A packet takes 1 ms on the link. All short messages have thus reached the card before the second packet leaves.
    let mut rig = Rig::new(2, &["link.gap=1 MB/s"]);
    let received = Rc::new(RefCell::new(Vec::new()));
    for number in 0..4_u32 {
        let received = received.clone();
        rig.process(1, number, async move |user: User| {
            let own = user.open().await.unwrap();
            let mut receives = Vec::new();
            for _ in 0..4 {
                receives.push(
                    user.receive(user.room(1024), None, None, TransferMethod::Translate).await.unwrap(),
                );
            }
            for receive in receives {
                user.wait(receive).await.unwrap();
                received.borrow_mut().push(own);
            }
        });
        rig.process(0, number, async move |user: User| {
            let own = user.open().await.unwrap();
            user.sim.delay(Duration::from_us(200)).await;
            let mut sends = Vec::new();
            for _ in 0..4 {
                sends.push(user.send(user.room(1024), at(1, own), 0, TransferMethod::Pio).await.unwrap());
            }
            for send in sends {
                user.wait(send).await.unwrap();
            }
        });
    }
    rig.run();
    let received = received.take();
    assert!(received.chunks(4).all(|turn| (0..4).all(|own| turn.contains(&own))), "{received:?}");
}

#[derive(Clone, Debug)]
struct Sending {
    from: (u32, u32),
    to: (u32, u32),
    bytes: u64,
    how: TransferMethod,
    delay: u64,
}

fn hows() -> impl Strategy<Value = TransferMethod> {
    prop_oneof![Just(TransferMethod::Auto), Just(TransferMethod::Translate), Just(TransferMethod::Copy)]
}

fn sendings() -> impl Strategy<Value = Vec<Sending>> {
    let bytes = prop_oneof![Just(0_u64), 1..64_u64, 1000..1050_u64, 4000..4200_u64, 0..30_000_u64];
    let end = || (0..2_u32, 0..3_u32);
    let sending = (end(), end(), bytes, hows(), 0..200_000_u64)
        .prop_map(|(from, to, bytes, how, delay)| Sending { from, to, bytes, how, delay });
    prop::collection::vec(sending, 1..24)
}

/// Overrides that make some resources scarce.
fn scarcity() -> impl Strategy<Value = Vec<&'static str>> {
    let scarce = vec![
        "buffer.packets=1",
        "memory.staging=1",
        "dma.channels=1",
        "pio.limit=0 B",
        "packet.payload=512 B",
        "bus.latency=100 ns",
    ];
    let bus = prop_oneof![
        Just(&[][..]),
        Just(&["bus.kind=plain", "bus.gap=1 ns/B"][..]),
        Just(&["bus.kind=pcie"][..]),
    ];
    let count = 0..=scarce.len();
    (prop::sample::subsequence(scarce, count), bus).prop_map(|(scarce, bus)| [&scarce, bus].concat())
}

/// Runs the sends. Each receiver posts its receives in its own order, before or while messages arrive. Returns the end
/// of the run in picoseconds and the number of events.
fn exchange(
    all: &[Sending],
    how: TransferMethod,
    late: u64,
    overrides: &[&str],
    shards: usize,
) -> (u64, u64) {
    let mut rig = Rig::with_shards(2, overrides, shards);
    for node in 0..2 {
        for number in 0..3 {
            let mine: Vec<_> = all.iter().filter(|s| s.from == (node, number)).cloned().collect();
            let theirs: Vec<_> = all.iter().filter(|s| s.to == (node, number)).cloned().collect();
            rig.process(node, number, async move |user: User| {
                let own = user.open().await.unwrap();
                user.pool(1 << 20).await.unwrap();
                user.sim.until(nicety_types::Time::from_ps(2_000_000_000)).await;
                // The card assigns interface numbers in the order in which processes open their interfaces. Here this
                // is the order of the processes' numbers.
                assert_eq!(own, number);
                let (sender, receiver) = (user.clone(), user.clone());
                sender.path.set(user.path.get());
                let sending = async move {
                    let mut counts = std::collections::BTreeMap::<_, u64>::new();
                    let mut posted = Vec::new();
                    for s in mine {
                        sender.sim.delay(Duration::from_ns(s.delay)).await;
                        let n = counts.entry(s.to).or_default();
                        let buffer = sender.bytes(&pattern(s.from, *n, s.bytes));
                        posted.push(sender.send(buffer, at(s.to.0, s.to.1), *n, s.how).await.unwrap());
                        *n += 1;
                    }
                    for send in posted {
                        sender.wait(send).await.unwrap();
                    }
                };
                let receiving = async move {
                    receiver.sim.delay(Duration::from_ns(late)).await;
                    let mut posted = Vec::new();
                    // The receives are sorted by the sender's number. Receives from the same sender stay in the order
                    // of its sends.
                    let mut by_pair: Vec<_> = theirs.clone();
                    by_pair.sort_by_key(|s| s.from);
                    let mut counts = std::collections::BTreeMap::<_, u64>::new();
                    for s in by_pair {
                        let n = counts.entry(s.from).or_default();
                        let buffer = receiver.room(s.bytes);
                        let from = Some(at(s.from.0, s.from.1));
                        let receive = receiver.receive(buffer, from, None, how).await.unwrap();
                        posted.push((receive, buffer, s.from, *n));
                        *n += 1;
                    }
                    for (receive, buffer, from, n) in posted {
                        let completed = receiver.wait(receive).await.unwrap();
                        assert_eq!((completed.tag, completed.bytes), (n, buffer.1), "order of {from:?}");
                        assert_eq!(receiver.look(buffer), pattern(from, n, buffer.1));
                    }
                };
                nicety_kernel::join(sending, receiving).await;
            });
        }
    }
    let cards = rig.cards.clone();
    let summary = rig.run();
    for card in &cards {
        assert_eq!(card.statistics().strays + card.statistics().unusable, 0);
        assert_eq!(card.memory().used, 3 * 256 * 16, "only the pools' descriptors are left");
    }
    let count = |of: fn(&nicety_nic_qnix::Statistics) -> u64| -> u64 {
        cards.iter().map(|card| of(&card.statistics())).sum()
    };
    assert_eq!(count(|s| s.packets_sent), count(|s| s.packets_received));
    assert_eq!(count(|s| s.sends), all.len() as u64);
    assert_eq!(count(|s| s.doorbells), 2 * all.len() as u64);
    (summary.end.ps(), summary.events)
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(48))]

    /// Every message arrives once, in order and complete. A run in two shards ends at the same time as in one shard.
    #[test]
    fn random_traffic_arrives(
        all in sendings(), how in hows(), late in prop_oneof![Just(0), 0..2_000_000_u64], overrides in scarcity()
    ) {
        let (end, _) = exchange(&all, how, late, &overrides, 1);
        prop_assert_eq!(exchange(&all, how, late, &overrides, 2).0, end);
    }
}
