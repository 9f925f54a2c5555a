//! The memory of a graphics processor. A card accesses it over the bus, peer to peer.
//!
//! Addresses of this memory are at or above [`GPU_ADDRESSES`], so an address identifies the memory. The host's CPUs
//! never copy bytes from or to this memory for a program.

use crate::Memory;
use crate::addresses::GPU_ADDRESSES;
use nicety_types::{Duration, Gap};
use std::rc::Rc;

/// The specification of a graphics processor, as far as a card needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuSpec {
    /// Size of its memory in bytes.
    pub memory: u64,
    /// Size in bytes of a page that a card registers.
    pub page: u64,
    /// Latency of a read in addition to that of host memory.
    pub read_latency: Duration,
    /// Time per byte that a card reads from this memory over the bus.
    pub read_gap: Gap,
    /// Latency of a write in addition to that of host memory.
    pub write_latency: Duration,
    /// Time per byte that a card writes to this memory over the bus.
    pub write_gap: Gap,
}

/// A graphics processor.
#[derive(Clone, Debug)]
pub struct Gpu {
    /// Its specification.
    pub spec: GpuSpec,
    /// Its memory.
    pub memory: Rc<Memory>,
}

impl Gpu {
    /// Returns a graphics processor without allocations.
    pub fn new(spec: GpuSpec) -> Gpu {
        Gpu { spec, memory: Rc::new(Memory::from(spec.memory, GPU_ADDRESSES, spec.page)) }
    }
}
