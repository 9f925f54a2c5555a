//! The card's Ethernet port as processes use it. Processes send frames from the card's memories, and receive frames
//! into these memories.
//!
//! A send ends when the port has the frame. The port buffers a few frames. A received frame waits in the packet buffer
//! until a process takes it. A frame leaves its sender only when the receiving card has room for the frame. Until then
//! the sender waits, as with pause frames, so no frame is lost.
//!
//! # Demultiplexing
//! A port has queues, each with its own MAC address, as network cards have for virtual machines. The second byte of a
//! frame's destination is the number of its queue. A frame goes to the process that waits longest for a frame of this
//! queue. If no process waits, the frame waits in the queue if the queue is open. If no process has opened the queue,
//! the frame is dropped and counted, so that it occupies no buffer. The last queue carries messages between hosts;
//! [`Messenger`](crate::Messenger) opens it.
//!
//! # Validation
//! Frames with a wrong checksum, address or length are dropped and counted.

use crate::card::{Card, waited};
use crate::processor::number::{
    ETH_MOVE, ETH_OPEN, ETH_RECEIVE, ETH_RECEIVE_FROM, ETH_SEND, ETH_SEND_TO, ETH_TYPE, NODE,
};
use crate::processor::{Place, Reference, Served};
use crate::spec::PortSpec;
use crate::stages;
use crate::wire::{self, Address};
use nicety_channels::{ContextId, PAYLOAD_BYTES};
use nicety_fabric::{Channel, Label, Packet, Port};
use nicety_hpu::TrapKind;
use nicety_kernel::{Credits, Server, Sim};
use nicety_nic_core::parts::Matching;
use nicety_types::{Buffer, Flight, NodeId, Path, Payload, Stage};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Result codes of a call. They are equal to those in `nfp.h`.
mod code {
    pub(super) const NO_PEER: i32 = -1;
    pub(super) const TOO_LARGE: i32 = -2;
    pub(super) const BAD_ADDRESS: i32 = -3;
    pub(super) const NO_FRAME: i32 = -4;
    pub(super) const BAD_QUEUE: i32 = -5;
}

/// Maximum number of bytes of a frame that are copied from or to local memory.
pub(crate) const HEAD: u32 = 64;
/// The source reported for a frame from an address without a rank. It is equal to that in `nfp.h`.
const STRANGER: NodeId = NodeId(u32::MAX);
/// Maximum number of envelopes with a recorded path.
const ENVELOPES: usize = 64;
/// The queue of messages between hosts.
pub const MESSAGE_QUEUE: u8 = u8::MAX;

/// Counters of the port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PortCounters {
    /// Frames sent by processes, including those that forward messages between hosts.
    #[serde(rename = "frames_sent")]
    pub sent: u64,
    /// Frames that processes took.
    #[serde(rename = "frames_received")]
    pub received: u64,
    /// Damaged or misaddressed frames, which were dropped.
    #[serde(rename = "frames_damaged")]
    pub damaged: u64,
    /// Frames for queues that no process had opened, which were dropped.
    #[serde(rename = "frames_unclaimed")]
    pub unclaimed: u64,
    /// Frames waiting for a process.
    #[serde(rename = "frames_waiting")]
    pub waiting: u64,
}

/// Counters of a queue of the port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "QueueReport")]
pub struct QueueCounters {
    /// Its number; 255 is the queue of messages between hosts.
    pub queue: u8,
    /// Frames that processes took.
    #[serde(rename = "frames_received")]
    pub received: u64,
    /// Frames dropped because they arrived before a process opened the queue.
    #[serde(rename = "frames_unclaimed")]
    pub unclaimed: u64,
    /// Frames waiting for a process.
    #[serde(rename = "frames_waiting")]
    pub waiting: u64,
}

/// A received frame.
struct Frame {
    source: NodeId,
    /// The EtherType, or zero for a frame with a length field.
    kind: u16,
    payload: Payload,
    path: Path,
}

/// The first bytes of a frame to be sent, from local memory.
struct Head {
    bytes: [u8; HEAD as usize],
    len: usize,
}

/// A process that waits for a frame.
#[derive(Clone, Copy)]
struct Receiver {
    place: Place,
    context: ContextId,
    queue: u8,
    head: u32,
    len: u32,
    source: u32,
}

/// A queue of the port.
#[derive(Default)]
struct Queue {
    open: bool,
    /// Waiting processes, and received frames that no process has taken. The link's credits limit the number of frames.
    matching: Matching<Receiver, Frame>,
    received: u64,
    unclaimed: u64,
}

