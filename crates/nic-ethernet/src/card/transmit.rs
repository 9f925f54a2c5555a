//! The transmit path of the card: descriptors from the rings, frames by DMA, and the link.

use crate::card::Card;
use crate::spec::{EthernetSpec, HEADERS};
use crate::waiters::Waiters;
use crate::xdp::Came;
use crate::{stages, wire};
use nicety_fabric::{Channel, Label, Packet};
use nicety_host::threads::{Data, Thread};
use nicety_host::{Allocation, Memory, MemoryError, Notice};
use nicety_kernel::Permit;
use nicety_types::{
    Buffer, Duration, Flight, MessageId, NodeId, Path, Payload, Resource, Stage, Starter, Time,
};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// A frame in host memory with a descriptor in a ring. A packet that the card splits into several frames counts as one.
pub(crate) struct Job {
    address: u64,
    bytes: u64,
    message: MessageId,
    finish: Finish,
    path: Path,
}

/// The work on a frame that the host leaves to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finish {
    /// Whether the card writes the checksums.
    pub(crate) checksum: bool,
    /// The bytes of payload of each frame but the last, if the card splits the packet.
    pub(crate) segment: Option<usize>,
    /// The arrival of the frame, if an XDP program sends it.
    pub(crate) came: Option<Came>,
}

/// Cache lines of a ring that are touched for a frame: the descriptor, the indices, and the lock.
const RING_LINES: u64 = 4;

/// A ring of a transmit channel.
pub(crate) struct TransmitRing {
    descriptors: Allocation,
    buffers: Allocation,
    /// Size of a buffer in bytes.
    buffer: u64,
    /// Unused buffers. The buffer that was freed last is reused first.
    unused: RefCell<Vec<u64>>,
    entries: u64,
    /// Number of descriptors used so far, and the number of these that are free again.
    used: Cell<u64>,
    freed: Cell<u64>,
    /// Number of used descriptors that the driver knows to be free again.
    reclaimed: Cell<u64>,
    announced: RefCell<VecDeque<Job>>,
    /// Threads that wait for a free descriptor.
    pub(crate) waiting: Waiters,
    /// Whether the driver wants an interrupt when the next descriptor is free.
    pub(crate) wanted: Cell<bool>,
    /// The handler's thread for that interrupt.
    pub(crate) handler: RefCell<Option<Thread>>,
    /// The ring's lines in the caches of CPUs that fill it.
    pub(crate) data: Data,
}

impl TransmitRing {
    pub(crate) fn new(spec: &EthernetSpec, memory: &Rc<Memory>) -> Result<TransmitRing, MemoryError> {
        let entries = spec.transmit.entries;
        let buffer = spec.receive.buffer.max(spec.frames.tso + HEADERS);
        Ok(TransmitRing {
            descriptors: memory.allocate(entries * spec.transmit.descriptor)?,
            buffers: memory.allocate(entries * buffer)?,
            buffer,
            unused: RefCell::new((0..entries).rev().collect()),
            entries,
            used: Cell::new(0),
            freed: Cell::new(0),
            reclaimed: Cell::new(0),
            announced: RefCell::default(),
            waiting: Waiters::default(),
            wanted: Cell::new(false),
            handler: RefCell::default(),
            data: Data::new(RING_LINES),
        })
    }

    /// Number of descriptors that the driver does not know to be free.
    pub(crate) fn pending(&self) -> u64 {
        self.used.get() - self.reclaimed.get()
    }

    /// Updates the driver's knowledge of free descriptors.
    pub(crate) fn reclaim(&self) {
        self.reclaimed.set(self.freed.get());
    }

    /// Whether there is no free descriptor.
    pub(crate) fn is_full(&self) -> bool {
        self.used.get() - self.freed.get() == self.entries
    }
}

/// A frame between its ring and the link.
pub(crate) struct Leaving {
    ring: usize,
    message: MessageId,
    buffer: u64,
    came: Option<Came>,
    /// The frames to send. `None` until they have been read.
    ready: RefCell<Option<(Vec<Payload>, Path)>>,
    place: RefCell<Option<Permit>>,
}

