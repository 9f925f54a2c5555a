//! Matching of envelopes and receives. Envelopes from other hosts are validated; invalid ones are refused and
//! counted.

use crate::messenger::envelope::{Envelope, Kind};
use crate::messenger::progress::Receive;
use nicety_nic_core::Pairs;
use nicety_nic_core::parts::{DuplicateFilter, Matching};
use nicety_types::Path;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The window: envelopes to one host, for a pair of processes, that no receive has taken.
pub const WINDOW: u64 = 16;

/// Number of message numbers remembered, to detect duplicates.
const REMEMBERED: usize = 2 * WINDOW as usize;

/// The state of the exchange with another host. Totals wrap at 2^32.
#[derive(Default)]
struct Peer {
    /// Messages received from it, those taken by receives, and the last total reported to it.
    come: u32,
    taken: u32,
    told: u32,
    /// The latest message numbers.
    seen: DuplicateFilter<REMEMBERED>,
    /// Messages sent to it, and the total that it reported as taken.
    sent: u32,
    freed: u32,
}

/// An RTS waiting for its CTS.
struct Awaited {
    rank: u32,
    /// The lane, and the path of the CTS.
    answer: Option<(u32, Path)>,
}

/// The result of receiving an envelope.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// A message, for a receive or to wait for one.
    Message,
    /// The CTS to a message of this host.
    Answer,
    /// Credits for its sender.
    Room(u64),
    /// Invalid from this sender.
    Refused,
}

/// The matching state of a host.
pub(super) struct Mail {
    own: u32,
    pairs: Pairs,
    /// By rank and pair.
    peers: Vec<Peer>,
    /// Receives without a message, and messages that no receive has taken.
    matching: Matching<Rc<Receive>, (Envelope, Path)>,
    /// RTS messages of this host, by number.
    awaited: BTreeMap<u32, Awaited>,
}

impl Mail {
    pub(super) fn new(own: u32, ranks: u32, pairs: Pairs) -> Mail {
        Mail {
            own,
            pairs,
            peers: (0..ranks * pairs.count()).map(|_| Peer::default()).collect(),
            matching: Matching::default(),
            awaited: BTreeMap::new(),
        }
    }

    /// Handles an envelope from the network. One that claims to be from this host is refused.
    pub(super) fn arrived(&mut self, envelope: Envelope, path: Path) -> Came {
        let Envelope { rank, id, .. } = envelope;
        let pair = match envelope.kind {
            Kind::Eager | Kind::Rts => self.pairs.of(envelope.tag),
            Kind::Cts => 0,
            Kind::Credit => envelope.lane,
        };
        if rank == self.own || pair >= self.pairs.count() {
            return Came::Refused;
        }
        let place = self.place(rank, pair);
        let Some(peer) = self.peers.get_mut(place) else { return Came::Refused };
        match envelope.kind {
            Kind::Eager | Kind::Rts => {
                let full = u64::from(peer.come.wrapping_sub(peer.told)) >= WINDOW;
                if full || !peer.seen.note(id.into()) {
                    return Came::Refused;
                }
                peer.come = peer.come.wrapping_add(1);
                self.hand(envelope, path);
                Came::Message
            }
            Kind::Cts => match self.awaited.get_mut(&id) {
                Some(awaited) if awaited.rank == rank && awaited.answer.is_none() => {
                    awaited.answer = Some((envelope.lane, path));
                    Came::Answer
                }
                _ => Came::Refused,
            },
            Kind::Credit => {
                let more = id.wrapping_sub(peer.freed);
                if more == 0 || more > peer.sent.wrapping_sub(peer.freed) {
                    return Came::Refused;
                }
                peer.freed = id;
                Came::Room(more.into())
            }
        }
    }

    /// Whether a posted receive matches a message.
    pub(super) fn awaits(&self, envelope: &Envelope) -> bool {
        self.matching.receives().any(|receive| receive.takes(envelope))
    }

    /// Matches a message with a posted receive or queues it. Returns whether there was a receive. The host's messages
    /// to itself enter only here.
    pub(super) fn hand(&mut self, envelope: Envelope, path: Path) -> bool {
        match self.matching.take_receive(|receive| receive.takes(&envelope)).0 {
            Some(receive) => {
                receive.taken.replace(Some((envelope, path)));
                true
            }
            None => {
                self.matching.keep((envelope, path));
                false
            }
        }
    }

