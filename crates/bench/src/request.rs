//! The request for a benchmark between hosts.

use super::rdma::{ANSWER, Addressing, Memory, Notification, Puts};
use super::{Benchmark, Mode, Pattern, load_cards};
use nicety::cards::{self, Card};
use nicety::options::NetworkOptions;
pub(crate) use nicety::options::{NOISE, SEED, default_seed};
use nicety::{Error, Faults, FlowControl, Noise, Topology, flow};
use nicety_nic_apenet::ApenetSpec;
use nicety_nic_spin::SpinSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

fn default_pattern() -> String {
    Pattern::default().to_string()
}

/// The request of a benchmark between hosts.
///
/// Other languages pass its JSON form, and its schema defines the command line's options.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MessagesOptions")]
pub struct Request {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// Cards to compare: names of specs, or paths of spec files.
    #[schemars(extend("example" = "spin-discrete"))]
    pub nics: Vec<String>,
    /// The card of every host except rank 0, if it differs. Overrides do not apply to it.
    #[serde(default)]
    #[schemars(extend("metavar" = "NIC", "format" = "path"))]
    pub peer: Option<String>,
    /// Modes, which give the answering side, for example rdma or spin-stream; all modes of the card if left out.
    #[serde(default)]
    #[schemars(extend("metavar" = "M[,N]", "example" = "rdma"))]
    pub modes: Option<Vec<String>>,
    /// Message sizes in bytes: a list with commas, or a range. 8:4Mi is a doubling range, and 1..4 has steps of one.
    #[schemars(extend("usual" = {"latency": "8:4Mi", "bandwidth": "8:4Mi", "message-rate": "8:4Ki"}))]
    pub sizes: Vec<u64>,
    /// Number of measured round trips or windows for each size. Default: 10, but 2 windows if messages are longer than 64 KiB.
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_ITERATIONS))]
    pub iterations: Option<u64>,
    /// Number of round trips or windows before the measured ones.
    #[serde(default)]
    #[schemars(range(max = MOST_ITERATIONS), extend("default" = DEFAULT_WARMUP))]
    pub warmup: Option<u64>,
    /// Number of messages in a window; not for latency.
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_WINDOW), extend("default" = DEFAULT_WINDOW))]
    pub window: Option<u64>,
    /// Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// `pair`: rank 0 sends to rank 1; `bidirectional`: both send at the same time; or `incast:N`: N hosts send to one more host
    /// at the same time.
    #[serde(default = "default_pattern")]
    #[schemars(extend("metavar" = "PATTERN"))]
    pub pattern: String,
    /// The network.
    #[serde(flatten)]
    pub network: NetworkOptions,
    /// Background noise.
    #[serde(default)]
    #[schemars(extend("description" = NOISE, "metavar" = "PERIOD,DURATION"))]
    pub noise: Option<String>,
    /// Mode put: puts stay within one host, and go through its card.
    #[serde(default)]
    pub loopback: bool,
    /// Mode put: the kind of memory from which messages are put.
    #[serde(default)]
    #[schemars(extend("metavar" = "host|gpu", "default" = "host"))]
    pub source: Option<Memory>,
    /// Mode put: the kind of memory into which messages are put.
    #[serde(default)]
    #[schemars(extend("metavar" = "host|gpu", "default" = "host"))]
    pub sink: Option<Memory>,
    /// Mode put: the kind of addresses. The card translates virtual addresses.
    #[serde(default)]
    #[schemars(extend("metavar" = "virtual|physical", "default" = "virtual"))]
    pub addressing: Option<Addressing>,
    /// Mode put: the receiver's card drops arriving packets, and the sender determines the end of a window. Not for latency.
    #[serde(default)]
    pub flush_receive: bool,
    /// Mode put: programs poll for events. If left out, the card's specification decides.
    #[serde(default)]
    pub poll: bool,
    /// Mode put: interrupts notify programs of events.
    #[serde(default)]
    pub interrupt: bool,
    /// Mode put: bytes of the answer in a ping-pong; 8 if left out.
    #[serde(default)]
    #[schemars(range(max = LARGEST), extend("metavar" = "BYTES", "only" = "latency"))]
    pub pong_size: Option<u64>,
    /// Whether handlers of the user run in place of those of the library.
    #[serde(default)]
    #[schemars(extend("format" = "derived"))]
    pub handlers: bool,
}

