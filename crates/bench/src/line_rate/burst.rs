//! What becomes of traffic behind a burst: whether the card recovers.
//!
//! Handlers that wait for one another may get on at a rate as long as few of them run at once, and stand still, or lose more time than they
//! have, once many do. Then the first burst decides, at whichever rate. So the packets come once more, of which the first ones come
//! as fast as the wire brings them, more than the card has room for, and the rest when it would have been due.

use super::faster::{Speed, shares, what_stopped, without_new};
use super::limit::CLOSE;
use super::offer::Judged;
use super::rig::Rig;
use super::row::Row;
use super::tested::Tested;
use super::verdict::Verdict;
use nicety::Error;
use nicety_types::Duration;
use schemars::JsonSchema;
use serde::Serialize;

/// Packet buffers that a burst fills, and the part of all packets that it has at most.
const BUFFERS: u64 = 2;
const PART: u64 = 4;
/// Packets for each processor that it has at least: fewer show nothing.
const EACH: u64 = 2;

/// A run in which the first packets come at once.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Burst")]
pub struct BurstRow {
    /// Packets offered.
    pub packets: u64,
    /// The first of them, which come as fast as the wire brings them.
    pub at_once: u64,
    /// How fast the later half of all comes through, over the traffic's rate: 1 as soon as one behind the burst leaves when it is due. Where
    /// packets are lost, the part of those behind the burst that is not. None where the run was stopped.
    pub later_fraction: Option<f64>,
    /// Why the run was stopped, if it was.
    pub stopped: Option<String>,
}

impl BurstRow {
    /// Whether the card is behind for good.
    fn is_lasting(&self) -> bool {
        self.stopped.is_some() || self.later_fraction.is_some_and(|fraction| fraction < CLOSE)
    }
}

impl Rig<'_> {
    /// Sends traffic with which a card keeps up once more, with a burst; nothing where there is no room for one, or too few packets.
    pub(super) fn try_burst(
        &self,
        tested: &Tested<'_>,
        expressions: &[String],
        first: &Judged,
    ) -> Result<Option<BurstRow>, Error> {
        let Judged { row, failures, wire, .. } = first;
        let offered = row.traffic.as_ref().map_or(row.packets, |traffic| traffic.offered);
        let shares = shares(first.shares.as_deref(), offered);
        let packets: u64 = shares.iter().sum();
        let at_once = (BUFFERS * row.buffer_packets).min(packets / PART);
        if row.verdict == Verdict::No || *wire > CLOSE || at_once < EACH * row.hpus {
            return Ok(None);
        }
        let quiet = self.quiet();
        let rig = Rig { environment: &quiet, ..*self };
        let ahead = Duration::from_ps((at_once as f64 * row.packet_interval_ns * 1000.0).round() as u64);
        let speed = Speed { ahead, ..Speed::some(1.0, shares) };
        let ran = rig.offer_behind(tested, expressions, &speed, at_once);
        let ran = ran.and_then(|(fraction, found)| without_new(fraction, found, failures));
        let (later_fraction, stopped) = match ran {
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => (None, Some(what_stopped(&error))),
            Ok(fraction) => (Some(fraction), None),
        };
        Ok(Some(BurstRow { packets, at_once, later_fraction, stopped }))
    }
}

impl Row {
    /// With what became of a burst: a card that one puts behind for good barely keeps up.
    pub(super) fn behind(self, burst: Option<BurstRow>) -> Row {
        let Some(burst) = burst else { return self };
        let later = burst.later_fraction.unwrap_or(1.0);
        let (verdict, capacity_fraction) = match burst.is_lasting() {
            true => (Verdict::Barely, self.capacity_fraction.min(later)),
            false => (self.verdict, self.capacity_fraction),
        };
        Row { verdict, capacity_fraction, burst: Some(burst), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_that_a_burst_puts_behind_barely_keeps_up() {
        let of = |later_fraction, stopped: Option<&str>| {
            let burst =
                BurstRow { packets: 1000, at_once: 250, later_fraction, stopped: stopped.map(str::to_owned) };
            let row = Row { verdict: Verdict::Yes, capacity_fraction: 1.2, ..Row::default() };
            let row = row.behind(Some(burst));
            (row.verdict, row.capacity_fraction)
        };
        assert_eq!(of(Some(1.0), None), (Verdict::Yes, 1.2));
        assert_eq!(of(Some(0.98), None), (Verdict::Barely, 0.98));
        assert_eq!(of(None, Some("deadlock")), (Verdict::Barely, 1.0));
    }
}
