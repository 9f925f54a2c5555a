//! The arrival of a header at the target: translation, matching, refusals ('Matching Semantics', 'Address Translation').

use crate::state::entry::search;
use crate::state::unexpected::UnexpectedHeader;
use crate::{
    Arrival, Delivery, DropReason, DroppedMessage, Effects, FailType, Features, Header, HeaderKind,
    Interface, Limits, List, Me, MeHandle, MeOptions, Prospect,
};

/// The match entry that a message matches.
struct Found {
    me: MeHandle,
    list: List,
    position: usize,
    /// Number of match entries that the search compared.
    searched: usize,
}

/// The reason to refuse a message.
struct Refused {
    reason: DropReason,
    /// Whether the match entry disables the flow control event.
    silent: bool,
}

impl Interface {
    /// Handles the arrival of a message's header. A match takes effect at once: a use-once entry leaves its list, and a
    /// local offset moves.
    pub fn arrive(&mut self, header: &Header, effects: &mut Effects) -> Arrival {
        self.arrive_if(header, |_| true, effects)
    }

    /// Handles the arrival of a header, if the card may refuse the message. `accept` gets the handlers of the matching
    /// entry, and returns whether the card has the resources for them, such as a context. If not, the message is
    /// dropped for [`DropReason::NoContext`], and the match has no effect. With flow control, this reason disables the
    /// portal table entry.
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
        // Answers get no answer. A node does not answer a message to another node.
        if header.kind.is_request() && reason != DropReason::WrongTarget {
            self.answer(header, header.ack, fail, (0, header.remote_offset, List::Priority), effects);
        }
        Arrival::Dropped(reason)
    }

    /// Returns the match that a request would have if it arrived now, or `None` if it would not match. The call has no
    /// effect.
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

    /// Admits a request or refuses it. With flow control, a refusal for an exhausted resource disables the portal table
    /// entry.
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
        // If the offset is beyond the entry's memory, no byte is kept, and the address is the memory's end.
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
}
