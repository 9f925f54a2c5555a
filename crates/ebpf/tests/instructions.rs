//! Instructions by their results and by their refusals. The comparison with a kernel has them in random programs.

use nicety_ebpf::asm::*;
use nicety_ebpf::instruction::{ALU32, ALU64, CALL, JMP, JMP32, LD, LDX, MODE_ABS, MODE_SIGNED, REGISTER};
use nicety_ebpf::{Helper, Instruction, Limits, Linked, Machine, Packet, TrapKind, decode};

/// The result of a program without maps.
fn run(slots: &[Instruction]) -> u32 {
    outcome(slots).unwrap().value
}

fn outcome(slots: &[Instruction]) -> Result<nicety_ebpf::Outcome, nicety_ebpf::Trap> {
    let mut machine = Machine::empty(Limits { instructions: 1000, ..Limits::default() });
    let number = machine.add_program(Linked::of_slots("test", slots.to_vec()).unwrap());
    machine.run(number, &mut Packet::new(&[7; 64], 0).unwrap())
}

/// The result of one instruction on r0, with r1 as its other operand; its upper half where `upper`.
fn on(a: u64, b: u64, slot: Instruction, upper: bool) -> u32 {
    let mut slots = [constant(0, a), constant(1, b)].concat();
    slots.push(slot);
    if upper {
        slots.push(alu64_imm(RSH, 0, 32));
    }
    slots.push(exit());
    run(&slots)
}

fn slot(code: u8, dst: u8, src: u8, offset: i16, imm: i32) -> Instruction {
    Instruction { code, dst, src, offset, imm }
}

#[test]
fn division_by_zero_gives_zero_and_the_remainder_gives_the_dividend() {
    assert_eq!(on(9, 0, alu64(DIV, 0, 1), false), 0);
    assert_eq!(on(9, 0, alu64(MOD, 0, 1), false), 9);
    // 32-bit forms clear the upper half, also of a dividend.
    assert_eq!(on(0xffff_ffff_0000_0009, 0, alu32(MOD, 0, 1), true), 0);
    assert_eq!(on(0xffff_ffff_0000_0009, 0, alu64(MOD, 0, 1), true), 0xffff_ffff);
}

#[test]
fn signed_division_wraps_at_the_minimum() {
    let signed = |class, operation| slot(class | REGISTER | operation, 0, 1, 1, 0);
    let minimum = i64::MIN as u64;
    assert_eq!(on(minimum, u64::MAX, signed(ALU64, DIV), true), 0x8000_0000);
    assert_eq!(on(minimum, u64::MAX, signed(ALU64, MOD), false), 0);
    assert_eq!(on(-7i64 as u64, 2, signed(ALU64, MOD), false), u32::MAX);
    assert_eq!(on(-7i32 as u32 as u64, 2, signed(ALU32, DIV), false), -3i32 as u32);
}

#[test]
fn shifts_use_the_low_bits_of_a_register() {
    assert_eq!(on(1, 65, alu64(LSH, 0, 1), false), 2);
    assert_eq!(on(1, 33, alu32(LSH, 0, 1), false), 2);
    assert_eq!(on(0x8000_0000, 31, alu32(ARSH, 0, 1), false), u32::MAX);
}

#[test]
fn constants_extend_their_sign_in_64_bits_only() {
    assert_eq!(on(0, 0, alu64_imm(ADD, 0, -1), true), u32::MAX);
    assert_eq!(on(0, 0, alu32_imm(ADD, 0, -1), true), 0);
    let jumps =
        |code| run(&[mov_imm(1, -1), slot(code, 1, 0, 2, -1), mov_imm(0, 1), exit(), mov_imm(0, 2), exit()]);
    assert_eq!(jumps(JMP | JEQ), 2);
    assert_eq!(jumps(JMP32 | JEQ), 2);
}

#[test]
fn byte_orders_clear_the_other_bytes() {
    let value = 0x1122_3344_5566_7788;
    assert_eq!(on(value, 0, slot(ALU32 | 0xd8, 0, 0, 0, 16), false), 0x8877);
    assert_eq!(on(value, 0, slot(ALU32 | 0xd0, 0, 0, 0, 16), false), 0x7788);
    assert_eq!(on(value, 0, slot(ALU32 | 0xd8, 0, 0, 0, 32), true), 0);
    assert_eq!(on(value, 0, slot(ALU64 | 0xd0, 0, 0, 0, 64), false), 0x4433_2211);
}

#[test]
fn loads_and_moves_extend_signs() {
    let slots = [
        store_imm(DW, 10, -8, 0x80),
        slot(LDX | MODE_SIGNED | B, 0, 10, -8, 0),
        alu64_imm(RSH, 0, 32),
        exit(),
    ];
    assert_eq!(run(&slots), u32::MAX);
    assert_eq!(on(0, 0x8000, slot(ALU64 | REGISTER | MOV, 0, 1, 16, 0), true), u32::MAX);
    assert_eq!(on(0, 0x8000, slot(ALU32 | REGISTER | MOV, 0, 1, 16, 0), true), 0);
}

