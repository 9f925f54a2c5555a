//! Hosts: the computers to which cards belong.
//!
//! - [`Memory`]: host memory, in allocations that never move, so that a program can read them from outside. It counts
//!   every byte read or written.
//! - [`Gpu`]: the memory of a graphics processor, which cards access over the bus.
//! - [`ProcessBytes`]: the memory of a real program, used as a host's memory.
//! - [`Bus`]: the bus between host and card. It is a plain bus with a latency and a gap per direction, a PCI Express
//!   link ([`pcie`]), or a PCI bus ([`pci`]).
//! - [`Cpus`]: the cores, the time to post a command, notice an event and compute, and the noise on the cores. A
//!   computation on memory uses a cache.
//! - [`threads`]: threads on many hardware threads, with run queues, cross-calls, context switches and caches.
//! - [`Kernel`]: the host's operating system: system calls, pages locked and translated, interrupts, and wake-ups.
//!
//! The crate `nicety` builds the view of a host that programs have. The crate `nic` builds the view that cards have.

mod addresses;
mod arrivals;
mod bus;
mod bytes;
mod cache;
mod cpu;
mod gpu;
mod kernel;
mod memory;
mod noise;
mod notice;
pub mod pci;
pub mod pcie;
mod process;
pub mod threads;

pub use addresses::{GPU_ADDRESSES, PROCESS_ADDRESSES, PROCESS_BYTES, is_of_gpu};
pub use bus::{Bus, BusSpec, PlainSpec, Transfer};
pub use bytes::HostBytes;
pub use cache::Lines;
pub use cpu::{Cpus, HostSpec, Work};
pub use gpu::{Gpu, GpuSpec};
pub use kernel::{Kernel, KernelCounters, KernelSpec, Vector};
pub use memory::{Allocation, Memory, MemoryError, Traffic};
pub use noise::{Intervals, NoTrace, NoiseSpec, NoiseTrace, Regularity, Timeline};
pub use notice::Notice;
pub use process::ProcessBytes;
