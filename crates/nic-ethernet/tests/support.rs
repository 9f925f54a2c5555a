//! Hosts with their cards, and programs that call sockets, for tests.

use nicety_fabric::{Faults, NetworkSpec, Symbol, Topology};
use nicety_host::{Cpus, Memory};
use nicety_kernel::{Config, RunError, Sim, Summary, World};
use nicety_nic_core::CardSpec;
use nicety_nic_ethernet::{EthernetSpec, Node, Report, Setting, SocketError, SocketKind, Sockets};
use nicety_nic_testing::{Host, PathCell};
use nicety_spec::{SHIPPED, Spec, parse_override};
use nicety_types::Path;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// The cards `niagara2-niu` and `niagara2-neptune` with fewer mechanisms, for times computed by hand. Tests add the
/// mechanisms that they need.
pub const PLAIN_NIU: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plain-niu.toml");
pub const PLAIN_NEPTUNE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plain-neptune.toml");

/// Returns the spec of a shipped card or of a card in a file, with overrides.
pub fn read(name: &str, overrides: &[&str]) -> Result<Arc<dyn CardSpec>, String> {
    let overrides: Vec<_> = overrides.iter().map(|text| parse_override(text).unwrap()).collect();
    let spec = Spec::load(name, &overrides, SHIPPED).map_err(|errors| errors.to_string())?;
    let (card, _) =
        nicety_nic_core::read(&spec, &[nicety_nic_ethernet::DESIGN]).map_err(|errors| errors.to_string())?;
    card.of::<EthernetSpec>().map_err(|wrong| wrong.to_string())?;
    Ok(card)
}

/// Nodes of a network. Their programs are added before the run.
pub struct Rig {
    pub world: World<Symbol>,
    pub hosts: Vec<User>,
}

impl Rig {
    pub fn new(card: &str, nodes: u32, overrides: &[&str]) -> Rig {
        Rig::of(&vec![(card, overrides); nodes as usize], Faults::default())
    }

    /// Returns nodes with these cards and overrides.
    pub fn of(cards: &[(&str, &[&str])], faults: Faults) -> Rig {
        let specs: Vec<_> = cards.iter().map(|(name, overrides)| read(name, overrides).unwrap()).collect();
        let mut world = World::new(Config { seed: 1, ..Config::default() });
        let ids: Vec<_> = specs.iter().map(|_| world.add_node()).collect();
        let first = specs[0].node();
        let parts = NetworkSpec { link: first.link, switch: first.switch, router: first.router };
        let topology = if ids.len() == 2 { Topology::Pair } else { Topology::Star };
        let (mut ports, mut network) = topology.build(&mut world, &ids, &parts).unwrap();
        network.inject(&faults, &mut ports).unwrap();
        let hosts = ids.iter().zip(ports).zip(&specs).map(|((&id, port), spec)| {
            let Host { card, memory, sim, cpus, .. } =
                Host::install(spec, world.sim(id), port, specs.len() as u32);
            let node = card.of::<Node>().unwrap();
            let path = Rc::new(PathCell::new(Path::from(sim.now())));
            User { sim, node, memory, cpus, path, program: 0 }
        });
        Rig { hosts: hosts.collect(), world }
    }

    /// Starts a program on a node.
    pub fn program<F: Future<Output = ()> + 'static>(&self, node: u32, program: impl FnOnce(User) -> F) {
        let user = self.hosts[node as usize].clone();
        user.sim.clone().spawn_program(format!("program of node {node}"), program(user));
    }

    pub fn run(&mut self) -> Summary {
        self.world.run().unwrap()
    }

    pub fn fail(&mut self) -> RunError {
        self.world.run().unwrap_err()
    }

    pub fn report(&self, node: u32) -> Report {
        self.hosts[node as usize].node.report()
    }
}

/// A thread of a host's program, with the thread's path.
#[derive(Clone)]
pub struct User {
    pub sim: Sim,
    pub node: Rc<Node>,
    pub memory: Rc<Memory>,
    pub cpus: Rc<Cpus>,
    pub path: Rc<PathCell>,
    pub program: u32,
}

