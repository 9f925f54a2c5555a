//! Processes of a host with virtual network interfaces of its card, and `send` and `recv` by way of them.

use super::{Buffer, Host, PendingRecv};
use crate::Error;
use nicety_host::KernelCounters;
use nicety_nic::qnix::{
    CardMemory, Completed, Endpoint, How, OWN_PROCESS, Operation, Receive, Send, Statistics,
};
use nicety_nic::{Outgoing, Wanted};
use nicety_types::{Duration, NodeId};
use std::rc::Rc;

/// A process of a host, whose card has virtual network interfaces. It has memory of its own, and an interface once it has
/// opened one. Cheap to clone; what it does takes the time of the thread that it came from.
#[derive(Clone)]
pub struct VniProcess {
    host: Host,
    process: Rc<nicety_nic::qnix::Process>,
}

impl Host {
    /// A process of this host, by a number of the program's choice. Number 0 is the one that `send` and `recv` belong to:
    /// it has interface 0 and the largest Buffer Pool from the beginning, and what this host allocates is its memory.
    ///
    /// # Errors
    /// When the card is of another design.
    pub fn vni_process(&self, number: u32) -> Result<VniProcess, Error> {
        Ok(VniProcess { host: self.clone(), process: self.qnix()?.process(number) })
    }

    /// How often this host's kernel was entered, and what for.
    ///
    /// # Errors
    /// When the card's software does not enter it.
    pub fn kernel_counters(&self) -> Result<KernelCounters, Error> {
        Ok(self.qnix()?.card().kernel().counters())
    }

    /// What this host's card has counted.
    ///
    /// # Errors
    /// When the card is of another design.
    pub fn vni_statistics(&self) -> Result<Statistics, Error> {
        Ok(self.qnix()?.card().statistics())
    }

    /// How the card's memory is used.
    ///
    /// # Errors
    /// When the card is of another design.
    pub fn vni_memory(&self) -> Result<CardMemory, Error> {
        Ok(self.qnix()?.card().memory())
    }

    /// A piece of the Buffer Pool that `send` and `recv` have, which needs neither a copy nor the kernel. Set-up, takes no
    /// virtual time; nobody gives it back.
    ///
    /// # Errors
    /// When the pool has no piece of that length free, or the card has no pools.
    pub fn pool_buffer(&self, len: u64) -> Result<Buffer, Error> {
        let (allocation, start) = self.qnix()?.process(OWN_PROCESS).pool_piece(len)?;
        Ok(Buffer { allocation, start, len })
    }

    /// A CPU copies a buffer to where the card may fetch it: into the Buffer Pool, or into memory that a driver has locked
    /// for good.
    pub async fn copy_for_card(&self, from: &Buffer) -> Result<(), Error> {
        let Ok(node) = self.qnix() else {
            let to = self.alloc(from.len())?;
            return self.copy(from, &to).await;
        };
        let process = node.process(OWN_PROCESS);
        let copy = async |path: &mut _| process.copy_to_pool(from.address(), from.len(), path).await;
        Ok(self.timed("copy", copy).await?)
    }

    /// A system call that locks and translates a buffer's pages for the card, and gives them free again; with a card that
    /// takes descriptors, they are written into it. Returns how many pages there are.
    pub async fn lock_for_card(&self, buffer: &Buffer) -> Result<u64, Error> {
        let (address, bytes) = (buffer.address(), buffer.len());
        if let Ok(node) = self.qnix() {
            let process = node.process(OWN_PROCESS);
            let lock = async |path: &mut _| process.lock_and_translate(address, bytes, path).await;
            return Ok(self.timed("lock and translate", lock).await?);
        }
        let table = self.nfp()?;
        let card = table.card();
        let kernel = card.kernel();
        let pages = kernel.spec().pages(address, bytes);
        let lock = async |path: &mut _| {
            kernel.call(path).await;
            kernel.pin(pages, path).await;
            kernel.unpin(pages, path).await;
        };
        self.timed("lock and translate", lock).await;
        Ok(pages)
    }

    /// As [`Host::send`], on a card with virtual network interfaces, and how the bytes get to the card.
    ///
    /// # Errors
    /// As [`Host::send`]; when the message is too long for that way.
    pub async fn send_by(&self, buffer: &Buffer, to: u32, tag: u32, how: How) -> Result<(), Error> {
        let start = self.now();
        let posted = self.post_send_by(buffer, to, tag, how).await?;
        self.sent(posted).await?;
        self.called("send", start);
        Ok(())
    }

    /// Posts a send, and does not wait until the buffer may be used again.
    pub async fn post_send_by(
        &self,
        buffer: &Buffer,
        to: u32,
        tag: u32,
        how: How,
    ) -> Result<Operation, Error> {
        let message = Outgoing { to, tag, address: buffer.address(), bytes: buffer.len() };
        Ok(self.qnix()?.post_send(self.caller(), message, how).await?)
    }

