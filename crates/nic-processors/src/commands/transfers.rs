//! The DMA transfers in flight of the handlers on a thread.

use crate::programs::attachments::Attachment;
use crate::programs::program::Kind;
use crate::spec::pspin_map;
use nicety_hpu::{AddressSpace, Region};
use nicety_kernel::{Signal, Sim};
use nicety_types::Payload;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Bytes read by a DMA, with their destination.
pub struct Arriving {
    /// Their address in the handler's memory.
    pub local: u32,
    /// The bytes.
    pub bytes: Payload,
}

/// A slot for a DMA of a handler.
pub enum Transfer {
    /// Without a DMA.
    Free,
    /// In flight.
    UnderWay {
        /// Whether it reads or writes bytes of the handler's packet.
        in_packet: bool,
    },
    /// Done, with the bytes that it has read.
    Done(Option<Arriving>),
    /// In flight after the end of its handler.
    Left(Left),
}

/// The remains of a handler that ended before its transfer.
pub struct Left {
    /// The core of the handler.
    pub core: usize,
    /// The kind of the handler.
    pub kind: Kind,
    /// The attached handlers.
    pub attachment: Rc<Attachment>,
    /// Index of its message among the messages in progress.
    pub place: usize,
    /// The packet that keeps its slot for this transfer, by its offset in the message.
    pub packet: Option<u64>,
}

/// The DMAs in flight of the handlers on a thread. Handles are indices of slots. A slot is free again once its handle
/// has been waited for or tested as done. After its handler's end, it is free once the DMA is done. The last slot
/// belongs to the blocking forms.
pub struct Transfers {
    places: RefCell<Vec<Transfer>>,
    /// Number of occupied slots.
    taken: Cell<usize>,
    /// Notified when a DMA has ended.
    pub changed: Signal,
}

impl Transfers {
    /// Returns slots for `handles` non-blocking transfers.
    pub fn new(sim: &Sim, handles: u32) -> Transfers {
        let places = (0..=handles).map(|_| Transfer::Free).collect();
        Transfers { places: RefCell::new(places), taken: Cell::new(0), changed: Signal::new(sim) }
    }

    /// Returns the slot of the blocking forms.
    pub fn blocking(&self) -> usize {
        self.places.borrow().len() - 1
    }

    /// Returns a free slot for a handle, if there is one.
    pub fn free_handle(&self) -> Option<usize> {
        let free = self.places.borrow().iter().position(|place| matches!(place, Transfer::Free));
        free.filter(|&place| place != self.blocking())
    }

    /// Returns whether every slot is free.
    pub fn all_free(&self) -> bool {
        self.taken.get() == 0
    }

    /// Returns whether transfers of ended handlers occupy slots.
    pub fn some_left(&self) -> bool {
        self.places.borrow().iter().any(|place| matches!(place, Transfer::Left(_)))
    }

    /// Returns whether the DMA with this handle is done (`Some(true)`) or in flight (`Some(false)`).
    pub fn state(&self, handle: usize) -> Option<bool> {
        match self.places.borrow().get(handle)? {
            Transfer::Free | Transfer::Left(_) => None,
            Transfer::UnderWay { .. } => Some(false),
            Transfer::Done(_) => Some(true),
        }
    }

    /// Sets a slot. Returns what it held.
    pub fn set(&self, place: usize, transfer: Transfer) -> Transfer {
        let takes = usize::from(!matches!(transfer, Transfer::Free));
        let before = std::mem::replace(&mut self.places.borrow_mut()[place], transfer);
        let took = usize::from(!matches!(before, Transfer::Free));
        self.taken.set(self.taken.get() + takes - took);
        before
    }

    /// Waits until a DMA is done, and frees its slot.
    pub async fn wait(&self, place: usize) -> Option<Arriving> {
        self.changed.wait_until(|| self.state(place) == Some(true)).await;
        match self.set(place, Transfer::Free) {
            Transfer::Done(arriving) => arriving,
            _ => unreachable!("just seen"),
        }
    }
}

impl Attachment {
    /// Writes the bytes of a DMA to state or data of the program, and breaks reservations there.
    ///
    /// # Errors
    /// Their number, if they are phantom.
    pub fn bring(&self, local: u32, bytes: Payload) -> Result<(), u64> {
        let (mut data, mut state) = (self.program.data.bytes.borrow_mut(), self.state.bytes.borrow_mut());
        let mut pads = self.program.pads.borrow_mut();
        let mut space = AddressSpace::new()
            .with(Region::memory("the state", self.state_address(), &mut state))
            .with(Region::memory("the program's data", self.program.handlers.data_address(), &mut data));
        if !pads.is_empty() {
            for (cluster, pad) in pads.chunks_mut(self.program.pad_bytes as usize).enumerate() {
                space.push(Region::memory("the scratchpad", pspin_map::pad(cluster), pad));
            }
        }
        let len = bytes.len() as u32;
        let Ok(memory) = space.write(local, len) else { return Ok(()) };
        memory.copy_from_slice(&bytes.into_buffer().map_err(|_| u64::from(len))?);
        self.application().reservations.borrow_mut().invalidate(local, len);
        Ok(())
    }
}
