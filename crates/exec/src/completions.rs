//! The completions that a process has not yet read, and the values of its counters.

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
    /// The log of the operations of all processes, if requested.
    log: Option<Rc<Log>>,
    /// Completions that the process has not yet read, each with its virtual time.
    done: RefCell<VecDeque<(Time, Completion)>>,
    /// The counts. `before` is the time of their last change, with the counts before that change.
    counts: Cell<Counts>,
    before: Cell<Option<(Time, Counts)>>,
    /// The time of the first change of the counters or the memory since the last reply to the process. A look of the process may
    /// check either.
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

    /// Writes to the log, if there is a log.
    pub(crate) fn logged<T>(&self, tell: impl FnOnce(&Log) -> T) -> Option<T> {
        self.log.as_deref().map(tell)
    }

    /// Returns the error for a range of the process's memory that cannot be accessed.
    pub(crate) fn unreachable(&self, what: &str, place: (u64, u64), error: &std::io::Error) -> Error {
        self.turns.unreachable(self.rank, what, place, error)
    }

    /// Adds a completion for the process. `op` is the operation in the log, if any.
    pub(crate) fn complete(&self, completion: Completion, op: Option<u32>) {
        self.logged(|log| log.completes(self.rank, op));
        self.done.borrow_mut().push_back((self.now(), completion));
        self.turns.notify(self.rank);
    }

    /// Adds the completion of a probe that found no message. This notifies nobody.
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
            // A process waits for an operation of these kinds by its completion or by a counter.
            Kind::Send | Kind::Recv => self.turns.notify(self.rank),
            // Operations of these kinds may end without a completion, and a process may detect their end by other means.
            _ => self.change(),
        }
    }

    /// Records a change of the process's memory.
    pub(crate) fn change(&self) {
        if self.news.get().is_none() {
            self.news.set(Some(self.now()));
        }
        // This also wakes a wait for a count, which continues if the count is not reached.
        self.turns.notify(self.rank);
    }

    /// Records a failure of a task that runs beside the process. It ends the process's program.
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

    /// Returns whether the process has news: a completion, a change, or a failure.
    pub(crate) fn is_woken(&self) -> bool {
        !self.done.borrow().is_empty() || self.news.get().is_some() || self.failed.borrow().is_some()
    }

    /// Returns whether a look that ends now finds a completion, a change or a failure. A completion or a change counts only if
    /// it is older than this instant. So the result of a look does not depend on the order of events at one instant. Otherwise
    /// a look that ends early could give another result.
    pub(crate) fn is_found(&self) -> bool {
        let (first, now) = (self.done.borrow().front().map(|(came, _)| *came), self.now());
        [first, self.news.get()].into_iter().flatten().any(|came| came < now)
            || self.failed.borrow().is_some()
    }

    /// Returns whether counters have changed at this instant.
    fn has_just_counted(&self) -> bool {
        self.before.get().is_some_and(|(changed, _)| changed == self.now())
    }

    /// Returns the counts as they were before this instant.
    fn counts_before(&self) -> Counts {
        match self.before.get() {
            Some((changed, before)) if changed == self.now() => before,
            _ => self.counts.get(),
        }
    }

    /// Returns whether a look at counters that ends now finds that a sum is reached, or that a limit of failures is exceeded.
    pub(crate) fn has_counted_before(&self, sum: (u64, u64, u64)) -> bool {
        self.have_counted(&self.counts_before(), sum)
    }

    /// Returns whether counters have reached a sum, or have exceeded a limit of failures.
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

    /// Removes and returns completions for the process.
    pub(crate) fn take(&self, most: u64) -> Vec<Completion> {
        self.take_while(most, |_| true)
    }

    /// Removes and returns completions for a look of the process that ends now.
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

    /// Writes the counts for a reply. The reply to a look has the counts before this instant.
    pub(crate) fn tell(&self, is_look: bool) {
        let counts = if is_look { self.counts_before() } else { self.counts.get() };
        self.turns.pages.set_counts(self.rank, &counts);
        let is_told = !is_look || self.news.get().is_none_or(|came| came < self.now());
        if is_told {
            self.news.set((is_look && self.has_just_counted()).then(|| self.now()));
        }
    }
}
