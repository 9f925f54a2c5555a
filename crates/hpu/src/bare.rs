//! Runs a whole program without a card, with flat memory and two system calls.
//!
//! A program ends with `ecall` and a7 = 93, its exit code in a0. a7 = 64 writes a2 bytes at a1 to standard output.
//! These are Linux's numbers. A return from the entry also ends the program, with a0 as its exit code, so that any
//! function can be run.

use crate::context::{Context, Exit};
use crate::image::Image;
use crate::load::{LoadError, Segment};
use crate::memory::{AddressSpace, MAX_REGIONS};
use crate::region::Region;
use crate::reservations::Reservations;
use crate::trap::{Trap, TrapKind};
use std::fmt;
use std::io::{self, Write};

/// Bytes after the program for its heap (from below) and its stack (from above).
pub const HEAP_AND_STACK: u32 = 16 << 20;

/// Default cycle limit of a bare program: a few seconds of host time.
pub const DEFAULT_CYCLES: u64 = 1_000_000_000;

/// The end of a bare program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BareResult {
    /// The argument of exit, or the return value of the entry. `None` after a trap.
    pub exit_code: Option<i32>,
    /// Instructions completed.
    pub instructions: u64,
    /// Cycles taken.
    pub cycles: u64,
    /// The trap that ended it, if any. The cycle limit is a trap.
    pub trap: Option<Box<Trap>>,
}

/// The reason why a bare program did not run to its own end.
#[derive(Debug)]
pub enum BareError {
    /// It cannot be loaded.
    Load(LoadError),
    /// Standard output was not writable.
    Output(io::Error),
    /// The file names no entry inside its code.
    NoEntry {
        /// The entry address in the file.
        entry: u32,
    },
    /// The caller's check stopped it.
    Stopped,
}

impl fmt::Display for BareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BareError::Load(error) => error.fmt(f),
            BareError::Output(error) => write!(f, "the program's output could not be written: {error}"),
            BareError::NoEntry { entry } => write!(
                f,
                "it has no entry point (entry {entry:#x}, where there is no code): a bare program has a \
                 main; name another function with --entry, or run handlers with nicety bench handlers"
            ),
            BareError::Stopped => f.write_str("the program was stopped"),
        }
    }
}

impl std::error::Error for BareError {}

const EXIT: u32 = 93;
const WRITE: u32 = 64;
const SERVED: &str = "a bare program has the calls 64 (write a2 bytes at a1) and 93 (exit with a0)";

/// A piece of a bare program's memory: a segment, or heap and stack.
struct Piece {
    base: u32,
    bytes: Vec<u8>,
    writable: bool,
}

/// Cycles between two calls of the caller's check: a few hundredths of a second.
const SLICE: u64 = 10_000_000;

/// Runs a program from `entry`, or from the file's entry, for at most `max_cycles` cycles.
///
/// # Errors
/// If there is no such entry, the program does not fit, or `stdout` fails. A trap is a result.
pub fn run(
    image: &Image,
    entry: Option<&str>,
    max_cycles: u64,
    stdout: &mut dyn Write,
) -> Result<BareResult, BareError> {
    run_while(image, entry, max_cycles, stdout, &mut || true)
}

