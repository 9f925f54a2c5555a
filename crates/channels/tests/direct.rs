//! Tests the steps of direct messages: the effects of each end, and the result of each call.

use crate::ends::*;
use nicety_channels::*;

#[test]
fn a_message_to_a_card_that_waits_for_it() {
    let mut e = Ends::new();
    e.card.read(C, ID, 3, None, &mut e.c).unwrap();
    assert!(e.c.is_empty() && e.card.is_blocked(C));
    e.host.send(T, e.channel, b"abc", None, &mut e.h).unwrap();
    e.posted(READER, DOWN, Body::Direct(payload(b"abc")));
    assert_eq!(
        take(&mut e.c),
        [CardEffect::Deliver { manager: READER, context: C, payload: payload(b"abc") }]
    );
    e.card.done(READER, &mut e.c).unwrap();
    let result = Ok(Completion { bytes: 3, payload: payload(b"abc") });
    assert_eq!(e.c.remove(0), CardEffect::Signal { context: C, guard: 0, result });
    assert!(e.host.is_blocked(T));
    e.pushed(READER, DOWN, ok(3));
    e.woken(Ok(SENT));
}

#[test]
fn a_message_that_comes_before_its_reader_is_parked_and_frees_its_manager() {
    let mut e = Ends::new();
    e.host.send(T, e.channel, b"abc", None, &mut e.h).unwrap();
    e.posted(READER, DOWN, Body::Direct(payload(b"abc")));
    assert!(e.c.is_empty() && e.host.is_blocked(T));
    assert_eq!(e.card.idle_managers(Direction::ToCard), 8);
    e.card.read(C, ID, 3, None, &mut e.c).unwrap();
    assert_eq!(
        take(&mut e.c),
        [CardEffect::Deliver { manager: READER, context: C, payload: payload(b"abc") }]
    );
    assert_eq!(e.card.idle_managers(Direction::ToCard), 7);
}

#[test]
fn a_message_to_a_host_that_waits_for_it() {
    let mut e = Ends::new();
    e.host.receive(T, e.channel, 3, None, &mut e.h).unwrap();
    assert!(e.h.is_empty());
    e.card.write(C, ID, b"abc", None, &mut e.c).unwrap();
    assert_eq!(take(&mut e.c), [CardEffect::Collect { manager: WRITER, context: C }]);
    e.card.done(WRITER, &mut e.c).unwrap();
    e.pushed(WRITER, UP, Body::Direct(payload(b"abc")));
    assert!(e.card.is_blocked(C));
    e.posted(WRITER, UP, ok(3));
    assert_eq!(take(&mut e.c), [CardEffect::Signal { context: C, guard: 0, result: Ok(SENT) }]);
    e.woken(Ok(Completion { bytes: 3, payload: payload(b"abc") }));
}

#[test]
fn a_message_that_comes_before_its_receiver_is_parked_in_the_hosts_mailbox() {
    let mut e = Ends::new();
    e.card.write(C, ID, b"abc", None, &mut e.c).unwrap();
    e.c.clear();
    e.card.done(WRITER, &mut e.c).unwrap();
    e.pushed(WRITER, UP, Body::Direct(payload(b"abc")));
    assert!(e.h.is_empty() && e.card.is_blocked(C));
    assert_eq!(e.card.idle_managers(Direction::ToHost), 8);
    e.host.receive(T, e.channel, 3, None, &mut e.h).unwrap();
    assert!(!e.host.is_blocked(T));
    e.posted(WRITER, UP, ok(3));
    assert_eq!(take(&mut e.c), [CardEffect::Signal { context: C, guard: 0, result: Ok(SENT) }]);
}

#[test]
fn a_context_that_waits_before_the_host_subscribes_is_found() {
    let mut card = Card::new(CardLimits::default()).unwrap();
    let mut host = Host::new(HostLimits::default());
    let (mut c, mut h) = (Vec::new(), Vec::new());
    card.register(ID).unwrap();
    card.write(C, ID, b"x", None, &mut c).unwrap();
    assert!(c.is_empty() && card.is_blocked(C));
    host.subscribe(T, ID, &mut h).unwrap();
    card.ring(DOWN, &mut c).unwrap();
    card.fetched(READER, host.mailbox(DOWN).unwrap(), &mut c).unwrap();
    assert_eq!(c.last(), Some(&CardEffect::Collect { manager: WRITER, context: C }));
}

