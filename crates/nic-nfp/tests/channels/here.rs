//! Tests messages of a host to itself. The host's library copies them on the host's CPUs, without the card.

use super::messages::pair;
use super::recording::rows;
use super::{Host, from};
use nicety_nic_core::Tags;
use nicety_nic_nfp::{Arrival, INLINE, MessageError, Messenger, WINDOW, stages};
use nicety_types::{Duration, Path, Stage, Time};
use std::cell::Cell;
use std::rc::Rc;

/// Returns a host without a network.
fn alone() -> (Host, Rc<Messenger>) {
    let host = Host::recorded(&[]);
    let messenger = Messenger::install(&host.sim, &host.card, 1).unwrap();
    (host, messenger)
}

fn pattern(len: u64) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 250) as u8).collect()
}

/// Returns a buffer with these bytes.
fn buffer(host: &Host, bytes: &[u8]) -> u64 {
    let address = host.memory.allocate(bytes.len() as u64).unwrap().address();
    host.memory.write(address, bytes).unwrap();
    address
}

fn bytes(memory: &nicety_host::Memory, address: u64, len: u64) -> Vec<u8> {
    memory.peek(address, len).unwrap().into_buffer().unwrap().to_vec()
}

/// Returns the stages of a path, in picoseconds.
fn parts(path: &Path) -> Vec<(Stage, u64)> {
    path.stages().map(|(stage, time)| (stage, time.ps())).collect()
}

/// The time `library.call` of the shipped spec.
const LIBRARY: u64 = 50_000;
/// The time until a copy has its first line from memory: `host.memory_latency`.
const LINE: u64 = 51_000;
/// The time `kernel.wake` of the shipped spec.
const WAKE: u64 = 3_800_000;

/// A copy of 4 KiB that are not in the cache, calculated by hand. The first line takes 51 ns. The other 63 lines are
/// fetched in groups of ten, and take another 6 x 51 ns. This is more than the 102.4 ns of 256 cycles or the 50.9 ns of
/// 8 KiB at 150 GiB/s. If the receive is posted first, there are no further costs.
#[test]
fn a_receive_that_is_there_is_filled_by_the_sender() {
    let (mut host, messenger) = alone();
    let (out, back) = (buffer(&host, &pattern(4096)), buffer(&host, &[0; 5000]));
    let (memory, theirs) = (host.memory.clone(), messenger.clone());
    host.thread(move |_, sim| async move {
        let mut path = from(&sim);
        let posted = theirs.post(&path, Some(0), Tags::exactly(9), back, 5000).unwrap();
        theirs.send(&mut path, 0, 9, out, 4096).await.unwrap();
        assert_eq!(parts(&path), [(Stage::LIBRARY, LIBRARY), (Stage::COPY, 7 * LINE)]);
        assert_eq!(path.at(), sim.now());
        let arrival = theirs.received(&mut path, posted).await.unwrap();
        assert_eq!(arrival, Arrival { source: 0, tag: 9, bytes: 4096 });
        assert_eq!(path.at(), Time::from_ps(LIBRARY + 7 * LINE), "no thread slept");
        assert_eq!(bytes(&memory, back, 4096), pattern(4096));
        assert_eq!(bytes(&memory, back + 4096, 904), [0; 904]);
    });
    host.run();
    // The traffic is that of the lines of both buffers, once each. There is no traffic of a card.
    let traffic = host.memory.traffic();
    assert_eq!((traffic.read, traffic.written - 4096 - 5000), (4096, 4096));
    assert_eq!(host.card.channel_counters(), Default::default());
    assert!(!messenger.is_started());
    let rows = rows(&host.recorder);
    assert_eq!(rows.len(), 1);
    let stages = [(Stage::LIBRARY, LIBRARY), (Stage::COPY, 7 * LINE)];
    assert_eq!(rows[0].stages.as_deref(), Some(&stages[..]));
}

/// A short message waits in its envelope, so its sender continues. The sender copies a line into the envelope, and the
/// receiver copies the line out.
#[test]
fn a_short_message_waits_for_its_receive_and_not_its_sender() {
    let (mut host, messenger) = alone();
    let (out, back) = (buffer(&host, &pattern(INLINE)), buffer(&host, &[0; 64]));
    let memory = host.memory.clone();
    host.thread(move |_, sim| async move {
        let mut path = from(&sim);
        messenger.send(&mut path, 0, 9, out, INLINE).await.unwrap();
        // The copy takes two cycles of 400 ps after the line.
        let sent = [(Stage::LIBRARY, LIBRARY), (Stage::COPY, LINE + 800)];
        assert_eq!(parts(&path), sent);
        memory.write(out, &[0; INLINE as usize]).unwrap();
        sim.until(Time::from_ps(1_000_000)).await;
        let mut path = from(&sim);
        let posted = messenger.post(&path, None, Tags::ANY, back, 64).unwrap();
        messenger.received(&mut path, posted).await.unwrap();
        assert_eq!(parts(&path), sent, "the other half");
        assert_eq!(bytes(&memory, back, INLINE), pattern(INLINE));
    });
    host.run();
    let rows = rows(&host.recorder);
    let stages = [
        (Stage::LIBRARY, 2 * LIBRARY),
        (Stage::COPY, 2 * (LINE + 800)),
        (stages::RECEIVER, 1_000_000 - LIBRARY - LINE - 800),
    ];
    assert_eq!(rows[0].stages.as_deref(), Some(&stages[..]));
}

