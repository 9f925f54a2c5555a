//! The timing of each piece of a handler's memory inside a slice.

use super::{HpuSpec, LevelSpec, Piece};
use nicety_hpu::Region;

/// The timing of a piece of memory inside a slice.
#[derive(Clone, Copy, Debug)]
enum Timing {
    /// What the core's instructions take.
    Plain,
    /// So many cycles more: of a load, a store, an atomic operation.
    Latency(u32, u32, u32),
    /// Each access waits for its turn.
    Contended,
}

/// The timing of each piece of memory, by [`Piece::ALL`].
#[derive(Clone, Copy, Debug)]
pub(in crate::spin) struct Timings([Timing; 5]);

impl Timings {
    /// For accesses that the card makes on a handler's behalf.
    pub(in crate::spin) const NONE: Timings = Timings([Timing::Plain; 5]);

    pub(in crate::spin) fn of(hpu: &HpuSpec) -> Timings {
        let costs = &hpu.core.costs;
        Timings(Piece::ALL.map(|piece| match hpu.memories.level(hpu.memories.place(piece)) {
            None => Timing::Plain,
            Some(level) if level.contended => Timing::Contended,
            Some(LevelSpec { banks, .. }) => {
                let more = |cycles: u32, cost: u16| cycles.saturating_sub(u32::from(cost));
                match (
                    more(banks.load, costs.load),
                    more(banks.store, costs.store),
                    more(banks.atomic, costs.atomic),
                ) {
                    (0, 0, 0) => Timing::Plain,
                    (load, store, atomic) => Timing::Latency(load, store, atomic),
                }
            }
        }))
    }

    /// A region with the timing of its piece.
    #[inline]
    pub(in crate::spin) const fn apply<'a>(&self, piece: Piece, region: Region<'a>) -> Region<'a> {
        match self.0[piece as usize] {
            Timing::Plain => region,
            Timing::Latency(load, store, atomic) => region.latency(load, store).atomic_latency(atomic),
            Timing::Contended => region.ordered(),
        }
    }
}
