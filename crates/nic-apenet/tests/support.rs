//! Hosts with their cards, and processes on these hosts.

use nicety_fabric::{Faults, LinkFaults, NetworkSpec, Place, Rates, Symbol, Topology};
use nicety_host::{Cpus, Gpu, Kernel, Memory};
use nicety_kernel::{Config, RunError, Sim, Summary, World};
use nicety_nic_apenet::{
    ApenetError, ApenetSpec, Card, Endpoint, Event, Operation, Process, Region, Transfer,
};
use nicety_nic_testing::PathCell;
use nicety_spec::{SHIPPED, Spec, parse_override};
use nicety_types::{NodeId, Path, Recorder};
use std::rc::Rc;
use std::sync::Arc;

/// Returns the shipped specification of a card with overrides.
pub fn spec_of(name: &str, overrides: &[&str]) -> Result<ApenetSpec, String> {
    let overrides: Vec<_> = overrides.iter().map(|text| parse_override(text).unwrap()).collect();
    let spec = Spec::load(name, &overrides, SHIPPED).map_err(|errors| errors.to_string())?;
    let (card, _) =
        nicety_nic_core::read(&spec, &[nicety_nic_apenet::DESIGN]).map_err(|errors| errors.to_string())?;
    card.of::<ApenetSpec>().cloned().map_err(|wrong| wrong.to_string())
}

/// The nodes of a test. A test adds its processes before the run.
pub struct Rig {
    pub world: World<Symbol>,
    pub cards: Vec<Rc<Card>>,
}

impl Rig {
    pub fn new(nodes: u32, overrides: &[&str]) -> Rig {
        Rig::with_shards(nodes, overrides, 1)
    }

    pub fn with_shards(nodes: u32, overrides: &[&str], shards: usize) -> Rig {
        Rig::of("apenet-v5", nodes, overrides, shards)
    }

    /// Returns nodes with the card `card`.
    pub fn of(card: &str, nodes: u32, overrides: &[&str], shards: usize) -> Rig {
        Rig::build(card, nodes, overrides, shards, &Faults::default())
    }

    /// Returns two nodes. The link from node `from` to the other node loses the packets with these numbers, counted
    /// from 1.
    pub fn losing(from: u32, drop: &[u64], overrides: &[&str]) -> Rig {
        let (from, to) = (Place::Host(from), Place::Host(1 - from));
        let link = LinkFaults { from, to, rates: Rates::default(), down: vec![], drop: drop.to_vec() };
        let faults = Faults { links: vec![link], ..Faults::default() };
        Rig::build("apenet-v5", 2, &[&["link.retries=0"], overrides].concat(), 1, &faults)
    }

    fn build(card: &str, nodes: u32, overrides: &[&str], shards: usize, faults: &Faults) -> Rig {
        let spec = Arc::new(spec_of(card, overrides).unwrap());
        let mut world = World::new(Config { seed: 1, shards, ..Config::default() });
        let ids: Vec<_> = (0..nodes).map(|_| world.add_node()).collect();
        let parts = NetworkSpec { link: spec.node.link, switch: spec.node.switch, router: spec.node.router };
        let topology = match nodes {
            1 => Topology::Alone,
            2 => Topology::Pair,
            _ => Topology::Star,
        };
        let (mut ports, mut network) = topology.build(&mut world, &ids, &parts).unwrap();
        network.inject(faults, &mut ports).unwrap();
        let install = |(&id, port): (&NodeId, _)| {
            let (sim, recorder) = (world.sim(id), Recorder::off());
            let memory = Rc::new(Memory::new(spec.node.host.memory));
            let gpu = spec.gpu.map(Gpu::new);
            let cpus = Rc::new(Cpus::new(&sim, spec.node.host, &recorder));
            let kernel = Rc::new(Kernel::new(&sim, &cpus, spec.kernel));
            let memories = (memory, gpu.as_ref());
            Card::install(&sim, spec.clone(), memories, kernel, port, (nodes, true), &recorder).unwrap()
        };
        let cards = ids.iter().zip(ports).map(install).collect();
        Rig { world, cards }
    }

