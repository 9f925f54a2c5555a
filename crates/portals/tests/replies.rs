//! Tests gets, fetch-and-atomics and swaps, and their replies ('PtlGet', 'PtlFetchAtomic', 'PtlSwap').

use crate::common::*;
use nicety_portals::*;

fn able() -> Bench {
    bench_with(Limits {
        features: Features::all(),
        atomic_bytes: 32,
        fetch_atomic_bytes: 16,
        ..Limits::default()
    })
}

fn bind(b: &mut Bench, start: u64, user: MdOptions) -> MdHandle {
    let options = user | MdOptions::EVENT_CT_REPLY | MdOptions::EVENT_CT_SEND;
    b.ni.md_bind(Md { start, length: 100, options, eq: Some(b.eq), ct: Some(b.ct) }).unwrap()
}

fn atomic(op: AtomicOp, datatype: Datatype) -> Atomic {
    Atomic::new(op, datatype).unwrap()
}

fn events(b: &mut Bench) -> Vec<Event> {
    let events = b
        .effects
        .drain()
        .filter_map(|e| if let Effect::Event { event, .. } = e { Some(event) } else { None });
    events.collect()
}

const GETS: MeOptions = MeOptions::OP_GET.union(MeOptions::OP_PUT);

/// Returns the peer's answer to a request, with `length` bytes.
fn answer(request: &Header, fail: FailType, length: u64) -> Header {
    let (source, target) = (request.target, request.source);
    let kind = HeaderKind::Reply;
    Header {
        kind,
        fail,
        source,
        target,
        length,
        remote_offset: 7,
        atomic: None,
        uid: 0,
        hdr_data: 0,
        ..*request
    }
}

#[test]
fn a_get_reads_at_the_target_and_ends_with_its_reply() {
    let mut b = able();
    let md = bind(&mut b, 0x4000, MdOptions::EVENT_CT_BYTES);
    let get = GetRequest {
        local_offset: 10,
        user_ptr: 11,
        remote_offset: 90,
        ..GetRequest::new(md, 24, NODE, 0, 1)
    };
    let out = b.ni.start(&get.into()).unwrap();
    assert_eq!((out.header.kind, out.header.length, out.header.payload_bytes()), (HeaderKind::Get, 24, 0));
    assert_eq!((out.header.ack, out.header.remote_offset, out.start), (AckRequest::None, 90, 0x4000 + 10));
    // Sending a get posts no event.
    b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
    assert_eq!(b.take(), []);

    // Here the target is the same node. Ten bytes remain in the match entry's memory.
    b.append(Me { ct: Some(b.ct), ..me(1, GETS | MeOptions::EVENT_CT_COMM) });
    let delivery = b.arrive(&out.header).unwrap();
    assert_eq!((delivery.start, delivery.mlength, delivery.remote_offset), (0x1000 + 90, 10, 90));
    let reply = delivery.reply().unwrap();
    assert_eq!((reply.kind, reply.fail, reply.length), (HeaderKind::Reply, FailType::Ok, 10));
    assert_eq!((reply.source, reply.target, reply.remote_offset), (NODE, NODE, 90));
    assert_eq!(reply.payload_bytes(), 10);
    b.complete(&delivery);
    let [event] = events(&mut b)[..] else { panic!("one event, and no answer but the card's") };
    assert_eq!((event.kind, event.mlength, event.rlength), (EventKind::Get, 10, 24));
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::success(1)));

    let Arrival::Reply(reply) = b.ni.arrive(&reply, &mut b.effects) else { panic!("it is awaited") };
    assert_eq!(
        (reply.operation, reply.start, reply.mlength, reply.rlength),
        (out.operation, 0x4000 + 10, 10, 24)
    );
    assert_eq!(b.ni.md_release(md).unwrap_err().code(), "PTL_IN_USE");
    b.ni.complete_reply(&reply, FailType::Ok, &mut b.effects).unwrap();
    let [event] = events(&mut b)[..] else { panic!("one event") };
    assert_eq!((event.kind, event.fail, event.user_ptr), (EventKind::Reply, FailType::Ok, 11));
    assert_eq!((event.mlength, event.rlength, event.remote_offset, event.start), (10, 24, 90, 0x4000 + 10));
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::success(11)));
    assert!(b.ni.complete_reply(&reply, FailType::Ok, &mut b.effects).is_err());
    b.ni.md_release(md).unwrap();
}

#[test]
fn a_put_has_no_reply() {
    let mut b = able();
    b.append(me(1, GETS));
    assert_eq!(b.arrive(&put(1, 8)).unwrap().reply(), None);
}

