//! A host's interface to a card with RDMA: [`Rdma`].

use super::{Buffer, Host};
use crate::Error;
use nicety_host::ProcessBytes;
use nicety_nic_apenet::{
    ApenetError, Busy, Endpoint, Event, Node, Notify, Operation, Process, Region, Statistics, Transfer,
};
use nicety_types::NodeId;
use std::rc::Rc;

/// The RDMA interface of a host's card, for one thread of a process of the host. Cheap to clone.
#[derive(Clone)]
pub struct Rdma {
    host: Host,
    node: Rc<Node>,
    process: Process,
}

impl Host {
    /// Returns the RDMA interface of this host's card, for process 0 of this host.
    ///
    /// # Errors
    /// When the card is of another design. The error names a card with RDMA.
    pub fn rdma(&self) -> Result<Rdma, Error> {
        let node = self.inner.card.of::<Node>()?;
        let process = node.process(0).expect("not the library's");
        Ok(Rdma { host: self.clone(), node, process })
    }
}

impl Rdma {
    /// Returns the RDMA interface of another process of this host. The program chooses the number of the process. Each process
    /// has its own regions, streaming buffers and events. It exchanges messages with the process of the same number on other
    /// hosts.
    ///
    /// # Errors
    /// When the number is 2^32 - 1, which belongs to the message library.
    pub fn process(&self, number: u32) -> Result<Rdma, Error> {
        let process = self.node.process(number);
        let process = process
            .ok_or_else(|| Error::Input(format!("process {number} is reserved for the message library")))?;
        Ok(Rdma { process, ..self.clone() })
    }

    /// The number of the process.
    pub fn number(&self) -> u32 {
        self.process.number()
    }

    /// Registers a buffer in host or GPU memory. A system call locks its pages, and the card's embedded processor enters them in
    /// its table. From then on, puts and gets of other processes may use the buffer's addresses.
    ///
    /// # Errors
    /// When the buffer is empty, or the card's table is full.
    pub async fn register(&self, buffer: &Buffer) -> Result<Region, Error> {
        let (address, bytes) = (buffer.address(), buffer.len());
        let register = async |path: &mut _| self.process.register(address, bytes, path).await;
        Ok(self.host.timed("register", register).await?)
    }

    /// Makes the memory of a process accessible as host memory, from address [`PROCESS_ADDRESSES`](crate::PROCESS_ADDRESSES) on.
    /// Returns whether the host had no such memory before.
    pub fn add_process(&self, bytes: impl ProcessBytes + 'static) -> bool {
        self.node.card().host_memory().add_process(bytes)
    }

    /// Registers memory by its address, such as memory of a [process](Rdma::add_process). In all other respects, the
    /// call is the same as [`Rdma::register`].
    ///
    /// # Errors
    /// Those of [`Rdma::register`].
    pub async fn register_at(&self, address: u64, bytes: u64) -> Result<Region, Error> {
        let register = async |path: &mut _| self.process.register(address, bytes, path).await;
        Ok(self.host.timed("register", register).await?)
    }

    /// Returns the maximum number of gets without a reply, and the maximum number of events in the queue of a process.
    pub fn limits(&self) -> (u64, u64) {
        let spec = self.node.card().spec();
        (spec.limits.gets, spec.events.entries.min(spec.events.user))
    }

    /// Ends a registration. Waits until transfers in flight have ended. The card refuses later messages to the region.
    ///
    /// # Errors
    /// When the process has no such region.
    pub async fn deregister(&self, region: Region) -> Result<(), Error> {
        let deregister = async |path: &mut _| self.process.deregister(region, path).await;
        Ok(self.host.timed("deregister", deregister).await?)
    }

    /// Posts a put of a registered buffer to an address on another host, or on this host. [`Rdma::wait`] returns when the buffer
    /// may be used again. The receiver gets an event with `data`.
    ///
    /// # Errors
    /// When the rank does not exist, the buffer is not registered, or the address is 0.
    pub async fn put(&self, buffer: &Buffer, to: u32, address: u64, data: u64) -> Result<Operation, Error> {
        if address == 0 {
            let text = "a put to address 0, which means a streaming buffer; use send instead";
            return Err(Error::Input(text.to_owned()));
        }
        self.post("put", buffer, to, address, data).await
    }

    /// Posts a send of a registered buffer into the first unused streaming buffer of another host, or of this host.
    ///
    /// # Errors
    /// Those of [`Rdma::put`].
    pub async fn send(&self, buffer: &Buffer, to: u32, data: u64) -> Result<Operation, Error> {
        self.post("send to a streaming buffer", buffer, to, 0, data).await
    }

