//! The commands that a handler gives to the card, numbered as in nicety.h.
//!
//! A command takes place at the cycle at which the handler reaches it, so commands of all handlers are ordered by
//! virtual time. Bytes that a command takes from HPU memory are taken then.

use super::Card;
use super::hpus::Running;
use super::printf::format;
use super::receive::Incoming;
use super::send::{Bytes, Leaving};
use nicety_hpu::TrapKind;
use nicety_kernel::Signal;
use nicety_portals::{AckRequest, CtEvent, FailType, Header, HeaderKind};
use nicety_types::{Buffer, NodeId, Path, Payload, Segment, Stage};
use std::cell::RefCell;
use std::rc::Rc;

mod number {
    pub const PUT_FROM_DEVICE: u32 = 0x101;
    pub const PUT_FROM_HOST: u32 = 0x102;
    pub const DMA_TO_HOST: u32 = 0x110;
    pub const DMA_FROM_HOST: u32 = 0x111;
    pub const DMA_CAS: u32 = 0x112;
    pub const DMA_FETCH_ADD: u32 = 0x113;
    pub const DMA_TEST: u32 = 0x114;
    pub const DMA_WAIT: u32 = 0x115;
    pub const CT_INC: u32 = 0x120;
    pub const CT_GET: u32 = 0x121;
    pub const CT_SET: u32 = 0x122;
    pub const CAS: u32 = 0x130;
    pub const FADD: u32 = 0x131;
    pub const YIELD: u32 = 0x140;
    pub const PRINTF: u32 = 0x150;
}

const SERVED: &str = "the card serves the functions of nicety.h, numbers 0x101 to 0x150";

/// What the functions of nicety.h return.
mod code {
    pub const OK: u32 = 0;
    pub const ARG_INVALID: u32 = 2;
    pub const SEGV: u32 = 3;
    pub const NO_SPACE: u32 = 4;
}

/// Where the bytes that a DMA brings belong.
struct Arriving {
    local: u32,
    bytes: Payload,
}

/// A DMA of a handler: under way, or done with the bytes it brings.
enum Transfer {
    UnderWay,
    Done(Option<Arriving>),
}

type Slot = Rc<RefCell<Transfer>>;

/// What a handler has under way.
pub(super) struct Commands {
    /// Handles are indices; a place is free again once its handle has been waited for or tested as done.
    transfers: Vec<Option<Slot>>,
    limit: usize,
}

impl Commands {
    pub(super) const fn new(limit: usize) -> Commands {
        Commands { transfers: Vec::new(), limit }
    }

    fn place(&mut self) -> Option<usize> {
        match self.transfers.iter().position(Option::is_none) {
            Some(free) => Some(free),
            None if self.transfers.len() < self.limit => {
                self.transfers.push(None);
                Some(self.transfers.len() - 1)
            }
            None => None,
        }
    }

    /// A handler ends only when all it has started is done.
    pub(super) async fn finish(&mut self, card: &Rc<Card>, running: &mut Running) {
        for slot in std::mem::take(&mut self.transfers).into_iter().flatten() {
            card.finished(running, &slot).await.ok();
        }
    }
}

