//! The transmit path: fetches of descriptors from the transmit ring, reads of their pages by DMA, packets to the link.
//!
//! Replies to gets use the same engines. Pages of descriptors and of replies alternate.
//!
//! | file | contents |
//! |---|---|
//! | `posted.rs` | operations with descriptors in the ring |
//! | `ring.rs` | the transmit ring |

mod posted;
mod ring;

pub(crate) use ring::Ring;

use crate::event::{Event, EventKind};
use crate::spec::{EventsSpec, Per, Writer};
use crate::translation::{Hold, Range};
use crate::wire::{Kind, Repr};
use crate::{ApenetSpec, Card, Endpoint, Operation, stages};
use nicety_fabric::{Channel as Flow, Label, Packet};
use nicety_kernel::{Credits, Permit, Signal, Sim};
use nicety_nic_core::parts;
use nicety_nic_core::parts::{Engine, LastUse};
use nicety_types::{Flight, MessageId, Path, Payload, Recorder, Resource, Stage, Starter};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Maximum number of refusals that wait for the link. At this limit the card takes no more packets, because the card
/// may refuse each packet.
pub(crate) const REFUSALS: usize = 64;

/// A message in transmission.
pub(crate) struct Leaving {
    /// The process to notify when all bytes have been read, and the event for that process.
    pub(crate) told: Option<(u32, Event)>,
    /// Number of bytes that have not been read.
    pub(crate) left: Cell<u64>,
    /// Keeps the region that contains the bytes registered.
    pub(crate) _region: Option<Hold>,
}

/// The bytes of a descriptor, or a part of a reply: at most the bytes of one page.
pub(crate) struct Job {
    /// Header of the first packet, without its length.
    pub(crate) header: Repr,
    /// Address of the first byte.
    pub(crate) source: u64,
    /// Number of bytes.
    pub(crate) payload: u64,
    pub(crate) leaving: Rc<Leaving>,
    pub(crate) path: Path,
}

/// A get to answer.
pub(crate) struct Asked {
    pub(crate) request: Repr,
    /// The message of the reply.
    pub(crate) message: MessageId,
    /// Number of bytes given to the engines.
    pub(crate) done: u64,
    pub(crate) path: Path,
}

/// A packet between its engine and the link.
struct Outgoing {
    header: Repr,
    /// The payload. `None` until an engine has read it.
    ready: RefCell<Option<(Payload, Path)>>,
    /// The packet's slot in the transmit FIFO.
    _place: Permit,
}

/// The transmit path.
pub(crate) struct Transmit {
    pub(crate) engine: Engine,
    /// Descriptors that the card has fetched but not given to the engines.
    jobs: RefCell<VecDeque<Job>>,
    pub(crate) asked: RefCell<VecDeque<Asked>>,
    work: Signal,
    fifo: Credits,
    left: LastUse,
    /// Packets that have not left, in the order of departure.
    outgoing: RefCell<VecDeque<Rc<Outgoing>>>,
    read: Signal,
    /// Refusals that wait for the link. With [`REFUSALS`] waiting refusals, the card takes no packets.
    pub(crate) refusals: RefCell<VecDeque<(Repr, Path)>>,
    pub(crate) refused: Signal,
    /// Notified when a refusal has left.
    pub(crate) eased: Signal,
}

impl Transmit {
    pub(crate) fn new(sim: &Sim, spec: &ApenetSpec, recorder: &Recorder) -> Transmit {
        let engines = spec.dma.transmit_engines;
        Transmit {
            engine: Engine::side_by_side(sim, engines, recorder),
            jobs: RefCell::default(),
            asked: RefCell::default(),
            work: Signal::new(sim),
            fifo: Credits::new(sim, spec.dma.fifo),
            left: LastUse::default(),
            outgoing: RefCell::default(),
            read: Signal::new(sim),
            refusals: RefCell::default(),
            refused: Signal::new(sim),
            eased: Signal::new(sim),
        }
    }
}

impl Card {
    /// Fetches announced descriptors. A fetch has at most as many descriptors as the card has free slots.
    pub(crate) async fn fetch_descriptors(self: Rc<Card>) {
        let ring = &self.ring;
        loop {
            ring.rung.wait_until(|| !ring.announced.borrow().is_empty()).await;
            ring.places.acquire(1).await.forget();
            let at = ring.fetched.get() % self.spec.ring.entries;
            let most = (ring.announced.borrow().len() as u64).min(self.spec.ring.entries - at);
            let more = (most - 1).min(ring.places.available());
            if more > 0 {
                ring.places.acquire(more).await.forget();
            }
            let count = 1 + more;
            let mut jobs: Vec<Job> = ring.announced.borrow_mut().drain(..count as usize).collect();
            let (message, start) = (jobs[0].header.message(), self.sim.now());
            let (address, bytes) =
                (self.tx_ring.address() + at * self.spec.ring.descriptor, count * self.spec.ring.descriptor);
            jobs.iter_mut().for_each(|job| job.path.advance(stages::DESCRIPTOR_QUEUED, start));
            // Reads of pages of the same message that wait for this read continue its path.
            let read = self.dma.bus().read(message, address, bytes, bytes, jobs[0].path.clone()).await;
            let landed = read.packet(0).await.landed().at();
            self.sim.until(landed).await;
            self.recorder.slice(Resource::DMA, start, landed, Some(message), stages::DESCRIPTOR.name());
            jobs.iter_mut().for_each(|job| job.path.advance(stages::DESCRIPTOR, landed));
            ring.fetched.set(ring.fetched.get() + count);
            ring.free.release(count);
            self.count(|counted| {
                counted.descriptors += count;
                counted.fetches += 1;
            });
            self.transmit.jobs.borrow_mut().extend(jobs);
            self.transmit.work.notify_one();
        }
    }

