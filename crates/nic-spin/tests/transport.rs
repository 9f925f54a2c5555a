//! The times of reliable transport, calculated by hand to the picosecond. Also cards without reliable transport on a
//! faulty network.

use crate::support::*;
use nicety_fabric::{Faults, LinkFaults, NodeFailure, Place, Rates};
use nicety_host::Allocation;
use nicety_kernel::{Config, RunError};
use nicety_nic_core::parts::transport::TransportStatistics;
use nicety_nic_spin::Unusable;
use nicety_portals::{
    AckRequest, Atomic, AtomicOp, Datatype, EventKind, FailType, FetchRequest, GetRequest, Md, Me, MeOptions,
    Operand, PutRequest, Request,
};
use nicety_types::{Duration, NodeId, Time};
use proptest::prelude::*;

/// Returns faults that lose these packets of the direction from rank `from`.
fn lose(from: u32, drop: &[u64]) -> LinkFaults {
    let (rates, down) = (Rates::default(), vec![]);
    LinkFaults { from: Place::Host(from), to: Place::Host(1 - from), rates, down, drop: drop.to_vec() }
}

fn rig(overrides: &[&str], links: Vec<LinkFaults>) -> Rig {
    let reliable = ["transport.reliable=true", "transport.timeout=10 us"];
    Rig::with_faults(
        &[&reliable, overrides].concat(),
        Config::default(),
        &Faults { links, ..Faults::default() },
    )
}

/// Returns a put of the whole allocation, with all events.
fn acknowledged(node: &Node, memory: &Allocation) -> PutRequest {
    let (start, length) = (memory.address(), memory.len());
    let md = node.card.md_bind(Md { start, length, eq: Some(node.eq), ..Md::default() }).unwrap();
    let target = NodeId(1 - node.sim.node().0);
    PutRequest { ack: AckRequest::Full, ..PutRequest::new(md, length, target, PT, 5) }
}

