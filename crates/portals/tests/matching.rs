//! Tests the rules of matching, with one case computed by hand for each rule. Quoted titles are topics of the Portals
//! 4.x specification.

use crate::common::*;
use nicety_portals::*;
use nicety_types::NodeId;

// 'Matching Semantics': match_bits and incoming bits must agree in every bit that is not ignored.
#[test]
fn ignored_bits_do_not_matter_and_the_others_do() {
    let mut b = bench();
    b.append(Me { ignore_bits: 0x00ff, ..me(0xab00, MeOptions::empty()) });
    assert_eq!(b.arrive(&put(0xab00, 8)).map(|d| d.mlength), Ok(8));
    assert_eq!(b.arrive(&put(0xab7f, 8)).map(|d| d.mlength), Ok(8));
    assert_eq!(b.arrive(&put(0xaa00, 8)), Err(DropReason::NoMatch));
    assert_eq!(b.arrive(&put(1 << 63 | 0xab00, 8)), Err(DropReason::NoMatch));
}

// 'ptl_me_t': match_id; PTL_RANK_ANY accepts messages of all ranks.
#[test]
fn an_entry_for_one_rank_takes_only_its_messages() {
    let mut b = bench();
    let own = b.append(Me { source: Source::Rank(NodeId(3)), ..me(1, MeOptions::empty()) });
    assert_eq!(b.arrive(&put(1, 8)), Err(DropReason::NoMatch));
    assert_eq!(b.arrive(&Header { source: NodeId(3), ..put(1, 8) }).unwrap().me, own);
    let any = b.append(me(1, MeOptions::empty()));
    assert_eq!(b.arrive(&put(1, 8)).unwrap().me, any);
}

// 'Matching Lists': the list is searched in the order of the appends.
#[test]
fn the_oldest_entry_that_matches_wins_and_the_search_is_counted() {
    let mut b = bench();
    b.append(me(1, MeOptions::empty()));
    let first = b.append(me(2, MeOptions::USE_ONCE));
    let second = b.append(me(2, MeOptions::USE_ONCE));
    let (x, y) = (b.arrive(&put(2, 8)).unwrap(), b.arrive(&put(2, 8)).unwrap());
    assert_eq!((x.me, x.searched), (first, 2));
    assert_eq!((y.me, y.searched), (second, 2));
    assert_eq!(b.arrive(&put(2, 8)), Err(DropReason::NoMatch));
}

// 'PTL_ME_USE_ONCE': the entry is unlinked at the match, not at the end of the message. AUTO_UNLINK follows the end.
#[test]
fn a_use_once_entry_is_gone_at_the_header_and_says_so_at_the_end() {
    let mut b = bench();
    let handle = b.append(me(9, MeOptions::USE_ONCE));
    let delivery = b.arrive(&put(9, 8)).unwrap();
    assert_eq!(b.arrive(&put(9, 8)), Err(DropReason::NoMatch));
    assert!(b.effects.is_empty());
    assert_eq!(b.ni.me_unlink(handle).unwrap_err().code(), "PTL_IN_USE");
    b.complete(&delivery);
    assert_eq!(b.kinds(), [(EventKind::Put, 9), (EventKind::AutoUnlink, 9)]);
    assert_eq!(b.ni.me_unlink(handle), Err(Error::Stale("match entry")));
    assert_eq!(b.ni.complete(&delivery, FailType::Ok, &mut b.effects), Err(Error::Stale("match entry")));
}

// 'PTL_ME_EVENT_LINK_DISABLE', 'PTL_ME_EVENT_UNLINK_DISABLE', 'PTL_ME_EVENT_COMM_DISABLE'.
#[test]
fn link_and_unlink_events_can_be_switched_off() {
    let mut b = bench();
    b.append(Me {
        options: MeOptions::OP_PUT | MeOptions::USE_ONCE,
        user_ptr: 4,
        ..me(1, MeOptions::empty())
    });
    assert_eq!(b.kinds(), [(EventKind::Link, 4)]);
    b.receive(&put(1, 8));
    assert_eq!(b.kinds(), [(EventKind::Put, 4), (EventKind::AutoUnlink, 4)]);
    b.append(me(2, MeOptions::USE_ONCE | MeOptions::EVENT_UNLINK_DISABLE | MeOptions::EVENT_COMM_DISABLE));
    b.receive(&put(2, 8));
    assert_eq!(b.kinds(), []);
}

