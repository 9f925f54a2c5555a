//! Tests redirected frames: their buffers, copies and metadata, and the programs behind a redirect.

use super::support::{PLAIN_NIU, Rig};
use super::xdp::{
    CPUS, SIMPLE, attach, map_of, modes, offer, program, redirect, to_socket, with_mode, xdp_report,
};
use nicety_ebpf::asm::*;
use nicety_ebpf::{Helper, Instruction, Linked, MapKind};
use nicety_nic_core::parts::DueTime;
use nicety_nic_ethernet::{XdpMode, XdpProgram, XskReader};
use nicety_types::{Duration, NodeId};
use std::cell::Cell;
use std::rc::Rc;

/// Returns a program that redirects to key 7 of a map, with this program behind the redirect.
fn followed(kind: MapKind, first: Vec<Instruction>, second: Vec<Instruction>, mode: XdpMode) -> XdpProgram {
    let program = with_mode(mode, program(CPUS, &[map_of(kind, 8, 64)], first));
    let mut machine = program.machine.borrow_mut();
    let number = machine.add_program(Linked::of_slots("second", second).unwrap());
    // The room of a queue, or a port.
    let word: u32 = if kind == MapKind::Cpus { 64 } else { 1 };
    let value = [word.to_ne_bytes(), (number as u32 + 1).to_ne_bytes()].concat();
    machine.maps[0].set(&7u32.to_ne_bytes(), &[value], 0).unwrap();
    drop(machine);
    program
}

#[test]
fn readers_of_a_socket_keep_their_own_buffers() {
    for zero_copy in [false, true] {
        let settings =
            ["receive.channels=1", "receive.entries=8", "interrupts.packets=2", "host.xdp.zero_copy=true"];
        let mut rig = Rig::new(PLAIN_NIU, 2, &settings);
        let program = to_socket(&rig, 12, zero_copy, XdpMode::Native);
        let taken = Rc::new(Cell::new(0));
        for number in 0..2 {
            let (count, own) = (taken.clone(), program.clone());
            rig.program(1, async move |user| {
                let (user, reader) = (user.thread(number), XskReader::default());
                let mut path = user.path.get();
                for _ in 0..150 {
                    let call = (user.program, &reader);
                    let frames = user.node.xdp_frames(call, &own, ((0, 7), 1), &mut path).await;
                    count.set(count.get() + frames.len());
                    // The other thread takes frames meanwhile.
                    user.sim.delay(Duration::from_us(30)).await;
                }
            });
        }
        offer(&rig, vec![vec![0; 46]; 300], Duration::from_us(20));
        rig.run();
        assert_eq!((taken.get(), xdp_report(&rig).queue_full, rig.report(1).card.ring_full), (300, 0, 0));
        // The threads have ended, and all buffers are back.
        assert_eq!(program.buffers_of((0, 7)), Some((if zero_copy { 4 } else { 12 }, 0)));
    }
}

#[test]
fn a_frame_for_another_cpu_gets_one_packet_buffer() {
    let busy = |mode: XdpMode, buffer: &str| {
        let mut rig = Rig::new(PLAIN_NIU, 2, &[&SIMPLE[..], &[buffer]].concat());
        let own = program(CPUS, &[map_of(MapKind::Cpus, 4, 64)], [redirect(40), vec![exit()]].concat());
        let room = 16u32.to_ne_bytes().to_vec();
        own.machine.borrow_mut().maps[0].set(&40u32.to_ne_bytes(), &[room], 0).unwrap();
        attach(&rig.hosts[1], with_mode(mode, own));
        offer(&rig, vec![vec![0; 46]], Duration::from_us(5));
        rig.run();
        assert_eq!(xdp_report(&rig).redirected, 1);
        rig.report(1).busy_ps
    };
    for mode in modes() {
        // At 1 GHz it is allocated once and freed once.
        let more = busy(mode, "stack.buffer=21000") - busy(mode, "stack.buffer=1000");
        assert_eq!(more, 2 * 20_000_000, "{mode:?}");
    }
}

#[test]
fn a_broadcast_reaches_all_ports_of_the_map() {
    let [low, high] = map(1, 0);
    let broadcast = vec![low, high, mov_imm(2, 0), mov_imm(3, 8), call(Helper::RedirectMap), exit()];
    for mode in modes() {
        let mut rig = Rig::new(PLAIN_NIU, 2, &[]);
        let own = program(CPUS, &[map_of(MapKind::Devices, 4, 64)], broadcast.clone());
        for (key, port) in [(0u32, 1u32), (3, 1), (5, 2)] {
            let value = port.to_ne_bytes().to_vec();
            own.machine.borrow_mut().maps[0].set(&key.to_ne_bytes(), &[value], 0).unwrap();
        }
        attach(&rig.hosts[1], with_mode(mode, own));
        offer(&rig, vec![vec![0; 46]; 5], Duration::from_us(50));
        rig.run();
        let report = xdp_report(&rig);
        // The card lacks the third port, and each frame's latency counts once.
        assert_eq!((report.redirected, report.unreachable), (5, 5), "{mode:?}");
        assert_eq!(rig.report(1).card.frames_sent, 10, "{mode:?}");
        assert_eq!(rig.hosts[1].node.xdp().latency().count(), 5, "{mode:?}");
    }
}

