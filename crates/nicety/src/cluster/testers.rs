//! Testers: nodes after the hosts, each with its own link into the network. They send traffic to a host's card while the hosts'
//! programs run.

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

/// Maximum testers of a run.
const MOST: usize = 64;

/// Traffic for a host's card, and the dispositions of its frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TrafficReport {
    /// The expression.
    pub traffic: String,
    /// The rank of its target card.
    pub rank: u32,
    /// Frames that its tester sent: all of them, or those until the programs' end.
    pub offered: u64,
    /// Their bytes, without frame check sequences.
    pub offered_bytes: u64,
    /// Duration of the offered frames at their rate, up to the next due time. For a capture that is a mean gap after the last
    /// frame.
    pub offered_ns: f64,
    /// Additional time until the link was free, because the network stalled frames.
    pub stalled_ns: f64,
    /// Frames that the card accepted.
    pub handled: u64,
    /// Frames of `handled` that went on: to the host, or out again.
    pub passed: u64,
    /// Frames of `handled` that handlers sent out.
    pub to_wire: u64,
    /// Frames that handlers dropped.
    pub dropped_by_handler: u64,
    /// Frames on which handlers failed.
    pub failed: u64,
    /// Frames with a wrong check sequence.
    pub damaged: u64,
    /// Frames dropped by a full buffer, of the card or of a switch.
    pub dropped_by_overload: u64,
    /// Frames lost by faults of the network.
    pub lost: u64,
    /// Frames for the host that were dropped without a buffer there.
    pub dropped_at_host: u64,
    /// Frames from hosts and handlers that reached the tester.
    pub returned: u64,
    /// Their bytes, without frame check sequences.
    pub returned_bytes: u64,
    /// Mean latency through the card, from the last byte in the packet buffer until the frame has left it.
    pub latency_ns_mean: f64,
    /// Median latency, by nearest rank, and at most 0.2 % above it. The other percentiles are alike.
    pub latency_ns_p50: f64,
    /// 99th percentile of the latency.
    pub latency_ns_p99: f64,
    /// 99.9th percentile of the latency.
    pub latency_ns_p999: f64,
    /// Maximum latency, exact.
    pub latency_ns_max: f64,
}

/// Frames that a tester has sent, and the error that ended it, if any.
#[derive(Default)]
struct Sent {
    offered: Offered,
    error: Option<TrafficError>,
}

/// Opened traffic for a rank.
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

/// Returns the error of an invalid expression, or of a packet that cannot be sent.
fn refused(text: &str, error: &TrafficError) -> Error {
    match error.place() {
        Some(_) => Error::Input(format!("traffic: {error}")),
        None => Error::Input(format!("traffic '{text}': {error}")),
    }
}

/// Opens the traffic of a cluster with `hosts` hosts. Without addresses in the expression, frames go from the tester's address to
/// the host's.
///
/// # Errors
/// When traffic cannot be sent to its target, or cannot be read.
pub(super) fn aim(traffic: Vec<String>, mix: &Mix, hosts: u32, seed: u64) -> Result<Vec<Aimed>, Error> {
    if traffic.len() > MOST {
        return Err(Error::Input(format!(
            "{} expressions of traffic; a run has {MOST} at most, and one can have many flows",
            traffic.len()
        )));
    }
    let aim = |(number, text): (u32, String)| {
        let traffic = Traffic::parse(&text).map_err(|error| refused(&text, &error))?;
        let rank = traffic.to.unwrap_or(0);
        let wrong = |why: String| Err(Error::Input(format!("traffic '{text}': {why}")));
        if rank >= hosts {
            return wrong(format!(
                "there is no rank {rank}; write to=RANK with one of the cluster's, 0 to {}",
                hosts - 1
            ));
        }
        let spec = &mix.card(rank).spec;
        if spec.of::<EthernetSpec>().is_err() {
            return wrong(format!(
                "it is frames of Ethernet, and {}, the card of rank {rank}, has {}; name a card for frames, as spin-100g, or \
                 niagara2-niu, which has no handlers; 'nicety bench handlers --traffic' sends packets to the handlers of others",
                mix.name(rank),
                spec.design().bare_interface(),
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
    /// Adds a tester, which sends traffic to a card from its start on, and stops when the programs leave the barrier.
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

    /// Returns the first error of a capture that failed while it was sent, or of a rate above the wire rate.
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
