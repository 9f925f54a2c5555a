//! The machine that runs programs: maps, packet, stacks, and a clock that the caller sets.

mod call;
mod call_maps;
mod call_packet;
mod execute;
pub(crate) mod fast;
mod memory;
mod packet;
mod print;
mod rows;
mod run;
mod trap;

pub use packet::{HEADROOM, LINEAR, LONGEST, Packet, SHORTEST};
pub use rows::Trace;
pub use trap::{Trap, TrapKind};

use crate::aborted::Site;
use crate::address;
use crate::error::ObjectError;
use crate::map::{Errno, Map, MapKind};
use crate::object::btf::Btf;
use crate::object::{Attach, Entry, Initial, Linked, MapDefinition, Object};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The most functions inside one another.
const FRAMES: usize = 8;
/// Bytes of a function's stack.
const STACK_SIZE: usize = 512;
/// Bytes from one frame's address to the next: in front of each stack nothing is readable.
const FRAME: usize = 2 * STACK_SIZE;

/// Limits of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions for one packet.
    pub instructions: u64,
    /// Bytes of all maps.
    pub map_bytes: u64,
    /// CPUs, each with values of per-CPU maps.
    pub cpus: u32,
    /// Bytes that one packet may print or send to perf events.
    pub output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { instructions: 100_000_000, map_bytes: 1 << 30, cpus: 1, output_bytes: 1 << 20 }
    }
}

/// A destination of `XDP_REDIRECT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// An interface by its number.
    Interface(u32),
    /// An entry of a map.
    Entry {
        /// The map's number.
        map: usize,
        /// The key.
        key: u32,
    },
    /// All entries of a map of devices.
    Broadcast {
        /// The map's number.
        map: usize,
        /// Whether the packet's own interface gets none.
        exclude_ingress: bool,
    },
}

/// A sample for perf events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The map's number.
    pub map: usize,
    /// The CPU.
    pub cpu: u32,
    /// The program's bytes, and then those of the packet that it asked for.
    pub bytes: Vec<u8>,
}

/// Calls of helpers, by the work that Linux does for them on a 64-bit host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Calls of functions.
    pub plain: u64,
    /// Of those, calls that find, add or remove an entry of a map.
    pub maps: u64,
    /// Helpers that Linux writes into the program as instructions: lookups in arrays, and the number of the CPU.
    pub inlined: u64,
}

/// The end of a program without a trap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The result: a verdict, or any number.
    pub value: u32,
    /// Where a redirected packet goes.
    pub redirect: Option<Redirect>,
    /// Instructions that ran.
    pub instructions: u64,
    /// Calls of helpers.
    pub calls: Calls,
    /// Printed lines.
    pub printed: Vec<String>,
    /// Samples for perf events.
    pub samples: Vec<Sample>,
    /// The last step in front of the end, if the result is `XDP_ABORTED`.
    pub aborted: Option<Site>,
}

/// The name of a verdict.
pub fn verdict(value: u32) -> Option<&'static str> {
    ["XDP_ABORTED", "XDP_DROP", "XDP_PASS", "XDP_TX", "XDP_REDIRECT"].get(value as usize).copied()
}

/// The number of `XDP_ABORTED`.
pub(crate) const ABORTED: u32 = 0;

/// The number of `XDP_REDIRECT`.
pub const REDIRECT: u32 = 4;

/// A machine with maps and programs.
#[derive(Debug)]
pub struct Machine {
    /// The maps, by number.
    pub maps: Vec<Map>,
    programs: Vec<Rc<Linked>>,
    /// Program arrays with an entry that cannot run, and the reason.
    refused: Vec<(usize, ObjectError)>,
    limits: Limits,
    /// The CPU that the next packet runs on.
    pub cpu: u32,
    /// The clock, in nanoseconds.
    pub now_ns: u64,
    /// The state of the random numbers.
    pub seed: u64,
    packet: Packet,
    stack: Box<[u8]>,
    depth: usize,
    key: Vec<u8>,
    budget: u64,
    /// The part of the budget that work of helpers took.
    charged: u64,
    /// The place of the packet's first byte at the begin of a run in rows.
    origin: usize,
    calls: Calls,
    tail_calls: u32,
    redirect: Option<Redirect>,
    locked: Option<u64>,
    printed: Vec<String>,
    samples: Vec<Sample>,
    output: usize,
    running: usize,
    /// Callers of functions.
    frames: Vec<execute::Frame>,
    /// The last end with `XDP_ABORTED`: the program, and the step in front of it.
    aborted: Option<(Rc<Linked>, usize)>,
}

