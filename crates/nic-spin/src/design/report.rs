//! Counters of a Portals 4 card with packet handlers, and their form in reports.

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
    /// Packets that were unusable, because they were damaged or stray. Reliable transport prevents them.
    pub unusable: Unusable,
}

impl Counters for Report {}

/// Counters of a card with Portals: of messages, handlers, and reliable transport.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PortalsReport {
    /// Messages that found a match entry.
    pub messages_matched: u64,
    /// Messages that found no match entry, or that the card dropped for another reason.
    pub messages_dropped: u64,
    /// The first dropped message, and the reason; None if the card dropped no message.
    pub first_dropped: Option<String>,
    /// Completed runs of handlers.
    pub handler_runs: u64,
    /// Instructions that handlers executed.
    pub handler_instructions: u64,
    /// Cycles for which handlers held a processor, including their starts and their waits for commands.
    pub handler_cycles: u64,
    /// Lines that handlers printed.
    #[serde(flatten)]
    pub printed: Printed,
    /// Resources used by each application.
    pub applications: Vec<ApplicationReport>,
    /// Counters of its reliable transport.
    pub transport: TransportReport,
}

/// Counters of a card's reliable transport.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TransportReport {
    /// Counters of the transport.
    #[serde(flatten)]
    pub counters: TransportStatistics,
    /// Without reliable transport: packets that were damaged or belonged to no message, and were dropped.
    pub unusable: u64,
}

impl PortalsReport {
    /// Returns the counters in the form of reports.
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
