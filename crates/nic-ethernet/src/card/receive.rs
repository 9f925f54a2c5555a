//! The receive path of the card: writes of frames to host memory, and their interrupts.

use crate::blocks::{Blocks, Place};
use crate::card::Card;
use crate::card::disposition::Disposition;
use crate::card::handling::Checked;
use crate::card::joining::{Arriving, Joining};
use crate::driver_spec::DriverSpec;
use crate::interrupts::Coalescing;
use crate::spec::EthernetSpec;
use crate::xdp::Came;
use crate::{stages, wire};
use nicety_fabric::Packet;
use nicety_host::threads::{Data, Page};
use nicety_host::{Allocation, Memory, MemoryError, Notice};
use nicety_stack::Parsed;
use nicety_types::{Level, MessageId, Path, Resource, Stage};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Cache lines of a ring that are touched to post a buffer: the index with the lock, and the descriptor.
const POSTING_LINES: u64 = 2;

/// A frame in a buffer of a ring.
pub(crate) struct Arrived {
    /// The frame's address.
    pub(crate) address: u64,
    /// The frame's length in bytes.
    pub(crate) bytes: u64,
    /// The frame's buffers.
    pub(crate) held: Held,
    /// Whether the card found the frame's checksums valid.
    pub(crate) verified: bool,
    /// The frame's number.
    pub(crate) message: MessageId,
    /// The path up to the arrival of the frame's completion in host memory.
    pub(crate) path: Path,
    /// The frame's arrival at the card.
    pub(crate) came: Came,
}

/// Buffers of a frame.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    /// The number of the buffers.
    pub(crate) buffers: u64,
    /// The buffer's place in a block, if the ring has blocks.
    place: Option<Place>,
}

/// A ring of a receive channel.
pub(crate) struct ReceiveRing {
    buffers: Allocation,
    /// Size of a buffer in bytes.
    buffer: u64,
    entries: u64,
    /// The pages of the buffers, and the size of a page. The ring has no pages if they are always in the TLB.
    pages: Vec<Rc<Page>>,
    page: u64,
    /// The ring's blocks. `None` if its entries are single buffers.
    blocks: Option<Blocks>,
    completions: Allocation,
    completion: u64,
    slots: u64,
    /// Number of completions so far.
    completed: Cell<u64>,
    /// The maximum number of completions that the driver has not taken, and the present number.
    most_reported: u64,
    pub(crate) reported: Cell<u64>,
    /// Number of single buffers used so far.
    used: Cell<u64>,
    /// Number of single buffers that the driver has returned.
    given_back: Cell<u64>,
    /// Number of buffers or blocks that are free but not yet returned.
    pub(crate) emptied: Cell<u64>,
    /// Number of buffers of frames in the kernel.
    pub(crate) lent: Cell<u64>,
    /// The ring's lines in the caches of CPUs that post buffers.
    pub(crate) posting: Data,
    /// Frames that wait to be joined with others.
    pub(crate) joining: Joining,
    /// Number of received packets. Joined frames count as one packet.
    pub(crate) packets: Cell<u64>,
    /// Number of received frames with a buffer.
    pub(crate) frames: Cell<u64>,
    /// Number of frames without a buffer.
    pub(crate) missed: Cell<u64>,
    /// Frames with a completion in host memory.
    pub(crate) arrived: RefCell<VecDeque<Arrived>>,
    /// Frames with completions that wait in the card, and the addresses of the completions.
    staged: RefCell<VecDeque<(u64, Arrived)>>,
    pub(crate) coalescing: Coalescing,
}

impl ReceiveRing {
    pub(crate) fn new(
        spec: &EthernetSpec,
        memory: &Rc<Memory>,
        coalescing: Coalescing,
    ) -> Result<ReceiveRing, MemoryError> {
        let receive = &spec.receive;
        let (entries, buffer, completion) =
            (receive.entries * receive.block, receive.buffer, receive.completion);
        let slots = if receive.completions > 0 { receive.completions } else { entries };
        Ok(ReceiveRing {
            buffers: memory.allocate(entries * buffer)?,
            buffer,
            entries,
            pages: (0..(entries * buffer).div_ceil(receive.page.max(1)))
                .take(if receive.page > 0 { usize::MAX } else { 0 })
                .map(|_| Rc::default())
                .collect(),
            page: receive.page.max(1),
            blocks: Blocks::new(receive),
            completions: memory.allocate(slots * completion)?,
            completion,
            slots,
            completed: Cell::new(0),
            most_reported: if receive.completions > 0 { slots } else { u64::MAX },
            reported: Cell::new(0),
            used: Cell::new(0),
            given_back: Cell::new(0),
            emptied: Cell::new(0),
            lent: Cell::new(0),
            posting: Data::new(POSTING_LINES),
            joining: Joining::default(),
            packets: Cell::new(0),
            frames: Cell::new(0),
            missed: Cell::new(0),
            arrived: RefCell::default(),
            staged: RefCell::default(),
            coalescing,
        })
    }

