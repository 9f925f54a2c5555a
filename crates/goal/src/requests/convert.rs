//! `nicety goal convert`: writes a schedule in the other format.

use super::tell;
use crate::file::{self, Format};
use crate::text::DuplicateLabels;
use nicety::{Environment, Error};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// The report of a conversion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Converted {
    /// The file that was read.
    pub input: String,
    /// The file that was written.
    pub output: String,
    /// The format of the written file: `text` or `binary`.
    pub format: &'static str,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of operations.
    pub operations: u64,
}

/// Reads a schedule in one format and writes it in another. The name of the output gives its format: binary for `.bin`, and text
/// for `.goal` and `.txt`. Any other name gets the format that the input does not have.
///
/// # Errors
/// When the input is not a schedule, a file cannot be read or written, or the run was interrupted.
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
