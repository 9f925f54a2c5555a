//! A line-rate check with traffic. Packets are offered to the card at their due times, each as a message of one packet.
//!
//! Each expression is for a port of the card. All begin simultaneously, and offer due packets until the first of them ends
//! (`shares.rs`). So the mix of packets is that of their rates, and the card must keep up with the sum of the rates.

mod sending;

use super::demand::Demand;
use super::limit::Lost;
use super::load::{Input, Interval, Load};
use super::losses::{busiest_port, dropped, dropped_before, dropped_on_the_way_out, paused, pauses_of_card};
use super::measured::Measured;
use super::meter::{CARD, Meter, sender as sender_of};
use super::part::Part;
use super::request::{Messages, Request, traffic_of};
use super::rig::Rig;
use super::row::{PortRow, Row, TrafficRow};
use super::speed::Speed;
use super::tested::{OnHost, Tested};
use super::unmodelled::SharedBefore;
use nicety::record::{Level, Recording};
use nicety::{
    Allowed, Buffer, Cluster, ClusterConfig, Error, Failure, FlowControl, Interrupt, NetworkStatistics, Run,
    Topology,
};
use nicety_fabric::{Buffering, LEAST, PauseSpec};
use nicety_nic_core::parts::Offered;
use nicety_types::Duration;
use std::rc::Rc;

/// Maximum rows of one kind in a timeline.
const ROWS: usize = 1 << 20;

/// The behaviour with a full packet buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Overload {
    Credits,
    Lossy,
    Pfc,
}

impl Overload {
    pub(super) const fn of(request: &Request) -> Overload {
        match (request.lossy, request.pfc) {
            (true, _) => Overload::Lossy,
            (_, true) => Overload::Pfc,
            _ => Overload::Credits,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Overload::Credits => "credits",
            Overload::Lossy => "lossy",
            Overload::Pfc => "pfc",
        }
    }

    fn flow_control(self) -> FlowControl {
        match self {
            Overload::Credits => FlowControl::Credits,
            Overload::Lossy => FlowControl::None(Buffering::default()),
            Overload::Pfc => FlowControl::Pfc(Buffering::default(), PauseSpec::default()),
        }
    }
}

/// The result of a run with traffic.
pub(super) struct TrafficRun {
    pub(super) row: Row,
    pub(super) failures: Vec<Failure>,
    /// Utilisation of the fullest wire, if nothing had stalled its sender.
    pub(super) wire: f64,
    /// Packets to offer at each port, if not all.
    pub(super) shares: Option<Vec<u64>>,
}

/// A run with traffic.
struct Offering {
    /// Packets to offer at each port, if not all.
    shares: Option<Vec<u64>>,
    /// Offered packets of each port, and of all ports.
    each: Vec<Offered>,
    all: Offered,
    dropped: u64,
    /// For each port, frames that the host dropped without a buffer.
    at_host: Vec<u64>,
    unknown_destination: u64,
    /// The data of an XDP program.
    data: Option<Vec<u8>>,
    meter: Rc<Meter>,
    measured: Measured,
    load: Load,
    run: Run,
}

/// A run with a burst.
pub(super) struct Behind {
    /// The departure rate of the later half of the packets, over their arrival rate.
    pub(super) fraction: f64,
    /// The part that limits.
    pub(super) part: Part,
    pub(super) longest_stay_ps: u64,
}

