//! The transmit path. One send engine sends one message at a time, packet after packet.

pub(super) mod generate;
pub(super) mod reply_timeout;

use crate::Card;
use crate::spec::SpinSpec;
use crate::transmit::reply_timeout::Answers;
use crate::wire::Repr;
use nicety_fabric::{Channel, Label, Packet, PacketBox};
use nicety_host::Transfer;
use nicety_kernel::{Credits, Permit, Pool, Sim};
use nicety_nic_core::MessageNumbers;
use nicety_nic_core::parts::transport::Wire;
use nicety_portals::{CtEvent, CtHandle, FailType, Header, HeaderKind, Operand, OperationHandle, Outgoing};
use nicety_types::{
    Duration, Flight, Level, MessageId, Path, Payload, Resource, Segment, Stage, Starter, Time,
};
use std::cell::Cell;
use std::rc::Rc;

/// Maximum number of packets of a message that are launched at once, if the early launch is not observable. With more
/// packets, the run would need more memory at a time.
const AT_ONCE: u64 = 4;

/// The send engine. It starts a message when the gap after the start of the previous message has passed. The last
/// packet of the previous message must also have begun.
struct SendEngine {
    turn: Pool,
    gap: Duration,
    last_start: Cell<Option<Time>>,
    /// The time at which the last packet of the previous message begins.
    last_packet: Cell<Time>,
    /// The total time for which messages have occupied the engine. Each message occupies it for the gap or for the
    /// message's time on the link, whichever is longer.
    busy: Cell<Duration>,
}

impl SendEngine {
    fn new(turn: Pool, gap: Duration) -> SendEngine {
        let (last_packet, busy) = (Cell::new(Time::ZERO), Cell::new(Duration::ZERO));
        SendEngine { turn, gap, last_start: Cell::new(None), last_packet, busy }
    }

    /// Returns the first time at which the engine may start another message.
    fn free(&self) -> Time {
        let gap_over = self.last_start.get().map_or(Time::ZERO, |start| start + self.gap);
        gap_over.max(self.last_packet.get())
    }
}

/// The state of the transmit path.
pub(crate) struct Transmit {
    port: Rc<Wire>,
    engine: SendEngine,
    /// Places for handlers' messages that the card has taken and not sent yet.
    staging: Credits,
    answers: Answers,
    /// Numbers messages and commands.
    messages: MessageNumbers,
}

impl Transmit {
    pub(crate) fn new(sim: &Sim, spec: &SpinSpec, port: Rc<Wire>) -> Transmit {
        Transmit {
            port,
            engine: SendEngine::new(Pool::new(sim, 1), spec.send_gap),
            staging: Credits::new(sim, spec.send_queue),
            answers: Answers::new(sim),
            messages: MessageNumbers::default(),
        }
    }

    /// Requests that the data that every packet uses is [kept near](Sim::keep_near).
    pub(crate) fn keep_near(&self, sim: &Sim) {
        sim.keep_near(&self.engine);
        self.port.keep_near();
    }

    /// Returns the link.
    pub(crate) fn link(&self) -> &Wire {
        &self.port
    }

    /// Returns the total time for which messages have occupied the engine. Each message occupies it for the gap or for
    /// the message's time on the link, whichever is longer.
    pub(crate) const fn engine_busy(&self) -> Duration {
        self.engine.busy.get()
    }

    /// Takes a place of the send queue for a message of a handler.
    pub(crate) fn place(&self) -> impl Future<Output = Permit> {
        self.staging.acquire(1)
    }

    /// Records a change in the number of operations without an answer.
    pub(crate) fn count_unanswered(&self, before: u32, after: u32) {
        self.answers.count(before, after);
    }
}

/// The source of a message's bytes.
pub(crate) enum Bytes {
    /// Host memory, streamed over the bus.
    Host { memory: HostPart, transfer: Transfer },
    /// Memory of the card. The bytes are available at the end of the path.
    Card { payload: Payload, path: Path },
}

/// The part of host memory that a message reads.
#[derive(Clone, Copy)]
pub(crate) struct HostPart {
    /// Address of the first byte.
    pub(crate) start: u64,
    /// Length in bytes.
    pub(crate) length: u64,
    /// The operand of a conditional or masked swap. It precedes the bytes, and the command carries it.
    pub(crate) operand: Operand,
}

impl HostPart {
    /// Returns the memory that an operation of the Portals interface reads.
    pub(crate) const fn of(out: &Outgoing) -> HostPart {
        let sends = out.header.payload_bytes() > 0;
        HostPart { start: out.start, length: if sends { out.header.length } else { 0 }, operand: out.operand }
    }

