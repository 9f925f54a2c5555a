//! Completions that a process has not taken, and the values of its counters.

use crate::protocol::{Completion, Counts, Kind, MOST_COMPLETIONS};
use crate::schedule::Log;
use crate::turns::Turns;
use nicety::{Error, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

pub(crate) struct Completions {
    rank: u32,
    turns: Rc<Turns>,
    /// The log of the processes' operations, if requested.
    log: Option<Rc<Log>>,
    /// Completions that the process has not taken, with their times.
    done: RefCell<VecDeque<(Time, Completion)>>,
    /// The counts, and the time of their last change with the counts before it.
    counts: Cell<Counts>,
    before: Cell<Option<(Time, Counts)>>,
    /// The time at which its counters or memory first changed since its last reply: a look may be for either.
    news: Cell<Option<Time>>,
    failed: RefCell<Option<Error>>,
}

impl Completions {
    pub(crate) fn new(rank: u32, turns: &Rc<Turns>, log: Option<Rc<Log>>) -> Rc<Completions> {
        Rc::new(Completions {
            rank,
            turns: turns.clone(),
            log,
            done: RefCell::default(),
            counts: Cell::default(),
            before: Cell::default(),
            news: Cell::default(),
            failed: RefCell::default(),
        })
    }

    /// Writes to the log, if there is one.
    pub(crate) fn logged<T>(&self, tell: impl FnOnce(&Log) -> T) -> Option<T> {
        self.log.as_deref().map(tell)
    }

    /// Returns the error of an inaccessible range of the process's memory.
    pub(crate) fn unreachable(&self, what: &str, place: (u64, u64), error: &std::io::Error) -> Error {
        self.turns.unreachable(self.rank, what, place, error)
    }

    /// Adds a completion for the process, with its operation in the log, if any.
    pub(crate) fn complete(&self, completion: Completion, op: Option<u32>) {
        self.logged(|log| log.completes(self.rank, op));
        self.done.borrow_mut().push_back((self.now(), completion));
        self.turns.notify(self.rank);
    }

    /// Adds the completion of a look that found no message; it does not notify anybody.
    pub(crate) fn found_none(&self, completion: Completion) {
        self.logged(|log| log.completes(self.rank, None));
        self.done.borrow_mut().push_back((self.now(), completion));
    }

    /// Counts the end of an operation.
    pub(crate) fn count(&self, kind: Kind, succeeded: bool) {
        let mut counts = self.counts.get();
        if !self.has_just_counted() {
            self.before.set(Some((self.now(), counts)));
        }
        let of_kind = if succeeded { &mut counts.done } else { &mut counts.failed };
        of_kind[kind as usize] += 1;
        self.counts.set(counts);
        match kind {
            // A process waits for one of these by its completion or a counter.
            Kind::Send | Kind::Recv => self.turns.notify(self.rank),
            // These may end without a completion, and a process may look for them by other means.
            _ => self.change(),
        }
    }

    /// Records a change of the process's memory.
    pub(crate) fn change(&self) {
        if self.news.get().is_none() {
            self.news.set(Some(self.now()));
        }
        // A wait for a count continues until the count is reached.
        self.turns.notify(self.rank);
    }

    /// Records a failure beside the process, which ends its program.
    pub(crate) fn fail(&self, error: Error) {
        self.failed.borrow_mut().get_or_insert(error);
        self.turns.notify(self.rank);
    }

    pub(crate) fn failure(&self) -> Option<Error> {
        self.failed.borrow_mut().take()
    }

    fn now(&self) -> Time {
        self.turns.now(self.rank)
    }

    /// Returns whether there is news for the process.
    pub(crate) fn is_woken(&self) -> bool {
        !self.done.borrow().is_empty() || self.news.get().is_some() || self.failed.borrow().is_some()
    }

    /// Returns whether a look that ends now finds something, which must be older than this instant. So a look does not depend on the order
    /// of events at one instant, and a look that ends early finds the same.
    pub(crate) fn is_found(&self) -> bool {
        let (first, now) = (self.done.borrow().front().map(|(came, _)| *came), self.now());
        [first, self.news.get()].into_iter().flatten().any(|came| came < now)
            || self.failed.borrow().is_some()
    }

    /// Returns whether counters have changed at this instant.
    fn has_just_counted(&self) -> bool {
        self.before.get().is_some_and(|(changed, _)| changed == self.now())
    }

    /// Returns the counts before this instant.
    fn counts_before(&self) -> Counts {
        match self.before.get() {
            Some((changed, before)) if changed == self.now() => before,
            _ => self.counts.get(),
        }
    }

    /// Returns whether a look at counters that ends now finds a sum reached, or a limit of failures passed.
    pub(crate) fn has_counted_before(&self, sum: (u64, u64, u64)) -> bool {
        self.have_counted(&self.counts_before(), sum)
    }

    /// Returns whether counters have reached a sum, or passed a limit of failures.
    pub(crate) fn has_counted(&self, sum: (u64, u64, u64)) -> bool {
        self.have_counted(&self.counts.get(), sum)
    }

    fn have_counted(&self, counts: &Counts, (kinds, done, failed): (u64, u64, u64)) -> bool {
        let sum = |by_kind: &[u64]| -> u64 {
            by_kind
                .iter()
                .enumerate()
                .filter(|(kind, _)| kinds >> kind & 1 == 1)
                .map(|(_, count)| count)
                .sum()
        };
        sum(&counts.done) >= done || sum(&counts.failed) > failed || self.failed.borrow().is_some()
    }

    /// Takes completions for the process.
    pub(crate) fn take(&self, most: u64) -> Vec<Completion> {
        self.take_while(most, |_| true)
    }

    /// Takes completions for a look of the process that ends now.
    pub(crate) fn take_found(&self, most: u64) -> Vec<Completion> {
        let now = self.now();
        self.take_while(most, |came| came < now)
    }

    fn take_while(&self, most: u64, is_taken: impl Fn(Time) -> bool) -> Vec<Completion> {
        let mut done = self.done.borrow_mut();
        let there = done.iter().take_while(|(came, _)| is_taken(*came)).count();
        let count = there.min(most as usize).min(MOST_COMPLETIONS);
        self.logged(|log| log.takes(self.rank, count));
        done.drain(..count).map(|(_, completion)| completion).collect()
    }

    /// Writes the counts for a reply; after a look, those before this instant.
    pub(crate) fn tell(&self, is_look: bool) {
        let counts = if is_look { self.counts_before() } else { self.counts.get() };
        self.turns.pages.set_counts(self.rank, &counts);
        let is_told = !is_look || self.news.get().is_none_or(|came| came < self.now());
        if is_told {
            self.news.set((is_look && self.has_just_counted()).then(|| self.now()));
        }
    }
}