    /// Posts a receive: it takes the first message that matches, or waits.
    pub(super) fn post(&mut self, receive: &Rc<Receive>) {
        match self.matching.take_message(|(envelope, _)| receive.takes(envelope)).0 {
            Some(envelope) => _ = receive.taken.replace(Some(envelope)),
            None => self.matching.post(receive.clone()),
        }
    }

    /// Returns the oldest message without a receive for which `takes` holds.
    pub(super) fn first(&self, takes: impl Fn(&Envelope) -> bool) -> Option<&Envelope> {
        self.matching.messages().map(|(envelope, _)| envelope).find(|envelope| takes(envelope))
    }

    /// Withdraws a posted receive. Returns whether no message has taken it.
    pub(super) fn withdraw(&mut self, receive: &Rc<Receive>) -> bool {
        self.matching.withdraw(|posted| Rc::ptr_eq(posted, receive)).is_some()
    }

    /// Index of a rank's pair among the peers.
    const fn place(&self, rank: u32, pair: u32) -> usize {
        rank as usize * self.pairs.count() as usize + pair as usize
    }

    /// Counts a message of a rank as taken by a receive. Returns the total to report to the rank, if half of its window
    /// was taken since the last report.
    pub(super) fn took(&mut self, rank: u32, pair: u32) -> Option<u32> {
        let place = self.place(rank, pair);
        let peer = &mut self.peers[place];
        peer.taken = peer.taken.wrapping_add(1);
        if u64::from(peer.taken.wrapping_sub(peer.told)) < WINDOW / 2 {
            return None;
        }
        peer.told = peer.taken;
        Some(peer.taken)
    }

    /// Counts a message about to be handed to the card.
    pub(super) fn sends(&mut self, rank: u32, pair: u32) {
        let place = self.place(rank, pair);
        let sent = &mut self.peers[place].sent;
        *sent = sent.wrapping_add(1);
    }

    /// Reverts the last count: the message was not handed over.
    pub(super) fn unsends(&mut self, rank: u32, pair: u32) {
        let place = self.place(rank, pair);
        let sent = &mut self.peers[place].sent;
        *sent = sent.wrapping_sub(1);
    }

    /// Records an RTS to a rank that waits for its CTS.
    pub(super) fn await_answer(&mut self, id: u32, rank: u32) {
        self.awaited.insert(id, Awaited { rank, answer: None });
    }

    /// Whether the CTS of a message has arrived.
    pub(super) fn is_answered(&self, id: u32) -> bool {
        self.awaited.get(&id).is_some_and(|awaited| awaited.answer.is_some())
    }

