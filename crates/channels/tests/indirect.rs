//! Tests the steps of indirect messages: pages, lists, DMAs, retries.

use crate::ends::*;
use nicety_channels::*;

/// Returns seven pages of 4096 bytes and one of 100 bytes, at bus addresses 0x10000, 0x20000, ...
fn pages() -> Vec<Page> {
    let length = |i: u64| if i == 8 { 100 } else { 4096 };
    (1..=8).map(|i| Page::new(i * 0x10000, length(i)).unwrap()).collect()
}

const SIZE: u32 = 7 * 4096 + 100;
const HOST: Buffer = Buffer { address: 0x7f00_0000, bytes: SIZE };
const CARD: Buffer = Buffer { address: 0x12_3456_0000, bytes: SIZE };
const WHOLE: Completion = Completion { bytes: SIZE, payload: Payload::EMPTY };

fn list(first: usize, count: usize) -> Body {
    Body::Pages(PageList::new(SIZE, first as u32 * 4096, &pages()[first..first + count]).unwrap())
}

fn reply(status: Status, done: u32) -> Body {
    Body::Reply(Reply { status, done, outstanding: SIZE - done, expected: 0 })
}

fn dma(manager: ManagerId, entry: u8, page: u64) -> CardEffect {
    let direction = manager.direction;
    let bytes = if page == 7 { 100 } else { 4096 };
    CardEffect::Dma {
        manager,
        entry,
        direction,
        host: (page + 1) * 0x10000,
        card: CARD.address + page * 4096,
        bytes,
    }
}

/// Checks that the card begins the DMAs of a list, and completes them. The DMAs with the indices in `bad` fail.
fn dmas(e: &mut Ends, manager: ManagerId, first: u64, count: u8, bad: &[u8]) {
    let expected: Vec<_> = (0..count).map(|i| dma(manager, i, first + u64::from(i))).collect();
    assert_eq!(take(&mut e.c), expected);
    for entry in (0..count).rev() {
        assert!(e.c.is_empty(), "it waits for all");
        e.card.dma_done(manager, entry, !bad.contains(&entry), &mut e.c).unwrap();
    }
}

/// Returns the ends in a state where both have called. A manager has fetched the first list of a message to the card,
/// and has asked the reader.
fn to_card() -> Ends {
    let mut e = Ends::new();
    e.card.read_indirect(C, ID, CARD, None, &mut e.c).unwrap();
    e.host.send_indirect(T, e.channel, HOST, None, &mut e.h).unwrap();
    assert_eq!(take(&mut e.h), [HostEffect::Pin { thread: T, buffer: HOST }]);
    e.host.pinned(T, &pages(), &mut e.h).unwrap();
    e.posted(READER, DOWN, list(0, 6));
    assert_eq!(take(&mut e.c), [CardEffect::Ask { manager: READER, context: C }]);
    e.card.done(READER, &mut e.c).unwrap();
    e
}

/// Returns the ends in a state where both have called. The card has pushed the offer of a message to the host, and the
/// host has answered with the first list.
fn to_host() -> Ends {
    let mut e = Ends::new();
    e.card.write_indirect(C, ID, CARD, None, &mut e.c).unwrap();
    assert_eq!(take(&mut e.c), [CardEffect::Collect { manager: WRITER, context: C }]);
    e.card.done(WRITER, &mut e.c).unwrap();
    e.pushed(WRITER, UP, Body::Offer(SIZE));
    e.host.receive_indirect(T, e.channel, HOST, None, &mut e.h).unwrap();
    assert_eq!(take(&mut e.h), [HostEffect::Pin { thread: T, buffer: HOST }]);
    e.host.pinned(T, &pages(), &mut e.h).unwrap();
    e.posted(WRITER, UP, list(0, 6));
    e
}

fn both() -> [(Ends, ManagerId, Mailbox); 2] {
    [(to_card(), READER, DOWN), (to_host(), WRITER, UP)]
}

#[test]
fn six_pages_and_then_two() {
    for (mut e, manager, mailbox) in both() {
        dmas(&mut e, manager, 0, 6, &[]);
        e.pushed(manager, mailbox, reply(Status::Ok, 6 * 4096));
        assert!(e.card.is_blocked(C) && e.host.is_blocked(T));
        e.posted(manager, mailbox, list(6, 2));
        dmas(&mut e, manager, 6, 2, &[]);
        assert_eq!(e.c.remove(0), CardEffect::Signal { context: C, guard: 0, result: Ok(WHOLE) });
        e.pushed(manager, mailbox, reply(Status::Ok, SIZE));
        let wake = HostEffect::Wake { thread: T, guard: 0, result: Ok(WHOLE) };
        assert_eq!(take(&mut e.h), [HostEffect::Unpin { thread: T }, wake]);
    }
}

