//! A processor with many hardware threads, and the costs of its operating system's scheduler.

use nicety_types::{Duration, Frequency};

/// The caches. Each core has a first level, and all share the second level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachesSpec {
    /// Bytes of a line.
    pub line: u64,
    /// Bytes of each core's first level.
    pub first: u64,
    /// Bytes of the second level.
    pub second: u64,
    /// Latency of a load that misses the first level and hits the second.
    pub second_latency: Duration,
    /// Latency of a load that misses both.
    pub memory_latency: Duration,
    /// Overlapping misses of a hardware thread. 1 means that a thread waits for each load.
    pub overlap: u64,
    /// Each core's first level for instructions. `None` if instruction fetches are not modelled.
    pub code: Option<CodeSpec>,
    /// Each core's TLB for data. `None` if translations are not modelled.
    pub tlb: Option<TlbSpec>,
    /// Each core's TLB for code. `None` if its translations are not modelled.
    pub code_tlb: Option<CodeTlbSpec>,
}

/// A core's TLB for data, which its hardware threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlbSpec {
    /// Entries, each for a page of any size.
    pub entries: u64,
    /// Time of a miss.
    pub miss: Duration,
}

/// A core's TLB for code, which its hardware threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeTlbSpec {
    /// Entries.
    pub entries: u64,
    /// Bytes of a page of code. A function group's code is in consecutive pages of its own.
    pub page: u64,
    /// Time of a miss.
    pub miss: Duration,
}

/// A core's first-level instruction cache. Its misses hit the shared second level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSpec {
    /// Bytes of the cache.
    pub first: u64,
    /// Bytes of a line.
    pub line: u64,
}

/// Hardware threads, and the operating system's costs to move threads among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadsSpec {
    /// Cores.
    pub cores: usize,
    /// Hardware threads per core, each a CPU to the operating system.
    pub strands: usize,
    /// Instructions that a core issues per cycle, each from a different hardware thread.
    pub issue: u64,
    /// Cycles per instruction of a lone hardware thread. In all but one of these cycles, the core's other threads may issue.
    pub cycles_per_instruction: u64,
    /// The clock.
    pub clock: Frequency,
    /// The caches.
    pub caches: CachesSpec,
    /// Instructions of a context switch.
    pub switch: u64,
    /// Lines of its own, stack and thread structure, that a thread touches when it continues.
    pub own_lines: u64,
    /// A thread that leaves its CPU idle looks for a waiting thread. These are the instructions for each other CPU.
    pub walk: u64,
    /// An idle CPU looks for a waiting thread before it halts. These are the instructions for each other CPU.
    pub idle_walk: u64,
    /// Instructions that wake a thread.
    pub wake: u64,
    /// Instructions that send a cross-call to another CPU.
    pub cross_call: u64,
    /// Latency from the sending of a cross-call to its arrival.
    pub cross_call_latency: Duration,
    /// Instructions with which a CPU receives a cross-call.
    pub cross_call_taken: u64,
    /// Instructions from an interrupt to its handler, and back after it.
    pub interrupt: u64,
    /// A thread that has run for this time gives its CPU to a waiting thread.
    pub quantum: Duration,
}

impl ThreadsSpec {
    /// Number of CPUs that the operating system sees.
    pub const fn cpus(&self) -> usize {
        self.cores * self.strands
    }

    /// The core of a CPU.
    pub const fn core(&self, cpu: usize) -> usize {
        cpu / self.strands
    }
}
