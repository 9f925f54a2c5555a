//! Cores whose hardware threads take turns to issue instructions.
//!
//! A hardware thread alone issues an instruction a cycle where it does not wait for memory. Of several on a core, each
//! asks for the share of cycles in which it would issue if it were alone. As long as the sum of these shares is not more than
//! the core issues, the threads hide each other's waiting and none is slowed down; beyond that, their instructions take
//! as much longer as the sum is too large. The sum is taken at the begin of a piece of work, and holds for the piece.

use std::cell::Cell;

/// The share of one instruction a cycle.
const WHOLE: u64 = 1 << 16;

/// What the hardware threads of a core ask for.
#[derive(Debug)]
pub(super) struct Core {
    issue: u64,
    demand: Cell<u64>,
}

/// A piece of work that has begun on a core; its share is free again when dropped.
#[derive(Debug)]
pub(super) struct Issuing<'c> {
    core: &'c Core,
    share: u64,
}

impl Core {
    pub(super) const fn new(issue: u64) -> Core {
        Core { issue, demand: Cell::new(0) }
    }

    /// Begins a piece whose instructions take `issuing` picoseconds alone, and which waits for memory for `waiting`.
    /// Returns how long the piece takes among those that run on the core now.
    pub(super) fn begin(&self, issuing: u64, waiting: u64) -> (Issuing<'_>, u64) {
        let alone = u128::from(issuing) + u128::from(waiting);
        let share = match alone {
            0 => 0,
            _ => (u128::from(issuing) * u128::from(WHOLE) / alone) as u64,
        };
        let demand = self.demand.get() + share;
        self.demand.set(demand);
        let offer = self.issue * WHOLE;
        let slowed = (u128::from(issuing) * u128::from(demand.max(offer))).div_ceil(u128::from(offer));
        let whole = slowed.saturating_add(u128::from(waiting));
        (Issuing { core: self, share }, u64::try_from(whole).unwrap_or(u64::MAX))
    }
}

impl Drop for Issuing<'_> {
    fn drop(&mut self) {
        self.core.demand.set(self.core.demand.get() - self.share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_take_turns() {
        let core = Core::new(1);
        let (one, alone) = core.begin(1000, 0);
        assert_eq!(alone, 1000);
        // Two that never wait: twice as long. Three: three times.
        let (two, second) = core.begin(1000, 0);
        assert_eq!(second, 2000);
        assert_eq!(core.begin(500, 0).1, 1500);
        drop((one, two));
        assert_eq!(core.begin(1000, 0).1, 1000);
    }

    #[test]
    fn waiting_for_memory_is_hidden() {
        let core = Core::new(1);
        // Each issues in a quarter of its time: four of them fill the core, and a fifth one is too much by a quarter.
        let running: Vec<_> = (0..4).map(|_| core.begin(250, 750)).collect();
        assert!(running.iter().all(|(_, time)| *time == 1000));
        assert_eq!(core.begin(400, 1200).1, 500 + 1200);
    }

    #[test]
    fn two_pipelines_issue_two() {
        let core = Core::new(2);
        let running: Vec<_> = (0..3).map(|_| core.begin(100, 0)).collect();
        assert_eq!(running.iter().map(|(_, time)| *time).collect::<Vec<_>>(), [100, 100, 150]);
    }

    #[test]
    fn no_work_takes_no_time() {
        assert_eq!(Core::new(1).begin(0, 0).1, 0);
        assert_eq!(Core::new(1).begin(u64::MAX, u64::MAX).1, u64::MAX);
    }
}