#[test]
fn sizes_that_differ_fail_at_both_ends() {
    let mut e = Ends::new();
    let failure = Failure::SizeMismatch { sent: 3, expected: 4 };
    let reply = Body::Reply(Reply { status: Status::SizeMismatch, done: 0, outstanding: 0, expected: 4 });
    e.card.read(C, ID, 4, None, &mut e.c).unwrap();
    e.host.send(T, e.channel, b"abc", None, &mut e.h).unwrap();
    e.posted(READER, DOWN, Body::Direct(payload(b"abc")));
    assert_eq!(take(&mut e.c), [CardEffect::Ask { manager: READER, context: C }]);
    e.card.done(READER, &mut e.c).unwrap();
    assert_eq!(e.c.remove(0), CardEffect::Signal { context: C, guard: 0, result: Err(failure) });
    e.pushed(READER, DOWN, reply);
    e.woken(Err(failure));

    e.host.receive(T, e.channel, 4, None, &mut e.h).unwrap();
    e.card.write(C, ID, b"abc", None, &mut e.c).unwrap();
    e.c.clear();
    e.card.done(WRITER, &mut e.c).unwrap();
    e.pushed(WRITER, UP, Body::Direct(payload(b"abc")));
    e.posted(WRITER, UP, reply);
    assert_eq!(take(&mut e.c), [CardEffect::Signal { context: C, guard: 0, result: Err(failure) }]);
    e.woken(Err(failure));
    assert_eq!(e.card.idle_managers(Direction::ToCard) + e.card.idle_managers(Direction::ToHost), 16);
}

#[test]
fn a_sender_that_gives_up_withdraws_its_message() {
    let mut e = Ends::new();
    e.host.send(T, e.channel, b"abc", Some(10), &mut e.h).unwrap();
    e.posted(READER, DOWN, Body::Direct(payload(b"abc")));
    assert_eq!(e.host.next_deadline(), Some(10));
    e.host.tick(9, &mut e.h);
    assert!(e.h.is_empty());
    e.host.tick(10, &mut e.h);
    e.posted(READER, DOWN, Body::Cancel);
    assert!(e.host.is_blocked(T), "until the card has let go of it");
    e.pushed(
        READER,
        DOWN,
        Body::Reply(Reply { status: Status::Cancelled, done: 0, outstanding: 0, expected: 0 }),
    );
    e.woken(Err(Failure::Timeout));
    // A reader that calls now finds no message.
    e.card.read(C, ID, 3, Some(20), &mut e.c).unwrap();
    assert!(e.c.is_empty());
    e.card.tick(20, &mut e.c);
    let result = Err(Failure::Timeout);
    assert_eq!(take(&mut e.c), [CardEffect::Signal { context: C, guard: 0, result }]);
}

#[test]
fn a_withdrawal_that_comes_too_late_is_ignored() {
    let mut e = Ends::new();
    e.host.send(T, e.channel, b"abc", Some(10), &mut e.h).unwrap();
    e.posted(READER, DOWN, Body::Direct(payload(b"abc")));
    e.host.tick(10, &mut e.h);
    e.card.read(C, ID, 3, None, &mut e.c).unwrap();
    e.c.clear();
    e.card.ring(DOWN, &mut e.c).unwrap();
    assert!(e.c.is_empty(), "the channel has a manager already");
    e.card.done(READER, &mut e.c).unwrap();
    e.c.remove(0);
    let CardEffect::Push { mailbox, bytes, .. } = e.c.remove(0) else { panic!() };
    e.host.deposit(mailbox, &bytes).unwrap();
    e.card.done(READER, &mut e.c).unwrap();
    assert_eq!(take(&mut e.c), [CardEffect::Interrupt, CardEffect::Fetch { manager: READER, mailbox: DOWN }]);
    e.fetch(READER, DOWN);
    assert!(e.c.is_empty());
    e.h.clear();
    e.host.interrupt(&mut e.h);
    e.woken(Ok(SENT));
}

/// Two processes have written, each on its own channel, and both messages are in the host's mailboxes. Returns the
/// second channel.
fn two_written(e: &mut Ends) -> Channel {
    let other = second(e);
    for (context, id) in [(0, ID), (1, TargetId(8))] {
        e.card.write(ContextId(context), id, b"abc", None, &mut e.c).unwrap();
    }
    for _ in 0..2 {
        let CardEffect::Collect { manager, .. } = e.c.remove(0) else { panic!() };
        e.card.done(manager, &mut e.c).unwrap();
    }
    for effect in take(&mut e.c) {
        let CardEffect::Push { manager, mailbox, bytes } = effect else { panic!("{effect:?}") };
        e.host.deposit(mailbox, &bytes).unwrap();
        e.card.done(manager, &mut e.c).unwrap();
    }
    assert_eq!(take(&mut e.c), [CardEffect::Interrupt; 2]);
    other
}

