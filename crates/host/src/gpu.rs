//! The memory of a graphics processor, which a card accesses over the bus, peer to peer.
//!
//! Its addresses are at or above [`GPU_ADDRESSES`], so an address identifies the memory. The host's CPUs move no bytes
//! of it for a program.

use crate::Memory;
use crate::addresses::GPU_ADDRESSES;
use nicety_types::{Duration, Gap};
use std::rc::Rc;

/// The specification of a graphics processor, as far as cards need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuSpec {
    /// Bytes of its memory.
    pub memory: u64,
    /// Bytes of a page that a card registers.
    pub page: u64,
    /// Additional time of a read, compared with host memory.
    pub read_latency: Duration,
    /// Time per byte that the card reads from it over the bus.
    pub read_gap: Gap,
    /// Additional time of a write, compared with host memory.
    pub write_latency: Duration,
    /// Time per byte that the card writes to it over the bus.
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
