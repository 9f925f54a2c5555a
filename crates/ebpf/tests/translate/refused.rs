//! Programs and instruction sets that are refused, and damaged programs, which never stop the translator.

use super::build::options;
use crate::generate::{Generator, Random, maps};
use nicety_ebpf::asm::*;
use nicety_ebpf::translate::{Isa, programs};
use nicety_ebpf::{Helper, Instruction, Linked};

#[test]
fn other_instruction_sets_are_refused() {
    let problem = |isa| Isa::read(isa).unwrap_err().to_string();
    assert!(problem("rv128imac").contains("isa rv128imac: an XDP program runs on RV32 or RV64"));
    for isa in ["rv32i", "rv32ic_zicsr", "rv64im", "rv64ia_zmmul"] {
        assert!(problem(isa).contains("needs the extensions M and A; write rv32imac or rv64imac"), "{isa}");
    }
    assert_eq!(
        Isa::read("rv64imac_zicsr_zbb").unwrap(),
        Isa { wide: true, zba: false, zbb: true, divides: true }
    );
    assert!(!Isa::read("rv32ia_zicsr_zmmul").unwrap().divides);
    assert_eq!(Isa::read("rv32imacb").unwrap(), Isa { wide: false, zba: true, zbb: true, divides: true });
}

fn refused(slots: Vec<Instruction>) -> String {
    let linked = Linked::of_slots("test", slots).unwrap();
    programs(&maps(), &[linked], &options("rv32imac", true)).unwrap_err().to_string()
}

#[test]
fn programs_without_a_translation_are_refused_with_their_place() {
    let place = "program test, instruction";
    let atomic_frame = vec![atomic(DW, 0, 10, -8, 10), exit()];
    assert!(refused(atomic_frame).starts_with(&format!("{place} 0: an atomic operation with r10")));
    let helper = vec![Instruction { imm: 4, ..call(Helper::Loop) }, exit()];
    assert!(
        refused(helper).starts_with(&format!("{place} 0: a call of a helper that nicety does not support"))
    );
    let tail = vec![mov(2, 3), mov_imm(3, 0), call(Helper::TailCall), exit()];
    assert!(
        refused(tail).starts_with(&format!("{place} 2: a tail call through an array that is known only"))
    );
    let map = [&map(1, 99)[..], &[exit()]].concat();
    assert!(refused(map).starts_with(&format!("{place} 0: a map that the object lacks")));
    let into = vec![call_local(1), goto(1), exit(), exit()];
    assert!(refused(into).contains("the code continues in another function"));
}

#[test]
fn damaged_programs_are_translated_or_refused() {
    let (mut translated, mut random) = (0, Random(3));
    for seed in 0..400 {
        let program = Generator::generate(Random(seed)).slots;
        for _ in 0..8 {
            let mut slots = program.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(slots.len() as u64) as usize;
                let mut bytes = slots[at].bytes();
                bytes[random.below(8) as usize] = random.next() as u8;
                slots[at] = Instruction::read(bytes);
            }
            let Ok(linked) = Linked::of_slots("test", slots) else { continue };
            for (isa, misaligned) in [("rv32imac", true), ("rv64imac_zba_zbb", false)] {
                let result = programs(&maps(), std::slice::from_ref(&linked), &options(isa, misaligned));
                translated += u32::from(result.is_ok());
            }
        }
    }
    assert!(translated > 1000, "{translated}");
}
