//! The card's Ethernet port, as processes see it: frames out of the card's memories and into them.
//!
//! A process that sends is done when the port has the frame, of which it holds a few; what has come waits in the packet
//! buffer until a process has taken it. A frame leaves only when the other end has room for it: as with pause frames,
//! nothing is lost, and whoever sends waits.

use super::super::intrinsics::{ETH_MOVE, ETH_RECEIVE, ETH_SEND, ETH_TYPE, NODE};
use super::super::memory::Reference;
use super::super::service::{Place, Served};
use super::{Card, waited};
use nicety_channels::ContextId;
use nicety_fabric::{Channel, HeaderBytes, Packet, Port};
use nicety_hpu::TrapKind;
use nicety_kernel::{Credits, Server, Sim};
use nicety_types::{Buffer, Flight, NodeId, Path, Payload, Segment, Stage};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// What a call gives back to the process; `nfp.h` has the same numbers.
mod code {
    pub(super) const NO_PEER: i32 = -1;
    pub(super) const TOO_LARGE: i32 = -2;
    pub(super) const BAD_ADDRESS: i32 = -3;
    pub(super) const NO_FRAME: i32 = -4;
}

/// Destination, source, and length or EtherType of a frame (IEEE 802.3). Its checksum is sent behind the payload, and kept
/// here.
pub(crate) const HEADER: usize = 14;
/// From here on the last of them is an EtherType, and no length.
const LEAST_TYPE: u16 = 0x600;
/// Most bytes that come from or go to local memory.
pub(crate) const HEAD: u32 = 64;

/// The port's part of a spec.
#[derive(Clone, Copy, Debug)]
pub struct PortSpec {
    /// Most payload of a frame, in bytes.
    pub payload: u64,
    /// The payload that shorter ones are filled up to, in bytes.
    pub least: u64,
    /// Frames that wait to be sent.
    pub queue: u64,
    /// Cycles to have a frame sent.
    pub send: u64,
    /// Cycles to give a process a frame that has come.
    pub receive: u64,
}

/// What the port has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames that processes sent.
    pub sent: u64,
    /// Frames that processes took.
    pub received: u64,
    /// Frames that came damaged, and were dropped.
    pub damaged: u64,
}

/// A frame that has come.
struct Frame {
    source: NodeId,
    /// Zero where it has a length instead.
    kind: u16,
    payload: Payload,
    path: Path,
}

/// The first bytes of a frame, out of local memory.
struct Head {
    bytes: [u8; HEAD as usize],
    len: usize,
}

/// A process that waits for one.
#[derive(Clone, Copy)]
struct Receiver {
    place: Place,
    context: ContextId,
    head: u32,
    len: u32,
    source: u32,
}

/// The port, and what is in its buffers.
pub(super) struct Ethernet {
    port: Option<Port>,
    nodes: u32,
    /// Frames that have come and that nobody has taken; the link's credits bound them.
    come: RefCell<VecDeque<Frame>>,
    receivers: RefCell<VecDeque<Receiver>>,
    /// The frame that each process has.
    held: RefCell<BTreeMap<u16, Frame>>,
    /// Room for frames that wait to be sent, and whose turn it is.
    room: Credits,
    turn: Server,
    counters: Cell<PortCounters>,
}

impl Ethernet {
    pub(super) fn new(sim: &Sim, port: Option<Port>, nodes: u32, spec: &PortSpec) -> Ethernet {
        Ethernet {
            port,
            nodes,
            come: RefCell::default(),
            receivers: RefCell::default(),
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
}

/// The address of a rank: locally administered, its number at the end.
pub(crate) fn station(node: NodeId) -> [u8; 6] {
    let [a, b, c, d] = node.0.to_be_bytes();
    [2, 0, a, b, c, d]
}

/// Header and checksum of a frame whose last two bytes of header are `last`: how many bytes it had before it was filled up,
/// or an EtherType.
pub(crate) fn header(source: [u8; 6], destination: NodeId, last: u16, payload: &Payload) -> HeaderBytes {
    let mut bytes = [0; HEADER];
    bytes[..6].copy_from_slice(&station(destination));
    bytes[6..12].copy_from_slice(&source);
    bytes[12..].copy_from_slice(&last.to_be_bytes());
    let sum = checksum(&bytes, payload);
    HeaderBytes::new(&bytes).followed_by(&sum.to_le_bytes())
}

fn checksum(header: &[u8], payload: &Payload) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(header);
    for segment in payload.segments() {
        if let Segment::Real(bytes) = segment {
            crc.update(bytes);
        }
    }
    crc.finalize()
}

impl Card {
    /// What the port has done.
    pub fn port_counters(&self) -> PortCounters {
        self.ethernet.counters.get()
    }

