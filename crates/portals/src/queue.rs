//! Event queues: how many events each holds, and what happens to one too many.
//!
//! The events themselves are the card's and the host's business. Here is the bookkeeping of the producer: the
//! card writes an event only where the host has said that there is room ('Event queue overflow').

use crate::handle::Slab;
use crate::interface::release;
use crate::{Effect, Effects, EqHandle, Error, Event, Interface};

pub(crate) struct Eq {
    depth: u32,
    held: u32,
    dropped: u64,
    pub users: u32,
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
        self.queues.insert(Eq { depth, held: 0, dropped: 0, users: 0 })
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
        let queue = self.queues.get_mut(eq).expect("a queue in use is not freed");
        if queue.held == queue.depth {
            queue.dropped += 1;
            self.statistics.events_dropped += 1;
            effects.push(Effect::EventDropped { eq });
        } else {
            queue.held += 1;
            effects.push(Effect::Event { eq, event });
        }
    }
}
