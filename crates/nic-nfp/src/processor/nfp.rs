//! The processor: its microengines and memories, and the functions that the card calls.

use crate::map::MemoryKind;
use crate::processor::account::{ContextCounters, CoreCounters};
use crate::processor::engine::{Engine, Outcome, State};
use crate::processor::memory::{Memories, Memory};
use crate::processor::observe::{Observe, ObservedProcess, Outer};
use crate::processor::profile::{Profiles, ProgramProfile};
use crate::processor::program::{Program, ProgramError};
use crate::processor::service::{Place, Services};
use crate::spec::NfpSpec;
use nicety_hpu::{AddressSpace, Trap, TrapKind};
use nicety_kernel::{Signal, Sim, describe};
use nicety_types::Time;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;

/// A trapped process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trapped {
    /// The process's microengine.
    pub core: usize,
    /// The process's context.
    pub context: usize,
    /// The trap and its place in the program.
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
    /// The length of a cycle in picoseconds, as numerator and denominator in lowest terms.
    cycle: (u64, u64),
    /// The card, which serves the calls of processes to it.
    pub(super) services: OnceCell<Box<dyn Services>>,
    /// The profiles of programs, if they are kept.
    pub(super) profiles: OnceCell<Profiles>,
    /// The observer of processes, if there is one.
    pub(super) observing: OnceCell<Observing>,
}

/// The observer of a card, and the processes that it has seen.
pub(super) struct Observing {
    pub(super) observer: Rc<dyn Observe>,
    /// The number of processes so far, and the last process of each context.
    count: Cell<u64>,
    last: RefCell<Vec<Option<Rc<ObservedProcess>>>>,
    /// The memories outside the core, for each island.
    outer: Vec<Outer>,
}

