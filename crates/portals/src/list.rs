//! The portal table and its lists of match entries ('Portal Table', 'Match List Entries and Matching Lists').
//!
//! A list is searched in order, and the first entry that matches takes the message. What the search looks at
//! lies together in 32 bytes an entry, so a long list costs about a nanosecond an entry.

use crate::handle::Slab;
use crate::interface::release;
use crate::{
    CtHandle, Effects, EqHandle, Error, Event, EventKind, FailType, Header, Interface, MeHandle, MeOptions,
};
use nicety_types::NodeId;
use std::collections::VecDeque;

/// The list a match entry is appended to (`ptl_list_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum List {
    /// Searched first.
    #[default]
    Priority,
    /// Searched where nothing on the priority list matches; leaves an unexpected header.
    Overflow,
}

/// Whose messages an entry takes (`match_id`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Source {
    /// `PTL_RANK_ANY`: everybody's.
    #[default]
    Any,
    /// Those of one rank.
    Rank(NodeId),
}

/// A match entry: memory that messages may be put into, and which (`ptl_me_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Me {
    /// Host address of the first byte.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
    /// The bits a message must have.
    pub match_bits: u64,
    /// The bits that do not matter: one means ignored.
    pub ignore_bits: u64,
    /// Whose messages.
    pub source: Source,
    /// Options.
    pub options: MeOptions,
    /// What counts, if anything.
    pub ct: Option<CtHandle>,
    /// With `MANAGE_LOCAL`, unlink when fewer bytes than this are left; zero is never.
    pub min_free: u64,
    /// The handlers to run for its messages; the card's own number, of no meaning here.
    pub handlers: Option<u32>,
    /// The user's word for its events.
    pub user_ptr: u64,
}

/// What a search looks at.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    bits: u64,
    mask: u64,
    source: u32,
    source_mask: u32,
    pub entry: MeHandle,
}

impl Key {
    fn new(me: &Me, entry: MeHandle) -> Key {
        let (source, source_mask) = match me.source {
            Source::Any => (0, 0),
            Source::Rank(NodeId(rank)) => (rank, !0),
        };
        Key { bits: me.match_bits, mask: !me.ignore_bits, source, source_mask, entry }
    }

    fn matches(&self, header: &Header) -> bool {
        (header.match_bits ^ self.bits) & self.mask == 0
            && (header.source.0 ^ self.source) & self.source_mask == 0
    }
}

pub(crate) type Entries = Slab<MeHandle, Entry>;

pub(crate) struct Entry {
    pub me: Me,
    pub pt: u32,
    pub list: List,
    /// Where the next message goes, with `MANAGE_LOCAL`.
    pub local_offset: u64,
    /// On its list.
    pub linked: bool,
    /// Messages that have matched and are not complete.
    pub pending: u32,
    /// Unexpected headers whose bytes lie in this entry.
    pub headers: u32,
    unlink_posted: bool,
}

impl Entry {
    /// Where a message goes in the entry's memory, and how many bytes there are from there on.
    pub fn place(&self, header: &Header) -> (u64, u64) {
        let managed = self.me.options.contains(MeOptions::MANAGE_LOCAL);
        let offset = if managed { self.local_offset } else { header.remote_offset };
        (offset, self.me.length.saturating_sub(offset))
    }

    fn takes(&self, header: &Header) -> bool {
        !self.me.options.contains(MeOptions::NO_TRUNCATE) || header.length <= self.place(header).1
    }
}

/// A message that matched on the overflow list and has not been asked for yet.
#[derive(Clone, Copy)]
pub(crate) struct UnexpectedHeader {
    /// Grows along the list.
    pub id: u64,
    pub header: Header,
    /// The overflow entry in which its bytes lie.
    pub entry: MeHandle,
    pub offset: u64,
    pub start: u64,
    pub mlength: u64,
    /// How it ended, when its bytes have been deposited.
    pub outcome: Option<FailType>,
    /// An entry has been appended for it before its bytes were deposited.
    pub claimed: Option<MeHandle>,
}

#[derive(Default)]
pub(crate) struct PortalEntry {
    pub eq: Option<EqHandle>,
    pub disabled: bool,
    pub priority: VecDeque<Key>,
    pub overflow: VecDeque<Key>,
    pub unexpected: VecDeque<UnexpectedHeader>,
    pub next_unexpected: u64,
    /// Match entries linked or still referred to.
    entries: u32,
}

impl PortalEntry {
    pub fn list(&mut self, list: List) -> &mut VecDeque<Key> {
        match list {
            List::Priority => &mut self.priority,
            List::Overflow => &mut self.overflow,
        }
    }

    /// Whether the bytes of this unexpected header are still to come.
    pub fn awaits(&self, id: u64) -> bool {
        let at = self.unexpected.binary_search_by_key(&id, |u| u.id);
        at.is_ok_and(|at| self.unexpected[at].outcome.is_none())
    }
}

