//! `bench stream`: bytes on many connections, in one direction.

use super::request::{Direction, Resolved, StreamPoint, StreamRequest};
use super::setup::{self, Bounds, Connections, Window};
use super::usage::Usage;
use super::{Benchmark, Bytes, Report, failed, nothing_came};
use crate::Points;
use nicety::report::NetworkPortReport;
use nicety::{Environment, Error, Host, VERSION};
use nicety_nic_ethernet::EthernetSpec;
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::Cell;
use std::rc::Rc;

/// The result for a card and a point of the sweep.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "StreamRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// Whether rank 0 receives or transmits.
    pub direction: Direction,
    /// Bytes of each call that sends or receives.
    pub io_size_bytes: u64,
    /// Number of connections.
    pub connections: u64,
    /// Number of CPUs that rank 0's operating system uses.
    pub cpus: u64,
    /// Payload bits per second that the receiving program got in the measured time.
    pub bandwidth_bits_per_s: f64,
    /// The use of rank 0's CPUs.
    #[serde(flatten)]
    pub usage: Usage,
    /// Whether every received byte was checked and correct.
    pub verified: bool,
    /// The ports of the network over the whole run, if the flow control does not use credits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<NetworkPortReport>,
}

/// Runs the benchmark.
///
/// # Errors
/// When the input is invalid, before any run. When all runs failed: the error of the first one, with its card and point.
pub fn run(request: &StreamRequest, environment: &Environment<'_>) -> Result<Report<Row>, Error> {
    let resolved = request.resolve()?;
    let sweep = request.points();
    let total = resolved.cards.len() * sweep.len();
    // Invalid numbers of CPUs are reported before any run.
    for (number, cpus) in
        (0..resolved.cards.len()).flat_map(|n| request.cpus.iter().flatten().map(move |c| (n, *c)))
    {
        setup::with_cpus(&request.nics[number], &request.overrides, cpus).map_err(|error| match error {
            Error::Input(text) => Error::Input(text.replace("--set threads.cpus=", "--cpus ")),
            error => error,
        })?;
    }
    let mut points = Points::new(environment.progress, total);
    for (number, (nic, _)) in resolved.cards.iter().enumerate() {
        for point in &sweep {
            let StreamPoint { io_size, connections, cpus } = point;
            let cpus = cpus.map_or(String::new(), |cpus| format!(" on {cpus} CPUs"));
            let place = format!("{nic}, {connections} connections, {io_size} B a call{cpus}");
            let run = || measure(request, &resolved, number, point, environment, &place).map_err(failed);
            points.measure(|| place.clone(), run);
        }
    }
    let (rows, failed_points) = points.finish()?;
    let manifest = setup::manifest(
        &resolved,
        &request.overrides,
        request.network.flow_control.as_deref(),
        request.network.faults.as_deref(),
    );
    let (benchmark, seed) = (Benchmark::Stream, request.network.seed);
    Ok(Report { benchmark, version: VERSION, seed, manifest, rows, failed_points })
}

fn measure(
    request: &StreamRequest,
    resolved: &Resolved,
    number: usize,
    point: &StreamPoint,
    environment: &Environment<'_>,
    place: &str,
) -> Result<Row, Error> {
    let (nic, card) = &resolved.cards[number];
    let card = match point.cpus {
        Some(cpus) => setup::with_cpus(&request.nics[number], &request.overrides, cpus)?,
        None => card.clone(),
    };
    let cpus = card.spec.of::<EthernetSpec>()?.cpus as u64;
    let mut cluster = setup::cluster(resolved, &card, request.network.seed, environment, place)?;
    let receiver = u32::from(request.direction == Direction::Transmit);
    let flow = Flow {
        io_size: point.io_size,
        bytes: Rc::new(Bytes::new(point.io_size as usize)),
        got: Rc::default(),
    };
    let window = Window::new(resolved);
    let connections = Connections { number: point.connections, nodelay: false, window: window.clone() };
    let (near, far, of, to) = (connections.clone(), connections, flow.clone(), flow.clone());
    cluster.program(receiver, async move |host| {
        far.accept(host, |host, socket, bounds| to.clone().receive(host, socket, bounds)).await
    });
    cluster.program(1 - receiver, async move |host| {
        near.connect(host, receiver, |host, socket, bounds| of.clone().send(host, socket, bounds)).await
    });
    let run = cluster.run()?;
    let [before, after] = window.counted();
    let frames = match request.direction {
        Direction::Receive => after.own.card.frames_received - before.own.card.frames_received,
        Direction::Transmit => after.own.card.frames_sent - before.own.card.frames_sent,
    };
    let usage = Usage::between(&before, &after, frames, cpus, resolved.window);
    if flow.got.get() == 0 {
        return Err(nothing_came("byte", &usage, request.network.faults.as_deref()));
    }
    Ok(Row {
        nic: nic.clone(),
        direction: request.direction,
        io_size_bytes: point.io_size,
        connections: point.connections,
        cpus,
        bandwidth_bits_per_s: flow.got.get() as f64 * 8e12 / resolved.window.ps() as f64,
        usage,
        verified: true,
        ports: NetworkPortReport::all(&run.network),
    })
}

/// The bytes of all connections.
#[derive(Clone)]
struct Flow {
    io_size: u64,
    bytes: Rc<Bytes>,
    /// Bytes received in the measured time.
    got: Rc<Cell<u64>>,
}

impl Flow {
    async fn send(self, host: Host, socket: u32, bounds: Bounds) -> Result<(), Error> {
        let (sockets, mut sent) = (host.socket()?, 0);
        while host.now() < bounds.end {
            sockets.send(socket, self.bytes.at(sent, self.io_size as usize)).await?;
            sent += self.io_size;
        }
        sockets.close(socket).await
    }

    async fn receive(self, host: Host, socket: u32, bounds: Bounds) -> Result<(), Error> {
        let (sockets, mut received) = (host.socket()?, 0);
        loop {
            let bytes = sockets.recv(socket, self.io_size).await?;
            if bytes.is_empty() {
                return sockets.close(socket).await;
            }
            if !self.bytes.are(received, &bytes) {
                let text = format!("wrong bytes came on socket {socket}, from byte {received} on");
                return Err(Error::Program(text));
            }
            received += bytes.len() as u64;
            if bounds.contain(host.now()) {
                self.got.set(self.got.get() + bytes.len() as u64);
            }
        }
    }
}
