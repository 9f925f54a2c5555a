//! The target: the match of an arriving header, and the effects after its payload ('Matching Semantics', 'Address Translation').

use crate::diagnosis::DroppedMessage;
use crate::list::search;
use crate::unexpected::UnexpectedHeader;
use crate::{
    AckRequest, Arrival, Delivery, DropReason, Effect, Effects, Error, Event, EventKind, FailType, Features,
    Header, HeaderKind, Interface, Limits, List, Me, MeHandle, MeOptions, Prospect,
};

/// The match of a message.
struct Found {
    me: MeHandle,
    list: List,
    position: usize,
    /// Match entries searched.
    searched: usize,
}

/// The reason for a refused message.
struct Refused {
    reason: DropReason,
    /// Its entry disables flow control events.
    silent: bool,
}

impl Interface {
    /// Handles the arrival of a message's header. A match takes effect now: a use-once entry is off its list, and a local offset has moved.
    pub fn arrive(&mut self, header: &Header, effects: &mut Effects) -> Arrival {
        self.arrive_if(header, |_| true, effects)
    }

    /// Handles a header that the card may refuse. `accept` gets the handlers of the matching entry, and returns whether the card has room,
    /// such as a context. A refused message is dropped for [`DropReason::NoContext`], on which flow control acts, and the match has no
    /// effect.
    pub fn arrive_if(
        &mut self,
        header: &Header,
        accept: impl FnOnce(Option<u32>) -> bool,
        effects: &mut Effects,
    ) -> Arrival {
        let (reason, fail) = match self.translate(header, accept, effects) {
            Ok(arrival) => return arrival,
            Err(refused) => refused,
        };
        self.statistics.dropped[reason as usize] += 1;
        self.statistics.first_dropped.get_or_insert(DroppedMessage {
            kind: header.kind,
            source: header.source,
            pt: header.pt,
            match_bits: header.match_bits,
            reason,
        });
        // Answers get no answer, and no node answers for another.
        if header.kind.is_request() && reason != DropReason::WrongTarget {
            self.answer(header, header.ack, fail, (0, header.remote_offset, List::Priority), effects);
        }
        Arrival::Dropped(reason)
    }

    /// Returns the match of a request that would arrive now, without any effect; `None` if it would not match.
    pub fn prospect(&self, header: &Header) -> Option<Prospect> {
        if self.is_late(header) {
            return self.late_prospect(header);
        }
        let portal = self.table.get(header.pt).filter(|portal| !portal.disabled)?;
        if header.target != self.node || !header.kind.is_request() {
            return None;
        }
        let found = self.find(header)?;
        let handlers = self.entries.get(found.me).ok()?.me.handlers;
        Some(Prospect { handlers, flow_control: portal.flow.is_some() })
    }

    /// Reports that the card has carried out the [`Delivery`] of the message or has failed, as `outcome` says. Events, the acknowledgement,
    /// counts and triggered operations follow, in that order. An operation that ends with a reply may have sent no byte if it fails: the
    /// failing reply is among the effects.
    ///
    /// # Errors
    /// [`Error::Stale`] or [`Error::ArgInvalid`] for a delivery that was completed before.
    pub fn complete(
        &mut self,
        delivery: &Delivery,
        outcome: FailType,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        self.finish(delivery, outcome, true, effects)
    }

    /// Completes a message that handlers have consumed, without an event or a count. Its initiator gets the requested acknowledgement. With
    /// [`Interface::me_hold`] the entry stays open for messages that end with an event.
    ///
    /// # Errors
    /// As [`Interface::complete`].
    pub fn complete_silently(&mut self, delivery: &Delivery, effects: &mut Effects) -> Result<(), Error> {
        self.finish(delivery, FailType::Ok, false, effects)
    }

