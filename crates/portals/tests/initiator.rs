//! Tests the initiator: memory descriptors, puts, and their SEND and ACK events ('Data Movement Operations').

use crate::common::*;
use nicety_portals::*;

const ALL: MdOptions = MdOptions::EVENT_CT_SEND.union(MdOptions::EVENT_CT_ACK);

fn bind(b: &mut Bench, options: MdOptions) -> MdHandle {
    b.ni.md_bind(Md { start: 0x4000, length: 100, options, eq: Some(b.eq), ct: Some(b.ct) }).unwrap()
}

fn request(md: MdHandle, ack: AckRequest) -> PutRequest {
    PutRequest { ack, user_ptr: 11, local_offset: 10, ..PutRequest::new(md, 64, PEER, 0, 1) }
}

/// Returns the peer's acknowledgement of a put.
fn answer(header: &Header, fail: FailType, mlength: u64) -> Header {
    let (source, target) = (header.target, header.source);
    Header { kind: HeaderKind::Ack, fail, source, target, length: mlength, remote_offset: 7, ..*header }
}

#[test]
fn a_put_is_a_header_and_a_range_of_host_memory() {
    let mut b = bench();
    let md = bind(&mut b, MdOptions::empty());
    let request = PutRequest { remote_offset: 3, hdr_data: 4, ..request(md, AckRequest::Full) };
    let out = b.ni.start(&request.into()).unwrap();
    assert_eq!(out.start, 0x4000 + 10);
    let expected = Header {
        kind: HeaderKind::Put,
        ack: AckRequest::Full,
        fail: FailType::Ok,
        list: List::Priority,
        source: NODE,
        target: PEER,
        pt: 0,
        match_bits: 1,
        length: 64,
        remote_offset: 3,
        hdr_data: 4,
        operation: out.operation.to_bits(),
        uid: 0,
        atomic: None,
    };
    assert_eq!(out.header, expected);
    assert_eq!(b.ni.pending_operations(), 1);
}

#[test]
fn send_and_ack_end_an_operation_in_either_order() {
    for early in [false, true] {
        let mut b = bench();
        let md = bind(&mut b, ALL | MdOptions::EVENT_CT_BYTES);
        let out = b.ni.start(&request(md, AckRequest::Full).into()).unwrap();
        let ack = answer(&out.header, FailType::Ok, 60);
        if early {
            assert_eq!(b.ni.arrive(&ack, &mut b.effects), Arrival::Acknowledged);
        }
        assert_eq!(b.ni.md_release(md).unwrap_err().code(), "PTL_IN_USE");
        b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
        if !early {
            assert_eq!(b.ni.arrive(&ack, &mut b.effects), Arrival::Acknowledged);
        }
        assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::success(64 + 60)));
        let events: Vec<Event> = b
            .take()
            .into_iter()
            .filter_map(|e| if let Effect::Event { event, .. } = e { Some(event) } else { None })
            .collect();
        let acked = events.iter().find(|e| e.kind == EventKind::Ack).unwrap();
        assert_eq!((acked.mlength, acked.rlength, acked.remote_offset, acked.user_ptr), (60, 64, 7, 11));
        let sent = events.iter().find(|e| e.kind == EventKind::Send).unwrap();
        assert_eq!((sent.mlength, sent.user_ptr, events.len()), (64, 11, 2));
        assert_eq!(b.ni.pending_operations(), 0);
        b.ni.md_release(md).unwrap();
        // A second acknowledgement does not count.
        assert_eq!(b.ni.arrive(&ack, &mut b.effects), Arrival::Dropped(DropReason::StrayAnswer));
        assert!(b.ni.sent(out.operation, FailType::Ok, &mut b.effects).is_err());
        assert!(b.effects.is_empty());
    }
}

#[test]
fn without_an_acknowledgement_the_send_is_the_end() {
    let mut b = bench();
    let md = bind(&mut b, ALL);
    let out = b.ni.start(&request(md, AckRequest::None).into()).unwrap();
    let ack = answer(&out.header, FailType::Ok, 60);
    assert_eq!(b.ni.arrive(&ack, &mut b.effects), Arrival::Dropped(DropReason::StrayAnswer));
    b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
    assert_eq!(b.kinds(), [(EventKind::Send, 11)]);
    assert_eq!(b.ni.pending_operations(), 0);
}

// 'ptl_ack_req_t': counting acknowledgements post no full event. PTL_OC_ACK_REQ counts the requested bytes.
#[test]
fn counting_acknowledgements_only_count() {
    for (ack, bytes) in [(AckRequest::Counting, 60), (AckRequest::OperationCompleted, 64)] {
        let mut b = bench();
        let md = bind(&mut b, MdOptions::EVENT_CT_ACK | MdOptions::EVENT_CT_BYTES);
        let out = b.ni.start(&request(md, ack).into()).unwrap();
        b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
        b.take();
        b.ni.arrive(&answer(&out.header, FailType::Ok, 60), &mut b.effects);
        assert_eq!(b.take(), [Effect::Count { ct: b.ct, value: CtEvent::success(bytes) }]);
    }
}

