//! Unexpected messages that are delivered once more, to an entry that was appended after they had come.
//!
//! Portals 4 tells the host of such a message, and the host copies it or gets it. An entry with
//! [`MeOptions::REDELIVER`] leaves that to the card: it sends the message to itself, out of the overflow
//! entry's memory ([`Effect::Redeliver`]), and the message arrives for the entry that has found it, for no
//! other, with the header that it had. Its acknowledgement was given when it came first. Until it is complete
//! its unexpected header counts, and the overflow entry is not free.

use crate::portal::LATE_PT;
use crate::unexpected::UnexpectedHeader;
use crate::{
    AckRequest, Delivery, DropReason, Effect, Effects, FailType, Header, HeaderKind, Interface, List,
    MeHandle, Prospect,
};
use std::collections::BTreeMap;

/// A message on its way.
#[derive(Clone, Copy)]
struct Late {
    /// The entry that has found it.
    me: MeHandle,
    /// The overflow entry in which its bytes lie.
    overflow: MeHandle,
    /// Its header, with the bytes that the overflow entry has kept as its length.
    header: Header,
}

/// The messages on their way, by the match bits of the header that they are sent with.
#[derive(Default)]
pub(crate) struct LateMessages {
    next: u64,
    messages: BTreeMap<u64, Late>,
}

impl Interface {
    /// Has the card deliver a message to the entry that has found it.
    pub(crate) fn redeliver(&mut self, found: &UnexpectedHeader, me: MeHandle, effects: &mut Effects) {
        let header = Header { ack: AckRequest::None, length: found.mlength, ..found.header };
        let number = self.late.next;
        self.late.next += 1;
        self.late.messages.insert(number, Late { me, overflow: found.entry, header });
        let header = Header::put(self.node, self.node, LATE_PT, number, header.length);
        effects.push(Effect::Redeliver { header, start: found.start });
    }

    /// Whether a header is one that this card sends to itself.
    pub(crate) fn is_late(&self, header: &Header) -> bool {
        (header.pt, header.source, header.kind) == (LATE_PT, self.node, HeaderKind::Put)
    }

    /// The message that comes behind such a header.
    fn late(&self, header: &Header) -> Option<Late> {
        let late = self.late.messages.get(&header.match_bits).copied();
        late.filter(|late| late.header.length == header.length)
    }

    pub(crate) fn late_prospect(&self, header: &Header) -> Option<Prospect> {
        let late = self.late(header)?;
        let handlers = self.entries.get(late.me).ok()?.me.handlers;
        let flow_control = self.table.get(late.header.pt)?.flow.is_some();
        Some(Prospect { handlers, flow_control })
    }

    /// A message has come once more. Where the card has no room to handle it, it fails, and its host is told.
    pub(crate) fn late_arrives(
        &mut self,
        header: &Header,
        accept: impl FnOnce(Option<u32>) -> bool,
        effects: &mut Effects,
    ) -> Result<Delivery, DropReason> {
        let number = header.match_bits;
        let Late { me, overflow, header } = self.late(header).ok_or(DropReason::PtInvalid)?;
        self.late.messages.remove(&number);
        let entry = self.entries.get(me).expect("an entry in use is not removed");
        let (offset, mlength) = entry.place(&header);
        let entry = entry.me;
        self.portal_of(header.pt).active += 1;
        let delivery = Delivery {
            me,
            list: List::Overflow,
            start: entry.start + offset.min(entry.length),
            mlength,
            rlength: header.length,
            remote_offset: offset,
            handlers: entry.handlers,
            user_ptr: entry.user_ptr,
            searched: 1,
            header,
            replied: false,
            unexpected: None,
            late: Some(overflow),
        };
        if accept(entry.handlers) {
            return Ok(delivery);
        }
        self.finish(&delivery, FailType::Dropped, true, effects).expect("it is not complete yet");
        Err(DropReason::NoContext)
    }
}
