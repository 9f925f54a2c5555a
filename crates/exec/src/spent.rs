//! The division of a process's virtual time into parts.

use nicety::{Duration, Time};

/// A part of a process's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Between calls: measured CPU time, and the cost of clocks.
    Computes,
    Sleeps,
    /// In calls of the network, except looks and waits.
    Calls,
    /// Looks at queues.
    Looks,
    /// Waits for the network.
    Waits,
    /// Waits outside the simulation.
    Outside,
}

/// The time of each part so far. Every instant belongs to exactly one part, because a lap ends where the next one begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    last: Time,
    parts: [Duration; 6],
}

impl Spent {
    /// Adds the time since the end of the last lap to a part, except the last `rest` of this time.
    pub(crate) fn lap(&mut self, part: Part, rest: Duration, now: Time) {
        let all = now.since(self.last);
        let time = all - rest.min(all);
        self.parts[part as usize] += time;
        self.last += time;
    }

    pub(crate) const fn of(&self, part: Part) -> Duration {
        self.parts[part as usize]
    }
}

/// Numbers of looks that find nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looks {
    pub(crate) all: u32,
    /// In calls that wait.
    pub(crate) of_waits: u32,
}

impl Looks {
    /// Limits the number of looks. The process may have written any number.
    pub(crate) fn at_most(self, most: u32) -> Looks {
        let all = self.all.min(most);
        Looks { all, of_waits: self.of_waits.min(all) }
    }

    /// Returns the looks after the looks `before`.
    pub(crate) const fn beyond(self, before: Looks) -> Looks {
        let all = self.all.saturating_sub(before.all);
        Looks { all, of_waits: self.of_waits.saturating_sub(before.of_waits) }
    }

    pub(crate) fn add(&mut self, more: Looks) {
        self.all += more.all;
        self.of_waits += more.of_waits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        let (mut spent, at) = (Spent::default(), |ns: u64| Time::from_ps(1000 * ns));
        for (part, until) in
            [(Part::Calls, 5), (Part::Waits, 7), (Part::Calls, 7), (Part::Looks, 8), (Part::Waits, 20)]
        {
            spent.lap(part, Duration::ZERO, at(until));
        }
        spent.lap(Part::Waits, Duration::from_ns(3), at(25));
        spent.lap(Part::Looks, Duration::ZERO, at(25));
        let of = |part| spent.of(part).ps() / 1000;
        assert_eq!([Part::Calls, Part::Waits, Part::Looks, Part::Sleeps].map(of), [5, 16, 4, 0]);
    }
}
