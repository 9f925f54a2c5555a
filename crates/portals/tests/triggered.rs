//! Triggered operations ('Triggered Operations').

use crate::common::*;
use nicety_portals::*;

fn with_md() -> (Bench, MdHandle) {
    let mut b = bench();
    let md = b.ni.md_bind(Md { start: 0x4000, length: 100, ..Md::default() }).unwrap();
    (b, md)
}

fn wait_put(b: &mut Bench, md: MdHandle, data: u64, threshold: u64) {
    let request = PutRequest { hdr_data: data, ..PutRequest::new(md, 8, PEER, 0, 1) };
    b.ni.trigger(&request.into(), b.ct, threshold, &mut b.effects).unwrap();
}

/// Returns the header data of the puts started so far.
fn started(b: &mut Bench) -> Vec<u64> {
    let data = b.effects.drain().filter_map(|e| match e {
        Effect::Start(out) => Some(out.header.hdr_data),
        _ => None,
    });
    data.collect()
}

fn inc(b: &mut Bench, n: u64) {
    b.ni.ct_inc(b.ct, CtEvent::success(n), &mut b.effects).unwrap();
}

#[test]
fn operations_start_in_the_order_of_threshold_then_age() {
    let (mut b, md) = with_md();
    for (data, threshold) in [(1, 3), (2, 1), (3, 3), (4, 2), (5, 9)] {
        wait_put(&mut b, md, data, threshold);
    }
    assert_eq!(started(&mut b), []);
    inc(&mut b, 1);
    assert_eq!(started(&mut b), [2]);
    inc(&mut b, 2);
    assert_eq!(started(&mut b), [4, 1, 3]);
    assert_eq!(b.ni.pending_triggered(), 1);
}

#[test]
fn a_request_is_checked_as_when_it_is_posted() {
    let (mut b, md) = with_md();
    let request = |md, length| Request::Put(PutRequest::new(md, length, PEER, 0, 1));
    b.ni.check_request(&request(md, 100)).unwrap();
    let refused = b.ni.check_request(&request(md, 101)).unwrap_err();
    assert_eq!(Err(refused), b.ni.trigger(&request(md, 101), b.ct, 1, &mut b.effects));
    b.ni.md_release(md).unwrap();
    assert!(matches!(b.ni.check_request(&request(md, 1)), Err(Error::Stale(_))));
    assert_eq!(b.ni.pending_triggered(), 0);
}

#[test]
fn a_threshold_reached_before_starts_at_once() {
    let (mut b, md) = with_md();
    wait_put(&mut b, md, 1, 0);
    assert_eq!(started(&mut b), [1]);
    inc(&mut b, 4);
    wait_put(&mut b, md, 2, 4);
    assert_eq!(started(&mut b), [2]);
}

#[test]
fn successes_and_failures_together_reach_a_threshold() {
    let (mut b, md) = with_md();
    for (data, threshold) in [(1, 1), (2, 3), (3, 4)] {
        wait_put(&mut b, md, data, threshold);
    }
    b.ni.ct_inc(b.ct, CtEvent::failure(1), &mut b.effects).unwrap();
    let effects = b.take();
    let [Effect::Count { value, .. }, Effect::Start(out)] = effects[..] else { panic!("{effects:?}") };
    assert_eq!((value, out.header.hdr_data), (CtEvent::failure(1), 1));
    inc(&mut b, 2);
    assert_eq!(started(&mut b), [2]);
    // This put is posted after its counter has reached the threshold, so it starts at once.
    wait_put(&mut b, md, 4, 3);
    assert_eq!(started(&mut b), [4]);
    b.ni.ct_set(b.ct, CtEvent { success: u64::MAX, failure: 2 }, &mut b.effects).unwrap();
    assert_eq!(started(&mut b), [3]);
}

// The card answers a ping without the host. The end of the message changes the counter. The counter starts a put of the
// bytes that the message has written.
#[test]
fn a_message_sets_off_a_put() {
    let (mut b, md) = with_md();
    let options = MeOptions::EVENT_CT_COMM | MeOptions::EVENT_COMM_DISABLE;
    b.append(Me { ct: Some(b.ct), ..me(1, options) });
    wait_put(&mut b, md, 1, 1);
    let delivery = b.arrive(&put(1, 8)).unwrap();
    assert!(b.effects.is_empty());
    b.complete(&delivery);
    let effects = b.take();
    let [Effect::Count { value, .. }, Effect::Start(out)] = effects[..] else { panic!("{effects:?}") };
    assert_eq!((value, out.start, out.header.length), (CtEvent::success(1), 0x4000, 8));
    b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
    assert_eq!(b.ni.pending_operations(), 0);
}

