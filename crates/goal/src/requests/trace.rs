//! `nicety goal trace`: makes a schedule from the traces of an MPI program.

use super::network::LogGops;
use super::run::explained;
use super::{goes_on, tell};
use crate::file::{self, Counted, Format};
use crate::loggops::{self, Rules};
use crate::schedule::{Builder, Schedule};
use crate::trace::{self, AmbiguousCalls, World};
use nicety::{Environment, Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// Make a schedule from the traces of an MPI program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The traces, one file for each rank.
    pub files: Vec<String>,
    /// The file to write.
    pub output: String,
}

/// The report of a schedule made from traces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Traced {
    /// The file that was written.
    pub output: String,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of calls in the traces.
    pub calls: u64,
    /// Number of operations in the schedule.
    pub operations: u64,
    /// Number of calls with an effect that a trace does not show, by name. For example, `MPI_Test` may or may not have ended a
    /// request.
    pub ambiguous_calls: BTreeMap<String, u64>,
    /// Number of calls that began before the previous call ended, by the clock of the trace.
    pub out_of_order_calls: u64,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// When the text is not a valid request.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        serde_json::from_str(text).map_err(|error| Error::Input(error.to_string()))
    }

    /// Returns the files in the order of the ranks in their names.
    fn in_order(&self) -> Result<Vec<&str>, Error> {
        let mut ranks = BTreeMap::new();
        for file in &self.files {
            let unnumbered = || {
                Error::Input(format!(
                    "{file}: its name does not end with a rank, as pmpi-trace-rank-7.txt does"
                ))
            };
            let rank = rank_of(file).ok_or_else(unnumbered)?;
            if let Some(other) = ranks.insert(rank, file.as_str()) {
                return Err(Error::Input(format!(
                    "{file}: this is the trace of rank {rank}, and {other} is too; leave one out"
                )));
            }
        }
        match (0..).zip(ranks.keys()).find(|(number, rank)| number != *rank) {
            None if !ranks.is_empty() => Ok(ranks.into_values().collect()),
            None => Err(Error::Input("no trace is named; name the traces of all ranks".to_owned())),
            Some((missing, _)) => Err(Error::Input(format!(
                "there is no trace of rank {missing}; name the traces of all ranks"
            ))),
        }
    }
}

/// Runs the schedule, as `nicety goal run` does by default. Refuses a schedule that cannot finish, since it would be useless.
fn try_to_run(schedule: &Schedule, environment: &Environment<'_>) -> Result<(), Error> {
    let parameters = LogGops::default().parameters()?;
    loggops::run_in_threads(schedule, &parameters, Rules::Own, 1, &mut |_| goes_on(environment)).map_err(
        |failure| match explained(failure, "these traces", schedule) {
            Error::Deadlock(text) => {
                Error::Input(format!("{text}\nare all traces of one run, and is this run traced as a whole?"))
            }
            other => other,
        },
    )?;
    Ok(())
}

/// Returns the number at the end of a file's name, before its extension.
fn rank_of(file: &str) -> Option<u64> {
    let name = Path::new(file).file_stem()?.to_str()?;
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    name[digits..].parse().ok()
}

/// Makes a schedule from traces and writes it to a file. If the file's name ends with `.bin`, the format is binary.
///
/// # Errors
/// When traces are missing, unreadable or invalid, or their schedule cannot finish in any run. When the file cannot be written,
/// or the run was interrupted.
pub fn trace(request: &Request, environment: &Environment<'_>) -> Result<Traced, Error> {
    let files = request.in_order()?;
    let ranks = u32::try_from(files.len()).ok().filter(|ranks| *ranks < u32::MAX);
    let ranks = ranks
        .ok_or_else(|| Error::Input("there are more traces than a schedule can have ranks".to_owned()))?;
    let (mut builder, mut world, mut unsaid) = (Builder::new(), World::default(), AmbiguousCalls::default());
    for (number, path) in (0_u64..).zip(&files) {
        let cannot = |error: std::io::Error| file::unreadable(path, &error);
        let source = File::open(path).map_err(cannot)?;
        let length = source.metadata().map_or(0, |about| about.len()).max(1);
        let counted = Counted::new(source);
        // Each file counts as a thousand parts of the progress.
        let mut go_on = || {
            let part = u128::from(counted.read().min(length)) * 1000 / u128::from(length);
            tell(environment, number * 1000 + part as u64, u64::from(ranks) * 1000)
        };
        if !go_on() {
            return Err(Error::Interrupted);
        }
        trace::read(&counted, ranks, &mut world, &mut unsaid, &mut builder, &mut go_on)
            .map_err(|error| file::described(path, error))?;
    }
    let schedule = builder.finish();
    try_to_run(&schedule, environment)?;
    let to = Path::new(&request.output);
    let format = Format::of_name(to).unwrap_or(Format::Text);
    file::write(&schedule, to, format, environment.interrupt.as_deref())?;
    Ok(Traced {
        output: request.output.clone(),
        ranks,
        calls: unsaid.total,
        operations: schedule.ops().len() as u64,
        ambiguous_calls: unsaid.calls,
        out_of_order_calls: unsaid.backwards,
    })
}
