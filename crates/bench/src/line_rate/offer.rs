//! A line-rate check with traffic: its packets are offered to the card when they are due, each as a message of one packet.
//!
//! Each expression is for a port of the card. All begin at once, and all end when the first of them does: so the mix of
//! packets is that of their rates, whose sum the card has to keep up with.

use super::Row;
use super::load::{Input, Interval, Load};
use super::meter::{CARD, Meter, PortRow, TrafficRow, sender as sender_of};
use super::request::{Messages, refused, traffic_of};
use super::rig::{DATA, PT, Rig};
use super::tested::{OnHost, Tested};
use super::verdict::{PartRow, capacity, verdict};
use nicety::record::{Level, Recording};
use nicety::{
    Allowed, Cluster, ClusterConfig, Drops, Error, Failure, FlowControl, NetworkStatistics, Topology,
};
use nicety_fabric::{Buffering, PauseSpec};
use nicety_nic::spin::{Due, Offered, Target};
use nicety_traffic::{Due as TrafficDue, Rate, Stream, TrafficError};
use nicety_types::Duration;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Most rows of one kind in a timeline.
const ROWS: usize = 1 << 16;

/// By how much packets may seem to take the wire for longer than it does: each takes whole picoseconds.
const ROUNDED: f64 = 1e-3;

/// What the generator of a port leaves: what it offered, and why it ended early, if it did.
#[derive(Default)]
struct Sender {
    offered: Offered,
    error: Option<TrafficError>,
}

