//! Traffic behind a burst, and whether the card recovers.
//!
//! Handlers that wait for one another may make progress at a rate as long as few of them run simultaneously. Once many run, they
//! may stand still, or lose more time than they have. Then the first burst decides, at any rate. So the packets are sent again.
//! The first ones come at the speed of the wire, more than the card has room for, and the rest at their due times.

use super::limit::CLOSE;
use super::offer::{Behind, TrafficRun};
use super::part::Part;
use super::rig::Rig;
use super::row::{BurstRow, Row};
use super::speed::{Speed, shares, stop_reason, with_wire, without_new};
use super::tested::Tested;
use super::verdict::Verdict;
use nicety::Error;
use nicety_types::Duration;

/// Packet buffers that a burst fills, and the inverse of its maximum share of all packets.
const BUFFERS: u64 = 2;
const PART: u64 = 4;
/// Minimum packets of a burst for each processor: fewer show nothing.
const EACH: u64 = 2;
/// Ratio of a faster wire's rate to the traffic's rate, where the card's own wire has no room for a burst.
const ROOM: f64 = 2.0;
/// The fraction of a rate that counts as all of it. Packets in processors at either end of the interval blur the rate by the
/// rest.
const ENOUGH: f64 = 0.995;

/// The departure rate of packets behind a burst.
pub(super) struct Burst {
    pub(super) packets: u64,
    pub(super) burst_packets: u64,
    /// Departure rate of the later half of the packets, over their arrival rate; 1 where the card has caught up.
    pub(super) fraction: f64,
    /// The limiting part during the backlog.
    pub(super) part: Part,
    /// The longest stay of a packet, in nanoseconds, if it stayed for most of the run: handlers of later packets starved its handler.
    pub(super) starved_ns: Option<f64>,
}

/// The part of a run's time for which a packet stays in the card that is starved by handlers of later packets.
const STARVED: f64 = 0.7;

/// The longest stay in nanoseconds, if it is most of a run that takes `run_ps`.
fn starved_ns(longest_ps: u64, run_ps: f64) -> Option<f64> {
    let longest_ps = longest_ps as f64;
    (longest_ps > STARVED * run_ps).then_some(longest_ps / 1000.0)
}

impl Burst {
    /// Whether the card does not recover from the burst.
    pub(super) fn is_behind(&self) -> bool {
        self.fraction < ENOUGH
    }
}

impl BurstRow {
    /// Returns the departure rate of a card that does not recover from the burst.
    pub(super) fn behind(&self) -> Option<f64> {
        self.departure_fraction.filter(|fraction| *fraction < ENOUGH)
    }
}

