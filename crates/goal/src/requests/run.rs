//! `nicety goal run`: runs a schedule and reports its times.

use super::mode::Mode;
use super::network::{LOGGOPS, LogGops, Manifest, Network, ON_CARDS, OnCards};
use super::{Ns, agree, goes_on, stages, tell};
use crate::cards::{self, Finished};
use crate::file;
use crate::loggops::{self, Failure, Rules};
use crate::schedule::Schedule;
use crate::spans::Shares;
use crate::text::DuplicateLabels;
use nicety::options::{NetworkOptions, Threads};
use nicety::{Environment, Error, VERSION};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Another simulator, with rules that a run can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compat {
    /// LogGOPSim, by the Scalable Parallel Computing Laboratory.
    Loggopsim,
}

/// Run a schedule, and report the finish time of each host.
///
/// The network is LogGOPS. If a card is named, it is a network of packets between hosts with this card.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ScheduleOptions")]
pub struct Request {
    /// The file of the schedule.
    #[schemars(extend("format" = "derived"))]
    pub file: String,
    /// The network: loggops, or packets between cards. Default: packets if a card is named.
    #[serde(default)]
    #[schemars(extend("metavar" = "loggops|packets"))]
    pub network: Option<Network>,
    /// The card of all hosts: a name, or the path of a specification file. It executes every message, over a network of packets.
    #[serde(default)]
    #[schemars(extend("metavar" = "NIC", "format" = "path"))]
    pub nic: Option<String>,
    /// The parameters of LogGOPS.
    #[serde(flatten)]
    pub parameters: LogGops,
    /// Follow the rules of LogGOPSim, including its oddities, in place of nicety's own rules.
    #[serde(default)]
    #[schemars(extend("metavar" = "loggopsim"))]
    pub compat: Option<Compat>,
    /// The number of threads of the run.
    #[serde(flatten)]
    pub threads: Threads,
    /// For a run on cards: the network between the hosts.
    #[serde(flatten)]
    pub hosts: NetworkOptions,
    /// For a run on cards: options of the cards.
    #[serde(flatten)]
    pub cards: OnCards,
    /// For a run on cards: `host` if the library on the host executes messages, or `card` if handlers on the card do. Default:
    /// host.
    #[serde(default)]
    #[schemars(extend("metavar" = "host|card"))]
    pub mode: Option<Mode>,
    /// For a run on cards: also report the stages of the critical path to the end of the last host. This takes more memory and
    /// time.
    #[serde(default)]
    pub breakdown: bool,
}

/// The report of a schedule's run: the finish times of its hosts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ScheduleReport")]
pub struct Report {
    /// The version of nicety.
    pub version: &'static str,
    /// The file of the schedule.
    pub file: String,
    /// The network.
    pub network: Network,
    /// The parameters of LogGOPS, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<LogGops>,
    /// The card that executed every message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic: Option<String>,
    /// For a run on cards: the mode, which says where messages were executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The inputs that reproduce a run on cards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Manifest>,
    /// The simulator with the rules that were followed, if they are not nicety's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compat: Option<Compat>,
    /// For a run by LogGOPS: background noise on the hosts' CPUs, as given, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<String>,
    /// The seed of the noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Number of threads of the run. It is one by LogGOPSim's rules, if the latency is 0, and on cards with a capture.
    pub threads: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of executed operations plus number of arrived messages, as LogGOPSim counts events.
    pub events: u64,
    /// Number of executed operations.
    pub operations: u64,
    /// Number of arrived messages.
    pub messages: u64,
    /// Number of operations that were not executed, by LogGOPSim's rules. They depend on each other in a cycle, or on the end of
    /// a send that does not end. A send does not end if its message is long and its receive is not, or the other way round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexecuted: Option<u64>,
    /// For each host, the time at which its CPUs finished. On cards, it is the end of the host's last operation.
    pub finish_ns: Vec<Ns>,
    /// The latest of these times.
    pub max_finish_ns: Ns,
    /// The first host that has the latest time.
    pub max_host: u32,
    /// For a run on cards: for each host, the time with a calculation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computing_ns: Option<Vec<Ns>>,
    /// For each host, the time with a message in flight. A send counts from its start to its end. A receive counts from the time
    /// at which its message was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communicating_ns: Option<Vec<Ns>>,
    /// For each host, the time with both a calculation and a message in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlapped_ns: Option<Vec<Ns>>,
    /// The stages of the critical path to the end of the last host, if requested. Their sum is the latest finish time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<Vec<stages::Stage>>,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// When the text is not a valid request, or has options of both networks.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        let given: Value = nicety::from_json(text, "the request of a run")?;
        let request: Request = nicety::from_json(text, "the request of a run")?;
        let is_given = |(field, _): &&(&str, &str)| super::is_given(&given[*field]);
        if request.is_on_cards()? {
            let own = [("compat", "--compat")];
            if let Some((_, option)) = LOGGOPS.iter().chain(&own).find(is_given) {
                return Err(Error::Input(format!(
                    "{option}: an option of LogGOPS, which has no cards; leave out the option or --nic"
                )));
            }
        } else if let Some((_, option)) =
            ON_CARDS.iter().chain(&[("mode", "--mode"), ("breakdown", "--breakdown")]).find(is_given)
        {
            return Err(Error::Input(format!(
                "{option}: an option of runs on cards; name a card, as in --nic spin-discrete"
            )));
        }
        Ok(request)
    }

    fn is_on_cards(&self) -> Result<bool, Error> {
        match (self.network, &self.nic) {
            (Some(Network::Loggops), Some(_)) => {
                Err(Error::Input("--network loggops has no cards; leave out --network or --nic".to_owned()))
            }
            (Some(Network::Packets), None) => {
                Err(Error::Input("--network packets: name a card, as in --nic spin-discrete".to_owned()))
            }
            (_, nic) => Ok(nic.is_some()),
        }
    }
}

