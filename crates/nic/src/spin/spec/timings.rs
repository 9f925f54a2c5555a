//! The timing of each piece of a handler's memory inside a slice.

use super::{HpuSpec, LevelSpec, Piece};
use nicety_hpu::{AccessKind, CycleCosts, Region};

/// The timing of a piece of memory inside a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timing {
    /// What the core's instructions take.
    Plain,
    /// So many cycles more: of a load, a store, an atomic operation.
    Latency(u32, u32, u32),
    /// Each access waits for its turn: others may be in its way, or its word tells what it takes.
    InTurn,
}

/// The timing of each piece of memory, by [`Piece::ALL`].
#[derive(Clone, Copy, Debug)]
pub(in crate::spin) struct Timings([Timing; 6]);

/// The cycles of an instruction itself that accesses memory in this way, which are part of what its access takes. LR, which is a
/// load, takes as much longer than in ideal memory as a load does.
pub(in crate::spin) const fn own_cycles(costs: &CycleCosts, kind: AccessKind) -> u16 {
    match kind {
        AccessKind::Load => costs.load,
        AccessKind::Store => costs.store,
        AccessKind::Atomic => costs.atomic,
    }
}

impl Timings {
    /// For accesses that the card makes on a handler's behalf.
    pub(in crate::spin) const NONE: Timings = Timings([Timing::Plain; 6]);

    pub(in crate::spin) fn of(hpu: &HpuSpec) -> Timings {
        let clusters = hpu.memories.cluster < hpu.cores;
        Timings(Piece::ALL.map(|piece| match hpu.memories.level(hpu.memories.place(piece)) {
            None => Timing::Plain,
            Some(level) if level.contended => Timing::InTurn,
            // Words of HPU memory may be in another cluster's.
            Some(level) if level.remote > 0 && clusters && matches!(piece, Piece::State | Piece::Data) => {
                Timing::InTurn
            }
            Some(LevelSpec { banks, .. }) => {
                let more =
                    |kind| banks.latency(kind).saturating_sub(own_cycles(&hpu.core.costs, kind).into());
                match [AccessKind::Load, AccessKind::Store, AccessKind::Atomic].map(more) {
                    [0, 0, 0] => Timing::Plain,
                    [load, store, atomic] => Timing::Latency(load, store, atomic),
                }
            }
        }))
    }

    /// Whether accesses to a piece wait for their turns.
    pub(in crate::spin) fn waits(&self, piece: Piece) -> bool {
        self.0[piece as usize] == Timing::InTurn
    }

    /// Whether those to any piece do.
    pub(in crate::spin) fn in_turn(&self) -> bool {
        self.0.contains(&Timing::InTurn)
    }

    /// A region with the timing of its piece.
    #[inline]
    pub(in crate::spin) const fn apply<'a>(&self, piece: Piece, region: Region<'a>) -> Region<'a> {
        match self.0[piece as usize] {
            Timing::Plain => region,
            Timing::Latency(load, store, atomic) => region.latency(load, store).atomic_latency(atomic),
            Timing::InTurn => region.ordered(),
        }
    }
}
