//! Match entries and their lists ('Match List Entries and Matching Lists').
//!
//! A list is searched in order, and the first entry that matches takes the message. The search keys are contiguous, 32 bytes per entry, so
//! a long list costs about a nanosecond per entry.

use crate::handle::Slab;
use crate::interface::release;
use crate::{
    CtHandle, DropReason, Effects, Error, Event, EventKind, Header, HeaderKind, Interface, List, MeHandle,
    MeOptions,
};
use nicety_types::NodeId;
use std::collections::VecDeque;

/// The source ranks that an entry accepts (`match_id`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Source {
    /// `PTL_RANK_ANY`: all ranks.
    #[default]
    Any,
    /// Those of one rank.
    Rank(NodeId),
}

/// The users that an entry accepts (`uid`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum User {
    /// `PTL_UID_ANY`: all users.
    #[default]
    Any,
    /// One user.
    Id(u32),
}

/// A match entry: memory for incoming messages, and their criteria (`ptl_me_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Me {
    /// Host address of the first byte.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
    /// The required match bits.
    pub match_bits: u64,
    /// The ignored match bits, as ones.
    pub ignore_bits: u64,
    /// The accepted source ranks.
    pub source: Source,
    /// The accepted users. A matching message of another user is refused; it does not go on to the next entry.
    pub user: User,
    /// Options.
    pub options: MeOptions,
    /// The counter, if any.
    pub ct: Option<CtHandle>,
    /// With `MANAGE_LOCAL`, unlink when less memory is left, in bytes; zero is never.
    pub min_free: u64,
    /// The handlers for its messages; a number of the card, opaque here.
    pub handlers: Option<u32>,
    /// The user's word for its events.
    pub user_ptr: u64,
}

/// The search key of an entry.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    bits: u64,
    mask: u64,
    source: u32,
    source_mask: u32,
    pub entry: MeHandle,
}

impl Key {
    pub fn new(me: &Me, entry: MeHandle) -> Key {
        let (source, source_mask) = match me.source {
            Source::Any => (0, 0),
            Source::Rank(NodeId(rank)) => (rank, !0),
        };
        Key { bits: me.match_bits, mask: !me.ignore_bits, source, source_mask, entry }
    }

    pub fn matches(&self, header: &Header) -> bool {
        (header.match_bits ^ self.bits) & self.mask == 0
            && (header.source.0 ^ self.source) & self.source_mask == 0
    }
}

pub(crate) type Entries = Slab<MeHandle, Entry>;

pub(crate) struct Entry {
    pub me: Me,
    pub pt: u32,
    pub list: List,
    /// The offset of the next message, with `MANAGE_LOCAL`.
    pub local_offset: u64,
    /// On its list.
    pub linked: bool,
    /// Messages that have matched and are not complete.
    pub pending: u32,
    /// Unexpected headers of messages in this entry.
    pub headers: u32,
    /// The card's holds on it.
    holds: u32,
    /// An entry of the card's own, which does not count against the limits.
    own: bool,
    unlink_posted: bool,
}

impl Me {
    /// Returns a list entry (`ptl_le_t`, `PtlLEAppend`): every message to its portal table entry matches.
    pub fn list_entry(start: u64, length: u64, options: MeOptions) -> Me {
        Me { start, length, ignore_bits: !0, options, ..Me::default() }
    }

    /// Returns the reason why the entry, which matches, refuses the operation.
    pub(crate) fn refuses(&self, header: &Header) -> Option<DropReason> {
        let needed = match header.kind {
            HeaderKind::Get => MeOptions::OP_GET,
            HeaderKind::FetchAtomic | HeaderKind::Swap => MeOptions::OP_GET | MeOptions::OP_PUT,
            HeaderKind::Put | HeaderKind::Atomic | HeaderKind::Reply | HeaderKind::Ack => MeOptions::OP_PUT,
        };
        if self.user != User::Any && self.user != User::Id(header.uid) {
            return Some(DropReason::PermViolation);
        }
        (!self.options.contains(needed)).then_some(DropReason::OpViolation)
    }
}

/// Returns whether the message fits into the rest of the entry, or may be truncated.
pub(crate) fn fits(me: &Me, local_offset: u64, header: &Header) -> bool {
    let offset =
        if me.options.contains(MeOptions::MANAGE_LOCAL) { local_offset } else { header.remote_offset };
    !me.options.contains(MeOptions::NO_TRUNCATE) || header.length <= me.length.saturating_sub(offset)
}