#[test]
fn a_refused_put_is_a_failure_at_the_initiator() {
    let mut b = bench();
    let md = bind(&mut b, ALL | MdOptions::EVENT_SUCCESS_DISABLE);
    let out = b.ni.start(&request(md, AckRequest::Full).into()).unwrap();
    b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
    assert_eq!(b.kinds(), []);
    b.ni.arrive(&answer(&out.header, FailType::OpViolation, 0), &mut b.effects);
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent { success: 1, failure: 1 }));
    let Effect::Event { event, .. } = b.take()[0] else { panic!("an event first") };
    assert_eq!((event.kind, event.fail), (EventKind::Ack, FailType::OpViolation));
}

// 'PTL_ME_ACK_DISABLE': the operation ends without an event and without a count.
#[test]
fn an_entry_without_acknowledgements_still_ends_the_operation() {
    let mut b = bench();
    b.append(me(1, MeOptions::ACK_DISABLE | MeOptions::EVENT_COMM_DISABLE));
    let md = bind(&mut b, ALL | MdOptions::EVENT_SEND_DISABLE);
    let out = b.ni.start(&PutRequest { target: NODE, ..request(md, AckRequest::Full) }.into()).unwrap();
    b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
    b.take();
    b.receive(&out.header);
    let [Effect::Ack(ack)] = b.take()[..] else { panic!("one answer") };
    assert_eq!(ack.ack, AckRequest::None);
    assert_eq!(b.ni.arrive(&ack, &mut b.effects), Arrival::Acknowledged);
    assert_eq!((b.take().len(), b.ni.pending_operations()), (0, 0));
}

#[test]
fn a_message_that_cannot_be_sent_ends_at_once() {
    let mut b = bench();
    let md = bind(&mut b, ALL);
    let out = b.ni.start(&request(md, AckRequest::Full).into()).unwrap();
    b.ni.sent(out.operation, FailType::Undeliverable, &mut b.effects).unwrap();
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::failure(1)));
    assert_eq!(b.ni.pending_operations(), 0);
}

#[test]
fn an_operation_without_an_answer_can_fail() {
    let mut b = bench();
    let md = bind(&mut b, ALL);
    let out = b.ni.start(&request(md, AckRequest::Full).into()).unwrap();
    let early = b.ni.failed(out.operation, FailType::Undeliverable, &mut b.effects);
    assert_eq!(early.unwrap_err().code(), "PTL_ARG_INVALID");
    b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
    assert_eq!(
        b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap_err().to_string(),
        "PTL_ARG_INVALID: only an operation that is being sent can be reported as sent"
    );
    b.ni.failed(out.operation, FailType::Undeliverable, &mut b.effects).unwrap();
    assert_eq!(b.kinds(), [(EventKind::Send, 11), (EventKind::Ack, 11)]);
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent { success: 1, failure: 1 }));
    assert_eq!(b.ni.pending_operations(), 0);
}

#[test]
fn only_the_target_answers_and_only_what_was_asked() {
    let mut b = bench();
    let md = bind(&mut b, ALL);
    let out = b.ni.start(&request(md, AckRequest::Full).into()).unwrap();
    let ack = answer(&out.header, FailType::Ok, 64);
    for wrong in
        [Header { source: NODE, ..ack }, Header { operation: 0, ..ack }, Header { operation: !0, ..ack }]
    {
        assert_eq!(b.ni.arrive(&wrong, &mut b.effects), Arrival::Dropped(DropReason::StrayAnswer));
    }
    assert_eq!(b.ni.arrive(&ack, &mut b.effects), Arrival::Acknowledged);
    assert_eq!(b.ni.arrive(&ack, &mut b.effects), Arrival::Dropped(DropReason::StrayAnswer));
    assert_eq!(b.ni.pending_operations(), 1); // not sent yet
}

#[test]
fn invalid_puts_are_refused() {
    let mut b = bench_with(Limits { message_bytes: 80, ..Limits::default() });
    let md = bind(&mut b, MdOptions::empty());
    let bare = b.ni.md_bind(Md { length: 100, ..Md::default() }).unwrap();
    let put = PutRequest::new(md, 80, PEER, 0, 0);
    let wrong = [
        (PutRequest { local_offset: 21, ..put }, "inside the descriptor's memory"),
        (PutRequest { local_offset: u64::MAX, ..put }, "inside the descriptor's memory"),
        (PutRequest { length: 81, ..put }, "`message_bytes`"),
        (PutRequest { md: bare, ack: AckRequest::Full, ..put }, "event queue"),
        (PutRequest { md: bare, ack: AckRequest::Counting, ..put }, "counter"),
        (PutRequest { md: MdHandle::from_bits(9), ..put }, "no memory descriptor"),
    ];
    for (request, text) in wrong {
        let error = b.ni.start(&request.into()).unwrap_err();
        assert_eq!(error.code(), "PTL_ARG_INVALID");
        assert!(error.to_string().contains(text), "{error}");
    }
    assert_eq!(b.ni.pending_operations(), 0);
    assert!(b.ni.start(&PutRequest { local_offset: 20, ..put }.into()).is_ok());
}
