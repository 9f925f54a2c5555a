//! Portals operations and handlers work between two cards that exchange only the bytes of packets.

use crate::support::code::{Code, program};
use crate::support::{Node, PT, Rig, entry, pattern, spec};
use nicety_fabric::NetworkSpec;
use nicety_nic_testing::relay::{self, Relay};
use nicety_portals::{
    AckRequest, Atomic, AtomicOp, AtomicRequest, Datatype, Event, EventKind, GetRequest, MdOptions, Me,
    MeOptions, PutRequest,
};
use nicety_types::{NodeId, Recorder, Time};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The events of both hosts (rank, time, event), the memory of both hosts, and the number of unusable packets.
type Outcome = (Vec<(u32, Time, Event)>, [Vec<u8>; 2], u64);

const BYTES: usize = 10_000;

fn run(overrides: &[&str], relay: Relay) -> Outcome {
    let spec = Arc::new(spec(&[&["buffer.packets=3", "packet.payload=1 KiB"], overrides].concat()));
    let (world, ports, between) =
        relay::link(relay, &NetworkSpec { link: spec.link, switch: spec.switch, router: spec.router });
    let mut rig = Rig::on(&spec, world, between, ports, [Recorder::off(), Recorder::off()]);
    let events = Rc::new(RefCell::new(Vec::new()));
    let memory = Rc::new(RefCell::new([vec![], vec![]]));
    for rank in 0..2 {
        let (events, memory) = (events.clone(), memory.clone());
        rig.program(rank, async move |node: Node| {
            let bytes = node.alloc(&pattern(BYTES, rank as u64));
            let (room, handled) = (node.alloc(&[0; BYTES]), node.alloc(&[0; BYTES]));
            let any = MeOptions::OP_PUT | MeOptions::OP_GET;
            node.append(Me { options: entry(&room, 0).options | any, ..entry(&room, 0) }).await.unwrap();
            let succeed = || Code::new().returns(0);
            let all = program(Some(succeed()), Some(succeed()), Some(succeed()));
            node.append_with(entry(&handled, 1), &all, &[]).await.unwrap();
            node.start().await;
            let (peer, md) = (NodeId(1 - rank as u32), node.counted_md(&bytes, MdOptions::empty()));
            let put = |bits| PutRequest::new(md, BYTES as u64, peer, PT, bits);
            node.put(&PutRequest { ack: AckRequest::Full, ..put(0) }).await.unwrap();
            node.put(&put(1)).await.unwrap();
            node.post(GetRequest::new(md, BYTES as u64, peer, PT, 0)).await.unwrap();
            let sum = Atomic::new(AtomicOp::Sum, Datatype::Uint32).unwrap();
            let put = PutRequest::new(md, 4000, peer, PT, 0);
            node.post(AtomicRequest { put, atomic: sum }).await.unwrap();
            for kind in [EventKind::Ack, EventKind::Reply, EventKind::Put, EventKind::Put, EventKind::Atomic]
            {
                let event = node.event(kind).await;
                events.borrow_mut().push((rank as u32, node.sim.now(), event));
            }
            memory.borrow_mut()[rank] = [bytes, room].map(|part| node.read(&part)).concat();
        });
    }
    rig.run();
    let unusable = rig.nodes.iter().map(|node| node.card.unusable().total()).sum();
    (events.take(), memory.take(), unusable)
}

#[test]
fn operations_are_carried_out_from_the_bytes_of_packets_alone() {
    for overrides in [&[][..], &["transport.reliable=true"]] {
        let found = run(overrides, Relay::FromBytes);
        assert_eq!(found, run(overrides, Relay::Unchanged), "{overrides:?}");
        assert_eq!((found.0.len(), found.2), (10, 0));
    }
}
