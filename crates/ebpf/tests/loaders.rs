//! Objects in the forms of old compilers and of loaders other than libbpf.

use nicety_ebpf::{Initial, Limits, Machine, MapKind, Object, Packet};

const LOADERS: &[u8] = include_bytes!("data/loaders.o");
const SECTIONS: &[u8] = include_bytes!("data/sections.o");
const PARTS: &[u8] = include_bytes!("data/parts.o");

/// A number of `size` bytes.
fn number(file: &[u8], at: usize, size: usize) -> usize {
    file[at..at + size].iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte))
}

/// An object as clang of 2018 writes it: symbols have no type and no size, and pointers in maps have relocations of type 1.
pub(crate) fn aged(object: &[u8]) -> Vec<u8> {
    let mut file = object.to_vec();
    let table = number(&file, 0x28, 8);
    let section = |file: &[u8], index: usize| {
        let header = table + 64 * index;
        (number(file, header + 4, 4), number(file, header + 0x18, 8), number(file, header + 0x20, 8))
    };
    for index in 0..number(&file, 0x3c, 2) {
        let (kind, offset, size) = section(&file, index);
        let target = number(&file, table + 64 * index + 0x2c, 4);
        match kind {
            // Symbols: functions and variables.
            2 => {
                for at in (offset..offset + size).step_by(24).filter(|at| at + 24 <= offset + size) {
                    if [1, 2].contains(&(file[at + 4] & 15)) {
                        file[at + 4] &= 0xf0;
                        file[at + 16..at + 24].fill(0);
                    }
                }
            }
            // Relocations of sections without instructions.
            9 if number(&file, table + 64 * target + 8, 8) & 4 == 0 => {
                for at in (offset..offset + size).step_by(16) {
                    if file[at + 8] == 2 {
                        file[at + 8] = 1;
                    }
                }
            }
            _ => {}
        }
    }
    assert_ne!(file, object);
    file
}

fn result(object: &Object, name: &str, queue: u32) -> (u32, Machine) {
    let mut machine = Machine::new(object, Limits::default()).unwrap();
    let program = machine.add(object, object.program(Some(name)).unwrap()).unwrap();
    let mut packet = Packet::new(&[0; 60], 0).unwrap();
    packet.queue = queue;
    (machine.run(program, &mut packet).unwrap().value, machine)
}

fn first(machine: &Machine, map: &str, key: u32) -> Vec<u8> {
    machine.maps[machine.map_named(map).unwrap()].get(&key.to_ne_bytes()).unwrap()[0].clone()
}

#[test]
fn symbols_of_old_compilers_have_neither_type_nor_size() {
    let (new, old) = (Object::read(PARTS).unwrap(), Object::read(&aged(PARTS)).unwrap());
    assert_eq!(old.programs, new.programs);
    for queue in [0, 3, 7] {
        assert_eq!(result(&old, "parts", queue).0, result(&new, "parts", queue).0, "queue {queue}");
    }
    let tables = old.maps.iter().find(|map| map.name == "tables").unwrap();
    assert_eq!(tables.initial.len(), 2);
    // A label of a block divides no function.
    let old = Object::read(&aged(LOADERS)).unwrap();
    assert_eq!(result(&old, "start", 9).0, 1);
}

#[test]
fn maps_of_iproute2_samples_and_gobpf_have_their_further_words() {
    for file in [LOADERS.to_vec(), aged(LOADERS)] {
        let object = Object::read(&file).unwrap();
        let map = |name: &str| object.maps.iter().find(|map| map.name == name).unwrap();
        let place = |name: &str| object.maps.iter().position(|map| map.name == name).unwrap();
        assert_eq!(map("tables").initial, [(1, Initial::Map(place("inside")))]);
        assert_eq!(map("tables").inner.as_ref().map(|inner| inner.kind), Some(MapKind::Array as u32));
        assert_eq!(map("copies").inner.as_ref().map(|inner| inner.value_size), Some(8));
        let pinned: Vec<_> = object.maps.iter().filter(|map| map.pinned).map(|map| &map.name).collect();
        assert_eq!(pinned, ["tables", "counts"]);
        let calls = &map("calls").initial;
        assert_eq!(calls.len(), 2);
        assert!(calls.contains(&(0, Initial::Program("first".to_owned()))), "{calls:?}");
        assert!(calls.contains(&(18, Initial::Program("second".to_owned()))), "{calls:?}");
        for (queue, verdict) in [(0, 3), (18, 2), (5, 1)] {
            let (value, machine) = result(&object, "start", queue);
            assert_eq!(value, verdict, "queue {queue}");
            assert_eq!(first(&machine, "inside", 1), 1u64.to_le_bytes());
            assert_eq!(first(&machine, "counts", 0), 1u64.to_le_bytes());
        }
    }
}

