//! The request of the benchmark of a torus.

use super::load::Load;
use super::pattern::Pattern;
use crate::load_cards;
use crate::request::{SEED, default_seed};
use nicety::cards::Card;
use nicety::{Error, Topology};
use nicety_fabric::{NetworkSpec, Torus, TorusShape};
use nicety_spec::units::parse_time;
use nicety_types::Duration;
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum nodes of a torus.
const MOST_NODES: u32 = 1 << 17;
/// Maximum number of packets in a run. The latency of each measured packet is kept.
const MOST_PACKETS: u128 = 100_000_000;
/// Maximum bytes of a packet.
const LONGEST: u64 = 1 << 20;

fn usual_topology() -> String {
    "torus:8x8x8".to_owned()
}

fn usual_patterns() -> Vec<String> {
    vec![Pattern::Uniform.name().to_owned()]
}

fn usual_load() -> String {
    "0.1:1.0".to_owned()
}

const fn usual_packet() -> u64 {
    4096
}

/// Lower bound of the default value of `warmup`.
const WARMUP: Duration = Duration::from_us(10);
/// Lower bound of the default value of `duration`.
const WINDOW: Duration = Duration::from_us(20);

/// Random traffic on a torus of routers: latency and accepted throughput at each offered load.
///
/// The packets of a node enter an unbounded queue at random times, and go from there to the node's router. Only the links and
/// routers of the card take part, not the hosts or the rest of the card.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TorusOptions")]
pub struct Request {
    /// Cards to compare: names of specs, or paths of spec files. Only their links and routers are used.
    #[schemars(extend("example" = "spin-discrete"))]
    pub nics: Vec<String>,
    /// The torus, such as torus:8x8x8.
    #[serde(default = "usual_topology")]
    #[schemars(extend("metavar" = "torus:XxYxZ"))]
    pub topology: String,
    /// Destinations of packets: neighbour, uniform, transpose, alltoall, bit-complement or tornado.
    #[serde(default = "usual_patterns")]
    #[schemars(extend("metavar" = "P[,Q]", "example" = "uniform"))]
    pub patterns: Vec<String>,
    /// Offered loads as fractions of a link's bandwidth: a list with commas, or a range. 0.1:1.0 has steps of 0.1, and
    /// 0.1:1.0:0.05 has steps of 0.05.
    #[serde(default = "usual_load")]
    #[schemars(extend("metavar" = "LOADS"))]
    pub load: String,
    /// Payload bytes of a packet.
    #[serde(default = "usual_packet")]
    #[schemars(range(min = 1, max = LONGEST), extend("metavar" = "SIZE"))]
    pub packet: u64,
    /// The measured time, such as 20us. The default is 20us, or the time of ten packets on the slowest link if that is longer.
    #[serde(default)]
    #[schemars(extend("metavar" = "TIME"))]
    pub duration: Option<String>,
    /// The time before the measured time, such as 10us. The default is 10us, or twice the time of a single packet over the
    /// longest route if that is longer.
    #[serde(default)]
    #[schemars(extend("metavar" = "TIME"))]
    pub warmup: Option<String>,
    /// Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example switch.buffer=8.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// The seed.
    #[serde(default = "crate::request::default_seed")]
    #[schemars(extend("description" = SEED))]
    pub seed: u64,
}

/// A request with resolved names.
pub(super) struct Resolved {
    pub(super) cards: Vec<(String, Card)>,
    pub(super) torus: Torus,
    pub(super) shape: TorusShape,
    pub(super) patterns: Vec<Pattern>,
    pub(super) loads: Vec<Load>,
    pub(super) warmup: Duration,
    pub(super) window: Duration,
}

impl Request {
    /// Returns a request with default values.
    pub fn new(nics: &[&str]) -> Request {
        Request {
            nics: nics.iter().map(|&nic| nic.to_owned()).collect(),
            topology: usual_topology(),
            patterns: usual_patterns(),
            load: usual_load(),
            packet: usual_packet(),
            duration: None,
            warmup: None,
            overrides: Vec::new(),
            seed: default_seed(),
        }
    }