#[test]
fn atomic_operations_give_the_old_value() {
    let slots = |operation, r0: i32| {
        [
            store_imm(DW, 10, -8, 5),
            mov_imm(0, r0),
            mov_imm(1, 9),
            atomic(DW, operation, 10, -8, 1),
            load(DW, 2, 10, -8),
            alu64_imm(LSH, 1, 8),
            alu64_imm(LSH, 2, 16),
            alu64(ADD, 0, 1),
            alu64(ADD, 0, 2),
            exit(),
        ]
    };
    assert_eq!(run(&slots(0x01, 0)), 0x0e_05_00);
    assert_eq!(run(&slots(0x00, 0)), 0x0e_09_00);
    assert_eq!(run(&slots(0xe1, 0)), 0x09_05_00);
    assert_eq!(run(&slots(0xf1, 5)), 0x09_09_05);
    assert_eq!(run(&slots(0xf1, 4)), 0x05_09_05);
}

#[test]
fn long_jumps_have_32_bit_distances() {
    let mut slots = vec![slot(JMP32, 0, 0, 0, 40_000), exit()];
    slots.extend((0..39_999).map(|_| mov_imm(0, 1)));
    slots.extend([mov_imm(0, 2), exit()]);
    assert_eq!(run(&slots), 2);
}

#[test]
fn functions_keep_the_callers_registers_and_have_their_own_stacks() {
    let slots = [
        mov_imm(6, 3),
        store_imm(DW, 10, -8, 30),
        mov_imm(1, 4),
        call_local(4),
        load(DW, 1, 10, -8),
        alu64(ADD, 0, 1),
        alu64(ADD, 0, 6),
        exit(),
        mov_imm(6, 1000),
        store_imm(DW, 10, -8, 1000),
        mov(0, 1),
        exit(),
    ];
    assert_eq!(run(&slots), 37);
}

#[test]
fn calls_end_at_eight_frames() {
    // A function that calls itself as often as r1 says.
    let nested = |count| {
        [
            mov_imm(1, count),
            call_local(1),
            exit(),
            mov_imm(0, 7),
            jump_imm(JEQ, 1, 0, 2),
            alu64_imm(SUB, 1, 1),
            call_local(-4),
            exit(),
        ]
    };
    assert_eq!(run(&nested(6)), 7);
    let trap = outcome(&nested(7)).unwrap_err();
    assert_eq!(trap.kind, TrapKind::Depth);
}

#[test]
fn the_budget_ends_an_endless_program() {
    let trap = outcome(&[mov_imm(0, 1), goto(-2), exit()]).unwrap_err();
    assert_eq!(trap.kind, TrapKind::Budget);
    assert!(trap.to_string().contains("the budget of 1000 instructions is used up"), "{trap}");
}

#[test]
fn accesses_outside_memory_trap_with_their_place() {
    let cases = [
        (load(B, 0, 10, 0), "reads 1 bytes at r10+0 of frame 0"),
        (load(B, 0, 10, -513), "reads 1 bytes at r10-513 of frame 0"),
        (store(DW, 10, -4, 1), "writes 8 bytes at r10-4 of frame 0"),
        (load(W, 0, 1, 24), "reads 4 bytes at byte 24 of the context"),
        (load(DW, 0, 1, 0), "reads 8 bytes at byte 0 of the context"),
        (store(W, 1, 0, 1), "writes 4 bytes at byte 0 of the context"),
        (load(B, 0, 3, 8), "the null pointer plus 8"),
    ];
    for (slot, expected) in cases {
        let trap = outcome(&[mov_imm(3, 0), slot, mov_imm(0, 0), exit()]).unwrap_err();
        assert_eq!(trap.kind, TrapKind::Access);
        assert!(trap.to_string().contains(expected), "{trap}");
        assert!(trap.to_string().starts_with("program test, instruction 1: "), "{trap}");
    }
}

#[test]
fn packets_are_readable_between_data_and_data_end_alone() {
    let at = |offset| [load(W, 2, 1, 0), load(B, 0, 2, offset), exit()];
    assert_eq!(run(&at(63)), 7);
    let trap = outcome(&at(64)).unwrap_err();
    assert!(trap.to_string().contains("byte 64 of a packet with 64 bytes in reach"), "{trap}");
    assert!(outcome(&at(-1)).is_err());
}