#[test]
fn an_interrupt_handler_may_serve_one_mailbox() {
    let mut e = Ends::new();
    let other = two_written(&mut e);
    for (thread, channel) in [(0, e.channel), (1, other)] {
        let seen = e.host.interrupt_one(&mut e.h).unwrap();
        assert_eq!((seen.channel, seen.direction), (channel.index(), Direction::ToHost));
        e.host.receive(ThreadId(thread), channel, 3, None, &mut e.h).unwrap();
        assert!(!e.host.is_blocked(ThreadId(thread)));
    }
    assert_eq!(e.host.interrupt_one(&mut e.h), None);
}

#[test]
fn one_interrupt_serves_all_mailboxes() {
    let mut e = Ends::new();
    let other = two_written(&mut e);
    e.host.interrupt(&mut e.h);
    for (thread, channel) in [(0, e.channel), (1, other)] {
        e.host.receive(ThreadId(thread), channel, 3, None, &mut e.h).unwrap();
        assert!(!e.host.is_blocked(ThreadId(thread)));
    }
    e.h.clear();
    e.host.interrupt(&mut e.h);
    assert!(e.h.is_empty());
}

#[test]
fn a_mailbox_that_is_read_twice_counts_once() {
    let mut e = Ends::new();
    e.host.send(T, e.channel, b"abc", None, &mut e.h).unwrap();
    e.posted(READER, DOWN, Body::Direct(payload(b"abc")));
    e.card.ring(DOWN, &mut e.c).unwrap();
    e.fetch(READER, DOWN);
    assert!(e.c.is_empty());
}

#[test]
fn a_malformed_mailbox_is_dropped_and_its_manager_goes_on() {
    let mut e = Ends::new();
    e.card.ring(DOWN, &mut e.c).unwrap();
    e.c.clear();
    e.card.fetched(READER, &[9; MAILBOX_BYTES], &mut e.c).unwrap();
    let reason = DropReason::Malformed(MessageError::Version(9));
    assert_eq!(take(&mut e.c), [CardEffect::Drop { mailbox: DOWN, reason }]);
    assert_eq!(e.card.idle_managers(Direction::ToCard), 8);
    e.host.deposit(UP, &Message { exchange: 5, stamp: 5, body: Body::Close }.encode()).unwrap();
    e.host.interrupt(&mut e.h);
    let HostEffect::Drop { mailbox: UP, reason } = e.h[0] else { panic!() };
    assert_eq!(reason.to_string(), "an unexpected close");
}

/// Opens a second channel of the host, to target 8.
fn second(e: &mut Ends) -> Channel {
    e.card.register(TargetId(8)).unwrap();
    let channel = e.host.subscribe(T, TargetId(8), &mut e.h).unwrap();
    let down = Mailbox { channel: 1, direction: Direction::ToCard };
    e.posted(READER, down, Body::Subscribe(TargetId(8)));
    e.pushed(READER, down, ok(0));
    e.h.clear();
    channel
}

#[test]
fn channels_that_a_selection_did_not_take_are_free_for_others_at_once() {
    let mut e = Ends::new();
    let other = second(&mut e);
    let (want, direct) = (Want::Direct(3), Body::Direct(payload(b"abc")));
    let guards = [ID, TargetId(8)].map(|from| Guard { from, want });
    e.card.select(C, &guards, None, &mut e.c).unwrap();
    let (down, up) = (Mailbox { channel: 1, ..DOWN }, Mailbox { channel: 1, ..UP });
    e.host.send(T, other, b"abc", None, &mut e.h).unwrap();
    e.posted(READER, down, direct);
    // The selected message is being delivered. Meanwhile another context waits at the first channel, and must stay
    // there.
    e.c.clear();
    e.card.read(ContextId(1), ID, 3, None, &mut e.c).unwrap();
    e.card.done(READER, &mut e.c).unwrap();
    let result = Ok(Completion { bytes: 3, payload: payload(b"abc") });
    assert_eq!(e.c.remove(0), CardEffect::Signal { context: C, guard: 1, result });
    e.pushed(READER, down, ok(3));
    e.h.clear();
    assert_eq!(e.card.read(C, ID, 3, None, &mut e.c), Err(Error::Busy { doing: "reading from" }));

    let want = Want::Indirect(Buffer { address: 0, bytes: 100 });
    let guards = [e.channel, other].map(|from| Guard { from, want });
    e.host.select(T, &guards, None, &mut e.h).unwrap();
    e.card.write_indirect(C, TargetId(8), Buffer { address: 0, bytes: 100 }, None, &mut e.c).unwrap();
    e.c.clear();
    e.card.done(WRITER, &mut e.c).unwrap();
    e.pushed(WRITER, up, Body::Offer(100));
    let receive = |e: &mut Ends, thread| e.host.receive(ThreadId(thread), e.channel, 3, None, &mut e.h);
    receive(&mut e, 1).unwrap();
    e.host.pin_failed(T, &mut e.h).unwrap();
    assert!(!e.host.is_blocked(T));
    assert_eq!(receive(&mut e, 2), Err(Error::Busy { doing: "receiving on" }));
}

