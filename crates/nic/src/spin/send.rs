//! The way out: one send engine, one message after another, packet behind packet.

use super::Card;
use nicety_fabric::{Channel, HeaderBytes, Packet};
use nicety_host::Transfer;
use nicety_kernel::{Permit, Pool};
use nicety_portals::{CtEvent, CtHandle, Header, HeaderKind, OperationHandle};
use nicety_types::{
    Duration, Flight, Level, MessageId, NodeId, Path, Payload, Resource, Stage, Starter, Time,
};
use std::cell::Cell;
use std::rc::Rc;

/// The send engine: it begins a message at max(start of the one before + gap, end of its bytes).
pub(super) struct SendEngine {
    turn: Pool,
    gap: Duration,
    last_start: Cell<Option<Time>>,
}

impl SendEngine {
    pub(super) fn new(turn: Pool, gap: Duration) -> SendEngine {
        SendEngine { turn, gap, last_start: Cell::new(None) }
    }
}

/// Where a message's bytes come from.
pub(super) enum Bytes {
    /// Host memory from this address on, streaming over the bus.
    Host { start: u64, transfer: Transfer },
    /// The card: at most one packet, there since the instant the path accounts for.
    Card { payload: Payload, path: Path },
}

impl Bytes {
    async fn packet(&self, offset: u64) -> Flight {
        match self {
            Bytes::Host { transfer, .. } => transfer.packet(offset).await,
            Bytes::Card { path, .. } => Flight::resting(*path),
        }
    }
}

/// A message on its way out.
pub(super) struct Leaving {
    pub(super) message: MessageId,
    pub(super) header: Header,
    /// Payload in bytes: the header's length, but none on an acknowledgement.
    pub(super) length: u64,
    pub(super) bytes: Bytes,
    /// What to report when it has been sent.
    pub(super) report: Option<Report>,
    /// Its place among the messages that handlers have waiting.
    pub(super) place: Option<Permit>,
}

/// What is to be told when the last byte of a message has been handed to the link.
#[derive(Clone, Copy)]
pub(super) enum Report {
    /// The end of one of the interface's own operations.
    Sent(OperationHandle),
    /// A success on a counter.
    Count(CtHandle),
}

impl Card {
    /// A name for the next message or command of this node.
    pub(super) fn next_message(&self) -> MessageId {
        let sequence = self.messages.get();
        self.messages.set(sequence + 1);
        MessageId { source: self.node, sequence }
    }

    /// A message's row begins: its sender's path `base` is that before the post.
    pub(super) fn record_sent(&self, message: MessageId, header: &Header, by: Starter, base: &Path) {
        let (kind, bytes) = match header.kind {
            HeaderKind::Put => ("put", header.length),
            HeaderKind::Get => ("get", 0),
            HeaderKind::Reply => ("reply", header.length),
            HeaderKind::Ack => ("ack", 0),
            HeaderKind::Atomic => ("atomic", header.length),
            HeaderKind::FetchAtomic => ("fetch atomic", header.length),
            HeaderKind::Swap => ("swap", header.length),
        };
        self.recorder.sent(message, header.target, bytes, kind, by, base);
    }

    /// The card fetches a message from host memory and sends it: a triggered put, or a put from host by a handler.
    pub(super) async fn fetch_and_send(
        self: Rc<Card>,
        header: Header,
        start: u64,
        report: Option<Report>,
        place: Option<Permit>,
        path: Path,
        by: Starter,
    ) {
        let message = self.next_message();
        self.record_sent(message, &header, by, &path);
        let packet_bytes = self.spec.packet_payload;
        let transfer = self.bus.read(message, start, header.length, packet_bytes, path).await;
        let last = header.length.saturating_sub(1) / packet_bytes * packet_bytes;
        if self.recorder.keeps(Level::Everything) {
            let (recorder, transfer) = (self.recorder.clone(), transfer.clone());
            self.sim.spawn(async move {
                let tail = transfer.packet(last).await.tail;
                recorder.slice(Resource::Dma, path.at(), tail, Some(message), "fetch");
            });
        }
        let bytes = Bytes::Host { start, transfer };
        self.send(Leaving { message, header, length: header.length, bytes, report, place }).await;
    }

    /// Sends a message: takes its turn at the engine, then puts packet behind packet on the link.
    pub(super) async fn send(self: Rc<Card>, leaving: Leaving) {
        let Leaving { message, header, length: total, mut bytes, report, place } = leaving;
        let mut flight = bytes.packet(0).await;
        self.sim.until(flight.head).await;
        let turn = self.engine.turn.acquire().await;
        let gap_over = self.engine.last_start.get().map_or(Time::ZERO, |start| start + self.engine.gap);
        self.sim.until(gap_over.max(self.port.free()).max(flight.head)).await;
        if self.sim.now() > flight.head {
            flight.path.advance(Stage::SendQueued, self.sim.now());
            flight.head = self.sim.now();
            flight.tail = flight.tail.max(flight.head);
        }

        let wire_header = HeaderBytes::new(&header.encode());
        let mut offset = 0;
        let handed = loop {
            let length = self.spec.packet_payload.min(total - offset);
            let ready = self.port.turn(header.target, flight).await;
            if offset == 0 {
                self.engine.last_start.set(Some(self.sim.now()));
            }
            let payload = match &mut bytes {
                Bytes::Host { start, .. } => self.read_host(*start + offset, length),
                Bytes::Card { payload, .. } => std::mem::take(payload),
            };
            let handed = self.port.launch(
                Packet {
                    source: self.node,
                    destination: NodeId(header.target.0),
                    message,
                    channel: Channel::Data,
                    offset,
                    header: wire_header,
                    payload,
                    path: Path::from(Time::ZERO),
                },
                ready,
            );
            offset += length;
            if offset >= total {
                break handed;
            }
            flight = bytes.packet(offset).await;
        };
        drop((turn, place));

        let Some(report) = report else { return };
        let (handed, outcome) = self.port.delivered(handed).await;
        let counted = if outcome.is_ok() { CtEvent::success(1) } else { CtEvent::failure(1) };
        self.with_effects_of(Some(message), handed, |interface, effects| match report {
            Report::Sent(operation) => {
                interface
                    .sent(operation, outcome, effects)
                    .expect("the operation was given to this card to send");
            }
            Report::Count(ct) => {
                interface.ct_inc(ct, counted, effects).expect("the counter lives as long as its entry");
            }
        });
    }

    /// Bytes of host memory that a checked descriptor or match entry names.
    pub(super) fn read_host(&self, address: u64, length: u64) -> Payload {
        self.land_due();
        self.memory.read(address, length).expect("descriptors and entries are checked when they are made")
    }
}