impl Rig<'_> {
    /// Measures traffic at this speed.
    pub(super) fn offer_at(
        &self,
        tested: &Tested<'_>,
        expressions: &[String],
        speed: &Speed,
        recorded: Option<&dyn Fn(Recording)>,
    ) -> Result<TrafficRun, Error> {
        let overload = Overload::of(self.request);
        let offering = self.run_traffic(tested, expressions, overload, speed, recorded.is_some(), None)?;
        for (expression, offered) in expressions.iter().zip(&offering.each) {
            let wire = offered.wire.ns() / 1e9;
            let rate = traffic_of(expression)?.rate;
            if let Some(why) = rate.above_the_wire(offered.packets, offered.bytes, wire) {
                return Err(Error::Input(format!("--traffic: {why}")));
            }
        }
        let lossless = match offering.dropped + dropped_on_the_way_out(&offering.run.network) {
            0 => None,
            _ => Some(self.without_loss(tested, expressions, speed, &offering)?),
        };
        let figures = self.traffic_row(expressions, &offering, lossless.is_some())?;
        let Offering { shares, each, data, measured, load, run, .. } = offering;
        let demand = lossless.as_ref().map(|of| Demand {
            load: &of.load,
            held: of.measured.held,
            growth: of.measured.growth,
            packets: of.measured.packets,
            sent_fraction: of.measured.sent_fraction(),
        });
        let row = Row { traffic: Some(figures), program_data: data, ..measured.row(&load, demand) };
        let failures = failures(&run, lossless.as_ref().map(|lossless| &lossless.run));
        if let Some(recorded) = recorded {
            recorded(run.recording);
        }
        let wire = each.iter().map(|offered| offered.wire.ps() as f64 / offered.time.ps().max(1) as f64);
        Ok(TrafficRun { row, failures, wire: wire.fold(0.0, f64::max), shares })
    }

    /// Returns the figures of a run's traffic.
    fn traffic_row(
        &self,
        expressions: &[String],
        offering: &Offering,
        has_lossless: bool,
    ) -> Result<TrafficRow, Error> {
        let Offering { each, all, dropped, at_host, unknown_destination, meter, run, .. } = offering;
        let mut figures = TrafficRow {
            traffic: expressions.join(" + "),
            overload_policy: Overload::of(self.request).name(),
            offered: all.packets,
            offered_bytes: all.bytes,
            offered_ns: all.time.ns(),
            dropped_by_overload: *dropped,
            dropped_at_host: at_host.iter().sum(),
            dropped_at_link: dropped_on_the_way_out(&run.network),
            unknown_destination: *unknown_destination,
            recorded_above_wire_rate: each.iter().any(|offered| offered.too_fast),
            loads_from_lossless_run: has_lossless,
            paused_ns: paused(&run.network),
            ..TrafficRow::default()
        };
        meter.fill(&mut figures);
        if figures.handled + dropped != all.packets {
            return Err(Error::Program(format!(
                "of {} packets, {} were handled and {dropped} dropped at the end of the run",
                all.packets, figures.handled
            )));
        }
        if expressions.len() > 1 {
            let of_port = |(number, (traffic, offered)): (usize, (&String, &Offered))| {
                let row = meter.port(number);
                PortRow {
                    port: number as u64,
                    traffic: traffic.clone(),
                    offered: offered.packets,
                    offered_bytes: offered.bytes,
                    offered_ns: offered.time.ns(),
                    dropped_by_overload: offered.packets - row.handled,
                    dropped_at_host: at_host[number],
                    dropped_at_link: dropped_before(&run.network, number as u32),
                    ..row
                }
            };
            figures.ports = expressions.iter().zip(each).enumerate().map(of_port).collect();
        }
        Ok(figures)
    }

    /// Sends the same packets again, with a sender that waits, so that none is lost. Its output and failures are hidden, since
    /// the first run has reported them.
    fn without_loss(
        &self,
        tested: &Tested<'_>,
        expressions: &[String],
        speed: &Speed,
        lossy: &Offering,
    ) -> Result<Offering, Error> {
        let quiet = self.quiet();
        let rig = Rig { environment: &quiet, profiler: None, ..*self };
        rig.run_traffic(tested, expressions, Overload::Pfc, speed, false, Some(lossy)).map_err(|error| match error {
            Error::HandlerTrap(text) => Error::HandlerTrap(format!(
                "{text}\n(the first run dropped packets, so a second run measures the loads, with a sender \
                 that waits: the handler was stopped in the second run)"
            )),
            other => other,
        })
    }

    /// Offers traffic that begins with a burst of `burst_packets` packets, by senders that wait. Returns the departure rate of the
    /// later half of packets over their arrival rate, the limiting part, and the failures.
    ///
    /// The rate is 1 where the card has caught up, or the sender of each port can send at due times again. It has caught up when
    /// no more packets are inside than processors, or than twice the mean `inside` without a burst. At most half of the burst is
    /// inside then.
    pub(super) fn offer_behind(
        &self,
        tested: &Tested<'_>,
        expressions: &[String],
        speed: &Speed,
        (burst_packets, interval_ps, inside): (u64, f64, f64),
    ) -> Result<(Behind, Vec<Failure>), Error> {
        let overload = match Overload::of(self.request) {
            Overload::Credits => Overload::Credits,
            // Dropped packets neither wait nor delay others.
            Overload::Lossy | Overload::Pfc => Overload::Pfc,
        };
        let offering = self.run_traffic(tested, expressions, overload, speed, false, None)?;
        let of_ports =
            offering.each.iter().map(|port| fraction_behind(port, burst_packets, offering.all.packets));
        let slowest = if offering.each.len() > 1 { of_ports.fold(1.0, f64::min) } else { 1.0 };
        let most = burst_packets.min(offering.load.buffer_packets) as f64 / 2.0;
        let few = (2.0 * inside).max(offering.load.hpus as f64).min(most);
        let left = match offering.meter.least_inside().is_some_and(|least| least as f64 <= few) {
            true => 1.0,
            false => offering.meter.left_every().map_or(1.0, |every| interval_ps / every.max(1.0)),
        };
        let part = offering.measured.row(&offering.load, None).bottleneck;
        let longest_stay_ps = offering.meter.longest_stay_ps();
        Ok((Behind { fraction: slowest.min(left), part, longest_stay_ps }, offering.run.failures()))
    }

    /// Offers traffic to a card; the same traffic with the same times as an earlier run, if there is one.
    fn run_traffic(
        &self,
        tested: &Tested<'_>,
        expressions: &[String],
        overload: Overload,
        speed: &Speed,
        records: bool,
        earlier: Option<&Offering>,
    ) -> Result<Offering, Error> {
        let (stop, interrupt) = self.stop();
        let ports = expressions.len();
        let mut cluster = self.traffic_cluster(ports, overload, interrupt, records)?;
        let shares = self.shares(&cluster, tested, expressions, (speed, earlier))?;
        let send = |(port, expression): (u32, &String)| {
            let packets = shares.as_ref().map_or(u64::MAX, |shares| shares[port as usize]);
            self.send(&mut cluster, tested, (port, expression), packets, speed)
        };
        let senders = (0..).zip(expressions).map(send).collect::<Result<Vec<_>, _>>()?;
        // The memory lives as long as the run.
        let _memory = self.receive_traffic(&mut cluster, tested)?;
        let (card, link) = (OnHost::of(cluster.host(1), tested)?, tested.link());
        let payload_handler = self.handlers.has_payload_handler() && !tested.has_frames();
        let meter = Rc::new(Meter::new(ports, payload_handler, tested.hpu().clock));
        if let Some(shares) = &speed.shares {
            meter.expects(shares.iter().sum());
        }
        card.processors().watched_by(meter.clone());
        card.watch((0..ports as u32).map(sender_of));
        let before = SharedBefore::of(card.processors(), tested.hpu());
        let run = self.run_profiled(&mut cluster, card.processors(), stop)?;
        let data = self.request.xdp.is_some().then(|| card.program_data());
        let each = senders.iter().map(|sender| sender.take().offered()).collect::<Result<Vec<_>, _>>()?;
        let all = together(&each);
        let dropped = dropped(&run.network);
        let at_host: Vec<u64> = (0..ports as u32).map(|port| card.lost_at_host(sender_of(port))).collect();
        let unknown_destination =
            (0..ports as u32).map(|port| card.unknown_destination(sender_of(port))).sum();
        // A sender with credits holds a slot while its packet is on the wire, and until the credit is back. Others hold none.
        let beside = match overload {
            Overload::Credits => link.latency + link.latency,
            Overload::Lossy | Overload::Pfc => Duration::ZERO,
        };
        let lost = lost(&run.network, &each, &at_host);
        let mut measured = meter
            .measured(beside, lost)
            .ok_or_else(|| Error::Program("no packet of the traffic has reached the card".into()))?;
        if !speed.ahead.is_zero() {
            // Packets of a burst come before they are due, so that arrivals do not show the pace.
            measured.came = measured.took;
        }
        let input = Input {
            packet_bytes: (all.bytes + all.packets / 2) / all.packets,
            messages: Messages { packets_each: 1, before: 0, measured: measured.packets, after: 0 },
            // Where Ethernet may drop a packet, it occupies the wire for longer.
            interval: earlier.map_or_else(
                || Interval::of_all(all.time + speed.ahead, all.packets),
                |earlier| earlier.load.interval,
            ),
        };
        let mut load = Load::of(input, tested, (&card, &before), self.handlers);
        if measured.is_at_rate(&load) && dropped == 0 {
            load.without_queues();
        }
        if earlier.is_some() {
            // The wire is paused in place of drops. The tested card drops, and sends no pauses.
            let pauses = link.gap.cover(LEAST * pauses_of_card(&run.network));
            load.busy.link = load.busy.link.saturating_sub(pauses);
        }
        load.port =
            (ports > 1).then(|| busiest_port(&run.network, earlier.map_or(&each, |earlier| &earlier.each)));
        Ok(Offering {
            data,
            shares,
            each,
            all,
            dropped,
            at_host,
            unknown_destination,
            meter,
            measured,
            load,
            run,
        })
    }

    /// Returns a cluster that offers traffic once, and the memory that it needs. Nothing is measured.
    pub(super) fn unmeasured(
        &self,
        tested: &Tested<'_>,
        expressions: &[String],
        interrupt: Interrupt,
    ) -> Result<(Cluster, Option<[Buffer; 2]>), Error> {
        let overload = Overload::of(self.request);
        let mut cluster = self.traffic_cluster(expressions.len(), overload, interrupt, false)?;
        self.send_all(&mut cluster, tested, expressions, &Speed::as_given())?;
        let memory = self.receive_traffic(&mut cluster, tested)?;
        Ok((cluster, memory))
    }

    /// Returns a cluster of the card and the senders of its ports.
    pub(super) fn traffic_cluster(
        &self,
        ports: usize,
        overload: Overload,
        interrupt: Interrupt,
        records: bool,
    ) -> Result<Cluster, Error> {
        Cluster::new(ClusterConfig {
            seed: self.request.seed,
            interrupt: Some(interrupt),
            log: self.environment.log.clone(),
            capture: self.environment.capture_of("traffic"),
            allowed: Allowed::ALL,
            drops_allowed: overload == Overload::Lossy,
            // No figure of traffic asks for stages.
            breakdown: false,
            recording: if records { Level::Everything } else { Level::Summary },
            recorded_rows: ROWS,
            flow_control: overload.flow_control(),
            // The card itself drops or pauses: a switch sends as fast as one sender does.
            topology: match overload != Overload::Credits || ports > 1 {
                true => Topology::Star,
                false => Topology::Pair,
            },
            all_ports: (ports > 1).then_some(CARD.0),
            ..ClusterConfig::new(1 + ports as u32, self.card.clone())
        })
    }

    /// Installs the handlers on rank 1. Returns the memory of messages.
    pub(super) fn receive_traffic(
        &self,
        cluster: &mut Cluster,
        tested: &Tested<'_>,
    ) -> Result<Option<[Buffer; 2]>, Error> {
        match tested {
            Tested::Messages(spec) => self.receive(cluster, spec.packet_payload).map(Some),
            Tested::Frames(..) => self.receive_frames(cluster).map(|()| None),
        }
    }

    /// Installs the handlers on rank 1, with one or several rules.
    fn receive_frames(&self, cluster: &mut Cluster) -> Result<(), Error> {
        let host = cluster.host(1);
        let mut state = self.request.state.clone();
        state.resize(self.request.state_bytes() as usize, 0);
        for rule in self.request.rules() {
            host.frames()?.install(rule, self.handlers, &state)?;
        }
        cluster.program(1, |host| async move {
            host.barrier().await;
            Ok(())
        });
        Ok(())
    }
}

