//! Match entries and their lists ('Match List Entries and Matching Lists').
//!
//! A list is searched in order, and the first entry that matches takes the message. The search keys are contiguous, 32
//! bytes per entry, so the simulator searches an entry in about a nanosecond.

use crate::handle::Slab;
use crate::{CtHandle, DropReason, Header, HeaderKind, List, MeHandle, MeOptions};
use nicety_types::NodeId;
use std::collections::VecDeque;

/// The source ranks that an entry accepts (`match_id`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Source {
    /// `PTL_RANK_ANY`: messages from all ranks.
    #[default]
    Any,
    /// Messages from one rank.
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
    /// The match bits that a message must have.
    pub match_bits: u64,
    /// A mask of the match bits that are not compared: a one means ignored.
    pub ignore_bits: u64,
    /// The accepted source ranks.
    pub source: Source,
    /// The accepted users. A matching message of another user is refused, and not compared with the next entry.
    pub user: User,
    /// Options.
    pub options: MeOptions,
    /// The counter, if any.
    pub ct: Option<CtHandle>,
    /// With `MANAGE_LOCAL`, the entry is unlinked when fewer bytes than this remain. With zero, that never happens.
    pub min_free: u64,
    /// The handlers of the entry's messages, as a number that only the card interprets.
    pub handlers: Option<u32>,
    /// The user's word, which appears in the entry's events.
    pub user_ptr: u64,
}

impl Me {
    /// Returns a list entry (`ptl_le_t`, `PtlLEAppend`). It matches every message to its portal table entry.
    pub fn list_entry(start: u64, length: u64, options: MeOptions) -> Me {
        Me { start, length, ignore_bits: !0, options, ..Me::default() }
    }

    /// Returns the reason why the entry refuses a matching message, if it does.
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

/// Returns whether the message fits into the remaining memory of the entry, or may be truncated.
pub(crate) fn fits(me: &Me, local_offset: u64, header: &Header) -> bool {
    let offset =
        if me.options.contains(MeOptions::MANAGE_LOCAL) { local_offset } else { header.remote_offset };
    !me.options.contains(MeOptions::NO_TRUNCATE) || header.length <= me.length.saturating_sub(offset)
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

pub(crate) struct Entry {
    pub me: Me,
    pub pt: u32,
    pub list: List,
    /// With `MANAGE_LOCAL`, the offset of the next message in bytes.
    pub local_offset: u64,
    /// Whether the entry is on its list.
    pub linked: bool,
    /// Number of messages that have matched the entry and are not complete.
    pub pending: u32,
    /// Number of unexpected headers of messages in this entry's memory.
    pub headers: u32,
    /// Number of the card's holds on the entry.
    pub holds: u32,
    /// Whether the entry is one of the card's own software, which does not count against the limits.
    pub own: bool,
    /// Whether the time for the `AUTO_UNLINK` event has passed.
    pub unlink_posted: bool,
}

impl Entry {
    /// Returns an entry that no message has matched.
    pub const fn new(me: Me, pt: u32, list: List) -> Entry {
        Entry {
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
        }
    }

    /// Returns the offset of a message in the entry's memory, and the number of bytes kept. For an atomic, this number
    /// is a multiple of the item size.
    pub fn place(&self, header: &Header) -> (u64, u64) {
        let managed = self.me.options.contains(MeOptions::MANAGE_LOCAL);
        let offset = if managed { self.local_offset } else { header.remote_offset };
        let room = header.length.min(self.me.length.saturating_sub(offset));
        let item = header.atomic.map_or(1, |atomic| atomic.datatype().size() as u64);
        (offset, room - room % item)
    }
}

pub(crate) type Entries = Slab<MeHandle, Entry>;

/// Returns the position of the first entry on the list that matches the message.
pub(crate) fn search(list: &VecDeque<Key>, entries: &Entries, header: &Header) -> Option<usize> {
    list.iter().position(|key| {
        key.matches(header)
            && entries.get(key.entry).is_ok_and(|entry| fits(&entry.me, entry.local_offset, header))
    })
}
