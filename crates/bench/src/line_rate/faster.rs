//! What a card is said to sustain, tried: the same traffic once more, as much faster.
//!
//! Loads at a rate do not say all of a higher one. Handlers that wait for a lock keep its word busy and hold it for longer, lines move
//! between the caches of more processors, a host takes more frames with each interrupt. So the rate that loads give is offered, as far as
//! the wire takes it, and what is seen there counts.

use super::offer::Judged;
use super::rig::Rig;
use super::row::Row;
use super::tested::Tested;
use super::verdict::{BARELY, Verdict};
use nicety::{Error, Failure};
use schemars::JsonSchema;
use serde::Serialize;

/// Most runs to try.
const MOST: usize = 5;
/// How far beyond the rate that loads give is tried: the part that limits has too much to do then, and is told by that.
const BEYOND: f64 = 1.05;
/// Least room below the wire's rate for anything to be tried.
const LEAST: f64 = 1.01;
/// Packets of traffic that are tried, at most; of longer traffic they stand for it, if they come at its mean rate.
const PACKETS: u64 = 100_000;
/// How far their mean rate may be from that of all.
const SAME: f64 = 0.1;

/// How fast traffic comes, and how much of it.
pub(super) struct Speed {
    /// Over the rate that it has.
    pub(super) times: f64,
    /// How many packets each port offers, if it is not to be found out.
    pub(super) shares: Option<Vec<u64>>,
}

impl Speed {
    /// The rate that it has.
    pub(super) const fn as_given() -> Speed {
        Speed { times: 1.0, shares: None }
    }
}

/// A run with the same traffic at a higher rate.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "TriedRate")]
pub struct TriedRow {
    /// The rate, over the traffic's.
    pub rate_fraction: f64,
    /// Packets offered: the first ones of the traffic.
    pub packets: u64,
    /// Whether the card keeps up with it; none where the run was stopped.
    pub verdict: Option<Verdict>,
    /// The part that limits then.
    pub limiting_part: Option<String>,
    /// The rate that the card sustains by this run, over the traffic's.
    pub capacity_fraction: Option<f64>,
    /// Why the run was stopped, if it was: a handler that is starved by others, or a failure that the traffic's own rate does not have.
    pub stopped: Option<String>,
}

impl Rig<'_> {
    /// Tries what a card is said to sustain with which the card keeps up. Also gives the rate that it sustains then, over the traffic's;
    /// none where nothing was tried.
    pub(super) fn try_faster(
        &self,
        tested: &Tested<'_>,
        expressions: &[String],
        first: &Judged,
    ) -> Result<(Vec<TriedRow>, Option<f64>), Error> {
        let row = &first.row;
        let wire = 1.0 / first.wire.max(f64::MIN_POSITIVE);
        let mut next = (BEYOND * row.capacity_fraction).min(wire);
        if row.verdict == Verdict::No || next < LEAST {
            return Ok((Vec::new(), None));
        }
        let offered = row.traffic.as_ref().map_or(row.packets, |traffic| traffic.offered);
        let shares = shares(first.shares.as_deref(), offered);
        let quiet = self.quiet();
        let rig = Rig { environment: &quiet, ..*self };
        let mut tried = Vec::new();
        // The highest rate at which it ran, and what it sustains by that run; and the lowest one at which it was stopped.
        let (mut ran, mut capacity, mut stopped) = (1.0, None, f64::INFINITY);
        while tried.len() < MOST && next >= LEAST * ran {
            let speed = Speed { times: next, shares: Some(shares.clone()) };
            let of = match rig.offer_at(tested, expressions, &speed, None) {
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                other => other.and_then(|judged| judged.without_new(&first.failures)),
            };
            match of {
                Ok(faster) => {
                    if (faster.packet_interval_ns * next / row.packet_interval_ns - 1.0).abs() > SAME {
                        return Ok((Vec::new(), None));
                    }
                    let sustains = next * faster.capacity_fraction;
                    tried.push(TriedRow::of(next, &faster, sustains));
                    let is_known = faster.verdict == Verdict::No || faster.capacity_fraction < BEYOND;
                    // Of what it would sustain beyond that nothing is known where a run was stopped.
                    let most = if is_known || stopped.is_infinite() { sustains } else { next };
                    (ran, capacity) = (next, Some(most));
                    if is_known {
                        break;
                    }
                    next = (BEYOND * sustains).min(wire).min((next * stopped).sqrt());
                }
                Err(error) => {
                    tried.push(TriedRow::stopped(next, shares.iter().sum(), &error));
                    (stopped, capacity) = (next, capacity.or(Some(ran)));
                    next = (ran * next).sqrt();
                }
            }
        }
        Ok((tried, capacity))
    }
}

/// How many packets each port offers of traffic with so many.
fn shares(of_ports: Option<&[u64]>, offered: u64) -> Vec<u64> {
    let some = |packets: u64| match offered > PACKETS {
        true => (u128::from(packets) * u128::from(PACKETS)).div_ceil(offered.into()) as u64,
        false => packets,
    };
    of_ports.unwrap_or(&[offered]).iter().map(|packets| some(*packets)).collect()
}

impl Judged {
    /// Its row, unless something failed in it that did not before.
    fn without_new(self, before: &[Failure]) -> Result<Row, Error> {
        let known = |failure: &Failure| before.iter().any(|other| other.kind == failure.kind);
        match self.failures.iter().find(|failure| !known(failure)) {
            Some(failure) => Err(Error::Program(failure.text.clone())),
            None => Ok(self.row),
        }
    }
}

impl TriedRow {
    fn of(rate_fraction: f64, row: &Row, capacity: f64) -> TriedRow {
        TriedRow {
            rate_fraction,
            packets: row.traffic.as_ref().map_or(row.packets, |traffic| traffic.offered),
            verdict: Some(row.verdict),
            limiting_part: Some(row.limiting_part.clone()),
            capacity_fraction: Some(capacity),
            stopped: None,
        }
    }

    fn stopped(rate_fraction: f64, packets: u64, error: &Error) -> TriedRow {
        // Without when and where, which are this run's.
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        let what = match first.starts_with('[') {
            true => first.split_once("] ").map_or(first, |(_, what)| what),
            false => first,
        };
        TriedRow {
            rate_fraction,
            packets,
            verdict: None,
            limiting_part: None,
            capacity_fraction: None,
            stopped: Some(what.to_owned()),
        }
    }
}

impl Row {
    /// The row with what was tried: what the card sustains, and the part that limits then. Where that is less than loads say, it keeps up
    /// barely.
    pub(super) fn tried(self, tried: Vec<TriedRow>, capacity: Option<f64>) -> Row {
        let Some(capacity) = capacity else { return Row { tried, ..self } };
        let last = tried.iter().rev().find_map(|run| run.limiting_part.clone());
        let barely = self.verdict == Verdict::Barely || capacity * BARELY < 1.0;
        Row {
            verdict: if barely { Verdict::Barely } else { Verdict::Yes },
            limiting_part: last.unwrap_or(self.limiting_part),
            capacity_fraction: capacity,
            tried,
            ..self
        }
    }
}
