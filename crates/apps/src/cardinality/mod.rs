//! Counts the distinct source addresses in a capture. `nfp/pcsa.c` estimates the number on a network flow processor, and the host
//! counts exactly.
//!
//! One thread reads the capture and counts exactly (`addresses.rs`, `distinct.rs`). Another thread simulates the card at the same
//! time. They keep only a few blocks of addresses or packets in memory, and the set of distinct addresses. Packets are replayed
//! into the card's port (`frames.rs`), and the card's processes find the addresses. Alternatively, the host finds the addresses
//! and sends them to the card through channels.

mod addresses;
mod distinct;
mod frames;

pub use addresses::Contents;

use crate::pcsa::{self, Counted, Replayed, Streamed};
use addresses::{Addresses, Read, folded};
use nicety::cards::{self, Card};
use nicety::{Environment, Error, Manifest, VERSION};
use nicety_nic_nfp::NfpSpec;
use nicety_traffic::capture::{Capture, Damage, reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

fn usual_card() -> String {
    "nfp-4000".to_owned()
}

const fn usual_sketches() -> u32 {
    2048
}

/// Estimate the distinct source addresses of a capture on a card, and count them exactly on the host.
///
/// If the capture is damaged, the packets before the damage are counted. The counts are printed, and the exit status is 2.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CountOptions")]
pub struct Request {
    /// The file of the capture.
    #[schemars(extend("format" = "derived"))]
    pub file: String,
    /// The card: a name, or the path of a specification file.
    #[serde(default = "usual_card")]
    #[schemars(extend("metavar" = "NAME", "format" = "path"))]
    pub nic: String,
    /// Changes to the card, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// The number of sketches of the estimate: a power of two from 16 to the number that the card's CLS can hold.
    #[serde(default = "usual_sketches")]
    #[schemars(range(min = 1))]
    pub sketches: u32,
    /// `port`: packets go through the port; `channels`: the host sends the addresses through channels.
    #[serde(default)]
    #[schemars(extend("metavar" = "port|channels"))]
    pub through: Through,
}

/// The way by which addresses reach the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Through {
    /// Packets are replayed into the card's port, as fast as the port takes them. The card's processes find the addresses.
    #[default]
    Port,
    /// The host finds the addresses and sends them in bulk messages.
    Channels,
}

/// The program to compile before a request can run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The instruction set for which `nfp/pcsa.c` is compiled.
    pub isa: String,
    /// A macro definition for the compiler. It gives the number of hash bits that select a sketch.
    pub define: String,
}

/// The first damage in a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Damage")]
pub struct DamageRow {
    /// The number of the damaged packet, counted from 1.
    pub packet: u64,
    /// The offset of the damage in the file, in bytes.
    pub byte: u64,
    /// A description of the damage.
    pub text: String,
}

/// The application's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Application {
    /// `pcsa`.
    Pcsa,
}

/// The result of counting the addresses of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The application.
    pub application: Application,
    /// The version of nicety.
    pub version: &'static str,
    /// The inputs that reproduce the run.
    pub manifest: Manifest,
    /// The file of the capture, as given.
    pub capture: String,
    /// The contents of the capture.
    #[serde(flatten)]
    pub contents: Contents,
    /// The card.
    pub nic: String,
    /// Number of sketches.
    pub sketches: u32,
    /// The card's estimate of distinct source addresses.
    pub estimate: f64,
    /// The error of the estimate, as a fraction of `distinct`.
    pub relative_error: f64,
    /// The standard error of an estimate with this number of sketches, as a fraction.
    pub expected_error: f64,
    /// The number of trailing ones, summed over all sketches, as the card returned it.
    pub trailing_ones: u32,
    /// The way by which addresses reached the card.
    pub through: Through,
    /// Number of blocks of addresses that the host sent to the card, with channels.
    pub blocks: Option<u64>,
    /// The virtual time at which the last packet had entered the port, if packets were replayed.
    pub sent_ns: Option<f64>,
    /// Busy time of the wire, if packets were replayed. It is less than `sent_ns` if the card stalled the wire.
    pub wire_busy_ns: Option<f64>,
    /// Packets that the port dropped, because their length field (IEEE 802.3) is 0, or is above the captured length.
    pub dropped_packets: Option<u64>,
    /// Virtual time from the first packet, or the host's first message, until the host has received the sum.
    pub card_time_ns: f64,
    /// Number of packets divided by the card time, per second.
    pub card_packets_per_s: f64,
    /// The first damage in the capture, if any. The packets before it are counted.
    pub damage: Option<DamageRow>,
}