impl Machine {
    /// A machine without maps and programs.
    ///
    /// # Panics
    /// Never: the empty packet has the smallest size.
    pub fn empty(limits: Limits) -> Machine {
        Machine {
            maps: Vec::new(),
            programs: Vec::new(),
            refused: Vec::new(),
            limits,
            cpu: 0,
            now_ns: 0,
            seed: 1,
            packet: Packet::new(&[0; SHORTEST], 0).expect("the smallest packet"),
            stack: vec![0; FRAMES * STACK_SIZE].into_boxed_slice(),
            depth: 0,
            key: Vec::new(),
            budget: 0,
            charged: 0,
            origin: 0,
            calls: Calls::default(),
            tail_calls: 0,
            redirect: None,
            locked: None,
            printed: Vec::new(),
            samples: Vec::new(),
            output: 0,
            running: 0,
            frames: Vec::new(),
            aborted: None,
        }
    }

    /// A machine with an object's maps and all of its programs that can run. The numbers of maps and programs are their places in
    /// the object.
    ///
    /// # Errors
    /// A map cannot be made, or a program array names no program.
    pub fn new(object: &Object, limits: Limits) -> Result<Machine, ObjectError> {
        let mut machine = Machine::empty(limits);
        for definition in &object.maps {
            let number = machine.add_map(definition)?;
            machine.maps[number].set_lock(lock(&object.btf, definition));
        }
        let mut linked = BTreeMap::new();
        for (number, definition) in object.maps.iter().enumerate() {
            machine.fill(object, number, definition, &mut linked)?;
        }
        Ok(machine)
    }

    /// Makes a map, and returns its number.
    ///
    /// # Errors
    /// Linux refuses the definition, or the machine lacks memory.
    pub fn add_map(&mut self, definition: &MapDefinition) -> Result<usize, ObjectError> {
        if self.maps.len() == address::MOST_MAPS {
            let problem = format!("a machine has at most {} maps", address::MOST_MAPS);
            return Err(ObjectError::refused(format!("map {}", definition.name), problem, "remove maps"));
        }
        let used: u64 = self.maps.iter().map(Map::memory).sum();
        let left = self.limits.map_bytes.saturating_sub(used);
        self.maps.push(Map::new(definition, self.limits.cpus, left)?);
        Ok(self.maps.len() - 1)
    }

