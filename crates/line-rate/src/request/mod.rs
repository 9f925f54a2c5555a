//! The request for a line-rate check.

mod checks;

use crate::object::{Mode, XdpObject};
use crate::tested::Tested;
use checks::{check_frame, object_sizes};
use nicety::cards::{Card, load_distinct as load_cards};
use nicety::nfp::NfpSpec;
use nicety::nfp::xdp::XdpError;
use nicety::options::default_seed;
use nicety::{CardForXdp, Error, HandlerNames};
use nicety_bench::{Plan, PlannedProgram};
use nicety_nic_ethernet::EthernetSpec;
use nicety_nic_hxdp::HxdpSpec;
use nicety_traffic::{Traffic, TrafficError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Names of handlers in the program, if they differ from the defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "HandlerNames")]
pub struct Names {
    /// Instead of `header_handler`.
    pub header: Option<String>,
    /// Instead of `payload_handler`.
    pub payload: Option<String>,
    /// Instead of `completion_handler`.
    pub completion: Option<String>,
}

impl From<&Names> for HandlerNames {
    fn from(names: &Names) -> HandlerNames {
        let Names { header, payload, completion } = names.clone();
        HandlerNames { header, payload, completion }
    }
}

/// Default payload bytes of a packet, doubled from the first on.
const USUAL_SIZES: RangeInclusive<u64> = 64..=4096;
/// Default number of packets in a message.
const MESSAGE_PACKETS: u64 = 64;
/// Default number of measured packets, rounded to whole messages.
const MEASURED_PACKETS: u64 = 2048;
/// Packets before and after the measured ones, rounded to whole messages: two fills of a usual packet buffer.
const WARMUP_PACKETS: u64 = 512;
/// Maximum packets of one size: their rows are kept.
const MOST_PACKETS: u64 = 1_000_000;
/// Default bytes of the handlers' state.
const STATE: u64 = 1024;
/// Maximum bytes of the handlers' state.
const MOST_STATE: u64 = 64 << 20;
/// Maximum bytes of host memory that only handlers use.
const MOST_MEMORY: u64 = 1 << 30;
/// Maximum bytes of a message: handlers count in 32 bits.
const LONGEST: u64 = 1 << 31;

fn usual_cards() -> Vec<String> {
    vec!["spin-discrete".to_owned()]
}

const fn default_handler_memory() -> u64 {
    65_536
}

