//! Event queues: their capacity and overflow.
//!
//! This module does not store events. It counts free places for the card, which may write an event only into a free
//! place. The host reports the places that it has freed ('Event queue overflow').
//!
//! Portal table entries with flow control lose no event. The queue reserves room for a message's events when the
//! message is admitted. It always reserves room for one `PT_DISABLED` event of each such entry. All other events share
//! the rest.

use crate::handle::Slab;
use crate::{Effect, Effects, EqHandle, Error, Event};

pub(crate) struct Eq {
    depth: u32,
    held: u32,
    /// Number of future events with reserved room.
    promised: u32,
    /// Number of portal table entries with flow control. Each may post one `PT_DISABLED`, even if the queue is full.
    notices: u32,
    /// Number of events posted since the queue was allocated.
    posted: u64,
    dropped: u64,
    pub users: u32,
}

impl Eq {
    /// Returns an empty queue.
    pub const fn new(depth: u32) -> Eq {
        Eq { depth, held: 0, promised: 0, notices: 0, posted: 0, dropped: 0, users: 0 }
    }

    /// Removes the oldest events, at most all.
    pub const fn consume(&mut self, count: u32) {
        self.held = self.held.saturating_sub(count);
    }

    /// Returns the number of events that were lost because the queue was full.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of free places that are not reserved.
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

impl Queues {
    /// Posts a full event. If the queue is full, the event is lost, and the result is false.
    pub fn post(&mut self, eq: EqHandle, event: Event, effects: &mut Effects) -> bool {
        let queue = self.queue(eq);
        let posted = queue.room() > 0;
        if posted {
            queue.push();
            effects.push(Effect::Event { eq, event });
        } else {
            queue.dropped += 1;
            effects.push(Effect::EventDropped { eq });
        }
        posted
    }

    /// Reserves room for `events` future events.
    ///
    /// # Errors
    /// [`Error::EqFull`]; no room is reserved then.
    pub fn promise(&mut self, eq: EqHandle, events: u32) -> Result<(), Error> {
        let queue = self.queue(eq);
        if queue.room() < events {
            return Err(Error::EqFull { needed: events });
        }
        queue.promised += events;
        Ok(())
    }

    /// Posts an event into its reserved room. If `event` is `None`, frees the room instead.
    pub fn keep_promise(&mut self, eq: EqHandle, event: Option<Event>, effects: &mut Effects) {
        let queue = self.queue(eq);
        queue.promised -= 1;
        if let Some(event) = event {
            queue.push();
            effects.push(Effect::Event { eq, event });
        }
    }

    /// Reserves room for the `PT_DISABLED` event of one more portal table entry. The queue's depth must allow one such
    /// event per entry, and the three events that a message may have.
    pub fn keep_notice(&mut self, eq: EqHandle) -> Result<(), Error> {
        let queue = self.get_mut(eq)?;
        if queue.depth - queue.notices < 4 {
            return Err(Error::ArgInvalid(
                "with flow control an event queue needs room for three events and one more for each portal table entry",
            ));
        }
        if queue.room() == 0 {
            return Err(Error::EqFull { needed: 1 });
        }
        queue.notices += 1;
        Ok(())
    }

    /// Frees the room for the `PT_DISABLED` event of a portal table entry.
    pub fn drop_notice(&mut self, eq: EqHandle) {
        self.queue(eq).notices -= 1;
    }

    /// Posts the `PT_DISABLED` event of a portal table entry, and returns the event's number. The caller has checked
    /// that the host has read the previous one.
    pub fn post_notice(&mut self, eq: EqHandle, event: Event, effects: &mut Effects) -> u64 {
        let queue = self.queue(eq);
        queue.push();
        effects.push(Effect::Event { eq, event });
        queue.posted
    }

    /// Returns whether the event with this number is still unread.
    pub fn unread(&self, eq: EqHandle, number: u64) -> bool {
        self.get(eq).is_ok_and(|queue| number > queue.posted - u64::from(queue.held))
    }

    fn queue(&mut self, eq: EqHandle) -> &mut Eq {
        self.get_mut(eq).expect("a queue in use is not freed")
    }
}