/// The port and its buffers.
pub(super) struct Ethernet {
    port: Option<Port>,
    nodes: u32,
    /// Maps the number of each queue in use to the queue.
    queues: RefCell<BTreeMap<u8, Queue>>,
    /// The microengine that may take frames of messages between hosts.
    forwards: Cell<Option<usize>>,
    /// Starts the messenger's processes at its first frame.
    starter: RefCell<Option<Rc<dyn Fn()>>>,
    /// The latest envelopes of messages between hosts, with their sources and their paths up to the port. The
    /// forwarding processes copy only an envelope's bytes, so its path would be lost.
    envelopes: RefCell<VecDeque<(Buffer, NodeId, Path)>>,
    /// Maps each context to the frame that its process holds.
    held: RefCell<BTreeMap<u16, Frame>>,
    /// Free slots of the transmit queue.
    room: Credits,
    turn: Server,
    counters: Cell<PortCounters>,
}

impl Ethernet {
    pub(super) fn new(sim: &Sim, port: Option<Port>, nodes: u32, spec: &PortSpec) -> Ethernet {
        Ethernet {
            port,
            nodes,
            queues: RefCell::new(BTreeMap::from([(0, Queue { open: true, ..Queue::default() })])),
            forwards: Cell::default(),
            starter: RefCell::default(),
            envelopes: RefCell::default(),
            held: RefCell::default(),
            room: Credits::new(sim, spec.queue),
            turn: Server::new(sim),
            counters: Cell::default(),
        }
    }

    fn count(&self, change: impl FnOnce(&mut PortCounters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }

    fn queue<R>(&self, number: u8, act: impl FnOnce(&mut Queue) -> R) -> R {
        act(self.queues.borrow_mut().entry(number).or_default())
    }
}

/// A parsed frame.
struct Found {
    /// The frame's queue.
    queue: u8,
    source: NodeId,
    /// The EtherType, or zero for a frame with a length field.
    kind: u16,
    /// Length of the frame's payload without padding, in bytes.
    len: u64,
}

impl Found {
    /// Parses a frame. `None` if the frame is damaged or misaddressed. A frame to the queue of messages between hosts
    /// must come from a rank.
    fn parse(packet: &Packet, own: NodeId, nodes: u32) -> Option<Found> {
        let payload = &packet.payload;
        let frame = wire::Frame::parse(packet.header.as_slice(), payload)?;
        let len = frame.unpadded(payload.len())?;
        let (to, queue) = frame.destination.queue()?;
        let peer = |&(node, _): &(NodeId, u8)| node.0 < nodes && node != own;
        let source = match frame.source.queue().filter(peer) {
            Some((node, 0)) => node,
            _ => STRANGER,
        };
        let may = queue != MESSAGE_QUEUE || source != STRANGER;
        let good = to == own && may;
        let kind = frame.ether_type().unwrap_or(0);
        good.then_some(Found { queue, source, kind, len })
    }
}

impl Card {
    /// Counters of the port.
    pub fn port_counters(&self) -> PortCounters {
        let queues = self.ethernet.queues.borrow();
        let unclaimed = queues.values().map(|queue| queue.unclaimed).sum();
        let waiting = queues.values().map(|queue| queue.matching.messages().len() as u64).sum();
        PortCounters { unclaimed, waiting, ..self.ethernet.counters.get() }
    }

    /// Counters of the queues with traffic.
    pub fn queue_counters(&self) -> Vec<QueueCounters> {
        let queues = self.ethernet.queues.borrow();
        let of = |(&number, queue): (&u8, &Queue)| QueueCounters {
            queue: number,
            received: queue.received,
            unclaimed: queue.unclaimed,
            waiting: queue.matching.messages().len() as u64,
        };
        queues.iter().map(of).filter(|q| q.received + q.unclaimed + q.waiting > 0).collect()
    }

    /// Opens a queue. From now on, frames for this queue wait for a process.
    pub fn open_queue(&self, queue: u8) {
        self.ethernet.queue(queue, |queue| queue.open = true);
    }

    /// Opens the queue of messages between hosts. Only processes of this microengine may take frames from this queue.
    pub(crate) fn forward_to(&self, core: usize) {
        self.ethernet.forwards.set(Some(core));
        self.open_queue(MESSAGE_QUEUE);
    }