/// The position of the first entry that takes the message.
pub(crate) fn search(list: &VecDeque<Key>, entries: &Entries, header: &Header) -> Option<usize> {
    list.iter()
        .position(|key| key.matches(header) && entries.get(key.entry).is_ok_and(|entry| entry.takes(header)))
}

impl Interface {
    /// Takes a portal table entry, the wanted one or the first free (`PtlPTAlloc`), and returns its index.
    /// Full events of its match entries go to `eq`, if anywhere.
    ///
    /// # Errors
    /// [`Error::PtInUse`], [`Error::PtFull`], [`Error::Stale`] for the queue, [`Error::ArgInvalid`] for an
    /// index beyond the limit.
    pub fn pt_alloc(&mut self, wanted: Option<u32>, eq: Option<EqHandle>) -> Result<u32, Error> {
        let limit = self.limits.portal_table;
        eq.map(|eq| self.queues.get(eq)).transpose()?;
        let taken = |index: u32| self.table.get(index as usize).is_some_and(Option::is_some);
        let index = match wanted {
            Some(index) if index >= limit => {
                return Err(Error::ArgInvalid(
                    "the portal table index must be below the limit `portal_table`",
                ));
            }
            Some(index) if taken(index) => return Err(Error::PtInUse { index }),
            Some(index) => index,
            None => (0..limit).find(|&index| !taken(index)).ok_or(Error::PtFull { limit })?,
        };
        if self.table.len() <= index as usize {
            self.table.resize_with(index as usize + 1, || None);
        }
        self.table[index as usize] = Some(PortalEntry { eq, ..PortalEntry::default() });
        if let Some(eq) = eq {
            self.queues.get_mut(eq)?.users += 1;
        }
        Ok(index)
    }

    /// Frees a portal table entry (`PtlPTFree`).
    ///
    /// # Errors
    /// [`Error::PtInUse`] while match entries are linked, or referred to by messages or unexpected headers;
    /// [`Error::ArgInvalid`] where the index is not in use.
    pub fn pt_free(&mut self, index: u32) -> Result<(), Error> {
        if self.portal(index)?.entries > 0 {
            return Err(Error::PtInUse { index });
        }
        let portal = self.table[index as usize].take();
        if let Some(eq) = portal.and_then(|p| p.eq) {
            self.queues.get_mut(eq)?.users -= 1;
        }
        Ok(())
    }

    /// Drops every message to the portal table entry from now on (`PtlPTDisable`).
    ///
    /// # Errors
    /// [`Error::ArgInvalid`] where the index is not in use.
    pub fn pt_disable(&mut self, index: u32) -> Result<(), Error> {
        self.portal(index)?.disabled = true;
        Ok(())
    }

    /// Lets messages in again (`PtlPTEnable`).
    ///
    /// # Errors
    /// [`Error::ArgInvalid`] where the index is not in use.
    pub fn pt_enable(&mut self, index: u32) -> Result<(), Error> {
        self.portal(index)?.disabled = false;
        Ok(())
    }

    /// Appends a match entry (`PtlMEAppend`).
    ///
    /// An entry for the priority list is first compared with the unexpected headers: a use-once entry takes
    /// the first that matches and is not linked at all, so that its handle is stale once that message is
    /// complete; any other takes every one that matches and is linked then. Each gives a
    /// [`EventKind::PutOverflow`] when the message's bytes have been deposited. A local offset does not move
    /// by them.
    ///
    /// # Errors
    /// [`Error::ArgInvalid`] where the index is not in use, memory ends beyond 2^64 or options count without
    /// a counter; [`Error::Stale`] for the counter; [`Error::NoSpace`], [`Error::ListTooLong`].
    pub fn me_append(
        &mut self,
        pt: u32,
        me: Me,
        list: List,
        effects: &mut Effects,
    ) -> Result<MeHandle, Error> {
        let limit = self.limits.list_length;
        let portal = self.portal(pt)?;
        let (eq, full) = (portal.eq, portal.list(list).len() >= limit as usize);
        if me.start.checked_add(me.length).is_none() {
            return Err(Error::ArgInvalid("the match entry's memory must end below address 2^64"));
        }
        if me.ct.is_none() && me.options.intersects(MeOptions::EVENT_CT_COMM | MeOptions::EVENT_CT_OVERFLOW) {
            return Err(Error::ArgInvalid("EVENT_CT_ options of a match entry need a counter in `ct`"));
        }
        me.ct.map(|ct| self.counters.get(ct)).transpose()?;
        if full {
            return Err(Error::ListTooLong { limit });
        }
        let handle = self.entries.insert(Entry {
            me,
            pt,
            list,
            local_offset: 0,
            linked: true,
            pending: 0,
            headers: 0,
            unlink_posted: false,
        })?;
        self.r#use(me.ct);
        let portal = self.portal(pt)?;
        portal.entries += 1;
        if list == List::Priority && !portal.unexpected.is_empty() && self.take_unexpected(handle, effects) {
            return Ok(handle);
        }
        self.portal(pt)?.list(list).push_back(Key::new(&me, handle));
        if !me.options.contains(MeOptions::EVENT_LINK_DISABLE) {
            let event = Event { pt, list, ..Event::new(EventKind::Link, self.node, me.user_ptr) };
            self.post(eq, event, effects);
        }
        Ok(handle)
    }

