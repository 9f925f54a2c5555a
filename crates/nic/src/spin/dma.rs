//! DMA of handlers: copies and atomic operations between HPU memory and host memory, blocking or under a handle.

use super::Card;
use super::commands::{Stop, code};
use super::receive::Incoming;
use super::run::Running;
use nicety_hpu::TrapKind;
use nicety_kernel::{Signal, Sim};
use nicety_types::{Payload, Resource, Stage};
use std::cell::RefCell;
use std::rc::Rc;

/// Where the bytes that a DMA brings belong.
struct Arriving {
    local: u32,
    bytes: Payload,
}

/// A place for a DMA of a handler.
enum Transfer {
    Free,
    UnderWay,
    /// Done, with the bytes it brings.
    Done(Option<Arriving>),
}

/// The DMAs that the handler on a thread has under way. Handles are indices of places; a place is free again once its
/// handle has been waited for or tested as done. The last place belongs to the blocking forms.
pub(super) struct Transfers {
    places: RefCell<Vec<Transfer>>,
    changed: Signal,
}

impl Transfers {
    /// Places for `handles` non-blocking transfers.
    pub(super) fn new(sim: &Sim, handles: u32) -> Transfers {
        let places = (0..=handles).map(|_| Transfer::Free).collect();
        Transfers { places: RefCell::new(places), changed: Signal::new(sim) }
    }

    fn blocking(&self) -> usize {
        self.places.borrow().len() - 1
    }

    fn free_handle(&self) -> Option<usize> {
        let free = self.places.borrow().iter().position(|place| matches!(place, Transfer::Free));
        free.filter(|&place| place != self.blocking())
    }

    /// Whether this number is the handle of a DMA that is done (`Some(true)`) or under way.
    pub(super) fn state(&self, handle: usize) -> Option<bool> {
        match self.places.borrow().get(handle)? {
            Transfer::Free => None,
            Transfer::UnderWay => Some(false),
            Transfer::Done(_) => Some(true),
        }
    }

    fn done(&self, place: usize, arriving: Option<Arriving>) {
        self.places.borrow_mut()[place] = Transfer::Done(arriving);
        self.changed.notify_all();
    }

    async fn wait(&self, place: usize) -> Option<Arriving> {
        self.changed.wait_until(|| self.state(place) == Some(true)).await;
        match std::mem::replace(&mut self.places.borrow_mut()[place], Transfer::Free) {
            Transfer::Done(arriving) => arriving,
            _ => unreachable!("just seen"),
        }
    }
}