#[test]
fn forms_that_linux_refuses_are_refused_with_advice() {
    let refused = [
        (vec![], "the program is empty"),
        (vec![mov_imm(0, 0)], "no exit or jump"),
        (vec![slot(0xff, 0, 0, 0, 0), exit()], "unknown code 0xff"),
        (vec![slot(LD | MODE_ABS | W, 0, 0, 0, 12), exit()], "legacy load from the packet"),
        (vec![mov_imm(10, 0), exit()], "changes r10"),
        (vec![mov_imm(11, 0), exit()], "register r11"),
        (vec![goto(5), exit()], "a jump to 6, outside the program; jump to 0 to 1"),
        (vec![goto(1), constant(0, 1)[0], constant(0, 1)[1], exit()], "a jump into the constant"),
        (vec![alu64_imm(DIV, 0, 0), exit()], "division by the constant 0"),
        (vec![alu32_imm(LSH, 0, 32), exit()], "a shift by 32"),
        (vec![slot(ALU64 | ADD, 0, 3, 0, 1), exit()], "unused field"),
        (vec![slot(ALU32 | REGISTER | MOV, 0, 1, 32, 0), exit()], "extends 32 bits"),
        (vec![atomic(B, 0, 10, -8, 1), exit()], "atomic operation on 1 bytes"),
        (vec![atomic(DW, 0x33, 10, -8, 1), exit()], "unknown atomic operation 0x33"),
        (vec![slot(CALL | REGISTER, 0, 0, 0, 0), exit()], "call through a register"),
        (vec![slot(CALL, 0, 2, 0, 5), exit()], "kernel function"),
        (vec![constant(0, 1)[0]], "lacks its second slot"),
    ];
    for (slots, expected) in refused {
        let error = decode(&slots).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("; "), "no advice: {error}");
    }
}

#[test]
fn a_helper_that_is_unknown_traps_where_it_is_called() {
    let trap = outcome(&[slot(CALL, 0, 0, 0, 4), exit()]).unwrap_err();
    assert!(trap.to_string().contains("helper 4 (probe_read)"), "{trap}");
    assert_eq!(Helper::MapLookup.name(), "bpf_map_lookup_elem");
}

#[test]
fn budgets_are_exact() {
    // One, three in each of 100 rounds, and two.
    let slots = [
        mov_imm(1, 100),
        mov_imm(2, 1),
        alu64_imm(SUB, 1, 1),
        jump_imm(JNE, 1, 0, -3),
        mov_imm(0, 7),
        exit(),
    ];
    let run = |instructions| {
        let mut machine = Machine::empty(Limits { instructions, ..Limits::default() });
        let number = machine.add_program(Linked::of_slots("test", slots.to_vec()).unwrap());
        machine.run(number, &mut Packet::new(&[7; 64], 0).unwrap())
    };
    let outcome = run(303).unwrap();
    assert_eq!((outcome.value, outcome.instructions), (7, 303));
    for (budget, place) in [(302, 5), (301, 4), (300, 3), (299, 2), (298, 1), (0, 0)] {
        let trap = run(budget).unwrap_err();
        assert_eq!((trap.kind, trap.place), (TrapKind::Budget, format!("program test, instruction {place}")));
    }
}

/// A function is replaced by the program itself, and the result goes to the caller of the function.
pub(crate) fn tail_call_of_a_function(programs: u32) -> Vec<Instruction> {
    let mut slots = vec![
        mov(6, 1),
        load(W, 7, 6, 0),
        load(B, 2, 7, 0),
        jump_imm(JEQ, 2, 0, 2),
        mov_imm(0, 5),
        exit(),
        store_imm(B, 7, 0, 1),
        mov(1, 6),
        mov_imm(9, 1000),
        call_local(3),
        alu64(ADD, 0, 9),
        alu64_imm(ADD, 0, 7),
        exit(),
    ];
    slots.extend(map(2, programs));
    slots.extend([mov_imm(9, 0), mov_imm(3, 1), call(Helper::TailCall), mov_imm(0, 1), exit()]);
    slots
}

#[test]
fn a_tail_call_of_a_function_returns_to_its_caller() {
    let mut machine = Machine::empty(Limits::default());
    let number = machine.add_program(Linked::of_slots("test", tail_call_of_a_function(0)).unwrap());
    let kind = nicety_ebpf::MapKind::Programs as u32;
    let definition = nicety_ebpf::MapDefinition {
        name: "programs".to_owned(),
        kind,
        key_size: 4,
        value_size: 4,
        max_entries: 4,
        ..nicety_ebpf::MapDefinition::default()
    };
    machine.add_map(&definition).unwrap();
    machine.maps[0].set_map(&1u32.to_ne_bytes(), number as u32).unwrap();
    let mut packet = Packet::new(&[0; 64], 0).unwrap();
    assert_eq!(machine.run(number, &mut packet).unwrap().value, 1012);
}
