//! Tests searches of the unexpected headers ('PtlMESearch'), and match entries that the card holds.

use crate::common::*;
use nicety_portals::*;

/// Returns a bench with three unexpected messages: two with match bits 1, of 8 and 9 bytes, and one with match bits 2.
fn with_headers() -> Bench {
    let mut b = bench();
    b.append_overflow(Me {
        ignore_bits: !0,
        start: 0x8000,
        ..me(50, MeOptions::MANAGE_LOCAL | MeOptions::EVENT_COMM_DISABLE)
    });
    for (bits, length) in [(1, 8), (2, 8), (1, 9)] {
        b.receive(&put(bits, length));
    }
    b
}

fn search(b: &mut Bench, me: Me, op: SearchOp) -> Vec<Event> {
    b.ni.me_search(0, me, op, &mut b.effects).unwrap();
    let events = b
        .effects
        .drain()
        .filter_map(|e| if let Effect::Event { event, .. } = e { Some(event) } else { None });
    events.collect()
}

#[test]
fn a_search_only_leaves_the_headers() {
    let mut b = with_headers();
    for _ in 0..2 {
        let found = search(&mut b, me(1, MeOptions::USE_ONCE), SearchOp::Only);
        let [event] = found[..] else { panic!("{found:?}") };
        assert_eq!((event.kind, event.fail, event.user_ptr), (EventKind::Search, FailType::Ok, 1));
        assert_eq!((event.initiator, event.mlength, event.start, event.hdr_data), (PEER, 8, 0x8000, 0xda7a));
    }
    let found = search(&mut b, me(1, MeOptions::empty()), SearchOp::Only);
    assert_eq!(
        found.iter().map(|e| (e.kind, e.mlength)).collect::<Vec<_>>(),
        [(EventKind::Search, 8), (EventKind::Search, 9)]
    );
}

#[test]
fn a_search_that_deletes_takes_as_an_append_does() {
    let mut b = with_headers();
    let found = search(&mut b, me(1, MeOptions::USE_ONCE), SearchOp::Delete);
    assert_eq!(found.iter().map(|e| (e.kind, e.mlength)).collect::<Vec<_>>(), [(EventKind::PutOverflow, 8)]);
    let found = search(&mut b, me(1, MeOptions::empty()), SearchOp::Delete);
    assert_eq!(found.iter().map(|e| (e.kind, e.mlength)).collect::<Vec<_>>(), [(EventKind::PutOverflow, 9)]);
    // The search linked no entry, so the next message is unexpected again.
    assert_eq!(b.receive(&put(1, 8)).list, List::Overflow);
}

#[test]
fn a_search_that_finds_nothing_fails() {
    for op in [SearchOp::Only, SearchOp::Delete] {
        let mut b = with_headers();
        let found = search(&mut b, me(3, MeOptions::empty()), op);
        let [event] = found[..] else { panic!("{found:?}") };
        assert_eq!((event.kind, event.fail, event.user_ptr), (EventKind::Search, FailType::NoMatch, 3));
        // The search skips headers of operations that the entry does not allow, and of other users.
        let gets = Me { options: MeOptions::OP_GET, ..me(1, MeOptions::empty()) };
        assert_eq!(search(&mut b, gets, op)[0].fail, FailType::NoMatch);
        let user = Me { user: User::Id(9), ..me(1, MeOptions::empty()) };
        assert_eq!(search(&mut b, user, op)[0].fail, FailType::NoMatch);
        assert_eq!(search(&mut b, me(3, MeOptions::EVENT_COMM_DISABLE), op), []);
        assert_eq!(search(&mut b, me(3, MeOptions::EVENT_SUCCESS_DISABLE), op).len(), 1);
    }
}

#[test]
fn searches_are_counted_like_overflow_events() {
    let mut b = with_headers();
    let options = MeOptions::EVENT_CT_OVERFLOW | MeOptions::EVENT_SUCCESS_DISABLE;
    let counts = Me { ct: Some(b.ct), ..me(1, options) };
    assert_eq!(search(&mut b, counts, SearchOp::Only), []);
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::success(2)));
    let none = Me { match_bits: 3, ..counts };
    search(&mut b, none, SearchOp::Only);
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent { success: 2, failure: 1 }));
    search(&mut b, counts, SearchOp::Delete);
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent { success: 4, failure: 1 }));
    b.ni.ct_free(b.ct).unwrap();
}

