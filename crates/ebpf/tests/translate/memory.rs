//! Places on the stack, stores of a number's bytes in a row, and sums in place, beside the interpreter.

use super::build::options;
use super::edges::Blocks;
use nicety_ebpf::asm::*;
use nicety_ebpf::translate::programs;
use nicety_ebpf::{Helper, Instruction, Linked};

/// A place of a packet behind the operands, which no result has before its own store.
const AT: i16 = 16 + 8 * 39;

/// The assembly of a program with the packet at r7, and numbers of it in r1 and r2.
fn assembly(isa: &str, code: &[Instruction]) -> String {
    let mut slots = vec![mov(6, 1), load(W, 7, 6, 0), load(DW, 1, 7, 0), load(DW, 2, 7, 8)];
    slots.extend(code);
    slots.extend([mov_imm(0, 0), exit()]);
    let linked = Linked::of_slots("test", slots).unwrap();
    programs(&[], &[linked], &options(isa, true)).unwrap().assembly
}

#[test]
fn the_stack_keeps_values() {
    let mut blocks = Blocks::new();
    let kept = [store(DW, 10, -16, 1)];
    let cases: [&[Instruction]; 8] = [
        &[],
        &[alu64_imm(ADD, 1, 1)],
        &[mov(3, 1), mov_imm(1, 7)],
        // Each byte of the place.
        &[store_imm(B, 10, -9, 5)],
        &[store(W, 10, -20, 2), store(H, 10, -8, 2)],
        &[store(DW, 10, -12, 2)],
        // By a pointer with a distance of data.
        &[mov(4, 2), alu64_imm(AND, 4, 7), mov(3, 10), alu64(ADD, 3, 4), store_imm(B, 3, -16, 9)],
        &[mov(3, 10), mov_imm(4, 3), store(DW, 3, -24, 4), atomic(DW, 0, 3, -16, 4)],
    ];
    for between in cases {
        for (size, at) in [(DW, -16), (W, -16), (W, -12), (B, -9)] {
            let code = [&kept, between, &[load(size, 0, 10, at)]].concat();
            blocks.add((DW, DW), &code, 0, false);
        }
    }
    // Two ways with other values, and with the same one.
    for second in [5, 6] {
        let ways = [
            store_imm(DW, 10, -8, 5),
            jump_imm(JGT, 2, 7, 1),
            store_imm(DW, 10, -8, second),
            load(DW, 0, 10, -8),
            alu64(ADD, 0, 1),
        ];
        blocks.add((DW, DW), &ways, 0, false);
    }
    blocks.compare();
}

#[test]
fn bytes_of_a_number_are_stored_at_once() {
    let down = |by: i32| alu64_imm(RSH, 3, by);
    let byte = |at: i16| store(B, 7, AT + at, 3);
    let bytes = |order: [i16; 4]| {
        let code =
            order.iter().flat_map(move |&at| [mov(3, 1), alu64_imm(RSH, 3, 8 * i32::from(at)), byte(at)]);
        code.collect::<Vec<_>>()
    };
    let row = [mov(3, 1), byte(0), down(8), byte(1), down(8), byte(2), down(8), byte(3)].to_vec();
    let cases: Vec<Vec<Instruction>> = vec![
        row.clone(),
        bytes([2, 3, 0, 1]),
        bytes([3, 2, 1, 0]),
        [mov(3, 1), byte(0), down(8), byte(1), down(8), store(H, 7, AT + 2, 3)].to_vec(),
        // A shift of 32 bits gives zeros above.
        [mov(3, 1), byte(0), alu32_imm(RSH, 3, 24), byte(3), alu32_imm(RSH, 3, 8), byte(4)].to_vec(),
        [row.clone(), vec![down(8), byte(4), down(8), byte(5), down(8), byte(6), down(8), byte(7)]].concat(),
    ];
    let between: [&[Instruction]; 4] = [
        &[store(B, 7, AT + 1, 2)],
        &[load(B, 4, 7, AT + 1), store(B, 7, AT + 8 - 1, 4)],
        &[mov(4, 7), store(B, 4, AT + 1, 2)],
        &[alu64_imm(XOR, 1, -1), alu64_imm(XOR, 3, 0x55)],
    ];
    let mut blocks = Blocks::new();
    for case in &cases {
        blocks.add((DW, DW), &[&case[..], &[load(DW, 0, 7, AT)]].concat(), 0, false);
        for others in between {
            let code = [&case[..3], others, &case[3..], &[load(DW, 0, 7, AT)]].concat();
            blocks.add((DW, DW), &code, 0, false);
        }
    }
    blocks.compare();
    for isa in ["rv32imac_zicsr", "rv64imac_zicsr"] {
        for case in &cases[..4] {
            let text = assembly(isa, case);
            let count = |name: &str| text.matches(&format!("\t{name} a")).count();
            assert_eq!((count("sb"), count("sh"), count("sw")), (0, 0, 1), "{text}");
        }
        // Not where another store has a byte of the row.
        let text = assembly(isa, &[&row[..3], between[0], &row[3..]].concat());
        assert!(!text.contains("\tsw a"), "{text}");
    }
}

#[test]
fn a_pointer_on_the_stack_keeps_its_memory() {
    // Six bytes of the packet to the stack, by a pointer that was kept there.
    let row = (0..6).rev().flat_map(|at| [load(B, 4, 3, at), store(B, 10, at - 24, 4)]);
    let mut code = vec![store(DW, 10, -8, 7), call(Helper::Cpu), load(DW, 3, 10, -8)];
    code.extend(row);
    for isa in ["rv32imac_zicsr", "rv64imac_zicsr"] {
        let text = assembly(isa, &code);
        assert!(!text.contains("\tlbu "), "{text}");
        // Another store there makes it unknown.
        let mut other = code.clone();
        other.insert(1, store(B, 10, -5, 1));
        assert!(assembly(isa, &other).contains("\tlbu "), "{isa}");
    }
}

#[test]
fn sums_of_few_bytes_are_in_place() {
    let mut blocks = Blocks::new();
    let sum = |at: i32, bytes: i32, seed: Instruction| {
        let code = [seed, mov_imm(1, 0), mov_imm(2, 0), mov(3, 7), alu64_imm(ADD, 3, at), mov_imm(4, bytes)];
        [&code[..], &[call(Helper::CsumDiff)]].concat()
    };
    for bytes in [4, 8, 12, 16, 20, 40] {
        for at in [0, 1, 4] {
            for seed in [mov_imm(5, 0), mov_imm(5, -1), mov(5, 2)] {
                blocks.add((DW, DW), &sum(at, bytes, seed), 0, bytes == 8);
            }
        }
    }
    blocks.compare_on(&[("rv32imac_zicsr", true), ("rv64imac_zicsr", true)]);
    let text = assembly("rv64imac_zicsr", &sum(0, 40, mov_imm(5, 0)));
    assert!(!text.contains("call"), "{text}");
    for bytes in [44, 6] {
        assert!(assembly("rv64imac_zicsr", &sum(0, bytes, mov_imm(5, 0))).contains("csum_diff"), "{bytes}");
    }
}
