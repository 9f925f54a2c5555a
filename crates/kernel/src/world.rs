//! [`World`]: all nodes of a run, spread over shards, and the run itself.
//!
//! Shards take turns in windows. From the earliest event of all, every message to another shard arrives at
//! least the smallest latency between shards later, so up to then every shard can go on by itself. Between
//! windows messages are exchanged; their keys order them, so the order of events is the same for any number
//! of shards.

use crate::error::{RunError, Waiting};
use crate::interrupt::Interrupt;
use crate::messages::Messages;
use crate::queue::QueueKind;
use crate::shard::Shard;
use crate::sim::Sim;
use crate::wire::{Envelope, Outbox, Receiver, WireRx, WireTx};
use nicety_types::{Duration, LinkId, NodeId, Time};
use std::rc::Rc;

/// The inputs of a run, and its limits.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The seed of all random streams.
    pub seed: u64,
    /// The number of shards that the nodes are spread over; zero is taken as one. Results do not depend on
    /// it.
    pub shards: usize,
    /// Once it is set, the run ends with [`RunError::Interrupted`].
    pub interrupt: Option<Interrupt>,
    /// Events later than this end the run with [`RunError::TimeLimit`], as do events at the end of time.
    pub max_time: Option<Time>,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The time of the last event that happened, or at which the last [unit](WireTx::send_unit) arrived.
    pub end: Time,
    /// How many events happened since the world began: arrivals, delays, and wakes of tasks. The arrival of a
    /// unit is an event only where a task waits for it.
    pub events: u64,
}

/// All nodes of a run. `M` is the message that passes between them, by value.
pub struct World<M: Send + 'static> {
    config: Config,
    shards: Vec<Rc<Shard>>,
    /// The messages of each shard to others.
    outboxes: Vec<Outbox<M>>,
    /// The messages in flight to each shard.
    messages: Vec<Rc<Messages<M>>>,
    nodes: u32,
    /// By link.
    receivers: Vec<Rc<Receiver<M>>>,
    /// The smallest latency between shards.
    lookahead: Duration,
}

