//! Accesses that Linux's verifier refuses for certain. The kernel refuses these programs, where it can be asked.

use crate::maps::definition;
use nicety_ebpf::asm::*;
use nicety_ebpf::translate::check_verified;
use nicety_ebpf::{Helper, Instruction, Linked, MapDefinition, MapKind};

/// A hash with values of 8 bytes.
pub(crate) fn hash() -> MapDefinition {
    definition(MapKind::Hash, 4, 8, 4, 0)
}

/// Puts `data` into r2, and goes on where 14 bytes are there.
fn compared() -> Vec<Instruction> {
    vec![
        load(W, 2, 1, 0),
        load(W, 3, 1, 4),
        mov(4, 2),
        alu64_imm(ADD, 4, 14),
        jump(JGT, 4, 3, 1),
        goto(2),
        mov_imm(0, 1),
        exit(),
    ]
}

fn lookup() -> Vec<Instruction> {
    let [low, high] = map(1, 0);
    vec![store_imm(W, 10, -4, 1), mov(2, 10), alu64_imm(ADD, 2, -4), low, high, call(Helper::MapLookup)]
}

/// Programs that both refuse, with a part of the reason.
pub(crate) fn refused() -> Vec<(Vec<Instruction>, &'static str)> {
    let found = [lookup(), vec![jump_imm(JNE, 0, 0, 2), mov_imm(0, 1), exit()]].concat();
    let after = |first: Vec<Instruction>, rest: &[Instruction]| [&first[..], rest].concat();
    let ends = |first: &[Instruction]| [first, &[mov_imm(0, 1), exit()]].concat();
    vec![
        (vec![load(W, 2, 1, 0), load(B, 0, 2, 12), exit()], "without a comparison with data_end"),
        (after(compared(), &[load(B, 0, 2, 20), exit()]), "at byte 20 of the packet"),
        (after(compared(), &[load(B, 0, 2, -1), exit()]), "before the packet"),
        (after(compared(), &[load(DW, 0, 2, 8), exit()]), "at byte 8 of the packet"),
        (after(compared(), &[load(B, 0, 3, 0), exit()]), "at data_end"),
        (ends(&[store_imm(DW, 10, -520, 0)]), "at r10-520, outside the stack"),
        (ends(&[store_imm(DW, 10, 0, 0)]), "at r10+0, outside the stack"),
        (ends(&[store_imm(W, 1, 0, 0)]), "of the context, which programs may only read"),
        (vec![load(H, 0, 1, 12), exit()], "2 bytes at byte 12 of the context"),
        (vec![load(W, 0, 1, 24), exit()], "4 bytes at byte 24 of the context"),
        (vec![load(W, 0, 1, 20), exit()], "4 bytes at byte 20 of the context"),
        (vec![mov(0, 5), exit()], "reads a register without a value"),
        (vec![exit()], "reads a register without a value"),
        (after(lookup(), &[mov(0, 2), exit()]), "reads a register without a value"),
        (vec![mov_imm(2, 4096), load(W, 0, 2, 0), exit()], "at a number, not at a pointer"),
        (after(lookup(), &[load(DW, 0, 0, 0), exit()]), "at a lookup's result, which may be 0"),
        (after(found.clone(), &[load(DW, 0, 0, 8), exit()]), "at byte 8 of a memory of 8 bytes"),
        (after(found, &[load(W, 0, 0, -4), exit()]), "at byte -4 of a memory of 8 bytes"),
    ]
}

/// Programs that both take, although the same access on another way would be refused.
pub(crate) fn taken() -> Vec<Vec<Instruction>> {
    let first = [load(B, 5, 2, 0), jump_imm(JEQ, 5, 7, 1)];
    let moved = [compared(), vec![alu64_imm(ADD, 2, 13), load(B, 0, 2, 0), exit()]].concat();
    let either = [
        compared(),
        first.to_vec(),
        vec![
            mov(2, 10),
            store_imm(DW, 10, -8, 1),
            mov(4, 10),
            alu64_imm(ADD, 4, -8),
            load(DW, 0, 4, 0),
            exit(),
        ],
    ];
    let tested = [lookup(), vec![jump_imm(JEQ, 0, 0, 2), load(DW, 0, 0, 0), exit(), mov_imm(0, 1), exit()]];
    let copied =
        [lookup(), vec![mov(6, 0), jump_imm(JNE, 0, 0, 2), mov_imm(0, 1), exit(), load(DW, 0, 6, 0), exit()]];
    vec![moved, either.concat(), tested.concat(), copied.concat()]
}

#[test]
fn certain_errors_have_their_reasons() {
    for (slots, reason) in refused() {
        let linked = Linked::of_slots("test", slots).unwrap();
        let error = check_verified(&linked, &[hash()]).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}; {reason}");
        assert!(error.contains("program test, instruction ") && error.contains("--unverified"), "{error}");
    }
}

#[test]
fn one_way_with_a_comparison_is_enough() {
    for slots in taken() {
        check_verified(&Linked::of_slots("test", slots).unwrap(), &[hash()]).unwrap();
    }
}
