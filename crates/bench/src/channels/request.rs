//! The request for a benchmark of channels.

use super::super::load_cards;
use crate::request::default_seed;
use nicety::cards::Card;
use nicety::{Error, MemoryKind, Noise};
use nicety_nic_nfp::{DIRECT_BYTES, NfpSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Distance between stored messages in bytes. It allows a process to store a whole direct message with one memory reference.
pub(super) const STORED: u32 = 64;
/// Maximum bytes of a direct message.
pub(super) const DIRECT: u64 = DIRECT_BYTES as u64;

/// A benchmark of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ChannelBenchmark")]
pub enum Benchmark {
    /// Latency of a message, including its acknowledgement.
    ChannelLatency,
    /// Throughput of several processes that send at the same time.
    ChannelBandwidth,
}

impl Benchmark {
    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Benchmark::ChannelLatency => "channel-latency",
            Benchmark::ChannelBandwidth => "channel-bandwidth",
        }
    }
}

/// The kind of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Direct messages: in mailboxes, up to 56 bytes each.
    Direct,
    /// Indirect messages: by DMA.
    Indirect,
}

impl Mode {
    const ALL: [Mode; 2] = [Mode::Direct, Mode::Indirect];

    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Direct => "direct",
            Mode::Indirect => "indirect",
        }
    }
}

/// The direction of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From a thread of the host to a process.
    HostToCard,
    /// From a process to a thread of the host.
    CardToHost,
}

impl Direction {
    const ALL: [Direction; 2] = [Direction::HostToCard, Direction::CardToHost];

    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::HostToCard => "host-to-card",
            Direction::CardToHost => "card-to-host",
        }
    }
}

fn usual_cards() -> Vec<String> {
    vec!["nfp-4000".to_owned()]
}

/// The request of a benchmark of channels.
///
/// Other languages pass its JSON form, and its schema defines the command line's options.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ChannelOptions")]
pub struct Request {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// Cards to compare: names of specs, or paths of spec files.
    #[serde(default = "usual_cards")]
    pub nics: Vec<String>,
    /// `direct`, in mailboxes, or `indirect`, by DMA; both if left out.
    #[serde(default)]
    #[schemars(extend("metavar" = "M[,N]", "example" = "direct"))]
    pub modes: Option<Vec<String>>,
    /// `host-to-card` or `card-to-host`; both if left out.
    #[serde(default)]
    #[schemars(extend("metavar" = "D[,E]", "example" = "host-to-card"))]
    pub directions: Option<Vec<String>>,
    /// Message sizes in bytes: a list with commas, or a doubling range such as 8:56.
    #[schemars(extend("usual" = {"channel-latency": "8:56", "channel-bandwidth": "64Ki:20Mi"}))]
    pub sizes: Vec<u64>,
    /// Numbers of processes that move the payload together. Each process has a thread of the host.
    #[serde(default)]
    #[schemars(extend("usual" = {"channel-bandwidth": "1,8"}, "only" = "channel-bandwidth"))]
    pub processes: Option<Vec<u32>>,
    /// Memory of the card for indirect messages: `ctm` of each process's island, `imem` or `emem`.
    #[serde(default)]
    #[schemars(extend("default" = "emem", "only" = "channel-bandwidth"))]
    pub memory: Option<String>,
    /// Bytes that all processes move in a run.
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_PAYLOAD), extend("default" = PAYLOAD, "metavar" = "SIZE", "only" = "channel-bandwidth"))]
    pub payload: Option<u64>,
    /// Number of messages measured for each size.
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_MESSAGES), extend("default" = BATCH, "only" = "channel-latency"))]
    pub iterations: Option<u64>,
    /// Number of messages before the measured ones.
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_MESSAGES), extend("default" = WARMUP, "only" = "channel-latency"))]
    pub warmup: Option<u64>,
    /// Number of measured runs. They differ in the begin times of threads.
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_RUNS), extend("default" = RUNS, "only" = "channel-bandwidth"))]
    pub runs: Option<u32>,
    /// Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example managers.read=4.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// Background noise on the host's CPUs, such as 1ms,25us; add ,fixed for a fixed period; or a trace file.
    #[serde(default)]
    #[schemars(extend("metavar" = "PERIOD,DURATION"))]
    pub noise: Option<String>,
    /// Seed of every random stream: the same seed gives the same report to the last byte.
    #[serde(default = "crate::request::default_seed")]
    pub seed: u64,
}

