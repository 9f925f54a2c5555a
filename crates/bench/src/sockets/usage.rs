//! The use of a host's CPUs in the measured time, divided by the number of packets.

use nicety_nic_ethernet::Report;
use nicety_types::Duration;
use schemars::JsonSchema;
use serde::Serialize;

/// The use of CPUs by one group of kernel functions.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GroupUsage {
    /// The name of the group.
    pub group: String,
    /// CPU time per packet.
    pub ns_per_packet: f64,
    /// Instructions per packet.
    pub instructions_per_packet: f64,
    /// Loads per packet that missed a core's first-level cache.
    pub l1_misses_per_packet: f64,
    /// Loads per packet that also missed the shared cache.
    pub shared_cache_misses_per_packet: f64,
    /// Misses per packet in the data TLBs of the cores.
    pub tlb_misses_per_packet: f64,
    /// Misses per packet in the code TLBs of the cores.
    pub code_tlb_misses_per_packet: f64,
}

/// The use of rank 0's CPUs in the measured time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Usage {
    /// Utilisation of all CPUs together, as a fraction.
    pub cpu_utilisation: f64,
    /// CPU time per packet.
    pub cpu_ns_per_packet: f64,
    /// Instructions per packet.
    pub instructions_per_packet: f64,
    /// Loads per packet that missed a core's first-level cache.
    pub l1_misses_per_packet: f64,
    /// Loads per packet that also missed the shared cache.
    pub shared_cache_misses_per_packet: f64,
    /// Misses per packet in the data TLBs of the cores.
    pub tlb_misses_per_packet: f64,
    /// Misses per packet in the code TLBs of the cores.
    pub code_tlb_misses_per_packet: f64,
    /// CPU time per packet, by function group.
    pub breakdown: Vec<GroupUsage>,
    /// Context switches per packet.
    pub context_switches_per_packet: f64,
    /// Cross-calls (inter-processor interrupts) per packet.
    pub cross_calls_per_packet: f64,
    /// Interrupts per packet.
    pub interrupts_per_packet: f64,
    /// CPU time of an interrupt of a receive channel before its handler takes frames. It consists of the entry and of register
    /// reads.
    pub interrupt_ns: f64,
    /// Number of segments that rank 0 and its peer retransmitted.
    pub retransmissions: u64,
    /// Number of frames that rank 0 dropped: in its card, its kernel threads and its protocols.
    pub dropped: u64,
    /// Number of packets: frames that rank 0's card received, or sent if rank 0 transmits.
    pub packets: u64,
}

impl Usage {
    /// Returns the use of `cpus` CPUs between two instants. `window` is the time between them, and `packets` the number of
    /// packets.
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
        let sum = |of: fn(&nicety_nic_ethernet::GroupReport) -> u64| {
            groups().map(|(now, then)| of(now) - of(then)).sum::<u64>()
        };
        let busy = sum(|group| group.busy_ps);
        let lost = |report: &Report| {
            let card = &report.card;
            report.dropped + report.backlog_full + card.ring_full + card.too_long + card.fcs_errors
        };
        Usage {
            cpu_utilisation: busy as f64 / (cpus as f64 * window.ps() as f64),
            cpu_ns_per_packet: each(busy) / 1e3,
            instructions_per_packet: each(sum(|group| group.instructions)),
            l1_misses_per_packet: each(sum(|group| group.l1_misses)),
            shared_cache_misses_per_packet: each(sum(|group| group.shared_cache_misses)),
            tlb_misses_per_packet: each(sum(|group| group.tlb_misses)),
            code_tlb_misses_per_packet: each(sum(|group| group.code_tlb_misses)),
            breakdown: groups()
                .map(|(now, then)| GroupUsage {
                    group: now.group.clone(),
                    ns_per_packet: each(now.busy_ps - then.busy_ps) / 1e3,
                    instructions_per_packet: each(now.instructions - then.instructions),
                    l1_misses_per_packet: each(now.l1_misses - then.l1_misses),
                    shared_cache_misses_per_packet: each(now.shared_cache_misses - then.shared_cache_misses),
                    tlb_misses_per_packet: each(now.tlb_misses - then.tlb_misses),
                    code_tlb_misses_per_packet: each(now.code_tlb_misses - then.code_tlb_misses),
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
