//! The specification of a processor with many hardware threads, and the costs of its operating system's scheduler.

use nicety_types::{Duration, Frequency};

/// The caches. Each core has a first level, and all cores share the second level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachesSpec {
    /// Size of a line in bytes.
    pub line: u64,
    /// Size of each core's first level in bytes.
    pub first: u64,
    /// Size of the second level in bytes.
    pub second: u64,
    /// Latency of a load that misses the first level and hits the second.
    pub second_latency: Duration,
    /// Latency of a load that misses both levels.
    pub memory_latency: Duration,
    /// Maximum number of overlapping misses of a hardware thread. 1 means that a thread waits for each load.
    pub overlap: u64,
    /// Each core's first-level instruction cache. `None` if instruction fetches are not modelled.
    pub code: Option<CodeSpec>,
    /// Each core's TLB for data. `None` if translations are not modelled.
    pub tlb: Option<TlbSpec>,
    /// Each core's TLB for code. `None` if translations of code are not modelled.
    pub code_tlb: Option<CodeTlbSpec>,
}

/// A core's TLB for data, which its hardware threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlbSpec {
    /// Number of entries. Each entry is for a page of any size.
    pub entries: u64,
    /// Time of a miss.
    pub miss: Duration,
}

/// A core's TLB for code, which its hardware threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeTlbSpec {
    /// Number of entries.
    pub entries: u64,
    /// Size in bytes of a page of code. The code of a function group is in consecutive pages of its own.
    pub page: u64,
    /// Time of a miss.
    pub miss: Duration,
}

/// A core's first-level instruction cache. Its misses hit the shared second level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSpec {
    /// Size of the cache in bytes.
    pub first: u64,
    /// Size of a line in bytes.
    pub line: u64,
}

/// Hardware threads, and the operating system's costs to move threads among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadsSpec {
    /// Number of cores.
    pub cores: usize,
    /// Number of hardware threads per core. Each is a CPU to the operating system.
    pub strands: usize,
    /// Maximum number of instructions that a core issues per cycle. Each must be from a different hardware thread.
    pub issue: u64,
    /// Cycles per instruction of a hardware thread that is alone on its core. The core's other threads may issue in all
    /// but one of these cycles.
    pub cycles_per_instruction: u64,
    /// The clock.
    pub clock: Frequency,
    /// The caches.
    pub caches: CachesSpec,
    /// Number of instructions of a context switch.
    pub switch: u64,
    /// Number of cache lines, stack and thread structure, that a thread touches when it continues.
    pub own_lines: u64,
    /// A thread that leaves its CPU idle looks for a waiting thread. This is the number of instructions per other CPU.
    pub walk: u64,
    /// An idle CPU looks for a waiting thread before it halts. This is the number of instructions per other CPU.
    pub idle_walk: u64,
    /// Number of instructions to wake a thread.
    pub wake: u64,
    /// Number of instructions to send a cross-call (an inter-processor interrupt) to another CPU.
    pub cross_call: u64,
    /// Latency from the sending of a cross-call to its arrival at the other CPU.
    pub cross_call_latency: Duration,
    /// Number of instructions that a CPU executes to receive a cross-call.
    pub cross_call_taken: u64,
    /// Number of instructions to enter an interrupt handler, and to return from it.
    pub interrupt: u64,
    /// Time after which a running thread gives its CPU to a waiting thread.
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
