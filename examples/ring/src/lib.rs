//! A card with a ring of receive buffers, in a crate of its own. `docs/cards/adding.md` explains it piece by piece.

use nicety_fabric::{Channel, HeaderBytes, Label, Packet, PacketBox};
use nicety_host::BusSpec;
use nicety_kernel::{Channel as Queue, Signal, Sim};
use nicety_nic_core::parts::{Dma, Engine, Matching, Moving, stages, transport};
use nicety_nic_core::{
    Arrival, Caller, Calling, Card, CardError, CardSpec, Design, NodeContext, NodeSpec, Outgoing,
    PostedReceive, Wanted, read_bus, read_node, read_transport,
};
use nicety_spec::Reader;
use nicety_types::{Duration, Flight, MessageId, NodeId, Path, Recorder, Stage, Starter, View};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// The design, for the register.
pub const DESIGN: &dyn Design = &Ring;

struct Ring;

nicety_types::stages! { const STAGES; const RING_QUEUED = 365, "ring, queued"; }

#[derive(Debug)]
struct RingSpec {
    node: NodeSpec,
    bus: BusSpec,
    transport: transport::TransportSpec,
    buffers: u64,
    packet: u64,
    channels: usize,
    setup: Duration,
}

impl Design for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }
    fn example(&self) -> &'static str {
        "ring.toml"
    }
    fn interface(&self) -> &'static str {
        "a ring of buffers"
    }
    fn stages(&self) -> Vec<Stage> {
        [STAGES, stages::ENGINE, transport::stages::STAGES].concat()
    }
    fn read(&self, reader: &Reader<'_>) -> Arc<dyn CardSpec> {
        let (ring, dma) = (reader.section("ring"), reader.section("dma"));
        Arc::new(RingSpec {
            node: read_node(reader),
            bus: read_bus(reader),
            transport: read_transport(reader),
            buffers: ring.count("buffers", 1..=65_536, "receive buffers in host memory"),
            packet: ring.size("packet", 64..=65_536, "most payload of a packet, and size of a buffer"),
            channels: dma.count("channels", 1..=64, "channels of the DMA engine") as usize,
            setup: dma.time("setup", "a channel's time before a transfer uses the bus"),
        })
    }
}

impl CardSpec for RingSpec {
    fn design(&self) -> &'static dyn Design {
        DESIGN
    }
    fn node(&self) -> NodeSpec {
        self.node
    }
    fn protocol(&self) -> String {
        format!("ring packets{}", if self.transport.reliable { " with reliable transport" } else { "" })
    }
    fn makes_up_for(&self, _packet: &Packet) -> bool {
        self.transport.reliable
    }
    fn install(self: Arc<Self>, node_context: NodeContext<'_>) -> Result<Rc<dyn Card>, CardError> {
        let (sim, recorder) = (node_context.sim, node_context.recorder);
        let ring = node_context.memory.allocate(self.buffers * self.packet)?.address();
        let free = Queue::new(sim, self.buffers as usize);
        (0..self.buffers)
            .for_each(|buffer| free.try_send(ring + buffer * self.packet).expect("room for all"));
        let card = Rc::new(RingCard {
            wire: transport::Wire::new(sim, node_context.port, self.transport, node_context.nodes, recorder),
            dma: Dma::new(sim, self.bus, node_context.memory.clone(), recorder),
            engine: Engine::new(sim, self.channels, recorder),
            free,
            arrived: RefCell::default(),
            changed: Signal::new(sim),
            sent: Cell::default(),
            recorder: recorder.clone(),
            sim: sim.clone(),
            spec: self,
        });
        sim.spawn(card.clone().listen());
        Ok(card)
    }
}

struct RingCard {
    sim: Sim,
    spec: Arc<RingSpec>,
    wire: Rc<transport::Wire>,
    dma: Rc<Dma>,
    engine: Engine,
    /// Addresses of free buffers.
    free: Queue<u64>,
    arrived: RefCell<Matching<Wanted, Received>>,
    changed: Signal,
    sent: Cell<u64>,
    recorder: Recorder,
}

/// A packet's header: rank and message number of the sender, offset, tag, and bytes of the message.
type Header = [u64; 5];

/// A packet, its header, and the address of its buffer.
struct Received(PacketBox, Header, u64);

