//! A processor with many hardware threads, and the costs of its operating system's scheduler.

use nicety_types::{Duration, Frequency};

/// The caches. Those of a core's first level belong to the core, the second level to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachesSpec {
    /// Bytes of a line.
    pub line: u64,
    /// Bytes of each core's first level.
    pub first: u64,
    /// Bytes of the second level.
    pub second: u64,
    /// A load that misses the first level and hits the second.
    pub second_latency: Duration,
    /// A load that misses both.
    pub memory_latency: Duration,
    /// Misses of a hardware thread that overlap: 1 where a thread waits for each load.
    pub overlap: u64,
    /// Each core's first level for instructions; none where fetching them is not modelled.
    pub code: Option<CodeSpec>,
}

/// A core's first-level cache for instructions. What is not there is in the second level of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSpec {
    /// Bytes of it.
    pub first: u64,
    /// Bytes of a line.
    pub line: u64,
}

/// Hardware threads, and what the operating system takes to move threads among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadsSpec {
    /// Cores.
    pub cores: usize,
    /// Hardware threads of a core, each a CPU to the operating system.
    pub strands: usize,
    /// Instructions that a core issues in a cycle, of as many hardware threads.
    pub issue: u64,
    /// Cycles that an instruction takes a hardware thread alone. In all but one of them others of its core issue.
    pub cycles_per_instruction: u64,
    /// The clock.
    pub clock: Frequency,
    /// The caches.
    pub caches: CachesSpec,
    /// Instructions of a context switch.
    pub switch: u64,
    /// Lines of its own, stack and thread structure, that a thread touches when it goes on.
    pub own_lines: u64,
    /// Instructions that wake a thread.
    pub wake: u64,
    /// Instructions that send a cross-call to another CPU.
    pub cross_call: u64,
    /// From a cross-call's sending to its arrival.
    pub cross_call_latency: Duration,
    /// Instructions with which a CPU takes a cross-call.
    pub cross_call_taken: u64,
    /// Instructions from an interrupt to its handler, and back behind it.
    pub interrupt: u64,
    /// After this time a thread gives its CPU to one that waits for it.
    pub quantum: Duration,
}

impl ThreadsSpec {
    /// CPUs, as the operating system sees them.
    pub const fn cpus(&self) -> usize {
        self.cores * self.strands
    }

    /// The core of a CPU.
    pub const fn core(&self, cpu: usize) -> usize {
        cpu / self.strands
    }
}
