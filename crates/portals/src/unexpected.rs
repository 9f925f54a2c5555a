//! Unexpected headers: messages that matched on the overflow list and that no append or search has taken ('Overflow List', `PtlMEAppend`,
//! `PtlMESearch`).

use crate::list::{Entry, Key, fits};
use crate::{
    CtEvent, Effects, Error, Event, EventKind, FailType, Header, HeaderKind, Interface, List, Me, MeHandle,
    MeOptions, SearchOp,
};

/// A message that matched on the overflow list and has not been taken yet.
#[derive(Clone, Copy)]
pub(crate) struct UnexpectedHeader {
    /// Ascending along the list.
    pub id: u64,
    pub header: Header,
    /// The overflow entry that holds its bytes.
    pub entry: MeHandle,
    pub offset: u64,
    pub start: u64,
    pub mlength: u64,
    /// The outcome, once its bytes have been deposited.
    pub outcome: Option<FailType>,
    /// The entry that an append claimed it for before its bytes were deposited.
    pub claimed: Option<MeHandle>,
}

impl UnexpectedHeader {
    /// Returns the event about it for the user of `me`.
    fn event(&self, kind: EventKind, fail: FailType, me: &Me) -> Event {
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

/// Returns whether an entry gets this message redelivered, instead of only an event.
const fn redelivers(me: &Me, header: &Header) -> bool {
    me.options.contains(MeOptions::REDELIVER) && matches!(header.kind, HeaderKind::Put)
}

/// Returns the option that suppresses an entry's events for unexpected headers.
const fn untold(me: &Me) -> MeOptions {
    match me.options.contains(MeOptions::REDELIVER) {
        true => MeOptions::EVENT_COMM_DISABLE,
        false => MeOptions::EVENT_OVER_DISABLE,
    }
}

/// The criteria of an append or a search.
struct Wanted {
    me: Me,
    key: Key,
    once: bool,
}

impl Wanted {
    fn new(me: &Me, handle: MeHandle) -> Wanted {
        Wanted { me: *me, key: Key::new(me, handle), once: me.options.contains(MeOptions::USE_ONCE) }
    }

    /// Returns whether the criteria match. An entry that does not allow the operation leaves the header to one that does.
    fn takes(&self, unexpected: &UnexpectedHeader) -> bool {
        let header = &unexpected.header;
        unexpected.claimed.is_none()
            && self.key.matches(header)
            && self.me.refuses(header).is_none()
            && fits(&self.me, 0, header)
    }
}

impl Interface {
    /// Searches the unexpected headers (`PtlMESearch`) for those that an append of `me` to the priority list would take: the first if it is
    /// use-once, else all.
    ///
    /// A search that leaves them gives a [`EventKind::Search`] for each, at once. A search that deletes them gives the events of an append,
    /// but neither a link nor an unlink event. A search without a match gives one `Search` that failed with [`FailType::NoMatch`].
    /// `EVENT_COMM_DISABLE` suppresses `Search` events, and `EVENT_SUCCESS_DISABLE` successful ones; they are counted if
    /// `EVENT_CT_OVERFLOW` is set. Memory and handlers of `me` are not used.
    ///
    /// # Errors
    /// As [`Interface::me_append`], except for the length of the list.
    pub fn me_search(&mut self, pt: u32, me: Me, op: SearchOp, effects: &mut Effects) -> Result<(), Error> {
        self.check_me(&me)?;
        let wanted = Wanted::new(&me, MeHandle::from_bits(0));
        self.portal(pt)?;
        self.entries.has_room()?;
        let found = self.survey(pt, &wanted);
        let each = if op == SearchOp::Delete && found > 0 {
            MeOptions::EVENT_OVER_DISABLE
        } else {
            MeOptions::EVENT_COMM_DISABLE
        };
        let events = if me.options.contains(each) { 0 } else { found.max(1) };
        self.expect_events(pt, events)?;
        if found == 0 {
            let header = Header::put(self.node, self.node, pt, me.match_bits, 0);
            let event = Event {
                pt,
                match_bits: header.match_bits,
                fail: FailType::NoMatch,
                ..Event::new(EventKind::Search, self.node, me.user_ptr)
            };
            self.searched(&me, event, effects);
        } else if op == SearchOp::Delete {
            // A search has no memory for redelivery.
            let options = (me.options | MeOptions::EVENT_UNLINK_DISABLE) - MeOptions::REDELIVER;
            let handle = self.insert_entry(pt, Me { options, ..me }, List::Priority)?;
            self.take_unexpected(handle, true, effects);
        } else {
            self.report(pt, &wanted, effects);
        }
        Ok(())
    }

    fn report(&mut self, pt: u32, wanted: &Wanted, effects: &mut Effects) {
        let mut found = std::mem::take(&mut self.found);
        let limit = if wanted.once { 1 } else { usize::MAX };
        let unexpected = &self.portal_of(pt).unexpected;
        found.extend(unexpected.iter().filter(|u| wanted.takes(u)).take(limit));
        for unexpected in found.drain(..) {
            let fail = unexpected.outcome.unwrap_or(FailType::Ok);
            self.searched(&wanted.me, unexpected.event(EventKind::Search, fail, &wanted.me), effects);
        }
        self.found = found;
    }

    fn searched(&mut self, me: &Me, event: Event, effects: &mut Effects) {
        if !me.options.contains(MeOptions::EVENT_COMM_DISABLE) {
            let told = !(event.fail.is_ok() && me.options.contains(MeOptions::EVENT_SUCCESS_DISABLE));
            self.post_expected(event.pt, told.then_some(event), effects);
        }
        self.count_entry(me, MeOptions::EVENT_CT_OVERFLOW, event.fail, event.mlength, effects);
    }

    /// Reserves room for the events of an append to the priority list, or refuses the append.
    pub(crate) fn expect_append(&mut self, pt: u32, me: &Me, list: List) -> Result<(), Error> {
        if self.portal(pt)?.flow.is_none() {
            return Ok(());
        }
        let wanted = Wanted::new(me, MeHandle::from_bits(0));
        let found = if list == List::Priority { self.survey(pt, &wanted) } else { 0 };
        let told = |disable, events| if me.options.contains(disable) { 0 } else { events };
        let last = if wanted.once && found > 0 {
            told(MeOptions::EVENT_UNLINK_DISABLE, 1)
        } else {
            told(MeOptions::EVENT_LINK_DISABLE, 1)
        };
        self.expect_events(pt, told(untold(me), found) + last)
    }

    /// Returns the number of headers that an append or a search would take.
    fn survey(&mut self, pt: u32, wanted: &Wanted) -> u32 {
        let limit = if wanted.once { 1 } else { usize::MAX };
        let unexpected = &self.portal_of(pt).unexpected;
        unexpected.iter().filter(|u| wanted.takes(u)).take(limit).count() as u32
    }

    /// Compares a new entry with the unexpected headers. Returns whether that used it up; a search always does.
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

    /// Handles the end of a message on the overflow list: its bytes are deposited.
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

    /// Completes an unexpected header that its match entry has taken, after its bytes are deposited.
    pub(crate) fn complete_unexpected(&mut self, unexpected: &UnexpectedHeader, effects: &mut Effects) {
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

    /// Removes an unexpected header, which frees its overflow entry.
    pub(crate) fn forget_unexpected(&mut self, entry: MeHandle, effects: &mut Effects) {
        self.unexpected -= 1;
        self.entries.get_mut(entry).expect("an entry in use is not removed").headers -= 1;
        self.settle(entry, effects);
    }

    /// Counts an operation on a match entry that has `option`.
    pub(crate) fn count_entry(
        &mut self,
        me: &Me,
        option: MeOptions,
        outcome: FailType,
        mlength: u64,
        effects: &mut Effects,
    ) {
        if let (Some(ct), true) = (me.ct, me.options.contains(option)) {
            let by = CtEvent::of(outcome, me.options.contains(MeOptions::EVENT_CT_BYTES), mlength);
            self.count(ct, by, effects);
        }
    }
}
