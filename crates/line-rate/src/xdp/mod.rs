//! XDP programs in a host's driver under traffic: the highest rate without loss, and the cost of a frame.
//!
//! A generator sends frames to a host at the rate of the traffic. Other rates follow, to find the highest one that loses no frame.
//! Nothing holds the generator up: the card drops frames that find its packet buffer or a receive ring full.
//!
//! | file | content |
//! |---|---|
//! | `request.rs` | cards, program, traffic, numbers of CPUs |
//! | `trial.rs` | one run at one rate |
//! | `search.rs` | the highest rate without loss |
//! | `row.rs` | from runs to a row |

mod request;
mod row;
mod search;
mod trial;

pub use crate::object::{Entries, Mode};
pub use request::Request;
pub use row::{Latency, PartLoad, Row};

use nicety::{Environment, Error, Manifest, VERSION};
use nicety_bench::Points;
use nicety_ebpf::Object;
use nicety_ebpf::report::maps::set_sizes;
use row::row;
use schemars::JsonSchema;
use serde::Serialize;
use trial::Place;

/// The benchmark's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Benchmark {
    /// `xdp`.
    Xdp,
}

/// The results: one row for each card and number of CPUs.
pub type Report = nicety_bench::Report<Row, Manifest, Benchmark>;

/// Checks a program of an object, its maps and the traffic, without a run.
///
/// # Errors
/// They are wrong for one of the cards.
pub(crate) fn check(object: &[u8], request: &Request, environment: &Environment<'_>) -> Result<(), Error> {
    let (object, cards) = (read(object, request)?, request.resolve()?);
    cards.iter().try_for_each(|card| Place { request, environment, card, object: &object }.check())
}

fn read(object: &[u8], request: &Request) -> Result<Object, Error> {
    let mut object = Object::read(object).map_err(|error| Error::Input(error.to_string()))?;
    let given: Vec<_> = request.maps.iter().map(|map| (map.map.clone(), map.json.clone())).collect();
    set_sizes(&mut object, &given)
        .map_err(|(name, problem)| Error::Input(format!("map {name}: {problem}")))?;
    Ok(object)
}

/// Runs a program of an object in the drivers of hosts.
///
/// # Errors
/// Invalid input before anything runs; the error of the first run if all failed, such as a trap.
pub fn run(object: &[u8], request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let object = read(object, request)?;
    let cards = request.resolve()?;
    let places: Vec<Place<'_>> =
        cards.iter().map(|card| Place { request, environment, card, object: &object }).collect();
    for place in &places {
        place.check()?;
    }
    let mut points = Points::new(environment.progress, places.len());
    for place in &places {
        points.measure(|| format!("{}, --cpus {}", place.card.name, place.card.cpus), || row(place));
    }
    let (rows, failed_points) = points.finish()?;
    Ok(Report {
        benchmark: Benchmark::Xdp,
        version: VERSION,
        seed: request.seed,
        manifest: Manifest::of(
            cards.iter().filter(|card| card.is_first).map(|card| (&card.name, &card.card)),
            &request.overrides,
        ),
        rows,
        failed_points,
        failures: Vec::new(),
        handler_lines: Default::default(),
    })
}
