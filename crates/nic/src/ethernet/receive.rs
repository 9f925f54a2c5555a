//! The receive path of the card: frames to the rings of host memory, and the interrupts that tell of them.

use super::card::Card;
use super::interrupts::Coalescing;
use super::spec::EthernetSpec;
use super::{stages, wire};
use nicety_fabric::Packet;
use nicety_host::{Allocation, Memory, MemoryError, Notice};
use nicety_stack::Parsed;
use nicety_types::{Level, MessageId, Path, Resource, Stage};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// A frame in a buffer of a ring.
pub(super) struct Arrived {
    /// Where it is.
    pub(super) address: u64,
    /// Its length.
    pub(super) bytes: u64,
    /// Whether the card has found its checksums right.
    pub(super) verified: bool,
    /// Its number.
    pub(super) message: MessageId,
    /// Up to its completion's arrival in host memory.
    pub(super) path: Path,
}

/// A ring of a receive channel.
pub(super) struct ReceiveRing {
    buffers: Allocation,
    /// Bytes of a buffer.
    buffer: u64,
    entries: u64,
    completions: Allocation,
    completion: u64,
    /// Buffers used so far, and of these, those that the driver has given back.
    used: Cell<u64>,
    given_back: Cell<u64>,
    /// Frames that have come, those without a buffer not.
    pub(super) frames: Cell<u64>,
    /// Frames whose completions are in host memory.
    pub(super) arrived: RefCell<VecDeque<Arrived>>,
    pub(super) coalescing: Coalescing,
}

impl ReceiveRing {
    pub(super) fn new(
        spec: &EthernetSpec,
        memory: &Rc<Memory>,
        coalescing: Coalescing,
    ) -> Result<ReceiveRing, MemoryError> {
        let (entries, buffer, completion) =
            (spec.receive.entries, spec.receive.buffer, spec.receive.completion);
        Ok(ReceiveRing {
            buffers: memory.allocate(entries * buffer)?,
            buffer,
            entries,
            completions: memory.allocate(entries * completion)?,
            completion,
            used: Cell::new(0),
            given_back: Cell::new(0),
            frames: Cell::new(0),
            arrived: RefCell::default(),
            coalescing,
        })
    }

    /// A free buffer, and the place of its completion.
    fn take(&self) -> Option<(u64, u64)> {
        let used = self.used.get();
        if used - self.given_back.get() == self.entries {
            return None;
        }
        self.used.set(used + 1);
        self.frames.set(self.frames.get() + 1);
        let slot = used % self.entries;
        Some((
            self.buffers.address() + slot * self.buffer,
            self.completions.address() + slot * self.completion,
        ))
    }

    /// The card has learnt of buffers that the driver has given back.
    pub(super) fn give_back(&self, buffers: u64) {
        self.given_back.set(self.given_back.get() + buffers);
    }
}

impl Card {
    /// Frames from the link.
    pub(super) async fn serve_port(self: Rc<Card>) {
        loop {
            let packet = self.port.receive().await;
            if packet.is_control() {
                // No station sends any.
                self.count(|counted| counted.check_errors += 1);
                continue;
            }
            self.clone().take(packet.open()).await;
            self.port.free_slot();
        }
    }

    /// Takes a frame to host memory, or drops it. Returns when it has left the card's buffer.
    async fn take(self: Rc<Card>, packet: Packet) {
        let Packet { label, header, payload, mut path, .. } = packet;
        let message = label.message;
        path.advance(Stage::LINK, self.sim.now());
        if self.recorder.keeps(Level::Packets) {
            self.recorder.packet_arrived(message, 0, self.sim.now());
        }
        let frame = payload.clone().into_buffer();
        let Ok(frame) = frame.map_err(drop).and_then(|frame| {
            let right = wire::check_sequence(&frame).as_slice() == header.as_slice();
            right.then_some(frame).ok_or(())
        }) else {
            self.count(|counted| counted.check_errors += 1);
            self.recorder.message_matched(message, self.sim.now(), "check sequence");
            return;
        };
        let number = self.hash(&frame) % self.receive.len();
        let ring = &self.receive[number];
        let bytes = frame.len() as u64;
        let verified = self.spec.frames.checksums && is_right(&frame);
        if bytes > ring.buffer {
            self.count(|counted| counted.too_long += 1);
            self.recorder.message_matched(message, self.sim.now(), "too long");
            return;
        }
        let Some((address, completion)) = ring.take() else {
            self.count(|counted| counted.ring_full += 1);
            self.recorder.message_matched(message, self.sim.now(), "ring full");
            return;
        };
        self.recorder.message_matched(message, self.sim.now(), "frame");
        self.recorder.packet_matched(message, 0, self.sim.now());
        let start = self.sim.now();
        let handed = self.dma.deposit(message, address, bytes, payload, path).await;
        let mut path = handed.path;
        self.recorder.slice(Resource::DMA, start, path.at(), Some(message), Stage::DEPOSIT.name());
        self.recorder.packet_settled(message, 0, path.at());
        path.advance(Stage::DEPOSIT, handed.landed);
        let written = self.dma.notify(message, completion, ring.completion, Path::clock(self.sim.now()));
        path.advance(stages::COMPLETION, written.at());
        self.count(|counted| counted.frames_received += 1);
        let card = self.clone();
        self.sim.spawn(async move {
            card.sim.until(path.at()).await;
            card.recorder.message_completed(message, &path, "frame");
            let ring = &card.receive[number];
            ring.arrived.borrow_mut().push_back(Arrived { address, bytes, verified, message, path });
            ring.coalescing.frame();
        });
    }

    /// An interrupt crosses the bus, behind what was written before it. Returns when it is at the host.
    pub(super) async fn interrupt(&self) {
        let seen = self.dma.bus().post(Notice::Event, Path::clock(self.sim.now()));
        self.sim.until(seen.at()).await;
    }
}

/// Whether a frame has an IP packet whose checksums are right, as far as it has any.
fn is_right(frame: &[u8]) -> bool {
    let ip = Parsed::read(frame).ok().and_then(|parsed| parsed.ip);
    ip.is_some_and(|ip| nicety_stack::verify(frame, &ip))
}
