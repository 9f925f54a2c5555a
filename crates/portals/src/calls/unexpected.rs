//! Unexpected headers: messages that matched on the overflow list and that no append or search has taken ('Overflow List', `PtlMEAppend`,
//! `PtlMESearch`).

use crate::state::entry::{Entry, Key, fits};
use crate::state::late::{LATE_PT, Late};
use crate::state::unexpected::UnexpectedHeader;
use crate::{
    AckRequest, Effect, Effects, EventKind, FailType, Header, HeaderKind, Interface, List, Me, MeHandle,
    MeOptions,
};

/// Returns whether the card redelivers this message to the match entry, instead of only posting an event.
const fn redelivers(me: &Me, header: &Header) -> bool {
    me.options.contains(MeOptions::REDELIVER) && matches!(header.kind, HeaderKind::Put)
}

/// Returns the option that suppresses events for the unexpected headers that a match entry takes.
pub(crate) const fn untold(me: &Me) -> MeOptions {
    match me.options.contains(MeOptions::REDELIVER) {
        true => MeOptions::EVENT_COMM_DISABLE,
        false => MeOptions::EVENT_OVER_DISABLE,
    }
}

/// The criteria of an append or a search.
pub(crate) struct Wanted {
    pub me: Me,
    key: Key,
    pub once: bool,
}

impl Wanted {
    pub fn new(me: &Me, handle: MeHandle) -> Wanted {
        Wanted { me: *me, key: Key::new(me, handle), once: me.options.contains(MeOptions::USE_ONCE) }
    }

    /// Returns whether the match entry takes the unexpected header. The entry must match, allow the operation and have
    /// room for the message.
    pub fn takes(&self, unexpected: &UnexpectedHeader) -> bool {
        let header = &unexpected.header;
        unexpected.claimed.is_none()
            && self.key.matches(header)
            && self.me.refuses(header).is_none()
            && fits(&self.me, 0, header)
    }
}

impl Interface {
    /// Returns the number of headers that an append or a search would take.
    pub(crate) fn survey(&mut self, pt: u32, wanted: &Wanted) -> u32 {
        let limit = if wanted.once { 1 } else { usize::MAX };
        let unexpected = &self.portal_of(pt).unexpected;
        unexpected.iter().filter(|u| wanted.takes(u)).take(limit).count() as u32
    }

    /// Compares a new match entry with the unexpected headers. Returns whether the entry is used up. A search always
    /// uses its entry up.
    pub(crate) fn take_unexpected(&mut self, handle: MeHandle, search: bool, effects: &mut Effects) -> bool {
        let entry = self.entries.get_mut(handle).expect("the entry was just made");
        let wanted = Wanted::new(&entry.me, handle);
        let portal = self.table.get_mut(entry.pt).expect("the entry was just appended to it");
        let mut taken = 0;
        portal.unexpected.retain_mut(|unexpected| {
            if wanted.once && taken > 0 || !wanted.takes(unexpected) {
                return true;
            }
            taken += 1;
            entry.pending += 1;
            unexpected.claimed = Some(handle);
            if unexpected.outcome.is_none() {
                return true;
            }
            self.found.push(*unexpected);
            false
        });
        let used_up = search || wanted.once && taken > 0;
        entry.linked = !used_up;
        let mut found = std::mem::take(&mut self.found);
        for unexpected in found.drain(..) {
            self.complete_unexpected(&unexpected, effects);
        }
        self.found = found;
        used_up
    }

    /// Adds an unexpected header for a message that matched on the overflow list.
    pub(crate) fn remember(&mut self, unexpected: UnexpectedHeader) -> u64 {
        self.unexpected += 1;
        let entry: &mut Entry = self.entries.get_mut(unexpected.entry).expect("the entry was just found");
        entry.headers += 1;
        let portal = self.portal_of(unexpected.header.pt);
        let id = portal.next_unexpected;
        portal.next_unexpected += 1;
        portal.unexpected.push_back(UnexpectedHeader { id, ..unexpected });
        id
    }

    /// Handles the end of a message that matched on the overflow list. The card has deposited its bytes, or has failed.
    pub(crate) fn deposited_unexpected(
        &mut self,
        pt: u32,
        id: u64,
        mlength: u64,
        outcome: FailType,
        effects: &mut Effects,
    ) {
        let portal = self.portal_of(pt);
        let at = portal.unexpected.binary_search_by_key(&id, |u| u.id);
        let at = at.expect("an unexpected header stays until its bytes are there");
        let unexpected = &mut portal.unexpected[at];
        (unexpected.outcome, unexpected.mlength) = (Some(outcome), mlength);
        if unexpected.claimed.is_some() {
            let unexpected = portal.unexpected.remove(at).expect("it was just found");
            self.complete_unexpected(&unexpected, effects);
        }
    }

    /// Completes an unexpected header that a match entry has taken. The message's bytes have been deposited.
    fn complete_unexpected(&mut self, unexpected: &UnexpectedHeader, effects: &mut Effects) {
        let UnexpectedHeader { header, outcome: Some(outcome), claimed: Some(handle), .. } = *unexpected
        else {
            unreachable!("the callers take complete headers that an entry has claimed");
        };
        let entry = self.entries.get_mut(handle).expect("an entry in use is not removed");
        if redelivers(&entry.me, &header) && outcome.is_ok() {
            return self.redeliver(unexpected, handle, effects);
        }
        entry.pending -= 1;
        let me = entry.me;
        let event = unexpected.event(EventKind::of(header.kind, List::Overflow), outcome, &me);
        if !me.options.contains(untold(&me)) {
            let told = !(outcome.is_ok() && me.options.contains(MeOptions::EVENT_SUCCESS_DISABLE));
            self.post_expected(header.pt, told.then_some(event), effects);
        }
        self.settle(handle, effects);
        self.forget_unexpected(unexpected.entry, effects);
        self.count_entry(&me, MeOptions::EVENT_CT_OVERFLOW, outcome, event.mlength, effects);
    }

    /// Adds the effect that redelivers a message to the match entry that found it.
    fn redeliver(&mut self, found: &UnexpectedHeader, me: MeHandle, effects: &mut Effects) {
        let header = Header { ack: AckRequest::None, length: found.mlength, ..found.header };
        let number = self.late.add(Late { me, overflow: found.entry, header });
        let header = Header::put(self.node, self.node, LATE_PT, number, header.length);
        effects.push(Effect::Redeliver { header, start: found.start });
    }

    /// Removes an unexpected header. After its last header, the overflow entry is freed.
    pub(crate) fn forget_unexpected(&mut self, entry: MeHandle, effects: &mut Effects) {
        self.unexpected -= 1;
        self.entries.get_mut(entry).expect("an entry in use is not removed").headers -= 1;
        self.settle(entry, effects);
    }
}
