//! The processor: its microengines and memories, and the calls of the card.

use crate::map::MemoryKind;
use crate::processor::account::{ContextCounters, CoreCounters};
use crate::processor::engine::{Engine, Outcome, State};
use crate::processor::memory::{Memories, Memory};
use crate::processor::program::{Program, ProgramError};
use crate::processor::service::{Place, Services};
use crate::spec::NfpSpec;
use nicety_hpu::{AddressSpace, Trap, TrapKind};
use nicety_kernel::{Signal, Sim, describe};
use nicety_types::Time;
use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

/// A trapped process.
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
    pub(super) sim: Sim,
    pub(super) spec: NfpSpec,
    pub(super) engines: Vec<Engine>,
    islands: Vec<Memories>,
    /// Notified when a process has ended.
    pub(super) ended: Signal,
    /// The length of a cycle in picoseconds: numerator and denominator in lowest terms.
    cycle: (u64, u64),
    /// The server of the card's calls.
    pub(super) services: OnceCell<Box<dyn Services>>,
}

impl Nfp {
    /// The parts of a processor, without tasks that run them.
    pub(super) fn parts(sim: &Sim, spec: &NfpSpec) -> Nfp {
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
        Nfp {
            sim: sim.clone(),
            spec: spec.clone(),
            engines: (0..spec.cores).map(engine).collect(),
            islands,
            ended: Signal::new(sim),
            cycle: (PS_PER_S / divisor, spec.clock.hz() / divisor),
            services: OnceCell::new(),
        }
    }

    /// Returns its node's part of the simulation.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// Returns the signal for ended processes.
    pub fn ended(&self) -> &Signal {
        &self.ended
    }

    /// Returns its spec.
    pub fn spec(&self) -> &NfpSpec {
        &self.spec
    }

    /// Returns the time at which a cycle begins.
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

    /// Returns the cycle at a time: the last cycle that has begun.
    pub(crate) fn cycle_at(&self, time: Time) -> u64 {
        let (ps, cycles) = self.cycle;
        match time.ps().checked_mul(cycles) {
            Some(product) => product / ps,
            None => self.spec.clock.cycles_in(time.since(Time::ZERO)),
        }
    }

    /// Returns a memory. `island` selects one if each island has its own.
    ///
    /// # Panics
    /// When there is no such island.
    pub fn memory(&self, kind: MemoryKind, island: usize) -> &Memory {
        &self.islands[if kind.of_island() { island } else { 0 }].0[kind as usize]
    }

    /// Loads a program on a microengine, for up to `contexts` processes. The stacks of these processes share the local
    /// memory that the program's data leaves. Takes no simulated time.
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

    /// Starts a process: a function at `entry` of the microengine's program, with up to eight arguments. Takes no
    /// simulated time.
    ///
    /// # Panics
    /// When the microengine has no program, the program was loaded for fewer contexts, or the context runs a process.
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

    /// The outcome of a context's last process. `None` while the process runs, or if the context has had no process.
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

    /// The cycles of a context by cause, up to the current cycle. If its microengine has run ahead, up to the cycle
    /// that the microengine has reached.
    pub fn context_counters(&self, core: usize, context: usize) -> ContextCounters {
        self.engines[core].state.borrow().context_counters(context, self.cycle())
    }

    /// The cycles of a microengine by cause, up to the same cycle as in [`Nfp::context_counters`].
    pub fn core_counters(&self, core: usize) -> CoreCounters {
        self.engines[core].state.borrow().core_counters(self.cycle())
    }

    /// Instructions executed by all contexts.
    pub fn instructions(&self) -> u64 {
        let of =
            |engine: &Engine| -> u64 { engine.state.borrow().slots.iter().map(|s| s.cpu.instret()).sum() };
        self.engines.iter().map(of).sum()
    }

    /// Installs the server of the card's calls.
    ///
    /// # Panics
    /// When a server is installed already.
    pub(crate) fn offer(&self, services: impl Services + 'static) {
        assert!(self.services.set(Box::new(services)).is_ok(), "a processor is part of one card");
    }

    /// Ends the call in which a context sleeps. The context gets `result` at the time at which it would see a signal
    /// that is sent now.
    ///
    /// # Panics
    /// When the context does not sleep in a call of the card.
    pub(crate) fn resume(&self, place: Place, result: u32) {
        let engine = &self.engines[place.core];
        let at = self.next_cycle() + self.spec.signal;
        engine.state.borrow_mut().resume(place.context, result, at);
        engine.wake.notify_all();
    }

    /// The earliest time at which a context runs that is resumed now.
    pub(crate) fn resumes_at(&self) -> Time {
        self.time(self.next_cycle() + self.spec.signal)
    }

    /// Copies bytes out of a context's local memory or code store.
    pub(crate) fn read_local(&self, place: Place, address: u32, into: &mut [u8]) -> Result<(), TrapKind> {
        let engine = &self.engines[place.core];
        let mut state = engine.state.borrow_mut();
        let mut space = AddressSpace::new();
        state.open(place.context, &engine.memories, &mut space);
        into.copy_from_slice(space.read(address, into.len() as u32)?);
        Ok(())
    }

    /// Copies bytes into a context's local memory.
    ///
    /// # Errors
    /// When they reach beyond the local memory that the context may write.
    pub fn write_local(&self, place: Place, address: u32, from: &[u8]) -> Result<(), TrapKind> {
        let engine = &self.engines[place.core];
        let mut state = engine.state.borrow_mut();
        let mut space = AddressSpace::new();
        state.open(place.context, &engine.memories, &mut space);
        space.write(address, from.len() as u32)?.copy_from_slice(from);
        Ok(())
    }

    /// Checks that all bytes of a range are local memory that a context may write.
    pub(crate) fn check_local(&self, place: Place, address: u32, len: u32) -> Result<(), TrapKind> {
        let engine = &self.engines[place.core];
        let mut state = engine.state.borrow_mut();
        let mut space = AddressSpace::new();
        state.open(place.context, &engine.memories, &mut space);
        space.write(address, len).map(|_| ())
    }

    /// Sends a signal at `cycle`.
    pub(super) fn deliver(&self, core: usize, context: usize, signal: u32, cycle: u64) {
        let engine = &self.engines[core];
        engine.state.borrow_mut().signal(context, signal, cycle + self.spec.signal);
        engine.wake.notify_all();
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
