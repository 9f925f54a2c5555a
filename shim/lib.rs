//! The C libraries that are loaded into real programs, and their headers.

/// The library of every process: a provider of libfabric, Portals 4, channels, clocks. Empty where the system is not Linux.
pub const PROVIDER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libnicety-fi.so"));
/// The library that offloads collective operations, loaded before it. Empty where the system is not Linux.
pub const OFFLOAD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libnicety-offload.so"));

/// The header of Portals 4.
pub const PORTALS4_H: &str = include_str!("portals4.h");
/// The header of Portals 4 with packet handlers.
pub const PORTALS4_SPIN_H: &str = include_str!("portals4_spin.h");
/// The header of calls that only simulated processes have.
pub const NICETY_EXEC_H: &str = include_str!("nicety_exec.h");
/// The header of channels between a process and its card.
pub const CHANNELS_H: &str = include_str!("channels.h");
/// The header of counts of offloaded operations.
pub const OFFLOAD_BASE_H: &str = include_str!("offload_base.h");
/// The source of these counts.
pub const OFFLOAD_BASE_C: &str = include_str!("offload_base.c");
