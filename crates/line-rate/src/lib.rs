//! The line-rate check: whether handlers sustain the line rate. A generator sends packets to a card as fast as the link allows,
//! and the card's handlers process them.
//!
//! The line rate is a packet every max(g, bytes x G). Here g is the gap of the card's engine between the starts of messages,
//! applied to packets. A program sustains it if a packet's time on each resource, handler processors first, is at most the time
//! that becomes free between two packets. This time is measured, including waits for commands.
//!
//! With traffic ([`nicety_traffic`]) packets are messages of one packet each, with a frame as payload, and the line rate is the
//! traffic's. Figures are counted as packets arrive (`meter.rs`), so that their memory does not grow (`offer.rs`).
//!
//! [`plan`] lists the programs to compile, and [`run`] returns a [`Report`] with a [`Row`] for each card and packet size.
//!
//! Each file imports only files before it:
//!
//! | files | content |
//! |---|---|
//! | `tested`, `request` | cards with handlers, and the request |
//! | `unmodelled`, `load`, `memory` | figures of a run that the card keeps |
//! | `growth`, `part`, `verdict`, `row` | rows of the report |
//! | `demand`, `limit`, `parts`, `measured`, `meter` | from the figures of a run to its row |
//! | `shares`, `speed`, `rig`, `losses`, `offer` | runs with equal packets, and with traffic |
//! | `burst`, `search`, `faster` | runs behind a burst, and at other rates |
//! | `check`, `sensitivity` | the check of a card, and of its assumed values |
//! | `xdp` | XDP programs in a host's driver |

mod burst;
mod check;
mod demand;
mod faster;
mod growth;
mod limit;
mod load;
mod losses;
mod measured;
mod memory;
mod meter;
mod offer;
mod part;
mod parts;
mod request;
mod rig;
mod row;
mod search;
mod sensitivity;
mod shares;
mod speed;
mod tested;
mod unmodelled;
mod verdict;
pub mod xdp;

pub use growth::GrowthRow;
pub use load::{LockRow, RetryRow};
pub use memory::{LevelRow, MemoryRow, WaitingLineRow};
pub use part::Part;
pub use request::{PlannedHandlers, Request, plan};
pub use row::{
    BurstRow, Dispositions, HandlerRow, Loads, PortRow, Row, SensitiveRow, SensitivityRow, StoppedRow,
    TrafficRow, TrialRow, VariedRow,
};
pub use tested::CardForXdp;
pub use unmodelled::UnmodelledRow;
pub use verdict::{PartRow, Verdict};

use check::{handlers_of, point_name};
use nicety::record::Recording;
use nicety::{Environment, Error, Manifest, VERSION};
use nicety_bench::{PointFailure, Points, Printed};
use request::Resolved;
use rig::Rig;
use schemars::JsonSchema;
use sensitivity::StudiedCard;
use serde::Serialize;
use std::iter;

/// The benchmark's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Benchmark {
    /// `handlers`.
    Handlers,
}

/// The results of a line-rate check: one row for each card and packet size.
pub type Report = nicety_bench::Report<Row, Manifest, Benchmark>;

/// Runs a line-rate check, and passes on the recording of its first row if `recorded` requests it. The keys of the [`nicety_bench::Plan`] are
/// those of the compiled handlers.
///
/// # Errors
/// Invalid input before anything runs; the error of the first run if all failed, such as a handler's trap, with its card and
/// packet size.
pub fn run(
    request: &Request,
    environment: &Environment<'_>,
    recorded: Option<&dyn Fn(Recording)>,
) -> Result<Report, Error> {
    let (environment, printed) = &Printed::count(environment);
    let Resolved { cards, packet_sizes } = request.resolve()?;
    let mut handlers = Vec::new();
    for (nic, card) in &cards {
        handlers.push(handlers_of(request, environment, nic, card)?);
    }
    let studied: Vec<StudiedCard<'_>> = match request.sensitivity {
        true => iter::zip(&request.nics, iter::zip(&cards, &handlers))
            .map(|(path, ((nic, card), handlers))| {
                let xdp = nicety_xdp::Loaded::is_xdp(&handlers.image);
                StudiedCard { path, nic, card, xdp }
            })
            .collect(),
        false => Vec::new(),
    };
    let total = cards.len() * packet_sizes.len();
    let runs = sensitivity::count(&studied, packet_sizes.len());
    let progress = |done, _| (environment.progress)(done, total + runs);
    let mut points = Points::new(&progress, total);
    let mut failures = Vec::new();
    for ((nic, card), handlers) in cards.iter().zip(&handlers) {
        for &packet_bytes in &packet_sizes {
            let recorded = recorded.filter(|_| points.rows().is_empty());
            let name = format!("{nic}, {}", point_name(request, packet_bytes));
            let rig = Rig { request, environment, card, handlers, packet_bytes, place: &name, rough: false };
            // An error of traffic names the traffic.
            let place = || match request.traffic.is_empty() {
                true => name.clone(),
                false => nic.clone(),
            };
            points.measure(place, || {
                let (row, failed) = rig.measure(recorded)?;
                failures.extend(failed.into_iter().map(|failure| PointFailure {
                    nic: nic.clone(),
                    point: point_name(request, packet_bytes),
                    failure,
                }));
                Ok(Row { nic: nic.clone(), ..row })
            });
        }
    }
    let (mut rows, failed_points) = points.finish()?;
    if !studied.is_empty() {
        // Failed points are not studied. Their runs count as finished.
        let progress = |done, of| (environment.progress)(total + runs - of + done, total + runs);
        sensitivity::study(&mut rows, &failures, &studied, request, environment, &progress)?;
    }
    Ok(Report {
        benchmark: Benchmark::Handlers,
        version: VERSION,
        seed: request.seed,
        manifest: Manifest::of(cards.iter().map(|(nic, card)| (nic, card)), &request.overrides),
        rows,
        failed_points,
        failures,
        handler_lines: printed.lines(),
    })
}