#[test]
fn managers_serve_channels_in_turn() {
    let mut card = Card::new(CardLimits { read_managers: 2, ..CardLimits::default() }).unwrap();
    let mut c = Vec::new();
    for channel in 0..4 {
        card.ring(Mailbox { channel, direction: Direction::ToCard }, &mut c).unwrap();
    }
    assert_eq!(c.len(), 2, "two managers");
    let fetched = |e: &CardEffect| match e {
        CardEffect::Fetch { manager, mailbox } => (manager.index, mailbox.channel),
        e => panic!("{e:?}"),
    };
    assert_eq!(take(&mut c).iter().map(fetched).collect::<Vec<_>>(), [(0, 0), (1, 1)]);
    // The doorbell of channel 1 rings again, so channel 1 waits behind channels 2 and 3.
    card.ring(Mailbox { channel: 1, direction: Direction::ToCard }, &mut c).unwrap();
    let mut turns = Vec::new();
    for manager in [1, 0, 1] {
        let mut out = Vec::new();
        let id = ManagerId { direction: Direction::ToCard, index: manager };
        card.fetched(id, &Message { exchange: 9, stamp: 9, body: Body::GiveUp }.encode(), &mut out).unwrap();
        turns.extend(out.iter().filter(|e| matches!(e, CardEffect::Fetch { .. })).map(fetched));
    }
    assert_eq!(turns, [(1, 2), (0, 3), (1, 1)]);
}

#[test]
fn a_thousand_blocked_channels_do_not_hold_up_one() {
    let mut e = Ends::new();
    // All values are 1024 with the channel that is not blocked.
    for i in 0..1000 {
        let (reader, writer) = (TargetId(1000 + i), TargetId(5000 + i));
        let (thread, context) = (ThreadId(1 + i as u16), ContextId(1 + (i % 400) as u16));
        e.card.register(reader).unwrap();
        let channel = e.host.subscribe(thread, reader, &mut e.h).unwrap();
        settle(&mut e, &[]);
        e.host.send(thread, channel, b"abc", None, &mut e.h).unwrap();
        if i < 23 {
            e.card.register(writer).unwrap();
            e.host.subscribe(T, writer, &mut e.h).unwrap();
            settle(&mut e, &[]);
            e.card.write(context, writer, b"abc", None, &mut e.c).unwrap();
        }
        settle(&mut e, &[]);
        assert!(e.host.is_blocked(thread));
    }
    e.host.send(T, e.channel, b"abc", None, &mut e.h).unwrap();
    e.card.read(C, ID, 3, None, &mut e.c).unwrap();
    settle(&mut e, &[]);
    assert!(!e.host.is_blocked(T) && !e.card.is_blocked(C));
    e.card.write(C, ID, b"abc", None, &mut e.c).unwrap();
    e.host.receive(T, e.channel, 3, None, &mut e.h).unwrap();
    settle(&mut e, &[]);
    assert!(!e.host.is_blocked(T) && !e.card.is_blocked(C));
    assert_eq!(e.card.idle_managers(Direction::ToCard) + e.card.idle_managers(Direction::ToHost), 16);
}

/// Exchange numbers and stamps have 16 bits.
#[test]
fn numbers_go_round_after_65536_messages() {
    let mut e = Ends::new();
    for i in 0..70_000u32 {
        let bytes = i.to_le_bytes();
        e.host.send(T, e.channel, &bytes, None, &mut e.h).unwrap();
        e.card.read(C, ID, 4, None, &mut e.c).unwrap();
        settle(&mut e, &[]);
        e.card.write(C, ID, &bytes, None, &mut e.c).unwrap();
        e.host.receive(T, e.channel, 4, None, &mut e.h).unwrap();
        settle(&mut e, &[]);
        assert!(!e.host.is_blocked(T) && !e.card.is_blocked(C), "message {i}");
    }
}