    /// Waits until the buffer of a send may be used again.
    pub async fn sent(&self, posted: Operation) -> Result<Completed, Error> {
        Ok(self.qnix()?.sent(self.caller(), posted).await?)
    }

    /// As [`Host::post_recv`], on a card with virtual network interfaces, and how the bytes get from the card.
    ///
    /// # Errors
    /// As [`Host::post_recv`].
    pub async fn post_recv_by(
        &self,
        buffer: &Buffer,
        source: Option<u32>,
        tag: Option<u32>,
        how: How,
    ) -> Result<PendingRecv, Error> {
        let wanted = Wanted { source, tag, address: buffer.address(), room: buffer.len() };
        Ok(PendingRecv(self.qnix()?.post_receive_by(self.caller(), wanted, how).await?))
    }
}

impl VniProcess {
    /// Its number on its host.
    pub fn number(&self) -> u32 {
        self.process.number()
    }

    /// Allocates zero bytes of its own; set-up, takes no virtual time.
    ///
    /// # Errors
    /// When the host has no more memory.
    pub fn alloc(&self, len: u64) -> Result<Buffer, Error> {
        let buffer = self.host.alloc_unowned(len)?;
        self.process.adopt(&buffer.allocation);
        Ok(buffer)
    }

    /// Has the kernel register it with the card. Returns the number of its interface, the lowest that is free.
    ///
    /// # Errors
    /// When it has one, or none is left.
    pub async fn open(&self) -> Result<u32, Error> {
        Ok(self.host.timed("open an interface", async |path| self.process.open(path).await).await?)
    }

    /// Has the kernel take its interface and its Buffer Pool away again.
    ///
    /// # Errors
    /// When the interface is not its own, or operations have not ended.
    pub async fn close(&self, vni: u32) -> Result<(), Error> {
        Ok(self.host.timed("close an interface", async |path| self.process.close(vni, path).await).await?)
    }

    /// Registers a Buffer Pool, whose pages are locked and translated once. What is sent from it, or received into it, needs
    /// no copy and no kernel.
    ///
    /// # Errors
    /// When the interface is not its own, there is a pool already, or it is too large.
    pub async fn register_pool(&self, vni: u32, bytes: u64) -> Result<Buffer, Error> {
        let register = async |path: &mut _| self.process.register_pool(vni, bytes, path).await;
        let allocation = self.host.timed("register a pool", register).await?;
        Ok(Buffer { len: allocation.len(), allocation, start: 0 })
    }

    /// Posts a send. It ends when the bytes are on the card, and the buffer may be used again.
    ///
    /// # Errors
    /// When the interface or the buffer is not its own, or a limit is reached.
    pub async fn send(
        &self,
        vni: u32,
        buffer: &Buffer,
        to: (u32, u32),
        tag: u64,
        how: How,
    ) -> Result<Operation, Error> {
        let to = Endpoint { node: NodeId(to.0), vni: to.1 };
        let send = Send { address: buffer.address(), bytes: buffer.len(), to, tag, how };
        Ok(self.host.timed("post a send", async |path| self.process.send(vni, send, path).await).await?)
    }

    /// Posts a receive: of one sender, a rank and its interface, or any; of one tag, or any.
    ///
    /// # Errors
    /// When the interface or the buffer is not its own, or a limit is reached.
    pub async fn receive(
        &self,
        vni: u32,
        buffer: &Buffer,
        from: Option<(u32, u32)>,
        tag: Option<u64>,
        how: How,
    ) -> Result<Operation, Error> {
        let from = from.map(|(rank, vni)| Endpoint { node: NodeId(rank), vni });
        let receive = Receive { address: buffer.address(), bytes: buffer.len(), from, tag, how };
        let post = async |path: &mut _| self.process.receive(vni, receive, path).await;
        Ok(self.host.timed("post a receive", post).await?)
    }

    /// Looks at the doorbell of an operation: how it ended, where it did.
    ///
    /// # Errors
    /// When the interface is not its own, or it has no such operation.
    pub async fn test(&self, vni: u32, operation: Operation) -> Result<Option<Completed>, Error> {
        let look = async |path: &mut _| self.process.test(vni, operation, path).await;
        Ok(self.host.timed("look at a doorbell", look).await?)
    }

    /// Waits for the doorbell of an operation: how it ended.
    ///
    /// # Errors
    /// When the interface is not its own, or it has no such operation.
    pub async fn wait(&self, vni: u32, operation: Operation) -> Result<Completed, Error> {
        let wait = async |path: &mut _| self.process.wait(vni, operation, path).await;
        Ok(self.host.timed("wait for a doorbell", wait).await?)
    }

    /// What copying a buffer to the pool would take, and what locking and translating it, by the numbers in the spec.
    pub fn costs(&self, buffer: &Buffer) -> (Duration, Duration) {
        self.process.costs(buffer.address(), buffer.len())
    }
}
