//! Two cards joined as a pair, host programs as async blocks, and handlers in hand-assembled code.

#![allow(dead_code, unused_imports, reason = "each of the test programs uses a part of it")]

pub mod code;

use nicety_fabric::{Faults, Network, NetworkSpec, Port, Symbol, Topology};
use nicety_host::{Allocation, Cpus, Memory};
use nicety_kernel::{Config, RunError, Sim, Summary, World};
use nicety_nic_core::{LogLine, Logged, ProgramFailure};
use nicety_nic_processors::Handlers;
use nicety_nic_spin::{CallError, Card, SpinSpec};
use nicety_portals::{
    CtEvent, CtHandle, EqHandle, Event, EventKind, List, Md, MdHandle, MdOptions, Me, MeHandle, MeOptions,
    PutRequest, Request,
};
use nicety_spec::{SHIPPED, Spec, parse_override};
use nicety_types::{NodeId, Path, Recorder, Time};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

pub use nicety_nic_testing::{PathCell, pattern};

/// The portal table entry that every test uses.
pub const PT: u32 = 1;
/// The time at which measurements start. All entries have been appended before this time.
pub const START: Time = Time::from_ps(100_000_000);

/// Returns the spec of the discrete card, with overrides. By default, a print takes no simulated time, so that tests
/// can observe handlers by prints.
pub fn spec(overrides: &[&str]) -> SpinSpec {
    let free = ["hpu.cycles.printf=0", "hpu.cycles.printf_byte=0"];
    let free = free.iter().filter(|text| {
        let key = text.split_inclusive('=').next().unwrap();
        !overrides.iter().any(|other| other.starts_with(key))
    });
    let overrides: Vec<_> = free.chain(overrides).map(|text| parse_override(text).unwrap()).collect();
    let spec = Spec::load("spin-discrete", &overrides, SHIPPED).unwrap();
    let (card, _) = nicety_nic_core::read(&spec, &[nicety_nic_spin::DESIGN]).unwrap();
    card.of::<SpinSpec>().unwrap().clone()
}

/// Returns the time `ps` picoseconds after `START`.
pub fn after(ps: u64) -> Time {
    Time::from_ps(START.ps() + ps)
}

/// A host with its card.
#[derive(Clone)]
pub struct Node {
    pub sim: Sim,
    pub card: Rc<Card>,
    pub cpus: Rc<Cpus>,
    pub memory: Rc<Memory>,
    /// The path of the node's program.
    pub path: Rc<PathCell>,
    /// The event queue of the portal table entry [`PT`].
    pub eq: EqHandle,
    /// A counter for general use.
    pub ct: CtHandle,
}

/// Two nodes with cards that are joined as a pair.
pub struct Rig {
    pub world: World<Symbol>,
    pub nodes: [Node; 2],
    pub network: Network,
    log: Arc<Mutex<Vec<LogLine>>>,
}

impl Rig {
    pub fn new(overrides: &[&str]) -> Rig {
        Rig::with_shards(overrides, 1)
    }

    pub fn with_shards(overrides: &[&str], shards: usize) -> Rig {
        Rig::with_config(overrides, Config { shards, ..Config::default() })
    }

    pub fn with_config(overrides: &[&str], config: Config) -> Rig {
        Rig::with_faults(overrides, config, &Faults::default())
    }

    pub fn with_faults(overrides: &[&str], config: Config, faults: &Faults) -> Rig {
        Rig::recorded(overrides, config, faults, [Recorder::off(), Recorder::off()])
    }

    /// Returns two nodes. Each node's recorder records the node's messages.
    pub fn recorded(overrides: &[&str], config: Config, faults: &Faults, recorders: [Recorder; 2]) -> Rig {
        let spec = Arc::new(spec(overrides));
        let mut world = World::new(config);
        let ids = [world.add_node(), world.add_node()];
        let parts = NetworkSpec { link: spec.link, switch: spec.switch, router: spec.router };
        let (mut ports, mut network) = Topology::Pair.build(&mut world, &ids, &parts).unwrap();
        network.inject(faults, &mut ports).unwrap();
        let ports = ports.try_into().ok().expect("two ports");
        Rig::on(&spec, world, network, ports, recorders)
    }

