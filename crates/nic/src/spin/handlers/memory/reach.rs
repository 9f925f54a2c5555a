//! Where an access goes: which memory of which level, and the byte there.

use crate::spin::spec::{Level, LevelSpec, Piece};

/// Bits of an address in a program: no program is longer than 16 MiB.
pub(in crate::spin) const PROGRAM_BITS: u32 = 24;

/// Where an access goes.
pub(super) struct Reach<'s> {
    pub(super) piece: Piece,
    pub(super) level: Level,
    pub(super) spec: &'s LevelSpec,
    /// Which memory of the level: that of a cluster.
    pub(super) memory: usize,
    pub(super) offset: u64,
    pub(super) remote: bool,
}

impl Reach<'_> {
    /// Cycles more to another cluster's memory.
    pub(super) fn farther(&self) -> u64 {
        if self.remote { self.spec.remote.into() } else { 0 }
    }
}
