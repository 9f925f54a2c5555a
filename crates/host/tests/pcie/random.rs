//! Random links and random traffic: all bytes arrive, in order, and never faster than the wire's rate.

use crate::support::{at, message, now, on};
use nicety_host::Notice;
use nicety_host::pcie::{Addressing, Credits, Cut, Generation, LANES, PcieSpec};
use nicety_types::{Duration, Path, Time};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

fn power(range: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = u64> {
    range.prop_map(|exponent| 1 << exponent)
}

/// Generates credits: no limit, or a limit that is at least the minimum and usually small.
fn credits(mps: u64) -> impl Strategy<Value = Credits> {
    let least = mps / 16;
    let headers = prop_oneof![Just(0), 1..4_u64, 1..=127_u64];
    let data = prop_oneof![Just(0), Just(least), least..=2047];
    (headers, data).prop_map(|(headers, data)| Credits { headers, data })
}

fn links() -> impl Strategy<Value = PcieSpec> {
    let shape = (0..5_usize, 0..7_usize, power(7..=12), power(7..=12), power(6..=7), any::<[bool; 3]>());
    (shape, 20_000..400_000_u64).prop_flat_map(|((generation, lanes, mps, mrrs, rcb, flags), latency)| {
        let base = PcieSpec {
            mps,
            mrrs,
            rcb,
            cut: if flags[0] { Cut::Boundary } else { Cut::Payload },
            addressing: if flags[1] { Addressing::Bits32 } else { Addressing::Bits64 },
            ecrc: flags[2],
            ..PcieSpec::new(Generation::ALL[generation], LANES[lanes], Duration::from_ps(latency))
        };
        let tags = prop_oneof![1..4_u64, 1..=256_u64];
        let limits = (tags, credits(mps), 0..=127_u64, credits(mps));
        let host = (0..100_u64, 0..=128_u64, 2..=12_u32, 0..300_000_u64, 0..300_000_u64);
        (limits, host).prop_map(move |((tags, posted, non_posted_headers, completion), host)| {
            let (read, command, push, ack, update) = host;
            PcieSpec {
                tags,
                posted,
                non_posted_headers,
                completion,
                read_latency: Duration::from_ns(read),
                command,
                push_payload: (1 << push).min(mps),
                ack_delay: Duration::from_ps(ack),
                update_delay: Duration::from_ps(update),
                ..base
            }
        })
    })
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Push { bytes: u64, packet: u64 },
    Write { address: u64, bytes: u64 },
    Read { address: u64, bytes: u64, packet: u64 },
    Post,
}

fn operations() -> impl Strategy<Value = Vec<(u64, Operation)>> {
    let bytes = || prop_oneof![0..64_u64, 0..20_000_u64];
    let packet = || prop_oneof![1..64_u64, Just(4096), 100..20_000_u64];
    let operation = prop_oneof![
        (bytes(), packet()).prop_map(|(bytes, packet)| Operation::Push { bytes, packet }),
        (0..10_000_u64, bytes()).prop_map(|(address, bytes)| Operation::Write { address, bytes }),
        (0..10_000_u64, bytes(), packet()).prop_map(|(address, bytes, packet)| Operation::Read {
            address,
            bytes,
            packet
        }),
        Just(Operation::Post),
    ];
    let delay = prop_oneof![Just(0), 0..1_000_000_u64];
    prop::collection::vec((delay, operation), 1..20)
}

/// Checks that every picosecond of a path is accounted to a stage.
fn adds_up(path: &Path) {
    let sum: Duration = path.stages().map(|(_, duration)| duration).sum();
    assert_eq!(sum, path.at().since(path.origin()));
}

/// Waits for all packets of a transfer. Checks that each arrives after the previous one, and not before the wire could
/// carry it.
async fn follow(
    transfer: nicety_host::Transfer,
    spec: PcieSpec,
    origin: Time,
    bytes: u64,
    packet: u64,
) -> Time {
    let mut last = Time::ZERO;
    let mut offset = 0;
    loop {
        let flight = transfer.packet(offset).await;
        assert!(flight.head <= flight.tail && last <= flight.tail, "packets come in order");
        assert_eq!(flight.path.at(), flight.head);
        adds_up(&flight.path);
        offset = (offset + packet).min(bytes);
        let soonest = origin + spec.gap().cover(offset) + spec.latency_to_card;
        assert!(flight.tail >= soonest, "faster than raw: {} before {soonest}", flight.tail);
        last = flight.tail;
        if offset >= bytes {
            return last;
        }
    }
}

proptest! {
    #[test]
    fn everything_arrives_in_order_and_not_faster_than_raw(spec in links(), operations in operations()) {
        prop_assert!(spec.problems().is_empty(), "{:?}", spec.problems());
        let done = Rc::new(RefCell::new(0));
        let (seen, count) = (done.clone(), operations.len());
        // A read that never ends would leave a program that waits for ever. The kernel reports such a program.
        on(spec, move |sim, bus| async move {
            let (mut landed, mut pushed) = (Time::ZERO, Time::ZERO);
            for (k, (delay, operation)) in operations.into_iter().enumerate() {
                sim.delay(Duration::from_ps(delay)).await;
                let (origin, message) = (sim.now(), message(k as u64));
                match operation {
                    Operation::Push { bytes, packet } => {
                        let transfer = bus.push(message, bytes, packet, now(&sim));
                        let last = follow(transfer, spec, origin, bytes, packet).await;
                        assert!(last > pushed, "pushes arrive in order");
                        pushed = last;
                        *seen.borrow_mut() += 1;
                    }
                    Operation::Write { address, bytes } => {
                        let handover = bus.write(message, address, bytes, now(&sim));
                        adds_up(&handover.path);
                        assert!(handover.landed > landed, "writes land in order");
                        assert!(handover.path.at() >= origin + spec.gap().cover(bytes));
                        assert_eq!(handover.landed, handover.path.at() + spec.latency_to_host);
                        landed = handover.landed;
                        *seen.borrow_mut() += 1;
                    }
                    Operation::Post => {
                        let path = bus.post(Notice::Event, now(&sim));
                        adds_up(&path);
                        assert!(path.at() > landed, "an event lands behind what was written before");
                        landed = path.at();
                        *seen.borrow_mut() += 1;
                    }
                    Operation::Read { address, bytes, packet } => {
                        let (clock, sim, bus, seen) = (sim.clone(), sim.clone(), bus.clone(), seen.clone());
                        let before = landed;
                        let reading = async move {
                            let transfer = bus.read(message, address, bytes, packet, now(&sim)).await;
                            assert!(sim.now() > before, "a read reaches the host behind the writes before it");
                            follow(transfer, spec, origin, bytes, packet).await;
                            *seen.borrow_mut() += 1;
                        };
                        clock.spawn_program(format!("read {k}"), reading);
                    }
                }
            }
        });
        prop_assert_eq!(*done.borrow(), count);
    }

    /// The same operations give the same times.
    #[test]
    fn times_repeat(spec in links(), sizes in prop::collection::vec(0..5_000_u64, 1..10)) {
        let run = || {
            let times = Rc::new(RefCell::new(Vec::new()));
            let (seen, sizes) = (times.clone(), sizes.clone());
            on(spec, move |sim, bus| async move {
                for (k, bytes) in sizes.into_iter().enumerate() {
                    let (bus, seen) = (bus.clone(), seen.clone());
                    sim.spawn_program("read", async move {
                        let transfer = bus.read(message(k as u64), 0, bytes, 4096, at(0)).await;
                        let tail = transfer.packet(0).await.tail;
                        seen.borrow_mut().push(tail);
                    });
                }
            });
            times.take()
        };
        prop_assert_eq!(run(), run());
    }
}