/// Send packets to handlers at the wire rate, to measure their time and whether the card keeps up.
///
/// The wire rate is a packet every max(g, bytes x G): the card's gap between messages, or the link's time for the bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LineRateOptions")]
pub struct Request {
    /// Cards to compare: names of specs, or paths of spec files.
    #[serde(default = "usual_cards")]
    pub nics: Vec<String>,
    /// Packets to send instead of equal packets at the wire rate: a capture, such as `capture=FILE.pcap rate=wire`, or generated
    /// packets, such as `udp dport=53 src=10.0.0.0/8 flows=1M zipf=1.1 size=imix rate=40Gbps arrivals=poisson`. Several
    /// expressions are for several ports of the card (link.ports), the first one for port 0. All run at once until one of them
    /// has ended.
    #[serde(default)]
    #[schemars(extend("metavar" = "EXPRESSION", "format" = "expressions"))]
    pub traffic: Vec<String>,
    /// Drop packets of the traffic when the packet buffer is full.
    #[serde(default)]
    pub lossy: bool,
    /// Pause the wire while the packet buffer is full (IEEE 802.1Qbb), with --traffic.
    #[serde(default)]
    pub pfc: bool,
    /// Payload bytes of a packet: a list with commas, or a doubling range. Default: 64:4Ki, up to the maximum packet of all
    /// cards; 64 in a check.
    #[serde(default)]
    pub packet_sizes: Option<Vec<u64>>,
    /// Packets of a message. Default: 64; 8 in a check.
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_PACKETS))]
    pub message_packets: Option<u64>,
    /// Number of measured messages or frames. Default: the number of messages with 2048 packets, or 20000 frames; in a check, 4
    /// messages or 256 frames.
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_PACKETS))]
    pub messages: Option<u64>,
    /// The frames for the handlers of an Ethernet card, such as `udp dport=53` or `word@36&ffff0000=00350000`. Several rules each
    /// have their own state, and no frame may match two. Default: any.
    #[serde(default)]
    #[schemars(extend("metavar" = "RULE"))]
    pub rules: Vec<String>,
    /// Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// Bytes of the handlers' state in HPU memory. Default: 1Ki, or the length of the given state.
    #[serde(default)]
    #[schemars(range(max = MOST_STATE), extend("metavar" = "SIZE"))]
    pub state_bytes: Option<u64>,
    /// First bytes of the handlers' state, such as 0100ff; zeros follow.
    #[serde(default)]
    pub state: Vec<u8>,
    /// First bytes of every message; the rest is random.
    #[serde(default)]
    pub user_header: Vec<u8>,
    /// Bytes of host memory that only handlers use.
    #[serde(default = "default_handler_memory")]
    #[schemars(range(max = MOST_MEMORY), extend("metavar" = "SIZE"))]
    pub handler_memory: u64,
    /// Names of the handlers.
    #[serde(default)]
    #[schemars(extend("format" = "derived"))]
    pub names: Names,
    /// The program of an eBPF object, instead of handlers. The program processes frames on every card, and runs in the host's
    /// driver for cards without handler cores.
    #[serde(default)]
    #[schemars(extend("format" = "derived"))]
    pub xdp: Option<XdpObject>,
    /// The place of an XDP program in a host's driver. `native`: before the kernel makes its packet buffer; or `generic`: after
    /// that.
    #[serde(default)]
    pub xdp_mode: Mode,
    /// Also find the three assumed values of each card's spec to which the verdict is most sensitive. Each is halved and doubled.
    #[serde(default)]
    pub sensitivity: bool,
    /// Seed of every random stream: the same seed gives the same report to the last byte.
    #[serde(default = "default_seed")]
    pub seed: u64,
}

/// Messages of a run: before, during and after the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Messages {
    pub(crate) packets_each: u64,
    pub(crate) before: u64,
    pub(crate) measured: u64,
    pub(crate) after: u64,
}

impl Messages {
    pub(crate) const fn total(self) -> u64 {
        self.before + self.measured + self.after
    }
}

/// A card with its name.
pub(crate) type Named = (String, Card);

/// The name as given, the name, and the card, for a program in a host's driver, on an eBPF core or on microengines.
pub(crate) type Driver = (String, Named);

/// A request with resolved names.
pub(crate) struct Resolved {
    pub(crate) cards: Vec<(String, Card)>,
    /// Cards without handler cores, for an XDP program in a host's driver, on an eBPF core or on microengines.
    pub(crate) drivers: Vec<Driver>,
    /// The names of all cards, in the order of the request.
    pub(crate) order: Vec<String>,
    /// Payload sizes of packets. With traffic it is a single 0, for all packets.
    pub(crate) packet_sizes: Vec<u64>,
}

impl Resolved {
    /// Returns the cards and the packet sizes, for tools that observe handler cores.
    ///
    /// # Errors
    /// When a card has no handler cores.
    pub(crate) fn with_processors(self) -> Result<(Vec<Named>, Vec<u64>), Error> {
        match self.drivers.first() {
            None => Ok((self.cards, self.packet_sizes)),
            Some((nic, _)) => Err(Error::Input(format!(
                "--nic {nic}: this card has no handler cores; name one that has them, as --nic spin-100g"
            ))),
        }
    }
}

