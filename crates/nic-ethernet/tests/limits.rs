//! Tests the behaviour of cards and hosts at their limits.

use super::support::{PLAIN_NIU, Rig, at, pattern, read};
use nicety_fabric::{Faults, Rates};
use nicety_nic_ethernet::{Setting, SocketKind};
use nicety_types::{Duration, Time};
use std::cell::Cell;
use std::rc::Rc;

#[test]
fn a_full_receive_ring_drops_and_counts() {
    let overrides = ["receive.entries=4", "interrupts.time=1 ms", "receive.channels=1"];
    let mut rig = Rig::new(PLAIN_NIU, 2, &overrides);
    rig.program(0, async |user| {
        let socket = user.open(SocketKind::Datagram);
        for n in 0..10 {
            user.send_to(socket, &[n; 10], at(1, 9)).await.unwrap();
        }
    });
    rig.program(1, async |user| {
        let socket = user.open(SocketKind::Datagram);
        user.bind(socket, 9).await.unwrap();
        for n in 0..4 {
            assert_eq!(user.recv_from(socket, 100).await.unwrap().0, [n; 10]);
        }
    });
    rig.run();
    let card = rig.report(1).card;
    assert_eq!((card.frames_received, card.ring_full, card.receive_interrupts), (4, 6, 1));
}

#[test]
fn buffers_that_the_driver_gives_back_are_used_again() {
    let mut rig = Rig::new(PLAIN_NIU, 2, &["receive.entries=40", "receive.channels=1"]);
    rig.program(0, async |user| {
        let socket = user.connected(1, 80).await;
        user.send(socket, &pattern(1 << 20, 5)).await.unwrap();
        user.close(socket).await.unwrap();
    });
    rig.program(1, async |user| {
        let listening = user.listening(80).await;
        let socket = user.accept(listening).await.unwrap();
        assert!(user.recv_all(socket, 1 << 16).await.unwrap() == pattern(1 << 20, 5));
    });
    rig.run();
    assert!(rig.report(1).card.frames_received > 700);
}

#[test]
fn a_frame_longer_than_a_buffer_is_dropped_and_takes_none() {
    let small = ["receive.buffer=600 B", "frames.mtu=576 B", "receive.entries=2", "receive.channels=1"];
    let mut rig = Rig::of(&[(PLAIN_NIU, &[]), (PLAIN_NIU, &small)], Faults::default());
    rig.program(0, async |user| {
        let socket = user.open(SocketKind::Datagram);
        for bytes in [700, 700, 700, 500] {
            user.send_to(socket, &vec![1; bytes], at(1, 9)).await.unwrap();
        }
    });
    rig.program(1, async |user| {
        let socket = user.open(SocketKind::Datagram);
        user.bind(socket, 9).await.unwrap();
        assert_eq!(user.recv_from(socket, 2000).await.unwrap().0.len(), 500);
    });
    rig.run();
    let card = rig.report(1).card;
    assert_eq!((card.too_long, card.frames_received, card.ring_full), (3, 1, 0));
}

#[test]
fn a_full_soft_ring_drops_and_counts() {
    let mut rig = Rig::new(PLAIN_NIU, 2, &["stack.backlog=3", "stack.receive=1000000", "stack.rings=1"]);
    rig.program(0, async |user| {
        let socket = user.open(SocketKind::Datagram);
        for _ in 0..32 {
            user.send_to(socket, &[1; 10], at(1, 9)).await.unwrap();
        }
    });
    rig.program(1, async |user| {
        let socket = user.open(SocketKind::Datagram);
        user.bind(socket, 9).await.unwrap();
        for _ in 0..4 {
            user.recv_from(socket, 100).await.unwrap();
        }
    });
    rig.run();
    let report = rig.report(1);
    // The stack processes one frame, and three frames wait.
    assert_eq!((report.card.frames_received, report.backlog_full), (32, 28));
}

#[test]
fn who_finds_no_descriptor_waits_for_an_interrupt() {
    let mut rig = Rig::new(PLAIN_NIU, 2, &["transmit.entries=2", "transmit.channels=1"]);
    rig.program(0, async |user| {
        let threads = (0..8).map(|n| {
            let thread = user.thread(n);
            async move {
                let socket = thread.connected(1, 80).await;
                thread.send(socket, &pattern(100_000, 1)).await.unwrap();
                thread.close(socket).await.unwrap();
            }
        });
        nicety_kernel::join_all(threads).await;
    });
    rig.program(1, async |user| {
        let listening = user.listening(80).await;
        for _ in 0..8 {
            let socket = user.accept(listening).await.unwrap();
            assert!(user.recv_all(socket, 1 << 16).await.unwrap() == pattern(100_000, 1));
        }
    });
    rig.run();
    assert!(rig.report(0).card.transmit_interrupts > 10, "{:?}", rig.report(0).card);
}

