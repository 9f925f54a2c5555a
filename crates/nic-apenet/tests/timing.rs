//! Times calculated by hand, exact to the picosecond. The plain bus takes 150 ns for a crossing and 127 ps for a byte.
//! The link takes 200 ns for a crossing and 200 ps for a byte. Header and footer are 64 B.

use super::support::{Rig, User};
use nicety_nic_apenet::{EventKind, Notify, stages};
use nicety_nic_core::parts::stages::DMA_SETUP;
use nicety_types::{Duration, Path, Stage, Time};
use std::cell::Cell;
use std::rc::Rc;

const START: Time = Time::from_ps(1_000_000_000);
const PLAIN: &str = "bus.kind=plain";

/// A change of a card's settings before a put.
type Change = fn(&User);

/// Returns the path of a put, from its call to the time at which the receiver notices the event. Unless `warm` is true,
/// the receiver's TLB has a single entry, which holds another page.
fn put(bytes: u64, warm: bool, overrides: &[&str], change: Change) -> Path {
    let small: &[&str] = if warm { &[] } else { &["tlb.entries=1"] };
    let mut rig = Rig::new(2, &[&[PLAIN], small, overrides].concat());
    let (path, address) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(0)));
    let (there, seen) = (address.clone(), path.clone());
    rig.process(0, 3, async move |user| {
        let buffer = user.bytes(&vec![5; bytes as usize]);
        user.register(buffer).await.unwrap();
        user.sim.until(START).await;
        change(&user);
        user.restart();
        let put = user.put(user.to(1, buffer, there.get())).await.unwrap();
        assert_eq!(user.wait(put).await.unwrap().kind, EventKind::Sent(put));
    });
    rig.process(1, 3, async move |user| {
        let buffer = user.room(bytes);
        address.set(buffer.0);
        if warm {
            user.register(buffer).await.unwrap();
        } else {
            user.process.set_up(buffer.0, bytes).unwrap();
            user.process.set_up(user.room(8).0, 8).unwrap();
        }
        change(&user);
        let event = user.event().await.unwrap();
        assert_eq!((event.kind, event.bytes, event.data), (EventKind::Received, bytes, 7));
        assert_eq!(user.look(buffer), vec![5; bytes as usize]);
        seen.set(Some(user.path.get()));
    });
    rig.run();
    let path = path.take().unwrap();
    assert_eq!(path.origin(), START);
    path
}

fn ps(path: &Path) -> Vec<(&'static str, u64)> {
    path.stages().map(|(stage, time)| (stage.name(), time.ps())).collect()
}

fn stages(expected: &[(Stage, u64)]) -> Vec<(&'static str, u64)> {
    expected.iter().map(|(stage, time)| (stage.name(), *time)).collect()
}

/// Returns two lists of stages of a put of `pages` pages: before the first engine, and after the write of the event.
/// Times are in picoseconds.
fn around(pages: u64) -> [Vec<(Stage, u64)>; 2] {
    let before = vec![
        (Stage::SYSTEM_CALL, 62_500),
        (stages::DRIVER, 180_000 + pages * 40_000),
        (Stage::POST, 65_000),
        // The write of a doorbell of 4 B.
        (Stage::BUS, 508 + 150_000),
        // The read request, and `pages` descriptors of 32 B each.
        (stages::DESCRIPTOR, 150_000 + pages * 4064 + 150_000),
    ];
    [before, vec![(stages::EVENT, 90_000), (Stage::NOTICE, 65_000)]]
}

/// Time in picoseconds of an event of 32 B behind the payload: the event's bytes on the bus, and a crossing.
const EVENT: u64 = 4064 + 150_000;

