//! The timing of each piece of a handler's memory within a slice.

use super::{HpuSpec, Level, LevelSpec, Piece};
use nicety_hpu::profile::Cause;
use nicety_hpu::{AccessKind, CycleCosts, Region};

/// The timing of a piece of memory within a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timing {
    /// The cycles of the core's instructions.
    Plain,
    /// Further cycles of a load, a store and an atomic operation, and their cause.
    Latency(u32, u32, u32, Cause),
    /// Each access waits for its turn: other accesses contend with it, or its address decides its latency.
    InTurn,
}

/// The timing of each piece of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timings {
    /// The timing of each piece, by [`Piece::ALL`].
    pieces: [Timing; 6],
    /// L1 of the core's own cluster, L1 of another cluster, and L2, for memory of handlers written for PsPIN.
    l1: Timing,
    remote: Timing,
    l2: Timing,
    /// Whether each piece, and L1 itself, is in an L1 with banks that DMA uses.
    beside_dma: [bool; 6],
    l1_beside_dma: bool,
}

/// Returns the cycles of the instruction itself in an access of this kind. They are part of the access's latency. LR
/// is a load: it takes as much longer than in ideal memory as a load does.
pub(crate) const fn own_cycles(costs: &CycleCosts, kind: AccessKind) -> u16 {
    match kind {
        AccessKind::Load => costs.load,
        AccessKind::Store => costs.store,
        AccessKind::Atomic => costs.atomic,
    }
}

impl Timings {
    /// For accesses that the card makes on behalf of a handler.
    pub(crate) const NONE: Timings = Timings {
        pieces: [Timing::Plain; 6],
        l1: Timing::Plain,
        remote: Timing::Plain,
        l2: Timing::Plain,
        beside_dma: [false; 6],
        l1_beside_dma: false,
    };

    pub(crate) fn of(hpu: &HpuSpec) -> Timings {
        let clusters = hpu.memories.cluster < hpu.cores;
        let timing = |of: Level, farther: bool| match hpu.memories.level(of) {
            None => Timing::Plain,
            Some(level) if level.contended || level.cached => Timing::InTurn,
            Some(LevelSpec { banks, remote, .. }) => {
                let farther = if farther { *remote } else { 0 };
                let more = |kind| {
                    (banks.latency(kind) + farther).saturating_sub(own_cycles(&hpu.core.costs, kind).into())
                };
                match [AccessKind::Load, AccessKind::Store, AccessKind::Atomic].map(more) {
                    [0, 0, 0] => Timing::Plain,
                    [load, store, atomic] => Timing::Latency(load, store, atomic, of.cause()),
                }
            }
        };
        let l1_beside_dma = hpu.packets.as_ref().is_some_and(|packets| packets.bank_groups > 0);
        Timings {
            pieces: Piece::ALL.map(|piece| {
                let level = hpu.memories.place(piece);
                // Words of HPU memory may be in another cluster's memory.
                let farther = hpu.memories.level(level).is_some_and(|level| level.remote > 0);
                match farther && clusters && matches!(piece, Piece::State | Piece::Data) {
                    true => Timing::InTurn,
                    false => timing(level, false),
                }
            }),
            l1: timing(Level::L1, false),
            remote: timing(Level::L1, true),
            l2: timing(Level::L2, false),
            beside_dma: Piece::ALL.map(|piece| l1_beside_dma && hpu.memories.place(piece) == Level::L1),
            l1_beside_dma,
        }
    }

    /// Returns whether accesses to a piece wait for their turns.
    pub(crate) fn waits(&self, piece: Piece) -> bool {
        self.pieces[piece as usize] == Timing::InTurn
    }

    /// Returns whether accesses to any piece wait for their turns.
    pub(crate) fn in_turn(&self) -> bool {
        self.pieces.contains(&Timing::InTurn)
    }

    /// Returns a region with the timing of its piece.
    #[inline]
    pub(crate) const fn apply<'a>(&self, piece: Piece, region: Region<'a>) -> Region<'a> {
        let region = self.pieces[piece as usize].of(region);
        if self.beside_dma[piece as usize] { region.beside_dma() } else { region }
    }

    /// Returns a region with the timing of L1: that of the core's own cluster, or of another one.
    pub(crate) const fn apply_l1<'a>(&self, own: bool, region: Region<'a>) -> Region<'a> {
        let region = if own { self.l1.of(region) } else { self.remote.of(region) };
        if own && self.l1_beside_dma { region.beside_dma() } else { region }
    }

    /// Returns a region with the timing of L2.
    pub(crate) const fn apply_l2<'a>(&self, region: Region<'a>) -> Region<'a> {
        self.l2.of(region)
    }
}

impl Timing {
    #[inline]
    const fn of(self, region: Region<'_>) -> Region<'_> {
        match self {
            Timing::Plain => region,
            Timing::Latency(load, store, atomic, cause) => {
                region.latency(load, store).atomic_latency(atomic).caused_by(cause)
            }
            Timing::InTurn => region.ordered(),
        }
    }
}
