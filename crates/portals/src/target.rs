//! The target: what an arriving header matches, and what follows when its bytes are there ('Matching
//! Semantics', 'Address Translation').

use crate::initiator::amount;
use crate::list::{UnexpectedHeader, search};
use crate::{
    AckRequest, Effect, Effects, Error, Event, EventKind, FailType, Header, HeaderKind, Interface, List,
    MeHandle, MeOptions,
};
use std::fmt;

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It has matched: the card deposits its bytes and then calls [`Interface::complete`].
    Matched(Delivery),
    /// It is dropped, its payload with it. An answer that says so is among the effects where one was asked
    /// for.
    Dropped(DropReason),
    /// It was an acknowledgement, and its effects are there.
    Acknowledged,
}

/// Where the bytes of a message belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The match entry.
    pub me: MeHandle,
    /// The list it is, or was, on.
    pub list: List,
    /// Host address of the message's first byte.
    pub start: u64,
    /// Bytes to keep: the first ones of the message. Where handlers dropped some of them, the card lowers it
    /// before [`Interface::complete`], and events, counts and the acknowledgement follow it.
    pub mlength: u64,
    /// Bytes the message has.
    pub rlength: u64,
    /// Where the message begins in the entry's memory, in bytes.
    pub remote_offset: u64,
    /// The entry's handlers.
    pub handlers: Option<u32>,
    /// The entry's user word.
    pub user_ptr: u64,
    /// Match entries that were looked at.
    pub searched: u32,
    /// The message's header.
    pub header: Header,
    unexpected: Option<u64>,
}

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $fail:ident;)*) => {
        /// Why a message was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DropReason { $($(#[$doc])* $name),* }

        impl DropReason {
            /// All reasons.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$name),*];

            /// What an initiator that asked for an acknowledgement is told.
            pub const fn fail_type(self) -> FailType {
                match self { $(DropReason::$name => FailType::$fail),* }
            }
        }

        impl fmt::Display for DropReason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(DropReason::$name => $text),* })
            }
        }
    };
}

drop_reasons! {
    /// No match entry took it.
    NoMatch = "no match entry takes it", Dropped;
    /// Its portal table entry does not exist.
    PtInvalid = "its portal table index is not in use", Dropped;
    /// Its portal table entry is disabled.
    PtDisabled = "its portal table entry is disabled", PtDisabled;
    /// The match entry does not allow the operation.
    OpViolation = "the match entry does not allow this operation", OpViolation;
    /// It matched on the overflow list, and there is no room for one more unexpected header.
    NoUnexpectedHeader = "there is no room for one more unexpected header", Dropped;
    /// It is for another node.
    WrongTarget = "it is for another node", Undeliverable;
    /// The target does not know this kind of operation.
    Unsupported = "this operation is not supported", Unsupported;
    /// It answers an operation that does not wait for an answer.
    StrayAnswer = "it answers no operation that waits", Dropped;
}

impl Interface {
    /// The header of a message has arrived. A match takes effect here: a use-once entry is off its list, and
    /// a local offset has moved.
    pub fn arrive(&mut self, header: &Header, effects: &mut Effects) -> Arrival {
        match self.translate(header, effects) {
            Ok(arrival) => arrival,
            Err(reason) => {
                self.statistics.dropped[reason as usize] += 1;
                // Answers are not answered, and nobody answers for another node.
                if header.kind == HeaderKind::Put && reason != DropReason::WrongTarget {
                    self.answer(header, header.ack, reason.fail_type(), 0, header.remote_offset, effects);
                }
                Arrival::Dropped(reason)
            }
        }
    }

