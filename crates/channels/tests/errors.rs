//! Tests refused calls: the text of each error, and that no state has changed.

use crate::ends::*;
use nicety_channels::*;

const HOST: Buffer = Buffer { address: 0, bytes: 100 };

/// Checks the error text of a call that the host refuses, and that the call changed no state.
fn host(
    e: &mut Ends,
    call: impl FnOnce(&mut Host, Channel, &mut Vec<HostEffect>) -> Result<(), Error>,
    text: &str,
) {
    let before = e.host.clone();
    let error = call(&mut e.host, e.channel, &mut e.h).unwrap_err();
    assert_eq!(error.to_string(), text);
    assert!(e.host == before && e.h.is_empty());
}

/// Checks the error text of a call that the card refuses, and that the call changed no state.
fn card(e: &mut Ends, call: impl FnOnce(&mut Card, &mut Vec<CardEffect>) -> Result<(), Error>, text: &str) {
    let before = e.card.clone();
    assert_eq!(call(&mut e.card, &mut e.c).unwrap_err().to_string(), text);
    assert!(e.card == before && e.c.is_empty());
}

#[test]
fn sizes_that_no_message_has() {
    let mut e = Ends::new();
    let zero = "a message has at least 1 byte, not 0";
    let long = "a direct message has at most 56 bytes, not 57; use the indirect calls (send_ind, channel_read_ind), \
                at both ends";
    let none = Buffer { address: 0, bytes: 0 };
    let huge = Buffer { address: 0, bytes: (1 << 30) + 1 };
    let too_long =
        "a message has at most 1073741824 bytes, not 1073741825; split it, or raise `message_bytes`";
    host(&mut e, |h, ch, out| h.send(T, ch, &[], None, out), zero);
    host(&mut e, |h, ch, out| h.send(T, ch, &[0; 57], None, out), long);
    host(&mut e, |h, ch, out| h.receive(T, ch, 0, None, out), zero);
    host(&mut e, |h, ch, out| h.receive(T, ch, 57, None, out), long);
    host(&mut e, |h, ch, out| h.send_indirect(T, ch, none, None, out), zero);
    host(&mut e, |h, ch, out| h.receive_indirect(T, ch, none, None, out), zero);
    host(&mut e, |h, ch, out| h.send_indirect(T, ch, huge, None, out), too_long);
    card(&mut e, |c, out| c.write(C, ID, &[], None, out), zero);
    card(&mut e, |c, out| c.write(C, ID, &[0; 57], None, out), long);
    card(&mut e, |c, out| c.read(C, ID, 0, None, out), zero);
    card(&mut e, |c, out| c.read(C, ID, 57, None, out), long);
    card(&mut e, |c, out| c.write_indirect(C, ID, none, None, out), zero);
    card(&mut e, |c, out| c.read_indirect(C, ID, none, None, out), zero);
    card(&mut e, |c, out| c.write_indirect(C, ID, huge, None, out), too_long);
    let beyond = Buffer { address: (1 << 40) - 4, bytes: 5 };
    let text = "5 bytes at 0xfffffffffc are not within the card's 40 bits of address";
    card(&mut e, |c, out| c.read_indirect(C, ID, beyond, None, out), text);
    let last = Buffer { bytes: 4, ..beyond };
    e.card.read_indirect(C, ID, last, None, &mut e.c).unwrap();
}

