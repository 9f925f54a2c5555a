//! Translated programs run as in the interpreter, on cores of either width.
//!
//! Without a compiler for RISC-V the tests say so and end.

mod build;
mod card;
mod counts;
mod early;
mod edges;
mod hashes;
mod memory;
mod random;
mod refused;
mod ten;

use nicety_ebpf::translate::Options;
use nicety_ebpf::{Limits, Machine, Object, Packet};

#[test]
fn a_trap_on_a_card_names_function_and_line() {
    let object = Object::read(include_bytes!("../data/traps.o")).unwrap();
    let cases = [("beyond", 13), ("unchecked", 19)];
    for (isa, (program, line)) in
        cases.iter().flat_map(|case| [("rv32imac_zicsr", case), ("rv64imac_zicsr", case)])
    {
        let mut machine = Machine::new(&object, Limits::default()).unwrap();
        let Some(mut card) = card::Card::new(&object, program, &mut machine, isa, &build::options(isa, true))
        else {
            eprintln!("skipped: lines of translations (no ziglang in .venv, and no NICETY_ZIG)");
            return;
        };
        let trap = card.run(&[0; 60]).err().unwrap();
        let place = trap.location.as_ref().unwrap();
        assert_eq!((place.function.as_deref(), place.line), (Some(*program), Some(*line)), "{trap}");
        assert_eq!(place.file_name().as_deref(), Some("traps.c"));
    }
}

#[test]
fn cores_have_values_of_their_own() {
    for (isa, cluster, hart) in
        [("rv32imac_zicsr", None, 3), ("rv64imac_zicsr", None, 3), ("rv64imac_zicsr", Some(2), 1 << 5 | 1)]
    {
        let Some(zig) = build::compiler() else {
            eprintln!("skipped: values of cores (no ziglang in .venv, and no NICETY_ZIG)");
            return;
        };
        let object = build::object(&zig, "counters");
        let mut machine = Machine::new(&object, Limits { cpus: 4, ..Limits::default() }).unwrap();
        machine.cpu = 3;
        let number = machine.add(&object, object.program(None).unwrap()).unwrap();
        let options = Options { cpus: 4, cluster, ..build::options(isa, true) };
        let mut card = card::Card::new(&object, "counters", &mut machine, isa, &options).unwrap();
        card.hart = hart;
        let packet = [&[2; 12][..], &[8, 0, 0x45], &[7; 60]].concat();
        machine.run(number, &mut Packet::new(&packet, 0).unwrap()).unwrap();
        card.run(&packet).unwrap();
        let protocols = machine.map_named("protocols").unwrap();
        let expected: Vec<u8> =
            machine.maps[protocols].items().into_iter().flat_map(|item| item.values.concat()).collect();
        assert!(expected.iter().any(|byte| *byte != 0));
        assert_eq!(card.variable("nicety_map_memory_protocols"), expected, "{isa} {cluster:?}");
    }
}

#[test]
fn maps_of_lookups_in_place_are_kept_by_the_linker() {
    let object = Object::read(include_bytes!("../data/parts.o")).unwrap();
    let arrays =
        object.maps.iter().filter(|map| map.kind == 2 && map.contents.is_none() && map.inner.is_none());
    let arrays: Vec<&str> = arrays.map(|map| map.name.as_str()).collect();
    let mut kept = 0;
    for entry in &object.programs {
        let options = build::options("rv32imac", true);
        let Ok(translation) = nicety_ebpf::translate::translate(&object, &entry.name, &options) else {
            continue;
        };
        for name in
            arrays.iter().filter(|name| translation.assembly.contains(&format!("nicety_map_memory_{name}")))
        {
            assert!(translation.assembly.contains(&format!("\t.reloc ., R_RISCV_NONE, nicety_map_{name}\n")));
            kept += 1;
        }
    }
    assert!(kept > 0);
}
