//! The control program: a loop that looks at one source of work after another.

use super::Card;
use nicety_kernel::race;
use nicety_types::Time;
use std::rc::Rc;

/// What the control program looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Link,
    Dma,
    Interface(u32),
}

/// Where the control program is in its round.
struct Round {
    /// The place that it looks at next, counted from the round's beginning.
    at: usize,
    /// When it begins to look there.
    since: Time,
}

impl Card {
    /// Looks at everything in turn, for ever. Looks that find nothing are counted and not simulated.
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

    /// Hands a packet to the link, and takes one that came.
    async fn serve_link(self: &Rc<Card>) {
        if self.may_leave() {
            self.hand_over().await;
        }
        if self.has_packet() {
            self.take_packet().await;
        }
    }

    /// Places of a round: link, DMA and an interface, for each one that is open.
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

    /// How many looks it takes from a place on until one finds something; none if none would.
    fn looks(&self, from: usize) -> Option<usize> {
        let (link, dma) = (self.has_packet() || self.may_leave(), self.has_transfer());
        let places = self.places();
        (0..places).find(|look| match self.place((from + look) % places) {
            Place::Link => link,
            Place::Dma => dma,
            Place::Interface(vni) => self.has_work(vni),
        })
    }

    /// Looks on until there is something to do. A look sees what was there when it began.
    async fn look(&self, round: &mut Round) -> Place {
        let look = self.spec.program.clock.cycles(self.spec.program.poll);
        loop {
            // An interface may have been closed meanwhile.
            round.at %= self.places();
            let found = self.looks(round.at);
            let changed = self.changed.wait();
            if let Some(before) = found {
                let until = round.since + look * (before as u64 + 1);
                if until <= self.sim.now() {
                    return self.arrive(round, before, until);
                }
                race(self.sim.until(until), changed).await;
                // Looks that had begun when something changed have not seen it.
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

    /// How many looks have begun before now.
    fn begun(&self, since: Time, look: nicety_types::Duration) -> u64 {
        self.sim.now().ps().saturating_sub(since.ps()).div_ceil(look.ps())
    }

    fn skip(&self, round: &mut Round, looks: u64, look: nicety_types::Duration) {
        let places = self.places() as u64;
        round.at = ((round.at as u64 + looks) % places) as usize;
        round.since += look * looks;
    }

    /// A look has found something: goes on behind it.
    fn arrive(&self, round: &mut Round, looks: usize, until: Time) -> Place {
        let places = self.places();
        let at = (round.at + looks) % places;
        round.at = (at + 1) % places;
        round.since = until;
        self.place(at)
    }
}
