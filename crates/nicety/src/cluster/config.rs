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
    /// The cards of the hosts, by rank. If there is one card, all hosts have it.
    pub cards: Vec<LoadedCard>,
    /// The network's topology.
    pub topology: Topology,
    /// In a star, the rank of the host that uses all ports of its card. The switch of the star is then inside that card, and
    /// merges the packets of the ports without delay. The switch buffers as many bytes for each port as the card buffers for all
    /// ports. Its link to the card is as fast as all ports together.
    pub all_ports: Option<u32>,
    /// Flow control of the switches, which protects their buffers from overflow. [`flow::parse`](crate::flow::parse) reads it.
    pub flow_control: FlowControl,
    /// The user id of each host's operations, by rank. If empty, the user id of every host is 0.
    pub uids: Vec<u32>,
    /// Background noise on the hosts' CPUs.
    pub noise: Option<Noise>,
    /// The faults that the network injects.
    pub faults: Faults,
    /// The seed of all random streams.
    pub seed: u64,
    /// Number of shards into which the nodes are divided. Results do not depend on it.
    pub shards: usize,
    /// When this interrupt is set, the build or the run of the cluster ends.
    pub interrupt: Option<Interrupt>,
    /// Receives the output of handlers.
    pub log: Log,
    /// Called early during the build of a cluster that takes 2 GiB of memory or more.
    pub large: fn(&LargeCluster),
    /// Failures that do not fail the run.
    pub allowed: Allowed,
    /// Whether drops by a full buffer are part of the experiment. Such drops then do not fail the run.
    pub drops_allowed: bool,
    /// Whether [`Host::path`](crate::Host::path) divides its time into stages. This takes more memory and CPU time. It is always
    /// on if messages are recorded.
    pub breakdown: bool,
    /// Level of recording.
    pub recording: Level,
    /// Maximum number of rows of each node in each table of a recording. Further rows are counted, but not kept. A row
    /// of messages takes about 200 bytes, a row of packets 300 bytes, and every other row 120 bytes.
    pub recorded_rows: usize,
    /// Captures the packets of the network's links.
    pub capture: Option<Capture>,
    /// Traffic for hosts' cards while programs run, one expression for each source. Each source is a tester, a node after the
    /// hosts. The tester sends to the rank in `to` of its expression, or to rank 0.
    pub traffic: Vec<String>,
}

/// Default maximum number of rows of a node in each table.
const RECORDED_ROWS: usize = 250_000;

impl ClusterConfig {
    /// Returns the defaults: flow control by credits, no noise, no allowed failure, seed 1, one shard, and no recording. The
    /// topology is a pair, or a single host. Handlers write their output to standard error, and so does the announcement of a
    /// large cluster.
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

    /// Returns the same defaults as [`ClusterConfig::new`], with one host for each of these cards.
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