/// Runs a schedule.
///
/// # Errors
/// When the file is not a schedule, or the schedule cannot finish. When an option is invalid. When the run was interrupted, or
/// failed on its cards.
pub fn run(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    if request.is_on_cards()? { on_cards(request, environment) } else { by_loggops(request, environment) }
}

fn by_loggops(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let parameters = request.parameters.parameters()?;
    let spread = environment.spread(request.threads.threads)?;
    let (rules, labels) = match request.compat {
        None => (Rules::Own, DuplicateLabels::Unique),
        Some(Compat::Loggopsim) => (Rules::LogGopSim, DuplicateLabels::LastWins),
    };
    let (schedule, _) = file::read(&request.file, labels, &mut |_, _| goes_on(environment))?;
    environment.agree(&schedule)?;
    let total = schedule.ops().len() as u64;
    let threads = spread.threads as u32;
    let threads = if loggops::has_threads(&parameters, rules) { threads } else { 1 };
    let noise = request.cards.loggops_noise(schedule.ranks(), request.hosts.seed)?;
    if noise.is_some() && rules == Rules::LogGopSim {
        return Err(Error::Input("noise: only nicety's own rules have noise; leave compat out".to_owned()));
    }
    let tell = &mut |done| tell(environment, done, total);
    let in_processes = match &spread.peers {
        Some(peers) if rules == Rules::Own => {
            loggops::run_in_processes(&schedule, &parameters, noise.as_ref(), peers, tell)?
        }
        _ => None,
    };
    let finished = match (in_processes, &noise) {
        (Some(finished), _) => Ok(finished),
        (None, None) => loggops::run_in_threads(&schedule, &parameters, rules, threads, tell),
        (None, Some(_)) => loggops::run_with_noise(&schedule, &parameters, noise.as_ref(), threads, tell),
    }
    .map_err(|failure| match (failure, &noise) {
        (Failure::Endless(rank, op), Some(_)) => {
            let error = explained(Failure::Endless(rank, op), &request.file, &schedule);
            Error::Input(format!("{error}, or meets more than 2^27 intervals of noise"))
        }
        (failure, _) => explained(failure, &request.file, &schedule),
    })?;
    let counts = finished.counts;
    Ok(Report {
        parameters: Some(request.parameters.clone()),
        compat: request.compat,
        seed: noise.is_some().then_some(request.hosts.seed),
        noise: request.cards.noise.clone(),
        threads: threads.min(schedule.ranks()),
        unexecuted: (total > counts.operations).then(|| total - counts.operations),
        ..Report::of(&request.file, Network::Loggops, &finished.finish_ps, counts)
    })
}