impl Rig<'_> {
    /// Measures traffic, an expression for each port.
    pub(super) fn offer(
        &self,
        tested: &Tested<'_>,
        expressions: &[String],
        recorded: Option<&dyn Fn(Recording)>,
    ) -> Result<(Row, Vec<Failure>), Error> {
        let (stop, interrupt) = self.stop();
        let mut cluster = Cluster::new(ClusterConfig {
            seed: self.request.seed,
            interrupt: Some(interrupt),
            log: self.environment.log.clone(),
            capture: self.environment.capture_of("traffic"),
            allowed: Allowed::ALL,
            drops_allowed: self.request.lossy,
            recording: if recorded.is_some() { Level::Everything } else { Level::Summary },
            recorded_rows: ROWS,
            flow_control: match (self.request.lossy, self.request.pfc) {
                (true, _) => FlowControl::None(Buffering::default()),
                (_, true) => FlowControl::Pfc(Buffering::default(), PauseSpec::default()),
                _ => FlowControl::Credits,
            },
            // Whatever drops or pauses is at the card: a switch sends as fast as one sender does.
            topology: match self.request.lossy || self.request.pfc || expressions.len() > 1 {
                true => Topology::Star,
                false => Topology::Pair,
            },
            all_ports: (expressions.len() > 1).then_some(CARD.0),
            ..ClusterConfig::new(1 + expressions.len() as u32, self.card.clone())
        })?;
        let over = Rc::new(Cell::new(false));
        let senders = (0..)
            .zip(expressions)
            .map(|(port, expression)| self.send(&mut cluster, tested, (port, expression), &over))
            .collect::<Result<Vec<_>, _>>()?;
        // The memory lives as long as the run.
        let _memory = match tested {
            Tested::Messages(spec) => Some(self.receive(&mut cluster, spec.packet_payload)?),
            Tested::Frames(..) => {
                self.receive_frames(&mut cluster)?;
                None
            }
        };
        let (card, link) = (OnHost::of(cluster.host(1), tested)?, tested.link());
        let payload_handler = self.handlers.has_payload_handler() && !tested.has_frames();
        let meter = Rc::new(Meter::new(senders.len(), payload_handler));
        card.processors().watched_by(meter.clone());
        let run = self.run(&mut cluster, card.processors(), stop)?;
        let senders: Vec<Sender> = senders.iter().map(|sender| sender.take()).collect();
        if let Some(error) = senders.iter().find_map(|sender| sender.error.as_ref()) {
            return Err(refused(error));
        }
        let each: Vec<Offered> = senders.iter().map(|sender| sender.offered).collect();
        for (expression, offered) in expressions.iter().zip(&each) {
            fits_the_wire(traffic_of(expression)?.rate, offered)?;
        }
        let (offered, held_up) = (together(&each), each.iter().any(held_up));
        // A sender with credits keeps a place for its packet on the wire, and until the credit is back; others keep none.
        let beside = match self.request.lossy || self.request.pfc {
            true => Duration::ZERO,
            false => link.latency + link.latency,
        };
        let measured = meter
            .measured(beside, held_up)
            .ok_or_else(|| Error::Program("no packet of the traffic has come to the card".into()))?;
        let mut figures = TrafficRow {
            traffic: expressions.join(" + "),
            overload: match (self.request.lossy, self.request.pfc) {
                (true, _) => "lossy",
                (_, true) => "pfc",
                _ => "credits",
            },
            offered: offered.packets,
            offered_bytes: offered.bytes,
            offered_ns: offered.time.ns(),
            dropped_by_overload: dropped(&run.network),
            dropped_at_host: card.lost_at_host(),
            paused_ns: paused(&run.network),
            ..TrafficRow::default()
        };
        meter.fill(&mut figures);
        if figures.handled + figures.dropped_by_overload != offered.packets {
            return Err(Error::Program(format!(
                "of {} packets {} were handled and {} dropped at the end of the run",
                offered.packets, figures.handled, figures.dropped_by_overload
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
                    ..row
                }
            };
            figures.ports = expressions.iter().zip(&each).enumerate().map(of_port).collect();
        }
        let interval = Interval::of_all(offered.time, offered.packets);
        let packet_bytes = (offered.bytes + offered.packets / 2) / offered.packets;
        let messages = Messages { packets_each: 1, before: 0, measured: figures.handled, after: 0 };
        let load = Load::of(Input { packet_bytes, messages, interval }, tested, &card, self.handlers);
        let mut row = measured.row(&load);
        let mut limited_by = limited_by(row.limited_by, figures.dropped_by_overload, held_up, &row.parts);
        if figures.dropped_at_host > 0 {
            limited_by = limited_by.or(Some("host"));
        }
        if limited_by != row.limited_by {
            let (judged, part) = verdict(limited_by, &row.parts);
            // What comes through: a host that has no room limits what comes through the card to what it takes.
            let taken = 1.0 - figures.dropped_at_host as f64 / figures.handled as f64;
            let through = row.line_rate_fraction * if limited_by == Some("host") { taken } else { 1.0 };
            row.capacity_fraction = capacity(limited_by, &row.parts, through);
            (row.verdict, row.limiting_part) = (judged, part.to_owned());
            (row.sustains_line_rate, row.limited_by) = (limited_by.is_none(), limited_by);
        }
        row.traffic = Some(figures);
        let failures = run.failures();
        if let Some(recorded) = recorded {
            recorded(run.recording);
        }
        Ok((row, failures))
    }

    /// The sender of a port sends its traffic, until that of a port is `over`.
    fn send(
        &self,
        cluster: &mut Cluster,
        tested: &Tested<'_>,
        (port, expression): (u32, &str),
        over: &Rc<Cell<bool>>,
    ) -> Result<Rc<RefCell<Sender>>, Error> {
        let seed = self.request.seed.wrapping_add(port.into());
        let opened = traffic_of(expression)?.open(seed, tested.sizes().1);
        let has_frames = tested.has_frames();
        let mut stream = opened.and_then(Stream::ahead).map_err(|error| refused(&error))?;
        let sender = Rc::new(RefCell::new(Sender::default()));
        let (left, over) = (sender.clone(), over.clone());
        cluster.program(sender_of(port).0, move |host| async move {
            host.barrier().await;
            let next = |frame: &mut Vec<u8>| {
                let due = stream.next_frame(frame).unwrap_or_else(|error| {
                    left.borrow_mut().error = Some(error);
                    None
                });
                over.set(over.get() || due.is_none());
                due.map(|due| match due {
                    TrafficDue::Wire => Due::Wire,
                    TrafficDue::At(ps) => Due::After(Duration::from_ps(ps)),
                })
            };
            let target = Target { node: CARD, pt: PT, match_bits: DATA };
            let offered = match has_frames {
                true => host.frames()?.offer(CARD.0, next, &over).await,
                false => host.portals()?.card().offer(target, next, &over).await,
            };
            left.borrow_mut().offered = offered;
            Ok(())
        });
        Ok(sender)
    }

    /// Rank 1 has a rule, or several, with the handlers.
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

/// What ports offer together: packets, at the sum of their rates.
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
        wire: each.iter().map(|port| port.wire).sum(),
    }
}

