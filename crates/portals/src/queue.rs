//! Event queues: their capacity and overflow.
//!
//! Card and host keep the events themselves. This module is the producer's bookkeeping: the card writes an event only into free space,
//! which the host reports ('Event queue overflow').
//!
//! Portal table entries with flow control lose no event. Room for the events of a message is reserved when it is admitted, and room for one
//! `PT_DISABLED` of each entry at all times. All other events share the rest.

use crate::handle::Slab;
use crate::interface::release;
use crate::{Effect, Effects, EqHandle, Error, Event, Interface};

pub(crate) struct Eq {
    depth: u32,
    held: u32,
    /// Room reserved for future events.
    promised: u32,
    /// Portal table entries with flow control: each may post one `PT_DISABLED`, even if the queue is full.
    notices: u32,
    /// Events posted since the queue was allocated.
    posted: u64,
    dropped: u64,
    pub users: u32,
}

impl Eq {
    /// Returns the free room that is not reserved.
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
    /// Allocates an event queue for at most `depth` events (`PtlEQAlloc`).
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
    /// [`Error::Stale`], or [`Error::InUse`] while a portal table entry or a memory descriptor uses it.
    pub fn eq_free(&mut self, eq: EqHandle) -> Result<(), Error> {
        release(self.queues.get(eq)?.users, "event queue", "a portal table entry or memory descriptor")?;
        self.queues.remove(eq).map(drop)
    }

    /// Reports that the host has removed `count` events from the queue, which frees their room. A `count` beyond the events in the queue
    /// empties it.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn eq_consumed(&mut self, eq: EqHandle, count: u32) -> Result<(), Error> {
        let queue = self.queues.get_mut(eq)?;
        queue.held = queue.held.saturating_sub(count);
        Ok(())
    }

    /// Returns the number of events that found the queue full since its allocation.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn eq_dropped(&self, eq: EqHandle) -> Result<u64, Error> {
        Ok(self.queues.get(eq)?.dropped)
    }

    /// Posts a full event, if there is a queue and room in it.
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

    /// Returns whether there is room for `events` more.
    pub(crate) fn has_room(&self, eq: EqHandle, events: u32) -> bool {
        self.queues.get(eq).is_ok_and(|queue| queue.room() >= events)
    }

    /// Reserves room for `events`. The caller has checked the room.
    pub(crate) fn promise(&mut self, eq: EqHandle, events: u32) {
        self.queue(eq).promised += events;
    }

    /// Posts an event with reserved room, or frees the room.
    pub(crate) fn keep_promise(&mut self, eq: EqHandle, event: Option<Event>, effects: &mut Effects) {
        let queue = self.queue(eq);
        queue.promised -= 1;
        if let Some(event) = event {
            queue.push();
            effects.push(Effect::Event { eq, event });
        }
    }

    /// Reserves room for the notice of one more portal table entry. The queue must have room for all notices and for the at most three
    /// events of a message.
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

    /// Posts a portal table entry's notice, and returns its number. The caller has checked that the previous one was read.
    pub(crate) fn post_notice(&mut self, eq: EqHandle, event: Event, effects: &mut Effects) -> u64 {
        let queue = self.queue(eq);
        queue.push();
        effects.push(Effect::Event { eq, event });
        queue.posted
    }

    /// Returns whether the event of this number is unread.
    pub(crate) fn unread(&self, eq: EqHandle, number: u64) -> bool {
        self.queues.get(eq).is_ok_and(|queue| number > queue.posted - u64::from(queue.held))
    }

    fn queue(&mut self, eq: EqHandle) -> &mut Eq {
        self.queues.get_mut(eq).expect("a queue in use is not freed")
    }
}
