//! The limits in the paper, and protection between processes.

use super::support::{Rig, at, spec};
use nicety_nic_qnix::{QnixError, TransferMethod};
use std::rc::Rc;

const MIB: u64 = 1 << 20;

#[test]
fn the_65th_process_is_refused() {
    let mut rig = Rig::new(2, &[]);
    let card = rig.cards[0].clone();
    for number in 0..65 {
        rig.process(0, number, async move |user| {
            let opened = user.open().await;
            if number < 64 {
                assert_eq!(opened, Ok(number));
            } else {
                assert_eq!(opened, Err(QnixError::NoInterface { limit: 64 }));
            }
            assert!(user.open().await.is_err(), "a process has one interface");
        });
    }
    rig.run();
    assert_eq!(card.interfaces().len(), 64);
    assert_eq!(card.kernel().counters().calls, 130);
}

#[test]
fn a_closed_interface_has_no_owner() {
    let mut rig = Rig::new(2, &[]);
    rig.process(0, 5, async move |user| {
        assert_eq!(user.open().await, Ok(0));
        user.close().await.unwrap();
        assert!(matches!(user.close().await, Err(QnixError::NotYours { owner: None, .. })));
        assert_eq!(user.open().await, Ok(0));
    });
    rig.run();
}

#[test]
fn pending_operations_have_their_limits() {
    let mut rig = Rig::new(2, &[]);
    rig.process(0, 0, async move |user| {
        user.open().await.unwrap();
        let buffer = user.room(64);
        for _ in 0..32 {
            user.receive(buffer, None, None, TransferMethod::Translate).await.unwrap();
        }
        let refused = user.receive(buffer, None, None, TransferMethod::Translate).await.unwrap_err();
        assert_eq!(refused, QnixError::Receives { limit: 32 });
        assert!(refused.to_string().contains("32 receives of the process have not ended"), "{refused}");
        assert!(matches!(user.close().await, Err(QnixError::Pending { operations: 32 })));
    });
    // A send ends when its last packet is on the link. The link needs more time for 32 messages of 2 MiB than the
    // process needs to post them.
    rig.process(1, 0, async move |user| {
        user.open().await.unwrap();
        let buffer = user.room(2 * MIB);
        for _ in 0..32 {
            user.send(buffer, at(1, 0), 0, TransferMethod::Translate).await.unwrap();
        }
        let refused = user.send(buffer, at(1, 0), 0, TransferMethod::Translate).await.unwrap_err();
        assert_eq!(refused, QnixError::Sends { limit: 32 });
    });
    rig.run();
}

#[test]
fn an_operation_is_one_until_its_end_has_been_seen() {
    let mut rig = Rig::new(2, &[]);
    rig.process(0, 0, async move |user| {
        user.open().await.unwrap();
        let buffer = user.room(8);
        let mut sends = Vec::new();
        for _ in 0..32 {
            sends.push(user.send(buffer, at(1, 0), 0, TransferMethod::Auto).await.unwrap());
        }
        // All messages are on the link by this time.
        user.sim.delay(nicety_types::Duration::from_ns(1_000_000)).await;
        let refused = user.send(buffer, at(1, 0), 0, TransferMethod::Auto).await.unwrap_err();
        assert_eq!(refused, QnixError::Sends { limit: 32 });
        user.wait(sends[7]).await.unwrap();
        user.send(buffer, at(1, 0), 0, TransferMethod::Auto).await.unwrap();
        assert!(user.wait(sends[7]).await.is_err(), "it was told once");
    });
    rig.run();
}