    pub(crate) fn finish(
        &mut self,
        delivery: &Delivery,
        outcome: FailType,
        audible: bool,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        let Delivery { header, remote_offset, .. } = delivery;
        let entry = self.entries.get_mut(delivery.me)?;
        let pt = entry.pt;
        let portal = self.table.get_mut(pt).expect("a portal table entry in use is not freed");
        let deposited = delivery.unexpected.is_some_and(|id| !portal.awaits(id));
        if entry.pending == 0 || deposited {
            return Err(Error::ArgInvalid("this message is complete already"));
        }
        entry.pending -= 1;
        portal.active -= 1;
        let me = entry.me;
        let mlength = if outcome.is_ok() { delivery.mlength } else { 0 };
        if !me.options.contains(MeOptions::EVENT_COMM_DISABLE) {
            let told = audible && !(outcome.is_ok() && me.options.contains(MeOptions::EVENT_SUCCESS_DISABLE));
            let event = Event {
                fail: outcome,
                pt,
                list: delivery.list,
                match_bits: header.match_bits,
                uid: header.uid,
                atomic: header.atomic,
                hdr_data: header.hdr_data,
                rlength: header.length,
                mlength,
                remote_offset: *remote_offset,
                start: delivery.start,
                ..Event::new(EventKind::of(header.kind, List::Priority), header.source, me.user_ptr)
            };
            self.post_expected(pt, told.then_some(event), effects);
        }
        self.settle(delivery.me, effects);
        let ack = if me.options.contains(MeOptions::ACK_DISABLE) { AckRequest::None } else { header.ack };
        if !delivery.replied {
            self.answer(header, ack, outcome, (mlength, *remote_offset, delivery.list), effects);
        }
        if audible {
            self.count_entry(&me, MeOptions::EVENT_CT_COMM, outcome, mlength, effects);
        }
        if let Some(id) = delivery.unexpected {
            self.deposited_unexpected(pt, id, delivery.mlength, outcome, effects);
        }
        if let Some(overflow) = delivery.late {
            self.forget_unexpected(overflow, effects);
        }
        self.notify(pt, effects);
        Ok(())
    }

    fn translate(
        &mut self,
        header: &Header,
        accept: impl FnOnce(Option<u32>) -> bool,
        effects: &mut Effects,
    ) -> Result<Arrival, (DropReason, FailType)> {
        let refuse = |reason: DropReason| Err((reason, reason.fail_type()));
        if header.target != self.node {
            return refuse(DropReason::WrongTarget);
        }
        if self.is_late(header) {
            return match self.late_arrives(header, accept, effects) {
                Ok(delivery) => Ok(Arrival::Matched(delivery)),
                Err(reason) => refuse(reason),
            };
        }
        if !self.supports(header) {
            return refuse(DropReason::Unsupported);
        }
        match header.kind {
            HeaderKind::Ack if self.acknowledged(header, effects) => Ok(Arrival::Acknowledged),
            HeaderKind::Reply => match self.replied(header) {
                Some(reply) => Ok(Arrival::Reply(reply)),
                None => refuse(DropReason::StrayAnswer),
            },
            HeaderKind::Ack => refuse(DropReason::StrayAnswer),
            _ => self.let_in(header, accept, effects).map(Arrival::Matched),
        }
    }

    /// Returns whether the card supports the message's operation.
    fn supports(&self, header: &Header) -> bool {
        let Limits { features, atomic_bytes, fetch_atomic_bytes, .. } = self.limits;
        let able = match header.kind {
            HeaderKind::Put | HeaderKind::Ack => true,
            HeaderKind::Get => features.contains(Features::GET),
            HeaderKind::Reply => !features.is_empty(),
            HeaderKind::Atomic => features.contains(Features::ATOMIC) && header.length <= atomic_bytes,
            HeaderKind::FetchAtomic | HeaderKind::Swap => {
                features.contains(Features::ATOMIC) && header.length <= fetch_atomic_bytes
            }
        };
        able && header.check().is_ok()
    }

    /// Admits a request, or disables its portal table entry if flow control says so.
    fn let_in(
        &mut self,
        header: &Header,
        accept: impl FnOnce(Option<u32>) -> bool,
        effects: &mut Effects,
    ) -> Result<Delivery, (DropReason, FailType)> {
        let refuse = |reason: DropReason| (reason, reason.fail_type());
        let portal = self.table.get(header.pt);
        let portal = portal.ok_or(refuse(DropReason::PtInvalid))?;
        if portal.disabled {
            return Err(refuse(DropReason::PtDisabled));
        }
        let controlled = portal.flow.is_some();
        self.try_match(header, accept).map_err(|Refused { reason, silent }| {
            if controlled && reason.is_exhaustion() {
                self.exhausted(header.pt, silent, effects);
                return (reason, FailType::PtDisabled);
            }
            refuse(reason)
        })
    }

