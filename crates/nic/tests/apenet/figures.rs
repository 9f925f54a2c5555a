//! Bandwidths of the shipped cards: what the parts make of the spec.

use super::support::Rig;
use nicety_nic::apenet::EventKind;
use nicety_types::{Duration, Time};
use std::cell::Cell;
use std::rc::Rc;

const BEGIN: Time = Time::from_ps(100_000_000_000);

/// Bytes a nanosecond of puts of a buffer, one behind the other, until the last has been read, and until it has been written.
struct Rate {
    sent: f64,
    received: f64,
}

/// How a stream goes.
#[derive(Clone, Copy)]
struct Stream<'o> {
    card: &'o str,
    overrides: &'o [&'o str],
    /// To itself, or to another node.
    loopback: bool,
    bytes: u64,
    flush: bool,
    /// Whether the source and the destination are in the memory of a graphics processor.
    gpu: (bool, bool),
}

const V5: Stream<'static> = Stream {
    card: "apenet-v5",
    overrides: &[],
    loopback: false,
    bytes: 1 << 19,
    flush: false,
    gpu: (false, false),
};

fn stream(how: Stream<'_>) -> Rate {
    let Stream { card, overrides, loopback, bytes, flush, gpu } = how;
    let times = (8 << 20) / bytes;
    let mut rig = Rig::of(card, if loopback { 1 } else { 2 }, overrides, 1);
    let (address, ends) = (Rc::new(Cell::new(0)), Rc::new(Cell::new((Time::ZERO, Time::ZERO))));
    let target = u32::from(!loopback);
    let (there, seen) = (address.clone(), ends.clone());
    rig.process(target, 0, async move |user| {
        let buffer = if gpu.1 { user.gpu_room(bytes) } else { user.room(bytes) };
        user.register(buffer).await.unwrap();
        address.set(buffer.0);
        user.card.set_flushed(flush);
        for _ in 0..if flush { 0 } else { times } {
            user.process.received(&mut nicety_types::Path::clock(user.sim.now())).await.unwrap();
        }
        seen.set((seen.get().0, user.sim.now()));
    });
    let seen = ends.clone();
    rig.process(0, 0, async move |user| {
        let buffer = if gpu.0 { user.gpu_room(bytes) } else { user.room(bytes) };
        user.register(buffer).await.unwrap();
        user.sim.until(BEGIN).await;
        let mut puts = std::collections::VecDeque::new();
        for _ in 0..times {
            puts.push_back(user.put(user.to(target, buffer, there.get())).await.unwrap());
            if puts.len() == 16 {
                user.wait(puts.pop_front().unwrap()).await.unwrap();
            }
        }
        for put in puts {
            assert_eq!(user.wait(put).await.unwrap().kind, EventKind::Sent(put));
        }
        seen.set((user.sim.now(), seen.get().1));
    });
    rig.run();
    let rate =
        |end: Time| (times * bytes) as f64 / end.saturating_since(BEGIN).max(Duration::from_ps(1)).ns();
    Rate { sent: rate(ends.get().0), received: rate(ends.get().1) }
}

fn close(found: f64, expected: f64, within: f64) -> bool {
    (found / expected - 1.0).abs() < within
}

#[test]
fn the_peak_of_reads_is_what_the_set_up_was_calibrated_to() {
    // CHEP16: 4.8 GB/s. The receive side takes all of it.
    let rate = stream(Stream { flush: true, ..V5 });
    assert!(close(rate.sent, 4.8, 0.005), "{}", rate.sent);
    assert!(close(stream(V5).received, rate.sent, 0.005));
}

#[test]
fn one_engine_is_slower_than_two() {
    // A page's set-up and read, or its lookup, set-up and write, one after the other.
    let transmit = stream(Stream { overrides: &["dma.transmit_engines=1"], ..V5 }).received;
    let receive = stream(Stream { overrides: &["dma.receive_engines=1"], ..V5 }).received;
    assert!(close(transmit, 2.407, 0.01) && close(receive, 3.162, 0.01), "{transmit} {receive}");
}

#[test]
fn bandwidth_falls_where_messages_have_more_pages_than_the_tlb() {
    for (card, knee) in [("apenet-v5", 1024), ("apenet-v4", 256)] {
        let rate = |kib: u64, overrides: &[&str]| {
            stream(Stream { card, overrides, loopback: true, bytes: kib << 10, ..V5 }).received
        };
        let (small, at, beyond) = (rate(knee / 4, &[]), rate(knee, &[]), rate(2 * knee, &[]));
        // The first message misses where the source's pages, registered last, are in the TLB.
        assert!(at > 0.85 * small, "{card}: {small} {at}");
        assert!(beyond < 0.65 * at, "{card}: {at} {beyond}");
        // The entries make the difference.
        assert!(close(rate(2 * knee, &["tlb.entries=4096"]), small, 0.02));
    }
    // A graphics processor's pages are sixteen times as long.
    let sink = Stream { loopback: true, bytes: 2 << 20, gpu: (false, true), ..V5 };
    assert!(stream(sink).received > 1.5 * stream(Stream { gpu: (false, false), ..sink }).received);
}

#[test]
fn reading_a_graphics_processors_memory_is_slower_than_reading_the_hosts() {
    let rate = |gpu| stream(Stream { gpu, ..V5 }).received;
    let host = rate((false, false));
    assert!(close(rate((false, true)), host, 0.01));
    let (from, both) = (rate((true, false)), rate((true, true)));
    assert!(from < 0.6 * host && close(both, from, 0.01), "{from} {both}");
}
