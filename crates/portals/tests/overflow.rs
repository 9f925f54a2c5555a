//! Tests the overflow list and its unexpected headers ('Overflow List', 'PtlMEAppend').

use crate::common::*;
use nicety_portals::*;

const ONCE: MeOptions = MeOptions::USE_ONCE;
const LOCAL: MeOptions = MeOptions::MANAGE_LOCAL;

fn anything(user_ptr: u64, options: MeOptions) -> Me {
    Me { ignore_bits: !0, user_ptr, start: 0x8000, ..me(0, options) }
}

#[test]
fn the_overflow_list_is_searched_last() {
    let mut b = bench();
    b.append_overflow(anything(50, LOCAL));
    b.append(me(1, ONCE));
    let (first, second) = (b.receive(&put(1, 8)), b.receive(&put(1, 8)));
    assert_eq!((first.list, second.list), (List::Priority, List::Overflow));
    assert_eq!((second.start, second.searched), (0x8000, 1));
    assert_eq!((b.ni.statistics().matched, b.ni.statistics().matched_overflow), (1, 1));
}

// The event of the append has the address in the overflow entry and the user word of the appended entry.
#[test]
fn a_use_once_append_takes_the_first_header_and_is_never_linked() {
    let mut b = bench();
    let overflow = b.append_overflow(anything(50, LOCAL));
    b.receive(&put(1, 10));
    b.receive(&put(2, 20));
    b.receive(&put(2, 30));
    b.take();
    assert_eq!(b.ni.me_unlink(overflow).unwrap_err().code(), "PTL_IN_USE");
    let handle = b.append(me(2, ONCE));
    let effects = b.take();
    let [Effect::Event { event, .. }, Effect::Event { event: unlinked, .. }] = effects[..] else {
        panic!("two events, not {effects:?}")
    };
    assert_eq!((event.kind, event.user_ptr, event.list), (EventKind::PutOverflow, 2, List::Overflow));
    assert_eq!((event.start, event.mlength, event.remote_offset), (0x8000 + 10, 20, 10));
    assert_eq!((unlinked.kind, unlinked.user_ptr), (EventKind::AutoUnlink, 2));
    assert_eq!(b.ni.me_unlink(handle).unwrap_err().code(), "PTL_ARG_INVALID");
    // Each append takes one header. When no header is left, the next entry is linked.
    b.append(me(2, ONCE));
    assert_eq!(b.kinds(), [(EventKind::PutOverflow, 2), (EventKind::AutoUnlink, 2)]);
    b.append(me(2, ONCE));
    assert_eq!(b.kinds(), []);
    assert_eq!(b.receive(&put(2, 5)).list, List::Priority);
}

#[test]
fn a_persistent_append_takes_all_headers_and_is_linked_after() {
    let mut b = bench();
    b.append_overflow(anything(50, LOCAL));
    b.receive(&put(2, 20));
    b.receive(&put(1, 10));
    b.receive(&put(2, 30));
    b.take();
    let options = MeOptions::OP_PUT | MeOptions::EVENT_CT_OVERFLOW | MeOptions::EVENT_CT_BYTES;
    b.append(Me { options, ct: Some(b.ct), ..me(2, MeOptions::empty()) });
    assert_eq!(b.kinds(), [(EventKind::PutOverflow, 2), (EventKind::PutOverflow, 2), (EventKind::Link, 2)]);
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::success(50)));
    assert_eq!(b.receive(&put(2, 5)).list, List::Priority);
}

// At the append, the message's bytes may still be in flight.
#[test]
fn an_append_waits_for_the_bytes_of_the_header_it_takes() {
    let mut b = bench();
    b.append_overflow(anything(50, LOCAL));
    let delivery = b.arrive(&put(2, 20)).unwrap();
    let handle = b.append(me(2, ONCE));
    b.append(me(2, ONCE)); // one entry takes one message
    assert_eq!(b.kinds(), []);
    assert_eq!(b.ni.me_unlink(handle).unwrap_err().code(), "PTL_IN_USE");
    b.complete(&delivery);
    let expected = [(EventKind::Put, 50), (EventKind::PutOverflow, 2), (EventKind::AutoUnlink, 2)];
    assert_eq!(b.kinds(), expected);
    assert!(b.ni.complete(&delivery, FailType::Ok, &mut b.effects).is_err());
    assert!(b.effects.is_empty());
}

// 'PTL_EVENT_AUTO_FREE' follows AUTO_UNLINK, when an append takes the last header that refers to the entry.
#[test]
fn an_overflow_entry_is_free_when_its_last_header_is_taken() {
    let mut b = bench();
    b.append_overflow(Me { min_free: 90, ..anything(50, LOCAL) });
    b.receive(&put(1, 20));
    assert_eq!(b.kinds(), [(EventKind::Put, 50), (EventKind::AutoUnlink, 50)]);
    b.append(me(1, ONCE | MeOptions::EVENT_OVER_DISABLE));
    assert_eq!(b.kinds(), [(EventKind::AutoUnlink, 1), (EventKind::AutoFree, 50)]);
    b.ni.pt_free(0).unwrap();
}

