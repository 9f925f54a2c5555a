//! Tests that every written byte is read once and in order.

use super::support::{Rig, User, at, pattern};
use nicety_fabric::{Faults, Rates};
use nicety_nic_ethernet::{Report, Setting, SocketKind};
use proptest::prelude::*;

/// The actions of one side of a connection.
#[derive(Clone, Debug)]
struct Side {
    writes: Vec<usize>,
    most: u64,
    send_buffer: u64,
    receive_buffer: u64,
    nodelay: bool,
}

fn side() -> impl Strategy<Value = Side> {
    let size = prop::sample::select(vec![1usize, 2, 63, 64, 1447, 1448, 1449, 5000, 70_000]);
    let buffer = prop::sample::select(vec![2000u64, 16 << 10, 256 << 10]);
    let most = prop::sample::select(vec![1000u64, 1448, 65_536]);
    (prop::collection::vec(size, 0..6), most, buffer.clone(), buffer, any::<bool>()).prop_map(
        |(writes, most, send_buffer, receive_buffer, nodelay)| Side {
            writes,
            most,
            send_buffer,
            receive_buffer,
            nodelay,
        },
    )
}

/// Single receive buffers. Joined frames need consecutive ones.
const ROWS: [&str; 3] = ["receive.block=0 B", "receive.small=0 B", "receive.medium=0 B"];

fn cards() -> impl Strategy<Value = Vec<&'static str>> {
    let ring = prop::sample::select(vec!["receive.entries=32", "receive.entries=1024"]);
    let channels = prop::sample::select(vec!["transmit.channels=1", "transmit.channels=8"]);
    let sums = prop::sample::select(vec!["frames.checksums=card", "frames.checksums=host"]);
    let cpus = prop::sample::select(vec!["threads.cpus=1", "threads.cpus=64"]);
    let mtu = prop::sample::select(vec!["frames.mtu=600 B", "frames.mtu=1500 B"]);
    let rings = prop::sample::select(vec!["stack.rings=0", "stack.rings=1", "stack.rings=16"]);
    // Offloads need the card's checksums.
    let offloads = prop_oneof![
        sums.prop_map(|sums| vec![sums]),
        Just(vec!["frames.tso=64 KiB"]),
        Just([&["receive.lro=40 KiB", "receive.lro_time=5 us"], &ROWS[..]].concat()),
        Just(
            [
                &[
                    "frames.tso=20 KiB",
                    "receive.lro=9 KiB",
                    "receive.lro_time=1 us",
                    "receive.lro_connections=1"
                ],
                &ROWS[..]
            ]
            .concat()
        ),
    ];
    (ring, channels, cpus, mtu, rings, offloads)
        .prop_map(|(a, b, c, d, e, more)| [vec![a, b, c, d, e], more].concat())
}

/// Carries out connections between these sides, and checks each byte that is read.
fn carry_out(card: &str, overrides: &[&str], sides: &[(Side, Side)], faults: Faults) -> [Report; 2] {
    let mut rig = Rig::of(&[(card, overrides); 2], faults);
    for node in 0..2 {
        let sides = sides.to_vec();
        rig.program(node, async move |user| {
            let threads = (0u32..).zip(sides).map(|(n, sides)| {
                let (reader, writer) = (user.thread(2 * n), user.thread(2 * n + 1));
                let (own, peer) = if node == 0 { sides } else { (sides.1, sides.0) };
                connection(node, 80 + n as u16, reader, writer, own, peer)
            });
            nicety_kernel::join_all(threads).await;
        });
    }
    rig.run();
    [0, 1].map(|node| rig.report(node))
}

/// Runs a node's side of a connection: one thread reads all bytes, and another writes.
async fn connection(node: u32, port: u16, reader: User, writer: User, own: Side, peer: Side) {
    let socket = reader.open(SocketKind::Stream);
    reader.set(socket, Setting::SendBuffer(own.send_buffer)).await.unwrap();
    reader.set(socket, Setting::ReceiveBuffer(own.receive_buffer)).await.unwrap();
    reader.set(socket, Setting::NoDelay(own.nodelay)).await.unwrap();
    let socket = if node == 0 {
        reader.connect(socket, at(1, port)).await.unwrap();
        socket
    } else {
        reader.bind(socket, port).await.unwrap();
        reader.listen(socket, 4).await.unwrap();
        reader.accept(socket).await.unwrap()
    };
    let write = async {
        for (seed, &bytes) in (0..).zip(&own.writes) {
            writer.send(socket, &pattern(bytes, seed)).await.unwrap();
        }
        writer.shutdown(socket).await.unwrap();
    };
    let (read, ()) = nicety_kernel::join(reader.recv_all(socket, own.most), write).await;
    let pieces = (0..).zip(&peer.writes).map(|(seed, &bytes)| pattern(bytes, seed));
    assert!(read.unwrap() == pieces.flatten().collect::<Vec<u8>>());
    reader.close(socket).await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24 * ProptestConfig::default().cases / 256))]

    #[test]
    fn both_ways_at_once(
        sides in prop::collection::vec((side(), side()), 1..4),
        overrides in cards(),
        integrated in any::<bool>(),
    ) {
        let card = if integrated { "niagara2-niu" } else { "niagara2-neptune" };
        for report in carry_out(card, &overrides, &sides, Faults::default()) {
            // The stack may drop a probe of a closed window.
            prop_assert_eq!((report.card.fcs_errors, report.card.unknown_destination), (0, 0));
        }
    }

    #[test]
    fn on_a_network_that_loses_repeats_delays_and_damages_frames(
        sides in prop::collection::vec((side(), side()), 1..4),
        overrides in cards(),
        seed in any::<u64>(),
    ) {
        let rates = Rates { loss: 0.03, corruption: 0.02, duplication: 0.02, reordering: 0.02, ..Rates::default() };
        carry_out("niagara2-niu", &overrides, &sides, Faults { seed, rates, ..Faults::default() });
    }
}
