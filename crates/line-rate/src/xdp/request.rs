//! The request: cards, a program, traffic, and numbers of CPUs.

use crate::object::{Entries, Mode};
use crate::request::traffic_of;
use nicety::cards::{Card, load_distinct};
use nicety::options::default_seed;
use nicety::{Error, from_json};
use nicety_nic_ethernet::{EthernetSpec, XdpError};
use nicety_traffic::Traffic;
use schemars::JsonSchema;
use serde::Deserialize;

/// The most CPUs of a point.
const MOST_CPUS: u64 = 256;

fn usual_traffic() -> String {
    "udp size=64 src=10.0.0.0/8 flows=1Ki".to_owned()
}

/// Run an XDP program in a host's driver, to measure the highest rate without loss and the cost of a frame.
///
/// Frames come at the rate of the traffic, and then at other rates. A hash of addresses and ports spreads them over the CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "XdpOptions")]
pub struct Request {
    /// Cards to compare: names of specs, or paths of spec files.
    #[schemars(extend("example" = "ethernet-100g"))]
    pub nics: Vec<String>,
    /// The program, where the object has several.
    #[serde(default)]
    #[schemars(extend("metavar" = "NAME"))]
    pub program: Option<String>,
    /// `native`: in the driver, before the kernel makes its packet buffer; or `generic`: after that.
    #[serde(default)]
    pub mode: Mode,
    /// Frames to send, such as `udp dport=53 flows=1M size=imix rate=40Gbps`, or `capture=FILE.pcap rate=wire`.
    #[serde(default = "usual_traffic")]
    #[schemars(extend("metavar" = "EXPRESSION"))]
    pub traffic: String,
    /// Numbers of CPUs that take frames, each with a receive channel: 1,2,4. Default: the CPUs of the card's interrupts.
    #[serde(default)]
    pub cpus: Option<Vec<u64>>,
    /// Frames of the traffic may be lost.
    #[serde(default)]
    pub lossy: bool,
    /// Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example receive.entries=512.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// Entries of maps before each run.
    #[serde(default)]
    #[schemars(extend("format" = "derived"))]
    pub maps: Vec<Entries>,
    /// Maps with their entries in the report, after the run at the traffic's rate.
    #[serde(default)]
    #[schemars(extend("format" = "derived"))]
    pub dumps: Vec<String>,
    /// Seed of every random stream: the same seed gives the same report to the last byte.
    #[serde(default = "default_seed")]
    pub seed: u64,
}

/// A card with a number of CPUs.
pub(super) struct Tested {
    pub(super) name: String,
    pub(super) card: Card,
    /// CPUs that take frames.
    pub(super) cpus: u64,
    /// Whether it is the first one of the card.
    pub(super) is_first: bool,
}

impl Tested {
    pub(super) fn spec(&self) -> &EthernetSpec {
        self.card.spec.of().expect("checked in the request")
    }
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// When the text is not JSON of a request.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        from_json(text, "request")
    }

    pub(super) fn traffic(&self) -> Result<Traffic, Error> {
        traffic_of(&self.traffic)
    }

    /// Reads the cards for each number of CPUs.
    pub(super) fn resolve(&self) -> Result<Vec<Tested>, Error> {
        let wrong = |text: String| Err(Error::Input(text));
        let mut all = Vec::new();
        let given = self.cpus.as_deref().map(|cpus| cpus.iter().copied().map(Some).collect());
        let numbers: Vec<Option<u64>> = given.unwrap_or_else(|| vec![None]);
        if let Some(cpus) = numbers.iter().flatten().find(|cpus| !(1..=MOST_CPUS).contains(*cpus)) {
            return wrong(format!("--cpus {cpus}: write 1 to {MOST_CPUS}"));
        }
        for nic in &self.nics {
            // A card without XDP is refused before keys that it lacks.
            for (_, card) in load_distinct(std::slice::from_ref(nic), &self.overrides, "ethernet-100g")? {
                card.spec.of::<EthernetSpec>()?.xdp.ok_or(XdpError::NoCosts)?;
            }
            for (at, &cpus) in numbers.iter().enumerate() {
                let mut overrides = self.overrides.clone();
                if let Some(cpus) = cpus {
                    overrides.extend([format!("receive.channels={cpus}"), format!("interrupts.cpus={cpus}")]);
                }
                let [(name, card)] = <[_; 1]>::try_from(load_distinct(
                    std::slice::from_ref(nic),
                    &overrides,
                    "ethernet-100g",
                )?)
                .unwrap_or_else(|_| unreachable!("one name is one card"));
                let spec = card.spec.of::<EthernetSpec>()?;
                let all_cpus = spec.cpus as u64;
                if let Some(cpus) = cpus.filter(|&cpus| cpus > all_cpus) {
                    return wrong(format!(
                        "--cpus {cpus}: the host of {name} has {all_cpus} CPUs; write 1 to {all_cpus}"
                    ));
                }
                let channels = spec.receive.channels.min(spec.interrupts.cpus) as u64;
                let is_first = at == 0 && !all.iter().any(|other: &Tested| other.name == name);
                if at == 0 && !is_first {
                    return wrong(format!("--nic {nic}: the card {name} is named twice; leave one out"));
                }
                all.push(Tested { name, card, cpus: channels, is_first });
            }
        }
        if all.is_empty() {
            return wrong("no card named; write for example --nic ethernet-100g".to_owned());
        }
        Ok(all)
    }
}