/// Maximum number of iterations, measured or for warm-up. The time of each is kept.
const MOST_ITERATIONS: u64 = 10_000_000;

/// Maximum messages in a window.
const MOST_WINDOW: u64 = 65_536;

/// Default number of iterations before the measured ones.
pub(super) const DEFAULT_WARMUP: u64 = 1;

/// Default number of messages in a window.
pub(super) const DEFAULT_WINDOW: u64 = 64;

/// Maximum bytes of a message. Handlers count bytes in 32 bits.
const LARGEST: u64 = 1 << 31;

/// A card, its name in results, and the modes to measure.
pub(super) struct Chosen {
    pub(super) nic: String,
    pub(super) card: Card,
    pub(super) modes: Vec<Mode>,
}

/// A request with resolved names.
pub(super) struct Resolved {
    pub(super) cards: Vec<Chosen>,
    /// The card of every host except rank 0, if it differs.
    pub(super) peer: Option<Card>,
    pub(super) pattern: Pattern,
    /// Number of hosts.
    pub(super) nodes: u32,
    pub(super) puts: Puts,
    pub(super) topology: Topology,
    pub(super) flow_control: FlowControl,
    pub(super) noise: Option<Noise>,
    pub(super) faults: Faults,
}

impl Request {
    /// Returns a request with default values.
    pub fn new(benchmark: Benchmark, nics: &[&str], sizes: &[u64]) -> Request {
        Request {
            benchmark,
            nics: nics.iter().map(|&nic| nic.to_owned()).collect(),
            peer: None,
            modes: None,
            sizes: sizes.to_vec(),
            iterations: None,
            warmup: None,
            window: None,
            overrides: Vec::new(),
            pattern: default_pattern(),
            network: NetworkOptions::default(),
            noise: None,
            loopback: false,
            source: None,
            sink: None,
            addressing: None,
            flush_receive: false,
            poll: false,
            interrupt: false,
            pong_size: None,
            handlers: false,
        }
    }

