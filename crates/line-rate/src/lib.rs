//! The line-rate check: whether handlers sustain the line rate. A generator sends packets to a card as fast as the link allows,
//! and the card's handlers process them.
//!
//! The line rate is a packet every max(g, bytes x G). Here g is the gap of the card's engine between the starts of messages,
//! applied to packets. A program sustains it if a packet's time on each resource, handler cores first, is at most the time
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
//! | `tested`, `object`, `request` | cards with handlers, an eBPF object, and the request |
//! | `unmodelled`, `load`, `memory` | figures of a run that the card keeps |
//! | `growth`, `part`, `verdict`, `row` | rows of the report |
//! | `demand`, `limit`, `parts`, `measured`, `meter` | from the figures of a run to its row |
//! | `shares`, `speed`, `profiler`, `rig`, `losses`, `offer` | runs with equal packets, and with traffic |
//! | `burst`, `search`, `faster` | runs behind a burst, and at other rates |
//! | `check`, `sensitivity` | the check of a card, and of its assumed values |
//! | `profile` | the cycles of handlers by instruction, line and function |
//! | `checked`, `processes` | handlers, and processes of flow processors, under the checker |
//! | `plain` | the same packets without checker or profile |
//! | `debug`, `debugged` | handlers, and processes of flow processors, under a debugger |
//! | `frame` | the bytes of a packet of the traffic |
//! | `losslessly` | the search for the highest rate without loss, for the next two |
//! | `xdp` | XDP programs in a host's driver |
//! | `hxdp` | XDP programs on a core that executes eBPF |
//! | `flow` | XDP programs on microengines |
//! | `places` | one table of an XDP program on cards and in drivers |

mod burst;
mod check;
mod checked;
mod debug;
mod debugged;
mod demand;
mod faster;
mod flow;
mod frame;
mod growth;
mod hxdp;
mod limit;
mod load;
mod losses;
mod losslessly;
mod measured;
mod memory;
mod meter;
mod object;
mod offer;
mod part;
mod parts;
mod places;
mod plain;
pub mod processes;
pub mod profile;
mod profiler;
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

pub use checked::{CheckReport, FindingCapture, SearchReport, check as check_handlers};
pub use debug::{DebugReport, debug};
pub use debugged::{EndOfSession, ProcessSession};
pub use flow::Row as FlowProcessorRow;
pub use frame::frame;
pub use growth::GrowthRow;
pub use hxdp::{
    DumpReport, ListedRow, Row as EbpfCoreRow, RowsReport, dump as xdp_dump_rows, rows as xdp_rows,
};
pub use load::{LockRow, RetryRow};
pub use memory::{LevelRow, MemoryRow, WaitingLineRow};
pub use object::XdpObject;
pub use part::Part;
pub use places::{Place, PlaceRow};
pub use plain::{PlainReport, run_plain};
pub use request::{PlannedHandlers, Request, plan};
pub use row::{
    BurstRow, Dispositions, HandlerRow, Loads, PortRow, Row, SensitiveRow, SensitivityRow, StoppedRow,
    TrafficRow, TrialRow, VariedRow,
};
pub use unmodelled::UnmodelledRow;
pub use verdict::{PartRow, Verdict};