    /// A call of a process that is the port's; none where it is not.
    pub(super) fn serve_port(
        self: &Rc<Card>,
        place: Place,
        registers: &[u32; 8],
    ) -> Option<Result<Served, TrapKind>> {
        let &[a, b, c, d, e, .., number] = registers;
        Some(match number {
            ETH_SEND => self.send_frame(place, a, (b, c), (d, e)),
            ETH_RECEIVE => self.receive_frame(place, a, b, c),
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

    /// Sends `head` bytes of local memory and behind them `body` bytes of a memory in one frame.
    fn send_frame(
        self: &Rc<Card>,
        place: Place,
        to: u32,
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
        self.sim.spawn(self.clone().leave(place, context, NodeId(to), first, body));
        Ok(Served::Later)
    }

    /// A frame's way from a process to the link.
    async fn leave(
        self: Rc<Card>,
        place: Place,
        context: ContextId,
        to: NodeId,
        head: Head,
        body: Option<(u64, u64)>,
    ) {
        let (port, spec) = (self.ethernet.port.as_ref().expect("checked at the call"), &self.spec.port);
        let mut path = self.context(context, |call| call.path);
        let room = self.ethernet.room.acquire(1).await;
        waited(&mut path, Stage::SendQueued, &self.sim);
        self.sim.delay(self.spec.clock.cycles(spec.send)).await;
        waited(&mut path, Stage::Process, &self.sim);
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
            waited(&mut path, Stage::CardMemory, &self.sim);
        }
        // The port has the frame, and the process may go on.
        self.context(context, |call| call.path = path);
        let turn = self.ethernet.turn.acquire().await;
        self.end_port_call(place, context, 0);
        let start = port.turn(Flight::resting(path)).await;
        let source = self.sim.node();
        let packet = Packet {
            source,
            destination: to,
            message: self.next_message(),
            channel: Channel::Data,
            offset: 0,
            header: header(station(source), to, len as u16, &payload),
            payload,
            path,
        };
        self.ethernet.count(|counters| counters.sent += 1);
        let handed = port.launch(packet, start);
        drop(turn);
        self.sim.until(handed.at()).await;
        drop(room);
    }

    /// Takes what comes from the link, for ever.
    pub(super) async fn listen(self: Rc<Card>) {
        let port = self.ethernet.port.as_ref().expect("whoever listens has a port");
        loop {
            let Packet { source, header: found, payload, path, .. } = port.receive().await;
            let (given, sum) = found.as_slice().split_at(HEADER);
            let last = u16::from_be_bytes([given[12], given[13]]);
            // Only a length says where the payload ends that was filled up.
            let (kind, len) = if last < LEAST_TYPE { (0, u64::from(last)) } else { (last, payload.len()) };
            let intact = sum == checksum(given, &payload).to_le_bytes()
                && !payload.is_damaged()
                && given[..6] == station(self.sim.node());
            if !intact {
                self.ethernet.count(|counters| counters.damaged += 1);
                port.free_slot();
                continue;
            }
            let payload = if len < payload.len() { payload.part(0, len) } else { payload };
            self.ethernet.come.borrow_mut().push_back(Frame { source, kind, payload, path });
            self.match_frames();
        }
    }

    /// Gives frames that have come to processes that wait.
    fn match_frames(self: &Rc<Card>) {
        while !self.ethernet.come.borrow().is_empty() && !self.ethernet.receivers.borrow().is_empty() {
            let frame = self.ethernet.come.borrow_mut().pop_front().expect("just seen");
            let receiver = self.ethernet.receivers.borrow_mut().pop_front().expect("just seen");
            self.sim.spawn(self.clone().give(receiver, frame));
        }
    }

    fn receive_frame(
        self: &Rc<Card>,
        place: Place,
        head: u32,
        len: u32,
        source: u32,
    ) -> Result<Served, TrapKind> {
        if len > HEAD {
            return Ok(Served::Now(code::TOO_LARGE as u32));
        }
        self.nfp.check_local(place, head, len)?;
        self.nfp.check_local(place, source, 4)?;
        let context = self.called(place, &[], None);
        self.let_go(context);
        self.ethernet.receivers.borrow_mut().push_back(Receiver { place, context, head, len, source });
        self.match_frames();
        Ok(Served::Later)
    }

    /// A process gets a frame: its first bytes in local memory.
    async fn give(self: Rc<Card>, receiver: Receiver, frame: Frame) {
        let Receiver { place, context, head, len, source } = receiver;
        self.context(context, |call| call.path.follow(&frame.path));
        self.sim.delay(self.spec.clock.cycles(self.spec.port.receive)).await;
        self.context(context, |call| waited(&mut call.path, Stage::Process, &self.sim));
        let first = frame.payload.part(0, u64::from(len)).into_buffer().expect("frames have real bytes");
        self.nfp.write_local(place, head, &first).expect("checked at the call");
        self.nfp.write_local(place, source, &frame.source.0.to_le_bytes()).expect("checked at the call");
        let bytes = frame.payload.len() as u32;
        self.ethernet.count(|counters| counters.received += 1);
        self.ethernet.held.borrow_mut().insert(context.0, frame);
        self.end_port_call(place, context, bytes);
    }

    /// Gives a process's frame up, if it has one.
    fn let_go(&self, context: ContextId) -> Option<Frame> {
        let frame = self.ethernet.held.borrow_mut().remove(&context.0)?;
        self.ethernet.port.as_ref().expect("frames come through a port").free_slot();
        Some(frame)
    }

    /// Moves a part of the frame that a process has to a memory.
    fn move_frame(self: &Rc<Card>, place: Place, to: u32, from: u32, bytes: u32) -> Served {
        let refuse = |code: i32| Served::Now(code as u32);
        let context = self.id(place);
        if bytes == 0 {
            let had = self.let_go(context).is_some();
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
            card.context(context, |call| waited(&mut call.path, Stage::CardMemory, &card.sim));
            card.end_port_call(place, context, 0);
        });
        Served::Later
    }

    fn end_port_call(&self, place: Place, context: ContextId, result: u32) {
        let at = self.nfp.resumes_at();
        self.context(context, |call| call.path.advance(Stage::Process, at));
        self.nfp.resume(place, result);
    }
}