// The descriptor of the data gets the SEND event, the descriptor of the fetched bytes the REPLY event.
#[test]
fn a_fetch_atomic_has_a_send_and_a_reply() {
    for early in [false, true] {
        let mut b = able();
        let from = bind(&mut b, 0x4000, MdOptions::empty());
        let to = bind(&mut b, 0x6000, MdOptions::EVENT_CT_BYTES);
        let put = PutRequest { user_ptr: 5, hdr_data: 6, ..PutRequest::new(from, 16, PEER, 0, 1) };
        let sum = atomic(AtomicOp::Sum, Datatype::Int64);
        let fetch =
            FetchRequest { get_md: to, local_get_offset: 4, put, atomic: sum, operand: Operand::NONE };
        let out = b.ni.start(&Request::FetchAtomic(fetch)).unwrap();
        assert_eq!(
            (out.start, out.operand, out.header.kind),
            (0x4000, Operand::NONE, HeaderKind::FetchAtomic)
        );
        assert_eq!((out.header.atomic, out.header.hdr_data), (Some(sum), 6));
        let header = answer(&out.header, FailType::Ok, 16);
        let sent = |b: &mut Bench| b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
        if !early {
            sent(&mut b);
        }
        let Arrival::Reply(reply) = b.ni.arrive(&header, &mut b.effects) else { panic!("it is awaited") };
        assert_eq!(reply.start, 0x6000 + 4);
        // The initiator accepts only one reply.
        assert_eq!(b.ni.arrive(&header, &mut b.effects), Arrival::Dropped(DropReason::StrayAnswer));
        assert!(b.ni.failed(out.operation, FailType::Undeliverable, &mut b.effects).is_err());
        b.ni.complete_reply(&reply, FailType::Ok, &mut b.effects).unwrap();
        if early {
            assert_eq!(b.ni.pending_operations(), 1);
            let again = b.ni.complete_reply(&reply, FailType::Ok, &mut b.effects).unwrap_err();
            assert!(again.to_string().contains("no reply"), "{again}");
            sent(&mut b);
        }
        assert_eq!(b.ni.pending_operations(), 0);
        let mut events = events(&mut b);
        events.sort_by_key(|e| e.kind as u8);
        let [reply, send] = events[..] else { panic!("{events:?}") };
        assert_eq!((send.kind, send.start, send.atomic), (EventKind::Send, 0x4000, Some(sum)));
        assert_eq!((reply.kind, reply.start, reply.mlength), (EventKind::Reply, 0x6000 + 4, 16));
        assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::success(17)));
        b.ni.md_release(from).unwrap();
        b.ni.md_release(to).unwrap();
    }
}

#[test]
fn replies_without_an_operation_are_strays() {
    let mut b = able();
    let md = bind(&mut b, 0x4000, MdOptions::empty());
    let get = b.ni.start(&GetRequest::new(md, 8, PEER, 0, 1).into()).unwrap();
    let plain = PutRequest { ack: AckRequest::Full, ..PutRequest::new(md, 8, PEER, 0, 1) };
    let put = b.ni.start(&plain.into()).unwrap();
    let reply = answer(&get.header, FailType::Ok, 8);
    for stray in [
        Header { length: 9, ..reply },
        Header { source: NODE, ..reply },
        Header { operation: 3, ..reply },
        Header { kind: HeaderKind::Ack, ..reply },
        answer(&put.header, FailType::Ok, 8),
    ] {
        assert_eq!(b.ni.arrive(&stray, &mut b.effects), Arrival::Dropped(DropReason::StrayAnswer));
    }
    assert!(matches!(b.ni.arrive(&reply, &mut b.effects), Arrival::Reply(_)));
    assert_eq!(b.take(), []);
}

