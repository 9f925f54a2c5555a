//! The programs of the objects in the folder that `NICETY_XDP_OBJECTS` names, on a card's cores and in the interpreter.

use crate::card::{CPUS, Card, QUEUES, request};
use crate::programs::Random;
use crate::toolchain::{Cores, compiled};
use nicety_ebpf::report::maps::{dump, fill};
use nicety_ebpf::{Entry, Helper, Limits, Machine, Map, MapKind, Object, Outcome, Packet, Redirect};
use nicety_xdp::{Request, after, build};
use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Larger maps fit no card.
const MOST_ENTRIES: u32 = 4096;
const MEMORY: u64 = 256 << 20;
const FRAMES: u32 = 150;
/// The bit of a destination with a channel of the host.
const CHANNEL: u32 = 0x100;

/// A program in both, with equal entries of maps.
struct Both {
    card: Card,
    machine: Machine,
    program: usize,
    request: Request,
    /// Whether results depend on a clock, or on random numbers.
    timed: bool,
}

/// The object with sizes that loaders set, or that fit a card.
fn sized(object: &Object) -> Object {
    let mut object = object.clone();
    for map in object.maps.iter_mut().filter(|map| map.contents.is_none()) {
        map.max_entries = match map.max_entries {
            0 => 64,
            _ if map.kind == MapKind::Ring as u32 => MOST_ENTRIES,
            size => size.min(MOST_ENTRIES),
        };
    }
    object
}

fn list(bytes: &[u8]) -> String {
    format!("[{}]", bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(", "))
}

/// The size of a map and some entries. Keys are parts of frames, so that lookups find some.
fn contents(map: &Map, random: &mut Random) -> String {
    let definition = &map.definition;
    let mut entries = String::new();
    for number in 0..definition.max_entries.min(4) {
        let at = [26, 30, 34, 36, 0, 6, 12][random.below(7) as usize];
        let seen = random.frame();
        let bytes = seen.iter().chain(&[0; 64]).cycle().skip(at).take(definition.key_size as usize);
        let mut key: Vec<u8> = bytes.copied().collect();
        match map.kind {
            MapKind::Hash | MapKind::LruHash => {}
            MapKind::Lpm => key[..4].copy_from_slice(&random.below(33).to_ne_bytes()),
            MapKind::Array | MapKind::Devices | MapKind::DeviceHash | MapKind::Cpus => {
                key = number.to_ne_bytes().to_vec();
            }
            _ => break,
        }
        let mut value = vec![0; definition.value_size as usize];
        value[0] = [1, 2, 3, 13, 15, 255][random.below(6) as usize];
        let comma = if number == 0 { "" } else { ", " };
        let _ = write!(entries, "{comma}{{\"key\": {}, \"value\": {}}}", list(&key), list(&value));
    }
    format!("{{\"max_entries\": {}, \"entries\": [{entries}]}}", definition.max_entries)
}

impl Both {
    /// Whether a card runs the program. An error is the reason why it does not.
    fn new(file: &[u8], object: &Object, entry: &Entry, cores: Cores) -> Result<Both, String> {
        let mut random = Random(11);
        let limits = Limits { cpus: CPUS, ..Limits::default() };
        let mut machine = Machine::new(object, limits).map_err(|error| error.to_string())?;
        let program = machine.add(object, entry).map_err(|error| error.to_string())?;
        let mut maps = Vec::new();
        for number in 0..machine.maps.len() {
            let map = &machine.maps[number];
            // Maps that the object itself fills keep their entries.
            if map.definition.contents.is_some() || !map.definition.initial.is_empty() {
                continue;
            }
            let (name, text) = (map.definition.name.clone(), contents(map, &mut random));
            fill(&mut machine, number, &object.btf, &text, &mut |_, _| Err("no programs".to_owned()))?;
            maps.push((name, text));
            if machine.maps[number].kind == MapKind::PerfEvents {
                machine.open_events(number).map_err(|error| error.to_string())?;
            }
        }
        let request = Request { frames: true, memory: MEMORY, maps, ..request(&entry.name, cores, &[]) };
        build(file, &request).map_err(|error| error.to_string())?;
        let card = Card::new("object", file, cores, &request);
        let changing = |helper: Helper| {
            let name = helper.name();
            ["ktime", "jiffies", "prandom"].into_iter().any(|part| name.contains(part))
        };
        let timed = object.link(entry).is_ok_and(|linked| linked.helpers().into_iter().any(changing));
        Ok(Both { card, machine, program, request, timed })
    }