    /// Returns two cards at these ports of the first two nodes of a world.
    pub fn on(
        spec: &Arc<SpinSpec>,
        world: World<Symbol>,
        network: Network,
        [a, b]: [Port; 2],
        recorders: [Recorder; 2],
    ) -> Rig {
        let log = Arc::new(Mutex::new(Vec::new()));
        let node = |id: NodeId, port, recorder: &Recorder| {
            let sim = world.sim(id);
            let memory = Rc::new(Memory::new(spec.host.memory));
            let lines = log.clone();
            let log: nicety_nic_core::Log = Arc::new(move |logged: &Logged| match logged {
                Logged::Line(line) => lines.lock().unwrap().push(line.clone()),
                Logged::LeftOut { .. } => unreachable!("a cluster says that"),
            });
            let card = Card::install(&sim, spec.clone(), memory.clone(), port, 2, log, recorder);
            let eq = card.eq_alloc(spec.limits.event_queue_depth).unwrap();
            card.pt_alloc(Some(PT), Some(eq)).unwrap();
            let ct = card.ct_alloc().unwrap();
            let cpus = Rc::new(Cpus::new(&sim, spec.host, recorder));
            Node { cpus, memory, path: Rc::new(PathCell::new(Path::from(Time::ZERO))), card, eq, ct, sim }
        };
        let nodes = [node(NodeId(0), a, &recorders[0]), node(NodeId(1), b, &recorders[1])];
        Rig { world, nodes, network, log }
    }

    pub fn program<F: Future<Output = ()> + 'static>(&self, rank: usize, program: impl FnOnce(Node) -> F) {
        let node = self.nodes[rank].clone();
        self.world.sim(NodeId(rank as u32)).spawn_program(format!("rank {rank}"), program(node));
    }

    pub fn try_run(&mut self) -> Result<Summary, RunError> {
        self.world.run()
    }

    #[track_caller]
    pub fn run(&mut self) -> Summary {
        let outcome = self.world.run();
        outcome.unwrap_or_else(|error| panic!("{error}; failures: {:?}", self.failures()))
    }

    pub fn failures(&self) -> Vec<ProgramFailure> {
        self.nodes.iter().flat_map(|node| node.card.processors().failures()).collect()
    }

    pub fn log(&self) -> Vec<LogLine> {
        self.log.lock().unwrap().clone()
    }

    /// Returns the printed texts, in order.
    pub fn texts(&self) -> Vec<String> {
        self.log().into_iter().map(|line| line.text).collect()
    }
}

/// Returns a match entry for puts with these match bits. It generates all events.
pub fn entry(memory: &Allocation, match_bits: u64) -> Me {
    Me {
        start: memory.address(),
        length: memory.len(),
        match_bits,
        options: MeOptions::OP_PUT | MeOptions::EVENT_LINK_DISABLE,
        ..Me::default()
    }
}

/// Returns a match entry that counts messages and generates no events.
pub fn counted(memory: &Allocation, match_bits: u64, ct: CtHandle) -> Me {
    let entry = entry(memory, match_bits);
    let options = entry.options | MeOptions::EVENT_CT_COMM | MeOptions::EVENT_COMM_DISABLE;
    Me { ct: Some(ct), options, ..entry }
}

impl Node {
    /// Allocates memory with these contents.
    pub fn alloc(&self, bytes: &[u8]) -> Allocation {
        let allocation = self.memory.allocate(bytes.len() as u64).unwrap();
        self.write(&allocation, bytes);
        allocation
    }

    pub fn write(&self, allocation: &Allocation, bytes: &[u8]) {
        if let Some(memory) = allocation.bytes() {
            memory.write(0, bytes);
        }
    }

    pub fn read(&self, allocation: &Allocation) -> Vec<u8> {
        let mut bytes = vec![0; allocation.len() as usize];
        allocation.bytes().expect("real memory").read(0, &mut bytes);
        bytes
    }

    /// Returns a descriptor of the whole allocation, without events.
    pub fn md(&self, memory: &Allocation) -> MdHandle {
        let options = MdOptions::EVENT_SEND_DISABLE;
        let md = Md { start: memory.address(), length: memory.len(), options, ..Md::default() };
        self.card.md_bind(md).unwrap()
    }

