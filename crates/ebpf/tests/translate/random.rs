//! Random programs beside the interpreter.

use super::build::{Folder, compiler, link, on_hpu, on_qemu, options};
use crate::generate::{Generated, Generator, Random, maps};
use nicety_ebpf::translate::{self, Translation};
use nicety_ebpf::{Limits, Linked, Machine, MapKind, Packet};

/// Programs in one file: the compiler takes longer to start than to translate many of them.
const BATCH: u64 = 40;

/// The result, the packet and the two arrays behind each packet.
fn expected(program: &Generated, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut machine = Machine::empty(Limits::default());
    for map in &maps() {
        machine.add_map(map).unwrap();
    }
    let number = machine.add_program(linked("expected", program));
    let programs = maps().iter().position(|map| map.kind == MapKind::Programs as u32).unwrap();
    machine.maps[programs].set_map(&1u32.to_ne_bytes(), number as u32).unwrap();
    let mut all = Vec::new();
    for packet in packets {
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

fn linked(name: &str, program: &Generated) -> Linked {
    Linked::of_slots(name, program.slots.clone()).unwrap()
}

fn packets(random: &mut Random) -> Vec<Vec<u8>> {
    let mut packet = || {
        let length = [14, 39, 40, 60, 200][random.below(5) as usize];
        (0..length).map(|_| random.next() as u8).collect()
    };
    (0..4).map(|_| packet()).collect()
}

fn batch(isa: &str, misaligned: bool, first: u64, run: impl Fn(&std::path::Path) -> Option<Vec<u8>>) {
    let Some(zig) = compiler() else {
        eprintln!("skipped: translations of {isa} (no ziglang in .venv, and no NICETY_ZIG)");
        return;
    };
    let folder = Folder::new();
    let (mut translations, mut runs, mut results) = (Vec::<Translation>::new(), Vec::new(), Vec::new());
    let mut seeds = Vec::new();
    for seed in first..first + BATCH {
        let mut random = Random(seed);
        let program = Generator::plain(random.clone());
        let packets = packets(&mut random);
        let own = linked(&format!("seed_{seed}"), &program);
        translations.push(translate::programs(&maps(), &[own], &options(isa, misaligned)).unwrap());
        results.extend(expected(&program, &packets));
        runs.extend(packets.into_iter().map(|packet| (translations.len() - 1, packet)));
        seeds.push(program);
    }
    let elf = link(&zig, &folder.0, isa, &translations, &runs);
    let Some(out) = run(&elf) else {
        eprintln!("skipped: translations of {isa} (no emulator)");
        return;
    };
    let mut rest = &out[..];
    for ((number, packet), result) in runs.iter().zip(&results) {
        assert!(rest.len() >= result.len(), "seed {}: the output ends", first + *number as u64);
        let (own, behind) = rest.split_at(result.len());
        rest = behind;
        if own != result {
            let at = own.iter().zip(result).position(|(a, b)| a != b).unwrap();
            let listing = listing(&seeds[*number]);
            panic!(
                "{isa} seed {}: byte {at} of result, packet of {} and arrays: {:02x?}, interpreter {:02x?}\n{listing}\n{}",
                first + *number as u64,
                packet.len(),
                &own[at..(at + 8).min(own.len())],
                &result[at..(at + 8).min(result.len())],
                translations[*number].assembly
            );
        }
    }
    assert!(rest.is_empty(), "the output goes on");
}

fn listing(program: &Generated) -> String {
    let slots = program.slots.iter().enumerate();
    let lines = slots
        .map(|(at, s)| format!("{at}: {:02x} r{} r{} {:+} {:#x}", s.code, s.dst, s.src, s.offset, s.imm));
    lines.collect::<Vec<_>>().join("\n")
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
        batch(isa, misaligned, at * BATCH, |elf| Some(on_hpu(elf, isa, misaligned)));
    }
}

#[test]
fn random_programs_run_on_rv64_as_in_the_interpreter() {
    for at in batches() {
        let (isa, misaligned) =
            [("rv64imac_zicsr", true), ("rv64imac_zicsr_zba_zbb", false)][at as usize % 2];
        batch(isa, misaligned, at * BATCH, |elf| on_qemu(elf, true));
    }
}
