//! From runs to a row.

use super::Given;
use super::trial::Trial;
use crate::xdp::{Latency, PartLoad};
use nicety::nfp::xdp::{contexts, microengines};
use nicety_xdp::XdpFigures;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A program on the microengines of a network flow processor.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "FlowProcessorRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// The traffic.
    pub traffic: String,
    /// Frames of the traffic.
    pub offered: u64,
    /// Their bytes, without check sequences.
    pub offered_bytes: u64,
    /// Their rate, in frames per second.
    pub offered_pps: f64,
    /// Frames that found no buffer and a full queue at that rate.
    pub lost: u64,
    /// Frames with a verdict per second, at the traffic's rate.
    pub taken_pps: f64,
    /// Frames by verdict at the traffic's rate. Other numbers and redirects count as `XDP_ABORTED`.
    pub verdicts: BTreeMap<String, u64>,
    /// The highest rate without loss, at most the traffic's; none if every rate loses frames. Latency and loads are of the run at this
    /// rate, or else at the traffic's.
    pub lossless_pps: Option<f64>,
    /// Microengines that run the program.
    pub microengines: u64,
    /// Contexts that run the program.
    pub contexts: u64,
    /// Instructions of a context for a frame, with the firmware's path and helpers, mean.
    pub instructions_per_frame: f64,
    /// Cycles in which a context computes for a frame, mean.
    pub cycles_mean: f64,
    /// References of a context to memories outside the microengine for a frame, mean.
    pub references_per_frame: f64,
    /// Latency from a frame's last byte on the wire to its end.
    pub latency: Latency,
    /// The part with the highest load.
    pub bottleneck: PartLoad,
    /// Loads of all parts. Those of microengines and contexts are means, those of CLS and CTM of the busiest island.
    pub parts: Vec<PartLoad>,
    /// Figures of the program. The caller, which has the object, sets them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xdp: Option<XdpFigures>,
    /// The program's variables after the run at the traffic's rate.
    #[serde(skip)]
    #[schemars(skip)]
    pub program_data: Option<Vec<u8>>,
}

/// The row of a run at the traffic's rate, and of one at a lower rate if that loses frames.
pub(super) fn row(given: &Given<'_>, at_rate: &Trial, lower: Option<&Trial>) -> Row {
    let best = lower.unwrap_or(at_rate);
    let lossless = if at_rate.keeps_up() { Some(at_rate) } else { lower };
    let frames = at_rate.taken().max(1) as f64;
    let parts: Vec<PartLoad> =
        best.loads().map(|(part, load)| PartLoad { part: part.to_owned(), load }).collect();
    let highest = parts.iter().cloned().reduce(|a, b| if b.load > a.load { b } else { a });
    Row {
        nic: given.nic.to_owned(),
        traffic: given.traffic.to_owned(),
        offered: at_rate.offered,
        offered_bytes: at_rate.offered_bytes,
        offered_pps: at_rate.offered_pps(),
        lost: at_rate.lost,
        taken_pps: at_rate.taken_pps(),
        verdicts: at_rate.verdicts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        lossless_pps: lossless.map(Trial::offered_pps),
        microengines: microengines(given.spec) as u64,
        contexts: contexts(given.spec) as u64,
        instructions_per_frame: at_rate.contexts.instructions as f64 / frames,
        cycles_mean: at_rate.contexts.computing as f64 / frames,
        references_per_frame: at_rate.contexts.references as f64 / frames,
        latency: Latency::of(&best.latency),
        bottleneck: highest.unwrap_or(PartLoad { part: "none".to_owned(), load: 0.0 }),
        parts,
        xdp: None,
        program_data: Some(at_rate.variables.clone()),
    }
}
