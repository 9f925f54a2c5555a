//! Guards for the resources of a call. If the call fails or is dropped, its guards release these resources.

use crate::interface::{Kind, Progress};
use crate::process::{Local, Process};
use nicety_types::MessageId;

/// A piece of the Buffer Pool.
pub(crate) struct Piece<'p> {
    process: &'p Process,
    address: Option<u64>,
}

impl<'p> Piece<'p> {
    /// Takes a piece of this size. Returns `None` if the pool has no free piece of this size.
    pub(crate) fn take(process: &'p Process, bytes: u64) -> Option<Piece<'p>> {
        let address = process.pool.borrow_mut().as_mut()?.take(bytes)?;
        Some(Piece { process, address: Some(address) })
    }

    /// Returns the address of the piece.
    pub(crate) fn address(&self) -> u64 {
        self.address.expect("a piece has an address until it is kept")
    }

    /// Keeps the piece for its operation, which frees the piece later. Returns the address of the piece.
    fn keep(mut self) -> u64 {
        self.address.take().expect("a piece is kept once")
    }
}

impl Drop for Piece<'_> {
    fn drop(&mut self) {
        if let (Some(address), Some(pool)) = (self.address, &mut *self.process.pool.borrow_mut()) {
            pool.give_back(address);
        }
    }
}

/// Locked pages. After this guard has been dropped, the next system call that locks pages unlocks these pages.
pub(crate) struct Locked<'p> {
    process: &'p Process,
    pages: u64,
}

impl<'p> Locked<'p> {
    /// Returns a guard for pages that the kernel begins to lock.
    pub(crate) const fn of(process: &'p Process, pages: u64) -> Locked<'p> {
        Locked { process, pages }
    }

    /// Returns the number of pages.
    pub(crate) const fn pages(&self) -> u64 {
        self.pages
    }

    /// Ends the guard without a release of the pages. Returns the number of pages. Another call unlocks them later.
    pub(crate) fn keep(mut self) -> u64 {
        std::mem::take(&mut self.pages)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.process.locked.set(self.process.locked.get() + self.pages);
    }
}

/// A Buffer Pool during its registration. A drop of this value undoes the registration.
pub(crate) struct Registering<'p> {
    process: &'p Process,
    vni: Option<u32>,
}

impl<'p> Registering<'p> {
    /// Returns a guard for the Buffer Pool that the process has just allocated.
    pub(crate) const fn of(process: &'p Process, vni: u32) -> Registering<'p> {
        Registering { process, vni: Some(vni) }
    }

    /// Completes the registration.
    pub(crate) fn done(mut self) {
        self.vni = None;
    }
}

impl Drop for Registering<'_> {
    fn drop(&mut self) {
        let Some(vni) = self.vni else { return };
        let Some(pool) = self.process.pool.take() else { return };
        let begin = pool.memory.address();
        self.process.own.borrow_mut().retain(|&(own, _)| own != begin);
        let card = &self.process.card;
        let descriptors = card.interface(vni, |interface| std::mem::take(&mut interface.pool_memory));
        card.card_memory.borrow_mut().give_back(descriptors.unwrap_or_default());
        card.let_on();
    }
}

/// An operation that is not posted yet. A drop of this value undoes the operation.
pub(crate) struct Begun<'p> {
    process: &'p Process,
    vni: u32,
    operation: Option<u64>,
    message: MessageId,
    piece: Option<Piece<'p>>,
    locked: Option<Locked<'p>>,
}

impl<'p> Begun<'p> {
    /// Begins an operation, which occupies a context of the interface from now on.
    pub(crate) fn new(
        process: &'p Process,
        vni: u32,
        operation: u64,
        kind: Kind,
        piece: Option<Piece<'p>>,
    ) -> Begun<'p> {
        let card = &process.card;
        card.interface(vni, |interface| interface.operations.insert(operation, (kind, Progress::Pending)));
        let message = card.next_message();
        Begun { process, vni, operation: Some(operation), message, piece, locked: None }
    }

    pub(crate) const fn message(&self) -> MessageId {
        self.message
    }

    /// Returns the address of the operation's piece of the Buffer Pool, if the operation has a piece.
    pub(crate) fn piece(&self) -> Option<u64> {
        self.piece.as_ref().map(Piece::address)
    }

    /// Keeps these pages locked until the operation ends.
    pub(crate) fn lock(&mut self, locked: Locked<'p>) {
        self.locked = Some(locked);
    }

    /// Marks the operation as posted, and returns its number. When the operation ends, at most `copy_to.1` received
    /// bytes are copied to the address `copy_to.0`.
    pub(crate) fn posted(mut self, copy_to: Option<(u64, u64)>) -> u64 {
        let operation = self.operation.take().expect("an operation is posted once");
        let piece = self.piece.take().map(Piece::keep);
        let pages = self.locked.take().map_or(0, Locked::keep);
        let local = Local { message: self.message, piece, copy_to, pages };
        self.process.operations.borrow_mut().insert(operation, local);
        operation
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if let Some(operation) = self.operation {
            self.process.card.interface(self.vni, |interface| interface.operations.remove(&operation));
        }
    }
}

/// A guard for an operation while a call processes its completion. After a drop of this value, another call can process
/// the completion again.
pub(crate) struct Ending<'p> {
    process: &'p Process,
    vni: u32,
    operation: u64,
    entry: Option<(Kind, Progress)>,
    local: Option<Local>,
}

impl<'p> Ending<'p> {
    /// Takes a completed operation. No other call can take the operation while this guard exists.
    pub(crate) fn of(process: &'p Process, vni: u32, operation: u64) -> Ending<'p> {
        let entry =
            process.card.interface(vni, |interface| interface.operations.remove(&operation)).flatten();
        let local = process.operations.borrow_mut().remove(&operation);
        Ending { process, vni, operation, entry, local }
    }

    /// Returns the copy to make from the Buffer Pool: source address, destination address, and maximum number of bytes.
    /// `None` if there is no copy to make.
    pub(crate) fn copy(&self) -> Option<(u64, u64, u64)> {
        let local = self.local.as_ref()?;
        let (to, room) = local.copy_to?;
        Some((local.piece?, to, room))
    }

    /// Ends the processing of the completion, and frees the operation's resources.
    pub(crate) fn end(mut self) {
        self.entry = None;
        let Some(Local { piece, pages, .. }) = self.local.take() else { return };
        drop(Locked::of(self.process, pages));
        drop(Piece { process: self.process, address: piece });
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let (operation, entry, local) = (self.operation, self.entry.take(), self.local.take());
        if let Some(entry) = entry {
            self.process.card.interface(self.vni, |interface| interface.operations.insert(operation, entry));
        }
        if let Some(local) = local {
            self.process.operations.borrow_mut().insert(operation, local);
        }
    }
}
