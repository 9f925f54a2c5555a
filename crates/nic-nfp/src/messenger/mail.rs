//! Validates envelopes from other hosts. Invalid envelopes are refused and counted.

use crate::messenger::envelope::{Envelope, Kind};
use nicety_kernel::Sim;
use nicety_nic_core::library::{Announcements, Windows, count};
use nicety_nic_core::parts::DuplicateFilter;
use nicety_types::Path;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The window of a pair of processes: the maximum number of messages from one host to another that no receive has
/// taken.
pub const WINDOW: u64 = 16;

/// Number of message numbers that are remembered to detect duplicates.
const REMEMBERED: usize = 2 * WINDOW as usize;

/// The result of receiving an envelope.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReceivedEnvelope {
    /// The envelope of a message, which goes to a receive or waits for one.
    Message,
    /// The CTS for a message of this host.
    Answer,
    /// Credits that a receiver of this host's messages returns. The value is their number.
    Room(u64),
    /// The envelope is invalid from this sender.
    Refused,
}

/// Maps a rank and a pair of processes to the latest message numbers.
type Numbers = BTreeMap<(u32, u32), DuplicateFilter<REMEMBERED>>;

/// The state of a host's exchange of envelopes with other hosts.
pub(super) struct Mail {
    own: u32,
    ranks: u32,
    pub(super) windows: Windows,
    numbers: RefCell<Numbers>,
    /// The RTS messages of this host, by number. The CTS of each message has a lane.
    pub(super) announced: Announcements<u32>,
}

impl Mail {
    pub(super) fn new(sim: &Sim, own: u32, ranks: u32) -> Mail {
        let (windows, numbers) = (Windows::new(sim, WINDOW), RefCell::default());
        Mail { own, ranks, windows, numbers, announced: Announcements::default() }
    }

    /// Handles an envelope from the network. An envelope that claims to be from this host is refused.
    pub(super) fn arrived(&self, envelope: &Envelope, path: &Path) -> ReceivedEnvelope {
        let Envelope { rank, id, lane, .. } = *envelope;
        let pairs = self.windows.pairs();
        let pair = match envelope.kind {
            Kind::Eager | Kind::Rts => pairs.of(envelope.tag),
            Kind::Cts => 0,
            Kind::Credit => lane,
        };
        if rank == self.own || rank >= self.ranks || pair >= pairs.count() {
            return ReceivedEnvelope::Refused;
        }
        let peer = self.windows.peer(rank, pair);
        match envelope.kind {
            Kind::Eager | Kind::Rts => {
                let full = peer.come.get() - peer.reported.get() >= WINDOW;
                if full || !self.numbers.borrow_mut().entry((rank, pair)).or_default().note(id.into()) {
                    return ReceivedEnvelope::Refused;
                }
                count(&peer.come);
                ReceivedEnvelope::Message
            }
            Kind::Cts => {
                let answer = (lane, path.clone());
                match self.announced.answer(id.into(), rank, answer, |_, _| true) {
                    true => ReceivedEnvelope::Answer,
                    false => ReceivedEnvelope::Refused,
                }
            }
            Kind::Credit => {
                // The totals in envelopes have only 32 bits, and wrap.
                let more = u64::from(id.wrapping_sub(peer.returned.get() as u32));
                if more == 0 || more > peer.out() {
                    return ReceivedEnvelope::Refused;
                }
                peer.give(more);
                ReceivedEnvelope::Room(more)
            }
        }
    }

