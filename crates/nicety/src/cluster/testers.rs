//! Testers are nodes after the hosts, each with its own link to the network. They send traffic to the card of a host while the
//! hosts' programs run.

use super::mix::Mix;
use crate::Error;
use nicety_fabric::{Barrier, Network, Port};
use nicety_kernel::Sim;
use nicety_nic_core::Card;
use nicety_nic_core::parts::{DueTime, Offered};
use nicety_nic_ethernet::{EthernetSpec, FrameDispositions, Node, Tester, ipv4, ipv6};
use nicety_traffic::{DueTime as TrafficDue, Rate, Stream, Traffic, TrafficError};
use nicety_types::{Duration, NodeId, Recorder, Time};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::RefCell;
use std::rc::Rc;

/// Maximum number of testers in a run.
const MOST: usize = 64;

/// Traffic for a host's card, and the dispositions of its frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TrafficReport {
    /// The expression that describes the traffic.
    pub traffic: String,
    /// The rank with the target card.
    pub rank: u32,
    /// Frames that the tester sent: all frames of the traffic, or those sent before the programs ended.
    pub offered: u64,
    /// Bytes of the offered frames, without frame check sequences.
    pub offered_bytes: u64,
    /// Virtual time that the offered frames take at their rate, until the next frame would be due. For a capture, the last frame
    /// is followed by a mean gap.
    pub offered_ns: f64,
    /// Total delay of frames beyond their due times, because the network stalled the tester's link.
    pub stalled_ns: f64,
    /// Frames that the card accepted.
    pub handled: u64,
    /// Frames of `handled` that went to the host or out again.
    pub passed: u64,
    /// Frames of `handled` that handlers sent out.
    pub to_wire: u64,
    /// Frames that handlers dropped.
    pub dropped_by_handler: u64,
    /// Frames with a failed handler.
    pub failed: u64,
    /// Frames with a wrong check sequence.
    pub damaged: u64,
    /// Frames dropped by a full buffer, of the card or of a switch.
    pub dropped_by_overload: u64,
    /// Frames lost by faults of the network.
    pub lost: u64,
    /// Frames for the host that were dropped because the host had no free receive buffer.
    pub dropped_at_host: u64,
    /// Frames from hosts and handlers that reached the tester.
    pub returned: u64,
    /// Bytes of the returned frames, without frame check sequences.
    pub returned_bytes: u64,
    /// Mean latency through the card, from the frame's last byte in the packet buffer until the frame has left the buffer.
    pub latency_ns_mean: f64,
    /// Median latency: the nearest rank, rounded up by at most 0.2 %. The other percentiles are rounded likewise.
    pub latency_ns_p50: f64,
    /// 99th percentile of the latency.
    pub latency_ns_p99: f64,
    /// 99.9th percentile of the latency.
    pub latency_ns_p999: f64,
    /// Maximum latency, not rounded.
    pub latency_ns_max: f64,
}

/// The frames that a tester has sent, and the error that stopped it, if any.
#[derive(Default)]
struct Sent {
    offered: Offered,
    error: Option<TrafficError>,
}

/// An opened source of traffic, and the rank to which a tester sends it.
pub(super) struct Aimed {
    text: String,
    pub(super) rank: u32,
    start: Duration,
    rate: Rate,
    stream: Stream,
}

struct Running {
    text: String,
    rank: u32,
    rate: Rate,
    node: NodeId,
    tester: Rc<Tester>,
    sent: Rc<RefCell<Sent>>,
}

/// The testers of a cluster.
#[derive(Default)]
pub(super) struct Testers(Vec<Running>);

/// Returns the user's error about an expression of traffic, or about a packet that cannot be sent.
fn refused(text: &str, error: &TrafficError) -> Error {
    match error.place() {
        Some(_) => Error::Input(format!("traffic: {error}")),
        None => Error::Input(format!("traffic '{text}': {error}")),
    }
}