impl Request {
    /// Reads a request from its JSON text.
    ///
    /// # Errors
    /// [`Error::Input`] with the invalid JSON or fields.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        nicety::from_json(text, "the request of pcsa")
    }

    fn resolve(&self) -> Result<Resolved, Error> {
        let wrong = |what: &str| Err(Error::Input(format!("{}: {what}", self.file)));
        let file = match File::open(&self.file) {
            Err(error) => return wrong(&format!("cannot read it ({})", crate::tsp::plain(&error))),
            Ok(file) => file,
        };
        let size = match file.metadata() {
            Ok(metadata) if metadata.is_dir() => return wrong("this is a folder; name a capture in it"),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        };
        let card = cards::load(&self.nic, &self.overrides)?;
        let nic = card.listing.name.clone();
        let spec = card.processor(&nic)?.clone();
        pcsa::check_sketches(&spec, self.sketches)
            .map_err(|error| Error::Input(format!("--sketches: {error}")))?;
        Ok(Resolved { file, size, card, nic, spec })
    }
}

/// The resolved names of a request.
struct Resolved {
    file: File,
    size: u64,
    card: Card,
    nic: String,
    spec: NfpSpec,
}

/// Checks a request, and returns the program to compile for it.
///
/// # Errors
/// [`Error::Input`] when the request is wrong.
pub fn plan(request: &Request) -> Result<Plan, Error> {
    let Resolved { spec, .. } = request.resolve()?;
    Ok(Plan { isa: spec.isa, define: format!("INDEX_BITS={}", request.sketches.ilog2()) })
}

/// Real time between reports of progress.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// Counts the addresses of a capture. The compiled program has the key `pcsa`. Progress is in kilobytes of the file.
///
/// # Errors
/// When the input is invalid: the file is not a capture, or the capture has no source addresses. Also any error of the run.
pub fn run(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let Resolved { file, size, card, nic, spec } = request.resolve()?;
    let elf = environment
        .compiled
        .get("pcsa")
        .ok_or_else(|| Error::Input("no compiled program under the key pcsa; compile nfp/pcsa.c".into()))?;
    let at = Arc::new(AtomicU64::new(0));
    let wrong = |what: String| Error::Input(format!("{}: {what}", request.file));
    let bytes = reading(file, at.clone())
        .map_err(|error| wrong(format!("cannot read it ({})", crate::tsp::plain(&error))))?;
    let capture = Capture::new(bytes).map_err(|damage| wrong(damage.what))?;
    // The caller sets this interrupt, or this function does after a failure.
    let stop = environment.interrupt.clone().unwrap_or_else(|| Arc::new(AtomicBool::new(false)));
    let sketches = request.sketches;
    let kilobytes = |bytes: u64| (bytes / 1000) as usize;
    let tell = || {
        let done = kilobytes(at.load(Ordering::Relaxed));
        (environment.progress)(done, kilobytes(size).max(done));
    };
    let (outcome, reader) = match request.through {
        Through::Channels => {
            let take = |seen: &addresses::CapturedPacket<'_>, _: &mut Contents| seen.source.ok().map(folded);
            let (addresses, reader) = Addresses::read(capture, pcsa::BLOCK, take);
            let next = move |block: &mut Vec<u32>| addresses.next(block);
            (beside(tell, || pcsa::stream(&spec, elf, sketches, Some(stop), next).map(Outcome::from)), reader)
        }
        Through::Port => {
            let largest = spec.port.payload as usize;
            let take = move |seen: &addresses::CapturedPacket<'_>, contents: &mut Contents| {
                frames::frame_of(seen, largest, contents)
            };
            let (packets, reader) = Addresses::read(capture, FRAMES, take);
            let mut block = Vec::new().into_iter();
            let next = move || loop {
                if let Some(frame) = block.next() {
                    return Some(frame);
                }
                let mut more = Vec::new();
                packets.next(&mut more);
                if more.is_empty() {
                    return None;
                }
                block = more.into_iter();
            };
            (beside(tell, || pcsa::replay(&spec, elf, sketches, Some(stop), next).map(Outcome::from)), reader)
        }
    };
    let outcome = outcome?;
    let read = reader.join().expect("reading does not panic");
    check(request, &read.contents, read.damage.as_ref())?;
    outcome.check(&read.contents)?;
    let manifest = Manifest::of([(&nic, &card)], &request.overrides);
    Ok(report(request, (nic, manifest), &outcome, read))
}

