//! One operation of a block of code.

use crate::decode::Kind;

/// One operation of a block: 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub kind: Kind,
    pub rd: u8,
    pub rs1: u8,
    pub rs2: u8,
    /// The immediate or target. Unused for an illegal instruction.
    pub imm: u32,
    /// Cycles from the start of the block to the start of this operation, without memory latencies. A load-use penalty
    /// is counted before the operation that pays it.
    pub before: u32,
    /// Bytes from the start of the block.
    pub offset: u8,
    /// Number of instructions before it.
    pub index: u8,
    /// Its length in bytes.
    pub len: u8,
    /// Number of instructions before it that access memory.
    pub accesses: u8,
}