/// A writer that sleeps for room is woken when a third of the buffer is free, and not at each acknowledgement.
#[test]
fn a_writer_is_woken_when_there_is_room_for_more_than_a_little() {
    let switches = |percent: &str| {
        let mut rig = Rig::new(PLAIN_NIU, 2, &[percent, "interrupts.time=1 us"]);
        rig.program(0, async |user| {
            let socket = user.open(SocketKind::Stream);
            user.set(socket, Setting::SendBuffer(64 << 10)).await.unwrap();
            user.connect(socket, at(1, 80)).await.unwrap();
            user.send(socket, &pattern(2 << 20, 1)).await.unwrap();
            user.close(socket).await.unwrap();
        });
        rig.program(1, async |user| {
            let listening = user.listening(80).await;
            let socket = user.accept(listening).await.unwrap();
            user.recv_all(socket, 1 << 16).await.unwrap();
        });
        rig.run();
        rig.report(0).groups.iter().find(|group| group.group == "copy").unwrap().instructions
    };
    // Both runs copy the same bytes, in whole lines. A copy in more pieces has more partial lines.
    let (third, any) = (switches("sockets.wake_room=33"), switches("sockets.wake_room=1"));
    assert!(third < any, "{third} {any}");
}

#[test]
fn a_writer_whose_peer_reads_nothing_gives_up_in_the_end() {
    let mut rig = Rig::new(PLAIN_NIU, 2, &["tcp.timeout=10 s"]);
    rig.program(0, async |user| {
        let socket = user.connected(1, 80).await;
        let error = user.send(socket, &pattern(2 << 20, 1)).await.unwrap_err();
        assert_eq!(error.name(), "ETIMEDOUT");
    });
    rig.program(1, async |user| {
        let listening = user.listening(80).await;
        user.accept(listening).await.unwrap();
        user.sim.delay(Duration::from_us(1_000_000)).await;
    });
    rig.run();
}

#[test]
fn impossible_specs_are_refused_in_words() {
    for (overrides, expected) in [
        (
            &["frames.mtu=9000 B"][..],
            "frames.mtu=9000 B: a frame of 9018 bytes, with 9000 of frames.mtu, does not fit",
        ),
        (&["frames.mtu=100 B"], "frames.mtu"),
        (&["tcp.min_rto=0 s"], "tcp.min_rto"),
        (&["receive.small=256 B"], "receive.small=256 B: an entry is a single buffer"),
        (
            &["receive.block=8 KiB", "receive.small=1 KiB", "receive.medium=512 B"],
            "receive.small=1 KiB: 1024 B is not between 64 B and the next larger buffer, 512 B",
        ),
        (&["receive.block=8 KiB", "receive.medium=2 KiB"], "receive.medium=2 KiB: 2048 B is not between"),
    ] {
        let error = read(PLAIN_NIU, overrides).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_lost_tail_is_probed_where_the_spec_has_probes() {
    let took = |overrides: &[&str]| {
        let rates = Rates { loss: 0.1, ..Rates::default() };
        let mut rig = Rig::of(&[(PLAIN_NIU, overrides); 2], Faults { seed: 3, rates, ..Faults::default() });
        let end = Rc::new(Cell::new(Time::ZERO));
        let seen = end.clone();
        rig.program(0, async move |user| {
            let socket = user.connected(1, 80).await;
            for n in 0..20 {
                user.send(socket, &[n; 100]).await.unwrap();
                assert_eq!(user.recv(socket, 100).await.unwrap(), [n; 100]);
            }
            seen.set(user.sim.now());
            user.close(socket).await.unwrap();
        });
        rig.program(1, async move |user| {
            let listening = user.listening(80).await;
            let socket = user.accept(listening).await.unwrap();
            for n in 0..20 {
                assert_eq!(user.recv(socket, 100).await.unwrap(), [n; 100]);
                user.send(socket, &[n; 100]).await.unwrap();
            }
        });
        rig.run();
        end.get()
    };
    // Without probes, each lost message is sent again only after tcp.min_rto, 400 ms.
    let (probed, waited) = (took(&[]), took(&["tcp.loss_probe=false"]));
    assert!(waited.since(probed) > Duration::from_us(400_000), "{probed:?} {waited:?}");
}
