//! A host's interface to a card with virtual network interfaces ([`Vni`]), and the host's processes, each with its interface.

use super::{Buffer, Host, PendingRecv};
use crate::Error;
use nicety_host::KernelCounters;
use nicety_nic_core::Tags;
use nicety_nic_qnix::{
    self as qnix, CardMemory, Completed, Endpoint, OWN_PROCESS, Operation, Receive, Send, Statistics,
    TransferMethod,
};
use nicety_types::{Duration, NodeId};
use std::rc::Rc;

/// A process of a host with virtual network interfaces on its card. The process has its own memory, and it has an interface after
/// [`VniProcess::open`]. Cheap to clone. Its calls take the time of the thread that created this handle.
#[derive(Clone)]
pub struct VniProcess {
    host: Host,
    process: Rc<nicety_nic_qnix::Process>,
}

/// The interface to a card with virtual network interfaces, for one thread of the host's program. Cheap to clone.
#[derive(Clone)]
pub struct Vni {
    host: Host,
    node: Rc<qnix::Node>,
}

impl Host {
    /// Returns the virtual network interfaces of this host's card.
    ///
    /// # Errors
    /// When the card is of another design. The error names a card with virtual network interfaces.
    pub fn vni(&self) -> Result<Vni, Error> {
        Ok(Vni { host: self.clone(), node: self.inner.card.of::<qnix::Node>()? })
    }
}

impl Vni {
    /// Returns a process of this host. The program chooses the number. Process 0 owns `send` and `recv`. From the start it has
    /// interface 0, the largest possible Buffer Pool, and the memory that this host allocates.
    pub fn process(&self, number: u32) -> VniProcess {
        VniProcess { host: self.host.clone(), process: self.node.process(number) }
    }

    /// The number of entries into this host's kernel for each cause.
    pub fn kernel_counters(&self) -> KernelCounters {
        self.node.card().kernel().counters()
    }

    /// Counters of this host's card.
    pub fn statistics(&self) -> Statistics {
        self.node.card().statistics()
    }

    /// The occupancy of the card's memory.
    pub fn memory(&self) -> CardMemory {
        self.node.card().memory()
    }

    /// Allocates a piece of the Buffer Pool of `send` and `recv`. A message in this piece needs neither a copy nor the kernel.
    /// This is set-up: it takes no virtual time. The piece is never freed.
    ///
    /// # Errors
    /// When the pool has no free piece of that length.
    pub fn pool_buffer(&self, len: u64) -> Result<Buffer, Error> {
        let (allocation, start) = self.node.process(OWN_PROCESS).pool_piece(len)?;
        Ok(Buffer { allocation, start, len })
    }

    /// Copies a buffer into the Buffer Pool of `send` and `recv`, from which the card can fetch it. A CPU of the host makes the
    /// copy.
    ///
    /// # Errors
    /// When the pool has no free piece of that length.
    pub async fn copy_to_pool(&self, from: &Buffer) -> Result<(), Error> {
        let process = self.node.process(OWN_PROCESS);
        let copy = async |path: &mut _| process.copy_to_pool(from.address(), from.len(), path).await;
        Ok(self.host.timed("copy", copy).await?)
    }

    /// Makes a system call that locks the pages of a buffer, translates their addresses, writes their descriptors to
    /// the card, and unlocks them. Returns the number of pages.
    ///
    /// # Errors
    /// When the card has too few descriptors.
    pub async fn lock_and_translate(&self, buffer: &Buffer) -> Result<u64, Error> {
        let process = self.node.process(OWN_PROCESS);
        let (address, bytes) = (buffer.address(), buffer.len());
        let lock = async |path: &mut _| process.lock_and_translate(address, bytes, path).await;
        Ok(self.host.timed("lock and translate", lock).await?)
    }

    /// Sends a message as [`Host::send`] does. `how` is the transfer method between host memory and card.
    ///
    /// # Errors
    /// Those of [`Host::send`]. Also when the message is too long for the transfer method.
    pub async fn send(&self, buffer: &Buffer, to: u32, tag: u64, how: TransferMethod) -> Result<(), Error> {
        let start = self.host.now();
        let posted = self.post_send(buffer, to, tag, how).await?;
        self.sent(posted).await?;
        self.host.called("send", start);
        Ok(())
    }

    /// Posts a send, and returns before the buffer may be used again.
    ///
    /// # Errors
    /// Those of [`Vni::send`].
    pub async fn post_send(
        &self,
        buffer: &Buffer,
        to: u32,
        tag: u64,
        how: TransferMethod,
    ) -> Result<Operation, Error> {
        let message = self.host.outgoing(buffer, to, tag)?;
        Ok(self.node.post_send(self.host.caller(), message, how).await?)
    }

    /// Waits until the buffer of a send may be used again.
    ///
    /// # Errors
    /// When the operation does not exist or has already ended.
    pub async fn sent(&self, posted: Operation) -> Result<Completed, Error> {
        Ok(self.node.sent(self.host.caller(), posted).await?)
    }

