//! The cost of a packet's traversal of a router, on tori of 64 to 4096 hosts. Also the cost of a simulated millisecond
//! of the largest torus. Traffic is uniform, in packets of 4 KiB over links of 5 GB/s, at half of the saturation load.
//! Prints `name  value  unit` lines. Times are CPU times, so other work on the machine does not matter.

use cpu_time::ThreadTime;
use nicety_fabric::{
    Channel, HeaderBytes, Label, LinkProtocol, LinkSpec, Medium, NetworkSpec, Packet, Port, RouterSpec,
    SwitchSpec, Symbol, Topology, Torus,
};
use nicety_kernel::{Config, Sim, World};
use nicety_types::{Duration, Flight, Gap, MessageId, NodeId, Path, Payload, Time};
use std::rc::Rc;

const ROUNDS: usize = 3;
const PACKET: u64 = 4096;
const GAP: Gap = Gap::new(200, 1);
const SPEC: NetworkSpec = NetworkSpec {
    link: LinkSpec {
        latency: Duration::from_ns(50),
        gap: GAP,
        header: 64,
        buffer: 256,
        channels: 1,
        protocol: LinkProtocol::NONE,
    },
    switch: SwitchSpec { latency: Duration::from_ns(150), ports: 7, buffer: 8 },
    router: Some(RouterSpec {
        latency: Duration::from_ns(150),
        buffer: 8,
        entry: 2,
        gap: None,
        axes: [Medium::LINK; 3],
    }),
};

/// Sends packets to random other hosts until `end`, with a mean interval of `mean`.
async fn send(sim: Sim, port: Rc<Port>, hosts: u32, mean: Duration, end: Time) {
    let (source, mut rng) = (sim.node(), sim.rng("traffic"));
    let (mut next, mut sequence) = (Time::ZERO, 0);
    loop {
        next += Duration::from_ps(rng.below(2 * mean.ps() + 1));
        if next >= end {
            return;
        }
        sim.until(next).await;
        let destination = NodeId((source.0 + 1 + rng.below(u64::from(hosts) - 1) as u32) % hosts);
        let turn = port.turn(Flight::resting(Path::clock(sim.now()))).await;
        let packet = Packet {
            label: Label { destination, message: MessageId { source, sequence }, offset: 0 },
            channel: Channel::Data(0),
            header: HeaderBytes::new(&[0; 64]),
            payload: Payload::phantom(PACKET),
            path: Path::clock(Time::ZERO),
        };
        port.launch(packet, turn);
        sequence += 1;
    }
}

async fn listen(port: Rc<Port>) {
    loop {
        drop(port.receive().await);
        port.free_slot();
    }
}

struct Measured {
    seconds: f64,
    packets: u64,
    /// Number of router traversals.
    passed: u64,
}

/// Runs a torus with `side` hosts in each of three dimensions until `end`.
fn measure(side: u32, end: Time) -> Measured {
    let hosts = side.pow(3);
    let mut world: World<Symbol> = World::new(Config { seed: 1, ..Config::default() });
    let ids: Vec<NodeId> = (0..hosts).map(|_| world.add_node()).collect();
    let torus = Torus::new(&[side; 3]).expect("a torus");
    let (ports, network) = Topology::Torus(torus).build(&mut world, &ids, &SPEC).expect("the hosts fit");
    // For each packet that a host sends, a link carries side / 8 packets. A host sends no faster than its own link.
    let busy = GAP.cover(PACKET + SPEC.link.header);
    let saturated = busy.ps() * u64::from(side.max(8)) / 8;
    let mean = Duration::from_ps(2 * saturated);
    for (&host, port) in ids.iter().zip(ports) {
        let (sim, port) = (world.sim(host), Rc::new(port));
        sim.spawn_program("sender", send(sim.clone(), port.clone(), hosts, mean, end));
        sim.spawn(listen(port));
    }
    let begun = ThreadTime::now();
    world.run().expect("no deadlock");
    let seconds = begun.elapsed().as_secs_f64();
    let statistics = network.statistics();
    let packets = statistics.hosts.iter().map(|port| port.sent_packets).sum();
    assert_eq!(packets, statistics.hosts.iter().map(|port| port.received_packets).sum::<u64>());
    let passed =
        statistics.switches.iter().flat_map(|router| &router.ports).map(|port| port.sent_packets).sum();
    Measured { seconds, packets, passed }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The peak memory of this process in MB, where the system reports it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes / 1000)
}

/// `torus SIDE NS` runs one torus for this simulated time, and prints the number of router traversals.
fn one_of(words: &[String]) -> Option<()> {
    let [side, ns] = words else { return None };
    let end = Time::ZERO + Duration::from_ns(ns.parse().ok()?);
    println!("{}", measure(side.parse().ok()?, end).passed);
    Some(())
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if one_of(&words).is_some() {
        return;
    }
    // Each size has about two million router traversals.
    let sides = [(4, 26_000_000), (8, 1_900_000), (16, 125_000)];
    let mut costs = vec![Vec::new(); sides.len()];
    for _ in 0..ROUNDS {
        for ((side, ns), costs) in sides.into_iter().zip(&mut costs) {
            let Measured { seconds, passed, .. } = measure(side, Time::ZERO + Duration::from_ns(ns));
            costs.push(seconds * 1e9 / passed as f64);
        }
    }
    let costs: Vec<f64> = costs.into_iter().map(median).collect();
    for ((side, _), cost) in sides.iter().zip(&costs) {
        println!("torus-{}-hop  {cost:.0}  ns", side * side * side);
    }
    println!("torus-4096-hop-over-64  {:.2}  times", costs[2] / costs[0]);
    let Measured { seconds, packets, passed } = measure(16, Time::ZERO + Duration::from_us(1000));
    println!("torus-4096-millisecond  {seconds:.1}  s");
    println!("torus-4096-packets  {packets}  packets");
    println!("torus-4096-passed  {:.0}  routers passed/s", passed as f64 / seconds);
    if let Some(memory) = peak_memory() {
        println!("torus-4096-memory  {memory}  MB");
    }
}
