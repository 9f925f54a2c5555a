//! Refused operations, and the reports of refusals at both ends.

use super::support::{Rig, User};
use nicety_nic_apenet::{ApenetError, EventKind, Operation, Refusal, Region, stages};
use nicety_types::{Duration, Time};
use std::cell::Cell;
use std::rc::Rc;

const LATER: Time = Time::from_ps(1_000_000_000);

/// Process 0 of node 0 runs `act` on a buffer of node 1. Process `owner` of node 1 has registered the first 4096 bytes
/// of the buffer. Returns the refusal, the offset, size and data in its event, and the contents of the buffer.
fn refused<F>(owner: u32, act: impl FnOnce(User, u64) -> F + 'static) -> (Refusal, (u64, u64, u64), Vec<u8>)
where
    F: Future<Output = ()>,
{
    let mut rig = Rig::new(2, &[]);
    let (address, found) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(None)));
    let (there, buffer) = (address.clone(), address.clone());
    rig.process(0, 0, async move |user| {
        user.sim.until(LATER).await;
        act(user, there.get()).await;
    });
    rig.process(1, owner, async move |user| {
        let buffer = user.bytes(&[9; 8192]);
        address.set(buffer.0);
        user.register((buffer.0, 4096)).await.unwrap();
    });
    let (seen, told) = (found.clone(), Cell::new((0, 0, 0)));
    rig.process(1, 0, async move |user| {
        let event = user.event().await.unwrap();
        let EventKind::Rejected(why) = event.kind else { panic!("{event:?}") };
        assert_eq!((event.peer.node.0, event.streaming), (0, false));
        told.set((event.address.wrapping_sub(buffer.get()), event.bytes, event.data));
        user.sim.delay(Duration::from_us(100)).await;
        seen.set(Some((why, told.get(), user.look((buffer.get(), 8192)))));
    });
    rig.run();
    let counted = [0, 1].map(|node| rig.cards[node].statistics());
    assert_eq!((counted[0].refused_by_peer, counted[1].refused, counted[1].events_lost), (1, 1, 0));
    found.take().unwrap()
}

/// Registers a buffer of `bytes` bytes with the value 1. Returns its address and its size.
async fn ones(user: &User, bytes: usize) -> (u64, u64) {
    let buffer = user.bytes(&vec![1; bytes]);
    user.register(buffer).await.unwrap();
    buffer
}

#[test]
fn puts_and_gets_outside_registered_memory_are_refused() {
    for (owner, offset, bytes, why) in [
        (0, 4096, 8, Refusal::Unregistered),
        (0, 4092, 8, Refusal::Unregistered),
        (0, 1 << 40, 100, Refusal::Unregistered),
        // The bytes are in the region of process 4, behind this region, and before it.
        (4, 0, 8, Refusal::Foreign),
        (4, 4096, 8, Refusal::Unregistered),
        (4, 8u64.wrapping_neg(), 8, Refusal::Unregistered),
    ] {
        for get in [false, true] {
            let (found, told, memory) = refused(owner, async move |user, there| {
                let buffer = ones(&user, bytes).await;
                let transfer = user.to(1, buffer, there.wrapping_add(offset));
                let operation =
                    if get { user.get(transfer).await.unwrap() } else { user.put(transfer).await.unwrap() };
                if !get {
                    // The card has read the put's bytes. The refusal comes later.
                    assert_eq!(user.event().await.unwrap().kind, EventKind::Sent(operation));
                }
                let event = user.event().await.unwrap();
                assert_eq!((event.kind, event.peer.node.0), (EventKind::Refused(operation, why), 1));
                let data = if get { 0 } else { 7 };
                assert_eq!((event.address, event.bytes, event.data), (buffer.0, bytes as u64, data));
                assert_eq!(user.look(buffer), vec![1; bytes]);
            });
            let data = if get { 0 } else { 7 };
            assert_eq!((found, told), (why, (offset, bytes as u64, data)), "get: {get}");
            assert_eq!(memory, vec![9; 8192]);
        }
    }
}

#[test]
fn a_put_that_runs_out_of_a_region_writes_nothing() {
    let (found, told, memory) = refused(0, async move |user, there| {
        let buffer = ones(&user, 8192).await;
        let put = user.put(user.to(1, buffer, there)).await.unwrap();
        assert_eq!(user.wait(put).await.unwrap().kind, EventKind::Sent(put));
        user.sim.delay(Duration::from_us(100)).await;
        let error = ApenetError::Refused { why: Refusal::Unregistered, node: 1 };
        assert_eq!(user.wait(put).await, Err(error));
    });
    assert_eq!((found, told, memory), (Refusal::Unregistered, (0, 8192, 7), vec![9; 8192]));
}

