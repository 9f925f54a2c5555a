//! Traffic in a row, and its packet dispositions.

use schemars::JsonSchema;
use serde::Serialize;

/// Traffic, and its packet dispositions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "TrafficFigures")]
pub struct TrafficRow {
    /// The expression; all expressions for several ports.
    pub traffic: String,
    /// Behaviour with a full packet buffer. `credits`: the sender waits for them. `lossy`: packets are dropped. `pfc`: the wire
    /// is paused.
    pub overload_policy: &'static str,
    /// Packets offered to the wire.
    pub offered: u64,
    /// Their payload: bytes of frames.
    pub offered_bytes: u64,
    /// Duration of the offered packets at their rate, up to the next due time. For a capture that is a mean gap after the last
    /// packet; for several ports the rate is the sum of theirs.
    pub offered_ns: f64,
    /// Packets that the card accepted: all but those dropped by overload.
    pub handled: u64,
    /// Their payload.
    pub handled_bytes: u64,
    /// Packets of `handled` that no handler dropped: processed, or on their way to host memory.
    pub passed: u64,
    /// Packets that handlers dropped.
    pub dropped_by_handler: u64,
    /// Packets on which a handler failed.
    pub failed: u64,
    /// Packets dropped by a full packet buffer.
    pub dropped_by_overload: u64,
    /// Frames that handlers passed to the host, and that were dropped without a buffer there.
    pub dropped_at_host: u64,
    /// Frames that handlers sent, dropped at a full output port; for several ports with `--lossy`.
    pub dropped_at_link: u64,
    /// Frames that handlers sent to unknown stations. They leave by the port of their arrival.
    pub unknown_destination: u64,
    /// Whether packets of a capture were recorded faster than the wire takes them. They arrived at the wire rate.
    pub recorded_above_wire_rate: bool,
    /// Whether loads, locks and memory are those of a second run with the same packets, in which the wire is paused. Packets that
    /// survive losses are not the offered mix.
    pub loads_from_lossless_run: bool,
    /// Time for which the wire was paused.
    pub paused_ns: f64,
    /// Mean latency through the card, from the last byte in the packet buffer until the packet has left it.
    pub latency_ns_mean: f64,
    /// Median latency, by nearest rank, and at most 0.2 % above it. The other percentiles are alike.
    pub latency_ns_p50: f64,
    /// 99th percentile of the latency.
    pub latency_ns_p99: f64,
    /// 99.9th percentile of the latency.
    pub latency_ns_p999: f64,
    /// Maximum latency, exact.
    pub latency_ns_max: f64,
    /// The same figures for each port, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortRow>,
}

/// Traffic of one port among several, and its packet dispositions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PortFigures")]
pub struct PortRow {
    /// Its number.
    pub port: u64,
    /// The expression.
    pub traffic: String,
    /// Packets offered to the wire, until the traffic of a port had ended.
    pub offered: u64,
    /// Their payload: bytes of frames.
    pub offered_bytes: u64,
    /// Duration of the offered packets at their rate, up to the next due time.
    pub offered_ns: f64,
    /// Packets that the card accepted: all but those dropped by overload.
    pub handled: u64,
    /// Their payload.
    pub handled_bytes: u64,
    /// Packets of `handled` that no handler dropped: processed, or on their way to host memory.
    pub passed: u64,
    /// Packets that handlers dropped.
    pub dropped_by_handler: u64,
    /// Packets on which a handler failed.
    pub failed: u64,
    /// Packets dropped by a full packet buffer.
    pub dropped_by_overload: u64,
    /// Frames that handlers passed to the host, and that were dropped without a buffer there.
    pub dropped_at_host: u64,
    /// Frames that handlers sent, dropped at this full port, from any input port.
    pub dropped_at_link: u64,
    /// Mean latency through the card.
    pub latency_ns_mean: f64,
    /// Median latency.
    pub latency_ns_p50: f64,
    /// 99th percentile of the latency.
    pub latency_ns_p99: f64,
    /// 99.9th percentile of the latency.
    pub latency_ns_p999: f64,
    /// Maximum latency, exact.
    pub latency_ns_max: f64,
}