// 'PTL_EVENT_PUT': the fields of the event.
#[test]
fn the_put_event_has_the_length_and_the_place() {
    let mut b = bench();
    b.append(me(1, MeOptions::empty()));
    b.receive(&Header { remote_offset: 90, ..put(1, 24) });
    let expected = Event {
        kind: EventKind::Put,
        fail: FailType::Ok,
        initiator: PEER,
        pt: 0,
        list: List::Priority,
        match_bits: 1,
        uid: 0,
        atomic: None,
        hdr_data: 0xda7a,
        rlength: 24,
        mlength: 10,
        remote_offset: 90,
        start: 0x1000 + 90,
        user_ptr: 1,
    };
    assert_eq!(b.take(), [Effect::Event { eq: b.eq, event: expected }]);
}

// 'PTL_ME_NO_TRUNCATE': the available memory is the entry's length minus the offset.
#[test]
fn messages_are_cut_unless_the_entry_forbids_it() {
    let mut b = bench();
    let cut = b.append(me(1, MeOptions::empty()));
    for (offset, length, kept) in [(0, 100, 100), (0, 101, 100), (40, 100, 60), (100, 1, 0), (1 << 63, 5, 0)]
    {
        let delivery = b.receive(&Header { remote_offset: offset, ..put(1, length) });
        assert_eq!((delivery.mlength, delivery.rlength, delivery.remote_offset), (kept, length, offset));
        assert_eq!(delivery.start, 0x1000 + offset.min(100));
    }
    assert_eq!(b.ni.statistics().truncated, 4);
    b.ni.me_unlink(cut).unwrap();
    b.append(me(1, MeOptions::NO_TRUNCATE));
    assert_eq!(b.arrive(&Header { remote_offset: 60, ..put(1, 41) }), Err(DropReason::NoMatch));
    assert_eq!(b.arrive(&Header { remote_offset: 60, ..put(1, 40) }).unwrap().mlength, 40);
}

// A message that is too long for a NO_TRUNCATE entry is compared with the next entries.
#[test]
fn an_entry_too_small_lets_the_next_one_have_the_message() {
    let mut b = bench();
    b.append(Me { length: 10, ..me(1, MeOptions::NO_TRUNCATE) });
    let large = b.append(me(1, MeOptions::NO_TRUNCATE));
    assert_eq!(b.arrive(&put(1, 11)).unwrap().me, large);
}

// Zero-length messages match and count like any other.
#[test]
fn a_message_without_bytes_matches() {
    let mut b = bench();
    b.append(Me { length: 0, ..me(1, MeOptions::NO_TRUNCATE) });
    assert_eq!(b.receive(&put(1, 0)).mlength, 0);
    assert_eq!(b.kinds(), [(EventKind::Put, 1)]);
}

// 'PTL_ME_MANAGE_LOCAL' and min_free: the entry is unlinked when fewer than min_free bytes are left.
#[test]
fn a_locally_managed_entry_packs_messages_and_unlinks_when_little_is_left() {
    let mut b = bench();
    b.append(Me { min_free: 30, ..me(1, MeOptions::MANAGE_LOCAL) });
    let first = b.arrive(&Header { remote_offset: 99, ..put(1, 40) }).unwrap();
    let second = b.arrive(&put(1, 30)).unwrap();
    assert_eq!((first.start, first.remote_offset), (0x1000, 0));
    assert_eq!((second.start, second.remote_offset), (0x1000 + 40, 40));
    let third = b.arrive(&put(1, 31)).unwrap(); // exactly 30 were left
    assert_eq!((third.start, third.mlength), (0x1000 + 70, 30));
    assert_eq!(b.arrive(&put(1, 0)), Err(DropReason::NoMatch));
    b.complete(&third);
    b.complete(&first);
    assert_eq!(b.kinds(), [(EventKind::Put, 1), (EventKind::Put, 1)]);
    b.complete(&second);
    assert_eq!(b.kinds(), [(EventKind::Put, 1), (EventKind::AutoUnlink, 1)]);
}

