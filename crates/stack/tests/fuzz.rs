//! Bytes from the network are untrusted. Neither arbitrary bytes nor changed valid frames may cause a panic or exceed a
//! limit.

use crate::net::*;
use nicety_stack::*;
use proptest::prelude::*;

fn many(n: u32) -> ProptestConfig {
    ProptestConfig { cases: n * ProptestConfig::default().cases / 256, ..Default::default() }
}

/// Runs a network for a while, and checks that no stack exceeds its number of connections.
fn exercise(net: &mut Net) {
    net.pump();
    for _ in 0..20 {
        if !net.step(net.now + us(3_000_000)) {
            break;
        }
    }
    for end in &mut net.ends {
        let _ = segment(&[], 1, |_| ());
        assert!(end.connections() <= 16);
    }
}

proptest! {
    #![proptest_config(many(512))]

    #[test]
    fn any_bytes_can_be_received(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..8)) {
        let mut net = Net::of([StackSpec { connections: 16, ..spec(1) }, spec(2)]);
        net.ends[0].listen(80, 4, &plain()).unwrap();
        for mut frame in frames {
            let now = net.now;
            net.ends[0].receive(now, &frame, ChecksumStatus::Good);
            // The same bytes follow an Ethernet header that is addressed to this host.
            for kind in [[8, 0], [8, 6], [0x86, 0xdd], [0x81, 0]] {
                let mut other = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
                other.extend(kind);
                other.extend(&frame);
                net.ends[0].receive(now, &other, ChecksumStatus::Good);
                let _ = fill(&mut other);
                let _ = segment(&other, 100, |_| ());
                let _ = Toeplitz::default().frame(&other);
                coalesce(&mut frame, &other, 9000);
            }
        }
        exercise(&mut net);
    }

    /// The test changes or repeats some frames of real connections, and corrects their checksums.
    #[test]
    fn changed_frames_do_no_harm(
        seed in any::<u64>(),
        big in any::<bool>(),
        v6 in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let receive_buffer = if big { 300_000 } else { 5000 };
        let with = |n| StackSpec { connections: 16, receive_buffer, timestamps: seed % 2 == 0, seed, ..spec(n) };
        let mut net = Net::of([with(1), with(2)]);
        let to = if v6 { at6(2, 80) } else { at(2, 80) };
        net.log = Some(Vec::new());
        let listener = net.ends[1].listen(80, 4, &plain()).unwrap();
        let client = net.ends[0].connect(net.now, to, None, &plain()).unwrap();
        let mut server = None;
        for (n, (which, place, value)) in changes.into_iter().enumerate() {
            let _ = net.send(0, client, &pattern(seed, 2000));
            server = server.or(net.ends[1].accept(listener).ok());
            if let Some(server) = server {
                let _ = net.send(1, server, &pattern(seed, 1000));
                let _ = if n % 3 == 0 { net.recv(1, server) } else { Ok(vec![]) };
            }
            if n % 11 == 10 {
                let now = net.now;
                let _ = net.ends[0].shutdown(now, client);
            }
            net.pump();
            let log = net.log.as_ref().unwrap();
            let (_, mut frame) = log[which.index(log.len())].clone();
            let headers = frame.len().min(if v6 { 94 } else { 74 });
            let at = place.index(headers);
            frame[at] = value;
            let _ = fill(&mut frame);
            let (now, end) = (net.now, usize::from(frame[5] == 2));
            net.ends[end].receive(now, &frame, ChecksumStatus::Good);
            if n % 4 == 0 {
                net.step(net.now + us(1000));
            }
        }
        exercise(&mut net);
    }
}