impl<M: Send + 'static> World<M> {
    /// A world without nodes, at time zero.
    pub fn new(config: Config) -> World<M> {
        World::with_queue(config, QueueKind::default())
    }

    /// A world on another kind of event queue, to compare queues.
    pub fn with_queue(mut config: Config, queue: QueueKind) -> World<M> {
        config.shards = config.shards.max(1);
        let shard = |_| Shard::new(config.seed, config.interrupt.clone(), queue);
        World {
            shards: (0..config.shards).map(shard).collect(),
            outboxes: (0..config.shards).map(|_| Outbox::default()).collect(),
            messages: (0..config.shards).map(|_| Messages::new()).collect(),
            nodes: 0,
            receivers: Vec::new(),
            lookahead: Duration::MAX,
            config,
        }
    }

    /// Adds a node; they are numbered from zero.
    pub fn add_node(&mut self) -> NodeId {
        let node = NodeId(self.nodes);
        self.nodes = self.nodes.checked_add(1).expect("fewer than 2^32 nodes");
        node
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes as usize
    }

    fn shard_of(&self, node: NodeId) -> usize {
        assert!(node.0 < self.nodes, "{node} does not exist: there are {} nodes", self.nodes);
        node.0 as usize % self.shards.len()
    }

    /// The handle of a node.
    ///
    /// # Panics
    /// When there is no such node.
    pub fn sim(&self, node: NodeId) -> Sim {
        Sim::new(self.shards[self.shard_of(node)].clone(), node)
    }

    /// Lays a wire in one direction, on which a message takes `min_latency` or more. Wires are numbered in the
    /// order in which they are laid, and of messages that arrive at a node at the same instant, those of the
    /// wire with the smaller number come first. A node may have a wire to itself.
    ///
    /// # Panics
    /// When `min_latency` is zero, or there is no such node.
    pub fn wire(&mut self, from: NodeId, to: NodeId, min_latency: Duration) -> (WireTx<M>, WireRx<M>) {
        assert!(!min_latency.is_zero(), "a wire from {from} to {to} without latency: it takes 1 ps at least");
        assert!(self.receivers.len() < 1 << 31, "fewer than 2^31 wires");
        let link = LinkId(self.receivers.len() as u32);
        let (near, far) = (self.shard_of(from), self.shard_of(to));
        let receiver = Receiver::new(self.sim(to), link, self.messages[far].clone());
        self.receivers.push(receiver.clone());
        let tx = if near == far {
            WireTx::local(self.sim(from), &receiver, min_latency)
        } else {
            self.lookahead = self.lookahead.min(min_latency);
            WireTx::remote(self.sim(from), &receiver, self.outboxes[near].clone(), min_latency)
        };
        (tx, WireRx::new(receiver, from))
    }

    /// Runs until no event is left. It may be called again, after more has been started or after an interrupt.
    ///
    /// # Errors
    /// [`RunError::Deadlock`] when no event is left and a program still waits; [`RunError::Interrupted`] and
    /// [`RunError::TimeLimit`] as [`Config`] says.
    ///
    /// # Panics
    /// When a task does.
    pub fn run(&mut self) -> Result<Summary, RunError> {
        let limit = self.config.max_time.unwrap_or(Time::MAX);
        // Limits are exclusive, and nothing happens at the end of time: that there is an event is known, and
        // no more.
        let end = Time::from_ps(limit.ps().saturating_add(1));
        if self.shards.iter().any(|shard| shard.is_interrupted()) {
            return Err(RunError::Interrupted { at: self.now() });
        }
        loop {
            self.exchange();
            let Some(next) = self.shards.iter().filter_map(|shard| shard.next_time()).min() else { break };
            if next >= end {
                return Err(RunError::TimeLimit { at: limit });
            }
            let horizon = Time::from_ps(next.ps().saturating_add(self.lookahead.ps()));
            for shard in &self.shards {
                if shard.run_before(horizon.min(end)).is_err() {
                    return Err(RunError::Interrupted { at: self.now() });
                }
            }
        }
        // The last arrival may be a unit, which is no event where no task waits for it.
        let last_unit = self.shards.iter().map(|shard| shard.last_unit()).max().unwrap_or(Time::ZERO);
        if last_unit >= end {
            return Err(RunError::TimeLimit { at: limit });
        }
        let end = self.now().max(last_unit);
        self.shards.iter().for_each(|shard| shard.set_now(end));
        let waiting = self.stuck_programs();
        if !waiting.is_empty() {
            return Err(RunError::Deadlock { at: end, waiting });
        }
        Ok(Summary { end, events: self.shards.iter().map(|shard| shard.events()).sum() })
    }

    /// The time of the last event that happened.
    pub fn now(&self) -> Time {
        self.shards.iter().map(|shard| shard.now()).max().unwrap_or(Time::ZERO)
    }

    /// Delivers the messages that shards sent to each other.
    fn exchange(&mut self) {
        for outbox in &self.outboxes {
            for envelope in outbox.borrow_mut().drain(..) {
                let Envelope { link, time, count, message } = envelope;
                self.receivers[link.0 as usize].accept(time, count, message);
            }
        }
    }

    fn stuck_programs(&self) -> Vec<Waiting> {
        let stuck = self.shards.iter().flat_map(|shard| shard.stuck_programs());
        let mut waiting: Vec<Waiting> =
            stuck.map(|s| Waiting { node: s.node, program: s.program, why: s.why, since: s.since }).collect();
        // Stable: programs of a node stay in the order in which they were started.
        waiting.sort_by_key(|w| w.node);
        waiting
    }
}

impl<M: Send + 'static> Drop for World<M> {
    fn drop(&mut self) {
        self.shards.iter().for_each(|shard| shard.close());
    }
}
