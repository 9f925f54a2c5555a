//! The networks of runs: LogGOPS with its parameters, or hosts with cards in a topology.

use super::mode::Mode;
use crate::loggops::{self, Parameters};
use nicety::cards::Card;
use nicety::options::{NOISE, NetworkOptions};
use nicety::{ClusterConfig, Environment, Error, Noise, Topology};
use nicety_spec::units::{parse_gap, parse_time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The network of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "GoalNetwork")]
pub enum Network {
    /// The cost of a message depends only on its size.
    #[default]
    Loggops,
    /// Modelled cards execute every message, packet by packet.
    Packets,
}

/// The parameters of LogGOPS, as the user writes them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "LogGopsParameters")]
pub struct LogGops {
    /// L: the latency between hosts.
    #[serde(default = "latency")]
    #[schemars(extend("flag" = "--L", "metavar" = "TIME"))]
    pub latency: String,
    /// o: the overhead of a CPU for a message.
    #[serde(default = "overhead")]
    #[schemars(extend("flag" = "--o", "metavar" = "TIME"))]
    pub overhead: String,
    /// g: the gap between the starts of two messages at an interface.
    #[serde(default = "gap")]
    #[schemars(extend("flag" = "--g", "metavar" = "TIME"))]
    pub gap: String,
    /// G: the gap for each byte after the first of a message, as a time or a bandwidth: 6ns, 400Gb/s.
    #[serde(default = "gap_per_byte")]
    #[schemars(extend("flag" = "--G", "metavar" = "GAP"))]
    pub gap_per_byte: String,
    /// O: the overhead for each byte after the first of a message.
    #[serde(default = "zero")]
    #[schemars(extend("flag" = "--O", "metavar" = "GAP"))]
    pub overhead_per_byte: String,
    /// S: the maximum length of a message that is sent at once, in bytes. The sender of a longer message waits for the receive.
    #[serde(default = "eager")]
    #[schemars(extend("flag" = "--S", "metavar" = "SIZE"))]
    pub eager_bytes: u64,
}

impl Default for LogGops {
    /// The parameters of a request that gives none.
    fn default() -> LogGops {
        LogGops {
            latency: latency(),
            overhead: overhead(),
            gap: gap(),
            gap_per_byte: gap_per_byte(),
            overhead_per_byte: zero(),
            eager_bytes: eager(),
        }
    }
}

/// The fields of [`LogGops`], with the options of the command line.
pub(super) const LOGGOPS: [(&str, &str); 6] = [
    ("latency", "--L"),
    ("overhead", "--o"),
    ("gap", "--g"),
    ("gap_per_byte", "--G"),
    ("overhead_per_byte", "--O"),
    ("eager_bytes", "--S"),
];

fn latency() -> String {
    "2500ns".to_owned()
}

fn overhead() -> String {
    "1500ns".to_owned()
}

fn gap() -> String {
    "1000ns".to_owned()
}

fn gap_per_byte() -> String {
    "6ns".to_owned()
}

fn zero() -> String {
    "0".to_owned()
}

const fn eager() -> u64 {
    65_535
}

/// Reads a time. A 0 needs no unit.
pub(super) fn time<T, E: fmt::Display>(
    name: &str,
    text: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, Error> {
    let text = text.trim();
    let with_unit = if text == "0" { "0 ps" } else { text };
    parse(with_unit).map_err(|error| Error::Input(format!("{name}: {error}")))
}

/// Reads a gap per byte, given as a time per byte or as a bandwidth.
fn a_byte(name: &str, text: &str) -> Result<nicety_types::Gap, Error> {
    time(name, text, |text| match text.contains('/') {
        true => parse_gap(text),
        false => parse_gap(&format!("{text}/B")).or_else(|_| parse_gap(text)),
    })
}

impl LogGops {
    /// Returns the parameters.
    ///
    /// # Errors
    /// When a parameter is not a time or a gap.
    pub fn parameters(&self) -> Result<Parameters, Error> {
        Ok(Parameters {
            latency: time("latency (L)", &self.latency, parse_time)?,
            overhead: time("overhead (o)", &self.overhead, parse_time)?,
            gap: time("gap (g)", &self.gap, parse_time)?,
            gap_per_byte: a_byte("gap_per_byte (G)", &self.gap_per_byte)?,
            overhead_per_byte: a_byte("overhead_per_byte (O)", &self.overhead_per_byte)?,
            eager_bytes: self.eager_bytes,
        })
    }
}

/// The options of runs on cards, except for the network. Requests flatten both structs. The network's struct is not flattened
/// into this one, because serde would then accept unknown fields.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct OnCards {
    /// Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// Background noise.
    #[serde(default)]
    #[schemars(extend("description" = NOISE, "metavar" = "PERIOD,DURATION"))]
    pub noise: Option<String>,
}

