//! Writes the text format.

use crate::schedule::Schedule;
use std::io::{self, Write};

/// Writes a schedule. Operation i gets the label `l<i + 1>`, if it has dependencies or dependents. Attributes with the default 0
/// are left out.
///
/// # Errors
/// When the destination returns an error.
pub fn write(schedule: &Schedule, mut to: impl Write) -> io::Result<()> {
    writeln!(to, "num_ranks {}", schedule.ranks())?;
    for (number, rank) in schedule.iter().enumerate() {
        writeln!(to, "\nrank {number} {{")?;
        for (at, op) in rank.ops.iter().enumerate() {
            if op.dependencies > 0 || !rank.dependents(at).is_empty() {
                write!(to, "l{}: ", at + 1)?;
            }
            writeln!(to, "{op}")?;
        }
        for first in 0..rank.ops.len() {
            for dependent in rank.dependents(first) {
                let verb = if dependent.on_start() { "irequires" } else { "requires" };
                writeln!(to, "l{} {verb} l{}", dependent.op() + 1, first + 1)?;
            }
        }
        writeln!(to, "}}")?;
    }
    to.flush()
}