#[test]
fn streaming_buffers_run_out_and_may_be_too_short() {
    for (posted, bytes, why) in [
        (&[][..], 8, Refusal::NoBuffer),
        (&[4096], 4097, Refusal::TooLong),
        (&[64, 64], 64, Refusal::NoBuffer),
    ] {
        let mut rig = Rig::new(2, &[]);
        let sends = if bytes == 64 { 3 } else { 1 };
        rig.process(0, 0, async move |user| {
            let buffer = ones(&user, bytes).await;
            user.sim.until(LATER).await;
            let mut last = None;
            for _ in 0..sends {
                last = Some(user.put(user.to(1, buffer, 0)).await.unwrap());
            }
            loop {
                let event = user.event().await.unwrap();
                if let EventKind::Refused(operation, found) = event.kind {
                    assert_eq!((Some(operation), found), (last, why));
                    break;
                }
            }
        });
        rig.process(1, 0, async move |user| {
            let mut buffers = Vec::new();
            for &room in posted {
                let buffer = user.room(room);
                user.register(buffer).await.unwrap();
                user.stream(buffer).await.unwrap();
                buffers.push(buffer);
            }
            // The event of the refusal does not wait for the bytes of the other sends.
            let mut came = Vec::new();
            for _ in 0..sends {
                let event = user.event().await.unwrap();
                if event.kind == EventKind::Received {
                    assert!(event.streaming);
                    assert_eq!(user.look((event.address, event.bytes)), vec![1; bytes]);
                    came.push(event.address);
                } else {
                    assert_eq!(event.kind, EventKind::Rejected(why));
                }
            }
            let taken: Vec<u64> = buffers.iter().take(sends - 1).map(|buffer| buffer.0).collect();
            assert_eq!(came, taken);
        });
        rig.run();
    }
}

#[test]
fn a_wait_for_what_has_been_told_fails_at_once() {
    let mut rig = Rig::new(2, &[]);
    rig.process(0, 0, async |user| {
        let buffer = ones(&user, 64).await;
        let begun = user.sim.now();
        let unknown = |operation| Err(ApenetError::NoOperation { operation, process: 0 });
        // No process has posted the first operation. Another process has posted the second operation.
        let other = User { process: user.card.process_of(1), ..user.clone() };
        assert_eq!((user.wait(Operation(99)).await, user.sim.now()), (unknown(99), begun));
        let foreign = other.put(user.to(1, (0, 0), 64)).await.unwrap();
        user.sim.delay(Duration::from_us(10)).await;
        assert_eq!(user.wait(foreign).await, unknown(foreign.0));
        // The put's completion goes to one of two waiting threads. The get's completion is taken as an event.
        let put = user.put(user.to(0, buffer, buffer.0)).await.unwrap();
        let waiting = Rc::new(Cell::new(None));
        let (thread, seen) = (user.clone(), waiting.clone());
        user.sim.spawn(async move { seen.set(Some(thread.wait(put).await.is_ok())) });
        let own = user.wait(put).await;
        user.sim.delay(Duration::from_us(10)).await;
        assert_eq!([waiting.take(), Some(own.is_ok())].iter().flatten().filter(|&&ended| ended).count(), 1);
        let get = user.get(user.to(0, buffer, buffer.0)).await.unwrap();
        while user.event().await.unwrap().operation() != Some(get) {}
        let ended = user.sim.now();
        for operation in [put, get, put] {
            assert_eq!(user.wait(operation).await, unknown(operation.0));
        }
        assert_eq!(user.sim.now(), ended);
        // A refusal ends a get. For a refused put, another event would report that its buffer may be reused.
        user.sim.delay(Duration::from_us(10)).await;
        let get = user.get(user.to(1, buffer, 64)).await.unwrap();
        let error = Err(ApenetError::Refused { why: Refusal::Unregistered, node: 1 });
        assert_eq!([user.wait(get).await, user.wait(get).await], [error, unknown(get.0)]);
    });
    rig.run();
}