/// Returns the report of a capture from the card's result.
fn report(request: &Request, (nic, manifest): (String, Manifest), outcome: &Outcome, read: Read) -> Report {
    let Read { contents, damage } = read;
    let estimate = pcsa::estimate(outcome.sum, request.sketches);
    let nanoseconds = outcome.time_ns;
    Report {
        application: Application::Pcsa,
        version: VERSION,
        manifest,
        capture: request.file.clone(),
        nic,
        sketches: request.sketches,
        estimate,
        relative_error: estimate / contents.distinct as f64 - 1.0,
        expected_error: pcsa::standard_error(request.sketches),
        trailing_ones: outcome.sum,
        through: request.through,
        blocks: outcome.blocks,
        sent_ns: outcome.port.as_ref().map(|port| port.sent_ns),
        wire_busy_ns: outcome.port.as_ref().map(|port| port.wire_busy_ns),
        dropped_packets: outcome.port.as_ref().map(|port| port.dropped),
        card_time_ns: nanoseconds,
        card_packets_per_s: contents.counted() as f64 / nanoseconds * 1e9,
        damage: damage.map(|damage| DamageRow {
            packet: damage.packet,
            byte: damage.byte,
            text: damage.what,
        }),
        contents,
    }
}

/// Number of packets in a block.
const FRAMES: usize = 2048;

/// The card's result for a capture.
struct Outcome {
    sum: u32,
    time_ns: f64,
    blocks: Option<u64>,
    port: Option<OfPort>,
}

/// The results that exist if packets were replayed into the port.
struct OfPort {
    /// The virtual time at which the last packet had been sent, in nanoseconds.
    sent_ns: f64,
    /// Busy time of the wire, in nanoseconds.
    wire_busy_ns: f64,
    counted: Counted,
    dropped: u64,
}

impl From<Streamed> for Outcome {
    fn from(streamed: Streamed) -> Outcome {
        let Streamed { sum, time, blocks, .. } = streamed;
        Outcome { sum, time_ns: nanoseconds(time), blocks: Some(blocks), port: None }
    }
}

impl From<Replayed> for Outcome {
    fn from(replayed: Replayed) -> Outcome {
        let Replayed { sum, time, sent, wire, counted, dropped } = replayed;
        let port =
            Some(OfPort { sent_ns: nanoseconds(sent), wire_busy_ns: nanoseconds(wire), counted, dropped });
        Outcome { sum, time_ns: nanoseconds(time), blocks: None, port }
    }
}

fn nanoseconds(time: nicety_types::Duration) -> f64 {
    time.ps() as f64 / 1e3
}

impl Outcome {
    /// Checks that the card has found the addresses of all IP packets in the capture.
    fn check(&self, contents: &Contents) -> Result<(), Error> {
        let Some(OfPort { counted, .. }) = self.port else { return Ok(()) };
        let found = (u64::from(counted.ipv4), u64::from(counted.ipv6));
        if found == (contents.ipv4_packets, contents.ipv6_packets) {
            return Ok(());
        }
        Err(Error::Input(format!(
            "the card found sources in {} IPv4 and {} IPv6 packets, but the capture has {} and {}: the card \
             reads the first 64 bytes after a frame's EtherType, and VLAN tags may move addresses further \
             back; with --through channels, the host finds them",
            found.0, found.1, contents.ipv4_packets, contents.ipv6_packets
        )))
    }
}

/// Runs a long computation in another thread, and reports its progress at intervals.
fn beside<T: Send>(tell_progress: impl Fn(), work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let (tell, told) = channel();
        scope.spawn(move || {
            let _ = tell.send(work());
        });
        loop {
            tell_progress();
            match told.recv_timeout(TELL_EVERY) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("it always tells"),
                Ok(done) => break done,
            }
        }
    })
}

/// Returns an error if a capture has no source address.
fn check(request: &Request, contents: &Contents, damage: Option<&Damage>) -> Result<(), Error> {
    if contents.counted() > 0 {
        return Ok(());
    }
    let file = &request.file;
    if let Some(damage) = damage {
        return Err(Error::Input(format!("{file}: {damage}; nothing before it has an IP source address")));
    }
    let Contents { packets, other_packets, truncated_packets, unknown_link_packets, damaged_packets, .. } =
        contents;
    let why = match packets {
        0 => "the capture has no packets".into(),
        _ => format!(
            "none of its {packets} packets has an IP source address: {other_packets} are not of IP, {truncated_packets} were cut \
             short, {damaged_packets} were damaged on their link; {unknown_link_packets} are of link types other than \
             Ethernet, Linux cooked, raw IP and loopback"
        ),
    };
    Err(Error::Input(format!("{file}: {why}")))
}
