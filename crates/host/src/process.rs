//! The memory of an operating-system process as memory of a simulated host. A card reads and writes the bytes of a real
//! program.
//!
//! Its addresses are at or above [`PROCESS_ADDRESSES`](crate::PROCESS_ADDRESSES), so an address identifies the memory.
//! Programs may name all of these addresses. Only a read or write finds out whether the process has bytes there.

/// The bytes of a process, by the process's own addresses.
pub trait ProcessBytes {
    /// Copies bytes out. Missing bytes leave `to` unchanged, and their reader is notified separately.
    fn read(&self, address: u64, to: &mut [u8]);

    /// Copies bytes in. Bytes for missing memory are lost, and their writer is notified separately.
    fn write(&self, address: u64, from: &[u8]);
}
