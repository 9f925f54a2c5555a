//! Objects that a compiler has written, and files that are none.

use nicety_ebpf::report::maps::set_sizes;
use nicety_ebpf::{Attach, Helper, Initial, Limits, Machine, MapKind, Object, Packet, TrapKind};

const PARTS: &[u8] = include_bytes!("data/parts.o");
const TRAPS: &[u8] = include_bytes!("data/traps.o");
const KERNEL: &[u8] = include_bytes!("data/kernel.o");
const LOCKS: &[u8] = include_bytes!("data/locks.o");
const ABSENT: &[u8] = include_bytes!("data/absent.o");
const OLD: &[u8] = include_bytes!("data/old.o");

fn loaded(file: &[u8], name: &str) -> (Object, Machine, usize) {
    let object = Object::read(file).unwrap();
    let mut machine = Machine::new(&object, Limits { instructions: 10_000, ..Limits::default() }).unwrap();
    let entry = object.program(Some(name)).unwrap();
    let number = machine.add(&object, entry).unwrap();
    (object, machine, number)
}

#[test]
fn an_object_has_its_programs_maps_and_license() {
    let object = Object::read(PARTS).unwrap();
    let programs: Vec<_> =
        object.programs.iter().map(|p| (p.name.as_str(), p.section.as_str(), p.attach)).collect();
    assert_eq!(programs, [("other", "xdp", Attach::Device), ("parts", "xdp", Attach::Device)]);
    assert_eq!(object.license, "GPL");
    let map = |name: &str| object.maps.iter().find(|map| map.name == name).unwrap();
    let counters = map("counters");
    assert_eq!((counters.kind, counters.key_size, counters.value_size, counters.max_entries), (2, 4, 16, 4));
    let tables = map("tables");
    assert_eq!(tables.inner.as_ref().map(|inner| inner.kind), Some(MapKind::Hash as u32));
    let names: Vec<_> = tables.initial.iter().map(|(key, initial)| (*key, initial.clone())).collect();
    let number = |name: &str| object.maps.iter().position(|map| map.name == name).unwrap();
    assert_eq!(names, [(0, Initial::Map(number("first"))), (1, Initial::Map(number("second")))]);
    assert_eq!(map("jumps").initial, [(2, Initial::Program("other".to_owned()))]);
    assert_eq!(map(".bss").contents.as_deref(), Some(&[0; 4][..]));
    assert_eq!(map(".rodata").flags, 0x80);
}

#[test]
fn calls_data_callbacks_and_relocations_of_own_types_work() {
    let (object, mut machine, number) = loaded(PARTS, "parts");
    let mut packet = Packet::new(&[0; 60], 0).unwrap();
    packet.queue = 3;
    for _ in 0..2 {
        let outcome = machine.run(number, &mut packet).unwrap();
        // Twice 2 + 2 + 3 + 5, 40 of data, 0 + 1 + 2 + 3 of the loop, and 1.
        assert_eq!(outcome.value, 24 + 40 + 6 + 1);
    }
    let counters = machine.map_named("counters").unwrap();
    let value = &machine.maps[counters].get(&1u32.to_ne_bytes()).unwrap()[0];
    assert_eq!(value[..8], 2u64.to_le_bytes());
    assert_eq!(value[8..12], 120u32.to_le_bytes());
    // Bits 3 to 9 are the ports.
    assert_eq!(value[12..14], (5u16 << 3).to_le_bytes());
    let second = machine.map_named("second").unwrap();
    assert_eq!(machine.maps[second].get(&1u32.to_ne_bytes()), Some(vec![1u64.to_le_bytes().to_vec()]));
    let seen = machine.map_named(".bss").unwrap();
    assert_eq!(machine.maps[seen].get(&[0; 4]), Some(vec![vec![2, 0, 0, 0]]));
    assert_eq!(
        object.link(object.program(Some("parts")).unwrap()).unwrap().helpers().last(),
        Some(&Helper::Loop)
    );
}

#[test]
fn a_tail_call_goes_on_in_the_program_that_the_map_names() {
    let (_, mut machine, number) = loaded(PARTS, "parts");
    let mut packet = Packet::new(&[0; 60], 0).unwrap();
    packet.queue = 7;
    assert_eq!(machine.run(number, &mut packet).unwrap().value, 99);
}