/// Default number of messages before the measured ones.
const WARMUP: u64 = 1;
/// Default number of messages in a batch, as in NFComms.
const BATCH: u64 = 100;
/// Maximum number of messages, measured or for warm-up. The latency of each is kept, and so are the bytes of direct messages.
const MOST_MESSAGES: u64 = 1_000_000;
/// Default payload in bytes, as in NFComms.
const PAYLOAD: u64 = 100 << 20;
/// Maximum payload in bytes.
const MOST_PAYLOAD: u64 = 1 << 40;
/// Maximum messages of a run.
const MOST_MESSAGES_OF_A_RUN: u64 = 10_000_000;
/// Default number of runs. It is the minimum for a meaningful deviation.
const RUNS: u32 = 3;
const MOST_RUNS: u32 = 1000;

/// A request with resolved names.
pub(super) struct Resolved {
    pub(super) cards: Vec<(String, Card)>,
    pub(super) modes: Vec<Mode>,
    pub(super) directions: Vec<Direction>,
    pub(super) processes: Vec<u32>,
    pub(super) memory: MemoryKind,
    pub(super) noise: Option<Noise>,
}

impl Request {
    /// Returns a request with default values.
    pub fn new(benchmark: Benchmark, nics: &[&str], sizes: &[u64]) -> Request {
        Request {
            benchmark,
            nics: nics.iter().map(|&nic| nic.to_owned()).collect(),
            modes: None,
            directions: None,
            sizes: sizes.to_vec(),
            processes: None,
            memory: None,
            payload: None,
            iterations: None,
            warmup: None,
            runs: None,
            overrides: Vec::new(),
            noise: None,
            seed: default_seed(),
        }
    }

    /// Reads a request from its JSON text.
    ///
    /// # Errors
    /// [`Error::Input`] with the invalid JSON or fields.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        nicety::from_json(text, "the benchmark's request")
    }

    pub(super) fn payload(&self) -> u64 {
        self.payload.unwrap_or(PAYLOAD)
    }

    pub(super) fn iterations(&self) -> u64 {
        self.iterations.unwrap_or(BATCH)
    }

    pub(super) fn warmup(&self) -> u64 {
        self.warmup.unwrap_or(WARMUP)
    }

    pub(super) fn runs(&self) -> u32 {
        self.runs.unwrap_or(RUNS)
    }

    /// Reads cards, modes and directions, and checks the numbers.
    pub(super) fn resolve(&self) -> Result<Resolved, Error> {
        let modes = named("mode", self.modes.as_deref(), Mode::ALL.map(|mode| (mode.name(), mode)))?;
        let directions = Direction::ALL.map(|direction| (direction.name(), direction));
        let directions = named("direction", self.directions.as_deref(), directions)?;
        let noise: Option<Noise> = self.noise.as_deref().map(str::parse).transpose()?;
        let processes = self.processes.clone().unwrap_or_else(|| vec![1]);
        let memory = self.memory()?;
        self.check_numbers(&modes, &processes)?;
        let cards = load_cards(&self.nics, &self.overrides, "nfp-4000")?;
        for (name, card) in &cards {
            self.check_card(name, card.spec.of::<NfpSpec>()?, &modes, &processes, memory)?;
        }
        Ok(Resolved { cards, modes, directions, processes, memory, noise })
    }

    /// Returns the card's memory for indirect messages of a throughput.
    fn memory(&self) -> Result<MemoryKind, Error> {
        let Some(name) = &self.memory else { return Ok(MemoryKind::Emem) };
        let known = [MemoryKind::Ctm, MemoryKind::Imem, MemoryKind::Emem];
        known.into_iter().find(|kind| kind.key() == name).ok_or_else(|| {
            let known = known.map(MemoryKind::key).join(", ");
            Error::Input(format!(
                "indirect messages cannot go to the memory '{name}'; the memories are {known}"
            ))
        })
    }

    fn check_numbers(&self, modes: &[Mode], processes: &[u32]) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Input(text));
        if self.sizes.is_empty() {
            return wrong("no size named; write for example --sizes 8:56".to_owned());
        }
        if self.sizes.contains(&0) {
            return wrong("a message of a channel has 1 byte at least; begin with --sizes 1".to_owned());
        }
        let long = self.sizes.iter().find(|&&size| size > DIRECT);
        if let Some(size) = long.filter(|_| self.benchmark == Benchmark::ChannelLatency)
            && modes.contains(&Mode::Direct)
        {
            return wrong(format!(
                "a direct message has {DIRECT} bytes at most, not {size}; write --sizes 8:{DIRECT}, or --mode indirect"
            ));
        }
        if processes.is_empty() || processes.contains(&0) {
            return wrong("--processes is 1 at least, as in --processes 1,8".to_owned());
        }
        let numbers = [
            ("--iterations", self.iterations(), 1, MOST_MESSAGES),
            ("--warmup", self.warmup(), 1, MOST_MESSAGES),
            ("--payload", self.payload(), 1, MOST_PAYLOAD),
            ("--runs", self.runs().into(), 1, MOST_RUNS.into()),
        ];
        for (name, value, least, most) in numbers {
            if value < least || value > most {
                return wrong(format!("{name} is {least} to {most}, not {value}"));
            }
        }
        let shortest = self.sizes.iter().copied().min().unwrap_or(1);
        let messages = self.payload().div_ceil(shortest);
        if self.benchmark == Benchmark::ChannelBandwidth && messages > MOST_MESSAGES_OF_A_RUN {
            return wrong(format!(
                "--payload {} in messages of {shortest} bytes is {messages} messages; the maximum is \
                 {MOST_MESSAGES_OF_A_RUN}; write a smaller payload, or larger sizes",
                self.payload()
            ));
        }
        Ok(())
    }

    fn check_card(
        &self,
        name: &str,
        spec: &NfpSpec,
        modes: &[Mode],
        processes: &[u32],
        memory: MemoryKind,
    ) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Input(format!("{name}: {text}")));
        let most = processes.iter().copied().max().unwrap_or(1);
        let contexts = spec.cores * spec.contexts;
        if most as usize > contexts {
            return wrong(format!(
                "--processes {most}: the card has only {contexts} contexts ({} microengines with {} each, \
                 hpu.cores and hpu.contexts)",
                spec.cores, spec.contexts
            ));
        }
        let channels = &spec.channels;
        for (key, limit) in
            [("channels", channels.channels), ("targets", channels.targets), ("threads", channels.threads)]
        {
            if most > u32::from(limit) {
                return wrong(format!(
                    "--processes {most}: limits.{key} is {limit}; set it to {most} or more"
                ));
            }
        }
        if !modes.contains(&Mode::Indirect) {
            return Ok(());
        }
        let longest = self.sizes.iter().copied().max().unwrap_or(1);
        let message = u64::from(channels.message);
        if longest > message {
            return wrong(format!(
                "a message of {longest} bytes is longer than limits.message, {message} bytes"
            ));
        }
        let size = u64::from(spec.memory(memory).size);
        let sharing = most_in_a_memory(spec, memory, most);
        if u64::from(sharing).saturating_mul(longest.next_multiple_of(STORED.into())) > size {
            let (kind, key) = (memory.name(), memory.key());
            return wrong(format!(
                "{sharing} messages of {longest} bytes do not fit {kind}: it has {size} bytes (memory.{key}.size), and \
                 each process needs room for one message; lower --sizes or --processes"
            ));
        }
        Ok(())
    }
}