impl Request {
    /// Returns a request with default values.
    pub fn new(nics: &[&str], packet_sizes: &[u64]) -> Request {
        Request {
            nics: nics.iter().map(|&nic| nic.to_owned()).collect(),
            traffic: Vec::new(),
            lossy: false,
            pfc: false,
            packet_sizes: Some(packet_sizes.to_vec()),
            message_packets: None,
            messages: None,
            rules: Vec::new(),
            overrides: Vec::new(),
            state_bytes: None,
            state: Vec::new(),
            user_header: Vec::new(),
            handler_memory: default_handler_memory(),
            names: Names::default(),
            xdp: None,
            xdp_mode: Mode::Native,
            sensitivity: false,
            seed: default_seed(),
        }
    }

    /// Reads a request from its JSON text.
    ///
    /// # Errors
    /// [`Error::Input`] with the invalid JSON or fields.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        nicety::from_json(text, "the line-rate check's request")
    }

    pub(crate) fn state_bytes(&self) -> u64 {
        self.state_bytes.unwrap_or(STATE.max(self.state.len() as u64))
    }

    /// The rules of an Ethernet card.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &str> {
        let any = self.rules.is_empty().then_some("any");
        any.into_iter().chain(self.rules.iter().map(String::as_str))
    }

    pub(crate) fn messages(&self) -> Messages {
        let packets_each = self.message_packets.unwrap_or(MESSAGE_PACKETS);
        let around = WARMUP_PACKETS.div_ceil(packets_each);
        let measured = self.messages.unwrap_or(MEASURED_PACKETS.div_ceil(packets_each));
        Messages { packets_each, before: around, measured, after: around }
    }

    /// Reads the cards, and checks the numbers.
    pub(crate) fn resolve(&self) -> Result<Resolved, Error> {
        let wrong = |text: String| Err(Error::Input(text));
        for (option, value) in [("--message-packets", self.message_packets), ("--messages", self.messages)] {
            if value == Some(0) {
                return wrong(format!("{option} is at least 1"));
            }
        }
        if let Some(packets) = self.message_packets.filter(|&packets| packets > MOST_PACKETS) {
            return wrong(format!("--message-packets is at most {MOST_PACKETS}, not {packets}"));
        }
        if self.xdp.is_none() && self.xdp_mode != Mode::Native {
            return wrong(
                "--xdp-mode: an option of XDP programs, but these are handlers in C; leave --xdp-mode out"
                    .to_owned(),
            );
        }
        let messages = self.messages();
        let all = load_cards(&self.nics, &self.overrides, "spin-discrete")?;
        let order = all.iter().map(|(name, _)| name.clone()).collect();
        let (drivers, cards) = self.divide(all);
        for (name, card) in &cards {
            if self.xdp.is_some() && card.spec.of::<NfpSpec>().is_ok() {
                return wrong(format!("--nic {name}: {}", XdpError::NoFirmware));
            }
            let tested = Tested::of(card).map_err(|error| named(name, error))?;
            self.check_xdp(name, &tested)?;
            self.check_rules(name, &tested)?;
            self.check_count(&tested, messages)?;
            if !tested.takes_time() {
                let why = "packets come without any time between them";
                return wrong(format!("{name}: {why}; write a send.gap or a link.gap above 0"));
            }
        }
        self.check_drivers(&drivers)?;
        if !self.traffic.is_empty() {
            self.check_traffic(&cards)?;
            return Ok(Resolved { cards, drivers, order, packet_sizes: vec![0] });
        }
        if self.lossy || self.pfc {
            let option = if self.lossy { "--lossy" } else { "--pfc" };
            let has_frames = |card| Tested::of(card).is_ok_and(|tested| self.has_frames(&tested));
            let why = match cards.iter().all(|(_, card)| has_frames(card)) {
                true => "the option is for traffic that finds the packet buffer full; name the traffic",
                false => {
                    "packets of one message depend on each other; name traffic, which has a message per packet"
                }
            };
            return wrong(format!("{option}: {why}, as in --traffic 'udp size=64' {option}"));
        }
        let packet_sizes = match &self.packet_sizes {
            Some(sizes) => sizes.clone(),
            None => self.usual_sizes(&cards, &drivers)?,
        };
        if packet_sizes.is_empty() {
            return wrong("no packet size named; write for example --packet-sizes 64:4Ki".into());
        }
        for (name, card) in &cards {
            self.check_sizes(name, card, &packet_sizes, messages)?;
        }
        for (_, (name, card)) in &drivers {
            let sizes = object_sizes(card)?;
            packet_sizes.iter().try_for_each(|size| check_frame(name, *size, sizes))?;
        }
        if self.state.len() as u64 > self.state_bytes() {
            return wrong(self.state_too_long());
        }
        Ok(Resolved { cards, drivers, order, packet_sizes })
    }

    /// Divides the cards into those without handler cores for an XDP program, with their names as given, and the others.
    fn divide(&self, all: Vec<(String, Card)>) -> (Vec<Driver>, Vec<(String, Card)>) {
        let named = self.nics.iter().cloned().zip(all);
        let (drivers, cards): (Vec<_>, Vec<_>) =
            named.partition(|(_, (_, card))| self.xdp.is_some() && has_driver(card));
        (drivers, cards.into_iter().map(|(_, card)| card).collect())
    }

    /// Whether handlers of a card have frames: those of a card of frames, and XDP programs.
    pub(crate) fn has_frames(&self, tested: &Tested<'_>) -> bool {
        self.xdp.is_some() || tested.has_frames()
    }
}

