//! The effect of each MPI call on a schedule.

use super::collective::Call;
use super::line::{Fault, Fields};
use super::program::Program;
use crate::schedule::Kind;

/// Calls that cannot be translated. They move bytes or wait in a way that a trace does not show, or that GOAL does not have.
const UNKNOWN: [&str; 27] = [
    "Accumulate",
    "Alltoallw",
    "Cancel",
    "Comm_accept",
    "Comm_connect",
    "Comm_join",
    "Comm_spawn",
    "Comm_spawn_multiple",
    "Compare_and_swap",
    "Fetch_and_op",
    "Get",
    "Get_accumulate",
    "Ialltoallw",
    "Improbe",
    "Imrecv",
    "Intercomm_create",
    "Intercomm_merge",
    "Mprobe",
    "Mrecv",
    "Put",
    "Raccumulate",
    "Rget",
    "Rget_accumulate",
    "Rput",
    "Start",
    "Startall",
    "Comm_create_group",
];

/// Adds the effect of a call to the schedule.
///
/// # Errors
/// When the line does not have the fields of this call, or the call cannot be translated.
pub(super) fn take(call: &Fields<'_>, program: &mut Program<'_>) -> Result<(), Fault> {
    program.unsaid.total += 1;
    match call.name {
        "Init" | "Init_thread" => return program.init(call),
        // These calls are allowed at any time.
        "Initialized" | "Finalized" | "Get_version" | "Get_library_version" => return Ok(()),
        _ => program.check_running(call)?,
    }
    if call.name == "Finalize" {
        call.expect(3)?;
        return program.finalize(call);
    }
    if let Some(collective) = Call::of(call)? {
        program.compute(call)?;
        program.collective(collective, call)?;
        return program.go_on(call);
    }
    match call.name {
        "Send" | "Bsend" | "Ssend" | "Rsend" => blocking(call, program, Kind::Send, 9)?,
        "Recv" => blocking(call, program, Kind::Recv, 10)?,
        "Isend" | "Ibsend" | "Issend" | "Irsend" => nonblocking(call, program, Kind::Send)?,
        "Irecv" => nonblocking(call, program, Kind::Recv)?,
        "Sendrecv" => {
            call.expect(15)?;
            program.compute(call)?;
            let sent = program.message(Kind::Send, call, 3, 12)?;
            let got = program.message(Kind::Recv, call, 8, 12)?;
            program.wait_for(&[sent, got])?;
        }
        "Sendrecv_replace" => {
            call.expect(12)?;
            program.compute(call)?;
            let sent = program.message(Kind::Send, call, 3, 9)?;
            let got = program.message_of(Kind::Recv, call, (3, 4), 7, 9)?;
            program.wait_for(&[sent, got])?;
        }
        "Wait" => wait(call, program, 5, None, true)?,
        "Waitall" => wait(call, program, 6, Some(2), true)?,
        "Waitany" => wait(call, program, 7, Some(2), false)?,
        "Waitsome" => wait(call, program, 8, Some(2), false)?,
        // In the schedule, the receive that follows waits for the message.
        "Probe" => {
            call.expect(7)?;
            program.compute(call)?;
        }
        "Request_free" => {
            call.expect(4)?;
            program.forget(call.address(2)?);
            return Ok(());
        }
        "Test" | "Testall" | "Testany" | "Testsome" | "Iprobe" => {
            unsaid(call, program);
            return Ok(());
        }
        name if is_unknown(name) => {
            return Err(Fault::new(0, format!("MPI_{name} cannot be part of a schedule")));
        }
        // Time in these calls belongs to the program itself.
        _ => return Ok(()),
    }
    program.go_on(call)
}

fn is_unknown(name: &str) -> bool {
    let prefixes = ["Win_", "Neighbor_", "Ineighbor_"];
    UNKNOWN.contains(&name)
        || name.ends_with("_init")
        || prefixes.iter().any(|prefix| name.starts_with(prefix))
}

fn unsaid(call: &Fields<'_>, program: &mut Program<'_>) {
    *program.unsaid.calls.entry(format!("MPI_{}", call.name)).or_default() += 1;
}

fn blocking(call: &Fields<'_>, program: &mut Program<'_>, kind: Kind, fields: usize) -> Result<(), Fault> {
    call.expect(fields)?;
    program.compute(call)?;
    let message = program.message(kind, call, 3, 7)?;
    program.wait_for(&[message])
}

fn nonblocking(call: &Fields<'_>, program: &mut Program<'_>, kind: Kind) -> Result<(), Fault> {
    call.expect(10)?;
    program.compute(call)?;
    let message = program.message(kind, call, 3, 7)?;
    program.post(message, 8, call)
}

/// Waits for the requests in a list. If `all`, waits for all of them; otherwise for one. The field before the list may have the
/// number of requests.
fn wait(
    call: &Fields<'_>,
    program: &mut Program<'_>,
    fields: usize,
    count: Option<usize>,
    all: bool,
) -> Result<(), Fault> {
    call.expect(fields)?;
    program.compute(call)?;
    let requests = count.map_or(Ok(1), |field| call.count(field))?;
    if !all && requests > 1 {
        unsaid(call, program);
    }
    program.wait(requests, call.address(count.map_or(2, |field| field + 1))?, all);
    Ok(())
}
