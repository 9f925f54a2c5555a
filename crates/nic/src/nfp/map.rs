//! The memory map of a microengine; `nfp.h` has the same numbers.

/// The microengine's own local memory: the program's data, then the stacks of its contexts.
pub const LOCAL: u32 = 0x1000_0000;
/// Code and constants.
pub const CODE: u32 = 0x1d00_0000;
/// The cluster local scratch of the microengine's island.
pub const CLS: u32 = 0x2000_0000;
/// The cluster target memory of the microengine's island.
pub const CTM: u32 = 0x3000_0000;
/// The internal memory.
pub const IMEM: u32 = 0x4000_0000;
/// The external memory.
pub const EMEM: u32 = 0x8000_0000;
