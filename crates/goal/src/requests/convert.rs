//! `nicety goal convert`: a schedule in the other format.

use super::tell;
use crate::file::{self, Format};
use crate::text::DuplicateLabels;
use nicety::{Environment, Error};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// The converted files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Converted {
    /// The file that was read.
    pub input: String,
    /// The file that was written.
    pub output: String,
    /// Its format: `text` or `binary`.
    pub format: &'static str,
    /// Ranks.
    pub ranks: u32,
    /// Operations.
    pub operations: u64,
}

/// Reads a schedule in one format and writes it in another. `.bin` is binary, and `.goal` and `.txt` are text; any other output name gets
/// the format that the input does not have.
///
/// # Errors
/// The input is no schedule, or one of the files cannot be used; the run was interrupted.
pub fn convert(input: &str, output: &str, environment: &Environment<'_>) -> Result<Converted, Error> {
    let to = Path::new(output);
    let (schedule, from) =
        file::read(input, DuplicateLabels::Unique, &mut |done, total| tell(environment, done, total))?;
    let format = Format::of_name(to).unwrap_or(from.other());
    file::write(&schedule, to, format, environment.interrupt.as_deref())?;
    let format = match format {
        Format::Text => "text",
        Format::Binary => "binary",
    };
    Ok(Converted {
        input: input.to_owned(),
        output: output.to_owned(),
        format,
        ranks: schedule.ranks(),
        operations: schedule.ops().len() as u64,
    })
}