    /// Sets the function that is called at the first frame of messages between hosts.
    pub(crate) fn on_message(&self, start: impl Fn() + 'static) {
        self.ethernet.starter.replace(Some(Rc::new(start)));
    }

    /// Serves a process's call to the port. `None` if the call is not for the port.
    pub(super) fn serve_port(
        self: &Rc<Card>,
        place: Place,
        registers: &[u32; 8],
    ) -> Option<Result<Served, TrapKind>> {
        let &[a, b, c, d, e, f, _, number] = registers;
        let queue = match number {
            ETH_SEND_TO => f,
            ETH_RECEIVE_FROM => d,
            ETH_OPEN => a,
            _ => 0,
        };
        let Ok(queue) = u8::try_from(queue) else { return Some(Ok(Served::Now(code::BAD_QUEUE as u32))) };
        Some(match number {
            ETH_SEND | ETH_SEND_TO => self.send_frame(place, (a, queue), (b, c), (d, e)),
            ETH_RECEIVE | ETH_RECEIVE_FROM => self.receive_frame(place, queue, a, b, c),
            ETH_OPEN => Ok(self.open_frames(place, queue)),
            ETH_MOVE => Ok(self.move_frame(place, a, b, c)),
            ETH_TYPE => {
                let held = self.ethernet.held.borrow();
                let kind = held.get(&self.id(place).0).map_or(0, |frame| frame.kind);
                Ok(Served::Now(u32::from(kind)))
            }
            NODE => Ok(Served::Now(if a == 0 { self.sim.node().0 } else { self.ethernet.nodes })),
            _ => return None,
        })
    }

    /// Whether a process may take frames of a queue.
    fn may_take(&self, place: Place, queue: u8) -> bool {
        queue != MESSAGE_QUEUE || self.ethernet.forwards.get() == Some(place.core)
    }

    fn open_frames(&self, place: Place, queue: u8) -> Served {
        if !self.may_take(place, queue) {
            return Served::Now(code::BAD_QUEUE as u32);
        }
        self.open_queue(queue);
        Served::Now(0)
    }

    /// Sends a frame: `head_len` bytes at `head` in local memory, then `body_len` bytes at `body` in CTM, IMEM or EMEM.
    fn send_frame(
        self: &Rc<Card>,
        place: Place,
        (to, queue): (u32, u8),
        (head, head_len): (u32, u32),
        (body, body_len): (u32, u32),
    ) -> Result<Served, TrapKind> {
        let refuse = |code: i32| Ok(Served::Now(code as u32));
        if to >= self.ethernet.nodes || to == self.sim.node().0 || self.ethernet.port.is_none() {
            return refuse(code::NO_PEER);
        }
        let len = u64::from(head_len) + u64::from(body_len);
        if head_len > HEAD || len == 0 || len > self.spec.port.payload {
            return refuse(code::TOO_LARGE);
        }
        let address = match body_len {
            0 => None,
            _ => match self.address(place, body, 0, body_len) {
                None => return refuse(code::BAD_ADDRESS),
                some => some,
            },
        };
        let mut first = Head { bytes: [0; HEAD as usize], len: head_len as usize };
        self.nfp.read_local(place, head, &mut first.bytes[..first.len])?;
        let context = self.called(place, &[], None);
        let body = address.map(|address| (address, u64::from(body_len)));
        self.sim.spawn(self.clone().leave(place, context, (NodeId(to), queue), first, body));
        Ok(Served::Later)
    }