#[test]
fn a_put_of_8_bytes_by_hand() {
    let [before, after] = around(1);
    let tlb = [(stages::TLB, 124_000), (stages::TRANSLATION, 1_900_000)];
    for warm in [true, false] {
        // An engine is set up for the read, for the write, and for the event.
        let fetch = [(DMA_SETUP, 3 * 598_000), (Stage::FETCH, 150_000 + 1016 + 150_000)];
        // The payload on the link is one word of 32 B.
        let link = [(Stage::LINK, (32 + 64) * 200 + 200_000)];
        let tlb = if warm { &tlb[..1] } else { &tlb };
        let expected = [&before[..], &fetch, &link, tlb, &[(Stage::DEPOSIT, 1016 + EVENT)], &after].concat();
        assert_eq!(ps(&put(8, warm, &[], |_| ())), stages(&expected), "warm: {warm}");
    }
    // A physical address skips the TLB.
    let path = put(8, false, &[], |user| user.card.set_physical(true));
    assert_eq!((path.total(stages::TLB), path.total(stages::TRANSLATION)), (Duration::ZERO, Duration::ZERO));
}

#[test]
fn memory_registered_during_set_up_is_in_the_tlb_like_any() {
    let mut rig = Rig::new(1, &["tlb.entries=4"]);
    rig.process(0, 0, async |user| {
        let buffer = user.room(6 * 4096);
        user.process.set_up(buffer.0, buffer.1).unwrap();
        // The TLB has the last four pages of the buffer: pages 2 and 5 hit, and page 0 misses.
        for (page, hits) in [(2, 1), (5, 2), (0, 2)] {
            user.put(user.to(0, (buffer.0, 8), buffer.0 + page * 4096)).await.unwrap();
            while user.event().await.unwrap().kind != EventKind::Received {}
            assert_eq!(user.card.statistics().tlb_hits, hits);
        }
    });
    rig.run();
}

#[test]
fn a_physical_address_is_that_of_a_put_not_of_a_streaming_buffer() {
    let mut rig = Rig::new(1, &[]);
    rig.process(0, 0, async |user| {
        let buffer = user.room(100);
        user.register(buffer).await.unwrap();
        user.card.set_physical(true);
        user.stream((buffer.0 + 50, 50)).await.unwrap();
        for (remote, hits) in [(buffer.0, 0), (0, 1)] {
            user.put(user.to(0, (buffer.0, 8), remote)).await.unwrap();
            while user.event().await.unwrap().kind != EventKind::Received {}
            assert_eq!(user.card.statistics().tlb_hits, hits);
        }
    });
    rig.run();
}

#[test]
fn a_put_of_a_page_by_hand() {
    let [before, after] = around(1);
    let rest = [(Stage::LINK, (4096 + 64) * 200 + 200_000), (stages::TLB, 124_000)];
    for (writer, set_ups) in [("own", 3), ("receive", 3), ("bus", 2)] {
        let fetch = [(DMA_SETUP, set_ups * 598_000), (Stage::FETCH, 150_000 + 520_192 + 150_000)];
        let expected = [&before[..], &fetch, &rest, &[(Stage::DEPOSIT, 520_192 + EVENT)], &after].concat();
        let path = put(4096, true, &[&format!("events.writer={writer}")], |_| ());
        assert_eq!(ps(&path), stages(&expected), "{writer}");
    }
}

#[test]
fn a_put_of_three_pages_by_hand() {
    let [before, after] = around(3);
    let reading = 150_000 + 520_192 + 150_000;
    // The receive engines are the slowest part. The first page needs the set-up of a read, the read, and the link. The
    // engine that has written the first page and its completion does the same with the third page.
    let fetch = [(DMA_SETUP, 5 * 598_000), (Stage::FETCH, reading)];
    let rest = [(Stage::LINK, (4096 + 64) * 200 + 200_000), (stages::TLB, 2 * 124_000)];
    let deposit = [(Stage::DEPOSIT, 2 * 520_192 + EVENT)];
    let expected = [&before[..], &fetch, &rest, &deposit, &after].concat();
    assert_eq!(ps(&put(3 * 4096, true, &[], |_| ())), stages(&expected));
    // With one completion per message, the link is the slowest part. Three pages cross the link, and then the last page
    // is written.
    let fetch = [(DMA_SETUP, 3 * 598_000), (Stage::FETCH, reading)];
    let rest = [(Stage::LINK, 3 * (4096 + 64) * 200 + 200_000), (stages::TLB, 124_000)];
    let expected = [&before[..], &fetch, &rest, &[(Stage::DEPOSIT, 520_192 + EVENT)], &after].concat();
    assert_eq!(ps(&put(3 * 4096, true, &["events.received=message"], |_| ())), stages(&expected));
}

