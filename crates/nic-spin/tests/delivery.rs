//! Properties that hold for any traffic. Every byte arrives once, without deadlock and before its event. The stages of
//! each path add up. The run is the same for any number of shards.

use crate::support;
use crate::support::code::{Code, echo, number, payload, program, put};
use crate::support::*;
use nicety_fabric::{FaultStatistics, Faults, LinkFaults, NetworkStatistics, Outage, Place, Rates};
use nicety_kernel::Config;
use nicety_nic_core::parts::transport::TransportStatistics;
use nicety_portals::EventKind;
use nicety_types::{Duration, Path, Time};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// The receive method of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceiveMethod {
    /// The card deposits the bytes.
    Deposit,
    /// Payload handlers store the bytes, packet by packet, by blocking DMA.
    Stream,
    /// Payload handlers store the bytes by non-blocking DMA. The message also has a header and a completion handler.
    All,
}

/// A message: its length in bytes, its receive method, and the time for which its sender computes before it.
#[derive(Clone, Copy, Debug)]
struct Message {
    len: usize,
    how: ReceiveMethod,
    pause_ns: u64,
}

#[derive(Clone, Debug)]
struct Traffic {
    /// The messages of each sending rank.
    messages: [Vec<Message>; 2],
    overrides: Vec<String>,
    faults: Faults,
}

fn message() -> impl Strategy<Value = Message> {
    let len = prop_oneof![Just(0), Just(8), 1..300_usize, Just(4096), Just(4097), 0..=65_536_usize];
    let how =
        prop_oneof![Just(ReceiveMethod::Deposit), Just(ReceiveMethod::Stream), Just(ReceiveMethod::All)];
    (len, how, prop_oneof![Just(0), 0..3000_u64]).prop_map(|(len, how, pause_ns)| Message {
        len,
        how,
        pause_ns,
    })
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let messages = || prop::collection::vec(message(), 0..8);
    let limits = (
        prop_oneof![Just(1_u32), 1..4_u32, Just(256)],
        prop_oneof![Just(1_u32), 1..5_u32],
        1..3_u32,
        prop_oneof![Just(64_u32), Just(100), Just(512), Just(4096)],
        any::<bool>(),
        0..3_u32,
    );
    (messages(), messages(), limits).prop_map(|(a, b, (buffer, cores, handles, packet, free, card))| {
        let mut overrides = vec![
            format!("buffer.packets={buffer}"),
            format!("hpu.cores={cores}"),
            format!("hpu.dma_handles={handles}"),
            format!("packet.payload={packet} B"),
        ];
        if free {
            overrides.extend(["host.post=0 ns", "host.notice=0 ns"].map(String::from));
        }
        overrides.extend(match card {
            1 => vec!["bus.latency=50 ns".to_string(), "bus.gap=6.7 ps/B".to_string()],
            2 => vec!["bus.gap=40 ps/B".to_string(), "match.further=0 ns".to_string()],
            _ => vec![],
        });
        Traffic { messages: [a, b], overrides, faults: Faults::default() }
    })
}

/// Faults of a direction: the numbers of lost packets, and the outage. An outage has its start after the beginning of
/// the run, and its length, both in microseconds.
type Script = (Vec<u64>, Option<(u64, u64)>);

/// Generates traffic over links with arbitrary faults, for cards with reliable transport.
fn faulty_traffic() -> impl Strategy<Value = Traffic> {
    let rate = || prop_oneof![2 => Just(0.0), 3 => 0.0..0.1f64, 1 => 0.0..0.4f64];
    let rates = (rate(), rate(), rate(), rate(), 0u64..20_000_000, prop_oneof![Just(0.0), 1.0..6.0f64]);
    let rates = rates.prop_map(|(loss, corruption, duplication, reordering, delay, burst)| Rates {
        loss,
        corruption,
        duplication,
        reordering,
        delay: Duration::from_ps(delay),
        burst,
    });
    // Generates the numbers of lost packets, and the time during which a link is down.
    let script = || (prop::collection::vec(1u64..60, 0..8), prop::option::of((0u64..200, 1u64..100)));
    let transport = (prop_oneof![1u32..4, Just(64)], 1u64..30, 0u64..50);
    (traffic(), rates, any::<u64>(), [script(), script()], transport).prop_map(
        |(mut traffic, rates, seed, scripts, (window, timeout, check))| {
            traffic.overrides.extend([
                "transport.reliable=true".to_string(),
                "transport.retries=100000".to_string(),
                format!("transport.window={window}"),
                format!("transport.timeout={timeout} us"),
                format!("transport.check={check} ns"),
            ]);
            let link = |((drop, down), rank): (Script, u32)| {
                let outage = |(from, length)| Outage {
                    from: START + Duration::from_us(from),
                    until: Some(START + Duration::from_us(from + length)),
                };
                let (from, to) = (Place::Host(rank), Place::Host(1 - rank));
                LinkFaults { from, to, rates, down: down.map(outage).into_iter().collect(), drop }
            };
            let links = scripts.into_iter().zip(0..).map(link).collect();
            Traffic { faults: Faults { seed, rates, links, nodes: vec![] }, ..traffic }
        },
    )
}