    fn find(&self, header: &Header) -> Option<Found> {
        let portal = self.table.get(header.pt).expect("the caller has looked at it");
        if let Some(position) = search(&portal.priority, &self.entries, header) {
            let me = portal.priority[position].entry;
            return Some(Found { me, list: List::Priority, position, searched: position + 1 });
        }
        let position = search(&portal.overflow, &self.entries, header)?;
        let (me, searched) = (portal.overflow[position].entry, portal.priority.len() + position + 1);
        Some(Found { me, list: List::Overflow, position, searched })
    }

    /// Matches a request. A refusal changes no state.
    fn try_match(
        &mut self,
        header: &Header,
        accept: impl FnOnce(Option<u32>) -> bool,
    ) -> Result<Delivery, Refused> {
        let found = self.find(header).ok_or(Refused { reason: DropReason::NoMatch, silent: false })?;
        let Found { me, list, position, searched } = found;
        let entry = self.entries.get(me).expect("an entry on a list is not removed");
        let options = entry.me.options;
        let refused =
            |reason| Refused { reason, silent: options.contains(MeOptions::EVENT_FLOWCTRL_DISABLE) };
        if let Some(reason) = entry.me.refuses(header) {
            return Err(refused(reason));
        }
        let remembered = list == List::Overflow && !options.contains(MeOptions::UNEXPECTED_HDR_DISABLE);
        if remembered && self.unexpected >= self.limits.unexpected_headers {
            return Err(refused(DropReason::NoUnexpectedHeader));
        }
        let (offset, mlength) = entry.place(header);
        let managed = options.contains(MeOptions::MANAGE_LOCAL);
        let left = entry.me.length.saturating_sub(entry.local_offset);
        let used_up = options.contains(MeOptions::USE_ONCE) || managed && left - mlength < entry.me.min_free;
        let Me { start, length, handlers, user_ptr, .. } = entry.me;
        if !accept(handlers) {
            return Err(refused(DropReason::NoContext));
        }
        let mut events = u32::from(!options.contains(MeOptions::EVENT_COMM_DISABLE));
        if used_up && !options.contains(MeOptions::EVENT_UNLINK_DISABLE) {
            events += if list == List::Overflow { 2 } else { 1 };
        }
        self.expect_events(header.pt, events).map_err(|_| refused(DropReason::NoEventRoom))?;

        let entry = self.entries.get_mut(me).expect("it was just looked at");
        entry.pending += 1;
        if managed {
            entry.local_offset += mlength;
        }
        self.portal_of(header.pt).active += 1;
        // An offset beyond the entry keeps no byte; its address is the end of the entry.
        let start = start + offset.min(length);
        let unexpected = remembered.then(|| {
            let (header, outcome, claimed) = (*header, None, None);
            self.remember(UnexpectedHeader {
                id: 0,
                header,
                entry: me,
                offset,
                start,
                mlength,
                outcome,
                claimed,
            })
        });
        if used_up {
            self.unlink_used(me, position);
        }
        match list {
            List::Priority => self.statistics.matched += 1,
            List::Overflow => self.statistics.matched_overflow += 1,
        }
        self.statistics.truncated += u64::from(mlength < header.length);
        Ok(Delivery {
            me,
            list,
            start,
            mlength,
            rlength: header.length,
            remote_offset: offset,
            handlers,
            user_ptr,
            searched: searched as u32,
            header: *header,
            replied: false,
            unexpected,
            late: None,
        })
    }

    /// Answers a put or atomic with the `ack` that it requested, and a failed fetching operation with a reply. An entry with `ACK_DISABLE`
    /// acknowledges too, but only the end of the operation, so that the initiator does not wait for ever. The answer has the bytes kept,
    /// the offset used and the list of the entry.
    fn answer(
        &mut self,
        header: &Header,
        ack: AckRequest,
        fail: FailType,
        (mlength, offset, list): (u64, u64, List),
        effects: &mut Effects,
    ) {
        if header.kind.wants_reply() {
            if !fail.is_ok() {
                effects.push(Effect::Ack(header.reply(fail, 0, offset)));
            }
        } else if header.ack != AckRequest::None {
            effects.push(Effect::Ack(Header { list, ..header.acknowledgement(ack, fail, mlength, offset) }));
        }
    }
}