    /// Posts a receive as [`Host::post_recv`] does. `how` is the transfer method between card and host memory.
    ///
    /// # Errors
    /// Those of [`Host::post_recv`].
    pub async fn post_recv(
        &self,
        buffer: &Buffer,
        source: Option<u32>,
        tag: Option<u64>,
        how: TransferMethod,
    ) -> Result<PendingRecv, Error> {
        let wanted = self.host.wanted(buffer, source, Tags::exactly_or_any(tag))?;
        Ok(PendingRecv(self.node.post_receive_by(self.host.caller(), wanted, how).await?))
    }
}

impl VniProcess {
    /// The number of this process on its host.
    pub fn number(&self) -> u32 {
        self.process.number()
    }

    /// Allocates `len` zero bytes of this process's memory. This is set-up: it takes no virtual time.
    ///
    /// # Errors
    /// When the host has no more memory.
    pub fn alloc(&self, len: u64) -> Result<Buffer, Error> {
        let buffer = self.host.alloc_unowned(len)?;
        self.process.adopt(&buffer.allocation);
        Ok(buffer)
    }

    /// Registers the process with the card, by a call to the kernel. Returns the number of the process's interface, which is the
    /// lowest free number.
    ///
    /// # Errors
    /// When the process already has an interface, or no interface is free.
    pub async fn open(&self) -> Result<u32, Error> {
        Ok(self.host.timed("open an interface", async |path| self.process.open(path).await).await?)
    }

    /// Releases the process's interface and its Buffer Pool, by a call to the kernel.
    ///
    /// # Errors
    /// When the interface belongs to another process, or operations are pending.
    pub async fn close(&self, vni: u32) -> Result<(), Error> {
        Ok(self.host.timed("close an interface", async |path| self.process.close(vni, path).await).await?)
    }

    /// Registers a Buffer Pool for the process. Its pages are locked and translated once. Later, messages in the pool need
    /// neither a copy nor the kernel.
    ///
    /// # Errors
    /// When the interface belongs to another process, the process already has a pool, or the pool is too large.
    pub async fn register_pool(&self, vni: u32, bytes: u64) -> Result<Buffer, Error> {
        let register = async |path: &mut _| self.process.register_pool(vni, bytes, path).await;
        let allocation = self.host.timed("register a pool", register).await?;
        Ok(Buffer { len: allocation.len(), allocation, start: 0 })
    }

    /// Posts a send. The send completes when its bytes are on the card. Then the buffer may be used again.
    ///
    /// # Errors
    /// When the interface or the buffer belongs to another process, or a limit is reached.
    pub async fn send(
        &self,
        vni: u32,
        buffer: &Buffer,
        to: (u32, u32),
        tag: u64,
        how: TransferMethod,
    ) -> Result<Operation, Error> {
        let to = Endpoint { node: NodeId(to.0), vni: to.1 };
        let send = Send { address: buffer.address(), bytes: buffer.len(), to, tag, how };
        Ok(self.host.timed("post a send", async |path| self.process.send(vni, send, path).await).await?)
    }

    /// Posts a receive. `from` is the sender's rank and interface, and `tag` the message's tag; `None` accepts any.
    ///
    /// # Errors
    /// When the interface or the buffer belongs to another process, or a limit is reached.
    pub async fn receive(
        &self,
        vni: u32,
        buffer: &Buffer,
        from: Option<(u32, u32)>,
        tag: Option<u64>,
        how: TransferMethod,
    ) -> Result<Operation, Error> {
        let from = from.map(|(rank, vni)| Endpoint { node: NodeId(rank), vni });
        let tags = Tags::exactly_or_any(tag);
        let receive = Receive { address: buffer.address(), bytes: buffer.len(), from, tags, how };
        let post = async |path: &mut _| self.process.receive(vni, receive, path).await;
        Ok(self.host.timed("post a receive", post).await?)
    }

    /// Polls the doorbell of an operation once. Returns the operation's completion, if it has completed.
    ///
    /// # Errors
    /// When the interface belongs to another process, or has no such operation.
    pub async fn test(&self, vni: u32, operation: Operation) -> Result<Option<Completed>, Error> {
        let look = async |path: &mut _| self.process.test(vni, operation, path).await;
        Ok(self.host.timed("look at a doorbell", look).await?)
    }

    /// Waits for the doorbell of an operation. Returns the operation's completion.
    ///
    /// # Errors
    /// When the interface belongs to another process, or has no such operation.
    pub async fn wait(&self, vni: u32, operation: Operation) -> Result<Completed, Error> {
        let wait = async |path: &mut _| self.process.wait(vni, operation, path).await;
        Ok(self.host.timed("wait for a doorbell", wait).await?)
    }

    /// Returns two durations according to the card's specification. The first is that of a copy of the buffer to the
    /// pool, the second that of locking and translating its pages.
    pub fn costs(&self, buffer: &Buffer) -> (Duration, Duration) {
        self.process.costs(buffer.address(), buffer.len())
    }
}