/// Returns the largest number of processes that share a memory of this kind.
fn most_in_a_memory(spec: &NfpSpec, kind: MemoryKind, processes: u32) -> u32 {
    if !kind.of_island() {
        return processes;
    }
    let mut of_islands = vec![0; spec.islands()];
    for number in 0..processes as usize {
        of_islands[number % spec.cores / spec.island] += 1;
    }
    of_islands.into_iter().max().unwrap_or(0)
}

/// Returns the values with these names; all values if the list is empty.
fn named<T: Copy + PartialEq, const N: usize>(
    what: &str,
    names: Option<&[String]>,
    known: [(&'static str, T); N],
) -> Result<Vec<T>, Error> {
    let Some(names) = names else { return Ok(known.map(|(_, value)| value).to_vec()) };
    let mut found = Vec::new();
    for name in names {
        let Some((_, value)) = known.iter().find(|(own, _)| own == name) else {
            let known = known.map(|(own, _)| own).join(", ");
            return Err(Error::Input(format!("channels have no {what} '{name}'; the {what}s are {known}")));
        };
        if found.contains(value) {
            return Err(Error::Input(format!("--{what} names {name} twice")));
        }
        found.push(*value);
    }
    if found.is_empty() {
        return Err(Error::Input(format!("no {what} named; write for example --{what} {}", known[0].0)));
    }
    Ok(found)
}

/// A program of processes to compile for a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedProcesses {
    /// The card's name. It is the key of the compiled program in [`super::run`].
    pub key: String,
    /// The source file in the library of handlers.
    pub source: &'static str,
    /// The instruction set of the card's processors.
    pub isa: String,
}

/// The programs to compile before a request can run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The programs to compile.
    pub compile: Vec<PlannedProcesses>,
}

