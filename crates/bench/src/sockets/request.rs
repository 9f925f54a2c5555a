//! The requests of the benchmarks of sockets.

use crate::load_cards;
use nicety::cards::{self, Card};
use nicety::options::NetworkOptions;
use nicety::{Error, Faults, FlowControl, Topology, flow};
use nicety_nic_ethernet::EthernetSpec;
use nicety_spec::units::parse_time;
use nicety_types::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Defaults: bytes of a call, and number of connections.
pub(super) const IO_SIZE: u64 = 64 << 10;
pub(super) const CONNECTIONS: u64 = 32;
const MOST_CONNECTIONS: u64 = 10_000;
/// Maximum bytes of a call, and of a request.
const LARGEST: u64 = 16 << 20;
const MOST_CPUS: u64 = 1024;

/// Whether rank 0 receives or sends the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "StreamDirection")]
pub enum Direction {
    /// Rank 0 receives.
    #[default]
    Receive,
    /// Rank 0 sends.
    Transmit,
}

fn usual_duration() -> String {
    "50ms".to_owned()
}

fn usual_warmup() -> String {
    "10ms".to_owned()
}

const fn usual_size() -> u64 {
    1
}

/// Streams on many connections between two hosts: the throughput, and its cost on the measured host.
///
/// Every connection has a thread at each end, which sends or receives without a pause, as iperf3 does. The sweep varies one
/// parameter at a time. When it varies the size of calls, it uses 32 connections and all CPUs. When it varies the number of
/// connections, it uses calls of 64 KiB and all CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StreamOptions")]
pub struct StreamRequest {
    /// Cards to compare, of Ethernet: names of specs, or paths of spec files.
    #[schemars(extend("example" = "niagara2-niu"))]
    pub nics: Vec<String>,
    /// The card of the other host, if it differs. Overrides do not apply to it.
    #[serde(default)]
    #[schemars(extend("metavar" = "NIC", "format" = "path"))]
    pub peer: Option<String>,
    /// Whether the measured host receives or transmits.
    #[serde(default)]
    #[schemars(extend("metavar" = "receive|transmit"))]
    pub direction: Direction,
    /// Bytes of each call that sends or receives: a list with commas, or a doubling range such as 64:64Ki. Default: 64 KiB.
    #[serde(default)]
    pub io_sizes: Option<Vec<u64>>,
    /// Numbers of connections. 1:64 is a doubling range, and 1..8 has steps of one. Default: 32.
    #[serde(default)]
    pub connections: Option<Vec<u64>>,
    /// Numbers of CPUs that the measured host's operating system uses, from the first core on. Default: all.
    #[serde(default)]
    pub cpus: Option<Vec<u64>>,
    /// The measured time, such as 50ms.
    #[serde(default = "usual_duration")]
    #[schemars(extend("metavar" = "TIME"))]
    pub duration: String,
    /// The time from the first byte to the begin of the measured time, such as 10ms.
    #[serde(default = "usual_warmup")]
    #[schemars(extend("metavar" = "TIME"))]
    pub warmup: String,
    /// Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example interrupts.packets=1.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// The network.
    #[serde(flatten)]
    pub network: NetworkOptions,
}

