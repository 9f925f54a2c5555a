//! Event queues: how many events each holds, and its overflow.
//!
//! The events themselves are kept by the card and the host. Here is the bookkeeping of the producer: the card
//! writes an event only where the host has said that there is room ('Event queue overflow').
//!
//! Portal table entries with flow control lose no event: room is reserved for the events of a message when it
//! is let in, and for one `PT_DISABLED` of each entry at any time. All other events share the rest.

use crate::handle::Slab;
use crate::interface::release;
use crate::{Effect, Effects, EqHandle, Error, Event, Interface};

pub(crate) struct Eq {
    depth: u32,
    held: u32,
    /// Room reserved for events to come.
    promised: u32,
    /// Portal table entries with flow control: each may post one `PT_DISABLED` however full the queue is.
    notices: u32,
    /// Events ever posted.
    posted: u64,
    dropped: u64,
    pub users: u32,
}

impl Eq {
    /// Free room that is not reserved.
    fn room(&self) -> u32 {
        self.depth.saturating_sub(self.held.saturating_add(self.promised).saturating_add(self.notices))
    }

    fn push(&mut self) {
        debug_assert!(self.held < self.depth, "room was looked at or promised before");
        self.held += 1;
        self.posted += 1;
    }
}

pub(crate) type Queues = Slab<EqHandle, Eq>;

impl Interface {
    /// An event queue for at most `depth` events (`PtlEQAlloc`).
    ///
    /// # Errors
    /// [`Error::NoSpace`], or [`Error::ArgInvalid`] for a depth of zero or above the limit.
    pub fn eq_alloc(&mut self, depth: u32) -> Result<EqHandle, Error> {
        if depth == 0 || depth > self.limits.event_queue_depth {
            return Err(Error::ArgInvalid(
                "an event queue holds at least one event, and at most the limit `event_queue_depth`",
            ));
        }
        self.queues.insert(Eq { depth, held: 0, promised: 0, notices: 0, posted: 0, dropped: 0, users: 0 })
    }

    /// Frees an event queue (`PtlEQFree`).
    ///
    /// # Errors
    /// [`Error::Stale`], or [`Error::InUse`] while a portal table entry or a memory descriptor names it.
    pub fn eq_free(&mut self, eq: EqHandle) -> Result<(), Error> {
        release(self.queues.get(eq)?.users, "event queue", "a portal table entry or memory descriptor")?;
        self.queues.remove(eq).map(drop)
    }

    /// The host has taken `count` events out of the queue, so that there is room for as many more. Taking
    /// more than the queue holds empties it.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn eq_consumed(&mut self, eq: EqHandle, count: u32) -> Result<(), Error> {
        let queue = self.queues.get_mut(eq)?;
        queue.held = queue.held.saturating_sub(count);
        Ok(())
    }

    /// How many events found the queue full since it was made.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn eq_dropped(&self, eq: EqHandle) -> Result<u64, Error> {
        Ok(self.queues.get(eq)?.dropped)
    }

    /// Posts a full event, if there is a queue for it and room in the queue.
    pub(crate) fn post(&mut self, eq: Option<EqHandle>, event: Event, effects: &mut Effects) {
        let Some(eq) = eq else { return };
        let queue = self.queue(eq);
        if queue.room() == 0 {
            queue.dropped += 1;
            self.statistics.events_dropped += 1;
            effects.push(Effect::EventDropped { eq });
        } else {
            queue.push();
            effects.push(Effect::Event { eq, event });
        }
    }

    /// Whether there is room for `events` more.
    pub(crate) fn has_room(&self, eq: EqHandle, events: u32) -> bool {
        self.queues.get(eq).is_ok_and(|queue| queue.room() >= events)
    }

    /// Reserves room for `events` to come. The caller has checked that it is there.
    pub(crate) fn promise(&mut self, eq: EqHandle, events: u32) {
        self.queue(eq).promised += events;
    }

    /// Posts an event that has room reserved, or frees the room.
    pub(crate) fn keep_promise(&mut self, eq: EqHandle, event: Option<Event>, effects: &mut Effects) {
        let queue = self.queue(eq);
        queue.promised -= 1;
        if let Some(event) = event {
            queue.push();
            effects.push(Effect::Event { eq, event });
        }
    }

    /// Reserves room for the notices of one portal table entry more, if there is enough for them and for the
    /// events of a message, of which there are at most three.
    pub(crate) fn keep_notice(&mut self, eq: EqHandle) -> Result<(), Error> {
        let queue = self.queues.get_mut(eq)?;
        if queue.depth - queue.notices < 4 {
            return Err(Error::ArgInvalid(
                "with flow control an event queue holds three events, and one for each portal table entry",
            ));
        }
        if queue.room() == 0 {
            return Err(Error::EqFull { needed: 1 });
        }
        queue.notices += 1;
        Ok(())
    }

    /// Frees the notice of a portal table entry with flow control.
    pub(crate) fn drop_notice(&mut self, eq: EqHandle) {
        self.queue(eq).notices -= 1;
    }

    /// Posts a portal table entry's notice, and returns its number. The caller has seen that the one before
    /// was read.
    pub(crate) fn post_notice(&mut self, eq: EqHandle, event: Event, effects: &mut Effects) -> u64 {
        let queue = self.queue(eq);
        queue.push();
        effects.push(Effect::Event { eq, event });
        queue.posted
    }

    /// Whether the host has yet to read the event of this number.
    pub(crate) fn unread(&self, eq: EqHandle, number: u64) -> bool {
        self.queues.get(eq).is_ok_and(|queue| number > queue.posted - u64::from(queue.held))
    }

    fn queue(&mut self, eq: EqHandle) -> &mut Eq {
        self.queues.get_mut(eq).expect("a queue in use is not freed")
    }
}
