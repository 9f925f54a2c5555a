//! Calls of hosts to their cards: acknowledgements, full queues, and invalid calls.

use crate::support::*;
use nicety_nic_spin::CallError;
use nicety_portals::{AckRequest, EventKind, FailType, Md, MdOptions, Me, MeOptions, PutRequest};
use nicety_types::NodeId;

#[test]
fn acknowledgements_come_back() {
    let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns"]);
    rig.program(0, async |a| {
        let out = a.alloc(&pattern(8, 1));
        let md = |eq, ct| {
            let options =
                MdOptions::EVENT_SEND_DISABLE | if ct { MdOptions::EVENT_CT_ACK } else { MdOptions::empty() };
            let ct = ct.then_some(a.ct);
            a.card.md_bind(Md { start: out.address(), length: out.len(), options, eq, ct }).unwrap()
        };
        let request = |md, bits| PutRequest { user_ptr: 3, ..PutRequest::new(md, 8, NodeId(1), PT, bits) };
        let full = PutRequest { ack: AckRequest::Full, ..request(md(Some(a.eq), false), 5) };
        let count = PutRequest { ack: AckRequest::Counting, ..request(md(None, true), 5) };
        let lost = PutRequest { ack: AckRequest::Full, ..request(md(Some(a.eq), false), 6) };
        a.start().await;
        a.put(&full).await.unwrap();
        let event = a.event(EventKind::Ack).await;
        assert_eq!((event.fail, event.mlength, event.user_ptr), (FailType::Ok, 8, 3));
        // In ns, on the way there: bus 250, link 33.56, match 30, and 0.125 until the deposit is handed over. On the
        // way back: link 33.4 without payload, 2 to find the operation, and the event.
        assert_eq!(a.sim.now(), after(250_000 + 33_560 + 30_000 + 125 + 33_400 + 2_000 + 250_000));
        a.parts();
        a.put(&count).await.unwrap();
        assert_eq!(a.count(a.ct, 1).await.unwrap().success, 1);
        a.put(&lost).await.unwrap();
        let event = a.event(EventKind::Ack).await;
        assert_eq!((event.fail, event.mlength), (FailType::Dropped, 0));
        // Every operation has ended.
        for request in [full, count, lost] {
            a.card.md_release(request.md).unwrap();
        }
    });
    rig.program(1, async |b| {
        b.append(entry(&b.alloc(&[0; 8]), 5)).await.unwrap();
    });
    rig.run();
    assert_eq!(rig.nodes[1].card.statistics().dropped_total(), 1);
}

#[test]
fn a_full_event_queue_is_reported() {
    let mut rig = Rig::new(&[]);
    let small = rig.nodes[1].card.eq_alloc(2).unwrap();
    rig.nodes[1].card.pt_alloc(Some(2), Some(small)).unwrap();
    rig.program(0, async |a| {
        let request = PutRequest { pt: 2, ..a.request(&a.alloc(&[0; 8]), 5) };
        a.start().await;
        for _ in 0..5 {
            a.put(&request).await.unwrap();
        }
    });
    rig.program(1, async move |b| {
        let (memory, mut path) = (b.alloc(&[0; 8]), b.path.get());
        let me = entry(&memory, 5);
        let list = nicety_portals::List::Priority;
        let appending = b.card.me_append(&b.cpus, &mut path, 2, me, list).await.unwrap();
        b.card.appended(&b.cpus, &mut path, appending).await.unwrap();
        b.until(after(100_000_000)).await;
        let any = |_: &nicety_portals::Event| true;
        // The loss is reported at its position in the queue, after earlier events.
        for _ in 0..2 {
            b.card.eq_wait(&b.cpus, &mut path, small, any, String::new).await.unwrap();
        }
        let lost = b.card.eq_wait(&b.cpus, &mut path, small, any, String::new).await.unwrap_err();
        assert_eq!(lost, CallError::EventsLost { lost: 3 });
        assert_eq!(
            lost.to_string(),
            "PTL_EQ_DROPPED: the event queue was full and 3 events are lost; allocate a deeper queue or read it more \
             often"
        );
        // The loss is reported only once.
        assert_eq!(b.card.eq_get(&b.cpus, &mut path, small).await, Ok(None));
    });
    rig.run();
    assert_eq!(rig.nodes[1].card.statistics().events_dropped, 3);
}

#[test]
fn calls_that_cannot_be_are_refused() {
    let mut rig = Rig::new(&["limits.match_entries=1"]);
    rig.program(0, async |a| {
        let memory = a.alloc(&[0; 8]);
        let request = a.request(&memory, 5);
        let to = |rank| PutRequest { target: NodeId(rank), ..request };
        let before = a.sim.now();
        assert_eq!(a.put(&to(2)).await, Err(CallError::Rank { rank: 2, ranks: 2 }));
        assert_eq!(a.triggered_put(to(9), a.ct, 1).await, Err(CallError::Rank { rank: 9, ranks: 2 }));
        assert!(matches!(a.put(&PutRequest { length: 9, ..request }).await, Err(CallError::Portals(_))));
        let outside = Me { length: 9, ..entry(&memory, 1) };
        assert!(matches!(a.append(outside).await, Err(CallError::Memory(_))));
        let unknown = Me { handlers: Some(3), ..entry(&memory, 1) };
        assert_eq!(a.append(unknown).await, Err(CallError::NotAttached { cookie: 3 }));
        assert_eq!(a.sim.now(), before, "refused before anything was posted");
        // If only the card can detect an error, the error takes the time of a request to the card.
        a.append(entry(&memory, 1)).await.unwrap();
        let full = a.append(entry(&memory, 2)).await.unwrap_err();
        assert!(matches!(full, CallError::Portals(nicety_portals::Error::NoSpace { .. })), "{full:?}");
        let stale = PutRequest { length: 9, ..request };
        a.triggered_put(stale, a.ct, 1).await.unwrap();
        a.sim.delay(nicety_types::Duration::from_us(1)).await;
        assert!(a.card.processors().failures()[0].text.starts_with("the card refused a triggered put: "));
        assert_eq!(a.card.processors().failures()[0].hpu, None);
        let options = MeOptions::OP_PUT;
        assert!(a.memory.check(0, 0).is_ok(), "no bytes are anywhere: {options:?}");
    });
    rig.run();
}
