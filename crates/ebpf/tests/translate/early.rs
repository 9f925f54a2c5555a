//! The order and the length of a program's code, and programs that are a card's frame handler themselves.

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
    let moved = [mov(6, 1), mov_imm(2, -20), call(Helper::AdjustHead), mov(1, 6)];
    for field in (0..24).step_by(4) {
        assert!(translated(bounded(&[load(W, 5, 1, field)])).direct, "{field}");
    }
    assert!(translated(bounded(&moved)).direct);
    // One way has the context and the other a number, which no step tells apart.
    let joined = [mov(6, 1), load(W, 2, 1, 16), jump_imm(JEQ, 2, 0, 1), mov_imm(6, 0)];
    let uses: [&[Instruction]; 6] = [
        &[load(H, 5, 1, 0)],
        &[store(DW, 10, -8, 1)],
        &[moved, moved].concat(),
        &[mov(6, 1), mov_imm(2, -4), call(Helper::AdjustMeta), mov(1, 6)],
        &[mov(6, 1), mov(2, 1), alu64_imm(ADD, 2, 4), load(W, 5, 2, 0), mov(1, 6)],
        &[&joined[..], &[jump_imm(JEQ, 6, 0, 1), load(W, 5, 6, 0)]].concat(),
    ];
    for before in uses {
        assert!(!translated(bounded(before)).direct, "{before:?}");
    }
    // The same without a later use.
    assert!(translated(bounded(&joined)).direct);
}

#[test]
fn a_known_move_of_the_first_byte_is_a_command() {
    let moved =
        |by: i32| translated(bounded(&[mov(6, 1), mov_imm(2, by), call(Helper::AdjustHead), mov(1, 6)]));
    let text = moved(-64).assembly;
    assert!(text.contains("li a0, 64\n") && text.contains("\tecall\n"), "{text}");
    assert!(!text.contains("adjust_head"), "{text}");
    // The headroom has 64 bytes, and the length of a packet is not known.
    for by in [-65, 1] {
        assert!(moved(by).assembly.contains("call nicety_frame_adjust_head\n"), "{by}");
    }
}

#[test]
fn bytes_between_two_memories_are_copied_as_words() {
    let row = |to: u8| (0..6).rev().flat_map(move |at| [load(B, 4, 1, at), store(B, to, at - 8, 4)]);
    let copies: Vec<Instruction> = [mov(3, 1)].into_iter().chain(row(10)).collect();
    let text = translated(bounded_packet(&copies)).assembly;
    let count = |name: &str| text.matches(&format!("\t{name} ")).count();
    assert_eq!((count("lbu"), count("sb")), (0, 0), "{text}");
    assert_eq!((count("lhu"), count("sh")), (1, 1), "{text}");
    // Bytes of one packet may overlap.
    let text =
        translated(bounded_packet(&[mov(3, 1)].into_iter().chain(row(3)).collect::<Vec<_>>())).assembly;
    assert_eq!(text.matches("\tsb ").count(), 6, "{text}");
}

/// Drops packets below 14 bytes; `then` has the packet at r1.
fn bounded_packet(then: &[Instruction]) -> Vec<Instruction> {
    let mut slots = vec![load(W, 2, 1, 4), load(W, 1, 1, 0), mov(3, 1), alu64_imm(ADD, 3, 14)];
    slots.extend([jump(JGE, 2, 3, 2), mov_imm(0, 1), exit()]);
    slots.extend(then);
    slots.extend([mov_imm(0, 2), exit()]);
    slots
}
