//! The configuration of a cluster.

use super::{Allowed, LargeCluster, Noise};
use crate::capture::Capture;
use crate::cards::Card as LoadedCard;
use nicety_fabric::{Faults, FlowControl, Topology};
use nicety_kernel::Interrupt;
use nicety_nic_core::Log;
use nicety_types::Level;
use std::sync::Arc;

/// The configuration of a cluster.
#[derive(Clone)]
pub struct ClusterConfig {
    /// Number of hosts.
    pub nodes: u32,
    /// The hosts' cards, by rank; a single one is in all hosts.
    pub cards: Vec<LoadedCard>,
    /// The network's topology.
    pub topology: Topology,
    /// In a star, the rank with all ports of its card in use. The switch is then inside that card, and merges the packets of the
    /// ports without delay. It buffers as much for each port as the card for all, and its link to the card is as fast as all
    /// ports.
    pub all_ports: Option<u32>,
    /// Protection of switch buffers from overflow; [`flow::parse`](crate::flow::parse) reads it.
    pub flow_control: FlowControl,
    /// The user of each host's operations, by rank; user 0 on every host if empty.
    pub uids: Vec<u32>,
    /// Background noise on the hosts' CPUs.
    pub noise: Option<Noise>,
    /// The faults that the network injects.
    pub faults: Faults,
    /// The seed of all random streams.
    pub seed: u64,
    /// Number of shards for the nodes; results do not depend on it.
    pub shards: usize,
    /// When set, the build or the run of the cluster ends.
    pub interrupt: Option<Interrupt>,
    /// Receives the output of handlers.
    pub log: Log,
    /// Called early during the build of a cluster that takes 2 GiB of memory or more.
    pub large: fn(&LargeCluster),
    /// Failures that do not fail the run.
    pub allowed: Allowed,
    /// Whether packets dropped by a full buffer are part of the experiment, and do not fail the run.
    pub drops_allowed: bool,
    /// Whether [`Host::path`](crate::Host::path) accounts for its time by stage, which costs memory and time. Always on where
    /// messages are recorded.
    pub breakdown: bool,
    /// Level of recording.
    pub recording: Level,
    /// Maximum rows of each node in each table of a recording; later rows are only counted. A message takes about 200 bytes, a
    /// packet 300, and every other row 120.
    pub recorded_rows: usize,
    /// Takes the packets of the network's links.
    pub capture: Option<Capture>,
    /// Traffic for hosts' cards while programs run, as expressions. Each has its own tester, a node after the hosts. The tester
    /// sends to the rank in the expression's `to`, or to rank 0.
    pub traffic: Vec<String>,
}

/// Default for the rows of a node in each table.
const RECORDED_ROWS: usize = 250_000;

impl ClusterConfig {
    /// Returns the defaults: credits, no noise, no failure allowed, a pair (or a single host), seed 1, one shard, no recording.
    /// The output of handlers and the announcement of a large cluster go to standard error.
    pub fn new(nodes: u32, card: LoadedCard) -> ClusterConfig {
        ClusterConfig {
            nodes,
            cards: vec![card],
            topology: if nodes == 1 { Topology::Alone } else { Topology::Pair },
            all_ports: None,
            flow_control: FlowControl::Credits,
            uids: Vec::new(),
            noise: None,
            faults: Faults::default(),
            seed: 1,
            shards: 1,
            interrupt: None,
            allowed: Allowed::default(),
            drops_allowed: false,
            log: Arc::new(|line| eprintln!("{line}")),
            large: |cluster| eprintln!("{cluster}"),
            breakdown: true,
            recording: Level::Summary,
            recorded_rows: RECORDED_ROWS,
            capture: None,
            traffic: Vec::new(),
        }
    }

    /// As [`ClusterConfig::new`], with a host for each of these cards.
    ///
    /// # Panics
    /// When there are no cards.
    pub fn of(cards: Vec<LoadedCard>) -> ClusterConfig {
        let first = cards.first().expect("a cluster has a host").clone();
        let nodes = cards.len() as u32;
        ClusterConfig { cards, ..ClusterConfig::new(nodes, first) }
    }

    /// The card of a rank.
    ///
    /// # Panics
    /// When there are no cards.
    pub fn card(&self, rank: u32) -> &LoadedCard {
        &self.cards[if self.cards.len() == 1 { 0 } else { rank as usize }]
    }
}