    /// Takes the CTS of a message, which then no longer waits.
    pub(super) fn answer(&mut self, id: u32) -> Option<(u32, Path)> {
        self.awaited.remove(&id)?.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messenger::envelope::NO_LANE;
    use nicety_nic_core::{Tags, Wanted};
    use nicety_types::Time;
    use proptest::prelude::*;

    const PATH: Path = Path::from(Time::ZERO);

    fn receive() -> Rc<Receive> {
        Rc::new(Receive::new(Wanted { source: None, tags: Tags::ANY, address: 0, room: 0 }))
    }

    fn envelope(kind: Kind, rank: u32, id: u32) -> Envelope {
        Envelope { id, ..Envelope::new(rank, kind) }
    }

    #[test]
    fn envelopes_out_of_turn_are_refused() {
        let mut mail = Mail::new(0, 3, Pairs::ONE);
        for rank in [0, 3, u32::MAX] {
            assert_eq!(mail.arrived(envelope(Kind::Eager, rank, 1), PATH), Came::Refused, "{rank}");
        }
        // The network cannot forge this host's own messages either, while one is queued.
        assert!(!mail.hand(envelope(Kind::Rts, 0, 1), PATH));
        for kind in [Kind::Eager, Kind::Rts, Kind::Cts, Kind::Credit] {
            assert_eq!(mail.arrived(envelope(kind, 0, 1), PATH), Came::Refused, "{kind:?}");
        }
        assert_eq!(mail.matching.messages().len(), 1);
        // A CTS without an RTS, one for another host's RTS, and a duplicate.
        assert_eq!(mail.arrived(envelope(Kind::Cts, 1, 7), PATH), Came::Refused);
        mail.await_answer(7, 1);
        assert_eq!(mail.arrived(envelope(Kind::Cts, 2, 7), PATH), Came::Refused);
        assert_eq!(mail.arrived(envelope(Kind::Cts, 1, 7), PATH), Came::Answer);
        assert_eq!(mail.arrived(envelope(Kind::Cts, 1, 7), PATH), Came::Refused);
        assert!(mail.is_answered(7) && mail.answer(7).is_some());
        assert_eq!(mail.arrived(envelope(Kind::Cts, 1, 7), PATH), Came::Refused);
        // More taken than sent, and a repeated total.
        assert_eq!(mail.arrived(envelope(Kind::Credit, 1, 1), PATH), Came::Refused);
        (0..5).for_each(|_| mail.sends(1, 0));
        assert_eq!(mail.arrived(envelope(Kind::Credit, 1, 6), PATH), Came::Refused);
        assert_eq!(mail.arrived(envelope(Kind::Credit, 1, 3), PATH), Came::Room(3));
        assert_eq!(mail.arrived(envelope(Kind::Credit, 1, 3), PATH), Came::Refused);
        assert_eq!(mail.arrived(envelope(Kind::Credit, 1, 2), PATH), Came::Refused);
        assert_eq!(mail.arrived(envelope(Kind::Credit, 1, 5), PATH), Came::Room(2));
    }

    #[test]
    fn envelopes_beyond_the_window_are_refused() {
        let mut mail = Mail::new(0, 2, Pairs::ONE);
        for id in 0..100 {
            let expected = if u64::from(id) < WINDOW { Came::Message } else { Came::Refused };
            assert_eq!(mail.arrived(envelope(Kind::Rts, 1, id), PATH), expected);
        }
        for _ in 0..WINDOW / 2 {
            mail.post(&receive());
        }
        let told: Vec<_> = (0..WINDOW / 2).filter_map(|_| mail.took(1, 0)).collect();
        assert_eq!(told, [WINDOW as u32 / 2]);
        assert_eq!(mail.arrived(envelope(Kind::Rts, 1, 200), PATH), Came::Message);
        assert_eq!(mail.arrived(envelope(Kind::Rts, 1, 200), PATH), Came::Refused, "it comes twice");
    }

    #[test]
    fn each_pair_of_processes_has_a_window_of_its_own() {
        // The pair is bits 4 and 5 of the tag.
        let mut mail = Mail::new(0, 2, Pairs { first: 4, bits: 2 });
        let message = |pair: u64, id| Envelope { tag: pair << 4 | 3, ..envelope(Kind::Rts, 1, id) };
        for id in 0..WINDOW as u32 {
            assert_eq!(mail.arrived(message(1, id), PATH), Came::Message);
        }
        assert_eq!(mail.arrived(message(1, 100), PATH), Came::Refused);
        assert_eq!(mail.arrived(message(2, 101), PATH), Came::Message);
        // Credits belong to the pair that they name.
        mail.sends(1, 3);
        let credit = |lane| Envelope { lane, ..envelope(Kind::Credit, 1, 1) };
        for (pair, came) in [(2, Came::Refused), (4, Came::Refused), (3, Came::Room(1)), (3, Came::Refused)] {
            assert_eq!(mail.arrived(credit(pair), PATH), came, "{pair}");
        }
    }

    proptest! {
        /// No envelope makes the state grow beyond the windows, and no more credits are granted than were used.
        #[test]
        fn nothing_that_comes_is_believed_too_far(
            envelopes in prop::collection::vec((0..5u32, 1..5u32, 0..40u32, any::<bool>()), 0..400)
        ) {
            let mut mail = Mail::new(0, 3, Pairs::ONE);
            let (mut sent, mut room) = ([0u64; 3], [0u64; 3]);
            for (rank, kind, id, act) in envelopes {
                let kind = [Kind::Eager, Kind::Rts, Kind::Cts, Kind::Credit][kind as usize - 1];
                match mail.arrived(Envelope { lane: if kind == Kind::Credit { 0 } else { NO_LANE }, ..envelope(kind, rank, id) }, PATH) {
                    Came::Room(more) => room[rank as usize] += more,
                    Came::Refused => {}
                    _ => prop_assert!(rank == 1 || rank == 2),
                }
                if act {
                    mail.sends(1, 0);
                    sent[1] += 1;
                    mail.await_answer(id, 1);
                }
                prop_assert!((0..3).all(|rank| room[rank] <= sent[rank]));
                prop_assert!(mail.matching.messages().len() as u64 <= 2 * WINDOW);
            }
        }
    }
}
