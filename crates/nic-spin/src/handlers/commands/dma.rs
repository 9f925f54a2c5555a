//! DMA of handlers: copies and atomic operations between HPU memory and host memory. They block the handler, or return
//! a handle.
//!
//! A handler may end while transfers are in flight, and its processor is then free. The handler's message waits for
//! these transfers before its completion handler and before its completion. The packet keeps its slot until the
//! transfers have read or written its bytes.

use crate::Card;
use crate::incoming::Incoming;
use crate::stages;
use nicety_hpu::TrapKind;
use nicety_nic_core::FailureKind;
use nicety_nic_processors::commands::codes::{Stop, code, phantom_memory};
use nicety_nic_processors::commands::transfers::{Arriving, Left, Transfer, Transfers};
use nicety_nic_processors::contention::exclusive::Act;
use nicety_nic_processors::contention::{ObservedAccess, Word};
use nicety_nic_processors::hpus::Thread;
use nicety_nic_processors::programs::program::map;
use nicety_nic_processors::running::Running;
use nicety_portals::FailType;
use nicety_types::{Path, Payload, Resource, Stage};
use std::rc::Rc;

impl Card {
    pub(crate) fn transfers<'r>(&self, running: &'r Running) -> &'r Transfers {
        &running.thread.transfers
    }

    /// Takes a slot for another DMA, and writes the slot's number to the address `handle` in the handler's memory. The
    /// address is 0 for a blocking DMA. Returns `None` if the handler itself has too many DMAs in flight. If DMAs of
    /// earlier handlers occupy the slots, waits for a slot, and accounts for the wait in the stage `queued`. `local` is
    /// the handler's memory that the DMA reads or writes.
    async fn begin(
        &self,
        running: &mut Running,
        handle: u32,
        local: u32,
        queued: Stage,
    ) -> Result<Option<usize>, TrapKind> {
        let thread = running.thread.clone();
        let transfers = &thread.transfers;
        if handle != 0 && transfers.free_handle().is_none() && transfers.some_left() {
            transfers.changed.wait_until(|| transfers.free_handle().is_some()).await;
            running.path.advance(queued, self.sim.now());
        }
        let place = match handle {
            0 => Some(transfers.blocking()),
            _ => transfers.free_handle(),
        };
        if let Some(place) = place {
            if handle != 0 {
                self.processors().write_local(running, handle, &(place as u32).to_le_bytes())?;
            }
            let in_packet = (map::PACKET..map::CODE).contains(&local);
            transfers.set(place, Transfer::UnderWay { in_packet });
        }
        Ok(place)
    }

    /// Returns at once if the call has a handle. Otherwise waits until the DMA is done.
    async fn begun(&self, running: &mut Running, place: usize, handle: u32) -> Result<u32, Stop> {
        if handle == 0 {
            self.finished(running, place).await?;
        }
        Ok(code::OK)
    }

    /// Ends a DMA at the end of `path`.
    fn transferred(self: &Rc<Card>, thread: &Thread, place: usize, arriving: Option<Arriving>, path: &Path) {
        let transfers = &thread.transfers;
        match transfers.set(place, Transfer::Free) {
            Transfer::UnderWay { .. } => {
                transfers.set(place, Transfer::Done(arriving));
            }
            Transfer::Left(left) => self.transferred_later(&left, arriving, path),
            Transfer::Free | Transfer::Done(_) => unreachable!("it was in flight"),
        }
        transfers.changed.notify_all();
    }

    pub(crate) async fn dma_to_host(
        self: &Rc<Card>,
        running: &mut Running,
        [local, offset, length, options, handle]: [u32; 5],
    ) -> Result<u32, Stop> {
        let Some(address) = self.host_range(running, offset, length, options) else { return Ok(code::SEGV) };
        let payload = self.processors().take_local(running, local, length)?;
        let place = self.begin(running, handle, local, Stage::DEPOSIT_QUEUED).await?;
        let Some(place) = place else { return Ok(code::NO_SPACE) };
        if length == 0 {
            self.transfers(running).set(place, Transfer::Done(None));
            return self.begun(running, place, handle).await;
        }
        let bytes = u64::from(length);
        let handover = self.dma.write(running.message, address, bytes, payload, running.path.clone());
        let (message, from) = (Some(running.message), running.path.at());
        let pc = running.thread.state.borrow().context.pc();
        let seen = ObservedAccess {
            now: handover.landed,
            ..self.processors().seen(running, Word::Host(address), pc, Act::Store)
        };
        self.processors().contention.written(&seen, address, bytes);
        self.recorder.slice(Resource::DMA, from, handover.landed, message, "write");
        if handle == 0 {
            // The handler itself waits, so the transfer needs no task.
            self.sim.until(handover.path.at()).await;
            self.transfers(running).set(place, Transfer::Free);
            return Ok(code::OK);
        }
        let (card, thread) = (self.clone(), running.thread.clone());
        self.sim.spawn(async move {
            card.sim.until(handover.path.at()).await;
            card.transferred(&thread, place, None, &handover.path);
        });
        self.begun(running, place, handle).await
    }

    pub(crate) async fn dma_from_host(
        self: &Rc<Card>,
        running: &mut Running,
        [offset, local, length, options, handle]: [u32; 5],
    ) -> Result<u32, Stop> {
        let Some(address) = self.host_range(running, offset, length, options) else { return Ok(code::SEGV) };
        if length > 0 {
            // A wrong address stops the handler now instead of when the bytes return.
            running.with_space(|space| space.write(local, length).map(|_| ()))?;
        }
        let place = self.begin(running, handle, local, Stage::FETCH_QUEUED).await?;
        let Some(place) = place else { return Ok(code::NO_SPACE) };
        if length == 0 {
            self.transfers(running).set(place, Transfer::Done(None));
            return self.begun(running, place, handle).await;
        }
        let card = self.clone();
        let (thread, message, path, bytes) =
            (running.thread.clone(), running.message, running.path.clone(), u64::from(length));
        self.sim.spawn(async move {
            let (payload, flight) = card.dma.read(message, address, bytes, path.clone()).await;
            let landed = flight.landed();
            card.recorder.slice(Resource::DMA, path.at(), landed.at(), Some(message), "read");
            card.sim.until(landed.at()).await;
            card.transferred(&thread, place, Some(Arriving { local, bytes: payload }), &landed);
        });
        self.begun(running, place, handle).await
    }

    /// Executes a 64-bit atomic operation on host memory at the time when the request reaches the host. The old value
    /// goes to the address `local` in the handler's memory.
    pub(crate) async fn dma_atomic(
        self: &Rc<Card>,
        running: &mut Running,
        [offset, local, options, handle]: [u32; 4],
        act: Act,
        change: impl Fn(u64) -> u64 + 'static,
    ) -> Result<u32, Stop> {
        let Some(address) = self.host_range(running, offset, 8, options) else { return Ok(code::SEGV) };
        running.with_space(|space| space.write(local, 8).map(|_| ()))?;
        let place = self.begin(running, handle, local, Stage::FETCH_QUEUED).await?;
        let Some(place) = place else { return Ok(code::NO_SPACE) };
        let card = self.clone();
        let (thread, message, path) = (running.thread.clone(), running.message, running.path.clone());
        let (run, pc) = (running.number, running.thread.state.borrow().context.pc());
        let image = running.attachment.program.handlers.image.clone();
        self.sim.spawn(async move {
            let mut path = path;
            card.atomics.clear_of(address, 8).await;
            path.advance(stages::ATOMIC_QUEUED, card.sim.now());
            let transfer = card.dma.bus().read(message, address, 8, 8, path.clone()).await;
            let found = card.dma.bytes(address, 8);
            if let Ok(bytes) = found.clone().into_buffer() {
                let value = u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes were read"));
                let new = change(value);
                card.dma.change(address, &Payload::copy_of(&new.to_le_bytes()));
                let (word, now, changed) = (Word::Host(address), card.sim.now(), new != value);
                let seen = ObservedAccess { word, run, image: &image, pc, now, act, changed };
                card.processors().contention.see(&seen, || format!("host memory at {address:#x}"));
            }
            let landed = transfer.packet(0).await.landed();
            card.recorder.slice(Resource::DMA, path.at(), landed.at(), Some(message), "atomic");
            card.sim.until(landed.at()).await;
            card.transferred(&thread, place, Some(Arriving { local, bytes: found }), &landed);
        });
        self.begun(running, place, handle).await
    }

    /// Waits until a DMA is done, writes its bytes to the handler's memory, and frees its slot.
    pub(crate) async fn finished(&self, running: &mut Running, place: usize) -> Result<(), Stop> {
        let arriving = self.transfers(running).wait(place).await;
        self.arrived(running, arriving)
    }

    /// Writes the bytes of a DMA to the handler's memory.
    fn arrived(&self, running: &mut Running, arriving: Option<Arriving>) -> Result<(), Stop> {
        let Some(Arriving { local, bytes }) = arriving else { return Ok(()) };
        let len = bytes.len();
        let bytes = bytes.into_buffer().map_err(|_| Stop::PhantomMemory { len })?;
        Ok(self.processors().write_local(running, local, &bytes)?)
    }

    /// Ends a handler's use of its transfers. Writes the bytes of completed DMAs to the handler's memory. Makes the
    /// handler's message wait for the other DMAs.
    pub(crate) fn leave_transfers(&self, running: &mut Running) -> Result<(), Stop> {
        let mut result = Ok(());
        if self.transfers(running).all_free() {
            return result;
        }
        for index in 0..self.transfers(running).blocking() {
            match self.transfers(running).set(index, Transfer::Free) {
                Transfer::Free => {}
                Transfer::Done(arriving) => result = result.and(self.arrived(running, arriving)),
                Transfer::UnderWay { in_packet } => {
                    let left = self.leave(running, in_packet);
                    self.transfers(running).set(index, Transfer::Left(left));
                }
                left @ Transfer::Left(_) => {
                    self.transfers(running).set(index, left);
                }
            }
        }
        result
    }

    /// Makes a message wait for a transfer that its handler leaves in flight.
    fn leave(&self, running: &Running, in_packet: bool) -> Left {
        let packet = running.packet.filter(|_| in_packet);
        self.incoming_of(running, |incoming| {
            incoming.unsettled += 1;
            if let Some(offset) = packet {
                incoming.lend(offset);
            }
        });
        self.receive.contexts().completes();
        Left {
            core: running.thread.core,
            kind: running.kind,
            attachment: running.attachment.clone(),
            place: running.place,
            packet,
        }
    }

    /// Ends a transfer of a handler that has ended. Bytes for memory that handlers share are written. Bytes for the
    /// handler's stack or packet are discarded.
    fn transferred_later(self: &Rc<Card>, left: &Left, arriving: Option<Arriving>, path: &Path) {
        let Left { core, kind, ref attachment, place, packet } = *left;
        if let Some(Arriving { local, bytes }) = arriving
            && let Err(len) = attachment.bring(local, bytes)
        {
            let text = format!("{} stopped: {}", kind.name(), phantom_memory(len));
            self.processors().report_failure(FailureKind::Trap, Some(core), text);
            let mut table = self.incoming.borrow_mut();
            let fail = &mut table.get(place).fail;
            if fail.is_ok() {
                *fail = FailType::HandlerError;
                attachment.application().count(|statistics| statistics.failed += 1);
            }
        }
        if let Some(offset) = packet {
            self.slot_returned(place, offset);
        }
        self.finish(place, path);
        self.receive.contexts().completed();
    }

    fn incoming_of<R>(&self, running: &Running, act: impl FnOnce(&mut Incoming) -> R) -> R {
        act(self.incoming.borrow_mut().get(running.place))
    }
}
