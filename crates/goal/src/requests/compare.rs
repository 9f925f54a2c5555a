//! `nicety goal compare`: runs a schedule on several cards, and on LogGOPS if requested.

use super::mode::Mode;
use super::network::{LOGGOPS as PARAMETERS, LogGops, Manifest, Network, OnCards};
use super::run::{explained, failed};
use super::{Ns, agree, goes_on, is_given, last, stages, tell};
use crate::schedule::Schedule;
use crate::spans::{Shares, Spans};
use crate::text::DuplicateLabels;
use crate::{cards, file, loggops};
use nicety::options::{NetworkOptions, Threads};
use nicety::{Environment, Error, VERSION};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name of the row for LogGOPS.
const LOGGOPS: &str = "loggops";

/// Run a schedule on several cards, and compare the finish, computation and communication times of its ranks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CompareOptions")]
pub struct Request {
    /// The file of the schedule.
    #[schemars(extend("format" = "derived"))]
    pub file: String,
    /// Cards to compare: names of specs, or paths of spec files.
    #[schemars(extend("example" = "spin-discrete"))]
    pub nics: Vec<String>,
    /// `host`: the library on the host executes messages; `card`: handlers on the card execute them. Default: host.
    #[serde(default)]
    #[schemars(extend("metavar" = "M[,N]", "example" = "card"))]
    pub modes: Option<Vec<String>>,
    /// loggops: compare with LogGOPS, too.
    #[serde(default)]
    #[schemars(extend("metavar" = "loggops"))]
    pub network: Option<Network>,
    /// The parameters of LogGOPS.
    #[serde(flatten)]
    pub parameters: LogGops,
    /// The network between the hosts.
    #[serde(flatten)]
    pub hosts: NetworkOptions,
    /// Options of the cards.
    #[serde(flatten)]
    pub cards: OnCards,
    /// Number of threads of a run on cards.
    #[serde(flatten)]
    pub threads: Threads,
}

/// The report of a schedule on several cards.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "CompareReport")]
pub struct Report {
    /// The version of nicety.
    pub version: &'static str,
    /// The file of the schedule.
    pub file: String,
    /// The inputs that reproduce the runs.
    pub manifest: Manifest,
    /// The parameters of LogGOPS, as given, if LogGOPS was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<LogGops>,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of operations.
    pub operations: u64,
    /// Number of messages.
    pub messages: u64,
    /// One row for each card, and one for LogGOPS if requested.
    pub rows: Vec<Row>,
    /// The times of each rank, from which a row is computed. The keys are the names of rows.
    pub by_rank: BTreeMap<String, ByRank>,
}

/// The result of a schedule on one card.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "CompareRow")]
pub struct Row {
    /// The name of the row: the card, or loggops. In a mode other than host, / and the mode follow.
    pub nic: String,
    /// The mode, which says where messages are executed. LogGOPS has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The time at which the last rank ends.
    pub finish_ns: Ns,
    /// The first rank that ends at this time.
    pub last_rank: u32,
    /// The times at which ranks end.
    pub finish: Spread,
    /// The computation times of ranks.
    pub computing: Spread,
    /// The communication times of ranks: the times with messages in flight. A send counts from its start to its end. A receive
    /// counts from the time at which its message was sent.
    pub communicating: Spread,
    /// The times in which ranks communicate and do not compute.
    pub exposed: Spread,
    /// The fraction of communication time in which the rank also computes, over all ranks; 0 without communication.
    pub overlap: f64,
    /// The stages of the critical path to the end of the last rank. LogGOPS has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<Vec<stages::Stage>>,
}

/// Statistics of a time over all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "RankSpread")]
pub struct Spread {
    /// The shortest time.
    pub min_ns: Ns,
    /// The mean time, rounded down to a picosecond.
    pub mean_ns: Ns,
    /// The longest time.
    pub max_ns: Ns,
}

/// The times of each rank, by rank.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ByRank {
    /// The times at which ranks end.
    pub finish_ns: Vec<Ns>,
    /// The times with a calculation.
    pub computing_ns: Vec<Ns>,
    /// The times with messages in flight.
    pub communicating_ns: Vec<Ns>,
    /// The times with both.
    pub overlapped_ns: Vec<Ns>,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// When the text is not a valid request, or has parameters of LogGOPS but does not request LogGOPS.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        let given: Value = nicety::from_json(text, "the request of a comparison")?;
        let request: Request = nicety::from_json(text, "the request of a comparison")?;
        if request.network != Some(Network::Loggops)
            && let Some((_, option)) = PARAMETERS.iter().find(|(field, _)| is_given(&given[*field]))
        {
            return Err(Error::Input(format!(
                "{option}: an option of LogGOPS; add --network loggops, or leave the option out"
            )));
        }
        Ok(request)
    }
}

impl Spread {
    fn of(times: impl Iterator<Item = u64> + Clone) -> Spread {
        let ns = |ps: Option<u64>| Ns { ps: ps.unwrap_or(0) };
        let (sum, count) =
            times.clone().fold((0, 0), |(sum, count), ps| (sum + u128::from(ps), count + 1_u128));
        Spread {
            min_ns: ns(times.clone().min()),
            mean_ns: ns(sum.checked_div(count).map(|mean| mean as u64)),
            max_ns: ns(times.max()),
        }
    }
}