/// Names the card in an error of the user's input. The request may name several cards.
fn named(card: &str, error: Error) -> Error {
    match error {
        Error::Input(text) => Error::Input(format!("--nic {card}: {text}")),
        other => other,
    }
}

/// Whether a card has no handler cores, and its host's driver, its eBPF core or its microengines run XDP programs.
fn has_driver(card: &Card) -> bool {
    card.spec.of::<HxdpSpec>().is_ok()
        || card.spec.of::<NfpSpec>().is_ok_and(|spec| spec.xdp.is_some())
        || card.spec.of::<EthernetSpec>().is_ok_and(|spec| spec.handlers.is_none() && spec.xdp.is_some())
}

/// Reads the expression of traffic.
pub(crate) fn traffic_of(text: &str) -> Result<Traffic, Error> {
    let traffic = Traffic::parse(text).map_err(|error| refused(&error))?;
    let word = traffic.to.map(|_| "to").or(traffic.start_ps.map(|_| "start"));
    match word {
        Some(word) => Err(Error::Input(format!(
            "--traffic: {word} is for host programs, as in 'nicety run PROGRAM.py --traffic'; here one card \
             receives all traffic from the start; leave {word} out"
        ))),
        None => Ok(traffic),
    }
}

/// Returns the error of invalid traffic, or of a packet that cannot be sent.
pub(crate) fn refused(error: &TrafficError) -> Error {
    Error::Input(format!("--traffic: {error}"))
}

/// The interface of a program for microengines in a plan.
const FLOW_PROCESSOR: &str = "nfp";
/// An object for a host's driver in a plan.
const OBJECT: (&str, &str) = ("bpf", "xdp");

/// Handlers to compile for a card, or an XDP program that runs in its host's driver as it is: then `isa` is `bpf`, and the
/// interface `xdp`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedHandlers {
    /// The program.
    #[serde(flatten)]
    pub program: PlannedProgram,
    /// The card's values for a program of XDP; none where handlers have messages, and for the driver.
    pub xdp: Option<CardForXdp>,
}