/// The kernel wakes a thread that slept during the copy.
#[test]
fn a_thread_that_slept_is_woken() {
    /// The second thread begins at 10 us.
    const COPIED: u64 = 10_000_000 + LIBRARY + 7 * LINE;
    for late in [true, false] {
        let (mut host, messenger) = alone();
        let (out, back) = (buffer(&host, &pattern(4096)), buffer(&host, &[0; 4096]));
        let theirs = messenger.clone();
        host.thread(move |_, sim| async move {
            sim.delay(Duration::from_us(if late { 0 } else { 10 })).await;
            let mut path = from(&sim);
            theirs.send(&mut path, 0, 9, out, 4096).await.unwrap();
            assert_eq!(sim.now().ps(), COPIED + if late { WAKE } else { 0 });
        });
        host.thread(move |_, sim| async move {
            sim.delay(Duration::from_us(if late { 10 } else { 0 })).await;
            let mut path = from(&sim);
            let posted = messenger.post(&path, Some(0), Tags::ANY, back, 4096).unwrap();
            messenger.received(&mut path, posted).await.unwrap();
            assert_eq!(sim.now().ps(), COPIED + if late { 0 } else { WAKE });
            assert_eq!(path.at(), sim.now());
        });
        host.run();
        assert_eq!(host.card.kernel_counters().wakes, 1);
    }
}

#[test]
fn a_message_without_room_fails_at_both_ends() {
    let (mut host, messenger) = alone();
    let (out, back) = (buffer(&host, &pattern(4096)), buffer(&host, &[0; 4096]));
    let theirs = messenger.clone();
    host.thread(move |_, sim| async move {
        for (len, refused) in [(4096, true), (INLINE, false)] {
            let sent = messenger.send(&mut from(&sim), 0, 9, out, len).await;
            assert_eq!(
                sent,
                if refused { Err(MessageError::Refused { rank: 0, bytes: 4096 }) } else { Ok(()) }
            );
        }
        messenger.send(&mut from(&sim), 0, 1, out, 4096).await.unwrap();
    });
    host.thread(move |_, sim| async move {
        for bytes in [4096, INLINE] {
            let posted = theirs.post(&from(&sim), None, Tags::exactly(9), back, bytes - 1).unwrap();
            let message = Arrival { source: 0, tag: 9, bytes };
            let error = theirs.received(&mut from(&sim), posted).await.unwrap_err();
            assert_eq!(error, MessageError::NoRoom { message, room: bytes - 1 });
        }
        let posted = theirs.post(&from(&sim), None, Tags::ANY, back, 4096).unwrap();
        assert_eq!(theirs.received(&mut from(&sim), posted).await.unwrap().tag, 1);
    });
    host.run();
}

/// As with any other host, the number of waiting messages is limited by a window. Receives free the entries of the
/// window.
#[test]
fn waiting_messages_are_bounded() {
    let (mut host, messenger) = alone();
    let (out, back) = (buffer(&host, &[7; 8]), buffer(&host, &[0; 8]));
    let (sent, theirs) = (Rc::new(Cell::new(0)), messenger.clone());
    let count = sent.clone();
    host.thread(move |_, sim| async move {
        for _ in 0..3 * WINDOW {
            theirs.send(&mut from(&sim), 0, 0, out, 8).await.unwrap();
            count.set(count.get() + 1);
        }
    });
    host.thread(move |_, sim| async move {
        sim.delay(Duration::from_us(1000)).await;
        assert_eq!(sent.get(), WINDOW);
        for _ in 0..3 * WINDOW {
            let posted = messenger.post(&from(&sim), None, Tags::ANY, back, 8).unwrap();
            messenger.received(&mut from(&sim), posted).await.unwrap();
        }
    });
    host.run();
}

/// A send or a receive with the host itself does not start the forwarding processes. A receive from any host starts
/// them.
#[test]
fn the_microengines_stay_free() {
    let (mut world, [a, b]) = pair(&crate::spec(&[]), 1);
    let (one, other) = (a.clone(), b.clone());
    a.sim.spawn_program("to itself", async move {
        let (address, mut path) = (one.buffer(&[7; 8]), from(&one.sim));
        let posted = one.messenger.post(&path, Some(0), Tags::ANY, address, 8).unwrap();
        one.messenger.send(&mut path, 0, 0, address, 8).await.unwrap();
        one.messenger.received(&mut path, posted).await.unwrap();
    });
    b.sim.spawn_program("from any", async move {
        let (address, mut path) = (other.buffer(&[7; 8]), from(&other.sim));
        other.messenger.send(&mut path, 1, 0, address, 8).await.unwrap();
        let posted = other.messenger.post(&path, None, Tags::ANY, address, 8).unwrap();
        assert_eq!(other.messenger.received(&mut path, posted).await.unwrap().source, 1);
    });
    world.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!([a, b].map(|node| node.messenger.is_started()), [false, true]);
}

/// A short message with a posted receive is copied only once. After the first line, three lines are transferred at 150
/// GiB/s: parts of two lines are read, and a part of one is written. They take longer than two cycles.
#[test]
fn a_short_message_to_a_receive_is_copied_once() {
    let (mut host, messenger) = alone();
    let (out, back) = (buffer(&host, &pattern(INLINE)), buffer(&host, &[0; INLINE as usize]));
    let memory = host.memory.clone();
    host.thread(move |_, sim| async move {
        let mut path = from(&sim);
        let posted = messenger.post(&path, None, Tags::ANY, back, INLINE).unwrap();
        messenger.send(&mut path, 0, 9, out, INLINE).await.unwrap();
        messenger.received(&mut path, posted).await.unwrap();
        assert_eq!(parts(&path), [(Stage::LIBRARY, LIBRARY), (Stage::COPY, LINE + 1193)]);
        assert_eq!(bytes(&memory, back, INLINE), pattern(INLINE));
    });
    host.run();
}