#[test]
fn a_get_that_fails_ends_with_a_failed_reply() {
    let reply_fails = |b: &mut Bench| {
        let [event] = events(b)[..] else { panic!("one event") };
        assert_eq!((event.kind, event.mlength, event.rlength), (EventKind::Reply, 0, 8));
        assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::failure(1)));
        assert_eq!(b.ni.pending_operations(), 0);
        event.fail
    };
    let start = |sent: bool| {
        let mut b = able();
        let md = bind(&mut b, 0x4000, MdOptions::EVENT_SUCCESS_DISABLE | MdOptions::EVENT_CT_BYTES);
        let out = b.ni.start(&GetRequest::new(md, 8, PEER, 0, 1).into()).unwrap();
        if sent {
            b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
        }
        (b, out)
    };
    // First case: the target reports a failure.
    let (mut b, out) = start(true);
    let header = answer(&out.header, FailType::OpViolation, 5); // a failed reply has no bytes
    let Arrival::Reply(reply) = b.ni.arrive(&header, &mut b.effects) else { panic!("it is awaited") };
    assert_eq!((reply.fail, reply.mlength), (FailType::OpViolation, 0));
    b.ni.complete_reply(&reply, FailType::Ok, &mut b.effects).unwrap();
    assert_eq!(reply_fails(&mut b), FailType::OpViolation);
    // Second case: the reply's bytes cannot be deposited.
    let (mut b, out) = start(true);
    let header = answer(&out.header, FailType::Ok, 8);
    let Arrival::Reply(reply) = b.ni.arrive(&header, &mut b.effects) else { panic!("it is awaited") };
    b.ni.complete_reply(&reply, FailType::Segv, &mut b.effects).unwrap();
    assert_eq!(reply_fails(&mut b), FailType::Segv);
    // Third case: the request cannot be sent, or the card no longer waits for the answer.
    let (mut b, out) = start(false);
    b.ni.sent(out.operation, FailType::Undeliverable, &mut b.effects).unwrap();
    assert_eq!(reply_fails(&mut b), FailType::Undeliverable);
    let (mut b, out) = start(true);
    b.ni.failed(out.operation, FailType::Undeliverable, &mut b.effects).unwrap();
    assert_eq!(reply_fails(&mut b), FailType::Undeliverable);
    // Sending the request fails while the reply is arriving. The operation ends with the reply.
    let (mut b, out) = start(false);
    let header = answer(&out.header, FailType::Ok, 8);
    let Arrival::Reply(reply) = b.ni.arrive(&header, &mut b.effects) else { panic!("it is awaited") };
    b.ni.sent(out.operation, FailType::Undeliverable, &mut b.effects).unwrap();
    assert_eq!(b.ni.pending_operations(), 1);
    b.ni.complete_reply(&reply, FailType::Ok, &mut b.effects).unwrap();
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::success(8)));
}

#[test]
fn a_failure_at_the_target_is_answered() {
    let mut b = able();
    b.append(me(1, GETS | MeOptions::ACK_DISABLE));
    let get = Header { kind: HeaderKind::Get, ..put(1, 8) };
    let delivery = b.arrive(&get).unwrap();
    b.ni.complete(&delivery, FailType::Segv, &mut b.effects).unwrap();
    let effects = b.take();
    let [Effect::Event { event, .. }, Effect::Ack(reply)] = effects[..] else { panic!("{effects:?}") };
    assert_eq!((event.kind, event.fail, event.mlength), (EventKind::Get, FailType::Segv, 0));
    assert_eq!((reply.kind, reply.fail, reply.length), (HeaderKind::Reply, FailType::Segv, 0));
}

// A fetching operation reads and writes, so it needs both permissions. An atomic only writes.
#[test]
fn operations_need_their_permissions() {
    let sum = Some(atomic(AtomicOp::Sum, Datatype::Int32));
    let swap = Some(atomic(AtomicOp::Swap, Datatype::Int32));
    let cases = [
        (HeaderKind::Put, None, [true, false, true]),
        (HeaderKind::Get, None, [false, true, true]),
        (HeaderKind::Atomic, sum, [true, false, true]),
        (HeaderKind::FetchAtomic, sum, [false, false, true]),
        (HeaderKind::Swap, swap, [false, false, true]),
    ];
    let options = [MeOptions::OP_PUT, MeOptions::OP_GET, GETS];
    for (kind, atomic, allowed) in cases {
        for (options, allowed) in options.into_iter().zip(allowed) {
            let mut b = able();
            b.append(Me { options, ..me(1, MeOptions::empty()) });
            let result = b.arrive(&Header { kind, atomic, ..put(1, 8) });
            assert_eq!(result.is_ok(), allowed, "{kind:?} {options:?}");
            assert!(allowed || result == Err(DropReason::OpViolation));
        }
    }
}

