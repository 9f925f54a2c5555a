//! [`World`]: all nodes of a run, spread over shards, and the run itself.
//!
//! Shards advance in windows. A message to another shard arrives at least the minimum latency between shards after the
//! earliest event. Until then every shard can run by itself. Shards exchange messages between windows. The keys of
//! messages order them, so the order of events is the same for any number of shards.
//!
//! In one thread, shards take turns. With several threads or processes, each one builds the whole world and runs one
//! shard: its part. [Parts](crate::Parts) share only the messages that they exchange between windows.

use crate::error::{RunError, Waiting};
use crate::interrupt::Interrupt;
use crate::messages::Messages;
use crate::parts::Parts;
use crate::queue::QueueKind;
use crate::receiver::Receiver;
use crate::shard::Shard;
use crate::sim::Sim;
use crate::wire::{Envelope, Outbox, WireRx, WireTx};
use nicety_types::{Duration, LinkId, NodeId, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// The inputs and limits of a run.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The seed of all random streams.
    pub seed: u64,
    /// The number of shards over which the nodes are spread. Zero means one. Results do not depend on the number of
    /// shards.
    pub shards: usize,
    /// If this interrupt is set, the run ends with [`RunError::Interrupted`].
    pub interrupt: Option<Interrupt>,
    /// An event later than this ends the run with [`RunError::TimeLimit`]. So does an event at the end of time.
    pub max_time: Option<Time>,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The time of the last event, of the arrival of the last [unit](WireTx::send_unit), or of the last
    /// [expected](Sim::expect) occurrence.
    pub end: Time,
    /// Number of events since the world began: arrivals, delays, and wakes of tasks. The arrival of a unit is an event
    /// only if a task waits for it.
    pub events: u64,
}

/// The shards that a world runs: all, or one shard and the connection to the parts that run the other shards.
enum ShardSet<M> {
    All,
    One(Box<dyn Parts<Envelope<M>>>),
}

/// All nodes of a run. `M` is the type of messages between them, passed by value.
pub struct World<M: Send + 'static> {
    config: Config,
    shards: Vec<Rc<Shard>>,
    whose: ShardSet<M>,
    /// The messages of each shard to other shards.
    outboxes: Vec<Outbox<M>>,
    /// The messages in flight to each shard.
    messages: Vec<Rc<Messages<M>>>,
    /// The number of the shard of each node.
    places: Vec<u32>,
    /// The far end of each wire, by link.
    receivers: Vec<Rc<Receiver<M>>>,
    /// Messages from other parts.
    incoming: Vec<Envelope<M>>,
    /// The minimum latency of the wires between shards.
    lookahead: Duration,
    /// The end of the window that an interrupt ended early.
    unfinished: Option<Time>,
}

