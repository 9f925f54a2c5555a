//! `bench request-response`: requests on many connections, and the reply to each.

use super::request::ExchangeRequest;
use super::request::Resolved;
use super::setup::{self, Bounds, Connections, Window};
use super::usage::Usage;
use super::{Benchmark, Bytes, Report, failed, nothing_came};
use crate::Points;
use crate::figures::Spread;
use nicety::report::NetworkPortReport;
use nicety::{Environment, Error, Host, Sockets, VERSION};
use nicety_nic_ethernet::EthernetSpec;
use nicety_types::Duration;
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::RefCell;
use std::rc::Rc;

/// The result for a card and a number of connections.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ExchangeRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// Number of connections. Each has a client.
    pub connections: u64,
    /// Bytes of a request.
    pub size_bytes: u64,
    /// Bytes of a reply.
    pub reply_bytes: u64,
    /// Pause of a client between a reply and its next request.
    pub think_ns: f64,
    /// Number of requests with a reply in the measured time.
    pub requests: u64,
    /// `requests` per second.
    pub requests_per_s: f64,
    /// Mean latency, from the client's call that sends a request until the client has the reply. The following fields are
    /// statistics of the same latency.
    pub latency_ns: f64,
    /// Minimum latency.
    pub min_ns: f64,
    /// Median latency.
    pub p50_ns: f64,
    /// 99th percentile of the latency, by nearest rank.
    pub p99_ns: f64,
    /// 99.9th percentile of the latency.
    pub p999_ns: f64,
    /// Maximum latency.
    pub max_ns: f64,
    /// Number of requests without a reply at the end of the measured time. They are not in the figures above.
    pub unanswered_requests: u64,
    /// Maximum latency of the unanswered requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unanswered_max_ns: Option<f64>,
    /// CPU time of the server for each request.
    pub cpu_ns_per_request: f64,
    /// Number of CPUs that the server's operating system uses.
    pub cpus: u64,
    /// The use of the server's CPUs.
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
/// When the input is invalid, before any run. When all runs failed: the error of the first one, with its card and number of
/// connections.
pub fn run(request: &ExchangeRequest, environment: &Environment<'_>) -> Result<Report<Row>, Error> {
    let (resolved, think) = request.resolve()?;
    let total = resolved.cards.len() * request.connections.len();
    let mut points = Points::new(environment.progress, total);
    for number in 0..resolved.cards.len() {
        for &connections in &request.connections {
            let place = format!("{}, {connections} connections", resolved.cards[number].0);
            let run = || measure(request, &resolved, number, (connections, think), environment, &place);
            points.measure(|| place.clone(), || run().map_err(failed));
        }
    }
    let (rows, failed_points) = points.finish()?;
    let manifest = setup::manifest(
        &resolved,
        &request.overrides,
        request.network.flow_control.as_deref(),
        request.network.faults.as_deref(),
    );
    let (benchmark, seed) = (Benchmark::RequestResponse, request.network.seed);
    Ok(Report { benchmark, version: VERSION, seed, manifest, rows, failed_points })
}