    /// Reads a request from its JSON text.
    ///
    /// # Errors
    /// [`Error::Input`] with the invalid JSON or fields.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        nicety::from_json(text, "the request of bench torus")
    }

    /// Reads the cards, the torus and the other fields. Checks that a run cannot be endless.
    pub(super) fn resolve(&self) -> Result<Resolved, Error> {
        let wrong = |text: String| Err(Error::Input(text));
        let cards = load_cards(&self.nics, &self.overrides, "spin-discrete")?;
        let (torus, shape) = self.torus()?;
        if self.patterns.is_empty() {
            return wrong("no pattern named; write for example --pattern uniform,tornado".into());
        }
        let patterns =
            self.patterns.iter().map(|name| Pattern::parse(name, &shape)).collect::<Result<_, _>>()?;
        let loads = Load::parse(&self.load)?;
        if !(1..=LONGEST).contains(&self.packet) {
            return wrong(format!("--packet is 1 to {LONGEST}, not {}", self.packet));
        }
        for (name, card) in &cards {
            let network = Resolved::network(card);
            if !network.torus_router().has_one_rate(&network.link) {
                return wrong(format!(
                    "{name}: loads of bench torus are fractions of one rate, but an axis of this card has \
                     another rate; set link.x.gap, link.y.gap and link.z.gap to link.gap (--set)"
                ));
            }
        }
        let links = || cards.iter().map(|(_, card)| card.spec.node().link.serialisation(self.packet));
        let alone = || cards.iter().map(|(_, card)| alone(&shape, &Resolved::network(card), self.packet));
        let warmup = time("--warmup", self.warmup.as_deref(), WARMUP, alone().max().map(|time| time * 2))?;
        let window =
            time("--duration", self.duration.as_deref(), WINDOW, links().max().map(|time| time * 10))?;
        if window.is_zero() {
            return wrong("--duration 0: nothing would be measured; write for example 20us".into());
        }
        for (name, card) in &cards {
            let link = card.spec.node().link;
            let packet = link.serialisation(self.packet).ps().max(1);
            let most = loads.last().map_or(0, |load| load.spacing(packet)).max(1);
            let time = u128::from(warmup.ps()) + u128::from(window.ps());
            let packets = time / u128::from(most) * u128::from(shape.hosts());
            if packets > MOST_PACKETS {
                return wrong(format!(
                    "{name}: about {packets} packets in {warmup} and {window}; the maximum is \
                     {MOST_PACKETS}; write a shorter --duration, or longer packets"
                ));
            }
        }
        Ok(Resolved { cards, torus, shape, patterns, loads, warmup, window })
    }

    fn torus(&self) -> Result<(Torus, TorusShape), Error> {
        let instead = "write for example --topology torus:8x8x8";
        match self.topology.parse::<Topology>()? {
            Topology::Torus(torus) => {
                let hosts = torus.hosts().ok_or_else(|| {
                    Error::Input(format!(
                        "--topology {}: the number of nodes is missing; {instead}",
                        self.topology
                    ))
                })?;
                if hosts > MOST_NODES {
                    return Err(Error::Input(format!(
                        "--topology {}: {hosts} nodes; the maximum is {MOST_NODES}",
                        self.topology
                    )));
                }
                Ok((torus, torus.shape(hosts as usize)?))
            }
            other => Err(Error::Input(format!("--topology {other}: this is no torus; {instead}"))),
        }
    }
}

impl Resolved {
    /// Returns the network of a card.
    pub(super) fn network(card: &Card) -> NetworkSpec {
        let node = card.spec.node();
        NetworkSpec { link: node.link, switch: node.switch, router: node.router }
    }
}

/// Returns the time of a packet over the longest route of an idle torus. Routers forward a packet before its last byte has
/// arrived (cut-through).
pub(super) fn alone(shape: &TorusShape, network: &NetworkSpec, packet: u64) -> Duration {
    let links = shape.sizes().map(|size| size / 2);
    network.torus_router().alone(&network.link, links, packet)
}

/// Returns the time of an option. If it is not given, returns its default: `least` or `usual`, the longer of both.
fn time(
    option: &str,
    text: Option<&str>,
    least: Duration,
    usual: Option<Duration>,
) -> Result<Duration, Error> {
    match text {
        Some(text) => parse_time(text).map_err(|error| Error::Input(format!("{option}: {error}"))),
        None => Ok(usual.map_or(least, |usual| usual.max(least))),
    }
}