#[test]
fn a_refused_put_ends_when_its_bytes_have_been_read() {
    let mut rig = Rig::new(1, &[]);
    rig.process(0, 0, async |user| {
        let buffer = ones(&user, 100 * 4096).await;
        // The put is refused for its first page, while the card reads the other pages.
        let put = user.put(user.to(0, buffer, 64)).await.unwrap();
        let error = ApenetError::Refused { why: Refusal::Unregistered, node: 0 };
        assert_eq!(user.wait(put).await, Err(error));
        assert_eq!(user.wait(put).await.unwrap().kind, EventKind::Sent(put));
        assert!(matches!(user.wait(put).await, Err(ApenetError::NoOperation { .. })));
        // Packets after the refused packet take no engine.
        let counted = user.card.statistics();
        assert!((1..=3).contains(&counted.tlb_misses) && counted.tlb_hits == 0, "{counted:?}");
    });
    rig.run();
}

#[test]
fn a_send_is_refused_with_the_addresses_of_both_ends() {
    let mut rig = Rig::new(2, &[]);
    rig.process(0, 0, async |user| {
        let buffer = ones(&user, 4097).await;
        user.sim.until(LATER).await;
        let send = user.put(user.to(1, buffer, 0)).await.unwrap();
        user.wait(send).await.unwrap();
        let event = user.event().await.unwrap();
        assert_eq!(event.kind, EventKind::Refused(send, Refusal::TooLong));
        assert_eq!((event.address, event.bytes, event.data, event.streaming), (buffer.0, 4097, 7, false));
    });
    rig.process(1, 0, async |user| {
        let buffer = user.room(4096);
        user.register(buffer).await.unwrap();
        user.stream(buffer).await.unwrap();
        let event = user.event().await.unwrap();
        // The send has taken no streaming buffer.
        assert_eq!(event.kind, EventKind::Rejected(Refusal::TooLong));
        assert_eq!((event.address, event.bytes, event.data, event.streaming), (0, 4097, 7, false));
    });
    rig.run();
}

#[test]
fn an_empty_put_to_a_process_without_events_is_refused() {
    let mut rig = Rig::new(2, &[]);
    rig.process(0, 5, async |user| {
        let put = user.put(user.to(1, (0, 0), 8)).await.unwrap();
        let kinds = [user.event().await.unwrap().kind, user.event().await.unwrap().kind];
        assert_eq!(kinds, [EventKind::Sent(put), EventKind::Refused(put, Refusal::NoProcess)]);
    });
    rig.run();
    // No process of node 1 gets a report.
    let counted = rig.cards[1].statistics();
    assert_eq!((counted.refused, counted.events, counted.events_lost), (1, 0, 0));
}

#[test]
fn a_deregistration_ends_the_streaming_buffers_of_its_region() {
    let mut rig = Rig::new(1, &["limits.streaming=3"]);
    rig.process(0, 0, async |user| {
        let regions = [user.room(8192), user.room(8192)];
        let mut numbers = Vec::new();
        for region in regions {
            numbers.push(user.register(region).await.unwrap());
        }
        assert_eq!(user.stream((regions[0].0, 0)).await, Err(ApenetError::Empty));
        for (region, offset) in [(0, 0), (1, 0), (0, 8191)] {
            user.stream((regions[region].0 + offset, 1)).await.unwrap();
        }
        let again = ApenetError::StreamingOverlap {
            address: regions[0].0,
            bytes: 8192,
            buffer: regions[0].0 + 8191,
            len: 1,
        };
        assert_eq!(user.stream(regions[0]).await, Err(again));
        assert_eq!(user.stream((regions[1].0 + 1, 1)).await, Err(ApenetError::Streaming { limit: 3 }));
        user.deregister(numbers[0]).await.unwrap();
        assert_eq!(user.process.streaming(), 1);
        user.put(user.to(0, (regions[1].0, 1), 0)).await.unwrap();
        let received = user.process.received(&mut nicety_types::Path::clock(user.sim.now())).await.unwrap();
        assert_eq!(received.address, regions[1].0);
    });
    rig.run();
}

#[test]
fn addresses_past_the_last_one_are_refused_at_once() {
    let mut rig = Rig::new(1, &[]);
    rig.process(0, 0, async |user| {
        let buffer = ones(&user, 8192).await;
        let address = u64::MAX - 100;
        let error = ApenetError::Address { address, bytes: 8192 };
        assert_eq!(user.put(user.to(0, buffer, address)).await, Err(error.clone()));
        assert_eq!(user.get(user.to(0, buffer, address)).await, Err(error));
        // No memory is near the last possible address.
        let put = user.put(user.to(0, (buffer.0, 100), address)).await.unwrap();
        while user.event().await.unwrap().kind != EventKind::Refused(put, Refusal::Unregistered) {}
    });
    rig.run();
}

