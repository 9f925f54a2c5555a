//! Vector clocks of runs. A run is a thread of its own, on any core: two packets are not ordered because one core handled both.

use std::rc::Rc;

/// A vector clock: for each run, by its number, the latest step known to precede.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock(Rc<Vec<u32>>);

impl Clock {
    /// Whether a step of a run precedes.
    #[inline]
    pub fn covers(&self, run: u32, step: u32) -> bool {
        self.0.get(run as usize).is_some_and(|known| *known >= step)
    }

    /// Returns the step of a run.
    pub fn step(&self, run: u32) -> u32 {
        self.0.get(run as usize).copied().unwrap_or(0)
    }

    /// Begins the next step of a run.
    pub fn advance(&mut self, run: u32) {
        let steps = Rc::make_mut(&mut self.0);
        if steps.len() <= run as usize {
            steps.resize(run as usize + 1, 0);
        }
        steps[run as usize] += 1;
    }

    /// Takes over all that precedes `other`.
    pub fn join(&mut self, other: &Clock) {
        if Rc::ptr_eq(&self.0, &other.0) || other.0.is_empty() {
            return;
        }
        if self.0.is_empty() {
            self.0 = other.0.clone();
            return;
        }
        let steps = Rc::make_mut(&mut self.0);
        if steps.len() < other.0.len() {
            steps.resize(other.0.len(), 0);
        }
        for (own, of) in steps.iter_mut().zip(other.0.iter()) {
            *own = (*own).max(*of);
        }
    }
}