/// The fields of [`OnCards`] and [`NetworkOptions`] that runs by LogGOPS do not support, with the options of the command line.
pub(super) const ON_CARDS: [(&str, &str); 4] = [
    ("overrides", "--set"),
    ("topology", "--topology"),
    ("flow_control", "--flow-control"),
    ("faults", "--faults"),
];

/// The inputs that reproduce a run on cards.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ScheduleManifest")]
pub struct Manifest {
    /// The cards, by name.
    pub specs: BTreeMap<String, nicety::CardManifest>,
    /// `--set` overrides, as given.
    pub overrides: Vec<String>,
    /// The modes, which say where messages are executed.
    pub modes: Vec<Mode>,
    /// The handlers that executed messages, by card. The caller compiles them and fills in this field.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub compiler: BTreeMap<String, nicety::ProgramManifest>,
    /// The topology.
    pub topology: String,
    /// The flow control of the network, as given, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_control: Option<String>,
    /// Background noise on the hosts' CPUs, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<String>,
    /// The faults of the network, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<String>,
    /// The seed.
    pub seed: u64,
}

impl OnCards {
    /// Returns the topology for `ranks` hosts with a card: the requested one, or the default for this number of hosts.
    ///
    /// # Errors
    /// When the topology is invalid, or has another number of hosts.
    fn topology(network: &NetworkOptions, ranks: u32, card: &Card) -> Result<Topology, Error> {
        let switch = &card.spec.node().switch;
        let usual = || match ranks {
            1 => "alone",
            2 => "pair",
            _ if Topology::Star.check(ranks as usize, switch).is_ok() => "star",
            _ => "fat-tree",
        };
        let topology: Topology = network.topology.as_deref().unwrap_or_else(usual).parse()?;
        topology.check(ranks as usize, switch).map_err(|error| Error::Input(error.of_options(false)))?;
        Ok(topology)
    }

    /// Returns the noise of a run by LogGOPS.
    ///
    /// # Errors
    /// When the noise is invalid, or is on a rank that does not exist.
    pub(super) fn loggops_noise(&self, ranks: u32, seed: u64) -> Result<Option<loggops::Noise>, Error> {
        let Some(text) = &self.noise else { return Ok(None) };
        let Noise { intervals, rank } = text.parse()?;
        match rank {
            Some(rank) if rank >= ranks => {
                Err(Error::Input(format!("noise on rank {rank}: the schedule has ranks 0 to {}", ranks - 1)))
            }
            _ => Ok(Some(loggops::Noise { intervals, rank, seed })),
        }
    }

    /// Returns the configuration of a run's cluster.
    ///
    /// # Errors
    /// When an option is invalid.
    pub fn config(
        &self,
        network: &NetworkOptions,
        ranks: u32,
        (name, card): (&str, &Card),
        environment: &Environment<'_>,
    ) -> Result<ClusterConfig, Error> {
        Ok(ClusterConfig {
            topology: Self::topology(network, ranks, card)?,
            flow_control: network.flow_control()?,
            noise: self.noise.as_deref().map(str::parse::<Noise>).transpose()?,
            faults: network.faults()?,
            seed: network.seed,
            interrupt: environment.interrupt.clone().map(Into::into),
            log: environment.log.clone(),
            capture: environment.capture_of(name),
            ..ClusterConfig::new(ranks, card.clone())
        })
    }

    /// Returns the inputs that reproduce runs on these cards.
    pub fn manifest(
        &self,
        network: &NetworkOptions,
        cards: &[(String, Card)],
        topology: Topology,
        modes: &[Mode],
    ) -> Manifest {
        let nicety::Manifest { specs, overrides, compiler } =
            nicety::Manifest::of(cards.iter().map(|(nic, card)| (nic, card)), &self.overrides);
        Manifest {
            specs,
            overrides,
            modes: modes.to_vec(),
            compiler,
            topology: topology.to_string(),
            flow_control: network.flow_control.clone(),
            noise: self.noise.clone(),
            faults: network.faults.clone(),
            seed: network.seed,
        }
    }
}
