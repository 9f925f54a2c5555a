//! Turns of accesses inside a slice that no other event precedes.

use crate::hpus::edges::Edges;
use crate::memory::levels::Levels;
use crate::running::Turn;
use nicety_hpu::profile::Cause;
use nicety_hpu::{OrderPoint, OrderedWords, Turns};
use nicety_kernel::Sim;

/// Grants turns to a handler's accesses that no other event precedes, so that its slice continues.
pub(super) struct Ahead<'r> {
    pub(super) sim: &'r Sim,
    pub(super) levels: &'r Levels,
    pub(super) edges: &'r Edges,
    /// Words that other handlers may wait for. Accesses to them end a slice.
    pub(super) words: &'r OrderedWords,
    pub(super) turn: Turn<'r>,
    /// The card's cycle at the run's cycle 0.
    pub(super) base: u64,
    /// Whether the first access already has its turn.
    pub(super) first: bool,
}

impl Turns for Ahead<'_> {
    fn turn(&mut self, cycle: u64, pc: u32, point: OrderPoint) -> Option<u64> {
        let OrderPoint::Memory { address, size, .. } = point else { return None };
        if !std::mem::take(&mut self.first) {
            let watched = |address: u32| self.words.contains(address & !3);
            let is_watched = watched(address) || size > 4 && watched(address + 4);
            if is_watched || !self.sim.try_pass_until(self.edges.at(cycle)) {
                return None;
            }
        }
        (self.turn.cycle, self.turn.pc) = (self.base.wrapping_add(cycle), pc);
        Some(self.levels.in_turn(&mut self.turn, &point))
    }

    fn causes(&self) -> &[(Cause, u64)] {
        self.turn.causes
    }
}
