//! The processor of a network flow processor: microengines whose contexts hide the latency of memories from each
//! other, as in the NFComms paper.
//!
//! | file | what is in it |
//! |---|---|
//! | `spec.rs` | [`NfpSpec`], and the spec keys it is read from |
//! | `map.rs` | the addresses that a process sees |
//! | `program.rs` | [`Program`]: compiled C, checked against code store and local memory |
//! | `engine.rs` | a microengine: its contexts and the choice of the next |
//! | `execute.rs` | the task that runs it, cycle by cycle: references, atomics, signals |
//! | `intrinsics.rs` | the core's own calls |
//! | `memory.rs` | [`Memory`]: CLS, CTM, IMEM, EMEM, each with a queue |
//! | `card/` | [`Card`]: the processor, its channels to the host, and the host's driver |
//! | `messenger/` | [`Messenger`]: messages between hosts, forwarded by processes on the card |
//! | `processes.rs` | [`ProcessTable`]: the processes that the host started, and how they ended |
//! | `design.rs` | the card behind the design seam, with its deadlock hints |
//! | `wire.rs` | [`Frame`]: the header of an Ethernet frame as bytes |
//! | `service.rs` | the interface for calls that the card serves |
//! | `account.rs` | the counters, which split every cycle into parts |
//!
//! # Timing
//! A context computes until it refers to a memory outside the core, waits for a signal or yields. The instruction
//! itself counts as computing. From its end the context sleeps until the memory is done, then waits until the core is
//! free. The core takes the next ready context round robin and pays `hpu.cycles.switch` if that is another context
//! than before. Code lies in the core, so that fetching it costs nothing; constants are read from the code store as
//! from local memory.
//!
//! All cores, the memories on the chip and the counters share one clock, whose cycle 0 is simulated time 0.

mod account;
mod card;
mod design;
mod engine;
mod execute;
mod intrinsics;
pub mod map;
mod memory;
mod messenger;
mod processes;
mod program;
mod service;
mod spec;
pub mod stages;
mod wire;

pub use account::{ContextCounters, CoreCounters};
pub use card::{
    Card, ChannelCounters, ChannelError, ChannelSpec, Device, DriverSpec, MESSAGE_QUEUE, ManagerSpec,
    PortCounters, PortSpec, QueueCounters, Selected,
};
pub(crate) use design::DESIGN;
pub use design::Report;
pub use engine::{Outcome, SIGNALS};
pub use intrinsics::crc32;
pub use memory::{Memory, MemoryCounters, MemoryKind, Outside};
pub use messenger::{Arrival, INLINE, MessageError, Messenger, MessengerCounters, Posted, WINDOW};
pub use nicety_channels::{
    Channel, Completion, Direction, Error as ChannelRefusal, Failure as ChannelFailure, Guard,
    PAYLOAD_BYTES as DIRECT_BYTES, Payload, Want,
};
pub use processes::{
    CardMemory, MicroengineReport, PortReport, Process, ProcessEnd, ProcessReport, ProcessTable, Processes,
    Start,
};
pub use program::{LEAST_STACK, Program, ProgramError};
pub use service::Place;
pub use spec::{MemorySpec, NfpSpec};
pub use wire::{Address, Frame};

/// The numbers of the calls, in a7, for hand-made code.
pub mod number {
    pub use super::intrinsics::{
        CHANNEL_READ, CHANNEL_READ_IND, CHANNEL_REGISTER, CHANNEL_SELECT, CHANNEL_WRITE, CHANNEL_WRITE_IND,
        CRC32, ETH_MOVE, ETH_OPEN, ETH_RECEIVE, ETH_RECEIVE_FROM, ETH_SEND, ETH_SEND_TO, NODE, READ, SIGNAL,
        WAIT_ALL, WAIT_ANY, WRITE, YIELD,
    };
}

use engine::{Engine, State};
use memory::Memories;
use nicety_hpu::Trap;
use nicety_kernel::{Signal, Sim, describe};
use nicety_types::Time;
use service::Services;
use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

/// A process trapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trapped {
    /// Its microengine.
    pub core: usize,
    /// Its context.
    pub context: usize,
    /// The trap and its place.
    pub trap: Box<Trap>,
}

impl fmt::Display for Trapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "microengine {}, context {}: {}", self.core, self.context, self.trap)
    }
}

impl std::error::Error for Trapped {}

/// The microengines of a card and their memories.
pub struct Nfp {
    sim: Sim,
    spec: NfpSpec,
    engines: Vec<Engine>,
    islands: Vec<Memories>,
    /// A process has ended.
    ended: Signal,
    /// A cycle in picoseconds, as the smallest fraction.
    cycle: (u64, u64),
    /// The server of calls that are not the core's own.
    services: OnceCell<Box<dyn Services>>,
}

impl Nfp {
    /// A processor whose microengines have no programs.
    pub fn new(sim: &Sim, spec: &NfpSpec) -> Rc<Nfp> {
        let memory = |kind: MemoryKind| Rc::new(Memory::new(kind, spec.memory(kind)));
        let shared = MemoryKind::ALL.map(memory);
        let island = |_| {
            Memories(MemoryKind::ALL.map(|kind| match kind.of_island() {
                true => memory(kind),
                false => shared[kind as usize].clone(),
            }))
        };
        let islands: Vec<Memories> = (0..spec.islands()).map(island).collect();
        let engine = |core: usize| {
            // In the layout that nfp.h decodes.
            let first = 8 * core as u32;
            Engine::new(sim, first, spec.contexts, spec.local_memory, islands[core / spec.island].clone())
        };
        let divisor = gcd(PS_PER_S, spec.clock.hz());
        let nfp = Rc::new(Nfp {
            sim: sim.clone(),
            spec: spec.clone(),
            engines: (0..spec.cores).map(engine).collect(),
            islands,
            ended: Signal::new(sim),
            cycle: (PS_PER_S / divisor, spec.clock.hz() / divisor),
            services: OnceCell::new(),
        });
        (0..spec.cores).for_each(|core| sim.spawn(nfp.clone().serve(core)));
        nfp
    }