    /// Adds a get that the card must answer. Returns false if the card has no room for it.
    pub(crate) fn ask(&self, request: Repr, path: Path) -> bool {
        let mut asked = self.transmit.asked.borrow_mut();
        if asked.len() as u64 == self.spec.limits.gets {
            return false;
        }
        let message = self.next_message();
        self.recorder.sent(message, request.from.node, request.bytes.into(), "reply", Starter::Card, &path);
        asked.push_back(Asked { request, message, done: 0, path });
        self.transmit.work.notify_one();
        true
    }

    /// Gives pages to the engines. Pages from descriptors and pages from replies alternate.
    pub(crate) async fn serve_transmit(self: Rc<Card>) {
        let Transmit { jobs, asked, work, .. } = &self.transmit;
        loop {
            work.wait_until(|| !jobs.borrow().is_empty() || !asked.borrow().is_empty()).await;
            let job = jobs.borrow_mut().pop_front();
            if let Some(job) = job {
                self.emit(job).await;
                self.ring.places.release(1);
            }
            // The get stays in the queue until the last page of its reply.
            let first = asked
                .borrow_mut()
                .front_mut()
                .map(|first| (first.request, first.message, first.done, first.path.clone()));
            if let Some((request, message, done, path)) = first {
                let given = self.reply(request, message, done, path).await;
                let mut asked = asked.borrow_mut();
                match (given, asked.front_mut()) {
                    (Some(bytes), Some(first)) if done + bytes < request.bytes.into() => first.done += bytes,
                    _ => drop(asked.pop_front()),
                }
            }
        }
    }

    /// Gives the next page of a reply to the engines. Returns the number of bytes in the page, or `None` if the get was
    /// refused.
    async fn reply(
        self: &Rc<Card>,
        request: Repr,
        message: MessageId,
        done: u64,
        mut path: Path,
    ) -> Option<u64> {
        path.advance(Stage::SEND_QUEUED, self.sim.now());
        let (source, left) = (request.address.saturating_add(done), u64::from(request.bytes) - done);
        let page = self.page(source);
        let bytes = left.min(page - source % page);
        let mut region = None;
        if bytes > 0 {
            let (process, message) = (request.to.process, (request.address, request.bytes.into()));
            let range = Range { process, address: source, bytes, message, physical: request.physical };
            match self.translate(range, &mut path).await {
                Ok(hold) => region = Some(hold),
                Err(why) => {
                    self.refuse(&request, (request.address, false), why, &path);
                    return None;
                }
            }
        }
        let header = Repr {
            kind: Kind::Reply,
            physical: false,
            from: request.to,
            to: request.from,
            payload: 0,
            address: 0,
            number: message.sequence,
            offset: done as u32,
            bytes: request.bytes,
            data: request.number,
            sequence: 0,
        };
        let leaving = Leaving { told: None, left: Cell::new(bytes), _region: region };
        let job = Job { header, source, payload: bytes, leaving: Rc::new(leaving), path };
        self.emit(job).await;
        Some(bytes)
    }

    /// Splits the bytes of a page into packets, and gives each packet to an engine.
    async fn emit(self: &Rc<Card>, job: Job) {
        let Job { header, source, payload, leaving, mut path } = job;
        path.advance(Stage::SEND_QUEUED, self.sim.now());
        let message = header.message();
        let mut done = 0;
        loop {
            let bytes = self.spec.packet.min(payload - done);
            let header = Repr { payload: bytes as u32, ..header.page(done) };
            let place = self.transmit.fifo.acquire(1).await;
            self.transmit.left.waited(Stage::SEND_QUEUED, message, &mut path);
            path.advance(Stage::SEND_QUEUED, self.sim.now());
            let packet = Rc::new(Outgoing { header, ready: RefCell::default(), _place: place });
            if bytes == 0 {
                packet.ready.replace(Some((Payload::empty(), path.clone())));
                self.transmit.outgoing.borrow_mut().push_back(packet);
                if leaving.told.is_some() {
                    self.sim.spawn(self.clone().finish(leaving, true, message, path));
                }
                self.transmit.read.notify_one();
                return;
            }
            let engine = self.transmit.engine.channel(message, &mut path).await;
            path.advance(parts::stages::DMA_QUEUED, self.sim.now());
            self.transmit.outgoing.borrow_mut().push_back(packet.clone());
            self.sim.spawn(self.clone().fetch(packet, source + done, leaving.clone(), engine, path.clone()));
            done += bytes;
            if done == payload {
                return;
            }
        }
    }