    /// Returns memory without an operand.
    pub(crate) const fn at(start: u64, length: u64) -> HostPart {
        HostPart { start, length, operand: Operand::NONE }
    }
}

impl Bytes {
    async fn packet(&self, offset: u64) -> Flight {
        match self {
            // The command carries a swap's operand, so the fetch may be shorter than the message.
            Bytes::Host { memory, transfer } if !memory.operand.as_slice().is_empty() => {
                transfer.packet(0).await
            }
            Bytes::Host { transfer, .. } => transfer.packet(offset).await,
            Bytes::Card { path, .. } => Flight::resting(path.clone()),
        }
    }
}

/// A message in the transmit path.
pub(crate) struct Leaving {
    pub(crate) message: MessageId,
    pub(crate) header: Header,
    pub(crate) bytes: Bytes,
    /// The report to make when the message has been sent.
    pub(crate) report: Option<Report>,
    /// The message's place in the send queue of handlers.
    pub(crate) place: Option<Permit>,
}

/// The report to make when the last byte of a message has been handed to the link.
#[derive(Clone, Copy)]
pub(crate) enum Report {
    /// An operation of the Portals interface has been sent.
    Sent(OperationHandle),
    /// Increment this counter by a success.
    Count(CtHandle),
    /// The reply to an arrived message with this index has been sent.
    Replied(usize),
}

impl Card {
    /// Returns a number for the next message or command of this node.
    pub(crate) fn next_message(&self) -> MessageId {
        self.transmit.messages.next(self.node)
    }

