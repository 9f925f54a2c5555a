//! The control program: a loop that polls one source of work after another.

use crate::Card;
use nicety_kernel::race;
use nicety_types::Time;
use std::rc::Rc;

/// A source that the control program polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Link,
    Dma,
    Interface(u32),
}

/// The control program's position in its polling round.
struct Round {
    /// The next source to poll, counted from the beginning of the round.
    at: usize,
    /// Start time of the next poll.
    since: Time,
}

impl Card {
    /// Runs the polling loop; never returns. Polls without work take their time but are not simulated one by one.
    pub(super) async fn run(self: Rc<Card>) {
        let mut round = Round { at: 0, since: self.sim.now() };
        loop {
            let place = self.look(&mut round).await;
            match place {
                Place::Link => self.serve_link().await,
                Place::Dma => self.serve_channels().await,
                Place::Interface(vni) => self.serve_interface(vni).await,
            }
            round.since = self.sim.now();
        }
    }

    /// Hands a packet to the link, and takes a received packet.
    async fn serve_link(self: &Rc<Card>) {
        if self.may_leave() {
            self.hand_over().await;
        }
        if self.has_packet() {
            self.take_packet().await;
        }
    }

    /// Number of polls of a round: for each open interface, one poll each of the link, the DMA controller and the
    /// interface.
    fn places(&self) -> usize {
        (3 * self.open.borrow().len()).max(2)
    }

    fn place(&self, at: usize) -> Place {
        match at % 3 {
            0 => Place::Link,
            1 => Place::Dma,
            _ => Place::Interface(self.open.borrow()[at / 3]),
        }
    }

    /// Number of polls without work from a position on, before a poll with work. `None` if no poll of the round has
    /// work.
    fn looks(&self, from: usize) -> Option<usize> {
        let (link, dma) = (self.has_packet() || self.may_leave(), self.has_transfer());
        let places = self.places();
        (0..places).find(|look| match self.place((from + look) % places) {
            Place::Link => link,
            Place::Dma => dma,
            Place::Interface(vni) => self.has_work(vni),
        })
    }

    /// Polls until a source has work. Returns the source. A poll sees the state at the beginning of the poll.
    async fn look(&self, round: &mut Round) -> Place {
        let look = self.spec.program.clock.cycles(self.spec.program.poll);
        loop {
            // An interface may have been closed since the last poll.
            round.at %= self.places();
            let found = self.looks(round.at);
            let changed = self.changed.wait();
            if let Some(before) = found {
                let until = round.since + look * (before as u64 + 1);
                if until <= self.sim.now() {
                    return self.arrive(round, before, until);
                }
                race(self.sim.until(until), changed).await;
                // Polls that began before the change did not see it.
                let begun = self.begun(round.since, look);
                if begun > before as u64 {
                    self.sim.until(until).await;
                    return self.arrive(round, before, until);
                }
                self.skip(round, begun, look);
            } else {
                changed.await;
                let begun = self.begun(round.since, look);
                self.skip(round, begun, look);
            }
        }
    }

    /// Number of polls that began at or after `since` and before now.
    fn begun(&self, since: Time, look: nicety_types::Duration) -> u64 {
        self.sim.now().ps().saturating_sub(since.ps()).div_ceil(look.ps())
    }

    fn skip(&self, round: &mut Round, looks: u64, look: nicety_types::Duration) {
        let places = self.places() as u64;
        round.at = ((round.at as u64 + looks) % places) as usize;
        round.since += look * looks;
    }

    /// Moves the position behind the source with work, after `looks` polls without work. Returns that source.
    fn arrive(&self, round: &mut Round, looks: usize, until: Time) -> Place {
        let places = self.places();
        let at = (round.at + looks) % places;
        round.at = (at + 1) % places;
        round.since = until;
        self.place(at)
    }
}
