//! Tests the redelivery of unexpected messages.

use crate::common::*;
use nicety_portals::*;
use proptest::prelude::*;

const LATE: MeOptions = MeOptions::USE_ONCE.union(MeOptions::REDELIVER);

fn overflow(options: MeOptions) -> Me {
    Me { ignore_bits: !0, user_ptr: 50, start: 0x8000, ..me(0, options | MeOptions::EVENT_COMM_DISABLE) }
}

/// Returns the header and the start of the only message that the card redelivers to itself.
fn sent(b: &mut Bench) -> (Header, u64) {
    match b.take()[..] {
        [Effect::Redeliver { header, start }] => (header, start),
        ref other => panic!("one message to itself, not {other:?}"),
    }
}

#[test]
fn a_late_entry_has_its_message_delivered_with_its_own_header() {
    let mut b = bench();
    b.append_overflow(overflow(MeOptions::MANAGE_LOCAL));
    b.receive(&put(1, 10));
    b.receive(&put(2, 20));
    assert_eq!(b.take(), []);
    b.append(Me { handlers: Some(9), ..me(2, LATE) });
    let (header, start) = sent(&mut b);
    assert_eq!((header.source, header.target, header.length, start), (NODE, NODE, 20, 0x8000 + 10));
    // A message of another node, or with another length, is not accepted as a redelivery.
    assert_eq!(b.arrive(&Header { source: PEER, ..header }), Err(DropReason::PtInvalid));
    assert_eq!(b.arrive(&Header { length: 21, ..header }), Err(DropReason::PtInvalid));
    assert_eq!(b.ni.prospect(&header), Some(Prospect { handlers: Some(9), flow_control: false }));
    let delivery = b.receive(&header);
    assert_eq!(
        (delivery.header, delivery.handlers),
        (Header { ack: AckRequest::None, ..put(2, 20) }, Some(9))
    );
    assert_eq!((delivery.start, delivery.mlength, delivery.list), (0x1000, 20, List::Overflow));
    assert_eq!(b.kinds(), [(EventKind::Put, 2), (EventKind::AutoUnlink, 2)]);
    // A message is redelivered only once.
    assert_eq!(b.arrive(&header), Err(DropReason::PtInvalid));
}

#[test]
fn it_waits_for_the_bytes_and_keeps_the_overflow_entry() {
    let mut b = bench();
    b.append_overflow(Me { min_free: 90, ..overflow(MeOptions::MANAGE_LOCAL) });
    let first = b.arrive(&put(2, 20)).unwrap();
    let handle = b.append(me(2, LATE));
    assert_eq!(b.kinds(), []);
    b.complete(&first);
    let [Effect::Event { event, .. }, Effect::Redeliver { header, .. }] = b.take()[..] else { panic!() };
    assert_eq!(event.kind, EventKind::AutoUnlink);
    assert_eq!(b.ni.me_unlink(handle).unwrap_err().code(), "PTL_IN_USE");
    let delivery = b.arrive(&header).unwrap();
    assert_eq!(b.kinds(), []);
    b.complete(&delivery);
    let ends = [(EventKind::Put, 2), (EventKind::AutoUnlink, 2), (EventKind::AutoFree, 50)];
    assert_eq!(b.kinds(), ends);
    b.ni.pt_free(0).unwrap();
}

#[test]
fn it_may_be_cut_again_and_counts() {
    let mut b = bench();
    b.append_overflow(Me { length: 60, ..overflow(MeOptions::empty()) });
    b.receive(&put(2, 80));
    let options = LATE | MeOptions::EVENT_CT_COMM | MeOptions::EVENT_CT_BYTES;
    let late = me(2, options);
    b.append(Me { length: 50, ct: Some(b.ct), ..late });
    let (header, _) = sent(&mut b);
    let delivery = b.receive(&header);
    // Only the 60 bytes that the overflow entry has kept are redelivered.
    assert_eq!((delivery.rlength, delivery.mlength), (60, 50));
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::success(50)));
}

#[test]
fn a_message_that_the_card_has_no_room_for_fails() {
    let mut b = bench();
    b.append_overflow(overflow(MeOptions::MANAGE_LOCAL));
    b.receive(&put(2, 20));
    b.append(me(2, LATE));
    let (header, _) = sent(&mut b);
    let Bench { ni, effects, .. } = &mut b;
    assert_eq!(ni.arrive_if(&header, |_| false, effects), Arrival::Dropped(DropReason::NoContext));
    let [Effect::Event { event, .. }, _] = b.take()[..] else { panic!("a failure and the unlink") };
    assert_eq!((event.kind, event.fail, event.mlength), (EventKind::Put, FailType::Dropped, 0));
    b.ni.pt_free(0).unwrap_err();
}

#[test]
fn other_entries_are_refused_and_other_operations_only_named() {
    let mut b = bench();
    for options in [MeOptions::REDELIVER, LATE | MeOptions::MANAGE_LOCAL] {
        let refused = b.ni.me_append(0, me(1, options), List::Priority, &mut b.effects).unwrap_err();
        assert_eq!(refused.code(), "PTL_ARG_INVALID");
        assert!(refused.to_string().contains("REDELIVER"), "{refused}");
    }
    b.append_overflow(overflow(MeOptions::MANAGE_LOCAL));
    b.receive(&put(2, 20));
    // A search that deletes gets an event, because it has no memory for a redelivery.
    b.ni.me_search(0, me(2, LATE), SearchOp::Delete, &mut b.effects).unwrap();
    assert_eq!(b.kinds(), [(EventKind::PutOverflow, 2)]);
}

proptest! {
    // Messages and match entries with the same match bits meet in order. Either may be first.
    #[test]
    fn messages_and_entries_meet_in_order(late in prop::collection::vec(any::<bool>(), 1..12)) {
        let mut b = bench_with(Limits { event_queue_depth: 64, ..Limits::default() });
        b.append_overflow(overflow(MeOptions::MANAGE_LOCAL));
        let quiet = LATE | MeOptions::EVENT_COMM_DISABLE | MeOptions::EVENT_UNLINK_DISABLE;
        let (mut arrived, mut appended, mut got) = (0, 0, vec![]);
        // Each step appends an entry or receives a message. At the end, there are `n` entries and `n` messages.
        let n = late.len() as u64;
        let rest = std::iter::repeat_n(true, late.len()).chain(std::iter::repeat_n(false, late.len()));
        for appends in late.into_iter().chain(rest) {
            if appends && appended < n {
                b.append(Me { user_ptr: appended, ..me(7, quiet) });
                appended += 1;
            } else if !appends && arrived < n {
                let delivery = b.receive(&Header { hdr_data: arrived, ..put(7, 1) });
                arrived += 1;
                if delivery.list == List::Priority {
                    got.push((delivery.user_ptr, delivery.header.hdr_data));
                }
            }
            for effect in b.take() {
                let Effect::Redeliver { header, .. } = effect else { panic!("{effect:?}") };
                let delivery = b.receive(&header);
                got.push((delivery.user_ptr, delivery.header.hdr_data));
            }
        }
        prop_assert_eq!(got.len() as u64, n);
        prop_assert!(got.iter().all(|(entry, message)| entry == message), "{:?}", got);
    }
}
