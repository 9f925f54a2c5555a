//! The states of processes. The number of processes in each state is kept, because each look needs it and must not search all
//! processes.

use std::cell::{Cell, RefCell};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The process runs, or the simulation executes its call.
    Taken,
    /// The process is outside: it starts, ends, or waits outside the simulation.
    Outside,
    /// The process wants to communicate, and waits until all others have started.
    Held,
    /// The process looks at an empty queue, and some others have not started.
    LooksEarly,
    /// The process looks for something.
    Looks,
    /// The card of the process looks for a message.
    CardLooks,
    /// A look of the process has failed, and others must act before the next look.
    Parked,
    /// The process waits until something arrives.
    Polls,
    /// The process has ended.
    Ended,
}

/// The number of states.
const STATES: usize = State::Ended as usize + 1;

/// The state of a process, and whether the process has news since its last reply.
#[derive(Clone, Copy)]
struct Own {
    state: State,
    is_woken: bool,
}

impl Own {
    const fn is_woken_in_look(self) -> bool {
        self.is_woken && matches!(self.state, State::Looks | State::CardLooks)
    }
}

#[derive(Default)]
pub(crate) struct States {
    all: RefCell<Vec<Own>>,
    counts: [Cell<usize>; STATES],
    /// The number of processes that look and have news.
    woken_in_looks: Cell<usize>,
}

impl States {
    /// Adds the next process. It starts outside.
    pub(crate) fn add(&self) {
        let own = Own { state: State::Outside, is_woken: false };
        self.all.borrow_mut().push(own);
        self.count(own, 1);
    }

    fn own(&self, rank: u32) -> Own {
        self.all.borrow()[rank as usize]
    }

    /// Adds `more` to the counts of a process's state. `usize::MAX` subtracts 1.
    fn count(&self, own: Own, more: usize) {
        let add = |to: &Cell<usize>| to.set(to.get().wrapping_add(more));
        add(&self.counts[own.state as usize]);
        if own.is_woken_in_look() {
            add(&self.woken_in_looks);
        }
    }

    fn change(&self, rank: u32, change: impl FnOnce(&mut Own)) {
        let own = &mut self.all.borrow_mut()[rank as usize];
        self.count(*own, usize::MAX);
        change(own);
        self.count(*own, 1);
    }

    pub(crate) fn of(&self, rank: u32) -> State {
        self.own(rank).state
    }

    pub(crate) fn set(&self, rank: u32, state: State) {
        self.change(rank, |own| own.state = state);
    }

    /// Returns whether a process has news since its last reply.
    pub(crate) fn is_woken(&self, rank: u32) -> bool {
        self.own(rank).is_woken
    }

    pub(crate) fn set_woken(&self, rank: u32, is_woken: bool) {
        self.change(rank, |own| own.is_woken = is_woken);
    }

    /// Returns the number of processes in a state.
    pub(crate) fn number(&self, state: State) -> usize {
        self.counts[state as usize].get()
    }

    /// Returns the number of processes in a state, except this one.
    pub(crate) fn others(&self, rank: u32, state: State) -> usize {
        self.number(state) - usize::from(self.of(rank) == state)
    }

    /// Returns whether any process that looks has news, except this one.
    pub(crate) fn are_others_woken_in_looks(&self, rank: u32) -> bool {
        self.woken_in_looks.get() > usize::from(self.own(rank).is_woken_in_look())
    }

    /// Returns the processes in a state.
    pub(crate) fn all(&self, state: State) -> Vec<u32> {
        if self.number(state) == 0 {
            return Vec::new();
        }
        (0..).zip(&*self.all.borrow()).filter(|(_, own)| own.state == state).map(|(rank, _)| rank).collect()
    }
}

/// If only waiting calls look, one of their looks counts as this number of looks.
pub(crate) const OF_WAITS: u64 = 100;

/// Counts of failed looks of all processes without another event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FailedLooks {
    /// Failed looks since the last event or read of a clock, while no process was outside.
    pub(crate) looks: u64,
    /// Failed looks since the last event.
    pub(crate) streak: u64,
    /// The value of `streak` from which a look waits for outside processes. `waits` is the number of such waits that failed.
    pub(crate) wait_at: u64,
    pub(crate) waits: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_states() {
        let states = States::default();
        (0..3).for_each(|_| states.add());
        assert_eq!((states.number(State::Outside), states.others(1, State::Outside)), (3, 2));
        states.set(0, State::Looks);
        states.set(1, State::CardLooks);
        states.set(1, State::CardLooks);
        assert_eq!((states.of(1), states.all(State::CardLooks)), (State::CardLooks, vec![1]));
        assert_eq!((states.number(State::Looks), states.others(0, State::Looks)), (1, 0));
        assert_eq!(states.all(State::Outside), [2]);
        // News of a process counts while the process looks, and only for other processes.
        states.set_woken(1, true);
        states.set_woken(2, true);
        assert!(states.is_woken(1) && !states.is_woken(0));
        assert!(states.are_others_woken_in_looks(0) && !states.are_others_woken_in_looks(1));
        states.set(1, State::Taken);
        assert!(!states.are_others_woken_in_looks(0));
        states.set(2, State::Looks);
        assert!(states.are_others_woken_in_looks(0));
        states.set_woken(2, false);
        assert!(!states.are_others_woken_in_looks(0));
        assert!(states.all(State::CardLooks).is_empty());
    }
}
