//! A card frees all resources of a packet: slots and shares of the packet buffer. Flow control disables the right
//! entry.

use crate::support::code::{Code, payload, program, word};
use crate::support::*;
use nicety_hpu::asm::*;
use nicety_nic_processors::{ApplicationConfig, Attach, State};
use nicety_nic_spin::Generated;
use nicety_portals::{AckRequest, EventKind, FailType, List, Md, Me, PtOptions, PutRequest};
use nicety_types::NodeId;
use std::cell::Cell;
use std::rc::Rc;

/// A portal table entry with flow control.
const CONTROLLED: u32 = 2;

/// Returns a put of 8 bytes to `pt` of the other node, with all events.
fn heard(node: &Node, pt: u32) -> PutRequest {
    let memory = node.alloc(&[1; 8]);
    let md = Md { start: memory.address(), length: 8, eq: Some(node.eq), ..Md::default() };
    PutRequest {
        ack: AckRequest::Full,
        ..PutRequest::new(node.card.md_bind(md).unwrap(), 8, NodeId(1 - node.sim.node().0), pt, 5)
    }
}

/// Appends a match entry to a portal table entry.
async fn append(node: &Node, pt: u32, me: Me) {
    let mut path = node.path.get();
    let appending = node.card.me_append(&node.cpus, &mut path, pt, me, List::Priority).await.unwrap();
    node.card.appended(&node.cpus, &mut path, appending).await.unwrap();
    node.path.set(path);
}

#[test]
fn acknowledgements_give_their_slots_back() {
    let mut rig = Rig::new(&["buffer.packets=2"]);
    rig.program(0, async move |a| {
        let request = heard(&a, PT);
        a.start().await;
        for _ in 0..10 {
            a.put(&request).await.unwrap();
            assert_eq!(a.event(EventKind::Ack).await.fail, FailType::Ok);
        }
    });
    rig.program(1, async move |b| {
        b.append(entry(&b.alloc(&[0; 8]), 5)).await.unwrap();
    });
    rig.run();
}

#[test]
fn a_card_that_discards_gives_slots_back() {
    let mut rig = Rig::new(&["buffer.packets=2"]);
    rig.program(0, async move |a| {
        let request = PutRequest { ack: AckRequest::None, ..heard(&a, PT) };
        a.start().await;
        for _ in 0..10 {
            a.put(&request).await.unwrap();
            a.event(EventKind::Send).await;
        }
    });
    rig.program(1, async move |b| {
        let (target, packet_bytes) = (NodeId(0), 8);
        let generated =
            Generated { target, pt: PT, match_bits: 5, packet_bytes, message_packets: 1, messages: 1 };
        b.card.generate(&generated, |_, bytes| bytes.fill(0)).await;
    });
    rig.run();
    assert_eq!(rig.nodes[1].card.statistics().matched + rig.nodes[1].card.statistics().dropped_total(), 0);
}

#[test]
fn a_share_of_the_packet_buffer_comes_back() {
    // The application's share is four of eight slots. If slots leaked, the fifth message would find the share used up.
    let mut rig = Rig::new(&["buffer.packets=8", "hpu.scheduling=weighted-fair"]);
    let ready = Rc::new(Cell::new(false));
    let done = ready.clone();
    rig.program(0, async move |a| {
        let request = heard(&a, CONTROLLED);
        a.start().await;
        assert!(ready.get());
        for _ in 0..12 {
            a.put(&request).await.unwrap();
            assert_eq!(a.event(EventKind::Ack).await.fail, FailType::Ok);
        }
    });
    rig.program(1, async move |b| {
        let application = b.card.application(ApplicationConfig::new("half")).unwrap();
        b.card
            .pt_alloc_with(Some(CONTROLLED), Some(b.card.eq_alloc(16).unwrap()), PtOptions::FLOWCTRL)
            .unwrap();
        let handlers = payload(Code::enter().returns(0));
        let attach = Attach { handlers: &handlers, application, state: State::Own(&[]), memory: None };
        let handlers = Some(b.card.attach_as(&attach).unwrap());
        append(&b, CONTROLLED, Me { handlers, ..entry(&b.alloc(&[0; 8]), 5) }).await;
        done.set(true);
    });
    rig.run();
    assert_eq!(rig.nodes[1].card.statistics().dropped_total(), 0);
}

#[test]
fn flow_control_concerns_its_own_portal_table_entry_alone() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async move |a| {
        let (slow, unmatched) = (heard(&a, PT), heard(&a, CONTROLLED));
        a.start().await;
        a.put(&slow).await.unwrap();
        a.put(&unmatched).await.unwrap();
        assert_eq!(a.event(EventKind::Ack).await.fail, FailType::PtDisabled);
        assert_eq!(a.event(EventKind::Ack).await.fail, FailType::Ok);
    });
    rig.program(1, async move |b| {
        let eq = b.card.eq_alloc(16).unwrap();
        b.card.pt_alloc_with(Some(CONTROLLED), Some(eq), PtOptions::FLOWCTRL).unwrap();
        let memory = b.alloc(&[7; 8]);
        // The completion handler shows whether flow control was triggered. This handler begins 160 us after the
        // message.
        let show = Code::enter_completion().with(&[sw(A1, 0, S0)]);
        let slow = Code::enter().spin(100_000).returns(0);
        let handlers = program(None, Some(slow), Some(show.publish(4).returns(0)));
        b.append_with(entry(&memory, 5), &handlers, &[9; 8]).await.unwrap();
        let what = || "an event".to_string();
        let mut path = b.path.get();
        let event = b.card.eq_wait(&b.cpus, &mut path, eq, |_| true, what).await.unwrap();
        assert_eq!(event.kind, EventKind::PtDisabled);
        b.path.set(path);
        assert_eq!(b.event(EventKind::Put).await.fail, FailType::Ok);
        assert_eq!(word(&b.read(&memory), 0), 0, "its own portal table entry has no flow control");
    });
    rig.run();
}

#[test]
fn a_match_that_disables_nothing_tells_no_message_of_flow_control() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async move |a| {
        let requests = [5, 6].map(|match_bits| PutRequest { match_bits, ..heard(&a, PT) });
        a.start().await;
        for request in &requests {
            a.put(request).await.unwrap();
        }
    });
    rig.program(1, async move |b| {
        let memory = [5, 6].map(|_| b.alloc(&[7; 8]));
        // The second message is matched while the first message's handler runs.
        let show = Code::enter_completion().with(&[sw(A1, 0, S0)]);
        let slow = Code::enter().spin(10_000).returns(0);
        let handlers = program(None, Some(slow), Some(show.publish(4).returns(0)));
        for (memory, match_bits) in memory.iter().zip(5..) {
            b.append_with(entry(memory, match_bits), &handlers, &[9; 8]).await.unwrap();
        }
        for _ in 0..2 {
            assert_eq!(b.event(EventKind::Put).await.fail, FailType::Ok);
        }
        assert_eq!(memory.each_ref().map(|memory| word(&b.read(memory), 0)), [0, 0]);
    });
    rig.run();
}
