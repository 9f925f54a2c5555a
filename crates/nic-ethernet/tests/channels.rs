//! Tests the channel and the soft ring of a frame, and the order of frames in them.

use super::support::{PLAIN_NIU, Rig, at, pattern};
use nicety_nic_ethernet::SocketKind;
use nicety_stack::Toeplitz;
use nicety_types::Duration;
use std::cell::RefCell;
use std::rc::Rc;

/// Connections are hashed to channels and soft rings according to Microsoft's specification of receive-side scaling.
#[test]
fn connections_are_hashed_to_channels_and_soft_rings() {
    let (connections, bytes) = (12, 30_000);
    let mut rig = Rig::new(PLAIN_NIU, 2, &["receive.channels=3", "stack.rings=4"]);
    let ends = Rc::new(RefCell::new(Vec::new()));
    let seen = ends.clone();
    rig.program(0, async move |user| {
        for _ in 0..connections {
            let socket = user.connected(1, 80).await;
            let (own, peer) = user.node.sockets().ends(socket).unwrap();
            seen.borrow_mut().push((own.unwrap(), peer.unwrap()));
            user.send(socket, &pattern(bytes, 0)).await.unwrap();
            user.close(socket).await.unwrap();
        }
    });
    rig.program(1, async move |user| {
        let listening = user.listening(80).await;
        for _ in 0..connections {
            let socket = user.accept(listening).await.unwrap();
            assert_eq!(user.recv_all(socket, 4096).await.unwrap(), pattern(bytes, 0));
            user.close(socket).await.unwrap();
        }
    });
    rig.run();
    let report = rig.report(1);
    let (mut channels, mut rings) = (vec![0; 3], vec![0; 4]);
    for (own, peer) in ends.take() {
        assert_eq!(peer, at(1, 80));
        let hash = Toeplitz::default().hash(own.ip(), peer.ip(), Some((own.port(), peer.port())));
        channels[hash as usize % 3] += 1;
        rings[hash as usize / 3 % 4] += 1;
    }
    // Each connection has the same number of frames, except that acknowledgements may be combined.
    let each = report.card.frames_received as f64 / f64::from(connections);
    let close = |frames: &[u64], connections: &[u32]| {
        frames.iter().zip(connections).all(|(&frames, &count)| {
            (frames as f64 - f64::from(count) * each).abs() <= 2.0 * f64::from(count)
        })
    };
    assert!(close(&report.channels, &channels), "{:?} {channels:?}", report.channels);
    assert!(close(&report.soft_rings, &rings), "{:?} {rings:?}", report.soft_rings);
    assert_eq!(report.channels.iter().sum::<u64>(), report.card.frames_received);
    assert_eq!(report.soft_rings.iter().sum::<u64>(), report.card.frames_received);
}

/// As many CPUs as the spec states handle the channels' interrupts. A busy CPU does not delay the others.
#[test]
fn interrupts_are_spread_over_cpus() {
    let finish = |cpus: &str| {
        let mut rig = Rig::new(PLAIN_NIU, 2, &[cpus, "driver.receive=20000", "interrupts.time=1 us"]);
        rig.program(0, async |user| {
            user.sim.delay(Duration::from_us(200)).await;
            for port in 0..32 {
                let socket = user.open(SocketKind::Datagram);
                for _ in 0..4 {
                    user.send_to(socket, &[1; 64], at(1, 1000 + port)).await.unwrap();
                }
            }
        });
        rig.program(1, async |user| {
            let sockets: Vec<u32> = (0..32).map(|_| user.open(SocketKind::Datagram)).collect();
            for (port, &socket) in (1000..).zip(&sockets) {
                user.bind(socket, port).await.unwrap();
            }
            for socket in sockets {
                for _ in 0..4 {
                    user.recv_from(socket, 64).await.unwrap();
                }
            }
        });
        rig.run().end
    };
    let (one, eight) = (finish("interrupts.cpus=1"), finish("interrupts.cpus=8"));
    // At 1.2 GHz, 128 frames of 20 000 instructions take 2.1 ms on one CPU.
    assert!(one.ps() > 2_100_000_000, "{one:?}");
    // The hash does not distribute consecutive ports evenly, so eight CPUs are less than eight times as fast.
    assert!(eight.ps() * 3 < one.ps() * 2, "{eight:?} {one:?}");
}
