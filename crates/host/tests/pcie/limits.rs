//! Credits, tags, and the DLLPs that return credits: the bandwidth that they take, and the limits that they set.

use crate::support::{at, gen3x8, message, now, on, wire};
use nicety_host::pcie::{Credits, Generation, IommuSpec, PcieSpec};
use nicety_types::{Duration, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const LATENCY: u64 = 250_000;
const PORT: u64 = 50_000;
/// The limit of the Ack and UpdateFC delays of generation 3 x8 at an MPS of 256 B, in ps.
const LIMIT: u64 = 203_000;
const DLLP: u64 = 1_016;
/// Time in ps of a write of 256 bytes: 280 bytes on the wire.
const TLP: u64 = 35_547;
/// Time in ps from the departure of a TLP's last byte to the return of its credits.
const LOOP: u64 = PORT + LIMIT + DLLP + PORT;

#[test]
fn one_header_credit_allows_one_write_a_round_trip() {
    let spec = PcieSpec { posted: Credits { headers: 1, data: 0 }, ..gen3x8() };
    on(spec, |_, bus| async move {
        let handover = bus.write(message(0), 0x1000, 1024, at(0));
        assert_eq!(handover.path.at(), Time::from_ps(4 * TLP + 3 * LOOP));
        assert_eq!(bus.busy().1, Duration::from_ps(4 * TLP), "waiting for credits occupies nothing");
    });
}

#[test]
fn a_write_holds_its_credits_until_its_address_is_translated() {
    const WALK: u64 = 10_000_000;
    let iommu = IommuSpec { entries: 1, page: 4096, walk: Duration::from_ps(WALK), walkers: 1 };
    let spec = PcieSpec { posted: Credits { headers: 1, data: 0 }, iommu: Some(iommu), ..gen3x8() };
    on(spec, |_, bus| async move {
        let first = bus.write(message(0), 0, 256, at(0));
        assert_eq!(first.path.at(), Time::from_ps(TLP));
        assert_eq!(first.landed, Time::from_ps(TLP + LATENCY + WALK));
        let second = bus.write(message(1), 0x1000, 256, at(0));
        let left = TLP + WALK + LOOP + TLP;
        assert_eq!(second.path.at(), Time::from_ps(left));
        assert_eq!(second.landed, Time::from_ps(left + LATENCY + WALK));
        // The same page: no walk, so the credit returns at once.
        let third = bus.write(message(2), 0x1040, 256, at(0));
        assert_eq!(third.path.at(), Time::from_ps(left + WALK + LOOP + TLP));
        let fourth = bus.write(message(3), 0x1080, 256, at(0));
        assert_eq!(fourth.path.at(), Time::from_ps(left + WALK + 2 * (LOOP + TLP)));
    });
}

#[test]
fn data_credits_are_16_bytes() {
    // 16 credits allow one write of 256 bytes, or two of 128 bytes, or 16 of up to 16 bytes.
    let spec = PcieSpec { posted: Credits { headers: 0, data: 16 }, ..gen3x8() };
    on(spec, |_, bus| async move {
        let handover = bus.write(message(0), 0x1000, 512, at(0));
        assert_eq!(handover.path.at(), Time::from_ps(2 * TLP + LOOP));
    });
    on(spec, |_, bus| async move {
        for _ in 0..2 {
            bus.write(message(0), 0x1000, 128, at(0));
        }
        // The credits of both writes return with the UpdateFC that the first write made due.
        let third = bus.write(message(0), 0x1000, 128, at(0));
        assert_eq!(third.path.at(), Time::from_ps(wire(152) + LOOP + wire(152)));
    });
    on(spec, |_, bus| async move {
        for k in 0..16 {
            let small = bus.write(message(k), 0x1000, 8, at(0));
            assert_eq!(small.path.at(), Time::from_ps((k + 1) * wire(32)));
        }
        let next = bus.write(message(16), 0x1000, 8, at(0));
        assert_eq!(next.path.at(), Time::from_ps(wire(32) + LOOP + wire(32)));
    });
}

#[test]
fn the_default_credits_do_not_limit() {
    on(gen3x8(), |_, bus| async move {
        let handover = bus.write(message(0), 0, 1 << 20, at(0));
        // The write takes 145.6 us, plus 23 ordered sets, one every 6.09 us.
        assert_eq!(handover.path.at(), Time::from_ps(4096 * TLP + 23 * SKIP));
    });
}

#[test]
fn credits_limit_pushes_of_the_host_too() {
    let spec = PcieSpec { posted: Credits { headers: 2, data: 0 }, command: 0, ..gen3x8() };
    on(spec, |_, bus| async move {
        let packet = bus.push(message(0), 768, 4096, at(0)).packet(0).await;
        assert_eq!(packet.head, Time::from_ps(TLP + LATENCY));
        assert_eq!(packet.tail, Time::from_ps(TLP + LOOP + TLP + LATENCY));
    });
}

#[test]
fn one_tag_allows_one_read_a_round_trip() {
    let spec = PcieSpec { tags: 1, ack_delay: LATE, update_delay: LATE, ..gen3x8() };
    on(spec, |_, bus| async move {
        let packet = bus.read(message(0), 0x1000, 2048, 2048, at(0)).await.packet(0).await;
        let trip = wire(24) + LATENCY + 2 * wire(276) + LATENCY;
        assert_eq!(packet.tail, Time::from_ps(4 * trip));
        // The packet's arrival time is unknown until the host answers its last request.
        assert_eq!(packet.head, Time::from_ps(3 * trip + wire(24) + LATENCY));
        assert_eq!(packet.path.at(), packet.head);
    });
    on(PcieSpec { tags: 4, ..spec }, |_, bus| async move {
        let packet = bus.read(message(0), 0x1000, 2048, 2048, at(0)).await.packet(0).await;
        assert_eq!(packet.tail, Time::from_ps(wire(24) + LATENCY + 8 * wire(276) + LATENCY));
    });
}

/// This delay is longer than every test, so that no DLLP goes between TLPs.
const LATE: Duration = Duration::from_us(100);

#[test]
fn several_reads_share_the_tags() {
    let spec = PcieSpec { tags: 1, ack_delay: LATE, update_delay: LATE, ..gen3x8() };
    on(spec, |sim, bus| async move {
        let tails = Rc::new(RefCell::new(Vec::new()));
        for k in 0..3 {
            let (bus, tails) = (bus.clone(), tails.clone());
            sim.spawn(async move {
                let tail = bus.read(message(k), 0x1000, 64, 64, at(0)).await.packet(0).await.tail;
                tails.borrow_mut().push(tail.ps());
            });
        }
        sim.delay(Duration::from_us(10)).await;
        let trip = wire(24) + LATENCY + wire(84) + LATENCY;
        assert_eq!(*tails.borrow(), [trip, 2 * trip, 3 * trip]);
    });
}

#[test]
fn one_request_credit_allows_one_request_a_round_trip_of_the_port() {
    let spec = PcieSpec { non_posted_headers: 1, ..gen3x8() };
    on(spec, |_, bus| async move {
        let packet = bus.read(message(0), 0x1000, 1024, 1024, at(0)).await.packet(0).await;
        let second = wire(24) + LOOP + wire(24);
        // The second request's own Ack and UpdateFC leave at 310.110 + 50 + 203 ns. They go between its completions,
        // which begin at 560.110 ns.
        assert_eq!(packet.tail, Time::from_ps(second + LATENCY + 2 * wire(276) + 2 * DLLP + LATENCY));
    });
}

#[test]
fn a_write_does_not_wait_for_a_read_without_a_credit() {
    let spec = PcieSpec { non_posted_headers: 1, ..gen3x8() };
    on(spec, |sim, bus| async move {
        let reader = bus.clone();
        sim.spawn(async move {
            reader.read(message(0), 0x1000, 4096, 4096, at(0)).await;
        });
        sim.delay(Duration::from_ns(100)).await;
        let write = bus.write(message(1), 0x1000, 256, now(&sim));
        assert_eq!(write.path.at(), sim.now() + Duration::from_ps(TLP));
    });
}

#[test]
fn completion_credits_hold_completions() {
    let completion = Credits { headers: 1, data: 0 };
    let spec = PcieSpec { completion, ack_delay: LATE, ..gen3x8() };
    on(spec, |_, bus| async move {
        let packet = bus.read(message(0), 0x1000, 512, 512, at(0)).await.packet(0).await;
        let first = wire(24) + LATENCY + wire(276);
        assert_eq!(packet.head, Time::from_ps(first + LATENCY));
        // The UpdateFC for the request is due at 256.047 ns, and is already on the wire.
        assert_eq!(packet.tail, Time::from_ps(first + LOOP + wire(276) + LATENCY));
    });
}

#[test]
fn acks_and_credits_occupy_the_other_direction() {
    on(gen3x8(), |sim, bus| async move {
        // The write is received at 4.063 + 50 ns. Its Ack and UpdateFC leave 203 ns later.
        bus.write(message(0), 0x1000, 8, at(0));
        let due = 4_063 + PORT + LIMIT;
        assert_eq!(bus.busy().0, Duration::ZERO);
        sim.until(Time::from_ps(due)).await;
        let packet = bus.push(message(1), 8, 8, now(&sim)).packet(0).await;
        assert_eq!(packet.tail, Time::from_ps(due + 2 * DLLP + 12_188 + LATENCY), "behind two DLLPs");
        assert_eq!(bus.busy().0, Duration::from_ps(2 * DLLP + 12_188));
    });
}

#[test]
fn tlps_within_the_limit_share_an_ack() {
    let spec = PcieSpec { posted: Credits::INFINITE, ..gen3x8() };
    on(spec, |sim, bus| async move {
        // 100 writes of 256 bytes are received, one every 35.547 ns. The Ack for the first write leaves 203 ns after
        // the write. It also covers the five writes that arrive until then, the last of them after 177.735 ns. The next
        // write starts a new Ack.
        bus.write(message(0), 0, 25_600, at(0));
        sim.delay(Duration::from_us(10)).await;
        bus.push(message(1), 8, 8, now(&sim));
        let acks = 100_u64.div_ceil(6);
        assert_eq!(bus.busy().0, Duration::from_ps(acks * DLLP + 12_188));
    });
}

#[test]
fn an_idle_direction_keeps_no_dllps() {
    on(gen3x8(), |sim, bus| async move {
        for k in 0..10_u64 {
            assert_eq!(bus.busy().0, Duration::from_ps(2 * DLLP * k.saturating_sub(1)));
            bus.write(message(k), 0x1000, 8, now(&sim));
            sim.delay(Duration::from_us(1)).await;
        }
    });
}

#[test]
fn an_unlimited_receiver_returns_no_credits() {
    let spec = PcieSpec { posted: Credits::INFINITE, ..gen3x8() };
    on(spec, |sim, bus| async move {
        bus.write(message(0), 0x1000, 8, at(0));
        sim.delay(Duration::from_us(1)).await;
        bus.push(message(1), 8, 8, now(&sim));
        assert_eq!(bus.busy().0, Duration::from_ps(DLLP + 12_188), "one Ack");
    });
}

/// Duration of an ordered set of 16 symbols per lane, and of 375 blocks of 16.25 ns, in ps.
const SKIP: u64 = 16_250;
const INTERVAL: u64 = 375 * SKIP;

#[test]
fn a_stream_makes_room_for_ordered_sets() {
    on(gen3x8(), |_, bus| async move {
        for k in 0..400_u64 {
            let end = bus.write(message(0), 0, 256, at(0)).path.at();
            // One set is due at 6093.75 ns. Write 171 begins at 6078.537 ns, and write 172 begins after the set. The
            // next set is due at 12 187.5 ns. Write 342 begins at 12 173.324 ns, and write 343 begins after this set.
            let sets = u64::from(k >= 172) + u64::from(k >= 343);
            assert_eq!(end, Time::from_ps((k + 1) * wire(280) + sets * SKIP), "number {k}");
        }
    });
}

#[test]
fn an_idle_wire_has_sent_its_ordered_set() {
    let after = |idle: u64| {
        let end = Rc::new(Cell::new(0));
        let seen = end.clone();
        on(gen3x8(), move |_, bus| async move {
            for _ in 0..171 {
                bus.write(message(0), 0, 256, at(0));
            }
            seen.set(bus.write(message(1), 0, 256, at(171 * wire(280) + idle)).path.at().ps());
        });
        end.get()
    };
    assert_eq!(after(SKIP), 172 * wire(280) + SKIP, "no wait");
    // If the idle time is shorter, the set begins when it is due, and the TLP waits for the end of the set.
    assert_eq!(after(SKIP - 1), INTERVAL + SKIP + wire(280));
}

#[test]
fn ordered_sets_wait_for_a_long_tlp_and_go_together() {
    let spec = PcieSpec { mps: 4096, ..PcieSpec::new(Generation::Gen1, 1, Duration::from_ns(250)) };
    on(spec, |_, bus| async move {
        // A TLP has 4120 bytes of 4 ns each. A set of 16 ns is due every 1538 symbols, or 6152 ns. Two sets are due
        // during the first TLP, and three until the end of the second TLP.
        let ends = [16_480, 32_992, 49_520];
        for expected in ends {
            let end = bus.write(message(0), 0, 4096, at(0)).path.at();
            assert_eq!(end, Time::from_ps(expected * 1000));
        }
    });
}
