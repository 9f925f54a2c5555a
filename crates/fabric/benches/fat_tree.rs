//! Delivered packets per second, from card port to card port, through a fat tree of 1024 hosts. Traffic is a random
//! permutation, with flows of 2 MB in packets of 4 KiB. Prints `name  value  unit` lines. The figures are medians. They
//! count CPU time, so other work on the machine does not matter.

use cpu_time::ThreadTime;
use nicety_fabric::{
    Channel, HeaderBytes, Label, LinkProtocol, LinkSpec, NetworkSpec, Packet, Port, SwitchSpec, Symbol,
    Topology,
};
use nicety_kernel::{Config, Rng, Sim, World};
use nicety_types::{Duration, Flight, Gap, MessageId, NodeId, Path, Payload, Time};
use std::rc::Rc;

const HOSTS: u32 = 1024;
const ROUNDS: usize = 3;
const PACKET: u64 = 4096;
/// Number of packets of a flow.
const PACKETS: u64 = (2 << 20) / PACKET;
const SPEC: NetworkSpec = NetworkSpec {
    link: LinkSpec {
        latency: Duration::from_ps(33_400),
        gap: Gap::new(20, 1),
        header: 0,
        buffer: 256,
        channels: 1,
        protocol: LinkProtocol::NONE,
    },
    switch: SwitchSpec { latency: Duration::from_ns(50), ports: 36, buffer: 32 },
    router: None,
};

async fn send(sim: Sim, port: Rc<Port>, to: NodeId) {
    let source = sim.node();
    for k in 0..PACKETS {
        let turn = port.turn(Flight::resting(Path::clock(sim.now()))).await;
        let packet = Packet {
            label: Label { destination: to, message: MessageId { source, sequence: 0 }, offset: k * PACKET },
            channel: Channel::Data(0),
            header: HeaderBytes::new(&[0; 64]),
            payload: Payload::phantom(PACKET),
            path: Path::clock(Time::ZERO),
        };
        port.launch(packet, turn);
    }
}

async fn listen(port: Rc<Port>) {
    loop {
        drop(port.receive().await);
        port.free_slot();
    }
}

/// Returns the receiver of each host: a permutation without fixed points.
fn permutation(rng: &mut Rng) -> Vec<u32> {
    let mut to: Vec<u32> = (0..HOSTS).collect();
    // Sattolo's algorithm: one cycle through all hosts.
    for i in (1..HOSTS as usize).rev() {
        to.swap(i, rng.below(i as u64) as usize);
    }
    to
}

/// Returns the number of packets and the number of switch traversals per second.
fn measure(topology: &str) -> (f64, f64) {
    let mut world: World<Symbol> = World::new(Config { seed: 1, ..Config::default() });
    let hosts: Vec<NodeId> = (0..HOSTS).map(|_| world.add_node()).collect();
    let topology: Topology = topology.parse().expect("a topology");
    let (ports, network) = topology.build(&mut world, &hosts, &SPEC).expect("1024 hosts fit");
    let to = permutation(&mut world.sim(hosts[0]).rng("permutation"));
    for ((&host, port), to) in hosts.iter().zip(ports).zip(to) {
        let (sim, port) = (world.sim(host), Rc::new(port));
        sim.spawn_program("sender", send(sim.clone(), port.clone(), NodeId(to)));
        sim.spawn(listen(port));
    }
    let begun = ThreadTime::now();
    world.run().expect("no deadlock");
    let took = begun.elapsed().as_secs_f64();
    let statistics = network.statistics();
    let received: u64 = statistics.hosts.iter().map(|port| port.received_packets).sum();
    assert_eq!(received, PACKETS * u64::from(HOSTS), "every packet is delivered");
    let hops: u64 = statistics.switches.iter().flat_map(|s| &s.ports).map(|p| p.sent_packets).sum();
    (received as f64 / took, hops as f64 / took)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    for (name, topology) in [("fat-tree-d-mod-k", "fat-tree:36"), ("fat-tree-hash", "fat-tree:36:hash")] {
        let (packets, hops): (Vec<_>, Vec<_>) = (0..ROUNDS).map(|_| measure(topology)).unzip();
        println!("{name}  {:.0}  packets/s", median(packets));
        println!("{name}-switches  {:.0}  switches passed/s", median(hops));
    }
}