impl Card {
    /// Carries out a command; returns what the function of nicety.h returns.
    ///
    /// # Errors
    /// What the handler is stopped for.
    pub(super) async fn command(
        self: &Rc<Card>,
        running: &mut Running,
        commands: &mut Commands,
        registers: [u32; 8],
    ) -> Result<u32, TrapKind> {
        let [a0, a1, a2, a3, a4, _, _, number] = registers;
        let long = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        match number {
            number::PUT_FROM_DEVICE => self.put_from_device(running, a0, a1, a2).await,
            number::PUT_FROM_HOST => self.put_from_host(running, a0, a1, a2).await,
            number::DMA_TO_HOST => self.dma_to_host(running, commands, [a0, a1, a2, a3, a4]).await,
            number::DMA_FROM_HOST => self.dma_from_host(running, commands, [a0, a1, a2, a3, a4]).await,
            number::DMA_CAS => {
                let expected = self.read_u64(running, a1)?;
                let new = self.read_u64(running, a2)?;
                let change = move |found: u64| if found == expected { new } else { found };
                self.dma_atomic(running, commands, [a0, a1, a3, a4], change).await
            }
            number::DMA_FETCH_ADD => {
                let increment = self.read_u64(running, a2)?;
                let change = move |found: u64| found.wrapping_add(increment);
                self.dma_atomic(running, commands, [a0, a1, a3, a4], change).await
            }
            number::DMA_TEST => match commands.transfers.get(a0 as usize).cloned().flatten() {
                None => Ok(1),
                Some(slot) if matches!(*slot.borrow(), Transfer::UnderWay) => Ok(0),
                Some(slot) => {
                    commands.transfers[a0 as usize] = None;
                    self.finished(running, &slot).await?;
                    Ok(1)
                }
            },
            number::DMA_WAIT => match commands.transfers.get_mut(a0 as usize).and_then(Option::take) {
                None => Ok(code::ARG_INVALID),
                Some(slot) => {
                    self.finished(running, &slot).await?;
                    Ok(code::OK)
                }
            },
            number::CT_INC | number::CT_GET | number::CT_SET => self.counter(running, number, a0, long(a0, a1)),
            number::CAS => {
                let found = self.read_u64(running, a0)?;
                let swap = found == long(a1, a2);
                if swap {
                    self.write_u64(running, a0, long(a3, a4))?;
                }
                Ok(u32::from(swap))
            }
            number::FADD => {
                let found = self.read_u64(running, a0)?;
                self.write_u64(running, a0, found.wrapping_add(long(a2, a3)))?;
                self.write_u64(running, a1, found)?;
                Ok(code::OK)
            }
            number::YIELD => {
                // The core has one context: others of its queue cannot go first, but whatever is due now can.
                self.sim.yield_now().await;
                Ok(code::OK)
            }
            number::PRINTF => {
                let text = self.with_space(running, |space| format(space, a0, a1))?;
                let line = super::LogLine { time: self.sim.now(), node: self.node, hpu: running.core, text };
                (self.log)(&line);
                Ok(line.text.len() as u32)
            }
            number => Err(TrapKind::UnknownCall { number, served: SERVED }),
        }
    }

