//! The request for a line-rate check.

use super::tested::{CardForXdp, Tested};
use nicety::cards::{Card, load_distinct as load_cards};
use nicety::options::default_seed;
use nicety::{Error, HandlerNames};
use nicety_bench::{Plan, PlannedProgram};
use nicety_nic_ethernet::{InstallError, Rule, check_rule};
use nicety_traffic::{Traffic, TrafficError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::iter;
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
    /// Packets to send instead of equal ones at the wire rate: a capture, such as `capture=FILE.pcap rate=wire`, or made ones,
    /// such as `udp dport=53 src=10.0.0.0/8 flows=1M zipf=1.1 size=imix rate=40Gbps arrivals=poisson`. Several are for several
    /// ports of the card (link.ports), the first for port 0. All run at once until one of them has ended.
    #[serde(default)]
    #[schemars(extend("metavar" = "EXPRESSION", "format" = "expressions"))]
    pub traffic: Vec<String>,
    /// Drop packets of the traffic when the packet buffer is full.
    #[serde(default)]
    pub lossy: bool,
    /// Pause the wire while the packet buffer is full (IEEE 802.1Qbb), with --traffic.
    #[serde(default)]
    pub pfc: bool,
    /// Payload bytes of a packet: 64:4Ki doubles. Default: 64:4Ki, up to the maximum packet of all cards.
    #[serde(default)]
    pub packet_sizes: Option<Vec<u64>>,
    /// Packets of a message.
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_PACKETS), extend("default" = MESSAGE_PACKETS))]
    pub message_packets: Option<u64>,
    /// Messages measured, or frames. Default: the number of messages with 2048 packets, and 20000 frames.
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
    /// Also find the three assumed values of each card's spec to which the verdict is most sensitive. Each is halved and doubled.
    #[serde(default)]
    pub sensitivity: bool,
    /// Seed of every random stream: the same seed gives the same report to the last byte.
    #[serde(default = "default_seed")]
    pub seed: u64,
}

/// Messages of a run: before, during and after the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Messages {
    pub(super) packets_each: u64,
    pub(super) before: u64,
    pub(super) measured: u64,
    pub(super) after: u64,
}

impl Messages {
    pub(super) const fn total(self) -> u64 {
        self.before + self.measured + self.after
    }
}

/// A request with resolved names.
pub(super) struct Resolved {
    pub(super) cards: Vec<(String, Card)>,
    /// Payload sizes of packets. With traffic it is a single 0, for all packets.
    pub(super) packet_sizes: Vec<u64>,
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

    pub(super) fn state_bytes(&self) -> u64 {
        self.state_bytes.unwrap_or(STATE.max(self.state.len() as u64))
    }

    /// The rules of an Ethernet card.
    pub(super) fn rules(&self) -> impl Iterator<Item = &str> {
        let any = self.rules.is_empty().then_some("any");
        any.into_iter().chain(self.rules.iter().map(String::as_str))
    }

    pub(super) fn messages(&self) -> Messages {
        let packets_each = self.message_packets.unwrap_or(MESSAGE_PACKETS);
        let around = WARMUP_PACKETS.div_ceil(packets_each);
        let measured = self.messages.unwrap_or(MEASURED_PACKETS.div_ceil(packets_each));
        Messages { packets_each, before: around, measured, after: around }
    }

    /// Reads the cards, and checks the numbers.
    pub(super) fn resolve(&self) -> Result<Resolved, Error> {
        let wrong = |text: String| Err(Error::Input(text));
        for (option, value) in [("--message-packets", self.message_packets), ("--messages", self.messages)] {
            if value == Some(0) {
                return wrong(format!("{option} is at least 1"));
            }
        }
        if let Some(packets) = self.message_packets.filter(|&packets| packets > MOST_PACKETS) {
            return wrong(format!("--message-packets is at most {MOST_PACKETS}, not {packets}"));
        }
        let messages = self.messages();
        let cards = load_cards(&self.nics, &self.overrides, "spin-discrete")?;
        for (name, card) in &cards {
            let tested = Tested::of(card)?;
            self.check_rules(name, &tested)?;
            check_count(&tested, messages)?;
            if !tested.takes_time() {
                let why = "packets come without any time between them";
                return wrong(format!("{name}: {why}; write a send.gap or a link.gap above 0"));
            }
        }
        if !self.traffic.is_empty() {
            return self.resolve_traffic(cards);
        }
        if self.lossy || self.pfc {
            let option = if self.lossy { "--lossy" } else { "--pfc" };
            let has_frames = |card| Tested::of(card).is_ok_and(|tested| tested.has_frames());
            let why = match cards.iter().all(|(_, card)| has_frames(card)) {
                true => "it is about traffic that finds the packet buffer full; name the traffic",
                false => {
                    "packets of one message depend on each other; name traffic, which has a message per packet"
                }
            };
            return wrong(format!("{option}: {why}, as in --traffic 'udp size=64' {option}"));
        }
        let packet_sizes = match &self.packet_sizes {
            Some(sizes) => sizes.clone(),
            None => usual_sizes(&cards)?,
        };
        if packet_sizes.is_empty() {
            return wrong("no packet size named; write for example --packet-sizes 64:4Ki".into());
        }
        for (name, card) in &cards {
            self.check_sizes(name, card, &packet_sizes, messages)?;
        }
        if self.state.len() as u64 > self.state_bytes() {
            return wrong(self.state_too_long());
        }
        Ok(Resolved { cards, packet_sizes })
    }