/// Returns a handler that stores its packet at the packet's offset by blocking DMA.
fn store() -> Code {
    use nicety_hpu::asm::*;
    // a0 is the base address, a1 the offset, and a2 the length.
    Code::new()
        .with(&[lw(A1, 8, A0), lw(A2, 4, A0), lw(A0, 0, A0)])
        .small(A3, 0)
        .small(A4, 0)
        .command(number::DMA_TO_HOST)
        .returns(0)
}

/// Returns a handler that stores its packet at the packet's offset by non-blocking DMA. The transfer is done after the
/// handler's end.
fn store_behind() -> Code {
    use nicety_hpu::asm::*;
    Code::enter()
        .with(&[lw(A1, 8, A0), lw(A2, 4, A0), lw(A0, 0, A0), addi(SP, SP, -16), mv(A4, SP)])
        .small(A3, 0)
        .command(number::DMA_TO_HOST)
        .returns(0)
}

/// The observable results of a run.
#[derive(Clone, Debug, PartialEq)]
struct Report {
    /// By receiving rank: match bits, time at which the program noticed the event, and path.
    events: [Vec<(u64, Time, Path)>; 2],
    end: Time,
    count: u64,
    handlers: Vec<nicety_nic_processors::HandlerStatistics>,
    transport: Vec<TransportStatistics>,
    network: NetworkStatistics,
}

/// Runs the traffic and checks every byte.
fn run(traffic: &Traffic, shards: usize) -> Report {
    let overrides: Vec<&str> = traffic.overrides.iter().map(String::as_str).collect();
    let config = Config { shards, ..Config::default() };
    let mut rig = Rig::with_faults(&overrides, config, &traffic.faults);
    let events: [Rc<RefCell<Vec<_>>>; 2] = Default::default();
    let stream = payload(store());
    let all = program(
        Some(Code::enter().returns(support::code::result::PROCESS_DATA)),
        Some(store_behind()),
        Some(Code::enter_completion().returns(0)),
    );
    for (rank, note) in events.iter().cloned().enumerate() {
        let (outgoing, incoming) = (traffic.messages[rank].clone(), traffic.messages[1 - rank].clone());
        let (stream, all) = (stream.clone(), all.clone());
        let sent = rig.nodes[rank].clone();
        let sender = Node { path: Rc::new(PathCell::new(Path::from(Time::ZERO))), ..sent };
        rig.world.sim(nicety_types::NodeId(rank as u32)).spawn_program("sender", async move {
            let requests: Vec<_> = (0..)
                .zip(&outgoing)
                .map(|(k, m)| sender.request(&sender.alloc(&pattern(m.len, k ^ (rank as u64) << 8)), k))
                .collect();
            sender.start().await;
            for (request, message) in requests.iter().zip(&outgoing) {
                sender.sim.delay(nicety_types::Duration::from_ns(message.pause_ns)).await;
                sender.path.set(Path::from(sender.sim.now()));
                sender.put(request).await.unwrap();
            }
        });
        rig.program(rank, async move |node| {
            let mut memories = Vec::new();
            for (k, message) in (0..).zip(&incoming) {
                let memory = node.alloc(&vec![0xee; message.len]);
                let me = entry(&memory, k);
                match message.how {
                    ReceiveMethod::Deposit => node.append(me).await.unwrap(),
                    ReceiveMethod::Stream => node.append_with(me, &stream, &[]).await.unwrap(),
                    ReceiveMethod::All => node.append_with(me, &all, &[0; 16]).await.unwrap(),
                };
                memories.push(memory);
            }
            node.start().await;
            for k in 0..incoming.len() {
                let event = node.event(EventKind::Put).await;
                // At this instant every byte is in memory.
                let expected = pattern(incoming[k].len, k as u64 ^ (1 - rank as u64) << 8);
                assert_eq!(event.match_bits, k as u64, "messages complete in order");
                assert!(
                    event.fail.is_ok() && event.mlength == event.rlength,
                    "{:?}",
                    node.card.processors().failures()
                );
                assert!(node.read(&memories[k]) == expected, "message {k} of {} B", expected.len());
                node.parts();
                note.borrow_mut().push((event.match_bits, node.sim.now(), node.path.get()));
            }
        });
    }
    let summary = rig.run();
    assert_eq!(rig.failures(), []);
    for (rank, node) in rig.nodes.iter().enumerate() {
        let statistics = node.card.statistics();
        assert_eq!(statistics.matched, traffic.messages[1 - rank].len() as u64);
        assert_eq!((statistics.dropped_total(), statistics.events_dropped), (0, 0));
        let bytes: usize = traffic.messages[1 - rank].iter().map(|m| m.len).sum();
        assert_eq!(node.memory.traffic().written, bytes as u64, "every byte once");
    }
    Report {
        events: events.map(|events| events.take()),
        end: summary.end,
        count: summary.events,
        handlers: rig.nodes.iter().map(|node| node.card.processors().handler_statistics()).collect(),
        transport: rig.nodes.iter().map(|node| node.card.transport_statistics()).collect(),
        network: rig.network.statistics(),
    }
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(96))]

    #[test]
    fn nothing_is_lost_and_shards_do_not_matter(traffic in traffic()) {
        let report = run(&traffic, 1);
        prop_assert_eq!(&report, &run(&traffic, 1));
        prop_assert_eq!(&report, &run(&traffic, 2));
        // The path of an event starts where its receiver began to wait or its sender began to send.
        for (_, time, path) in report.events.iter().flatten() {
            prop_assert!(path.origin() >= START && path.at() == *time);
        }
    }
}

