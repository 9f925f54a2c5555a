//! The DMA transfers in flight of the handlers on a thread.

use crate::programs::attachments::Attachment;
use crate::programs::program::Kind;
use nicety_kernel::{Signal, Sim};
use nicety_types::Payload;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Bytes read by a DMA, with their destination.
pub(crate) struct Arriving {
    pub(crate) local: u32,
    pub(crate) bytes: Payload,
}

/// A slot for a DMA of a handler.
pub(crate) enum Transfer {
    Free,
    /// In flight. `in_packet` says whether it reads or writes bytes of the handler's packet.
    UnderWay {
        in_packet: bool,
    },
    /// Done, with the bytes that it has read.
    Done(Option<Arriving>),
    /// In flight after the end of its handler.
    Left(Left),
}

/// The remains of a handler that ended before its transfer.
pub(crate) struct Left {
    pub(crate) core: usize,
    pub(crate) kind: Kind,
    pub(crate) attachment: Rc<Attachment>,
    /// Index of its message among the messages in progress.
    pub(crate) place: usize,
    /// The packet that keeps its slot for this transfer, by its offset in the message.
    pub(crate) packet: Option<u64>,
}

/// The DMAs in flight of the handlers on a thread. Handles are indices of slots. A slot is free again once its handle
/// has been waited for or tested as done. After its handler's end, it is free once the DMA is done. The last slot
/// belongs to the blocking forms.
pub(crate) struct Transfers {
    places: RefCell<Vec<Transfer>>,
    /// Number of occupied slots.
    taken: Cell<usize>,
    pub(crate) changed: Signal,
}

impl Transfers {
    /// Returns slots for `handles` non-blocking transfers.
    pub(crate) fn new(sim: &Sim, handles: u32) -> Transfers {
        let places = (0..=handles).map(|_| Transfer::Free).collect();
        Transfers { places: RefCell::new(places), taken: Cell::new(0), changed: Signal::new(sim) }
    }

    pub(crate) fn blocking(&self) -> usize {
        self.places.borrow().len() - 1
    }

    pub(crate) fn free_handle(&self) -> Option<usize> {
        let free = self.places.borrow().iter().position(|place| matches!(place, Transfer::Free));
        free.filter(|&place| place != self.blocking())
    }

    /// Returns whether every slot is free.
    pub(crate) fn all_free(&self) -> bool {
        self.taken.get() == 0
    }

    /// Returns whether transfers of ended handlers occupy slots.
    pub(crate) fn some_left(&self) -> bool {
        self.places.borrow().iter().any(|place| matches!(place, Transfer::Left(_)))
    }

    /// Returns whether the DMA with this handle is done (`Some(true)`) or in flight (`Some(false)`).
    pub(crate) fn state(&self, handle: usize) -> Option<bool> {
        match self.places.borrow().get(handle)? {
            Transfer::Free | Transfer::Left(_) => None,
            Transfer::UnderWay { .. } => Some(false),
            Transfer::Done(_) => Some(true),
        }
    }

    pub(crate) fn set(&self, place: usize, transfer: Transfer) -> Transfer {
        let takes = usize::from(!matches!(transfer, Transfer::Free));
        let before = std::mem::replace(&mut self.places.borrow_mut()[place], transfer);
        let took = usize::from(!matches!(before, Transfer::Free));
        self.taken.set(self.taken.get() + takes - took);
        before
    }

    /// Waits until a DMA is done, and frees its slot.
    pub(crate) async fn wait(&self, place: usize) -> Option<Arriving> {
        self.changed.wait_until(|| self.state(place) == Some(true)).await;
        match self.set(place, Transfer::Free) {
            Transfer::Done(arriving) => arriving,
            _ => unreachable!("just seen"),
        }
    }
}