#[test]
fn an_atomic_is_a_put_that_computes() {
    let mut b = able();
    let options = MdOptions::EVENT_CT_ACK;
    let md =
        b.ni.md_bind(Md { start: 0x4000, length: 100, options, eq: Some(b.eq), ct: Some(b.ct) }).unwrap();
    let put = PutRequest { ack: AckRequest::Full, remote_offset: 94, ..PutRequest::new(md, 12, NODE, 0, 1) };
    let max = atomic(AtomicOp::Max, Datatype::Uint32);
    let out = b.ni.start(&AtomicRequest { put, atomic: max }.into()).unwrap();
    b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
    b.append(me(1, MeOptions::empty()));
    b.take();
    let delivery = b.arrive(&out.header).unwrap();
    // Six bytes remain, which is enough for one item of four bytes.
    assert_eq!((delivery.mlength, delivery.reply()), (4, None));
    b.complete(&delivery);
    let effects = b.take();
    let [Effect::Event { event, .. }, Effect::Ack(ack)] = effects[..] else { panic!("{effects:?}") };
    assert_eq!((event.kind, event.atomic, event.mlength), (EventKind::Atomic, Some(max), 4));
    assert_eq!((ack.atomic, ack.length, ack.fail), (None, 4, FailType::Ok));
    assert_eq!(Header::decode(&ack.encode()), Ok(ack));
    assert_eq!(b.ni.arrive(&ack, &mut b.effects), Arrival::Acknowledged);
    assert_eq!(b.kinds(), [(EventKind::Ack, 0)]);
    assert_eq!(b.ni.pending_operations(), 0);
}

#[test]
fn a_conditional_swap_carries_its_operand() {
    let mut b = able();
    let md = bind(&mut b, 0x4000, MdOptions::empty());
    let put = PutRequest::new(md, 4, PEER, 0, 1);
    let operand = Operand::new(&7u32.to_le_bytes()).unwrap();
    let cswap = atomic(AtomicOp::Cswap, Datatype::Uint32);
    let request = FetchRequest { get_md: md, local_get_offset: 8, put, atomic: cswap, operand };
    let out = b.ni.start(&Request::Swap(request)).unwrap();
    assert_eq!((out.operand, out.header.length, out.header.payload_bytes()), (operand, 4, 8));
    // The target's card applies the swap.
    b.append(me(1, GETS));
    let header = Header { source: PEER, target: NODE, ..out.header };
    let delivery = b.arrive(&header).unwrap();
    let payload = [7u32.to_le_bytes(), 9u32.to_le_bytes()].concat();
    let (operand, data) = payload.split_at(cswap.operand_bytes());
    let mut memory = 7u32.to_le_bytes();
    cswap.apply(&mut memory, data, operand).unwrap();
    assert_eq!((memory, delivery.mlength), (9u32.to_le_bytes(), 4));
    b.complete(&delivery);
    assert_eq!(b.kinds(), [(EventKind::FetchAtomic, 1)]);
}

