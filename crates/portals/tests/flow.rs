//! Tests flow control ('Flow Control', `PTL_PT_FLOWCTRL`).

use crate::common::*;
use nicety_portals::*;
use nicety_types::NodeId;
use proptest::prelude::*;

const QUIET: MeOptions = MeOptions::EVENT_COMM_DISABLE;

/// Returns a bench with flow control on portal table entry 1, and the entry's own event queue for `depth` events.
fn controlled(depth: u32, limits: Limits) -> (Bench, EqHandle) {
    let mut b = bench_with(limits);
    let eq = b.ni.eq_alloc(depth).unwrap();
    b.ni.pt_alloc_with(Some(1), Some(eq), PtOptions::FLOWCTRL).unwrap();
    (b, eq)
}

fn append(b: &mut Bench, me: Me, list: List) -> MeHandle {
    b.ni.me_append(1, me, list, &mut b.effects).unwrap()
}

fn message(match_bits: u64) -> Header {
    Header { pt: 1, ack: AckRequest::Full, ..put(match_bits, 8) }
}

/// Returns the failure that the only answer among the effects reports.
fn told(effects: &[Effect]) -> FailType {
    let mut answers =
        effects.iter().filter_map(|e| if let Effect::Ack(ack) = e { Some(ack.fail) } else { None });
    let answer = answers.next().unwrap();
    assert_eq!(answers.next(), None);
    answer
}

fn count_of(effects: &[Effect], kind: EventKind) -> usize {
    effects.iter().filter(|e| matches!(e, Effect::Event { event, .. } if event.kind == kind)).count()
}

#[test]
fn a_message_that_matches_nothing_disables_the_entry_once() {
    let (mut b, eq) = controlled(8, Limits::default());
    assert_eq!(b.arrive(&message(1)), Err(DropReason::NoMatch));
    let effects = b.take();
    let [Effect::Event { eq: queue, event }, Effect::Ack(_)] = effects[..] else { panic!("{effects:?}") };
    assert_eq!((queue, event.kind, event.pt, event.initiator), (eq, EventKind::PtDisabled, 1, NODE));
    assert_eq!(told(&effects), FailType::PtDisabled);
    assert_eq!(b.ni.pt_enabled(1), Ok(false));
    // The entry is disabled, so even matching messages are dropped. There is no further event.
    append(&mut b, me(1, QUIET), List::Priority);
    assert_eq!(b.arrive(&message(1)), Err(DropReason::PtDisabled));
    let effects = b.take();
    assert_eq!((effects.len(), told(&effects)), (1, FailType::PtDisabled));
    b.ni.pt_enable(1).unwrap();
    assert_eq!(b.arrive(&message(1)).map(|d| d.mlength), Ok(8));
    let statistics = b.ni.statistics();
    assert_eq!(statistics.flow_control, 1);
    assert_eq!(statistics.dropped(DropReason::NoMatch), 1);
    assert_eq!(statistics.dropped(DropReason::PtDisabled), 1);
}

// The queue has room for three events and one PT_DISABLED. The fourth message finds no room, although the first three
// messages are not complete.
#[test]
fn a_full_queue_disables_and_loses_nothing() {
    let (mut b, eq) = controlled(4, Limits::default());
    append(&mut b, me(1, MeOptions::empty()), List::Priority);
    let deliveries: Vec<Delivery> = (0..3).map(|_| b.arrive(&message(1)).unwrap()).collect();
    assert_eq!(b.arrive(&message(1)), Err(DropReason::NoEventRoom));
    // The PT_DISABLED event waits for the admitted messages.
    assert_eq!(count_of(&b.take(), EventKind::PtDisabled), 0);
    for delivery in &deliveries {
        b.complete(delivery);
    }
    let put = EventKind::Put;
    assert_eq!(b.kinds(), [(put, 1), (put, 1), (put, 1), (EventKind::PtDisabled, 0)]);
    // The host enables the entry without making room, so the next message disables it again. The earlier PT_DISABLED is
    // unread, so no further one is posted.
    b.ni.pt_enable(1).unwrap();
    assert_eq!(b.arrive(&message(1)), Err(DropReason::NoEventRoom));
    assert_eq!(count_of(&b.take(), EventKind::PtDisabled), 0);
    // The host has read three of the four events. There is room for a message, and PT_DISABLED is still unread.
    b.ni.eq_consumed(eq, 3).unwrap();
    b.ni.pt_enable(1).unwrap();
    b.receive(&message(1));
    b.ni.eq_consumed(eq, 2).unwrap();
    // The host has read the earlier PT_DISABLED, so the next one is posted.
    assert_eq!(b.arrive(&message(9)), Err(DropReason::NoMatch));
    assert_eq!(count_of(&b.take(), EventKind::PtDisabled), 1);
    assert_eq!(b.ni.statistics().events_dropped, 0);
    assert_eq!(b.ni.eq_dropped(eq), Ok(0));
}