/// Whether a wire takes packets at the rate that they were to have: otherwise figures would be those of another rate.
///
/// # Errors
/// [`Error::Input`] with the rate that it takes them at.
fn fits_the_wire(rate: Rate, offered: &Offered) -> Result<(), Error> {
    let (written, seconds) = match rate {
        Rate::Wire | Rate::Recorded => return Ok(()),
        Rate::BitsPerSecond(bits) => {
            (format!("{} Gbps", bits as f64 / 1e9), 8.0 * offered.bytes as f64 / bits as f64)
        }
        Rate::PacketsPerSecond(packets) => {
            (format!("{} Mpps", packets as f64 / 1e6), offered.packets as f64 / packets as f64)
        }
    };
    let wire = offered.wire.ns() / 1e9;
    if wire <= seconds * (1.0 + ROUNDED) {
        return Ok(());
    }
    Err(Error::Input(format!(
        "--traffic: a rate of {written} is more than the wire takes: {:.2} Gbps of these packets, {:.3} Mpps; write rate=wire, or less",
        8.0 * offered.bytes as f64 / wire / 1e9,
        offered.packets as f64 / wire / 1e6,
    )))
}

/// Whether the sender was held up for good: packets that come in bursts wait, and yet the card may keep up.
fn held_up(offered: &Offered) -> bool {
    offered.late.ps() >= offered.time.ps().div_ceil(100)
}

/// The bottleneck, given what the loads of a run say that ends with packets in the card. Where no part has too much to do,
/// the card keeps up, unless packets are lost or the sender was held up.
fn limited_by(
    by_loads: Option<&'static str>,
    dropped: u64,
    held_up: bool,
    parts: &[PartRow],
) -> Option<&'static str> {
    let overloaded = parts.first().filter(|most| most.load > 1.0).map(|most| most.part);
    match by_loads {
        None | Some("waiting") if overloaded.is_none() && dropped > 0 => Some("packet buffer"),
        Some("waiting") if !held_up => overloaded,
        other => other,
    }
}

/// Packets that found the card's packet buffer full.
fn dropped(network: &NetworkStatistics) -> u64 {
    let own = network.queues.iter().filter(|queue| queue.reason == Drops::Card);
    own.map(|queue| queue.dropped_packets).sum()
}

/// How long the sender was not allowed to send, in nanoseconds.
fn paused(network: &NetworkStatistics) -> f64 {
    network.queues.iter().map(|queue| queue.paused).sum::<Duration>().ns()
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
            wire: Duration::from_us(us),
        };
        assert_eq!(together(&[of(7, 3)]), of(7, 3));
        // 1 and 2 packets a microsecond, one of which ended a packet later.
        let both = together(&[of(10, 10), of(22, 11)]);
        assert_eq!((both.packets, both.bytes), (32, 3_200));
        assert_eq!((both.time, both.late), (Duration::from_ps(10_666_667), Duration::from_us(1)));
    }

    #[test]
    fn a_rate_above_that_of_the_wire_is_no_experiment() {
        // 1000 packets of 125 bytes occupy the wire for 10 us: 100 Gb/s, and 100 million a second.
        let offered =
            Offered { packets: 1000, bytes: 125_000, wire: Duration::from_us(10), ..Offered::default() };
        let of = |rate| fits_the_wire(rate, &offered).map_err(|error| error.to_string());
        assert_eq!(of(Rate::BitsPerSecond(100_000_000_000)), Ok(()));
        assert_eq!(of(Rate::PacketsPerSecond(100_000_000)), Ok(()));
        assert_eq!(of(Rate::Wire), Ok(()));
        let error = of(Rate::PacketsPerSecond(101_000_000)).unwrap_err();
        assert!(error.contains("a rate of 101 Mpps is more than the wire takes: 100.00 Gbps"), "{error}");
        assert!(of(Rate::BitsPerSecond(200_000_000_000)).is_err());
    }

    #[test]
    fn bursts_that_wait_are_no_bottleneck_and_lost_ones_are() {
        let offered = |late| Offered {
            packets: 10,
            bytes: 640,
            time: Duration::from_us(100),
            late: Duration::from_us(late),
            wire: Duration::from_us(100),
        };
        assert_eq!([0, 1, 2].map(|late| held_up(&offered(late))), [false, true, true]);
        let parts = |load| [PartRow::new("link", None, load)];
        let of = |by_loads, dropped, held_up| limited_by(by_loads, dropped, held_up, &parts(0.9));
        assert_eq!(of(Some("waiting"), 0, false), None);
        assert_eq!(of(Some("waiting"), 0, true), Some("waiting"));
        assert_eq!(of(None, 3, false), Some("packet buffer"));
        assert_eq!(of(Some("waiting"), 3, false), Some("packet buffer"));
        assert_eq!(of(Some("matching unit"), 0, false), Some("matching unit"));
        assert_eq!(of(None, 0, true), None);
        // Too few packets for the buffer to fill up, but more of them would.
        assert_eq!(limited_by(Some("waiting"), 0, false, &parts(14.9)), Some("link"));
    }
}
