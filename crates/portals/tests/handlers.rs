//! Tests the calls that only a card with handlers makes.

use crate::common::*;
use nicety_portals::*;

#[test]
fn a_message_that_completes_silently_leaves_only_its_acknowledgement() {
    let mut b = bench();
    let ct = Some(b.ct);
    let handle = b.append(Me { ct, ..me(1, MeOptions::USE_ONCE | MeOptions::EVENT_CT_COMM) });
    let acknowledged = Header { ack: AckRequest::Full, ..put(1, 8) };
    let delivery = b.arrive(&acknowledged).unwrap();
    b.ni.me_hold(handle).unwrap();
    b.ni.complete_silently(&delivery, &mut b.effects).unwrap();
    let [Effect::Ack(ack)] = b.take()[..] else { panic!("an acknowledgement alone") };
    assert_eq!((ack.fail, ack.length), (FailType::Ok, 8));
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::default()));
    assert!(b.ni.complete_silently(&delivery, &mut b.effects).is_err(), "once");
    b.ni.me_release(handle, &mut b.effects).unwrap();
    assert_eq!(b.kinds(), [(EventKind::AutoUnlink, 1)]);
}

#[test]
fn a_silent_message_frees_the_room_reserved_for_its_event() {
    let mut b = bench();
    let eq = b.ni.eq_alloc(4).unwrap();
    b.ni.pt_alloc_with(Some(1), Some(eq), PtOptions::FLOWCTRL).unwrap();
    b.ni.me_append(1, me(1, MeOptions::empty()), List::Priority, &mut b.effects).unwrap();
    for _ in 0..100 {
        let delivery = b.arrive(&Header { pt: 1, ..put(1, 8) }).unwrap();
        b.ni.complete_silently(&delivery, &mut b.effects).unwrap();
    }
    assert_eq!(b.take(), []);
    assert_eq!(b.ni.pt_enabled(1), Ok(true));
}

#[test]
fn a_prospect_is_what_arrive_matches_and_changes_nothing() {
    let mut b = bench();
    assert_eq!(b.ni.prospect(&put(1, 8)), None);
    b.append(Me { handlers: Some(7), ..me(1, MeOptions::USE_ONCE) });
    let eq = b.ni.eq_alloc(4).unwrap();
    b.ni.pt_alloc_with(Some(1), Some(eq), PtOptions::FLOWCTRL).unwrap();
    b.ni.me_append(1, me(1, MeOptions::empty()), List::Priority, &mut b.effects).unwrap();
    for _ in 0..2 {
        assert_eq!(b.ni.prospect(&put(1, 8)), Some(Prospect { handlers: Some(7), flow_control: false }));
    }
    let controlled = Header { pt: 1, ..put(1, 8) };
    assert_eq!(b.ni.prospect(&controlled), Some(Prospect { handlers: None, flow_control: true }));
    assert_eq!(b.ni.prospect(&Header { pt: 9, ..put(1, 8) }), None);
    assert_eq!(b.ni.prospect(&Header { target: PEER, ..put(1, 8) }), None);
    assert_eq!(b.ni.prospect(&Header { kind: HeaderKind::Ack, ..put(1, 8) }), None);
    b.ni.pt_disable(1).unwrap();
    assert_eq!(b.ni.prospect(&controlled), None);
    assert_eq!(b.take(), []);
    b.receive(&put(1, 8));
    assert_eq!(b.ni.prospect(&put(1, 8)), None, "the entry was for one message");
}

#[test]
fn handlers_are_in_use_while_anything_refers_to_their_entry() {
    let mut b = bench();
    assert!(!b.ni.handlers_in_use(7));
    let entry = Me { handlers: Some(7), ..me(1, MeOptions::USE_ONCE) };
    let handle = b.append(entry);
    assert_eq!(b.ni.me(handle), Ok(&entry));
    let delivery = b.arrive(&put(1, 8)).unwrap();
    assert!(b.ni.handlers_in_use(7), "its message is not complete");
    b.complete(&delivery);
    assert!(!b.ni.handlers_in_use(7));
    assert!(!b.ni.handlers_in_use(8));
    assert_eq!(b.ni.me(handle), Err(Error::Stale("match entry")));
}

#[test]
fn a_card_that_is_short_disables_entries_with_flow_control_and_no_others() {
    let mut b = bench();
    let eq = b.ni.eq_alloc(4).unwrap();
    b.ni.pt_alloc_with(Some(1), Some(eq), PtOptions::FLOWCTRL).unwrap();
    assert!(!b.ni.pt_exhausted(0, &mut b.effects));
    assert!(!b.ni.pt_exhausted(9, &mut b.effects));
    assert_eq!(b.ni.pt_enabled(0), Ok(true));
    for _ in 0..2 {
        assert!(b.ni.pt_exhausted(1, &mut b.effects));
    }
    assert_eq!(b.ni.pt_enabled(1), Ok(false));
    assert_eq!(b.ni.statistics().flow_control, 1);
    assert_eq!(b.kinds(), [(EventKind::PtDisabled, 0)]);
}