#[test]
fn unexpected_headers_and_handler_contexts_run_out() {
    let (mut b, _) = controlled(16, Limits { unexpected_headers: 1, ..Limits::default() });
    append(&mut b, Me { handlers: Some(4), ..me(1, QUIET) }, List::Overflow);
    b.receive(&message(1));
    assert_eq!(b.arrive(&message(1)), Err(DropReason::NoUnexpectedHeader));
    assert_eq!(told(&b.take()[1..]), FailType::PtDisabled);
    b.ni.pt_enable(1).unwrap();
    b.ni.me_search(1, me(1, MeOptions::empty()), SearchOp::Delete, &mut b.effects).unwrap();
    let refused = b.ni.arrive_if(&message(1), |handlers| handlers != Some(4), &mut b.effects);
    assert_eq!(refused, Arrival::Dropped(DropReason::NoContext));
    assert_eq!(told(&b.take()), FailType::PtDisabled);
    b.ni.pt_enable(1).unwrap();
    // The refused match had no effect: the entry still accepts a message.
    assert_eq!(b.receive(&message(1)).searched, 1);
    assert_eq!(b.ni.statistics().flow_control, 2);
    // Without flow control, such a message is dropped and the portal table entry stays enabled.
    b.append(me(1, QUIET));
    b.take();
    let header = Header { ack: AckRequest::Full, ..put(1, 8) };
    assert_eq!(b.ni.arrive_if(&header, |_| false, &mut b.effects), Arrival::Dropped(DropReason::NoContext));
    assert_eq!(told(&b.take()), FailType::Dropped);
}

#[test]
fn an_entry_may_want_no_notice() {
    let (mut b, _) = controlled(16, Limits { unexpected_headers: 0, ..Limits::default() });
    append(&mut b, me(1, MeOptions::EVENT_FLOWCTRL_DISABLE), List::Overflow);
    assert_eq!(b.arrive(&message(1)), Err(DropReason::NoUnexpectedHeader));
    assert_eq!(b.ni.pt_enabled(1), Ok(false));
    assert_eq!(count_of(&b.take(), EventKind::PtDisabled), 0);
}

#[test]
fn violations_disable_nothing() {
    let (mut b, _) = controlled(8, Limits::default());
    append(&mut b, Me { user: User::Id(3), ..me(1, QUIET) }, List::Priority);
    assert_eq!(b.arrive(&message(1)), Err(DropReason::PermViolation));
    assert_eq!(told(&b.take()), FailType::PermViolation);
    assert_eq!(b.ni.pt_enabled(1), Ok(true));
    assert_eq!(b.arrive(&Header { uid: 3, ..message(1) }).map(|d| d.mlength), Ok(8));
}

#[test]
fn commands_whose_events_have_no_room_are_refused() {
    let (mut b, eq) = controlled(4, Limits::default());
    append(&mut b, Me { ignore_bits: !0, ..me(0, QUIET) }, List::Overflow);
    for _ in 0..4 {
        b.receive(&message(1));
    }
    let entry = me(1, MeOptions::empty());
    let error = b.ni.me_append(1, entry, List::Priority, &mut b.effects).unwrap_err();
    assert_eq!((error, error.code()), (Error::EqFull { needed: 4 }, "PTL_NO_SPACE"));
    assert!(error.to_string().contains("no room for 4 more events"), "{error}");
    let search = b.ni.me_search(1, entry, SearchOp::Delete, &mut b.effects);
    assert_eq!(search, Err(Error::EqFull { needed: 4 }));
    b.take();
    for _ in 0..3 {
        append(&mut b, me(1, MeOptions::USE_ONCE | MeOptions::EVENT_UNLINK_DISABLE), List::Priority);
    }
    assert_eq!(b.kinds().len(), 3);
    let once = me(1, MeOptions::USE_ONCE | MeOptions::EVENT_OVER_DISABLE);
    assert_eq!(b.ni.me_append(1, once, List::Priority, &mut b.effects), Err(Error::EqFull { needed: 1 }));
    b.ni.eq_consumed(eq, 1).unwrap();
    append(&mut b, once, List::Priority);
    assert_eq!(b.kinds(), [(EventKind::AutoUnlink, 1)]);
}

