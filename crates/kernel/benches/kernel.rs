//! Events per second, on the kernel's queue and on the standard library's heap. Each packet takes a dozen steps over
//! shared servers. Prints `name  value  unit` lines.
//!
//! Wires connect the nodes to a ring. Each node has a card-like chain of servers, a pool of handler cores and
//! credits. The state of 16 nodes fits a CPU cache, and the state of 1024 nodes does not. There is one task per packet,
//! with delays from 1 ns to a few us. The figures are medians of interleaved runs, in CPU time.

use cpu_time::ThreadTime;
use nicety_kernel::{Config, Credits, Pool, QueueKind, Server, Sim, Summary, World};
use nicety_types::{Duration, Time};
use std::rc::Rc;

const ROUNDS: usize = 9;
/// Number of packet visits to nodes in a run. A packet counts once per hop.
const HANDLED: u64 = 1 << 17;
/// Number of nodes in the ring, number of packets in flight, and the suffix of the figures' names.
const SIZES: [(usize, u64, &str); 4] =
    [(16, 1024, ""), (16, 256, "_256_packets"), (16, 4096, "_4096_packets"), (1024, 65_536, "_1024_nodes")];
const LATENCY: Duration = Duration::from_ns(30);

struct Card {
    sim: Sim,
    bus: Server,
    matching: Server,
    dma: Server,
    processors: Pool,
    buffers: Credits,
}

/// A packet's number, and the number of its remaining hops.
type Packet = (u64, u32);

impl Card {
    /// Returns a time between 1 ns and 2 us, mostly short. The packet and its step determine the time.
    fn time(&self, packet: Packet, step: u64) -> Duration {
        let mixed = (packet.0 ^ u64::from(packet.1) << 40 ^ step << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let magnitude = 1 + (mixed >> 60) % 11;
        Duration::from_ps(1_000 + (mixed >> 20) % (1_000 << magnitude))
    }

    async fn carry(&self, packet: Packet) {
        let buffer = self.buffers.acquire(1).await;
        self.sim.delay(self.time(packet, 0)).await;
        self.bus.serve(Duration::from_ns(2)).await;
        self.sim.delay(self.time(packet, 1)).await;
        self.matching.serve(Duration::from_ns(3)).await;
        self.sim.delay(self.time(packet, 2)).await;
        let processor = self.processors.acquire().await;
        self.sim.delay(self.time(packet, 3)).await;
        self.dma.serve(Duration::from_ns(2)).await;
        self.sim.delay(self.time(packet, 4)).await;
        drop(processor);
        self.sim.delay(self.time(packet, 5)).await;
        self.bus.serve(Duration::from_ns(2)).await;
        drop(buffer);
        self.sim.delay(self.time(packet, 6)).await;
    }
}

/// Returns a world of cards in a ring, with `packets` in flight for `hops` hops each.
fn ring(queue: QueueKind, size: usize, packets: u64, hops: u32) -> World<Packet> {
    let mut world: World<Packet> = World::with_queue(Config::default(), queue);
    let nodes: Vec<_> = (0..size).map(|_| world.add_node()).collect();
    let wires: Vec<_> = (0..size).map(|i| world.wire(nodes[i], nodes[(i + 1) % size], LATENCY)).collect();
    let (outgoing, mut incoming): (Vec<_>, Vec<_>) = wires.into_iter().unzip();
    for packet in 0..packets {
        outgoing[packet as usize % size]
            .send(Time::ZERO + LATENCY + Duration::from_ps(packet * 1_300), (packet, hops));
    }
    incoming.rotate_right(1);
    for ((&node, tx), rx) in nodes.iter().zip(outgoing.into_iter().map(Rc::new)).zip(incoming) {
        let sim = world.sim(node);
        let card = Rc::new(Card {
            bus: Server::new(&sim),
            matching: Server::new(&sim),
            dma: Server::new(&sim),
            processors: Pool::new(&sim, 64),
            buffers: Credits::new(&sim, 256),
            sim: sim.clone(),
        });
        sim.spawn(async move {
            loop {
                let packet = rx.recv().await;
                let (card, tx) = (card.clone(), tx.clone());
                card.sim.clone().spawn(async move {
                    card.carry(packet).await;
                    if packet.1 > 0 {
                        tx.send(card.sim.now() + LATENCY, (packet.0, packet.1 - 1));
                    }
                });
            }
        });
    }
    world
}

/// Returns the events per second of a run, and its summary.
fn run(queue: QueueKind, size: usize, packets: u64) -> (f64, Summary) {
    let mut world = ring(queue, size, packets, (HANDLED / packets) as u32);
    let start = ThreadTime::now();
    let summary = world.run().expect("services only");
    (summary.events as f64 / start.elapsed().as_secs_f64(), summary)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    for (size, packets, suffix) in SIZES {
        let (mut wheel, mut heap, mut ratio) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (a, one) = run(QueueKind::Wheel, size, packets);
            let (b, other) = run(QueueKind::BinaryHeap, size, packets);
            assert_eq!(one, other, "the queue cannot change a run");
            wheel.push(a);
            heap.push(b);
            ratio.push(a / b);
        }
        println!("events_per_s{suffix}  {:.0}  events/s", median(wheel));
        println!("events_per_s_binary_heap{suffix}  {:.0}  events/s", median(heap));
        println!("ratio{suffix}  {:.2}  1", median(ratio));
    }
}
