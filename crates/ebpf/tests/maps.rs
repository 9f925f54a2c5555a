//! Maps by the facts of a kernel, for machines where it cannot be asked.

use nicety_ebpf::asm::*;
use nicety_ebpf::{
    Calls, Errno, Helper, Instruction, Limits, Linked, Machine, MapDefinition, MapKind, Packet,
};

/// A map of a kind. Sizes are in bytes.
pub(crate) fn definition(
    kind: MapKind,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
) -> MapDefinition {
    let name = kind.name().to_owned();
    MapDefinition {
        name,
        kind: kind as u32,
        key_size,
        value_size,
        max_entries,
        flags,
        ..MapDefinition::default()
    }
}

fn machine(maps: &[MapDefinition], cpus: u32) -> Machine {
    let mut machine = Machine::empty(Limits { cpus, ..Limits::default() });
    for map in maps {
        machine.add_map(map).unwrap();
    }
    machine
}

fn key(number: u32) -> [u8; 4] {
    number.to_ne_bytes()
}

fn set(machine: &mut Machine, map: usize, key: &[u8], flags: u64) -> Result<(), Errno> {
    let size = machine.maps[map].definition.value_size as usize;
    let copies = if machine.maps[map].kind.is_per_cpu() { machine.cpus() } else { 1 };
    machine.maps[map].set(key, &vec![vec![1; size]; copies as usize], flags)
}

/// The result of a program.
fn run(machine: &mut Machine, slots: Vec<Instruction>) -> i32 {
    let number = machine.add_program(Linked::of_slots("test", slots).unwrap());
    machine.run(number, &mut Packet::new(&[0; 60], 0).unwrap()).unwrap().value as i32
}

/// A call of a helper with map 0 and constants in r2 and r3.
fn called(helper: Helper, second: i32, third: i32) -> Vec<Instruction> {
    let mut slots = map(1, 0).to_vec();
    slots.extend([mov_imm(2, second), mov_imm(3, third), call(helper), exit()]);
    slots
}

#[test]
fn a_full_hash_refuses_new_keys_and_changes_present_ones() {
    let mut machine = machine(&[definition(MapKind::Hash, 4, 8, 2, 0)], 1);
    for number in 0..2 {
        assert_eq!(set(&mut machine, 0, &key(number), 0), Ok(()));
    }
    assert_eq!(set(&mut machine, 0, &key(2), 0), Err(Errno::E2BIG));
    assert_eq!(set(&mut machine, 0, &key(1), 0), Ok(()));
    assert_eq!(set(&mut machine, 0, &key(1), 1), Err(Errno::EEXIST));
    assert_eq!(set(&mut machine, 0, &key(2), 2), Err(Errno::ENOENT));
    assert_eq!(set(&mut machine, 0, &key(1), 3), Err(Errno::EINVAL));
    assert_eq!(set(&mut machine, 0, &key(1), 4), Err(Errno::EINVAL));
    assert_eq!(machine.maps[0].remove(&key(2)), Err(Errno::ENOENT));
    assert_eq!(machine.maps[0].remove(&key(1)), Ok(()));
    assert_eq!(set(&mut machine, 0, &key(2), 0), Ok(()));
}

#[test]
fn arrays_have_all_entries() {
    let mut machine = machine(&[definition(MapKind::Array, 4, 3, 2, 0)], 1);
    assert_eq!(set(&mut machine, 0, &key(2), 1), Err(Errno::E2BIG));
    assert_eq!(set(&mut machine, 0, &key(2), 3), Err(Errno::EINVAL));
    assert_eq!(set(&mut machine, 0, &key(1), 1), Err(Errno::EEXIST));
    assert_eq!(machine.maps[0].remove(&key(0)), Err(Errno::EINVAL));
    assert_eq!(machine.maps[0].get(&key(0)), Some(vec![vec![0; 3]]));
    assert_eq!(machine.maps[0].get(&key(2)), None);
}