/// Returns the address of a port of a node.
pub fn at(node: u32, port: u16) -> SocketAddr {
    SocketAddr::new(Sockets::address(node), port)
}

type Called<T> = Result<T, SocketError>;

impl User {
    /// Returns another thread of the program.
    pub fn thread(&self, program: u32) -> User {
        let path = Rc::new(PathCell::new(Path::from(self.sim.now())));
        User { path, program, ..self.clone() }
    }

    async fn timed<T>(&self, call: impl AsyncFnOnce(&Sockets, &mut Path) -> T) -> T {
        let mut path = self.path.get();
        let result = call(self.node.sockets(), &mut path).await;
        self.path.set(path);
        result
    }

    pub fn restart(&self) {
        self.path.set(Path::from(self.sim.now()));
    }

    pub fn open(&self, kind: SocketKind) -> u32 {
        self.node.sockets().open(kind)
    }

    pub async fn bind(&self, socket: u32, port: u16) -> Called<()> {
        self.timed(async |sockets, path| sockets.bind(self.program, socket, port, path).await).await
    }

    pub async fn set(&self, socket: u32, setting: Setting) -> Called<()> {
        self.timed(async |sockets, path| sockets.set(self.program, socket, setting, path).await).await
    }

    pub async fn connect(&self, socket: u32, to: SocketAddr) -> Called<()> {
        self.timed(async |sockets, path| sockets.connect(self.program, socket, to, path).await).await
    }

    pub async fn listen(&self, socket: u32, backlog: u32) -> Called<()> {
        self.timed(async |sockets, path| sockets.listen(self.program, socket, backlog, path).await).await
    }

    pub async fn accept(&self, socket: u32) -> Called<u32> {
        self.timed(async |sockets, path| sockets.accept(self.program, socket, path).await).await
    }

    pub async fn send(&self, socket: u32, bytes: &[u8]) -> Called<()> {
        self.timed(async |sockets, path| sockets.send(self.program, socket, bytes, path).await).await
    }

    pub async fn recv(&self, socket: u32, most: u64) -> Called<Vec<u8>> {
        self.timed(async |sockets, path| sockets.recv(self.program, socket, most, path).await).await
    }

    pub async fn send_to(&self, socket: u32, bytes: &[u8], to: SocketAddr) -> Called<()> {
        self.timed(async |sockets, path| sockets.send_to(self.program, socket, bytes, to, path).await).await
    }

    pub async fn recv_from(&self, socket: u32, most: u64) -> Called<(Vec<u8>, SocketAddr)> {
        self.timed(async |sockets, path| sockets.recv_from(self.program, socket, most, path).await).await
    }

    pub async fn shutdown(&self, socket: u32) -> Called<()> {
        self.timed(async |sockets, path| sockets.shutdown(self.program, socket, path).await).await
    }

    pub async fn close(&self, socket: u32) -> Called<()> {
        self.timed(async |sockets, path| sockets.close(self.program, socket, path).await).await
    }

    /// Returns a socket that listens at a port.
    pub async fn listening(&self, port: u16) -> u32 {
        let socket = self.open(SocketKind::Stream);
        self.bind(socket, port).await.unwrap();
        self.listen(socket, 64).await.unwrap();
        socket
    }

    /// Returns a connection to a port of a node.
    pub async fn connected(&self, node: u32, port: u16) -> u32 {
        let socket = self.open(SocketKind::Stream);
        self.connect(socket, at(node, port)).await.unwrap();
        socket
    }

    /// Receives all bytes up to the peer's last byte.
    pub async fn recv_all(&self, socket: u32, most: u64) -> Called<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let bytes = self.recv(socket, most).await?;
            if bytes.is_empty() {
                return Ok(all);
            }
            all.extend(bytes);
        }
    }
}

/// Returns bytes that differ from place to place and from seed to seed.
pub fn pattern(len: usize, seed: u64) -> Vec<u8> {
    (0..len as u64).map(|i| (i * 7 + seed * 31 + i / 251) as u8).collect()
}