proptest! {
    #[test]
    fn with_reliable_transport_no_fault_loses_doubles_or_damages_anything(traffic in faulty_traffic()) {
        let report = run(&traffic, 1);
        prop_assert_eq!(&report, &run(&traffic, 2));
        for (_, time, path) in report.events.iter().flatten() {
            prop_assert!(path.origin() >= START && path.at() == *time);
        }
        let sum = |of: fn(&FaultStatistics) -> u64| report.network.faults.iter().map(of).sum::<u64>();
        let damaged: u64 = report.transport.iter().map(|t| t.corrupted).sum();
        // Every damaged packet arrives and is discarded because of its CRC.
        prop_assert_eq!(damaged, sum(|s| s.corrupted));
    }
}

#[test]
fn echoes_one_way_come_back_whatever_the_limits() {
    // A handler answers every packet by a put. The sender and the card have few slots.
    for (buffer, queue, cores) in [(1, 1, 1), (1, 1, 4), (2, 1, 2), (1, 2, 4), (256, 64, 4)] {
        let limits = [
            format!("buffer.packets={buffer}"),
            format!("send.queue={queue}"),
            format!("hpu.cores={cores}"),
            "packet.payload=256 B".to_string(),
        ];
        let limits: Vec<&str> = limits.iter().map(String::as_str).collect();
        let mut rig = Rig::new(&limits);
        rig.program(0, async move |a| {
            // An answer does not contain its packet's offset, so all packets have the same bytes.
            let bytes: Vec<u8> = pattern(256, 1).repeat(40);
            let (out, back) = (a.alloc(&bytes), a.alloc(&[0; 256]));
            a.append(counted(&back, 9, a.ct)).await.unwrap();
            let request = a.request(&out, 5);
            a.start().await;
            a.put(&request).await.unwrap();
            assert_eq!(a.count(a.ct, 40).await.unwrap().success, 40);
            assert_eq!(a.read(&back), pattern(256, 1));
            a.parts();
        });
        rig.program(1, async |b| {
            let memory = b.alloc(&[0; 40 * 256]);
            b.append_with(entry(&memory, 5), &payload(echo()), &put(9, 0, 0, false)).await.unwrap();
        });
        rig.run();
        assert_eq!(rig.failures(), []);
        assert_eq!(rig.nodes[1].card.processors().handler_statistics().runs, 40);
    }
}

#[test]
fn an_event_is_never_seen_before_the_bytes_of_its_message() {
    // In ns, two packets are handed to the bus at 459.218 and 523.116. The last bytes and the count arrive at 773.116 ns.
    // A program that polls at this instant sees both or neither, even if it scheduled the poll earlier.
    for decided in [0, 500_000, 523_116, 600_000, 709_218, 750_000] {
        let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns"]);
        rig.program(0, async |a| {
            let request = a.request(&a.alloc(&pattern(8192, 7)), 5);
            a.start().await;
            a.put(&request).await.unwrap();
        });
        rig.program(1, async move |b| {
            let memory = b.alloc(&[0; 8192]);
            b.append(counted(&memory, 5, b.ct)).await.unwrap();
            b.until(after(decided)).await;
            b.until(after(773_116)).await;
            let (count, bytes) = (b.card.ct_get(b.ct).success, b.read(&memory));
            assert!(count == 0 || bytes == pattern(8192, 7), "decided at {decided}");
            b.count(b.ct, 1).await.unwrap();
            assert_eq!((b.sim.now(), b.read(&memory)), (after(773_116), pattern(8192, 7)));
        });
        rig.run();
    }
}

#[test]
fn packets_seen_keep_their_order_however_late_they_are_noticed() {
    // The program polls late. Its path then has only its own notice, because the message was complete before the poll.
    let mut rig = Rig::new(&[]);
    rig.program(0, async |a| {
        let request = a.request(&a.alloc(&[7; 8]), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async |b| {
        b.append(entry(&b.alloc(&[0; 8]), 5)).await.unwrap();
        b.until(after(5_000_000)).await;
        b.event(EventKind::Put).await;
        assert_eq!(b.sim.now(), after(5_065_000));
        assert_eq!(b.parts(), [("notice", 65_000)]);
        assert_eq!(b.path.get().origin(), after(5_000_000));
    });
    rig.run();
}
