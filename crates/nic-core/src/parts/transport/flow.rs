//! The two ends of a flow. A flow consists of all packets from one card to another. Each end is a state machine without
//! simulated time, generic over packets.

use std::collections::VecDeque;

/// Maximum number of consecutive doublings of the timeout.
pub(super) const DOUBLINGS: u32 = 6;

/// The sending end of a flow.
#[derive(Clone, Debug)]
pub struct Sending<P> {
    /// Unacknowledged packets, oldest first.
    kept: VecDeque<P>,
    /// The number of the oldest unacknowledged packet.
    base: u64,
    /// The next packet to resend, if any.
    again: Option<u64>,
    window: usize,
    retries: u32,
    limit: u32,
    failed: bool,
}

/// The effect of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// All unacknowledged packets must be resent.
    Again,
    /// The limit is reached: the flow has failed.
    Failed,
}

impl<P> Sending<P> {
    /// Returns the sending end of a flow. It keeps up to `window` packets, and gives up after `retries` consecutive
    /// timeouts.
    ///
    /// # Panics
    /// When `window` is zero.
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

    /// Whether a new packet may be sent: the window has room, and no older packet must be resent first.
    pub fn has_room(&self) -> bool {
        self.kept.len() < self.window && self.again.is_none()
    }

    /// Whether all packets are acknowledged.
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

    /// Whether the packet with this number is acknowledged.
    pub const fn is_acknowledged(&self, number: u64) -> bool {
        number < self.base
    }

    /// Keeps a packet that was sent with the number [`Sending::next`].
    pub fn sent(&mut self, packet: P) {
        self.kept.push_back(packet);
    }

    /// Handles an acknowledgement of all packets before `expected`. Returns whether it acknowledges a packet for the
    /// first time.
    pub fn acknowledged(&mut self, expected: u64) -> bool {
        // A late acknowledgement has a number below `base`. A valid acknowledgement has no number above that of the
        // packets sent.
        if expected <= self.base || expected > self.next() {
            return false;
        }
        self.kept.drain(..(expected - self.base) as usize);
        self.base = expected;
        self.retries = 0;
        self.again = self.again.map(|number| number.max(expected)).filter(|&number| number < self.next());
        true
    }

    /// Handles a refusal. The receiver has discarded packets because it expects packet `expected` next. Returns whether
    /// the refusal acknowledges a packet for the first time.
    pub fn refused(&mut self, expected: u64) -> bool {
        let news = self.acknowledged(expected);
        if expected == self.base && !self.is_idle() {
            self.again = Some(self.base);
        }
        news
    }

    /// Handles a timeout without progress.
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

    /// The factor between the next timeout and the first timeout.
    pub fn patience(&self) -> u64 {
        1 << self.retries.min(DOUBLINGS)
    }

    /// Whether packets must be resent.
    pub const fn is_behind(&self) -> bool {
        self.again.is_some()
    }

    /// The next packet to resend.
    pub fn behind(&self) -> Option<&P> {
        self.kept.get((self.again? - self.base) as usize)
    }

    /// Takes the packet that [`Sending::behind`] returns, to resend it now. Returns its number and the packet.
    pub fn send_again(&mut self) -> Option<(u64, &mut P)> {
        let number = self.again?;
        self.again = Some(number + 1).filter(|&next| next < self.next());
        Some((number, &mut self.kept[(number - self.base) as usize]))
    }

    /// Returns the unacknowledged packet with this number.
    pub fn kept(&mut self, number: u64) -> Option<&mut P> {
        self.kept.get_mut(number.checked_sub(self.base)? as usize)
    }

    /// Removes and returns the unacknowledged packets of a failed flow.
    pub fn give_up(&mut self) -> impl Iterator<Item = P> + '_ {
        self.kept.drain(..)
    }
}

/// The receiving end of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receiving {
    expected: u64,
    /// Whether a refusal with the number `expected` has already been requested.
    refused: bool,
}

/// The receiver's treatment of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// The packet is the next in sequence. It is accepted and acknowledged.
    Next,
    /// The packet is a duplicate. It is discarded and acknowledged again, because the acknowledgement may have been
    /// lost.
    Before,
    /// An earlier packet is missing, so the packet is discarded. Only the first such packet is answered by a refusal.
    Ahead {
        /// Whether to send a refusal.
        refuse: bool,
    },
}

impl Receiving {
    /// The number of the next packet in sequence.
    pub const fn expected(&self) -> u64 {
        self.expected
    }

    /// Handles a packet that has arrived completely.
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
