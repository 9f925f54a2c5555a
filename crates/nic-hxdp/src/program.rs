//! A program on the card: its rows, its maps, and its runs.

use crate::cycles::{Cycles, cycles};
use crate::spec::{HELPERS, HxdpSpec, MAPS};
use nicety_ebpf::lanes::{Operation, Schedule, schedule};
use nicety_ebpf::report::{RunError, maps, prepare};
use nicety_ebpf::{
    Limits, Linked, Machine, MapKind, Object, ObjectError, Outcome, Packet, Trace, Trap, helper,
};
use std::fmt;
use std::sync::Arc;

/// The reason why a program cannot be put on the card, or why it stopped.
#[derive(Debug)]
pub enum HxdpError {
    /// The object, or something that the card lacks.
    Object(ObjectError),
    /// Entries of a map: name and problem.
    Map(String, String),
    /// The program stopped.
    Trap(Trap),
    /// A frame is too short or too long for the card.
    Frame(String),
}

impl fmt::Display for HxdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HxdpError::Object(error) => error.fmt(f),
            HxdpError::Map(name, problem) => write!(f, "map {name}: {problem}"),
            HxdpError::Trap(trap) => trap.fmt(f),
            HxdpError::Frame(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for HxdpError {}

impl From<ObjectError> for HxdpError {
    fn from(error: ObjectError) -> HxdpError {
        HxdpError::Object(error)
    }
}

impl From<RunError> for HxdpError {
    fn from(error: RunError) -> HxdpError {
        match error {
            RunError::Object(error) => HxdpError::Object(error),
            RunError::Map(name, problem) => HxdpError::Map(name, problem),
            RunError::Packet(_, problem) => HxdpError::Frame(problem),
        }
    }
}

fn refused(place: impl fmt::Display, problem: impl fmt::Display, advice: &str) -> HxdpError {
    HxdpError::Object(ObjectError::Refused {
        place: place.to_string(),
        problem: problem.to_string(),
        advice: advice.to_owned(),
    })
}

/// The most rows of a frame: a program that runs longer is stopped.
const MOST_ROWS: u64 = 1_000_000;

/// A program on a card, with its maps.
#[derive(Debug)]
pub struct Program {
    spec: Arc<HxdpSpec>,
    object: Object,
    machine: Machine,
    number: usize,
    schedule: Schedule,
    name: String,
    packet: Packet,
}

/// A run of a program on a frame.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The result.
    pub outcome: Outcome,
    /// The rows that ran.
    pub trace: Trace,
    /// The cycles.
    pub cycles: Cycles,
}

impl Program {
    /// Puts a program of an object on a card, with entries of maps.
    ///
    /// # Errors
    /// The object is wrong, or the card lacks something that the program needs.
    pub fn load(
        spec: Arc<HxdpSpec>,
        mut object: Object,
        program: Option<&str>,
        entries: &[(String, String)],
    ) -> Result<Program, HxdpError> {
        maps::set_sizes(&mut object, entries).map_err(|(name, problem)| HxdpError::Map(name, problem))?;
        let entry = object.device_program(program)?.clone();
        let linked = object.link(&entry)?;
        let schedule = rows(&spec, &linked)?;
        check_maps(&spec, &object, &linked)?;
        // The maps of other programs take no place on the card, and are there for the host's tools alone.
        let limits = Limits { map_bytes: 1 << 30, instructions: MOST_ROWS, ..Limits::default() };
        let mut machine = Machine::new(&object, limits)?;
        prepare(&object, &mut machine, entries)?;
        let bytes: u64 = linked.maps.iter().map(|&map| machine.maps[map].memory()).sum();
        if bytes > spec.memory {
            let problem =
                format!("its maps take {bytes} bytes, but the card's memory of maps has {}", spec.memory);
            return Err(refused(
                format!("program {}", linked.name),
                problem,
                "write a smaller max_entries, or raise maps.memory",
            ));
        }
        let number = machine.add_program(linked);
        let packet = Packet::new(&[0; nicety_ebpf::SHORTEST], 0)
            .map_err(|error| HxdpError::Frame(error.to_string()))?;
        Ok(Program { spec, object, machine, number, schedule, name: entry.name, packet })
    }

    /// The rows.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The program's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The card.
    pub fn spec(&self) -> &Arc<HxdpSpec> {
        &self.spec
    }