#[test]
fn threads_contexts_and_channels_that_are_busy_or_do_not_exist() {
    let mut e = Ends::new();
    let (other, one) = (ThreadId(1), ContextId(1));
    host(
        &mut e,
        |h, ch, out| h.send(ThreadId(1024), ch, b"x", None, out),
        "there is no thread 1024: there are 1024, numbered from 0",
    );
    card(
        &mut e,
        |c, out| c.write(ContextId(480), ID, b"x", None, out),
        "there is no context 480: there are 480, numbered from 0",
    );
    card(
        &mut e,
        |c, out| c.read(C, TargetId(9), 1, None, out),
        "no process of the card has the ID 9; register it first",
    );
    e.host.receive(T, e.channel, 1, None, &mut e.h).unwrap();
    e.card.read(C, ID, 1, None, &mut e.c).unwrap();
    host(
        &mut e,
        |h, ch, out| h.send(T, ch, b"x", None, out),
        "thread 0 is still blocked in a call; it can make one at a time",
    );
    card(
        &mut e,
        |c, out| c.write(C, ID, b"x", None, out),
        "context 0 is still blocked in a call; it can make one at a time",
    );
    let busy = |doing| {
        format!(
            "another thread or context is already {doing} this channel; a channel has one user at each end; \
             use another channel"
        )
    };
    host(&mut e, |h, ch, out| h.receive(other, ch, 1, None, out), &busy("receiving on"));
    host(&mut e, |h, ch, out| h.close(other, ch, out), &busy("receiving on"));
    card(&mut e, |c, out| c.read(one, ID, 1, None, out), &busy("reading from"));
    e.host.send(other, e.channel, b"x", None, &mut e.h).unwrap();
    e.card.write(one, ID, b"x", None, &mut e.c).unwrap();
    e.h.clear();
    e.c.clear();
    host(&mut e, |h, ch, out| h.send(ThreadId(2), ch, b"x", None, out), &busy("sending on"));
    card(&mut e, |c, out| c.write(ContextId(2), ID, b"x", None, out), &busy("writing to"));
}

#[test]
fn selections_of_nothing_or_of_the_same_twice() {
    let mut e = Ends::new();
    let none = "a selection needs at least one channel";
    let twice = "guard 1 of the selection names a channel that an earlier guard names";
    host(&mut e, |h, _, out| h.select(T, &[], None, out), none);
    card(&mut e, |c, out| c.select(C, &[], None, out), none);
    let want = Want::Direct(1);
    host(&mut e, |h, ch, out| h.select(T, &[Guard { from: ch, want }; 2], None, out), twice);
    card(&mut e, |c, out| c.select(C, &[Guard { from: ID, want }; 2], None, out), twice);
}

#[test]
fn channels_that_are_not_open() {
    let mut e = Ends::new();
    let stale = "this channel is not open: it was closed, or its subscription has not ended";
    host(&mut e, |h, _, out| h.send(T, Channel::from_bits(0), b"x", None, out), stale);
    host(&mut e, |h, _, out| h.send(T, Channel::from_bits(77), b"x", None, out), stale);
    e.host.close(T, e.channel, &mut e.h).unwrap();
    let other = ThreadId(1);
    e.posted(READER, DOWN, Body::Close);
    host(&mut e, |h, ch, out| h.send(other, ch, b"x", None, out), stale);
    e.pushed(READER, DOWN, ok(0));
    e.woken(Ok(Completion { bytes: 0, payload: Payload::EMPTY }));
    host(&mut e, |h, ch, out| h.send(T, ch, b"x", None, out), stale);
    // The next channel reuses the mailboxes, but has another name.
    let next = e.host.subscribe(T, ID, &mut e.h).unwrap();
    assert_eq!(next.index(), e.channel.index());
    assert_ne!(next, e.channel);
    assert_eq!(Channel::from_bits(next.to_bits()), next);
    e.h.clear();
    host(&mut e, |h, _, out| h.send(other, next, b"x", None, out), stale);
}

#[test]
fn subscriptions_that_the_card_refuses() {
    let mut e = Ends::new();
    for (id, failure, text) in [
        (9, Failure::UnknownTarget(TargetId(9)), "no process of the card has the ID 9"),
        (7, Failure::TargetTaken(ID), "another channel is subscribed to target 7; close that channel first"),
    ] {
        assert_eq!(failure.to_string(), text);
        let channel = e.host.subscribe(T, TargetId(id), &mut e.h).unwrap();
        let status = if id == 9 { Status::UnknownTarget } else { Status::TargetTaken };
        let down = Mailbox { channel: 1, direction: Direction::ToCard };
        e.posted(READER, down, Body::Subscribe(TargetId(id)));
        e.pushed(READER, down, Body::Reply(Reply { status, done: 0, outstanding: 0, expected: 0 }));
        e.woken(Err(failure));
        assert_eq!(e.host.send(T, channel, b"x", None, &mut e.h), Err(Error::Stale));
    }
}