    /// Takes free buffers for `bytes` bytes, and room for a completion.
    fn take(&self, bytes: u64) -> Option<Taken> {
        if self.reported.get() == self.most_reported {
            return None;
        }
        let (offset, held) = match &self.blocks {
            None => self.take_row(bytes)?,
            Some(blocks) => {
                let place = blocks.take(bytes)?;
                (place.offset, Held { buffers: 1, place: Some(place) })
            }
        };
        self.reported.set(self.reported.get() + 1);
        let slot = self.completed.replace(self.completed.get() + 1) % self.slots;
        let completion = self.completions.address() + slot * self.completion;
        Some(Taken { address: self.buffers.address() + offset, completion, held })
    }

    /// Takes consecutive free buffers. If they would wrap, the buffers at the end of the ring are skipped.
    fn take_row(&self, bytes: u64) -> Option<(u64, Held)> {
        let (used, row) = (self.used.get(), bytes.div_ceil(self.buffer));
        let slot = used % self.entries;
        let left_out = if slot + row > self.entries { self.entries - slot } else { 0 };
        let buffers = left_out + row;
        if used + buffers - self.given_back.get() > self.entries {
            return None;
        }
        self.used.set(used + buffers);
        let offset = (slot + left_out) % self.entries * self.buffer;
        Some((offset, Held { buffers, place: None }))
    }

    /// Returns the page of a buffer.
    pub(crate) fn page(&self, address: u64) -> Option<Rc<Page>> {
        let at = (address - self.buffers.address()) / self.page;
        self.pages.get(at as usize).cloned()
    }

    /// Records that the driver sees a frame. Returns whether the driver copies the frame. It does so if the kernel
    /// holds too much of the ring.
    pub(crate) fn copies(&self, held: Held, driver: &DriverSpec) -> bool {
        match (&self.blocks, held.place) {
            (Some(blocks), Some(place)) => blocks.see(&place, driver.loan, driver.loan_small),
            _ => self.lent.get() * 100 >= self.entries * driver.loan,
        }
    }

    /// Frees a frame's buffers. Returns the number of buffers or blocks to return to the card.
    pub(crate) fn free(&self, held: Held) -> u64 {
        match (&self.blocks, held.place) {
            (Some(blocks), Some(place)) => u64::from(blocks.free(place.block)),
            _ => held.buffers,
        }
    }

    /// Records at the card that the driver has returned buffers or blocks.
    pub(crate) fn give_back(&self, returned: u64) {
        match &self.blocks {
            Some(blocks) => blocks.post(returned),
            None => self.given_back.set(self.given_back.get() + returned),
        }
    }
}

/// Buffers for a frame.
struct Taken {
    address: u64,
    /// The address of the frame's completion.
    completion: u64,
    held: Held,
}

impl Card {
    /// Handles frames from the link.
    pub(crate) async fn serve_port(self: Rc<Card>) {
        loop {
            let packet = self.port.receive().await;
            if packet.is_control() {
                // No station sends a control packet.
                self.count(|counted| counted.fcs_errors += 1);
                continue;
            }
            if self.discards.get() {
                self.port.free_slot();
                continue;
            }
            let (source, came) = (packet.label.message.source, packet.path.at());
            match (self.check(packet.open()), &self.handling) {
                (None, _) => {
                    self.count_frames(source, Disposition::Damaged, 1);
                    self.settle(source, came);
                    self.port.free_slot();
                }
                (Some(checked), Some(handling)) => self.choose(handling, checked, came),
                (Some(checked), None) => {
                    self.accept(checked).await;
                    self.settle(source, came);
                    self.port.free_slot();
                }
            }
        }
    }

    /// Checks a frame from the link. Returns `None` if the frame's check sequence is wrong.
    fn check(&self, packet: Packet) -> Option<Checked> {
        let Packet { label, header, payload, mut path, .. } = packet;
        let message = label.message;
        let came = Came { at: path.at(), source: message.source, counts: true };
        path.advance(Stage::LINK, self.sim.now());
        if self.recorder.keeps(Level::Packets) {
            self.recorder.packet_arrived(message, 0, self.sim.now());
        }
        let frame = payload.clone().into_buffer();
        let Ok(frame) = frame.map_err(drop).and_then(|frame| {
            let right = wire::check_sequence(&frame).as_slice() == header.as_slice();
            right.then_some(frame).ok_or(())
        }) else {
            self.count(|counted| counted.fcs_errors += 1);
            self.recorder.message_matched(message, self.sim.now(), "check sequence");
            return None;
        };
        Some(Checked { message, frame, payload, path, came })
    }

    /// Delivers a frame to host memory, or drops it. Returns when the frame has left the card's buffer.
    pub(crate) async fn accept(self: &Rc<Card>, checked: Checked) {
        let Checked { message, frame, payload, path, came } = checked;
        let hash = self.hash(&frame);
        let ring = &self.receive[hash % self.receive.len()];
        let bytes = frame.len() as u64;
        if bytes > ring.buffer {
            self.count(|counted| counted.too_long += 1);
            self.count_frames(message.source, Disposition::NoRoom, 1);
            self.recorder.message_matched(message, self.sim.now(), "too long");
            return;
        }
        let verified = self.verified(&frame);
        let arriving = Arriving { hash, payload, frames: 1, verified, message, path, came };
        // An XDP program gets the frames as they arrived, so the card joins no frames.
        if self.spec.receive.lro > 0 && verified && !self.xdp.is_attached() {
            self.join(arriving, &frame).await;
        } else {
            self.write(arriving).await;
        }
    }