/// Checks a request, and lists the programs to compile for it.
///
/// # Errors
/// [`Error::Input`] when the request is invalid.
pub fn plan(request: &Request) -> Result<Plan, Error> {
    let cards = request.resolve()?.cards;
    let planned = |(name, card): &(String, Card)| PlannedProcesses {
        key: name.clone(),
        source: "nfp/channel_bench.c",
        isa: card.spec.isa().unwrap_or_default().to_owned(),
    };
    Ok(Plan { compile: cards.iter().map(planned).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Benchmark::{ChannelBandwidth, ChannelLatency};

    fn refused(change: impl FnOnce(&mut Request)) -> String {
        let mut request = Request::new(ChannelBandwidth, &["nfp-4000"], &[1 << 16]);
        change(&mut request);
        plan(&request).unwrap_err().to_string()
    }

    #[test]
    fn invalid_requests_are_refused_with_a_remedy() {
        let text = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
        let latency = |sizes: &[u64]| {
            let sizes = sizes.to_vec();
            move |request: &mut Request| (request.benchmark, request.sizes) = (ChannelLatency, sizes)
        };
        for (error, parts) in [
            (refused(|r| r.sizes.clear()), &["no size named"][..]),
            (refused(|r| r.sizes = vec![0, 8]), &["1 byte at least", "--sizes 1"]),
            (refused(latency(&[8, 57])), &["56 bytes at most, not 57", "--mode indirect"]),
            (refused(|r| r.directions = text(&["sideways"])), &["'sideways'", "host-to-card, card-to-host"]),
            (refused(|r| r.modes = text(&["rdma"])), &["channels have no mode 'rdma'", "direct, indirect"]),
            (refused(|r| r.modes = text(&["direct", "direct"])), &["--mode names direct twice"]),
            (refused(|r| r.modes = Some(vec![])), &["no mode named"]),
            (refused(|r| r.processes = Some(vec![0])), &["--processes is 1 at least"]),
            (refused(|r| r.processes = Some(vec![481])), &["481", "480 contexts", "hpu.contexts"]),
            (refused(|r| r.payload = Some(0)), &["--payload is 1 to"]),
            (refused(|r| r.sizes = vec![8]), &["13107200 messages", "smaller payload"]),
            (refused(|r| r.runs = Some(0)), &["--runs is 1 to 1000, not 0"]),
            (refused(|r| r.iterations = Some(0)), &["--iterations is 1 to"]),
            (refused(|r| r.nics = vec!["spin-discrete".into()]), &["no processes and channels", "nfp-4000"]),
            (refused(|r| r.sizes = vec![(1 << 30) + 1]), &["longer than limits.message"]),
            (
                refused(|r| (r.sizes, r.processes) = (vec![1 << 30], Some(vec![3]))),
                &["3 messages of 1073741824 bytes do not fit EMEM"],
            ),
            (
                refused(|r| r.memory = Some("cls".into())),
                &["to the memory 'cls'; the memories are ctm, imem, emem"],
            ),
            // 60 microengines on five islands: process 60 shares the CTM of processes 0 to 11.
            (
                refused(|r| {
                    (r.memory, r.sizes, r.processes) = (Some("ctm".into()), vec![20 << 10], Some(vec![61]));
                }),
                &["13 messages of 20480 bytes do not fit CTM: it has 262144 bytes (memory.ctm.size)"],
            ),
            (
                refused(|r| (r.memory, r.sizes) = (Some("imem".into()), vec![8 << 20])),
                &["1 messages of 8388608 bytes do not fit IMEM: it has 4194304 bytes (memory.imem.size)"],
            ),
            (refused(|r| r.overrides = vec!["limits.threads=4".into(), "x".into()]), &["x"]),
            (
                refused(|r| {
                    r.overrides = vec!["limits.threads=4".into()];
                    r.processes = Some(vec![8]);
                }),
                &["limits.threads is 4; set it to 8"],
            ),
        ] {
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }

    #[test]
    fn long_messages_go_direct_in_parts_where_bandwidth_is_measured() {
        let plan = plan(&Request::new(ChannelBandwidth, &["nfp-4000"], &[1 << 16])).unwrap();
        assert_eq!(plan.compile.len(), 1);
        assert_eq!(
            (plan.compile[0].key.as_str(), plan.compile[0].source),
            ("nfp-4000", "nfp/channel_bench.c")
        );
    }
}
