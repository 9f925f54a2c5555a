//! XDP programs in the host's driver.

use super::support::{PLAIN_NIU, Rig, User, at};
use nicety_ebpf::asm::*;
use nicety_ebpf::{Helper, Instruction, Limits, Linked, Machine, MapDefinition, MapKind};
use nicety_nic_core::parts::DueTime;
use nicety_nic_ethernet::{SocketKind, XdpError, XdpMode, XdpProgram, XdpReport};
use nicety_types::{Duration, NodeId};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A program of these instructions with these maps, for a host of `cpus` CPUs.
fn program(cpus: usize, maps: &[MapDefinition], slots: Vec<Instruction>) -> XdpProgram {
    let mut machine = Machine::empty(Limits { cpus: cpus as u32, ..Limits::default() });
    for map in maps {
        machine.add_map(map).unwrap();
    }
    let number = machine.add_program(Linked::of_slots("test", slots).unwrap());
    let machine = Rc::new(RefCell::new(machine));
    let (name, mode) = ("test".to_owned(), XdpMode::Native);
    XdpProgram { name, machine, program: number, fragments: false, mode }
}

fn map_of(kind: MapKind, value_size: u32, max_entries: u32) -> MapDefinition {
    let name = kind.name().to_owned();
    MapDefinition {
        name,
        kind: kind as u32,
        key_size: 4,
        value_size,
        max_entries,
        ..MapDefinition::default()
    }
}

/// A verdict for every frame.
fn always(verdict: i32) -> Vec<Instruction> {
    vec![mov_imm(0, verdict), exit()]
}

/// The verdict in byte 20 of a frame.
fn in_frame() -> Vec<Instruction> {
    vec![load(W, 2, 1, 0), load(B, 0, 2, 20), exit()]
}

/// The number of CPUs of the card's host.
const CPUS: usize = 64;

fn attach(user: &User, program: XdpProgram) {
    user.node.attach_xdp(program).unwrap();
}

/// Sends frames from node 0 to node 1, each `gap` after the one before, with bytes from 14 on.
fn offer(rig: &Rig, frames: Vec<Vec<u8>>, gap: Duration) {
    rig.hosts[1].node.watch_generator(NodeId(0));
    rig.program(0, async move |user| {
        let mut rest = (0..).zip(frames);
        let next = |frame: &mut Vec<u8>| {
            let (number, bytes) = rest.next()?;
            frame.clear();
            frame.extend([0; 14]);
            frame.extend(bytes);
            frame.resize(60.max(frame.len()), 0);
            Some(DueTime::after(number * gap.ps(), gap.ps()))
        };
        user.node.offer(NodeId(1), next, &Cell::new(false)).await;
    });
}

fn xdp_report(rig: &Rig) -> XdpReport {
    rig.report(1).xdp.unwrap()
}

/// One receive channel that interrupts for each frame, and a processor without misses.
const SIMPLE: [&str; 12] = [
    "receive.channels=1",
    "interrupts.packets=1",
    "threads.cycles_per_instruction=1",
    "threads.second_latency=0 ns",
    "host.memory_latency=0 ns",
    "host.clock=1 GHz",
    "threads.interrupt=100",
    "threads.switch=0",
    "driver.interrupt=50",
    "driver.interrupt_reads=0",
    "bus.interrupt=0",
    "bus.interrupt_time=0 ns",
];

