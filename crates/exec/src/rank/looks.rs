//! Looks of a process that find nothing, and the description of a process's waits.

use super::receives::whose;
use super::{Course, LIBRARY_CORES, Program};
use crate::places::tags;
use crate::protocol::{Follows, Receive, flag};
use crate::spent::Part;
use nicety::{Duration, Time};

/// After this number of simulated looks, a process has seen its news. An operation may end without a completion. The process then
/// has news that no look finds, and the other processes would never count as quiet. Before, the library may still wait for a core.
const SEEN: u32 = 1000;

impl Program {
    /// Takes CPU time on the host, for a look (`is_look`) or for other work.
    pub(super) async fn computes_for_looks(&self, duration: Duration, is_look: bool) {
        if is_look {
            self.turns.looks(self.rank);
        }
        self.host.compute(duration).await;
    }

    /// Executes looks that the process has deferred, in a call that waits. Returns whether one finds something; the others are
    /// then omitted.
    pub(super) async fn deferred_looks(
        &self,
        course: &mut Course,
        deferred: u32,
        finds: impl Fn() -> bool,
    ) -> bool {
        for _ in 0..deferred {
            course.polls_since.get_or_insert_with(|| self.host.now());
            self.computes_for_looks(self.poll, true).await;
            self.turns.lap(self.rank, Follows::MayWait.part(finds()));
            if finds() {
                course.polls_since = None;
                return true;
            }
            // The call itself counts as one look.
            self.counts.borrow_mut().calls += 1;
        }
        false
    }

    /// Executes a look. The process has counted `counted` looks by itself before. If further looks certainly follow, executes all
    /// of them, until one finds something or no event is left.
    pub(super) async fn looks(
        &self,
        (course, counted): (&mut Course, u64),
        finds: impl Fn() -> bool,
        follows: Follows,
    ) {
        let polls_since = *course.polls_since.get_or_insert_with(|| self.host.now());
        let since = course.peeks_since.unwrap_or(polls_since);
        self.computes_for_looks(self.poll, true).await;
        self.turns.lap(self.rank, follows.part(finds()));
        if !finds() {
            if follows.are_certain() {
                self.looks_on((since, follows), &finds).await;
            } else {
                let end = self.host.now();
                let since = (self.rank, since);
                self.turns
                    .looked_in_vain(since, counted + 1, || self.waiting(), std::future::pending())
                    .await;
                let over = self.host.now().since(end).ps() % self.poll.ps();
                self.turns.lap_before(self.rank, Part::Waits, Duration::from_ps(over));
                if over > 0 {
                    self.rest_of_look(over).await;
                    self.turns.lap(self.rank, follows.part(finds()));
                }
            }
        }
        if finds() {
            course.polls_since = None;
        }
    }

    /// Executes the looks that certainly follow a failed look. Each has its usual cost, and only the last one finds something. If
    /// other work of the host affects them, they are simulated one by one.
    async fn looks_on(&self, (since, follows): (Time, Follows), finds: impl Fn() -> bool) {
        let cores = LIBRARY_CORES + self.places.on_host() as usize;
        let mut looked = 0_u32;
        loop {
            while !self.host.has_free_cores(cores) && !finds() && self.turns.is_quiet(self.rank) != Some(true)
            {
                self.computes_for_looks(self.poll, true).await;
                self.turns.lap(self.rank, follows.part(finds()));
                self.counts.borrow_mut().calls += 1;
                looked += 1;
                if looked.is_multiple_of(SEEN) {
                    self.turns.has_seen(self.rank, self.ended.is_woken());
                }
            }
            if finds() {
                return;
            }
            let end = self.host.now();
            let came = || self.ended.is_woken();
            self.turns.polls((self.rank, since), || self.waiting(), came).await;
            let waited = self.host.now().since(end).ps();
            let over = waited % self.poll.ps();
            self.counts.borrow_mut().calls += waited / self.poll.ps() + 1;
            self.turns.lap_before(self.rank, follows.part(false), Duration::from_ps(over));
            self.rest_of_look(over).await;
            self.turns.lap(self.rank, follows.part(finds()));
            if finds() || self.turns.is_released(self.rank) {
                return;
            }
        }
    }

    /// Waits for the rest of a look that began `over_ps` picoseconds ago.
    async fn rest_of_look(&self, over_ps: u64) {
        self.computes_for_looks(Duration::from_ps(self.poll.ps() - over_ps), true).await;
    }

    /// Returns the operations for which a polling process waits.
    pub(super) fn waiting(&self) -> String {
        if let Some(peek) = &*self.peeks.borrow() {
            return self.looking_for(peek);
        }
        let posted = self.posted.borrow();
        let mut text = "a completion: it polls, and has posted ".to_owned();
        match self.rma.pending() {
            0 => {}
            1 => text += "an access to registered memory, and ",
            several => text += &format!("{several} accesses to registered memory, and "),
        }
        let (untagged, first_untagged) = self.untagged.waiting();
        match posted.len() + self.queued.borrow().len() + untagged {
            0 => text += "no receive",
            1 => text += "a receive of ",
            several => text += &format!("{several} receives, the first of "),
        }
        if let Some(receive) = posted.values().next().map(|posted| posted.receive).or(first_untagged) {
            text += &format!("{} bytes from {}", receive.bytes, whose(&receive));
        }
        let sending = self.sending.borrow();
        if let Some(send) = sending.values().next() {
            text += match sending.len() {
                1 => "; a send has not ended, of ".to_owned(),
                several => format!("; {several} sends have not ended, the first of "),
            }
            .as_str();
            text += &format!("{} bytes to rank {}", send.bytes, send.to);
            if send.flags & flag::UNTAGGED == 0 {
                text += &format!(", {}", tags(send.tag, 0));
            }
        }
        text
    }

    /// Returns the message for which a process looks.
    pub(super) fn looking_for(&self, peek: &Receive) -> String {
        format!("a message from {}, for which it probes", whose(peek))
    }
}