/// Checks a request, and lists the programs to compile for it.
///
/// # Errors
/// [`Error::Input`] when the request is invalid.
pub fn plan(request: &Request) -> Result<Plan<PlannedHandlers>, Error> {
    let Resolved { cards, drivers, .. } = request.resolve()?;
    let planned = |(name, card): &(String, Card)| {
        let spec = Tested::of(card)?;
        let interface = card.spec.interface();
        let program = PlannedProgram { key: name.clone(), isa: spec.hpu().isa.clone(), interface };
        Ok(PlannedHandlers { program, xdp: spec.for_xdp() })
    };
    let (isa, interface) = OBJECT;
    let in_driver = |(_, (name, card)): &Driver| {
        if let Ok(spec) = card.spec.of::<NfpSpec>() {
            // Memories take references at any byte.
            let isa = format!("{}_zicclsm", spec.isa);
            let program = PlannedProgram { key: name.clone(), isa, interface: FLOW_PROCESSOR };
            return PlannedHandlers { program, xdp: CardForXdp::of_flow_processor(spec) };
        }
        let program = PlannedProgram { key: name.clone(), isa: isa.to_owned(), interface };
        PlannedHandlers { program, xdp: None }
    };
    let mut compile = cards.iter().map(planned).collect::<Result<Vec<_>, Error>>()?;
    compile.extend(drivers.iter().map(in_driver));
    Ok(Plan { compile })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn defaults_of_a_request() {
        let request = Request::from_json(r#"{"nics": ["spin-discrete"], "packet_sizes": [64]}"#).unwrap();
        assert_eq!(request, Request::new(&["spin-discrete"], &[64]));
        assert!(request.resolve().is_ok());
        let error = Request::from_json(r#"{"nics": [], "packet_size": []}"#).unwrap_err().to_string();
        assert!(error.contains("packet_size"), "{error}");
    }

    #[test]
    fn given_bytes_fit_in_messages_and_states() {
        let request = |header: usize| Request {
            user_header: vec![0; header],
            message_packets: Some(2),
            ..Request::new(&["spin-discrete"], &[64])
        };
        assert!(request(100).resolve().is_ok());
        let with_state =
            |bytes| Request { state: vec![1; bytes], state_bytes: Some(64), ..request(0) }.resolve();
        assert!(with_state(64).is_ok() && with_state(65).is_err());
        let error = request(129).resolve().err().unwrap().to_string();
        assert!(error.contains("129 bytes") && error.contains("only 128"), "{error}");
    }

    #[test]
    fn a_frame_is_a_message_of_its_own() {
        let of = |nic, messages| Request { messages: Some(messages), ..Request::new(&[nic], &[64]) };
        let resolved = |nic, messages| of(nic, messages).resolve().err().map(|error| error.to_string());
        assert_eq!(resolved("spin-100g", MOST_PACKETS), None);
        assert_eq!(resolved("spin-discrete", 15_625), None);
        let error = resolved("spin-discrete", 15_626).unwrap();
        assert!(error.contains("1000064 packets") && error.contains("--messages 15625 or less"), "{error}");
        let error = resolved("spin-100g", MOST_PACKETS + 1).unwrap();
        assert!(error.contains("1000001 frames; at most 1000000"), "{error}");
        let lossy = Request { lossy: true, ..Request::new(&["spin-100g"], &[64]) };
        let error = lossy.resolve().err().unwrap().to_string();
        assert!(error.contains("name the traffic, as in --traffic 'udp size=64' --lossy"), "{error}");
        assert!(!error.contains("message"), "{error}");
    }

    proptest! {
        #[test]
        fn as_many_packets_as_asked_for_in_whole_messages(packets in 1u64..5000, messages in prop::option::of(1u64..200)) {
            let request = Request { message_packets: Some(packets), messages, ..Request::new(&["x"], &[64]) };
            let found = request.messages();
            prop_assert_eq!(found.packets_each, packets);
            prop_assert!(found.before * packets >= WARMUP_PACKETS && found.after == found.before);
            match messages {
                Some(messages) => prop_assert_eq!(found.measured, messages),
                None => prop_assert!((MEASURED_PACKETS..MEASURED_PACKETS + packets).contains(&(found.measured * packets))),
            }
        }
    }
}
