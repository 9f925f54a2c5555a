//! The same model in one shard, in several shards, in separate threads, and on both kinds of queue. The runs are the
//! same to the last bit.

use nicety_kernel::{
    Channel, Config, Credits, Envelope, Interrupt, Pool, QueueKind, RunError, Server, Signal, Sim, Summary,
    Threads, WireRx, WireTx, World, describe, race, timeout,
};
use nicety_types::{Duration, NodeId, Time};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A packet that hops between random nodes until no hop is left.
#[derive(Clone, Copy, Debug)]
struct Packet {
    id: u64,
    hops: u32,
}

#[derive(Clone, Debug)]
struct Network {
    seed: u64,
    nodes: u32,
    /// The node from which a wire leads, the node to which it leads, and its minimum latency in picoseconds.
    wires: Vec<(u32, u32, u64)>,
    packets: u64,
    hops: u32,
    /// Times are multiples of this value. The larger the value, the more events coincide.
    grain: u64,
    /// Whether a program waits for ever.
    stuck: bool,
}

fn network() -> impl Strategy<Value = Network> {
    let shape = (1..9u32).prop_flat_map(|nodes| {
        let wire = (0..nodes, 0..nodes, prop_oneof![1..5u64, 100..2_000u64, Just(1_000), Just(50_000)]);
        (Just(nodes), proptest::collection::vec(wire, 1..16))
    });
    let grain = prop_oneof![Just(1), Just(100), Just(1_000)];
    (any::<u64>(), shape, 1..4u64, 0..30u32, grain, any::<bool>()).prop_map(
        |(seed, (nodes, wires), packets, hops, grain, stuck)| Network {
            seed,
            nodes,
            wires,
            packets,
            hops,
            grain,
            stuck,
        },
    )
}

/// The events of a node, in their order.
type Trace = Rc<RefCell<Vec<String>>>;

struct Node {
    sim: Sim,
    trace: Trace,
    out: Vec<WireTx<Packet>>,
    server: Server,
    pool: Pool,
    credits: Credits,
    channel: Channel<Packet>,
    signal: Signal,
    rng: RefCell<nicety_kernel::Rng>,
    served: Cell<u64>,
    grain: u64,
}

impl Node {
    fn random_time(&self) -> Duration {
        Duration::from_ps(self.rng.borrow_mut().below(6) * self.grain)
    }

    fn log(&self, what: impl Into<String>) {
        self.trace.borrow_mut().push(format!("{} {}", self.sim.now(), what.into()));
    }

    /// Takes some steps that use the node's resources, then sends the packet to a random neighbour.
    async fn handle(&self, packet: Packet) {
        self.log(format!("arrived {packet:?}"));
        let steps = self.rng.borrow_mut().below(4);
        for _ in 0..steps {
            let (time, patience) = (self.random_time(), self.random_time());
            let choice = self.rng.borrow_mut().below(7);
            match choice {
                0 => drop(self.server.serve(time).await),
                1 => {
                    let _permit = self.pool.acquire().await;
                    self.sim.delay(time).await;
                }
                2 => drop(timeout(&self.sim, patience, self.server.serve(time)).await),
                3 => {
                    let amount = self.rng.borrow_mut().below(3);
                    let credits = timeout(&self.sim, patience, self.credits.acquire(amount)).await;
                    self.sim.delay(time).await;
                    drop(credits);
                }
                4 => drop(race(self.signal.wait(), self.sim.delay(time)).await),
                5 => drop(race(self.channel.send(packet), self.sim.delay(time)).await),
                _ => self.sim.delay(time).await,
            }
            self.log(format!("{} after step {choice}", packet.id));
        }
        self.served.set(self.served.get() + 1);
        self.signal.notify_one();
        if packet.hops > 0 && !self.out.is_empty() {
            let wire = self.rng.borrow_mut().below(self.out.len() as u64) as usize;
            let arrival = self.sim.now() + self.out[wire].min_latency() + self.random_time();
            self.out[wire].send(arrival, Packet { hops: packet.hops - 1, ..packet });
        }
    }
}

