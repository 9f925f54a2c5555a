//! Single transfers on an idle link, and the order in which transfers arrive.

use crate::support::{at, gen3x8, message, now, on, wire};
use nicety_host::Notice;
use nicety_host::pcie::{Cut, PcieSpec};
use nicety_types::{Duration, Level, Recorder, Resource, Stage, Time};

const LATENCY: u64 = 250_000;
/// Time in ps of an Ack or an UpdateFC, which has 8 bytes.
const DLLP: u64 = 1_016;

#[test]
fn the_wire_by_hand() {
    // A byte takes 126.953125 ps. 8 bytes take 1015.625 ps, 32 take 4062.5, 88 take 11171.875, 276 take 35039.0625, and
    // 280 take 35546.875.
    assert_eq!([8, 32, 88, 276, 280].map(wire), [DLLP, 4_063, 11_172, 35_040, 35_547]);
}

#[test]
fn a_small_write_takes_its_tlp_and_a_crossing() {
    on(gen3x8(), |_, bus| async move {
        // The TLP has 8 + 16 bytes of overhead and 8 bytes of payload.
        let handover = bus.write(message(0), 0x1000, 8, at(0));
        assert_eq!(handover.path.at(), Time::from_ps(4_063));
        assert_eq!(handover.path.total(Stage::DEPOSIT), Duration::from_ps(4_063));
        assert_eq!(handover.landed, Time::from_ps(4_063 + LATENCY));
        assert_eq!(bus.busy().1, Duration::from_ps(4_063));
    });
}

#[test]
fn a_push_brings_its_command_before_its_payload() {
    on(gen3x8(), |sim, bus| async move {
        // The push has a command of 64 bytes and 8 bytes of payload: 8 + 16 + 72 bytes, which take 12187.5 ps.
        let packet = bus.push(message(0), 8, 4096, at(0)).packet(0).await;
        assert_eq!(packet.head, Time::from_ps(12_188 + LATENCY));
        assert_eq!(packet.tail, packet.head);
        assert_eq!(packet.path.at(), packet.head);
        assert_eq!(packet.path.total(Stage::BUS), Duration::from_ps(12_188 + LATENCY));
        sim.delay(Duration::from_us(1)).await;
        // A push without payload has 8 + 16 bytes of overhead and 64 bytes of command.
        let start = sim.now();
        let packet = bus.push(message(1), 0, 1, now(&sim)).packet(0).await;
        assert_eq!(packet.tail, start + Duration::from_ps(11_172 + LATENCY));
    });
}

#[test]
fn packets_of_a_push_arrive_tlp_by_tlp() {
    on(gen3x8(), |_, bus| async move {
        // The push has 64 + 8192 bytes: 32 TLPs of 280 bytes and one TLP of 88 bytes. The packets begin 64 bytes into
        // TLPs 0 and 16.
        let transfer = bus.push(message(0), 8192, 4096, at(0));
        let tlp = wire(280);
        let first = transfer.packet(0).await;
        assert_eq!(first.head, Time::from_ps(tlp + LATENCY));
        assert_eq!(first.tail, Time::from_ps(17 * tlp + LATENCY));
        let second = transfer.packet(4096).await;
        assert_eq!(second.head, Time::from_ps(17 * tlp + LATENCY));
        assert_eq!(second.tail, Time::from_ps(32 * tlp + wire(88) + LATENCY));
        assert_eq!(second.path.total(Stage::BUS), Duration::from_ps(17 * tlp + LATENCY));
    });
}

#[test]
fn write_combining_pushes_64_bytes_a_tlp() {
    let spec = PcieSpec { push_payload: 64, command: 0, ..gen3x8() };
    on(spec, |_, bus| async move {
        let packet = bus.push(message(0), 4096, 4096, at(0)).packet(0).await;
        assert_eq!(packet.tail, Time::from_ps(64 * wire(88) + LATENCY));
    });
}

