//! PsPIN's memory map, as seen by handlers.

/// L1 of the first cluster: stacks, then packets, then handlers' scratchpad.
pub const L1: u32 = 0x1000_0000;
/// Distance between the L1 of consecutive clusters.
pub const L1_EACH: u32 = 4 << 20;
/// Bytes of a cluster's L1 for stacks.
pub const RUNTIME: u32 = 16 << 10;
/// Bytes of a cluster's L1 for packets, which follow the stacks.
pub const PACKETS: u32 = 64 << 10;
/// Offset of the handlers' scratchpad in a cluster's L1.
pub const PADS: u32 = RUNTIME + PACKETS;
/// Most clusters: a task has this many scratchpad pointers.
pub const CLUSTERS: usize = 4;
/// Registers of the DMA engine of a core's cluster.
pub const ENGINE: u32 = 0x1b20_4400;
/// Registers of a core, behind those of the engine.
pub const HARDWARE: u32 = 0x1b20_5000;
/// Bytes of a core's registers.
pub const HARDWARE_SIZE: u32 = 0xb0;
/// The task of a core, among its registers.
pub const TASK: u32 = HARDWARE + 0x08;
/// Handler memory in L2: variables of the program, and states behind them.
pub const HANDLER_MEMORY: u32 = 0x1c00_0000;
/// The packet buffer in L2.
pub const L2_PACKETS: u32 = 0x1c40_0000;
/// Bytes from there to the program memory.
pub const L2_ROOM: u32 = 0x1d00_0000 - L2_PACKETS;

/// Returns the address of the handlers' scratchpad in a cluster's L1.
pub(crate) const fn pad(cluster: usize) -> u32 {
    L1 + cluster as u32 * L1_EACH + PADS
}
