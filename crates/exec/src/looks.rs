//! Polls that find nothing, and the decision that processes wait for each other. A *look* is one non-blocking check for
//! completions, which costs virtual time. The time between two looks belongs to the process.
//!
//! If only looks are in progress, no event will change what they find; only the processes themselves can. So if some processes
//! are *outside* (see `turns.rs`), a look waits until they come back, at the same virtual time. If none is outside, each failed
//! look of any process is counted. When more than `patience` looks have failed without another event, the processes wait until
//! something arrives. A read of a clock restarts the count, because the process may wait for a point in time.

use crate::portals;
use crate::protocol::{Call, turn};
use crate::states::{FailedLooks, State};
use crate::turns::Turns;
use nicety::Time;
use nicety_kernel::{describe, race};

/// Maximum number of additional pending events for each card that looks for a message. Up to this number, the events do not prove
/// that other work is in progress.
const OF_CARD: usize = 3;
/// A sleep counts as a part of a process's looks, after this many failed looks with only sleeps between them.
const SLEEPY: u64 = 1000;
/// After this many failed waits for outside processes, looks wait for them less often.
const WAITS: u32 = 20;
/// Maximum number of looks between two of these waits, as a power of two.
const MOST_BETWEEN: u32 = 12;

/// Returns the number of looks between two waits for outside processes, after `waits` failed waits.
fn between(waits: u32) -> u64 {
    match waits.saturating_sub(WAITS) {
        0 => 0,
        further => 1 << further.min(MOST_BETWEEN),
    }
}

impl Call {
    /// Returns whether the call checks for something that may not be there.
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
    /// Records an event that is not a look. It restarts the counts of failed looks.
    pub(crate) fn stirs(&self) {
        let FailedLooks { waits, .. } = self.failed_looks.get();
        self.failed_looks.set(FailedLooks { waits, wait_at: between(waits), ..FailedLooks::default() });
    }

    /// Records the end of a wait for outside processes, and whether any came back.
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

    /// Counts failed looks of processes that were released to look once more without an event. Returns whether the limit
    /// `patience` is not exceeded.
    pub(crate) fn is_patient(&self, looks: u64) -> bool {
        let mut all = self.failed_looks.get();
        if !self.is_any_outside() {
            all.looks += looks;
        }
        self.failed_looks.set(all);
        all.looks <= self.patience
    }

    /// Records that a process read a clock. It may wait for a point in time, so the count of looks restarts.
    pub(crate) fn has_time(&self) {
        self.failed_looks.set(FailedLooks { looks: 0, ..self.failed_looks.get() });
    }

    /// Returns whether a process that is outside may come back before the others end.
    fn is_any_outside(&self) -> bool {
        self.states.all(State::Outside).into_iter().any(|rank| self.pages.turn(rank) != turn::ENDS)
    }

    /// If no message is in flight, returns the number of looks that a process may count by itself before the simulator must act.
    pub(crate) fn looks_left(&self) -> u64 {
        let all = self.failed_looks.get();
        match self.is_any_outside() {
            true => all.wait_at.saturating_sub(all.streak),
            false => self.patience.saturating_sub(all.looks),
        }
    }

    /// Records that a process begins a look. The look is an event, unless it has to wait for a core.
    pub(crate) fn looks(&self, rank: u32) {
        let is_event = self.with(rank, |own| own.host.has_noise() || own.host.has_free_cores(1));
        self.states.set(rank, if is_event { State::Looks } else { State::Taken });
    }

    /// Records that the card of a process looks for a message.
    pub(crate) fn card_looks(&self, rank: u32) {
        self.states.set(rank, State::CardLooks);
    }

    /// Records that a process sleeps. The sleep is a part of its looks, if it has only looked and slept for long.
    pub(crate) fn sleeps(&self, rank: u32) {
        if self.with(rank, |own| own.vain.get() >= SLEEPY) {
            self.states.set(rank, State::Looks);
        }
    }

    /// Records that a process runs after a reply, and whether it has news.
    pub(crate) fn runs(&self, rank: u32, is_woken: bool) {
        self.states.set(rank, State::Taken);
        self.states.set_woken(rank, is_woken);
    }

    /// Records that a look of a process has ended, without a reply, and whether the process still has news.
    pub(crate) fn has_seen(&self, rank: u32, is_woken: bool) {
        self.states.set_woken(rank, is_woken);
    }

    /// Returns whether the other processes only look and find nothing; `None` if that is unknown. A look has one pending event,
    /// and a look of a card up to a few more.
    pub(crate) fn is_quiet(&self, rank: u32) -> Option<bool> {
        let by_card = self.states.others(rank, State::CardLooks);
        let looks = self.states.others(rank, State::Looks) + by_card;
        let pending = self.with(rank, |own| own.host.pending_events());
        if self.states.are_others_woken_in_looks(rank) || pending > looks + OF_CARD * by_card {
            return Some(false);
        }
        (pending <= looks).then_some(true)
    }

    /// Returns whether all other processes look, wait or have ended. Then all pending events belong to the network.
    fn do_others_look(&self, rank: u32) -> bool {
        [State::Taken, State::Held].into_iter().all(|state| self.states.others(rank, state) == 0)
            && !self.is_any_outside()
    }

    /// Records `looks` failed looks of a process since the time `since`. If other processes must act first, the process waits for
    /// them. If `patience` is exceeded, it waits until `comes` ends, or for ever.
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
        // After this number of failed looks, each looking process has looked at least once since the last event.
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
