//! XDP programs on microengines: frames of a port that contexts share.
//!
//! A frame arrives in a buffer of an island's CTM. A context of the island takes it, runs the program, and names the verdict. Then the
//! frame leaves by the wire or to the host, or nowhere, and its buffer is free.
//!
//! | file | content |
//! |---|---|
//! | `port.rs` | buffers, frames that wait, and contexts that wait |
//!
//! [`XdpCard`] is a run, with its figures.

mod port;

pub use port::Ended;

use crate::map::{self, MemoryKind};
use crate::processor::{
    ContextCounters, CoreCounters, MemoryCounters, Nfp, Outcome, Program, ProgramError, Trapped,
};
use crate::spec::{NfpSpec, XdpSpec};
use nicety_hpu::{Core, Image, Misaligned};
use nicety_kernel::{Config, Interrupt, RunError, World};
use nicety_types::{Duration, Time};
use port::Port;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// The function of the runtime that a context runs.
const ENTRY: &str = "nicety_xdp_context_runs";
/// The table of maps, for IMEM.
const TABLE: &str = "nicety_xdp_table";

/// The reason why a run cannot be made, or failed.
#[derive(Debug)]
pub enum XdpError {
    /// The card has no firmware for XDP programs.
    NoFirmware,
    /// The program does not fit.
    Program(ProgramError),
    /// A process trapped.
    Trapped(Trapped),
    /// The run was interrupted, or failed in another way.
    Run(RunError),
}

impl fmt::Display for XdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XdpError::NoFirmware => {
                f.write_str("this card has no firmware for XDP programs ([xdp] of its spec); name nfp-6000")
            }
            XdpError::Program(error) => error.fmt(f),
            XdpError::Trapped(trapped) => trapped.fmt(f),
            XdpError::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for XdpError {}

impl From<ProgramError> for XdpError {
    fn from(error: ProgramError) -> XdpError {
        XdpError::Program(error)
    }
}

/// A frame at a port: the time of its last byte on the wire, and its bytes without the check sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The time.
    pub at: Time,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// An XDP program for a card.
#[derive(Clone, Debug)]
pub struct XdpProgram {
    program: Rc<Program>,
    variables: Vec<u8>,
    entry: u32,
    table: Vec<u8>,
}

impl XdpProgram {
    /// Reads a linked program.
    ///
    /// # Errors
    /// It is no such program, or it does not fit into the card.
    pub fn load(elf: &[u8], spec: &NfpSpec) -> Result<XdpProgram, XdpError> {
        spec.xdp.ok_or(XdpError::NoFirmware)?;
        // Memories take references at any byte, as the firmware's commands do.
        let core = Core { misaligned: Misaligned::Costs, ..spec.core };
        let image = Image::load(elf, &core).map_err(ProgramError::Image)?;
        let entry = image.require(ENTRY).map_err(ProgramError::Image)?;
        let (program, variables) = Program::with_variables_in_emem(image.clone(), spec)?;
        let table = table(&image);
        let room = spec.memory(MemoryKind::Imem).size;
        if table.len() > room as usize {
            let (needed, there) = (table.len() as u64, room.into());
            return Err(
                ProgramError::Room { what: "bytes of IMEM", key: "memory.imem.size", needed, there }.into()
            );
        }
        Ok(XdpProgram { program, variables, entry, table })
    }
}

/// The table of maps among the constants of a program.
fn table(image: &Arc<Image>) -> Vec<u8> {
    let Some((address, size)) = image.variable(TABLE) else { return Vec::new() };
    let found = image.segments().iter().find_map(|segment| {
        let at = address.checked_sub(segment.address())? as usize;
        let mut bytes = vec![0; segment.size() as usize];
        segment.write_to(&mut bytes);
        bytes.get(at..at + size as usize).map(<[u8]>::to_vec)
    });
    found.unwrap_or_default()
}

/// The work of a part of the card in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Its name.
    pub part: String,
    /// The time for which it was busy, and the parts among which the time is divided.
    pub busy: Duration,
    /// See `busy`.
    pub units: u64,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Frames in the order of their ends.
    pub ended: Vec<Ended>,
    /// Frames that found no buffer and a full queue.
    pub lost: u64,
    /// Frames that no context had taken when the last one arrived.
    pub waiting: u64,
    /// The end of the last frame.
    pub end: Time,
    /// Cycles of all contexts with the program, from the start to the end of the run.
    pub contexts: ContextCounters,
    /// The busy time of each part.
    pub work: Vec<Work>,
    /// The program's variables, with its maps.
    pub variables: Vec<u8>,
}

/// A card with an XDP program, for one run.
pub struct XdpCard {
    world: World<()>,
    nfp: Rc<Nfp>,
    port: Rc<Port>,
    xdp: XdpSpec,
    variables: u64,
}