/// The result of one run.
struct Outcome {
    finish_ps: Vec<u64>,
    shares: Vec<Shares>,
    stages: Option<Vec<stages::Stage>>,
}

impl Outcome {
    fn of(schedule: &Schedule, finish_ps: Vec<u64>, spans: &Spans) -> Outcome {
        let shares = (0..).zip(schedule.iter());
        let shares = shares.map(|(rank, of)| spans.shares(of, schedule.first_op(rank))).collect();
        Outcome { finish_ps, shares, stages: None }
    }

    fn row(&self, nic: &str, mode: Option<Mode>) -> Row {
        let of = |part: fn(&Shares) -> u64| Spread::of(self.shares.iter().map(part));
        let sum = |part: fn(&Shares) -> u64| {
            self.shares.iter().map(|shares| u128::from(part(shares))).sum::<u128>()
        };
        let (finish, last_rank) = last(&self.finish_ps);
        let communicating = sum(|shares| shares.communicating);
        Row {
            nic: nic.to_owned(),
            mode,
            finish_ns: Ns { ps: finish },
            last_rank,
            finish: Spread::of(self.finish_ps.iter().copied()),
            computing: of(|shares| shares.computing),
            communicating: of(|shares| shares.communicating),
            exposed: of(|shares| shares.communicating - shares.both),
            overlap: match communicating {
                0 => 0.0,
                all => sum(|shares| shares.both) as f64 / all as f64,
            },
            stages: self.stages.clone(),
        }
    }

    fn by_rank(&self) -> ByRank {
        let of =
            |part: fn(&Shares) -> u64| self.shares.iter().map(|shares| Ns { ps: part(shares) }).collect();
        ByRank {
            finish_ns: self.finish_ps.iter().map(|ps| Ns { ps: *ps }).collect(),
            computing_ns: of(|shares| shares.computing),
            communicating_ns: of(|shares| shares.communicating),
            overlapped_ns: of(|shares| shares.both),
        }
    }
}

/// Compares cards, and LogGOPS if it is requested.
///
/// # Errors
/// When the file is not a schedule, or the schedule cannot finish. When an option is invalid, or a run was interrupted. When a
/// run failed on its cards; the error names the card.
pub fn compare(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let parameters = request.parameters.parameters()?;
    let spread = environment.spread(request.threads.threads)?;
    let loaded = nicety::cards::load_distinct(&request.nics, &request.cards.overrides, "spin-discrete")?;
    if let Some((name, _)) = loaded.iter().find(|(name, _)| name == LOGGOPS) {
        return Err(Error::Input(format!(
            "a card is called {name}, like the network; give the card another name in its file"
        )));
    }
    let (schedule, _) = file::read(&request.file, DuplicateLabels::Unique, &mut |_, _| goes_on(environment))?;
    let schedule = Arc::new(schedule);
    let modes = Mode::all_of(request.modes.as_deref())?;
    let mut runs_on = Vec::new();
    for (name, card) in &loaded {
        for mode in &modes {
            let label = if modes == [Mode::Host] { name.clone() } else { format!("{name}/{}", mode.name()) };
            let config =
                request.cards.config(&request.hosts, schedule.ranks(), (&label, card), environment)?;
            runs_on.push((label, *mode, config, mode.handlers((name, card), environment.compiled)?));
        }
    }
    let with_loggops = request.network == Some(Network::Loggops);
    let (runs, each) = (runs_on.len() as u64 + u64::from(with_loggops), schedule.ops().len() as u64);
    let tell_run = |run: u64, done: u64| tell(environment, run * each + done.min(each), runs * each);
    let manifest = request.cards.manifest(&request.hosts, &loaded, runs_on[0].2.topology, &modes);
    agree(environment, &schedule, &loaded, &runs_on[0].2)?;
    let mut outcomes: Vec<(String, Option<Mode>, Outcome)> = Vec::new();
    for (label, mode, config, handlers) in runs_on {
        let number = outcomes.len() as u64;
        let finished =
            cards::run_by(&schedule, config, handlers.as_ref(), &spread, &mut |done| tell_run(number, done))
                .map_err(|failure| failed(failure, &request.file, &schedule).inside(&label))?;
        let path = finished.stages.as_ref().map(|path| stages::of(path, &finished.finish_ps));
        let outcome = Outcome::of(&schedule, finished.finish_ps, &finished.spans);
        outcomes.push((label, Some(mode), Outcome { stages: path, ..outcome }));
    }
    if with_loggops {
        let (finished, spans) =
            loggops::run_with_spans(&schedule, &parameters, &mut |done| tell_run(runs - 1, done))
                .map_err(|failure| explained(failure, &request.file, &schedule).inside(LOGGOPS))?;
        outcomes.push((LOGGOPS.to_owned(), None, Outcome::of(&schedule, finished.finish_ps, &spans)));
    }
    tell_run(runs, 0);
    let messages = schedule.ops().iter().filter(|op| op.kind == crate::Kind::Send).count() as u64;
    Ok(Report {
        version: VERSION,
        file: request.file.clone(),
        manifest,
        parameters: with_loggops.then(|| request.parameters.clone()),
        ranks: schedule.ranks(),
        operations: each,
        messages,
        rows: outcomes.iter().map(|(name, mode, outcome)| outcome.row(name, *mode)).collect(),
        by_rank: outcomes.into_iter().map(|(name, _, outcome)| (name, outcome.by_rank())).collect(),
    })
}
