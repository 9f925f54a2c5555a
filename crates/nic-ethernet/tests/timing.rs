//! Tests the path of a datagram against times that are calculated by hand, to the picosecond.

use super::support::{PLAIN_NEPTUNE, PLAIN_NIU, Rig, at};
use nicety_nic_ethernet::{Report, SocketKind, stages};
use nicety_types::{Duration, Path, Stage, Time};
use std::cell::RefCell;
use std::rc::Rc;

const START: Time = Time::from_ps(1_000_000_000);

/// A clock of 1 GHz, and costs that differ from each other. A miss of the first level takes 10 ns, and a miss of both
/// levels 100 ns.
const COSTS: [&str; 30] = [
    "host.clock=1 GHz",
    "host.memory_latency=100 ns",
    "threads.second_latency=10 ns",
    "threads.first_code=0 B",
    "threads.cycles_per_instruction=1",
    "threads.switch=1000",
    "threads.own_lines=2",
    "threads.wake=110",
    "threads.cross_call=50",
    "threads.cross_call_latency=200 ns",
    "threads.cross_call_taken=60",
    "threads.interrupt=70",
    "registers.latency=100 ns",
    "driver.interrupt=1500",
    "driver.interrupt_reads=2",
    "driver.receive=500",
    "driver.transmit=600",
    "driver.copy=2 KiB",
    "stack.receive=1200",
    "stack.transmit=1400",
    "stack.acknowledge=700",
    "stack.buffer=130",
    "stack.lines=5",
    "sockets.call=300",
    "sockets.socket=650",
    "sockets.copy=16",
    "interrupts.packets=32",
    "interrupts.time=200 us",
    "transmit.descriptor=8 B",
    "receive.completion=8 B",
];

/// Sends `datagrams` datagrams of 100 bytes. Returns the first datagram's path from its call to the waiting receiver,
/// and the reports.
fn journey(card: &str, datagrams: usize, more: &[&str]) -> (Path, [Report; 2]) {
    let mut rig = Rig::new(card, 2, &[&COSTS, more].concat());
    let path = Rc::new(RefCell::new(None));
    rig.program(0, async move |user| {
        let socket = user.open(SocketKind::Datagram);
        user.sim.until(START).await;
        user.restart();
        for _ in 0..datagrams {
            user.send_to(socket, &[7; 100], at(1, 9)).await.unwrap();
        }
    });
    let seen = path.clone();
    rig.program(1, async move |user| {
        let socket = user.open(SocketKind::Datagram);
        user.bind(socket, 9).await.unwrap();
        for n in 0..datagrams {
            let (bytes, from) = user.recv_from(socket, 2000).await.unwrap();
            assert_eq!((bytes, from.ip()), (vec![7; 100], at(0, 0).ip()));
            if n == 0 {
                assert_eq!(user.path.get().at(), user.sim.now());
                seen.replace(Some(user.path.get()));
            }
        }
    });
    rig.run();
    let path = path.take().unwrap();
    (path, [0, 1].map(|node| rig.report(node)))
}

/// Returns the path's stages in picoseconds, without those of the host link.
fn stages(path: &Path) -> Vec<(Stage, u64)> {
    path.stages().map(|(stage, time)| (stage, time.ps())).collect()
}

/// The parts of a path that do not depend on the bus, in nanoseconds.
const SWITCH: u64 = 1000 + 2 * 100;
/// The next costs are a system call, a copy of two lines that miss, and the stack with a buffer.
const SYSTEM_CALL: u64 = 300;
const COPY: u64 = 2 * 16 + 2 * 100;
const STACK_OUT: u64 = 1400 + 130;
/// The driver's work, three copied lines, and the ring's four lines.
const DRIVER_OUT: u64 = 600 + 3 * 16 + 4 * 100;
/// A frame of 14 + 20 + 8 + 100 bytes, with preamble, check sequence and gap, at 800 ps per byte, and the flight.
const LINK: u64 = (142 + 24) * 800 + 500_000;
/// The driver takes the frame, with three lines that the card has written, and a buffer.
const DRIVER_IN: u64 = 500 + 3 * 100 + 130;
/// The soft ring's thread is woken on another CPU, and runs there for the first time.
const SOFT_RING: u64 = 110 + 200 + 60 + SWITCH;
/// Three lines of headers are in the other core's caches.
const STACK_IN: u64 = 1200 + 3 * 10;

