//! Runs of a program on packets.

use super::maps::{self, Dumped};
use super::value::hex;
use crate::aborted::Aborted;
use crate::error::ObjectError;
use crate::machine::{LONGEST, Limits, Machine, Outcome, Packet, Redirect, SHORTEST, verdict};
use crate::map::MapKind;
use crate::object::Object;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Packets with a row of their own in a report.
const ROWS: usize = 100;
/// The most texts of traps in a report.
const TRAPS: usize = 10;
/// Instructions between two questions to the caller whether the run goes on. A packet counts as `PACKET` more.
const ASKS: u64 = 1 << 24;
const PACKET: u64 = 64;

/// A run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// The program's name, where the object has several.
    pub program: Option<String>,
    /// Runs of each packet.
    pub repeat: u64,
    /// Instructions for one packet.
    pub instructions: Option<u64>,
    /// CPUs of the machine; packets run on the first.
    pub cpus: u32,
    /// Time from one packet to the next, where they have no times.
    pub gap_ns: u64,
    /// The interface that packets come from.
    pub interface: u32,
    /// The receive queue that packets come from.
    pub queue: u32,
    /// Names of maps, and their entries as JSON.
    pub maps: Vec<(String, String)>,
}

/// The reason why a run did not begin.
#[derive(Debug)]
pub enum RunError {
    /// The object.
    Object(ObjectError),
    /// A map's entries: name and problem.
    Map(String, String),
    /// A packet: its number from 0 on, and the problem.
    Packet(usize, String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Object(error) => error.fmt(f),
            RunError::Map(name, problem) => write!(f, "map {name}: {problem}"),
            RunError::Packet(number, problem) => write!(f, "packet {number}: {problem}"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<ObjectError> for RunError {
    fn from(error: ObjectError) -> RunError {
        RunError::Object(error)
    }
}

/// A finished run.
#[derive(Debug, Default, Serialize)]
pub struct RunReport {
    /// The program's name.
    pub program: String,
    /// Runs in all.
    pub packets: u64,
    /// Runs by verdict. A number that is no verdict is `invalid`.
    pub verdicts: BTreeMap<&'static str, u64>,
    /// Runs with `XDP_ABORTED`, by program and line.
    pub aborted_at: Vec<Aborted>,
    /// Runs that trapped.
    pub traps: u64,
    /// Texts of the first traps.
    pub trap_texts: Vec<String>,
    /// Instructions of all runs.
    pub instructions: u64,
    /// The first runs.
    pub rows: Vec<PacketReport>,
    /// Entries of the maps after the run, by name.
    pub maps: BTreeMap<String, Vec<Dumped>>,
    /// Records of ring buffers and samples of perf events, by map.
    pub records: BTreeMap<String, Vec<Vec<String>>>,
    /// Lines of `bpf_trace_printk`.
    pub printed: Vec<String>,
}

/// One run on one packet.
#[derive(Debug, Default, Serialize)]
pub struct PacketReport {
    /// The verdict or the number that is none.
    pub verdict: String,
    /// The result as a number.
    pub value: u32,
    /// The destination of a redirected packet.
    pub redirect: Option<String>,
    /// Instructions.
    pub instructions: u64,
    /// Bytes of metadata in front of the packet.
    pub metadata: usize,
    /// Metadata and packet after the run.
    pub bytes: String,
    /// The trap.
    pub trap: Option<String>,
}

/// A packet and its time.
pub type Timed = (Vec<u8>, Option<u64>);

/// Runs a program on packets. Each run gets the packet as it was given. From time to time, `go_on` says whether the run goes on;
/// without a report, it has said no.
///
/// # Errors
/// The object, a map's entries or a packet is wrong.
pub fn run(
    file: &[u8],
    request: &RunRequest,
    packets: &[Timed],
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Option<RunReport>, RunError> {
    let mut object = Object::read(file)?;
    maps::set_sizes(&mut object, &request.maps).map_err(|(name, problem)| RunError::Map(name, problem))?;
    let entry = object.device_program(request.program.as_deref())?;
    let default = Limits::default();
    let limits = Limits {
        instructions: request.instructions.unwrap_or(default.instructions),
        cpus: request.cpus.clamp(1, 1024),
        ..default
    };
    let mut machine = Machine::new(&object, limits)?;
    let program = machine.add(&object, entry)?;
    prepare(&object, &mut machine, &request.maps)?;
    let mut report = RunReport { program: entry.name.clone(), ..RunReport::default() };
    let (mut now, mut done) = (0, 0);
    for (number, (bytes, time)) in packets.iter().enumerate() {
        let mut packet = Packet::new(bytes, 0).map_err(|_| {
            let size = bytes.len();
            RunError::Packet(number, format!("it has {size} bytes; write {SHORTEST} to {LONGEST}"))
        })?;
        for _ in 0..request.repeat {
            packet.fill(bytes, 0).map_err(|error| RunError::Packet(number, error.to_string()))?;
            (packet.interface, packet.queue) = (request.interface, request.queue);
            machine.now_ns = time.unwrap_or(now);
            now += request.gap_ns;
            let before = (report.instructions, report.traps);
            one(&mut machine, program, &mut packet, &mut report);
            // A trap may be the end of all instructions that a packet has.
            done += PACKET + report.instructions - before.0 + if report.traps > before.1 { ASKS } else { 0 };
            if done >= ASKS {
                done = 0;
                if !go_on() {
                    return Ok(None);
                }
            }
        }
    }
    finish(&object, &mut machine, &mut report);
    Ok(Some(report))
}

/// Checks that an object has a program for a device, and the named maps, without a run.
///
/// # Errors
/// The object, the program's name, or a map's name or size is wrong.
pub fn choose(file: &[u8], program: Option<&str>, given: &[(String, String)]) -> Result<(), RunError> {
    let mut object = Object::read(file)?;
    maps::set_sizes(&mut object, given).map_err(|(name, problem)| RunError::Map(name, problem))?;
    object.device_program(program)?;
    match given.iter().find(|(name, _)| object.maps.iter().all(|map| map.name != *name)) {
        Some((name, _)) => Err(no_map(&object, name)),
        None => Ok(()),
    }
}

fn no_map(object: &Object, name: &str) -> RunError {
    let names: Vec<&str> = object.maps.iter().map(|map| map.name.as_str()).collect();
    RunError::Map(name.to_owned(), format!("the object has no such map; it has {}", names.join(", ")))
}

/// Fills maps by name with entries as JSON, and opens arrays of perf events.
///
/// # Errors
/// The object has no such map, or a map does not take its entries.
pub fn prepare(object: &Object, machine: &mut Machine, given: &[(String, String)]) -> Result<(), RunError> {
    for (name, text) in given {
        let wrong = |problem: String| RunError::Map(name.clone(), problem);
        let Some(number) = machine.map_named(name) else {
            return Err(no_map(object, name));
        };
        let mut load = |machine: &mut Machine, name: &str| {
            let entry = object.program(Some(name)).map_err(|error| error.to_string())?;
            machine.add(object, entry).map_err(|error| error.to_string())
        };
        maps::fill(machine, number, &object.btf, text, &mut load).map_err(wrong)?;
    }
    for number in 0..machine.maps.len() {
        if machine.maps[number].kind == MapKind::PerfEvents {
            let name = machine.maps[number].definition.name.clone();
            machine.open_events(number).map_err(|error| RunError::Map(name, error.to_string()))?;
        }
    }
    Ok(())
}

fn one(machine: &mut Machine, program: usize, packet: &mut Packet, report: &mut RunReport) {
    let result = machine.run(program, packet);
    report.packets += 1;
    let row = (report.rows.len() < ROWS).then(|| PacketReport {
        metadata: packet.metadata(),
        bytes: packet.bytes().iter().map(|byte| format!("{byte:02x}")).collect(),
        ..PacketReport::default()
    });
    match result {
        Ok(outcome) => {
            let name = verdict(outcome.value);
            *report.verdicts.entry(name.unwrap_or("invalid")).or_default() += 1;
            if let Some(site) = &outcome.aborted {
                Aborted::add(&mut report.aborted_at, site, 1);
            }
            report.instructions += outcome.instructions;
            report.rows.extend(row.map(|row| PacketReport {
                verdict: name.map_or_else(|| outcome.value.to_string(), str::to_owned),
                value: outcome.value,
                redirect: outcome.redirect.map(|to| destination(machine, to)),
                instructions: outcome.instructions,
                ..row
            }));
            keep(machine, outcome, report);
        }
        Err(trap) => {
            report.traps += 1;
            let text = trap.to_string();
            report.rows.extend(row.map(|row| PacketReport { trap: Some(text.clone()), ..row }));
            if report.trap_texts.len() < TRAPS {
                report.trap_texts.push(text);
            }
        }
    }
}

fn keep(machine: &Machine, outcome: Outcome, report: &mut RunReport) {
    let room = ROWS.saturating_sub(report.printed.len());
    report.printed.extend(outcome.printed.into_iter().take(room));
    for sample in outcome.samples {
        let name = &machine.maps[sample.map].definition.name;
        let records = report.records.entry(name.clone()).or_default();
        if records.len() < ROWS {
            records.push(hex(&sample.bytes));
        }
    }
}

fn destination(machine: &Machine, to: Redirect) -> String {
    let name = |map: usize| machine.maps[map].definition.name.as_str();
    match to {
        Redirect::Interface(number) => format!("interface {number}"),
        Redirect::Entry { map, key } => format!("entry {key} of {}", name(map)),
        Redirect::Broadcast { map, exclude_ingress: true } => format!("all of {} but its own", name(map)),
        Redirect::Broadcast { map, .. } => format!("all of {}", name(map)),
    }
}

fn finish(object: &Object, machine: &mut Machine, report: &mut RunReport) {
    for number in 0..machine.maps.len() {
        let name = machine.maps[number].definition.name.clone();
        match machine.maps[number].kind {
            MapKind::Ring => {
                let records = machine.maps[number].records();
                report.records.insert(name, records.iter().take(ROWS).map(|record| hex(record)).collect());
            }
            MapKind::PerfEvents | MapKind::Bloom => {}
            _ => {
                report.maps.insert(name, maps::dump(machine, number, &object.btf));
            }
        }
    }
}
