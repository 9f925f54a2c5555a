//! Takes the profile of a card's handlers after a run.

use nicety_nic_processors::{BankUse, HandlerStatistics, HeldWord, Processors, ProgramProfile};
use std::cell::RefCell;

/// The profile of a run, and the card's own statistics of its handlers.
pub(super) struct Taken {
    pub(super) programs: Vec<ProgramProfile>,
    pub(super) statistics: HandlerStatistics,
    pub(super) words: Vec<HeldWord>,
    pub(super) banks: Vec<BankUse>,
}

/// Takes the profile of a run.
#[derive(Default)]
pub(super) struct Profiler(RefCell<Option<Taken>>);

impl Profiler {
    pub(super) fn take(&self, card: &Processors) {
        let taken = Taken {
            programs: card.take_profiles(),
            statistics: card.handler_statistics(),
            words: card.held_words(),
            banks: card.bank_uses(),
        };
        self.0.replace(Some(taken));
    }

    /// Returns the profile of the last run.
    pub(super) fn taken(self) -> Option<Taken> {
        self.0.into_inner()
    }
}
