//! Units on a wire: those to arrive, in order, and which arrival is an event.

use crate::few::Few;
use nicety_types::Time;

/// The arrival time of a unit, and its number among the messages and units of its wire.
pub(crate) type Unit = (Time, u64);

/// The units of a wire that have been sent and not taken.
pub(crate) struct Expected {
    /// In the order of arrival. They are sent in nearly that order, and a wire between routers has about as many at a time.
    units: Few<Unit, 8>,
    /// Whether the far end waits for the next one.
    wanted: bool,
    /// The first of the unit arrivals in the event queue. While a unit is wanted, it is not later than the
    /// first unit's. Later ones may be obsolete.
    scheduled: Time,
    /// Whether the receiver is closed.
    closed: bool,
}

/// The outcome of an arrival in the event queue.
pub(crate) struct Happened {
    /// Whether a unit has arrived that the far end waits for.
    pub(crate) wanted: bool,
    /// The unit whose arrival is to be put into the queue.
    pub(crate) again: Option<Unit>,
}

impl Expected {
    pub(crate) fn new() -> Expected {
        Expected { units: Few::new(), wanted: false, scheduled: Time::MAX, closed: false }
    }

    /// Adds a unit. Whether its arrival is to be put into the queue of events.
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

    /// Prefetches the place of the next to be added, where it is not near this.
    pub(crate) fn prefetch(&self) {
        self.units.prefetch();
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        self.units.len() as u64
    }

    /// Takes the units that have come.
    pub(crate) fn take(&mut self, has_come: impl Fn(Unit) -> bool) -> u64 {
        self.units.take_while(has_come) as u64
    }

    /// The far end waits for the next unit, unless one has come that it has not taken. Returns one whose arrival is to be
    /// put into the queue of events.
    pub(crate) fn want(&mut self, has_come: impl Fn(Unit) -> bool) -> Option<Unit> {
        let next = self.units.first();
        self.wanted = !next.is_some_and(has_come);
        let next = next.filter(|(time, _)| self.wanted && *time < self.scheduled);
        if let Some((time, _)) = next {
            self.scheduled = time;
        }
        next
    }

    /// An arrival that stood in the queue happens at `now`.
    pub(crate) fn happen(&mut self, now: Time, has_come: impl Fn(Unit) -> bool) -> Happened {
        if self.scheduled == now {
            self.scheduled = Time::MAX;
        }
        let waited = self.wanted;
        let again = if waited { self.want(has_come) } else { None };
        // A unit has come if it is not waited for any more.
        Happened { wanted: waited && !self.wanted, again }
    }

    /// The receiver is closed.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.units.clear();
    }
}