#[test]
fn a_deregistration_waits_for_what_is_on_its_way_and_refuses_the_rest() {
    // On the slow card, engines are still being set up for packets long after the embedded processor has executed its
    // command.
    let slow = ["dma.setup=100 us", "processor.register=0 ns", "processor.page=0 ns"];
    deregister(&[], 30);
    deregister(&slow, 350);
}

/// Deregisters a buffer `us` microseconds after the start of a put to this buffer.
fn deregister(overrides: &[&str], us: u64) {
    let mut rig = Rig::new(2, overrides);
    let (address, slow) = (Rc::new(Cell::new(0)), !overrides.is_empty());
    let there = address.clone();
    rig.process(0, 0, async move |user| {
        let buffer = ones(&user, 64 * 4096).await;
        user.sim.until(LATER).await;
        let put = user.put(user.to(1, buffer, there.get())).await.unwrap();
        // During the put, the sender also registers and deregisters another buffer.
        let end = user.clone();
        let region = end.register(user.bytes(&[3; 8])).await.unwrap();
        end.deregister(region).await.unwrap();
        let sent = user.event().await.unwrap();
        let refused = user.event().await.unwrap();
        let expected = [EventKind::Sent(put), EventKind::Refused(put, Refusal::Unregistered)];
        assert!(expected.contains(&sent.kind) && expected.contains(&refused.kind) && sent != refused);
    });
    rig.process(1, 0, async move |user| {
        let buffer = user.room(64 * 4096);
        address.set(buffer.0);
        let region = user.register(buffer).await.unwrap();
        user.sim.until(LATER + Duration::from_us(us)).await;
        user.restart();
        let pages = |memory: Vec<u8>| memory.iter().filter(|&&byte| byte == 1).count() / 4096;
        let begun = pages(user.look(buffer));
        user.deregister(region).await.unwrap();
        // Only pages that already have an engine are still written.
        assert!(pages(user.look(buffer)) <= begun + 3, "{begun}");
        let before = user.look(buffer);
        if slow {
            let path = user.path.get();
            assert!(path.total(stages::REGISTER_QUEUED) > Duration::from_us(30), "{path:?}");
        }
        let written = before.iter().filter(|&&byte| byte == 1).count();
        assert!(written > 0 && written < 64 * 4096 && written % 4096 == 0, "{written}");
        user.sim.delay(Duration::from_us(500)).await;
        assert_eq!(user.look(buffer), before, "nothing is written after the call");
        assert_eq!(user.event().await.unwrap().kind, EventKind::Rejected(Refusal::Unregistered));
        assert_eq!(user.deregister(region).await, Err(ApenetError::NoRegion { region: region.number }));
    });
    rig.run();
    assert_eq!(rig.cards[1].registered(), (0, 0));
}

#[test]
fn a_region_takes_messages_from_the_end_of_its_registration_on() {
    let mut rig = Rig::new(1, &["processor.register=1 ms"]);
    rig.process(0, 0, async |user| {
        let buffer = user.room(8192);
        let from = user.room(8);
        user.process.set_up(from.0, 8).unwrap();
        let poster = user.clone();
        user.sim.spawn(async move {
            poster.sim.delay(Duration::from_us(500)).await;
            // A put with a virtual address would wait for the embedded processor, so the put has a physical address.
            poster.card.set_physical(true);
            poster.put(poster.to(0, from, buffer.0)).await.unwrap();
        });
        let region = user.register(buffer).await.unwrap();
        let kinds = [user.event().await.unwrap().kind, user.event().await.unwrap().kind];
        assert!(kinds.contains(&EventKind::Rejected(Refusal::Unregistered)), "{kinds:?}");
        user.card.set_physical(false);
        user.put(user.to(0, from, buffer.0)).await.unwrap();
        while user.event().await.unwrap().kind != EventKind::Received {}
        // No other process can deregister the region. The region's pages leave the TLB with the region.
        let other = User { process: user.card.process_of(7), ..user.clone() };
        let error = Err(ApenetError::NoRegion { region: region.number });
        assert_eq!(other.deregister(region).await, error);
        assert_eq!(other.deregister(Region { process: 7, ..region }).await, error);
        user.deregister(region).await.unwrap();
        let misses = user.card.statistics().tlb_misses;
        user.put(user.to(0, from, buffer.0)).await.unwrap();
        while user.event().await.unwrap().kind != EventKind::Rejected(Refusal::Unregistered) {}
        assert_eq!(user.card.statistics().tlb_misses, misses + 1);
    });
    rig.run();
}

