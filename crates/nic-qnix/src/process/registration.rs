//! A process's system calls: open and close the process's interface, register a Buffer Pool, lock pages. Also copies
//! between the process's memory and its pool.

use crate::QnixError;
use crate::interface::{Interface, Kind};
use crate::process::holds::{Locked, Registering};
use crate::process::pool::BufferPool;
use crate::process::{Process, TransferMethod};
use nicety_host::{Allocation, MemoryError};
use nicety_kernel::Signal;
use nicety_types::{MessageId, Path, Stage};

impl Process {
    /// Makes the kernel register the process with the card. Returns the number of the process's interface: the lowest
    /// free number.
    ///
    /// # Errors
    /// When the process has an interface already, or no interface is free.
    pub async fn open(&self, path: &mut Path) -> Result<u32, QnixError> {
        self.card.kernel.call(path).await;
        self.register()
    }

    /// Registers the process and a Buffer Pool of `pool` bytes as part of set-up, which takes no virtual time and is
    /// not counted. Returns the number of its interface.
    ///
    /// # Errors
    /// Like [`Process::open`] and [`Process::register_pool`].
    pub fn set_up(&self, pool: u64) -> Result<u32, QnixError> {
        let vni = self.register()?;
        self.take_pool(vni, pool)?;
        Ok(vni)
    }

    fn register(&self) -> Result<u32, QnixError> {
        let card = &self.card;
        if let Some(&(vni, _)) = card.interfaces().iter().find(|(_, owner)| *owner == self.number) {
            return Err(QnixError::Open { vni });
        }
        let mut interfaces = card.interfaces.borrow_mut();
        let limit = card.spec.limits.vnis;
        let free = interfaces.iter().position(Option::is_none).ok_or(QnixError::NoInterface { limit })?;
        interfaces[free] = Some(Interface::new(self.number, Signal::new(&card.sim)));
        let vni = free as u32;
        let mut open = card.open.borrow_mut();
        let at = open.partition_point(|&other| other < vni);
        open.insert(at, vni);
        card.changed.notify_all();
        Ok(vni)
    }

    /// Makes the kernel release the interface and its Buffer Pool. Messages that no receive has taken are dropped and
    /// counted as strays.
    ///
    /// # Errors
    /// When the interface does not belong to the process, or operations are pending.
    pub async fn close(&self, vni: u32, path: &mut Path) -> Result<(), QnixError> {
        self.check_idle(vni)?;
        let card = &self.card;
        card.kernel.call(path).await;
        // Another thread of the process may have posted an operation or closed the interface during the system call.
        self.check_idle(vni)?;
        let pool = self.pool.take().map_or(0, |pool| self.pages(pool.memory.address(), pool.memory.len()));
        let pages = self.locked.take() + pool;
        card.open.borrow_mut().retain(|&other| other != vni);
        let closed = card.interfaces.borrow_mut()[vni as usize].take();
        if let Some(Interface { matching, receiving, pool_memory, .. }) = closed {
            card.card_memory.borrow_mut().give_back(pool_memory);
            debug_assert!(receiving.is_empty(), "a receive that has not ended is an operation");
            let strays = card.forget(&matching);
            card.count(|counted| counted.strays += strays);
        }
        card.let_on();
        // The card no longer uses these pages.
        if pages > 0 {
            card.kernel.unpin(pages, path).await;
        }
        Ok(())
    }

    /// Checks that the interface belongs to the process and has no pending operations.
    fn check_idle(&self, vni: u32) -> Result<(), QnixError> {
        self.check(vni)?;
        match self.card.interface(vni, |interface| interface.operations.len()) {
            None | Some(0) => Ok(()),
            Some(operations) => Err(QnixError::Pending { operations }),
        }
    }

    /// Registers a Buffer Pool: the kernel locks and translates its pages once, and the card gets their descriptors.
    /// Returns the pool.
    ///
    /// # Errors
    /// When the interface does not belong to the process, or the process has a pool already. Also when the pool is too
    /// large for `limits.pool`, host memory or the card's memory.
    pub async fn register_pool(
        &self,
        vni: u32,
        bytes: u64,
        path: &mut Path,
    ) -> Result<Allocation, QnixError> {
        let memory = self.take_pool(vni, bytes)?;
        let registering = Registering::of(self, vni);
        let card = &self.card;
        let pages = self.pages(memory.address(), bytes);
        card.kernel.call(path).await;
        let locked = Locked::of(self, pages);
        card.kernel.pin(pages, path).await;
        self.describe_pages(card.next_message(), pages, path).await;
        locked.keep();
        registering.done();
        Ok(memory)
    }

