//! Event queues: allocation, reads by the host, and posting of events without reserved room.

use crate::error::release;
use crate::state::queue::Eq;
use crate::{Effects, EqHandle, Error, Event, Interface};

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
        self.queues.insert(Eq::new(depth))
    }

    /// Frees an event queue (`PtlEQFree`).
    ///
    /// # Errors
    /// [`Error::Stale`], or [`Error::InUse`] while a portal table entry or a memory descriptor uses it.
    pub fn eq_free(&mut self, eq: EqHandle) -> Result<(), Error> {
        release(self.queues.get(eq)?.users, "event queue", "a portal table entry or memory descriptor")?;
        self.queues.remove(eq).map(drop)
    }

    /// Reports that the host has removed `count` events from the queue, which frees their room. If `count` exceeds the
    /// number of events in the queue, the queue is then empty.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn eq_consumed(&mut self, eq: EqHandle, count: u32) -> Result<(), Error> {
        self.queues.get_mut(eq)?.consume(count);
        Ok(())
    }

    /// Returns the number of events that were lost since the queue's allocation, because the queue was full.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn eq_dropped(&self, eq: EqHandle) -> Result<u64, Error> {
        Ok(self.queues.get(eq)?.dropped())
    }

    /// Posts a full event, if there is a queue. If the queue is full, counts the event as dropped.
    pub(crate) fn post(&mut self, eq: Option<EqHandle>, event: Event, effects: &mut Effects) {
        if eq.is_some_and(|eq| !self.queues.post(eq, event, effects)) {
            self.statistics.events_dropped += 1;
        }
    }
}