// 'ptl_event_t': every event of a match entry has its pt_index.
#[test]
fn events_name_their_portal_table_entry() {
    let mut b = bench();
    let pt = b.ni.pt_alloc(Some(4), Some(b.eq)).unwrap();
    let message = Header { pt, ..put(1, 20) };
    let options = MeOptions::OP_PUT | ONCE;
    b.ni.me_append(pt, anything(50, ONCE), List::Overflow, &mut b.effects).unwrap();
    b.receive(&message);
    b.ni.me_search(pt, me(1, ONCE), SearchOp::Only, &mut b.effects).unwrap();
    b.ni.me_append(pt, Me { options, ..me(1, ONCE) }, List::Priority, &mut b.effects).unwrap();
    b.ni.me_append(pt, Me { options, ..me(1, ONCE) }, List::Priority, &mut b.effects).unwrap();
    b.receive(&message);
    let events: Vec<_> = b
        .take()
        .into_iter()
        .map(|effect| match effect {
            Effect::Event { event, .. } => (event.kind, event.pt),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        EventKind::Put,
        EventKind::AutoUnlink,
        EventKind::Search,
        EventKind::PutOverflow,
        EventKind::AutoUnlink,
        EventKind::AutoFree,
        EventKind::Link,
        EventKind::Put,
        EventKind::AutoUnlink,
    ];
    assert_eq!(events, expected.map(|kind| (kind, 4)));
}

#[test]
fn without_a_header_an_overflow_entry_is_free_at_once() {
    let mut b = bench();
    b.append_overflow(anything(50, ONCE | MeOptions::UNEXPECTED_HDR_DISABLE));
    b.receive(&put(1, 20));
    let expected = [(EventKind::Put, 50), (EventKind::AutoUnlink, 50), (EventKind::AutoFree, 50)];
    assert_eq!(b.kinds(), expected);
    b.append(me(1, ONCE));
    assert_eq!(b.kinds(), []);
}

#[test]
fn headers_are_limited_and_one_too_many_leaves_no_trace() {
    let mut b = bench_with(Limits { unexpected_headers: 1, ..Limits::default() });
    b.append_overflow(anything(50, LOCAL));
    b.receive(&put(1, 20));
    assert_eq!(b.arrive(&put(1, 20)), Err(DropReason::NoUnexpectedHeader));
    b.append(me(1, ONCE));
    assert_eq!(b.receive(&put(1, 20)).remote_offset, 20);
}

// 'ptl_event_t': the event of an acknowledgement has ptl_list, too. The value shows the sender that the message was
// unexpected.
#[test]
fn an_acknowledgement_names_the_list_that_the_message_matched() {
    let mut b = bench();
    b.append_overflow(Me { length: 0, ..anything(50, MeOptions::EVENT_COMM_DISABLE) });
    b.append(me(1, ONCE | MeOptions::EVENT_COMM_DISABLE | MeOptions::EVENT_UNLINK_DISABLE));
    for (list, mlength) in [(List::Priority, 20), (List::Overflow, 0)] {
        let md = Md { start: 0x4000, length: 100, eq: Some(b.eq), ..Md::default() };
        let md = b.ni.md_bind(md).unwrap();
        let request = PutRequest { ack: AckRequest::Full, ..PutRequest::new(md, 20, PEER, 0, 1) };
        let out = b.ni.start(&request.into()).unwrap();
        b.receive(&Header { ack: AckRequest::Full, operation: out.operation.to_bits(), ..put(1, 20) });
        let [Effect::Ack(ack)] = b.take()[..] else { panic!("an acknowledgement alone") };
        assert_eq!((ack.list, ack.length), (list, mlength));
        // The list is in the encoded acknowledgement, and in the event at the initiator. Here the initiator is the same
        // interface.
        let back = Header { source: PEER, target: NODE, ..Header::decode(&ack.encode()).unwrap() };
        b.ni.arrive(&back, &mut b.effects);
        let [Effect::Event { event, .. }] = b.take()[..] else { panic!("an event alone") };
        assert_eq!((event.kind, event.list, event.mlength), (EventKind::Ack, list, mlength));
        b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
        b.take();
    }
}

#[test]
fn unexpected_messages_are_known() {
    let mut b = bench();
    assert_eq!((b.ni.unexpected(0), b.ni.unexpected(9)), (None, None));
    b.append_overflow(anything(50, LOCAL));
    b.receive(&put(1, 10));
    b.arrive(&put(2, 20)).unwrap();
    let first = UnexpectedMessage { source: PEER, match_bits: 1, length: 10 };
    assert_eq!(b.ni.unexpected(0), Some((first, 2)));
    b.append(me(1, ONCE));
    let second = UnexpectedMessage { source: PEER, match_bits: 2, length: 20 };
    assert_eq!(b.ni.unexpected(0), Some((second, 1)));
    // The message is not complete, but an appended entry has taken it.
    b.append(me(2, ONCE));
    assert_eq!(b.ni.unexpected(0), None);
}

#[test]
fn a_message_that_failed_is_found_as_a_failure() {
    let mut b = bench();
    b.append_overflow(anything(50, LOCAL | MeOptions::EVENT_COMM_DISABLE));
    let delivery = b.arrive(&put(1, 20)).unwrap();
    b.ni.complete(&delivery, FailType::Segv, &mut b.effects).unwrap();
    b.append(Me { ct: Some(b.ct), ..me(1, ONCE | MeOptions::EVENT_CT_OVERFLOW) });
    let Effect::Event { event, .. } = b.take()[0] else { panic!("an event first") };
    assert_eq!((event.kind, event.fail, event.mlength), (EventKind::PutOverflow, FailType::Segv, 0));
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::failure(1)));
}

#[test]
fn an_entry_that_takes_no_puts_leaves_the_headers_alone() {
    let mut b = bench();
    b.append_overflow(anything(50, LOCAL));
    b.receive(&put(1, 20));
    b.take();
    let gets = MeOptions::OP_GET | MeOptions::EVENT_LINK_DISABLE;
    let handle = b.append(Me { options: gets, ..me(1, MeOptions::empty()) });
    assert_eq!(b.kinds(), []);
    b.ni.me_unlink(handle).unwrap();
    b.append(me(1, ONCE));
    assert_eq!(b.kinds().len(), 2);
}
