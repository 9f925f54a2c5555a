//! Requests for commands on schedules, and their reports, in JSON.

mod compare;
mod convert;
mod generate;
mod mode;
mod network;
mod ns;
mod plan;
mod run;
mod stages;
mod trace;

pub use compare::{Report as CompareReport, Request as CompareRequest, compare};
pub use convert::{Converted, convert};
pub use generate::{Generated, Request as GenerateRequest, generate};
pub use mode::Mode;
pub use network::{LogGops, Manifest, Network, OnCards};
pub use ns::Ns;
pub use plan::{Plan, Planned, plan_compare, plan_run};
pub use run::{Compat, Report, Request as RunRequest, run};
pub use trace::{Request as TraceRequest, Traced, trace};

use crate::info::Info;
use crate::text::DuplicateLabels;
use crate::{Schedule, check, file};
use nicety::cards::Card;
use nicety::{ClusterConfig, Environment, Error};
use serde_json::Value;
use std::sync::atomic::Ordering;

/// Returns whether the run may continue, because the caller has not requested a stop.
fn goes_on(environment: &Environment<'_>) -> bool {
    !environment.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Reports progress in thousandths. Returns whether to continue.
fn tell(environment: &Environment<'_>, done: u64, total: u64) -> bool {
    let parts = u128::from(done) * 1000 / u128::from(total.max(1));
    (environment.progress)(parts.min(1000) as usize, 1000);
    goes_on(environment)
}

/// Checks that all processes of a run have read the same schedule, cards, faults and noise.
fn agree(
    environment: &Environment<'_>,
    schedule: &Schedule,
    cards: &[(String, Card)],
    config: &ClusterConfig,
) -> Result<(), Error> {
    let cards: Vec<&str> = cards.iter().map(|(_, card)| card.listing.hash.as_str()).collect();
    environment.agree(&(schedule, cards, format!("{:?} {:?}", config.faults, config.noise)))
}

/// Returns whether a field of a request has a value other than its default, which is empty.
fn is_given(field: &Value) -> bool {
    !matches!(field, Value::Null | Value::Bool(false))
        && field.as_array().is_none_or(|items| !items.is_empty())
}

/// Returns the latest of the hosts' times, and the first host that has this time.
fn last(finish_ps: &[u64]) -> (u64, u32) {
    let latest = finish_ps.iter().copied().max().unwrap_or(0);
    (latest, finish_ps.iter().position(|ps| *ps == latest).unwrap_or(0) as u32)
}

/// Returns the statistics of a schedule in a file.
///
/// # Errors
/// When the file is not a schedule, its operations depend on each other in a cycle, or the run was interrupted.
pub fn info(path: &str, environment: &Environment<'_>) -> Result<Info, Error> {
    let (schedule, _) =
        file::read(path, DuplicateLabels::Unique, &mut |done, total| tell(environment, done, total))?;
    if let Some(cycle) = check::find_cycle(&schedule) {
        return Err(Error::Input(format!("{path}: {}", cycle.describe(&schedule))));
    }
    Info::of(path, &schedule, &mut |_| goes_on(environment)).ok_or(Error::Interrupted)
}
