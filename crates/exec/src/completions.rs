//! What has ended for a process: completions that it has not taken, and what its counters count.

use crate::protocol::{Completion, Counts, Kind, MOST_COMPLETIONS};
use crate::schedule::Log;
use crate::turns::Turns;
use nicety::Error;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

pub(crate) struct Completions {
    rank: u32,
    turns: Rc<Turns>,
    /// What the processes do, if that is wanted.
    log: Option<Rc<Log>>,
    done: RefCell<VecDeque<Completion>>,
    counts: Cell<Counts>,
    /// Whether its counters or its memory have changed since its last reply: a process that looks may look for that.
    is_news: Cell<bool>,
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
            is_news: Cell::new(false),
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
        self.done.borrow_mut().push_back(completion);
        self.turns.notify(self.rank);
    }

    /// A look for a message has found none: that is no news to anybody else.
    pub(crate) fn found_none(&self, completion: Completion) {
        self.logged(|log| log.completes(self.rank, None));
        self.done.borrow_mut().push_back(completion);
    }

    /// Something that counters count has ended.
    pub(crate) fn count(&self, kind: Kind, succeeded: bool) {
        let mut counts = self.counts.get();
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
        if !self.is_news.replace(true) {
            self.turns.notify(self.rank);
        }
    }

    /// Something that went on beside the process has failed: that ends its program.
    pub(crate) fn fail(&self, error: Error) {
        self.failed.borrow_mut().get_or_insert(error);
        self.turns.notify(self.rank);
    }

    pub(crate) fn failure(&self) -> Option<Error> {
        self.failed.borrow_mut().take()
    }

    /// Whether a look finds something.
    pub(crate) fn is_woken(&self) -> bool {
        !self.done.borrow().is_empty() || self.is_news.get() || self.failed.borrow().is_some()
    }

    /// Whether counters have reached a sum, or passed one of failures.
    pub(crate) fn has_counted(&self, kinds: u64, done: u64, failed: u64) -> bool {
        let counts = self.counts.get();
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
        let mut done = self.done.borrow_mut();
        let count = done.len().min(most as usize).min(MOST_COMPLETIONS);
        self.logged(|log| log.takes(self.rank, count));
        done.drain(..count).collect()
    }

    /// What has ended, for a reply: whether there was news.
    pub(crate) fn tell(&self) -> bool {
        self.turns.pages.set_counts(self.rank, &self.counts.get());
        self.is_news.take()
    }
}
