//! Calls of user space on maps, with the kernel's error numbers, and the order of evictions.

use super::sys::{KernelMap, possible_cpus, stay_on_first_cpu};
use super::{allowed, programs};
use crate::generate::Random;
use crate::maps::definition;
use nicety_ebpf::{Limits, Machine, MapDefinition, MapKind};

/// A random key: often one that is present.
fn key(map: &MapDefinition, random: &mut Random) -> Vec<u8> {
    let mut key = vec![0; map.key_size as usize];
    if map.kind == MapKind::Lpm as u32 {
        key[0] = [0, 1, 8, 12, 24, 31, 32, 33][random.below(8) as usize];
        key[4] = random.below(3) as u8;
        key[7] = random.below(3) as u8;
    } else if !key.is_empty() {
        key[0] = random.below(u64::from(map.max_entries) + 2) as u8;
    }
    key
}

/// The same random calls on both; ends at the first difference.
fn same_calls(map: &MapDefinition, seed: u64) {
    let cpus = possible_cpus();
    let kernel = KernelMap::new(map, cpus).unwrap();
    let mut machine = Machine::empty(Limits { cpus, ..Limits::default() });
    let number = machine.add_map(map).unwrap();
    let own = &mut machine.maps[number];
    let mut random = Random(seed);
    let copies = if own.kind.is_per_cpu() { cpus } else { 1 };
    for call in 0..120 {
        let key = key(map, &mut random);
        let place = format!("{}, seed {seed}, call {call}, key {key:?}", map.name);
        match random.below(4) {
            0 | 1 => {
                let flags = [0, 0, 0, 1, 2, 3, 4, 8][random.below(8) as usize];
                let mut value = || {
                    // Devices: the loopback interface, none, or one that does not exist.
                    let byte = if map.name.starts_with("devmap") { random.below(2) } else { random.next() };
                    let mut value = vec![0; map.value_size as usize];
                    value[0] = byte as u8;
                    value
                };
                let values: Vec<_> = (0..copies).map(|_| value()).collect();
                let expected = kernel.update(&key, &values, flags).map_err(i64::from);
                let found = own.set(&key, &values, flags).map_err(|error| error.0);
                assert_eq!(found, expected, "update of {place} with flags {flags} and {values:?}");
            }
            2 if own.kind != MapKind::Queue && own.kind != MapKind::Stack => {
                let expected = kernel.delete(&key).map_err(i64::from);
                assert_eq!(own.remove(&key).map_err(|error| error.0), expected, "delete of {place}");
            }
            2 => assert_eq!(own.pop().ok(), kernel.take(), "pop of {place}"),
            _ if !key.is_empty() => {
                assert_eq!(own.get(&key), kernel.lookup(&key).ok(), "lookup of {place}");
            }
            _ => {}
        }
    }
    if map.key_size > 0 {
        let mut items: Vec<_> = own.items().into_iter().map(|item| (item.key, item.values)).collect();
        items.sort();
        assert_eq!(items, kernel.items(), "{}, seed {seed}", map.name);
    }
}

#[test]
fn random_calls_of_user_space_give_the_kernels_errors() {
    if !allowed() {
        return;
    }
    stay_on_first_cpu();
    for seed in 0..programs() / 12 {
        for map in [
            definition(MapKind::Array, 4, 8, 5, 0),
            definition(MapKind::Array, 4, 3, 5, 0),
            definition(MapKind::PerCpuArray, 4, 12, 5, 0),
            definition(MapKind::Hash, 4, 8, 5, 0),
            definition(MapKind::Hash, 7, 5, 5, 1),
            definition(MapKind::PerCpuHash, 4, 12, 5, 0),
            definition(MapKind::LruHash, 4, 8, 8, 0),
            definition(MapKind::LruHash, 4, 8, 6, 0),
            definition(MapKind::LruHash, 4, 8, 7, 2),
            definition(MapKind::LruPerCpuHash, 4, 8, 8, 0),
            definition(MapKind::Lpm, 8, 8, 5, 1),
            definition(MapKind::Devices, 4, 4, 5, 0),
            definition(MapKind::DeviceHash, 4, 4, 5, 0),
            definition(MapKind::Queue, 0, 8, 4, 0),
            definition(MapKind::Stack, 0, 8, 4, 0),
        ] {
            same_calls(&map, seed);
        }
    }
}

#[test]
fn evictions_come_in_the_kernels_lots() {
    if !allowed() {
        return;
    }
    stay_on_first_cpu();
    let cpus = possible_cpus();
    for entries in [1, 3, 64, 100, 513, 900, 1000] {
        let map = definition(MapKind::LruHash, 4, 8, entries, 0);
        let kernel = KernelMap::new(&map, cpus).unwrap();
        let mut machine = Machine::empty(Limits { cpus, ..Limits::default() });
        let number = machine.add_map(&map).unwrap();
        for key in 0..2 * entries + 1 {
            let values = [vec![0; 8]];
            kernel.update(&key.to_ne_bytes(), &values, 0).unwrap();
            machine.maps[number].set(&key.to_ne_bytes(), &values, 0).unwrap();
            if key % (entries / 8 + 1) > 0 && key != entries {
                continue;
            }
            let mut own: Vec<_> = machine.maps[number].items().into_iter().map(|item| item.key).collect();
            let theirs: Vec<_> = kernel.items().into_iter().map(|(key, _)| key).collect();
            own.sort();
            assert_eq!(own, theirs, "{entries} entries, key {key}");
        }
    }
}
