//! Fairness of a card to many processes. All processes send streams of messages at the same time. Each sends to its own process
//! on the other host.
//!
//! A row has the throughput of each process and Jain's index, (x1 + ... + xn)^2 / (n (x1^2 + ... + xn^2)). The index is 1 if all
//! processes get the same throughput, and 1/n if one of n gets everything.

use super::payload::first_difference;
use super::{Points, Sweep, load_cards};
use nicety::cards::Card;
use nicety::{Cluster, ClusterConfig, Environment, Error, Host, Manifest, Time, VERSION};
use nicety_nic_qnix::{QnixSpec, TransferMethod};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Maximum messages of a process in flight.
const WINDOW: u64 = 4;

/// Maximum number of messages of a process.
const MOST_MESSAGES: u64 = 65_536;

const fn default_size() -> u64 {
    64 << 10
}

const fn default_messages() -> u64 {
    16
}

fn usual_cards() -> Vec<String> {
    vec!["qnix".to_owned()]
}

/// The bandwidth of each of many processes on a host that send at the same time.
///
/// Each sends to its own process on the other host. Jain's index is 1 if all processes get the same bandwidth, and 1/n if one of
/// n gets everything.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FairnessOptions")]
pub struct Request {
    /// Cards to compare: names of specs, or paths of spec files.
    #[serde(default = "usual_cards")]
    pub nics: Vec<String>,
    /// Numbers of processes on each host, one row for each. 1:64 is a doubling range, and 1..8 has steps of one.
    #[schemars(extend("usual" = "1:64"))]
    pub processes: Vec<u64>,
    /// Bytes of a message.
    #[serde(default = "default_size")]
    #[schemars(range(min = 1), extend("metavar" = "SIZE"))]
    pub size: u64,
    /// Messages of each process.
    #[serde(default = "default_messages")]
    #[schemars(range(min = 1, max = MOST_MESSAGES))]
    pub messages: u64,
    /// Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example dma.channels=4.
    #[serde(default)]
    pub overrides: Vec<String>,
}

/// The result for a number of processes that send at the same time, each to its own process on the other host.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "FairnessRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// Number of sending processes. The number of receiving processes is the same.
    pub processes: u64,
    /// Bytes of a message.
    pub size_bytes: u64,
    /// Number of messages of each process.
    pub messages: u64,
    /// Payload bytes per second of all processes together, until the last process has received its last message.
    pub bandwidth_bytes_per_s: f64,
    /// Mean throughput over the processes. The throughput of a process is measured until it has received its last message.
    pub process_mean_bytes_per_s: f64,
    /// Minimum throughput of a process.
    pub process_min_bytes_per_s: f64,
    /// Maximum throughput of a process.
    pub process_max_bytes_per_s: f64,
    /// Jain's index of the processes' throughputs: 1 if all are equal, 1/n if one of n gets everything.
    pub jain_index: f64,
    /// Whether the receiving end checked every byte and found it correct.
    pub verified: bool,
}

/// The benchmark's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Benchmark {
    /// `fairness`.
    Fairness,
}

/// The report of the benchmark `fairness`: one row for each card and number of processes.
pub type Report = Sweep<Row, Benchmark>;

impl Request {
    /// Reads a request from its JSON text.
    ///
    /// # Errors
    /// [`Error::Input`] with the invalid JSON or fields.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        nicety::from_json(text, "the request of bench fairness")
    }

    fn resolve(&self) -> Result<Vec<(String, Card)>, Error> {
        let wrong = |text: String| Err(Error::Input(text));
        if self.processes.is_empty() {
            return wrong("no number of processes named; write for example --processes 1:64".into());
        }
        if !(1..=MOST_MESSAGES).contains(&self.messages) {
            return wrong(format!("--messages is 1 to {MOST_MESSAGES}, not {}", self.messages));
        }
        let cards = load_cards(&self.nics, &self.overrides, "qnix")?;
        for (name, card) in &cards {
            let spec = card.spec.of::<QnixSpec>()?;
            let most = u64::from(spec.limits.vnis);
            if let Some(many) = self.processes.iter().find(|many| !(1..=most).contains(many)) {
                return wrong(format!(
                    "--processes {many}: {name} has interfaces for 1 to {most} processes; raise \
                     limits.vnis, and memory.size with it"
                ));
            }
            let bytes = self.size * WINDOW;
            let memory = spec.node.host.memory / 4 / self.processes.iter().max().unwrap_or(&1);
            if self.size == 0 || self.size > spec.limits.message || bytes > memory {
                let limit = spec.limits.message.min(memory / WINDOW);
                return wrong(format!("--size {}: write 1 to {limit} bytes", self.size));
            }
        }
        Ok(cards)
    }
}

/// Runs the benchmark.
///
/// # Errors
/// When the input is invalid, before any run. When all runs failed: the error of the first one, with its card and number of
/// processes.
pub fn run(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let cards = request.resolve()?;
    let total = cards.len() * request.processes.len();
    let mut points = Points::new(environment.progress, total);
    for (nic, card) in &cards {
        let spec = card.spec.of::<QnixSpec>()?;
        for &processes in &request.processes {
            let run = || measure(nic, card, spec, request, processes, environment);
            points.measure(|| format!("{nic}, {processes} processes"), run);
        }
    }
    let (rows, failed_points) = points.finish()?;
    let manifest = Manifest::of(cards.iter().map(|(nic, card)| (nic, card)), &request.overrides);
    Ok(Report { benchmark: Benchmark::Fairness, version: VERSION, manifest, rows, failed_points })
}