impl Nfp {
    /// Returns a processor without the tasks that run its microengines.
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
            // The number has the layout that nfp.h decodes.
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
            profiles: OnceCell::new(),
            observing: OnceCell::new(),
        }
    }

    /// Returns the node's part of the simulation.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// Returns the signal that is notified when a process has ended.
    pub fn ended(&self) -> &Signal {
        &self.ended
    }

    /// Returns the processor's spec.
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

    /// Returns the current cycle: the last cycle that has begun.
    pub fn cycle(&self) -> u64 {
        self.cycle_at(self.sim.now())
    }

    /// Returns the cycle at a time: the last cycle that has begun by then.
    pub(crate) fn cycle_at(&self, time: Time) -> u64 {
        let (ps, cycles) = self.cycle;
        match time.ps().checked_mul(cycles) {
            Some(product) => product / ps,
            None => self.spec.clock.cycles_in(time.since(Time::ZERO)),
        }
    }

    /// Returns a memory. If each island has its own memory of this kind, `island` selects the island.
    ///
    /// # Panics
    /// When the island does not exist.
    pub fn memory(&self, kind: MemoryKind, island: usize) -> &Memory {
        &self.islands[if kind.of_island() { island } else { 0 }].0[kind as usize]
    }

    /// Loads a program on a microengine, for up to `contexts` processes. The stacks of these processes share the local
    /// memory that is left beside the program's data. This takes no virtual time.
    ///
    /// # Errors
    /// When the microengine has fewer contexts, or local memory is too small.
    ///
    /// # Panics
    /// When the microengine does not exist, or one of its processes still runs.
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

    /// Starts a process: the function at address `entry` of the microengine's program, with up to eight arguments. This
    /// takes no virtual time.
    ///
    /// # Panics
    /// When the microengine has no program, the program was loaded for fewer contexts, or the context runs a process.
    pub fn start(&self, core: usize, context: usize, entry: u32, arguments: &[u32]) {
        let engine = &self.engines[core];
        let mut state = engine.state.borrow_mut();
        let cycle = state.start(context, entry, arguments, self.next_cycle());
        if let (Some(profiles), Some(program)) = (self.profiles.get(), state.program.clone()) {
            let counters = state.context_counters(context, cycle);
            let profile = profiles.begin(&program.image, entry, cycle, counters);
            state.slots[context].profile = Some(Box::new(profile));
        }
        if let (Some(observing), Some(program)) = (self.observing.get(), &state.program) {
            let image = program.image.clone();
            let place = Place { core, context };
            let number = observing.count.get() + 1;
            observing.count.set(number);
            let island = core / self.spec.island;
            let process = Rc::new(ObservedProcess { place, island, number, entry, image });
            observing.last.borrow_mut()[core * self.spec.contexts + context] = Some(process.clone());
            state.slots[context].reported = None;
            observing.observer.begins(&process);
        }
        drop(state);
        engine.wake.notify_all();
    }

    /// Profiles the processes that start from now on. This takes no virtual time.
    pub fn profile(&self) {
        self.profiles.get_or_init(Profiles::default);
    }

    /// Reports the instructions of all processes that start from now on to `observer`.
    ///
    /// # Panics
    /// When the card already has an observer.
    pub fn observed_by(&self, observer: Rc<dyn Observe>) {
        let contexts = self.spec.cores * self.spec.contexts;
        let observing = Observing {
            observer,
            count: Cell::new(0),
            last: RefCell::new(vec![None; contexts]),
            outer: self.islands.iter().cloned().map(Outer::new).collect(),
        };
        assert!(self.observing.set(observing).is_ok(), "a card has one observer");
    }

    /// Returns the observer, the process of a context, and the memories outside its core. `None` without an observer.
    pub(super) fn observed(&self, place: Place) -> Option<(&dyn Observe, Rc<ObservedProcess>, &Outer)> {
        let observing = self.observing.get()?;
        let process = observing.last.borrow()[place.core * self.spec.contexts + place.context].clone()?;
        let outer = &observing.outer[process.island];
        Some((&*observing.observer, process, outer))
    }

    /// Ends the profiles, and returns them in the order of the programs' first processes. They have the processes that
    /// have ended, and those that run up to the current cycle.
    pub fn take_profiles(&self) -> Vec<ProgramProfile> {
        let Some(profiles) = self.profiles.get() else { return Vec::new() };
        let now = self.cycle();
        for (core, engine) in self.engines.iter().enumerate() {
            let mut state = engine.state.borrow_mut();
            let Some(program) = state.program.clone() else { continue };
            for context in 0..state.slots.len() {
                if let Some(profile) = state.take_profile(context, now) {
                    let counters = state.context_counters(context, now);
                    profiles.add(&program.image, Place { core, context }, &profile, counters);
                }
            }
        }
        profiles.take()
    }

    /// Sends a signal to a context, in the same way as another context does.
    ///
    /// # Panics
    /// When the microengine, the context or the signal does not exist.
    pub fn signal(&self, core: usize, context: usize, signal: u32) {
        self.deliver(core, context, signal, self.next_cycle());
    }

    /// Returns the outcome of a context's last process. `None` while the process runs, or if the context has had no
    /// process.
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

    /// Returns a description of the state of a context, as the predicate of a sentence.
    pub fn doing(&self, core: usize, context: usize) -> String {
        self.engines[core].state.borrow().slots[context].state.describe()
    }

    /// Waits until the process of a context has ended, and returns the result of its function.
    ///
    /// # Errors
    /// When the process trapped.
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

    /// Returns the cycles of a context by cause, up to the current cycle. If its microengine has run ahead, they extend
    /// to the cycle that the microengine has reached.
    pub fn context_counters(&self, core: usize, context: usize) -> ContextCounters {
        self.engines[core].state.borrow().context_counters(context, self.cycle())
    }

    /// Returns the cycles of a microengine by cause, up to the same cycle as in [`Nfp::context_counters`].
    pub fn core_counters(&self, core: usize) -> CoreCounters {
        self.engines[core].state.borrow().core_counters(self.cycle())
    }

    /// Returns the number of instructions that all contexts have executed.
    pub fn instructions(&self) -> u64 {
        let of =
            |engine: &Engine| -> u64 { engine.state.borrow().slots.iter().map(|s| s.cpu.instret()).sum() };
        self.engines.iter().map(of).sum()
    }

    /// Installs the card as the server of the calls of processes to it.
    ///
    /// # Panics
    /// When a server is already installed.
    pub(crate) fn offer(&self, services: impl Services + 'static) {
        assert!(self.services.set(Box::new(services)).is_ok(), "a processor is part of one card");
    }

    /// Ends the call in which a context sleeps. The context gets `result` after the delay of a signal.
    ///
    /// # Panics
    /// When the context does not sleep in a call to the card.
    pub(crate) fn resume(&self, place: Place, result: u32) {
        let engine = &self.engines[place.core];
        let at = self.next_cycle() + self.spec.signal;
        engine.state.borrow_mut().resume(place.context, result, at);
        engine.wake.notify_all();
    }

    /// Returns the earliest time at which a context can run if it is resumed now.
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
    /// When the bytes reach beyond the local memory that the context may write.
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

    /// Returns the first cycle that begins now or later.
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
