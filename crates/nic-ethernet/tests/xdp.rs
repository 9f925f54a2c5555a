//! Tests XDP programs in the host's driver.

use super::support::{PLAIN_NIU, Rig, User, at};
use nicety_ebpf::asm::*;
use nicety_ebpf::{Helper, Instruction, Limits, Linked, Machine, MapDefinition, MapKind};
use nicety_nic_core::parts::DueTime;
use nicety_nic_ethernet::{SocketKind, XdpError, XdpMode, XdpProgram, XdpReport, XskOptions, XskReader};
use nicety_types::{Duration, NodeId};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Returns a program for this place.
pub(crate) fn with_mode(mode: XdpMode, program: XdpProgram) -> XdpProgram {
    let mut program = program;
    program.mode = mode;
    program
}

/// Returns a program that takes frames in several pieces, or does not.
fn with_fragments(fragments: bool, program: XdpProgram) -> XdpProgram {
    let mut program = program;
    program.fragments = fragments;
    program
}

/// Returns a program of these instructions with these maps, for a host of `cpus` CPUs.
pub(crate) fn program(cpus: usize, maps: &[MapDefinition], slots: Vec<Instruction>) -> XdpProgram {
    let mut machine = Machine::empty(Limits { cpus: cpus as u32, ..Limits::default() });
    for map in maps {
        machine.add_map(map).unwrap();
    }
    let number = machine.add_program(Linked::of_slots("test", slots).unwrap());
    let machine = Rc::new(RefCell::new(machine));
    let (name, mode) = ("test".to_owned(), XdpMode::Native);
    XdpProgram::new(&name, machine, number, (false, mode))
}