#[test]
fn each_packet_has_a_completion_and_each_message_an_event() {
    for (overrides, completions) in [
        (&[][..], [0, 2]),
        (&["events.sent=packet"], [2, 2]),
        (&["events.received=message"], [0, 0]),
        (&["events.sent=packet", "events.writer=receive"], [2, 2]),
        (&["events.sent=packet", "events.writer=bus"], [2, 2]),
    ] {
        let mut rig = Rig::new(2, overrides);
        let address = Rc::new(Cell::new(0));
        let there = address.clone();
        rig.process(0, 3, async move |user| {
            let buffer = user.room(3 * 4096);
            user.register(buffer).await.unwrap();
            user.sim.until(START).await;
            let put = user.put(user.to(1, buffer, there.get())).await.unwrap();
            assert_eq!(user.wait(put).await.unwrap().kind, EventKind::Sent(put));
        });
        rig.process(1, 3, async move |user| {
            let buffer = user.room(3 * 4096);
            address.set(buffer.0);
            user.register(buffer).await.unwrap();
            let event = user.event().await.unwrap();
            assert_eq!((event.kind, event.bytes), (EventKind::Received, 3 * 4096));
        });
        rig.run();
        let counted = [0, 1].map(|card: usize| rig.cards[card].statistics());
        assert_eq!(counted.map(|card| card.packet_completions), completions, "{overrides:?}");
        assert_eq!(counted.map(|card| card.events), [1, 1], "{overrides:?}");
    }
}

#[test]
fn long_puts_within_a_host_account_for_all_of_their_time() {
    // The card fetches later descriptors while it reads and writes pages of the same message.
    for (pages, bus) in [(20, "plain"), (27, "pcie"), (28, "pcie"), (64, "plain"), (255, "pcie")] {
        let mut rig = Rig::new(1, &[&format!("bus.kind={bus}"), "buffer.packets=4"]);
        rig.process(0, 0, async move |user| {
            let (out, into) = (user.room(pages * 4096), user.room(pages * 4096));
            user.register(out).await.unwrap();
            user.register(into).await.unwrap();
            user.sim.until(START).await;
            user.restart();
            user.put(user.to(0, out, into.0)).await.unwrap();
            while user.event().await.unwrap().kind != EventKind::Received {}
            let path = user.path.get();
            let stages: u64 = path.stages().map(|(_, time)| time.ps()).sum();
            assert_eq!((path.origin(), path.at()), (START, user.sim.now()), "{pages} pages, {bus}");
            assert_eq!(stages, path.at().since(START).ps(), "{pages} pages, {bus}");
        });
        rig.run();
    }
}

#[test]
fn one_engine_does_one_page_after_another() {
    let total = |overrides: &[&str]| {
        let path = put(3 * 4096, true, &[&["events.writer=bus"], overrides].concat(), |_| ());
        path.at().since(path.origin()).ps()
    };
    let [before, after] = around(3);
    let around: u64 = before.iter().chain(&after).map(|(_, time)| time).sum();
    let (read, write, link) = (598_000 + 300_000 + 520_192, 124_000 + 598_000 + 520_192, 4160 * 200);
    assert_eq!(total(&[]), around + read + 3 * link + 200_000 + write + EVENT);
    assert_eq!(total(&["dma.transmit_engines=1"]), around + 3 * read + link + 200_000 + write + EVENT);
    // With one place in the transmit FIFO, the card reads a page when the previous page has gone out on the link.
    assert_eq!(total(&["dma.fifo=1"]), around + 3 * (read + link) + 200_000 + write + EVENT);
    // The engine writes the three pages one after another, from the arrival of the first page on.
    assert_eq!(total(&["dma.receive_engines=1"]), around + read + link + 200_000 + 3 * write + EVENT);
    // The engine also needs the set-up for each completion.
    let own = total(&["dma.receive_engines=1", "events.writer=own"]);
    assert_eq!(own, around + read + link + 200_000 + 3 * (write + 598_000) + EVENT);
}