impl XdpCard {
    /// Loads a program into all contexts for it.
    ///
    /// # Errors
    /// The card has no firmware for XDP programs, or the stacks are too small.
    pub fn new(
        spec: &NfpSpec,
        program: &XdpProgram,
        interrupt: Option<Interrupt>,
    ) -> Result<XdpCard, XdpError> {
        let xdp = spec.xdp.ok_or(XdpError::NoFirmware)?;
        let mut world = World::new(Config { interrupt, ..Config::default() });
        let node = world.add_node();
        let nfp = Nfp::new(&world.sim(node), spec);
        let port = Port::new(&nfp, xdp);
        nfp.memory(MemoryKind::Emem, 0).poke(0, &program.variables).expect("checked when it was loaded");
        nfp.memory(MemoryKind::Imem, 0).poke(0, &program.table).expect("checked when it was loaded");
        for core in workers(spec, &xdp) {
            nfp.load(core, &program.program, xdp.contexts)?;
            (0..xdp.contexts).for_each(|context| nfp.start(core, context, program.entry, &[]));
        }
        Ok(XdpCard { world, nfp, port, xdp, variables: program.variables.len() as u64 })
    }

    /// Runs the program on frames, in the order of their times. With `keep`, the result has the bytes of each frame.
    ///
    /// # Errors
    /// A context traps, or the run is interrupted.
    pub fn run(mut self, frames: Vec<Arrival>, keep: bool) -> Result<Ran, XdpError> {
        let (sim, port) = (self.nfp.sim().clone(), self.port.clone());
        let waiting = Rc::new(RefCell::new(0));
        let seen = waiting.clone();
        port.keep(keep);
        self.nfp.sim().spawn(async move {
            for frame in frames {
                sim.until(frame.at).await;
                Port::arrive(&port, frame);
            }
            *seen.borrow_mut() = port.waiting();
        });
        self.world.run().map_err(XdpError::Run)?;
        if let Some(trapped) = self.trapped() {
            return Err(XdpError::Trapped(trapped));
        }
        let mut variables = vec![0; self.variables as usize];
        let memory = self.nfp.memory(MemoryKind::Emem, 0);
        memory.peek(0, &mut variables).expect("checked when the program was loaded");
        let (ended, lost) = self.port.take();
        let end = ended.iter().map(|ended| ended.at).max().unwrap_or(Time::ZERO);
        let waiting = *waiting.borrow();
        Ok(Ran { lost, waiting, end, contexts: self.contexts(), work: self.work(&ended), variables, ended })
    }

    fn workers(&self) -> impl Iterator<Item = usize> + '_ {
        workers(self.nfp.spec(), &self.xdp)
    }

    fn trapped(&self) -> Option<Trapped> {
        let places =
            self.workers().flat_map(|core| (0..self.xdp.contexts).map(move |context| (core, context)));
        places.into_iter().find_map(|(core, context)| match self.nfp.outcome(core, context)? {
            Outcome::Trapped(trap) => Some(Trapped { core, context, trap }),
            Outcome::Returned(_) => None,
        })
    }

    fn contexts(&self) -> ContextCounters {
        let places =
            self.workers().flat_map(|core| (0..self.xdp.contexts).map(move |context| (core, context)));
        places
            .map(|(core, context)| self.nfp.context_counters(core, context))
            .fold(ContextCounters::default(), |sum, counters| sum + counters)
    }

    /// The busy times of microengines, contexts and memories, and of the ways out.
    fn work(&self, ended: &[Ended]) -> Vec<Work> {
        let spec = self.nfp.spec();
        let cycles = |cycles: u64| spec.clock.cycles(cycles);
        let cores: Vec<CoreCounters> = self.workers().map(|core| self.nfp.core_counters(core)).collect();
        let computing = cores.iter().map(|core| core.computing + core.switching).sum();
        let held: u64 = ended.iter().map(|ended| ended.at.since(ended.taken).ps()).sum();
        let mut all = vec![
            Work { part: "microengines".to_owned(), busy: cycles(computing), units: cores.len() as u64 },
            Work {
                part: "contexts".to_owned(),
                busy: Duration::from_ps(held),
                units: (cores.len() * self.xdp.contexts) as u64,
            },
        ];
        for kind in MemoryKind::ALL {
            let islands = if kind.of_island() { spec.islands() } else { 1 };
            let counters = (0..islands).map(|island| self.nfp.memory(kind, island).counters());
            // The busiest island's.
            let busiest = counters.max_by_key(|counters: &MemoryCounters| counters.busy).unwrap_or_default();
            all.push(Work { part: kind.name().to_owned(), busy: cycles(busiest.busy), units: 1 });
        }
        let (wire, bus) = self.port.out();
        all.push(Work { part: "link, out".to_owned(), busy: wire, units: 1 });
        all.push(Work { part: "bus to host".to_owned(), busy: bus, units: 1 });
        all
    }
}

/// The microengines that run programs: the first of each island.
fn workers(spec: &NfpSpec, xdp: &XdpSpec) -> impl Iterator<Item = usize> + use<> {
    let (island, workers) = (spec.island, xdp.workers);
    (0..spec.cores).filter(move |core| core % island < workers)
}

/// The number of contexts that run programs on a card.
pub fn contexts(spec: &NfpSpec) -> usize {
    spec.xdp.map_or(0, |xdp| workers(spec, &xdp).count() * xdp.contexts)
}

/// The number of microengines that run programs on a card.
pub fn microengines(spec: &NfpSpec) -> usize {
    spec.xdp.map_or(0, |xdp| workers(spec, &xdp).count())
}

/// The first byte of a frame's buffer in its island's CTM.
const fn buffer_address(number: usize, bytes: u32) -> u32 {
    map::CTM + number as u32 * bytes
}