    /// Reads a request from its JSON text.
    ///
    /// # Errors
    /// [`Error::Input`] with the invalid JSON or fields.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        nicety::from_json(text, "the benchmark's request")
    }

    /// Reads the cards and modes, and checks the numbers of the request.
    pub(super) fn resolve(&self) -> Result<Resolved, Error> {
        let pattern: Pattern = self.pattern.parse()?;
        let noise: Option<Noise> = self.noise.as_deref().map(str::parse).transpose()?;
        let (faults, flow_control) = (self.network.faults()?, self.network.flow_control()?);
        let topology = match self.network.topology()? {
            Some(topology) => topology,
            None if self.loopback => Topology::Alone,
            None => pattern.topology(),
        };
        let cards = load_cards(&self.nics, &self.overrides, "spin-discrete")?;
        let peer = self.peer.as_deref().map(|name| cards::load(name, &[])).transpose()?;
        for (_, card) in peer.iter().flat_map(|_| &cards) {
            cards::check([card].into_iter().chain(&peer)).map_err(|error| error.inside("with --peer"))?;
        }
        let first = cards[0].1.spec.design();
        let mixed = cards.iter().any(|(_, card)| card.spec.design() != first);
        let choose = |(nic, card): (String, Card)| {
            let modes = self.modes_of(&nic, &card, mixed, pattern)?;
            Ok(Chosen { nic, card, modes })
        };
        let cards: Vec<Chosen> = cards.into_iter().map(choose).collect::<Result<_, Error>>()?;
        self.check_sizes(&cards)?;
        self.check_counts()?;
        let puts = self.puts(&cards, pattern, peer.is_some())?;
        let nodes = if puts.loopback { 1 } else { pattern.nodes() };
        for Chosen { nic, card, modes } in &cards {
            self.check_topology(card, topology, pattern, nodes)?;
            flow::check(flow_control, topology, nodes, card)?;
            if let Ok(spec) = card.spec.of::<ApenetSpec>()
                && self.benchmark != Benchmark::Latency
                && modes.contains(&Mode::Put)
            {
                puts.check_window(nic, spec, self.window.unwrap_or(DEFAULT_WINDOW))?;
            }
            if card.spec.of::<SpinSpec>().is_ok() {
                self.check_events(&answering(card, peer.as_ref(), pattern), modes, pattern, nodes)?;
            }
        }
        Ok(Resolved { cards, peer, pattern, nodes, puts, topology, flow_control, noise, faults })
    }

    /// Checks that every size is possible in the modes of the cards.
    fn check_sizes(&self, cards: &[Chosen]) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Input(text));
        if self.sizes.is_empty() {
            return wrong("no size named; write for example --sizes 8:4Mi".into());
        }
        if let Some(size) = self.sizes.iter().find(|&&size| size > LARGEST) {
            return wrong(format!(
                "a message of {size} bytes is too long; the largest is 2Gi ({LARGEST} bytes)"
            ));
        }
        let mut modes = cards.iter().flat_map(|chosen| &chosen.modes);
        let handled = modes.any(|m| m.handlers(self.benchmark).is_some());
        if self.benchmark == Benchmark::Latency && handled && self.sizes.contains(&0) {
            return wrong(
                "a message of 0 bytes has no packet with payload, so no payload handler would answer it; begin with \
                 --sizes 1 or use --mode rdma,portals4"
                    .into(),
            );
        }
        Ok(())
    }

    /// Checks the numbers of iterations and of messages in flight.
    fn check_counts(&self) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Input(text));
        if self.benchmark == Benchmark::Latency && self.window.is_some() {
            return wrong("--window: not for latency, which has one message in flight at a time".into());
        }
        for (name, value) in [("--iterations", self.iterations), ("--window", self.window)] {
            if value == Some(0) {
                return wrong(format!("{name} is at least 1"));
            }
        }
        for (name, value) in [("--iterations", self.iterations), ("--warmup", self.warmup)] {
            if let Some(value) = value.filter(|&v| v > MOST_ITERATIONS) {
                return wrong(format!("{name} is at most {MOST_ITERATIONS}, not {value}"));
            }
        }
        if let Some(window) = self.window.filter(|&w| w > MOST_WINDOW) {
            return wrong(format!("--window is at most {MOST_WINDOW}, not {window}"));
        }
        Ok(())
    }

    /// Checks that a topology can have the number of nodes of a pattern.
    fn check_topology(
        &self,
        card: &Card,
        topology: Topology,
        pattern: Pattern,
        nodes: u32,
    ) -> Result<(), Error> {
        let takes = match self.loopback {
            true => "--loopback takes one node".to_owned(),
            false => format!("--pattern {pattern} takes {nodes} nodes"),
        };
        topology.check(nodes as usize, &card.spec.node().switch).map_err(|error| {
            Error::Input(match topology {
                _ if self.loopback => {
                    format!("{takes}, so there is no network; leave out --topology {topology}")
                }
                Topology::Pair => {
                    format!("{takes}, but --topology pair has 2; write --topology star")
                }
                _ => format!("{takes}: {}", error.of_options(false)),
            })
        })
    }

    /// Checks that the receiver's event queue has room for the events of a window from every sender.
    fn check_events(
        &self,
        answering: &[(Side, &Card)],
        modes: &[Mode],
        pattern: Pattern,
        nodes: u32,
    ) -> Result<(), Error> {
        let depth_of =
            |card: &Card| Some(u64::from(card.spec.of::<SpinSpec>().ok()?.limits.event_queue_depth));
        // In mode rdma, the receiver gets an event for every message of a window.
        let senders = pattern.directions().iter().filter(|d| d.target == nodes - 1).count() as u64;
        let window = self.window.unwrap_or(DEFAULT_WINDOW);
        let depths = answering.iter().filter_map(|(_, card)| depth_of(card));
        let depth = depths.min().unwrap_or(u64::MAX);
        let polled = self.benchmark != Benchmark::Latency
            && modes.iter().any(|mode| matches!(mode, Mode::Rdma | Mode::Auto));
        if polled && window * senders > depth {
            return Err(Error::Input(format!(
                "--window {window}: mode rdma has one event for each message, here {} events, but the \
                 card's event queues hold {depth}; write --window {} or less, or set \
                 limits.event_queue_depth",
                window * senders,
                (depth / senders).max(1)
            )));
        }
        Ok(())
    }
}