pub(crate) fn map_of(kind: MapKind, value_size: u32, max_entries: u32) -> MapDefinition {
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

/// Returns instructions that give this verdict for every frame.
pub(crate) fn always(verdict: i32) -> Vec<Instruction> {
    vec![mov_imm(0, verdict), exit()]
}

/// Returns instructions that give the verdict in byte 20 of the frame.
fn in_frame() -> Vec<Instruction> {
    vec![load(W, 2, 1, 0), load(B, 0, 2, 20), exit()]
}

/// The number of CPUs of the card's host.
pub(crate) const CPUS: usize = 64;

pub(crate) fn attach(user: &User, program: XdpProgram) {
    user.node.attach_xdp(program).unwrap();
}

/// Sends frames from node 0 to node 1, each `gap` after the previous one. `frames` has the bytes of each frame from
/// byte 14 on.
pub(crate) fn offer(rig: &Rig, frames: Vec<Vec<u8>>, gap: Duration) {
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

pub(crate) fn xdp_report(rig: &Rig) -> XdpReport {
    rig.report(1).xdp.unwrap()
}

/// One receive channel that interrupts for each frame, and a processor without misses.
pub(crate) const SIMPLE: [&str; 12] = [
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
    // The frame's 60 B take 125 ps per byte. The 8 B of the completion follow, with 75 ns to memory. The interrupt
    // takes 75 ns.
    let bus = 7_500 + 1_000 + 75_000 + 75_000;
    // The interrupt takes 100, the driver's part 50, the frame 1000, and the program 200. Half of the program's 8
    // instructions count. A call with its map entry takes 340, and an inlined helper 7.
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
    // There are far more frames than buffers.
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
    // The frames have UDP from 10.0.0.1 to 10.0.0.2, each from another port.
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
    // The interrupts of the channels are on consecutive CPUs.
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

pub(crate) fn modes() -> [XdpMode; 2] {
    [XdpMode::Native, XdpMode::Generic]
}

#[test]
fn passed_frames_arrive_at_a_socket() {
    for mode in modes() {
        let mut rig = Rig::new(PLAIN_NIU, 2, &[]);
        attach(&rig.hosts[1], with_mode(mode, program(CPUS, &[], always(2))));
        let expected: Vec<_> = (0..20).map(|n| vec![n; 20]).collect();
        assert_eq!(datagrams(&mut rig, 20), expected);
        assert_eq!(xdp_report(&rig).passed, xdp_report(&rig).frames);
    }
}

#[test]
fn a_programs_change_arrives() {
    for mode in modes() {
        let mut rig = Rig::new(PLAIN_NIU, 2, &[]);
        // Byte 50 of a datagram's frame is the ninth byte of the payload. In a frame of ARP, this byte is padding.
        let change = vec![load(W, 2, 1, 0), store_imm(B, 2, 50, 99), mov_imm(0, 2), exit()];
        attach(&rig.hosts[1], with_mode(mode, program(CPUS, &[], change)));
        let got = datagrams(&mut rig, 3);
        assert_eq!(got[2], [[2; 8].as_slice(), &[99], &[2; 11]].concat());
    }
}

/// Returns instructions that swap the addresses of both layers and the ports of UDP, and then run `verdict`. Other
/// frames pass.
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

/// Sends datagrams to node 1, which answers them by its XDP program. Returns the answers and the report.
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
        let (got, report) = answers(with_mode(mode, program(CPUS, &[], answer(&[mov_imm(0, 3)]))), &[]);
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

/// Returns instructions that call `bpf_redirect_map` with this key.
pub(crate) fn redirect(key: i32) -> Vec<Instruction> {
    let [low, high] = map(1, 0);
    vec![low, high, mov_imm(2, key), mov_imm(3, 0), call(Helper::RedirectMap)]
}

fn redirecting(kind: MapKind, entry: (u32, u32), slots: Vec<Instruction>, mode: XdpMode) -> XdpProgram {
    let program = program(CPUS, &[map_of(kind, 4, 64)], slots);
    let value = entry.1.to_ne_bytes().to_vec();
    program.machine.borrow_mut().maps[0].set(&entry.0.to_ne_bytes(), &[value], 0).unwrap();
    with_mode(mode, program)
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
        attach(&rig.hosts[1], with_mode(mode, program(CPUS, &[], outside)));
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
    assert!(long.hosts[1].node.attach_xdp(with_fragments(true, given)).is_ok());
    let refused = long.hosts[1].node.attach_xdp(with_fragments(true, program(2, &[], always(1))));
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

/// Returns a program that redirects all frames to the socket at key 7 of its map.
pub(crate) fn to_socket(rig: &Rig, buffers: u64, zero_copy: bool, mode: XdpMode) -> XdpProgram {
    let slots = [redirect(7), vec![exit()]].concat();
    let program = with_mode(mode, program(CPUS, &[map_of(MapKind::Sockets, 4, 64)], slots));
    let options = XskOptions { queue: 0, buffers, zero_copy };
    program.bind((0, 7), options, rig.hosts[1].node.spec()).unwrap();
    attach(&rig.hosts[1], program.clone());
    program
}

/// Takes frames of the socket by one call of node 1, `after` the begin.
fn taking(rig: &Rig, program: &XdpProgram, after: Duration) -> Rc<RefCell<Vec<Vec<u8>>>> {
    let got = Rc::new(RefCell::new(Vec::new()));
    let (left, program) = (got.clone(), program.clone());
    rig.program(1, async move |user| {
        user.sim.delay(after).await;
        let mut path = user.path.get();
        let (node, reader) = (&user.node, XskReader::default());
        let frames = node.xdp_frames((user.program, &reader), &program, ((0, 7), 64), &mut path).await;
        // The frames keep their buffers.
        std::mem::forget(reader);
        left.borrow_mut().extend(frames.iter().map(|frame| frame.to_vec()));
    });
    got
}

#[test]
fn zero_copy_saves_the_copy_of_a_frame() {
    let costs = [
        "host.xdp.frame=1000",
        "host.xdp.run=200",
        "host.xdp.instruction=0.5",
        "host.xdp.helper=40",
        "host.xdp.socket=90",
        "host.xdp.zero_copy=true",
        "sockets.copy=70",
    ];
    for zero_copy in [false, true] {
        let mut rig = Rig::new(PLAIN_NIU, 2, &[&SIMPLE[..], &costs].concat());
        to_socket(&rig, 10_000, zero_copy, XdpMode::Native);
        offer(&rig, vec![vec![1; 186]], Duration::from_us(1));
        rig.run();
        let latency = rig.hosts[1].node.xdp().latency();
        // The frame's 200 B take 125 ps per byte. The 8 B of the completion follow, with 75 ns to memory. The interrupt
        // takes 75 ns.
        let bus = 25_000 + 1_000 + 75_000 + 75_000;
        // The interrupt takes 100, the driver's part 50, the frame 1000, and the program 200. Half of its 5 instructions
        // count, rounded up, and a call. The socket takes 90. A copy has 4 lines of 64 B.
        let cpu = 100 + 50 + 1000 + 200 + 3 + 40 + 90 + if zero_copy { 0 } else { 4 * 70 };
        assert_eq!((latency.count(), latency.max()), (1, bus + 1000 * cpu), "zero copy {zero_copy}");
    }
}

#[test]
fn a_socket_brings_the_bytes_of_frames() {
    for (zero_copy, mode) in [(false, XdpMode::Native), (true, XdpMode::Native), (false, XdpMode::Generic)] {
        let mut rig = Rig::new(PLAIN_NIU, 2, &["receive.channels=1", "host.xdp.zero_copy=true"]);
        let program = to_socket(&rig, 10_000, zero_copy, mode);
        // The reader waits before the first frame comes.
        let got = taking(&rig, &program, Duration::ZERO);
        offer(&rig, vec![vec![9; 186]], Duration::from_us(1));
        rig.run();
        let frames = got.borrow();
        assert_eq!((frames.len(), frames[0].len(), &frames[0][14..]), (1, 200, &[9; 186][..]));
        let report = xdp_report(&rig);
        assert_eq!((report.redirected, report.unreachable, report.queue_full), (1, 0, 0));
    }
}

#[test]
fn frames_without_a_buffer_are_lost_at_the_card_or_in_the_driver() {
    for zero_copy in [false, true] {
        let settings =
            ["receive.channels=1", "receive.entries=8", "interrupts.packets=1", "host.xdp.zero_copy=true"];
        let mut rig = Rig::new(PLAIN_NIU, 2, &settings);
        let program = to_socket(&rig, 10, zero_copy, XdpMode::Native);
        // The socket has ten buffers. With zero copy eight of them are in the card's ring.
        assert_eq!(program.buffers_of((0, 7)), Some((if zero_copy { 2 } else { 10 }, 0)));
        let got = taking(&rig, &program, Duration::from_us(1000));
        offer(&rig, vec![vec![0; 46]; 25], Duration::from_us(20));
        rig.run();
        assert_eq!(got.borrow().len(), 10);
        let (report, card) = (xdp_report(&rig), rig.report(1).card);
        let lost = if zero_copy { (0, 15) } else { (15, 0) };
        assert_eq!((report.queue_full, card.ring_full), lost);
        assert_eq!(program.buffers_of((0, 7)), Some((0, if zero_copy { 8 } else { 0 })));
    }
}

#[test]
fn taken_frames_give_their_buffers_back() {
    for zero_copy in [false, true] {
        let settings =
            ["receive.channels=1", "receive.entries=8", "interrupts.packets=1", "host.xdp.zero_copy=true"];
        let mut rig = Rig::new(PLAIN_NIU, 2, &settings);
        let program = to_socket(&rig, 10, zero_copy, XdpMode::Native);
        let taken = Rc::new(Cell::new(0));
        let (count, own) = (taken.clone(), program.clone());
        rig.program(1, async move |user| {
            let (mut path, reader) = (user.path.get(), XskReader::default());
            while count.get() < 300 {
                let call = (user.program, &reader);
                let frames = user.node.xdp_frames(call, &own, ((0, 7), 3), &mut path).await;
                assert!((1..=3).contains(&frames.len()));
                count.set(count.get() + frames.len());
            }
        });
        offer(&rig, vec![vec![0; 46]; 300], Duration::from_us(20));
        rig.run();
        assert_eq!((taken.get(), xdp_report(&rig).queue_full, rig.report(1).card.ring_full), (300, 0, 0));
    }
}

#[test]
fn other_frames_of_a_zero_copy_queue_are_copied() {
    let time = |socket: bool| {
        let costs = ["host.xdp.zero_copy=true", "sockets.copy=70"];
        let mut rig = Rig::new(PLAIN_NIU, 2, &[&SIMPLE[..], &costs].concat());
        let sends = program(CPUS, &[map_of(MapKind::Sockets, 4, 64)], always(3));
        let options = XskOptions { queue: 0, buffers: 10_000, zero_copy: true };
        if socket {
            sends.bind((0, 7), options, rig.hosts[1].node.spec()).unwrap();
        }
        attach(&rig.hosts[1], sends);
        offer(&rig, vec![vec![1; 186]], Duration::from_us(1));
        rig.run();
        assert_eq!(xdp_report(&rig).transmitted, 1);
        rig.report(1).busy_ps
    };
    // Four lines, at 1 GHz.
    assert_eq!(time(true) - time(false), 4 * 70_000);
}

#[test]
fn a_socket_takes_frames_of_its_own_queue() {
    let mut rig = Rig::new(PLAIN_NIU, 2, &["receive.channels=2", "host.xdp.zero_copy=true"]);
    let slots = [redirect(7), vec![exit()]].concat();
    let program = program(CPUS, &[map_of(MapKind::Sockets, 4, 64)], slots);
    let options = XskOptions { queue: 1, buffers: 64, zero_copy: false };
    program.bind((0, 7), options, rig.hosts[1].node.spec()).unwrap();
    attach(&rig.hosts[1], program);
    // Frames without a hash come to the first queue.
    offer(&rig, vec![vec![0; 46]; 5], Duration::from_us(5));
    rig.run();
    assert_eq!(xdp_report(&rig).unreachable, 5);
}

#[test]
fn a_socket_that_the_driver_cannot_bind_is_refused() {
    let rig = Rig::new(PLAIN_NIU, 2, &["receive.channels=1", "host.xdp.zero_copy=true"]);
    let (spec, ring) = (rig.hosts[1].node.spec(), rig.hosts[1].node.spec().receive.entries);
    let maps = [map_of(MapKind::Sockets, 4, 8), map_of(MapKind::Array, 4, 8)];
    let (fresh, generic) = (program(CPUS, &maps, always(1)), program(CPUS, &maps, always(1)));
    let program = program(CPUS, &maps, always(1));
    let refused = |entry, options| program.bind(entry, options, spec).unwrap_err().to_string();
    let plain = XskOptions { queue: 0, buffers: 4 * ring, zero_copy: true };
    assert_eq!(refused((1, 0), plain), "it has no sockets; name an xskmap");
    assert_eq!(refused((0, 8), plain), "key 8 is beyond its 8 entries");
    let other = XskOptions { queue: 1, ..plain };
    assert_eq!(refused((0, 0), other), "queue 1: the card has 1 receive channels");
    let few = XskOptions { buffers: ring, ..plain };
    assert_eq!(refused((0, 0), few), format!("{ring} buffers: write more than {ring}"));
    program.bind((0, 0), plain, spec).unwrap();
    assert_eq!(refused((0, 0), plain), "key 0 has a socket already");
    assert!(refused((0, 1), plain).starts_with("queue 0 has a socket already"));
    let text = |refused: Result<(), XdpError>| refused.unwrap_err().to_string();
    let behind = text(with_mode(XdpMode::Generic, generic).bind((0, 2), plain, spec));
    assert_eq!(behind, "a program in generic mode has no zero copy; attach it in native mode");
    let without = Rig::new(PLAIN_NIU, 2, &[]);
    let refused = text(fresh.bind((0, 3), plain, without.hosts[1].node.spec()));
    assert_eq!(refused, "the driver has no zero copy (host.xdp.zero_copy); leave it out");
}
