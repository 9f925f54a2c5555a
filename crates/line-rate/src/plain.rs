//! The packets of a check or of a profile without either, to measure its cost.

use crate::check::handlers_of;
use crate::request::Request;
use crate::rig::Rig;
use crate::tested::{OnHost, Tested};
use nicety::{Environment, Error};
use serde::Serialize;

/// The work of the handlers in a plain run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PlainReport {
    /// Runs of handlers.
    pub runs: u64,
}

/// Sends the packets of a check once, or those of the first run of a line-rate check, which are those of a profile.
///
/// # Errors
/// Invalid input, or a run that fails.
pub fn run_plain(
    request: &Request,
    environment: &Environment<'_>,
    of_profile: bool,
) -> Result<PlainReport, Error> {
    let (cards, packet_sizes) = request.resolve()?.with_processors()?;
    let [(nic, card)] = &cards[..] else {
        return Err(Error::Input("--nic: a plain run uses one card; name one card".to_owned()));
    };
    let handlers = handlers_of(request, environment, nic, card)?;
    let rig = Rig {
        request,
        environment,
        card,
        handlers: &handlers,
        packet_bytes: packet_sizes[0],
        place: nic,
        profiler: None,
        rough: false,
    };
    if of_profile {
        let (row, _) = rig.first_run()?;
        return Ok(PlainReport { runs: row.packets });
    }
    let tested = Tested::of(card)?;
    let (mut cluster, _memory) = rig.packets_once(&tested)?;
    let host = OnHost::of(cluster.host(1), &tested)?;
    cluster.run()?;
    Ok(PlainReport { runs: host.processors().handler_statistics().runs })
}
