//! Portal table entries, and their flow control ('Portal Table Entries', 'Flow Control').
//!
//! With [`PtOptions::FLOWCTRL`], a message that finds an exhausted resource disables its portal table entry. The target
//! drops this message and every later one, and its answers report that to the initiators. The host gets one
//! `PT_DISABLED` event, after the events of all messages admitted before. The host makes room and then enables the
//! entry again. No event of an admitted message is lost.

use crate::state::portal::{OWN_PT, PortalEntry};
use crate::{Effects, EqHandle, Error, Event, EventKind, Interface, PtOptions};

impl Interface {
    /// Allocates a portal table entry without options.
    ///
    /// # Errors
    /// Those of [`Interface::pt_alloc_with`].
    pub fn pt_alloc(&mut self, wanted: Option<u32>, eq: Option<EqHandle>) -> Result<u32, Error> {
        self.pt_alloc_with(wanted, eq, PtOptions::empty())
    }

    /// Allocates the portal table entry `wanted`, or the first free entry if it is `None` (`PtlPTAlloc`). Returns the
    /// entry's index. Full events of its match entries go to `eq`, if given.
    ///
    /// # Errors
    /// [`Error::PtInUse`], [`Error::PtFull`], [`Error::Stale`] for the queue, [`Error::ArgInvalid`] for an index beyond
    /// the limit. With flow control also [`Error::PtEqNeeded`], [`Error::EqFull`], and [`Error::ArgInvalid`] for a
    /// queue that is too short. The queue needs room for three events, and for one event per portal table entry with
    /// flow control.
    pub fn pt_alloc_with(
        &mut self,
        wanted: Option<u32>,
        eq: Option<EqHandle>,
        options: PtOptions,
    ) -> Result<u32, Error> {
        let limit = self.limits.portal_table;
        eq.map(|eq| self.queues.get(eq)).transpose()?;
        let taken = |index: u32| self.table.get(index).is_some();
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
        let flow = match (options.contains(PtOptions::FLOWCTRL), eq) {
            (true, None) => return Err(Error::PtEqNeeded),
            (true, Some(eq)) => {
                self.queues.keep_notice(eq)?;
                Some(eq)
            }
            (false, _) => None,
        };
        self.table.insert(index, PortalEntry { eq, flow, ..PortalEntry::default() });
        if let Some(eq) = eq {
            self.queues.get_mut(eq)?.users += 1;
        }
        Ok(index)
    }

    /// Allocates the portal table entry of the card's own software, without options. It is outside the host's table,
    /// and its index is [`OWN_PT`] on every card. The host cannot use it.
    ///
    /// # Errors
    /// [`Error::PtInUse`] if the entry is already allocated; [`Error::Stale`] for the queue.
    pub fn pt_alloc_own(&mut self, eq: Option<EqHandle>) -> Result<(), Error> {
        eq.map(|eq| self.queues.get(eq)).transpose()?;
        if self.table.get(OWN_PT).is_some() {
            return Err(Error::PtInUse { index: OWN_PT });
        }
        self.table.insert(OWN_PT, PortalEntry { eq, ..PortalEntry::default() });
        if let Some(eq) = eq {
            self.queues.get_mut(eq)?.users += 1;
        }
        Ok(())
    }

    /// Frees a portal table entry (`PtlPTFree`).
    ///
    /// # Errors
    /// [`Error::PtInUse`] while match entries are linked, or in use by messages or unexpected headers;
    /// [`Error::ArgInvalid`] if the index is not in use.
    pub fn pt_free(&mut self, index: u32) -> Result<(), Error> {
        if self.portal(index)?.entries > 0 {
            return Err(Error::PtInUse { index });
        }
        let portal = self.table.remove(index).expect("it was just found");
        if let Some(eq) = portal.flow {
            self.queues.drop_notice(eq);
        }
        if let Some(eq) = portal.eq {
            self.queues.get_mut(eq)?.users -= 1;
        }
        Ok(())
    }