    /// The part of the simulation its node is in.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// Notified when a process has ended.
    pub fn ended(&self) -> &Signal {
        &self.ended
    }

    /// Its spec.
    pub fn spec(&self) -> &NfpSpec {
        &self.spec
    }

    /// The time at which a cycle begins.
    pub fn time(&self, cycle: u64) -> Time {
        let (ps, cycles) = self.cycle;
        match cycle.checked_mul(ps) {
            Some(product) => Time::from_ps(product.div_ceil(cycles)),
            None => Time::ZERO + self.spec.clock.cycles(cycle),
        }
    }

    /// The current cycle: the last one that has begun.
    pub fn cycle(&self) -> u64 {
        self.cycle_at(self.sim.now())
    }

    /// The cycle at another time.
    fn cycle_at(&self, time: Time) -> u64 {
        let (ps, cycles) = self.cycle;
        match time.ps().checked_mul(cycles) {
            Some(product) => product / ps,
            None => self.spec.clock.cycles_in(time.since(Time::ZERO)),
        }
    }

    /// A memory; `island` selects one where each island has its own.
    ///
    /// # Panics
    /// When there is no such island.
    pub fn memory(&self, kind: MemoryKind, island: usize) -> &Memory {
        &self.islands[if kind.of_island() { island } else { 0 }].0[kind as usize]
    }

    /// Loads a program on a microengine, for up to `contexts` processes, whose stacks share the local memory that its
    /// data leaves. It takes no time.
    ///
    /// # Errors
    /// When the microengine has fewer contexts, or local memory is too small.
    ///
    /// # Panics
    /// When there is no such microengine, or one of its processes still runs.
    pub fn load(&self, core: usize, program: &Rc<Program>, contexts: usize) -> Result<(), ProgramError> {
        if contexts == 0 || contexts > self.spec.contexts {
            return Err(ProgramError::Contexts { asked: contexts, contexts: self.spec.contexts });
        }
        let stack = program.stack(contexts)?;
        let mut state = self.engines[core].state.borrow_mut();
        assert!(!state.live(), "microengine {core} has processes that run");
        state.load(program, stack, contexts, self.next_cycle());
        Ok(())
    }

    /// Starts a process: a function at `entry` of the program that the microengine has, with up to eight arguments.
    /// It takes no time.
    ///
    /// When the microengine has no program, or the context is beyond the number it was loaded for or runs a process.
    pub fn start(&self, core: usize, context: usize, entry: u32, arguments: &[u32]) {
        let engine = &self.engines[core];
        engine.state.borrow_mut().start(context, entry, arguments, self.next_cycle());
        engine.wake.notify_all();
    }

    /// Sends a signal to a context, as another context would.
    ///
    /// # Panics
    /// When there is no such microengine, context or signal.
    pub fn signal(&self, core: usize, context: usize, signal: u32) {
        self.deliver(core, context, signal, self.next_cycle());
    }

    /// How the last process of a context ended; `None` while it runs, and where none has been.
    pub fn outcome(&self, core: usize, context: usize) -> Option<Outcome> {
        match &self.engines[core].state.borrow().slots[context].state {
            State::Ended(outcome) => Some(outcome.clone()),
            _ => None,
        }
    }

    /// Whether a process runs on a microengine.
    pub fn is_live(&self, core: usize) -> bool {
        self.engines[core].state.borrow().live()
    }

    /// Describes the state of a context, as the predicate of a sentence.
    pub fn doing(&self, core: usize, context: usize) -> String {
        self.engines[core].state.borrow().slots[context].state.describe()
    }

    /// Waits for the process of a context to end, and returns its value.
    ///
    /// # Errors
    /// When it trapped.
    pub async fn finished(&self, core: usize, context: usize) -> Result<u32, Trapped> {
        let waiting = || {
            let what = self.doing(core, context);
            format!("the end of microengine {core}, context {context}, which {what}")
        };
        describe(waiting, self.ended.wait_until(|| self.outcome(core, context).is_some())).await;
        match self.outcome(core, context).expect("just seen") {
            Outcome::Returned(value) => Ok(value),
            Outcome::Trapped(trap) => Err(Trapped { core, context, trap }),
        }
    }

    /// The cycles of a context by cause, up to now or to the cycle up to which its microengine has run ahead.
    pub fn context_counters(&self, core: usize, context: usize) -> ContextCounters {
        self.engines[core].state.borrow().context_counters(context, self.cycle())
    }

    /// The same of a microengine.
    pub fn core_counters(&self, core: usize) -> CoreCounters {
        self.engines[core].state.borrow().core_counters(self.cycle())
    }

    /// Instructions that all contexts have executed.
    pub fn instructions(&self) -> u64 {
        let of =
            |engine: &Engine| -> u64 { engine.state.borrow().slots.iter().map(|s| s.cpu.instret()).sum() };
        self.engines.iter().map(of).sum()
    }

    /// The first cycle that begins now or later.
    fn next_cycle(&self) -> u64 {
        let cycle = self.cycle();
        if self.time(cycle) == self.sim.now() { cycle } else { cycle + 1 }
    }
}

impl fmt::Debug for Nfp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nfp({} microengines at cycle {})", self.spec.cores, self.cycle())
    }
}

const PS_PER_S: u64 = 1_000_000_000_000;

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
