//! A host with a card of any design. It can send and receive messages.

use nicety_fabric::Port;
use nicety_host::{Allocation, Cpus, Memory};
use nicety_kernel::Sim;
use nicety_nic_core::{Arrival, Caller, Card, CardError, CardSpec, Log, NodeContext, Outgoing, Tags, Wanted};
use nicety_types::{Path, Recorder};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A host and its card.
#[derive(Clone)]
pub struct Host {
    /// The card.
    pub card: Rc<dyn Card>,
    /// The host's memory.
    pub memory: Rc<Memory>,
    /// The node's part of the simulation.
    pub sim: Sim,
    /// The host's CPUs.
    pub cpus: Rc<Cpus>,
    recorder: Recorder,
}

impl Host {
    /// Installs a host and its card on a node. The simulation has `nodes` hosts.
    pub fn install(spec: &Arc<dyn CardSpec>, sim: Sim, port: Port, nodes: u32) -> Host {
        let (host, recorder) = (spec.node().host, Recorder::off());
        let memory = Rc::new(Memory::new(host.memory));
        let cpus = Rc::new(Cpus::new(&sim, host, &recorder));
        let log: Log = Arc::new(|_| {});
        let node_context = NodeContext {
            sim: &sim,
            nodes,
            ordered: true,
            memory: &memory,
            gpu: None,
            cpus: &cpus,
            port,
            packet_payload: None,
            eager: None,
            uid: 0,
            log: &log,
            recorder: &recorder,
        };
        let card = spec.clone().install(node_context).unwrap();
        Host { card, memory, sim, cpus, recorder }
    }

    /// Allocates memory that the card may access.
    pub fn room(&self, bytes: u64) -> Allocation {
        let buffer = self.memory.allocate(bytes.max(1)).unwrap();
        self.card.adopt(&buffer);
        buffer
    }

    /// Sends the first `bytes` bytes of a buffer.
    pub async fn send_from(
        &self,
        buffer: &Allocation,
        to: u32,
        tag: u64,
        bytes: u64,
    ) -> Result<(), CardError> {
        let path = RefCell::new(Path::from(self.sim.now()));
        let outgoing = Outgoing { to, tag, address: buffer.address(), bytes };
        self.card.clone().send(self.caller(&path), outgoing).await
    }

    /// Receives a message from any rank into a buffer.
    pub async fn receive_into(
        &self,
        buffer: &Allocation,
        tag: Option<u64>,
        room: u64,
    ) -> Result<Arrival, CardError> {
        let path = RefCell::new(Path::from(self.sim.now()));
        let wanted =
            Wanted { source: None, tags: Tags::exactly_or_any(tag), address: buffer.address(), room };
        let posted = self.card.clone().post_receive(self.caller(&path), wanted).await?;
        self.card.clone().received(self.caller(&path), posted).await
    }

    fn caller<'c>(&'c self, path: &'c RefCell<Path>) -> Caller<'c> {
        Caller { sim: &self.sim, cpus: &self.cpus, recorder: &self.recorder, thread: 0, path }
    }
}
