//! Looks that find nothing: a look takes what it takes, and what processes do between two of them is their own.
//!
//! Where nothing is under way but looks, only processes themselves can change anything. Those that are outside come back then: who looks
//! waits for them at that instant. Otherwise, and where all processes look, each look counts. Beyond `patience` of them, by all processes and
//! without anything for any of them between, they are taken to look until something comes. Who reads a clock may wait for a time.

use crate::protocol::turn;
use crate::turns::{State, Turns};
use nicety::Time;
use nicety_kernel::{describe, race};

/// Events of a card that looks for a message, beside the look's own: what may be one of these shows nothing.
const OF_CARD: usize = 3;
/// Looks of a process, with nothing but sleeps between, behind which a sleep of it is taken to be a part of them.
const SLEEPY: u64 = 1000;
/// Looks that one of a call that waits counts as, where only such calls are left.
pub(crate) const OF_WAITS: u64 = 100;
/// Waits in vain for those who are outside before who looks waits less often.
const WAITS: u32 = 20;
/// The most looks between two of these waits, as a power of two.
const MOST_BETWEEN: u32 = 12;

/// Looks in vain of all processes, one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InVain {
    /// Since something else has happened, or a clock was read, while nobody was outside.
    looks: u64,
    /// Since something else has happened.
    streak: u64,
    /// That number of them behind which who looks waits for those who are outside, and how often that was in vain.
    wait_at: u64,
    waits: u32,
}

/// Looks between two waits for those who are outside, behind so many of these in vain.
fn between(waits: u32) -> u64 {
    match waits.saturating_sub(WAITS) {
        0 => 0,
        further => 1 << further.min(MOST_BETWEEN),
    }
}

impl Turns {
    /// Something else than looks happens.
    pub(crate) fn stirs(&self) {
        let InVain { waits, .. } = self.in_vain.get();
        self.in_vain.set(InVain { waits, wait_at: between(waits), ..InVain::default() });
    }

    /// Those who are outside have come back, or not.
    pub(crate) fn met(&self, have_come: bool) {
        let mut all = self.in_vain.get();
        if have_come {
            all = InVain::default();
        } else {
            all.waits += 1;
            all.wait_at = all.streak + between(all.waits);
        }
        self.in_vain.set(all);
    }

    /// Processes were let go that wait for something that is not under way, to look once more. Whether there is patience for that.
    pub(crate) fn is_patient(&self, looks: u64) -> bool {
        let mut all = self.in_vain.get();
        if !self.is_any_outside() {
            all.looks += looks;
        }
        self.in_vain.set(all);
        all.looks <= self.patience
    }

    /// A clock was read: who looks may wait for a time.
    pub(crate) fn has_time(&self) {
        self.in_vain.set(InVain { looks: 0, ..self.in_vain.get() });
    }

    /// Whether a process is outside that may come back before the others end.
    fn is_any_outside(&self) -> bool {
        self.in_state(State::Outside).into_iter().any(|rank| self.pages.turn(rank) != turn::ENDS)
    }

    /// Where nothing is to come: the looks that a process may count itself before what follows from them is looked at.
    pub(crate) fn looks_left(&self) -> u64 {
        let all = self.in_vain.get();
        match self.is_any_outside() {
            true => all.wait_at.saturating_sub(all.streak),
            false => self.patience.saturating_sub(all.looks),
        }
    }

    /// A process begins to look for something: that is an event, unless it has to wait for a core.
    pub(crate) fn looks(&self, rank: u32) {
        self.with(rank, |own| {
            let is_event = own.host.has_noise() || own.host.has_free_cores(1);
            own.state.set(if is_event { State::Looks } else { State::Taken });
        });
    }

    /// A process has its card look for a message.
    pub(crate) fn card_looks(&self, rank: u32) {
        self.with(rank, |own| own.state.set(State::CardLooks));
    }

    /// A process begins to sleep: as a part of its looks where it has done nothing else for long.
    pub(crate) fn sleeps(&self, rank: u32) {
        self.with(rank, |own| {
            if own.vain.get() >= SLEEPY {
                own.state.set(State::Looks);
            }
        });
    }

    /// A process has its reply, behind which there is more for it, or not.
    pub(crate) fn runs(&self, rank: u32, is_woken: bool) {
        self.with(rank, |own| {
            own.state.set(State::Taken);
            own.woken.set(is_woken);
        });
    }

    /// Whether nothing is under way but looks of other processes, and nobody has what he looks for; none where that is not known. A look
    /// is one event, and one by a card a few.
    pub(crate) fn is_quiet(&self, rank: u32) -> Option<bool> {
        let [others, by_card] = [State::Looks, State::CardLooks].map(|state| {
            let mut all = self.in_state(state);
            all.retain(|&other| other != rank);
            all
        });
        let is_woken = |other: &u32| self.with(*other, |own| own.woken.get());
        let pending = self.with(rank, |own| own.host.pending_events());
        let looks = others.len() + by_card.len();
        if others.iter().chain(&by_card).any(is_woken) || pending > looks + OF_CARD * by_card.len() {
            return Some(false);
        }
        (pending <= looks).then_some(true)
    }

    /// Whether all others look, wait or have ended: what happens is the network's.
    fn do_others_look(&self, rank: u32) -> bool {
        [State::Taken, State::Held]
            .into_iter()
            .all(|state| self.in_state(state).iter().all(|&other| other == rank))
            && !self.is_any_outside()
    }

    /// So many looks of a process were in vain, since this time. Where others have to do something first, it waits until they have; and
    /// beyond all patience until something `comes` for it, or for ever where nothing will.
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
        let mut all = self.in_vain.get();
        all.streak += looks;
        self.in_vain.set(all);
        // Each of them has looked since something happened last, where as many have looked some times.
        let looking = [State::Looks, State::CardLooks].map(|state| self.in_state(state).len() as u64);
        let each_has = all.streak > 4 * (looking.iter().sum::<u64>() + 1);
        let waits = match self.is_any_outside() {
            true => each_has && all.streak >= all.wait_at,
            false => !self.is_patient(looks),
        };
        if waits {
            let signal = self.begin_to_poll(rank, since, State::Parked);
            let over = || self.with(rank, |own| own.released.get() || own.woken.get());
            race(comes, describe(what, signal.wait_until(over))).await;
        }
    }
}