    /// Reads the bytes of a packet through an engine.
    async fn fetch(
        self: Rc<Card>,
        packet: Rc<Outgoing>,
        address: u64,
        leaving: Rc<Leaving>,
        engine: Permit,
        mut path: Path,
    ) {
        let (message, bytes) = (packet.header.message(), packet.header.payload.into());
        let set_up = (self.spec.dma.setup, parts::stages::DMA_SETUP);
        let mut moving = self.transmit.engine.set_up(engine, set_up, message, &mut path).await;
        let start = self.sim.now();
        let payload = self.dma.fetch(message, address, bytes, &mut path).await;
        self.recorder.slice(Resource::DMA, start, path.at(), Some(message), Stage::FETCH.name());
        packet.ready.replace(Some((payload, path.clone())));
        self.transmit.read.notify_one();
        leaving.left.set(leaving.left.get() - bytes);
        let last = leaving.left.get() == 0;
        let EventsSpec { sent, writer, .. } = self.spec.events;
        let due = leaving.told.is_some() && (last || sent == Per::Packet);
        if due && writer == Writer::Own {
            moving = self.transmit.engine.set_up_again(moving, set_up, message, &mut path).await;
        }
        self.transmit.engine.release(moving, message, &path);
        if due && writer == Writer::Own {
            self.tell_read(&leaving, last, message, path);
        } else if due {
            self.finish(leaving, last, message, path).await;
        }
    }

    /// Sets up an engine for the completion of bytes that have been read, if engines write completions. Then writes the
    /// completion.
    async fn finish(self: Rc<Card>, leaving: Rc<Leaving>, last: bool, message: MessageId, mut path: Path) {
        let engine = match self.spec.events.writer {
            Writer::Own => &self.transmit.engine,
            Writer::Receive => &self.receive.engine,
            Writer::Bus => return self.tell_read(&leaving, last, message, path),
        };
        let channel = engine.channel(message, &mut path).await;
        path.advance(parts::stages::DMA_QUEUED, self.sim.now());
        let set_up = (self.spec.dma.setup, parts::stages::DMA_SETUP);
        let moving = engine.set_up(channel, set_up, message, &mut path).await;
        engine.release(moving, message, &path);
        self.tell_read(&leaving, last, message, path);
    }

    /// Writes the completion of bytes that have been read. The completion of the last bytes is the event of the
    /// message's process.
    fn tell_read(self: &Rc<Card>, leaving: &Leaving, last: bool, message: MessageId, path: Path) {
        match leaving.told {
            Some((process, event)) if last => self.complete(process, event, message, path),
            Some((process, event)) => self.complete_packet(process, event, message, path),
            None => {}
        }
    }

    /// Sends packets in the order in which they were given to the engines.
    pub(crate) async fn serve_link(self: Rc<Card>) {
        let Transmit { outgoing, read, .. } = &self.transmit;
        loop {
            let ready = || outgoing.borrow().front().is_some_and(|packet| packet.ready.borrow().is_some());
            read.wait_until(ready).await;
            let Some(packet) = outgoing.borrow_mut().pop_front() else { continue };
            let Some((mut payload, mut path)) = packet.ready.take() else { continue };
            let (message, destination) = (packet.header.message(), packet.header.to.node);
            self.transmit.left.waited(Stage::LINK_QUEUED, message, &mut path);
            path.advance(Stage::SEND_QUEUED, self.sim.now());
            let label = Label { destination, message, offset: packet.header.offset.into() };
            let header = packet.header.emit(&mut payload);
            let whole = Packet { label, channel: Flow::Data(0), header, payload, path: path.clone() };
            let handed = if destination == self.node {
                let turn = self.loopback.turn(Flight::resting(path)).await;
                self.loopback.launch(whole, turn)
            } else {
                let turn = self.port.turn(Flight::resting(path)).await;
                let handed = self.port.launch(whole, turn);
                self.sim.until(handed.at()).await;
                handed
            };
            self.count(|counted| counted.packets_sent += 1);
            self.transmit.left.released(message, &handed);
        }
    }

    /// Returns the event for the sender of a put. It reports that the put's bytes have been read.
    pub(crate) fn sent_event(
        message: MessageId,
        peer: Endpoint,
        address: u64,
        bytes: u64,
        data: u64,
    ) -> Event {
        let kind = EventKind::Sent(Operation(message.sequence));
        Event { kind, peer, address, bytes, data, streaming: false, refused_by: None }
    }
}