#[test]
fn a_dropped_frame_takes_the_times_of_the_spec() {
    let costs = [
        "host.xdp.frame=1000",
        "host.xdp.run=200",
        "host.xdp.instruction=0.5",
        "host.xdp.helper=40",
        "host.xdp.map_lookup=300",
        "host.xdp.inlined=7",
    ];
    let mut rig = Rig::new(PLAIN_NIU, 2, &[&SIMPLE[..], &costs].concat());
    let [low, high] = map(1, 0);
    let lookup =
        [store_imm(W, 10, -4, 1), mov(2, 10), alu64_imm(ADD, 2, -4), low, high, call(Helper::MapLookup)];
    let slots = [&lookup[..], &[call(Helper::Cpu)], &always(1)].concat();
    attach(&rig.hosts[1], program(CPUS, &[map_of(MapKind::Hash, 8, 4)], slots));
    offer(&rig, vec![vec![1; 46]], Duration::from_us(1));
    rig.run();
    let latency = rig.hosts[1].node.xdp().latency();
    // 60 B at 125 ps and 75 ns to memory; 8 B of the completion behind them, and 75 ns; the interrupt's 75 ns.
    let bus = 7_500 + 1_000 + 75_000 + 75_000;
    // The interrupt takes 100, the driver's part 50, the frame 1000, the program 200. Half of its 8 instructions count.
    // A call with its entry of a map takes 340, and a helper in the program 7.
    let cpu = 1000 * (100 + 50 + 1000 + 200 + 4 + 340 + 7);
    assert_eq!((latency.count(), latency.max()), (1, bus + cpu));
    let report = xdp_report(&rig);
    let expected = XdpReport {
        frames: 1,
        dropped: 1,
        instructions: 8,
        helper_calls: 1,
        map_calls: 1,
        inlined_calls: 1,
        ..XdpReport::default()
    };
    assert_eq!(report, expected);
}

#[test]
fn verdicts_are_counted_and_dropped_frames_give_their_buffers_back() {
    // Far more frames than buffers.
    let mut rig =
        Rig::new(PLAIN_NIU, 2, &["receive.entries=8", "receive.channels=1", "interrupts.packets=4"]);
    attach(&rig.hosts[1], program(CPUS, &[], in_frame()));
    let frame = |n: usize| [&[0; 6][..], &[[1, 1, 3, 2, 0, 77, 255][n % 7]], &[0; 39]].concat();
    offer(&rig, (0..700).map(frame).collect(), Duration::from_us(20));
    rig.run();
    let (report, card) = (xdp_report(&rig), rig.report(1).card);
    assert_eq!((card.ring_full, card.frames_received), (0, 700));
    let counted = (report.dropped, report.transmitted, report.passed, report.aborted, report.invalid);
    assert_eq!((report.frames, counted), (700, (200, 100, 100, 300, 200)));
    // The frames with no protocol end in the stack.
    assert_eq!((card.frames_sent, rig.report(1).dropped), (100, 100));
}

#[test]
fn a_full_ring_loses_frames_that_no_program_sees() {
    let costs = ["host.xdp.frame=100000", "receive.entries=8", "receive.channels=1"];
    let mut rig = Rig::new(PLAIN_NIU, 2, &costs);
    attach(&rig.hosts[1], program(CPUS, &[], always(1)));
    offer(&rig, vec![vec![0; 46]; 100], Duration::from_ns(200));
    rig.run();
    let (report, card) = (xdp_report(&rig), rig.report(1).card);
    assert!(card.ring_full > 50, "{card:?}");
    assert_eq!(report.frames + card.ring_full, 100);
}