impl Request {
    /// Returns the modes of a card: those in the request, or all. If the request names no modes and has cards of several designs,
    /// each card uses its natural mode, for comparison.
    fn modes_of(&self, nic: &str, card: &Card, mixed: bool, pattern: Pattern) -> Result<Vec<Mode>, Error> {
        let design = card.spec.design();
        let wrong = |text: String| Err(Error::Input(text));
        // The handlers of the library need the interface of nicety.h.
        let runs = |mode: &Mode| card.spec.interface() == "nicety" || mode.handlers(self.benchmark).is_none();
        let Some(names) = &self.modes else {
            if self.handlers {
                card.spec.of::<SpinSpec>()?;
                return Ok(vec![Mode::SpinStream]);
            }
            // If the only card is one with RDMA, it is measured as in the papers about it.
            if !mixed && pattern == Pattern::Pair && card.spec.of::<ApenetSpec>().is_ok() {
                return Ok(vec![Mode::Put]);
            }
            let natural = mixed || design.natural_mode.is_none();
            let all = Mode::of(design).into_iter().filter(runs);
            return Ok(if natural { vec![Mode::Auto] } else { all.collect() });
        };
        let modes = names.iter().map(|name| Mode::parse(name)).collect::<Result<Vec<_>, _>>()?;
        if let Some(mode) =
            modes.iter().find(|&&mode| mode != Mode::Auto && !Mode::of(design).contains(&mode))
        {
            let others: Vec<_> = Mode::of(design).iter().map(|mode| mode.name()).collect();
            return wrong(format!(
                "{nic} has no mode {}; a card of design {} has the modes {}",
                mode.name(),
                design.name,
                [&others[..], &[Mode::Auto.name()]].concat().join(", ")
            ));
        }
        if let Some(mode) = modes.iter().find(|mode| !runs(mode)) {
            return wrong(format!(
                "mode {} runs handlers written for nicety.h, but {nic} runs handlers written for PsPIN \
                 (hpu.interface); use --mode rdma or portals4, or bench handlers",
                mode.name()
            ));
        }
        if let Some(mode) = modes.iter().find(|m| self.handlers && m.handlers(self.benchmark).is_none()) {
            return wrong(format!(
                "mode {} runs no handlers; with handlers of your own use --mode spin-stream or spin-store",
                mode.name()
            ));
        }
        Ok(modes)
    }
}

impl Request {
    /// Returns the options of mode put. If an option is given, all cards must have this mode.
    fn puts(&self, cards: &[Chosen], pattern: Pattern, peer: bool) -> Result<Puts, Error> {
        let wrong = |text: String| Err(Error::Input(text));
        self.check_put_mode(cards, pattern)?;
        if self.poll && self.interrupt {
            return wrong("programs learn of events by --poll or by --interrupt, not by both".into());
        }
        if self.loopback && peer {
            return wrong(
                "--loopback uses one host, so it has no peer; leave out --loopback or --peer".into(),
            );
        }
        let latency = self.benchmark == Benchmark::Latency;
        if latency && self.flush_receive {
            return wrong("--flush-receive: not for latency, since the receiver would not answer".into());
        }
        if !latency && self.pong_size.is_some() {
            return wrong("--pong-size is for latency only".into());
        }
        if let Some(size) = self.pong_size.filter(|&size| size > LARGEST) {
            return wrong(format!("--pong-size is at most {LARGEST}, not {size}"));
        }
        let gpu = [self.source, self.sink].contains(&Some(Memory::Gpu));
        if let Some(Chosen { nic, .. }) = cards.iter().find(|chosen| gpu && chosen.card.spec.gpu().is_none())
        {
            return wrong(format!(
                "the spec of {nic} has no section [gpu], so the card cannot access GPU memory"
            ));
        }
        Ok(Puts {
            loopback: self.loopback,
            source: self.source.unwrap_or_default(),
            sink: self.sink.unwrap_or_default(),
            addressing: self.addressing.unwrap_or_default(),
            flush_receive: self.flush_receive,
            notify: match (self.poll, self.interrupt) {
                (true, _) => Some(Notification::Poll),
                (_, true) => Some(Notification::Interrupt),
                _ => None,
            },
            pong_size_bytes: self.pong_size.unwrap_or(ANSWER),
        })
    }