fn measure(
    request: &ExchangeRequest,
    resolved: &Resolved,
    number: usize,
    (connections, think): (u64, Duration),
    environment: &Environment<'_>,
    place: &str,
) -> Result<Row, Error> {
    let (nic, card) = &resolved.cards[number];
    let cpus = card.spec.of::<EthernetSpec>()?.cpus as u64;
    let mut cluster = setup::cluster(resolved, card, request.network.seed, environment, place)?;
    let &ExchangeRequest { size, reply, .. } = request;
    let calls = Calls {
        size,
        reply,
        think,
        bytes: Rc::new(Bytes::new(size.max(reply) as usize)),
        taken: Rc::default(),
        late: Rc::default(),
    };
    let window = Window::new(resolved);
    let all = Connections { number: connections, nodelay: true, window: window.clone() };
    let (near, far, server, client) = (all.clone(), all, calls.clone(), calls.clone());
    cluster.program(0, async move |host| {
        near.accept(host, |host, socket, _| server.clone().reply(host, socket)).await
    });
    cluster.program(1, async move |host| {
        far.connect(host, 0, |host, socket, bounds| client.clone().ask(host, socket, bounds)).await
    });
    let run = cluster.run()?;
    let taken = calls.taken.take();
    let [before, after] = window.counted();
    let frames = after.own.card.frames_received - before.own.card.frames_received;
    let usage = Usage::between(&before, &after, frames, cpus, resolved.window);
    if taken.is_empty() {
        return Err(nothing_came("reply", &usage, request.network.faults.as_deref()));
    }
    let late = calls.late.take();
    let (requests, spread) = (taken.len() as u64, Spread::of(taken, 1));
    Ok(Row {
        nic: nic.clone(),
        connections,
        size_bytes: size,
        reply_bytes: reply,
        think_ns: think.ps() as f64 / 1e3,
        requests,
        requests_per_s: requests as f64 * 1e12 / resolved.window.ps() as f64,
        latency_ns: spread.mean,
        min_ns: spread.min,
        p50_ns: spread.p50,
        p99_ns: spread.p99,
        p999_ns: spread.p999,
        max_ns: spread.max,
        unanswered_requests: late.len() as u64,
        unanswered_max_ns: late.iter().max().map(|time| time.ps() as f64 / 1e3),
        cpu_ns_per_request: usage.cpu_ns_per_packet * frames as f64 / requests as f64,
        cpus,
        usage,
        verified: true,
        ports: NetworkPortReport::all(&run.network),
    })
}

/// The requests of all connections.
#[derive(Clone)]
struct Calls {
    size: u64,
    reply: u64,
    think: Duration,
    bytes: Rc<Bytes>,
    /// The latencies of requests with a reply in the measured time.
    taken: Rc<RefCell<Vec<Duration>>>,
    /// The latencies of requests that got their reply after the measured time.
    late: Rc<RefCell<Vec<Duration>>>,
}

impl Calls {
    async fn reply(self, host: Host, socket: u32) -> Result<(), Error> {
        let sockets = host.socket()?;
        for number in 0.. {
            if !self.take(&sockets, socket, number, self.size).await? {
                break;
            }
            sockets.send(socket, self.bytes.at(number * self.reply, self.reply as usize)).await?;
        }
        sockets.close(socket).await
    }

    /// Receives a whole request or reply, and checks its bytes. Returns false if the connection ended before the first byte.
    async fn take(&self, sockets: &Sockets, socket: u32, number: u64, bytes: u64) -> Result<bool, Error> {
        let (first, mut got) = (number * bytes, 0);
        while got < bytes {
            let part = sockets.recv(socket, bytes - got).await?;
            if part.is_empty() && got == 0 {
                return Ok(false);
            }
            if part.is_empty() || !self.bytes.are(first + got, &part) {
                let text = format!("request {number} of socket {socket} is wrong from byte {got} on");
                return Err(Error::Program(text));
            }
            got += part.len() as u64;
        }
        Ok(true)
    }

    async fn ask(self, host: Host, socket: u32, bounds: Bounds) -> Result<(), Error> {
        let sockets = host.socket()?;
        for number in 0.. {
            let begun = host.now();
            if begun >= bounds.end {
                break;
            }
            sockets.send(socket, self.bytes.at(number * self.size, self.size as usize)).await?;
            if !self.take(&sockets, socket, number, self.reply).await? {
                return Err(Error::Program(format!("the server has closed socket {socket}")));
            }
            let (now, taken) = (host.now(), host.now().since(begun));
            if bounds.contain(now) {
                self.taken.borrow_mut().push(taken);
            } else if now >= bounds.end {
                self.late.borrow_mut().push(taken);
            }
            if !self.think.is_zero() {
                host.pause(self.think).await;
            }
        }
        sockets.close(socket).await
    }
}