/// Like [`run`], but calls `go_on` every few hundredths of a second.
///
/// # Errors
/// Those of [`run`], and [`BareError::Stopped`] if `go_on` returns false.
pub fn run_while(
    image: &Image,
    entry: Option<&str>,
    max_cycles: u64,
    stdout: &mut dyn Write,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<BareResult, BareError> {
    let (mut pieces, sp) = memory(image).map_err(BareError::Load)?;
    let entry = match entry {
        Some(name) => image.require(name).map_err(BareError::Load)?,
        None if image.is_code(image.entry()) => image.entry(),
        None => return Err(BareError::NoEntry { entry: image.entry() }),
    };
    let mut space = AddressSpace::new();
    for piece in &mut pieces {
        space.push(match piece.writable {
            true => Region::memory("the program's data", piece.base, &mut piece.bytes),
            false => Region::read_only("the program's code and constants", piece.base, &piece.bytes),
        });
    }

    let mut reservations = Reservations::new();
    let mut context = Context::new(0);
    context.call(image, entry, sp, &[], max_cycles);
    let (exit_code, trap) = loop {
        let until = context.cycle().saturating_add(SLICE);
        match context.run(image, &mut space, &mut reservations, until) {
            Exit::Return(code) => break (Some(code as i32), None),
            Exit::Trap(trap) => break (None, Some(trap)),
            Exit::Order(_) => {
                if let Err(trap) = context.perform(image, &mut space, &mut reservations) {
                    break (None, Some(trap));
                }
            }
            Exit::Ecall => {
                let [a0, a1, a2, .., number] = context.args();
                let trap = |kind| image.trap(context.pc(), kind);
                if let Some(argument) = context.argument_beyond(2).filter(|_| number == WRITE) {
                    break (None, Some(trap(TrapKind::ArgumentBeyond { argument })));
                }
                match number {
                    EXIT => {
                        context.finish_ecall(a0, 0);
                        break (Some(a0 as i32), None);
                    }
                    WRITE => match space.read(a1, a2) {
                        Ok(bytes) => {
                            stdout.write_all(bytes).map_err(BareError::Output)?;
                            context.finish_ecall(a2, 0);
                        }
                        Err(kind) => break (None, Some(trap(kind))),
                    },
                    _ => break (None, Some(trap(TrapKind::UnknownCall { number, served: SERVED }))),
                }
            }
            Exit::Limit if go_on() => {}
            Exit::Limit => return Err(BareError::Stopped),
            Exit::Device(_) | Exit::Fetch { .. } => unreachable!("a space without devices and caches"),
        }
    };
    stdout.flush().map_err(BareError::Output)?;
    Ok(BareResult { exit_code, instructions: context.instret(), cycles: context.cycle(), trap })
}

/// Returns the memory of a program, and the start of its stack.
fn memory(image: &Image) -> Result<(Vec<Piece>, u32), LoadError> {
    let segments = image.segments();
    if segments.len() >= MAX_REGIONS {
        let most = MAX_REGIONS - 1;
        let problem = format!("it has {} segments; a bare program may have {most}", segments.len());
        return Err(LoadError::Refused { problem });
    }
    let first = segments.first().map_or(0, Segment::address);
    let end = segments.last().map_or(0, |s| u64::from(s.address()) + u64::from(s.size()));
    let start = end.next_multiple_of(16);
    let top = start + u64::from(HEAP_AND_STACK);
    let above = top < 1 << 32;
    // The heap begins directly after the data, as programs that use `_end` expect.
    let joined = above && segments.last().is_some_and(Segment::writable);

    let mut pieces = Vec::with_capacity(segments.len() + 1);
    for (i, segment) in segments.iter().enumerate() {
        let joins = joined && i + 1 == segments.len();
        let size =
            if joins { (top - u64::from(segment.address())) as usize } else { segment.size() as usize };
        // Fresh zeros cost nothing before their first touch.
        let mut bytes = vec![0; size];
        bytes[..segment.bytes().len()].copy_from_slice(segment.bytes());
        pieces.push(Piece { base: segment.address(), bytes, writable: segment.writable() });
    }
    let sp = if above { top as u32 } else { first & !15 };
    if sp < HEAP_AND_STACK {
        let problem = format!("there are no {HEAP_AND_STACK} bytes for a stack above or below the program");
        return Err(LoadError::Refused { problem });
    }
    if !joined {
        let bytes = vec![0; HEAP_AND_STACK as usize];
        pieces.push(Piece { base: sp - HEAP_AND_STACK, bytes, writable: true });
    }
    Ok((pieces, sp))
}
