//! What is asked of schedules, and what is reported, as JSON.

mod convert;
mod generate;
mod run;
mod trace;

pub use convert::{Converted, convert};
pub use generate::{Generated, Request as GenerateRequest, generate};
pub use run::{Compat, Ns, Report, Request as RunRequest, run};
pub use trace::{Request as TraceRequest, Traced, trace};

use crate::info::Info;
use crate::text::DuplicateLabels;
use crate::{check, file};
use nicety::{Environment, Error};
use std::sync::atomic::Ordering;

/// Whether a caller has asked to stop.
fn goes_on(environment: &Environment<'_>) -> bool {
    !environment.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Tells progress in thousandths, and whether to go on.
fn tell(environment: &Environment<'_>, done: u64, total: u64) -> bool {
    let parts = u128::from(done) * 1000 / u128::from(total.max(1));
    (environment.progress)(parts.min(1000) as usize, 1000);
    goes_on(environment)
}

/// Says what a schedule in a file is made of.
///
/// # Errors
/// The file is no schedule, operations of it wait for each other, or the run was interrupted.
pub fn info(path: &str, environment: &Environment<'_>) -> Result<Info, Error> {
    let (schedule, _) =
        file::read(path, DuplicateLabels::Unique, &mut |done, total| tell(environment, done, total))?;
    if let Some(cycle) = check::find_cycle(&schedule) {
        return Err(Error::Input(format!("{path}: {}", cycle.describe(&schedule))));
    }
    Info::of(path, &schedule, &mut |_| goes_on(environment)).ok_or(Error::Interrupted)
}
