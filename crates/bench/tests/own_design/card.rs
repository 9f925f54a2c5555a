//! A plain card with a ring of transmit and one of receive descriptors. Its library matches messages and copies them.

use nicety_fabric::{Channel, HeaderBytes, Label, Packet, PacketBox, Port};
use nicety_host::{Allocation, BusSpec};
use nicety_kernel::{Credits, Permit, Signal, Sim};
use nicety_nic_core::parts::Dma;
use nicety_nic_core::{
    Arrival, Caller, Calling, Card, CardError, CardSpec, Design, NodeContext, NodeSpec, Outgoing,
    PostedReceive, Wanted, read_bus, read_node,
};
use nicety_spec::Reader;
use nicety_types::{Flight, MessageId, NodeId, Recorder, Stage, Starter, View};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

nicety_types::stages! { const STAGES; const RING_QUEUED = 365, "ring, queued"; }
/// The design.
pub struct Rings;

#[derive(Debug)]
struct RingsSpec {
    node: NodeSpec,
    bus: BusSpec,
    descriptors: u64,
    packet: u64,
}

/// The header of a packet: the sender's rank and count of messages, offset, tag, and bytes of the message.
type Repr = [u64; 5];

/// A packet in a buffer of the receive ring, its message, its header, and the descriptor of the buffer.
struct Received(PacketBox, MessageId, Repr, Permit);

struct RingsCard {
    sim: Sim,
    spec: Arc<RingsSpec>,
    port: Port,
    dma: Rc<Dma>,
    transmit: Credits,
    receive: Credits,
    ring: Allocation,
    received: RefCell<Vec<Received>>,
    changed: Signal,
    sent: Cell<u64>,
    recorder: Recorder,
}

impl Design for Rings {
    fn name(&self) -> &'static str {
        "rings"
    }
    fn example(&self) -> &'static str {
        "rings.toml"
    }
    fn interface(&self) -> &'static str {
        "descriptor rings"
    }
    fn stages(&self) -> Vec<Stage> {
        STAGES.to_vec()
    }
    fn read(&self, reader: &Reader<'_>) -> Arc<dyn CardSpec> {
        let s = reader.section("rings");
        let descriptors = s.count("descriptors", 1..=65_536, "descriptors of each ring");
        let packet = s.size("packet", 64..=65_536, "most payload that a packet carries");
        Arc::new(RingsSpec { node: read_node(reader), bus: read_bus(reader), descriptors, packet })
    }
}

impl CardSpec for RingsSpec {
    fn design(&self) -> &'static dyn Design {
        &Rings
    }
    fn node(&self) -> NodeSpec {
        self.node
    }
    fn install(self: Arc<Self>, node_context: NodeContext<'_>) -> Result<Rc<dyn Card>, CardError> {
        let (sim, mut port, memory) = (node_context.sim, node_context.port, node_context.memory.clone());
        port.record(node_context.recorder);
        let card = Rc::new(RingsCard {
            sim: sim.clone(),
            port,
            transmit: Credits::new(sim, self.descriptors),
            receive: Credits::new(sim, self.descriptors),
            ring: memory.allocate(self.descriptors * self.packet)?,
            received: RefCell::default(),
            changed: Signal::new(sim),
            sent: Cell::default(),
            recorder: node_context.recorder.clone(),
            dma: Dma::new(sim, self.bus, memory, node_context.recorder),
            spec: self,
        });
        sim.spawn(card.clone().listen());
        Ok(card)
    }
}

impl RingsCard {
    /// Every packet goes to the next buffer of the ring; without one it stays in the packet buffer.
    async fn listen(self: Rc<Self>) {
        for at in 0.. {
            let mut packet = self.port.receive().await;
            let header: Repr = std::array::from_fn(|word| View(packet.header.as_slice()).u64(8 * word));
            let message = MessageId { source: NodeId(header[0] as u32), sequence: header[1] };
            let (offset, bytes) = (header[2], packet.payload.len());
            self.recorder.packet_arrived(message, offset, self.sim.now());
            let descriptor = self.receive.acquire(1).await;
            packet.path.advance(RING_QUEUED, self.sim.now());
            let address = self.ring.address() + at % self.spec.descriptors * self.spec.packet;
            let (payload, path) = (packet.payload.clone(), packet.path.clone());
            let handover = self.dma.deposit(message, address, bytes, payload, path).await;
            self.port.free_slot();
            self.dma.landed(&handover).await;
            packet.path = handover.path;
            packet.path.advance(Stage::DEPOSIT, handover.landed);
            self.recorder.packet_settled(message, offset, self.sim.now());
            if offset == 0 {
                self.recorder.message_matched(message, self.sim.now(), "in the ring");
            }
            self.received.borrow_mut().push(Received(packet, message, header, descriptor));
            self.changed.notify_all();
        }
    }