#[test]
fn bytes_are_in_memory_before_their_deregistration_ends() {
    // The bytes need more time on the bus than the work of the card and the kernel.
    let quick =
        ["processor.register=0 ns", "processor.page=0 ns", "kernel.unpin_page=0 ns", "kernel.call=0 ns"];
    let mut rig = Rig::new(2, &[&quick[..], &["bus.kind=plain", "bus.latency=50 us"]].concat());
    let address = Rc::new(Cell::new(0));
    let there = address.clone();
    rig.process(0, 0, async move |user| {
        let buffer = ones(&user, 4096).await;
        user.sim.until(LATER).await;
        user.put(user.to(1, buffer, there.get())).await.unwrap();
    });
    rig.process(1, 0, async move |user| {
        let buffer = user.room(4096);
        address.set(buffer.0);
        let region = user.register(buffer).await.unwrap();
        // Descriptors and page cross the sender's bus before the receive engine writes.
        while user.card.busy().receive.is_zero() {
            user.sim.delay(Duration::from_us(1)).await;
        }
        user.deregister(region).await.unwrap();
        assert!(user.look(buffer) == [1; 4096]);
    });
    rig.run();
}

#[test]
fn a_get_that_is_refused_leaves_the_replies_to_others_alone() {
    let mut rig = Rig::new(3, &[]);
    rig.process(0, 0, async |user| {
        let buffer = ones(&user, 200 * 4096).await;
        user.sim.until(LATER).await;
        let long = user.get(user.to(1, buffer, buffer.0)).await.unwrap();
        user.sim.delay(Duration::from_us(20)).await;
        let refused = user.get(user.to(2, (buffer.0, 8), buffer.0)).await.unwrap();
        let error = ApenetError::Refused { why: Refusal::Unregistered, node: 2 };
        assert_eq!(user.wait(refused).await, Err(error));
        assert_eq!(user.wait(long).await.unwrap().kind, EventKind::Fetched(long));
        assert!(user.look(buffer) == vec![2; 200 * 4096]);
    });
    rig.process(1, 0, async |user| {
        let buffer = user.bytes(&vec![2; 200 * 4096]);
        user.register(buffer).await.unwrap();
    });
    rig.run();
}

#[test]
fn a_reply_whose_buffer_is_deregistered_fails_its_get() {
    let mut rig = Rig::new(2, &[]);
    rig.process(0, 0, async |user| {
        let buffer = user.room(200 * 4096);
        let region = user.register(buffer).await.unwrap();
        user.sim.until(LATER).await;
        let get = user.get(user.to(1, buffer, buffer.0)).await.unwrap();
        user.sim.delay(Duration::from_us(50)).await;
        user.deregister(region).await.unwrap();
        let error = ApenetError::Refused { why: Refusal::Unregistered, node: 0 };
        assert_eq!(user.wait(get).await, Err(error));
        // The later packets of the reply belong to no get.
        user.sim.delay(Duration::from_us(500)).await;
        let counted = user.card.statistics();
        assert!(counted.stale_replies > 50 && counted.unusable == 0 && counted.refused == 1, "{counted:?}");
    });
    rig.process(1, 0, async |user| {
        let buffer = user.bytes(&vec![2; 200 * 4096]);
        user.register(buffer).await.unwrap();
    });
    rig.run();
}

#[test]
fn calls_with_what_is_not_registered_are_refused() {
    let mut rig = Rig::new(1, &["limits.regions=3", "limits.pages=8"]);
    rig.process(0, 0, async |user| {
        let (start, bytes) = user.room(12 * 4096);
        let error = user.put(user.to(0, (start, 8), start)).await.unwrap_err();
        assert!(error.to_string().contains("are not in a region that process 0 has registered"), "{error}");
        assert_eq!(user.register((start, 0)).await, Err(ApenetError::Empty));
        let outside = user.register((start, bytes + 1)).await.unwrap_err();
        assert!(matches!(outside, ApenetError::Memory(_)));
        let region = user.register((start + 100, 4096)).await.unwrap();
        // These regions are neighbours of the first region, and share pages with it.
        user.register((start, 100)).await.unwrap();
        user.register((start + 4196, 4000)).await.unwrap();
        assert_eq!(user.register((start + 8196, 8)).await, Err(ApenetError::Regions { limit: 3 }));
        user.deregister(region).await.unwrap();
        assert_eq!(
            user.register((start + 8196, 5 * 4096)).await,
            Err(ApenetError::Pages { pages: 6, left: 8 - 3 })
        );
        let error = user.put(user.to(1, (start, 8), start)).await.unwrap_err();
        assert_eq!(error, ApenetError::NoNode { node: 1, nodes: 1 });
        let error = user.put(user.to(0, (start, (1 << 30) + 1), start)).await.unwrap_err();
        assert_eq!(error, ApenetError::Message { bytes: (1 << 30) + 1, limit: 1 << 30 });
        // The refused calls have changed nothing.
        assert_eq!(user.card.registered(), (2, 1 + 2));
    });
    rig.run();
}