fn build(network: &Network, world: &mut World<Packet>) -> Vec<Trace> {
    let ids: Vec<NodeId> = (0..network.nodes).map(|_| world.add_node()).collect();
    let mut out: Vec<Vec<WireTx<Packet>>> = ids.iter().map(|_| Vec::new()).collect();
    let mut receivers: Vec<Vec<WireRx<Packet>>> = ids.iter().map(|_| Vec::new()).collect();
    for &(from, to, latency) in &network.wires {
        let (tx, rx) = world.wire(NodeId(from), NodeId(to), Duration::from_ps(latency));
        out[from as usize].push(tx);
        receivers[to as usize].push(rx);
    }
    let mut traces = Vec::new();
    for ((&id, out), receivers) in ids.iter().zip(out).zip(receivers) {
        let sim = world.sim(id);
        let trace = Trace::default();
        traces.push(trace.clone());
        let node = Rc::new(Node {
            trace,
            out,
            server: Server::new(&sim),
            pool: Pool::new(&sim, 2),
            credits: Credits::new(&sim, 3),
            channel: Channel::new(&sim, 2),
            signal: Signal::new(&sim),
            rng: RefCell::new(sim.rng("steps")),
            served: Cell::new(0),
            grain: network.grain,
            sim: sim.clone(),
        });
        for rx in receivers {
            let node = node.clone();
            sim.spawn(async move {
                loop {
                    let packet = rx.recv().await;
                    let handler = node.clone();
                    node.sim.spawn(async move { handler.handle(packet).await });
                }
            });
        }
        let drain = node.clone();
        sim.spawn(async move {
            while let Some(packet) = drain.channel.recv().await {
                drain.log(format!("drained {}", packet.id));
                drain.sim.delay(drain.random_time()).await;
            }
        });
        let (program, packets, hops) = (node.clone(), network.packets, network.hops);
        sim.spawn_program(format!("source {}", id.0), async move {
            for i in 0..packets {
                program.handle(Packet { id: u64::from(program.sim.node().0) << 32 | i, hops }).await;
            }
        });
        if network.stuck {
            let program = node.clone();
            sim.spawn_program("stuck", async move {
                let text = || format!("{} more than will come", program.served.get());
                describe(text, program.signal.wait_until(|| false)).await;
            });
        }
    }
    traces
}

type Outcome = (Result<Summary, RunError>, Vec<Vec<String>>);

fn run(network: &Network, shards: usize, queue: QueueKind) -> Outcome {
    let config = Config { seed: network.seed, shards, ..Config::default() };
    let mut world = World::with_queue(config, queue);
    let traces = build(network, &mut world);
    let result = world.run();
    drop(world);
    (result, traces.iter().map(|trace| trace.borrow().clone()).collect())
}

/// Runs the network in a thread for each of `parts` shards.
fn run_in_threads(network: &Network, parts: usize) -> Outcome {
    let part = |threads: Threads<Envelope<Packet>>| {
        let mut world = World::part(Config { seed: network.seed, ..Config::default() }, Box::new(threads));
        let traces = build(network, &mut world);
        let result = world.run();
        let own = (0..).zip(&traces).filter(|(node, _)| world.runs(NodeId(*node)));
        let traces: Vec<_> = own.map(|(node, trace)| (node, trace.borrow().clone())).collect();
        (result, traces)
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> =
            Threads::connected(parts).into_iter().map(|threads| scope.spawn(move || part(threads))).collect();
        running.into_iter().map(|part| part.join().unwrap()).collect()
    });
    let (mut traces, mut events, mut end, mut stuck) = (Vec::new(), 0, Time::ZERO, Vec::new());
    for (result, own) in outcomes {
        traces.extend(own);
        match result {
            Ok(summary) => (events, end) = (events + summary.events, summary.end),
            Err(RunError::Deadlock { at, waiting }) => {
                stuck.extend(waiting);
                end = at;
            }
            Err(other) => panic!("{other}"),
        }
    }
    traces.sort();
    stuck.sort_by_key(|waiting| waiting.node);
    let result = match stuck.is_empty() {
        true => Ok(Summary { end, events }),
        false => Err(RunError::Deadlock { at: end, waiting: stuck }),
    };
    (result, traces.into_iter().map(|(_, trace)| trace).collect())
}

/// Number of random cases: `usual`, or more if `PROPTEST_CASES` asks for a long run.
fn cases(usual: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    // The default is PROPTEST_CASES, or 256 without it.
    ProptestConfig { cases: usual.max(default.cases), ..default }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_run_does_not_depend_on_shards_or_queues(network in network()) {
        let one = run(&network, 1, QueueKind::Wheel);
        prop_assert!(one.1.iter().any(|trace| !trace.is_empty()));
        prop_assert_eq!(one.0.is_err(), network.stuck);
        prop_assert_eq!(&run(&network, 1, QueueKind::BinaryHeap), &one);
        for shards in [2, 3, network.nodes as usize] {
            prop_assert_eq!(&run(&network, shards, QueueKind::Wheel), &one, "{} shards", shards);
        }
        prop_assert_eq!(&run(&network, 2, QueueKind::BinaryHeap), &one);
    }
}

