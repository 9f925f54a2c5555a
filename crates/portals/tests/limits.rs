//! Tests that each resource has a limit with an error, and that each handle becomes stale.

use crate::common::*;
use nicety_portals::*;

const SMALL: Limits = Limits {
    entries: 3,
    list_length: 2,
    unexpected_headers: 1,
    descriptors: 1,
    counters: 1,
    event_queues: 1,
    event_queue_depth: 16,
    portal_table: 2,
    triggered: 1,
    operations: 1,
    message_bytes: 100,
    atomic_bytes: 16,
    fetch_atomic_bytes: 8,
    features: Features::all(),
};

#[test]
fn entries_of_the_cards_own_take_no_room_from_the_hosts() {
    let mut b = bench_with(Limits { entries: 3, ..Limits::default() });
    let me = |options| Me { user_ptr: 9, ..me(1, options) };
    for _ in 0..2 {
        b.ni.me_append_own(0, me(MeOptions::USE_ONCE), List::Overflow).unwrap();
    }
    let appended: Vec<_> = (0..2).map(|_| b.append(me(MeOptions::empty()))).collect();
    assert_eq!(b.kinds(), []);
    b.append_overflow(me(MeOptions::empty()));
    let list = b.ni.me_append(0, me(MeOptions::empty()), List::Overflow, &mut b.effects);
    assert_eq!(list, Err(Error::NoSpace { what: "match entry", name: "entries", limit: 3 }));
    // The limit is the same after the entries have been unlinked.
    appended.into_iter().for_each(|entry| b.ni.me_unlink(entry).unwrap());
    b.receive(&put(1, 8));
    b.append(me(MeOptions::USE_ONCE));
    assert_eq!(b.kinds().last(), Some(&(EventKind::AutoFree, 9)));
    b.append(me(MeOptions::empty()));
    b.append(me(MeOptions::empty()));
    let full = b.ni.me_append(0, me(MeOptions::empty()), List::Priority, &mut b.effects);
    assert!(full.is_err(), "{full:?}");
}

#[test]
fn the_entry_behind_the_table_is_the_cards_own() {
    let limits = Limits { portal_table: 1, ..Limits::default() };
    let mut b = bench_with(limits);
    assert_eq!(b.ni.pt_alloc_own(Some(b.eq)), Ok(()));
    assert_eq!(b.ni.pt_alloc_own(None).unwrap_err().code(), "PTL_PT_IN_USE");
    // The entry of the card's own software takes no place in the host's table, and the host cannot allocate it.
    assert_eq!(b.ni.pt_alloc(None, None), Err(Error::PtFull { limit: 1 }));
    assert_eq!(b.ni.pt_alloc(Some(OWN_PT), None).unwrap_err().code(), "PTL_ARG_INVALID");
    assert_eq!(b.arrive(&Header { pt: OWN_PT, ..put(1, 8) }), Err(DropReason::NoMatch));
    b.ni.me_append_own(OWN_PT, me(1, MeOptions::empty()), List::Priority).unwrap();
    let delivery = b.receive(&Header { pt: OWN_PT, ..put(1, 8) });
    assert_eq!(delivery.mlength, 8);
    assert_eq!(b.kinds(), [(EventKind::Put, 1)]);
}

#[test]
fn one_too_many_is_refused_with_the_name_of_the_limit() {
    let mut b = bench_with(SMALL);
    let full = |error: Error, limit: &str| {
        assert_eq!(error.code(), "PTL_NO_SPACE");
        assert!(error.to_string().contains(&format!("raise limits.{limit}")), "{error}");
    };
    full(b.ni.ct_alloc().unwrap_err(), "counters");
    full(b.ni.eq_alloc(1).unwrap_err(), "event_queues");
    let md = b.ni.md_bind(Md { length: 100, ..Md::default() }).unwrap();
    full(b.ni.md_bind(Md::default()).unwrap_err(), "descriptors");
    b.append(me(1, MeOptions::empty()));
    b.append(me(1, MeOptions::empty()));
    let long = b.ni.me_append(0, me(1, MeOptions::empty()), List::Priority, &mut b.effects).unwrap_err();
    assert_eq!(long.code(), "PTL_LIST_TOO_LONG");
    assert!(long.to_string().contains("limits.match_entries"), "{long}");
    b.append_overflow(me(1, MeOptions::empty()));
    full(
        b.ni.me_append(0, me(1, MeOptions::empty()), List::Overflow, &mut b.effects).unwrap_err(),
        "match_entries",
    );
    assert_eq!(b.ni.pt_alloc(None, None), Ok(1));
    let table = b.ni.pt_alloc(None, None).unwrap_err();
    assert_eq!(
        table.to_string(),
        "PTL_PT_FULL: all 2 portal table entries are in use; free one, or raise limits.portal_table"
    );
    let put = PutRequest::new(md, 8, PEER, 0, 0);
    b.ni.trigger(&put.into(), b.ct, 1, &mut b.effects).unwrap();
    full(b.ni.start(&put.into()).unwrap_err(), "operations");
    full(b.ni.trigger(&put.into(), b.ct, 1, &mut b.effects).unwrap_err(), "triggered");
    assert_eq!(b.ni.limits(), &SMALL);
    assert_eq!(b.ni.node(), NODE);
}