#[test]
fn a_list_that_failed_is_sent_again_whole() {
    for (mut e, manager, mailbox) in both() {
        dmas(&mut e, manager, 0, 6, &[2, 5]);
        e.pushed(manager, mailbox, reply(Status::DmaFailed, 0));
        assert_eq!(e.h.remove(0), HostEffect::Retry { thread: T, attempt: 1 });
        e.posted(manager, mailbox, list(0, 6));
        dmas(&mut e, manager, 0, 6, &[]);
        e.pushed(manager, mailbox, reply(Status::Ok, 6 * 4096));
        e.posted(manager, mailbox, list(6, 2));
        dmas(&mut e, manager, 6, 2, &[1]);
        e.pushed(manager, mailbox, reply(Status::DmaFailed, 6 * 4096));
        // Each list has its own count of retries.
        assert_eq!(e.h.remove(0), HostEffect::Retry { thread: T, attempt: 1 });
        e.posted(manager, mailbox, list(6, 2));
        dmas(&mut e, manager, 6, 2, &[]);
        assert!(!e.card.is_blocked(C));
    }
}

#[test]
fn a_list_that_fails_for_ever_fails_the_call_at_both_ends() {
    for (mut e, manager, mailbox) in both() {
        dmas(&mut e, manager, 0, 6, &[]);
        e.pushed(manager, mailbox, reply(Status::Ok, 6 * 4096));
        for attempt in 1..=4 {
            e.posted(manager, mailbox, list(6, 2));
            dmas(&mut e, manager, 6, 2, &[0]);
            e.pushed(manager, mailbox, reply(Status::DmaFailed, 6 * 4096));
            if attempt <= HostLimits::default().retries {
                assert_eq!(e.h.remove(0), HostEffect::Retry { thread: T, attempt });
            }
        }
        e.posted(manager, mailbox, Body::GiveUp);
        let failure = Failure::Dma { done: 6 * 4096, outstanding: 4096 + 100 };
        assert_eq!(e.c.remove(0), CardEffect::Signal { context: C, guard: 0, result: Err(failure) });
        let abandoned = Reply { status: Status::Abandoned, done: 0, outstanding: 0, expected: 0 };
        e.pushed(manager, mailbox, Body::Reply(abandoned));
        let wake = HostEffect::Wake { thread: T, guard: 0, result: Err(failure) };
        assert_eq!(take(&mut e.h), [HostEffect::Unpin { thread: T }, wake]);
        assert_eq!(e.card.idle_managers(Direction::ToCard) + e.card.idle_managers(Direction::ToHost), 16);
        assert_eq!(
            failure.to_string(),
            "DMA failed too often: 24576 bytes are done and 4196 are not; `retries` is the limit"
        );
    }
}

/// The writer's next offer may overwrite the card's last reply before the host has read it.
#[test]
fn the_next_message_of_a_writer_acknowledges_the_one_before() {
    let mut e = to_host();
    dmas(&mut e, WRITER, 0, 6, &[]);
    e.pushed(WRITER, UP, reply(Status::Ok, 6 * 4096));
    e.posted(WRITER, UP, list(6, 2));
    dmas(&mut e, WRITER, 6, 2, &[]);
    e.c.remove(0);
    let CardEffect::Push { mailbox, bytes, .. } = e.c.remove(0) else { panic!() };
    e.host.deposit(mailbox, &bytes).unwrap();
    e.card.done(WRITER, &mut e.c).unwrap();
    e.c.clear();
    e.card.write(C, ID, b"abc", None, &mut e.c).unwrap();
    e.c.clear();
    e.card.done(WRITER, &mut e.c).unwrap();
    e.pushed(WRITER, UP, Body::Direct(payload(b"abc")));
    let wake = HostEffect::Wake { thread: T, guard: 0, result: Ok(WHOLE) };
    assert_eq!(take(&mut e.h), [HostEffect::Unpin { thread: T }, wake]);
    e.host.receive(T, e.channel, 3, None, &mut e.h).unwrap();
    assert!(!e.host.is_blocked(T));
}

