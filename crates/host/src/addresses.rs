//! The address ranges, in ascending order: host memory, the memory of a graphics processor, the memory of a process.

/// Start of the graphics processor's addresses. They end where the addresses of a [process](PROCESS_ADDRESSES) begin.
/// All lower addresses are in host memory.
pub const GPU_ADDRESSES: u64 = 1 << 46;

/// Whether an address is in the memory of the graphics processor.
pub const fn is_of_gpu(address: u64) -> bool {
    GPU_ADDRESSES <= address && address < PROCESS_ADDRESSES
}

/// Start of a process's addresses, above those of the graphics processor.
pub const PROCESS_ADDRESSES: u64 = 1 << 62;
/// Size of a process's address range in bytes. No process needs all of it.
pub const PROCESS_BYTES: u64 = 1 << 62;
