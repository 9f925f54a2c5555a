//! Profiles of processes: the cycles of contexts by instruction, cause and call path.
//!
//! A process is charged with each cycle from its start to its end, as the counters of its context are. The instruction
//! that made it sleep is charged with its sleep.

use crate::processor::account::ContextCounters;
use crate::processor::service::Place;
use nicety_hpu::profile::{Cause, Paths, Profile};
use nicety_hpu::{Image, Totals};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The profile of a program's processes.
#[derive(Debug)]
pub struct ProgramProfile {
    /// The program.
    pub image: Arc<Image>,
    /// The sums of its processes.
    pub totals: Totals,
    /// The counters of its processes, by context and function, in the order of their ends.
    pub processes: Vec<ProcessProfile>,
}

/// The counters of the processes of one function on one context.
#[derive(Clone, Copy, Debug)]
pub struct ProcessProfile {
    /// The context.
    pub place: Place,
    /// The address of the function.
    pub entry: u32,
    /// Number of processes.
    pub processes: u64,
    /// The counters of the context from their starts to their ends.
    pub counters: ContextCounters,
}

/// The profiles of a card's programs, in the order of their first processes.
#[derive(Default)]
pub(super) struct Profiles(RefCell<Vec<ProgramProfile>>);

impl Profiles {
    /// Calls `with` for the profile of a program.
    fn of<R>(&self, image: &Arc<Image>, with: impl FnOnce(&mut ProgramProfile) -> R) -> R {
        let mut programs = self.0.borrow_mut();
        let index = match programs.iter().position(|program| Arc::ptr_eq(&program.image, image)) {
            Some(index) => index,
            None => {
                let totals = Totals::of(image);
                programs.push(ProgramProfile { image: image.clone(), totals, processes: Vec::new() });
                programs.len() - 1
            }
        };
        with(&mut programs[index])
    }

    /// Begins a process at `cycle`, before its first instruction. `counters` are those of its context.
    pub(super) fn begin(
        &self,
        image: &Arc<Image>,
        entry: u32,
        cycle: u64,
        counters: ContextCounters,
    ) -> ContextProfile {
        let paths = self.of(image, |program| program.totals.paths().clone());
        ContextProfile::begin(image, &paths, entry, (cycle, counters))
    }

    /// Adds a process. `counters` are those of its context.
    pub(super) fn add(
        &self,
        image: &Arc<Image>,
        place: Place,
        process: &ContextProfile,
        counters: ContextCounters,
    ) {
        let counters = counters - process.begun;
        self.of(image, |program| {
            program.totals.add(&process.profile);
            let same = |known: &&mut ProcessProfile| known.place == place && known.entry == process.entry;
            match program.processes.iter_mut().find(same) {
                Some(known) => {
                    known.processes += 1;
                    known.counters = known.counters + counters;
                }
                None => program.processes.push(ProcessProfile {
                    place,
                    entry: process.entry,
                    processes: 1,
                    counters,
                }),
            }
        });
    }

    pub(super) fn take(&self) -> Vec<ProgramProfile> {
        self.0.take()
    }
}

/// The profile of a context's process.
pub(super) struct ContextProfile {
    pub(super) profile: Profile,
    /// Its function, and the counters of the context at its start.
    entry: u32,
    begun: ContextCounters,
    /// The instruction that released the core, and the reason.
    pc: u32,
    cause: Cause,
    /// The cycles for which a reference waited in the queue of its memory.
    queued: u64,
}

impl ContextProfile {
    fn begin(
        image: &Image,
        paths: &Rc<RefCell<Paths>>,
        entry: u32,
        (cycle, begun): (u64, ContextCounters),
    ) -> ContextProfile {
        let mut profile = Profile::default();
        profile.begin_at(image.core().overlap.is_some(), paths, entry, cycle);
        ContextProfile { profile, entry, begun, pc: entry, cause: Cause::Ready, queued: 0 }
    }

    /// Counts an instruction that was performed between slices, up to `cycle`.
    pub(super) fn performed(&mut self, image: &Image, pc: u32, cycle: u64) {
        image.count_in(&mut self.profile, pc);
        self.profile.reach(pc, Cause::Command, cycle);
    }

    /// Charges an instruction that traps with the cycles up to `cycle`.
    pub(super) fn trapped(&mut self, pc: u32, cycle: u64) {
        self.profile.reach(pc, Cause::Execute, cycle);
    }

    /// Notes the queue of the memory that a reference waits for.
    pub(super) const fn queued(&mut self, cycles: u64) {
        self.queued = cycles;
    }

    /// The context releases the core at the instruction at `pc`.
    pub(super) const fn sleeps(&mut self, pc: u32, cause: Cause) {
        (self.pc, self.cause) = (pc, cause);
    }

    /// The context sleeps until cycle `ready` and then waits for the core, both up to `cycle`. Without `ready`, it
    /// sleeps all the time.
    pub(super) fn waits_until(&mut self, ready: Option<u64>, cycle: u64) {
        let woken = ready.unwrap_or(cycle).min(cycle);
        let queue = [(Cause::Bank, std::mem::take(&mut self.queued))];
        self.profile.reach_in_parts(self.pc, &queue.into_iter().collect(), self.cause, woken);
        self.profile.reach(self.pc, Cause::Ready, cycle);
    }
}