    /// If an option of mode put is given, checks that all cards have this mode.
    fn check_put_mode(&self, cards: &[Chosen], pattern: Pattern) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Input(text));
        let puts = cards.iter().all(|chosen| chosen.modes == [Mode::Put]);
        let given = [
            ("--loopback", self.loopback),
            ("--source", self.source.is_some()),
            ("--sink", self.sink.is_some()),
            ("--addressing", self.addressing.is_some()),
            ("--flush-receive", self.flush_receive),
            ("--poll", self.poll),
            ("--interrupt", self.interrupt),
            ("--pong-size", self.pong_size.is_some()),
        ];
        if let Some((name, _)) = given.iter().find(|(_, given)| *given && !puts) {
            let capable = |chosen: &Chosen| Mode::of(chosen.card.spec.design()).contains(&Mode::Put);
            return wrong(match cards.iter().find(|chosen| !capable(chosen)) {
                Some(Chosen { nic, .. }) => format!(
                    "{name} is for mode put of cards with RDMA, and {nic} has no such mode; write --nic \
                     apenet-v5"
                ),
                None if pattern != Pattern::Pair => {
                    format!(
                        "{name} is for mode put, which has one sender; leave out --pattern {pattern}, or {name}"
                    )
                }
                None => format!("{name} is for mode put only; write --mode put, or leave out {name}"),
            });
        }
        let put = cards.iter().any(|chosen| chosen.modes.contains(&Mode::Put));
        if put && pattern != Pattern::Pair {
            return wrong(format!("mode put has one sender; write --mode auto for --pattern {pattern}"));
        }
        Ok(())
    }
}

/// Handlers to compile for a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedHandlers {
    /// The key of the compiled program in [`super::run`].
    pub key: String,
    /// The card.
    pub nic: String,
    /// The mode.
    pub mode: &'static str,
    /// The source file in the library of handlers. Handlers of the user replace it.
    pub source: &'static str,
    /// The instruction set of the card's processors.
    pub isa: String,
}

/// The programs to compile before a request can run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan<P = PlannedHandlers> {
    /// The programs to compile.
    pub compile: Vec<P>,
}

/// A program to compile for a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedProgram {
    /// The card's name. It is the key of the compiled program.
    pub key: String,
    /// The instruction set of the card's processors.
    pub isa: String,
    /// The name of the interface that the program uses.
    pub interface: &'static str,
}

/// Returns the key of compiled handlers. `nic` is the name of the card in results. The key also has the `side`, because the peer
/// may have a different card with the same name.
pub(super) fn compiled_key(nic: &str, mode: Mode, side: Side) -> String {
    match side {
        Side::Own => format!("{nic}/{}", mode.name()),
        Side::Peer => format!("peer {nic}/{}", mode.name()),
    }
}

/// The hosts that have a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Rank 0. If there is no peer card, also all other ranks.
    Own,
    /// All ranks except rank 0.
    Peer,
}

impl Side {
    /// Returns the side to which a rank belongs.
    pub(super) const fn of(rank: u32, has_peer: bool) -> Side {
        if has_peer && rank > 0 { Side::Peer } else { Side::Own }
    }
}

/// Returns the cards that receive the messages of a pattern.
pub(super) fn answering<'c>(
    own: &'c Card,
    peer: Option<&'c Card>,
    pattern: Pattern,
) -> Vec<(Side, &'c Card)> {
    let directions = pattern.directions();
    let of = |side| directions.iter().any(|to| Side::of(to.target, peer.is_some()) == side);
    let both = [(Side::Own, Some(own)), (Side::Peer, peer)];
    both.into_iter().filter(|(side, _)| of(*side)).filter_map(|(side, card)| Some((side, card?))).collect()
}

/// Checks a request, and lists the handlers to compile for it.
///
/// # Errors
/// [`Error::Input`] when the request is invalid.
pub fn plan(request: &Request) -> Result<Plan, Error> {
    let Resolved { cards, peer, pattern, .. } = request.resolve()?;
    let mut compile: Vec<PlannedHandlers> = Vec::new();
    for Chosen { card, modes, .. } in &cards {
        for &mode in modes {
            let Some(source) = mode.handlers(request.benchmark) else { continue };
            for (side, card) in answering(card, peer.as_ref(), pattern) {
                let nic = card.listing.name.clone();
                let key = compiled_key(&nic, mode, side);
                if compile.iter().all(|planned| planned.key != key) {
                    let isa = card.spec.isa().unwrap_or_default().to_owned();
                    compile.push(PlannedHandlers { key, nic, mode: mode.name(), source, isa });
                }
            }
        }
    }
    Ok(Plan { compile })
}