    /// Unlinks a match entry (`PtlMEUnlink`).
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::InUse`] while a message that matched it is not complete, or an unexpected
    /// header refers to it.
    pub fn me_unlink(&mut self, handle: MeHandle) -> Result<(), Error> {
        let entry = self.entries.get(handle)?;
        release(entry.pending, "match entry", "messages that are not complete")?;
        release(entry.headers, "match entry", "unexpected headers")?;
        let (pt, list) = (entry.pt, entry.list);
        self.remove_key(pt, list, handle);
        self.remove_entry(handle);
        Ok(())
    }

    pub(crate) fn portal(&mut self, index: u32) -> Result<&mut PortalEntry, Error> {
        self.table
            .get_mut(index as usize)
            .and_then(Option::as_mut)
            .ok_or(Error::ArgInvalid("this portal table index is not in use; take it with `pt_alloc`"))
    }

    /// Compares a new entry with the unexpected headers. Whether that used it up.
    fn take_unexpected(&mut self, handle: MeHandle, effects: &mut Effects) -> bool {
        let entry = self.entries.get_mut(handle).expect("the entry was just made");
        let (key, once) = (Key::new(&entry.me, handle), entry.me.options.contains(MeOptions::USE_ONCE));
        let portal = self.table[entry.pt as usize].as_mut().expect("the entry was just appended to it");
        // An append that is not allowed to take puts leaves their headers to one that is.
        if !entry.me.options.contains(MeOptions::OP_PUT) {
            return false;
        }
        let mut taken = 0;
        portal.unexpected.retain_mut(|unexpected| {
            let header = &unexpected.header;
            let wanted = !(once && taken > 0) && unexpected.claimed.is_none();
            if !wanted || !key.matches(header) || !entry.takes(header) {
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
        entry.linked = !(once && taken > 0);
        let linked = entry.linked;
        let mut found = std::mem::take(&mut self.found);
        for unexpected in found.drain(..) {
            self.complete_unexpected(&unexpected, effects);
        }
        self.found = found;
        !linked
    }

    /// An entry has left its list by itself.
    pub(crate) fn unlink_used(&mut self, handle: MeHandle, position: usize) {
        let entry = self.entries.get_mut(handle).expect("the entry is on its list");
        entry.linked = false;
        let (pt, list) = (entry.pt, entry.list);
        let portal = self.table[pt as usize].as_mut().expect("the entry is on its list");
        portal.list(list).remove(position);
    }

    fn remove_key(&mut self, pt: u32, list: List, handle: MeHandle) {
        let portal = self.table[pt as usize].as_mut().expect("a portal table entry in use is not freed");
        let keys = portal.list(list);
        if let Some(position) = keys.iter().position(|key| key.entry == handle) {
            keys.remove(position);
        }
    }

    /// One message or unexpected header of the entry less: says so where an entry that has left its list is
    /// not used any more, or not referred to any more.
    pub(crate) fn settle(&mut self, handle: MeHandle, effects: &mut Effects) {
        let entry = self.entries.get_mut(handle).expect("an entry in use is not removed");
        if entry.linked || entry.pending > 0 {
            return;
        }
        let (first, last) = (!entry.unlink_posted, entry.headers == 0);
        entry.unlink_posted = true;
        let (me, pt, list) = (entry.me, entry.pt, entry.list);
        if !me.options.contains(MeOptions::EVENT_UNLINK_DISABLE) {
            let eq = self.table[pt as usize].as_ref().and_then(|portal| portal.eq);
            let event = |kind| Event { pt, list, ..Event::new(kind, self.node, me.user_ptr) };
            let (unlink, free) = (event(EventKind::AutoUnlink), event(EventKind::AutoFree));
            if first {
                self.post(eq, unlink, effects);
            }
            if last && list == List::Overflow {
                self.post(eq, free, effects);
            }
        }
        if last {
            self.remove_entry(handle);
        }
    }

    fn remove_entry(&mut self, handle: MeHandle) {
        let entry = self.entries.remove(handle).expect("an entry is removed once");
        self.unuse(entry.me.ct);
        let portal =
            self.table[entry.pt as usize].as_mut().expect("a portal table entry in use is not freed");
        portal.entries -= 1;
    }
}
