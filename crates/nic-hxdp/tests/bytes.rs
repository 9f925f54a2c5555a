//! Bytes of a frame that the core waits for, by programs in rows.

use crate::core::{spec, sume};
use nicety_ebpf::asm::*;
use nicety_ebpf::lanes::{Switches, schedule};
use nicety_ebpf::{Helper, Instruction, Limits, Linked, Machine, MapDefinition, MapKind, Packet, Trace};
use nicety_nic_hxdp::{Cycles, HxdpSpec, cycles};

/// Bytes of the frames. They are 48 cycles, and byte 1000 arrives in cycle 32.
const BYTES: u64 = 1514;

fn run(slots: Vec<Instruction>) -> Trace {
    let mut machine = Machine::empty(Limits::default());
    let map = MapDefinition {
        name: "hash".to_owned(),
        kind: MapKind::Hash as u32,
        key_size: 8,
        value_size: 16,
        max_entries: 4,
        ..MapDefinition::default()
    };
    machine.add_map(&map).unwrap();
    let linked = Linked::of_slots("test", slots).unwrap();
    let schedule = schedule(&linked, &Switches::none(4)).unwrap();
    let number = machine.add_program(linked);
    let mut packet = Packet::new(&[0; BYTES as usize], 0).unwrap();
    machine.run_rows(number, &schedule, &mut packet).unwrap().1
}

fn cycles_of(spec: &HxdpSpec, trace: &Trace) -> Cycles {
    cycles(spec, trace, BYTES, &vec![0; trace.helpers.len()])
}

/// The furthest byte that a program reaches.
fn furthest(slots: Vec<Instruction>) -> Option<u32> {
    run(slots).reach.last().map(|&(_, byte)| byte)
}

/// Moves the packet's begin, and reads a byte of the moved packet.
fn behind(delta: i32, at: i16) -> Vec<Instruction> {
    let moved = [mov(6, 1), mov_imm(2, delta), call(Helper::AdjustHead), load(W, 7, 6, 0)];
    [&moved[..], &[load(B, 0, 7, at), mov_imm(0, 1), exit()]].concat()
}

#[test]
fn a_moved_begin_changes_no_bytes_arrival() {
    let waiting = |delta: i32| cycles_of(&sume(), &run(behind(delta, 1000 - delta as i16))).waiting;
    assert!(waiting(0) > 0);
    assert_eq!((waiting(128), waiting(-128)), (waiting(0), waiting(0)));
}

#[test]
fn bytes_of_new_headroom_are_there() {
    assert_eq!(furthest(behind(-128, 127)), None);
    assert_eq!(furthest(behind(-128, 128)), Some(1));
    assert_eq!(furthest(behind(128, 0)), Some(129));
}

#[test]
fn a_helper_waits_for_the_bytes_that_it_reads() {
    let at = |register: u8, place: i32| [mov(register, 6), alu64_imm(ADD, register, place)].to_vec();
    let begin = vec![load(W, 6, 1, 0)];
    let end = vec![mov_imm(0, 1), exit()];
    let sum = |from: i32, to: i32| {
        let sizes = vec![mov_imm(2, from), mov_imm(4, to), mov_imm(5, 0), call(Helper::CsumDiff)];
        [begin.clone(), at(1, 1400), at(3, 1300), sizes, end.clone()].concat()
    };
    assert_eq!(furthest(sum(64, 0)), Some(1464));
    assert_eq!(furthest(sum(0, 64)), Some(1364));
    assert_eq!(furthest(sum(0, 0)), None);
    // Byte 1464 comes in cycle 46.
    let trace = run(sum(64, 0));
    let found = cycles_of(&sume(), &trace);
    let (row, _) = trace.reach[0];
    assert_eq!(found.waiting, 46 - sume().transfer.start - row);
    let on_map = |helper: Helper| {
        let arguments =
            [at(2, 600), at(3, 700), map(1, 0).to_vec(), vec![mov_imm(4, 0), call(helper)]].concat();
        furthest([begin.clone(), arguments, end.clone()].concat())
    };
    assert_eq!(on_map(Helper::MapLookup), Some(608));
    assert_eq!(on_map(Helper::MapDelete), Some(608));
    assert_eq!(on_map(Helper::MapUpdate), Some(716));
}

#[test]
fn cycles_of_taken_jumps_shorten_the_waiting() {
    let slow = spec(&["core.taken=10"]).unwrap();
    let slow = slow.of::<HxdpSpec>().unwrap();
    // One jump is taken in front of the access, and one behind it.
    let slots = vec![
        load(W, 6, 1, 0),
        jump_imm(JEQ, 9, 0, 1),
        mov_imm(7, 1),
        load(B, 5, 6, 1000),
        jump_imm(JEQ, 9, 0, 1),
        mov_imm(7, 1),
        mov_imm(0, 1),
        exit(),
    ];
    let trace = run(slots);
    assert_eq!(trace.taken.len(), 2);
    let (fast, slow) = (cycles_of(&sume(), &trace), cycles_of(slow, &trace));
    assert_eq!(slow.waiting, fast.waiting - 10);
    assert_eq!(slow.program, fast.program + 10);
}