impl Card {
    /// Puts a frame into a buffer of host memory, with a descriptor. The card does not see the descriptor until the
    /// doorbell.
    ///
    /// # Panics
    /// When the ring is full.
    pub(crate) fn post(&self, ring: usize, frame: &[u8], finish: Finish, path: Path) -> MessageId {
        let channel = &self.transmit[ring];
        assert!(!channel.is_full(), "a descriptor is free where a frame is posted");
        let number = channel.unused.borrow_mut().pop().expect("as many buffers as descriptors");
        channel.used.set(channel.used.get() + 1);
        let (address, bytes) = (channel.buffers.address() + number * channel.buffer, frame.len() as u64);
        let payload = Payload::copy_of(frame);
        self.dma.memory().deposit(address, bytes, &payload).expect("a buffer of the ring");
        let message = self.next_message();
        let target = wire::destination(frame, self.nodes).unwrap_or(self.node);
        self.recorder.sent(message, target, bytes, "frame", Starter::Host, &path);
        channel.announced.borrow_mut().push_back(Job { address, bytes, message, finish, path });
        message
    }

    /// Handles the arrival of the doorbell at the card.
    pub(crate) fn ring(&self) {
        self.announced.notify_one();
    }

    /// Fetches the descriptors of all rings in turn, and starts the reads of the frames.
    pub(crate) async fn fetch_descriptors(self: Rc<Card>) {
        let mut turn = 0;
        let all = self.transmit.len();
        loop {
            let next = || {
                (0..all).map(|i| (turn + i) % all).find(|&i| !self.transmit[i].announced.borrow().is_empty())
            };
            self.announced.wait_until(|| next().is_some()).await;
            let Some(number) = next() else { continue };
            turn = (number + 1) % all;
            let ring = &self.transmit[number];
            let most = (ring.announced.borrow().len() as u64).min(self.spec.transmit.fetch);
            let mut jobs: Vec<Job> = ring.announced.borrow_mut().drain(..most as usize).collect();
            let (message, start) = (jobs[0].message, self.sim.now());
            let bytes = most * self.spec.transmit.descriptor;
            let read = self
                .dma
                .bus()
                .read(message, ring.descriptors.address(), bytes, bytes, Path::clock(start))
                .await;
            let landed = read.packet(0).await.landed().at();
            self.sim.until(landed).await;
            self.recorder.slice(Resource::DMA, start, landed, Some(message), stages::DESCRIPTOR.name());
            self.count(|counted| counted.fetches += 1);
            let used = landed.since(start).ps() * most / self.spec.transmit.fetch;
            self.fetching.set(self.fetching.get() + Duration::from_ps(used));
            for job in &mut jobs {
                job.path.advance(stages::DESCRIPTOR_QUEUED, start);
                job.path.advance(stages::DESCRIPTOR, landed);
            }
            for mut job in jobs {
                let place = self.fifo.acquire(1).await;
                job.path.advance(Stage::SEND_QUEUED, self.sim.now());
                let leaving = Rc::new(Leaving {
                    ring: number,
                    message: job.message,
                    buffer: (job.address - ring.buffers.address()) / ring.buffer,
                    came: job.finish.came,
                    ready: RefCell::default(),
                    place: RefCell::new(Some(place)),
                });
                self.leaving.borrow_mut().push_back(leaving.clone());
                self.sim.spawn(self.clone().read(job, leaving));
            }
        }
    }

    /// Reads a frame from host memory, and does the work that the host left to the card.
    async fn read(self: Rc<Card>, job: Job, leaving: Rc<Leaving>) {
        let Job { address, bytes, message, finish, mut path } = job;
        let start = self.sim.now();
        let payload = self.dma.fetch(message, address, bytes, &mut path).await;
        self.recorder.slice(Resource::DMA, start, path.at(), Some(message), Stage::FETCH.name());
        let mut frame = payload.into_buffer().expect("frames are real bytes").to_vec();
        let mut frames = Vec::with_capacity(1);
        if let Some(size) = finish.segment {
            let cut = nicety_stack::segment(&frame, size, |piece| frames.push(whole(piece)));
            cut.expect("the host's own packet");
        } else {
            if finish.checksum {
                nicety_stack::fill(&mut frame).expect("the host's own frame");
            }
            frames.push(whole(&frame));
        }
        leaving.ready.replace(Some((frames, path)));
        self.fetched.notify_one();
    }