#[test]
fn on_chip() {
    let (path, [_, receiver]) = journey(PLAIN_NIU, 1, &["bus.latency=75 ns", "bus.gap=125 ps/B"]);
    // A read of 8 bytes takes 75 ns to the card, 100 ns in the card, 1 ns for its bytes, and 75 ns back.
    let read = 100 + 75 + 1 + 75;
    let ps = 1000;
    let expected = [
        (Stage::SYSTEM_CALL, SYSTEM_CALL * ps),
        (Stage::COPY, 0),
        (stages::SOCKET, 650 * ps),
        (stages::COPY, 2 * COPY * ps),
        (stages::STACK_OUT, STACK_OUT * ps),
        (stages::DRIVER_OUT, DRIVER_OUT * ps),
        // These are the doorbell's 8 bytes and its crossing.
        (stages::DESCRIPTOR_QUEUED, (1 + 75) * ps),
        (stages::DESCRIPTOR, (75 + 1 + 75) * ps),
        (Stage::FETCH, (75 + 75) * ps + 142 * 125),
        (Stage::LINK, LINK),
        (Stage::DEPOSIT, 75 * ps + 142 * 125),
        (stages::COMPLETION, ps),
        // These are the timer, the interrupt's crossing, and the time to the handler.
        (stages::COALESCED, (200_000 + 75 + 70) * ps),
        (stages::HANDLER, (1500 + 4 * 100 + 2 * read) * ps),
        (stages::DRIVER_IN, DRIVER_IN * ps),
        // The write of the register with the number of taken frames precedes the soft ring's work.
        (stages::SOFT_RING, (1 + SOFT_RING) * ps),
        (stages::STACK_IN, STACK_IN * ps),
        // The receiver continues on its last CPU, by a cross-call. The two lines of its thread are still in the first
        // level there.
        (Stage::WAKE, (110 + 200 + 60 + 1000) * ps),
        (Stage::CPU_QUEUED, SWITCH * ps),
    ];
    for (stage, time) in expected {
        assert_eq!(path.total(stage).ps(), time, "{}: {:?}", stage.name(), stages(&path));
    }
    let all: u64 = expected.iter().map(|(_, time)| time).sum();
    assert_eq!(path.at().since(START).ps(), all, "{:?}", stages(&path));
    // The CPUs switch to the program, to the soft ring's thread, and to the program again. The last two switches are by
    // cross-calls.
    assert_eq!((receiver.context_switches, receiver.cross_calls, receiver.interrupts), (3, 2, 1));
    assert_eq!((receiver.card.receive_interrupts, receiver.card.frames_received), (1, 1));
}

#[test]
fn over_pci_express() {
    let more = [
        "bus.latency=250 ns",
        "bus.interrupt=450",
        "bus.interrupt_time=1 us",
        "bus.pcie.generation=1",
        "bus.pcie.lanes=8",
        "bus.pcie.mps=128 B",
    ];
    let (path, [_, receiver]) = journey(PLAIN_NEPTUNE, 1, &more);
    let (on_chip, _) = journey(PLAIN_NIU, 1, &[]);
    // A read has a request of 24 bytes and a completion of 28 bytes, at 500 ps per byte. It has two crossings, and
    // takes 100 ns in the card.
    let read = 100 + 12 + 250 + 14 + 250;
    // The host first takes the interrupt from the bridge.
    assert_eq!(path.total(stages::HANDLER), Duration::from_ns(450 + 1000 + 1500 + 4 * 100 + 2 * read));
    // A write of 8 bytes has 32 bytes on the bus. The interrupt's write of 4 bytes has 28 bytes.
    assert_eq!(path.total(stages::DESCRIPTOR_QUEUED), Duration::from_ns(16 + 250));
    assert_eq!(path.total(stages::COALESCED), Duration::from_ns(200_000 + 14 + 250 + 70));
    assert_eq!(path.total(stages::SOFT_RING), Duration::from_ns(16 + SOFT_RING));
    // The host's work takes the same time on any bus.
    for stage in [
        Stage::SYSTEM_CALL,
        stages::SOCKET,
        stages::COPY,
        stages::STACK_OUT,
        Stage::LINK,
        stages::DRIVER_IN,
        stages::STACK_IN,
        Stage::WAKE,
    ] {
        assert_eq!(path.total(stage), on_chip.total(stage), "{}", stage.name());
    }
    assert_eq!((receiver.context_switches, receiver.cross_calls, receiver.interrupts), (3, 2, 1));
}

#[test]
fn thirty_two_frames_interrupt_before_the_time_is_over() {
    let (first, [_, one]) = journey(PLAIN_NIU, 31, &[]);
    assert!(first.total(stages::COALESCED) >= Duration::from_us(200));
    assert_eq!(one.card.receive_interrupts, 1);
    // The sender takes about 5 us for each frame, so the 32nd frame arrives at 160 us.
    let (first, [_, two]) = journey(PLAIN_NIU, 32, &[]);
    assert!((100..200).contains(&(first.total(stages::COALESCED).ps() / 1_000_000)), "{:?}", stages(&first));
    assert_eq!(two.card.receive_interrupts, 1);
    // A handler takes frames that arrive while it works.
    let (_, [_, many]) = journey(PLAIN_NIU, 100, &[]);
    assert!((2..=4).contains(&many.card.receive_interrupts), "{:?}", many.card);
}

#[test]
fn checksums_are_the_hosts_work_where_the_card_does_not_compute_them() {
    let (card, _) = journey(PLAIN_NIU, 1, &[]);
    let (host, _) = journey(PLAIN_NIU, 1, &["frames.checksums=host", "stack.checksum=9"]);
    // The 142 bytes of the frame are three lines at both ends.
    for stage in [stages::STACK_OUT, stages::STACK_IN] {
        assert_eq!(host.total(stage), card.total(stage) + Duration::from_ns(3 * 9));
    }
}
