//! Redelivery of unexpected messages to an entry appended after their arrival.
//!
//! In Portals 4, the card reports such a message to the host, and the host copies or gets its bytes. With
//! [`MeOptions::REDELIVER`](crate::MeOptions::REDELIVER) the card moves the bytes. It sends the message to itself, from
//! the overflow entry's memory ([`Effect::Redeliver`](crate::Effect::Redeliver)). Only the match entry that found the
//! message receives it, with the original header. The card has already acknowledged the message at its first arrival.
//! Until the redelivered message is complete, its unexpected header counts against the limit, and the overflow entry is
//! in use.

use crate::state::late::{LATE_PT, Late};
use crate::{Delivery, DropReason, Effects, FailType, Header, HeaderKind, Interface, List, Prospect};

impl Interface {
    /// Returns whether a header is that of a message that this card redelivers to itself.
    pub(crate) fn is_late(&self, header: &Header) -> bool {
        (header.pt, header.source, header.kind) == (LATE_PT, self.node, HeaderKind::Put)
    }

    pub(crate) fn late_prospect(&self, header: &Header) -> Option<Prospect> {
        let late = self.late.get(header)?;
        let handlers = self.entries.get(late.me).ok()?.me.handlers;
        let flow_control = self.table.get(late.header.pt)?.flow.is_some();
        Some(Prospect { handlers, flow_control })
    }

    /// Handles the arrival of a redelivered message. If the card has no room to handle the message, it fails, and the
    /// host gets an event.
    pub(crate) fn late_arrives(
        &mut self,
        header: &Header,
        accept: impl FnOnce(Option<u32>) -> bool,
        effects: &mut Effects,
    ) -> Result<Delivery, DropReason> {
        let Late { me, overflow, header } = self.late.take(header).ok_or(DropReason::PtInvalid)?;
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
