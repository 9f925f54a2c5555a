//! Applications: programs of a host that share a weight, budgets and a part of HPU memory, and are accounted for
//! together. One cannot reach another's memory.

use super::hpus::HandlerStatistics;
use nicety_hpu::Reservations;
use std::cell::{Cell, RefCell};

/// The name of an application on its card. The first is that of handlers for which none is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplicationId(pub u32);

/// What an application may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationConfig {
    /// What reports call it.
    pub name: String,
    /// Its share of the handler processors and of the packet buffer, in proportion to the weights of others, where the
    /// card schedules by weight.
    pub weight: u32,
    /// Most bytes of HPU memory; without it, all that is left of the card's.
    pub memory: Option<u64>,
    /// Cycles after which a run of a handler is stopped.
    pub run_cycles: Option<u64>,
    /// Cycles after which its handlers are not run any more.
    pub total_cycles: Option<u64>,
}

impl ApplicationConfig {
    /// An application of weight 1 without limits of its own.
    pub fn new(name: impl Into<String>) -> ApplicationConfig {
        ApplicationConfig { name: name.into(), weight: 1, memory: None, run_cycles: None, total_cycles: None }
    }

    /// What is wrong with it.
    pub(super) fn problem(&self) -> Option<String> {
        let name = &self.name;
        if name.is_empty() {
            return Some("an application has a name; write for example \"kv\"".to_string());
        }
        if !(1..=MOST_WEIGHT).contains(&self.weight) {
            let weight = self.weight;
            return Some(format!("application '{name}': a weight is 1 to {MOST_WEIGHT}, not {weight}"));
        }
        if self.run_cycles == Some(0) || self.total_cycles == Some(0) {
            return Some(format!(
                "application '{name}': a budget is at least one cycle; leave it out for none"
            ));
        }
        None
    }
}

/// The heaviest application.
pub(super) const MOST_WEIGHT: u32 = 1_000_000;

/// What an application has used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationReport {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: u32,
    /// What its handlers have done.
    pub handlers: HandlerStatistics,
    /// Bytes of HPU memory it has: its programs' data and its states.
    pub memory_bytes: u64,
    /// Most bytes of HPU memory that it had at any time.
    pub most_memory_bytes: u64,
    /// Messages that failed because its budget was used up when a handler of theirs was to run.
    pub refused: u64,
}

/// Which budget bounds a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// None: `hpu.cycle_limit` does.
    CycleLimit,
    /// That of a run.
    Run(u64),
    /// That of the application.
    Total(u64),
}

/// An application on a card.
pub(super) struct Application {
    pub(super) id: ApplicationId,
    pub(super) config: ApplicationConfig,
    /// Of all its programs, which may share states.
    pub(super) reservations: RefCell<Reservations>,
    /// Words on which atomic operations work, by address, sorted: accesses to them are ordered.
    pub(super) atomic_words: RefCell<Vec<u32>>,
    pub(super) statistics: Cell<HandlerStatistics>,
    refused: Cell<u64>,
    memory: Cell<u64>,
    most_memory: Cell<u64>,
    /// Handlers of it that are attached.
    pub(super) attached: Cell<u32>,
    /// Messages for its handlers that are under way.
    pub(super) contexts: Cell<u32>,
    /// Places of the packet buffer that their packets have.
    pub(super) slots: Cell<u32>,
}

impl Application {
    pub(super) fn new(id: ApplicationId, config: ApplicationConfig) -> Application {
        Application {
            id,
            config,
            reservations: RefCell::default(),
            atomic_words: RefCell::default(),
            statistics: Cell::default(),
            refused: Cell::new(0),
            memory: Cell::new(0),
            most_memory: Cell::new(0),
            attached: Cell::new(0),
            contexts: Cell::new(0),
            slots: Cell::new(0),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.config.name
    }

    pub(super) fn memory_left(&self) -> Option<u64> {
        self.config.memory.map(|most| most.saturating_sub(self.memory.get()))
    }

    pub(super) fn memory_taken(&self, bytes: u32) {
        self.memory.set(self.memory.get() + u64::from(bytes));
        self.most_memory.set(self.most_memory.get().max(self.memory.get()));
    }

    pub(super) fn memory_given_back(&self, bytes: u32) {
        self.memory.set(self.memory.get() - u64::from(bytes));
    }

    /// The cycle at which a run that begins now is stopped, and why. What other runs use meanwhile does not count: the
    /// cycles of all can be more than the budget by what the other processors did at the same time.
    pub(super) fn bound(&self, handler_start: u64, cycle_limit: u64) -> (u64, Bound) {
        let mut bound = (handler_start + cycle_limit, Bound::CycleLimit);
        if let Some(cycles) = self.config.run_cycles.filter(|&cycles| cycles < bound.0) {
            bound = (cycles, Bound::Run(cycles));
        }
        if let Some(total) = self.config.total_cycles {
            let left = total.saturating_sub(self.statistics.get().cycles);
            if left < bound.0 {
                bound = (left, Bound::Total(total));
            }
        }
        bound
    }

    /// Whether its budget is used up.
    pub(super) fn exhausted(&self) -> bool {
        self.config.total_cycles.is_some_and(|total| self.statistics.get().cycles >= total)
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut HandlerStatistics)) {
        let mut statistics = self.statistics.get();
        change(&mut statistics);
        self.statistics.set(statistics);
    }

    /// A message fails because the budget is used up.
    pub(super) fn refuse(&self) {
        self.refused.set(self.refused.get() + 1);
    }

    pub(super) fn report(&self) -> ApplicationReport {
        ApplicationReport {
            name: self.config.name.clone(),
            weight: self.config.weight,
            handlers: self.statistics.get(),
            memory_bytes: self.memory.get(),
            most_memory_bytes: self.most_memory.get(),
            refused: self.refused.get(),
        }
    }
}
