//! Random programs with helpers on maps of most types, on a core with the runtime and in the interpreter.

#[path = "../../ebpf/tests/generate.rs"]
#[expect(dead_code, reason = "the file serves another target as well, which uses the rest")]
mod generate;

use crate::card::{Card, QUEUES, request};
use crate::toolchain::{Cores, assembled};
use generate::{Generated, Generator, Random, maps, names_map};
use nicety_ebpf::instruction::CONSTANT_FUNCTION;
use nicety_ebpf::{Limits, Machine, MapKind, Object, Packet};
use nicety_xdp::Request;
use std::fmt::Write;

const CPUS: u32 = 2;

/// The text of an object: legacy definitions of maps, and slots as numbers.
fn text(program: &Generated) -> String {
    let mut text = String::from("\t.section xdp,\"ax\"\n");
    let mut at = 0;
    while at < program.slots.len() {
        let slot = program.slots[at];
        if let Some(number) = program.functions.iter().position(|first| *first == at) {
            let end = program.functions.get(number + 1).copied().unwrap_or(program.slots.len());
            let (name, size) = (function(at), 8 * (end - at));
            let _ =
                write!(text, "\t.globl {name}\n\t.type {name},@function\n\t.size {name},{size}\n{name}:\n");
        }
        if names_map(&slot) {
            let _ = writeln!(text, "\tr{} = m{:02} ll", slot.dst, slot.imm);
        } else if slot.is_wide() && slot.src == CONSTANT_FUNCTION {
            let _ = writeln!(
                text,
                "\tr{} = {} ll",
                slot.dst,
                function((at as i64 + 1 + i64::from(slot.imm)) as usize)
            );
        } else {
            let _ = writeln!(text, "\t.quad {:#x}", u64::from_le_bytes(slot.bytes()));
            at += 1;
            continue;
        }
        at += 2;
    }
    text.push_str("\t.section maps,\"aw\"\n");
    for (number, map) in maps().iter().enumerate() {
        // Maps in maps have no legacy definition.
        let kind = if map.inner.is_some() { MapKind::Array as u32 } else { map.kind };
        let words =
            [kind, map.key_size, map.value_size, map.max_entries, map.flags].map(|word| word.to_string());
        let name = format!("m{number:02}");
        let _ = write!(text, "\t.globl {name}\n\t.size {name},20\n{name}:\n\t.long {}\n", words.join(", "));
    }
    text
}

fn function(first: usize) -> String {
    if first == 0 { "random".to_owned() } else { format!("function_{first}") }
}

/// Whether a program has only what a legacy object can have.
fn is_plain(program: &Generated) -> bool {
    let all = maps();
    program.slots.iter().filter(|slot| names_map(slot)).all(|slot| all[slot.imm as usize].inner.is_none())
}

fn compare(seed: u64, cores: Cores, unverified: bool) {
    let program = Generator::generate(Random(seed));
    let file = assembled(&format!("seed_{seed}_{unverified}"), &text(&program));
    let request = Request { frames: true, unverified, ..request("random", cores, &[]) };
    let mut card = Card::new(&format!("seed_{seed}_{unverified}"), &file, cores, &request);
    let object = Object::read(&file).unwrap();
    let mut machine = Machine::new(&object, Limits { cpus: CPUS, ..Limits::default() }).unwrap();
    let number = machine.add(&object, object.program(Some("random")).unwrap()).unwrap();
    for map in 0..object.maps.len() {
        if machine.maps[map].kind == MapKind::PerfEvents {
            machine.open_events(map).unwrap();
        }
    }
    let mut random = Random(!seed);
    for step in 0..12 {
        let length = [14, 39, 40, 60, 200][random.below(5) as usize];
        let frame: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        (card.core, machine.cpu) = (step % CPUS, step % CPUS);
        let queue = random.below(u64::from(QUEUES)) as u32;
        let mut packet = Packet::new(&frame, 0).unwrap();
        (packet.interface, packet.queue) = (1, queue);
        let outcome = machine.run(number, &mut packet).unwrap();
        let (code, found) = card.handle(&frame, queue);
        let place = format!("seed {seed} on {cores:?}, frame {step} of {length}: {outcome:?}");
        if outcome.value != nicety_ebpf::REDIRECT {
            let expected = match outcome.value {
                2 => 1,
                3 => 2,
                _ => 0,
            };
            assert_eq!(code, expected, "{place}");
        }
        // A dropped frame keeps its place.
        if code != 0 {
            let all = packet.bytes();
            assert_eq!(format!("{found:?}"), format!("{:?}", &all[packet.metadata()..]), "{place}");
        }
    }
}

#[test]
fn random_programs_run_as_in_the_interpreter() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("NICETY_SEED").unwrap_or(1);
    let count = number("PROPTEST_CASES").map_or(12, |cases| (cases / 8).clamp(12, 4000));
    let seeds = (first..).filter(|seed| is_plain(&Generator::generate(Random(*seed)))).take(count as usize);
    for seed in seeds {
        // Checks refuse nothing that Linux takes.
        Cores::ALL.into_iter().for_each(|cores| compare(seed, cores, seed % 2 == 0));
    }
}
