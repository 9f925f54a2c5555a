//! The card's memory: the use by interfaces and buffered messages, and a full memory.

use super::support::{Rig, at, spec};
use nicety_kernel::RunError;
use nicety_nic_qnix::TransferMethod;
use nicety_types::Duration;

#[test]
fn every_byte_of_the_cards_memory_is_accounted_for() {
    let spec = spec(&[]).unwrap();
    assert_eq!(spec.contexts(), 512 << 10);
    // 64 interfaces of 516 KiB each, the control program of 8 KiB, and 16 receive and 4 transmit buffers for packets of
    // 4 KiB.
    let fixed = 64 * (516 << 10) + (8 << 10) + 20 * 4096;
    assert_eq!(spec.fixed_memory(), fixed);
    let rig = Rig::new(2, &[]);
    let memory = rig.cards[0].memory();
    assert_eq!((memory.size, memory.fixed, memory.used), (64 << 20, fixed, 0));
    assert_eq!(memory.left(), (64 << 20) - fixed);
}

#[test]
fn descriptors_of_pools_are_in_it_until_they_are_closed() {
    let mut rig = Rig::new(2, &[]);
    let card = rig.cards[0].clone();
    let seen = card.clone();
    rig.process(0, 0, async move |user| {
        user.open().await.unwrap();
        user.pool(8 << 20).await.unwrap();
        assert_eq!(seen.memory().used, 2048 * 16);
        assert_eq!(seen.kernel().counters().pages_pinned, 2048);
        user.close().await.unwrap();
        assert_eq!(seen.memory().used, 0);
        assert_eq!(seen.kernel().counters().unpins, 1);
    });
    rig.run();
    assert_eq!(card.memory().peak, 2048 * 16);
}

#[test]
fn messages_wait_in_it_for_their_receives() {
    let mut rig = Rig::new(2, &[]);
    let card = rig.cards[1].clone();
    rig.process(0, 0, async move |user| {
        user.open().await.unwrap();
        for (tag, bytes) in [(1, 10_000_u64), (2, 0), (3, 100)] {
            let data: Vec<u8> = (0..bytes).map(|i| (i * tag) as u8).collect();
            let send = user.send(user.bytes(&data), at(1, 0), tag, TransferMethod::Auto).await.unwrap();
            user.wait(send).await.unwrap();
        }
    });
    let seen = card.clone();
    rig.process(1, 0, async move |user| {
        user.open().await.unwrap();
        user.sim.delay(Duration::from_ns(1_000_000)).await;
        // The first message has three packets, and each other message has one. The status of a packet has 64 B.
        assert_eq!(seen.memory().used, 10_100 + 5 * 64);
        assert_eq!(seen.statistics().buffered, 5);
        // The first receive takes a later message by its tag. The other receives take the messages in the order of
        // arrival.
        let buffer = user.room(10_000);
        for (tag, expected, bytes) in [(Some(3), 3, 100), (None, 1, 10_000), (None, 2, 0)] {
            let receive = user.receive(buffer, Some(at(0, 0)), tag, TransferMethod::Auto).await.unwrap();
            let completed = user.wait(receive).await.unwrap();
            assert_eq!((completed.tag, completed.bytes, completed.peer), (expected, bytes, at(0, 0)));
            let data: Vec<u8> = (0..bytes).map(|i| (i * expected) as u8).collect();
            assert_eq!(user.look((buffer.0, bytes)), data);
        }
        assert_eq!(seen.memory().used, 0);
    });
    rig.run();
}

/// With these overrides, the card's memory has room for four buffered packets.
const SMALL: [&str; 3] = ["limits.vnis=2", "memory.size=1081 KiB", "buffer.packets=2"];