#[test]
fn regions_may_overlap_and_each_holds_its_bytes_by_itself() {
    let mut rig = Rig::new(1, &[]);
    rig.process(0, 0, async |user| {
        let (start, bytes) = user.room(6 * 4096);
        let to = user.room(8);
        user.register(to).await.unwrap();
        // The region `part` is inside the region `whole`. The region `across` crosses the end of `whole`.
        let (most, rest) = (5 * 4096, bytes - 2 * 4096);
        let whole = user.register((start, most)).await.unwrap();
        let part = user.register((start + 100, 50)).await.unwrap();
        let across = user.register((start + 2 * 4096, rest)).await.unwrap();
        assert_eq!(user.card.registered(), (4, 1 + 5 + 1 + 4));
        user.stream((start + 100, 8)).await.unwrap();
        user.stream((start + 200, 8)).await.unwrap();
        let reaches = async |at: u64| {
            let put = user.put(user.to(0, (start + at, 8), to.0)).await;
            let Ok(put) = put else { return false };
            assert_eq!(user.wait(put).await.unwrap().kind, EventKind::Sent(put));
            true
        };
        assert!(reaches(0).await && reaches(100).await && reaches(bytes - 8).await);
        user.deregister(whole).await.unwrap();
        // Calculated by hand: the bytes 100..150 and 8192..24576 remain registered.
        for (at, is_left) in
            [(0, false), (92, false), (100, true), (142, true), (143, false), (8191, false), (8192, true)]
        {
            assert_eq!(reaches(at).await, is_left, "{at}");
        }
        // Of the two streaming buffers, only the buffer at offset 100 remains.
        assert!(matches!(user.stream((start + 100, 8)).await, Err(ApenetError::StreamingOverlap { .. })));
        assert!(matches!(user.stream((start + 200, 8)).await, Err(ApenetError::Unregistered { .. })));
        user.deregister(part).await.unwrap();
        user.deregister(across).await.unwrap();
        assert_eq!(user.card.registered(), (1, 1));
    });
    rig.run();
}

#[test]
fn nothing_begins_in_a_region_that_is_being_deregistered() {
    let mut rig = Rig::new(1, &[]);
    rig.process(0, 0, async |user| {
        let (from, to) = (ones(&user, 64 * 4096).await, user.room(64 * 4096));
        user.register(to).await.unwrap();
        // During a put, the region of its source is deregistered. During a second put, the region of its destination is
        // deregistered.
        for ending in [from, to] {
            let region = Region {
                number: if ending == from { 1 } else { 2 },
                process: 0,
                address: ending.0,
                bytes: ending.1,
            };
            let put = user.put(user.to(0, from, to.0)).await.unwrap();
            user.sim.delay(Duration::from_us(10)).await;
            let other = user.clone();
            user.sim.spawn(async move { other.deregister(region).await.unwrap() });
            user.sim.delay(Duration::from_us(1)).await;
            assert_eq!(user.card.registered().0, 2, "it waits");
            let unregistered = Err(ApenetError::Unregistered { address: ending.0, bytes: 8, process: 0 });
            assert_eq!(user.put(user.to(0, (ending.0, 8), to.0)).await, unregistered.clone());
            assert_eq!(user.get(user.to(0, (ending.0, 8), to.0)).await, unregistered);
            assert!(user.stream((ending.0, 8)).await.is_err());
            assert_eq!(user.deregister(region).await, Err(ApenetError::NoRegion { region: region.number }));
            if ending == from {
                assert_eq!(user.wait(put).await.unwrap().kind, EventKind::Sent(put));
                user.sim.delay(Duration::from_us(100)).await;
                assert_eq!(user.register(from).await.unwrap().number, 3);
            }
        }
    });
    rig.run();
}
