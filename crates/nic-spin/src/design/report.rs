//! Counters of a Portals 4 card with packet handlers, and their form for other languages.

use crate::Unusable;
use nicety_nic_core::Counters;
use nicety_nic_core::parts::transport::TransportStatistics;
use nicety_nic_processors::{ApplicationReport, HandlerStatistics, Printed};
use nicety_portals::Statistics;
use schemars::JsonSchema;
use serde::Serialize;

/// Counters of a Portals 4 card with packet handlers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Counters of the Portals interface.
    pub portals: Statistics,
    /// Statistics of the handlers.
    pub handlers: HandlerStatistics,
    /// The resource use of each application, the default one first.
    pub applications: Vec<ApplicationReport>,
    /// Lines that handlers printed.
    pub printed: Printed,
    /// Counters of reliable transport.
    pub transport: TransportStatistics,
    /// Unusable packets without reliable transport: damaged or stray.
    pub unusable: Unusable,
}

impl Counters for Report {}

/// A card with Portals: messages, handlers, and its reliable transport.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PortalsReport {
    /// Messages that found a match entry.
    pub messages_matched: u64,
    /// Messages that found none, or that the card dropped for another reason.
    pub messages_dropped: u64,
    /// The first of these, and why it was dropped; None if there was none.
    pub first_dropped: Option<String>,
    /// Completed runs of handlers.
    pub handler_runs: u64,
    /// Instructions that they executed.
    pub handler_instructions: u64,
    /// Cycles for which they held a processor, including the start and waits for commands.
    pub handler_cycles: u64,
    /// Lines that they printed.
    #[serde(flatten)]
    pub printed: Printed,
    /// Resources used by each application.
    pub applications: Vec<ApplicationReport>,
    /// Counts of its reliable transport.
    pub transport: TransportReport,
}

/// Counts of a card's reliable transport; all zero if it has none.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TransportReport {
    /// Counters of the transport.
    #[serde(flatten)]
    pub counters: TransportStatistics,
    /// Without such a transport: packets that came damaged or out of place, and were dropped.
    pub unusable: u64,
}

impl PortalsReport {
    /// Returns the counters in this form.
    pub fn of(counted: &Report) -> PortalsReport {
        PortalsReport {
            messages_matched: counted.portals.matched,
            messages_dropped: counted.portals.dropped_total(),
            first_dropped: counted.portals.first_dropped().map(|message| message.to_string()),
            handler_runs: counted.handlers.runs,
            handler_instructions: counted.handlers.instructions,
            handler_cycles: counted.handlers.cycles,
            printed: counted.printed,
            applications: counted.applications.clone(),
            transport: TransportReport { counters: counted.transport, unusable: counted.unusable.total() },
        }
    }
}
