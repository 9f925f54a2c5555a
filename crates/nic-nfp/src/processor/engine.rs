//! A microengine: its contexts, its local memory, and the choice of the next context.
//!
//! Contexts are not preempted. The core runs the first ready context after the context that ran last (round-robin). A
//! switch to another context costs cycles.

use crate::map;
use crate::processor::account::{ContextAccount, ContextCounters, CoreAccount, CoreCounters};
use crate::processor::intrinsics;
use crate::processor::memory::Memories;
use crate::processor::profile::ContextProfile;
use crate::processor::program::Program;
use nicety_hpu::{AddressSpace, Context, Region, Reservations, Trap, asm};
use nicety_kernel::{Signal, Sim};
use std::cell::RefCell;
use std::rc::Rc;

/// Number of signals of a context. They are numbered from 0.
pub const SIGNALS: u32 = 16;

/// The arrival cycle of a signal that has not arrived.
const NEVER: u64 = u64::MAX;

/// Size in bytes of the guard below a stack. An access to the guard is a stack overflow.
const STACK_GUARD: u32 = 256;

/// The outcome of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The process's function returned this value.
    Returned(u32),
    /// The process trapped.
    Trapped(Box<Trap>),
}

/// The state of a context.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// The context has no process.
    Free,
    /// The context is ready for the core from this cycle on, and asleep before.
    Ready {
        at: u64,
    },
    /// The context waits for all or any of the signals of a mask.
    Waiting {
        mask: u16,
        all: bool,
    },
    /// The context sleeps in a call to the card. `number` is the number of the call.
    Called {
        number: u32,
    },
    Running,
    Ended(Outcome),
}

impl State {
    /// Returns a description of the state, as the predicate of a sentence.
    pub(super) fn describe(&self) -> String {
        match self {
            State::Free => "has no process".to_owned(),
            State::Ready { .. } | State::Running => "runs".to_owned(),
            State::Waiting { mask, all } => {
                let numbers =
                    (0..SIGNALS).filter(|number| mask >> number & 1 != 0).map(|number| number.to_string());
                let word = if *all { "all" } else { "any" };
                format!("waits for {word} of its signals {}", numbers.collect::<Vec<_>>().join(", "))
            }
            State::Called { number } => format!("waits in {}", intrinsics::name(*number)),
            State::Ended(_) => "has ended".to_owned(),
        }
    }
}

/// A context and its process.
pub(super) struct Slot {
    pub(super) cpu: Context,
    pub(super) state: State,
    /// The cycle in the past or future at which each signal arrives.
    signals: [u64; SIGNALS as usize],
    pub(super) account: ContextAccount,
    /// The profile of its process, if the card has profiles.
    pub(super) profile: Option<Box<ContextProfile>>,
    /// The instructions completed when the observer had its last report.
    pub(super) reported: Option<u64>,
}

/// The next context to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The core runs this context from this cycle on. No signal can change this choice.
    Run { slot: usize, at: u64 },
    /// The core chooses the context at this cycle, or earlier if a signal arrives.
    Look { at: u64 },
    /// No context is ready or will become ready without a signal or a result.
    Idle,
}

/// The mutable state of a microengine.
pub(super) struct EngineState {
    pub(super) slots: Vec<Slot>,
    pub(super) local: Vec<u8>,
    pub(super) program: Option<Rc<Program>>,
    /// Number of contexts with a stack, and the size of each stack in bytes.
    contexts: usize,
    stack: u32,
    pub(super) reservations: Reservations,
    /// The context that ran last.
    last: Option<usize>,
    pub(super) account: CoreAccount,
}

/// A microengine.
pub(super) struct Engine {
    pub(super) state: RefCell<EngineState>,
    /// Notified at each event for which a context may wait.
    pub(super) wake: Signal,
    pub(super) memories: Memories,
}

impl Engine {
    pub(super) fn new(sim: &Sim, first_hart: u32, contexts: usize, local: u32, memories: Memories) -> Engine {
        let slot = |number| Slot {
            cpu: Context::new(first_hart + number as u32),
            state: State::Free,
            signals: [NEVER; SIGNALS as usize],
            account: ContextAccount::default(),
            profile: None,
            reported: None,
        };
        let state = EngineState {
            slots: (0..contexts).map(slot).collect(),
            local: vec![0; local as usize],
            program: None,
            contexts: 0,
            stack: 0,
            reservations: Reservations::new(),
            last: None,
            account: CoreAccount::default(),
        };
        Engine { state: RefCell::new(state), wake: Signal::new(sim), memories }
    }
}