#[test]
fn a_cpu_that_reads_a_register_waits_for_two_crossings() {
    on(gen3x8(), |sim, bus| async move {
        // The request has 24 bytes, and the completion has 8 + 12 + 8 bytes.
        let round_trip = 3_047 + LATENCY + 3_555 + LATENCY;
        let path = bus.load(message(0), 8, at(0)).await;
        assert_eq!((path.at(), sim.now()), (Time::from_ps(round_trip), path.at()));
        assert_eq!(path.total(Stage::BUS), Duration::from_ps(round_trip));
        // The answer arrives after the card's concurrent writes, which are 17 TLPs of 280 bytes.
        let start = sim.now();
        let (reader, other) = (now(&sim), bus.clone());
        let write = async {
            sim.delay(Duration::from_ps(3_000 + LATENCY)).await;
            other.write(message(2), 0x1000, 17 * 256, now(&sim));
        };
        let (path, ()) = nicety_kernel::join(bus.load(message(1), 8, reader), write).await;
        let waited = 17 * wire(280) + 2 * DLLP;
        assert!(path.at().since(start) > Duration::from_ps(round_trip));
        assert!(path.at().since(start) <= Duration::from_ps(round_trip + waited));
    });
}

#[test]
fn a_small_read_takes_two_tlps_and_two_crossings() {
    on(gen3x8(), |sim, bus| async move {
        // The request has 24 bytes, and the completion has 8 + 12 + 8 bytes.
        let transfer = bus.read(message(0), 0x1000, 8, 8, at(0)).await;
        assert_eq!(sim.now(), Time::from_ps(3_047 + LATENCY), "the request has reached the host");
        let packet = transfer.packet(0).await;
        assert_eq!(packet.tail, Time::from_ps(3_047 + LATENCY + 3_555 + LATENCY));
        assert_eq!(packet.path.total(Stage::FETCH), packet.tail.since(Time::ZERO));
    });
}

#[test]
fn host_memory_takes_its_time_where_the_spec_says_so() {
    let spec = PcieSpec {
        read_latency: Duration::from_ns(80),
        latency_to_card: Duration::from_ns(300),
        latency_to_host: Duration::from_ns(200),
        ..gen3x8()
    };
    on(spec, |_, bus| async move {
        let packet = bus.read(message(0), 0x1000, 8, 8, at(0)).await.packet(0).await;
        assert_eq!(packet.tail, Time::from_ps(3_047 + 200_000 + 80_000 + 3_555 + 300_000));
    });
}

#[test]
fn a_read_of_a_packet_streams_behind_its_first_request() {
    on(gen3x8(), |_, bus| async move {
        // The read takes eight requests of 512 bytes, with two completions of 256 bytes each. The first request arrives
        // at 256.047 ns. 203 ns later, the host's port sends an Ack and an UpdateFC: two DLLPs between the completions.
        let packet = bus.read(message(0), 0x1000, 4096, 4096, at(0)).await.packet(0).await;
        let answered = 3_047 + LATENCY;
        assert_eq!(packet.head, Time::from_ps(answered + 35_040 + LATENCY));
        assert_eq!(packet.tail, Time::from_ps(answered + 16 * 35_040 + 2 * DLLP + LATENCY));
    });
}

#[test]
fn completions_end_on_the_boundary_or_at_each() {
    let tail = |spec, address| {
        let (sent, found) = std::sync::mpsc::channel();
        on(spec, move |_, bus| async move {
            let packet = bus.read(message(0), address, 512, 512, at(0)).await.packet(0).await;
            sent.send(packet.tail.ps() - (3_047 + 2 * LATENCY)).unwrap();
        });
        found.recv().unwrap()
    };
    // The delays are longer than the test, so that no completion waits for a DLLP.
    let quiet = PcieSpec { ack_delay: Duration::from_us(9), update_delay: Duration::from_us(9), ..gen3x8() };
    assert_eq!(tail(quiet, 0x1000), 2 * wire(276));
    // The read begins 4 bytes into a line, so the completions have 252, 256 and 4 bytes.
    assert_eq!(tail(quiet, 0x1004), wire(272) + wire(276) + wire(24));
    assert_eq!(tail(PcieSpec { cut: Cut::Boundary, ..quiet }, 0x1000), 8 * wire(84));
    assert_eq!(tail(PcieSpec { cut: Cut::Boundary, rcb: 128, ..quiet }, 0x1000), 4 * wire(148));
}

#[test]
fn a_read_ends_at_4_kib_and_begins_again() {
    let spec = PcieSpec { mrrs: 4096, mps: 4096, push_payload: 4096, ..gen3x8() };
    on(spec, |_, bus| async move {
        // The read takes two requests, of 128 and 384 bytes.
        bus.read(message(0), 0x1f80, 512, 512, at(0)).await.packet(0).await;
        assert_eq!(bus.busy().1, Duration::from_ps(2 * wire(24)));
    });
    on(spec, |_, bus| async move {
        // The write takes two TLPs, of 64 and 192 bytes.
        let handover = bus.write(message(0), 0x2fc0, 256, at(0));
        assert_eq!(handover.path.at(), Time::from_ps(wire(88) + wire(216)));
    });
}