// 'PTL_ME_OP_PUT': by default, entries refuse puts. A refused message is not compared with the next entries.
#[test]
fn a_put_to_an_entry_that_takes_none_is_dropped_and_counted() {
    let mut b = bench();
    b.append(Me { options: MeOptions::OP_GET | MeOptions::EVENT_LINK_DISABLE, ..me(1, MeOptions::empty()) });
    b.append(me(1, MeOptions::empty()));
    assert_eq!(b.arrive(&Header { ack: AckRequest::Full, ..put(1, 8) }), Err(DropReason::OpViolation));
    assert_eq!(b.ni.statistics().dropped(DropReason::OpViolation), 1);
    let [Effect::Ack(answer)] = b.take()[..] else { panic!("one answer") };
    assert_eq!((answer.fail, answer.target, answer.operation), (FailType::OpViolation, PEER, 77));
}

#[test]
fn drops_are_counted_by_reason_and_answered_only_where_asked() {
    let mut b = bench();
    let asked = |header: Header| Header { ack: AckRequest::Counting, ..header };
    assert_eq!(b.arrive(&put(1, 8)), Err(DropReason::NoMatch));
    assert_eq!(b.take(), []);
    let cases = [
        (asked(put(1, 8)), DropReason::NoMatch, Some(FailType::Dropped)),
        (asked(Header { pt: 9, ..put(1, 8) }), DropReason::PtInvalid, Some(FailType::Dropped)),
        (asked(Header { pt: u32::MAX, ..put(1, 8) }), DropReason::PtInvalid, Some(FailType::Dropped)),
        (asked(Header { target: PEER, ..put(1, 8) }), DropReason::WrongTarget, None),
        (
            asked(Header { kind: HeaderKind::Get, ..put(1, 8) }),
            DropReason::Unsupported,
            Some(FailType::Unsupported),
        ),
        (
            Header { kind: HeaderKind::Swap, ..put(1, 8) },
            DropReason::Unsupported,
            Some(FailType::Unsupported),
        ),
        (
            asked(Header { kind: HeaderKind::Atomic, ..put(1, 8) }),
            DropReason::Unsupported,
            Some(FailType::Unsupported),
        ),
        (Header { kind: HeaderKind::Reply, ..put(1, 8) }, DropReason::Unsupported, None),
        (asked(Header { kind: HeaderKind::Ack, ..put(1, 8) }), DropReason::StrayAnswer, None),
    ];
    for (header, reason, answer) in cases {
        assert_eq!(b.arrive(&header), Err(reason), "{header:?}");
        let answers = b.take();
        assert_eq!(answers.len(), usize::from(answer.is_some()), "{header:?}");
        for effect in answers {
            let Effect::Ack(ack) = effect else { panic!("{effect:?} is no answer") };
            assert_eq!((Some(ack.fail), ack.length), (answer, 0));
            let replied = header.kind.wants_reply();
            assert_eq!(ack.kind, if replied { HeaderKind::Reply } else { HeaderKind::Ack });
            assert_eq!(ack.ack, if replied { AckRequest::None } else { AckRequest::Counting });
        }
    }
    b.ni.pt_disable(0).unwrap();
    assert_eq!(b.arrive(&put(1, 8)), Err(DropReason::PtDisabled));
    b.ni.pt_enable(0).unwrap();
    assert_eq!(b.arrive(&put(1, 8)), Err(DropReason::NoMatch));
    let statistics = b.ni.statistics();
    assert_eq!(statistics.dropped(DropReason::NoMatch), 3);
    assert_eq!(statistics.dropped(DropReason::PtInvalid), 2);
    assert_eq!(statistics.dropped_total(), 12);
    assert_eq!(DropReason::PtDisabled.fail_type(), FailType::PtDisabled);
    assert_eq!(DropReason::NoMatch.to_string(), "no match entry takes it");
}

