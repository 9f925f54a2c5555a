//! The order of a program's code, and programs that are a card's frame handler themselves.

use super::build::options;
use nicety_ebpf::asm::*;
use nicety_ebpf::translate::{Options, Translation, programs};
use nicety_ebpf::{Helper, Instruction, Linked};

/// Unsigned greater or equal.
const JGE: u8 = 0x30;

/// Drops packets below 14 bytes, and passes the others; `between` is in front of the test.
fn bounded(between: &[Instruction]) -> Vec<Instruction> {
    let mut slots = between.to_vec();
    slots.extend([load(W, 2, 1, 4), load(W, 1, 1, 0), mov(3, 1), alu64_imm(ADD, 3, 14), jump(JGE, 2, 3, 2)]);
    slots.extend([mov_imm(0, 1), exit(), load(B, 4, 1, 0), mov_imm(0, 2), jump_imm(JEQ, 4, 7, 1)]);
    slots.extend([mov_imm(0, 3), exit()]);
    slots
}

fn translated(slots: Vec<Instruction>) -> Translation {
    let options = Options { frames: true, ..options("rv64imac_zicsr", true) };
    programs(&[], &[Linked::of_slots("test", slots).unwrap()], &options).unwrap()
}

#[test]
fn an_early_end_is_behind_the_usual_path() {
    let text = translated(bounded(&[])).assembly;
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in\n{text}"));
    // The destination of a dropped frame is 0.
    assert!(at("lbu ") < at("li a0, 0\n"), "{text}");
    // The usual path takes no jump to there.
    assert!(text.contains("bltu a1, a2") || text.contains("bltu a2, a1"), "{text}");
}

#[test]
fn a_program_with_a_use_of_its_context_gets_one() {
    assert!(translated(bounded(&[])).direct);
    assert!(translated(bounded(&[mov(6, 1), call(Helper::Cpu), mov(1, 6)])).direct);
    let uses: [&[Instruction]; 5] = [
        &[load(W, 5, 1, 12)],
        &[load(W, 5, 1, 8)],
        &[store(DW, 10, -8, 1)],
        &[mov(6, 1), mov_imm(2, -20), call(Helper::AdjustHead), mov(1, 6)],
        &[mov(6, 1), mov(2, 1), alu64_imm(ADD, 2, 4), load(W, 5, 2, 0), mov(1, 6)],
    ];
    for before in uses {
        assert!(!translated(bounded(before)).direct, "{before:?}");
    }
}
