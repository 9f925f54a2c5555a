//! The cycles of a run, and the times at which they begin.

use nicety_types::{Duration, Frequency, Time};

/// The edges of a core's clock, with the cycles of a run counted from 0. Cycles are whole numbers since the clock's
/// first edge, over any length of time. So no edge is off by the rounding of another one.
#[derive(Clone, Copy, Debug)]
pub struct Edges {
    clock: Frequency,
    /// The time of an edge.
    origin: Time,
    /// Cycles from that edge to the run's cycle 0.
    before: u64,
    /// Cycles of the card until the run's cycle 0.
    card: u64,
}

impl Edges {
    /// Returns a clock that starts with a run.
    pub(crate) fn own(clock: Frequency, now: Time) -> Edges {
        Edges { clock, origin: now, before: 0, card: clock.cycles_in(now.since(Time::ZERO)) }
    }

    /// Returns a clock with its first edge at `first`. Cycle 0 is the first that begins at `now` or later.
    pub(crate) fn since(clock: Frequency, first: Time, now: Time) -> Edges {
        let card = cycles_until(clock, first, now.max(first));
        // Small counts are faster to multiply.
        let (cycles, beat) = clock.beat();
        let beats = Duration::from_ps(card / cycles * beat.ps());
        Edges { clock, origin: first + beats, before: card % cycles, card }
    }

    /// Returns the time at which a cycle begins.
    pub fn at(&self, cycle: u64) -> Time {
        self.origin + self.clock.cycles(self.before + cycle)
    }

    /// Returns the first cycle that begins at `now` or later. `now` is not before cycle 0.
    pub(crate) fn until(&self, now: Time) -> u64 {
        cycles_until(self.clock, self.origin, now) - self.before
    }

    /// Returns the cycles of the card until cycle 0.
    pub const fn card(&self) -> u64 {
        self.card
    }
}

/// Returns the first cycle that begins at `now` or later.
fn cycles_until(clock: Frequency, started: Time, now: Time) -> u64 {
    let elapsed = now.since(started);
    let whole = clock.cycles_in(elapsed);
    if clock.cycles(whole) == elapsed { whole } else { whole + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The edges of a run are those of the clock. A run that begins at the end of another one begins at once.
        #[test]
        fn edges_are_the_clocks(
            hz in prop::sample::select(vec![3_000_000_000, 2_500_000_000, 600_000_000, 1_234_567_891, 7]),
            first in 0u64..100,
            now in 0u64..1 << 45,
            cycle in 0u64..100_000,
        ) {
            let clock = Frequency::from_hz(hz);
            let (first, now) = (Time::from_ps(first), Time::from_ps(now));
            let edges = Edges::since(clock, first, now);
            prop_assert_eq!(edges.at(cycle), first + clock.cycles(edges.card() + cycle));
            prop_assert!(edges.at(0) >= now);
            prop_assert!(edges.card() == 0 || first + clock.cycles(edges.card() - 1) < now);
            prop_assert_eq!(edges.until(edges.at(cycle)), cycle);
            prop_assert_eq!(edges.until(edges.at(cycle) + Duration::from_ps(1)), cycle + 1);
            let next = Edges::since(clock, first, edges.at(cycle));
            prop_assert_eq!((next.at(0), next.card()), (edges.at(cycle), edges.card() + cycle));
        }
    }
}