#[test]
fn an_interrupt_costs_its_handler_an_acknowledgement_and_a_wake_up() {
    let path = put(8, true, &[], |user| user.card.set_notify(Notify::Interrupt));
    let polled = put(8, true, &[], |_| ());
    // The interrupt message crosses the bus behind the event. Then come the handler, a write of 4 B to a register, the
    // copy of the event, the wake-up, and the notice.
    let expected = 150_000 + 2_000_000 + 508 + 90_000 + 3_800_000 + 65_000;
    let time = |path: &Path| path.at().since(path.origin()).ps();
    assert_eq!(time(&path) - (time(&polled) - 65_000 - 90_000), expected);
    assert_eq!(path.total(Stage::INTERRUPT), Duration::from_us(2));
    assert_eq!(path.total(Stage::WAKE), Duration::from_ps(3_800_000));
}

#[test]
fn an_event_waits_until_its_process_looks_for_it() {
    let mut rig = Rig::new(1, &[]);
    rig.process(0, 0, async |user| {
        let buffer = user.room(64);
        user.register(buffer).await.unwrap();
        user.sim.until(START).await;
        user.restart();
        let put = user.put(user.to(0, buffer, buffer.0)).await.unwrap();
        user.sim.until(START + Duration::from_us(50)).await;
        user.wait(put).await.unwrap();
        let path = user.path.get();
        assert!(path.total(stages::EVENT_QUEUED) > Duration::from_us(40), "{path:?}");
        assert_eq!(path.total(Stage::NOTICE), Duration::from_ns(65));
        // The receiver's event has not been copied to the queue of its process. The first poll finds and copies the
        // event. The second poll finds none.
        let calls = || user.card.kernel().counters().calls;
        let before = calls();
        let mut path = Path::from(user.sim.now());
        let polled = user.process.poll(&mut path).await.unwrap().unwrap();
        assert_eq!((polled.kind, calls()), (EventKind::Received, before + 1));
        assert_eq!((user.process.poll(&mut path).await, calls()), (Ok(None), before + 2));
        // If the event is already in the queue of its process, a poll makes no system call.
        let puts = [(); 2].map(|()| user.to(0, buffer, buffer.0));
        for put in puts {
            user.put(put).await.unwrap();
        }
        user.sim.delay(Duration::from_us(50)).await;
        for _ in 0..2 {
            while user.event().await.unwrap().kind != EventKind::Received {}
        }
        user.put(user.to(0, buffer, buffer.0)).await.unwrap();
        user.process.received(&mut path).await.unwrap();
        let before = calls();
        assert!(matches!(user.process.poll(&mut path).await, Ok(Some(event)) if event.operation().is_some()));
        assert_eq!(calls(), before);
    });
    rig.run();
}

#[test]
fn a_thread_of_the_events_own_process_copies_it() {
    let noticed = |others: bool| {
        let mut rig = Rig::new(1, &[]);
        if others {
            rig.process(0, 2, async |user| {
                let sim = user.sim.clone();
                sim.spawn(async move { drop(user.event().await) });
            });
        }
        let at = Rc::new(Cell::new(Time::ZERO));
        let seen = at.clone();
        rig.process(0, 1, async move |user| {
            let buffer = user.room(64);
            user.register(buffer).await.unwrap();
            let put = user.put(user.to(0, buffer, buffer.0)).await.unwrap();
            user.wait(put).await.unwrap();
            seen.set(user.sim.now());
        });
        rig.run();
        at.get()
    };
    assert_eq!(noticed(true), noticed(false));
}

#[test]
fn a_change_of_notification_reaches_those_that_wait() {
    let mut rig = Rig::new(1, &[]);
    rig.process(0, 0, async |user| {
        let buffer = user.room(64);
        user.register(buffer).await.unwrap();
        let poster = user.clone();
        user.sim.spawn(async move {
            poster.sim.delay(Duration::from_us(20)).await;
            poster.card.set_notify(Notify::Interrupt);
            poster.put(poster.to(0, buffer, buffer.0)).await.unwrap();
        });
        while user.event().await.unwrap().kind != EventKind::Received {}
        let counted = user.card.kernel().counters();
        assert!(counted.wakes > 0 && counted.interrupts > 0, "{counted:?}");
    });
    rig.run();
}

