//! The ends of handlers that are stopped, as texts.

use crate::commands::codes::{Stop, phantom_memory};
use crate::commands::refusals::place;
use crate::programs::application::Bound;
use crate::programs::program::Kind;
use crate::running::{Ended, Running, returned};
use nicety_hpu::{Image, Trap, TrapKind};
use nicety_types::Payload;

/// Returns the result of PsPIN's handlers, which return no code.
pub(super) const fn success(kind: Kind) -> u32 {
    match kind {
        Kind::Header => returned::PROCESS_DATA,
        Kind::Payload | Kind::Completion => returned::SUCCESS,
    }
}

/// Returns the end of a handler that was stopped at an instruction, possibly by its bound.
pub(super) fn stopped_within(running: &Running, trap: &Trap, bound: Bound) -> Ended {
    let budget = match bound {
        _ if !matches!(trap.kind, TrapKind::CycleLimit { .. }) => return stopped(running, trap),
        Bound::CycleLimit => return stopped(running, trap),
        Bound::Run(cycles) => format!("{cycles} cycles for a run"),
        Bound::Total(cycles) => format!("{cycles} cycles in all"),
    };
    let name = running.application().name();
    let place = match &trap.location {
        Some(location) => format!("{location} (pc {:#010x})", trap.pc),
        None => format!("at pc {:#010x}", trap.pc),
    };
    Ended::OutOfBudget(format!("the budget of application '{name}' is used up, {budget}, {place}"))
}

/// Returns the end of a handler that was stopped at an instruction.
pub(super) fn stopped(running: &Running, trap: &Trap) -> Ended {
    let packet = running.memory.phantom.as_ref().map_or(0, Payload::len);
    let phantom = trap.address().is_some_and(|address| running.memory.is_phantom(address, 1));
    Ended::Stopped(match phantom {
        true => format!(
            "the payload is phantom, {packet} bytes long without contents, and a handler cannot touch it; send it from \
             real memory: {trap}"
        ),
        false => trap.to_string(),
    })
}

/// Returns the end of a handler that was stopped in a command.
pub(super) fn stop_in_command(running: &Running, image: &Image, pc: u32, stop: Stop) -> Ended {
    match stop {
        Stop::Trap(kind) => stopped(running, &image.trap(pc, kind)),
        Stop::PhantomMemory { len } => Ended::Stopped(phantom_memory(len)),
        Stop::BeyondFrame(why) => Ended::Stopped(format!("{why}, at {}", place(image, pc))),
    }
}
