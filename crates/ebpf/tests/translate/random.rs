//! Random programs beside the interpreter.

use super::build::{Folder, compiler, link, on_hpu, options};
use crate::generate::{Generator, Random, maps};
use nicety_ebpf::translate::{self, Translation};
use nicety_ebpf::{Instruction, Limits, Linked, Machine, MapKind, Packet};

/// Programs in one file: the compiler takes longer to start than to translate many of them.
const BATCH: u64 = 40;

/// A program and its packets.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) slots: Vec<Instruction>,
    pub(crate) packets: Vec<Vec<u8>>,
}

/// The result, the packet and the two arrays behind each packet.
fn expected(case: &Case) -> Vec<Vec<u8>> {
    let mut machine = Machine::empty(Limits::default());
    for map in &maps() {
        machine.add_map(map).unwrap();
    }
    let number = machine.add_program(linked(case));
    let programs = maps().iter().position(|map| map.kind == MapKind::Programs as u32).unwrap();
    machine.maps[programs].set_map(&1u32.to_ne_bytes(), number as u32).unwrap();
    let mut all = Vec::new();
    for packet in &case.packets {
        let mut own = Packet::new(packet, 0).unwrap();
        let outcome = machine.run(number, &mut own).unwrap();
        let mut bytes = outcome.value.to_le_bytes().to_vec();
        bytes.extend(own.bytes());
        for map in [0, 2] {
            machine.maps[map].items().into_iter().for_each(|item| bytes.extend(item.values.concat()));
        }
        all.push(bytes);
    }
    all
}

fn linked(case: &Case) -> Linked {
    Linked::of_slots(&case.name, case.slots.clone()).unwrap()
}

/// Runs cases in one file beside the interpreter.
pub(crate) fn compare(isa: &str, misaligned: bool, cases: &[Case]) {
    let Some(zig) = compiler() else {
        eprintln!("skipped: translations of {isa} (no ziglang in .venv, and no NICETY_ZIG)");
        return;
    };
    let folder = Folder::new();
    let translated = |case| translate::programs(&maps(), &[linked(case)], &options(isa, misaligned)).unwrap();
    let translations: Vec<Translation> = cases.iter().map(translated).collect();
    let numbered = cases.iter().enumerate();
    let runs: Vec<(usize, &[u8])> = numbered
        .flat_map(|(number, case)| case.packets.iter().map(move |packet| (number, &packet[..])))
        .collect();
    let results: Vec<Vec<u8>> = cases.iter().flat_map(expected).collect();
    let elf = link(&zig, &folder.0, isa, &translations, &runs);
    let out = on_hpu(&elf, isa, misaligned);
    let mut rest = &out[..];
    for ((number, packet), result) in runs.iter().zip(&results) {
        let name = &cases[*number].name;
        assert!(rest.len() >= result.len(), "{name}: the output ends");
        let (own, behind) = rest.split_at(result.len());
        rest = behind;
        if own != result {
            let at = own.iter().zip(result).position(|(a, b)| a != b).unwrap();
            panic!(
                "{isa} {name}: byte {at} of result, packet of {} and arrays: {:02x?}, interpreter {:02x?}\n{}\n{}",
                packet.len(),
                &own[at..(at + 8).min(own.len())],
                &result[at..(at + 8).min(result.len())],
                listing(&cases[*number].slots),
                translations[*number].assembly
            );
        }
    }
    assert!(rest.is_empty(), "the output goes on");
}

fn batch(isa: &str, misaligned: bool, first: u64) {
    let case = |seed: u64| {
        let mut random = Random(seed);
        let slots = Generator::plain(random.clone()).slots;
        Case { name: format!("seed_{seed}"), slots, packets: packets(&mut random) }
    };
    compare(isa, misaligned, &(first..first + BATCH).map(case).collect::<Vec<_>>());
}

fn packets(random: &mut Random) -> Vec<Vec<u8>> {
    let mut packet = || {
        let length = [14, 39, 40, 60, 200][random.below(5) as usize];
        (0..length).map(|_| random.next() as u8).collect()
    };
    (0..4).map(|_| packet()).collect()
}

fn listing(slots: &[Instruction]) -> String {
    let line = |(at, s): (usize, &Instruction)| {
        format!("{at}: {:02x} r{} r{} {:+} {:#x}", s.code, s.dst, s.src, s.offset, s.imm)
    };
    slots.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// Batches of a run: one by default, more in long runs.
fn batches() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("NICETY_SEED").unwrap_or(1);
    first..first + number("PROPTEST_CASES").map_or(2, |cases| (cases / 64).clamp(2, 500))
}

#[test]
fn random_programs_run_on_rv32_as_in_the_interpreter() {
    for at in batches() {
        let (isa, misaligned) =
            [("rv32imac_zicsr", true), ("rv32imac_zicsr_zba_zbb", false)][at as usize % 2];
        batch(isa, misaligned, at * BATCH);
    }
}

#[test]
fn random_programs_run_on_rv64_as_in_the_interpreter() {
    for at in batches() {
        let (isa, misaligned) =
            [("rv64imac_zicsr", true), ("rv64imac_zicsr_zba_zbb", false)][at as usize % 2];
        batch(isa, misaligned, at * BATCH);
    }
}
