//! Edges of packets and their helpers, by the facts of a kernel.

use nicety_ebpf::asm::*;
use nicety_ebpf::{Errno, Helper, Instruction, LINEAR, Limits, Linked, Machine, Packet};

/// The result of a helper with the context and constants in r2 and r4, and the packet behind it.
fn called(helper: Helper, second: i32, packet: &mut Packet) -> i32 {
    run(vec![mov_imm(2, second), call(helper), exit()], packet)
}

fn run(slots: Vec<Instruction>, packet: &mut Packet) -> i32 {
    let mut machine = Machine::empty(Limits::default());
    let number = machine.add_program(Linked::of_slots("test", slots).unwrap());
    machine.run(number, packet).unwrap().value as i32
}

fn packet(length: usize) -> Packet {
    let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
    Packet::new(&bytes, 0).unwrap()
}

#[test]
fn packets_have_at_least_an_ethernet_header() {
    assert_eq!(Packet::new(&[0; 13], 0).unwrap_err(), Errno::EINVAL);
    assert!(Packet::new(&[0; 14], 0).is_ok());
    assert_eq!(Packet::new(&[0; 17], 4).unwrap_err(), Errno::EINVAL);
    assert!(Packet::new(&[0; 18], 4).is_ok());
    assert!(Packet::new(&[0; 400], 216).is_ok());
    assert_eq!(Packet::new(&[0; 400], 220).unwrap_err(), Errno::EINVAL);
    assert_eq!(Packet::new(&[0; 400], 6).unwrap_err(), Errno::EINVAL);
    assert_eq!(Packet::new(&[0; 131_072], 0).unwrap_err(), Errno::ENOMEM);
}

#[test]
fn the_head_moves_between_the_frame_record_and_the_last_header() {
    for (delta, result, length) in [(-216, 0, 276), (-217, -22, 60), (46, 0, 14), (47, -22, 60)] {
        let mut packet = packet(60);
        assert_eq!(called(Helper::AdjustHead, delta, &mut packet), result, "{delta}");
        assert_eq!(packet.length(), length);
    }
}

#[test]
fn bytes_that_the_head_left_come_back() {
    let mut packet = packet(60);
    called(Helper::AdjustHead, 14, &mut packet);
    called(Helper::AdjustHead, -14, &mut packet);
    assert_eq!(packet.bytes(), (0..60).collect::<Vec<u8>>());
}

#[test]
fn metadata_moves_with_the_head() {
    let mut packet = Packet::new(&(0..64).collect::<Vec<u8>>(), 4).unwrap();
    called(Helper::AdjustHead, 10, &mut packet);
    assert_eq!(packet.bytes()[..6], [0, 1, 2, 3, 14, 15]);
    assert_eq!((packet.metadata(), packet.length()), (4, 50));
}

#[test]
fn metadata_is_aligned_and_in_front_of_the_packet() {
    for (delta, result) in [(-4, 0), (-216, 0), (-220, -22), (-3, -13), (4, -22), (0, 0)] {
        assert_eq!(called(Helper::AdjustMeta, delta, &mut packet(60)), result, "{delta}");
    }
}