impl Card {
    pub(super) fn transfers<'r>(&self, running: &'r Running) -> &'r Transfers {
        &running.thread.transfers
    }

    /// A place for one more DMA, and its handle written where the handler wants it; none where too many are under way.
    /// Handle 0 is that of the blocking forms.
    fn begin(&self, running: &mut Running, handle: u32) -> Result<Option<usize>, TrapKind> {
        let transfers = self.transfers(running);
        let place = match handle {
            0 => Some(transfers.blocking()),
            _ => transfers.free_handle(),
        };
        if let Some(place) = place {
            if handle != 0 {
                self.write_local(running, handle, &(place as u32).to_le_bytes())?;
            }
            self.transfers(running).places.borrow_mut()[place] = Transfer::UnderWay;
        }
        Ok(place)
    }

    /// With a handle the handler goes on, without one it waits.
    async fn begun(&self, running: &mut Running, place: usize, handle: u32) -> Result<u32, Stop> {
        if handle == 0 {
            self.finished(running, place).await?;
        }
        Ok(code::OK)
    }

    pub(super) async fn dma_to_host(
        self: &Rc<Card>,
        running: &mut Running,
        [local, offset, length, options, handle]: [u32; 5],
    ) -> Result<u32, Stop> {
        let Some(address) = self.host_range(running, offset, length, options) else { return Ok(code::SEGV) };
        let payload = self.take_local(running, local, length)?;
        let Some(place) = self.begin(running, handle)? else { return Ok(code::NO_SPACE) };
        if length == 0 {
            self.transfers(running).done(place, None);
            return self.begun(running, place, handle).await;
        }
        let bytes = u64::from(length);
        let handover = self.bus.write(running.message, address, bytes, running.path);
        let (message, from) = (Some(running.message), running.path.at());
        self.recorder.slice(Resource::Dma, from, handover.landed, message, "write");
        self.write_behind(handover.landed, address, bytes, payload);
        self.incoming_of(running, |incoming| incoming.handed = incoming.handed.max(handover.path.at()));
        let (card, thread) = (self.clone(), running.thread.clone());
        self.sim.spawn(async move {
            card.sim.until(handover.path.at()).await;
            thread.transfers.done(place, None);
        });
        self.begun(running, place, handle).await
    }

    pub(super) async fn dma_from_host(
        self: &Rc<Card>,
        running: &mut Running,
        [offset, local, length, options, handle]: [u32; 5],
    ) -> Result<u32, Stop> {
        let Some(address) = self.host_range(running, offset, length, options) else { return Ok(code::SEGV) };
        if length > 0 {
            // Refused now rather than when the bytes come back.
            self.with_space(running, |space| space.write(local, length).map(|_| ()))?;
        }
        let Some(place) = self.begin(running, handle)? else { return Ok(code::NO_SPACE) };
        if length == 0 {
            self.transfers(running).done(place, None);
            return self.begun(running, place, handle).await;
        }
        let card = self.clone();
        let (thread, message, path, bytes) =
            (running.thread.clone(), running.message, running.path, u64::from(length));
        self.sim.spawn(async move {
            let transfer = card.bus.read(message, address, bytes, bytes, path).await;
            let payload = card.read_host(address, bytes);
            let tail = transfer.packet(0).await.tail;
            card.recorder.slice(Resource::Dma, path.at(), tail, Some(message), "read");
            card.sim.until(tail).await;
            thread.transfers.done(place, Some(Arriving { local, bytes: payload }));
        });
        self.begun(running, place, handle).await
    }

    /// A 64-bit atomic operation on host memory: carried out when the request reaches the host; the value found
    /// comes back.
    pub(super) async fn dma_atomic(
        self: &Rc<Card>,
        running: &mut Running,
        [offset, local, options, handle]: [u32; 4],
        change: impl Fn(u64) -> u64 + 'static,
    ) -> Result<u32, Stop> {
        let Some(address) = self.host_range(running, offset, 8, options) else { return Ok(code::SEGV) };
        self.with_space(running, |space| space.write(local, 8).map(|_| ()))?;
        let Some(place) = self.begin(running, handle)? else { return Ok(code::NO_SPACE) };
        let card = self.clone();
        let (thread, message, path) = (running.thread.clone(), running.message, running.path);
        self.sim.spawn(async move {
            let mut path = path;
            card.atomics.clear_of(address, 8).await;
            path.advance(Stage::AtomicQueued, card.sim.now());
            let transfer = card.bus.read(message, address, 8, 8, path).await;
            let found = card.read_host(address, 8);
            if let Ok(bytes) = found.clone().into_buffer() {
                let value = u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes were read"));
                card.write_host(address, 8, &Payload::copy_of(&change(value).to_le_bytes()));
            }
            let tail = transfer.packet(0).await.tail;
            card.recorder.slice(Resource::Dma, path.at(), tail, Some(message), "atomic");
            card.sim.until(tail).await;
            thread.transfers.done(place, Some(Arriving { local, bytes: found }));
        });
        self.begun(running, place, handle).await
    }

    /// Waits until a DMA is done; what it brings is in the handler's memory then, and its place is free.
    pub(super) async fn finished(&self, running: &mut Running, place: usize) -> Result<(), Stop> {
        let arriving = self.transfers(running).wait(place).await;
        let Some(Arriving { local, bytes }) = arriving else { return Ok(()) };
        let len = bytes.len();
        let bytes = bytes.into_buffer().map_err(|_| Stop::PhantomMemory { len })?;
        Ok(self.write_local(running, local, &bytes)?)
    }

    /// A handler ends only when all it has started is done.
    pub(super) async fn finish_transfers(&self, running: &mut Running) -> Result<(), Stop> {
        let mut result = Ok(());
        for place in 0..=self.transfers(running).blocking() {
            if self.transfers(running).state(place).is_some() {
                result = result.and(self.finished(running, place).await);
            }
        }
        result
    }

    fn incoming_of<R>(&self, running: &Running, act: impl FnOnce(&mut Incoming) -> R) -> R {
        act(self.incoming.borrow_mut().get(running.place))
    }
}