/// Instructions that pass a frame with the metadata 77 in front of it, and drop others.
fn wants_metadata() -> Vec<Instruction> {
    vec![
        mov_imm(0, 1),
        load(W, 2, 1, 8),
        load(W, 3, 1, 0),
        mov(4, 2),
        alu64_imm(ADD, 4, 4),
        jump(JGT, 4, 3, 3),
        load(W, 5, 2, 0),
        jump_imm(JNE, 5, 77, 1),
        mov_imm(0, 2),
        exit(),
    ]
}

#[test]
fn metadata_goes_along_to_programs_behind_a_redirect() {
    for (kind, head) in [(MapKind::Devices, 0), (MapKind::Cpus, 0), (MapKind::Devices, -200)] {
        let [low, high] = map(1, 0);
        let move_head = [mov(6, 1), mov_imm(2, head), call(Helper::AdjustHead), mov(1, 6)];
        let write = [mov_imm(2, -4), call(Helper::AdjustMeta), load(W, 2, 6, 8), store_imm(W, 2, 0, 77)];
        let send = [low, high, mov_imm(2, 7), mov_imm(3, 0), call(Helper::RedirectMap), exit()];
        let first = [&move_head[..], &write, &send].concat();
        let dropped = |mode: XdpMode| {
            let mut rig = Rig::new(PLAIN_NIU, 2, &[]);
            attach(&rig.hosts[1], followed(kind, first.clone(), wants_metadata(), mode));
            offer(&rig, vec![vec![0; 46]; 5], Duration::from_us(50));
            rig.run();
            let report = xdp_report(&rig);
            assert_eq!((report.redirected, report.trapped), (5, 0));
            report.second_dropped
        };
        // As in Linux, a packet buffer keeps none for a second program.
        assert_eq!((dropped(XdpMode::Native), dropped(XdpMode::Generic)), (0, 5), "{kind:?}, {head}");
    }
}

#[test]
fn the_second_program_has_the_headroom_of_the_frame() {
    // Of 256 bytes in front of the frame, the first program takes 200, and the frame's record 40.
    let first =
        [&[mov(6, 1), mov_imm(2, -200), call(Helper::AdjustHead)][..], &redirect(7), &[exit()]].concat();
    for (delta, dropped) in [(-16, 0), (-17, 5)] {
        let more = vec![
            mov_imm(2, delta),
            call(Helper::AdjustHead),
            mov(3, 0),
            mov_imm(0, 2),
            jump_imm(JEQ, 3, 0, 1),
            mov_imm(0, 1),
            exit(),
        ];
        let mut rig = Rig::new(PLAIN_NIU, 2, &[]);
        attach(&rig.hosts[1], followed(MapKind::Devices, first.clone(), more, XdpMode::Native));
        offer(&rig, vec![vec![0; 46]; 5], Duration::from_us(50));
        rig.run();
        assert_eq!(xdp_report(&rig).second_dropped, dropped, "{delta}");
    }
}

#[test]
fn a_frame_without_a_packet_buffer_has_lost_its_queue_behind_a_redirect() {
    // It drops frames of other queues than 0.
    let second = vec![mov_imm(0, 2), load(W, 2, 1, 16), jump_imm(JEQ, 2, 0, 1), mov_imm(0, 1), exit()];
    let first = [redirect(7), vec![exit()]].concat();
    for kind in [MapKind::Devices, MapKind::Cpus] {
        let dropped = |mode: XdpMode| {
            let spread = ["receive.channels=4", "interrupts.cpus=4", "receive.hash=toeplitz"];
            let mut rig = Rig::new(PLAIN_NIU, 2, &spread);
            attach(&rig.hosts[1], followed(kind, first.clone(), second.clone(), mode));
            rig.hosts[1].node.watch_generator(NodeId(0));
            rig.program(0, async move |user| {
                let mut port = 0u16;
                let next = |bytes: &mut Vec<u8>| {
                    port += 1;
                    let ip = [0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
                    *bytes = [&[0; 12][..], &[8, 0], &ip, &port.to_be_bytes(), &[0, 9, 0, 12]].concat();
                    bytes.resize(60, 0);
                    (port <= 40).then(|| DueTime::after(u64::from(port) * 50_000_000, 50_000_000))
                };
                user.node.offer(NodeId(1), next, &Cell::new(false)).await;
            });
            rig.run();
            let report = xdp_report(&rig);
            assert_eq!((report.redirected, report.queue_full), (40, 0));
            report.second_dropped
        };
        let (native, generic) = (dropped(XdpMode::Native), dropped(XdpMode::Generic));
        // Linux keeps the queue in the packet buffer of a generic program.
        assert!(native == 0 && generic > 10, "{kind:?}: {native}, {generic}");
    }
}
