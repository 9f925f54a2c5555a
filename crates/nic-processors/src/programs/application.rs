//! Applications: programs of a host that share a weight, budgets, a part of HPU memory and accounting. An application
//! cannot reach another's memory.

use nicety_hpu::{OrderedWords, Reservations};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::iter::Sum;

/// Statistics of handlers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HandlerStatistics {
    /// Completed runs of handlers.
    #[serde(rename = "handler_runs")]
    pub runs: u64,
    /// Instructions that they executed.
    #[serde(rename = "handler_instructions")]
    pub instructions: u64,
    /// Cycles for which they held a processor, including the start and waits for commands.
    #[serde(rename = "handler_cycles")]
    pub cycles: u64,
    /// Of these, cycles of waits for commands and transfers.
    #[serde(rename = "handler_stalled_cycles")]
    pub stalled: u64,
    /// Instructions that accessed memory, and atomic commands on it.
    #[serde(rename = "handler_accesses")]
    pub accesses: u64,
    /// Of these, accesses to levels of memory in which cores wait for one another.
    #[serde(rename = "handler_shared_accesses")]
    pub shared_accesses: u64,
    /// Cycles for which they waited there, beside the latency.
    #[serde(rename = "handler_memory_wait_cycles")]
    pub memory_waits: u64,
    /// Cycles for which they waited for their code, where the card has an instruction cache.
    #[serde(rename = "handler_fetch_wait_cycles")]
    pub fetch_waits: u64,
    /// Cycles for which they waited for the issue of their core, which threads share. Profiles have them as `ready`.
    #[serde(skip)]
    pub issue_waits: u64,
    /// Loads and stores that found their lines, where the card has data caches.
    #[serde(rename = "handler_cache_hits")]
    pub cache_hits: u64,
    /// Those that did not.
    #[serde(rename = "handler_cache_misses")]
    pub cache_misses: u64,
    /// Cycles of loads and stores beyond those of hits, and waits of atomic operations for other caches.
    #[serde(rename = "handler_cache_wait_cycles")]
    pub cache_waits: u64,
    /// Failed runs: stopped, or with an error or an invalid return code.
    #[serde(rename = "handlers_failed")]
    pub failed: u64,
}

impl Sum for HandlerStatistics {
    fn sum<I: Iterator<Item = HandlerStatistics>>(of: I) -> HandlerStatistics {
        of.fold(HandlerStatistics::default(), |a, b| HandlerStatistics {
            runs: a.runs + b.runs,
            instructions: a.instructions + b.instructions,
            cycles: a.cycles + b.cycles,
            stalled: a.stalled + b.stalled,
            accesses: a.accesses + b.accesses,
            shared_accesses: a.shared_accesses + b.shared_accesses,
            memory_waits: a.memory_waits + b.memory_waits,
            fetch_waits: a.fetch_waits + b.fetch_waits,
            issue_waits: a.issue_waits + b.issue_waits,
            cache_hits: a.cache_hits + b.cache_hits,
            cache_misses: a.cache_misses + b.cache_misses,
            cache_waits: a.cache_waits + b.cache_waits,
            failed: a.failed + b.failed,
        })
    }
}

/// The number of an application on its card. The first one is the default for handlers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplicationId(pub u32);

/// The limits of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationConfig {
    /// Its name in reports.
    pub name: String,
    /// Its weight for shares of the handler cores and of the packet buffer, if the card schedules by weight.
    pub weight: u32,
    /// Most bytes of HPU memory. The default is all free memory of the card.
    pub memory: Option<u64>,
    /// Cycles after which a handler's run is stopped.
    pub run_cycles: Option<u64>,
    /// Total cycles after which its handlers no longer run.
    pub total_cycles: Option<u64>,
}

impl ApplicationConfig {
    /// Returns an application of weight 1 without limits of its own.
    pub fn new(name: impl Into<String>) -> ApplicationConfig {
        ApplicationConfig { name: name.into(), weight: 1, memory: None, run_cycles: None, total_cycles: None }
    }

    /// Returns the error in the configuration, if any.
    pub fn problem(&self) -> Option<String> {
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

/// The largest weight.
pub(crate) const MOST_WEIGHT: u32 = 1_000_000;

/// Resources that an application has used on its card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ApplicationReport {
    /// Its name; `default` is that of handlers for which none was given.
    pub name: String,
    /// Its weight.
    pub weight: u32,
    /// Statistics of its handlers.
    #[serde(flatten)]
    pub handlers: HandlerStatistics,
    /// Bytes of HPU memory in use: its programs' data and its states.
    #[serde(rename = "hpu_memory_bytes")]
    pub memory_bytes: u64,
    /// The maximum of that at any time.
    #[serde(rename = "hpu_memory_peak_bytes")]
    pub most_memory_bytes: u64,
    /// Messages that failed because the budget was used up before one of their handlers ran.
    #[serde(rename = "messages_refused")]
    pub refused: u64,
}

/// The budget that bounds a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// No budget: `hpu.cycle_limit` bounds the run.
    CycleLimit,
    /// The budget per run.
    Run(u64),
    /// The total budget of the application.
    Total(u64),
}

/// An application on a card.
pub struct Application {
    /// Its number.
    pub id: ApplicationId,
    pub(crate) config: ApplicationConfig,
    /// Shared by its programs, which may share states.
    pub reservations: RefCell<Reservations>,
    /// Words used by atomic operations. Accesses to them are ordered.
    pub(crate) atomic_words: RefCell<OrderedWords>,
    pub(crate) statistics: Cell<HandlerStatistics>,
    refused: Cell<u64>,
    memory: Cell<u64>,
    most_memory: Cell<u64>,
    /// Number of its attached handlers.
    pub attached: Cell<u32>,
    /// Messages in progress for its handlers.
    pub contexts: Cell<u32>,
    /// Packet buffer slots of their packets.
    pub slots: Cell<u32>,
}

impl Application {
    /// Returns an application without programs.
    pub fn new(id: ApplicationId, config: ApplicationConfig) -> Application {
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

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    pub(crate) fn memory_left(&self) -> Option<u64> {
        self.config.memory.map(|most| most.saturating_sub(self.memory.get()))
    }

    pub(crate) fn memory_taken(&self, bytes: u32) {
        self.memory.set(self.memory.get() + u64::from(bytes));
        self.most_memory.set(self.most_memory.get().max(self.memory.get()));
    }

    pub(crate) fn memory_given_back(&self, bytes: u32) {
        self.memory.set(self.memory.get() - u64::from(bytes));
    }

    /// Returns the cycle at which a run that begins now is stopped, and the budget that stops it. Concurrent runs do
    /// not count. So an application can exceed its budget by the cycles of its runs on other processors.
    pub(crate) fn bound(&self, handler_start: u64, cycle_limit: u64) -> (u64, Bound) {
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

    /// Returns whether the budget is used up.
    pub fn exhausted(&self) -> bool {
        self.config.total_cycles.is_some_and(|total| self.statistics.get().cycles >= total)
    }

    /// Changes its statistics.
    pub fn count(&self, change: impl FnOnce(&mut HandlerStatistics)) {
        let mut statistics = self.statistics.get();
        change(&mut statistics);
        self.statistics.set(statistics);
    }

    /// Counts a message that fails because the budget is used up.
    pub fn refuse(&self) {
        self.refused.set(self.refused.get() + 1);
    }

    /// Returns its counters.
    pub fn report(&self) -> ApplicationReport {
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