/// Returns the failures of a run, and the further kinds of its second run without loss.
fn failures(run: &Run, lossless: Option<&Run>) -> Vec<Failure> {
    let mut failures = run.failures();
    // Packets that were lost may fail when they are sent again.
    let kinds: Vec<_> = failures.iter().map(|failure| failure.kind).collect();
    let second = lossless.into_iter().flat_map(Run::failures);
    failures.extend(second.filter(|failure| !kinds.contains(&failure.kind)).map(|failure| Failure {
        text: format!("{} (in the second run, with the packets that the first run dropped)", failure.text),
        ..failure
    }));
    failures
}

/// Returns the sum of all ports: packets, at the sum of their rates.
fn together(each: &[Offered]) -> Offered {
    if let [one] = each {
        return *one;
    }
    let packets = each.iter().map(|port| port.packets).sum();
    let rate: f64 = each.iter().map(|port| port.packets as f64 / port.time.ps().max(1) as f64).sum();
    Offered {
        packets,
        bytes: each.iter().map(|port| port.bytes).sum(),
        time: Duration::from_ps((packets as f64 / rate).round() as u64),
        late: each.iter().map(|port| port.late).max().unwrap_or_default(),
        on_time: each.iter().map(|port| port.on_time).sum(),
        ..Offered::default()
    }
}

