//! From runs to a row.

use super::search::{keeps_up, search};
use super::trial::{Place, Trial};
use crate::object::Mode;
use nicety::Error;
use nicety_ebpf::report::maps::Dumped;
use nicety_nic_ethernet::XdpReport;
use nicety_types::{Duration, Histogram};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Latency of frames. It is the time from a frame's last byte at the card until its verdict is carried out. Then it is dropped, on the
/// wire, or with the protocols or a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "XdpLatency")]
pub struct Latency {
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
    /// 99.9th percentile.
    pub p999_ns: f64,
    /// Maximum.
    pub max_ns: f64,
}

impl Latency {
    /// Returns the latency of frames, given their times in picoseconds.
    pub(crate) fn of(times: &Histogram) -> Latency {
        let ns = |per_mille| times.percentile(per_mille) as f64 / 1000.0;
        Latency {
            mean_ns: times.mean() / 1000.0,
            p50_ns: ns(500),
            p99_ns: ns(990),
            p999_ns: ns(999),
            max_ns: times.max() as f64 / 1000.0,
        }
    }
}

/// The load of a part of host or card.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "XdpPart")]
pub struct PartLoad {
    /// The part, such as `CPU 3`.
    pub part: String,
    /// The fraction of time in which it was busy.
    pub load: f64,
}

/// A program in the driver of a host.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "XdpRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// CPUs that take frames.
    pub cpus: u64,
    /// The place of the program.
    pub mode: Mode,
    /// The traffic.
    pub traffic: String,
    /// Frames of the traffic.
    pub offered: u64,
    /// Their bytes, without check sequences.
    pub offered_bytes: u64,
    /// Their rate, in frames per second.
    pub offered_pps: f64,
    /// Frames lost at that rate. They found no buffer in a receive ring, a full packet buffer, no descriptor to leave by, or a full
    /// queue of a CPU.
    pub lost: u64,
    /// Of those, frames that no program saw: without a buffer, or at the full packet buffer.
    pub lost_before: u64,
    /// Frames per second with a verdict at the traffic's rate.
    pub taken_pps: f64,
    /// Verdicts at the traffic's rate, and the programs' work.
    pub verdicts: XdpReport,
    /// The highest rate without loss, at most the traffic's; none if every rate loses frames. The following figures are of the run at
    /// this rate, or else at the traffic's.
    pub lossless_pps: Option<f64>,
    /// CPU time of the host for a frame.
    pub cpu_ns_per_frame: f64,
    /// Instructions of eBPF for a frame.
    pub instructions_per_frame: f64,
    /// Latency.
    pub latency: Latency,
    /// The part with the highest load.
    pub bottleneck: PartLoad,
    /// Loads of all parts.
    pub parts: Vec<PartLoad>,
    /// Entries of the maps that the request names. The caller writes them to files.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(skip)]
    pub maps: BTreeMap<String, Vec<Dumped>>,
}

impl Row {
    /// Frames by verdict at the traffic's rate.
    pub(crate) fn by_verdict(&self) -> BTreeMap<String, u64> {
        let XdpReport { passed, dropped, transmitted, redirected, aborted, invalid, .. } = self.verdicts;
        let all = [
            ("XDP_ABORTED", aborted - invalid),
            ("XDP_DROP", dropped),
            ("XDP_PASS", passed),
            ("XDP_TX", transmitted),
            ("XDP_REDIRECT", redirected),
        ];
        all.into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name.to_owned(), count))
            .collect()
    }
}

/// Measures a row.
///
/// # Errors
/// A run fails.
pub(super) fn row(place: &Place<'_>) -> Result<Row, Error> {
    let given = place.run(1.0)?;
    let (found, best);
    let lossless = match keeps_up(place, &given) {
        true => Some(&given),
        false => {
            found = search(place, &given)?;
            found.as_ref()
        }
    };
    best = lossless.unwrap_or(&given);
    let parts = parts(best);
    let bottleneck = parts.iter().cloned().reduce(|a, b| if b.load > a.load { b } else { a });
    let frames = best.progress.through.max(1) as f64;
    Ok(Row {
        maps: given.maps.clone(),
        nic: place.card.name.clone(),
        cpus: place.card.cpus,
        mode: place.request.mode,
        traffic: place.request.traffic.clone(),
        offered: given.offered.packets,
        offered_bytes: given.offered.bytes,
        offered_pps: given.offered_pps(),
        lost: given.lost(),
        lost_before: given.lost_before(),
        taken_pps: given.through_pps(),
        verdicts: given.counts.clone(),
        lossless_pps: lossless.map(Trial::offered_pps),
        cpu_ns_per_frame: best.cpu_time.ns() / frames,
        instructions_per_frame: best.counts.instructions as f64 / best.counts.frames.max(1) as f64,
        latency: Latency::of(&best.latency),
        bottleneck: bottleneck.unwrap_or(PartLoad { part: "none".to_owned(), load: 0.0 }),
        parts,
    })
}

/// The loads of CPUs with frames, of the bus and of the link.
fn parts(trial: &Trial) -> Vec<PartLoad> {
    let span = trial.span().ps().max(1) as f64;
    let of =
        |(part, busy): (&str, Duration)| PartLoad { part: part.to_owned(), load: busy.ps() as f64 / span };
    let mut parts: Vec<PartLoad> = trial.work().map(of).collect();
    let wire = trial.offered.wire.ps() as f64 / trial.offered.time.ps().max(1) as f64;
    parts.push(PartLoad { part: "link, in".to_owned(), load: wire });
    parts
}