fn measure(
    nic: &str,
    card: &Card,
    spec: &QnixSpec,
    request: &Request,
    processes: u64,
    environment: &Environment<'_>,
) -> Result<Row, Error> {
    let interrupt = environment.interrupt.clone().map(Into::into);
    let capture = environment.capture_of(format_args!("{processes} processes"));
    let mut cluster =
        Cluster::new(ClusterConfig { interrupt, capture, ..ClusterConfig::new(2, card.clone()) })?;
    let &Request { size, messages, .. } = request;
    let depth = WINDOW.min(spec.limits.sends.min(spec.limits.receives).into()).min(messages);
    let begun = Rc::new(RefCell::new(Time::ZERO));
    let ended = Rc::new(RefCell::new(Vec::new()));
    for rank in 0..2 {
        let (begun, ended) = (begun.clone(), ended.clone());
        cluster.program(rank, async move |host: Host| {
            open(&host, processes as u32).await?;
            // All receives are posted before the first send.
            let mut receivers = Vec::new();
            if rank == 1 {
                for number in 0..processes as u32 {
                    receivers.push(Receiver::post(&host, number, size, depth).await?);
                }
            }
            host.barrier().await;
            if rank == 0 {
                *begun.borrow_mut() = host.now();
            }
            let mut all = Vec::new();
            if rank == 0 {
                for number in 0..processes as u32 {
                    all.push(host.spawn(move |host| send(host, number, size, messages, depth)));
                }
            }
            for receiver in receivers {
                let ended = ended.clone();
                all.push(host.spawn(move |host| async move {
                    receiver.run(&host, messages).await?;
                    ended.borrow_mut().push(host.now());
                    Ok(())
                }));
            }
            for one in all {
                one.join().await?;
            }
            Ok(())
        });
    }
    cluster.run()?;
    Ok(row(nic, request, processes, *begun.borrow(), &ended.borrow()))
}

/// Opens the interfaces of a host's processes. Process 0 of the host already has one.
async fn open(host: &Host, processes: u32) -> Result<(), Error> {
    let mut all = Vec::new();
    for number in 0..processes {
        all.push(host.spawn(async move |host: Host| {
            let process = host.vni()?.process(number);
            if number > 0 {
                process.open().await?;
            }
            Ok(())
        }));
    }
    for one in all {
        one.join().await?;
    }
    Ok(())
}

/// Returns the row of a run. It began at `begun`, and each process received its last message at the time in `ended`.
fn row(nic: &str, request: &Request, processes: u64, begun: Time, ended: &[Time]) -> Row {
    let &Request { size, messages, .. } = request;
    let bytes = (size * messages) as f64;
    let rate = |end: &Time| bytes * 1e12 / end.since(begun).ps() as f64;
    let rates: Vec<f64> = ended.iter().map(rate).collect();
    let last = ended.iter().copied().max().unwrap_or(begun);
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    Row {
        nic: nic.to_owned(),
        processes,
        size_bytes: size,
        messages,
        bandwidth_bytes_per_s: bytes * processes as f64 * 1e12 / last.since(begun).ps() as f64,
        process_mean_bytes_per_s: sum / processes as f64,
        process_min_bytes_per_s: rates.iter().copied().fold(f64::INFINITY, f64::min),
        process_max_bytes_per_s: rates.iter().copied().fold(0.0, f64::max),
        jain_index: sum * sum / (processes as f64 * squares),
        verified: true,
    }
}

/// Returns the bytes of a process's message. They depend on the process and the message.
fn pattern(number: u32, message: u64, size: u64) -> Vec<u8> {
    let salt = u64::from(number) * 131 + message * 17;
    (0..size).map(|i| ((i ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

async fn send(host: Host, number: u32, size: u64, messages: u64, depth: u64) -> Result<(), Error> {
    let process = host.vni()?.process(number);
    let mut under_way = VecDeque::new();
    let mut free = Vec::new();
    for _ in 0..depth {
        free.push(process.alloc(size)?);
    }
    for message in 0..messages {
        if free.is_empty()
            && let Some((operation, buffer)) = under_way.pop_front()
        {
            process.wait(number, operation).await?;
            free.push(buffer);
        }
        if let Some(buffer) = free.pop() {
            buffer.write(0, &pattern(number, message, size));
            let operation = process.send(number, &buffer, (1, number), 0, TransferMethod::Auto).await?;
            under_way.push_back((operation, buffer));
        }
    }
    for (operation, _) in under_way {
        process.wait(number, operation).await?;
    }
    Ok(())
}

/// A receiving process.
struct Receiver {
    number: u32,
    posted: VecDeque<(nicety_nic_qnix::Operation, nicety::Buffer)>,
}

impl Receiver {
    async fn post(host: &Host, number: u32, size: u64, depth: u64) -> Result<Receiver, Error> {
        let process = host.vni()?.process(number);
        let mut posted = VecDeque::new();
        for _ in 0..depth {
            let buffer = process.alloc(size)?;
            posted.push_back((
                process.receive(number, &buffer, None, None, TransferMethod::Auto).await?,
                buffer,
            ));
        }
        Ok(Receiver { number, posted })
    }

    async fn run(mut self, host: &Host, messages: u64) -> Result<(), Error> {
        let (process, number) = (host.vni()?.process(self.number), self.number);
        let mut ahead = self.posted.len() as u64;
        for message in 0..messages {
            let Some((operation, buffer)) = self.posted.pop_front() else { break };
            process.wait(number, operation).await?;
            let wanted = pattern(number, message, buffer.len());
            if let Some(at) = first_difference(&buffer.read(0, buffer.len()), &wanted) {
                return Err(Error::Program(format!(
                    "message {message} of process {number} is wrong from byte {at} on"
                )));
            }
            if ahead < messages {
                ahead += 1;
                let operation = process.receive(number, &buffer, None, None, TransferMethod::Auto).await?;
                self.posted.push_back((operation, buffer));
            }
        }
        Ok(())
    }
}