impl<M: Send + 'static> World<M> {
    /// Returns a world without nodes, at time zero.
    pub fn new(config: Config) -> World<M> {
        World::with_queue(config, QueueKind::default())
    }

    /// Returns a world with another kind of event queue, to compare queues.
    pub fn with_queue(config: Config, queue: QueueKind) -> World<M> {
        World::of(config, queue, ShardSet::All)
    }

    /// Returns one part of a world. The world has one shard per part, and this part [runs](World::run) the shard with
    /// its own number. All parts must build the same world. Tasks started on nodes of other shards never run in this
    /// part.
    pub fn part(config: Config, parts: Box<dyn Parts<Envelope<M>>>) -> World<M> {
        let shards = parts.place().1;
        World::of(Config { shards, ..config }, QueueKind::default(), ShardSet::One(parts))
    }

    fn of(mut config: Config, queue: QueueKind, whose: ShardSet<M>) -> World<M> {
        config.shards = config.shards.max(1);
        let shards = config.shards;
        let shard = |_| Shard::new(config.seed, config.interrupt.clone(), queue, shards == 1);
        World {
            shards: (0..shards).map(shard).collect(),
            whose,
            outboxes: (0..shards).map(|_| outbox(shards)).collect(),
            messages: (0..shards).map(|_| Messages::new()).collect(),
            places: Vec::new(),
            receivers: Vec::new(),
            incoming: Vec::new(),
            lookahead: Duration::MAX,
            unfinished: None,
            config,
        }
    }

    /// Adds a node. Nodes are numbered from zero. Consecutive nodes go to different shards, in turn.
    pub fn add_node(&mut self) -> NodeId {
        self.add_node_in(self.places.len() % self.shards.len())
    }

    /// Adds a node to a shard.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn add_node_in(&mut self, shard: usize) -> NodeId {
        assert!(shard < self.shards.len(), "there are {} shards", self.shards.len());
        let node = NodeId(u32::try_from(self.places.len()).expect("fewer than 2^32 nodes"));
        self.places.push(shard as u32);
        node
    }

    /// Adds a node to the shard of `neighbour`.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn add_node_beside(&mut self, neighbour: NodeId) -> NodeId {
        self.add_node_in(self.shard_of(neighbour))
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.places.len()
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Whether a node runs here, and not in another [part](World::part).
    ///
    /// # Panics
    /// If there is no such node.
    pub fn runs(&self, node: NodeId) -> bool {
        match &self.whose {
            ShardSet::All => true,
            ShardSet::One(parts) => self.shard_of(node) == parts.place().0,
        }
    }

    fn shard_of(&self, node: NodeId) -> usize {
        let shard = self.places.get(node.0 as usize);
        *shard.unwrap_or_else(|| panic!("{node} does not exist: there are {} nodes", self.nodes())) as usize
    }

    /// Returns the handle of a node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn sim(&self, node: NodeId) -> Sim {
        Sim::new(self.shards[self.shard_of(node)].clone(), node)
    }

    /// Lays a one-way wire, on which a message takes at least `min_latency`. Wires are numbered in order of creation.
    /// If messages arrive at a node at the same instant, the messages of the wire with the smaller number come first.
    /// Both ends of a wire may be at the same node.
    ///
    /// # Panics
    /// If `min_latency` is zero, or there is no such node.
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
            WireTx::remote(self.sim(from), &receiver, (self.outboxes[near].clone(), far), min_latency)
        };
        (tx, WireRx::new(receiver, from))
    }

    /// Runs until no event is left. It may be called again after more tasks have been started or after an interrupt. A
    /// part runs together with the other parts, and all parts end at the same virtual time. The deadlock error of a
    /// part names only the part's own programs.
    ///
    /// # Errors
    /// [`RunError::Deadlock`] if no event is left and a program still waits. [`RunError::Interrupted`] and
    /// [`RunError::TimeLimit`] as described in [`Config`]. [`RunError::Left`] if this is a part and another part was
    /// dropped.
    ///
    /// # Panics
    /// If a task panics.
    pub fn run(&mut self) -> Result<Summary, RunError> {
        let limit = self.config.max_time.unwrap_or(Time::MAX);
        // The end is exclusive. At the end of time nothing runs: the run only learns that an event exists.
        let end = Time::from_ps(limit.ps().saturating_add(1));
        if self.shards.iter().any(|shard| shard.is_interrupted()) {
            return Err(RunError::Interrupted { at: self.now() });
        }
        loop {
            if self.unfinished.is_none() {
                let Some(next) = self.exchange()? else { break };
                if next >= end {
                    return Err(RunError::TimeLimit { at: limit });
                }
                let horizon = Time::from_ps(next.ps().saturating_add(self.lookahead.ps()));
                self.unfinished = Some(horizon.min(end));
            }
            let until = self.unfinished.unwrap_or(end);
            if self.own().iter().any(|shard| shard.run_before(until).is_err()) {
                return Err(RunError::Interrupted { at: self.now() });
            }
            self.unfinished = None;
        }
        // The last arrival may be a unit, which is no event unless a task waits for it.
        let last_unit = self.latest(self.own().iter().map(|shard| shard.last_unit()).max())?;
        if last_unit >= end {
            return Err(RunError::TimeLimit { at: limit });
        }
        let end = self.latest(Some(self.now()))?.max(last_unit);
        self.own().iter().for_each(|shard| shard.set_now(end));
        let waiting = self.stuck_programs();
        if !waiting.is_empty() {
            return Err(RunError::Deadlock { at: end, waiting });
        }
        Ok(Summary { end, events: self.own().iter().map(|shard| shard.events()).sum() })
    }

    /// The time of the last event. In a part of a world, the time of the last event in this part.
    pub fn now(&self) -> Time {
        self.own().iter().map(|shard| shard.now()).max().unwrap_or(Time::ZERO)
    }

    /// The shards that run in this thread.
    fn own(&self) -> &[Rc<Shard>] {
        match &self.whose {
            ShardSet::All => &self.shards,
            ShardSet::One(parts) => std::slice::from_ref(&self.shards[parts.place().0]),
        }
    }

    /// Delivers the messages between shards. Returns the time of the next event in any shard, if any.
    fn exchange(&mut self) -> Result<Option<Time>, RunError> {
        match &mut self.whose {
            ShardSet::All => {
                for outbox in &self.outboxes {
                    outbox.borrow_mut().iter_mut().for_each(|mail| accept(&self.receivers, mail));
                }
                Ok(self.shards.iter().filter_map(|shard| shard.next_time()).min())
            }
            ShardSet::One(parts) => {
                let own = parts.place().0;
                let mut outbox = self.outboxes[own].borrow_mut();
                let sent = outbox.iter().flatten().map(|sent| sent.time).min();
                let next = sent.into_iter().chain(self.shards[own].next_time()).min();
                let words = parts.meet(next.map_or(NEVER, Time::ps), &mut outbox, &mut self.incoming);
                let next = words.and_then(|words| words.iter().min().copied());
                accept(&self.receivers, &mut self.incoming);
                match next {
                    None => Err(RunError::Left { at: self.shards[own].now() }),
                    Some(NEVER) => Ok(None),
                    Some(next) => Ok(Some(Time::from_ps(next))),
                }
            }
        }
    }

    /// Returns the latest of the times that all parts report.
    fn latest(&mut self, here: Option<Time>) -> Result<Time, RunError> {
        let here = here.unwrap_or(Time::ZERO);
        let ShardSet::One(parts) = &mut self.whose else { return Ok(here) };
        match parts.meet(here.ps(), &mut [], &mut self.incoming) {
            Some(words) => Ok(Time::from_ps(words.iter().max().copied().unwrap_or_default())),
            None => Err(RunError::Left { at: self.now() }),
        }
    }

    fn stuck_programs(&self) -> Vec<Waiting> {
        let stuck = self.own().iter().flat_map(|shard| shard.stuck_programs());
        let mut waiting: Vec<Waiting> =
            stuck.map(|s| Waiting { node: s.node, program: s.program, why: s.why, since: s.since }).collect();
        // The sort is stable: programs of a node stay in the order of their start.
        waiting.sort_by_key(|w| w.node);
        waiting
    }
}

/// The word that a part without events sends, instead of the time of its next event.
const NEVER: u64 = u64::MAX;

fn outbox<M>(shards: usize) -> Outbox<M> {
    Rc::new(RefCell::new((0..shards).map(|_| Vec::new()).collect()))
}

fn accept<M: 'static>(receivers: &[Rc<Receiver<M>>], mail: &mut Vec<Envelope<M>>) {
    for Envelope { link, time, count, message } in mail.drain(..) {
        receivers[link.0 as usize].accept(time, count, message);
    }
}

impl<M: Send + 'static> Drop for World<M> {
    fn drop(&mut self) {
        self.shards.iter().for_each(|shard| shard.close());
    }
}
