//! A card with a ring of receive buffers, in a crate of its own. `docs/cards/adding.md` explains it piece by piece.

use nicety_fabric::{HeaderBytes, Label, PacketBox};
use nicety_kernel::{Channel as Queue, Sim};
use nicety_nic_core::parts::{Arrivals, stages, transport};
use nicety_nic_core::{
    Arrival, Board, BoardSpec, Caller, Calling, Card, CardError, CardSpec, Design, NodeContext, NodeSpec,
    Outgoing, PostedReceive, Wanted, read_board,
};
use nicety_spec::Reader;
use nicety_types::{MessageId, NodeId, Path, Stage};
use std::rc::Rc;
use std::sync::Arc;

nicety_types::stages! { const STAGES; const RING_QUEUED = 365, "ring, queued"; }

/// The design, for the register.
pub const DESIGN: &Design = &Design {
    stages: &[STAGES, stages::ENGINE, transport::stages::STAGES],
    ..Design::new("ring", "ring.toml", "a ring of buffers", read)
};

#[derive(Debug)]
struct RingSpec {
    board: BoardSpec,
    buffers: u64,
    packet: u64,
}

fn read(reader: &Reader<'_>) -> Arc<dyn CardSpec> {
    let ring = reader.section("ring");
    Arc::new(RingSpec {
        board: read_board(reader),
        buffers: ring.count("buffers", 1..=65_536, "receive buffers in host memory"),
        packet: ring.size("packet", 64..=65_536, "most payload of a packet, and size of a buffer"),
    })
}

impl CardSpec for RingSpec {
    fn design(&self) -> &'static Design {
        DESIGN
    }
    fn node(&self) -> NodeSpec {
        self.board.node
    }
    fn transport(&self) -> Option<&transport::TransportSpec> {
        Some(&self.board.transport)
    }
    fn install(self: Arc<Self>, node_context: NodeContext<'_>) -> Result<Rc<dyn Card>, CardError> {
        let sim = node_context.sim.clone();
        let ring = node_context.memory.allocate(self.buffers * self.packet)?.address();
        let free = Queue::new(&sim, self.buffers as usize);
        for buffer in 0..self.buffers {
            free.try_send(ring + buffer * self.packet).expect("room for all");
        }
        let (board, arrived) = (Board::new(self.board, node_context), Arrivals::new(&sim));
        let card = Rc::new(RingCard { sim, packet: self.packet, board, free, arrived });
        let receiver = card.clone();
        card.board.receive(move |packet| receiver.clone().deposit(packet));
        Ok(card)
    }
}

struct RingCard {
    sim: Sim,
    board: Board,
    /// Size of a buffer in bytes.
    packet: u64,
    /// Addresses of free buffers.
    free: Queue<u64>,
    arrived: Arrivals<Received>,
}

/// A packet's header: rank and message number of the sender, offset, tag, and bytes of the message.
type Header = [u64; 5];

/// A packet, its header, and the address of its buffer.
struct Received(PacketBox, Header, u64);

impl RingCard {
    async fn transmit(&self, caller: Caller<'_>, message: Outgoing, path: &mut Path) {
        let Outgoing { to, tag, address, bytes } = message;
        let id = self.board.post(caller.cpus, &message, path).await;
        for offset in (0..bytes.max(1)).step_by(self.packet as usize) {
            let len = (bytes - offset).min(self.packet);
            let payload = self.board.fetch(id, address + offset, len, path).await;
            let header: Header = [id.source.0.into(), id.sequence, offset, tag, bytes];
            let label = Label { destination: NodeId(to), message: id, offset };
            self.board.send(label, HeaderBytes::of_words(&header), payload, path).await;
        }
    }

    /// Writes a packet to a buffer. Without one it stays in the packet buffer.
    async fn deposit(self: Rc<Self>, mut packet: PacketBox) {
        let header: Header = packet.header.words();
        let message = MessageId { source: NodeId(header[0] as u32), sequence: header[1] };
        let buffer = self.free.recv().await.expect("never closed");
        packet.path.advance(RING_QUEUED, self.sim.now());
        let keep = packet.payload.len().min(self.packet);
        self.board.deposit(message, buffer, keep, &mut packet).await;
        if header[2] == 0 {
            self.board.recorder().message_matched(message, self.sim.now(), "in the ring");
        }
        self.arrived.add(Received(packet, header, buffer));
    }

    /// Copies the packets of the oldest message for a receive out of their buffers.
    async fn copy_out(
        &self,
        caller: Caller<'_>,
        wanted: Wanted,
        path: &mut Path,
    ) -> Result<Arrival, CardError> {
        let (mut taken, mut copied, memory) = (None, 0, self.board.dma().memory());
        loop {
            let wants = |Received(_, header, _): &Received| match taken {
                Some(message) => (header[0], header[1]) == message,
                None => header[2] == 0 && wanted.takes(header[0] as u32, header[3]),
            };
            let Received(packet, [source, number, offset, tag, bytes], buffer) =
                self.arrived.take(wants).await;
            let message = MessageId { source: NodeId(source as u32), sequence: number };
            path.follow(&packet.path);
            caller.cpus.notice(path, Some(message)).await;
            let len = packet.payload.len().min(self.packet).min(wanted.room - copied);
            let to = wanted.address + copied;
            caller.cpus.copy(memory, Some(buffer), Some(to), len, Stage::COPY, path).await?;
            memory.deposit(to, len, &memory.peek(buffer, len)?)?;
            self.free.try_send(buffer).expect("its own place");
            (taken, copied) = (Some((source, number)), copied + len);
            if offset + packet.payload.len() >= bytes {
                self.board.recorder().message_completed(message, path, "received");
                return Ok(Arrival { source: source as u32, tag, bytes, room: wanted.room });
            }
        }
    }
}

impl Card for RingCard {
    fn design(&self) -> &'static Design {
        DESIGN
    }
    fn wire(&self) -> Option<&transport::Wire> {
        Some(self.board.wire())
    }
    fn send<'c>(self: Rc<Self>, caller: Caller<'c>, sent: Outgoing) -> Calling<'c, Result<(), CardError>> {
        Box::pin(async move {
            if NodeId(sent.to) == self.sim.node() {
                return Err(DESIGN.lacks("sends to its own rank"));
            }
            caller.on_path(async |path| self.transmit(caller, sent, path).await).await;
            Ok(())
        })
    }
    fn received<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Arrival, CardError>> {
        Box::pin(
            async move { caller.on_path(async |path| self.copy_out(caller, posted.of(), path).await).await },
        )
    }
}
