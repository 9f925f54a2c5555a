//! What has ended for a process: completions that it has not taken, and what its counters count.

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
    /// What the processes do, if that is wanted.
    log: Option<Rc<Log>>,
    /// Completions that the process has not taken, and when each came.
    done: RefCell<VecDeque<(Time, Completion)>>,
    /// What has ended, and what had before the last change, which was at this time.
    counts: Cell<Counts>,
    before: Cell<Option<(Time, Counts)>>,
    /// Since when its counters or its memory have changed after its last reply: a process that looks may look for that.
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

    /// What a schedule of what the processes do is told, if there is one.
    pub(crate) fn logged<T>(&self, tell: impl FnOnce(&Log) -> T) -> Option<T> {
        self.log.as_deref().map(tell)
    }

    /// Why bytes of the process cannot be reached.
    pub(crate) fn unreachable(&self, what: &str, place: (u64, u64), error: &std::io::Error) -> Error {
        self.turns.unreachable(self.rank, what, place, error)
    }

    /// A completion is there for the process: of an operation of the schedule, if there is one.
    pub(crate) fn complete(&self, completion: Completion, op: Option<u32>) {
        self.logged(|log| log.completes(self.rank, op));
        self.done.borrow_mut().push_back((self.now(), completion));
        self.turns.notify(self.rank);
    }

    /// A look for a message has found none: that is no news to anybody else.
    pub(crate) fn found_none(&self, completion: Completion) {
        self.logged(|log| log.completes(self.rank, None));
        self.done.borrow_mut().push_back((self.now(), completion));
    }

    /// Something that counters count has ended.
    pub(crate) fn count(&self, kind: Kind, succeeded: bool) {
        let mut counts = self.counts.get();
        if !self.has_just_counted() {
            self.before.set(Some((self.now(), counts)));
        }
        let of_kind = if succeeded { &mut counts.done } else { &mut counts.failed };
        of_kind[kind as usize] += 1;
        self.counts.set(counts);
        match kind {
            // Who waits for one looks for its completion, or for a counter.
            Kind::Send | Kind::Recv => self.turns.notify(self.rank),
            // These may end without a completion, and be looked for between looks for completions.
            _ => self.change(),
        }
    }

    /// The memory of the process has changed.
    pub(crate) fn change(&self) {
        if self.news.get().is_none() {
            self.news.set(Some(self.now()));
        }
        // A wait for a count goes on until all of it has come.
        self.turns.notify(self.rank);
    }

    /// Something that went on beside the process has failed: that ends its program.
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

    /// Whether something is there for the process.
    pub(crate) fn is_woken(&self) -> bool {
        !self.done.borrow().is_empty() || self.news.get().is_some() || self.failed.borrow().is_some()
    }

    /// Whether a look that ends now finds something: it came before. So a look does not depend on the order of what happens at one
    /// instant, and one whose end is skipped finds the same.
    pub(crate) fn is_found(&self) -> bool {
        let (first, now) = (self.done.borrow().front().map(|(came, _)| *came), self.now());
        [first, self.news.get()].into_iter().flatten().any(|came| came < now)
            || self.failed.borrow().is_some()
    }

    /// Whether counters have changed at this instant.
    fn has_just_counted(&self) -> bool {
        self.before.get().is_some_and(|(changed, _)| changed == self.now())
    }

    /// What counters had before this instant.
    fn counts_before(&self) -> Counts {
        match self.before.get() {
            Some((changed, before)) if changed == self.now() => before,
            _ => self.counts.get(),
        }
    }

    /// Whether a look at counters that ends now finds that they have reached a sum, or passed one of failures.
    pub(crate) fn has_counted_before(&self, sum: (u64, u64, u64)) -> bool {
        self.have_counted(&self.counts_before(), sum)
    }

    /// Whether counters have reached a sum, or passed one of failures.
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

    /// Completions for the process.
    pub(crate) fn take(&self, most: u64) -> Vec<Completion> {
        self.take_while(most, |_| true)
    }

    /// Completions for a look of the process that ends now.
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

    /// Tells the process what has ended, for a reply: behind a look, before this instant.
    pub(crate) fn tell(&self, is_look: bool) {
        let counts = if is_look { self.counts_before() } else { self.counts.get() };
        self.turns.pages.set_counts(self.rank, &counts);
        let is_told = !is_look || self.news.get().is_none_or(|came| came < self.now());
        if is_told {
            self.news.set((is_look && self.has_just_counted()).then(|| self.now()));
        }
    }
}
