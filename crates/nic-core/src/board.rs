//! A board: the components of a card between host memory and its link, and the steps that most cards take with them.

use crate::MessageNumbers;
use crate::parts::transport::{TransportSpec, Wire};
use crate::parts::{Dma, Engine, EngineSpec, stages};
use crate::{NodeContext, NodeSpec, Outgoing, read_bus, read_engine, read_node, read_transport};
use nicety_fabric::{Channel, HeaderBytes, Label, Packet, PacketBox};
use nicety_host::{BusSpec, Cpus};
use nicety_kernel::Sim;
use nicety_spec::Reader;
use nicety_types::{Flight, MessageId, NodeId, Path, Payload, Recorder, Stage, Starter};
use std::rc::Rc;

/// The specification of a board.
#[derive(Clone, Copy, Debug)]
pub struct BoardSpec {
    /// The specifications of the host and the network.
    pub node: NodeSpec,
    /// The specification of the bus to the host.
    pub bus: BusSpec,
    /// The specification of reliable transport, which may be off.
    pub transport: TransportSpec,
    /// The specification of the DMA engine.
    pub dma: EngineSpec,
}

/// Reads the sections of a board: `[bus]`, `[transport]`, `[dma]`, and the sections that [`read_node`] reads.
pub fn read_board(reader: &Reader<'_>) -> BoardSpec {
    BoardSpec {
        node: read_node(reader),
        bus: read_bus(reader),
        transport: read_transport(reader),
        dma: read_engine(reader),
    }
}

/// The components of a card between host memory and its link.
pub struct Board {
    sim: Sim,
    recorder: Recorder,
    wire: Rc<Wire>,
    dma: Rc<Dma>,
    engine: Engine,
    spec: BoardSpec,
    posted: MessageNumbers,
}

impl Board {
    /// Returns the board of a node.
    pub fn new(spec: BoardSpec, node_context: NodeContext<'_>) -> Board {
        let NodeContext { sim, recorder, port, nodes, memory, .. } = node_context;
        Board {
            wire: Wire::new(sim, port, spec.transport, nodes, recorder),
            dma: Dma::new(sim, spec.bus, memory.clone(), recorder),
            engine: Engine::new(sim, spec.dma.channels, recorder),
            posted: MessageNumbers::default(),
            sim: sim.clone(),
            recorder: recorder.clone(),
            spec,
        }
    }

    /// The card's end of its link.
    pub const fn wire(&self) -> &Rc<Wire> {
        &self.wire
    }

    /// The path to host memory.
    pub const fn dma(&self) -> &Rc<Dma> {
        &self.dma
    }

    /// The recorder of the node's events.
    pub const fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Numbers a message, posts it on a CPU, and rings the card's doorbell over the bus. Returns the message's number.
    pub async fn post(&self, cpus: &Cpus, message: &Outgoing, path: &mut Path) -> MessageId {
        let id = self.posted.next(self.sim.node());
        self.recorder.sent(id, NodeId(message.to), message.bytes, "send", Starter::Host, path);
        cpus.post(path, id).await;
        self.dma.ring(id, path).await;
        id
    }

    /// Reads host memory through a channel of the DMA engine.
    pub async fn fetch(&self, message: MessageId, address: u64, bytes: u64, path: &mut Path) -> Payload {
        let moving = self.engine.start((self.spec.dma.setup, stages::DMA_SETUP), message, path).await;
        let payload = self.dma.fetch(message, address, bytes, path).await;
        self.engine.release(moving, message, path);
        payload
    }

    /// Waits for a packet's turn on the link, and sends the packet. Returns when the link has taken the packet's last
    /// byte.
    pub async fn send(&self, label: Label, header: HeaderBytes, payload: Payload, path: &mut Path) {
        let turn = self.wire.turn(label.destination, Flight::resting(path.clone())).await;
        let packet = Packet { label, channel: Channel::Data(0), header, payload, path: path.clone() };
        *path = self.wire.launch(packet, turn).path;
        self.sim.until(path.at()).await;
    }

    /// Starts a task for each packet that arrives from the link.
    pub fn receive<F: Future<Output = ()> + 'static>(&self, task: impl Fn(PacketBox) -> F + 'static) {
        let (sim, wire) = (self.sim.clone(), self.wire.clone());
        self.sim.spawn(async move {
            loop {
                sim.spawn(task(wire.receive().await));
            }
        });
    }

    /// Writes the first `keep` payload bytes of a packet to host memory through a channel of the DMA engine. Then frees
    /// the packet's slot in the packet buffer. Returns when the bytes are in host memory. The packet's path then
    /// includes the time until then.
    pub async fn deposit(&self, message: MessageId, address: u64, keep: u64, packet: &mut PacketBox) {
        let set_up = (self.spec.dma.setup, stages::DMA_SETUP);
        let moving = self.engine.start(set_up, message, &mut packet.path).await;
        let payload = packet.payload.clone();
        let written = self.dma.deposit(message, address, keep, payload, packet.path.clone()).await;
        self.engine.release(moving, message, &written.path);
        self.wire.free_link_slot();
        self.dma.landed(&written).await;
        packet.path = written.path;
        packet.path.advance(Stage::DEPOSIT, written.landed);
    }
}
