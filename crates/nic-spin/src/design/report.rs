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
    /// Counters of the handlers.
    pub handlers: HandlerStatistics,
    /// The resource use of each application. The default application is first.
    pub applications: Vec<ApplicationReport>,
    /// Numbers of lines that handlers printed.
    pub printed: Printed,
    /// Counters of reliable transport.
    pub transport: TransportStatistics,
    /// Numbers of packets that were unusable because they were damaged or stray. With reliable transport there are
    /// none.
    pub unusable: Unusable,
}

impl Counters for Report {}

/// Counters of a card with Portals: of messages, handlers, and reliable transport.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PortalsReport {
    /// Number of messages that matched an entry.
    pub messages_matched: u64,
    /// Number of messages that matched no entry, or that the card dropped for another reason.
    pub messages_dropped: u64,
    /// The first dropped message, and the reason; None if the card dropped no message.
    pub first_dropped: Option<String>,
    /// Number of completed runs of handlers.
    pub handler_runs: u64,
    /// Number of instructions that handlers executed.
    pub handler_instructions: u64,
    /// Number of cycles for which handlers held a processor, including their starts and their waits for commands.
    pub handler_cycles: u64,
    /// Lines that handlers printed.
    #[serde(flatten)]
    pub printed: Printed,
    /// Resources used by each application.
    pub applications: Vec<ApplicationReport>,
    /// Counters of the card's reliable transport.
    pub transport: TransportReport,
}

/// Counters of a card's reliable transport.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TransportReport {
    /// Counters of the transport.
    #[serde(flatten)]
    pub counters: TransportStatistics,
    /// Without reliable transport: number of packets that were damaged or belonged to no message, and were dropped.
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
