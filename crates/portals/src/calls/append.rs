//! Appends of match entries, and searches of the unexpected headers (`PtlMEAppend`, `PtlMESearch`).

use crate::calls::unexpected::{Wanted, untold};
use crate::state::entry::Key;
use crate::{
    Effects, Error, Event, EventKind, FailType, Header, Interface, List, Me, MeHandle, MeOptions, SearchOp,
};

impl Interface {
    /// Appends a match entry (`PtlMEAppend`).
    ///
    /// An entry for the priority list is first compared with the unexpected headers:
    ///
    /// - A use-once entry takes the first matching header and is not linked. Its handle becomes stale when that message
    ///   is complete.
    /// - Any other entry takes all matching headers, and is then linked.
    ///
    /// For each header taken, the interface posts [`EventKind::PutOverflow`], or the event for another kind of message,
    /// when the message's bytes have been deposited. These messages do not move a local offset.
    ///
    /// # Errors
    /// [`Error::ArgInvalid`] if the index is not in use, memory ends beyond 2^64, or an option counts although `ct` is
    /// `None`. [`Error::Stale`] for the counter; [`Error::NoSpace`], [`Error::ListTooLong`]. With flow control,
    /// [`Error::EqFull`] if the event queue has no room for the append's events.
    pub fn me_append(
        &mut self,
        pt: u32,
        me: Me,
        list: List,
        effects: &mut Effects,
    ) -> Result<MeHandle, Error> {
        let limit = self.limits.list_length;
        let full = self.portal(pt)?.list(list).len() >= limit as usize;
        self.check_me(&me)?;
        if full {
            return Err(Error::ListTooLong { limit });
        }
        self.entries.has_room()?;
        self.expect_append(pt, &me, list)?;
        let handle = self.insert_entry(pt, me, list)?;
        let searches = list == List::Priority && !self.portal_of(pt).unexpected.is_empty();
        if searches && self.take_unexpected(handle, false, effects) {
            return Ok(handle);
        }
        self.portal_of(pt).list(list).push_back(Key::new(&me, handle));
        if !me.options.contains(MeOptions::EVENT_LINK_DISABLE) {
            let event = Event { pt, list, ..Event::new(EventKind::Link, self.node, me.user_ptr) };
            self.post_expected(pt, Some(event), effects);
        }
        Ok(handle)
    }

    /// Appends a match entry for the card's own software. The entry does not count against the limit of entries, is not
    /// compared with the unexpected headers, and posts no `LINK` event.
    ///
    /// # Errors
    /// [`Error::ArgInvalid`] and [`Error::Stale`], as for [`Interface::me_append`].
    pub fn me_append_own(&mut self, pt: u32, me: Me, list: List) -> Result<MeHandle, Error> {
        self.portal(pt)?;
        self.check_me(&me)?;
        self.entries.add_own();
        let handle = self.insert_entry(pt, me, list).expect("room was just made for it");
        self.entries.get_mut(handle)?.own = true;
        self.portal_of(pt).list(list).push_back(Key::new(&me, handle));
        Ok(handle)
    }

    /// Searches the unexpected headers (`PtlMESearch`) for those that an append of `me` to the priority list would
    /// take. If `me` is use-once, that is the first matching header, otherwise all.
    ///
    /// With [`SearchOp::Only`], the interface posts a [`EventKind::Search`] for each header, at once. With
    /// [`SearchOp::Delete`], it posts the events of an append, but neither a link nor an unlink event. If no header
    /// matches, it posts one `Search` that failed with [`FailType::NoMatch`]. `EVENT_COMM_DISABLE` suppresses all
    /// `Search` events, and `EVENT_SUCCESS_DISABLE` the successful ones. With `EVENT_CT_OVERFLOW`, the counter counts
    /// suppressed events, too. Memory and handlers of `me` are not used.
    ///
    /// # Errors
    /// Those of [`Interface::me_append`], except for [`Error::ListTooLong`].
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
            // A search has no memory to which a message could be redelivered.
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

    /// With flow control, reserves room for the events of an append, or refuses the append.
    fn expect_append(&mut self, pt: u32, me: &Me, list: List) -> Result<(), Error> {
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
}
