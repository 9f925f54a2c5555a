//! The handlers to compile for cards that execute messages by handlers.

use super::mode::{Mode, SOURCE, with_handlers};
use super::{CompareRequest, RunRequest};
use nicety::Error;
use nicety::cards::load_distinct;
use serde::Serialize;

/// The handlers to compile for a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The programs to compile.
    pub compile: Vec<Planned>,
}

/// A program to compile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// The name of the card. It is the key by which the run finds the compiled program.
    pub key: String,
    /// The source file in the library of handlers.
    pub source: &'static str,
    /// The instruction set of the card's processors.
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
/// When a card cannot be read, or must execute messages and cannot run handlers.
pub fn plan_run(request: &RunRequest) -> Result<Plan, Error> {
    let named: Vec<String> = request.nic.iter().cloned().collect();
    Plan::of(&[request.mode.unwrap_or_default()], &named, &request.cards.overrides)
}

/// Returns the handlers to compile for a comparison.
///
/// # Errors
/// As [`plan_run`]; also when a mode is unknown.
pub fn plan_compare(request: &CompareRequest) -> Result<Plan, Error> {
    Plan::of(&Mode::all_of(request.modes.as_deref())?, &request.nics, &request.cards.overrides)
}