// The message is not complete. A search that deletes posts its event only when the bytes have been deposited.
#[test]
fn a_search_finds_messages_that_are_not_complete() {
    let mut b = bench();
    b.append_overflow(Me { ignore_bits: !0, ..me(50, MeOptions::EVENT_COMM_DISABLE) });
    let delivery = b.arrive(&put(1, 8)).unwrap();
    let found = search(&mut b, me(1, MeOptions::empty()), SearchOp::Only);
    assert_eq!((found[0].fail, found[0].mlength), (FailType::Ok, 8));
    assert_eq!(search(&mut b, me(1, MeOptions::empty()), SearchOp::Delete), []);
    assert_eq!(search(&mut b, me(1, MeOptions::empty()), SearchOp::Only)[0].fail, FailType::NoMatch);
    assert_eq!(b.ni.pt_free(0), Err(Error::PtInUse { index: 0 }));
    b.complete(&delivery);
    assert_eq!(b.kinds(), [(EventKind::PutOverflow, 1)]);
}

#[test]
fn searches_are_checked() {
    let mut b = bench_with(Limits { entries: 1, ..Limits::default() });
    let wrong = |b: &mut Bench, pt, me| b.ni.me_search(pt, me, SearchOp::Delete, &mut b.effects).unwrap_err();
    assert_eq!(wrong(&mut b, 9, me(1, MeOptions::empty())).code(), "PTL_ARG_INVALID");
    let far = Me { start: u64::MAX, ..me(1, MeOptions::empty()) };
    assert!(wrong(&mut b, 0, far).to_string().contains("2^64"));
    b.append(me(1, MeOptions::empty()));
    assert_eq!(wrong(&mut b, 0, me(1, MeOptions::empty())).code(), "PTL_NO_SPACE");
}

#[test]
fn every_kind_has_its_overflow_event() {
    use HeaderKind::{FetchAtomic, Get, Put, Swap};
    let sum = Atomic::new(AtomicOp::Sum, Datatype::Int32).ok();
    let swap = Atomic::new(AtomicOp::Swap, Datatype::Int32).ok();
    let cases = [
        (Put, None, EventKind::Put, EventKind::PutOverflow),
        (Get, None, EventKind::Get, EventKind::GetOverflow),
        (HeaderKind::Atomic, sum, EventKind::Atomic, EventKind::AtomicOverflow),
        (FetchAtomic, sum, EventKind::FetchAtomic, EventKind::FetchAtomicOverflow),
        (Swap, swap, EventKind::FetchAtomic, EventKind::FetchAtomicOverflow),
    ];
    for (kind, atomic, first, then) in cases {
        let mut b = bench_with(Limits { features: Features::all(), ..Limits::default() });
        let options = MeOptions::OP_GET;
        b.append_overflow(Me { ignore_bits: !0, ..me(50, options) });
        b.receive(&Header { kind, atomic, ..put(1, 8) });
        b.append(me(1, options | MeOptions::USE_ONCE | MeOptions::EVENT_UNLINK_DISABLE));
        assert_eq!(b.kinds(), [(first, 50), (then, 1)]);
    }
}

#[test]
fn a_held_entry_posts_auto_unlink_when_it_is_released() {
    let mut b = bench();
    let handle = b.append(me(1, MeOptions::USE_ONCE));
    b.ni.me_hold(handle).unwrap();
    b.ni.me_hold(handle).unwrap();
    assert_eq!(b.ni.me_unlink(handle).unwrap_err().code(), "PTL_IN_USE");
    b.receive(&put(1, 8));
    assert_eq!(b.kinds(), [(EventKind::Put, 1)]);
    b.ni.me_release(handle, &mut b.effects).unwrap();
    assert_eq!(b.kinds(), []);
    b.ni.me_release(handle, &mut b.effects).unwrap();
    assert_eq!(b.kinds(), [(EventKind::AutoUnlink, 1)]);
    assert_eq!(b.ni.me_release(handle, &mut b.effects), Err(Error::Stale("match entry")));
    let linked = b.append(me(1, MeOptions::empty()));
    assert!(b.ni.me_release(linked, &mut b.effects).unwrap_err().to_string().contains("not held"));
    assert_eq!(b.ni.me_hold(handle), Err(Error::Stale("match entry")));
    b.ni.me_unlink(linked).unwrap();
}