#[test]
fn a_program_of_a_section_without_a_type_is_named() {
    let object = Object::read(LOADERS).unwrap();
    let error = object.program(None).unwrap_err().to_string();
    assert_eq!(
        error,
        "the object: no section name declares an XDP program; the object has start, calls_it, nowhere; name \
         the XDP program with --program"
    );
    // The callee of another function is no program.
    assert!(object.program(Some("called")).is_err());
    assert_eq!(result(&object, "calls_it", 4).0, 5);
    let object = Object::read(SECTIONS).unwrap();
    let names: Vec<_> =
        object.programs.iter().map(|entry| (entry.name.as_str(), entry.section.as_str())).collect();
    assert_eq!(names[..2], [("of_iproute2", "prog"), ("on_request", "xdp")]);
    assert_eq!(object.maps[0].extra, 3);
    let (value, machine) = result(&object, "of_iproute2", 1);
    assert_eq!((value, machine.maps[0].kind), (0, MapKind::Bloom));
}

#[test]
fn a_structure_of_another_size_is_refused_with_its_map() {
    let mut file = LOADERS.to_vec();
    let table = number(&file, 0x28, 8);
    // The map `calls` gets 24 bytes.
    let header =
        (0..number(&file, 0x3c, 2)).map(|index| table + 64 * index).find(|at| file[at + 4] == 2).unwrap();
    let (offset, size) = (number(&file, header + 0x18, 8), number(&file, header + 0x20, 8));
    for at in (offset..offset + size).step_by(24) {
        if file[at + 16] == 36 && file[at + 8] == 0 {
            file[at + 16] = 24;
        }
    }
    let error = Object::read(&file).unwrap_err().to_string();
    assert!(error.starts_with("map calls: its structure of 24 bytes is neither"), "{error}");
}

#[test]
fn names_of_the_kernel_are_refused_as_such() {
    let object = Object::read(SECTIONS).unwrap();
    for (name, expected) in [
        ("asks_kernel", "bpf_inside is the kernel's own (__ksym)"),
        ("asks_version", "LINUX_KERNEL_VERSION is a value of the kernel's configuration"),
        ("asks_nobody", "missing is not defined in the object"),
    ] {
        let error = object.link(object.program(Some(name)).unwrap()).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("sections.c:"), "{error}");
    }
}

#[test]
fn objects_without_local_symbols_are_refused_with_the_cause() {
    let mut file = PARTS.to_vec();
    let table = number(&file, 0x28, 8);
    for index in 0..number(&file, 0x3c, 2) {
        let header = table + 64 * index;
        let (offset, size) = (number(&file, header + 0x18, 8), number(&file, header + 0x20, 8));
        let symbols = number(&file, header + 4, 4) == 2;
        // Local functions become plain labels.
        for at in (offset..offset + size).step_by(24).filter(|_| symbols) {
            file[at + 4] &= if file[at + 4] == 2 { 0 } else { 0xff };
        }
    }
    let object = Object::read(&file).unwrap();
    let error = object.link(object.program(Some("parts")).unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("function parts, instruction "), "{error}");
    assert!(error.contains("calls code without a function symbol; keep local symbols"), "{error}");
}

#[test]
fn undefined_functions_of_memory_have_their_own_advice() {
    let mut file = SECTIONS.to_vec();
    for at in 0..file.len() - 9 {
        if file[at..at + 9] == *b"\0missing\0" {
            file[at + 1..at + 8].copy_from_slice(b"memmove");
        }
    }
    let object = Object::read(&file).unwrap();
    let error = object.link(object.program(Some("asks_nobody")).unwrap()).unwrap_err().to_string();
    assert!(error.contains("memmove is not defined in the object; write the __builtin_ function"), "{error}");
}

#[test]
fn an_entry_that_cannot_run_refuses_those_that_may_go_on_in_it() {
    let mut object = Object::read(SECTIONS).unwrap();
    object
        .maps
        .push(Object::read(LOADERS).unwrap().maps.into_iter().find(|map| map.name == "calls").unwrap());
    object.maps[1].initial = vec![(0, Initial::Program("asks_nobody".to_owned()))];
    let mut machine = Machine::new(&object, Limits::default()).unwrap();
    let entry = object.program(Some("on_request")).unwrap();
    machine.add(&object, entry).unwrap();
    let mut linked = object.link(entry).unwrap();
    linked.maps.push(1);
    let error = machine.check_jumps(&linked).unwrap_err().to_string();
    assert!(error.starts_with("program asks_nobody, instruction "), "{error}");
}