#[test]
fn lru_maps_evict_in_lots() {
    // Measured on Linux 6.18 with two CPUs, one of them inserting.
    for (entries, first, left) in
        [(4, 5, 4), (100, 101, 76), (513, 513, 386), (900, 897, 773), (1000, 897, 873)]
    {
        let mut machine = machine(&[definition(MapKind::LruHash, 4, 8, entries, 0)], 2);
        let mut inserted = 0;
        while machine.maps[0].items().len() == inserted {
            inserted += 1;
            set(&mut machine, 0, &key(inserted as u32), 0).unwrap();
        }
        assert_eq!(inserted, first, "{entries} entries: the first loss");
        assert_eq!(machine.maps[0].items().len(), left, "{entries} entries: left behind it");
    }
}

#[test]
fn a_programs_lookup_saves_an_entry_from_eviction() {
    let mut machine = machine(&[definition(MapKind::LruHash, 4, 8, 4, 0)], 2);
    (0..4).for_each(|number| set(&mut machine, 0, &key(number), 0).unwrap());
    let mut slots = vec![store_imm(W, 10, -4, 0)];
    slots.extend(map(1, 0));
    slots.extend([mov(2, 10), alu64_imm(ADD, 2, -4), call(Helper::MapLookup), mov_imm(0, 0), exit()]);
    run(&mut machine, slots);
    // User space's lookup does not.
    assert!(machine.maps[0].get(&key(1)).is_some());
    set(&mut machine, 0, &key(4), 0).unwrap();
    let keys: Vec<_> = machine.maps[0].items().into_iter().map(|item| item.key[0]).collect();
    assert!(keys.contains(&0) && !keys.contains(&1), "{keys:?}");
}

#[test]
fn prefixes_are_found_by_their_length() {
    let mut machine = machine(&[definition(MapKind::Lpm, 8, 4, 3, 1)], 1);
    let prefix = |bits: u32, address: [u8; 4]| [&bits.to_ne_bytes()[..], &address].concat();
    let put = |machine: &mut Machine, bits, address, byte| {
        machine.maps[0].set(&prefix(bits, address), &[vec![byte; 4]], 0)
    };
    assert_eq!(put(&mut machine, 0, [0; 4], 1), Ok(()));
    assert_eq!(put(&mut machine, 8, [10, 0, 0, 0], 2), Ok(()));
    assert_eq!(put(&mut machine, 24, [10, 1, 2, 0], 3), Ok(()));
    assert_eq!(put(&mut machine, 8, [11, 0, 0, 0], 4), Err(Errno::ENOSPC));
    // Host bits do not matter.
    assert_eq!(put(&mut machine, 8, [10, 9, 9, 9], 5), Ok(()));
    assert_eq!(put(&mut machine, 33, [10, 9, 9, 9], 5), Err(Errno::EINVAL));
    let found = |bits, address| machine.maps[0].get(&prefix(bits, address)).map(|values| values[0][0]);
    assert_eq!(found(32, [10, 1, 2, 3]), Some(3));
    assert_eq!(found(16, [10, 1, 2, 3]), Some(5));
    assert_eq!(found(32, [12, 1, 2, 3]), Some(1));
    assert_eq!(found(33, [12, 1, 2, 3]), None);
    let order: Vec<_> = machine.maps[0].items().iter().map(|item| item.key[0]).collect();
    assert_eq!(order, [24, 8, 0]);
}

#[test]
fn queues_and_stacks_have_their_order() {
    for (kind, order) in [(MapKind::Queue, [1, 2]), (MapKind::Stack, [2, 1])] {
        let mut machine = machine(&[definition(kind, 0, 4, 2, 0)], 1);
        let mut push = |byte: u8, flags| machine.maps[0].set(&[], &[vec![byte; 4]], flags);
        assert_eq!((push(1, 0), push(2, 0)), (Ok(()), Ok(())));
        assert_eq!(push(3, 0), Err(Errno::E2BIG));
        assert_eq!(push(3, 1), Err(Errno::EINVAL));
        let popped: Vec<_> = (0..2).map(|_| machine.maps[0].pop().unwrap()[0]).collect();
        assert_eq!(popped, order);
        assert_eq!(machine.maps[0].pop(), Err(Errno::ENOENT));
    }
}

