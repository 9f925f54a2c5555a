//! The two ends of a flow: all packets from one card to another. State machines without time; a packet is anything.

use std::collections::VecDeque;

/// Most times in a row that the timeout doubles.
pub(super) const DOUBLINGS: u32 = 6;

/// The sending end.
#[derive(Clone, Debug)]
pub struct Sending<P> {
    /// What is not acknowledged, the oldest first.
    kept: VecDeque<P>,
    /// The number of the oldest.
    base: u64,
    /// What is to be sent again next, where anything is.
    again: Option<u64>,
    window: usize,
    retries: u32,
    limit: u32,
    failed: bool,
}

/// What a timeout leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// Everything that is kept is to be sent again.
    Again,
    /// The limit is reached: the flow has failed.
    Failed,
}

impl<P> Sending<P> {
    /// A flow that keeps up to `window` packets, and gives up after `retries` timeouts in a row.
    ///
    /// # Panics
    /// When the window is empty.
    pub fn new(window: u32, retries: u32) -> Sending<P> {
        assert!(window > 0, "a window of one packet at least");
        let window = window as usize;
        Sending {
            kept: VecDeque::new(),
            base: 0,
            again: None,
            window,
            retries: 0,
            limit: retries,
            failed: false,
        }
    }

    /// Whether another packet may be sent: there is room for it, and nothing that has to go before it.
    pub fn has_room(&self) -> bool {
        self.kept.len() < self.window && self.again.is_none()
    }

    /// Whether everything is acknowledged.
    pub fn is_idle(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether the flow has failed.
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    /// The number of the next new packet.
    pub fn next(&self) -> u64 {
        self.base + self.kept.len() as u64
    }

    /// Whether the packet of this number is acknowledged.
    pub const fn is_acknowledged(&self, number: u64) -> bool {
        number < self.base
    }

    /// A packet with the number [`Sending::next`] was sent, and is kept.
    pub fn sent(&mut self, packet: P) {
        self.kept.push_back(packet);
    }

    /// The far end expects this number next, so it has all before it. Returns whether that is news.
    pub fn acknowledged(&mut self, expected: u64) -> bool {
        // Late ones say less than was known, and no honest one says more than was sent.
        if expected <= self.base || expected > self.next() {
            return false;
        }
        self.kept.drain(..(expected - self.base) as usize);
        self.base = expected;
        self.retries = 0;
        self.again = self.again.map(|number| number.max(expected)).filter(|&number| number < self.next());
        true
    }

    /// The far end has had to discard packets, since it expects this number next. Returns whether that is news.
    pub fn refused(&mut self, expected: u64) -> bool {
        let news = self.acknowledged(expected);
        if expected == self.base && !self.is_idle() {
            self.again = Some(self.base);
        }
        news
    }

    /// There was no progress in time.
    pub fn expired(&mut self) -> Expired {
        if self.retries == self.limit {
            self.failed = true;
            self.again = None;
            return Expired::Failed;
        }
        self.retries += 1;
        self.again = (!self.is_idle()).then_some(self.base);
        Expired::Again
    }

    /// How many times as long as at first the next timeout is.
    pub fn patience(&self) -> u64 {
        1 << self.retries.min(DOUBLINGS)
    }

    /// Whether something is to be sent again.
    pub const fn is_behind(&self) -> bool {
        self.again.is_some()
    }

    /// The packet that is to be sent again next.
    pub fn behind(&self) -> Option<&P> {
        self.kept.get((self.again? - self.base) as usize)
    }

    /// The packet that is sent again now, with its number.
    pub fn send_again(&mut self) -> Option<(u64, &mut P)> {
        let number = self.again?;
        self.again = Some(number + 1).filter(|&next| next < self.next());
        Some((number, &mut self.kept[(number - self.base) as usize]))
    }

    /// A packet that is not acknowledged yet.
    pub fn kept(&mut self, number: u64) -> Option<&mut P> {
        self.kept.get_mut(number.checked_sub(self.base)? as usize)
    }

    /// The packets that were never acknowledged, of a flow that has failed.
    pub fn give_up(&mut self) -> impl Iterator<Item = P> + '_ {
        self.kept.drain(..)
    }
}

/// The receiving end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receiving {
    expected: u64,
    /// Whether the sender has been told that `expected` is missing.
    refused: bool,
}

/// What becomes of a packet that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// It is the next one: it is taken, and acknowledged.
    Next,
    /// It was here before: it is discarded, and acknowledged again, since the sender may not know.
    Before,
    /// One before it is missing: it is discarded, and refused if that is the first time.
    Ahead {
        /// Whether the sender is to be told.
        refuse: bool,
    },
}

impl Receiving {
    /// The number of the packet that is taken next.
    pub const fn expected(&self) -> u64 {
        self.expected
    }

    /// A whole packet has come.
    pub fn arrived(&mut self, number: u64) -> Arrived {
        if number == self.expected {
            self.expected += 1;
            self.refused = false;
            Arrived::Next
        } else if number < self.expected {
            Arrived::Before
        } else {
            Arrived::Ahead { refuse: !std::mem::replace(&mut self.refused, true) }
        }
    }
}
