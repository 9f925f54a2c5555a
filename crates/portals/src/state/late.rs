//! Unexpected messages in flight to the entry that found them.

use crate::{Header, MeHandle};
use std::collections::BTreeMap;

/// The portal table index of redelivered messages: [`Effect::Redeliver`](crate::Effect::Redeliver). Messages of other nodes to it are
/// dropped.
pub(crate) const LATE_PT: u32 = u32::MAX - 1;

/// A message in flight.
#[derive(Clone, Copy)]
pub(crate) struct Late {
    /// The entry that found it.
    pub me: MeHandle,
    /// The overflow entry that holds its bytes.
    pub overflow: MeHandle,
    /// Its header, with the length that the overflow entry kept.
    pub header: Header,
}

/// The messages in flight, by the match bits of their headers on the way.
#[derive(Default)]
pub(crate) struct LateMessages {
    next: u64,
    messages: BTreeMap<u64, Late>,
}

impl LateMessages {
    /// Adds a message, and returns its number: the match bits of its header on the way.
    pub fn add(&mut self, late: Late) -> u64 {
        let number = self.next;
        self.next += 1;
        self.messages.insert(number, late);
        number
    }

    /// Returns the message of a header on the way.
    pub fn get(&self, header: &Header) -> Option<Late> {
        let late = self.messages.get(&header.match_bits).copied();
        late.filter(|late| late.header.length == header.length)
    }

    /// Removes the message of a header on the way, and returns it.
    pub fn take(&mut self, header: &Header) -> Option<Late> {
        let late = self.get(header)?;
        self.messages.remove(&header.match_bits);
        Some(late)
    }
}
