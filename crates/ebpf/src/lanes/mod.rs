//! Rows of operations for a core with several lanes, as hXDP (OSDI 2020) has it: a static schedule of an eBPF program.
//!
//! The core runs a row in a cycle, and no part of it reorders operations. So the schedule decides on every dependence. Section 3 of
//! the paper describes the steps, and section 4.2 the core's rules. [`Switches`] turn each of them off.
//!
//! # The steps
//! - `operation.rs`: operations of a lane, with three operands, accesses of six bytes and constant results.
//! - `blocks.rs`: blocks, ways, live registers; `facts.rs`: pointers, numbers, and bytes of the stack that are 0.
//! - `reduce.rs`, `six.rs`: fewer operations. `rename.rs`: registers for values that would wait for each other.
//! - `effects.rs`: dependences; `place.rs`, `row.rs`: rows and lanes.
//!
//! # Rules
//! - A row reads registers and memory at its begin, and writes them at its end. So an operation may write what its row reads.
//! - A result is there for the next row in its own lane, and one row later in the others. A call, and an exit without a constant, find
//!   results of their own row.
//! - Jumps of a row have the priority of their lanes; the lowest one that is taken decides. A row has at most one helper.
//! - A check of the packet's length takes no lane. It ends the program in front of its row.
//!
//! Programs are those that Linux's verifier takes. One that computes addresses of the stack from those of the packet may behave
//! differently in rows.

mod blocks;
mod effects;
mod facts;
mod operation;
mod place;
mod reduce;
mod rename;
mod row;
mod six;
#[cfg(test)]
mod tests;

pub(crate) use operation::touches_memory;
pub use operation::{Operand, Operation, Registers};
pub use row::{Placed, Row};

use crate::error::ObjectError;
use crate::helper::Helper;
use crate::instruction::CONSTANT_FUNCTION;
use crate::object::Linked;
use crate::op::Op;
use blocks::{Blocks, Node};

/// The most slots of a program: the limit of Linux for users without privileges.
pub const MOST_SLOTS: usize = 4096;
/// The most lanes.
pub const MOST_LANES: u8 = 8;

/// The steps of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Lanes, 1 to [`MOST_LANES`].
    pub lanes: u8,
    /// Jumps in any lane, several in a row; otherwise in lane 0 alone.
    pub branches_in_any_lane: bool,
    /// A result is there for the next row in its own lane alone; otherwise in all.
    pub lane_forwarding: bool,
    /// The core checks the packet's length, without lanes.
    pub remove_checks: bool,
    /// Registers and stack are 0 at the begin, so that zeroing is left out.
    pub remove_zeroing: bool,
    /// Arithmetic with three operands, and new registers for its results.
    pub three_operands: bool,
    /// Loads and stores of six bytes.
    pub six_bytes: bool,
    /// Exits with a constant result.
    pub exit_values: bool,
    /// Operations fill gaps of earlier blocks that run if and only if their own block runs.
    pub movement: bool,
}

impl Switches {
    /// All steps, for a number of lanes.
    pub fn all(lanes: u8) -> Switches {
        Switches {
            lanes,
            branches_in_any_lane: true,
            lane_forwarding: true,
            remove_checks: true,
            remove_zeroing: true,
            three_operands: true,
            six_bytes: true,
            exit_values: true,
            movement: true,
        }
    }

    /// No step that changes operations: rows alone.
    pub fn none(lanes: u8) -> Switches {
        Switches {
            remove_checks: false,
            remove_zeroing: false,
            three_operands: false,
            six_bytes: false,
            exit_values: false,
            movement: false,
            ..Switches::all(lanes)
        }
    }
}

/// The numbers of changes that the steps made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Comparisons with `data_end` that became checks of the core.
    pub checks: usize,
    /// Zeroing that was left out.
    pub zeroing: usize,
    /// Moves that went into arithmetic.
    pub three_operands: usize,
    /// Copies of six bytes.
    pub six_bytes: usize,
    /// Exits with a constant result.
    pub exit_values: usize,
    /// Operations with results that nothing reads any more.
    pub unread: usize,
    /// Values in another register.
    pub renamed: usize,
    /// Operations in rows of an earlier block.
    pub moved: usize,
}

