//! The search for the sustainable rate of a card: runs at rates between a sustained and an unsustained one.
//!
//! A run with a backlog shows the departure rate, which is close to the sustainable rate if handlers behave alike then. So the
//! search continues from that figure, and confirms it by runs on either side. If the figure misleads, the search bisects the
//! interval.

use nicety::Error;

/// Factors below and above the departure rate at which a run confirms it.
const BELOW: f64 = 0.01;
const ABOVE: f64 = 1.03;
/// Minimum ratio of the result over an unsustained rate, and of a sustained rate over the result: the result is within 3 %.
const CLOSE: f64 = 0.97;
/// Factor above the departure rate at which a search for a comparison of cards runs once.
const BESIDE: f64 = 1.05;
/// Maximum ratio of an interval that is the result.
const NARROW: f64 = 1.02;
/// The same ratio, if nothing shows the rate's place in the interval.
const WIDE: f64 = 1.03;
/// First factor beyond the rate by loads. Then the factor beyond the last sustained rate, which grows with each success.
const BEYOND: f64 = 1.025;
const FAR: f64 = 1.25;
const FARTHER: f64 = 2.0;
/// The first steps down from a run near the departure rate that was stopped: packets starve not far above the sustained rate.
const DOWN: f64 = 0.85;
const DOWN_STEPS: u32 = 2;
/// Maximum step below the departure rate. If the rate there is not sustained either, the departure rate follows the offered
/// rate, and shows nothing.
const DEEPEST: f64 = 0.05;
/// Minimum step.
const LEAST: f64 = 1.005;
/// Maximum number of rates, and of stopped runs.
const MOST: usize = 16;
const MOST_STOPPED: usize = 5;
/// Maximum relative difference at which a rate by loads equals the departure rate. It is not blurred by the ends of a run.
const SAME: f64 = 0.01;
/// Maximum ratio of an unsustained rate over its departure rate that ends a search for a comparison of cards.
const ROUGH: f64 = 1.1;

/// The outcome of a run at one rate. Rates are relative to the first run's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    /// No losses and no backlog, and the rate by loads.
    Sustained(f64),
    /// Losses or a growing backlog, and the departure rate.
    Behind(f64),
    /// A handler was stopped, or something failed.
    Stopped,
    /// The packets have another rate than all packets of the traffic.
    OtherRate,
}

/// The state before the search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Whether the card sustains the rate of the first run; otherwise the departure rate.
    pub(super) first: Outcome,
    /// The sustainable rate by the loads of the parts.
    pub(super) loads: f64,
    /// The maximum rate of the search.
    pub(super) most: f64,
    /// Whether figures are only compared between cards, without confirmation.
    pub(super) rough: bool,
}

/// The result of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    /// The sustainable rate.
    pub(super) rate: f64,
    /// The highest rate sustained in a run; 0 without one.
    pub(super) sustained: f64,
    /// The lowest unsustained rate above it; none if the maximum rate was sustained.
    pub(super) not_sustained: Option<f64>,
}

/// Searches the sustainable rate of a card; none where runs show nothing of it.
///
/// # Errors
/// Those of `run`.
pub(super) fn search(
    known: &Known,
    mut run: impl FnMut(f64, &Found) -> Result<Outcome, Error>,
) -> Result<Option<Found>, Error> {
    let mut interval = Interval::of(known);
    for _ in 0..MOST {
        let Some(next) = interval.next(known) else { return Ok(Some(interval.found(known))) };
        match run(next, &interval.found(known))? {
            Outcome::OtherRate => return Ok(None),
            outcome => interval.narrow(next, outcome),
        }
    }
    // Packets in bursts that are lost at any mean rate do not show a rate.
    Ok((interval.low > 0.0).then(|| interval.found(known)))
}

/// The rates around the sustainable one.
#[derive(Debug)]
struct Interval {
    low: f64,
    high: Option<f64>,
    /// The departure rate at `high`.
    through: Option<f64>,
    /// The sustainable rate by loads, from the latest sustained run.
    loads: f64,
    /// The next steps: below the departure rate, and beyond the sustained rate.
    below: f64,
    far: f64,
    stopped: usize,
    /// Steps of [`DOWN`] that are left.
    down: u32,
    /// Whether departure rates show nothing: the card sustained more than one of them, or loses some packets at any rate.
    misled: bool,
}

impl Interval {
    fn of(known: &Known) -> Interval {
        let mut interval = Interval {
            low: 0.0,
            high: None,
            through: None,
            loads: known.loads,
            below: BELOW,
            far: LEAST,
            stopped: 0,
            down: 0,
            misled: false,
        };
        interval.narrow(1.0, known.first);
        // Loads of the first run count as much as those of a later one.
        interval.loads = known.loads;
        interval.far = LEAST;
        interval
    }