/// The host does not take a writer's next offer as the reply to a message before the message's last list is in flight.
#[test]
fn a_next_message_in_the_middle_of_one_is_dropped_and_ends_nothing() {
    let mut e = to_host();
    dmas(&mut e, WRITER, 0, 6, &[]);
    let exchange = Message::decode(e.host.mailbox(UP).unwrap()).unwrap().exchange;
    let early = Message { exchange: exchange.wrapping_add(1), stamp: 77, body: Body::Offer(9) };
    e.host.deposit(UP, &early.encode()).unwrap();
    e.host.interrupt(&mut e.h);
    let dropped = HostEffect::Drop { mailbox: UP, reason: DropReason::Unexpected("offer") };
    assert_eq!(take(&mut e.h), [dropped]);
    assert!(e.host.is_blocked(T));
    // The transfer in flight runs to its end.
    e.pushed(WRITER, UP, reply(Status::Ok, 6 * 4096));
    e.posted(WRITER, UP, list(6, 2));
    dmas(&mut e, WRITER, 6, 2, &[]);
    e.c.remove(0);
    e.pushed(WRITER, UP, reply(Status::Ok, SIZE));
    let wake = HostEffect::Wake { thread: T, guard: 0, result: Ok(WHOLE) };
    assert_eq!(take(&mut e.h), [HostEffect::Unpin { thread: T }, wake]);
}

#[test]
fn pages_that_cannot_be_pinned_fail_their_call_alone_before_the_ends_have_met() {
    let mut e = Ends::new();
    e.host.send_indirect(T, e.channel, HOST, None, &mut e.h).unwrap();
    e.h.clear();
    e.host.pin_failed(T, &mut e.h).unwrap();
    e.woken(Err(Failure::Pin));
    e.card.write_indirect(C, ID, CARD, None, &mut e.c).unwrap();
    e.host.receive_indirect(T, e.channel, HOST, None, &mut e.h).unwrap();
    e.h.clear();
    e.host.pin_failed(T, &mut e.h).unwrap();
    e.woken(Err(Failure::Pin));
    assert!(e.card.is_blocked(C));
}

#[test]
fn pages_that_cannot_be_pinned_for_a_selection_fail_the_sender_too() {
    let mut e = Ends::new();
    let guards = [Guard { from: e.channel, want: Want::Indirect(HOST) }];
    e.host.select(T, &guards, None, &mut e.h).unwrap();
    assert!(e.h.is_empty(), "pinned when it is the one");
    e.card.write_indirect(C, ID, CARD, None, &mut e.c).unwrap();
    e.c.clear();
    e.card.done(WRITER, &mut e.c).unwrap();
    e.pushed(WRITER, UP, Body::Offer(SIZE));
    assert_eq!(take(&mut e.h), [HostEffect::Pin { thread: T, buffer: HOST }]);
    e.host.pin_failed(T, &mut e.h).unwrap();
    let failed = Reply { status: Status::PinFailed, done: 0, outstanding: 0, expected: 0 };
    e.posted(WRITER, UP, Body::Reply(failed));
    e.woken(Err(Failure::Pin));
    let result = Err(Failure::Pin);
    assert_eq!(take(&mut e.c), [CardEffect::Signal { context: C, guard: 0, result }]);
}

#[test]
fn a_deadline_that_passes_while_pages_are_pinned_counts_afterwards() {
    let mut e = Ends::new();
    e.host.send_indirect(T, e.channel, HOST, Some(5), &mut e.h).unwrap();
    e.h.clear();
    e.host.tick(5, &mut e.h);
    assert!(e.h.is_empty() && e.host.is_blocked(T));
    e.host.pinned(T, &pages(), &mut e.h).unwrap();
    let wake = HostEffect::Wake { thread: T, guard: 0, result: Err(Failure::Timeout) };
    assert_eq!(take(&mut e.h), [HostEffect::Unpin { thread: T }, wake]);
}

#[test]
fn a_deadline_does_not_end_a_transfer() {
    let mut e = Ends::new();
    e.card.read_indirect(C, ID, CARD, Some(5), &mut e.c).unwrap();
    e.host.send_indirect(T, e.channel, HOST, Some(5), &mut e.h).unwrap();
    e.h.clear();
    e.host.pinned(T, &pages(), &mut e.h).unwrap();
    e.posted(READER, DOWN, list(0, 6));
    assert_eq!(e.card.next_deadline(), None);
    e.c.clear();
    e.card.done(READER, &mut e.c).unwrap();
    dmas(&mut e, READER, 0, 6, &[]);
    e.pushed(READER, DOWN, reply(Status::Ok, 6 * 4096));
    assert_eq!(e.host.next_deadline(), None);
    e.host.tick(6, &mut e.h);
    e.posted(READER, DOWN, list(6, 2));
}
