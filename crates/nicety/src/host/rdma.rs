//! A host's interface to a card with RDMA: [`Rdma`].

use super::{Buffer, Host};
use crate::Error;
use nicety_host::ProcessBytes;
use nicety_nic_apenet::{
    ApenetError, Busy, Endpoint, Event, Node, Notify, Operation, Process, Region, Statistics, Transfer,
};
use nicety_types::NodeId;
use std::rc::Rc;

/// RDMA of a host's card, for one thread of a process of the host. Cheap to clone.
#[derive(Clone)]
pub struct Rdma {
    host: Host,
    node: Rc<Node>,
    process: Process,
}

impl Host {
    /// Returns RDMA of this host's card, for process 0 of this host.
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
    /// Returns RDMA for another process of this host, by a number that the program chooses. Each process has its own regions,
    /// streaming buffers and events. It exchanges messages with the process of the same number on other hosts.
    ///
    /// # Errors
    /// When the number is 2^32 - 1, which is the library's own.
    pub fn process(&self, number: u32) -> Result<Rdma, Error> {
        let process = self.node.process(number);
        let process =
            process.ok_or_else(|| Error::Input(format!("process {number} is the library's own")))?;
        Ok(Rdma { process, ..self.clone() })
    }

    /// The number of the process.
    pub fn number(&self) -> u32 {
        self.process.number()
    }

    /// Registers a buffer in host or GPU memory: a system call that locks its pages, and the embedded processor's work to enter
    /// them. From then on, puts and gets of other processes may use its addresses.
    ///
    /// # Errors
    /// When it is empty, or the card's table is full.
    pub async fn register(&self, buffer: &Buffer) -> Result<Region, Error> {
        let (address, bytes) = (buffer.address(), buffer.len());
        let register = async |path: &mut _| self.process.register(address, bytes, path).await;
        Ok(self.host.timed("register", register).await?)
    }

    /// Also makes the host's memory that of a process, from [`PROCESS_ADDRESSES`](crate::PROCESS_ADDRESSES) on. Returns whether
    /// it had none before.
    pub fn add_process(&self, bytes: impl ProcessBytes + 'static) -> bool {
        self.node.card().host_memory().add_process(bytes)
    }

    /// Registers memory by its address, such as that of a [process](Rdma::add_process): as [`Rdma::register`].
    ///
    /// # Errors
    /// As there.
    pub async fn register_at(&self, address: u64, bytes: u64) -> Result<Region, Error> {
        let register = async |path: &mut _| self.process.register(address, bytes, path).await;
        Ok(self.host.timed("register", register).await?)
    }

    /// Maximum gets that wait for their replies, and maximum events of a process.
    pub fn limits(&self) -> (u64, u64) {
        let spec = self.node.card().spec();
        (spec.limits.gets, spec.events.entries.min(spec.events.user))
    }

    /// Ends a registration. Waits for transfers in flight; later messages are refused.
    ///
    /// # Errors
    /// When the process has no such region.
    pub async fn deregister(&self, region: Region) -> Result<(), Error> {
        let deregister = async |path: &mut _| self.process.deregister(region, path).await;
        Ok(self.host.timed("deregister", deregister).await?)
    }

    /// Posts a put of a registered buffer to an address of another host, or this one. [`Rdma::wait`] returns when the buffer may
    /// be used again. The receiver gets an event with `data`.
    ///
    /// # Errors
    /// When the rank does not exist, the buffer is not registered, or the address is 0.
    pub async fn put(&self, buffer: &Buffer, to: u32, address: u64, data: u64) -> Result<Operation, Error> {
        if address == 0 {
            let text = "a put to address 0, which stands for a streaming buffer; use send for that";
            return Err(Error::Input(text.to_owned()));
        }
        self.post("put", buffer, to, address, data).await
    }

    /// Posts a send of a registered buffer into the first unused streaming buffer of another host, or this one.
    ///
    /// # Errors
    /// As [`Rdma::put`].
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