#[test]
fn a_close_fails_the_context_that_waits_at_the_target() {
    let mut e = Ends::new();
    e.card.register(TargetId(8)).unwrap();
    let guards = [8, 7].map(|id| Guard { from: TargetId(id), want: Want::Direct(1) });
    e.card.select(C, &guards, None, &mut e.c).unwrap();
    e.card.write(ContextId(1), ID, b"x", None, &mut e.c).unwrap();
    e.c.clear();
    e.host.close(T, e.channel, &mut e.h).unwrap();
    e.posted(READER, DOWN, Body::Close);
    assert!(e.c.is_empty(), "a manager is collecting from the writer");
    assert_eq!(e.card.idle_managers(Direction::ToCard), 8);
    e.card.done(WRITER, &mut e.c).unwrap();
    let CardEffect::Push { mailbox, bytes, .. } = e.c.remove(0) else { panic!() };
    e.host.deposit(mailbox, &bytes).unwrap();
    e.card.done(WRITER, &mut e.c).unwrap();
    let closed = Err(Failure::Closed);
    assert_eq!(e.c.remove(0), CardEffect::Interrupt);
    assert_eq!(e.c.remove(0), CardEffect::Signal { context: C, guard: 1, result: closed });
    assert_eq!(e.c.remove(0), CardEffect::Signal { context: ContextId(1), guard: 0, result: closed });
    e.pushed(READER, DOWN, ok(0));
    e.woken(Ok(Completion { bytes: 0, payload: Payload::EMPTY }));
}

#[test]
fn limits() {
    let mut h = Vec::new();
    let mut small = Host::new(HostLimits { channels: 1, ..HostLimits::default() });
    small.subscribe(T, ID, &mut h).unwrap();
    let error = small.subscribe(ThreadId(1), ID, &mut h).unwrap_err();
    assert_eq!(error.to_string(), "no channel is left of 1; use fewer, or raise the limit `channels`");
    let mut small = Card::new(CardLimits { channels: 1, targets: 1, ..CardLimits::default() }).unwrap();
    small.register(ID).unwrap();
    assert_eq!(small.register(ID).unwrap_err().to_string(), "the ID 7 is registered already; use another ID");
    let error = small.register(TargetId(8)).unwrap_err();
    assert_eq!(error.to_string(), "no target is left of 1; use fewer, or raise the limit `targets`");
    let error = small.ring(Mailbox { channel: 1, ..DOWN }, &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "there is no mailbox 1: there are 1, numbered from 0");
    for (readers, writers, name) in [(0, 1, "read_managers"), (1, 0, "write_managers")] {
        let limits = CardLimits { read_managers: readers, write_managers: writers, ..CardLimits::default() };
        assert_eq!(
            Card::new(limits).unwrap_err().to_string(),
            format!("`{name}` must be at least 1, or no message in its direction is ever moved")
        );
    }
}

#[test]
fn completions_without_a_beginning() {
    let mut e = Ends::new();
    let not = |what: &str| format!("the completion of {what} that was not started, or has ended");
    let absent = ManagerId { direction: Direction::ToHost, index: 8 };
    card(&mut e, |c, out| c.done(READER, out), &not("an ask, deliver, collect or push"));
    card(&mut e, |c, out| c.fetched(READER, &[0; MAILBOX_BYTES], out), &not("a fetch"));
    card(&mut e, |c, out| c.dma_done(READER, 0, true, out), &not("a DMA"));
    card(&mut e, |c, out| c.done(absent, out), "there is no write manager 8: there are 8, numbered from 0");
    host(&mut e, |h, _, out| h.pinned(T, &[], out), &not("a pinning"));
    host(&mut e, |h, _, out| h.pin_failed(ThreadId(99), out), &not("a pinning"));
    let mailbox = Mailbox { channel: 1, ..DOWN };
    host(
        &mut e,
        |h, _, _| h.deposit(mailbox, &[0; MAILBOX_BYTES]),
        "there is no mailbox 1: there are 1, numbered from 0",
    );
    e.host.send_indirect(T, e.channel, HOST, None, &mut e.h).unwrap();
    e.h.clear();
    host(
        &mut e,
        |h, _, out| h.pinned(T, &[Page::new(0, 99).unwrap()], out),
        "the pages have 99 bytes in total, but the buffer to be pinned has 100",
    );
}
