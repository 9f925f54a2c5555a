//! What a host has used of its CPUs in the measured time, for each packet.

use nicety_nic::ethernet::Report;
use nicety_types::Duration;
use schemars::JsonSchema;
use serde::Serialize;

/// What a function group has used.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GroupUsage {
    /// Its name.
    pub group: String,
    /// CPU time a packet.
    pub ns_per_packet: f64,
    /// Instructions a packet.
    pub instructions_per_packet: f64,
    /// Loads a packet that missed a core's first-level cache.
    pub first_misses_per_packet: f64,
    /// Of these, loads that missed the shared cache, too.
    pub second_misses_per_packet: f64,
}

/// What rank 0 has used in the measured time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Usage {
    /// The share of the time of all its CPUs in which they worked.
    pub cpu_utilisation: f64,
    /// CPU time a packet.
    pub cpu_ns_per_packet: f64,
    /// Instructions a packet.
    pub instructions_per_packet: f64,
    /// Loads a packet that missed a core's first-level cache.
    pub first_misses_per_packet: f64,
    /// Of these, loads that missed the shared cache, too.
    pub second_misses_per_packet: f64,
    /// The CPU time a packet, by function group.
    pub breakdown: Vec<GroupUsage>,
    /// Context switches a packet.
    pub context_switches_per_packet: f64,
    /// Calls from one CPU to another a packet.
    pub cross_calls_per_packet: f64,
    /// Interrupts a packet.
    pub interrupts_per_packet: f64,
    /// CPU time of a receive channel's interrupt handler before it takes frames: entered, and registers read.
    pub interrupt_ns: f64,
    /// Segments that rank 0 and its peer sent again.
    pub retransmissions: u64,
    /// Frames that rank 0's card, kernel threads and protocols dropped.
    pub dropped: u64,
    /// The packets: frames that rank 0's card received, or sent where it transmits.
    pub packets: u64,
}

impl Usage {
    /// That between two instants `window` apart, for so many packets in between, on so many CPUs.
    pub(super) fn between(
        before: &Counted,
        after: &Counted,
        packets: u64,
        cpus: u64,
        window: Duration,
    ) -> Usage {
        let (own, since) = (&after.own, &before.own);
        let each = |count: u64| count as f64 / packets.max(1) as f64;
        let groups = || own.groups.iter().zip(&since.groups);
        let sum = |of: fn(&nicety_nic::ethernet::GroupReport) -> u64| {
            groups().map(|(now, then)| of(now) - of(then)).sum::<u64>()
        };
        let busy = sum(|group| group.busy_ps);
        let lost = |report: &Report| {
            let card = &report.card;
            report.dropped + report.backlog_full + card.ring_full + card.too_long + card.check_errors
        };
        Usage {
            cpu_utilisation: busy as f64 / (cpus as f64 * window.ps() as f64),
            cpu_ns_per_packet: each(busy) / 1e3,
            instructions_per_packet: each(sum(|group| group.instructions)),
            first_misses_per_packet: each(sum(|group| group.first_misses)),
            second_misses_per_packet: each(sum(|group| group.second_misses)),
            breakdown: groups()
                .map(|(now, then)| GroupUsage {
                    group: now.group.clone(),
                    ns_per_packet: each(now.busy_ps - then.busy_ps) / 1e3,
                    instructions_per_packet: each(now.instructions - then.instructions),
                    first_misses_per_packet: each(now.first_misses - then.first_misses),
                    second_misses_per_packet: each(now.second_misses - then.second_misses),
                })
                .collect(),
            context_switches_per_packet: each(own.context_switches - since.context_switches),
            cross_calls_per_packet: each(own.cross_calls - since.cross_calls),
            interrupts_per_packet: each(own.interrupts - since.interrupts),
            interrupt_ns: (own.handler_busy_ps - since.handler_busy_ps) as f64
                / (own.handlers - since.handlers).max(1) as f64
                / 1e3,
            retransmissions: own.retransmissions - since.retransmissions + after.peer.retransmissions
                - before.peer.retransmissions,
            dropped: lost(own) - lost(since),
            packets,
        }
    }
}

/// The counters of both hosts at an instant.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) own: Report,
    pub(super) peer: Report,
}