// 'Counting events': EVENT_CT_COMM counts messages, and with EVENT_CT_BYTES the bytes kept. A failure counts one.
#[test]
fn counters_count_messages_or_the_bytes_kept() {
    let mut b = bench();
    let (ct, quiet) = (Some(b.ct), MeOptions::EVENT_CT_COMM | MeOptions::EVENT_COMM_DISABLE);
    let messages = b.append(Me { ct, ..me(1, quiet) });
    b.receive(&put(1, 101));
    assert_eq!(b.take(), [Effect::Count { ct: b.ct, value: CtEvent::success(1) }]);
    b.ni.me_unlink(messages).unwrap();
    b.append(Me { ct, ..me(1, quiet | MeOptions::EVENT_CT_BYTES) });
    b.receive(&put(1, 101));
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::success(101)));
    let delivery = b.arrive(&put(1, 50)).unwrap();
    b.ni.complete(&delivery, FailType::HandlerError, &mut b.effects).unwrap();
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent { success: 101, failure: 1 }));
}

// 'PTL_ME_EVENT_SUCCESS_DISABLE': a failure still posts an event, with zero bytes kept.
#[test]
fn a_failure_is_an_event_even_where_success_is_silent() {
    let mut b = bench();
    b.append(me(1, MeOptions::EVENT_SUCCESS_DISABLE));
    b.receive(&put(1, 8));
    assert_eq!(b.take(), []);
    let delivery = b.arrive(&put(1, 8)).unwrap();
    b.ni.complete(&delivery, FailType::Segv, &mut b.effects).unwrap();
    let [Effect::Event { event, .. }] = b.take()[..] else { panic!("one event") };
    assert_eq!((event.fail, event.mlength, event.rlength), (FailType::Segv, 0, 8));
}

// Messages match in the order in which their headers arrive, and may complete in any order.
#[test]
fn completion_may_overtake() {
    let mut b = bench();
    b.append(me(1, MeOptions::USE_ONCE));
    b.append(me(2, MeOptions::USE_ONCE));
    let (one, two) = (b.arrive(&put(1, 8)).unwrap(), b.arrive(&put(2, 8)).unwrap());
    b.complete(&two);
    b.complete(&one);
    let order: Vec<u64> = b.kinds().into_iter().map(|(_, user)| user).collect();
    assert_eq!(order, [2, 2, 1, 1]);
}

#[test]
fn a_delivery_is_completed_once() {
    let mut b = bench();
    b.append(me(1, MeOptions::empty()));
    let delivery = b.receive(&put(1, 8));
    let again = b.ni.complete(&delivery, FailType::Ok, &mut b.effects).unwrap_err();
    assert_eq!(again.to_string(), "PTL_ARG_INVALID: this message is complete already");
}

#[test]
fn a_full_event_queue_loses_events_and_says_so() {
    let mut b = bench();
    let eq = b.ni.eq_alloc(2).unwrap();
    b.ni.pt_alloc(Some(1), Some(eq)).unwrap();
    b.ni.me_append(1, me(1, MeOptions::empty()), List::Priority, &mut b.effects).unwrap();
    for _ in 0..3 {
        b.receive(&Header { pt: 1, ..put(1, 8) });
    }
    assert_eq!(b.take()[2], Effect::EventDropped { eq });
    assert_eq!((b.ni.eq_dropped(eq), b.ni.statistics().events_dropped), (Ok(1), 1));
    b.ni.eq_consumed(eq, 1).unwrap();
    b.receive(&Header { pt: 1, ..put(1, 8) });
    assert_eq!(b.kinds(), [(EventKind::Put, 1)]);
}

// A handler may drop bytes that the entry would have kept.
#[test]
fn the_card_may_keep_fewer_bytes() {
    let mut b = bench();
    let options = MeOptions::EVENT_CT_COMM | MeOptions::EVENT_CT_BYTES;
    b.append(Me { ct: Some(b.ct), ..me(1, options) });
    let mut delivery = b.arrive(&Header { ack: AckRequest::Full, ..put(1, 30) }).unwrap();
    delivery.mlength = 12;
    b.complete(&delivery);
    let effects = b.take();
    let [Effect::Event { event, .. }, Effect::Ack(ack), Effect::Count { value, .. }] = effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((event.rlength, event.mlength, ack.length, value.success), (30, 12, 12, 12));
}

#[test]
fn names_are_those_of_the_specification() {
    assert_eq!(EventKind::PutOverflow.to_string(), "PTL_EVENT_PUT_OVERFLOW");
    assert_eq!(FailType::OpViolation.to_string(), "PTL_NI_OP_VIOLATION");
    assert_eq!(EventKind::ALL.len(), 16);
}
