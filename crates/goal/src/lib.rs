//! Applications at scale: GOAL schedules, the LogGOPS network, and schedules on modelled cards.
//!
//! A schedule has the operations of each rank of an application (send, receive, calculate), and the dependencies between them.
//! The modules, from the bottom up:
//!
//! - [`Schedule`], a schedule in memory, and [`Builder`], which constructs a schedule rank by rank;
//! - [`text`] and [`binary`], the two formats of GOAL, and [`file`](mod@file), which distinguishes them;
//! - [`generate`], schedules of communication patterns;
//! - [`trace`], schedules from traces of MPI programs;
//! - [`loggops`], a network in which the cost of a message depends only on its size;
//! - [`cards`], modelled cards that execute every message;
//! - [`requests`], the commands on schedules, with requests and reports in JSON.

pub mod binary;
pub mod cards;
mod check;
mod error;
pub mod file;
pub mod generate;
mod info;
pub mod loggops;
pub mod requests;
mod schedule;
mod spans;
pub mod text;
pub mod trace;

pub use check::{Cycle, find_cycle};
pub use error::{Place, ReadError};
pub use info::Info;
pub use schedule::{ANY, Builder, Dependent, Kind, MOST_OPERATIONS, Op, Rank, Schedule};
pub use spans::{Shares, Spans};

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Returns the JSON schemas of all reports and requests, with their names. A schema follows the schemas that it uses.
pub fn schemas() -> Vec<(String, Value)> {
    fn all(generator: SchemaGenerator) -> Vec<(String, Value)> {
        let mut generator = generator;
        generator.take_definitions(true).into_iter().collect()
    }
    let mut reports = SchemaSettings::draft2020_12().for_serialize().into_generator();
    reports.subschema_for::<(requests::Report, requests::CompareReport)>();
    reports.subschema_for::<(Info, requests::Converted, requests::Generated, requests::Traced)>();
    let mut asked = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    asked.subschema_for::<(requests::RunRequest, requests::CompareRequest, requests::GenerateRequest)>();
    let mut made = all(reports);
    for (name, schema) in all(asked) {
        if made.iter().all(|(other, _)| *other != name) {
            made.push((name, schema));
        }
    }
    made
}
