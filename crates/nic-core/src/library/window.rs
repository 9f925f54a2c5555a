//! Windows limit the number of messages from one host to another that no receive has taken. At the limit a send waits,
//! so the receiver's buffers and queues never overflow.

use crate::{BlockedSends, Pairs};
use nicety_kernel::{Credits, Pool, Sim};
use nicety_types::Path;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Adds one to a count.
pub fn count(counter: &Cell<u64>) {
    counter.update(|count| count + 1);
}

/// The peer of a window: another host or this host. If hosts have several processes, each pair of processes is a
/// separate peer.
pub struct Peer {
    /// The peer's rank.
    pub rank: u32,
    /// The number of the pair of processes.
    pub pair: u32,
    /// Free entries of the window for messages to the peer. A send takes one.
    pub credits: Credits,
    /// Keeps messages to the peer in the order in which they were sent, even if a later message is ready first.
    pub turn: Pool,
    /// The path of the credits that the peer returned last.
    pub credited: RefCell<Option<Path>>,
    /// Number of messages to the peer so far.
    pub sent: Cell<u64>,
    /// Number of credits that the peer has returned so far.
    pub returned: Cell<u64>,
    /// Number of messages from the peer so far.
    pub come: Cell<u64>,
    /// Number of messages from the peer that receives have taken.
    pub taken: Cell<u64>,
    /// Number of messages from the peer with a returned credit.
    pub reported: Cell<u64>,
}

impl Peer {
    fn new(sim: &Sim, rank: u32, pair: u32, size: u64) -> Peer {
        let (credits, turn, zero) = (Credits::new(sim, size), Pool::new(sim, 1), || Cell::new(0));
        let (sent, returned, come, taken, reported) = (zero(), zero(), zero(), zero(), zero());
        let credited = RefCell::default();
        Peer { rank, pair, credits, turn, credited, sent, returned, come, taken, reported }
    }

    /// Number of messages to the peer without a returned credit.
    pub fn out(&self) -> u64 {
        self.sent.get() - self.returned.get()
    }

    /// Adds credits that the peer has returned to the window. Credits beyond [`Peer::out`] do not belong to this
    /// window, and are ignored.
    pub fn give(&self, credits: u64) {
        let credits = credits.min(self.out());
        self.returned.update(|returned| returned + credits);
        self.credits.release(credits);
    }

    /// Number of messages from the peer that no receive has taken.
    pub fn held(&self) -> u64 {
        self.come.get() - self.taken.get()
    }

    /// Counts a message from the peer that a receive has taken. Returns the number of credits to return now, if any.
    /// Credits are returned together, as soon as their number is half of a window of `size` messages.
    pub fn take(&self, size: u64) -> Option<u64> {
        count(&self.taken);
        let credits = self.taken.get() - self.reported.get();
        (credits >= size.div_ceil(2)).then(|| {
            self.reported.set(self.taken.get());
            credits
        })
    }
}

/// The windows of a host, one for each peer.
pub struct Windows {
    sim: Sim,
    pairs: Cell<Pairs>,
    size: Cell<u64>,
    peers: RefCell<BTreeMap<(u32, u32), Rc<Peer>>>,
}

impl Windows {
    /// Returns windows of `size` messages, for hosts with one process each.
    pub fn new(sim: &Sim, size: u64) -> Windows {
        Windows {
            sim: sim.clone(),
            pairs: Cell::new(Pairs::ONE),
            size: Cell::new(size),
            peers: RefCell::default(),
        }
    }

    /// The pairs of processes.
    pub fn pairs(&self) -> Pairs {
        self.pairs.get()
    }

    /// Sets the pairs of processes, and the size of the window of each pair. Call this method before the first message.
    pub fn resize(&self, pairs: Pairs, size: u64) {
        self.pairs.set(pairs);
        self.size.set(size);
    }

    /// Size of a window in messages.
    pub fn size(&self) -> u64 {
        self.size.get()
    }

    /// Returns the peer for messages with this tag, to or from this rank.
    pub fn of_tag(&self, rank: u32, tag: u64) -> Rc<Peer> {
        self.peer(rank, self.pairs.get().of(tag))
    }

    /// Returns a peer.
    pub fn peer(&self, rank: u32, pair: u32) -> Rc<Peer> {
        let new = || Rc::new(Peer::new(&self.sim, rank, pair, self.size.get()));
        self.peers.borrow_mut().entry((rank, pair)).or_insert_with(new).clone()
    }

    /// The sends that wait for room in their window. They continue when receives take earlier messages.
    pub fn blocked_sends(&self) -> Vec<BlockedSends> {
        let (pairs, window) = (self.pairs.get(), self.size.get());
        let waiting = |peer: &Rc<Peer>| {
            let pair = (pairs.bits > 0).then_some(peer.pair);
            BlockedSends { to: peer.rank, pair, sends: peer.credits.waiting() as u64, window }
        };
        self.peers.borrow().values().map(waiting).filter(|blocked| blocked.sends > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_kernel::{Config, World};
    use proptest::prelude::*;

    /// Returns the two ends of a window, in a separate world.
    fn ends(size: u64) -> [Peer; 2] {
        let mut world: World<()> = World::new(Config::default());
        let node = world.add_node();
        [1, 0].map(|rank| Peer::new(&world.sim(node), rank, 0, size))
    }

    #[test]
    fn credits_return_by_half_windows() {
        for (size, expected) in [(1, vec![Some(1); 4]), (3, vec![None, Some(2), None, Some(2)])] {
            let [peer, _] = ends(size);
            (0..4).for_each(|_| count(&peer.come));
            assert_eq!((0..4).map(|_| peer.take(size)).collect::<Vec<_>>(), expected);
            assert_eq!((peer.held(), peer.reported.get()), (0, 4));
        }
    }

    #[test]
    fn credits_beyond_a_window_are_left_out() {
        let [peer, _] = ends(4);
        peer.credits.try_acquire(1).unwrap().forget();
        count(&peer.sent);
        peer.give(3);
        assert_eq!((peer.out(), peer.returned.get(), peer.credits.available()), (0, 1, 4));
    }

    proptest! {
        /// A sender waits for credits. The receiver never holds more messages than a window, and all messages arrive.
        #[test]
        fn a_window_bounds_the_held_messages(size in 1..20_u64, steps in prop::collection::vec(0..3_u8, 0..300)) {
            let ([to, from], mut credits) = (ends(size), 0);
            for step in steps {
                match step {
                    0 => if let Some(credit) = to.credits.try_acquire(1) {
                        credit.forget();
                        count(&to.sent);
                        count(&from.come);
                    },
                    1 if from.held() > 0 => credits += from.take(size).unwrap_or(0),
                    2 => to.give(std::mem::take(&mut credits)),
                    _ => {}
                }
                let unreported = from.come.get() - from.reported.get();
                prop_assert!(from.held() <= unreported && unreported <= size && to.out() <= size);
                prop_assert!(to.returned.get() <= from.reported.get());
            }
            while from.held() > 0 {
                credits += from.take(size).unwrap_or(0);
            }
            to.give(credits);
            prop_assert!(to.out() < size.div_ceil(2) && to.credits.available() == size - to.out());
        }
    }
}