    async fn transmit(&self, caller: Caller<'_>, message: Outgoing) -> Result<(), CardError> {
        let Outgoing { to, tag, address, bytes } = message;
        if NodeId(to) == self.sim.node() {
            return Err(CardError::Input("a card with rings sends nothing to itself".to_owned()));
        }
        let id = MessageId { source: self.sim.node(), sequence: self.sent.replace(self.sent.get() + 1) };
        let mut path = caller.path.borrow().clone();
        self.recorder.sent(id, NodeId(to), bytes, "send", Starter::Host, &path);
        caller.cpus.post(&mut path, id).await;
        path = self.dma.bus().push(id, 0, self.spec.packet, path).packet(0).await.landed();
        self.sim.until(path.at()).await;
        for offset in (0..bytes.max(1)).step_by(self.spec.packet as usize) {
            let _descriptor = self.transmit.acquire(1).await;
            let len = (bytes - offset).min(self.spec.packet);
            let (payload, flight) = self.dma.read(id, address + offset, len, path).await;
            let fetched = flight.landed();
            self.sim.until(fetched.at()).await;
            let turn = self.port.turn(Flight::resting(fetched.clone())).await;
            let header: Repr = [id.source.0.into(), id.sequence, offset, tag, bytes];
            let packet = Packet {
                label: Label { destination: NodeId(to), message: id, offset },
                channel: Channel::Data(0),
                header: HeaderBytes::new(&header.map(u64::to_le_bytes).concat()),
                payload,
                path: fetched,
            };
            path = self.port.launch(packet, turn);
            self.sim.until(path.at()).await;
        }
        caller.path.replace(path);
        Ok(())
    }

    /// The library takes the packets of the oldest matching message from the ring, and copies them.
    async fn take(&self, caller: Caller<'_>, wanted: Wanted) -> Result<Arrival, CardError> {
        let fits = |found: &Received| wanted.takes(found.1.source.0, found.2[3]);
        let (mut taken, mut copied) = (None, 0);
        loop {
            let next = |found: &Received| taken.map_or_else(|| fits(found), |id| found.1 == id);
            self.changed.wait_until(|| self.received.borrow().iter().any(next)).await;
            let at = self.received.borrow().iter().position(next).unwrap();
            let found = self.received.borrow_mut().remove(at);
            let Received(packet, message, [_, _, offset, tag, bytes], _descriptor) = found;
            let mut path = caller.path.borrow().clone();
            path.follow(&packet.path);
            caller.cpus.notice(&mut path, Some(message)).await;
            let (to, len) = (wanted.address + copied, packet.payload.len().min(wanted.room - copied));
            caller.cpus.copy(self.dma.memory(), None, Some(to), len, Stage::COPY, &mut path).await.unwrap();
            self.dma.memory().deposit(to, len, &packet.payload).unwrap();
            (taken, copied) = (Some(message), copied + len);
            caller.path.replace(path.clone());
            if offset + packet.payload.len() == bytes {
                self.recorder.message_completed(message, &path, "received");
                self.recorder.message_noticed(message, self.sim.now());
                return Ok(Arrival { source: message.source.0, tag, bytes, room: wanted.room });
            }
        }
    }
}

impl Card for RingsCard {
    fn design(&self) -> &'static dyn Design {
        &Rings
    }
    fn send<'c>(self: Rc<Self>, caller: Caller<'c>, message: Outgoing) -> Calling<'c, Result<(), CardError>> {
        Box::pin(async move { self.transmit(caller, message).await })
    }
    fn received<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Arrival, CardError>> {
        Box::pin(async move { self.take(caller, posted.of()).await })
    }
}
