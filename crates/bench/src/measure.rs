//! Measures the points of a benchmark between hosts.

use super::printed::Printed;
use super::request::{self, Chosen, Resolved, Side, answering};
use super::{
    Benchmark, Manifest, Mode, PeerManifest, Point, PointFailure, Points, Puts, Report, Request, Row,
    interfaces, latency, messages, rdma, stream,
};
use nicety::cards::Card;
use nicety::record::{Level, Recording};
use nicety::{Allowed, CardManifest, ClusterConfig, Environment, Error, HandlerNames, Handlers, VERSION};
use nicety_nic_apenet::ApenetSpec;
use nicety_nic_qnix::QnixSpec;
use nicety_nic_spin::SpinSpec;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::iter;

/// Measures the points of a request. If `recorded` is given, it gets the recording of the first point.
pub(super) fn measure(
    request: &Request,
    environment: &Environment<'_>,
    recorded: Option<&dyn Fn(Recording)>,
) -> Result<Report, Error> {
    let (environment, printed) = &Printed::count(environment);
    let resolved = request.resolve()?;
    let (cards, peer) = (&resolved.cards, resolved.peer.as_ref());
    let mut handlers: Vec<Vec<Loaded>> = Vec::new();
    for Chosen { card, modes, .. } in cards {
        let answering = answering(card, peer, resolved.pattern);
        let of_mode = |mode: &Mode| load_handlers(&answering, *mode, request, environment);
        handlers.push(modes.iter().map(of_mode).collect::<Result<_, _>>()?);
    }
    let mut total = 0;
    for chosen in cards {
        total += count(request, chosen, peer)?;
    }
    let mut points = Points::new(environment.progress, total);
    let mut failures = Vec::new();
    for (Chosen { nic, card, modes }, handlers) in cards.iter().zip(&handlers) {
        for (&mode, handlers) in modes.iter().zip(handlers) {
            for size in sizes(request, card, peer, mode) {
                let recorded = recorded.filter(|_| points.rows().is_empty());
                let point = resolved.point(request, environment, (card, mode, size), handlers, recorded);
                let place = || format!("{}, {}", with_peer(nic, peer), point_name(mode, size));
                points.measure(place, || {
                    let row = point.measure(request.benchmark, &resolved.puts)?;
                    failures.extend(point.failures.take().into_iter().map(|failure| PointFailure {
                        nic: nic.clone(),
                        point: point_name(mode, size),
                        failure,
                    }));
                    Ok(Row { nic: nic.clone(), mode: mode.name(), ports: point.ports.take(), ..row })
                });
            }
        }
    }
    let (rows, failed_points) = points.finish()?;
    Ok(Report {
        benchmark: request.benchmark,
        version: VERSION,
        seed: request.network.seed,
        manifest: resolved.manifest(request),
        rows,
        failed_points,
        failures,
        handler_lines: printed.lines(),
    })
}

/// Returns the requested sizes that a mode supports on a card and its peer.
fn sizes<'r>(
    request: &'r Request,
    card: &'r Card,
    peer: Option<&'r Card>,
    mode: Mode,
) -> impl Iterator<Item = u64> + 'r {
    let cards = move || iter::once(card).chain(peer);
    request.sizes.iter().copied().filter(move |&size| cards().all(|card| has_size(card, mode, size)))
}

/// Returns the number of points of a card.
///
/// # Errors
/// When the card has no point.
fn count(
    request: &Request,
    Chosen { nic, card, modes }: &Chosen,
    peer: Option<&Card>,
) -> Result<usize, Error> {
    let many = modes.iter().map(|&mode| sizes(request, card, peer, mode).count()).sum();
    if many > 0 {
        return Ok(many);
    }
    let longest = |card| modes.iter().filter_map(|&mode| largest(card, mode)).max();
    let largest = longest(card).into_iter().chain(peer.and_then(longest)).min();
    Err(Error::Input(format!(
        "{} cannot send messages of these sizes; the maximum is {} bytes",
        with_peer(nic, peer),
        largest.unwrap_or_default()
    )))
}

impl Point<'_> {
    /// Measures one point.
    fn measure(&self, benchmark: Benchmark, puts: &Puts) -> Result<Row, Error> {
        match benchmark {
            Benchmark::Latency if self.mode == Mode::Put => rdma::ping_pong(self, puts),
            Benchmark::Latency if self.mode.posts_ahead() => interfaces::ping_pong(self),
            Benchmark::Latency if self.mode.is_of_the_library() => messages::ping_pong(self),
            Benchmark::Latency => latency::measure(self),
            _ if self.mode == Mode::Put => rdma::windows(self, puts, benchmark),
            _ if self.mode.posts_ahead() => interfaces::windows(self, benchmark),
            _ if self.mode.is_of_the_library() => messages::windows(self, benchmark),
            Benchmark::Bandwidth | Benchmark::MessageRate => stream::measure(self, benchmark),
        }
    }
}

