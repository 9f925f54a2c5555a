//! Hosts: the computer's side of the card.
//!
//! - [`Memory`]: host memory in allocations that never move, so that a program can read them from outside;
//!   every byte read and written is counted.
//! - [`Gpu`]: the memory of a graphics processor, which cards reach over the bus.
//! - [`ProcessBytes`]: the memory of a real program, as a host's.
//! - [`Bus`]: the bus between host and card: two directions of latency and gap, a PCI Express link
//!   ([`pcie`]), or a PCI bus ([`pci`]).
//! - [`Cpus`]: cores with the costs of posting a command, noticing an event and computing, on memory through a cache
//!   where the computation goes through any, and the noise on them.
//! - [`threads`]: threads on many hardware threads, with run queues, cross-calls, context switches and caches.
//! - [`Kernel`]: the host's operating system: system calls, pages locked and translated, interrupts, wake-ups.
//!
//! The `nicety` crate builds the programs' view of it; `nic` the cards'.

mod arrivals;
mod bus;
mod cache;
mod cpu;
mod gpu;
mod kernel;
mod memory;
mod noise;
pub mod pci;
pub mod pcie;
mod process;
pub mod threads;

pub use bus::{Bus, BusSpec, Notice, PlainSpec, Transfer};
pub use cache::Lines;
pub use cpu::{Cpus, HostSpec, Work};
pub use gpu::{GPU_ADDRESSES, Gpu, GpuSpec, is_of_gpu};
pub use kernel::{Kernel, KernelCounters, KernelSpec, Vector};
pub use memory::{Allocation, HostBytes, Memory, MemoryError, Traffic};
pub use noise::{Intervals, NoTrace, NoiseSpec, NoiseTrace, Regularity, Timeline};
pub use process::{PROCESS_ADDRESSES, PROCESS_BYTES, ProcessBytes};