    /// As [`Request::resolve`], with traffic. Refuses options for values that the expressions determine.
    fn resolve_traffic(&self, cards: Vec<(String, Card)>) -> Result<Resolved, Error> {
        let wrong = |text: String| Err(Error::Input(text));
        let others = [
            (
                "--packet-sizes",
                self.packet_sizes.is_some(),
                "sizes are those of the traffic, as in 'udp size=64'",
            ),
            ("--message-packets", self.message_packets.is_some(), "each packet of traffic is a message"),
            ("--messages", self.messages.is_some(), "the traffic has their number, as in 'udp packets=1M'"),
            ("--user-header", !self.user_header.is_empty(), "packets of traffic have their own headers"),
        ];
        if let Some((option, _, why)) = others.into_iter().find(|(_, given, _)| *given) {
            return wrong(format!("{option} and --traffic: {why}; leave one of the two out"));
        }
        if self.lossy && self.pfc {
            return wrong(
                "--lossy and --pfc: a full packet buffer drops or pauses; leave one of the two out".into(),
            );
        }
        if self.state.len() as u64 > self.state_bytes() {
            return wrong(self.state_too_long());
        }
        let traffic = self.traffic.iter().map(|text| traffic_of(text)).collect::<Result<Vec<_>, _>>()?;
        for (name, card) in &cards {
            let tested = Tested::of(card)?;
            self.check_ports(name, &tested)?;
            if self.lossy && tested.sends_again() {
                return wrong(format!(
                    "--lossy: {name} sends again what is dropped (transport.reliable), so that nothing is lost; leave \
                     --lossy out, or write --set transport.reliable=false"
                ));
            }
            for traffic in &traffic {
                tested.open(traffic.clone(), self.seed).map_err(|error| refused(&error))?;
            }
        }
        Ok(Resolved { cards, packet_sizes: vec![0] })
    }

    /// Checks that a card has a port for each expression of traffic.
    pub(super) fn check_ports(&self, name: &str, tested: &Tested<'_>) -> Result<(), Error> {
        let (many, ports) = (self.traffic.len(), tested.ports());
        if many <= ports as usize {
            return Ok(());
        }
        let has = if ports == 1 { "1 port".to_owned() } else { format!("{ports} ports") };
        Err(Error::Input(format!(
            "--traffic: {many} expressions are for as many ports of a card, and {name} has {has}; leave some out, or write --set \
             link.ports={many}"
        )))
    }

    /// Checks the rules against a card of frames, or a card of messages.
    fn check_rules(&self, name: &str, tested: &Tested<'_>) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Input(text));
        let Tested::Frames(_, handlers) = tested else {
            return match self.rules.is_empty() {
                true => Ok(()),
                false => wrong(format!(
                    "--rule: handlers of {name} have messages, which match entries choose; leave it out, or name a card with \
                     frames, as --nic spin-100g"
                )),
            };
        };
        let of_messages = [
            ("--message-packets", self.message_packets.is_some()),
            ("--user-header", !self.user_header.is_empty()),
        ];
        if let Some((option, _)) = of_messages.into_iter().find(|(_, given)| *given) {
            return wrong(format!(
                "{option}: frames of {name} are by themselves, and in no message; leave it out"
            ));
        }
        let mut known = Vec::new();
        for text in self.rules() {
            let rule = Rule::parse(text).map_err(|error| Error::Input(format!("--rule: {error}")))?;
            check_rule(&rule, handlers, tested.sizes().1, &known)
                .map_err(|error| Error::Input(format!("--rule: {error}")))?;
            known.push(rule);
        }
        match known.len() > handlers.rules {
            true => wrong(format!("--rule: {}", InstallError::TooMany { limit: handlers.rules })),
            false => Ok(()),
        }
    }

    fn state_too_long(&self) -> String {
        let (given, bytes) = (self.state.len(), self.state_bytes());
        format!(
            "a state of {given} bytes was given, and --state-bytes is {bytes}; write --state-bytes {given}"
        )
    }