    /// Returns a put of the whole allocation to the other node.
    pub fn request(&self, memory: &Allocation, match_bits: u64) -> PutRequest {
        let target = NodeId(1 - self.sim.node().0);
        PutRequest::new(self.md(memory), memory.len(), target, PT, match_bits)
    }

    pub async fn put(&self, request: &PutRequest) -> Result<(), CallError> {
        let mut path = self.path.get();
        let result = self.card.put(&self.cpus, &mut path, request).await;
        self.path.set(path);
        result
    }

    pub async fn post(&self, request: impl Into<Request>) -> Result<(), CallError> {
        let mut path = self.path.get();
        let result = self.card.post(&self.cpus, &mut path, &request.into()).await;
        self.path.set(path);
        result
    }

    pub async fn triggered_put(
        &self,
        request: PutRequest,
        ct: CtHandle,
        threshold: u64,
    ) -> Result<(), CallError> {
        self.triggered(request, ct, threshold).await
    }

    pub async fn triggered(
        &self,
        request: impl Into<Request>,
        ct: CtHandle,
        threshold: u64,
    ) -> Result<(), CallError> {
        let mut path = self.path.get();
        let result = self.card.post_triggered(&self.cpus, &mut path, request.into(), ct, threshold).await;
        self.path.set(path);
        result
    }

    /// Returns a descriptor of the whole allocation that counts replies, sends and acknowledgements.
    pub fn counted_md(&self, memory: &Allocation, options: MdOptions) -> MdHandle {
        let ct = Some(self.ct);
        let md = Md { start: memory.address(), length: memory.len(), options, ct, eq: Some(self.eq) };
        self.card.md_bind(md).unwrap()
    }

    /// Appends an entry to the priority list, and waits for the link event.
    pub async fn append(&self, me: Me) -> Result<MeHandle, CallError> {
        let mut path = self.path.get();
        let appending = self.card.me_append(&self.cpus, &mut path, PT, me, List::Priority).await?;
        let result = self.card.appended(&self.cpus, &mut path, appending).await;
        self.path.set(path);
        result
    }

    /// Attaches handlers to the card, and appends an entry for them.
    pub async fn append_with(
        &self,
        me: Me,
        handlers: &Handlers,
        state: &[u8],
    ) -> Result<MeHandle, CallError> {
        let handlers = Some(self.card.attach(handlers, state, None)?);
        self.append(Me { handlers, ..me }).await
    }

    /// Waits until this instant, and starts a new path at it.
    pub async fn until(&self, time: Time) {
        assert!(self.sim.now() <= time, "set-up took until {}", self.sim.now());
        self.sim.until(time).await;
        self.path.set(Path::from(time));
    }

    /// Waits for `START`.
    pub async fn start(&self) {
        self.until(START).await;
    }

    pub async fn count(&self, ct: CtHandle, threshold: u64) -> Result<CtEvent, CallError> {
        let mut path = self.path.get();
        let result = self.card.ct_wait(&self.cpus, &mut path, ct, threshold).await;
        self.path.set(path);
        result
    }

    /// Waits for the next event of this kind.
    pub async fn event(&self, kind: EventKind) -> Event {
        self.try_event(kind).await.unwrap()
    }

    pub async fn try_event(&self, kind: EventKind) -> Result<Event, CallError> {
        let mut path = self.path.get();
        let wanted = move |event: &Event| event.kind == kind;
        let result = self.card.eq_wait(&self.cpus, &mut path, self.eq, wanted, || kind.to_string()).await;
        self.path.set(path);
        result
    }

    /// Returns the stages of the program's path, each with its name and its time in picoseconds. Checks that the times
    /// add up to the time since the path's start.
    #[track_caller]
    pub fn parts(&self) -> Vec<(&'static str, u64)> {
        let path = self.path.get();
        assert_eq!(path.at(), self.sim.now(), "the path ends now");
        parts(&path)
    }
}

/// Returns the stages of a path, each with its name and its time in picoseconds. Checks that the times add up.
#[track_caller]
pub fn parts(path: &Path) -> Vec<(&'static str, u64)> {
    let parts: Vec<_> = path.stages().map(|(stage, time)| (stage.name(), time.ps())).collect();
    assert_eq!(parts.iter().map(|(_, ps)| ps).sum::<u64>(), path.at().since(path.origin()).ps());
    parts
}
