//! Open-loop traffic on the bare ports of a torus, without cards and hosts.
//!
//! Every sending node has a source. The source generates packets by a Poisson process. They enter an unbounded queue, and go to
//! the port in order. The latency of a packet lasts from its entry into the queue to the arrival of its last byte. Packets that
//! enter the queue in the measured window are measured. Sources continue until the last measured packet has arrived, so that all
//! measured packets meet the same load (Dally and Towles, chapters 23 and 24). Then the sources stop, and all packets in the
//! network must arrive.

use super::load::Load;
use super::pattern::{Destinations, Pattern};
use nicety::{Capture, CapturedRun, Error, LinkLayer};
use nicety_fabric::{
    Channel, HeaderBytes, Label, Network, NetworkSpec, Packet, Port, Symbol, Topology, Torus, TorusShape,
};
use nicety_kernel::{Config, Interrupt, Rng, RunError, Sim, World};
use nicety_types::{Duration, Flight, MessageId, NodeId, Path, Payload, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sources give up after this number of measured windows, each including the warm-up.
const PATIENCE: u64 = 10;
/// Bytes of a packet's header. It has the packet's generation time, source and destination.
const HEADER: usize = 16;

/// One run: a pattern at an offered load.
#[derive(Clone, Copy)]
pub(super) struct Experiment {
    pub(super) torus: Torus,
    pub(super) shape: TorusShape,
    pub(super) network: NetworkSpec,
    pub(super) pattern: Pattern,
    pub(super) load: Load,
    /// Payload bytes of a packet.
    pub(super) packet: u64,
    pub(super) warmup: Duration,
    pub(super) window: Duration,
    pub(super) seed: u64,
}

/// The results of a run.
#[derive(Debug)]
pub(super) struct Measured {
    /// The number of nodes that send.
    pub(super) senders: u64,
    /// The number of packets that arrived in the measured window.
    pub(super) accepted: u64,
    /// The latencies of the measured packets.
    pub(super) latencies: Vec<Duration>,
    /// The sum of the links that the measured packets crossed.
    pub(super) hops: u64,
    /// The number of measured packets that never left the queue of their source.
    pub(super) undelivered: u64,
}

/// The state of all sources and sinks, which a program of a node could not read. It collects the measurements, and ends the
/// traffic when they are complete.
struct Observer {
    shape: TorusShape,
    begin: Time,
    end: Time,
    /// The time at which sources give up.
    limit: Time,
    /// The number of sources that may still generate packets to measure.
    measuring: Cell<u64>,
    /// The number of measured packets in the network.
    under_way: Cell<u64>,
    over: Cell<bool>,
    sent: Cell<u64>,
    received: Cell<u64>,
    accepted: Cell<u64>,
    hops: Cell<u64>,
    undelivered: Cell<u64>,
    latencies: RefCell<Vec<Duration>>,
    /// The destination of a packet that arrived at a wrong node, and that node.
    astray: Cell<Option<(u32, u32)>>,
}

impl Observer {
    /// Returns an observer that measures packets generated from `begin` to `end`.
    fn new(shape: TorusShape, begin: Time, end: Time) -> Observer {
        Observer {
            shape,
            begin,
            end,
            limit: Time::from_ps(end.ps().saturating_mul(PATIENCE)),
            measuring: Cell::new(0),
            under_way: Cell::new(0),
            over: Cell::new(false),
            sent: Cell::new(0),
            received: Cell::new(0),
            accepted: Cell::new(0),
            hops: Cell::new(0),
            undelivered: Cell::new(0),
            latencies: RefCell::default(),
            astray: Cell::new(None),
        }
    }
}

impl Experiment {
    /// Runs the experiment. `now` gets the virtual time in picoseconds, as progress. `capture` gets the packets of links.
    ///
    /// # Errors
    /// When the network deadlocks, a packet is lost, or the run is interrupted.
    pub(super) fn run(
        self,
        interrupt: Option<Interrupt>,
        capture: Option<&Capture>,
        now: &Arc<AtomicU64>,
    ) -> Result<Measured, Error> {
        let Experiment { torus, shape, network, pattern, .. } = self;
        let mut world: World<Symbol> =
            World::new(Config { seed: self.seed, shards: 1, interrupt, max_time: None });
        let nodes: Vec<NodeId> = (0..shape.hosts()).map(|_| world.add_node()).collect();
        let (mut ports, mut network) = Topology::Torus(torus).build(&mut world, &nodes, &network)?;
        if let Some(capture) = capture {
            network.capture(capture.memory(), &mut ports, None);
        }
        let network = Rc::new(network);
        let end = Time::ZERO + self.warmup + self.window;
        let observer = Rc::new(Observer::new(shape, Time::ZERO + self.warmup, end));
        let spacing = self.load.spacing(self.network.link.serialisation(self.packet).ps());
        let mut senders = 0;
        for (&node, port) in nodes.iter().zip(ports) {
            let (sim, port) = (world.sim(node), Rc::new(port));
            sim.spawn(sink(sim.clone(), port.clone(), observer.clone(), now.clone()));
            let destinations = Destinations::new(pattern, &shape, node.0, sim.rng("destinations"));
            let Some(destinations) = destinations else { continue };
            senders += 1;
            let arrivals = sim.rng("arrivals");
            let source = Source { sim, port, destinations, arrivals, spacing, bytes: self.packet };
            source.sim.clone().spawn_program(format!("source {}", node.0), source.run(observer.clone()));
        }
        observer.measuring.set(senders);
        let sim = world.sim(nodes[0]);
        sim.spawn(look_for_losses(sim.clone(), end.since(Time::ZERO), network.clone(), observer.clone()));
        let ended = world.run().map_err(|error| match error {
            RunError::Interrupted { .. } => Error::Interrupted,
            error => Error::Deadlock(error.to_string()),
        });
        let captured = capture.map_or(Ok(()), |capture| {
            capture.append(&CapturedRun {
                description: format!("{} routers, topology {torus}, seed {}", shape.hosts(), self.seed),
                layer: LinkLayer::Own,
                end: world.now(),
                links: &network.captured(),
            })
        });
        ended.and(captured)?;
        observer.verify(&network)?;
        Ok(Measured {
            senders,
            accepted: observer.accepted.get(),
            latencies: observer.latencies.take(),
            hops: observer.hops.get(),
            undelivered: observer.undelivered.get(),
        })
    }
}

/// The source of a node's packets.
struct Source {
    sim: Sim,
    port: Rc<Port>,
    destinations: Destinations,
    arrivals: Rng,
    /// The mean interval between packets, in picoseconds.
    spacing: u64,
    bytes: u64,
}

impl Source {
    async fn run(mut self, observer: Rc<Observer>) {
        let mut due = Time::ZERO + self.gap();
        let mut measured = true;
        for number in 0.. {
            if measured && self.sim.now() >= observer.limit {
                while due < observer.end {
                    observer.undelivered.set(observer.undelivered.get() + 1);
                    due += self.gap();
                }
            }
            if measured && due >= observer.end {
                measured = false;
                observer.measuring.set(observer.measuring.get() - 1);
                observer.look();
            }
            self.sim.until(due).await;
            let turn = self.port.turn(Flight::resting(Path::clock(due))).await;
            if observer.over.get() {
                return;
            }
            let packet = self.packet(number, due);
            self.port.launch(packet, turn);
            observer.sent(due);
            due += self.gap();
        }
    }

    fn gap(&mut self) -> Duration {
        Duration::from_ps(self.arrivals.exponential(self.spacing))
    }

    fn packet(&mut self, number: u64, due: Time) -> Packet {
        let (source, to) = (self.sim.node(), self.destinations.next());
        Packet {
            label: Label {
                destination: NodeId(to),
                message: MessageId { source, sequence: number },
                offset: 0,
            },
            channel: Channel::Data(0),
            header: Header { due, source: source.0, to }.emit(),
            payload: Payload::phantom(self.bytes),
            path: Path::clock(due),
        }
    }
}

/// Receives the packets of a node as they arrive.
async fn sink(sim: Sim, port: Rc<Port>, observer: Rc<Observer>, now: Arc<AtomicU64>) {
    loop {
        let packet = port.receive().await;
        port.free_slot();
        observer.received(Header::parse(packet.header.as_slice()), sim.node().0, sim.now());
        now.store(sim.now().ps(), Ordering::Relaxed);
    }
}

/// Ends the traffic after a packet loss, because sources would otherwise wait for ever. Checks at intervals of `every`.
async fn look_for_losses(sim: Sim, every: Duration, network: Rc<Network>, observer: Rc<Observer>) {
    while !observer.over.get() {
        sim.delay(every).await;
        if !network.causes().is_empty() {
            observer.over.set(true);
        }
    }
}

impl Observer {
    fn is_measured(&self, due: Time) -> bool {
        (self.begin..self.end).contains(&due)
    }

    fn sent(&self, due: Time) {
        self.sent.set(self.sent.get() + 1);
        if self.is_measured(due) {
            self.under_way.set(self.under_way.get() + 1);
        }
    }

    fn received(&self, Header { due, source, to }: Header, by: u32, now: Time) {
        self.received.set(self.received.get() + 1);
        if to != by {
            self.astray.set(Some((to, by)));
        }
        if (self.begin..self.end).contains(&now) {
            self.accepted.set(self.accepted.get() + 1);
        }
        if self.is_measured(due) {
            self.latencies.borrow_mut().push(now.since(due));
            self.hops.set(self.hops.get() + u64::from(self.shape.hops(source, by)));
            self.under_way.set(self.under_way.get() - 1);
            self.look();
        }
    }

    /// Ends the traffic if all measured packets have arrived, and no more will be generated.
    fn look(&self) {
        if self.measuring.get() == 0 && self.under_way.get() == 0 {
            self.over.set(true);
        }
    }

    /// Checks that all sent packets have arrived, and at their destinations.
    fn verify(&self, network: &Network) -> Result<(), Error> {
        if let Some((to, by)) = self.astray.get() {
            return Err(Error::Program(format!("a packet for node {to} came to node {by}")));
        }
        let (sent, received) = (self.sent.get(), self.received.get());
        match sent == received {
            true => Ok(()),
            false => {
                let first =
                    network.lost_packets().first().map(|packet| format!("; the first lost packet: {packet}"));
                Err(Error::Undelivered(format!(
                    "{} of {sent} packets were not delivered and not retransmitted{}",
                    sent - received,
                    first.unwrap_or_default()
                )))
            }
        }
    }
}

/// The header of a packet.
struct Header {
    due: Time,
    source: u32,
    to: u32,
}

impl Header {
    fn emit(&self) -> HeaderBytes {
        HeaderBytes::emitted(HEADER, |bytes| {
            bytes[..8].copy_from_slice(&self.due.ps().to_le_bytes());
            bytes[8..12].copy_from_slice(&self.source.to_le_bytes());
            bytes[12..].copy_from_slice(&self.to.to_le_bytes());
        })
    }

    fn parse(bytes: &[u8]) -> Header {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let due = u64::from(word(0)) | u64::from(word(4)) << 32;
        Header { due: Time::from_ps(due), source: word(8), to: word(12) }
    }
}