    /// Runs the program on a frame that comes at a time.
    ///
    /// # Errors
    /// The program stopped, or the frame is too short or too long.
    pub fn run(&mut self, frame: &[u8], now_ns: u64) -> Result<Ran, HxdpError> {
        self.take(frame, now_ns)?;
        let ran = self.machine.run_rows(self.number, &self.schedule, &mut self.packet);
        let (outcome, trace) = ran.map_err(HxdpError::Trap)?;
        let keys: Vec<u64> = trace.keys.iter().map(|&key| u64::from(key)).collect();
        let cycles = cycles(&self.spec, &trace, frame.len() as u64, &keys);
        Ok(Ran { outcome, trace, cycles })
    }

    /// Instructions of eBPF that the program runs on a frame one after another. Its maps go on as behind [`Program::run`].
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_in_sequence(&mut self, frame: &[u8], now_ns: u64) -> Result<u64, HxdpError> {
        self.take(frame, now_ns)?;
        let ran = self.machine.run(self.number, &mut self.packet);
        Ok(ran.map_err(HxdpError::Trap)?.instructions)
    }

    fn take(&mut self, frame: &[u8], now_ns: u64) -> Result<(), HxdpError> {
        let length = frame.len();
        self.packet.fill(frame, 0).map_err(|_| {
            HxdpError::Frame(format!(
                "a frame of {length} bytes; write {} to {}",
                nicety_ebpf::SHORTEST,
                nicety_ebpf::LONGEST
            ))
        })?;
        self.machine.now_ns = now_ns;
        Ok(())
    }

    /// The frame behind the last run.
    pub fn frame(&self) -> Vec<u8> {
        self.packet.bytes().split_off(self.packet.metadata())
    }

    /// The entries of a map.
    ///
    /// # Errors
    /// The object has no such map.
    pub fn entries(&self, name: &str) -> Result<Vec<maps::Dumped>, HxdpError> {
        let number = self.machine.map_named(name).ok_or_else(|| {
            let names: Vec<&str> = self.object.maps.iter().map(|map| map.name.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            HxdpError::Map(name.to_owned(), format!("the object has no such map; it has {known}"))
        })?;
        Ok(maps::dump(&self.machine, number, &self.object.btf))
    }
}

/// The rows of a linked program on a card.
///
/// # Errors
/// The card lacks a helper, or rows.
pub(crate) fn rows(spec: &HxdpSpec, linked: &Linked) -> Result<Schedule, HxdpError> {
    let schedule = schedule(linked, &spec.core.switches)?;
    for placed in schedule.rows.iter().flat_map(|row| row.operations()) {
        if let Operation::Helper(number) = placed.operation
            && spec.helper(number).is_none()
        {
            let known: Vec<&str> =
                (0..HELPERS.len()).filter(|&at| spec.helpers[at].is_some()).map(|at| HELPERS[at].1).collect();
            let name = helper::name(number).unwrap_or("unknown");
            let problem = format!("the card has no helper bpf_{name}; it has {}", known.join(", "));
            let advice = "call one of these, or run the program in the host's driver: --nic ethernet-100g";
            return Err(refused(linked.place(placed.slot as usize), problem, advice));
        }
    }
    if schedule.rows.len() as u64 > spec.core.rows {
        let problem = format!(
            "it has {} rows, and the instruction memory holds {}",
            schedule.rows.len(),
            spec.core.rows
        );
        return Err(refused(
            format!("program {}", linked.name),
            problem,
            "split the program, or raise core.rows",
        ));
    }
    Ok(schedule)
}

fn check_maps(spec: &HxdpSpec, object: &Object, linked: &Linked) -> Result<(), HxdpError> {
    for &number in &linked.maps {
        let map = &object.maps[number];
        // Data sections of the program are arrays.
        if map.contents.is_some() || spec.has_map(map.kind) {
            continue;
        }
        let known: Vec<&str> =
            MAPS.iter().zip(spec.maps).filter(|(_, has)| *has).map(|((_, name), _)| *name).collect();
        let name = MapKind::name_of(map.kind).map_or_else(|| map.kind.to_string(), str::to_owned);
        let problem = format!("the card has no maps of type {name}; it has {}", known.join(", "));
        return Err(refused(
            format!("map {}", map.name),
            problem,
            "use one of these, or run the program in the host's driver: --nic ethernet-100g",
        ));
    }
    Ok(())
}
