//! Hosts with their cards, and processes on these hosts.

use nicety_fabric::{NetworkSpec, Symbol, Topology};
use nicety_host::{Allocation, Cpus, Kernel, Memory};
use nicety_kernel::{Config, RunError, Sim, Summary, World};
use nicety_nic_core::Tags;
use nicety_nic_qnix::{
    Card, Completed, Endpoint, Operation, Process, QnixError, QnixSpec, Receive, Send, TransferMethod,
};
use nicety_nic_testing::PathCell;
use nicety_spec::{SHIPPED, Spec, parse_override};
use nicety_types::{NodeId, Path, Recorder};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Returns the shipped specification of the card with overrides.
pub fn spec(overrides: &[&str]) -> Result<QnixSpec, String> {
    let overrides: Vec<_> = overrides.iter().map(|text| parse_override(text).unwrap()).collect();
    let spec = Spec::load("qnix", &overrides, SHIPPED).map_err(|errors| errors.to_string())?;
    let (card, _) =
        nicety_nic_core::read(&spec, &[nicety_nic_qnix::DESIGN]).map_err(|errors| errors.to_string())?;
    card.of::<QnixSpec>().cloned().map_err(|wrong| wrong.to_string())
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
        Rig::recorded(nodes, overrides, shards, |_| Recorder::off())
    }

    /// Returns nodes with recorders. `recorder_of` returns the recorder for a node's messages.
    pub fn recorded(
        nodes: u32,
        overrides: &[&str],
        shards: usize,
        recorder_of: impl Fn(NodeId) -> Recorder,
    ) -> Rig {
        let spec = Arc::new(spec(overrides).unwrap());
        let mut world = World::new(Config { seed: 1, shards, ..Config::default() });
        let ids: Vec<_> = (0..nodes).map(|_| world.add_node()).collect();
        let parts = NetworkSpec { link: spec.node.link, switch: spec.node.switch, router: spec.node.router };
        let topology = if nodes == 2 { Topology::Pair } else { Topology::Star };
        let (ports, _) = topology.build(&mut world, &ids, &parts).unwrap();
        let install = |(&id, port): (&NodeId, _)| {
            let sim = world.sim(id);
            let recorder = recorder_of(id);
            let memory = Rc::new(Memory::new(spec.node.host.memory));
            let cpus = Rc::new(Cpus::new(&sim, spec.node.host, &recorder));
            let kernel = Rc::new(Kernel::new(&sim, &cpus, spec.kernel));
            Card::install(&sim, spec.clone(), memory, kernel, port, nodes, &recorder)
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
        let process = Rc::new(Process::new(&self.cards[node as usize], number));
        let path = Rc::new(PathCell::new(Path::from(sim.now())));
        let user = User { sim: sim.clone(), process, path, vni: Rc::default() };
        sim.spawn_program(format!("process {number} of node {node}"), program(user));
    }

    pub fn run(&mut self) -> Summary {
        self.world.run().unwrap()
    }

    pub fn fail(&mut self) -> RunError {
        self.world.run().unwrap_err()
    }
}

/// A process and the path of its calls.
#[derive(Clone)]
pub struct User {
    pub sim: Sim,
    pub process: Rc<Process>,
    pub path: Rc<PathCell>,
    pub vni: Rc<Cell<u32>>,
}

pub fn at(node: u32, vni: u32) -> Endpoint {
    Endpoint { node: NodeId(node), vni }
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

    pub async fn open(&self) -> Result<u32, QnixError> {
        let vni = self.timed(async |path| self.process.open(path).await).await?;
        self.vni.set(vni);
        Ok(vni)
    }

    pub async fn close(&self) -> Result<(), QnixError> {
        self.timed(async |path| self.process.close(self.vni.get(), path).await).await
    }

    pub async fn pool(&self, bytes: u64) -> Result<Allocation, QnixError> {
        self.timed(async |path| self.process.register_pool(self.vni.get(), bytes, path).await).await
    }

    pub async fn send(
        &self,
        buffer: (u64, u64),
        to: Endpoint,
        tag: u64,
        how: TransferMethod,
    ) -> Result<Operation, QnixError> {
        let send = Send { address: buffer.0, bytes: buffer.1, to, tag, how };
        self.timed(async |path| self.process.send(self.vni.get(), send, path).await).await
    }

    pub async fn receive(
        &self,
        buffer: (u64, u64),
        from: Option<Endpoint>,
        tag: Option<u64>,
        how: TransferMethod,
    ) -> Result<Operation, QnixError> {
        let tags = Tags::exactly_or_any(tag);
        let receive = Receive { address: buffer.0, bytes: buffer.1, from, tags, how };
        self.timed(async |path| self.process.receive(self.vni.get(), receive, path).await).await
    }

    pub async fn wait(&self, operation: Operation) -> Result<Completed, QnixError> {
        self.timed(async |path| self.process.wait(self.vni.get(), operation, path).await).await
    }

    pub async fn test(&self, operation: Operation) -> Result<Option<Completed>, QnixError> {
        self.timed(async |path| self.process.test(self.vni.get(), operation, path).await).await
    }

    /// Allocates memory with these contents. Returns its address and its size in bytes.
    pub fn bytes(&self, bytes: &[u8]) -> (u64, u64) {
        let memory = self.process.alloc(bytes.len() as u64).unwrap();
        memory.bytes().unwrap().write(0, bytes);
        (memory.address(), memory.len())
    }

    /// Allocates memory of `bytes` bytes. Returns its address and its size in bytes.
    pub fn room(&self, bytes: u64) -> (u64, u64) {
        (self.process.alloc(bytes).unwrap().address(), bytes)
    }

    /// Returns the current contents of a range of memory.
    pub fn look(&self, (address, bytes): (u64, u64)) -> Vec<u8> {
        let payload = self.process.card().host_memory().read(address, bytes).unwrap();
        payload
            .segments()
            .flat_map(|segment| match segment {
                nicety_types::Segment::Real(bytes) => bytes.to_vec(),
                nicety_types::Segment::Phantom(_) => panic!("phantom"),
            })
            .collect()
    }
}
