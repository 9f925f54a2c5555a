//! Runs at other rates, and behind a burst, in a row.

use crate::part::Part;
use crate::verdict::Verdict;
use schemars::JsonSchema;
use serde::Serialize;

/// A run with the same traffic at another rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "RateTrial")]
pub struct TrialRow {
    /// The rate over the traffic's rate.
    pub rate_fraction: f64,
    /// Whether the rate is above the wire rate. Then the run had a wire faster by that factor.
    pub above_wire_rate: bool,
    /// Packets offered: the first ones of the traffic.
    pub packets: u64,
    /// Packets of the burst: the first ones, at the speed of the wire. 0 without a burst.
    pub burst_packets: u64,
    /// Whether the run had no losses and no growing backlog.
    pub sustained: bool,
    /// Whether the card keeps up by its loads, too. None for a run with a burst, and for a stopped one.
    pub verdict: Option<Verdict>,
    /// The limiting part; none for a run that recovered from its burst.
    pub bottleneck: Option<Part>,
    /// The departure rate over the traffic's, where the rate was not sustained; otherwise the capacity by loads. None for a run
    /// that recovered from its burst.
    pub capacity_fraction: Option<f64>,
    /// The error that stopped the run, if any: a handler that others starve, or a failure that the traffic's own rate does not
    /// have.
    pub stopped: Option<String>,
    /// The longest stay of a packet in the card, if it is over 70 % of the run. Handlers of later packets took the lock
    /// before its handler each time.
    pub starved_ns: Option<f64>,
}

/// A run with a burst of the first packets.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Burst")]
pub struct BurstRow {
    /// Packets offered.
    pub packets: u64,
    /// Packets of the burst: the first ones, at the speed of the wire.
    pub burst_packets: u64,
    /// Departure rate of the later half of all packets, over the traffic's rate. It is 1 as soon as a packet behind the burst
    /// leaves at its due time. With losses, the fraction of packets behind the burst that is not lost. None where the run was
    /// stopped.
    pub departure_fraction: Option<f64>,
    /// The error that stopped the run, if any.
    pub stopped: Option<String>,
}