#[test]
fn redirects_by_maps_give_the_flags_where_nothing_is_found() {
    let value = vec![1u32.to_ne_bytes().to_vec()];
    // For keys that are missing and present: the results with each flag.
    let devices = [(0, 0, 4), (2, 2, 4), (4, 0, 0), (8, 4, 4), (16, 0, 4), (24, 4, 4), (26, 4, 4)];
    let cpus = [(0, 0, 4), (2, 2, 4), (4, 0, 0), (8, 0, 0), (16, 0, 0)];
    for (kind, cases) in [
        (MapKind::Devices, &devices[..]),
        (MapKind::DeviceHash, &devices[..]),
        (MapKind::Cpus, &cpus[..]),
        (MapKind::Sockets, &cpus[..]),
    ] {
        let mut machine = machine(&[definition(kind, 4, 4, 4, 0)], 1);
        machine.maps[0].set(&key(1), &value, 0).unwrap();
        for &(flags, missing, present) in cases {
            assert_eq!(run(&mut machine, called(Helper::RedirectMap, 3, flags)), missing, "{kind:?} {flags}");
            assert_eq!(run(&mut machine, called(Helper::RedirectMap, 1, flags)), present, "{kind:?} {flags}");
        }
    }
}

#[test]
fn records_are_read_in_their_order_and_a_full_ring_gives_none() {
    let mut machine = machine(&[definition(MapKind::Ring, 0, 0, 4096, 0)], 1);
    let mut slots = vec![store_imm(DW, 10, -8, 7), mov(2, 10), alu64_imm(ADD, 2, -8)];
    slots.extend(map(1, 0));
    slots.extend([mov_imm(3, 8), mov_imm(4, 0), call(Helper::RingbufOutput), exit()]);
    // Each record has 8 bytes in front; the last byte of the ring stays free.
    let results: Vec<_> = (0..257).map(|_| run(&mut machine, slots.clone())).collect();
    assert!(results[..255].iter().all(|&result| result == 0));
    assert_eq!(results[255..], [-11, -11]);
    let records = machine.maps[0].records();
    assert_eq!((records.len(), &records[0]), (255, &vec![7, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(run(&mut machine, slots), 0);
}

#[test]
fn a_reserved_record_is_submitted_before_the_end() {
    let mut machine = machine(&[definition(MapKind::Ring, 0, 0, 4096, 0)], 1);
    let number = machine.add_program(Linked::of_slots("test", called(Helper::RingbufReserve, 8, 0)).unwrap());
    let trap = machine.run(number, &mut Packet::new(&[0; 60], 0).unwrap()).unwrap_err();
    assert!(trap.to_string().contains("ends with a reserved record"), "{trap}");
}

#[test]
fn helpers_trap_on_maps_of_other_types() {
    let mut machine = machine(&[definition(MapKind::Queue, 0, 8, 4, 0)], 1);
    for (helper, second) in [(Helper::RedirectMap, 0), (Helper::RingbufQuery, 0)] {
        let number = machine.add_program(Linked::of_slots("test", called(helper, second, 0)).unwrap());
        let trap = machine.run(number, &mut Packet::new(&[0; 60], 0).unwrap()).unwrap_err();
        assert!(trap.to_string().contains(&format!("{} of map queue, a queue", helper.name())), "{trap}");
    }
    let slots = vec![mov_imm(1, 5), mov(2, 10), call(Helper::MapLookup), exit()];
    let number = machine.add_program(Linked::of_slots("test", slots).unwrap());
    let trap = machine.run(number, &mut Packet::new(&[0; 60], 0).unwrap()).unwrap_err();
    assert!(trap.to_string().contains("argument 1 of bpf_map_lookup_elem is 0x5, not a map"), "{trap}");
}

#[test]
fn definitions_that_linux_refuses_are_refused_with_advice() {
    let cases = [
        (definition(MapKind::Array, 8, 8, 1, 0), "array with keys of 8 bytes and values of 8; write sizes"),
        (definition(MapKind::Array, 4, 8, 0, 0), "max_entries of 0; the loader of the map sets this number"),
        (definition(MapKind::Lpm, 8, 8, 1, 0), "without BPF_F_NO_PREALLOC; add the flag"),
        (definition(MapKind::Lpm, 4, 8, 1, 1), "keys of 4 bytes"),
        (definition(MapKind::LruHash, 4, 8, 1, 1), "BPF_F_NO_PREALLOC on an lru_hash; remove the flag"),
        (definition(MapKind::Ring, 0, 0, 5000, 0), "max_entries of 5000; write a power of two"),
        (
            MapDefinition { kind: 7, ..definition(MapKind::Hash, 4, 8, 1, 0) },
            "type 7 (stack_trace) is not supported",
        ),
        (MapDefinition { kind: 99, ..definition(MapKind::Hash, 4, 8, 1, 0) }, "type 99 is unknown to Linux"),
        (
            definition(MapKind::Array, 4, 8, u32::MAX, 0),
            "bytes, but only 1073741824 are left for maps; write a smaller",
        ),
    ];
    for (map, expected) in cases {
        let error = Machine::empty(Limits::default()).add_map(&map).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn work_of_helpers_takes_from_the_budget() {
    let large = definition(MapKind::Array, 4, 8, 60_000, 0);
    let mut machine = Machine::empty(Limits { instructions: 100_000, ..Limits::default() });
    machine.add_map(&large).unwrap();
    // A walk of the array by a callback that ends it at once, for ever.
    let mut slots = map(1, 0).to_vec();
    slots.extend(function(2, 6));
    slots.extend([mov_imm(3, 0), mov_imm(4, 0), call(Helper::ForEachMapElem), goto(-8), exit()]);
    slots.extend([mov_imm(0, 1), exit()]);
    let number = machine.add_program(Linked::of_slots("test", slots).unwrap());
    let trap = machine.run(number, &mut Packet::new(&[0; 60], 0).unwrap()).unwrap_err();
    assert!(trap.to_string().contains("is used up by work of a helper"), "{trap}");
}

#[test]
fn maps_together_have_a_limit() {
    let half = definition(MapKind::Hash, 4, 1024, 60_000, 0);
    let mut machine = Machine::empty(Limits { map_bytes: 100 << 20, ..Limits::default() });
    machine.add_map(&half).unwrap();
    let error = machine.add_map(&half).unwrap_err().to_string();
    assert!(error.contains("are left for maps"), "{error}");
}

#[test]
fn calls_are_counted_by_the_work_that_linux_does_for_them() {
    let lookup = |number| {
        let [low, high] = map(1, number);
        vec![store_imm(W, 10, -4, 1), mov(2, 10), alu64_imm(ADD, 2, -4), low, high, call(Helper::MapLookup)]
    };
    let of = |parts: &[Vec<Instruction>]| {
        let maps = [definition(MapKind::Hash, 4, 8, 4, 0), definition(MapKind::Array, 4, 8, 4, 0)];
        let mut machine = machine(&maps, 1);
        let slots = [&parts.concat()[..], &[mov_imm(0, 2), exit()]].concat();
        let number = machine.add_program(Linked::of_slots("test", slots).unwrap());
        machine.run(number, &mut Packet::new(&[0; 60], 0).unwrap()).unwrap().calls
    };
    assert_eq!(of(&[]), Calls::default());
    assert_eq!(of(&[lookup(0)]), Calls { plain: 1, maps: 1, inlined: 0 });
    assert_eq!(of(&[lookup(1), vec![call(Helper::Cpu)]]), Calls { plain: 0, maps: 0, inlined: 2 });
    assert_eq!(of(&[vec![call(Helper::KtimeGet)]]), Calls { plain: 1, maps: 0, inlined: 0 });
}