    /// The transmit path of a frame, from a process to the link.
    async fn leave(
        self: Rc<Card>,
        place: Place,
        context: ContextId,
        (to, queue): (NodeId, u8),
        head: Head,
        body: Option<(u64, u64)>,
    ) {
        let (port, spec) = (self.ethernet.port.as_ref().expect("checked at the call"), &self.spec.port);
        let mut path = self.context(context, |call| call.path.clone());
        let room = self.ethernet.room.acquire(1).await;
        waited(&mut path, Stage::SEND_QUEUED, &self.sim);
        self.sim.delay(self.spec.clock.cycles(spec.send)).await;
        waited(&mut path, stages::PROCESS, &self.sim);
        let body_len = body.map_or(0, |(_, len)| len);
        let len = head.len as u64 + body_len;
        let payload = Payload::real(Buffer::filled_by(len.max(spec.least) as usize, |into| {
            let (first, rest) = into.split_at_mut(head.len);
            first.copy_from_slice(&head.bytes[..head.len]);
            let (second, fill) = rest.split_at_mut(body_len as usize);
            if let Some((address, _)) = body {
                let (memory, offset) = self.card_memory(address);
                memory.peek(offset, second).expect("checked at the call");
            }
            fill.fill(0);
        }));
        if let Some((address, _)) = body {
            let (memory, _) = self.card_memory(address);
            let fetched = memory.claim(Reference::Read, self.nfp.cycle(), body_len);
            self.sim.until(self.nfp.time(fetched)).await;
            waited(&mut path, stages::CARD_MEMORY, &self.sim);
        }
        // The port has the frame, so the process continues.
        self.context(context, |call| call.path = path.clone());
        let turn = self.ethernet.turn.acquire().await;
        self.end_port_call(place, context, 0);
        let start = port.turn(Flight::resting(path.clone())).await;
        let (destination, source) = (Address::of(to, queue), Address::of(self.sim.node(), 0));
        let header = wire::Frame { destination, source, last: len as u16 }.emit(&payload);
        let label = Label { destination: to, message: self.next_message(), offset: 0 };
        let packet = Packet { label, channel: Channel::Data(0), header, payload, path };
        self.ethernet.count(|counters| counters.sent += 1);
        let handed = port.launch(packet, start);
        drop(turn);
        self.sim.until(handed.at()).await;
        drop(room);
    }

    /// The receive path: takes frames from the link. It never returns.
    pub(super) async fn listen(self: Rc<Card>) {
        let port = self.ethernet.port.as_ref().expect("only a card with a port listens");
        let most = self.spec.port.payload.max(self.spec.port.least);
        loop {
            let packet = port.receive().await;
            let found = Found::parse(&packet, self.sim.node(), self.ethernet.nodes);
            let found = found.filter(|_| !packet.is_control() && packet.payload.len() <= most);
            let Some(Found { queue, source, kind, len }) = found else {
                self.ethernet.count(|counters| counters.damaged += 1);
                if !packet.is_control() {
                    port.free_slot();
                }
                continue;
            };
            if !self.takes(queue) {
                self.ethernet.queue(queue, |queue| queue.unclaimed += 1);
                port.free_slot();
                continue;
            }
            let Packet { payload, path, .. } = packet.open();
            if queue == MESSAGE_QUEUE && len == PAYLOAD_BYTES as u64 {
                self.note_envelope(&payload, source, path.clone());
            }
            let payload = if len < payload.len() { payload.part(0, len) } else { payload };
            let frame = Frame { source, kind, payload, path };
            match self.ethernet.queue(queue, |queue| queue.matching.take_receive(|_| true)).0 {
                Some(receiver) => self.sim.spawn(self.clone().give(receiver, frame)),
                None => self.ethernet.queue(queue, |queue| queue.matching.keep(frame)),
            }
        }
    }

    /// Records the path of an envelope.
    fn note_envelope(&self, payload: &Payload, source: NodeId, path: Path) {
        let mut envelopes = self.ethernet.envelopes.borrow_mut();
        if envelopes.len() == ENVELOPES {
            envelopes.pop_front();
        }
        // The first word is not recorded, because it changes: on the link it is the destination rank, and after the
        // card's processes the source rank.
        if let Ok(bytes) = payload.part(4, PAYLOAD_BYTES as u64 - 4).into_buffer() {
            envelopes.push_back((bytes, source, path));
        }
    }

    /// Removes and returns the recorded path of an envelope up to the card's port. `None` if the path is no longer
    /// recorded.
    pub(crate) fn envelope_path(&self, envelope: &[u8]) -> Option<Path> {
        let (rank, rest) = envelope.split_first_chunk::<4>()?;
        let from = NodeId(u32::from_le_bytes(*rank));
        let mut envelopes = self.ethernet.envelopes.borrow_mut();
        let at = envelopes.iter().position(|(bytes, source, _)| *source == from && bytes[..] == *rest)?;
        envelopes.remove(at).map(|(_, _, path)| path)
    }

    /// Whether a queue is open, so that its frames wait for a process. The first frame of messages between hosts starts
    /// the forwarding processes, which open the queue.
    fn takes(&self, queue: u8) -> bool {
        let open = || self.ethernet.queue(queue, |queue| queue.open);
        let starter = self.ethernet.starter.borrow().clone().filter(|_| queue == MESSAGE_QUEUE && !open());
        if let Some(start) = starter {
            start();
        }
        open()
    }

