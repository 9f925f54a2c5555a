//! From runs to a row.

use super::Given;
use super::trial::Trial;
use crate::xdp::{Latency, PartLoad};
use nicety_ebpf::report::maps::Dumped;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A program on a core that executes eBPF itself.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "EbpfCoreRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// The program.
    pub program: String,
    /// The traffic.
    pub traffic: String,
    /// Frames of the traffic.
    pub offered: u64,
    /// Their bytes, without check sequences.
    pub offered_bytes: u64,
    /// Their rate, in frames per second.
    pub offered_pps: f64,
    /// Frames that found the input queue full at that rate.
    pub lost: u64,
    /// Frames with a verdict per second, at the traffic's rate.
    pub taken_pps: f64,
    /// Frames by verdict at the traffic's rate.
    pub verdicts: BTreeMap<String, u64>,
    /// The highest rate without loss, at most the traffic's; none if every rate loses frames. Latency and loads are of the run at this
    /// rate, or else at the traffic's.
    pub lossless_pps: Option<f64>,
    /// Lanes of the core.
    pub lanes: u64,
    /// Instructions of eBPF; a 64-bit constant counts as two.
    pub slots: u64,
    /// Rows of the program.
    pub rows: u64,
    /// Instructions of the program for each of its rows.
    pub slots_per_row: f64,
    /// Rows that run for a frame, mean.
    pub rows_per_frame: f64,
    /// Instructions of eBPF that a frame takes one after another, mean.
    pub instructions_per_frame: f64,
    /// Those for each row that runs.
    pub instructions_per_row: f64,
    /// Operations in lanes for each row that runs.
    pub operations_per_row: f64,
    /// Cycles of the core for a frame, mean.
    pub cycles_mean: f64,
    /// Of those, cycles in which the core waits for bytes of the frame.
    pub waiting_cycles_mean: f64,
    /// Of those, cycles of helpers beside their rows.
    pub helper_cycles_mean: f64,
    /// Latency from a frame's last byte on the wire to its verdict, or to its last byte out of the core.
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

/// The row of a run at the traffic's rate, and of one at a lower rate if that loses frames.
pub(super) fn row(given: &Given<'_>, at_rate: &Trial, lower: Option<&Trial>) -> Row {
    let schedule = given.load().map(|program| (program.name().to_owned(), program.schedule().clone()));
    let (program, schedule) = schedule.expect("it ran");
    let best = lower.unwrap_or(at_rate);
    let lossless = if at_rate.keeps_up() { Some(at_rate) } else { lower };
    let frames = at_rate.taken().max(1) as f64;
    let mean = |sum: u64| sum as f64 / frames;
    let parts = parts(best);
    let highest = parts.iter().cloned().reduce(|a, b| if b.load > a.load { b } else { a });
    Row {
        nic: given.nic.to_owned(),
        program,
        traffic: given.traffic.to_owned(),
        offered: at_rate.offered,
        offered_bytes: at_rate.offered_bytes,
        offered_pps: at_rate.offered_pps(),
        lost: at_rate.lost,
        taken_pps: at_rate.taken_pps(),
        verdicts: at_rate.verdicts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        lossless_pps: lossless.map(Trial::offered_pps),
        lanes: given.spec.core.switches.lanes.into(),
        slots: schedule.slots as u64,
        rows: schedule.rows.len() as u64,
        slots_per_row: schedule.slots_per_row(),
        rows_per_frame: mean(at_rate.sums.rows),
        instructions_per_frame: mean(at_rate.sums.instructions),
        instructions_per_row: at_rate.sums.instructions as f64 / at_rate.sums.rows.max(1) as f64,
        operations_per_row: at_rate.sums.operations as f64 / at_rate.sums.rows.max(1) as f64,
        cycles_mean: mean(at_rate.sums.cycles),
        waiting_cycles_mean: mean(at_rate.sums.waiting),
        helper_cycles_mean: mean(at_rate.sums.helpers),
        latency: Latency::of(&best.latency),
        bottleneck: highest.unwrap_or(PartLoad { part: "none".to_owned(), load: 0.0 }),
        parts,
        maps: at_rate.maps.clone(),
    }
}

fn parts(trial: &Trial) -> Vec<PartLoad> {
    let span = trial.end.max(trial.lasts).ps().max(1) as f64;
    let of = |part: &str, busy: nicety_types::Duration| PartLoad {
        part: part.to_owned(),
        load: busy.ps() as f64 / span,
    };
    vec![of("eBPF core", trial.core_busy), of("emission", trial.emission_busy), of("link, in", trial.wire)]
}