    /// Starts the program of a process on a node.
    pub fn process<F>(&mut self, node: u32, number: u32, program: impl FnOnce(User) -> F)
    where
        F: Future<Output = ()> + 'static,
    {
        let sim = self.world.sim(NodeId(node));
        let card = self.cards[node as usize].clone();
        let process = card.process_of(number);
        let path = Rc::new(PathCell::new(Path::from(sim.now())));
        let user = User { sim: sim.clone(), card, process, path };
        sim.spawn_program(format!("process {number} of node {node}"), program(user));
    }

    #[track_caller]
    pub fn run(&mut self) -> Summary {
        self.world.run().unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn fail(&mut self) -> RunError {
        self.world.run().unwrap_err()
    }
}

/// A process and the path of its calls.
#[derive(Clone)]
pub struct User {
    pub sim: Sim,
    pub card: Rc<Card>,
    pub process: Process,
    pub path: Rc<PathCell>,
}

impl User {
    async fn timed<T>(&self, call: impl AsyncFnOnce(&mut Path) -> T) -> T {
        let mut path = self.path.get();
        let result = call(&mut path).await;
        self.path.set(path);
        result
    }

    pub fn restart(&self) {
        self.path.set(Path::from(self.sim.now()));
    }

    /// Allocates zeroed host memory. Returns its address and its size in bytes.
    pub fn room(&self, bytes: u64) -> (u64, u64) {
        (self.card.host_memory().allocate(bytes).unwrap().address(), bytes)
    }

    /// Allocates zeroed memory of the graphics processor. Returns its address and its size in bytes.
    pub fn gpu_room(&self, bytes: u64) -> (u64, u64) {
        (self.card.gpu().unwrap().memory.allocate(bytes).unwrap().address(), bytes)
    }

    /// Allocates host memory with these contents. Returns its address and its size in bytes.
    pub fn bytes(&self, bytes: &[u8]) -> (u64, u64) {
        let memory = self.card.host_memory().allocate(bytes.len() as u64).unwrap();
        memory.bytes().unwrap().write(0, bytes);
        (memory.address(), memory.len())
    }

    /// Returns the current contents of a range of memory.
    pub fn look(&self, (address, bytes): (u64, u64)) -> Vec<u8> {
        let gpu = self.card.gpu().filter(|_| address >= nicety_host::GPU_ADDRESSES);
        let memory = gpu.map_or(self.card.host_memory(), |gpu| &gpu.memory);
        memory.peek(address, bytes).unwrap().into_buffer().unwrap().to_vec()
    }

    pub async fn register(&self, (address, bytes): (u64, u64)) -> Result<Region, ApenetError> {
        self.timed(async |path| self.process.register(address, bytes, path).await).await
    }

    pub async fn deregister(&self, region: Region) -> Result<(), ApenetError> {
        self.timed(async |path| self.process.deregister(region, path).await).await
    }

    pub fn to(&self, node: u32, (local, bytes): (u64, u64), remote: u64) -> Transfer {
        let peer = Endpoint { node: NodeId(node), process: self.process.number() };
        Transfer { peer, local, remote, bytes, data: 7 }
    }

    pub async fn put(&self, transfer: Transfer) -> Result<Operation, ApenetError> {
        self.timed(async |path| self.process.put(transfer, path).await).await
    }

    pub async fn get(&self, transfer: Transfer) -> Result<Operation, ApenetError> {
        self.timed(async |path| self.process.get(transfer, path).await).await
    }

    pub async fn stream(&self, (address, bytes): (u64, u64)) -> Result<(), ApenetError> {
        self.timed(async |path| self.process.post_streaming(address, bytes, path).await).await
    }

    pub async fn event(&self) -> Result<Event, ApenetError> {
        self.timed(async |path| self.process.event(path).await).await
    }

    pub async fn wait(&self, operation: Operation) -> Result<Event, ApenetError> {
        self.timed(async |path| self.process.wait(operation, path).await).await
    }
}
