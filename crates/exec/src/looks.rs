//! Looks that find nothing. A *look* is one non-blocking check for completions, with a cost; the time between two looks is the process's
//! own.
//!
//! If only looks are in progress, only the processes themselves can change anything. Processes that are outside come back then: a look
//! waits for them at that instant. Otherwise, and if all processes look, each look counts. After more than `patience` looks of all
//! processes, with no event between, the processes wait until something arrives. A process that reads a clock may wait for a time.

use crate::portals;
use crate::protocol::{Call, turn};
use crate::states::{FailedLooks, State};
use crate::turns::Turns;
use nicety::Time;
use nicety_kernel::{describe, race};

/// Events of a card's look for a message, beside the look's own. Pending events within this number prove nothing.
const OF_CARD: usize = 3;
/// Looks of a process, with only sleeps between, after which a sleep counts as a part of its looks.
const SLEEPY: u64 = 1000;
/// Failed waits for outside processes, after which looks wait less often.
const WAITS: u32 = 20;
/// The most looks between two of these waits, as a power of two.
const MOST_BETWEEN: u32 = 12;

/// Returns the looks between two waits for outside processes, after `waits` failed waits.
fn between(waits: u32) -> u64 {
    match waits.saturating_sub(WAITS) {
        0 => 0,
        further => 1 << further.min(MOST_BETWEEN),
    }
}

impl Call {
    /// Returns whether it looks for something that may not be there.
    pub(crate) const fn is_look(&self) -> bool {
        match self {
            Call::Poll { .. } | Call::Peek(_) => true,
            Call::Count(count) => count.ps == 0,
            Call::Portals(op) => portals::is_look(*op),
            _ => false,
        }
    }
}

impl Turns {
    /// Records an event other than a look.
    pub(crate) fn stirs(&self) {
        let FailedLooks { waits, .. } = self.failed_looks.get();
        self.failed_looks.set(FailedLooks { waits, wait_at: between(waits), ..FailedLooks::default() });
    }

    /// Records whether outside processes have come back.
    pub(crate) fn met(&self, have_come: bool) {
        let mut all = self.failed_looks.get();
        if have_come {
            all = FailedLooks::default();
        } else {
            all.waits += 1;
            all.wait_at = all.streak + between(all.waits);
        }
        self.failed_looks.set(all);
    }

    /// Counts looks of processes that were released without an event to look once more. Returns whether patience is left.
    pub(crate) fn is_patient(&self, looks: u64) -> bool {
        let mut all = self.failed_looks.get();
        if !self.is_any_outside() {
            all.looks += looks;
        }
        self.failed_looks.set(all);
        all.looks <= self.patience
    }

    /// Records a read of a clock: the process may wait for a time.
    pub(crate) fn has_time(&self) {
        self.failed_looks.set(FailedLooks { looks: 0, ..self.failed_looks.get() });
    }

    /// Returns whether a process is outside that may come back before the others end.
    fn is_any_outside(&self) -> bool {
        self.states.all(State::Outside).into_iter().any(|rank| self.pages.turn(rank) != turn::ENDS)
    }

    /// Returns the looks that a process may count by itself if nothing is in flight, before the simulator has to act.
    pub(crate) fn looks_left(&self) -> u64 {
        let all = self.failed_looks.get();
        match self.is_any_outside() {
            true => all.wait_at.saturating_sub(all.streak),
            false => self.patience.saturating_sub(all.looks),
        }
    }

    /// Records that a process begins to look. That is an event, unless it waits for a core.
    pub(crate) fn looks(&self, rank: u32) {
        let is_event = self.with(rank, |own| own.host.has_noise() || own.host.has_free_cores(1));
        self.states.set(rank, if is_event { State::Looks } else { State::Taken });
    }

    /// Records that a process's card looks for a message.
    pub(crate) fn card_looks(&self, rank: u32) {
        self.states.set(rank, State::CardLooks);
    }

    /// Records that a process sleeps: as a part of its looks if it has done nothing else for long.
    pub(crate) fn sleeps(&self, rank: u32) {
        if self.with(rank, |own| own.vain.get() >= SLEEPY) {
            self.states.set(rank, State::Looks);
        }
    }

    /// Records that a process runs after its reply, and whether there is news for it.
    pub(crate) fn runs(&self, rank: u32, is_woken: bool) {
        self.states.set(rank, State::Taken);
        self.states.set_woken(rank, is_woken);
    }

    /// Returns whether only looks of other processes are in progress, and none finds anything; `None` if unknown. A look is one event, and
    /// a card's look a few.
    pub(crate) fn is_quiet(&self, rank: u32) -> Option<bool> {
        let by_card = self.states.others(rank, State::CardLooks);
        let looks = self.states.others(rank, State::Looks) + by_card;
        let pending = self.with(rank, |own| own.host.pending_events());
        if self.states.are_others_woken_in_looks(rank) || pending > looks + OF_CARD * by_card {
            return Some(false);
        }
        (pending <= looks).then_some(true)
    }

    /// Returns whether all others look, wait or have ended, so that all events are the network's.
    fn do_others_look(&self, rank: u32) -> bool {
        [State::Taken, State::Held].into_iter().all(|state| self.states.others(rank, state) == 0)
            && !self.is_any_outside()
    }

    /// Records `looks` failed looks of a process since `since`. If others have to act first, the process waits for them. Without patience
    /// left it waits until something `comes`, or for ever.
    pub(crate) async fn looked_in_vain(
        &self,
        (rank, since): (u32, Time),
        looks: u64,
        what: impl Fn() -> String,
        comes: impl Future<Output = ()>,
    ) {
        match self.is_quiet(rank) {
            Some(true) => {}
            _ if self.do_others_look(rank) => {}
            Some(false) => return self.stirs(),
            None => return,
        }
        let reads = self.pages.clock_reads(rank);
        let has_read = self.with(rank, |own| {
            own.vain.set(own.vain.get() + looks);
            own.clock_reads.replace(reads) != reads
        });
        if has_read {
            self.has_time();
        }
        let mut all = self.failed_looks.get();
        all.streak += looks;
        self.failed_looks.set(all);
        // After this many looks, each looking process has looked since the last event.
        let looking = [State::Looks, State::CardLooks].map(|state| self.states.number(state) as u64);
        let each_has = all.streak > 4 * (looking.iter().sum::<u64>() + 1);
        let waits = match self.is_any_outside() {
            true => each_has && all.streak >= all.wait_at,
            false => !self.is_patient(looks),
        };
        if waits {
            let signal = self.begin_to_poll(rank, since, State::Parked);
            let over = || self.is_released(rank) || self.states.is_woken(rank);
            race(comes, describe(what, signal.wait_until(over))).await;
        }
    }
}