impl Rig<'_> {
    /// Resends traffic that the card keeps up with, behind a burst; none without room for a burst, or with too few packets.
    pub(super) fn try_burst(
        &self,
        tested: &Tested<'_>,
        expressions: &[String],
        first: &TrafficRun,
    ) -> Result<Option<BurstRow>, Error> {
        let Some(burst_packets) = burst_packets(first, 1.0).filter(|_| first.row.verdict != Verdict::No)
        else {
            return Ok(None);
        };
        let (departure_fraction, stopped) = match self.send_burst(tested, expressions, first, 1.0) {
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => (None, Some(stop_reason(&error))),
            Ok(burst) => (burst.map(|burst| if burst.is_behind() { burst.fraction } else { 1.0 }), None),
        };
        let packets = shares_of(first).iter().sum();
        Ok(Some(BurstRow { packets, burst_packets, departure_fraction, stopped }))
    }

    /// Sends traffic at `times` its rate behind a burst; none without room for a burst, or with too few packets.
    pub(super) fn send_burst(
        &self,
        tested: &Tested<'_>,
        expressions: &[String],
        first: &TrafficRun,
        times: f64,
    ) -> Result<Option<Burst>, Error> {
        let Some(burst_packets) = burst_packets(first, times) else { return Ok(None) };
        let (environment, shares) = (self.quiet(), shares_of(first));
        // No wire carries packets faster than its own rate. For a higher rate, a faster wire carries them.
        let load = times * first.wire;
        let faster = if load > 1.0 { ROOM * load } else { 1.0 };
        let card = with_wire(self.card, faster)?;
        let rig = Rig { environment: &environment, card: card.as_ref().unwrap_or(self.card), ..*self };
        let packets = shares.iter().sum();
        let interval_ps = first.row.packet_interval_ns * 1000.0 / times;
        let ahead = Duration::from_ps((burst_packets as f64 * interval_ps).round() as u64);
        let speed = Speed { ahead, ..Speed::some(times, faster, shares) };
        // A growing backlog of the first run is no stay that packets have without a burst.
        let quiet = first.row.traffic.as_ref().filter(|_| first.row.verdict != Verdict::No);
        let inside = quiet.map_or(0.0, |traffic| traffic.latency_ns_mean * 1000.0 / interval_ps);
        let (behind, failures) =
            match rig.offer_behind(tested, expressions, &speed, (burst_packets, interval_ps, inside)) {
                // A buffer without headroom for the contents of a long wire cannot stall senders.
                Err(error) if error.exit_status() == 2 => return Ok(None),
                offered => offered?,
            };
        let Behind { fraction, part, longest_stay_ps } = without_new(behind, failures, &first.failures)?;
        let starved_ns =
            starved_ns(longest_stay_ps, packets as f64 * interval_ps).filter(|_| fraction >= ENOUGH);
        Ok(Some(Burst { packets, burst_packets, fraction, part, starved_ns }))
    }
}

/// Returns the packets of each port in a run with a burst.
fn shares_of(first: &TrafficRun) -> Vec<u64> {
    let row = &first.row;
    shares(first.shares.as_deref(), row.traffic.as_ref().map_or(row.packets, |traffic| traffic.offered))
}

/// Returns the packets of a burst before traffic at `times` its rate; none without room for a burst, or with too few packets. A
/// wire at full load has no room for a burst.
fn burst_packets(first: &TrafficRun, times: f64) -> Option<u64> {
    let packets: u64 = shares_of(first).iter().sum();
    let burst_packets = (BUFFERS * first.row.buffer_packets).min(packets / PART);
    let (load, is_wire) = (times * first.wire, CLOSE..=1.0 / CLOSE);
    (burst_packets >= EACH * first.row.hpus && !is_wire.contains(&load)).then_some(burst_packets)
}

impl Row {
    /// Adds the result of a burst. A card that does not recover from one barely keeps up.
    pub(super) fn behind(self, burst: Option<BurstRow>) -> Row {
        let Some(burst) = burst else { return self };
        let (verdict, capacity_fraction) = match (burst.behind(), &burst.stopped) {
            (Some(later), _) => (
                Verdict::Barely,
                self.capacity_fraction.min(later.max(self.sustained_fraction.unwrap_or_default())),
            ),
            (None, Some(_)) => (Verdict::Barely, self.capacity_fraction.min(1.0)),
            (None, None) => (self.verdict, self.capacity_fraction),
        };
        Row { verdict, capacity_fraction, burst: Some(burst), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_stays_for_most_of_a_run_is_starved() {
        assert_eq!(starved_ns(6_900_000, 10e6), None);
        assert_eq!(starved_ns(7_100_000, 10e6), Some(7_100.0));
    }

    #[test]
    fn a_card_that_a_burst_puts_behind_barely_keeps_up() {
        let of = |departure_fraction, stopped: Option<&str>| {
            let burst = BurstRow {
                packets: 1000,
                burst_packets: 250,
                departure_fraction,
                stopped: stopped.map(str::to_owned),
            };
            let row = Row { verdict: Verdict::Yes, capacity_fraction: 1.2, ..Row::default() };
            let row = row.behind(Some(burst));
            (row.verdict, row.capacity_fraction)
        };
        assert_eq!(of(Some(1.0), None), (Verdict::Yes, 1.2));
        assert_eq!(of(Some(0.98), None), (Verdict::Barely, 0.98));
        assert_eq!(of(None, Some("deadlock")), (Verdict::Barely, 1.0));
    }
}
