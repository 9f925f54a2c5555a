//! Delivered packets per second through a switch of 36 ports, from card port to card port: all to all in turns, and
//! 35-to-1 incast. Prints `name  value  unit` lines; the figures are medians.

use cpu_time::ThreadTime;
use nicety_fabric::{
    Channel, HeaderBytes, Label, LinkProtocol, LinkSpec, NetworkSpec, Packet, Port, SwitchSpec, Symbol,
    Topology,
};
use nicety_kernel::{Config, Sim, World};
use nicety_types::{Duration, Flight, Gap, MessageId, NodeId, Path, Payload, Time};
use std::rc::Rc;

const HOSTS: u32 = 36;
const ROUNDS: usize = 7;
/// Number of packets of a run.
const PACKETS: u64 = 36 * 35 * 200;
const SPEC: NetworkSpec = NetworkSpec {
    link: LinkSpec {
        latency: Duration::from_ps(33_400),
        gap: Gap::new(20, 1),
        header: 0,
        buffer: 256,
        channels: 1,
        protocol: LinkProtocol::NONE,
    },
    switch: SwitchSpec { latency: Duration::from_ns(50), ports: HOSTS, buffer: 32 },
    router: None,
};

async fn send(sim: Sim, port: Rc<Port>, packets: u64, to: impl Fn(u64) -> u32) {
    let source = sim.node();
    for sequence in 0..packets {
        let turn = port.turn(Flight::resting(Path::from(sim.now()))).await;
        let packet = Packet {
            label: Label {
                destination: NodeId(to(sequence)),
                message: MessageId { source, sequence },
                offset: 0,
            },
            channel: Channel::Data(0),
            header: HeaderBytes::new(&[0; 64]),
            payload: Payload::phantom(4096),
            path: Path::from(Time::ZERO),
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

/// Returns the number of packets and the number of events per second.
fn measure(senders: u32, to: impl Fn(u32, u64) -> u32 + Copy + 'static) -> (f64, f64) {
    let mut world: World<Symbol> = World::new(Config::default());
    let hosts: Vec<NodeId> = (0..HOSTS).map(|_| world.add_node()).collect();
    let (ports, network) = Topology::Star.build(&mut world, &hosts, &SPEC).expect("36 hosts fit");
    for (&host, port) in hosts.iter().zip(ports) {
        let (sim, port) = (world.sim(host), Rc::new(port));
        if host.0 < senders {
            let packets = PACKETS / u64::from(senders);
            let mine = send(sim.clone(), port.clone(), packets, move |k| to(host.0, k));
            sim.spawn_program("sender", mine);
        }
        sim.spawn(listen(port));
    }
    let begun = ThreadTime::now();
    let summary = world.run().expect("no deadlock");
    let took = begun.elapsed().as_secs_f64();
    let received: u64 = network.statistics().hosts.iter().map(|port| port.received_packets).sum();
    assert_eq!(received, PACKETS, "every packet is delivered");
    (PACKETS as f64 / took, summary.events as f64 / took)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn report(name: &str, measure: impl Fn() -> (f64, f64)) {
    let (packets, events): (Vec<_>, Vec<_>) = (0..ROUNDS).map(|_| measure()).unzip();
    println!("{name}  {:.0}  packets/s", median(packets));
    println!("{name}-events  {:.0}  events/s", median(events));
}

fn main() {
    report("switch-all-to-all", || measure(HOSTS, |host, k| (host + 1 + (k % 35) as u32) % HOSTS));
    report("switch-incast", || measure(HOSTS - 1, |_, _| HOSTS - 1));
}
