//! The memory of an operating-system process as memory of a simulated host. Through it, a card reads and writes the
//! bytes of a real program.
//!
//! Addresses of this memory are at or above [`PROCESS_ADDRESSES`](crate::PROCESS_ADDRESSES), so an address identifies
//! the memory. A program may name any of these addresses. Only a read or write detects whether the process has bytes
//! there.

/// Access to the bytes of a process. Addresses are those of the process's own address space.
pub trait ProcessBytes {
    /// Copies bytes from `address` on to `to`. Bytes that the process does not have leave `to` unchanged. Another part
    /// reports them.
    fn read(&self, address: u64, to: &mut [u8]);

    /// Copies `from` to `address`. Bytes for memory that the process does not have are lost. Another part reports them.
    fn write(&self, address: u64, from: &[u8]);
}