#[test]
fn bytes_are_padded_to_doublewords() {
    on(gen3x8(), |_, bus| async move {
        // 5 bytes from the third byte of a doubleword are in two doublewords.
        let handover = bus.write(message(0), 0x1003, 5, at(0));
        assert_eq!(handover.path.at(), Time::from_ps(wire(24 + 8)));
    });
}

#[test]
fn an_event_arrives_behind_the_deposit_before_it() {
    on(gen3x8(), |_, bus| async move {
        let deposit = bus.write(message(0), 0x1000, 4096, at(0));
        assert_eq!(deposit.landed, Time::from_ps(16 * 35_547 + LATENCY));
        // The event has 64 bytes, and the counter after it has 16 bytes.
        let event = bus.post(Notice::Event, deposit.path.clone());
        assert_eq!(event.at(), deposit.landed + Duration::from_ps(11_172));
        assert_eq!(event.total(Stage::DEPOSIT), event.at().since(Time::ZERO), "nothing was queued");
        let counter = bus.post(Notice::Counter, deposit.path);
        assert_eq!(counter.at(), event.at() + Duration::from_ps(wire(40)));
        assert_eq!(counter.total(Stage::DEPOSIT_QUEUED), Duration::from_ps(11_172));
    });
}

#[test]
fn a_read_never_passes_a_write() {
    on(gen3x8(), |sim, bus| async move {
        let write = bus.write(message(0), 0x1000, 4096, at(0));
        let transfer = bus.read(message(1), 0x1000, 8, 8, at(0)).await;
        assert_eq!(sim.now(), write.landed + Duration::from_ps(3_047), "behind the write's last byte");
        let packet = transfer.packet(0).await;
        assert_eq!(packet.path.total(Stage::FETCH_QUEUED), Duration::from_ps(16 * 35_547));
    });
}

#[test]
fn waiting_for_another_message_is_queueing_and_for_one_s_own_is_not() {
    on(gen3x8(), |_, bus| async move {
        bus.write(message(0), 0x1000, 256, at(0));
        let own = bus.write(message(0), 0x1100, 256, at(0));
        assert_eq!(own.path.total(Stage::DEPOSIT), Duration::from_ps(2 * 35_547));
        let other = bus.write(message(1), 0x1000, 256, at(0));
        assert_eq!(other.path.total(Stage::DEPOSIT_QUEUED), Duration::from_ps(2 * 35_547));
        assert_eq!(other.path.total(Stage::DEPOSIT), Duration::from_ps(35_547));
    });
}

#[test]
fn a_dllp_in_the_way_is_no_reason_to_forget_what_the_message_did() {
    on(gen3x8(), |sim, bus| async move {
        bus.write(message(0), 0x1000, 8, at(0));
        // The Ack and the UpdateFC for the push go to the host at 12.188 + 50 + 203 ns.
        bus.push(message(1), 8, 8, at(0));
        let due = Time::from_ps(12_188 + 50_000 + 203_000);
        sim.until(due).await;
        let mut path = at(0);
        path.advance(Stage::COMPUTE, due);
        let handover = bus.write(message(0), 0x1000, 8, path);
        assert_eq!(handover.path.total(Stage::COMPUTE), due.since(Time::ZERO));
        assert_eq!(handover.path.total(Stage::DEPOSIT_QUEUED), Duration::from_ps(2 * DLLP));
        assert_eq!(handover.path.total(Stage::DEPOSIT), Duration::from_ps(4_063));
    });
}

#[test]
fn later_requests_of_a_read_keep_its_path() {
    on(gen3x8(), |sim, bus| async move {
        let first = bus.read(message(0), 0x1000, 4096, 4096, at(0)).await;
        assert_eq!(first.packet(0).await.path.origin(), Time::ZERO);
        // The last completions are on the wire: 16 completions of 35.040 ns each, from 253.047 ns on.
        sim.until(Time::from_ps(560_000)).await;
        let path = at(0);
        let second = bus.read(message(0), 0x1000, 8, 8, path).await.packet(0).await;
        assert_eq!(second.path.origin(), Time::ZERO);
        let sum: Duration = second.path.stages().map(|(_, duration)| duration).sum();
        assert_eq!(sum, second.path.at().since(Time::ZERO));
        assert!(second.path.total(Stage::FETCH) >= Duration::from_ps(250_000));
    });
}

