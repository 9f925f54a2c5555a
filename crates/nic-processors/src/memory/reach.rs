//! The place of an access: the level, the memory in it, and the byte there.

use crate::spec::{Level, LevelSpec, Piece};
use nicety_hpu::AccessKind;
use nicety_hpu::profile::Cause;

/// Bits of an address within a program: no program is longer than 16 MiB.
pub(crate) const PROGRAM_BITS: u32 = 24;

/// The place of an access.
pub(super) struct Reach<'s> {
    pub(super) piece: Piece,
    pub(super) level: Level,
    pub(super) spec: &'s LevelSpec,
    /// Index of the memory in the level: that of a cluster.
    pub(super) memory: usize,
    pub(super) offset: u64,
    pub(super) address: u32,
    pub(super) remote: bool,
}

impl Reach<'_> {
    /// Returns the cause of an access's latency in profiles.
    pub(super) const fn cause(&self, kind: AccessKind) -> Cause {
        match kind {
            AccessKind::Atomic => Cause::Atomic,
            AccessKind::Load | AccessKind::Store => self.level.cause(),
        }
    }

    /// Returns the further cycles of an access to another cluster's memory.
    pub(super) fn farther(&self) -> u64 {
        if self.remote { self.spec.remote.into() } else { 0 }
    }
}