fn on_cards(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let spread = environment.spread(request.threads.threads)?;
    let named: Vec<String> = request.nic.iter().cloned().collect();
    let loaded = nicety::cards::load_distinct(&named, &request.cards.overrides, "spin-discrete")?;
    let (schedule, _) = file::read(&request.file, DuplicateLabels::Unique, &mut |_, _| goes_on(environment))?;
    let schedule = Arc::new(schedule);
    let (nic, card) = &loaded[0];
    let mut config = request.cards.config(&request.hosts, schedule.ranks(), (nic, card), environment)?;
    config.breakdown = request.breakdown;
    let mode = request.mode.unwrap_or_default();
    let handlers = mode.handlers((nic, card), environment.compiled)?;
    let manifest = request.cards.manifest(&request.hosts, &loaded, config.topology, &[mode]);
    agree(environment, &schedule, &loaded, &config)?;
    let total = schedule.ops().len() as u64;
    let threads = if config.capture.is_some() { 1 } else { (spread.threads as u32).min(config.nodes) };
    let tell = &mut |done| tell(environment, done, total);
    let finished = cards::run_by(&schedule, config, handlers.as_ref(), &spread, tell)
        .map_err(|failure| failed(failure, &request.file, &schedule))?;
    let of = |part: fn(&Shares) -> u64| {
        Some(finished.shares(&schedule).iter().map(|shares| Ns { ps: part(shares) }).collect())
    };
    Ok(Report {
        nic: Some(nic.clone()),
        mode: Some(mode),
        manifest: Some(manifest),
        threads,
        computing_ns: of(|shares| shares.computing),
        communicating_ns: of(|shares| shares.communicating),
        overlapped_ns: of(|shares| shares.both),
        stages: finished.stages.as_ref().map(|path| stages::of(path, &finished.finish_ps)),
        ..Report::of(&request.file, Network::Packets, &finished.finish_ps, finished.counts)
    })
}

impl Report {
    /// Returns the part of a report that is the same for all networks.
    fn of(file: &str, network: Network, finish_ps: &[u64], counts: loggops::Counts) -> Report {
        let (max_ps, max_host) = super::last(finish_ps);
        Report {
            version: VERSION,
            file: file.to_owned(),
            network,
            parameters: None,
            nic: None,
            mode: None,
            manifest: None,
            compat: None,
            noise: None,
            seed: None,
            threads: 1,
            ranks: finish_ps.len() as u32,
            events: counts.operations + counts.messages,
            operations: counts.operations,
            messages: counts.messages,
            unexecuted: None,
            finish_ns: finish_ps.iter().map(|ps| Ns { ps: *ps }).collect(),
            max_finish_ns: Ns { ps: max_ps },
            max_host,
            computing_ns: None,
            communicating_ns: None,
            overlapped_ns: None,
            stages: None,
        }
    }
}

impl Finished {
    /// Returns the computation and communication times of each rank.
    pub fn shares(&self, schedule: &Schedule) -> Vec<Shares> {
        (0..)
            .zip(schedule.iter())
            .map(|(number, rank)| self.spans.shares(rank, schedule.first_op(number)))
            .collect()
    }
}

/// Returns the error for a failed run by LogGOPS.
pub(super) fn explained(failure: Failure, file: &str, schedule: &Schedule) -> Error {
    match failure {
        Failure::NotWhole(name) => {
            Error::Input(format!("{}: LogGOPSim takes only whole nanoseconds; leave compat out", name.0))
        }
        Failure::Cycle(cycle) => Error::Input(format!("{file}: {}", cycle.describe(schedule))),
        Failure::Stuck(stuck) => Error::Deadlock(format!("{file}: {}", stuck.describe(schedule))),
        Failure::Endless(rank, op) => {
            let named = crate::check::named(op, &schedule.rank(rank).ops[op as usize]);
            Error::Input(format!("{file}: rank {rank}: {named} ends after more than 2^64 ps, 213 days"))
        }
        Failure::Interrupted => Error::Interrupted,
    }
}

/// Returns the error for a failed run on cards.
pub(super) fn failed(failure: cards::Failure, file: &str, schedule: &Schedule) -> Error {
    match failure {
        cards::Failure::Cycle(cycle) => explained(Failure::Cycle(cycle), file, schedule),
        cards::Failure::Stuck(stuck, notes) => {
            Error::Deadlock(format!("{file}: {}{notes}", stuck.describe(schedule)))
        }
        cards::Failure::Run(error) => error.inside(file),
    }
}
