//! Hosts around a switch. Their cards send given packets and log received packets.

#![allow(dead_code, reason = "each of the two test programs uses some of it")]

use nicety_fabric::{
    Channel, FlowControl, HeaderBytes, Label, LinkProtocol, LinkSpec, Network, NetworkSpec,
    NetworkStatistics, Packet, Port, SwitchSpec, Symbol, Topology,
};
use nicety_kernel::{Config, RunError, Server, Sim, Summary, World};
use nicety_types::{Duration, Flight, Gap, MessageId, NodeId, Path, Payload, Stage, Time};
use proptest::prelude::ProptestConfig;
use std::cell::RefCell;
use std::rc::Rc;

pub const fn ps(ps: u64) -> Duration {
    Duration::from_ps(ps)
}

pub const fn at(ps: u64) -> Time {
    Time::from_ps(ps)
}

/// The configuration for `usual` random cases. PROPTEST_CASES scales this number, relative to its default of 256.
pub fn cases(usual: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig { cases: (u64::from(usual) * u64::from(config.cases) / 256) as u32, ..config }
}

/// The link and the switch of the sPIN paper: 20 ps per byte, 33.4 ns of link latency, 50 ns of switch latency.
pub const SPIN: NetworkSpec = NetworkSpec {
    link: LinkSpec {
        latency: ps(33_400),
        gap: Gap::new(20, 1),
        header: 0,
        buffer: 256,
        channels: 1,
        protocol: LinkProtocol::NONE,
    },
    switch: SwitchSpec { latency: ps(50_000), ports: 36, buffer: 32 },
    router: None,
};

/// A packet to send. Its first byte is ready at `head`, and its last byte is ready at `tail`.
#[derive(Clone, Copy, Debug)]
pub struct Send {
    pub to: u32,
    pub bytes: u64,
    /// Packets with the same number belong to one message.
    pub message: u64,
    pub offset: u64,
    pub head: Time,
    pub tail: Time,
}

/// Returns a packet that is a whole message, ready at `ps`.
pub fn send(to: u32, bytes: u64, ps: u64) -> Send {
    Send { to, bytes, message: ps + (u64::from(to) << 40), offset: 0, head: at(ps), tail: at(ps) }
}

/// A received packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub by: u32,
    pub when: Time,
    pub source: u32,
    pub message: u64,
    pub offset: u64,
    pub bytes: u64,
    pub path: Path,
}

/// Returns the bytes of a packet, derived from its sender, message and offset.
pub fn content(source: u32, message: u64, offset: u64, bytes: u64) -> Vec<u8> {
    let seed = (u64::from(source) ^ message ^ offset).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..bytes).map(|i| (seed.rotate_left((i % 64) as u32).wrapping_add(i) >> 8) as u8).collect()
}

pub struct Net {
    pub world: World<Symbol>,
    pub ports: Vec<Rc<Port>>,
    pub network: Network,
    services: Vec<Duration>,
    sent: usize,
    /// Whether hosts launch packets and free slots in advance.
    pub is_early: bool,
    log: Rc<RefCell<Vec<Received>>>,
}

impl Net {
    pub fn star(hosts: u32, shards: usize, spec: &NetworkSpec) -> Net {
        Net::joined(Topology::Star, hosts, shards, spec)
    }

    pub fn joined(topology: Topology, hosts: u32, shards: usize, spec: &NetworkSpec) -> Net {
        let mut world = World::new(Config { shards, ..Config::default() });
        let hosts: Vec<NodeId> = (0..hosts).map(|_| world.add_node()).collect();
        let (ports, network) = topology.build(&mut world, &hosts, spec).unwrap();
        Net::new(world, ports, network)
    }

    /// Returns the same network with this flow control, for packets of at most 4 KiB.
    pub fn flowing(topology: &str, hosts: u32, shards: usize, spec: &NetworkSpec, flow: FlowControl) -> Net {
        let mut world = World::new(Config { shards, ..Config::default() });
        let hosts: Vec<_> = (0..hosts).map(|_| (world.add_node(), spec.link)).collect();
        let topology: Topology = topology.parse().unwrap();
        let (ports, network) = topology.build_with(&mut world, &hosts, spec, (flow, 4096)).unwrap();
        Net::new(world, ports, network)
    }