impl Resolved {
    /// Returns a point with all its inputs.
    fn point<'p>(
        &self,
        request: &Request,
        environment: &Environment<'_>,
        (card, mode, size): (&Card, Mode, u64),
        handlers: &'p Loaded,
        recorded: Option<&'p dyn Fn(Recording)>,
    ) -> Point<'p> {
        let peer = self.peer.as_ref();
        let cluster = ClusterConfig {
            topology: self.topology,
            flow_control: self.flow_control,
            noise: self.noise.clone(),
            faults: self.faults.clone(),
            seed: request.network.seed,
            interrupt: environment.interrupt.clone().map(Into::into),
            log: environment.log.clone(),
            capture: environment.capture_of(point_name(mode, size)),
            allowed: Allowed::ALL,
            recording: if recorded.is_some() { Level::Everything } else { Level::Summary },
            ..cluster_of(card, peer, self.nodes)
        };
        Point {
            cluster,
            pattern: self.pattern,
            mode: mode.on(card.spec.design()),
            size,
            handlers: [0, 1].map(|rank| handlers.of(Side::of(rank, peer.is_some()))),
            users_handlers: request.handlers,
            iterations: request.iterations.unwrap_or_else(|| request.benchmark.default_iterations(size)),
            warmup: request.warmup.unwrap_or(request::DEFAULT_WARMUP),
            window: request.window.unwrap_or(request::DEFAULT_WINDOW),
            recorded,
            failures: RefCell::default(),
            ports: RefCell::default(),
        }
    }

    /// Returns the inputs that reproduce the report.
    fn manifest(&self, request: &Request) -> Manifest {
        let manifest_of = |Chosen { nic, card, .. }: &Chosen| (nic.clone(), CardManifest::from(card));
        let peer = |card: &Card| PeerManifest { nic: card.listing.name.clone(), card: card.into() };
        let has_puts = self.cards.iter().any(|chosen| chosen.modes.contains(&Mode::Put));
        Manifest {
            specs: self.cards.iter().map(manifest_of).collect(),
            peer: self.peer.as_ref().map(peer),
            overrides: request.overrides.clone(),
            pattern: self.pattern.to_string(),
            topology: self.topology.to_string(),
            flow_control: request.network.flow_control.clone(),
            noise: request.noise.clone(),
            faults: request.network.faults.clone(),
            puts: has_puts.then_some(self.puts),
            compiler: BTreeMap::new(),
        }
    }
}

/// Whether a mode of a card supports a size. Programmed I/O has a limit of its own, and some cards have a limit for messages.
fn has_size(card: &Card, mode: Mode, size: u64) -> bool {
    largest(card, mode).is_none_or(|largest| size <= largest)
}

/// Returns the maximum size of a message in a mode of a card, if its specification has one.
fn largest(card: &Card, mode: Mode) -> Option<u64> {
    match (card.spec.of::<QnixSpec>(), card.spec.of::<ApenetSpec>()) {
        (Ok(spec), _) if mode == Mode::Pio => Some(spec.pio),
        (Ok(spec), _) => Some(spec.limits.message),
        (_, Ok(spec)) => Some(spec.limits.message),
        _ => None,
    }
}

/// Returns the name of a card. If the peer's card differs, its name follows.
fn with_peer(nic: &str, peer: Option<&Card>) -> String {
    match peer {
        Some(peer) => format!("{nic} with {}", peer.listing.name),
        None => nic.to_owned(),
    }
}

fn point_name(mode: Mode, size: u64) -> String {
    format!("mode {}, {size} B", mode.name())
}

/// Returns the configuration of a cluster. Rank 0 has `card`; the other ranks have `peer`, or `card` if there is none.
pub(super) fn cluster_of(card: &Card, peer: Option<&Card>, nodes: u32) -> ClusterConfig {
    match peer {
        None => ClusterConfig::new(nodes, card.clone()),
        Some(peer) => {
            let others = (1..nodes).map(|_| peer.clone());
            ClusterConfig::of(iter::once(card.clone()).chain(others).collect())
        }
    }
}

/// The handlers of a mode, each with the cards on which they run.
#[derive(Default)]
struct Loaded(Vec<(Side, Handlers)>);

impl Loaded {
    fn of(&self, side: Side) -> Option<&Handlers> {
        self.0.iter().find(|(of, _)| *of == side).map(|(_, handlers)| handlers)
    }
}

fn load_handlers(
    answering: &[(Side, &Card)],
    mode: Mode,
    request: &Request,
    environment: &Environment<'_>,
) -> Result<Loaded, Error> {
    if mode.handlers(request.benchmark).is_none() {
        return Ok(Loaded::default());
    }
    let load = |&(side, card): &(Side, &Card)| {
        let key = request::compiled_key(&card.listing.name, mode, side);
        let elf = environment.compiled.get(&key).ok_or_else(|| {
            Error::Input(format!("no compiled handlers for {key}; compile what the plan names"))
        })?;
        let spec = card.spec.of::<SpinSpec>()?;
        let handlers = Handlers::load(elf, &HandlerNames::default(), &spec.hpu)?;
        handlers.check(&spec.hpu)?;
        Ok((side, handlers))
    };
    Ok(Loaded(answering.iter().map(load).collect::<Result<_, Error>>()?))
}