/// Opens the traffic of a cluster with `hosts` hosts. If the expression has no addresses, frames have the addresses of the tester
/// and of the host.
///
/// # Errors
/// When an expression is invalid, its file cannot be read, or its target does not exist or does not accept frames.
pub(super) fn aim(traffic: Vec<String>, mix: &Mix, hosts: u32, seed: u64) -> Result<Vec<Aimed>, Error> {
    if traffic.len() > MOST {
        return Err(Error::Input(format!(
            "{} expressions of traffic; the maximum is {MOST}; one expression can have many flows",
            traffic.len()
        )));
    }
    let aim = |(number, text): (u32, String)| {
        let traffic = Traffic::parse(&text).map_err(|error| refused(&text, &error))?;
        let rank = traffic.to.unwrap_or(0);
        let wrong = |why: String| Err(Error::Input(format!("traffic '{text}': {why}")));
        if rank >= hosts {
            return wrong(format!(
                "there is no rank {rank}; write to=RANK with a rank from 0 to {}",
                hosts - 1
            ));
        }
        let spec = &mix.card(rank).spec;
        if spec.of::<EthernetSpec>().is_err() {
            return wrong(format!(
                "traffic consists of Ethernet frames, but {}, the card of rank {rank}, has {} and receives \
                 no frames; name a card that receives frames, such as spin-100g or niagara2-niu; 'nicety \
                 bench handlers --traffic' sends packets to handlers of \
                 other cards",
                mix.name(rank),
                spec.design().interface,
            ));
        }
        let (start, rate) = (Duration::from_ps(traffic.start_ps.unwrap_or(0)), traffic.rate);
        let (from, to) = (hosts + number, rank);
        let traffic = traffic.addressed((ipv4(from), ipv6(from)), (ipv4(to), ipv6(to)));
        let stream = traffic.open(seed.wrapping_add(number.into()), spec.largest_packet());
        let stream = stream.map_err(|error| refused(&text, &error))?;
        Ok(Aimed { text, rank, start, rate, stream })
    };
    (0..).zip(traffic).map(aim).collect()
}

impl Testers {
    /// Adds a tester. It sends traffic from its start time on, and stops when the hosts' programs have ended and left the barrier
    /// `over`.
    pub(super) fn add(
        &mut self,
        aimed: Aimed,
        card: &Rc<dyn Card>,
        (sim, port, recorder): (Sim, Port, &Recorder),
        over: Barrier,
    ) -> Result<(), Error> {
        let Aimed { text, rank, start, rate, mut stream } = aimed;
        let node = sim.node();
        card.of::<Node>()?.watch_tester(node);
        let tester = Tester::install(&sim, port, recorder);
        let sent = Rc::new(RefCell::new(Sent::default()));
        let (sends, left) = (tester.clone(), sent.clone());
        sim.spawn(async move {
            let next = |frame: &mut Vec<u8>| match stream.next_frame(frame) {
                Ok(due) => due.map(|due| match due {
                    TrafficDue::Wire => DueTime::Wire,
                    TrafficDue::At { at, lasts } => DueTime::after(at, lasts),
                }),
                Err(error) => {
                    left.borrow_mut().error = Some(error);
                    None
                }
            };
            let offered = sends.offer(NodeId(rank), Time::ZERO + start, next).await;
            left.borrow_mut().offered = offered;
        });
        let stops = tester.clone();
        sim.spawn(async move {
            over.wait().await;
            stops.stop();
        });
        self.0.push(Running { text, rank, rate, node, tester, sent });
        Ok(())
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first error of a tester: a packet of its capture could not be sent, or its rate is above the wire rate.
    pub(super) fn error(&self) -> Option<Error> {
        self.0.iter().find_map(|running| {
            let Sent { offered, error } = &*running.sent.borrow();
            if let Some(error) = error {
                return Some(refused(&running.text, error));
            }
            let wire_s = offered.wire.ns() / 1e9;
            let why = running.rate.above_the_wire(offered.packets, offered.bytes, wire_s)?;
            Some(Error::Input(format!("traffic '{}': {why}", running.text)))
        })
    }

    /// Returns the dispositions of all traffic.
    pub(super) fn reports(&self, cards: &[Rc<dyn Card>], network: &Network) -> Vec<TrafficReport> {
        let report = |running: &Running| {
            let Running { text, rank, node, tester, sent, .. } = running;
            let card = cards[*rank as usize].of::<Node>().ok();
            let dispositions = card.and_then(|card| card.dispositions(*node)).unwrap_or_default();
            let FrameDispositions {
                handled,
                to_host,
                dropped_at_host,
                to_wire,
                dropped_by_handler,
                failed,
                ..
            } = dispositions;
            let Offered { packets: offered, bytes, time, late, .. } = sent.borrow().offered;
            let dropped = network.dropped_from(*node);
            let ns = |per_mille| dispositions.latency.percentile(per_mille) as f64 / 1000.0;
            let (returned, returned_bytes) = tester.returned();
            TrafficReport {
                traffic: text.clone(),
                rank: *rank,
                offered,
                offered_bytes: bytes,
                offered_ns: time.ns(),
                stalled_ns: late.ns(),
                handled,
                passed: to_host + to_wire,
                to_wire,
                dropped_by_handler,
                failed,
                damaged: dispositions.damaged,
                dropped_by_overload: dropped,
                lost: offered.saturating_sub(handled + dropped),
                dropped_at_host,
                returned,
                returned_bytes,
                latency_ns_mean: dispositions.latency.mean() / 1000.0,
                latency_ns_p50: ns(500),
                latency_ns_p99: ns(990),
                latency_ns_p999: ns(999),
                latency_ns_max: dispositions.latency.max() as f64 / 1000.0,
            }
        };
        self.0.iter().map(report).collect()
    }
}