proptest! {
    // Threads that wait for each other in every window take long if other processes use the CPU cores.
    #![proptest_config(ProptestConfig { cases: cases(0).cases / 20, ..cases(0) })]

    #[test]
    fn a_run_does_not_depend_on_threads(network in network()) {
        let one = run(&network, 1, QueueKind::Wheel);
        for parts in [1, 2, 5] {
            prop_assert_eq!(&run_in_threads(&network, parts), &one, "{} threads", parts);
        }
    }
}

#[test]
fn a_shard_that_sleeps_long_is_woken_in_time() {
    // Node 1's next own event is far in the future when messages from node 0 arrive one after the other.
    for shards in [1, 2] {
        let mut world: World<u64> = World::new(Config { shards, ..Config::default() });
        let (a, b) = (world.add_node(), world.add_node());
        let (tx, rx) = world.wire(a, b, Duration::from_ns(1));
        let (back, rx_back) = world.wire(b, a, Duration::from_ns(1));
        let (sa, sb) = (world.sim(a), world.sim(b));
        let s = sb.clone();
        sb.spawn_program("late", async move { s.until(Time::from_ps(1 << 45)).await });
        let s = sb.clone();
        sb.spawn(async move {
            loop {
                let message = rx.recv().await;
                s.delay(Duration::from_ps(500)).await;
                back.send(s.now() + Duration::from_ns(1), message + 1);
            }
        });
        let s = sa.clone();
        sa.spawn_program("ping", async move {
            for i in 0..1_000 {
                tx.send(s.now() + Duration::from_ns(1), i);
                assert_eq!(rx_back.recv().await, i + 1);
                assert_eq!(s.now(), Time::from_ps((i + 1) * 2_500));
            }
        });
        assert_eq!(world.run().unwrap().end, Time::from_ps(1 << 45));
    }
}

/// Two nodes in two parts send a message to each other for ever.
fn volley(threads: Threads<Envelope<u32>>, interrupt: Option<Interrupt>) -> World<u32> {
    let mut world = World::part(Config { interrupt, ..Config::default() }, Box::new(threads));
    let (a, b) = (world.add_node_in(0), world.add_node_in(1));
    let (there, comes) = world.wire(a, b, Duration::from_ns(1));
    let (back, returns) = world.wire(b, a, Duration::from_ns(1));
    let (at_a, at_b) = (world.sim(a), world.sim(b));
    at_a.clone().spawn_program("serves", async move {
        loop {
            there.send(at_a.now() + Duration::from_ns(1), 0);
            returns.recv().await;
        }
    });
    at_b.clone().spawn_program("returns", async move {
        loop {
            let message = comes.recv().await;
            back.send(at_b.now() + Duration::from_ns(1), message);
        }
    });
    world
}

#[test]
fn a_part_that_is_interrupted_goes_on_and_one_that_leaves_lets_the_others_go() {
    let parts = Threads::connected(2);
    let [first, second]: [Threads<Envelope<u32>>; 2] = parts.try_into().unwrap();
    let stops = Arc::new(AtomicBool::new(true));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| volley(second, None).run());
        let mut world = volley(first, Some(stops.clone().into()));
        for _ in 0..3 {
            assert!(matches!(world.run(), Err(RunError::Interrupted { .. })));
        }
        assert_eq!(world.now(), Time::ZERO, "interrupted before it began");
        // The interrupt comes during the run. The next run continues from there.
        let looks = Arc::new(AtomicU64::new(0));
        drop(world);
        assert!(matches!(other.join().unwrap(), Err(RunError::Left { .. })));
        let [first, second]: [Threads<Envelope<u32>>; 2] = Threads::connected(2).try_into().unwrap();
        let other = scope.spawn(|| volley(second, None).run());
        let counted = looks.clone();
        let every = move || counted.fetch_add(1, Ordering::Relaxed) % 3 == 2;
        let mut world = volley(first, Some(Interrupt::new(every)));
        let mut before = Time::ZERO;
        for _ in 0..4 {
            assert!(matches!(world.run(), Err(RunError::Interrupted { .. })));
            assert!(world.now() > before, "it goes on");
            before = world.now();
        }
        drop(world);
        assert!(matches!(other.join().unwrap(), Err(RunError::Left { .. })));
    });
}

#[test]
fn a_part_that_panics_lets_the_others_go() {
    let [first, second]: [Threads<Envelope<u32>>; 2] = Threads::connected(2).try_into().unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| volley(second, None).run());
        let panics = scope.spawn(|| {
            let mut world = volley(first, None);
            let sim = world.sim(NodeId(0));
            sim.clone().spawn(async move {
                sim.delay(Duration::from_ns(100)).await;
                panic!("as it should");
            });
            world.run()
        });
        assert!(panics.join().is_err());
        assert!(matches!(other.join().unwrap(), Err(RunError::Left { .. })));
    });
}
