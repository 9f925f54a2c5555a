//! Unexpected headers: messages that matched on the overflow list and that no append or search has taken.

use crate::{Event, EventKind, FailType, Header, List, Me, MeHandle};

/// A message that matched on the overflow list and has not been taken yet.
#[derive(Clone, Copy)]
pub(crate) struct UnexpectedHeader {
    /// A number that increases along the list.
    pub id: u64,
    pub header: Header,
    /// The overflow entry that holds the message's bytes.
    pub entry: MeHandle,
    pub offset: u64,
    pub start: u64,
    pub mlength: u64,
    /// The outcome of the message, once it is complete.
    pub outcome: Option<FailType>,
    /// The appended entry that took the header before the message's bytes were deposited.
    pub claimed: Option<MeHandle>,
}

impl UnexpectedHeader {
    /// Returns the event that reports the message to the user of the appended entry `me`.
    pub fn event(&self, kind: EventKind, fail: FailType, me: &Me) -> Event {
        let header = &self.header;
        Event {
            fail,
            pt: header.pt,
            list: List::Overflow,
            match_bits: header.match_bits,
            uid: header.uid,
            atomic: header.atomic,
            hdr_data: header.hdr_data,
            rlength: header.length,
            mlength: if fail.is_ok() { self.mlength } else { 0 },
            remote_offset: self.offset,
            start: self.start,
            ..Event::new(kind, header.source, me.user_ptr)
        }
    }
}
