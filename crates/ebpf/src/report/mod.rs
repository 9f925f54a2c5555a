//! Reports: an object's parts, and runs on packets.

pub mod maps;
mod run;
mod show;
mod value;

pub use run::{PacketReport, RunError, RunReport, RunRequest, Timed, choose, prepare, run};
pub use show::{MapReport, ProgramReport, ShowReport, show};