    /// Runs both on a frame, and returns the card's destination. An error is a trap of the interpreter.
    fn frame(&mut self, step: u32, random: &mut Random) -> Result<u32, String> {
        let (frame, queue) = (random.frame(), random.below(QUEUES));
        (self.card.core, self.machine.cpu) = (step % CPUS, step % CPUS);
        let mut packet = Packet::new(&frame, 0).unwrap();
        (packet.interface, packet.queue) = (1, queue);
        let outcome = self.machine.run(self.program, &mut packet).map_err(|trap| trap.to_string())?;
        let (code, found) = self.card.handle(&frame, queue);
        if !self.timed {
            assert_eq!(code, self.destination(&outcome), "frame {step}: {outcome:?}");
            if code != 0 {
                assert_eq!(found, packet.bytes()[packet.metadata()..], "frame {step}: {outcome:?}");
            }
        }
        Ok(code)
    }

    fn destination(&self, outcome: &Outcome) -> u32 {
        let is_device =
            |map: usize| matches!(self.machine.maps[map].kind, MapKind::Devices | MapKind::DeviceHash);
        match (outcome.value, &outcome.redirect) {
            (2, _) => 1,
            (3, _) | (4, Some(Redirect::Interface(_) | Redirect::Broadcast { .. })) => 2,
            (4, Some(Redirect::Entry { map, .. })) if is_device(*map) => 2,
            (4, Some(Redirect::Entry { key, .. })) => CHANNEL | *key,
            _ => 0,
        }
    }

    /// Compares the entries of maps after the frames.
    fn maps(self, file: &[u8], object: &Object, returned: &BTreeMap<String, u64>) {
        let names: Vec<String> = object.maps.iter().map(|map| map.name.clone()).collect();
        let after = after(file, &self.card.elf, self.card.data.1, &self.request, (returned, &names)).unwrap();
        // Entries of perf events are those of a reader, and a card has none.
        let kept = |(number, _): &(usize, &String)| self.machine.maps[*number].kind != MapKind::PerfEvents;
        for (number, name) in names.iter().enumerate().filter(kept) {
            let Some(found) = after.maps.get(name) else { continue };
            let expected = dump(&self.machine, number, &object.btf);
            assert_eq!(sorted(found), sorted(&expected), "map {name}");
        }
    }
}

fn sorted(rows: &[impl Debug]) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

/// Compares a program. An error is the reason why a card does not run it.
fn compare(file: &[u8], entry: &Entry, object: &Object, cores: Cores) -> Result<(), String> {
    let object = sized(object);
    let mut both = Both::new(file, &object, entry, cores)?;
    let mut random = Random(11);
    let mut returned = BTreeMap::new();
    for step in 0..FRAMES {
        let name = match both.frame(step, &mut random)? {
            0 => "DROP",
            2 => "WIRE",
            _ => "HOST",
        };
        *returned.entry(name.to_owned()).or_insert(0) += 1;
    }
    if !both.timed {
        both.maps(file, &object, &returned);
    }
    Ok(())
}

/// Compares all programs for a device; returns the names of those that ran, and the reasons of the others.
fn compare_all(file: &[u8]) -> (Vec<String>, Vec<String>) {
    let (mut ran, mut others) = (Vec::new(), Vec::new());
    let Ok(object) = Object::read(file) else { return (ran, others) };
    for entry in &object.programs {
        if object.link(entry).is_err() || object.device_program(Some(&entry.name)).is_err() {
            continue;
        }
        for cores in Cores::ALL {
            match compare(file, entry, &object, cores) {
                Ok(()) => ran.push(format!("{} on {cores:?}", entry.name)),
                Err(reason) => others.push(reason),
            }
        }
    }
    (ran, others)
}

#[test]
fn objects_run_on_cards_as_in_the_interpreter() {
    let (ran, others) = compare_all(&compiled("counters"));
    assert_eq!((ran.len(), others), (2, Vec::new()));
    let Some(folder) = std::env::var_os("NICETY_XDP_OBJECTS") else { return };
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut differ = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|kind| kind == "o" || kind == "elf"))
    {
        let file = std::fs::read(path).unwrap();
        // Further objects are of interest after one that differs.
        match catch_unwind(AssertUnwindSafe(|| compare_all(&file))) {
            Ok((ran, others)) => println!("{}: same in {ran:?}; {others:?}", path.display()),
            Err(_) => differ.push(path.display().to_string()),
        }
    }
    assert!(differ.is_empty(), "other results than the interpreter's: {}", differ.join(", "));
}