#[test]
fn a_word_over_two_pages_is_looked_up_twice_and_a_page_over_two_has_two_descriptors() {
    let mut rig = Rig::new(1, &[]);
    rig.process(0, 0, async |user| {
        let buffer = user.room(4 * 4096);
        user.register(buffer).await.unwrap();
        let (at, counted) = (buffer.0, || user.card.statistics());
        user.put(user.to(0, (at, 2), at + 2 * 4096 - 1)).await.unwrap();
        while user.event().await.unwrap().kind != EventKind::Received {}
        assert_eq!((counted().tlb_hits, counted().descriptors), (2, 1));
        user.put(user.to(0, (at + 100, 4096), at)).await.unwrap();
        while user.event().await.unwrap().kind != EventKind::Received {}
        assert_eq!(
            (counted().tlb_hits, counted().descriptors, counted().packets_sent),
            (2 + 2, 1 + 2, 1 + 2)
        );
        // A reply is cut at the page boundaries of its source.
        let get = user.get(user.to(0, (at, 8192), at + 100)).await.unwrap();
        while user.event().await.unwrap().kind != EventKind::Fetched(get) {}
        assert_eq!(counted().packets_sent, 3 + 1 + 3);
    });
    rig.run();
}

#[test]
fn descriptors_are_fetched_up_to_the_end_of_the_ring_and_while_the_card_has_places() {
    let put = |user: &User, pages: u64, buffer: u64| user.to(0, (buffer, pages * 4096), buffer);
    let mut rig = Rig::new(1, &["ring.entries=8", "ring.fetch=8"]);
    rig.process(0, 0, async move |user| {
        let buffer = user.room(5 * 4096);
        user.register(buffer).await.unwrap();
        for fetches in [1, 1 + 2] {
            user.put(put(&user, 5, buffer.0)).await.unwrap();
            while user.event().await.unwrap().kind != EventKind::Received {}
            assert_eq!(user.card.statistics().fetches, fetches);
        }
    });
    rig.run();
    let mut rig = Rig::new(1, &["ring.fetch=2", "dma.fifo=1", "dma.setup=1 ms"]);
    rig.process(0, 0, async move |user| {
        let buffer = user.room(20 * 4096);
        user.register(buffer).await.unwrap();
        user.put(put(&user, 20, buffer.0)).await.unwrap();
        user.sim.delay(Duration::from_us(500)).await;
        // One descriptor is with its engine, and two descriptors have a slot on the card.
        assert_eq!(user.card.statistics().descriptors, 3);
    });
    rig.run();
}

#[test]
fn misses_wait_for_each_other_and_for_registrations() {
    // Two packets for different pages arrive at the same time from two hosts. The miss of the second packet waits for
    // the miss of the first packet.
    let mut rig = Rig::new(3, &[PLAIN, "tlb.entries=1"]);
    let (address, waits) = (Rc::new(Cell::new(0)), Rc::new(Cell::new((0, 0))));
    for node in [0, 1] {
        let there = address.clone();
        rig.process(node, 0, async move |user| {
            let buffer = user.bytes(&[1; 64]);
            user.process.set_up(buffer.0, 64).unwrap();
            user.sim.until(START).await;
            user.restart();
            user.put(user.to(2, buffer, there.get() + u64::from(node) * 4096)).await.unwrap();
        });
    }
    let seen = waits.clone();
    rig.process(2, 0, async move |user| {
        let buffer = user.room(8192);
        address.set(buffer.0);
        user.process.set_up(buffer.0, 8192).unwrap();
        user.process.set_up(user.room(8).0, 8).unwrap();
        let mut waited = [0; 2];
        for wait in &mut waited {
            user.restart();
            user.event().await.unwrap();
            *wait = user.path.get().total(stages::TRANSLATION_QUEUED).ps();
        }
        seen.set((waited[0], waited[1]));
    });
    rig.run();
    let (first, second) = waits.get();
    // The beginnings of both packets reach the switch at the same time. The second packet follows when the 128 B of the
    // first packet have left the switch.
    assert_eq!((first, second), (0, 1_900_000 - 128 * 200));
    let counted = rig.cards[2].statistics();
    assert_eq!((counted.tlb_hits, counted.tlb_misses, rig.cards[2].longest_queue()), (0, 2, 1));
}