    /// Posts a get into a registered buffer, from an address of another host, or this one. [`Rdma::wait`] returns when the bytes
    /// have arrived.
    ///
    /// # Errors
    /// When the rank does not exist, the buffer is not registered, or too many gets wait for their replies.
    pub async fn get(&self, buffer: &Buffer, from: u32, address: u64) -> Result<Operation, Error> {
        self.host.check_rank(from)?;
        let get = self.transfer(buffer, from, address, 0);
        Ok(self.host.timed("get", async |path| self.process.get(get, path).await).await?)
    }

    fn transfer(&self, buffer: &Buffer, rank: u32, remote: u64, data: u64) -> Transfer {
        let peer = Endpoint { node: NodeId(rank), process: self.process.number() };
        Transfer { peer, local: buffer.address(), remote, bytes: buffer.len(), data }
    }

    /// Adds a streaming buffer behind the unused ones. It lies in a registered region.
    ///
    /// # Errors
    /// When it is not registered, overlaps an unused one, or too many are unused.
    pub async fn post_streaming(&self, buffer: &Buffer) -> Result<(), Error> {
        let (address, bytes) = (buffer.address(), buffer.len());
        let post = async |path: &mut _| self.process.post_streaming(address, bytes, path).await;
        Ok(self.host.timed("post a streaming buffer", post).await?)
    }

    /// The number of unused streaming buffers.
    pub fn streaming(&self) -> u64 {
        self.process.streaming()
    }

    /// Waits for the next event of the process.
    ///
    /// # Errors
    /// When events were lost because a queue was full; reported once.
    pub async fn event(&self) -> Result<Event, Error> {
        Ok(self.host.timed("wait for an event", async |path| self.process.event(path).await).await?)
    }

    /// Polls once for an event.
    ///
    /// # Errors
    /// As [`Rdma::event`].
    pub async fn poll(&self) -> Result<Option<Event>, Error> {
        Ok(self.host.timed("look for an event", async |path| self.process.poll(path).await).await?)
    }

    /// Waits for the end of an operation of this process. After a put or send its buffer may be used again; after a get the bytes
    /// have arrived. Other events stay in the queue.
    ///
    /// # Errors
    /// When the other end has already refused the operation. When its end has been reported before, by this call or as an event.
    /// When events were lost.
    pub async fn wait(&self, operation: Operation) -> Result<Event, Error> {
        let wait = async |path: &mut _| self.process.wait(operation, path).await;
        Ok(self.host.timed("wait for an operation", wait).await?)
    }

    /// Waits for a put or send of another process. Other events stay in the queue.
    ///
    /// # Errors
    /// When events were lost; reported once.
    pub async fn received(&self) -> Result<Event, Error> {
        Ok(self.host.timed("wait for a put", async |path| self.process.received(path).await).await?)
    }

    /// Sets the notification of this host's programs about events: polling or interrupts.
    pub fn set_notify(&self, notify: Notify) {
        self.node.card().set_notify(notify);
    }

    /// The notification of this host's programs about events.
    pub fn notify(&self) -> Notify {
        self.node.card().notify()
    }

    /// Sets whether puts and gets of this host use physical addresses, which bypass the receiver's TLB.
    pub fn set_physical(&self, physical: bool) {
        self.node.card().set_physical(physical);
    }

    /// Sets whether this host's card drops packets that arrive over the link, to measure the transmit side of other hosts.
    pub fn set_flushed(&self, flushed: bool) {
        self.node.card().set_flushed(flushed);
    }

    /// Counters of this host's card.
    pub fn statistics(&self) -> Statistics {
        self.node.card().statistics()
    }

    /// Busy times of parts of this host's card.
    pub fn busy(&self) -> Busy {
        self.node.card().busy()
    }

    /// Regions and pages currently registered.
    pub fn registered(&self) -> (u64, u64) {
        self.node.card().registered()
    }
}

impl From<ApenetError> for Error {
    fn from(error: ApenetError) -> Error {
        nicety_nic_core::CardError::from(error).into()
    }
}
