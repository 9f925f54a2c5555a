//! Units in flight on a wire, in order, and the arrivals among them that are events.

use crate::sorted_queue::SortedQueue;
use nicety_types::Time;

/// The arrival time of a unit, and its number among the messages and units of its wire.
pub(crate) type Unit = (Time, u64);

/// The units of a wire that were sent and not taken.
pub(crate) struct Expected {
    /// The units in order of arrival. Units are sent nearly in this order. A wire between routers has about 8 units in
    /// flight.
    units: SortedQueue<Unit, 8>,
    /// Whether the far end waits for the next unit.
    wanted: bool,
    /// The time of the first unit arrival in the event queue. While a unit is wanted, this time is not later than the
    /// arrival of the first unit. Later entries in the event queue may be obsolete.
    scheduled: Time,
    /// Whether the receiver is closed.
    closed: bool,
}

/// The outcome of an arrival in the event queue.
pub(crate) struct ArrivalOutcome {
    /// Whether a unit has arrived for which the far end waited.
    pub(crate) wanted: bool,
    /// The unit, if any, for which the caller must queue an arrival event.
    pub(crate) again: Option<Unit>,
}

impl Expected {
    pub(crate) fn new() -> Expected {
        Expected { units: SortedQueue::new(), wanted: false, scheduled: Time::MAX, closed: false }
    }

    /// Adds a unit. Returns whether its arrival must be queued as an event.
    pub(crate) fn insert(&mut self, time: Time, count: u64) -> bool {
        if self.closed {
            return false;
        }
        self.units.insert((time, count));
        let sooner = self.wanted && time < self.scheduled;
        if sooner {
            self.scheduled = time;
        }
        sooner
    }

    /// Prefetches the memory for the next unit that is added, if the units are in separate memory.
    pub(crate) fn prefetch(&self) {
        self.units.prefetch();
    }

    /// Number of units.
    pub(crate) fn len(&self) -> u64 {
        self.units.len() as u64
    }

    /// Takes the units that have arrived.
    pub(crate) fn take(&mut self, has_come: impl Fn(Unit) -> bool) -> u64 {
        self.units.take_while(has_come) as u64
    }

    /// Starts the far end's wait for the next unit, unless a unit has arrived and is not taken. Returns the unit, if any,
    /// for which the caller must queue an arrival event.
    pub(crate) fn want(&mut self, has_come: impl Fn(Unit) -> bool) -> Option<Unit> {
        let next = self.units.first();
        self.wanted = !next.is_some_and(has_come);
        let next = next.filter(|(time, _)| self.wanted && *time < self.scheduled);
        if let Some((time, _)) = next {
            self.scheduled = time;
        }
        next
    }

    /// Handles a queued arrival, which is due at `now`.
    pub(crate) fn happen(&mut self, now: Time, has_come: impl Fn(Unit) -> bool) -> ArrivalOutcome {
        if self.scheduled == now {
            self.scheduled = Time::MAX;
        }
        let waited = self.wanted;
        let again = if waited { self.want(has_come) } else { None };
        // If the far end has stopped waiting, a unit has arrived.
        ArrivalOutcome { wanted: waited && !self.wanted, again }
    }

    /// Closes the receiver.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.units.clear();
    }
}