    fn read_u64(&self, running: &mut Running, address: u32) -> Result<u64, TrapKind> {
        self.with_space(running, |space| {
            let bytes = space.read(address, 8)?;
            Ok(u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes were asked for")))
        })
    }

    fn write_u64(&self, running: &mut Running, address: u32, value: u64) -> Result<(), TrapKind> {
        self.write_local(running, address, &value.to_le_bytes())
    }

    /// Writes what a handler may touch, and breaks the reservations of other cores on it.
    fn write_local(&self, running: &mut Running, address: u32, bytes: &[u8]) -> Result<(), TrapKind> {
        self.with_space(running, |space| {
            space.write(address, bytes.len() as u32)?.copy_from_slice(bytes);
            Ok(())
        })?;
        running.application.reservations.borrow_mut().invalidate(address, bytes.len() as u32);
        Ok(())
    }

    /// The header of a put that a handler asks for, or the code it gets for a put that cannot be.
    fn put_header(&self, running: &mut Running, length: u32, put: u32) -> Result<Result<Header, u32>, TrapKind> {
        let mut fields = [0; 32];
        self.with_space(running, |space| {
            fields.copy_from_slice(space.read(put, 32)?);
            Ok(())
        })?;
        let word = |at: usize| u32::from_le_bytes(*fields[at..].first_chunk().expect("inside the fields"));
        let long = |at: usize| u64::from_le_bytes(*fields[at..].first_chunk().expect("inside the fields"));
        let target = word(16);
        if target >= self.nodes || target == self.node.0 {
            return Ok(Err(code::ARG_INVALID));
        }
        let pt = self.incoming.borrow_mut().get(running.place).header.pt;
        Ok(Ok(Header {
            kind: HeaderKind::Put,
            // A handler has nobody who would hear an acknowledgement.
            ack: AckRequest::None,
            fail: FailType::Ok,
            source: self.node,
            target: NodeId(target),
            pt,
            match_bits: long(0),
            length: u64::from(length),
            remote_offset: u64::from(word(20)),
            hdr_data: long(8),
            operation: 0,
        }))
    }

    async fn put_from_device(
        self: &Rc<Card>,
        running: &mut Running,
        local: u32,
        length: u32,
        put: u32,
    ) -> Result<u32, TrapKind> {
        let header = match self.put_header(running, length, put)? {
            Ok(_) if u64::from(length) > self.spec.packet_payload => return Ok(code::ARG_INVALID),
            Ok(header) => header,
            Err(code) => return Ok(code),
        };
        let buffer = self.with_space(running, |space| match length {
            0 => Ok(Buffer::zeroed(0)),
            _ => space.read(local, length).map(Buffer::copy_of),
        })?;
        let place = self.staging.acquire(1).await;
        running.path.advance(Stage::SendQueued, self.sim.now());
        let bytes = Bytes::Card { payload: Payload::real(buffer), path: running.path };
        let message = self.next_message();
        let leaving = Leaving { message, header, length: header.length, bytes, operation: None };
        let card = self.clone();
        self.sim.spawn(async move {
            card.send(leaving).await;
            drop(place);
        });
        Ok(code::OK)
    }

    async fn put_from_host(
        self: &Rc<Card>,
        running: &mut Running,
        offset: u32,
        length: u32,
        put: u32,
    ) -> Result<u32, TrapKind> {
        let header = match self.put_header(running, length, put)? {
            Ok(header) => header,
            Err(code) => return Ok(code),
        };
        let Some(start) = self.host_range(running, offset, length, 0) else { return Ok(code::SEGV) };
        let place = self.staging.acquire(1).await;
        running.path.advance(Stage::SendQueued, self.sim.now());
        let (card, path) = (self.clone(), running.path);
        self.sim.spawn(async move {
            card.fetch_and_send(header, start, None, path).await;
            drop(place);
        });
        Ok(code::OK)
    }

    /// Where a handler's offset lies in host memory: in the match entry's, or in the handlers' own region.
    fn host_range(&self, running: &Running, offset: u32, length: u32, options: u32) -> Option<u64> {
        let attachment = self.attachment_of(running.place)?;
        let (start, size) = match options {
            0 => (attachment.serving().start, attachment.serving().length),
            1 => attachment.handler_memory?,
            _ => return None,
        };
        (u64::from(offset) + u64::from(length) <= size).then(|| start + u64::from(offset))
    }

    /// Registers a DMA; with a handle the handler goes on, without one it waits.
    async fn started(
        self: &Rc<Card>,
        running: &mut Running,
        commands: &mut Commands,
        slot: Slot,
        handle: u32,
    ) -> Result<u32, TrapKind> {
        if handle == 0 {
            self.finished(running, &slot).await?;
            return Ok(code::OK);
        }
        let place = commands.place().expect("a place was looked for before the transfer was started");
        self.write_local(running, handle, &(place as u32).to_le_bytes())?;
        commands.transfers[place] = Some(slot);
        Ok(code::OK)
    }

    /// Whether one more DMA may be under way.
    fn has_place(commands: &mut Commands, handle: u32) -> bool {
        handle == 0 || commands.place().is_some()
    }

    async fn dma_to_host(
        self: &Rc<Card>,
        running: &mut Running,
        commands: &mut Commands,
        [local, offset, length, options, handle]: [u32; 5],
    ) -> Result<u32, TrapKind> {
        let Some(address) = self.host_range(running, offset, length, options) else { return Ok(code::SEGV) };
        if !Card::has_place(commands, handle) {
            return Ok(code::NO_SPACE);
        }
        if length == 0 {
            return self.started(running, commands, slot_done(), handle).await;
        }
        let bytes = self.with_space(running, |space| space.read(local, length).map(Buffer::copy_of))?;
        let handover = self.bus.write(running.message, u64::from(length), running.path);
        self.incoming_of(running, |incoming| incoming.handed = incoming.handed.max(handover.path.at()));
        let slot = slot_under_way();
        let (card, done, signal) = (self.clone(), slot.clone(), self.transferred.clone());
        self.sim.spawn(async move {
            card.sim.until(handover.path.at()).await;
            finish(&done, &signal, None);
            card.sim.until(handover.landed).await;
            card.write_host(address, u64::from(length), Payload::real(bytes));
        });
        self.started(running, commands, slot, handle).await
    }

    async fn dma_from_host(
        self: &Rc<Card>,
        running: &mut Running,
        commands: &mut Commands,
        [offset, local, length, options, handle]: [u32; 5],
    ) -> Result<u32, TrapKind> {
        let Some(address) = self.host_range(running, offset, length, options) else { return Ok(code::SEGV) };
        if !Card::has_place(commands, handle) {
            return Ok(code::NO_SPACE);
        }
        // Refused now rather than when the bytes come back.
        self.with_space(running, |space| space.write(local, length).map(|_| ()))?;
        let slot = slot_under_way();
        let (card, done, signal) = (self.clone(), slot.clone(), self.transferred.clone());
        let (message, path, bytes) = (running.message, running.path, u64::from(length));
        self.sim.spawn(async move {
            let burst = card.bus.read(&card.sim, message, bytes, bytes.max(1), path).await;
            let payload = card.memory.read(address, bytes).expect("entries are checked when they are appended");
            card.sim.until(burst.packet(0).tail).await;
            finish(&done, &signal, Some(Arriving { local, bytes: payload }));
        });
        self.started(running, commands, slot, handle).await
    }

    /// A 64-bit atomic operation on host memory: carried out when the request reaches the host; the value found
    /// comes back.
    async fn dma_atomic(
        self: &Rc<Card>,
        running: &mut Running,
        commands: &mut Commands,
        [offset, local, options, handle]: [u32; 4],
        change: impl Fn(u64) -> u64 + 'static,
    ) -> Result<u32, TrapKind> {
        let Some(address) = self.host_range(running, offset, 8, options) else { return Ok(code::SEGV) };
        if !Card::has_place(commands, handle) {
            return Ok(code::NO_SPACE);
        }
        self.with_space(running, |space| space.write(local, 8).map(|_| ()))?;
        let slot = slot_under_way();
        let (card, done, signal) = (self.clone(), slot.clone(), self.transferred.clone());
        let (message, path) = (running.message, running.path);
        self.sim.spawn(async move {
            let burst = card.bus.read(&card.sim, message, 8, 8, path).await;
            let found = card.memory.read(address, 8).expect("entries are checked when they are appended");
            if let Ok(bytes) = found.clone().into_buffer() {
                let value = u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes were read"));
                card.write_host(address, 8, Payload::copy_of(&change(value).to_le_bytes()));
            }
            card.sim.until(burst.packet(0).tail).await;
            finish(&done, &signal, Some(Arriving { local, bytes: found }));
        });
        self.started(running, commands, slot, handle).await
    }

    /// Waits until a DMA is done; what it brings is in the handler's memory then.
    async fn finished(&self, running: &mut Running, slot: &Slot) -> Result<(), TrapKind> {
        self.transferred.wait_until(|| matches!(*slot.borrow(), Transfer::Done(_))).await;
        let Transfer::Done(arriving) = slot.replace(Transfer::Done(None)) else { unreachable!("just seen") };
        let Some(Arriving { local, bytes }) = arriving else { return Ok(()) };
        let mut at = local;
        for segment in bytes.segments() {
            if let Segment::Real(bytes) = segment {
                self.write_local(running, at, bytes)?;
            }
            at += segment.len() as u32;
        }
        Ok(())
    }

    fn incoming_of<R>(&self, running: &Running, act: impl FnOnce(&mut Incoming) -> R) -> R {
        act(self.incoming.borrow_mut().get(running.place))
    }

    fn counter(
        self: &Rc<Card>,
        running: &mut Running,
        number: u32,
        pointer: u32,
        value: u64,
    ) -> Result<u32, TrapKind> {
        let serving = self.attachment_of(running.place).map(|a| a.serving());
        let Some(ct) = serving.and_then(|s| s.ct) else { return Ok(code::ARG_INVALID) };
        let path: Path = running.path;
        let by = CtEvent { success: value, failure: 0 };
        match number {
            number::CT_GET => {
                let found = self.interface.borrow().ct_get(ct).unwrap_or_default();
                self.write_u64(running, pointer, found.success)?;
            }
            number::CT_INC => self.with_effects(path, |interface, effects| {
                interface.ct_inc(ct, by, effects).expect("the entry's counter lives as long as the entry");
            }),
            _ => self.with_effects(path, |interface, effects| {
                interface.ct_set(ct, by, effects).expect("the entry's counter lives as long as the entry");
            }),
        }
        Ok(code::OK)
    }
}

fn slot_under_way() -> Slot {
    Rc::new(RefCell::new(Transfer::UnderWay))
}

fn slot_done() -> Slot {
    Rc::new(RefCell::new(Transfer::Done(None)))
}

fn finish(slot: &Slot, signal: &Signal, arriving: Option<Arriving>) {
    slot.replace(Transfer::Done(arriving));
    signal.notify_all();
}