    /// Every byte of the message is deposited, or will not be: `outcome` says which. Events, the
    /// acknowledgement, counts and triggered operations follow, in that order.
    ///
    /// # Errors
    /// [`Error::Stale`] or [`Error::ArgInvalid`] for a delivery that was completed before.
    pub fn complete(
        &mut self,
        delivery: &Delivery,
        outcome: FailType,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        let Delivery { header, remote_offset, .. } = delivery;
        let entry = self.entries.get_mut(delivery.me)?;
        let portal =
            self.table[entry.pt as usize].as_ref().expect("a portal table entry in use is not freed");
        let deposited = delivery.unexpected.is_some_and(|id| !portal.awaits(id));
        if entry.pending == 0 || deposited {
            return Err(Error::ArgInvalid("this message is complete already"));
        }
        entry.pending -= 1;
        let (me, pt, eq) = (entry.me, entry.pt, portal.eq);
        let mlength = if outcome.is_ok() { delivery.mlength } else { 0 };
        let disabled = me.options.contains(MeOptions::EVENT_COMM_DISABLE)
            || (outcome.is_ok() && me.options.contains(MeOptions::EVENT_SUCCESS_DISABLE));
        if !disabled {
            let event = Event {
                fail: outcome,
                pt,
                list: delivery.list,
                match_bits: header.match_bits,
                hdr_data: header.hdr_data,
                rlength: header.length,
                mlength,
                remote_offset: *remote_offset,
                start: delivery.start,
                ..Event::new(EventKind::Put, header.source, me.user_ptr)
            };
            self.post(eq, event, effects);
        }
        self.settle(delivery.me, effects);
        let ack = if me.options.contains(MeOptions::ACK_DISABLE) { AckRequest::None } else { header.ack };
        self.answer(header, ack, outcome, mlength, *remote_offset, effects);
        if let (Some(ct), true) = (me.ct, me.options.contains(MeOptions::EVENT_CT_COMM)) {
            let by = amount(outcome, me.options.contains(MeOptions::EVENT_CT_BYTES), mlength);
            self.count(ct, by, effects);
        }
        if let Some(id) = delivery.unexpected {
            self.deposited_unexpected(pt, id, delivery.mlength, outcome, effects);
        }
        Ok(())
    }

    fn translate(&mut self, header: &Header, effects: &mut Effects) -> Result<Arrival, DropReason> {
        if header.target != self.node {
            return Err(DropReason::WrongTarget);
        }
        match header.kind {
            HeaderKind::Put => self.match_put(header).map(Arrival::Matched),
            HeaderKind::Ack if self.acknowledged(header, effects) => Ok(Arrival::Acknowledged),
            HeaderKind::Ack => Err(DropReason::StrayAnswer),
            HeaderKind::Get
            | HeaderKind::Reply
            | HeaderKind::Atomic
            | HeaderKind::FetchAtomic
            | HeaderKind::Swap => Err(DropReason::Unsupported),
        }
    }

    fn match_put(&mut self, header: &Header) -> Result<Delivery, DropReason> {
        let portal = self.table.get_mut(header.pt as usize).and_then(Option::as_mut);
        let portal = portal.ok_or(DropReason::PtInvalid)?;
        if portal.disabled {
            return Err(DropReason::PtDisabled);
        }
        let (list, position, before) = match search(&portal.priority, &self.entries, header) {
            Some(position) => (List::Priority, position, 0),
            None => {
                let position = search(&portal.overflow, &self.entries, header).ok_or(DropReason::NoMatch)?;
                (List::Overflow, position, portal.priority.len())
            }
        };
        let me = portal.list(list)[position].entry;
        let entry = self.entries.get_mut(me).expect("an entry on a list is not removed");
        if !entry.me.options.contains(MeOptions::OP_PUT) {
            return Err(DropReason::OpViolation);
        }
        let remembered =
            list == List::Overflow && !entry.me.options.contains(MeOptions::UNEXPECTED_HDR_DISABLE);
        if remembered && self.unexpected >= self.limits.unexpected_headers {
            return Err(DropReason::NoUnexpectedHeader);
        }
        let (offset, room) = entry.place(header);
        let mlength = header.length.min(room);
        let mut delivery = Delivery {
            me,
            list,
            // An offset beyond the entry keeps no byte; its address is the end of the entry.
            start: entry.me.start + offset.min(entry.me.length),
            mlength,
            rlength: header.length,
            remote_offset: offset,
            handlers: entry.me.handlers,
            user_ptr: entry.me.user_ptr,
            searched: (before + position + 1) as u32,
            header: *header,
            unexpected: None,
        };
        entry.pending += 1;
        let mut used_up = entry.me.options.contains(MeOptions::USE_ONCE);
        if entry.me.options.contains(MeOptions::MANAGE_LOCAL) {
            entry.local_offset += mlength;
            used_up |= entry.me.length - entry.local_offset < entry.me.min_free;
        }
        if remembered {
            let id = portal.next_unexpected;
            portal.next_unexpected += 1;
            self.unexpected += 1;
            entry.headers += 1;
            delivery.unexpected = Some(id);
            portal.unexpected.push_back(UnexpectedHeader {
                id,
                header: *header,
                entry: me,
                offset,
                start: delivery.start,
                mlength,
                outcome: None,
                claimed: None,
            });
        }
        if used_up {
            self.unlink_used(me, position);
        }
        match list {
            List::Priority => self.statistics.matched += 1,
            List::Overflow => self.statistics.matched_overflow += 1,
        }
        self.statistics.truncated += u64::from(mlength < header.length);
        Ok(delivery)
    }

