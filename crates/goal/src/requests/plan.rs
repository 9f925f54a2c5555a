//! The handlers to compile for cards that execute messages.

use super::mode::{Mode, SOURCE, with_handlers};
use super::{CompareRequest, RunRequest};
use nicety::Error;
use nicety::cards::load_distinct;
use serde::Serialize;

/// The handlers to compile for a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The programs.
    pub compile: Vec<Planned>,
}

/// A program to compile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// The name under which the run looks it up: the card's.
    pub key: String,
    /// The library's file.
    pub source: &'static str,
    /// The instruction set to compile for.
    pub isa: String,
}

impl Plan {
    fn of(modes: &[Mode], nics: &[String], overrides: &[String]) -> Result<Plan, Error> {
        if !modes.contains(&Mode::Card) {
            return Ok(Plan { compile: Vec::new() });
        }
        let cards = load_distinct(nics, overrides, "spin-discrete")?;
        let planned = cards.iter().map(|(name, card)| {
            let isa = with_handlers(name, card)?.hpu.isa.clone();
            Ok(Planned { key: name.clone(), source: SOURCE, isa })
        });
        Ok(Plan { compile: planned.collect::<Result<_, Error>>()? })
    }
}

/// Returns the handlers to compile for a run.
///
/// # Errors
/// A card cannot be read, or lacks handlers and is to execute messages.
pub fn plan_run(request: &RunRequest) -> Result<Plan, Error> {
    let named: Vec<String> = request.nic.iter().cloned().collect();
    Plan::of(&[request.mode.unwrap_or_default()], &named, &request.cards.overrides)
}

/// Returns the handlers to compile for a comparison.
///
/// # Errors
/// As [`plan_run`]; a mode is unknown.
pub fn plan_compare(request: &CompareRequest) -> Result<Plan, Error> {
    Plan::of(&Mode::all_of(request.modes.as_deref())?, &request.nics, &request.cards.overrides)
}