// One change makes several operations due. All of them are carried out, even if the first sets the counter back.
#[test]
fn setting_a_counter_back_does_not_hold_up_its_neighbours() {
    let (mut b, md) = with_md();
    b.ni.triggered_ct_set(b.ct, CtEvent::default(), b.ct, 2, &mut b.effects).unwrap();
    wait_put(&mut b, md, 1, 2);
    wait_put(&mut b, md, 2, 3);
    inc(&mut b, 2);
    assert_eq!(started(&mut b), [1]);
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::default()));
}

#[test]
fn counters_can_be_chained() {
    let (mut b, md) = with_md();
    let first = b.ni.ct_alloc().unwrap();
    b.ni.triggered_ct_inc(b.ct, CtEvent::success(3), first, 1, &mut b.effects).unwrap();
    wait_put(&mut b, md, 1, 3);
    assert_eq!(b.ni.ct_free(first).unwrap_err().code(), "PTL_IN_USE");
    assert_eq!(b.ni.ct_free(b.ct).unwrap_err().code(), "PTL_IN_USE");
    b.ni.ct_inc(first, CtEvent::success(1), &mut b.effects).unwrap();
    let effects = b.take();
    assert_eq!(effects[0], Effect::Count { ct: first, value: CtEvent::success(1) });
    assert_eq!(effects[1], Effect::Count { ct: b.ct, value: CtEvent::success(3) });
    assert!(matches!(effects[2], Effect::Start(_)));
    b.ni.ct_free(first).unwrap();
}

#[test]
fn cancelled_operations_free_their_resources() {
    let (mut b, md) = with_md();
    let other = b.ni.ct_alloc().unwrap();
    wait_put(&mut b, md, 1, 1);
    b.ni.triggered_ct_set(other, CtEvent::default(), b.ct, 1, &mut b.effects).unwrap();
    b.ni.triggered_ct_inc(b.ct, CtEvent::success(1), b.ct, 2, &mut b.effects).unwrap();
    b.ni.ct_cancel_triggered(b.ct).unwrap();
    inc(&mut b, 5);
    assert_eq!(b.take().len(), 1);
    b.ni.md_release(md).unwrap();
    b.ni.ct_free(other).unwrap();
    b.ni.ct_free(b.ct).unwrap();
    assert_eq!((b.ni.pending_triggered(), b.ni.pending_operations()), (0, 0));
}

#[test]
fn a_triggered_put_that_waits_is_neither_sent_nor_acknowledged() {
    let mut b = bench();
    let md = b.ni.md_bind(Md { length: 100, eq: Some(b.eq), ..Md::default() }).unwrap();
    let request = PutRequest { ack: AckRequest::Full, ..PutRequest::new(md, 8, PEER, 0, 1) };
    b.ni.trigger(&request.into(), b.ct, 1, &mut b.effects).unwrap();
    let guess = OperationHandle::from_bits(1 << 32);
    assert_eq!(b.ni.sent(guess, FailType::Ok, &mut b.effects).unwrap_err().code(), "PTL_ARG_INVALID");
    let ack = Header { kind: HeaderKind::Ack, operation: guess.to_bits(), ..put(1, 8) };
    assert_eq!(b.ni.arrive(&ack, &mut b.effects), Arrival::Dropped(DropReason::StrayAnswer));
    inc(&mut b, 1);
    assert_eq!(b.take().len(), 2);
    b.ni.sent(guess, FailType::Ok, &mut b.effects).unwrap();
    assert_eq!(b.ni.arrive(&ack, &mut b.effects), Arrival::Acknowledged);
}

#[test]
fn an_increment_is_of_one_kind() {
    let mut b = bench();
    let both = CtEvent { success: 1, failure: 1 };
    let error = b.ni.ct_inc(b.ct, both, &mut b.effects).unwrap_err();
    assert!(error.to_string().contains("use two increments"), "{error}");
    assert_eq!(b.ni.triggered_ct_inc(b.ct, both, b.ct, 0, &mut b.effects), Err(error));
    // Adding 2^64 - 1 subtracts one, because the sum wraps.
    b.ni.ct_set(b.ct, CtEvent::success(1), &mut b.effects).unwrap();
    inc(&mut b, u64::MAX);
    assert_eq!(b.ni.ct_get(b.ct), Ok(CtEvent::default()));
}
