//! Counters of ports.

use crate::ethernet::QueueStatistics;
use crate::faults::FaultStatistics;
use nicety_types::{Duration, NodeId};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// The counts of a port, an end of a link, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStatistics {
    /// Packets that came in.
    pub received_packets: u64,
    /// Their bytes on the wire, headers included.
    pub received_bytes: u64,
    /// Packets that went out, or have their time of sending.
    pub sent_packets: u64,
    /// Their bytes on the wire, headers included.
    pub sent_bytes: u64,
    /// How often packets went out again, since they had been lost or damaged on the link.
    pub resent_packets: u64,
    /// How long the outgoing direction has been occupied.
    pub busy: Duration,
    /// How long packets that were ready to go out by this port waited for it or for credits, all of them
    /// added up; behind packets of their own message, too.
    pub queued: Duration,
    /// The most packets there were at once in this port's input buffer; in that of one virtual channel where a switch's
    /// port has several.
    pub peak_buffer: u32,
}

/// The counts of a switch's ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchStatistics {
    /// The switch; for a router, the host's node.
    pub node: NodeId,
    /// How many levels of switches are below it.
    pub level: u32,
    /// Its number among the switches of its level, by their subtrees.
    pub index: u32,
    /// The names of a router's ports: `local`, `x+`, `x-` and so on. None for a switch, whose ports have numbers.
    pub names: Arc<[&'static str]>,
    /// Its ports, by number: links down in the order of the nodes below, and behind them links up.
    pub ports: Vec<PortStatistics>,
}

impl SwitchStatistics {
    /// A port's name in the network: `LEVEL/INDEX/PORT`, or `RANK/NAME` for a router's.
    pub fn port_name(&self, port: usize) -> String {
        match self.names.get(port) {
            Some(name) => format!("{}/{name}", self.index),
            None => format!("{}/{}/{port}", self.level, self.index),
        }
    }
}

/// The counts of the network's ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkStatistics {
    /// The cards' ports, by rank.
    pub hosts: Vec<PortStatistics>,
    /// The switches, or the hosts' routers; none where hosts are joined directly.
    pub switches: Vec<SwitchStatistics>,
    /// The use of ports where there are no credits: those of hosts by rank, and of switches in their order.
    pub queues: Vec<QueueStatistics>,
    /// The effects of faults, for each direction of a link that can have any.
    pub faults: Vec<FaultStatistics>,
}

impl NetworkStatistics {
    /// How many times a packet has crossed a link, all packets together; a router is inside its host's node, and no link
    /// is between them.
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

/// A port's statistics, written by the port and read after the run.
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