    fn receive_frame(
        self: &Rc<Card>,
        place: Place,
        queue: u8,
        head: u32,
        len: u32,
        source: u32,
    ) -> Result<Served, TrapKind> {
        if !self.may_take(place, queue) {
            return Ok(Served::Now(code::BAD_QUEUE as u32));
        }
        if len > HEAD {
            return Ok(Served::Now(code::TOO_LARGE as u32));
        }
        self.nfp.check_local(place, head, len)?;
        self.nfp.check_local(place, source, 4)?;
        let context = self.called(place, &[], None);
        self.let_go(context);
        let receiver = Receiver { place, context, queue, head, len, source };
        let frame = self.ethernet.queue(queue, |queue| {
            queue.open = true;
            queue.matching.take_message(|_| true)
        });
        match frame.0 {
            Some(frame) => self.sim.spawn(self.clone().give(receiver, frame)),
            None => self.ethernet.queue(queue, |queue| queue.matching.post(receiver)),
        }
        Ok(Served::Later)
    }

    /// Gives a frame to a process, and copies the frame's first bytes to local memory.
    async fn give(self: Rc<Card>, receiver: Receiver, frame: Frame) {
        let Receiver { place, context, queue, head, len, source } = receiver;
        // A frame that arrived before the process's call has waited for the call.
        let mut path = frame.path.clone();
        path.advance(stages::RECEIVER, self.context(context, |call| call.called));
        self.context(context, |call| call.path = path);
        self.sim.delay(self.spec.clock.cycles(self.spec.port.receive)).await;
        self.context(context, |call| waited(&mut call.path, stages::PROCESS, &self.sim));
        let first = frame.payload.part(0, u64::from(len)).into_buffer().expect("frames have real bytes");
        self.nfp.write_local(place, head, &first).expect("checked at the call");
        self.nfp.write_local(place, source, &frame.source.0.to_le_bytes()).expect("checked at the call");
        let bytes = frame.payload.len() as u32;
        self.ethernet.count(|counters| counters.received += 1);
        self.ethernet.queue(queue, |queue| queue.received += 1);
        self.ethernet.held.borrow_mut().insert(context.0, frame);
        self.end_port_call(place, context, bytes);
    }

    /// Drops the frame that a process holds. Returns whether the process held a frame.
    pub(super) fn let_go(&self, context: ContextId) -> bool {
        let had = self.ethernet.held.borrow_mut().remove(&context.0).is_some();
        if had {
            self.ethernet.port.as_ref().expect("frames come through a port").free_slot();
        }
        had
    }

    /// Copies a part of the frame that a process holds to a memory.
    fn move_frame(self: &Rc<Card>, place: Place, to: u32, from: u32, bytes: u32) -> Served {
        let refuse = |code: i32| Served::Now(code as u32);
        let context = self.id(place);
        if bytes == 0 {
            let had = self.let_go(context);
            return refuse(if had { 0 } else { code::NO_FRAME });
        }
        let Some(len) = self.ethernet.held.borrow().get(&context.0).map(|frame| frame.payload.len()) else {
            return refuse(code::NO_FRAME);
        };
        if u64::from(from) + u64::from(bytes) > len {
            return refuse(code::TOO_LARGE);
        }
        let Some(address) = self.address(place, to, 0, bytes) else { return refuse(code::BAD_ADDRESS) };
        self.called(place, &[], None);
        let card = self.clone();
        self.sim.spawn(async move {
            let (memory, offset) = card.card_memory(address);
            let stored = memory.claim(Reference::Write, card.nfp.cycle(), u64::from(bytes));
            card.sim.until(card.nfp.time(stored)).await;
            let part = match card.ethernet.held.borrow().get(&context.0) {
                Some(frame) => frame.payload.part(u64::from(from), u64::from(bytes)),
                None => unreachable!("a process keeps its frame while it sleeps"),
            };
            let part = part.into_buffer().expect("frames have real bytes");
            memory.poke(offset, &part).expect("checked at the call");
            card.context(context, |call| waited(&mut call.path, stages::CARD_MEMORY, &card.sim));
            card.end_port_call(place, context, 0);
        });
        Served::Later
    }

    fn end_port_call(&self, place: Place, context: ContextId, result: u32) {
        let at = self.nfp.resumes_at();
        self.context(context, |call| call.path.advance(stages::PROCESS, at));
        self.nfp.resume(place, result);
    }
}
