//! The tests of pcie-bench: latency and bandwidth of a card's access to host memory over PCI Express.
//!
//! A point is a test, its sizes, offsets, window, pattern, and the state of the host's cache. Latencies are differences of
//! timestamps of the card, and a timestamp may have coarse steps. The card's clock and the link's are independent, so each
//! sample begins at another part of a step. Bandwidths count completed transfers after a quarter of them. Source: Neugebauer
//! et al., Understanding PCIe performance for end host networking, SIGCOMM 2018, sections 4 and 5.

mod measure;
mod request;
mod window;

pub use request::{Cache, Pattern, Request, Test};

use crate::{Points, Sweep};
use measure::{Figures, measure};
use nicety::{Environment, Error, Manifest, VERSION};
use nicety_host::pcie::PcieSpec;
use schemars::JsonSchema;
use serde::Serialize;

/// A point of the benchmark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) test: Test,
    pub(crate) pattern: Pattern,
    pub(crate) cache: Cache,
    pub(crate) host_offset: u64,
    pub(crate) card_offset: u64,
    pub(crate) window: u64,
    pub(crate) size: u64,
}

/// The result of a test for one size, offset, window, pattern and state of the cache.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PcieRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// The test, as pcie-bench names it.
    pub test: &'static str,
    /// The pattern of addresses: `seq` or `rand`.
    pub pattern: &'static str,
    /// The state of the host's cache before the test: `hwarm`, `dwarm`, `cold` or `dthrash`.
    pub cache: &'static str,
    /// Offset of each transfer from a line of 64 B of the host, in bytes.
    pub host_offset_bytes: u64,
    /// Offset of each transfer from a line of 64 B of the card, in bytes.
    pub card_offset_bytes: u64,
    /// Size of the window of host memory, in bytes.
    pub window_bytes: u64,
    /// Size of a transfer in bytes.
    pub size_bytes: u64,
    /// Number of measured transfers.
    pub transfers: u64,
    /// Median latency. None for a test of bandwidth, as are the other latencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_ns: Option<f64>,
    /// Mean latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
    /// Minimum latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<f64>,
    /// Maximum latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<f64>,
    /// The latency that 95 % of the samples do not exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95_ns: Option<f64>,
    /// The latency that 99.9 % of the samples do not exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p999_ns: Option<f64>,
    /// Payload bandwidth. None for a test of latency. For `BW_DMA_RW`: of each direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_gbit_per_s: Option<f64>,
    /// Transfers per second. None for a test of latency. For `BW_DMA_RW`: of each direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers_per_s: Option<f64>,
}

/// The benchmark's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Benchmark {
    /// `pcie`.
    Pcie,
}

/// The report of the benchmark `pcie`: one row for each card and point.
pub type Report = Sweep<Row, Benchmark>;

/// Runs the benchmark.
///
/// # Errors
/// When the input is invalid, before any run. When all runs failed: the error of the first one, with its card and point.
pub fn run(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let (cards, plan) = request.resolve()?;
    let mut points = Points::new(environment.progress, cards.len() * plan.len());
    for (nic, _, pcie) in &cards {
        for point in &plan {
            let place = || format!("{nic}, {} of {} B", point.test.name(), point.size);
            points.measure(place, || row(nic, *pcie, point, request.samples, environment));
        }
    }
    let (rows, failed_points) = points.finish()?;
    let manifest = Manifest::of(cards.iter().map(|(nic, card, _)| (nic, card)), &request.overrides);
    Ok(Report { benchmark: Benchmark::Pcie, version: VERSION, manifest, rows, failed_points })
}

fn row(
    nic: &str,
    pcie: PcieSpec,
    point: &Point,
    samples: u64,
    environment: &Environment<'_>,
) -> Result<Row, Error> {
    let Figures { transfers, latencies, rate } = measure(pcie, point, samples, environment)?;
    let latency = |of: fn(&[f64]) -> f64| (!latencies.is_empty()).then(|| of(&latencies));
    Ok(Row {
        nic: nic.to_owned(),
        test: point.test.name(),
        pattern: point.pattern.name(),
        cache: point.cache.name(),
        host_offset_bytes: point.host_offset,
        card_offset_bytes: point.card_offset,
        window_bytes: point.window,
        size_bytes: point.size,
        transfers,
        median_ns: latency(|all| (all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0),
        mean_ns: latency(|all| all.iter().sum::<f64>() / all.len() as f64),
        min_ns: latency(|all| all[0]),
        max_ns: latency(|all| all[all.len() - 1]),
        p95_ns: latency(|all| crate::nearest_rank(all, 950)),
        p999_ns: latency(|all| crate::nearest_rank(all, 999)),
        bandwidth_gbit_per_s: rate.map(|rate| rate * point.size as f64 * 8.0 / 1e9),
        transfers_per_s: rate,
    })
}