#[test]
fn messages_and_pools_have_their_limits() {
    let mut rig = Rig::new(2, &[]);
    rig.process(0, 0, async move |user| {
        user.open().await.unwrap();
        let (address, _) = user.room(4 * MIB);
        let send = async |address, bytes, how| user.send((address, bytes), at(1, 0), 0, how).await;
        let long = send(address, 2 * MIB + 1, TransferMethod::Auto).await.unwrap_err();
        assert_eq!(long, QnixError::Message { bytes: 2 * MIB + 1, limit: 2 * MIB });
        assert!(long.to_string().contains("send several messages"), "{long}");
        let pages = send(address + 1, 2 * MIB, TransferMethod::Translate).await.unwrap_err();
        assert_eq!(pages, QnixError::Pages { pages: 513, limit: 512 });
        let programmed = send(address, 1025, TransferMethod::Pio).await.unwrap_err();
        assert_eq!(programmed, QnixError::TooLongForPio { bytes: 1025, limit: 1024 });
        assert_eq!(
            send(address, 4096, TransferMethod::Copy).await,
            Err(QnixError::PoolFull { bytes: 4096, free: 0 })
        );
        assert!(matches!(send(address, 4096, TransferMethod::Pool).await, Err(QnixError::NotInPool { .. })));
        for bytes in [0, 8 * MIB + 1] {
            assert_eq!(user.pool(bytes).await.unwrap_err(), QnixError::Pool { bytes, limit: 8 * MIB });
        }
        user.pool(8 * MIB).await.unwrap();
        assert_eq!(user.pool(4096).await.unwrap_err(), QnixError::PoolThere);
        // A message of 2 MiB that begins inside a page has one page too many for a translation. A copy works, and the
        // library chooses the copy itself.
        send(address + 1, 2 * MIB, TransferMethod::Auto).await.unwrap();
        let nowhere = user.send((address, 8), at(2, 0), 0, TransferMethod::Auto).await.unwrap_err();
        assert_eq!(nowhere.to_string(), "no node 2: the cluster has nodes 0 to 1");
        let refused = user.send((address, 8), at(1, 64), 0, TransferMethod::Auto).await.unwrap_err();
        assert_eq!(refused.to_string(), "no interface 64: a card has interfaces 0 to 63");
    });
    rig.run();
}

#[test]
fn a_process_touches_nothing_of_another() {
    let mut rig = Rig::new(2, &[]);
    let card = rig.cards[0].clone();
    let shared = Rc::new(std::cell::Cell::new((0, 0)));
    let theirs = shared.clone();
    rig.process(0, 1, async move |user| {
        assert_eq!(user.open().await, Ok(0));
        theirs.set(user.bytes(b"secret"));
    });
    rig.process(0, 2, async move |user| {
        user.sim.delay(nicety_types::Duration::from_ns(10_000)).await;
        let own = user.bytes(b"own");
        // The process uses another process's interface: first without an interface of its own, then with one.
        for _ in 0..2 {
            user.vni.set(0);
            let refused = user.send(own, at(1, 0), 0, TransferMethod::Auto).await.unwrap_err();
            assert_eq!(refused, QnixError::NotYours { vni: 0, owner: Some(1), process: 2 });
            assert!(user.receive(own, None, None, TransferMethod::Auto).await.is_err());
            assert!(user.pool(4096).await.is_err());
            assert!(user.close().await.is_err());
            if user.process.card().interfaces().len() == 1 {
                assert_eq!(user.open().await, Ok(1));
            }
        }
        user.vni.set(1);
        // The process uses another process's memory, and memory beyond its own.
        let refused = user.send(shared.get(), at(1, 0), 0, TransferMethod::Auto).await.unwrap_err();
        assert!(matches!(refused, QnixError::NotYourMemory { process: 2, .. }), "{refused}");
        assert!(user.receive(shared.get(), None, None, TransferMethod::Translate).await.is_err());
        assert!(user.send((own.0, own.1 + 1), at(1, 0), 0, TransferMethod::Auto).await.is_err());
        assert!(user.send((u64::MAX, 2), at(1, 0), 0, TransferMethod::Auto).await.is_err());
    });
    rig.run();
    // Each of two rounds has four refused calls with another process's interface. Four refused calls with memory
    // follow.
    assert_eq!(card.statistics().refused, 12);
    assert_eq!((card.statistics().sends, card.statistics().receives), (0, 0));
}

#[test]
fn specs_that_cannot_be_are_refused() {
    for (text, expected) in [
        ("pio.limit=16 KiB", ["8192 B", "one Context Region"]),
        ("memory.size=32 MiB", ["too small to buffer a packet", "limits.vnis"]),
        ("program.poll=0", ["program.poll", "1"]),
        ("dma.channels=0", ["dma.channels", "1"]),
        ("kernel.page=5 KiB", ["a page is a power of two", "4 KiB"]),
    ] {
        let error = spec(&[text]).unwrap_err();
        assert!(expected.iter().all(|part| error.contains(part)), "{text}: {error}");
    }
}