#[test]
fn flow_control_needs_a_queue_with_room_for_its_notices() {
    let mut b = bench();
    let with = |b: &mut Bench, eq| b.ni.pt_alloc_with(None, eq, PtOptions::FLOWCTRL);
    let error = with(&mut b, None).unwrap_err();
    assert_eq!((error, error.code()), (Error::PtEqNeeded, "PTL_PT_EQ_NEEDED"));
    assert!(error.to_string().contains("`eq`"), "{error}");
    let short = b.ni.eq_alloc(3).unwrap();
    assert!(with(&mut b, Some(short)).unwrap_err().to_string().contains("three events"));
    let five = b.ni.eq_alloc(5).unwrap();
    let first = with(&mut b, Some(five)).unwrap();
    let second = with(&mut b, Some(five)).unwrap();
    assert!(with(&mut b, Some(five)).is_err());
    b.ni.pt_free(first).unwrap();
    assert_eq!(with(&mut b, Some(five)), Ok(first));
    // Three events of an initiator fill the queue. Both portal table entries can still post PT_DISABLED.
    let md = b.ni.md_bind(Md { length: 8, eq: Some(five), ..Md::default() }).unwrap();
    for _ in 0..4 {
        let out = b.ni.start(&PutRequest::new(md, 8, PEER, 0, 0).into()).unwrap();
        b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
    }
    assert_eq!(b.take()[3], Effect::EventDropped { eq: five });
    for pt in [first, second] {
        b.ni.arrive(&Header { pt, ..put(0, 0) }, &mut b.effects);
    }
    assert_eq!(b.kinds(), [(EventKind::PtDisabled, 0), (EventKind::PtDisabled, 0)]);
    b.ni.pt_free(first).unwrap();
    assert_eq!(with(&mut b, Some(five)), Err(Error::EqFull { needed: 1 }));
    assert!(b.ni.pt_enabled(77).is_err());
}

/// A sender resends refused messages. The host reads random numbers of events, appends match entries, and enables the
/// portal table entry. Each message must be delivered exactly once, although queue, entries and headers run out.
fn nothing_is_lost(steps: &[(u8, u8)], messages: u64) -> Result<(), TestCaseError> {
    let limits = Limits { unexpected_headers: 3, ..Limits::default() };
    let (mut b, eq) = controlled(6, limits);
    append(&mut b, Me { ignore_bits: !0, options: me(0, QUIET).options, ..me(99, QUIET) }, List::Overflow);
    let mut to_send: Vec<u64> = (0..messages).collect();
    let mut events: Vec<Event> = Vec::new();
    let (mut in_flight, mut seen, mut acked) = (Vec::new(), Vec::new(), Vec::new());
    let mut fail = 0;
    let mut step = |action: u8, n: u8, calm: bool| {
        match action % 6 {
            0 | 1 if !to_send.is_empty() => {
                let name = to_send.remove(n as usize % to_send.len());
                let header = Header { hdr_data: name, ack: AckRequest::Full, ..message(1) };
                if let Arrival::Matched(delivery) = b.ni.arrive(&header, &mut b.effects) {
                    in_flight.push(delivery);
                } else {
                    fail += 1;
                    let refused = b.effects.as_slice().last().copied();
                    let Some(Effect::Ack(ack)) = refused else { panic!("no answer: {refused:?}") };
                    assert_eq!(ack.fail, FailType::PtDisabled);
                    to_send.push(name);
                }
            }
            2 if !in_flight.is_empty() => {
                let delivery: Delivery = in_flight.remove(n as usize % in_flight.len());
                b.complete(&delivery);
                acked.push(delivery.header.hdr_data);
            }
            3 => {
                let count = (n as usize % 4).max(usize::from(calm) * 6).min(events.len());
                b.ni.eq_consumed(eq, count as u32).unwrap();
                seen.extend(events.drain(..count));
            }
            4 => {
                let options =
                    if n.is_multiple_of(2) { MeOptions::USE_ONCE } else { MeOptions::EVENT_LINK_DISABLE };
                let length = if n.is_multiple_of(2) { 100 } else { 4 };
                let entry = Me { length, ..me(1, options) };
                let _ = b.ni.me_append(1, entry, List::Priority, &mut b.effects);
            }
            _ => b.ni.pt_enable(1).unwrap(),
        }
        for effect in b.effects.drain() {
            match effect {
                Effect::Event { event, .. } => events.push(event),
                Effect::EventDropped { .. } => panic!("an event is lost"),
                _ => {}
            }
        }
        to_send.is_empty() && in_flight.is_empty() && events.is_empty()
    };
    for (action, n) in steps {
        step(*action, *n, false);
    }
    // From here on, the host reads all events in time.
    let mut done = false;
    for round in 0..40 * (messages + 10) {
        done = [4, 3, 5, 0, 2].into_iter().map(|action| step(action, round as u8, true)).last().unwrap();
        if done {
            break;
        }
    }
    prop_assert!(done, "the host keeps up and something is left");
    acked.sort_unstable();
    prop_assert_eq!(acked, (0..messages).collect::<Vec<_>>());
    each_message_once(&mut b, &seen, messages, fail > 0)
}

