//! Programs of objects beside the kernel: those of this crate's tests, and all in the folder that `NICETY_XDP_OBJECTS` names.

use super::sys::{self, KernelMap, possible_cpus, stay_on_first_cpu};
use super::{allowed, programs};
use crate::generate::Random;
use crate::loaders::aged;
use nicety_ebpf::instruction::{CONSTANT_MAP, CONSTANT_VALUE};
use nicety_ebpf::translate::check_verified;
use nicety_ebpf::{Entry, Helper, Initial, Limits, Linked, Machine, MapDefinition, MapKind, Object, Packet};
use std::os::fd::{AsRawFd, OwnedFd};

/// A program in both, with its maps.
struct Both {
    machine: Machine,
    number: usize,
    maps: Vec<KernelMap>,
    program: OwnedFd,
}

/// The kernel's maps of an object.
fn kernel_maps(object: &Object, cpus: u32) -> Result<Vec<KernelMap>, i32> {
    let mut maps = Vec::new();
    for map in &object.maps {
        let made = match &map.inner {
            Some(inner) => KernelMap::with_inner(map, &KernelMap::new(inner, cpus)?)?,
            None if has_lock(object, map) => KernelMap::with_lock(map, cpus)?,
            None => KernelMap::new(&sized(map.clone(), cpus), cpus)?,
        };
        if let Some(contents) = &map.contents {
            made.update(&[0; 4], std::slice::from_ref(contents), 0)?;
            if map.is_constant() {
                made.freeze()?;
            }
        }
        maps.push(made);
    }
    for (number, map) in object.maps.iter().enumerate() {
        for (key, initial) in &map.initial {
            if let Initial::Map(other) = initial {
                let inner = maps[*other].fd.as_raw_fd() as u32;
                maps[number].update(&key.to_ne_bytes(), &[inner.to_ne_bytes().to_vec()], 0)?;
            }
        }
    }
    Ok(maps)
}

/// Whether values begin with a lock.
fn has_lock(object: &Object, map: &MapDefinition) -> bool {
    let first = object.btf.members(map.types.1).and_then(|members| members.first());
    first.and_then(|first| object.btf.plain(first.type_id)).is_some_and(|found| found.name == "bpf_spin_lock")
}

/// Loaders set the sizes of arrays of perf events.
fn sized(mut map: MapDefinition, cpus: u32) -> MapDefinition {
    if map.kind == MapKind::PerfEvents as u32 {
        map.value_size = 4;
        map.max_entries = if map.max_entries == 0 { cpus } else { map.max_entries };
    }
    map
}

fn load(linked: &Linked, maps: &[KernelMap]) -> Result<OwnedFd, (i32, String)> {
    let mut slots = linked.slots.clone();
    for slot in slots.iter_mut().filter(|slot| slot.is_wide()) {
        if slot.src == CONSTANT_MAP || slot.src == CONSTANT_VALUE {
            slot.imm = maps[slot.imm as usize].fd.as_raw_fd();
        }
    }
    let functions: Vec<usize> = linked.functions.keys().copied().collect();
    sys::load(&slots, &functions)
}

impl Both {
    fn new(object: &Object, entry: &Entry) -> Result<Both, String> {
        let cpus = possible_cpus();
        let limits = Limits { cpus, ..Limits::default() };
        let mut machine = Machine::new(object, limits).map_err(|error| error.to_string())?;
        let linked = object.link(entry).map_err(|error| error.to_string())?;
        let maps = kernel_maps(object, cpus).map_err(|error| format!("the kernel's maps: errno {error}"))?;
        let program = load(&linked, &maps).map_err(|(error, log)| {
            format!("the kernel: errno {error}: {log}; here: {:?}", check_verified(&linked, &object.maps))
        })?;
        check_verified(&linked, &object.maps)
            .unwrap_or_else(|error| panic!("{}: the kernel loads it, and {error}", entry.name));
        for (number, map) in object.maps.iter().enumerate() {
            for (key, initial) in &map.initial {
                if let Initial::Program(name) = initial {
                    let other =
                        object.link(object.program(Some(name)).unwrap()).map_err(|e| e.to_string())?;
                    let other = load(&other, &maps)
                        .map_err(|(error, log)| format!("{name}: errno {error}: {log}"))?;
                    sys::set_program(&maps[number], *key, &other).unwrap();
                }
            }
        }
        machine.check_jumps(&linked).map_err(|error| error.to_string())?;
        let number = machine.add_program(linked);
        Ok(Both { machine, number, maps, program })
    }