    /// Whether the card reports a frame's checksums as valid to the driver.
    pub(crate) fn verified(&self, frame: &[u8]) -> bool {
        self.spec.frames.checksums && is_right(frame)
    }

    /// Writes a frame and then its completion to host memory, or drops the frame. Returns when the frame has left the
    /// card's buffer.
    pub(crate) async fn write(self: &Rc<Card>, arriving: Arriving) {
        let Arriving { hash, payload, frames, verified, message, path, came } = arriving;
        let number = hash % self.receive.len();
        let ring = &self.receive[number];
        let bytes = payload.len();
        let on_bus = self.spec.bus.write_time(bytes) + self.spec.bus.write_time(ring.completion);
        let Some(Taken { address, completion, held }) = ring.take(bytes) else {
            self.count(|counted| counted.ring_full += frames);
            ring.missed.set(ring.missed.get() + frames);
            self.left_out.set(self.left_out.get() + on_bus);
            self.count_frames(message.source, Disposition::NoRoom, frames);
            self.recorder.message_matched(message, self.sim.now(), "ring full");
            return;
        };
        self.count_frames(message.source, Disposition::Host, frames);
        self.carried.set(self.carried.get() + on_bus);
        ring.frames.set(ring.frames.get() + frames);
        ring.packets.set(ring.packets.get() + 1);
        self.recorder.message_matched(message, self.sim.now(), "frame");
        self.recorder.packet_matched(message, 0, self.sim.now());
        let start = self.sim.now();
        let handed = self.dma.deposit(message, address, bytes, payload, path).await;
        let mut path = handed.path;
        self.recorder.slice(Resource::DMA, start, path.at(), Some(message), Stage::DEPOSIT.name());
        self.recorder.packet_settled(message, 0, path.at());
        path.advance(Stage::DEPOSIT, handed.landed);
        if self.spec.receive.batch > 1 {
            self.count(|counted| counted.frames_received += frames);
            let arrived = Arrived { address, bytes, held, verified, message, path, came };
            return self.stage(number, completion, arrived);
        }
        let written = self.dma.notify(message, completion, ring.completion, Path::clock(self.sim.now()));
        path.advance(stages::COMPLETION, written.at());
        self.count(|counted| counted.frames_received += frames);
        let card = self.clone();
        self.sim.spawn(async move {
            card.sim.until(path.at()).await;
            card.recorder.message_completed(message, &path, "frame");
            let ring = &card.receive[number];
            let arrived = Arrived { address, bytes, held, verified, message, path, came };
            ring.arrived.borrow_mut().push_back(arrived);
            ring.coalescing.written(1);
        });
    }

    /// Keeps a frame's completion until there are enough completions for a write.
    fn stage(self: &Rc<Card>, number: usize, completion: u64, arrived: Arrived) {
        let ring = &self.receive[number];
        let staged = {
            let mut staged = ring.staged.borrow_mut();
            staged.push_back((completion, arrived));
            staged.len() as u64
        };
        if staged >= self.spec.receive.batch || self.spec.interrupts.time.is_zero() {
            self.write_staged(number);
        } else {
            ring.coalescing.stage(staged);
        }
    }

    /// Writes the completions that wait in the card.
    pub(crate) fn write_staged(self: &Rc<Card>, number: usize) {
        let ring = &self.receive[number];
        ring.coalescing.stage(0);
        let staged = ring.staged.take();
        let Some(&(completion, Arrived { message, .. })) = staged.front() else { return };
        let bytes = ring.completion * staged.len() as u64;
        let written = self.dma.notify(message, completion, bytes, Path::clock(self.sim.now())).at();
        let card = self.clone();
        self.sim.spawn(async move {
            card.sim.until(written).await;
            let (ring, all) = (&card.receive[number], staged.len() as u64);
            for (_, mut arrived) in staged {
                arrived.path.advance(stages::COMPLETION, written);
                card.recorder.message_completed(arrived.message, &arrived.path, "frame");
                ring.arrived.borrow_mut().push_back(arrived);
            }
            ring.coalescing.written(all);
        });
    }

    /// Sends an interrupt over the bus, after earlier writes. Returns when the interrupt reaches the host.
    pub(crate) async fn interrupt(&self) {
        let seen = self.dma.bus().post(Notice::Event, Path::clock(self.sim.now()));
        self.sim.until(seen.at()).await;
    }
}

/// Whether a frame has an IP packet, and the packet's checksums are valid.
fn is_right(frame: &[u8]) -> bool {
    let ip = Parsed::read(frame).ok().and_then(|parsed| parsed.ip);
    ip.is_some_and(|ip| nicety_stack::verify(frame, &ip))
}
