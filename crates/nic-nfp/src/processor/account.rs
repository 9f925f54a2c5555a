//! Counts the cycles of contexts and microengines by cause. Every cycle has exactly one cause.

use schemars::JsonSchema;
use serde::Serialize;
use std::ops::{Add, Sub};

/// Cycles of a context by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ContextCounters {
    /// Cycles of instructions, and of core units for which the context waits, such as the CRC.
    #[serde(rename = "cycles_computing")]
    pub computing: u64,
    /// Cycles of waiting for a memory, a signal or a channel.
    #[serde(rename = "cycles_asleep")]
    pub asleep: u64,
    /// Cycles in which the context was ready while the core ran other contexts, or switched to this context.
    #[serde(rename = "cycles_ready")]
    pub ready: u64,
    /// Cycles before its start and after its end.
    #[serde(rename = "cycles_idle")]
    pub idle: u64,
    /// Instructions executed.
    pub instructions: u64,
    /// References to memories outside the core.
    pub references: u64,
}

impl ContextCounters {
    /// Returns the sum of all causes: the cycles since the processor began.
    pub const fn elapsed(&self) -> u64 {
        self.computing + self.asleep + self.ready + self.idle
    }
}

impl Add for ContextCounters {
    type Output = ContextCounters;

    fn add(self, other: ContextCounters) -> ContextCounters {
        ContextCounters {
            computing: self.computing + other.computing,
            asleep: self.asleep + other.asleep,
            ready: self.ready + other.ready,
            idle: self.idle + other.idle,
            instructions: self.instructions + other.instructions,
            references: self.references + other.references,
        }
    }
}

/// Subtraction returns the counts since an earlier snapshot.
impl Sub for ContextCounters {
    type Output = ContextCounters;

    fn sub(self, earlier: ContextCounters) -> ContextCounters {
        ContextCounters {
            computing: self.computing - earlier.computing,
            asleep: self.asleep - earlier.asleep,
            ready: self.ready - earlier.ready,
            idle: self.idle - earlier.idle,
            instructions: self.instructions - earlier.instructions,
            references: self.references - earlier.references,
        }
    }
}

/// Cycles of a microengine by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CoreCounters {
    /// Cycles in which a context computed.
    #[serde(rename = "cycles_computing")]
    pub computing: u64,
    /// Cycles of switches between contexts.
    #[serde(rename = "cycles_switching")]
    pub switching: u64,
    /// Cycles in which every context with a process slept.
    #[serde(rename = "cycles_asleep")]
    pub asleep: u64,
    /// Cycles in which no context had a process.
    #[serde(rename = "cycles_idle")]
    pub idle: u64,
    /// Number of switches.
    pub switches: u64,
}

impl CoreCounters {
    /// Returns the sum of all causes: the cycles since the processor began.
    pub const fn elapsed(&self) -> u64 {
        self.computing + self.switching + self.asleep + self.idle
    }
}

/// Subtraction returns the counts since an earlier snapshot.
impl Sub for CoreCounters {
    type Output = CoreCounters;

    fn sub(self, earlier: CoreCounters) -> CoreCounters {
        CoreCounters {
            computing: self.computing - earlier.computing,
            switching: self.switching - earlier.switching,
            asleep: self.asleep - earlier.asleep,
            idle: self.idle - earlier.idle,
            switches: self.switches - earlier.switches,
        }
    }
}

/// The counters of a context, and the cycle up to which they are valid.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ContextAccount {
    counters: ContextCounters,
    until: u64,
}

impl ContextAccount {
    pub(super) fn idle_until(&mut self, cycle: u64) {
        self.counters.idle += self.take(cycle);
    }

    pub(super) fn computing_until(&mut self, cycle: u64) {
        self.counters.computing += self.take(cycle);
    }

    /// Counts the cycles of a waiting context up to `cycle`. They count as asleep before cycle `ready`, and then as
    /// ready. If `ready` is `None`, all of them count as asleep.
    pub(super) fn waiting_until(&mut self, ready: Option<u64>, cycle: u64) {
        let woken = ready.unwrap_or(cycle).clamp(self.until, cycle);
        self.counters.asleep += self.take(woken);
        self.counters.ready += self.take(cycle);
    }

    pub(super) fn referred(&mut self) {
        self.counters.references += 1;
    }

    pub(super) fn counters(&self, instructions: u64) -> ContextCounters {
        ContextCounters { instructions, ..self.counters }
    }

    fn take(&mut self, cycle: u64) -> u64 {
        let passed = cycle.checked_sub(self.until).expect("an account is kept forwards");
        self.until = cycle;
        passed
    }
}

/// The counters of a microengine, and the cycle up to which they are valid.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CoreAccount {
    counters: CoreCounters,
    until: u64,
}

impl CoreAccount {
    /// Counts the cycles up to `cycle` in which the core ran no context. They count as asleep if the microengine has a
    /// process (`live`), or else as idle.
    pub(super) fn resting_until(&mut self, cycle: u64, live: bool) {
        let passed = self.take(cycle);
        *if live { &mut self.counters.asleep } else { &mut self.counters.idle } += passed;
    }

    pub(super) fn switched_until(&mut self, cycle: u64) {
        self.counters.switching += self.take(cycle);
        self.counters.switches += 1;
    }

    pub(super) fn computing_until(&mut self, cycle: u64) {
        self.counters.computing += self.take(cycle);
    }

    pub(super) fn until(&self) -> u64 {
        self.until
    }

    pub(super) fn counters(&self) -> CoreCounters {
        self.counters
    }

    fn take(&mut self, cycle: u64) -> u64 {
        let passed = cycle.checked_sub(self.until).expect("an account is kept forwards");
        self.until = cycle;
        passed
    }
}