    /// Allocates a Buffer Pool on the host, and its descriptors on the card.
    fn take_pool(&self, vni: u32, bytes: u64) -> Result<Allocation, QnixError> {
        self.check(vni)?;
        let (card, limit) = (&self.card, self.card.spec.limits.pool);
        if bytes == 0 || bytes > limit {
            return Err(QnixError::Pool { bytes, limit });
        }
        if self.pool.borrow().is_some() {
            return Err(QnixError::PoolThere);
        }
        let wanted = bytes.div_ceil(card.spec.kernel.page) * card.spec.memory.descriptor;
        let left = card.memory().left();
        if !card.card_memory.borrow_mut().take(wanted) {
            return Err(QnixError::CardMemory { wanted, left });
        }
        let memory = match card.dma.memory().allocate(bytes) {
            Ok(memory) => memory,
            Err(error) => {
                card.card_memory.borrow_mut().give_back(wanted);
                return Err(error.into());
            }
        };
        card.interface(vni, |interface| interface.pool_memory = wanted);
        self.adopt(&memory);
        self.pool.replace(Some(BufferPool::new(memory.clone())));
        Ok(memory)
    }

    /// Takes a piece of the Buffer Pool for the process's own use. Returns the pool and the offset of the piece in
    /// bytes. This is set-up: it takes no virtual time. The piece stays taken until the interface is closed.
    ///
    /// # Errors
    /// When the pool has no free piece of that size.
    pub fn pool_piece(&self, bytes: u64) -> Result<(Allocation, u64), QnixError> {
        let mut pool = self.pool.borrow_mut();
        let free = pool.as_ref().map_or(0, BufferPool::longest);
        let pool = pool.as_mut().ok_or(QnixError::PoolFull { bytes, free })?;
        let at = pool.take(bytes).ok_or(QnixError::PoolFull { bytes, free })?;
        Ok((pool.memory.clone(), at - pool.memory.address()))
    }

    /// Copies a buffer by a CPU into a piece of the Buffer Pool. Then frees the piece.
    ///
    /// # Errors
    /// When the buffer does not belong to the process, or the pool has no free piece of that size.
    pub async fn copy_to_pool(&self, address: u64, bytes: u64, path: &mut Path) -> Result<(), QnixError> {
        self.check_bytes(address, bytes)?;
        let piece = self.take_piece(bytes)?;
        Ok(self.copy(address, piece.address(), bytes, path).await?)
    }

    /// Makes the kernel lock and translate a buffer, and writes the descriptors of its pages into a Context Region.
    /// Returns the number of pages. The next call that locks pages unlocks these pages.
    ///
    /// # Errors
    /// When the buffer does not belong to the process, or has more pages than a Context Region has descriptors.
    pub async fn lock_and_translate(
        &self,
        address: u64,
        bytes: u64,
        path: &mut Path,
    ) -> Result<u64, QnixError> {
        self.check_bytes(address, bytes)?;
        self.choose(TransferMethod::Translate, address, bytes, Kind::Send)?;
        let locked = self.translate(self.card.next_message(), address, bytes, path).await;
        Ok(locked.pages())
    }

    /// Makes the kernel lock and translate a buffer, and writes the descriptors of the buffer's pages to the card.
    pub(crate) async fn translate(
        &self,
        message: MessageId,
        address: u64,
        bytes: u64,
        path: &mut Path,
    ) -> Locked<'_> {
        let (kernel, pages) = (&self.card.kernel, self.pages(address, bytes));
        kernel.call(path).await;
        match self.locked.take() {
            0 => {}
            ended => kernel.unpin(ended, path).await,
        }
        let locked = Locked::of(self, pages);
        kernel.pin(pages, path).await;
        self.describe_pages(message, pages, path).await;
        locked
    }

    pub(crate) fn pages(&self, address: u64, bytes: u64) -> u64 {
        self.card.spec.kernel.pages(address, bytes)
    }

    /// Writes descriptors of pages to the card.
    async fn describe_pages(&self, message: MessageId, pages: u64, path: &mut Path) {
        if pages > 0 {
            let spec = &self.card.spec;
            self.card.kernel.cpus().spend(spec.library.context, Stage::LIBRARY, path).await;
            self.store(message, pages * spec.memory.descriptor, path).await;
        }
    }

    /// Copies bytes within the process's memory by a CPU.
    pub(crate) async fn copy(
        &self,
        from: u64,
        to: u64,
        bytes: u64,
        path: &mut Path,
    ) -> Result<(), MemoryError> {
        let card = &self.card;
        card.kernel.cpus().spend(card.spec.library.copy.cover(bytes), Stage::COPY, path).await;
        let payload = card.dma.memory().read(from, bytes)?;
        card.dma.memory().deposit(to, bytes, &payload)
    }
}
