//! Translated programs run as in the interpreter, on cores of either width.
//!
//! Without a compiler for RISC-V the tests say so and end.

mod build;
mod card;
mod counts;
mod edges;
mod random;
mod refused;
mod ten;

use nicety_ebpf::{Limits, Machine, Object};

#[test]
fn a_trap_on_a_card_names_function_and_line() {
    let object = Object::read(include_bytes!("../data/traps.o")).unwrap();
    let cases = [("beyond", 13), ("unchecked", 19)];
    for (isa, (program, line)) in
        cases.iter().flat_map(|case| [("rv32imac_zicsr", case), ("rv64imac_zicsr", case)])
    {
        let mut machine = Machine::new(&object, Limits::default()).unwrap();
        let Some(mut card) = card::Card::new(&object, program, &mut machine, isa, true) else {
            eprintln!("skipped: lines of translations (no ziglang in .venv, and no NICETY_ZIG)");
            return;
        };
        let trap = card.run(&[0; 60]).err().unwrap();
        let place = trap.location.as_ref().unwrap();
        assert_eq!((place.function.as_deref(), place.line), (Some(*program), Some(*line)), "{trap}");
        assert_eq!(place.file_name().as_deref(), Some("traps.c"));
    }
}
