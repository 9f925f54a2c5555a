//! The report of a run as plain data, for JSON and other languages.
//!
//! The JSON names of counters are the names of the fields in their Rust types.

use crate::cluster::{Failure, Run, TrafficReport, failures};
use crate::designs::CardCounts;
use crate::{FaultStatistics, KernelCounters, NetworkStatistics, QueueStatistics, RefusedCommand};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A completed run.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// The virtual time of the last event, in picoseconds.
    pub time_ps: u64,
    /// Number of events that the kernel processed.
    pub events: u64,
    /// The nodes, by rank.
    pub nodes: Vec<NodeCounts>,
    /// The links that can have faults. Each direction of a link has its own item.
    pub links: Vec<LinkReport>,
    /// The ports of hosts and switches, in a network without credit flow control.
    pub ports: Vec<NetworkPortReport>,
    /// Dispositions of the frames of traffic for hosts' cards.
    pub traffic: Vec<TrafficReport>,
}

/// The counters of a node: those that every node has, and those of its card's design.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NodeCounts {
    /// The name of the node's card.
    pub nic: String,
    /// Bytes read from the host's memory by the card, or by the CPUs into their cache.
    pub host_memory_read_bytes: u64,
    /// Bytes written to the host's memory by the card, or by the CPUs from their cache.
    pub host_memory_written_bytes: u64,
    /// Entries into the host's operating system.
    pub kernel: KernelCounters,
    /// Failures on this node. `Run.failures` has the failures of all nodes.
    pub failures: Vec<Failure>,
    /// Commands of handlers that the card refused. `failures` describes the same commands in text.
    pub refused_commands: Vec<RefusedCommand>,
    /// The counters of the card. Their type depends on the card's design; `None` if a design is registered by another package.
    pub card: Option<CardCounts>,
}

/// The effects of faults on one direction of a link.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LinkReport {
    /// The name of the direction, such as `hosts.0 -> switch.0`.
    pub link: String,
    /// Packets on the link, including retransmissions and acknowledgements.
    pub packets: u64,
    /// Packets that never arrived.
    pub lost: u64,
    /// Packets with a damaged byte.
    pub corrupted: u64,
    /// Packets that were sent twice.
    pub duplicated: u64,
    /// Packets that were delayed.
    pub reordered: u64,
    /// Packets among `packets` that the link itself resent after loss or damage, if it does so.
    pub resent: u64,
}

/// The counters of a port of a host or switch, in a network without credit flow control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkPortReport {
    /// The host or switch with the port, such as `hosts.1` or `switch.0`.
    pub at: String,
    /// The number of the port on that host or switch.
    pub port: u32,
    /// The host or switch at the other end of the port's link.
    pub peer: String,
    /// Packets dropped at this port.
    pub dropped_packets: u64,
    /// Bytes of the dropped packets on the wire.
    pub dropped_bytes: u64,
    /// The reason for which this port drops packets. `queue full`: its output queue was full. `no headroom`: a packet arrived at
    /// the port and found no buffer, although its sender was paused. `packet buffer full`: the buffer of a card was full.
    pub reason: String,
    /// Maximum bytes in the port's output queue. In a network with pauses, maximum buffered bytes of packets that arrived at this
    /// port.
    pub peak_bytes: u64,
    /// Pause frames sent by this port, including those that end a pause.
    pub pauses_sent: u64,
    /// Pause frames received by this port.
    pub pauses_received: u64,
    /// Virtual time for which the port was paused, in picoseconds.
    pub paused_ps: u64,
}

impl RunReport {
    /// The report of a run.
    pub fn of(run: &Run) -> RunReport {
        RunReport {
            time_ps: run.end.ps(),
            events: run.events,
            nodes: (0..run.nodes.len()).map(|rank| NodeCounts::of(run, rank)).collect(),
            links: run.network.faults.iter().map(LinkReport::of).collect(),
            ports: NetworkPortReport::all(&run.network),
            traffic: run.traffic.clone(),
        }
    }
}

impl NodeCounts {
    fn of(run: &Run, rank: usize) -> NodeCounts {
        let node = &run.nodes[rank];
        NodeCounts {
            nic: node.nic.to_string(),
            host_memory_read_bytes: node.memory.read,
            host_memory_written_bytes: node.memory.written,
            kernel: node.card.kernel(),
            failures: failures(rank as u32, node),
            refused_commands: node.refused_commands.clone(),
            card: CardCounts::of(&node.card),
        }
    }
}

impl NetworkPortReport {
    /// Returns the counters of all ports of a network. With credit flow control, the list is empty.
    pub fn all(network: &NetworkStatistics) -> Vec<NetworkPortReport> {
        network.queues.iter().map(NetworkPortReport::of).collect()
    }

    /// Adds the counters that another part of the run has for this port. Only the part that simulates the port has
    /// counters above 0.
    pub fn add(&mut self, more: &NetworkPortReport) {
        self.dropped_packets += more.dropped_packets;
        self.dropped_bytes += more.dropped_bytes;
        self.peak_bytes += more.peak_bytes;
        self.pauses_sent += more.pauses_sent;
        self.pauses_received += more.pauses_received;
        self.paused_ps += more.paused_ps;
    }

    fn of(queue: &QueueStatistics) -> NetworkPortReport {
        NetworkPortReport {
            at: queue.at.to_string(),
            port: queue.port,
            peer: queue.peer.to_string(),
            dropped_packets: queue.dropped_packets,
            dropped_bytes: queue.dropped_bytes,
            reason: queue.reason.name().to_owned(),
            peak_bytes: queue.peak_bytes,
            pauses_sent: queue.pauses_sent,
            pauses_received: queue.pauses_received,
            paused_ps: queue.paused.ps(),
        }
    }
}

impl LinkReport {
    fn of(link: &FaultStatistics) -> LinkReport {
        let &FaultStatistics { from, to, packets, lost, corrupted, duplicated, reordered, resent } = link;
        LinkReport {
            link: format!("{from} -> {to}"),
            packets,
            lost,
            corrupted,
            duplicated,
            reordered,
            resent,
        }
    }
}