    /// Puts in the entries that a definition names.
    fn fill<'o>(
        &mut self,
        object: &'o Object,
        number: usize,
        definition: &'o MapDefinition,
        linked: &mut BTreeMap<&'o str, usize>,
    ) -> Result<(), ObjectError> {
        let place = || format!("map {}", definition.name);
        for (key, initial) in &definition.initial {
            let value = match initial {
                Initial::Map(other) => *other as u32,
                Initial::Program(name) => match linked.get(name.as_str()) {
                    Some(&known) => known as u32,
                    None => match self.add(object, object.program(Some(name))?) {
                        Ok(added) => {
                            linked.insert(name, added);
                            added as u32
                        }
                        // Programs without tail calls into the array do not need it.
                        Err(error) => {
                            self.refused.push((number, error));
                            continue;
                        }
                    },
                },
            };
            self.maps[number].set_map(&key.to_ne_bytes(), value).map_err(|error| {
                let problem = format!("its entry {key} cannot be filled ({error})");
                ObjectError::refused(place(), problem, "write a larger max_entries")
            })?;
        }
        Ok(())
    }

    /// Adds a program, and returns its number.
    pub fn add_program(&mut self, linked: Linked) -> usize {
        self.programs.push(Rc::new(linked));
        self.programs.len() - 1
    }

    /// Links a program of an object, and adds it.
    ///
    /// # Errors
    /// The program, or one that it may go on in, uses something that the machine lacks.
    pub fn add(&mut self, object: &Object, entry: &Entry) -> Result<usize, ObjectError> {
        let linked = object.link(entry)?;
        self.check_jumps(&linked)?;
        Ok(self.add_program(linked))
    }

    /// Checks that all programs run that a program may go on in.
    ///
    /// # Errors
    /// The reason why one cannot run.
    pub fn check_jumps(&self, linked: &Linked) -> Result<(), ObjectError> {
        let refused = self.refused.iter().find(|(map, _)| linked.maps.contains(map));
        refused.map_or(Ok(()), |(_, error)| Err(error.clone()))
    }

    /// The name of a program.
    pub fn program_name(&self, number: usize) -> Option<&str> {
        self.programs.get(number).map(|program| program.name.as_str())
    }

    /// The names of all programs.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.programs.iter().map(|program| program.name.as_str())
    }

    /// The place where Linux attaches a program.
    pub fn program_attach(&self, number: usize) -> Option<Attach> {
        self.programs.get(number).map(|program| program.attach)
    }

    /// The number of CPUs.
    pub fn cpus(&self) -> u32 {
        self.limits.cpus
    }

    /// The number of a map by its name.
    pub fn map_named(&self, name: &str) -> Option<usize> {
        self.maps.iter().position(|map| map.definition.name == name)
    }

    /// Runs a program on a packet, which it may change.
    ///
    /// # Errors
    /// The program trapped. The packet has the changes up to the trap.
    ///
    /// # Panics
    /// No program has the number.
    pub fn run(&mut self, program: usize, packet: &mut Packet) -> Result<Outcome, Trap> {
        let context = address::at(address::CONTEXT, 0);
        self.run_with(program, packet, |machine, code| machine.function(code, 0, [context, 0, 0, 0, 0]))
    }

    /// Runs a program on a packet, in the given manner.
    fn run_with(
        &mut self,
        program: usize,
        packet: &mut Packet,
        run: impl FnOnce(&mut Machine, &Rc<Linked>) -> Result<u64, trap::Fault>,
    ) -> Result<Outcome, Trap> {
        let code = Rc::clone(&self.programs[program]);
        std::mem::swap(&mut self.packet, packet);
        (self.depth, self.tail_calls, self.budget) = (0, 0, self.limits.instructions);
        (self.redirect, self.locked, self.output, self.running) = (None, None, 0, program);
        (self.charged, self.calls) = (0, Calls::default());
        self.frames.clear();
        let result = run(self, &code).and_then(|value| {
            self.released()?;
            Ok(value)
        });
        std::mem::swap(&mut self.packet, packet);
        if result.is_err() {
            // Otherwise each later packet would end with the records of this one.
            self.maps.iter_mut().filter_map(Map::ring).for_each(|ring| ring.discard_reserved());
        }
        let (printed, samples) = (std::mem::take(&mut self.printed), std::mem::take(&mut self.samples));
        match result {
            Ok(value) => Ok(Outcome {
                value: value as u32,
                redirect: self.redirect.filter(|_| value as u32 == REDIRECT),
                instructions: self.limits.instructions - self.budget - self.charged,
                calls: self.calls,
                printed,
                samples,
                aborted: self
                    .aborted
                    .take()
                    .filter(|_| value as u32 == ABORTED)
                    .map(|(code, at)| code.site(at)),
            }),
            Err(trap::Fault::Inner(trap)) => Err(*trap),
            Err(trap::Fault::Here(kind, problem)) => {
                Err(Trap { kind, place: format!("program {}", code.name), problem: problem.into() })
            }
        }
    }

    fn in_device_map(&self) -> bool {
        self.programs[self.running].attach == Attach::DeviceMap
    }

    /// Lets a reader take the samples of each CPU.
    ///
    /// # Errors
    /// The map is no array of perf events.
    pub fn open_events(&mut self, map: usize) -> Result<(), Errno> {
        let map =
            self.maps.get_mut(map).filter(|map| map.kind == MapKind::PerfEvents).ok_or(Errno::EINVAL)?;
        let value = vec![0; map.definition.value_size as usize];
        for cpu in 0..self.limits.cpus.min(map.definition.max_entries) {
            map.set(&cpu.to_ne_bytes(), std::slice::from_ref(&value), 0)?;
        }
        Ok(())
    }
}

/// The byte of `struct bpf_spin_lock` in a map's value.
pub(crate) fn lock(btf: &Btf, definition: &MapDefinition) -> Option<usize> {
    let members = btf.members(definition.types.1)?;
    let found = members.iter().find(|m| btf.plain(m.type_id).is_some_and(|t| t.name == "bpf_spin_lock"))?;
    Some(found.bit as usize / 8)
}
