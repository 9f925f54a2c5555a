//! Counters of ports.

use crate::ethernet::QueueStatistics;
use crate::faults::FaultStatistics;
use nicety_types::{Duration, NodeId};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// The counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStatistics {
    /// Number of received packets.
    pub received_packets: u64,
    /// Size of the received packets on the wire, in bytes, with headers.
    pub received_bytes: u64,
    /// Number of packets sent or scheduled to be sent.
    pub sent_packets: u64,
    /// Size of these packets on the wire, in bytes, with headers.
    pub sent_bytes: u64,
    /// Number of resends after loss or damage on the link.
    pub resent_packets: u64,
    /// Busy time of the outgoing direction.
    pub busy: Duration,
    /// Total time for which ready packets waited for this port or for credits. It includes waits behind packets of the
    /// same message.
    pub queued: Duration,
    /// Peak occupancy of this port's input buffer in packets. For a switch port with several virtual channels, the
    /// highest of the channels' peaks.
    pub peak_buffer: u32,
}

/// The counters of a switch's ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchStatistics {
    /// The switch; for a router, the host's node.
    pub node: NodeId,
    /// The level of the switch: the number of switch levels below it.
    pub level: u32,
    /// The switch's number among the switches of its level, in the order of subtrees.
    pub index: u32,
    /// The names of a router's ports: `local`, `x+`, `x-` and so on. Empty for a switch, as its ports have numbers.
    pub names: Arc<[&'static str]>,
    /// The counters of each port, by port number: first downlinks in the order of the nodes below, then uplinks.
    pub ports: Vec<PortStatistics>,
}

impl SwitchStatistics {
    /// Returns a port's name in the network: `LEVEL/INDEX/PORT` for a switch, or `RANK/NAME` for a router.
    pub fn port_name(&self, port: usize) -> String {
        match self.names.get(port) {
            Some(name) => format!("{}/{name}", self.index),
            None => format!("{}/{}/{port}", self.level, self.index),
        }
    }
}

/// The counters of the network's ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkStatistics {
    /// The card's port of each host, by rank.
    pub hosts: Vec<PortStatistics>,
    /// The switches, or the hosts' routers; empty if hosts are joined directly.
    pub switches: Vec<SwitchStatistics>,
    /// The ports of a network without credits: first the hosts' ports by rank, then the switches' ports in the order of
    /// `switches`.
    pub queues: Vec<QueueStatistics>,
    /// The fault counters of each direction of a link that can have faults.
    pub faults: Vec<FaultStatistics>,
}

impl NetworkStatistics {
    /// Total number of links that packets crossed. The connection between a host's card and its router does not count.
    pub fn hops(&self) -> u64 {
        let sent = |ports: &[PortStatistics]| ports.iter().map(|port| port.sent_packets).sum::<u64>();
        let is_router = |switch: &SwitchStatistics| !switch.names.is_empty();
        let by_switches: u64 =
            self.switches.iter().map(|switch| sent(&switch.ports[usize::from(is_router(switch))..])).sum();
        if self.switches.iter().any(is_router) { by_switches } else { by_switches + sent(&self.hosts) }
    }
}

impl PortStatistics {
    pub(crate) fn received(&mut self, bytes: u64, in_buffer: u32) {
        self.received_packets += 1;
        self.received_bytes += bytes;
        self.peak_buffer = self.peak_buffer.max(in_buffer);
    }

    pub(crate) fn sent(&mut self, bytes: u64, queued: Duration, busy: Duration) {
        self.sent_packets += 1;
        self.sent_bytes += bytes;
        self.queued += queued;
        self.busy = busy;
    }

    pub(crate) fn resent(&mut self, packets: u32, busy: Duration) {
        self.resent_packets += u64::from(packets);
        self.busy = busy;
    }
}

/// A port's counters. The port writes them, and they are read after the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter(Rc<Cell<PortStatistics>>);

impl Meter {
    pub(crate) fn read(&self) -> PortStatistics {
        self.0.get()
    }

    pub(crate) fn received(&self, bytes: u64, in_buffer: u32) {
        self.update(|s| s.received(bytes, in_buffer));
    }

    pub(crate) fn sent(&self, bytes: u64, queued: Duration, busy: Duration) {
        self.update(|s| s.sent(bytes, queued, busy));
    }

    pub(crate) fn resent(&self, packets: u32, busy: Duration) {
        self.update(|s| s.resent(packets, busy));
    }

    fn update(&self, change: impl FnOnce(&mut PortStatistics)) {
        let mut statistics = self.0.get();
        change(&mut statistics);
        self.0.set(statistics);
    }
}