#[test]
fn each_cpu_has_values_of_its_own() {
    let spread = ["receive.channels=4", "interrupts.cpus=4", "receive.hash=toeplitz"];
    let mut rig = Rig::new(PLAIN_NIU, 2, &spread);
    let [low, high] = map(1, 0);
    let count = vec![
        store_imm(W, 10, -4, 0),
        mov(2, 10),
        alu64_imm(ADD, 2, -4),
        low,
        high,
        call(Helper::MapLookup),
        load(DW, 1, 0, 0),
        alu64_imm(ADD, 1, 1),
        store(DW, 0, 0, 1),
        mov_imm(0, 1),
        exit(),
    ];
    let counts = program(CPUS, &[map_of(MapKind::PerCpuArray, 8, 1)], count);
    let machine = counts.machine.clone();
    attach(&rig.hosts[1], counts);
    // UDP from 10.0.0.1 to 10.0.0.2, from as many ports.
    let frame = |port: u16| {
        let ip = [0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        [&ip[..], &port.to_be_bytes(), &[0, 9, 0, 12, 0, 0, 1, 2, 3, 4]].concat()
    };
    rig.hosts[1].node.watch_generator(NodeId(0));
    rig.program(0, async move |user| {
        let mut port = 0;
        let next = |bytes: &mut Vec<u8>| {
            port += 1;
            *bytes = [&[0; 12][..], &[8, 0], &frame(port)].concat();
            bytes.resize(60, 0);
            (port <= 200).then(|| DueTime::after(u64::from(port) * 5_000_000, 5_000_000))
        };
        user.node.offer(NodeId(1), next, &Cell::new(false)).await;
    });
    rig.run();
    let channels = rig.report(1).channels;
    let values = machine.borrow().maps[0].get(&[0; 4]).unwrap();
    let values: Vec<u64> =
        values.iter().map(|value| u64::from_ne_bytes(value[..].try_into().unwrap())).collect();
    assert_eq!(values.iter().sum::<u64>(), 200);
    assert!(channels.iter().filter(|&&frames| frames > 0).count() > 2, "{channels:?}");
    // The interrupts of the channels are on CPUs in a row.
    let with_frames: Vec<u64> = values.into_iter().filter(|&count| count > 0).collect();
    assert_eq!(with_frames, channels.into_iter().filter(|&frames| frames > 0).collect::<Vec<_>>());
}

/// Sends datagrams from port 5 of node 0 to port 9 of node 1. Returns those that node 1 gets, if it listens there.
fn datagrams(rig: &mut Rig, number: u8) -> Vec<Vec<u8>> {
    let got = Rc::new(RefCell::new(Vec::new()));
    rig.program(0, async move |user| {
        let socket = user.open(SocketKind::Datagram);
        user.bind(socket, 5).await.unwrap();
        for n in 0..number {
            user.send_to(socket, &[n; 20], at(1, 9)).await.unwrap();
        }
    });
    let left = got.clone();
    rig.program(1, async move |user| {
        let socket = user.open(SocketKind::Datagram);
        user.bind(socket, 9).await.unwrap();
        for _ in 0..number {
            let (bytes, _) = user.recv_from(socket, 100).await.unwrap();
            left.borrow_mut().push(bytes);
        }
    });
    rig.run();
    got.take()
}

fn modes() -> [XdpMode; 2] {
    [XdpMode::Native, XdpMode::Generic]
}

#[test]
fn passed_frames_arrive_at_a_socket() {
    for mode in modes() {
        let mut rig = Rig::new(PLAIN_NIU, 2, &[]);
        attach(&rig.hosts[1], XdpProgram { mode, ..program(CPUS, &[], always(2)) });
        let expected: Vec<_> = (0..20).map(|n| vec![n; 20]).collect();
        assert_eq!(datagrams(&mut rig, 20), expected);
        assert_eq!(xdp_report(&rig).passed, xdp_report(&rig).frames);
    }
}

#[test]
fn a_programs_change_arrives() {
    for mode in modes() {
        let mut rig = Rig::new(PLAIN_NIU, 2, &[]);
        // Byte 50 of a datagram is the ninth of its payload. Of ARP it is padding.
        let change = vec![load(W, 2, 1, 0), store_imm(B, 2, 50, 99), mov_imm(0, 2), exit()];
        attach(&rig.hosts[1], XdpProgram { mode, ..program(CPUS, &[], change) });
        let got = datagrams(&mut rig, 3);
        assert_eq!(got[2], [[2; 8].as_slice(), &[99], &[2; 11]].concat());
    }
}

/// Swaps the addresses of both layers and the ports of UDP. Passes others.
fn answer(verdict: &[Instruction]) -> Vec<Instruction> {
    let swap = |size: u8, a: i16, b: i16| {
        vec![load(size, 3, 2, a), load(size, 4, 2, b), store(size, 2, a, 4), store(size, 2, b, 3)]
    };
    let swaps =
        [swap(W, 0, 6), swap(H, 4, 10), swap(W, 26, 30), swap(H, 34, 36), verdict.to_vec(), vec![exit()]]
            .concat();
    let check = [mov(6, 1), load(W, 2, 1, 0), mov_imm(0, 2), load(B, 5, 2, 23)];
    let skip = [jump_imm(JEQ, 5, 17, 1), exit()];
    [&check[..], &skip, &swaps].concat()
}

/// Sends datagrams to node 1, which answers them by its program. Returns the answers.
fn answers(program: XdpProgram, overrides: &[&str]) -> (Vec<Vec<u8>>, XdpReport) {
    let mut rig = Rig::new(PLAIN_NIU, 2, overrides);
    attach(&rig.hosts[1], program);
    let got = Rc::new(RefCell::new(Vec::new()));
    let left = got.clone();
    rig.program(0, async move |user| {
        let socket = user.open(SocketKind::Datagram);
        user.bind(socket, 5).await.unwrap();
        for n in 0..10 {
            user.send_to(socket, &[n; 20], at(1, 9)).await.unwrap();
            let (bytes, from) = user.recv_from(socket, 100).await.unwrap();
            assert_eq!(from, at(1, 9));
            left.borrow_mut().push(bytes);
        }
    });
    rig.run();
    (got.take(), xdp_report(&rig))
}

#[test]
fn sent_frames_return_with_swapped_addresses() {
    for mode in modes() {
        let (got, report) = answers(XdpProgram { mode, ..program(CPUS, &[], answer(&[mov_imm(0, 3)])) }, &[]);
        assert_eq!(got, (0..10).map(|n| vec![n; 20]).collect::<Vec<_>>());
        assert_eq!((report.transmitted, report.transmit_full), (10, 0));
    }
}

#[test]
fn a_card_that_reports_no_free_descriptors_is_asked_for_them() {
    let few = ["transmit.entries=4", "driver.reclaim=2", "transmit.channels=1"];
    let (got, report) = answers(program(CPUS, &[], answer(&[mov_imm(0, 3)])), &few);
    assert_eq!((got.len(), report.transmit_full), (10, 0));
}

/// `bpf_redirect_map` with this key.
fn redirect(key: i32) -> Vec<Instruction> {
    let [low, high] = map(1, 0);
    vec![low, high, mov_imm(2, key), mov_imm(3, 0), call(Helper::RedirectMap)]
}

fn redirecting(kind: MapKind, entry: (u32, u32), slots: Vec<Instruction>, mode: XdpMode) -> XdpProgram {
    let program = program(CPUS, &[map_of(kind, 4, 64)], slots);
    let value = entry.1.to_ne_bytes().to_vec();
    program.machine.borrow_mut().maps[0].set(&entry.0.to_ne_bytes(), &[value], 0).unwrap();
    XdpProgram { mode, ..program }
}

#[test]
fn redirected_frames_leave_by_a_port() {
    for mode in modes() {
        let own = redirecting(MapKind::Devices, (7, 1), answer(&redirect(7)), mode);
        let (got, report) = answers(own, &[]);
        assert_eq!((got.len(), report.redirected, report.unreachable), (10, 10, 0));
    }
}

#[test]
fn a_port_that_the_card_lacks_is_unreachable() {
    for mode in modes() {
        let mut rig = Rig::new(PLAIN_NIU, 2, &[]);
        let slots = [redirect(7), vec![exit()]].concat();
        attach(&rig.hosts[1], redirecting(MapKind::Devices, (7, 2), slots, mode));
        offer(&rig, vec![vec![0; 46]; 5], Duration::from_us(5));
        rig.run();
        let report = xdp_report(&rig);
        assert_eq!((report.redirected, report.unreachable), (5, 5));
        assert_eq!(rig.report(1).card.frames_sent, 0);
    }
}

#[test]
fn another_cpu_takes_redirected_frames_to_the_stack() {
    for mode in modes() {
        let mut rig = Rig::new(PLAIN_NIU, 2, &[]);
        let slots = [redirect(40), vec![exit()]].concat();
        attach(&rig.hosts[1], redirecting(MapKind::Cpus, (40, 16), slots, mode));
        let expected: Vec<_> = (0..20).map(|n| vec![n; 20]).collect();
        assert_eq!(datagrams(&mut rig, 20), expected);
        let report = xdp_report(&rig);
        assert_eq!((report.redirected, report.queue_full), (report.frames, 0));
    }
}

#[test]
fn a_full_queue_of_a_cpu_drops_frames() {
    let mut rig = Rig::new(PLAIN_NIU, 2, &["stack.buffer=1000000", "receive.channels=1"]);
    let slots = [redirect(40), vec![exit()]].concat();
    attach(&rig.hosts[1], redirecting(MapKind::Cpus, (40, 4), slots, XdpMode::Native));
    offer(&rig, vec![vec![0; 46]; 50], Duration::from_us(2));
    rig.run();
    let report = xdp_report(&rig);
    assert!(report.queue_full >= 40 && report.queue_full < 50, "{report:?}");
}

#[test]
fn a_trap_names_program_and_instruction_and_the_frame_is_dropped() {
    for mode in modes() {
        let mut rig = Rig::new(PLAIN_NIU, 2, &[]);
        let outside = vec![load(W, 2, 1, 0), load(B, 0, 2, 100), exit()];
        attach(&rig.hosts[1], XdpProgram { mode, ..program(CPUS, &[], outside) });
        offer(&rig, vec![vec![0; 46]; 5], Duration::from_us(5));
        rig.run();
        assert_eq!((xdp_report(&rig).trapped, xdp_report(&rig).frames), (5, 5));
        let card: Rc<dyn nicety_nic_core::Card> = rig.hosts[1].node.clone();
        let failures = card.failures();
        assert_eq!((failures.len(), failures[0].times), (1, 5));
        let text = &failures[0].text;
        assert!(text.starts_with("XDP: program test, instruction 1: reads 1 bytes at byte 100"), "{text}");
    }
}

#[test]
fn a_host_refuses_programs_that_it_cannot_run() {
    let long = Rig::new(PLAIN_NIU, 2, &["frames.mtu=9000 B", "receive.buffer=16 KiB"]);
    let given = program(CPUS, &[], always(1));
    let refused = long.hosts[1].node.attach_xdp(given.clone());
    assert_eq!(refused, Err(XdpError::TooLong { frame: 9018 }));
    assert!(long.hosts[1].node.attach_xdp(XdpProgram { fragments: true, ..given }).is_ok());
    let refused = long.hosts[1].node.attach_xdp(XdpProgram { fragments: true, ..program(2, &[], always(1)) });
    assert_eq!(refused, Err(XdpError::Cpus { machine: 2, host: CPUS }));
}

#[test]
fn a_handler_goes_on_without_an_interrupt_where_it_polls() {
    let handled = |polls: &str| {
        let base =
            ["receive.channels=1", "driver.budget=4", "interrupts.time=100 us", "driver.interrupt_reads=0"];
        let mut rig = Rig::new(PLAIN_NIU, 2, &[&base[..], &[polls]].concat());
        attach(&rig.hosts[1], program(CPUS, &[], always(1)));
        offer(&rig, vec![vec![0; 46]; 30], Duration::from_ns(100));
        rig.run();
        assert_eq!(xdp_report(&rig).dropped, 30);
        rig.report(1).handlers
    };
    assert_eq!(handled("driver.polls=true"), 1);
    assert!(handled("driver.polls=false") > 1);
}