#[test]
fn freed_resources_are_reused_under_another_handle() {
    let mut b = bench_with(SMALL);
    let old = b.ct;
    b.ni.ct_free(old).unwrap();
    let new = b.ni.ct_alloc().unwrap();
    assert_ne!(old, new);
    let stale = Error::Stale("counter");
    assert_eq!(b.ni.ct_get(old), Err(stale));
    assert_eq!(b.ni.ct_free(old), Err(stale));
    assert_eq!(b.ni.ct_inc(old, CtEvent::success(1), &mut b.effects), Err(stale));
    assert_eq!(b.ni.ct_set(old, CtEvent::success(1), &mut b.effects), Err(stale));
    assert_eq!(b.ni.ct_cancel_triggered(old), Err(stale));
    assert_eq!(b.ni.triggered_ct_set(old, CtEvent::default(), new, 0, &mut b.effects), Err(stale));
    assert_eq!(b.ni.triggered_ct_set(new, CtEvent::default(), old, 0, &mut b.effects), Err(stale));
    assert_eq!(stale.code(), "PTL_ARG_INVALID");
    assert!(stale.to_string().contains("names no counter"), "{stale}");
    assert_eq!(b.ni.ct_get(new), Ok(CtEvent::default()));
    assert_eq!(CtHandle::from_bits(new.to_bits()), new);
    assert!(b.ni.ct_get(CtHandle::from_bits(0)).is_err());
}

#[test]
fn queues_and_counters_in_use_are_not_freed() {
    let mut b = bench();
    let in_use = |result: Result<(), Error>| assert_eq!(result.unwrap_err().code(), "PTL_IN_USE");
    let entry = b.append(Me { ct: Some(b.ct), ..me(1, MeOptions::EVENT_CT_COMM) });
    let md = b.ni.md_bind(Md { eq: Some(b.eq), ct: Some(b.ct), ..Md::default() }).unwrap();
    in_use(b.ni.eq_free(b.eq));
    in_use(b.ni.ct_free(b.ct));
    let busy = b.ni.pt_free(0).unwrap_err();
    assert_eq!(busy, Error::PtInUse { index: 0 });
    assert!(busy.to_string().contains("portal table entry 0 is in use"), "{busy}");
    assert_eq!(b.ni.pt_alloc(Some(0), None), Err(busy));
    b.ni.me_unlink(entry).unwrap();
    in_use(b.ni.ct_free(b.ct));
    b.ni.md_release(md).unwrap();
    assert_eq!(b.ni.md_release(md), Err(Error::Stale("memory descriptor")));
    b.ni.ct_free(b.ct).unwrap();
    b.ni.pt_free(0).unwrap();
    b.ni.eq_free(b.eq).unwrap();
    assert_eq!(b.ni.eq_consumed(b.eq, 1), Err(Error::Stale("event queue")));
    assert_eq!(b.ni.eq_dropped(b.eq), Err(Error::Stale("event queue")));
    assert!(b.ni.pt_free(0).is_err());
    let error = Error::InUse { what: "counter", by: "a match entry" };
    assert!(error.to_string().contains("the counter is still in use by a match entry"), "{error}");
}

#[test]
fn arguments_are_checked() {
    let mut b = bench();
    let invalid = |result: Result<(), Error>, text: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), "PTL_ARG_INVALID");
        assert!(error.to_string().contains(text), "{error}");
    };
    let mut append = |pt, me| b.ni.me_append(pt, me, List::Priority, &mut b.effects).map(drop);
    invalid(append(1, me(1, MeOptions::empty())), "`pt_alloc`");
    invalid(append(u32::MAX, me(1, MeOptions::empty())), "`pt_alloc`");
    invalid(append(0, Me { start: u64::MAX, ..me(1, MeOptions::empty()) }), "2^64");
    invalid(append(0, me(1, MeOptions::EVENT_CT_COMM)), "need a counter");
    invalid(append(0, Me { ct: Some(CtHandle::from_bits(3)), ..me(1, MeOptions::empty()) }), "no counter");
    let md = Md { start: u64::MAX, length: 1, ..Md::default() };
    invalid(b.ni.md_bind(md).map(drop), "2^64");
    invalid(b.ni.md_bind(Md { options: MdOptions::EVENT_CT_ACK, ..Md::default() }).map(drop), "counter");
    invalid(b.ni.md_bind(Md { eq: Some(EqHandle::from_bits(9)), ..Md::default() }).map(drop), "event queue");
    invalid(b.ni.eq_alloc(0).map(drop), "`event_queue_depth`");
    invalid(b.ni.pt_alloc(Some(64), None).map(drop), "`portal_table`");
    invalid(b.ni.pt_alloc(None, Some(EqHandle::from_bits(9))).map(drop), "event queue");
    invalid(b.ni.pt_enable(7), "not in use");
    invalid(b.ni.pt_disable(7), "not in use");
}
