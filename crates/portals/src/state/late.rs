//! Unexpected messages in flight to the entry that found them.

use crate::{Header, MeHandle};
use std::collections::BTreeMap;

/// The portal table index in the headers of redelivered messages ([`Effect::Redeliver`](crate::Effect::Redeliver)).
/// Messages of other nodes with this index are dropped.
pub(crate) const LATE_PT: u32 = u32::MAX - 1;

/// A redelivered message in flight.
#[derive(Clone, Copy)]
pub(crate) struct Late {
    /// The match entry that found the message.
    pub me: MeHandle,
    /// The overflow entry that holds the message's bytes.
    pub overflow: MeHandle,
    /// The message's original header, but with the number of bytes that the overflow entry kept as its length.
    pub header: Header,
}

/// The redelivered messages in flight. Each has a number, which is the match bits of the header with which it travels.
#[derive(Default)]
pub(crate) struct LateMessages {
    next: u64,
    messages: BTreeMap<u64, Late>,
}

impl LateMessages {
    /// Adds a message, and returns its number.
    pub fn add(&mut self, late: Late) -> u64 {
        let number = self.next;
        self.next += 1;
        self.messages.insert(number, late);
        number
    }

    /// Returns the message that belongs to an arrived header.
    pub fn get(&self, header: &Header) -> Option<Late> {
        let late = self.messages.get(&header.match_bits).copied();
        late.filter(|late| late.header.length == header.length)
    }

    /// Removes and returns the message that belongs to an arrived header.
    pub fn take(&mut self, header: &Header) -> Option<Late> {
        let late = self.get(header)?;
        self.messages.remove(&header.match_bits);
        Some(late)
    }
}