use check::{handlers_of, point_name};
use nicety::cards::Card;
use nicety::record::Recording;
use nicety::{Environment, Error, Handlers, Manifest, VERSION};
use nicety_bench::{PointFailure, Points, Printed};
use places::{Placed, in_drivers, places};
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The results on cards with handler cores.
    #[serde(flatten)]
    pub on_cards: nicety_bench::Report<Row, Manifest, Benchmark>,
    /// For an XDP program, the results in drivers of hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drivers: Vec<xdp::Row>,
    /// For an XDP program, the results on cores that execute eBPF themselves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ebpf_cores: Vec<EbpfCoreRow>,
    /// For an XDP program, the results on microengines of network flow processors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flow_processors: Vec<FlowProcessorRow>,
    /// For an XDP program, one table of all places, in the order of the cards as given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceRow>,
}

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
    let Resolved { cards, drivers, order, packet_sizes } = request.resolve()?;
    let mut handlers = Vec::new();
    for (nic, card) in &cards {
        handlers.push(handlers_of(request, environment, nic, card)?);
    }
    let in_drivers = in_drivers(request, environment, &drivers, &packet_sizes)?;
    let studied = studied(request, &cards, &handlers);
    let total = cards.len() * packet_sizes.len() + in_drivers.len();
    let runs = sensitivity::count(&studied, packet_sizes.len());
    let progress = |done, _| (environment.progress)(done, total + runs);
    let mut points = Points::new(&progress, total);
    let mut failures = Vec::new();
    for ((nic, card), handlers) in cards.iter().zip(&handlers) {
        for &packet_bytes in &packet_sizes {
            let recorded = recorded.filter(|_| points.rows().is_empty());
            let name = format!("{nic}, {}", point_name(request, packet_bytes));
            let rig = Rig {
                request,
                environment,
                card,
                handlers,
                packet_bytes,
                place: &name,
                profiler: None,
                rough: false,
            };
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
                Ok(Measured::OnCores(Box::new(Row { nic: nic.clone(), ..row })))
            });
        }
    }
    for program in &in_drivers {
        let measure = || {
            Ok(match program.measure(environment)? {
                Placed::InDriver(row) => Measured::InDriver(row),
                Placed::OnEbpfCore(row) => Measured::OnEbpfCore(row),
                Placed::OnFlowProcessor(row) => Measured::OnFlowProcessor(row),
            })
        };
        points.measure(|| program.point.clone(), measure);
    }
    let (measured, failed_points) = points.finish()?;
    let Split { mut rows, drivers: drivers_rows, ebpf_cores, flow_processors } = split(measured);
    if !studied.is_empty() {
        // Failed points are not studied. Their runs count as finished.
        let progress = |done, of| (environment.progress)(total + runs - of + done, total + runs);
        sensitivity::study(&mut rows, &failures, &studied, request, environment, &progress)?;
    }
    let places = match request.xdp {
        Some(_) => places(&rows, (&drivers_rows, &ebpf_cores, &flow_processors), &order),
        None => Vec::new(),
    };
    let all = cards.iter().chain(drivers.iter().map(|(_, card)| card)).map(|(nic, card)| (nic, card));
    let on_cards = nicety_bench::Report {
        benchmark: Benchmark::Handlers,
        version: VERSION,
        seed: request.seed,
        manifest: Manifest::of(all, &request.overrides),
        rows,
        failed_points,
        failures,
        handler_lines: printed.lines(),
    };
    Ok(Report { on_cards, drivers: drivers_rows, ebpf_cores, flow_processors, places })
}

/// The cards of a study of sensitivity, if the request asks for one.
fn studied<'a>(
    request: &'a Request,
    cards: &'a [(String, Card)],
    handlers: &[Handlers],
) -> Vec<StudiedCard<'a>> {
    if !request.sensitivity {
        return Vec::new();
    }
    let tested = iter::zip(&request.nics, iter::zip(cards, handlers));
    tested
        .map(|(path, ((nic, card), handlers))| {
            let xdp = nicety_xdp::Loaded::is_xdp(&handlers.image);
            StudiedCard { path, nic, card, xdp }
        })
        .collect()
}

/// The result of a point.
enum Measured {
    OnCores(Box<Row>),
    InDriver(Box<xdp::Row>),
    OnEbpfCore(Box<EbpfCoreRow>),
    OnFlowProcessor(Box<FlowProcessorRow>),
}

/// The results by place.
#[derive(Default)]
struct Split {
    rows: Vec<Row>,
    drivers: Vec<xdp::Row>,
    ebpf_cores: Vec<EbpfCoreRow>,
    flow_processors: Vec<FlowProcessorRow>,
}

fn split(measured: Vec<Measured>) -> Split {
    let mut split = Split::default();
    for point in measured {
        match point {
            Measured::OnCores(row) => split.rows.push(*row),
            Measured::InDriver(row) => split.drivers.push(*row),
            Measured::OnEbpfCore(row) => split.ebpf_cores.push(*row),
            Measured::OnFlowProcessor(row) => split.flow_processors.push(*row),
        }
    }
    split
}