    pub(super) fn check_sizes(
        &self,
        name: &str,
        card: &Card,
        sizes: &[u64],
        messages: Messages,
    ) -> Result<(), Error> {
        let tested = Tested::of(card)?;
        let (least, most) = tested.sizes();
        for &size in sizes {
            if tested.has_frames() && !(least..=most).contains(&size) {
                return Err(Error::Input(format!(
                    "--packet-sizes: a frame of {name} has {least} to {most} bytes without its check sequence, not {size}; write \
                     --packet-sizes {least}:{most}"
                )));
            }
            if size == 0 {
                return Err(Error::Input(
                    "--packet-sizes: a packet of 0 bytes runs no payload handler; begin with 1".into(),
                ));
            }
            if size > most {
                return Err(Error::Input(format!(
                    "--packet-sizes: a packet of {name} carries {most} bytes at most, not {size}; write --packet-sizes \
                     64:{most}, or --set packet.payload=\"{size} B\""
                )));
            }
            let length = size * messages.packets_each;
            if length > LONGEST {
                return Err(Error::Input(format!(
                    "--message-packets {}: a message of {length} bytes is too long; the longest is 2Gi ({LONGEST} bytes)",
                    messages.packets_each
                )));
            }
            if self.user_header.len() as u64 > length {
                return Err(Error::Input(format!(
                    "--user-header has {} bytes, and a message of {} packets of {size} bytes only {length}",
                    self.user_header.len(),
                    messages.packets_each
                )));
            }
        }
        Ok(())
    }
}

/// Refuses more packets than are measured. Frames are not parts of messages.
fn check_count(tested: &Tested<'_>, messages: Messages) -> Result<(), Error> {
    let each = if tested.has_frames() { 1 } else { messages.packets_each };
    let measured = messages.measured.saturating_mul(each);
    if measured <= MOST_PACKETS {
        return Ok(());
    }
    let count = messages.measured;
    let what = match tested.has_frames() {
        true => format!("{count} frames"),
        false => format!("{count} messages of {each} packets are {measured} packets"),
    };
    Err(Error::Input(format!(
        "{what}; at most {MOST_PACKETS} can be measured, so write --messages {} or less",
        MOST_PACKETS / each
    )))
}

/// Reads the expression of traffic.
pub(super) fn traffic_of(text: &str) -> Result<Traffic, Error> {
    let traffic = Traffic::parse(text).map_err(|error| refused(&error))?;
    let word = traffic.to.map(|_| "to").or(traffic.start_ps.map(|_| "start"));
    match word {
        Some(word) => Err(Error::Input(format!(
            "--traffic: {word} is for host programs, as in 'nicety run PROGRAM.py --traffic', and here there is one card, which waits \
             for it; leave it out"
        ))),
        None => Ok(traffic),
    }
}

/// Returns the error of invalid traffic, or of a packet that cannot be sent.
pub(super) fn refused(error: &TrafficError) -> Error {
    Error::Input(format!("--traffic: {error}"))
}

/// Returns the default packet sizes that the packets of all cards carry, or their maximum if that is less.
fn usual_sizes(cards: &[(String, Card)]) -> Result<Vec<u64>, Error> {
    let payloads = cards.iter().map(|(_, card)| Ok(Tested::of(card)?.sizes().1));
    let most = payloads.collect::<Result<Vec<u64>, Error>>()?.into_iter().min().unwrap_or(*USUAL_SIZES.end());
    let sizes = iter::successors(Some(*USUAL_SIZES.start()), |size| Some(size * 2));
    let sizes: Vec<u64> = sizes.take_while(|size| *size <= most.min(*USUAL_SIZES.end())).collect();
    Ok(if sizes.is_empty() { vec![most] } else { sizes })
}

/// Handlers to compile for a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedHandlers {
    /// The program.
    #[serde(flatten)]
    pub program: PlannedProgram,
    /// The card's values for a program of XDP; none where handlers have messages.
    pub xdp: Option<CardForXdp>,
}

/// Checks a request, and lists the programs to compile for it.
///
/// # Errors
/// [`Error::Input`] when the request is invalid.
pub fn plan(request: &Request) -> Result<Plan<PlannedHandlers>, Error> {
    let cards = request.resolve()?.cards;
    let planned = |(name, card): &(String, Card)| {
        let spec = Tested::of(card)?;
        let interface = card.spec.interface();
        let program = PlannedProgram { key: name.clone(), isa: spec.hpu().isa.clone(), interface };
        Ok(PlannedHandlers { program, xdp: spec.for_xdp() })
    };
    Ok(Plan { compile: cards.iter().map(planned).collect::<Result<_, Error>>()? })
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