    fn narrow(&mut self, rate: f64, outcome: Outcome) {
        match outcome {
            Outcome::Sustained(loads) => {
                self.misled |= self.through.is_some_and(|through| through < rate);
                (self.low, self.loads, self.below) = (rate, loads, BELOW);
                self.far = if self.far < FAR { FAR } else { FARTHER * self.far };
            }
            Outcome::Behind(through) => {
                // A rate slightly too high loses few packets: a larger step finds a sustained one.
                let below_before = self.through.is_some_and(|before| rate < before);
                self.below = if below_before { 2.0 * self.below } else { BELOW };
                self.misled |= self.below > DEEPEST;
                (self.high, self.through) = (Some(rate), Some(through.min(rate)));
                self.down = DOWN_STEPS;
            }
            Outcome::Stopped => {
                self.stopped += 1;
                self.down = self.down.saturating_sub(u32::from(self.through.is_none()));
                (self.high, self.through) = (Some(rate), None);
            }
            Outcome::OtherRate => {}
        }
    }

    /// Returns the next rate; none if the result is close enough.
    fn next(&self, known: &Known) -> Option<f64> {
        let Some(high) = self.high else {
            let next = (BEYOND * self.loads).max(self.far * self.low).min(known.most);
            return (next >= LEAST * self.low).then_some(next);
        };
        if high <= NARROW * self.low || self.stopped >= MOST_STOPPED {
            return None;
        }
        match self.through.filter(|_| !self.misled) {
            Some(through) if known.rough && high <= ROUGH * through => None,
            Some(through) if known.rough => Some(BESIDE * through),
            Some(through) => {
                let (below, above) = (through * (1.0 - self.below), ABOVE * through);
                match below > LEAST * self.low {
                    true => Some(below),
                    false if CLOSE * high > through => Some(above),
                    false => (self.low < CLOSE * through).then(|| (self.low * high).sqrt()),
                }
            }
            // With a backlog, the card does less than its sustained rate.
            None if self.through.is_none() && self.down > 0 && DOWN * high > self.low => Some(DOWN * high),
            None if self.low > 0.0 => (high > WIDE * self.low).then(|| (self.low * high).sqrt()),
            None => Some(high / 2.0),
        }
    }

