//! The kernel's own test runs beside this machine: the same programs, packets and maps.
//!
//! Where bpf() is not allowed, the tests say so and end.

mod edges;
mod objects;
mod sys;

use crate::generate::{Generated, Generator, INNER, Random, maps, names_map};
use nicety_ebpf::{Instruction, Limits, Linked, Machine, MapKind, Packet};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use sys::{KernelMap, Ran};

/// Whether the kernel can be asked.
fn allowed() -> bool {
    static PROBE: std::sync::OnceLock<Result<(), String>> = std::sync::OnceLock::new();
    match PROBE.get_or_init(sys::probe) {
        Ok(()) => true,
        Err(reason) => {
            let asked = std::env::var_os("NICETY_XDP_OBJECTS").is_some();
            assert!(!asked, "no comparison with the kernel: {reason}");
            eprintln!("skipped: comparison with the kernel ({reason})");
            false
        }
    }
}

/// The same maps in the kernel and in a machine.
struct Pair {
    machine: Machine,
    kernel: Vec<KernelMap>,
    cpus: u32,
}

impl Pair {
    fn new() -> Pair {
        sys::stay_on_first_cpu();
        let cpus = sys::possible_cpus();
        let mut machine = Machine::empty(Limits { cpus, ..Limits::default() });
        let mut kernel: Vec<KernelMap> = Vec::new();
        let definitions = maps();
        for map in &definitions {
            machine.add_map(map).unwrap();
        }
        let inner = KernelMap::new(&definitions[INNER], cpus).unwrap();
        for map in &definitions[..INNER] {
            kernel.push(match map.inner {
                Some(_) => KernelMap::with_inner(map, &inner).unwrap(),
                None => KernelMap::new(map, cpus).unwrap(),
            });
        }
        kernel.push(inner);
        let mut pair = Pair { machine, kernel, cpus };
        pair.fill();
        pair
    }

    fn number(&self, kind: MapKind) -> usize {
        maps().iter().position(|map| map.kind == kind as u32).unwrap()
    }

    /// Entries of maps that programs cannot fill.
    fn fill(&mut self) {
        for kind in [MapKind::Devices, MapKind::DeviceHash, MapKind::Cpus] {
            let number = self.number(kind);
            // The loopback interface, or a queue of one packet on CPU 1 or 0.
            let key = if kind == MapKind::Cpus { self.cpus.min(2) - 1 } else { 1 };
            let value = vec![1u32.to_ne_bytes().to_vec()];
            self.kernel[number].update(&key.to_ne_bytes(), &value, 0).unwrap();
            self.machine.maps[number].set(&key.to_ne_bytes(), &value, 0).unwrap();
        }
        for kind in [MapKind::ArrayOfMaps, MapKind::HashOfMaps] {
            let number = self.number(kind);
            let inner = self.kernel[INNER].fd.as_raw_fd() as u32;
            self.kernel[number].update(&1u32.to_ne_bytes(), &[inner.to_ne_bytes().to_vec()], 0).unwrap();
            self.machine.maps[number].set_map(&1u32.to_ne_bytes(), INNER as u32).unwrap();
        }
    }

    /// The program with the kernel's descriptors.
    fn load(&self, program: &Generated) -> Result<OwnedFd, (i32, String)> {
        let mut slots: Vec<Instruction> = program.slots.clone();
        for slot in slots.iter_mut().filter(|slot| names_map(slot)) {
            slot.imm = self.kernel[slot.imm as usize].fd.as_raw_fd();
        }
        sys::load(&slots, &program.functions)
    }

    /// Differences of all maps' contents.
    fn differences(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        for (number, map) in maps().iter().enumerate() {
            let kernel = match MapKind::of(map.kind).unwrap() {
                MapKind::Queue | MapKind::Stack => std::iter::from_fn(|| self.kernel[number].take())
                    .map(|value| (Vec::new(), vec![value]))
                    .collect(),
                MapKind::Bloom | MapKind::Ring | MapKind::Programs | MapKind::PerfEvents => continue,
                // User space sees numbers of maps and queues, not those of a machine.
                MapKind::ArrayOfMaps | MapKind::HashOfMaps | MapKind::Cpus | MapKind::Sockets => continue,
                _ => self.kernel[number].items(),
            };
            let own = &mut self.machine.maps[number];
            let items: Vec<(Vec<u8>, Vec<Vec<u8>>)> = match MapKind::of(map.kind).unwrap() {
                MapKind::Queue | MapKind::Stack => {
                    std::iter::from_fn(|| own.pop().ok()).map(|value| (Vec::new(), vec![value])).collect()
                }
                _ => {
                    let mut items: Vec<_> =
                        own.items().into_iter().map(|item| (item.key, item.values)).collect();
                    items.sort();
                    items
                }
            };
            if kernel != items {
                found.push(format!("map {number} {}: kernel {kernel:?}, machine {items:?}", map.name));
            }
        }
        found
    }
}