    /// Starts a message's record. `base` is the sender's path before the post.
    pub(crate) fn record_sent(&self, message: MessageId, header: &Header, by: Starter, base: &Path) {
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

    /// Starts an operation of the Portals interface that the card itself initiates.
    pub(crate) fn start(self: &Rc<Card>, out: &Outgoing, path: Path, by: Starter) {
        let report = Some(Report::Sent(out.operation));
        if out.header.kind == HeaderKind::Get {
            return self.send_from_card(out.header, Payload::empty(), report, None, path, by);
        }
        let memory = HostPart::of(out);
        self.sim.spawn(self.clone().fetch_and_send(out.header, memory, report, None, path, by));
    }

    /// Redelivers an unexpected message to this card. Its bytes are in the memory of the overflow entry.
    pub(crate) fn redeliver(self: &Rc<Card>, header: Header, start: u64, path: Path) {
        if header.length == 0 {
            return self.send_from_card(header, Payload::empty(), None, None, path, Starter::Card);
        }
        let memory = HostPart::at(start, header.length);
        self.sim.spawn(self.clone().fetch_and_send(header, memory, None, None, path, Starter::Card));
    }

    /// Sends bytes that are already on the card.
    pub(crate) fn send_from_card(
        self: &Rc<Card>,
        header: Header,
        payload: Payload,
        report: Option<Report>,
        place: Option<Permit>,
        path: Path,
        by: Starter,
    ) {
        let message = self.next_message();
        self.record_sent(message, &header, by, &path);
        let leaving = Leaving { message, header, bytes: Bytes::Card { payload, path }, report, place };
        self.sim.spawn(self.clone().send(leaving));
    }

    /// Fetches a message from host memory and sends it: a triggered operation, a reply, or a handler's put from host
    /// memory.
    pub(crate) async fn fetch_and_send(
        self: Rc<Card>,
        header: Header,
        memory: HostPart,
        report: Option<Report>,
        place: Option<Permit>,
        path: Path,
        by: Starter,
    ) {
        let message = self.next_message();
        self.record_sent(message, &header, by, &path);
        let HostPart { start, length, operand } = memory;
        // A swap is fetched in one piece, for any number of packets.
        let packet_bytes = if operand.as_slice().is_empty() { self.spec.packet_payload } else { length };
        let transfer = self.dma.bus().read(message, start, length, packet_bytes, path.clone()).await;
        let last = length.saturating_sub(1) / packet_bytes.max(1) * packet_bytes;
        if self.recorder.keeps(Level::Everything) {
            let (recorder, transfer) = (self.recorder.clone(), transfer.clone());
            self.sim.spawn(async move {
                let tail = transfer.packet(last).await.tail;
                recorder.slice(Resource::DMA, path.at(), tail, Some(message), "fetch");
            });
        }
        let bytes = Bytes::Host { memory, transfer };
        self.send(Leaving { message, header, bytes, report, place }).await;
    }

    /// Sends a message. Waits for its turn at the engine, then launches its packets on the link.
    pub(crate) async fn send(self: Rc<Card>, leaving: Leaving) {
        let Leaving { message, header, mut bytes, report, place } = leaving;
        let Transmit { port, engine, .. } = &self.transmit;
        let total = header.payload_bytes();
        let mut flight = bytes.packet(0).await;
        self.sim.until(flight.head).await;
        let turn = engine.turn.acquire().await;
        self.sim.until(engine.free().max(port.free(header.target)).max(flight.head)).await;
        if self.sim.now() > flight.head {
            flight.path.advance(Stage::SEND_QUEUED, self.sim.now());
            flight.head = self.sim.now();
            flight.tail = flight.tail.max(flight.head);
        }

        let at_once = if place.is_none() && self.is_unseen(&bytes) { AT_ONCE } else { 1 };
        let (mut offset, mut packets) = (0, 0);
        let mut on_link = Duration::ZERO;
        let handed = loop {
            let length = self.spec.packet_payload.min(total - offset);
            let behind = at_once > 1 && packets > 0;
            let ready = match behind.then(|| port.turn_behind(header.target, &flight)).flatten() {
                Some(ready) => {
                    if packets % at_once == 0 {
                        self.sim.until(port.free(header.target).max(flight.head)).await;
                    }
                    ready
                }
                None => {
                    if behind {
                        self.sim.until(port.begun()).await;
                    }
                    port.turn(header.target, flight).await
                }
            };
            packets += 1;
            if offset == 0 {
                engine.last_start.set(Some(self.sim.now()));
            }
            let handed = port.launch(self.packet(message, &header, &mut bytes, offset, length), ready);
            on_link += port.serialisation(length);
            offset += length;
            if offset >= total {
                break handed;
            }
            flight = bytes.packet(offset).await;
        };
        engine.last_packet.set(self.sim.now().max(port.begun()));
        engine.busy.set(engine.busy.get() + on_link.max(engine.gap));
        drop((turn, place));
        if let Some(report) = report {
            let (handed, outcome) = port.delivered(handed).await;
            self.report(report, message, handed, outcome);
        }
    }

    /// Returns the packet of a message from `offset` on.
    fn packet(
        &self,
        message: MessageId,
        header: &Header,
        bytes: &mut Bytes,
        offset: u64,
        length: u64,
    ) -> PacketBox {
        let payload = match bytes {
            Bytes::Host { memory, .. } => self.read_part(memory, offset, length),
            Bytes::Card { payload, .. } if length == header.payload_bytes() => std::mem::take(payload),
            Bytes::Card { payload, .. } => payload.part(offset, length),
        };
        PacketBox::new(Packet {
            label: Label { destination: header.target, message, offset },
            channel: Channel::Data(0),
            header: Repr::part(header, message.sequence, offset).emit(),
            payload,
            path: Path::from(Time::ZERO),
        })
    }

    /// Reports that a message has been handed to the link at the end of `handed`.
    fn report(self: &Rc<Card>, report: Report, message: MessageId, handed: Path, outcome: FailType) {
        match report {
            Report::Replied(place) => {
                if !outcome.is_ok() {
                    let mut table = self.incoming.borrow_mut();
                    table.get(place).fail = table.get(place).fail.or(outcome);
                }
                self.finish(place, &handed);
            }
            Report::Sent(operation) => {
                self.with_effects_of(Some(message), handed, |interface, effects| {
                    interface
                        .sent(operation, outcome, effects)
                        .expect("the operation was given to this card to send");
                });
            }
            Report::Count(ct) => {
                let by = if outcome.is_ok() { CtEvent::success(1) } else { CtEvent::failure(1) };
                self.with_effects_of(Some(message), handed, |interface, effects| {
                    // The host may have unlinked the entry and freed its counter in the meantime. Then no counter is
                    // incremented.
                    let _ = interface.ct_inc(ct, by, effects);
                });
            }
        }
    }

    /// Returns whether an early launch of packets with these bytes is unobservable: the bytes cannot change, and the
    /// start of packets is not recorded.
    fn is_unseen(&self, bytes: &Bytes) -> bool {
        let fixed = match bytes {
            Bytes::Host { memory, .. } => {
                memory.operand.as_slice().is_empty() && self.dma.is_phantom(memory.start, memory.length)
            }
            Bytes::Card { .. } => true,
        };
        fixed && !self.recorder.keeps(Level::Packets)
    }

    /// Returns the bytes of a packet from the message's host memory.
    fn read_part(&self, memory: &HostPart, offset: u64, length: u64) -> Payload {
        let operand = memory.operand.as_slice();
        if operand.is_empty() {
            return self.dma.bytes(memory.start + offset, length);
        }
        let mut whole = Payload::copy_of(operand);
        let item = self.dma.bytes(memory.start, memory.length);
        item.segments().cloned().for_each(|segment: Segment| whole.push(segment));
        whole.part(offset, length)
    }
}
