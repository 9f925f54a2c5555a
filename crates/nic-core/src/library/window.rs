//! Windows: messages of a host to another that no receive has taken, and their limit. Past it a send waits, so that the
//! receiver's buffers and queues never overflow.

use crate::{HeldUp, Pairs};
use nicety_kernel::{Credits, Pool, Sim};
use nicety_types::Path;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Counts of messages to a peer and from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    sent: u64,
    returned: u64,
    come: u64,
    taken: u64,
    reported: u64,
}

impl Window {
    /// Counts a message to the peer.
    pub const fn send(&mut self) {
        self.sent += 1;
    }

    /// Reverts the last count: the message was not sent.
    pub const fn unsend(&mut self) {
        self.sent -= 1;
    }

    /// Number of messages to the peer without a returned credit.
    pub const fn out(&self) -> u64 {
        self.sent - self.returned
    }

    /// Number of credits that the peer has returned so far.
    pub const fn returned(&self) -> u64 {
        self.returned
    }

    /// Counts credits that the peer returns, which are at most [`Window::out`].
    pub fn give(&mut self, credits: u64) {
        debug_assert!(credits <= self.out(), "the caller has compared them");
        self.returned += credits;
    }

    /// Counts a message from the peer.
    pub const fn arrive(&mut self) {
        self.come += 1;
    }

    /// Number of messages from the peer that no receive has taken.
    pub const fn held(&self) -> u64 {
        self.come - self.taken
    }

    /// Number of messages from the peer with credits that have not been returned.
    pub const fn unreported(&self) -> u64 {
        self.come - self.reported
    }

    /// Counts a message from the peer that a receive has taken. Returns the credits to return now: those of half a
    /// window together.
    pub fn take(&mut self, size: u64) -> Option<u64> {
        self.taken += 1;
        let credits = self.taken - self.reported;
        let half = credits >= size.div_ceil(2);
        half.then(|| {
            self.reported = self.taken;
            credits
        })
    }

    /// Number of credits returned to the peer so far.
    pub const fn reported(&self) -> u64 {
        self.reported
    }
}

/// Another host, this one, or a pair of their processes.
pub struct Peer {
    /// Its rank.
    pub rank: u32,
    /// The pair of processes.
    pub pair: u32,
    /// Free places of the window at the peer.
    pub credits: Credits,
    /// Messages leave in the order of sending, whatever their preparation.
    pub turn: Pool,
    /// The path of the last returned credits.
    pub credited: RefCell<Option<Path>>,
    window: Cell<Window>,
}

impl Peer {
    /// The counts.
    pub fn window(&self) -> Window {
        self.window.get()
    }

    /// Changes the counts.
    pub fn count<V>(&self, change: impl FnOnce(&mut Window) -> V) -> V {
        let mut window = self.window.get();
        let value = change(&mut window);
        self.window.set(window);
        value
    }

    /// Takes back the credits that the peer returns.
    pub fn give(&self, credits: u64) {
        self.count(|window| window.give(credits));
        self.credits.release(credits);
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
    /// Windows of `size` messages for one process a host.
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

    /// Makes a window for each pair of processes, of this size. Call it before the first message.
    pub fn resize(&self, pairs: Pairs, size: u64) {
        self.pairs.set(pairs);
        self.size.set(size);
    }

    /// Messages of a window.
    pub fn size(&self) -> u64 {
        self.size.get()
    }

    /// Returns the peer of messages with this tag.
    pub fn of_tag(&self, rank: u32, tag: u64) -> Rc<Peer> {
        self.peer(rank, self.pairs.get().of(tag))
    }

    /// Returns a peer.
    pub fn peer(&self, rank: u32, pair: u32) -> Rc<Peer> {
        let new = || {
            let (credits, turn) = (Credits::new(&self.sim, self.size.get()), Pool::new(&self.sim, 1));
            let (credited, window) = (RefCell::default(), Cell::default());
            Rc::new(Peer { rank, pair, credits, turn, credited, window })
        };
        self.peers.borrow_mut().entry((rank, pair)).or_insert_with(new).clone()
    }

    /// Sends that wait until their receivers take others.
    pub fn held_up(&self) -> Vec<HeldUp> {
        let (pairs, window) = (self.pairs.get(), self.size.get());
        let waiting = |peer: &Rc<Peer>| {
            let pair = (pairs.bits > 0).then_some(peer.pair);
            HeldUp { to: peer.rank, pair, sends: peer.credits.waiting() as u64, window }
        };
        self.peers.borrow().values().map(waiting).filter(|held_up| held_up.sends > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn credits_return_by_half_windows() {
        for (size, expected) in [(1, vec![Some(1); 4]), (3, vec![None, Some(2), None, Some(2)])] {
            let mut window = Window::default();
            (0..4).for_each(|_| window.arrive());
            assert_eq!((0..4).map(|_| window.take(size)).collect::<Vec<_>>(), expected);
            assert_eq!((window.held(), window.reported()), (0, 4));
        }
    }

    proptest! {
        /// Two ends with a sender that waits for credits: no more than a window is ever held, and all messages pass.
        #[test]
        fn a_window_bounds_the_held_messages(size in 1..20_u64, steps in prop::collection::vec(0..3_u8, 0..300)) {
            let (mut sender, mut receiver, mut credits) = (Window::default(), Window::default(), 0);
            for step in steps {
                match step {
                    0 if sender.out() < size => {
                        sender.send();
                        receiver.arrive();
                    }
                    1 if receiver.held() > 0 => credits += receiver.take(size).unwrap_or(0),
                    2 => sender.give(std::mem::take(&mut credits)),
                    _ => {}
                }
                prop_assert!(receiver.held() <= receiver.unreported() && receiver.unreported() <= size);
                prop_assert!(sender.returned() <= receiver.reported());
            }
            while receiver.held() > 0 {
                credits += receiver.take(size).unwrap_or(0);
            }
            sender.give(credits);
            prop_assert!(sender.out() < size.div_ceil(2).max(1) || size == 1 && sender.out() == 0);
        }
    }
}
