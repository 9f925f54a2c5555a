//! The ranges of addresses: host memory, then a graphics processor's, then a process's.

/// Start of the graphics processor's addresses. They end where the addresses of a [process](PROCESS_ADDRESSES) begin.
/// Lower addresses are in the host's memory.
pub const GPU_ADDRESSES: u64 = 1 << 46;

/// Whether an address is in the memory of the graphics processor.
pub const fn is_of_gpu(address: u64) -> bool {
    GPU_ADDRESSES <= address && address < PROCESS_ADDRESSES
}

/// Start of a process's memory, above a graphics processor's.
pub const PROCESS_ADDRESSES: u64 = 1 << 62;
/// Size of a process's address range: more than any process has.
pub const PROCESS_BYTES: u64 = 1 << 62;
