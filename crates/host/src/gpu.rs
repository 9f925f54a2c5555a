//! A graphics processor's memory, which a card reaches over the bus, peer to peer.
//!
//! Its addresses are above [`GPU_ADDRESSES`], so that an address says whose memory it is in. A program has no bytes of it
//! moved by the host's CPUs.

use crate::{Memory, PROCESS_ADDRESSES};
use nicety_types::{Duration, Gap};
use std::rc::Rc;

/// Addresses from here on are in the memory of the graphics processor, up to those of a [process](PROCESS_ADDRESSES); those below
/// are in the host's.
pub const GPU_ADDRESSES: u64 = 1 << 46;

/// Whether an address is in the memory of the graphics processor.
pub const fn is_of_gpu(address: u64) -> bool {
    GPU_ADDRESSES <= address && address < PROCESS_ADDRESSES
}

/// The specification of a graphics processor, as far as cards need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuSpec {
    /// Bytes of its memory.
    pub memory: u64,
    /// Bytes of a page that a card registers.
    pub page: u64,
    /// What a read takes longer than one of host memory.
    pub read_latency: Duration,
    /// Its rate of reads from the bus.
    pub read_gap: Gap,
    /// What a write takes longer than one to host memory.
    pub write_latency: Duration,
    /// Its rate of writes from the bus.
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
    /// A graphics processor of which no memory is allocated.
    pub fn new(spec: GpuSpec) -> Gpu {
        Gpu { spec, memory: Rc::new(Memory::from(spec.memory, GPU_ADDRESSES, spec.page)) }
    }
}
