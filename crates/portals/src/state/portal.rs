//! The portal table: entries with their match lists and flow control.

use crate::state::entry::Key;
use crate::state::unexpected::UnexpectedHeader;
use crate::{EqHandle, List};
use std::collections::VecDeque;

/// The index of the portal table entry for the card's own software: [`Interface::pt_alloc_own`](crate::Interface::pt_alloc_own).
pub const OWN_PT: u32 = u32::MAX;

#[derive(Default)]
pub(crate) struct PortalEntry {
    pub eq: Option<EqHandle>,
    pub disabled: bool,
    pub priority: VecDeque<Key>,
    pub overflow: VecDeque<Key>,
    pub unexpected: VecDeque<UnexpectedHeader>,
    pub next_unexpected: u64,
    /// Number of match entries that are linked or still in use.
    pub entries: u32,
    /// Number of messages that have matched and are not complete.
    pub active: u32,
    /// With flow control, the event queue. It reserves room for all events of the portal table entry.
    pub flow: Option<EqHandle>,
    /// The number of the last `PT_DISABLED` event.
    pub notice: u64,
    /// Whether a `PT_DISABLED` event is due as soon as the messages admitted before are complete.
    pub notice_due: bool,
}

impl PortalEntry {
    pub fn list(&mut self, list: List) -> &mut VecDeque<Key> {
        match list {
            List::Priority => &mut self.priority,
            List::Overflow => &mut self.overflow,
        }
    }

    /// Returns whether the message of this unexpected header is still incomplete.
    pub fn awaits(&self, id: u64) -> bool {
        let at = self.unexpected.binary_search_by_key(&id, |u| u.id);
        at.is_ok_and(|at| self.unexpected[at].outcome.is_none())
    }
}

/// A portal table, and the additional entry for the card's own software.
#[derive(Default)]
pub(crate) struct PortalTable {
    entries: Vec<Option<PortalEntry>>,
    own: Option<Box<PortalEntry>>,
}

impl PortalTable {
    /// Places an entry at a free index.
    pub fn insert(&mut self, index: u32, entry: PortalEntry) {
        if index == OWN_PT {
            self.own = Some(Box::new(entry));
            return;
        }
        let index = index as usize;
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
        }
        self.entries[index] = Some(entry);
    }

    /// Removes and returns the entry at an index.
    pub fn remove(&mut self, index: u32) -> Option<PortalEntry> {
        match index {
            OWN_PT => self.own.take().map(|own| *own),
            index => self.entries.get_mut(index as usize)?.take(),
        }
    }

    pub fn get(&self, index: u32) -> Option<&PortalEntry> {
        match index {
            OWN_PT => self.own.as_deref(),
            index => self.entries.get(index as usize)?.as_ref(),
        }
    }

    pub fn get_mut(&mut self, index: u32) -> Option<&mut PortalEntry> {
        match index {
            OWN_PT => self.own.as_deref_mut(),
            index => self.entries.get_mut(index as usize)?.as_mut(),
        }
    }
}