#[test]
fn bursts_are_recorded() {
    on(gen3x8(), |sim, bus| async move {
        let recorder = Recorder::new(Level::Everything, 100);
        bus.record(&recorder);
        bus.push(message(0), 8, 8, at(0));
        bus.write(message(1), 0x1000, 512, at(0));
        bus.read(message(2), 0x1000, 1024, 1024, at(0)).await.packet(0).await;
        bus.post(Notice::Counter, now(&sim));
        let rows = recorder.take().slices;
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.resource, row.what, row.end.since(row.start).ps(), row.message))
            .collect();
        assert_eq!(
            found,
            [
                (Resource::BUS_TO_CARD, "bus", 12_188, Some(message(0))),
                (Resource::BUS_TO_HOST, "deposit", 2 * 35_547, Some(message(1))),
                (Resource::BUS_TO_HOST, "fetch", 3_047, Some(message(2))),
                (Resource::BUS_TO_HOST, "fetch", 3_047, Some(message(2))),
                // An UpdateFC for the requests leaves at 74.141 + 50 + 203 ns. It goes between the first completions.
                (Resource::BUS_TO_CARD, "fetch", 2 * 35_040 + DLLP, Some(message(2))),
                (Resource::BUS_TO_CARD, "fetch", 2 * 35_040, Some(message(2))),
                (Resource::BUS_TO_HOST, "deposit", 5_079, None),
            ]
        );
    });
    on(gen3x8(), |_, bus| async move {
        let recorder = Recorder::new(Level::Packets, 100);
        bus.record(&recorder);
        bus.write(message(1), 0x1000, 512, at(0));
        assert!(recorder.take().slices.is_empty());
    });
}

#[test]
fn a_dllp_behind_one_s_own_bytes_is_queueing() {
    on(gen3x8(), |sim, bus| async move {
        // The Ack and the UpdateFC go to the host while the first write's only TLP is on the wire.
        bus.push(message(1), 8, 8, at(0));
        sim.until(Time::from_ps(12_188 + 50_000 + 203_000 - 10_000)).await;
        bus.write(message(0), 0x1000, 256, now(&sim));
        let second = bus.write(message(0), 0x1100, 256, now(&sim));
        assert_eq!(second.path.total(Stage::DEPOSIT), Duration::from_ps(2 * 35_547));
        assert_eq!(second.path.total(Stage::DEPOSIT_QUEUED), Duration::from_ps(2 * DLLP));
    });
}

#[test]
fn a_write_goes_between_the_requests_of_a_read() {
    on(gen3x8(), |sim, bus| async move {
        let reader = bus.clone();
        sim.spawn(async move {
            reader.read(message(0), 0x1000, 4096, 4096, at(0)).await;
        });
        sim.until(Time::from_ps(1_000)).await;
        let write = bus.write(message(1), 0x1000, 256, now(&sim));
        assert_eq!(write.path.at(), Time::from_ps(3_047 + 35_547), "behind the first request only");
    });
}

#[test]
fn packets_behind_a_later_request_keep_the_path() {
    let spec = PcieSpec { non_posted_headers: 1, ..gen3x8() };
    on(spec, |sim, bus| async move {
        let reader = bus.clone();
        sim.spawn(async move {
            reader.read(message(0), 0x1000, 1024, 1024, at(0)).await;
        });
        // The second request waited for the credit of the first one. Its completions are sent from 560.110 ns on.
        sim.until(Time::from_ps(570_000)).await;
        let mut path = at(0);
        path.advance(Stage::COMPUTE, sim.now());
        let packet = bus.push(message(0), 8, 8, path).packet(0).await;
        assert_eq!(packet.path.origin(), Time::ZERO);
        assert!(packet.path.total(Stage::FETCH) > Duration::from_ns(500));
    });
}

#[test]
fn a_late_reader_learns_the_arrival_of_a_packet() {
    on(gen3x8(), |sim, bus| async move {
        let transfer = bus.push(message(0), 8, 8, at(0));
        sim.delay(Duration::from_us(1)).await;
        let packet = transfer.packet(0).await;
        assert_eq!((packet.head, packet.path.at()), (Time::from_ps(12_188 + LATENCY), packet.head));
    });
}