/// Checks that each message has one event, or is among the unexpected headers.
fn each_message_once(
    b: &mut Bench,
    seen: &[Event],
    messages: u64,
    refused: bool,
) -> Result<(), TestCaseError> {
    let told = |kinds: &[EventKind]| {
        let of = seen.iter().filter(|e| kinds.contains(&e.kind));
        let mut names: Vec<u64> = of.map(|e| e.hdr_data).collect();
        names.sort_unstable();
        names
    };
    // The overflow entry posts no event. The event of a message comes from its priority entry, or from the append that
    // finds it.
    let mut all = told(&[EventKind::Put, EventKind::PutOverflow]);
    let had = all.len();
    all.dedup();
    prop_assert_eq!(had, all.len(), "told twice");
    let disabled = seen.iter().filter(|e| e.kind == EventKind::PtDisabled).count() as u64;
    prop_assert!(disabled <= b.ni.statistics().flow_control);
    prop_assert_eq!(refused, b.ni.statistics().flow_control > 0);
    // Messages without an event are among the unexpected headers.
    let found = Me { options: MeOptions::OP_PUT, ..me(1, MeOptions::empty()) };
    b.ni.me_search(1, found, SearchOp::Only, &mut b.effects).unwrap();
    for effect in b.take() {
        if let Effect::Event {
            event: Event { kind: EventKind::Search, fail: FailType::Ok, hdr_data, .. },
            ..
        } = effect
        {
            all.push(hdr_data);
        }
    }
    all.sort_unstable();
    prop_assert_eq!(all, (0..messages).collect::<Vec<_>>());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000 * ProptestConfig::default().cases / 256))]
    #[test]
    fn nothing_is_lost_when_the_entry_is_enabled_again(
        steps in prop::collection::vec((0..6u8, any::<u8>()), 0..120),
        messages in 1..20u64,
    ) {
        nothing_is_lost(&steps, messages)?;
    }
}

#[test]
fn a_get_and_an_atomic_fail_by_their_reply() {
    let limits = Limits { features: Features::all(), ..Limits::default() };
    let (mut b, _) = controlled(8, limits);
    let get = Header { kind: HeaderKind::Get, ack: AckRequest::None, source: NodeId(4), ..message(1) };
    assert_eq!(b.arrive(&get), Err(DropReason::NoMatch));
    let Some(Effect::Ack(reply)) = b.take().pop() else { panic!("a reply") };
    assert_eq!((reply.kind, reply.fail, reply.length), (HeaderKind::Reply, FailType::PtDisabled, 0));
    assert_eq!((reply.target, reply.source, reply.operation), (NodeId(4), NODE, 77));
}