    /// The same random entries in both.
    fn fill(&mut self, random: &mut Random, seen: &[u8]) {
        for (number, kernel) in self.maps.iter().enumerate() {
            let map = &mut self.machine.maps[number];
            let fillable = matches!(
                map.kind,
                MapKind::Hash
                    | MapKind::Array
                    | MapKind::PerCpuArray
                    | MapKind::PerCpuHash
                    | MapKind::Lpm
                    | MapKind::LruHash
            );
            if !fillable || map.definition.contents.is_some() {
                continue;
            }
            let copies = if map.kind.is_per_cpu() { possible_cpus() } else { 1 };
            for _ in 0..4 {
                // Keys are parts of a packet, so that lookups find some.
                let size = map.definition.key_size as usize;
                let at = [26, 30, 34, 36, 0, 6, 12][random.below(7) as usize];
                let mut key: Vec<u8> = seen.iter().cycle().skip(at).take(size).copied().collect();
                if map.kind == MapKind::Lpm {
                    key[..4].copy_from_slice(&(random.below(33) as u32).to_ne_bytes());
                    let address = seen.iter().cycle().skip(30);
                    key[4..].iter_mut().zip(address).for_each(|(byte, seen)| *byte = *seen);
                }
                let value = |random: &mut Random| {
                    let byte = [0, 1, 2, 3, 13, 15, 255][random.below(7) as usize];
                    let mut value = vec![0; map.definition.value_size as usize];
                    value[0] = byte;
                    value
                };
                let values: Vec<_> = (0..copies).map(|_| value(random)).collect();
                let expected = kernel.update(&key, &values, 0).map_err(i64::from);
                assert_eq!(map.set(&key, &values, 0).map_err(|error| error.0), expected);
            }
        }
    }

    /// Runs both on random frames. An error names the first frame with another result or packet.
    fn frames(&mut self, name: &str, random: &mut Random, frames: u64) -> Result<(), String> {
        for number in 0..frames {
            let frame = frame(random);
            let mut packet = Packet::new(&frame, 0).unwrap();
            let kernel = sys::run(&self.program, &frame, 0).unwrap();
            let outcome = self.machine.run(self.number, &mut packet);
            let place = format!("{name}, frame {number}: {frame:02x?}");
            let outcome = outcome.unwrap_or_else(|trap| panic!("{place}: {trap}"));
            if outcome.value != kernel.value {
                return Err(format!("{place}: {}, and the kernel's {}", outcome.value, kernel.value));
            }
            if packet.bytes() != kernel.packet {
                return Err(format!("{place}:\n{:02x?}\n{:02x?}", packet.bytes(), kernel.packet));
            }
        }
        Ok(())
    }

    fn differences(&self) -> Vec<String> {
        let compared = self.maps.iter().zip(&self.machine.maps).filter_map(|(kernel, own)| {
            let skipped = matches!(
                own.kind,
                MapKind::Programs
                    | MapKind::ArrayOfMaps
                    | MapKind::HashOfMaps
                    | MapKind::Ring
                    | MapKind::PerfEvents
                    | MapKind::Cpus
                    | MapKind::Sockets
            );
            // Large arrays take long to read.
            if skipped || own.definition.max_entries > 10_000 {
                return None;
            }
            let mut items: Vec<_> = own.items().into_iter().map(|item| (item.key, item.values)).collect();
            items.sort();
            (items != kernel.items()).then(|| own.definition.name.clone())
        });
        compared.collect()
    }
}

/// Whether results of a helper differ from run to run.
fn reads_clock(helper: Helper) -> bool {
    matches!(helper, Helper::KtimeGet | Helper::Jiffies | Helper::Random)
}