#[test]
fn a_full_memory_holds_the_sender_back_and_loses_nothing() {
    let mut rig = Rig::new(2, &SMALL);
    assert!((4 * 4160..5 * 4160).contains(&rig.cards[1].memory().left()), "{:?}", rig.cards[1].memory());
    let receiver = rig.cards[1].clone();
    let data = |message: u64| (0..20_000).map(|i| (i * 7 + message) as u8).collect::<Vec<u8>>();
    rig.process(0, 0, async move |user| {
        user.open().await.unwrap();
        for message in 0..5 {
            let send =
                user.send(user.bytes(&data(message)), at(1, 0), 0, TransferMethod::Auto).await.unwrap();
            user.wait(send).await.unwrap();
        }
        // The last send was held back until the receiver posted its receives after 5 ms.
        assert!(user.sim.now().ps() > 5_000_000_000);
    });
    let seen = receiver.clone();
    rig.process(1, 0, async move |user| {
        user.open().await.unwrap();
        user.sim.delay(Duration::from_ns(5_000_000)).await;
        assert!(seen.statistics().buffer_stalls > 0);
        assert_eq!(seen.statistics().buffered, 4);
        for message in 0..5 {
            let buffer = user.room(20_000);
            let receive = user.receive(buffer, None, None, TransferMethod::Translate).await.unwrap();
            user.wait(receive).await.unwrap();
            assert_eq!(user.look(buffer), data(message));
        }
    });
    rig.run();
    assert_eq!(receiver.memory().used, 0);
    assert_eq!(receiver.statistics().packets_received, 25);
}

#[test]
fn closing_an_interface_gives_its_memory_to_the_others() {
    let mut rig = Rig::new(2, &SMALL);
    let card = rig.cards[1].clone();
    rig.process(0, 0, async move |user| {
        user.open().await.unwrap();
        let send = user.send(user.room(16_384), at(1, 0), 0, TransferMethod::Auto).await.unwrap();
        user.wait(send).await.unwrap();
        // The card has no memory for this message until the other process closes its interface.
        let send = user.send(user.bytes(&[5; 3000]), at(1, 1), 0, TransferMethod::Auto).await.unwrap();
        user.wait(send).await.unwrap();
    });
    rig.process(1, 0, async move |user| {
        user.open().await.unwrap();
        user.sim.delay(Duration::from_ns(1_000_000)).await;
        user.close().await.unwrap();
    });
    let seen = card.clone();
    rig.process(1, 1, async move |user| {
        user.open().await.unwrap();
        user.sim.delay(Duration::from_ns(2_000_000)).await;
        assert_eq!(seen.memory().used, 3064);
        let buffer = user.room(3000);
        let receive = user.receive(buffer, None, None, TransferMethod::Auto).await.unwrap();
        user.wait(receive).await.unwrap();
        assert_eq!(user.look(buffer), [5; 3000]);
    });
    rig.run();
    assert_eq!(card.statistics().strays, 1);
}

#[test]
fn messages_to_a_closed_interface_are_counted_and_dropped() {
    let mut rig = Rig::new(2, &[]);
    let card = rig.cards[1].clone();
    rig.process(0, 0, async move |user| {
        user.open().await.unwrap();
        let send = user.send(user.room(10_000), at(1, 3), 0, TransferMethod::Auto).await.unwrap();
        user.wait(send).await.unwrap();
    });
    rig.run();
    assert_eq!((card.statistics().strays, card.memory().used), (1, 0));
}

#[test]
fn a_receive_without_room_gets_the_beginning() {
    let mut rig = Rig::new(2, &[]);
    rig.process(0, 0, async move |user| {
        user.open().await.unwrap();
        for _ in 0..2 {
            let send = user.send(user.bytes(&[9; 10_000]), at(1, 0), 0, TransferMethod::Auto).await.unwrap();
            user.wait(send).await.unwrap();
        }
    });
    rig.process(1, 0, async move |user| {
        user.open().await.unwrap();
        user.pool(64 << 10).await.unwrap();
        for how in [TransferMethod::Translate, TransferMethod::Copy] {
            let buffer = user.room(8192);
            let receive = user.receive((buffer.0, 5000), None, None, how).await.unwrap();
            let completed = user.wait(receive).await.unwrap();
            assert!(completed.truncated && completed.bytes == 10_000);
            assert_eq!(user.look(buffer), [vec![9; 5000], vec![0; 3192]].concat());
        }
    });
    rig.run();
}

#[test]
fn a_deadlock_names_the_doorbell_that_a_process_waits_for() {
    let mut rig = Rig::new(2, &[]);
    rig.process(0, 4, async move |user| {
        user.open().await.unwrap();
        let receive = user.receive(user.room(8), None, None, TransferMethod::Auto).await.unwrap();
        user.wait(receive).await.unwrap();
    });
    let error = rig.fail();
    assert!(matches!(error, RunError::Deadlock { .. }));
    assert!(error.to_string().contains("the doorbell of a receive (process 4, interface 0)"), "{error}");
}
