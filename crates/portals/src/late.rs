//! Redelivery of unexpected messages to an entry appended after their arrival.
//!
//! Portals 4 reports such a message to the host, and the host copies it or gets it. With [`MeOptions::REDELIVER`] the card does that. It
//! sends the message to itself, from the overflow entry's memory and with the original header ([`Effect::Redeliver`]). The message goes
//! only to the entry that found it. Its acknowledgement was sent at the first arrival. Until the message is complete, its unexpected header
//! counts, and the overflow entry is in use.

use crate::portal::LATE_PT;
use crate::unexpected::UnexpectedHeader;
use crate::{
    AckRequest, Delivery, DropReason, Effect, Effects, FailType, Header, HeaderKind, Interface, List,
    MeHandle, Prospect,
};
use std::collections::BTreeMap;

/// A message in flight.
#[derive(Clone, Copy)]
struct Late {
    /// The entry that found it.
    me: MeHandle,
    /// The overflow entry that holds its bytes.
    overflow: MeHandle,
    /// Its header, with the length that the overflow entry kept.
    header: Header,
}

/// The messages in flight, by the match bits of their headers on the way.
#[derive(Default)]
pub(crate) struct LateMessages {
    next: u64,
    messages: BTreeMap<u64, Late>,
}

impl Interface {
    /// Sends a message to the entry that found it.
    pub(crate) fn redeliver(&mut self, found: &UnexpectedHeader, me: MeHandle, effects: &mut Effects) {
        let header = Header { ack: AckRequest::None, length: found.mlength, ..found.header };
        let number = self.late.next;
        self.late.next += 1;
        self.late.messages.insert(number, Late { me, overflow: found.entry, header });
        let header = Header::put(self.node, self.node, LATE_PT, number, header.length);
        effects.push(Effect::Redeliver { header, start: found.start });
    }

    /// Returns whether a header is one that this card sends to itself.
    pub(crate) fn is_late(&self, header: &Header) -> bool {
        (header.pt, header.source, header.kind) == (LATE_PT, self.node, HeaderKind::Put)
    }

    /// Returns the message of such a header.
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

    /// Handles the arrival of a redelivered message. If the card has no room to handle it, it fails with an event to the host.
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
