//! Makes schedules from traces of MPI programs. liballprof writes these traces, one text file for each rank.
//!
//! ```text
//! # a comment
//! MPI_Init:-:140731:140730:1225632902659000
//! MPI_Send:1225632902659657:11251872:4500:11,8,8:1:7000:0,0,4:1225632902659726
//! MPI_Finalize:1225632902660000:-
//! ```
//!
//! A line is a call. Its fields are separated by colons: the name, the start time, the arguments in the order of MPI's C binding,
//! and the end time. A datatype is `number,bytes,extent`, and a communicator is `handle,rank,ranks`. A list of counts is its
//! address, a colon, and the items separated by commas. Times are in microseconds of the rank's own clock.
//!
//! - `line`, the fields of a line;
//! - `calls`, the effect of each MPI call;
//! - `program`, the rank of the schedule that results;
//! - `collective`, the messages of collective calls.
//!
//! The time between two communicating calls becomes a calculation. It includes the time of other calls. The time inside
//! communicating calls is left out, because the simulated network determines it.

mod calls;
mod collective;
mod line;
mod program;

pub use collective::World;
pub use program::AmbiguousCalls;

use crate::error::{Place, ReadError};
use crate::schedule::Builder;
use crate::text::lines::{LONGEST, Line, Lines};
use line::{Fault, Fields};
use program::Program;
use std::io::Read;

/// Number of lines between two calls of `go_on`.
const LOOK_EVERY: u64 = 1 << 14;

/// Reads the trace of the next rank of `ranks` into a schedule under construction. `go_on` is called regularly; if it returns false,
/// reading ends.
///
/// # Errors
/// When the text is not such a trace, or is truncated. When a call cannot be translated, or the collective calls differ from
/// those of earlier ranks. When the source cannot be read, or `go_on` returned false.
pub fn read(
    source: impl Read,
    ranks: u32,
    world: &mut World,
    unsaid: &mut AmbiguousCalls,
    builder: &mut Builder,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(), ReadError> {
    let mut lines = Lines::new(source);
    let mut number = 0;
    let rank = builder.ranks() as u32;
    let mut program = Program::new(builder, world, unsaid, rank, ranks);
    let mut fields = Vec::new();
    let wrong = |line: u64, fault: Fault| {
        ReadError::new(Place::Text { line, column: fault.at + 1 }, Some(rank), fault.text)
    };
    loop {
        number += 1;
        if number % LOOK_EVERY == 0 && !go_on() {
            return Err(ReadError { interrupted: true, ..wrong(number, Fault::new(0, "interrupted")) });
        }
        let next = lines
            .next()
            .map_err(|error| wrong(number, Fault::new(0, format!("cannot read on ({error})"))))?;
        let (from, to) = match next {
            Line::At(from, to) => (from, to),
            Line::TooLong => {
                return Err(wrong(number, Fault::new(0, format!("a line is at most {LONGEST} bytes long"))));
            }
            Line::End => break,
        };
        let text = lines.line(from, to);
        if text.is_empty() || text[0] == b'#' {
            continue;
        }
        let call = Fields::split(text, &mut fields).map_err(|fault| wrong(number, fault))?;
        program.line = u32::try_from(number).unwrap_or(u32::MAX);
        calls::take(&call, &mut program).map_err(|fault| wrong(number, fault))?;
    }
    program.finish().map_err(|fault| wrong(number, fault))?;
    builder.end_rank();
    Ok(())
}