/// A program as rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The rows. The first one runs first.
    pub rows: Vec<Row>,
    /// Slots of the program.
    pub slots: usize,
    /// Changes.
    pub changes: Changes,
}

impl Schedule {
    /// Operations in lanes.
    pub fn operations(&self) -> usize {
        self.rows.iter().map(|row| row.operations().count()).sum()
    }

    /// The static rate of the paper's table 3: slots of the program for each row.
    pub fn slots_per_row(&self) -> f64 {
        self.slots as f64 / self.rows.len() as f64
    }
}

/// Makes the rows of a program.
///
/// # Errors
/// The program has functions of its own, goes on in other programs, or is too long.
///
/// # Panics
/// The number of lanes is 0, or more than [`MOST_LANES`].
pub fn schedule(linked: &Linked, switches: &Switches) -> Result<Schedule, ObjectError> {
    made(linked, switches, place::Memory::InOrder)
}

/// The number of rows if loads and stores depended on registers alone. Such rows may give wrong results, so none are returned.
///
/// # Errors
/// As [`schedule`].
///
/// # Panics
/// As [`schedule`].
pub fn rows_by_registers(linked: &Linked, switches: &Switches) -> Result<usize, ObjectError> {
    Ok(made(linked, switches, place::Memory::Ignored)?.rows.len())
}

fn made(linked: &Linked, switches: &Switches, memory: place::Memory) -> Result<Schedule, ObjectError> {
    assert!((1..=MOST_LANES).contains(&switches.lanes), "{} lanes", switches.lanes);
    check(linked)?;
    let steps = linked.code.steps.iter().zip(&linked.code.slots);
    let nodes: Vec<Node> = steps.map(|(step, &slot)| Node { operation: Operation::of(step), slot }).collect();
    let mut blocks = Blocks::of(nodes);
    blocks.join();
    let mut changes = Changes::default();
    if switches.remove_checks {
        changes.checks = reduce::checks(&mut blocks);
        blocks.join();
        changes.unread += blocks.drop_unread();
    }
    if switches.remove_zeroing {
        changes.zeroing = reduce::zeroing(&mut blocks);
        changes.unread += blocks.drop_unread();
    }
    if switches.six_bytes {
        changes.six_bytes = six::six_bytes(&mut blocks);
    }
    if switches.three_operands {
        changes.three_operands = reduce::three_operands(&mut blocks);
    }
    if switches.exit_values {
        changes.exit_values = reduce::exit_values(&mut blocks);
        changes.unread += blocks.drop_unread();
    }
    if switches.three_operands {
        changes.renamed = rename::rename(&mut blocks);
    }
    let (rows, moved) = place::place(blocks, switches, memory);
    changes.moved = moved;
    Ok(Schedule { rows, slots: linked.slots.len(), changes })
}

/// Refuses programs that the core cannot run.
fn check(linked: &Linked) -> Result<(), ObjectError> {
    let refuse = |step: usize, problem: &str, advice: &str| {
        let place = linked.place(linked.code.slots[step] as usize);
        Err(ObjectError::refused(place, problem, advice))
    };
    if linked.slots.len() > MOST_SLOTS {
        let problem = format!(
            "it has {} instructions, but a core with lanes takes at most {MOST_SLOTS}",
            linked.slots.len()
        );
        return Err(ObjectError::refused(format!("program {}", linked.name), problem, "split the program"));
    }
    for (at, step) in linked.code.steps.iter().enumerate() {
        let kind = linked.slots[linked.code.slots[at] as usize].src;
        match step.op {
            Op::Call => {
                return refuse(
                    at,
                    "it calls a function, but a core with lanes has no stack frames",
                    "declare the function static __always_inline",
                );
            }
            Op::Constant if kind == CONSTANT_FUNCTION => {
                return refuse(at, "it passes a function to a helper", "write a loop instead");
            }
            Op::Helper if step.imm as u32 == Helper::TailCall as u32 => {
                return refuse(
                    at,
                    "it calls bpf_tail_call, but the core has only one program",
                    "call no other program",
                );
            }
            _ => {}
        }
    }
    Ok(())
}