    /// Sends frames in the order of their descriptors.
    pub(crate) async fn serve_link(self: Rc<Card>) {
        loop {
            let ready = || self.leaving.borrow().front().is_some_and(|frame| frame.ready.borrow().is_some());
            self.fetched.wait_until(ready).await;
            let Some(leaving) = self.leaving.borrow_mut().pop_front() else { continue };
            let Some((frames, mut path)) = leaving.ready.take() else { continue };
            path.advance(Stage::SEND_QUEUED, self.sim.now());
            let mut offset = 0;
            for payload in frames {
                let destination = {
                    let (_, frame) = payload.pieces().next().expect("a frame has bytes");
                    self.destination(frame, leaving.came)
                };
                let bytes = payload.len();
                match destination {
                    None => {
                        let end = self.launch_to_nobody(bytes, path.clone()).await;
                        path.advance(Stage::LINK, end);
                    }
                    Some(destination) => {
                        let label = Label { destination, message: leaving.message, offset };
                        path = self.launch(label, payload, path).await;
                    }
                }
                offset += bytes;
            }
            drop(leaving.place.take());
            if let Some(came) = leaving.came {
                self.xdp.done(came, self.sim.now());
            }
            self.sent(&leaving);
        }
    }

    /// Returns the station that takes a frame. A frame that an XDP program sends returns to its generator if no other
    /// station has its address.
    fn destination(&self, frame: &[u8], came: Option<Came>) -> Option<NodeId> {
        let station = wire::destination(frame, self.nodes);
        let Some(Came { source, .. }) = came else { return station };
        // A switch does not return a frame to its source.
        let other = station.filter(|station| *station != self.node);
        other.or_else(|| self.testers.takes_all(source).then_some(source))
    }

    /// Sends a frame with its check sequence. Returns the path up to its last byte on the link.
    async fn launch(&self, label: Label, payload: Payload, path: Path) -> Path {
        let handed = self.begin(label, payload, path).await;
        self.sim.until(handed.at()).await;
        self.count(|counted| counted.frames_sent += 1);
        handed
    }

    /// Begins to send a frame with its check sequence.
    async fn begin(&self, label: Label, payload: Payload, path: Path) -> Path {
        let header = {
            let (_, frame) = payload.pieces().next().expect("a frame has bytes");
            wire::check_sequence(frame)
        };
        let packet = Packet { label, channel: Channel::Data(0), header, payload, path: path.clone() };
        let _link = self.link.acquire().await;
        let turn = self.port.turn(Flight::resting(path)).await;
        self.port.launch(packet, turn)
    }

    /// Sends a frame of `bytes` bytes that no station takes. Returns when its last byte is on the link.
    pub(crate) async fn launch_to_nobody(&self, bytes: u64, path: Path) -> Time {
        let end = {
            let _link = self.link.acquire().await;
            let turn = self.port.turn(Flight::resting(path)).await;
            self.port.launch_to_nobody(bytes, turn)
        };
        self.sim.until(end).await;
        self.count(|counted| {
            counted.frames_sent += 1;
            counted.unknown_destination += 1;
        });
        end
    }

    /// Sends a frame that is not from a ring. Returns when the frame's last byte is on the link.
    pub(crate) async fn put_on_wire(&self, to: NodeId, message: MessageId, payload: Payload, path: Path) {
        self.launch(Label { destination: to, message, offset: 0 }, payload, path).await;
    }

    /// Begins to send a frame that is not from a ring. Returns the start of the frame's transmission.
    pub(crate) async fn start_on_wire(
        &self,
        to: NodeId,
        message: MessageId,
        payload: Payload,
        path: Path,
    ) -> Time {
        self.begin(Label { destination: to, message, offset: 0 }, payload, path).await;
        self.count(|counted| counted.frames_sent += 1);
        self.sim.now()
    }

    /// Frees the descriptor of a sent frame as soon as the driver can see that. Interrupts if a thread waits for a
    /// descriptor.
    fn sent(self: &Rc<Card>, leaving: &Leaving) {
        let (ring, buffer) = (leaving.ring, leaving.buffer);
        let seen = self.dma.bus().post(Notice::Counter, Path::clock(self.sim.now()));
        let card = self.clone();
        self.sim.spawn(async move {
            card.sim.until(seen.at()).await;
            let channel = &card.transmit[ring];
            channel.freed.set(channel.freed.get() + 1);
            channel.unused.borrow_mut().push(buffer);
            if channel.wanted.take() {
                card.count(|counted| counted.transmit_interrupts += 1);
                card.interrupt().await;
                if let Some(handler) = &*channel.handler.borrow() {
                    handler.interrupt();
                }
            }
        });
    }
}

/// Returns a frame as the card sends it. A short frame is padded.
pub(crate) fn whole(frame: &[u8]) -> Payload {
    if frame.len() >= wire::SHORTEST {
        return Payload::real(Buffer::copy_of(frame));
    }
    let mut padded = frame.to_vec();
    padded.resize(wire::SHORTEST, 0);
    Payload::real(Buffer::copy_of(&padded))
}