/// A frame of ARP, IPv4 or IPv6, with tags, options and parts of datagrams, and UDP, TCP or ICMP; sometimes cut or damaged.
fn frame(random: &mut Random) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..12).map(|_| random.below(4) as u8).collect();
    match random.below(8) {
        0 => frame.extend([0x88, 0xa8, 0x00, 0x06, 0x81, 0x00, 0x00, 0x05]),
        1 | 2 => frame.extend([0x81, 0x00, 0x00, 0x05]),
        _ => {}
    }
    let protocol = [6, 17, 1, 47][random.below(4) as usize];
    match random.below(10) {
        0 => frame.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]),
        1..=6 => {
            // A whole datagram, its first part, a later one, or one that may not be divided.
            let part: [u8; 2] = [[0, 0], [0, 0], [0x20, 0], [0, 10], [0x40, 0]][random.below(5) as usize];
            let options = random.below(6) == 0;
            frame.extend([0x08, 0x00, 0x45 + u8::from(options), 0, 0, 40, 0, 0, part[0], part[1]]);
            frame.extend([[64, 1][random.below(2) as usize], protocol, 0, 0]);
            frame.extend([10, 0, 0, random.below(3) as u8, 10, 0, 1, random.below(3) as u8]);
            frame.extend(&[7, 3, 4, 0][..if options { 4 } else { 0 }]);
        }
        _ => {
            let header = [protocol, protocol, 58, 0, 44][random.below(5) as usize];
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, header, 64]);
            frame.extend((0..32).map(|_| random.below(2) as u8));
            frame.extend(&[protocol, 0, 0, 0, 0, 0, 0, 0][..if matches!(header, 0 | 44) { 8 } else { 0 }]);
        }
    }
    frame.extend([0, random.below(3) as u8, 0, 80 + random.below(2) as u8]);
    let most = if random.below(4) == 0 { 1470 } else { 200 };
    frame.extend((0..30 + random.below(most)).map(|_| random.next() as u8));
    if random.below(8) == 0 {
        let at = random.below(frame.len() as u64) as usize;
        frame[at] ^= 1 << random.below(8);
    }
    if random.below(8) == 0 {
        frame.truncate(14 + random.below(40) as usize);
    }
    frame
}

/// Runs all programs of an object; returns the names of those that ran, and the reasons of the others.
fn compare(file: &[u8], random: &mut Random, frames: u64) -> (Vec<String>, Vec<String>) {
    let (mut ran, mut others) = (Vec::new(), Vec::new());
    let mut object = match Object::read(file) {
        Ok(object) => object,
        Err(error) => return (ran, vec![error.to_string()]),
    };
    // Tools set the sizes that their objects leave out.
    let loaders =
        object.maps.iter_mut().filter(|map| map.max_entries == 0 && map.kind != MapKind::PerfEvents as u32);
    loaders.for_each(|map| map.max_entries = 64);
    for entry in object.programs.iter().chain(&object.open) {
        let mut both = match Both::new(&object, entry) {
            Ok(both) => both,
            Err(reason) => {
                others.push(format!("{}: {reason}", entry.name));
                continue;
            }
        };
        let first = frame(random);
        both.fill(random, &[first, vec![0; 64]].concat());
        let timed = object.link(entry).unwrap().helpers().into_iter().any(reads_clock);
        match (both.frames(&entry.name, random, frames), timed) {
            (Ok(()), true) => {
                others.push(format!("{}: same apart from maps, since it reads the clock", entry.name))
            }
            (Err(different), true) => others.push(format!("{different}; it reads the clock")),
            (Err(different), false) => panic!("{different}"),
            (Ok(()), false) => {
                assert_eq!(both.differences(), Vec::<String>::new(), "maps of {}", entry.name);
                ran.push(entry.name.clone());
            }
        }
    }
    (ran, others)
}

#[test]
fn programs_of_objects_run_as_in_the_kernel() {
    if !allowed() {
        return;
    }
    stay_on_first_cpu();
    let mut random = Random(5);
    let (ran, others) = compare(include_bytes!("../data/parts.o"), &mut random, programs());
    assert_eq!((ran.as_slice(), others.as_slice()), (&["other".to_owned(), "parts".to_owned()][..], &[][..]));
    let (ran, others) = compare(&aged(include_bytes!("../data/parts.o")), &mut random, programs());
    assert_eq!((ran.len(), others.as_slice()), (2, &[][..]));
    for file in [include_bytes!("../data/loaders.o").to_vec(), aged(include_bytes!("../data/loaders.o"))] {
        let (ran, others) = compare(&file, &mut random, programs());
        assert_eq!((ran.len(), others.as_slice()), (5, &[][..]));
    }
    let (ran, others) = compare(include_bytes!("../data/locks.o"), &mut random, programs());
    assert_eq!(ran, ["locked"]);
    assert_eq!(others.len(), 2, "{others:?}");
    let (ran, others) = compare(include_bytes!("../data/absent.o"), &mut random, programs());
    assert_eq!((ran.len(), others.len()), (5, 2), "{ran:?} {others:?}");
    let Some(folder) = std::env::var_os("NICETY_XDP_OBJECTS") else { return };
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut differ = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|kind| kind == "o" || kind == "elf"))
    {
        let file = std::fs::read(path).unwrap();
        // Further objects are of interest after one that differs.
        let compared = std::panic::catch_unwind(|| compare(&file, &mut Random(5), programs()));
        match compared {
            Ok((ran, others)) => println!("{}: same in {ran:?}; {others:?}", path.display()),
            Err(_) => differ.push(path.display().to_string()),
        }
    }
    assert!(differ.is_empty(), "other results than the kernel's: {}", differ.join(", "));
}