/// Sends one message from rank 0 to rank 1. Returns the time in ps from the post until rank 1 has noticed the message,
/// the stages of this time, and the transport statistics.
fn one_way(mut rig: Rig, len: usize) -> (u64, Vec<(&'static str, u64)>, [TransportStatistics; 2]) {
    let measured = std::rc::Rc::new(std::cell::RefCell::new((0, Vec::new())));
    rig.program(0, async move |a| {
        let request = a.request(&a.alloc(&pattern(len, 3)), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    let noted = measured.clone();
    rig.program(1, async move |b| {
        let memory = b.alloc(&vec![0; len]);
        b.append(entry(&memory, 5)).await.unwrap();
        b.start().await;
        b.event(EventKind::Put).await;
        assert_eq!(b.read(&memory), pattern(len, 3));
        *noted.borrow_mut() = (b.sim.now().since(START).ps(), b.parts());
    });
    rig.run();
    let (time, parts) = measured.take();
    (time, parts, [0, 1].map(|rank| rig.nodes[rank].card.transport_statistics()))
}

#[test]
fn without_a_loss_it_costs_its_header() {
    // In ns, as without reliable transport: 65 + 250 + 33.4 + 0.160 + 30 + 250.125 + 65. The 20 B of header add 20 ps
    // per byte.
    let (time, parts, statistics) = one_way(rig(&[], vec![]), 8);
    assert_eq!(time, 693_685 + 400);
    let names: Vec<_> = parts.iter().map(|part| part.0).collect();
    assert_eq!(names, ["post", "bus", "link", "match", "deposit", "notice"]);
    let acknowledged = TransportStatistics { acknowledgements: 1, ..Default::default() };
    assert_eq!(statistics, [Default::default(), acknowledged]);
    // The spec sets the time of a check and the size of the header.
    let (time, parts, _) = one_way(rig(&["transport.check=7 ns", "transport.header=100 B"], vec![]), 8);
    assert_eq!(time, 693_685 + 2000 + 7000);
    assert_eq!(parts.iter().find(|part| part.0 == "transport"), Some(&("transport", 7000)));
}

#[test]
fn a_lost_packet_is_sent_again_after_the_timeout() {
    // The packet's first byte leaves at 315 ns and its last byte at 315.560 ns. The packet is lost, and is resent at 10
    // 315 ns.
    let (time, parts, statistics) = one_way(rig(&[], vec![lose(0, &[1])]), 8);
    assert_eq!(time, 10_000_000 + 694_085);
    assert_eq!(
        parts,
        [
            ("post", 65_000),
            ("bus", 250_000),
            ("link", 560 + 33_960),
            ("transport, retransmit", 10_315_000 - 315_560),
            ("match", 30_000),
            ("deposit", 250_125),
            ("notice", 65_000)
        ]
    );
    let [sender, receiver] = statistics;
    assert_eq!(sender, TransportStatistics { retransmitted: 1, timeouts: 1, ..Default::default() });
    assert_eq!(receiver, TransportStatistics { acknowledgements: 1, ..Default::default() });
    // The packet is lost three times, so the timeout doubles twice.
    let (time, ..) = one_way(rig(&[], vec![lose(0, &[1, 2, 3])]), 8);
    assert_eq!(time, 10_000_000 + 20_000_000 + 40_000_000 + 694_085);
}

#[test]
fn a_gap_is_refused_at_once() {
    // In ns: two packets have 4116 B with headers, and take 82.32 each. The first is lost. The second leaves at 397.32
    // and arrives at 513.04. Its refusal of 20 B is back at 513.04 + 0.4 + 33.4 = 546.84. Both packets are resent. The
    // first arrives at 662.56, is matched at 692.56, and is handed to the bus until 756.458. The second is handed over
    // until 820.356. The event takes 250, and the notice 65.
    let (time, parts, statistics) = one_way(rig(&[], vec![lose(0, &[1])]), 8192);
    assert_eq!(time, 820_356 + 250_000 + 65_000);
    // Without the loss, the first packet arrives at 430.72 and is handed to the bus until 524.618.
    assert_eq!(one_way(rig(&[], vec![]), 8192).0, 524_618 + 63_898 + 250_000 + 65_000);
    assert_eq!(parts.iter().map(|part| part.1).sum::<u64>(), time);
    assert!(parts.iter().any(|part| part.0 == "transport, retransmit"), "{parts:?}");
    let [sender, receiver] = statistics;
    assert_eq!(sender, TransportStatistics { retransmitted: 2, ..Default::default() });
    let expected =
        TransportStatistics { out_of_order: 1, refusals: 1, acknowledgements: 2, ..Default::default() };
    assert_eq!(receiver, expected);
}

#[test]
fn a_lost_acknowledgement_costs_a_packet_and_no_time() {
    let (time, _, [sender, receiver]) = one_way(rig(&[], vec![lose(1, &[1])]), 8);
    assert_eq!(time, 694_085);
    assert_eq!(sender, TransportStatistics { retransmitted: 1, timeouts: 1, ..Default::default() });
    assert_eq!(receiver, TransportStatistics { duplicated: 1, acknowledgements: 2, ..Default::default() });
}

#[test]
fn a_full_window_waits_for_acknowledgements() {
    // In ns: packets of 1000 + 20 B take 20.4 on the link. With a window of one packet, the next packet starts when the
    // acknowledgement is back. This takes 20.4 + 33.4 for the packet, and 0.4 + 33.4 for the acknowledgement.
    let (time, parts, _) = one_way(
        rig(
            &["transport.window=1", "packet.payload=1000 B", "match.first=0 ns", "match.further=0 ns"],
            vec![],
        ),
        3000,
    );
    let last = 315_000 + 2 * (20_400 + 33_400 + 400 + 33_400);
    assert_eq!(time, last + 20_400 + 33_400 + 15_600 + 250_000 + 65_000);
    assert!(parts.iter().any(|part| part.0 == "transport, queued"), "{parts:?}");
}

#[test]
fn an_undeliverable_message_fails_at_its_initiator() {
    // The message is sent from 315 ns on, resent after 10 and 20 us, and given up after 40 us more. A timeout starts
    // with the retransmission of the last of three packets, 2 x 82.32 ns after that of the first. The event crosses the
    // bus.
    let failure = NodeFailure { node: Place::Host(1), at: START };
    let faults = Faults { nodes: vec![failure], ..Faults::default() };
    let overrides = ["transport.reliable=true", "transport.timeout=10 us", "transport.retries=2"];
    let mut rig = Rig::with_faults(&overrides, Config::default(), &faults);
    rig.program(0, async move |a| {
        let memory = a.alloc(&pattern(10_000, 3));
        let request = acknowledged(&a, &memory);
        a.start().await;
        a.put(&request).await.unwrap();
        let event = a.event(EventKind::Send).await;
        assert_eq!(event.fail, FailType::Undeliverable);
        assert_eq!(a.sim.now(), after(315_000 + 70_000_000 + 250_000 + 65_000 + 4 * 82_320));
        a.parts();
        // The next message fails at once.
        a.put(&request).await.unwrap();
        let event = a.event(EventKind::Send).await;
        assert_eq!(event.fail, FailType::Undeliverable);
    });
    rig.run();
    let undelivered = rig.nodes[0].card.wire().undelivered();
    assert_eq!(undelivered.iter().map(|message| message.bytes).collect::<Vec<_>>(), [10_000, 10_000]);
    assert_eq!(undelivered[0].destination, NodeId(1));
    assert_eq!(rig.nodes[0].card.transport_statistics().timeouts, 3);
}

/// Rank 0 gets `len` bytes from rank 1. The network loses the packets of rank 1 with the numbers `lost`. Packet 1 is
/// the acknowledgement of the get. Returns the time at which rank 0 has noticed the failure, and the transport
/// statistics of both cards.
fn failed_get(lost: &[u64], len: u64) -> (Time, [TransportStatistics; 2]) {
    let mut rig = rig(&["transport.retries=2"], vec![lose(1, lost)]);
    let noted = std::rc::Rc::new(std::cell::Cell::new(Time::ZERO));
    let when = noted.clone();
    rig.program(0, async move |a| {
        let memory = a.alloc(&vec![0; len as usize]);
        let (start, length) = (memory.address(), memory.len());
        let md = a.card.md_bind(Md { start, length, eq: Some(a.eq), ..Md::default() }).unwrap();
        a.start().await;
        a.post(GetRequest::new(md, len, NodeId(1), PT, 5)).await.unwrap();
        let event = a.event(EventKind::Reply).await;
        assert_eq!((event.fail, event.mlength), (FailType::Undeliverable, 0));
        when.set(a.sim.now());
        a.card.md_release(md).unwrap();
        assert_eq!(a.card.pending_operations(), 0);
    });
    rig.program(1, async move |b| {
        let memory = b.alloc(&pattern(len as usize, 3));
        b.append(Me { options: MeOptions::OP_GET, ..entry(&memory, 5) }).await.unwrap();
        b.start().await;
    });
    rig.run();
    let lost = rig.nodes[1].card.wire().undelivered();
    assert_eq!(lost.len(), 1, "the reply");
    (noted.get(), [0, 1].map(|rank| rig.nodes[rank].card.transport_statistics()))
}

#[test]
fn a_get_whose_reply_is_given_up_fails_at_its_initiator() {
    // The get leaves at 315 ns, with 20 B of header. Its acknowledgement is back at 315 + 2 (0.4 + 33.4) ns. The reply
    // is lost three times and given up after 10 + 20 + 40 us. The initiator probes this time after the acknowledgement.
    // This first probe is slightly too early, because the reply was sent half a microsecond after the acknowledgement.
    // The second probe detects the failure, and the event crosses the bus.
    let acknowledged = 315_000 + 2 * 33_800;
    let asked = acknowledged + 70_000_000;
    let (time, [asking, giving_up]) = failed_get(&[2, 3, 4], 8);
    assert_eq!(time, after(asked + 2 * 33_800 + 70_000_000 + 2 * 33_800 + 250_000 + 65_000));
    assert_eq!((asking.timeouts, giving_up.timeouts), (0, 3));
    // The remote card sends no packet at all. The initiator gives up its probe after the same time.
    let nothing: Vec<u64> = (2..100).collect();
    let (time, [asking, _]) = failed_get(&nothing, 8);
    assert_eq!(time, after(asked + 70_000_000 + 250_000 + 65_000));
    assert_eq!((asking.timeouts, asking.retransmitted), (3, 2));
    // Only the first of the reply's two packets arrives.
    let second: Vec<u64> = (3..100).collect();
    let (time, _) = failed_get(&second, 8192);
    assert_eq!(time, after(asked + 70_000_000 + 250_000 + 65_000));
}

#[test]
fn an_answer_may_take_its_time() {
    // A card computes for a millisecond before it replies. It is probed once, then once for each allowed timeout, and
    // then no more. The reply takes as long as without probes.
    let late = |overrides: &[&str]| {
        let mut rig = rig(&[&["atomic.compute=1 ms"], overrides].concat(), vec![]);
        let noted = std::rc::Rc::new(std::cell::Cell::new(Time::ZERO));
        let when = noted.clone();
        rig.program(0, async move |a| {
            let request = a.request(&a.alloc(&[1; 8]), 5);
            let memory = a.alloc(&[0; 8]);
            let (start, length) = (memory.address(), memory.len());
            let get_md = a.card.md_bind(Md { start, length, eq: Some(a.eq), ..Md::default() }).unwrap();
            let atomic = Atomic::new(AtomicOp::Sum, Datatype::Uint64).unwrap();
            let (put, operand) = (request, Operand::NONE);
            a.start().await;
            let fetch = FetchRequest { get_md, local_get_offset: 0, put, atomic, operand };
            a.post(Request::FetchAtomic(fetch)).await.unwrap();
            assert_eq!(a.event(EventKind::Reply).await.fail, FailType::Ok);
            when.set(a.sim.now());
            assert_eq!(a.read(&memory), [7; 8]);
        });
        rig.program(1, async move |b| {
            let options = MeOptions::OP_PUT | MeOptions::OP_GET;
            b.append(Me { options, ..entry(&b.alloc(&[7; 8]), 5) }).await.unwrap();
            b.start().await;
        });
        rig.run();
        (noted.get(), rig.nodes[1].card.transport_statistics().acknowledgements)
    };
    let (often, acknowledgements) = late(&["transport.retries=0"]);
    assert_eq!(acknowledgements, 2);
    assert_eq!(late(&["transport.retries=1"]), (often, 3));
    assert_eq!(late(&["transport.timeout=2 ms"]), (often, 1));
}

fn any_rates() -> impl Strategy<Value = Rates> {
    let rate = || prop_oneof![Just(0.0), 0.0..0.5f64];
    (rate(), rate(), rate(), rate(), 0u64..5_000_000).prop_map(
        |(loss, corruption, duplication, reordering, delay)| Rates {
            loss,
            corruption,
            duplication,
            reordering,
            delay: Duration::from_ps(delay),
            burst: 0.0,
        },
    )
}

proptest! {
    /// Without reliable transport, messages arrive incomplete. But no card panics, and all slots are freed.
    #[test]
    fn a_card_without_transport_survives_a_bad_network(
        rates in any_rates(), seed: u64, lens in prop::collection::vec(0usize..3000, 1..20), buffer in 1u32..8
    ) {
        let faults = Faults { seed, rates, ..Faults::default() };
        let buffer = format!("buffer.packets={buffer}");
        let mut rig = Rig::with_faults(&["packet.payload=512 B", &buffer], Config::default(), &faults);
        for rank in 0..2 {
            let lens = lens.clone();
            rig.program(rank, async move |node| {
                let memory = node.alloc(&[0; 3000]);
                node.append(entry(&memory, 5)).await.unwrap();
                let requests: Vec<_> = lens
                    .iter()
                    .map(|&len| acknowledged(&node, &node.alloc(&pattern(len, 3))))
                    .collect();
                node.start().await;
                for request in &requests {
                    node.put(request).await.unwrap();
                }
                for _ in &lens {
                    node.event(EventKind::Put).await;
                }
            });
        }
        match rig.try_run() {
            Ok(_) | Err(RunError::Deadlock { .. }) => {}
            Err(error) => prop_assert!(false, "{}", error),
        }
        prop_assert_eq!(rig.failures(), []);
        let lost: u64 = rig.network.statistics().faults.iter().map(|link| link.lost + link.corrupted).sum();
        let unusable: Vec<Unusable> = rig.nodes.iter().map(|node| node.card.unusable()).collect();
        if rates.are_zero() {
            prop_assert_eq!((lost, unusable), (0, vec![Unusable::default(); 2]));
        }
        prop_assert!(rig.world.now() >= Time::ZERO);
    }
}