    /// The bytes of a message on the overflow list are there.
    fn deposited_unexpected(
        &mut self,
        pt: u32,
        id: u64,
        mlength: u64,
        outcome: FailType,
        effects: &mut Effects,
    ) {
        let portal = self.table[pt as usize].as_mut().expect("a portal table entry in use is not freed");
        let at = portal.unexpected.binary_search_by_key(&id, |u| u.id);
        let at = at.expect("an unexpected header stays until its bytes are there");
        let unexpected = &mut portal.unexpected[at];
        (unexpected.outcome, unexpected.mlength) = (Some(outcome), mlength);
        if unexpected.claimed.is_some() {
            let unexpected = portal.unexpected.remove(at).expect("it was just found");
            self.complete_unexpected(&unexpected, effects);
        }
    }

    /// An unexpected header that was taken off its list has found its match entry, and its bytes are there.
    pub(crate) fn complete_unexpected(&mut self, unexpected: &UnexpectedHeader, effects: &mut Effects) {
        let UnexpectedHeader { header, outcome: Some(outcome), claimed: Some(handle), .. } = *unexpected
        else {
            unreachable!("the callers take complete headers that an entry has claimed");
        };
        let mlength = if outcome.is_ok() { unexpected.mlength } else { 0 };
        let entry = self.entries.get_mut(handle).expect("an entry in use is not removed");
        entry.pending -= 1;
        let me = entry.me;
        let disabled = me.options.contains(MeOptions::EVENT_OVER_DISABLE)
            || (outcome.is_ok() && me.options.contains(MeOptions::EVENT_SUCCESS_DISABLE));
        if !disabled {
            let event = Event {
                fail: outcome,
                pt: header.pt,
                list: List::Overflow,
                match_bits: header.match_bits,
                hdr_data: header.hdr_data,
                rlength: header.length,
                mlength,
                remote_offset: unexpected.offset,
                start: unexpected.start,
                ..Event::new(EventKind::PutOverflow, header.source, me.user_ptr)
            };
            let eq = self.table[header.pt as usize].as_ref().and_then(|portal| portal.eq);
            self.post(eq, event, effects);
        }
        self.settle(handle, effects);
        self.unexpected -= 1;
        self.entries.get_mut(unexpected.entry).expect("an entry in use is not removed").headers -= 1;
        self.settle(unexpected.entry, effects);
        if let (Some(ct), true) = (me.ct, me.options.contains(MeOptions::EVENT_CT_OVERFLOW)) {
            let by = amount(outcome, me.options.contains(MeOptions::EVENT_CT_BYTES), mlength);
            self.count(ct, by, effects);
        }
    }

    /// Answers a put that asked for it with `ack`. An entry with `ACK_DISABLE` answers too, with nothing but
    /// the end of the operation, so that the initiator does not hold it for ever.
    fn answer(
        &mut self,
        header: &Header,
        ack: AckRequest,
        fail: FailType,
        mlength: u64,
        offset: u64,
        effects: &mut Effects,
    ) {
        if header.ack == AckRequest::None {
            return;
        }
        effects.push(Effect::Ack(Header {
            kind: HeaderKind::Ack,
            ack,
            fail,
            source: self.node,
            target: header.source,
            length: mlength,
            remote_offset: offset,
            hdr_data: 0,
            ..*header
        }));
    }
}
