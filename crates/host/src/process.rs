//! The memory of a process of the system, as memory of a simulated host: a card reads and writes the bytes of a real program.
//!
//! Its addresses are above [`PROCESS_ADDRESSES`], so that an address says whose memory it is in. All of them can be named: which
//! of them there are is known when they are read or written.

/// Where the memory of a process begins: above a graphics processor's.
pub const PROCESS_ADDRESSES: u64 = 1 << 62;
/// How much of it can be named: more than any process has.
pub const PROCESS_BYTES: u64 = 1 << 62;

/// The bytes of a process, by its own addresses.
pub trait ProcessBytes {
    /// Copies bytes out. Where it has none, `to` stays as it is, and what reads them is told in a way of its own.
    fn read(&self, address: u64, to: &mut [u8]);

    /// Copies bytes in, as above.
    fn write(&self, address: u64, from: &[u8]);
}