#[test]
fn the_tail_moves_and_clears_new_bytes() {
    for (delta, result) in [(-46, 0), (-47, -22), (LINEAR as i32 - 60, 0), (LINEAR as i32 - 59, -22)] {
        assert_eq!(called(Helper::AdjustTail, delta, &mut packet(60)), result, "{delta}");
    }
    let mut packet = packet(60);
    called(Helper::AdjustTail, -20, &mut packet);
    called(Helper::AdjustTail, 10, &mut packet);
    assert_eq!(packet.bytes()[38..], [38, 39, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn the_last_fragment_grows_to_a_page() {
    for (delta, result, length) in
        [(2616, 0, 7616), (2617, -22, 5000), (-1480, 0, 3520), (-4986, 0, 14), (-4987, -22, 5000)]
    {
        let mut packet = packet(5000);
        assert_eq!(called(Helper::AdjustTail, delta, &mut packet), result, "{delta}");
        assert_eq!(packet.length(), length);
    }
}

#[test]
fn bytes_are_loaded_and_stored_over_fragments() {
    let mut packet = packet(5000);
    let move_bytes = |helper, offset| {
        vec![
            store_imm(DW, 10, -8, -1),
            mov_imm(2, offset),
            mov(3, 10),
            alu64_imm(ADD, 3, -8),
            mov_imm(4, 8),
            call(helper),
            jump_imm(JNE, 0, 0, 1),
            load(W, 0, 10, -8),
            exit(),
        ]
    };
    let expected =
        i32::from_le_bytes([(3516 % 256) as u8, (3517 % 256) as u8, (3518 % 256) as u8, (3519 % 256) as u8]);
    assert_eq!(run(move_bytes(Helper::LoadBytes, 3516), &mut packet), expected);
    assert_eq!(run(move_bytes(Helper::LoadBytes, 4993), &mut packet), -22);
    assert_eq!(run(move_bytes(Helper::LoadBytes, 70_000), &mut packet), -14);
    run(move_bytes(Helper::StoreBytes, 3516), &mut packet);
    assert_eq!(packet.bytes()[3515..3525], [187, 255, 255, 255, 255, 255, 255, 255, 255, 196]);
}

#[test]
fn sums_are_folded_to_16_bits() {
    let sum = |from: i32, to: i32, seed: u32| {
        let mut slots =
            vec![store_imm(DW, 10, -8, 0x0403_0201), mov(1, 10), alu64_imm(ADD, 1, -8), mov_imm(2, from)];
        slots.extend([mov(3, 1), mov_imm(4, to)]);
        slots.extend(constant(5, u64::from(seed)));
        slots.extend([call(Helper::CsumDiff), exit()]);
        run(slots, &mut packet(60))
    };
    assert_eq!(sum(0, 0, 0x12345), 0x2346);
    assert_eq!(sum(0, 0, 0xffff_ffff), 0xffff);
    assert_eq!(sum(4, 4, 0), 0xffff);
    assert_eq!(sum(4, 4, 7), 7);
    assert_eq!(sum(0, 4, 0), 0x0201 + 0x0403);
    assert_eq!(sum(4, 0, 0), 0xffff - (0x0201 + 0x0403));
}

#[test]
fn loops_end_at_their_count_their_callback_or_their_limit() {
    // A callback that ends the loop at index 5.
    let looped = |count: u32, flags| {
        let mut slots = constant(1, u64::from(count)).to_vec();
        slots.extend(function(2, 5));
        slots.extend([mov_imm(3, 0), mov_imm(4, flags), call(Helper::Loop), exit()]);
        slots.extend([mov_imm(0, 0), jump_imm(JNE, 1, 5, 1), mov_imm(0, 1), exit()]);
        run(slots, &mut packet(60))
    };
    assert_eq!(looped(0, 0), 0);
    assert_eq!(looped(3, 0), 3);
    assert_eq!(looped(100, 0), 6);
    assert_eq!(looped(3, 1), -22);
    assert_eq!(looped(8_388_609, 0), -7);
}

#[test]
fn tail_calls_end_at_33() {
    let mut machine = Machine::empty(Limits::default());
    let programs = nicety_ebpf::MapDefinition {
        name: "programs".to_owned(),
        kind: 3,
        key_size: 4,
        value_size: 4,
        max_entries: 2,
        ..Default::default()
    };
    machine.add_map(&programs).unwrap();
    // Counts its runs in metadata, which a tail call keeps.
    let mut slots = vec![
        mov(6, 1),
        load(W, 2, 6, 8),
        load(W, 3, 2, 0),
        alu64_imm(ADD, 3, 1),
        store(W, 2, 0, 3),
        mov(1, 6),
    ];
    slots.extend(map(2, 0));
    slots.extend([mov_imm(3, 1), call(Helper::TailCall), mov_imm(0, 9), exit()]);
    let number = machine.add_program(Linked::of_slots("test", slots).unwrap());
    machine.maps[0].set_map(&1u32.to_ne_bytes(), number as u32).unwrap();
    let mut packet = Packet::new(&[0; 64], 4).unwrap();
    assert_eq!(machine.run(number, &mut packet).unwrap().value, 9);
    assert_eq!(packet.bytes()[0], 34);
}

#[test]
fn prints_are_formatted_as_in_the_kernel() {
    let text = b"%d %u %llx\0";
    let mut slots: Vec<Instruction> = Vec::new();
    let mut padded = text.to_vec();
    padded.resize(16, 0);
    for (at, word) in padded.chunks(8).enumerate() {
        slots.extend(constant(1, u64::from_le_bytes(word.try_into().unwrap())));
        slots.push(store(DW, 10, 8 * at as i16 - 16, 1));
    }
    slots.extend([
        mov(1, 10),
        alu64_imm(ADD, 1, -16),
        mov_imm(2, text.len() as i32),
        mov_imm(3, -5),
        mov_imm(4, -1),
    ]);
    slots.extend(constant(5, 0x00de_adbe_ef00));
    slots.extend([call(Helper::TracePrintk), exit()]);
    let mut machine = Machine::empty(Limits::default());
    let number = machine.add_program(Linked::of_slots("test", slots).unwrap());
    let outcome = machine.run(number, &mut packet(60)).unwrap();
    assert_eq!(outcome.printed, ["-5 4294967295 deadbeef00"]);
    assert_eq!(outcome.value as usize, outcome.printed[0].len());
}