    /// Disables a portal table entry without an event (`PtlPTDisable`). The target drops every later message to it.
    ///
    /// # Errors
    /// [`Error::ArgInvalid`] if the index is not in use.
    pub fn pt_disable(&mut self, index: u32) -> Result<(), Error> {
        self.portal(index)?.disabled = true;
        Ok(())
    }

    /// Enables a portal table entry again (`PtlPTEnable`), after the host or flow control has disabled it.
    ///
    /// # Errors
    /// [`Error::ArgInvalid`] if the index is not in use.
    pub fn pt_enable(&mut self, index: u32) -> Result<(), Error> {
        self.portal(index)?.disabled = false;
        Ok(())
    }

    /// Returns whether the portal table entry admits messages.
    ///
    /// # Errors
    /// [`Error::ArgInvalid`] if the index is not in use.
    pub fn pt_enabled(&self, index: u32) -> Result<bool, Error> {
        let portal = self.table.get(index);
        portal.map(|portal| !portal.disabled).ok_or(NOT_IN_USE)
    }

    /// Reports that the card lacks a resource for messages already admitted to this portal table entry. If the entry
    /// has flow control, it is disabled, as by a message that finds an exhausted resource. Returns whether the entry
    /// has flow control.
    pub fn pt_exhausted(&mut self, index: u32, effects: &mut Effects) -> bool {
        match self.table.get(index) {
            Some(portal) if portal.flow.is_some() => {
                if !portal.disabled {
                    self.exhausted(index, false, effects);
                }
                true
            }
            _ => false,
        }
    }

    pub(crate) fn portal(&mut self, index: u32) -> Result<&mut PortalEntry, Error> {
        self.table.get_mut(index).ok_or(NOT_IN_USE)
    }

    /// Returns the portal table entry of a match entry.
    pub(crate) fn portal_of(&mut self, pt: u32) -> &mut PortalEntry {
        self.table.get_mut(pt).expect("a portal table entry in use is not freed")
    }

    /// Disables the portal table entry after a message found an exhausted resource.
    pub(crate) fn exhausted(&mut self, pt: u32, silent: bool, effects: &mut Effects) {
        self.statistics.flow_control += 1;
        let portal = self.portal_of(pt);
        portal.disabled = true;
        let (eq, notice) = (portal.flow.expect("only flow control disables"), portal.notice);
        // If an earlier `PT_DISABLED` event is due or unread, no further event is needed. The queue has room for only
        // one per entry.
        if silent || portal.notice_due || self.queues.unread(eq, notice) {
            return;
        }
        self.portal_of(pt).notice_due = true;
        self.notify(pt, effects);
    }

    /// Posts the due `PT_DISABLED` event once every admitted message is complete.
    pub(crate) fn notify(&mut self, pt: u32, effects: &mut Effects) {
        let portal = self.portal_of(pt);
        if portal.active > 0 || !portal.notice_due {
            return;
        }
        portal.notice_due = false;
        let eq = portal.flow.expect("only flow control has notices");
        let event = Event { pt, ..Event::new(EventKind::PtDisabled, self.node, 0) };
        self.portal_of(pt).notice = self.queues.post_notice(eq, event, effects);
    }

    /// Reserves room for events of a portal table entry with flow control. Events of all other entries share the rest
    /// of the queue.
    pub(crate) fn expect_events(&mut self, pt: u32, events: u32) -> Result<(), Error> {
        match self.portal_of(pt).flow {
            Some(eq) => self.queues.promise(eq, events),
            None => Ok(()),
        }
    }

    /// Posts an event into its reserved room. If `event` is `None`, frees the room instead.
    pub(crate) fn post_expected(&mut self, pt: u32, event: Option<Event>, effects: &mut Effects) {
        let portal = self.portal_of(pt);
        match (portal.flow, event) {
            (Some(eq), event) => self.queues.keep_promise(eq, event, effects),
            (None, Some(event)) => {
                let eq = portal.eq;
                self.post(eq, event, effects);
            }
            (None, None) => {}
        }
    }
}

const NOT_IN_USE: Error =
    Error::ArgInvalid("this portal table index is not in use; allocate it with `pt_alloc`");