#[test]
fn traps_name_the_line_of_the_source() {
    let line = |text: &str| {
        let source = include_str!("data/traps.c").lines();
        source.zip(1..).find(|(line, _)| line.contains(text)).map(|(_, number)| number).unwrap()
    };
    let cases = [
        ("beyond", line("return data[100]"), TrapKind::Access, "byte 100 of a packet with 60 bytes"),
        ("unchecked", line("return *value"), TrapKind::Access, "the null pointer plus 0"),
        ("endless", line("for (;;)"), TrapKind::Budget, "budget of 10000 instructions"),
    ];
    for (name, line, kind, expected) in cases {
        let (_, mut machine, number) = loaded(TRAPS, name);
        let trap = machine.run(number, &mut Packet::new(&[0; 60], 0).unwrap()).unwrap_err();
        assert_eq!(trap.kind, kind);
        let text = trap.to_string();
        assert!(text.contains(&format!("traps.c:{line}")), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn relocations_of_kernel_types_are_refused_with_type_field_and_line() {
    let object = Object::read(KERNEL).unwrap();
    let error = object.link(&object.programs[0]).unwrap_err().to_string();
    assert!(error.contains("struct xdp_buff.rxq belongs to the kernel"), "{error}");
    assert!(error.contains("kernel.c:15"), "{error}");
    assert!(error.starts_with("program inside, instruction "), "{error}");
}

#[test]
fn other_files_are_refused_by_their_format() {
    let changed = |at: usize, byte: u8| {
        let mut file = PARTS.to_vec();
        file[at] = byte;
        file
    };
    let cases = [
        (b"#!/bin/sh\n".to_vec(), "not an ELF file"),
        (changed(4, 1), "a 32-bit ELF file"),
        (changed(5, 2), "a big-endian ELF file"),
        (changed(18, 62), "an ELF file for x86-64, not eBPF"),
        (changed(16, 2), "a linked eBPF file"),
    ];
    for (file, expected) in cases {
        let error = Object::read(&file).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("clang -target bpf"), "no advice: {error}");
    }
}

#[test]
fn several_programs_need_a_name() {
    let object = Object::read(TRAPS).unwrap();
    let error = object.program(None).unwrap_err().to_string();
    assert!(
        error.contains("it has 3 programs: beyond, unchecked, endless; name one with --program"),
        "{error}"
    );
    let error = object.program(Some("missing")).unwrap_err().to_string();
    assert!(error.starts_with("program missing: "), "{error}");
}

#[test]
fn programs_for_entries_of_maps_leave_the_choice_clear() {
    let mut object = Object::read(PARTS).unwrap();
    object.programs[0].attach = Attach::DeviceMap;
    assert_eq!(object.device_program(None).unwrap().name, "parts");
    object.programs[1].attach = Attach::CpuMap;
    let error = object.device_program(None).unwrap_err().to_string();
    assert!(error.contains("it has 2 programs: other, parts; name one with --program"), "{error}");
}

#[test]
fn maps_that_do_not_fit_are_refused_with_their_size() {
    let object = Object::read(PARTS).unwrap();
    let limits = Limits { map_bytes: 100, ..Limits::default() };
    let error = Machine::new(&object, limits).unwrap_err().to_string();
    assert!(error.contains("bytes, but only ") && error.contains("are left for maps"), "{error}");
}

#[test]
fn old_objects_have_maps_without_types_and_the_context_by_name() {
    let (object, mut machine, number) = loaded(OLD, "by_name");
    let maps: Vec<_> =
        object.maps.iter().map(|map| (map.name.as_str(), map.key_size, map.max_entries)).collect();
    assert!(maps.contains(&("table", 8, 2)) && maps.contains(&("other", 4, 3)), "{maps:?}");
    let mut packet = Packet::new(&[0; 60], 0).unwrap();
    packet.queue = 6;
    assert_eq!(machine.run(number, &mut packet).unwrap().value, 6);
    let value = |name: &str, key: &[u8]| machine.maps[machine.map_named(name).unwrap()].get(key);
    assert_eq!(value("table", b"key 123\0"), Some(vec![60u32.to_le_bytes().to_vec()]));
    assert_eq!(value("other", &2u32.to_ne_bytes()), Some(vec![11u64.to_le_bytes().to_vec()]));
    assert_eq!(value(".data.own", &[0; 4]), Some(vec![11u32.to_le_bytes().to_vec()]));
}

#[test]
fn sections_say_where_a_program_is_attached() {
    let object = Object::read(OLD).unwrap();
    let entry = object.program(Some("in_map")).unwrap();
    assert_eq!((entry.attach, entry.fragments), (Attach::DeviceMap, true));
    assert_eq!(object.others, [("socket".to_owned(), "of_a_socket".to_owned())]);
    assert_eq!(object.license, "Dual BSD/GPL");
}

#[test]
fn helpers_that_are_not_there_are_refused_by_number_name_and_line() {
    let object = Object::read(OLD).unwrap();
    for (name, expected) in [
        ("calls_unknown", "helper 9999 is unknown to Linux"),
        ("calls_refused", "helper 112 (bpf_probe_read_user) is not supported by nicety"),
    ] {
        let error = object.link(object.program(Some(name)).unwrap()).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("old.c:"), "{error}");
    }
}

#[test]
fn locks_are_released_before_the_end() {
    let (_, mut machine, number) = loaded(LOCKS, "locked");
    let value = machine.run(number, &mut Packet::new(&[0; 60], 0).unwrap()).unwrap().value as i32;
    // No entry at first, one behind the second call, and a refusal by the third.
    assert_eq!(value, -2 * 10_000 - 17 * 100);
    let sum = |machine: &Machine, name: &str| {
        machine.maps[machine.map_named(name).unwrap()].get(&1u32.to_ne_bytes()).unwrap()[0].clone()
    };
    assert_eq!(sum(&machine, "accounts")[8..], 60u64.to_le_bytes());
    assert_eq!(sum(&machine, "copies")[..8], [0, 0, 0, 0, 9, 0, 0, 0]);
    for (name, expected) in [("forgotten", "ends with a lock"), ("twice", "a second lock")] {
        let (_, mut machine, number) = loaded(LOCKS, name);
        let trap = machine.run(number, &mut Packet::new(&[0; 60], 0).unwrap()).unwrap_err();
        assert_eq!(trap.kind, TrapKind::Kept);
        assert!(trap.to_string().contains(expected), "{trap}");
    }
}

/// The result of a program on a packet of a queue.
fn verdict(file: &[u8], name: &str, queue: u32) -> u32 {
    let (_, mut machine, number) = loaded(file, name);
    let mut packet = Packet::new(&[0; 60], 0).unwrap();
    packet.queue = queue;
    machine.run(number, &mut packet).unwrap().value
}

#[test]
fn programs_learn_the_helpers_and_types_of_maps_that_exist() {
    // bpf_xdp_load_bytes and bpf_loop are here; bpf_fib_lookup and a name of no helper are not.
    assert_eq!(verdict(ABSENT, "helpers", 0), 1 + 8);
    assert_eq!(verdict(ABSENT, "maps", 0), 1);
}

#[test]
fn calls_that_no_run_reaches_refuse_no_program() {
    for (queue, expected) in [(3, 1), (0, 2)] {
        assert_eq!(verdict(ABSENT, "route", queue), expected);
        assert_eq!(verdict(ABSENT, "weak", queue), expected);
        assert_eq!(verdict(ABSENT, "optional", queue), expected);
    }
    let object = Object::read(ABSENT).unwrap();
    let error = |name: &str| object.link(object.program(Some(name)).unwrap()).unwrap_err().to_string();
    let mut set = object.clone();
    let given = |routed: u8| {
        let value = [53, 0, 0, 0, 80, 0, 0, 0, routed, 0, 0, 0];
        [(".rodata".to_owned(), format!("[{{\"key\": [0, 0, 0, 0], \"value\": {value:?}}}]"))]
    };
    let optional = object.program(Some("optional")).unwrap();
    set_sizes(&mut set, &given(1)).unwrap();
    let routed = set.link(optional).unwrap_err().to_string();
    assert!(routed.contains("helper 69 (bpf_fib_lookup)"), "{routed}");
    set_sizes(&mut set, &given(0)).unwrap();
    set.link(optional).unwrap();
    assert!(error("unasked").contains("no_such_function is the kernel's own"), "{}", error("unasked"));
    assert!(error("late").contains("helper 69 (bpf_fib_lookup)"), "{}", error("late"));
}