impl EngineState {
    /// Loads a program and frees every context. No process may be running.
    pub(super) fn load(&mut self, program: &Rc<Program>, stack: u32, contexts: usize, cycle: u64) {
        self.rest_until(cycle);
        program.fill(&mut self.local);
        (self.contexts, self.stack) = (contexts, stack);
        self.program = Some(program.clone());
        self.last = None;
        for slot in &mut self.slots {
            slot.account.idle_until(cycle.max(self.account.until()));
            slot.state = State::Free;
            slot.signals = [NEVER; SIGNALS as usize];
        }
    }

    /// Starts a process at `cycle`, or at the cycle that the core has reached. Returns this cycle.
    pub(super) fn start(&mut self, number: usize, entry: u32, arguments: &[u32], cycle: u64) -> u64 {
        assert!(number < self.contexts, "the program was loaded for {} contexts", self.contexts);
        assert!(!self.slots[number].live(), "context {number} runs a process");
        self.rest_until(cycle);
        let program = self.program.as_ref().expect("a program is loaded before it is started");
        let top = map::LOCAL + program.data + self.stack * (number as u32 + 1);
        let slot = &mut self.slots[number];
        slot.cpu.limit_stack(top - self.stack);
        slot.cpu.call(&program.image, entry, top, arguments, u64::MAX);
        let cycle = cycle.max(self.account.until());
        slot.account.idle_until(cycle);
        slot.state = State::Ready { at: cycle };
        cycle
    }

    /// If the core runs no context, counts the cycles up to `cycle`.
    fn rest_until(&mut self, cycle: u64) {
        let running = self.slots.iter().any(|slot| matches!(slot.state, State::Running));
        if !running && cycle > self.account.until() {
            let live = self.live();
            self.account.resting_until(cycle, live);
        }
    }

    pub(super) fn live(&self) -> bool {
        self.slots.iter().any(Slot::live)
    }

    /// Returns the next context to run, according to the state at cycle `now`.
    pub(super) fn next(&self, now: u64) -> Next {
        let free = self.account.until();
        let count = self.slots.len();
        let after = self.last.map_or(0, |last| last + 1);
        let mut first: Option<(u64, usize)> = None;
        let mut open = false;
        for step in 0..count {
            let number = (after + step) % count;
            let slot = &self.slots[number];
            open |= matches!(slot.state, State::Waiting { .. } | State::Called { .. });
            if let Some(ready) = slot.ready() {
                let at = ready.max(free);
                if first.is_none_or(|(earliest, _)| at < earliest) {
                    first = Some((at, number));
                }
            }
        }
        match first {
            None => Next::Idle,
            // Signals and results of calls that have not been sent yet arrive after `now`.
            Some((at, slot)) if !open || at <= now => Next::Run { slot, at },
            Some((at, _)) => Next::Look { at },
        }
    }

    /// Gives the core to a context at cycle `at`. If another context had the core before, the context gets it `switch`
    /// cycles later.
    pub(super) fn dispatch(&mut self, number: usize, at: u64, switch: u64) {
        let live = self.live();
        self.account.resting_until(at, live);
        let mut start = at;
        if self.last.is_some_and(|last| last != number) {
            start += switch;
            self.account.switched_until(start);
        }
        self.last = Some(number);
        let slot = &mut self.slots[number];
        let ready = slot.ready().expect("only a ready context is given the core");
        slot.account.waiting_until(Some(ready), start);
        if let Some(profile) = &mut slot.profile {
            profile.waits_until(Some(ready), start);
        }
        if let State::Waiting { mask, .. } = slot.state {
            let come = slot.take_signals(mask, ready);
            slot.cpu.set_reg(nicety_hpu::asm::A0 as usize, come.into());
        }
        slot.cpu.set_cycle(start);
        slot.state = State::Running;
    }

    /// Releases the core: the context has computed until `cycle`.
    pub(super) fn leave(&mut self, number: usize, cycle: u64, state: State) {
        self.account.computing_until(cycle);
        let slot = &mut self.slots[number];
        slot.account.computing_until(cycle);
        slot.state = state;
    }

    /// Delivers a signal to a context at `cycle`.
    pub(super) fn signal(&mut self, number: usize, signal: u32, cycle: u64) {
        let when = &mut self.slots[number].signals[signal as usize];
        *when = cycle.min(*when);
    }

    /// Ends the call in which a context sleeps. The context continues at `cycle`.
    pub(super) fn resume(&mut self, number: usize, result: u32, cycle: u64) {
        let slot = &mut self.slots[number];
        assert!(matches!(slot.state, State::Called { .. }), "context {number} sleeps in a call");
        slot.cpu.set_reg(asm::A0 as usize, result.into());
        slot.state = State::Ready { at: cycle };
    }

    /// Whether a context has waited for signals, and all required signals have now arrived.
    pub(super) fn is_released(&self, number: usize) -> bool {
        let slot = &self.slots[number];
        matches!(slot.state, State::Waiting { .. }) && slot.ready().is_some()
    }

