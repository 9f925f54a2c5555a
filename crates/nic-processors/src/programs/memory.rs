//! HPU memory of a card: allocation of pieces to applications.

use crate::programs::application::Application;
use nicety_nic_core::parts::FirstFit;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Alignment of pieces, in bytes.
const ALIGNMENT: u64 = 16;

/// Returns the HPU memory of a card.
pub(crate) fn hpu_memory(size: u32) -> Rc<RefCell<FirstFit>> {
    Rc::new(RefCell::new(FirstFit::new(0..size.into(), ALIGNMENT)))
}

/// A failed allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// Free bytes of the application or of the whole card.
    pub(crate) left: u64,
    /// Bytes of the largest free gap.
    pub(crate) largest: u64,
    /// Whether the application's own limit is the cause.
    pub(crate) own: bool,
}

/// A piece of HPU memory of one application. It is freed when dropped.
pub struct Piece {
    /// The application that uses it.
    pub application: Rc<Application>,
    /// Its offset in the card's HPU memory.
    pub start: u32,
    /// Its contents.
    pub bytes: RefCell<Vec<u8>>,
    taken: u32,
    from: Rc<RefCell<FirstFit>>,
    /// Number of attached handlers with this state.
    pub users: Cell<u32>,
}

impl Piece {
    /// Allocates a piece with these contents. An empty one takes no memory.
    pub fn new(
        from: &Rc<RefCell<FirstFit>>,
        application: &Rc<Application>,
        contents: Vec<u8>,
    ) -> Result<Piece, Short> {
        let (start, taken) = match contents.len() as u64 {
            0 => (0, 0),
            len => {
                let own = application.memory_left();
                if own.is_some_and(|left| left < len.next_multiple_of(ALIGNMENT)) {
                    let left = own.unwrap_or(0);
                    return Err(Short { left, largest: left, own: true });
                }
                let mut memory = from.borrow_mut();
                let short = Short { left: memory.left(), largest: memory.largest(), own: false };
                let (start, taken) = memory.take(len).ok_or(short)?;
                (start as u32, taken as u32)
            }
        };
        application.memory_taken(taken);
        let (application, from, bytes) = (application.clone(), from.clone(), RefCell::new(contents));
        Ok(Piece { application, start, bytes, taken, from, users: Cell::new(0) })
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.application.memory_given_back(self.taken);
        if self.taken > 0 {
            self.from.borrow_mut().give_back(self.start.into());
        }
    }
}