    /// Counts a message of a rank as taken by a receive. If receives have taken half of a window since the last report
    /// to this rank, returns the total number of taken messages to report.
    pub(super) fn took(&self, rank: u32, pair: u32) -> Option<u32> {
        let peer = self.windows.peer(rank, pair);
        peer.take(WINDOW).map(|_| peer.reported.get() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messenger::envelope::NO_LANE;
    use nicety_kernel::{Config, World};
    use nicety_nic_core::Pairs;
    use nicety_types::Time;
    use proptest::prelude::*;

    const PATH: Path = Path::from(Time::ZERO);

    /// Returns the state of host 0, in a separate simulation.
    fn mail(ranks: u32, pairs: Pairs) -> Mail {
        let mut world: World<()> = World::new(Config::default());
        let node = world.add_node();
        let mail = Mail::new(&world.sim(node), 0, ranks);
        mail.windows.resize(pairs, WINDOW);
        mail
    }

    /// Counts messages to a peer.
    fn send(mail: &Mail, rank: u32, pair: u32, messages: u32) {
        let peer = mail.windows.peer(rank, pair);
        (0..messages).for_each(|_| count(&peer.sent));
    }

    fn envelope(kind: Kind, rank: u32, id: u32) -> Envelope {
        Envelope { id, ..Envelope::new(rank, kind) }
    }

    #[test]
    fn envelopes_out_of_turn_are_refused() {
        let mail = mail(3, Pairs::ONE);
        for rank in [0, 3, u32::MAX] {
            assert_eq!(
                mail.arrived(&envelope(Kind::Eager, rank, 1), &PATH),
                ReceivedEnvelope::Refused,
                "{rank}"
            );
        }
        // An envelope from the network that names this host as its source is refused, even while such a message is in
        // flight.
        send(&mail, 0, 0, 1);
        mail.announced.announce(1, 0, 100);
        for kind in [Kind::Eager, Kind::Rts, Kind::Cts, Kind::Credit] {
            assert_eq!(mail.arrived(&envelope(kind, 0, 1), &PATH), ReceivedEnvelope::Refused, "{kind:?}");
        }
        assert_eq!((mail.windows.peer(0, 0).out(), mail.announced.is_answered(1)), (1, false));
        // A CTS without an RTS is refused, and so are a CTS from another host and a duplicate CTS.
        assert_eq!(mail.arrived(&envelope(Kind::Cts, 1, 7), &PATH), ReceivedEnvelope::Refused);
        mail.announced.announce(7, 1, 100);
        assert_eq!(mail.arrived(&envelope(Kind::Cts, 2, 7), &PATH), ReceivedEnvelope::Refused);
        assert_eq!(mail.arrived(&envelope(Kind::Cts, 1, 7), &PATH), ReceivedEnvelope::Answer);
        assert_eq!(mail.arrived(&envelope(Kind::Cts, 1, 7), &PATH), ReceivedEnvelope::Refused);
        assert!(mail.announced.is_answered(7) && mail.announced.take(7).is_some());
        mail.announced.end(7);
        assert_eq!(mail.arrived(&envelope(Kind::Cts, 1, 7), &PATH), ReceivedEnvelope::Refused);
        // A total above the number of sent messages is refused, and so is a repeated or smaller total.
        assert_eq!(mail.arrived(&envelope(Kind::Credit, 1, 1), &PATH), ReceivedEnvelope::Refused);
        send(&mail, 1, 0, 5);
        assert_eq!(mail.arrived(&envelope(Kind::Credit, 1, 6), &PATH), ReceivedEnvelope::Refused);
        assert_eq!(mail.arrived(&envelope(Kind::Credit, 1, 3), &PATH), ReceivedEnvelope::Room(3));
        assert_eq!(mail.arrived(&envelope(Kind::Credit, 1, 3), &PATH), ReceivedEnvelope::Refused);
        assert_eq!(mail.arrived(&envelope(Kind::Credit, 1, 2), &PATH), ReceivedEnvelope::Refused);
        assert_eq!(mail.arrived(&envelope(Kind::Credit, 1, 5), &PATH), ReceivedEnvelope::Room(2));
    }

    #[test]
    fn envelopes_beyond_the_window_are_refused() {
        let mail = mail(2, Pairs::ONE);
        for id in 0..100 {
            let expected =
                if u64::from(id) < WINDOW { ReceivedEnvelope::Message } else { ReceivedEnvelope::Refused };
            assert_eq!(mail.arrived(&envelope(Kind::Rts, 1, id), &PATH), expected);
        }
        let told: Vec<_> = (0..WINDOW / 2).filter_map(|_| mail.took(1, 0)).collect();
        assert_eq!(told, [WINDOW as u32 / 2]);
        assert_eq!(mail.arrived(&envelope(Kind::Rts, 1, 200), &PATH), ReceivedEnvelope::Message);
        assert_eq!(
            mail.arrived(&envelope(Kind::Rts, 1, 200), &PATH),
            ReceivedEnvelope::Refused,
            "it comes twice"
        );
    }

    #[test]
    fn each_pair_of_processes_has_a_window_of_its_own() {
        // Bits 4 and 5 of the tag are the number of the pair of processes.
        let mail = mail(2, Pairs { first: 4, bits: 2 });
        let message = |pair: u64, id| Envelope { tag: pair << 4 | 3, ..envelope(Kind::Rts, 1, id) };
        for id in 0..WINDOW as u32 {
            assert_eq!(mail.arrived(&message(1, id), &PATH), ReceivedEnvelope::Message);
        }
        assert_eq!(mail.arrived(&message(1, 100), &PATH), ReceivedEnvelope::Refused);
        assert_eq!(mail.arrived(&message(2, 101), &PATH), ReceivedEnvelope::Message);
        // Credits are valid only for the pair that they name.
        send(&mail, 1, 3, 1);
        let credit = |lane| Envelope { lane, ..envelope(Kind::Credit, 1, 1) };
        for (pair, came) in [
            (2, ReceivedEnvelope::Refused),
            (4, ReceivedEnvelope::Refused),
            (3, ReceivedEnvelope::Room(1)),
            (3, ReceivedEnvelope::Refused),
        ] {
            assert_eq!(mail.arrived(&credit(pair), &PATH), came, "{pair}");
        }
    }

    proptest! {
        /// No sequence of envelopes makes the state grow beyond the windows, or returns more credits than were used.
        #[test]
        fn nothing_that_comes_is_believed_too_far(
            envelopes in prop::collection::vec((0..5u32, 1..5u32, 0..40u32, any::<bool>()), 0..400)
        ) {
            let mail = mail(3, Pairs::ONE);
            let (mut sent, mut room, mut messages) = ([0u64; 3], [0u64; 3], 0);
            for (rank, kind, id, act) in envelopes {
                let kind = [Kind::Eager, Kind::Rts, Kind::Cts, Kind::Credit][kind as usize - 1];
                match mail.arrived(&Envelope { lane: if kind == Kind::Credit { 0 } else { NO_LANE }, ..envelope(kind, rank, id) }, &PATH) {
                    ReceivedEnvelope::Room(more) => room[rank as usize] += more,
                    ReceivedEnvelope::Refused => {}
                    came => {
                        messages += u64::from(came == ReceivedEnvelope::Message);
                        prop_assert!(rank == 1 || rank == 2);
                    }
                }
                if act {
                    send(&mail, 1, 0, 1);
                    sent[1] += 1;
                    mail.announced.announce(id.into(), 1, 100);
                }
                prop_assert!((0..3).all(|rank| room[rank] <= sent[rank]));
                prop_assert!(messages <= 2 * WINDOW);
            }
        }
    }
}