/// The sender's rate in the later half of the run, over its intended rate; at most 1.
fn sent_fraction(offered: &Offered) -> f64 {
    let (rate, took) = offered.later;
    (rate.ps() as f64 / took.ps().max(1) as f64).min(1.0)
}

/// As [`sent_fraction`], for a port that began with its share of a burst. It is 1 if a packet behind the burst left at its due
/// time.
fn fraction_behind(offered: &Offered, burst_packets: u64, packets: u64) -> f64 {
    let own = (burst_packets as f64 * offered.packets as f64 / packets as f64).ceil() as u64;
    if offered.on_time > own { 1.0 } else { sent_fraction(offered) }
}

/// Returns the losses of a run.
fn lost(network: &NetworkStatistics, each: &[Offered], at_host: &[u64]) -> Lost {
    let dropped = dropped(network);
    let handled = (each.iter().map(|port| port.packets).sum::<u64>() - dropped).max(1) as f64;
    Lost {
        dropped,
        at_host: at_host.iter().sum::<u64>() as f64 / handled,
        at_link: dropped_on_the_way_out(network) as f64 / handled,
        stalled: each.iter().any(is_stalled),
        sent_fraction: each.iter().map(sent_fraction).fold(1.0, f64::min),
        ..Lost::default()
    }
}

