//! Match entries: creation, holds, unlinking, counters ('Match List Entries and Matching Lists').

use crate::error::release;
use crate::state::entry::Entry;
use crate::{CtEvent, Effects, Error, Event, EventKind, FailType, Interface, List, Me, MeHandle, MeOptions};

impl Interface {
    pub(crate) fn check_me(&self, me: &Me) -> Result<(), Error> {
        if me.start.checked_add(me.length).is_none() {
            return Err(Error::ArgInvalid("the match entry's memory must end below address 2^64"));
        }
        if me.ct.is_none() && me.options.intersects(MeOptions::EVENT_CT_COMM | MeOptions::EVENT_CT_OVERFLOW) {
            return Err(Error::ArgInvalid("EVENT_CT_ options of a match entry need a counter in `ct`"));
        }
        let plain = me.options & (MeOptions::USE_ONCE | MeOptions::MANAGE_LOCAL) == MeOptions::USE_ONCE;
        if me.options.contains(MeOptions::REDELIVER) && !plain {
            return Err(Error::ArgInvalid("REDELIVER is for entries with USE_ONCE and without MANAGE_LOCAL"));
        }
        me.ct.map(|ct| self.counters.get(ct)).transpose()?;
        Ok(())
    }

    /// Creates an entry that is on no list yet.
    pub(crate) fn insert_entry(&mut self, pt: u32, me: Me, list: List) -> Result<MeHandle, Error> {
        let handle = self.entries.insert(Entry::new(me, pt, list))?;
        self.counters.r#use(me.ct);
        self.portal_of(pt).entries += 1;
        Ok(handle)
    }

    /// Returns a match entry that is on a list, or that a message or an unexpected header refers to.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn me(&self, handle: MeHandle) -> Result<&Me, Error> {
        Ok(&self.entries.get(handle)?.me)
    }

    /// Returns the first match entry on the priority list of a portal table entry that has this `user_ptr`.
    pub fn me_with(&self, pt: u32, user_ptr: u64) -> Option<MeHandle> {
        let mut entries = self.table.get(pt)?.priority.iter().map(|key| key.entry);
        entries.find(|&entry| self.entries.get(entry).is_ok_and(|entry| entry.me.user_ptr == user_ptr))
    }

    /// Returns whether any match entry has these handlers. It considers entries on a list, and entries that a message
    /// or an unexpected header refers to.
    pub fn handlers_in_use(&self, handlers: u32) -> bool {
        self.entries.values().any(|entry| entry.me.handlers == Some(handlers))
    }

    /// Holds a match entry, as an incomplete message does. If the entry is unlinked, it posts `AUTO_UNLINK` only after
    /// one [`Interface::me_release`] per hold.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn me_hold(&mut self, handle: MeHandle) -> Result<(), Error> {
        self.entries.get_mut(handle)?.holds += 1;
        Ok(())
    }

    /// Ends one hold on a match entry.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::ArgInvalid`] for an entry that is not held.
    pub fn me_release(&mut self, handle: MeHandle, effects: &mut Effects) -> Result<(), Error> {
        let entry = self.entries.get_mut(handle)?;
        entry.holds =
            entry.holds.checked_sub(1).ok_or(Error::ArgInvalid("this match entry is not held open"))?;
        self.settle(handle, effects);
        Ok(())
    }

    /// Unlinks a match entry (`PtlMEUnlink`).
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::InUse`] while the entry has an incomplete message or a hold, or an unexpected header
    /// refers to it.
    pub fn me_unlink(&mut self, handle: MeHandle) -> Result<(), Error> {
        let entry = self.entries.get(handle)?;
        release(entry.pending, "match entry", "messages that are not complete")?;
        release(entry.headers, "match entry", "unexpected headers")?;
        release(entry.holds, "match entry", "a card that holds it open")?;
        let (pt, list) = (entry.pt, entry.list);
        self.remove_key(pt, list, handle);
        self.remove_entry(handle);
        Ok(())
    }

    /// Removes a used-up match entry from its list.
    pub(crate) fn unlink_used(&mut self, handle: MeHandle, position: usize) {
        let entry = self.entries.get_mut(handle).expect("the entry is on its list");
        entry.linked = false;
        let (pt, list) = (entry.pt, entry.list);
        self.portal_of(pt).list(list).remove(position);
    }

    fn remove_key(&mut self, pt: u32, list: List, handle: MeHandle) {
        let keys = self.portal_of(pt).list(list);
        if let Some(position) = keys.iter().position(|key| key.entry == handle) {
            keys.remove(position);
        }
    }

    /// Called after a match entry has lost a message, an unexpected header or a hold. If the entry is not on a list,
    /// posts `AUTO_UNLINK` after the last message or hold, and `AUTO_FREE` after the last header. Then removes the
    /// entry.
    pub(crate) fn settle(&mut self, handle: MeHandle, effects: &mut Effects) {
        let entry = self.entries.get_mut(handle).expect("an entry in use is not removed");
        if entry.linked || entry.pending > 0 || entry.holds > 0 {
            return;
        }
        let (first, last) = (!entry.unlink_posted, entry.headers == 0);
        entry.unlink_posted = true;
        let (me, pt, list) = (entry.me, entry.pt, entry.list);
        if !me.options.contains(MeOptions::EVENT_UNLINK_DISABLE) {
            let event = |kind| Event { pt, list, ..Event::new(kind, self.node, me.user_ptr) };
            let (unlink, free) = (event(EventKind::AutoUnlink), event(EventKind::AutoFree));
            if first {
                self.post_expected(pt, Some(unlink), effects);
            }
            if last && list == List::Overflow {
                self.post_expected(pt, Some(free), effects);
            }
        }
        if last {
            self.remove_entry(handle);
        }
    }

    fn remove_entry(&mut self, handle: MeHandle) {
        let entry = self.entries.remove(handle).expect("an entry is removed once");
        if entry.own {
            self.entries.remove_own();
        }
        self.counters.unuse(entry.me.ct);
        self.portal_of(entry.pt).entries -= 1;
    }

    /// Counts a message in the counter of its match entry, if the entry has `option`.
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
