//! Packets that the network loses. The receiver gives up the message of a lost packet. Both ends get a report.

use super::support::{Rig, User};
use nicety_nic_apenet::{Event, EventKind, Refusal};
use nicety_types::{Duration, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const LATER: Time = Time::from_ps(1_000_000_000);
const PAGES: u64 = 3 * 4096;

/// Registers six pages filled with `byte`. The address is the same on all nodes.
async fn memory(user: &User, byte: u8) -> (u64, u64) {
    let buffer = user.bytes(&[byte; 2 * PAGES as usize]);
    user.register(buffer).await.unwrap();
    buffer
}

/// Node 0 puts or sends three pages, then puts 8 bytes. The link loses the packet with the number `packet`. Returns the
/// events of both nodes, and the contents and the address of the receiver's memory.
fn lose(packet: u64, streaming: bool) -> (Vec<Event>, Vec<Event>, Vec<u8>, u64) {
    let mut rig = Rig::losing(0, &[packet], &[]);
    let events: [Rc<RefCell<Vec<Event>>>; 2] = Default::default();
    let seen = events[0].clone();
    rig.process(0, 0, async move |user| {
        let buffer = memory(&user, 1).await;
        user.sim.until(LATER).await;
        let remote = if streaming { 0 } else { buffer.0 };
        user.put(user.to(1, (buffer.0, PAGES), remote)).await.unwrap();
        user.put(user.to(1, (buffer.0, 8), buffer.0 + PAGES)).await.unwrap();
        for _ in 0..3 {
            let event = user.event().await.unwrap();
            seen.borrow_mut().push(event);
        }
    });
    let (seen, left) = (events[1].clone(), Rc::new(RefCell::new((Vec::new(), 0))));
    let found = left.clone();
    rig.process(1, 0, async move |user| {
        let buffer = memory(&user, 2).await;
        if streaming {
            user.stream((buffer.0, PAGES)).await.unwrap();
        }
        for _ in 0..2 {
            let event = user.event().await.unwrap();
            seen.borrow_mut().push(event);
        }
        user.sim.delay(Duration::from_us(50)).await;
        *found.borrow_mut() = (user.look(buffer), buffer.0);
    });
    rig.run();
    let counted = rig.cards[1].statistics();
    assert_eq!((counted.abandoned, counted.refused), (1, 1));
    // If the first packet is lost, the second packet shows the loss, and the third packet is unusable.
    assert_eq!(counted.unusable, if packet == 1 { 1 } else { 0 });
    let [sender, receiver] = events.map(|events| events.take());
    let (bytes, address) = left.take();
    (sender, receiver, bytes, address)
}

#[test]
fn a_put_without_one_of_its_packets_is_reported_at_both_ends() {
    for packet in 1..=3 {
        let (sender, receiver, memory, address) = lose(packet, false);
        let [first, second] = [receiver[0], receiver[1]];
        let rejected = Event { kind: EventKind::Rejected(Refusal::Lost), ..first };
        assert_eq!((first, first.address, first.bytes, first.data), (rejected, address, PAGES, 7));
        assert_eq!((second.kind, second.bytes), (EventKind::Received, 8));
        let refused =
            sender.iter().filter(|event| matches!(event.kind, EventKind::Refused(_, Refusal::Lost)));
        assert_eq!(refused.count(), 1, "{sender:?}");
        // Pages before the lost packet are written.
        let expected = |page: u64| if page + 1 < packet { 1 } else { 2 };
        assert!((0..3).all(|page| memory[page as usize * 4096] == expected(page)), "packet {packet}");
        assert_eq!(memory[PAGES as usize..][..9], [1, 1, 1, 1, 1, 1, 1, 1, 2]);
    }
}

#[test]
fn a_later_packet_shows_at_once_that_one_was_lost() {
    let mut rig = Rig::losing(0, &[2], &[]);
    rig.process(0, 0, async |user| {
        let buffer = memory(&user, 1).await;
        user.sim.until(LATER).await;
        let put = user.put(user.to(1, (buffer.0, PAGES), buffer.0)).await.unwrap();
        while user.event().await.unwrap().kind != EventKind::Refused(put, Refusal::Lost) {}
    });
    rig.process(1, 0, async |user| {
        memory(&user, 2).await;
        assert_eq!(user.event().await.unwrap().kind, EventKind::Rejected(Refusal::Lost));
    });
    rig.run();
}

#[test]
fn a_packet_that_is_being_translated_is_not_written_after_its_message_was_given_up() {
    // The third page arrives while the first page is being translated. The third page shows that the second page was
    // lost.
    let slow = ["tlb.entries=1", "processor.translation=100 us"];
    for get in [false, true] {
        let mut rig = Rig::losing(u32::from(get), &[2], &slow);
        rig.process(0, 0, async move |user| {
            let buffer = memory(&user, 1).await;
            user.sim.until(LATER).await;
            // A get with a physical address makes no translation at the remote card.
            user.card.set_physical(get);
            let transfer = user.to(1, (buffer.0, PAGES), buffer.0);
            let lost =
                if get { user.get(transfer).await.unwrap() } else { user.put(transfer).await.unwrap() };
            while user.event().await.unwrap().kind != EventKind::Refused(lost, Refusal::Lost) {}
            user.sim.delay(Duration::from_us(300)).await;
            assert!(user.look(buffer) == [1; 2 * PAGES as usize], "get: {get}");
        });
        rig.process(1, 0, async move |user| {
            let buffer = memory(&user, 2).await;
            user.sim.until(LATER + Duration::from_us(1500)).await;
            assert!(user.look(buffer) == [2; 2 * PAGES as usize], "get: {get}");
        });
        rig.run();
        let counted = rig.cards[usize::from(!get)].statistics();
        assert_eq!((counted.abandoned, counted.refused), (1, 1));
    }
}

#[test]
fn a_message_that_was_refused_is_not_given_up_as_well() {
    // A put to unregistered memory loses its last packet. Another put follows the first put.
    let mut rig = Rig::losing(0, &[3], &[]);
    rig.process(0, 0, async |user| {
        let buffer = memory(&user, 1).await;
        user.sim.until(LATER).await;
        user.put(user.to(1, (buffer.0, PAGES), 64)).await.unwrap();
        user.sim.delay(Duration::from_us(20)).await;
        user.put(user.to(1, (buffer.0, 8), buffer.0)).await.unwrap();
        user.sim.delay(Duration::from_us(20)).await;
    });
    rig.process(1, 0, async |user| {
        memory(&user, 2).await;
        assert_eq!(user.event().await.unwrap().kind, EventKind::Rejected(Refusal::Unregistered));
        assert_eq!(user.event().await.unwrap().kind, EventKind::Received);
    });
    rig.run();
    let counted = rig.cards[1].statistics();
    assert_eq!((counted.abandoned, counted.refused), (0, 1));
}

#[test]
fn a_send_whose_beginning_was_lost_has_no_buffer() {
    let (_, receiver, _, _) = lose(1, true);
    assert_eq!((receiver[0].kind, receiver[0].address), (EventKind::Rejected(Refusal::Lost), 0));
}

#[test]
fn the_streaming_buffer_of_a_message_that_misses_a_packet_comes_back_with_the_event() {
    let (_, receiver, _, address) = lose(3, true);
    let rejected = receiver[0];
    assert_eq!(
        (rejected.kind, rejected.address, rejected.streaming),
        (EventKind::Rejected(Refusal::Lost), address, true)
    );
}

#[test]
fn a_get_whose_reply_misses_a_packet_fails_and_frees_its_place() {
    for packet in 1..=3 {
        let mut rig = Rig::losing(1, &[packet], &["limits.gets=2"]);
        let there = Rc::new(Cell::new(0));
        let address = there.clone();
        rig.process(0, 0, async move |user| {
            let buffer = memory(&user, 1).await;
            user.sim.until(LATER).await;
            let lost = user.get(user.to(1, (buffer.0, PAGES), there.get())).await.unwrap();
            let short = user.get(user.to(1, (buffer.0 + PAGES, 8), there.get())).await.unwrap();
            let first = user.event().await.unwrap();
            assert_eq!((first.kind, first.bytes), (EventKind::Refused(lost, Refusal::Lost), PAGES));
            assert_eq!(user.event().await.unwrap().kind, EventKind::Fetched(short));
            for _ in 0..2 {
                user.get(user.to(1, (buffer.0, PAGES), there.get())).await.unwrap();
            }
            for _ in 0..2 {
                assert!(matches!(user.event().await.unwrap().kind, EventKind::Fetched(_)));
            }
            assert_eq!(
                user.look(buffer)[..PAGES as usize + 9],
                [[2; PAGES as usize + 8].as_slice(), &[1]].concat()
            );
        });
        rig.process(1, 0, async move |user| address.set(memory(&user, 2).await.0));
        rig.run();
        let counted = rig.cards[0].statistics();
        assert_eq!((counted.abandoned, counted.unusable, counted.refused), (1, 0, 1));
    }
}

#[test]
fn packets_of_a_message_that_was_given_up_belong_to_none() {
    // The third of five pages shows the loss of the second page. Two pages arrive after the third page.
    let mut rig = Rig::losing(0, &[2], &[]);
    rig.process(0, 0, async |user| {
        let buffer = user.bytes(&[1; 5 * 4096]);
        user.register(buffer).await.unwrap();
        user.sim.until(LATER).await;
        let put = user.put(user.to(1, buffer, buffer.0)).await.unwrap();
        while user.event().await.unwrap().kind != EventKind::Refused(put, Refusal::Lost) {}
    });
    rig.process(1, 0, async |user| {
        let buffer = user.room(5 * 4096);
        user.register(buffer).await.unwrap();
        assert_eq!(user.event().await.unwrap().kind, EventKind::Rejected(Refusal::Lost));
        user.sim.delay(Duration::from_us(50)).await;
        let written: Vec<u8> = user.look(buffer).chunks(4096).map(|page| page[0]).collect();
        assert_eq!(written, [1, 0, 0, 0, 0]);
    });
    rig.run();
    let counted = rig.cards[1].statistics();
    assert_eq!((counted.abandoned, counted.refused, counted.unusable), (1, 1, 2));
}