    async fn post(
        &self,
        what: &'static str,
        buffer: &Buffer,
        to: u32,
        address: u64,
        data: u64,
    ) -> Result<Operation, Error> {
        self.host.check_rank(to)?;
        let put = self.transfer(buffer, to, address, data);
        Ok(self.host.timed(what, async |path| self.process.put(put, path).await).await?)
    }

    /// Posts a get into a registered buffer, from an address on another host, or on this host. [`Rdma::wait`] returns when the
    /// bytes have arrived.
    ///
    /// # Errors
    /// When the rank does not exist, the buffer is not registered, or the maximum number of gets wait for their replies.
    pub async fn get(&self, buffer: &Buffer, from: u32, address: u64) -> Result<Operation, Error> {
        self.host.check_rank(from)?;
        let get = self.transfer(buffer, from, address, 0);
        Ok(self.host.timed("get", async |path| self.process.get(get, path).await).await?)
    }

    fn transfer(&self, buffer: &Buffer, rank: u32, remote: u64, data: u64) -> Transfer {
        let peer = Endpoint { node: NodeId(rank), process: self.process.number() };
        Transfer { peer, local: buffer.address(), remote, bytes: buffer.len(), data }
    }

    /// Adds a streaming buffer at the end of the list of unused buffers. The buffer must be in a registered region.
    ///
    /// # Errors
    /// When the buffer is not registered, overlaps an unused streaming buffer, or the list is full.
    pub async fn post_streaming(&self, buffer: &Buffer) -> Result<(), Error> {
        let (address, bytes) = (buffer.address(), buffer.len());
        let post = async |path: &mut _| self.process.post_streaming(address, bytes, path).await;
        Ok(self.host.timed("post a streaming buffer", post).await?)
    }

    /// The number of unused streaming buffers of this process.
    pub fn streaming(&self) -> u64 {
        self.process.streaming()
    }

    /// Waits for the next event of the process.
    ///
    /// # Errors
    /// When events were lost because a queue was full. Each loss is reported once.
    pub async fn event(&self) -> Result<Event, Error> {
        Ok(self.host.timed("wait for an event", async |path| self.process.event(path).await).await?)
    }

    /// Polls once for an event.
    ///
    /// # Errors
    /// Those of [`Rdma::event`].
    pub async fn poll(&self) -> Result<Option<Event>, Error> {
        Ok(self.host.timed("look for an event", async |path| self.process.poll(path).await).await?)
    }

    /// Waits for the end of an operation of this process. Then the buffer of a put or send may be used again, and the bytes of a
    /// get have arrived. Other events stay in the queue.
    ///
    /// # Errors
    /// When the other end has refused the operation, when this call or an event has already reported the operation's
    /// end, or when events were lost.
    pub async fn wait(&self, operation: Operation) -> Result<Event, Error> {
        let wait = async |path: &mut _| self.process.wait(operation, path).await;
        Ok(self.host.timed("wait for an operation", wait).await?)
    }

    /// Waits until a put or send of another process has arrived. Other events stay in the queue.
    ///
    /// # Errors
    /// When events were lost. Each loss is reported once.
    pub async fn received(&self) -> Result<Event, Error> {
        Ok(self.host.timed("wait for a put", async |path| self.process.received(path).await).await?)
    }

    /// Sets whether this host's programs learn of events by polling or by interrupts.
    pub fn set_notify(&self, notify: Notify) {
        self.node.card().set_notify(notify);
    }

    /// Returns whether this host's programs learn of events by polling or by interrupts.
    pub fn notify(&self) -> Notify {
        self.node.card().notify()
    }

    /// Sets whether puts and gets of this host use physical addresses, which bypass the receiver's TLB.
    pub fn set_physical(&self, physical: bool) {
        self.node.card().set_physical(physical);
    }

    /// Sets whether this host's card drops all packets that arrive over the link. With it, a benchmark measures only
    /// the transmit side of other hosts.
    pub fn set_flushed(&self, flushed: bool) {
        self.node.card().set_flushed(flushed);
    }

    /// Counters of this host's card.
    pub fn statistics(&self) -> Statistics {
        self.node.card().statistics()
    }

    /// The busy time of each part of this host's card.
    pub fn busy(&self) -> Busy {
        self.node.card().busy()
    }

    /// The numbers of regions and of pages that are registered now.
    pub fn registered(&self) -> (u64, u64) {
        self.node.card().registered()
    }
}

impl From<ApenetError> for Error {
    fn from(error: ApenetError) -> Error {
        nicety_nic_core::CardError::from(error).into()
    }
}