impl Entry {
    /// Returns the offset of a message in the entry's memory, and the number of bytes kept: for an atomic, whole items.
    pub fn place(&self, header: &Header) -> (u64, u64) {
        let managed = self.me.options.contains(MeOptions::MANAGE_LOCAL);
        let offset = if managed { self.local_offset } else { header.remote_offset };
        let room = header.length.min(self.me.length.saturating_sub(offset));
        let item = header.atomic.map_or(1, |atomic| atomic.datatype().size() as u64);
        (offset, room - room % item)
    }
}

/// Returns the position of the first entry that accepts the message.
pub(crate) fn search(list: &VecDeque<Key>, entries: &Entries, header: &Header) -> Option<usize> {
    list.iter().position(|key| {
        key.matches(header)
            && entries.get(key.entry).is_ok_and(|entry| fits(&entry.me, entry.local_offset, header))
    })
}

impl Interface {
    /// Appends a match entry (`PtlMEAppend`).
    ///
    /// An entry for the priority list is first compared with the unexpected headers:
    ///
    /// - A use-once entry takes the first match and is not linked. Its handle becomes stale when that message is complete.
    /// - Any other entry takes every match, and is linked then.
    ///
    /// Each match gives a [`EventKind::PutOverflow`], or the event of its kind, when the message's bytes have been deposited. These matches
    /// do not move a local offset.
    ///
    /// # Errors
    /// [`Error::ArgInvalid`] if the index is not in use, memory ends beyond 2^64 or options count without a counter. [`Error::Stale`] for
    /// the counter; [`Error::NoSpace`], [`Error::ListTooLong`]. With flow control, [`Error::EqFull`] if there is no room for the append's
    /// events.
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

    /// Appends an entry of the card's own software. It does not count against the limit of entries, is not compared with the unexpected
    /// headers, and leaves no `LINK` event.
    ///
    /// # Errors
    /// [`Error::ArgInvalid`] and [`Error::Stale`] as [`Interface::me_append`].
    pub fn me_append_own(&mut self, pt: u32, me: Me, list: List) -> Result<MeHandle, Error> {
        self.portal(pt)?;
        self.check_me(&me)?;
        self.entries.add_own();
        let handle = self.insert_entry(pt, me, list).expect("room was just made for it");
        self.entries.get_mut(handle)?.own = true;
        self.portal_of(pt).list(list).push_back(Key::new(&me, handle));
        Ok(handle)
    }

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
        let handle = self.entries.insert(Entry {
            me,
            pt,
            list,
            local_offset: 0,
            linked: true,
            pending: 0,
            headers: 0,
            holds: 0,
            own: false,
            unlink_posted: false,
        })?;
        self.r#use(me.ct);
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

    /// Returns the first entry on the priority list of a portal table entry with this user word for its events.
    pub fn me_with(&self, pt: u32, user_ptr: u64) -> Option<MeHandle> {
        let mut entries = self.table.get(pt)?.priority.iter().map(|key| key.entry);
        entries.find(|&entry| self.entries.get(entry).is_ok_and(|entry| entry.me.user_ptr == user_ptr))
    }

    /// Returns whether an entry on a list, or one that a message or an unexpected header refers to, has these handlers.
    pub fn handlers_in_use(&self, handlers: u32) -> bool {
        self.entries.values().any(|entry| entry.me.handlers == Some(handlers))
    }

    /// Holds an entry open, as an incomplete message would: an unlinked entry leaves its `AUTO_UNLINK` event only after as many calls of
    /// [`Interface::me_release`].
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn me_hold(&mut self, handle: MeHandle) -> Result<(), Error> {
        self.entries.get_mut(handle)?.holds += 1;
        Ok(())
    }

    /// Ends one hold on an entry.
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
    /// [`Error::Stale`]; [`Error::InUse`] while it has an incomplete message, an unexpected header refers to it, or the card holds it open.
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

    /// Takes a used-up entry off its list.
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

    /// Removes one message, header or hold of an entry. If the entry has left its list, posts `AUTO_UNLINK` after the last message, and
    /// `AUTO_FREE` after the last header.
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
        self.unuse(entry.me.ct);
        self.portal_of(entry.pt).entries -= 1;
    }
}