impl RingCard {
    async fn transmit(&self, caller: Caller<'_>, message: Outgoing) -> Result<(), CardError> {
        let Outgoing { to, tag, address, bytes } = message;
        if NodeId(to) == self.sim.node() {
            return Err(CardError::Input("a card of design ring sends nothing to itself".to_owned()));
        }
        let id = MessageId { source: self.sim.node(), sequence: self.sent.replace(self.sent.get() + 1) };
        let mut path = caller.path.borrow().clone();
        self.recorder.sent(id, NodeId(to), bytes, "send", Starter::Host, &path);
        caller.cpus.post(&mut path, id).await;
        path = self.dma.bus().push(id, 0, self.spec.packet, path).packet(0).await.landed();
        self.sim.until(path.at()).await;
        for offset in (0..bytes.max(1)).step_by(self.spec.packet as usize) {
            let moving = self.set_up(id, &mut path).await;
            let len = (bytes - offset).min(self.spec.packet);
            let (payload, flight) = self.dma.read(id, address + offset, len, path).await;
            path = flight.landed();
            self.sim.until(path.at()).await;
            self.engine.release(moving, id, &path);
            let turn = self.wire.turn(NodeId(to), Flight::resting(path.clone())).await;
            let header: Header = [id.source.0.into(), id.sequence, offset, tag, bytes];
            let header = HeaderBytes::new(&header.map(u64::to_le_bytes).concat());
            let label = Label { destination: NodeId(to), message: id, offset };
            let packet = Packet { label, channel: Channel::Data(0), header, payload, path };
            path = self.wire.launch(packet, turn).path;
            self.sim.until(path.at()).await;
        }
        caller.path.replace(path);
        Ok(())
    }

    /// Takes a channel of the DMA engine, and sets it up.
    async fn set_up(&self, message: MessageId, path: &mut Path) -> Moving {
        let channel = self.engine.channel(message, path).await;
        self.engine.set_up(channel, (self.spec.setup, stages::DMA_SETUP), message, path).await
    }

    async fn listen(self: Rc<Self>) {
        loop {
            let packet = self.wire.receive().await;
            self.sim.spawn(self.clone().deposit(packet));
        }
    }

    /// Writes a packet to a buffer. Without one it stays in the packet buffer.
    async fn deposit(self: Rc<Self>, mut packet: PacketBox) {
        let header: Header = std::array::from_fn(|word| View(packet.header.as_slice()).u64(8 * word));
        let message = MessageId { source: NodeId(header[0] as u32), sequence: header[1] };
        let buffer = self.free.recv().await.expect("never closed");
        packet.path.advance(RING_QUEUED, self.sim.now());
        let moving = self.set_up(message, &mut packet.path).await;
        let (bytes, payload) = (packet.payload.len().min(self.spec.packet), packet.payload.clone());
        let written = self.dma.deposit(message, buffer, bytes, payload, packet.path.clone()).await;
        self.engine.release(moving, message, &written.path);
        self.wire.free_link_slot();
        self.dma.landed(&written).await;
        packet.path = written.path;
        packet.path.advance(Stage::DEPOSIT, written.landed);
        if header[2] == 0 {
            self.recorder.message_matched(message, self.sim.now(), "in the ring");
        }
        self.arrived.borrow_mut().keep(Received(packet, header, buffer));
        self.changed.notify_all();
    }

    /// Copies the packets of the oldest message for a receive out of their buffers.
    async fn copy_out(&self, caller: Caller<'_>, wanted: Wanted) -> Result<Arrival, CardError> {
        let (mut taken, mut copied) = (None, 0);
        loop {
            let takes = |Received(_, header, _): &Received| match taken {
                Some(message) => (header[0], header[1]) == message,
                None => header[2] == 0 && wanted.takes(header[0] as u32, header[3]),
            };
            self.changed.wait_until(|| self.arrived.borrow().messages().any(takes)).await;
            let found = self.arrived.borrow_mut().take_message(takes).0.expect("just seen");
            let Received(packet, [source, number, offset, tag, bytes], buffer) = found;
            let message = MessageId { source: NodeId(source as u32), sequence: number };
            let mut path = caller.path.borrow().clone();
            path.follow(&packet.path);
            caller.cpus.notice(&mut path, Some(message)).await;
            let (memory, to) = (self.dma.memory(), wanted.address + copied);
            let len = packet.payload.len().min(self.spec.packet).min(wanted.room - copied);
            caller.cpus.copy(memory, Some(buffer), Some(to), len, Stage::COPY, &mut path).await?;
            memory.deposit(to, len, &memory.peek(buffer, len)?)?;
            self.free.try_send(buffer).expect("its own place");
            caller.path.replace(path.clone());
            (taken, copied) = (Some((source, number)), copied + len);
            if offset + packet.payload.len() >= bytes {
                self.recorder.message_completed(message, &path, "received");
                return Ok(Arrival { source: source as u32, tag, bytes, room: wanted.room });
            }
        }
    }
}

impl Card for RingCard {
    fn design(&self) -> &'static dyn Design {
        DESIGN
    }
    fn undelivered(&self) -> Vec<transport::Undelivered> {
        self.wire.undelivered()
    }
    fn is_reliable(&self) -> Option<bool> {
        Some(self.spec.transport.reliable)
    }
    fn send<'c>(self: Rc<Self>, caller: Caller<'c>, sent: Outgoing) -> Calling<'c, Result<(), CardError>> {
        Box::pin(async move { self.transmit(caller, sent).await })
    }
    fn received<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Arrival, CardError>> {
        Box::pin(async move { self.copy_out(caller, posted.of()).await })
    }
}
