//! Cores with hardware threads that take turns to issue instructions.
//!
//! A hardware thread that is alone on its core issues an instruction every `cycles_per_instruction` cycles, unless it
//! waits for memory. The demand of a thread is the share of cycles in which it would issue alone. If the sum of a
//! core's demands is at most the core's issue width, no thread slows down: the threads hide each other's waits. Beyond
//! the width, instructions take longer by the ratio of the sum to the width. The sum is taken at the start of a piece
//! of work, and holds for the whole piece.

use std::cell::Cell;

/// The demand of one instruction per cycle.
const WHOLE: u64 = 1 << 16;

/// The demands of a core's hardware threads.
#[derive(Debug)]
pub(super) struct Core {
    issue: u64,
    demand: Cell<u64>,
}

/// A piece of work that runs on a core. A drop of this value removes its demand from the core.
#[derive(Debug)]
pub(super) struct Issuing<'c> {
    core: &'c Core,
    share: u64,
}

impl Core {
    pub(super) const fn new(issue: u64) -> Core {
        Core { issue, demand: Cell::new(0) }
    }

    /// Starts a piece of work. Alone on the core, it would issue instructions for `issuing` picoseconds and wait for
    /// memory for `waiting` picoseconds. Returns its duration together with the pieces that now run on the core.
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
        // Two threads that never wait take twice as long. Three threads take three times as long.
        let (two, second) = core.begin(1000, 0);
        assert_eq!(second, 2000);
        assert_eq!(core.begin(500, 0).1, 1500);
        drop((one, two));
        assert_eq!(core.begin(1000, 0).1, 1000);
    }

    #[test]
    fn waiting_for_memory_is_hidden() {
        let core = Core::new(1);
        // Each piece issues in a quarter of its time. Four pieces fill the core, and a fifth piece exceeds it by a
        // quarter.
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