/// Requests and their replies on many connections: the rate, the latency, and the cost on the measured host.
///
/// Every connection has a client on the other host. As in netperf, the client sends a request, waits for the reply, pauses, and
/// sends the next request. A thread of the measured host sends the replies.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExchangeOptions")]
pub struct ExchangeRequest {
    /// Cards to compare, of Ethernet: names of specs, or paths of spec files.
    #[schemars(extend("example" = "niagara2-niu"))]
    pub nics: Vec<String>,
    /// The card of the other host, if it differs. Overrides do not apply to it.
    #[serde(default)]
    #[schemars(extend("metavar" = "NIC", "format" = "path"))]
    pub peer: Option<String>,
    /// Numbers of connections, one row for each. 1:64 is a doubling range, and 1..8 has steps of one.
    #[schemars(extend("usual" = "1:64"))]
    pub connections: Vec<u64>,
    /// Bytes of a request.
    #[serde(default = "usual_size")]
    #[schemars(range(min = 1, max = LARGEST), extend("metavar" = "SIZE"))]
    pub size: u64,
    /// Bytes of a reply.
    #[serde(default = "usual_size")]
    #[schemars(range(min = 1, max = LARGEST), extend("metavar" = "SIZE"))]
    pub reply: u64,
    /// Pause of a client between a reply and its next request, such as 100us. Default: no pause.
    #[serde(default)]
    #[schemars(extend("metavar" = "TIME"))]
    pub think: Option<String>,
    /// The measured time, such as 50ms.
    #[serde(default = "usual_duration")]
    #[schemars(extend("metavar" = "TIME"))]
    pub duration: String,
    /// The time from the first byte to the begin of the measured time, such as 10ms.
    #[serde(default = "usual_warmup")]
    #[schemars(extend("metavar" = "TIME"))]
    pub warmup: String,
    /// Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example interrupts.packets=1.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// The network.
    #[serde(flatten)]
    pub network: NetworkOptions,
}

/// The part that both requests have in common, with resolved names.
pub(super) struct Resolved {
    pub(super) cards: Vec<(String, Card)>,
    pub(super) peer: Option<Card>,
    pub(super) topology: Topology,
    pub(super) flow_control: FlowControl,
    pub(super) faults: Faults,
    pub(super) warmup: Duration,
    pub(super) window: Duration,
}

/// A point of a sweep of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamPoint {
    pub(super) io_size: u64,
    pub(super) connections: u64,
    /// Number of CPUs; `None` for all CPUs in the card's specification.
    pub(super) cpus: Option<u64>,
}

impl StreamRequest {
    /// Returns a request with default values.
    pub fn new(nics: &[&str]) -> StreamRequest {
        StreamRequest {
            nics: nics.iter().map(|&nic| nic.to_owned()).collect(),
            peer: None,
            direction: Direction::default(),
            io_sizes: None,
            connections: None,
            cpus: None,
            duration: usual_duration(),
            warmup: usual_warmup(),
            overrides: Vec::new(),
            network: NetworkOptions::default(),
        }
    }

    /// Reads a request from its JSON text.
    ///
    /// # Errors
    /// [`Error::Input`] with the invalid JSON or fields.
    pub fn from_json(text: &str) -> Result<StreamRequest, Error> {
        nicety::from_json(text, "the request of bench stream")
    }

    pub(super) fn resolve(&self) -> Result<Resolved, Error> {
        for (option, values, most) in [
            ("--io-sizes", &self.io_sizes, LARGEST),
            ("--connections", &self.connections, MOST_CONNECTIONS),
            ("--cpus", &self.cpus, MOST_CPUS),
        ] {
            if let Some(values) = values {
                check(option, values, most)?;
            }
        }
        Shared {
            nics: &self.nics,
            peer: self.peer.as_deref(),
            overrides: &self.overrides,
            network: &self.network,
            duration: &self.duration,
            warmup: &self.warmup,
        }
        .resolve()
    }

    /// Returns the points of the sweep, without repetition. Each differs from the defaults in one parameter.
    pub(super) fn points(&self) -> Vec<StreamPoint> {
        let base = StreamPoint { io_size: IO_SIZE, connections: CONNECTIONS, cpus: None };
        let of = |values: &Option<Vec<u64>>| values.clone().unwrap_or_default();
        let sizes = of(&self.io_sizes).into_iter().map(|io_size| StreamPoint { io_size, ..base });
        let many = of(&self.connections).into_iter().map(|connections| StreamPoint { connections, ..base });
        let cpus = of(&self.cpus).into_iter().map(|cpus| StreamPoint { cpus: Some(cpus), ..base });
        let mut points: Vec<StreamPoint> = Vec::new();
        for point in sizes.chain(many).chain(cpus) {
            if !points.contains(&point) {
                points.push(point);
            }
        }
        if points.is_empty() {
            points.push(base);
        }
        points
    }
}