#[test]
fn invalid_requests_are_refused() {
    let mut b = able();
    let md = bind(&mut b, 0, MdOptions::empty());
    let sum = atomic(AtomicOp::Sum, Datatype::Int32);
    let (cswap, swap) = (atomic(AtomicOp::Cswap, Datatype::Int32), atomic(AtomicOp::Swap, Datatype::Int32));
    let put = PutRequest::new(md, 4, PEER, 0, 1);
    let operand = Operand::new(&[0; 4]).unwrap();
    let fetch = FetchRequest { get_md: md, local_get_offset: 0, put, atomic: sum, operand: Operand::NONE };
    let long = |length| PutRequest { length, ..put };
    let acked = PutRequest { ack: AckRequest::Full, ..put };
    let get = GetRequest::new(md, 8, PEER, 0, 0);
    let results = [
        (b.ni.start(&GetRequest { local_offset: 93, ..get }.into()), "inside the descriptor's memory"),
        (b.ni.start(&AtomicRequest { put: long(36), atomic: sum }.into()), "`atomic_bytes`"),
        (b.ni.start(&AtomicRequest { put: long(6), atomic: sum }.into()), "whole items"),
        (b.ni.start(&AtomicRequest { put, atomic: swap }.into()), "for `swap`"),
        (b.ni.start(&Request::FetchAtomic(FetchRequest { put: long(20), ..fetch })), "`fetch_atomic_bytes`"),
        (b.ni.start(&Request::FetchAtomic(FetchRequest { put: acked, ..fetch })), "`ack` must be `None`"),
        (
            b.ni.start(&Request::FetchAtomic(FetchRequest { local_get_offset: 97, ..fetch })),
            "inside the descriptor's memory",
        ),
        (
            b.ni.start(&Request::FetchAtomic(FetchRequest { get_md: MdHandle::from_bits(1), ..fetch })),
            "no memory descriptor",
        ),
        (b.ni.start(&Request::FetchAtomic(FetchRequest { operand, ..fetch })), "operand"),
        (b.ni.start(&Request::FetchAtomic(FetchRequest { atomic: swap, ..fetch })), "for `swap`"),
        (b.ni.start(&Request::Swap(fetch)), "for `swap`"),
        (b.ni.start(&Request::Swap(FetchRequest { atomic: cswap, ..fetch })), "operand"),
        (
            b.ni.start(&Request::Swap(FetchRequest { put: long(8), atomic: cswap, operand, ..fetch })),
            "exactly one",
        ),
        (
            b.ni.start(&Request::Swap(FetchRequest { put: long(20), atomic: swap, ..fetch })),
            "`fetch_atomic_bytes`",
        ),
    ];
    for (result, text) in results {
        let error = result.unwrap_err();
        assert_eq!(error.code(), "PTL_ARG_INVALID");
        assert!(error.to_string().contains(text), "{error}, and not {text}");
    }
    assert_eq!(b.ni.pending_operations(), 0);
    b.ni.start(&AtomicRequest { put: long(32), atomic: sum }.into()).unwrap();
    b.ni.start(&Request::FetchAtomic(FetchRequest { put: long(16), ..fetch })).unwrap();
    b.ni.start(&Request::Swap(FetchRequest { put: long(16), atomic: swap, ..fetch })).unwrap();
    // This card supports only puts.
    let mut b = bench();
    let md = bind(&mut b, 0, MdOptions::empty());
    let put = PutRequest::new(md, 4, PEER, 0, 1);
    let error = b.ni.start(&GetRequest::new(md, 4, PEER, 0, 1).into()).unwrap_err();
    assert!(error.to_string().contains("no gets"), "{error}");
    let error = b.ni.start(&AtomicRequest { put, atomic: sum }.into()).unwrap_err();
    assert!(error.to_string().contains("no atomics"), "{error}");
    assert_eq!(b.ni.trigger(&GetRequest::new(md, 4, PEER, 0, 1).into(), b.ct, 1, &mut b.effects), {
        Err(Error::ArgInvalid("this card does no gets: its limits lack the feature `GET`"))
    });
    assert_eq!(b.ni.pending_triggered(), 0);
}

#[test]
fn a_target_does_only_what_its_card_can() {
    let sum = Some(atomic(AtomicOp::Sum, Datatype::Int32));
    let get = Header { kind: HeaderKind::Get, ..put(1, 8) };
    let add = Header { kind: HeaderKind::Atomic, atomic: sum, ..put(1, 8) };
    let fetch = Header { kind: HeaderKind::FetchAtomic, ..add };
    let with = |features, header: Header| {
        let limits = Limits { features, atomic_bytes: 32, fetch_atomic_bytes: 16, ..Limits::default() };
        let mut b = bench_with(limits);
        b.append(me(1, GETS));
        b.arrive(&header).map(drop)
    };
    let unsupported = Err(DropReason::Unsupported);
    assert_eq!(with(Features::GET, get), Ok(()));
    assert_eq!(with(Features::GET, add), unsupported);
    assert_eq!(with(Features::GET, fetch), unsupported);
    assert_eq!(with(Features::ATOMIC, get), unsupported);
    assert_eq!(with(Features::ATOMIC, Header { length: 32, ..add }), Ok(()));
    assert_eq!(with(Features::ATOMIC, Header { length: 36, ..add }), unsupported);
    assert_eq!(with(Features::ATOMIC, Header { length: 16, ..fetch }), Ok(()));
    assert_eq!(with(Features::ATOMIC, Header { length: 20, ..fetch }), unsupported);
    assert_eq!(with(Features::ATOMIC, Header { atomic: None, ..add }), unsupported);
    assert_eq!(with(Features::ATOMIC, Header { length: 6, ..add }), unsupported);
}

#[test]
fn the_user_goes_with_every_operation() {
    let mut ni = Interface::new(NODE, Limits::default()).of_user(42);
    assert_eq!(ni.uid(), 42);
    let md = ni.md_bind(Md { length: 8, ..Md::default() }).unwrap();
    assert_eq!(ni.start(&PutRequest::new(md, 8, PEER, 0, 0).into()).unwrap().header.uid, 42);
    let mut b = bench();
    b.append(Me { user: User::Id(42), ..me(1, MeOptions::empty()) });
    assert_eq!(b.arrive(&put(1, 8)), Err(DropReason::PermViolation));
    b.receive(&Header { uid: 42, ..put(1, 8) });
    let [event] = events(&mut b)[..] else { panic!("one event") };
    assert_eq!(event.uid, 42);
}