/// Runs of one program on both, with the counts of what it has; none where the verifier refuses it.
fn compare(seed: u64) -> Result<BTreeMap<String, u64>, String> {
    let mut pair = Pair::new();
    let mut random = Random(seed);
    let program = Generator::generate(random.clone());
    let kernel = pair.load(&program).map_err(|(error, log)| format!("errno {error}: {log}"))?;
    let linked = Linked::of_slots("random", program.slots.clone())
        .unwrap_or_else(|error| panic!("seed {seed}: the kernel loads it, and the machine says {error}"));
    nicety_ebpf::translate::check_verified(&linked, &maps())
        .unwrap_or_else(|error| panic!("seed {seed}: the kernel loads it, and {error}"));
    let number = pair.machine.add_program(linked);
    let programs = pair.number(MapKind::Programs);
    sys::set_program(&pair.kernel[programs], 1, &kernel).unwrap();
    pair.machine.maps[programs].set_map(&1u32.to_ne_bytes(), number as u32).unwrap();
    for _ in 0..4 {
        random.next();
        let length = [14, 39, 40, 60, 64, 200, 1500, 3520, 5000][random.below(9) as usize];
        let metadata = if length > 60 { 4 * random.below(4) as usize } else { 0 };
        let packet: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        let Ran { value, packet: out } = sys::run(&kernel, &packet, metadata).expect("a test run");
        let mut own = Packet::new(&packet, metadata).unwrap();
        let outcome = pair.machine.run(number, &mut own);
        let listed = || listing(&program.slots);
        let outcome = outcome.unwrap_or_else(|trap| panic!("seed {seed}: {trap}\n{}", listed()));
        assert!(
            outcome.value == value,
            "seed {seed}: kernel {value:#x}, machine {:#x}\n{}",
            outcome.value,
            listed()
        );
        let bytes = own.bytes();
        let at = bytes.iter().zip(&out).position(|(own, other)| own != other);
        let lengths = (out.len(), bytes.len());
        assert!(
            bytes == out,
            "seed {seed}: packet of {length} + {metadata}, byte {at:?} of {lengths:?}\n{}",
            listed()
        );
        let differences = pair.differences();
        assert!(differences.is_empty(), "seed {seed}: {}\n{}", differences.join("\n"), listed());
    }
    Ok(program.counts)
}

fn listing(slots: &[Instruction]) -> String {
    let lines = slots.iter().enumerate().map(|(at, slot)| {
        format!("{at}: {:02x} r{} r{} {:+} {:#x}", slot.code, slot.dst, slot.src, slot.offset, slot.imm)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Programs of a run: few by default, and `PROPTEST_CASES` times a part of it in long runs.
fn programs() -> u64 {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse::<u64>().ok());
    asked.map_or(120, |cases| cases.clamp(120, 100_000))
}

#[test]
fn random_programs_run_as_in_the_kernel() {
    if !allowed() {
        return;
    }
    let first = std::env::var("NICETY_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let (mut counts, mut refused) = (BTreeMap::<String, u64>::new(), Vec::new());
    let count = programs();
    for seed in first.unwrap_or(1)..first.unwrap_or(1) + count {
        match compare(seed) {
            Ok(found) => found.into_keys().for_each(|what| *counts.entry(what).or_default() += 1),
            Err(reason) => refused.push(format!("seed {seed}: {reason}")),
        }
    }
    println!("{count} programs, {} refused by the verifier", refused.len());
    counts.iter().for_each(|(what, count)| println!("{count:8} programs with {what}"));
    refused.iter().take(5).for_each(|reason| println!("{reason}"));
    assert!(
        10 * refused.len() as u64 <= count,
        "the verifier refuses more than a tenth:\n{}",
        refused.join("\n")
    );
    // The classes that every long run has often.
    if count >= 20_000 {
        let rare: Vec<_> = counts.iter().filter(|(_, count)| **count < 200).collect();
        assert!(rare.is_empty(), "fewer than 200 programs with {rare:?}");
    }
}

#[test]
fn the_kernel_agrees_on_what_is_refused_for_certain() {
    if !allowed() {
        return;
    }
    let map = KernelMap::new(&crate::verified::hash(), sys::possible_cpus()).unwrap();
    let load = |slots: &[Instruction]| {
        let mut slots = slots.to_vec();
        for slot in slots.iter_mut().filter(|slot| names_map(slot)) {
            slot.imm = map.fd.as_raw_fd();
        }
        sys::load(&slots, &[0])
    };
    for (slots, reason) in crate::verified::refused() {
        assert!(load(&slots).is_err(), "{reason}: {}", listing(&slots));
    }
    for slots in crate::verified::taken() {
        load(&slots).unwrap_or_else(|(_, log)| panic!("{log}: {}", listing(&slots)));
    }
}