impl ExchangeRequest {
    /// Returns a request with default values.
    pub fn new(nics: &[&str], connections: &[u64]) -> ExchangeRequest {
        ExchangeRequest {
            nics: nics.iter().map(|&nic| nic.to_owned()).collect(),
            peer: None,
            connections: connections.to_vec(),
            size: usual_size(),
            reply: usual_size(),
            think: None,
            duration: usual_duration(),
            warmup: usual_warmup(),
            overrides: Vec::new(),
            network: NetworkOptions::default(),
        }
    }

    /// Reads a request from its JSON text.
    ///
    /// # Errors
    /// [`Error::Input`] with the invalid JSON or fields.
    pub fn from_json(text: &str) -> Result<ExchangeRequest, Error> {
        nicety::from_json(text, "the request of bench request-response")
    }

    pub(super) fn resolve(&self) -> Result<(Resolved, Duration), Error> {
        check("--connections", &self.connections, MOST_CONNECTIONS)?;
        check("--size", &[self.size], LARGEST)?;
        check("--reply", &[self.reply], LARGEST)?;
        let think = self.think.as_deref().map_or(Ok(Duration::ZERO), |text| time("--think", text))?;
        let shared = Shared {
            nics: &self.nics,
            peer: self.peer.as_deref(),
            overrides: &self.overrides,
            network: &self.network,
            duration: &self.duration,
            warmup: &self.warmup,
        };
        Ok((shared.resolve()?, think))
    }
}

/// The arguments that both requests have in common.
struct Shared<'r> {
    nics: &'r [String],
    peer: Option<&'r str>,
    overrides: &'r [String],
    network: &'r NetworkOptions,
    duration: &'r str,
    warmup: &'r str,
}

impl Shared<'_> {
    fn resolve(&self) -> Result<Resolved, Error> {
        let cards = load_cards(self.nics, self.overrides, "niagara2-niu")?;
        let peer = self.peer.map(|name| cards::load(name, &[])).transpose()?;
        for card in cards.iter().map(|(_, card)| card).chain(&peer) {
            card.spec.of::<EthernetSpec>()?;
        }
        for (_, card) in peer.iter().flat_map(|_| &cards) {
            cards::check([card].into_iter().chain(&peer)).map_err(|error| error.inside("with --peer"))?;
        }
        let topology = self.network.topology()?.unwrap_or(Topology::Pair);
        let flow_control = self.network.flow_control()?;
        for (_, card) in &cards {
            topology.check(2, &card.spec.node().switch).map_err(|error| {
                Error::Input(format!("--topology {topology}: {}", error.of_options(false)))
            })?;
            flow::check(flow_control, topology, 2, card)?;
        }
        let faults = self.network.faults()?;
        let (warmup, window) = (time("--warmup", self.warmup)?, time("--duration", self.duration)?);
        if window.is_zero() {
            return Err(Error::Input(
                "--duration 0: nothing would be measured; write for example 50ms".into(),
            ));
        }
        Ok(Resolved { cards, peer, topology, flow_control, faults, warmup, window })
    }
}

fn check(option: &str, values: &[u64], most: u64) -> Result<(), Error> {
    match values.iter().find(|value| !(1..=most).contains(*value)) {
        Some(value) => Err(Error::Input(format!("{option} is 1 to {most}, not {value}"))),
        None if values.is_empty() => Err(Error::Input(format!("{option}: no number named"))),
        None => Ok(()),
    }
}

fn time(option: &str, text: &str) -> Result<Duration, Error> {
    parse_time(text).map_err(|error| Error::Input(format!("{option}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_axis_is_swept_at_a_time() {
        let all = StreamRequest {
            io_sizes: Some(vec![64, IO_SIZE]),
            connections: Some(vec![1, CONNECTIONS]),
            cpus: Some(vec![8]),
            ..StreamRequest::new(&["niagara2-niu"])
        };
        let of = |point: &StreamPoint| (point.io_size, point.connections, point.cpus);
        assert_eq!(
            all.points().iter().map(of).collect::<Vec<_>>(),
            [(64, 32, None), (65536, 32, None), (65536, 1, None), (65536, 32, Some(8))]
        );
        assert_eq!(
            StreamRequest::new(&["niagara2-niu"]).points().iter().map(of).collect::<Vec<_>>(),
            [(65536, 32, None)]
        );
    }
}