    /// Returns the counters of the core at cycle `now`. If the core has run ahead of `now`, returns those at the cycle
    /// that it has reached.
    pub(super) fn core_counters(&self, now: u64) -> CoreCounters {
        let mut account = self.account;
        let until = now.max(account.until());
        if self.slots.iter().any(|slot| matches!(slot.state, State::Running)) {
            account.computing_until(until);
        } else {
            account.resting_until(until, self.live());
        }
        account.counters()
    }

    /// Returns the counters of a context, at the same cycle as [`EngineState::core_counters`].
    pub(super) fn context_counters(&self, number: usize, now: u64) -> ContextCounters {
        let until = now.max(self.account.until());
        let slot = &self.slots[number];
        let mut account = slot.account;
        match &slot.state {
            State::Free | State::Ended(_) => account.idle_until(until),
            State::Running => account.computing_until(until),
            State::Ready { at } => account.waiting_until(Some(*at), until),
            State::Waiting { .. } | State::Called { .. } => account.waiting_until(slot.ready(), until),
        }
        account.counters(slot.cpu.instret())
    }

    /// Returns the profile of a context's process up to cycle `now`, as [`EngineState::context_counters`]. The context has
    /// no profile afterwards. `None` without a process or a profile.
    pub(super) fn take_profile(&mut self, number: usize, now: u64) -> Option<Box<ContextProfile>> {
        let until = now.max(self.account.until());
        let slot = &mut self.slots[number];
        let mut profile = slot.profile.take()?;
        match slot.state {
            State::Free | State::Ended(_) => return None,
            State::Running => profile.trapped(slot.cpu.pc(), until),
            _ => profile.waits_until(slot.ready(), until),
        }
        Some(profile)
    }

    /// Returns the bottom of a context's stack, and its bytes.
    pub(super) fn stack(&self, number: usize) -> (u32, &[u8]) {
        let bottom = self.program.as_ref().map_or(0, |program| program.data) + self.stack * number as u32;
        (map::LOCAL + bottom, &self.local[bottom as usize..(bottom + self.stack) as usize])
    }

    /// Fills a context's address space. It contains the data in local memory, the context's own stack, the code, and
    /// the memories outside the core as devices. Returns the context's processor state and the reservations on local
    /// memory.
    pub(super) fn open<'a>(
        &'a mut self,
        number: usize,
        memories: &Memories,
        space: &mut AddressSpace<'a>,
    ) -> (&'a mut Context, &'a mut Reservations) {
        let program = self.program.as_ref().expect("a program is loaded");
        let bottom = program.data + self.stack * number as u32;
        let (data, stacks) = self.local.split_at_mut(program.data as usize);
        let own = (bottom - program.data) as usize;
        let stack = &mut stacks[own..own + self.stack as usize];
        space.push(Region::stack("the stack", map::LOCAL + bottom, stack, STACK_GUARD));
        if !data.is_empty() {
            space.push(Region::memory("the data in local memory", map::LOCAL, data));
        }
        for memory in &memories.0 {
            let region = Region::device(memory.kind().name(), memory.kind().base(), memory.size() as u32);
            space.push(region.at_any_byte());
        }
        space.push(Region::read_only("the code store", map::CODE, &program.code));
        let Slot { cpu, profile, .. } = &mut self.slots[number];
        if let Some(profile) = profile {
            space.count_in(&mut profile.profile);
        }
        (cpu, &mut self.reservations)
    }
}

impl Slot {
    fn live(&self) -> bool {
        matches!(
            self.state,
            State::Ready { .. } | State::Waiting { .. } | State::Called { .. } | State::Running
        )
    }

    /// Returns the counters of the context, at the cycle of its last change.
    pub(super) fn counters(&self) -> ContextCounters {
        self.account.counters(self.cpu.instret())
    }

    /// Returns the cycle from which the context can run, if it is known.
    fn ready(&self) -> Option<u64> {
        match self.state {
            State::Ready { at } => Some(at),
            State::Waiting { mask, all } => {
                let numbers = (0..SIGNALS as usize).filter(|number| mask >> number & 1 != 0);
                let times = numbers.map(|number| self.signals[number]);
                let when = if all { times.max() } else { times.min() };
                when.filter(|&when| when != NEVER)
            }
            _ => None,
        }
    }

    /// Consumes and returns the signals of `mask` that have arrived by `cycle`.
    fn take_signals(&mut self, mask: u16, cycle: u64) -> u32 {
        let mut come = 0;
        for (number, when) in self.signals.iter_mut().enumerate() {
            if mask >> number & 1 != 0 && *when <= cycle {
                *when = NEVER;
                come |= 1 << number;
            }
        }
        come
    }
}