    pub fn new(world: World<Symbol>, ports: Vec<Port>, network: Network) -> Net {
        let services = vec![Duration::ZERO; ports.len()];
        let ports = ports.into_iter().map(Rc::new).collect();
        Net { world, ports, network, services, sent: 0, is_early: false, log: Rc::default() }
    }

    fn node(&self, host: u32) -> (Sim, Rc<Port>) {
        (self.world.sim(NodeId(host)), self.ports[host as usize].clone())
    }

    /// Makes the host send these packets, one after another.
    pub fn sends(&mut self, host: u32, sends: &[Send]) {
        let (sim, port) = self.node(host);
        let sends = sends.to_vec();
        self.sent += sends.len();
        let is_early = self.is_early;
        sim.clone().spawn_program(format!("sender {host}"), async move {
            for s in sends {
                let path = Path::from(s.head);
                let flight = Flight { head: s.head, tail: s.tail, path, slowest: Stage::BUS };
                let turn = match is_early.then(|| port.turn_behind(&flight)).flatten() {
                    Some(turn) => turn,
                    None => {
                        sim.until(port.begun().max(s.head)).await;
                        port.turn(flight).await
                    }
                };
                let packet = Packet {
                    label: Label {
                        destination: NodeId(s.to),
                        message: MessageId { source: NodeId(host), sequence: s.message },
                        offset: s.offset,
                    },
                    channel: Channel::Data(0),
                    header: HeaderBytes::new(&[]),
                    payload: Payload::copy_of(&content(host, s.message, s.offset, s.bytes)),
                    path: Path::from(Time::ZERO),
                };
                port.launch(packet, turn);
            }
        });
    }

    /// Makes the host check the bytes of arriving packets. It finishes each packet `service` after the previous packet
    /// is finished or after the packet's arrival, whichever is later. Without this call, a host finishes packets at
    /// once.
    pub fn serves(&mut self, host: u32, service: Duration) {
        self.services[host as usize] = service;
    }

    fn listen(&self, host: u32) {
        let (sim, port) = self.node(host);
        let (log, service) = (self.log.clone(), self.services[host as usize]);
        let server = Server::new(&sim);
        let (is_early, mut free) = (self.is_early, Time::ZERO);
        sim.clone().spawn(async move {
            loop {
                let packet = port.receive().await;
                let label = packet.label;
                assert_eq!(label.destination, NodeId(host));
                assert_eq!(packet.path.at(), sim.now());
                let (source, message, bytes) =
                    (label.message.source.0, label.message.sequence, packet.payload.len());
                let found = <Payload as Clone>::clone(&packet.payload).into_buffer().unwrap();
                assert_eq!(found[..], content(source, message, label.offset, bytes)[..]);
                log.borrow_mut().push(Received {
                    by: host,
                    when: sim.now(),
                    source,
                    message,
                    offset: label.offset,
                    bytes,
                    path: packet.path.clone(),
                });
                free = free.max(sim.now()) + service;
                if is_early && free > sim.now() {
                    assert!(port.free_slot_at(free), "there are credits");
                    continue;
                }
                let (port, server) = (port.clone(), server.clone());
                sim.spawn(async move {
                    server.serve(service).await;
                    port.free_slot();
                });
            }
        });
    }

    /// Runs the network. Returns the received packets by receiver, in the order of arrival.
    pub fn run(&mut self) -> (Summary, Vec<Received>, NetworkStatistics) {
        let (outcome, log) = self.try_run();
        assert_eq!(log.len(), self.sent, "every packet has come, once");
        (outcome.unwrap(), log, self.network.statistics())
    }

    /// Runs the network. Returns the outcome and the received packets.
    pub fn try_run(&mut self) -> (Result<Summary, RunError>, Vec<Received>) {
        (0..self.ports.len() as u32).for_each(|host| self.listen(host));
        let outcome = self.world.run();
        let mut log = self.log.borrow().clone();
        log.sort_by_key(|received| received.by);
        (outcome, log)
    }
}

/// Runs a star in which each host sends the packets at its index in `sends`. Receivers finish a packet at once.
pub fn run(spec: &NetworkSpec, sends: &[&[Send]]) -> (Vec<Received>, NetworkStatistics) {
    let mut net = Net::star(sends.len() as u32, 1, spec);
    for (host, sends) in (0..).zip(sends) {
        net.sends(host, sends);
    }
    let (_, log, statistics) = net.run();
    (log, statistics)
}