    fn found(&self, known: &Known) -> Found {
        let rate = match (self.high, self.through) {
            (None, _) => self.low,
            (Some(high), Some(through)) => {
                let by_loads = [self.loads, known.loads].into_iter().find(|loads| {
                    (loads / through - 1.0).abs() <= SAME
                        && (self.low..=high).contains(loads)
                        && CLOSE * high <= *loads
                });
                by_loads.unwrap_or(through).max(self.low)
            }
            (Some(_), None) => self.low,
        };
        Found { rate, sustained: self.low, not_sustained: self.high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Searches on a card with the sustainable rate `sustains`, and the departure rate `through` of a backlog. Loads give another
    /// rate.
    fn find(loads: f64, sustains: f64, through: impl Fn(f64) -> f64) -> (Found, Vec<f64>) {
        let run = |rate: f64| match rate <= sustains {
            true => Outcome::Sustained(loads),
            false => Outcome::Behind(through(rate)),
        };
        let known = Known { first: run(1.0), loads, most: 100.0, rough: false };
        let mut rates = Vec::new();
        let found = search(&known, |rate, _| {
            rates.push((rate * 1000.0).round() / 1000.0);
            Ok(run(rate))
        });
        (found.unwrap().unwrap(), rates)
    }

    #[test]
    fn loads_that_are_right_are_confirmed_on_either_side() {
        let (found, rates) = find(4.0, 4.0, |_| 4.02);
        assert_eq!((found.rate, rates), (4.0, vec![4.1, 3.98]));
        assert_eq!((found.not_sustained, found.sustained), (Some(4.1), 0.99 * 4.02));
        // The same if the first rate is already too high.
        let (found, rates) = find(0.25, 0.25, |_| 0.25);
        assert_eq!((found.rate, rates), (0.25, vec![0.248, 0.258]));
    }

    #[test]
    fn loads_that_are_wrong_say_where_to_begin() {
        let (found, rates) = find(14.9, 2.2, |_| 2.2);
        assert_eq!((found.rate, rates), (2.2, vec![15.272, 2.178, 2.266]));
        let (found, _) = find(1.1, 50.0, |_| 50.0);
        assert_eq!(found.rate, 50.0);
    }

    #[test]
    fn a_card_that_gets_less_through_the_more_comes_is_found_by_halves() {
        let (found, rates) = find(40.0, 4.0, |rate| 4.0 / rate);
        assert!((0.97..=1.0).contains(&(found.rate / 4.0)), "{found:?} {rates:?}");
        assert!(found.not_sustained.unwrap() / found.sustained <= WIDE);
    }

    #[test]
    fn the_most_that_is_looked_for_is_enough() {
        let known = Known { first: Outcome::Sustained(9.0), loads: 9.0, most: 2.5, rough: false };
        let found = search(&known, |_, _| Ok(Outcome::Sustained(9.0))).unwrap().unwrap();
        assert_eq!(found, Found { rate: 2.5, sustained: 2.5, not_sustained: None });
        let full = Known { most: 1.0, ..known };
        let found = search(&full, |_, _| unreachable!()).unwrap().unwrap();
        assert_eq!((found.rate, found.not_sustained), (1.0, None));
    }

    #[test]
    fn runs_that_are_stopped_are_followed_by_ones_in_between() {
        let mut rates = Vec::new();
        let known = Known { first: Outcome::Sustained(10.0), loads: 10.0, most: 100.0, rough: false };
        let found = search(&known, |rate, _| {
            rates.push((rate * 1000.0).round() / 1000.0);
            Ok(if rate > 5.0 { Outcome::Stopped } else { Outcome::Sustained(100.0) })
        });
        let found = found.unwrap().unwrap();
        assert_eq!(rates, [10.25, 3.202, 5.729, 4.283, 4.953, 5.327, 5.136, 5.044]);
        assert_eq!((found.rate, found.sustained), (found.sustained, found.rate));
        assert!(found.rate > 4.8);
        let all = search(&known, |_, _| Ok(Outcome::Stopped)).unwrap().unwrap();
        assert_eq!(all.rate, 1.0);
        assert!(search(&known, |_, _| Err(Error::Interrupted)).is_err());
        assert_eq!(search(&known, |_, _| Ok(Outcome::OtherRate)), Ok(None));
    }

    #[test]
    fn a_stop_near_the_departure_rate_is_followed_by_one_not_far_below() {
        let mut rates = Vec::new();
        let known = Known { first: Outcome::Sustained(10.0), loads: 10.0, most: 100.0, rough: false };
        let found = search(&known, |rate, _| {
            rates.push((rate * 1000.0).round() / 1000.0);
            Ok(match rate {
                6.0.. => Outcome::Behind(5.5),
                5.0.. => Outcome::Stopped,
                _ => Outcome::Sustained(100.0),
            })
        });
        assert_eq!(rates, [10.25, 5.445, 4.628, 5.02, 4.82, 4.919]);
        assert_eq!(found.unwrap().unwrap().rate.round(), 5.0);
    }

    #[test]
    fn a_rough_search_needs_one_run_beside_what_comes_through() {
        let mut rates = Vec::new();
        let known = Known { first: Outcome::Sustained(8.0), loads: 8.0, most: 100.0, rough: true };
        let found = search(&known, |rate, _| {
            rates.push(rate);
            Ok(Outcome::Behind(4.0))
        });
        assert_eq!((found.unwrap().unwrap().rate, rates), (4.0, vec![8.2, 4.2]));
    }

    #[test]
    fn a_card_that_loses_few_packets_at_any_higher_rate_is_found_by_halves() {
        let (found, rates) = find(1.5, 1.0, |rate| 0.999 * rate);
        assert!((1.0..1.03).contains(&found.rate), "{found:?} {rates:?}");
    }

    #[test]
    fn losses_at_every_rate_say_nothing_of_one() {
        let known = Known { first: Outcome::Behind(0.7), loads: 5.0, most: 100.0, rough: false };
        let found = search(&known, |rate, _| Ok(Outcome::Behind(0.7 * rate)));
        assert_eq!(found, Ok(None));
    }

    proptest! {
        /// Loads may give any rate, and the departure rate of a backlog may be far below the sustainable rate.
        #[test]
        fn any_rate_is_found_within_3_percent(
            loads in -3f64..4.0, sustains in -3f64..4.0, less in 0f64..1.0, blur in -0.01f64..0.01, follows in -1f64..1.0,
        ) {
            let (loads, sustains) = (loads.exp(), sustains.exp());
            let (found, rates) = find(loads, sustains, |rate| {
                // Half the cards lose a part of the rate above the sustainable one, the others more of it the higher it is.
                let backlog = sustains * (1.0 - less * (1.0 - sustains / rate));
                let departs = if follows > 0.0 { sustains + follows * (rate - sustains) } else { backlog };
                departs * (1.0 + blur)
            });
            prop_assert!((found.rate / sustains - 1.0).abs() <= 0.03, "{found:?} of {sustains}: {rates:?}");
            prop_assert!(rates.len() < MOST);
        }
    }
}
