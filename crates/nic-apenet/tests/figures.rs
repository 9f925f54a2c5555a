//! Bandwidths of the shipped cards. They follow from the model's units and the specification.

use super::support::{Rig, spec_of};
use nicety_host::Memory;
use nicety_kernel::{Config, World};
use nicety_nic_apenet::EventKind;
use nicety_nic_core::parts::Dma;
use nicety_types::{Duration, MessageId, Path, Recorder, Time};
use std::cell::Cell;
use std::rc::Rc;

const PAGE: u64 = 4096;
const BEGIN: Time = Time::from_ps(100_000_000_000);

/// Rates of back-to-back puts of a buffer, in bytes per nanosecond. `sent` ends when the last buffer has been read, and
/// `received` when it has been written.
struct Rate {
    sent: f64,
    received: f64,
}

/// The parameters of a stream.
#[derive(Clone, Copy)]
struct Stream<'o> {
    card: &'o str,
    overrides: &'o [&'o str],
    /// Whether a node puts to itself. Otherwise it puts to another node.
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
    // CHEP16 reports 4.8 GB/s. Each message also has a completion.
    let rate = stream(Stream { flush: true, ..V5 });
    assert!(close(rate.sent, 4.8, 0.01), "{}", rate.sent);
    // The receive side keeps up with this rate if no engine writes the completions.
    let beside = stream(Stream { overrides: &["events.writer=bus"], ..V5 });
    assert!(close(beside.received, 4.8, 0.005), "{}", beside.received);
}

/// Returns two times of a page on the card's idle bus: of a read until its last byte has arrived, and of a write.
fn page_on_the_bus() -> (Duration, Duration) {
    let spec = spec_of("apenet-v5", &[]).unwrap();
    let mut world: World<()> = World::new(Config::default());
    let node = world.add_node();
    let (sim, memory) = (world.sim(node), Rc::new(Memory::new(spec.node.host.memory)));
    let address = memory.allocate(PAGE).unwrap().address();
    let dma = Dma::new(&sim, spec.bus, memory, &Recorder::off());
    let found = Rc::new(Cell::new(Default::default()));
    let (seen, message) = (found.clone(), MessageId { source: node, sequence: 0 });
    let own = sim.clone();
    sim.spawn_program("a page", async move {
        let (payload, flight) = dma.read(message, address, PAGE, Path::from(Time::ZERO)).await;
        let read = flight.landed().at().since(Time::ZERO);
        own.until(BEGIN).await;
        let written = dma.deposit(message, address, PAGE, payload, Path::from(BEGIN)).await;
        seen.set((read, written.path.at().since(BEGIN)));
    });
    world.run().unwrap();
    found.get()
}

#[test]
fn one_engine_is_slower_than_two() {
    let rate = |overrides: &[&str]| stream(Stream { overrides, ..V5 }).received;
    let (transmit, receive) = (rate(&["dma.transmit_engines=1"]), rate(&["dma.receive_engines=1"]));
    // A transmit engine does the set-up and the read of a page in turn. A receive engine does the lookup, the set-up,
    // the write, and the set-up of the completion in turn.
    let (spec, (read, write)) = (spec_of("apenet-v5", &[]).unwrap(), page_on_the_bus());
    let expected = |time: Duration| PAGE as f64 / time.ns();
    let out = expected(spec.dma.setup + read);
    let in_ = expected(spec.tlb.lookup + spec.dma.setup + write + spec.dma.setup);
    assert!(close(transmit, out, 0.01) && close(receive, in_, 0.01), "{transmit} {out}, {receive} {in_}");
    assert!(close(out, 2.41, 0.01) && close(in_, 2.17, 0.01), "{out} {in_}");
    let both = rate(&[]);
    assert!(receive < transmit && transmit < both, "{transmit} {receive} {both}");
}

#[test]
fn a_completion_of_each_packet_makes_the_receive_side_the_limit() {
    let of = |overrides: &[&str]| stream(Stream { overrides, ..V5 });
    let (spec, (_, write)) = (spec_of("apenet-v5", &[]).unwrap(), page_on_the_bus());
    let page = spec.tlb.lookup + spec.dma.setup + write + spec.dma.setup;
    let found = of(&[]).received;
    assert!(close(found, 2.0 * PAGE as f64 / page.ns(), 0.01), "{found}");
    // With one completion per message, or with completions that no engine writes, the receive side is not the limit.
    for other in [["events.received=message"], ["events.writer=bus"]] {
        assert!(of(&other).received > 1.1 * found, "{other:?}");
    }
    // If each sent packet also has a completion, the transmit side is the limit.
    let both = of(&["events.sent=packet"]);
    assert!(both.received < 0.9 * found && close(both.sent, both.received, 0.01), "{}", both.received);
}

#[test]
fn bandwidth_falls_where_messages_have_more_pages_than_the_tlb() {
    for (card, knee) in [("apenet-v5", 1024), ("apenet-v4", 256)] {
        let rate = |kib: u64, overrides: &[&str]| {
            stream(Stream { card, overrides, loopback: true, bytes: kib << 10, ..V5 }).received
        };
        let (small, at, beyond) = (rate(knee / 4, &[]), rate(knee, &[]), rate(2 * knee, &[]));
        // The first message misses, because the TLB then holds the source's pages, which were registered last.
        assert!(at > 0.85 * small, "{card}: {small} {at}");
        assert!(beyond < 0.65 * at, "{card}: {at} {beyond}");
        // With more entries in the TLB, the bandwidth does not fall.
        assert!(close(rate(2 * knee, &["tlb.entries=4096"]), small, 0.02));
    }
    // A page of a graphics processor is sixteen times as large as a page of host memory.
    let sink = Stream { loopback: true, bytes: 2 << 20, gpu: (false, true), ..V5 };
    assert!(stream(sink).received > 1.5 * stream(Stream { gpu: (false, false), ..sink }).received);
}

#[test]
fn reading_a_graphics_processors_memory_is_slower_than_reading_the_hosts() {
    let rate = |gpu| stream(Stream { gpu, ..V5 }).received;
    let host = rate((false, false));
    // The graphics processor takes bytes at 6.4 GB/s. No other engine hides this time.
    let into = rate((false, true));
    assert!(into < host && close(into, host, 0.04), "{into} {host}");
    let (from, both) = (rate((true, false)), rate((true, true)));
    assert!(from < 0.6 * into && close(both, from, 0.01), "{from} {both}");
}