/// Whether the sender was stalled for good. Packets in bursts wait, although the card may keep up. Then some packets leave on
/// time again, and the last ones have left before more would be due.
fn is_stalled(offered: &Offered) -> bool {
    offered.late.ps() >= offered.time.ps().div_ceil(100) && offered.on_time <= offered.packets / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_offer_the_sum_of_their_rates() {
        let of = |packets, us| Offered {
            packets,
            bytes: packets * 100,
            time: Duration::from_us(us),
            late: Duration::from_us(us / 10),
            on_time: packets,
            wire: Duration::from_us(us),
            ..Offered::default()
        };
        assert_eq!(together(&[of(7, 3)]), of(7, 3));
        // 1 and 2 packets per microsecond; one port ended a packet later.
        let both = together(&[of(10, 10), of(22, 11)]);
        assert_eq!((both.packets, both.bytes), (32, 3_200));
        assert_eq!((both.time, both.late), (Duration::from_ps(10_666_667), Duration::from_us(1)));
    }

    #[test]
    fn a_card_recovers_where_a_packet_behind_the_burst_leaves_when_it_is_due() {
        let offered = |on_time| Offered {
            packets: 100,
            on_time,
            later: (Duration::from_us(9), Duration::from_us(10)),
            ..Offered::default()
        };
        // 25 of 100 packets are its share of 75 of 300.
        assert_eq!([0, 25, 26].map(|on_time| fraction_behind(&offered(on_time), 75, 300)), [0.9, 0.9, 1.0]);
    }

    #[test]
    fn a_sender_is_held_up_by_a_hundredth_of_the_time() {
        let offered = |late, on_time| Offered {
            packets: 10,
            bytes: 640,
            time: Duration::from_us(100),
            late: Duration::from_us(late),
            on_time,
            ..Offered::default()
        };
        assert_eq!([0, 1, 2].map(|late| is_stalled(&offered(late, 3))), [false, true, true]);
        // One behind the middle was sent at its due time.
        assert_eq!([5, 6, 10].map(|on_time| is_stalled(&offered(2, on_time))), [true, false, false]);
    }
}
