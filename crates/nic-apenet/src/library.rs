//! The library of a process: calls for registration, puts, gets, sends, streaming buffers and events.

use crate::driver::Order;
use crate::error::ApenetError;
use crate::event::{Event, EventKind};
use crate::events::{Follow, Wanted};
use crate::receive::{Getting, Unused};
use crate::translation::Hold;
use crate::transmit::Leaving;
use crate::wire::Kind;
use crate::{Card, Endpoint, Operation, Region};
use nicety_types::{Path, Stage, Starter};
use std::cell::Cell;
use std::rc::Rc;

/// A put, a get, or a send into a streaming buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The process at the other end.
    pub peer: Endpoint,
    /// First address of the bytes on this host, in a registered region of the process.
    pub local: u64,
    /// First address of the bytes on the remote host. 0 selects the first unused streaming buffer of the peer.
    pub remote: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Data of the sender that the receiver's event carries.
    pub data: u64,
}

/// A process of a host, identified by its number.
#[derive(Clone)]
pub struct Process {
    card: Rc<Card>,
    number: u32,
}

impl Process {
    /// Returns a process with an event queue.
    pub(super) fn new(card: &Rc<Card>, number: u32) -> Process {
        card.events.open(number);
        Process { card: card.clone(), number }
    }

    /// Returns the number of the process on its host.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Registers memory. The kernel locks the pages, and the embedded processor enters them in its table.
    ///
    /// # Errors
    /// When the range is empty or not allocated, or the table has no room.
    pub async fn register(&self, address: u64, bytes: u64, path: &mut Path) -> Result<Region, ApenetError> {
        self.card.register(self.number, address, bytes, path).await
    }

    /// Ends a registration. The call waits for active transfers of the region. Later messages to the region are
    /// refused.
    ///
    /// # Errors
    /// When the process has no such region.
    pub async fn deregister(&self, region: Region, path: &mut Path) -> Result<(), ApenetError> {
        match region.process == self.number {
            true => self.card.deregister(region, path).await,
            false => Err(ApenetError::NoRegion { region: region.number }),
        }
    }

    /// Registers memory as part of set-up, which takes no simulated time.
    ///
    /// # Errors
    /// Like [`Process::register`].
    pub fn set_up(&self, address: u64, bytes: u64) -> Result<Region, ApenetError> {
        self.card.set_up_region(self.number, address, bytes)
    }

    /// Posts a put, or a send if the remote address is 0. An event reports when the buffer may be reused. Another event
    /// reports a refusal by the receiver.
    ///
    /// # Errors
    /// When the bytes are not registered, there is no such node or address, or the message is too long.
    pub async fn put(&self, put: Transfer, path: &mut Path) -> Result<Operation, ApenetError> {
        let card = &self.card;
        self.check(&put)?;
        let Transfer { peer, local, remote, bytes, data } = put;
        let region = if bytes == 0 { None } else { Some(self.hold(local, bytes)?) };
        let message = card.next_message();
        let kind = if remote == 0 { "send" } else { "put" };
        card.recorder.sent(message, peer.node, bytes, kind, Starter::Host, path);
        card.count(|counted| *if remote == 0 { &mut counted.sends } else { &mut counted.puts } += 1);
        let told = Some((self.number, Card::sent_event(message, peer, local, bytes, data)));
        let leaving = Rc::new(Leaving { told, left: Cell::new(bytes), _region: region });
        self.order(Kind::Put, put, message, leaving, path).await
    }

    /// Posts a get. An event reports the arrival of the get's bytes, or the refusal of the get.
    ///
    /// # Errors
    /// Like [`Process::put`], and when too many gets wait for their replies.
    pub async fn get(&self, get: Transfer, path: &mut Path) -> Result<Operation, ApenetError> {
        let card = &self.card;
        self.check(&get)?;
        let Transfer { peer, local, bytes, .. } = get;
        if bytes > 0 {
            drop(self.hold(local, bytes)?);
        }
        let limit = card.spec.limits.gets;
        if card.receive.gets.borrow().len() as u64 >= limit {
            return Err(ApenetError::Gets { limit });
        }
        let message = card.next_message();
        card.recorder.sent(message, peer.node, 0, "get", Starter::Host, path);
        card.count(|counted| counted.gets += 1);
        let getting = Getting { peer, process: self.number, address: local, bytes, begun: false };
        card.receive.gets.borrow_mut().insert(message.sequence, getting);
        let leaving = Rc::new(Leaving { told: None, left: Cell::new(0), _region: None });
        self.order(Kind::Get, get, message, leaving, path).await
    }

    async fn order(
        &self,
        kind: Kind,
        transfer: Transfer,
        message: nicety_types::MessageId,
        leaving: Rc<Leaving>,
        path: &mut Path,
    ) -> Result<Operation, ApenetError> {
        let Transfer { peer: to, local, remote, bytes, data } = transfer;
        let data = if kind == Kind::Get { 0 } else { data };
        let (from, physical) = (self.number, self.card.physical.get());
        let operation = Operation(message.sequence);
        self.card.events.posted(self.number, operation, kind == Kind::Get);
        let order = Order { message, kind, physical, from, to, local, remote, bytes, data, leaving };
        self.card.post(order, path).await;
        Ok(operation)
    }

    /// Adds a streaming buffer in a registered region, behind the other unused streaming buffers. A CPU writes the
    /// descriptor of the buffer to the card.
    ///
    /// # Errors
    /// When the buffer is empty, not registered, or overlaps an unused streaming buffer. Also when the process has too
    /// many unused streaming buffers.
    pub async fn post_streaming(&self, address: u64, bytes: u64, path: &mut Path) -> Result<(), ApenetError> {
        self.check_streaming(address, bytes)?;
        let (card, message) = (&self.card, self.card.next_message());
        let cpu = card.kernel.cpus().hold(path).await;
        let handover = card.dma.bus().store(message, card.spec.ring.descriptor, path.clone()).await;
        *path = handover.path;
        drop(cpu);
        card.sim.until(handover.landed).await;
        path.advance(Stage::BUS, handover.landed);
        self.set_up_streaming(address, bytes)
    }

    /// Adds a streaming buffer as part of set-up, which takes no simulated time.
    ///
    /// # Errors
    /// Like [`Process::post_streaming`].
    pub fn set_up_streaming(&self, address: u64, bytes: u64) -> Result<(), ApenetError> {
        self.check_streaming(address, bytes)?;
        let mut streaming = self.card.receive.streaming.borrow_mut();
        streaming.entry(self.number).or_default().add(address, bytes);
        Ok(())
    }

    fn check_streaming(&self, address: u64, bytes: u64) -> Result<(), ApenetError> {
        if bytes == 0 {
            return Err(ApenetError::Empty);
        }
        drop(self.hold(address, bytes)?);
        let (limit, streaming) = (self.card.spec.limits.streaming, self.card.receive.streaming.borrow());
        let Some(unused) = streaming.get(&self.number) else { return Ok(()) };
        match unused.touching(address, bytes) {
            Some((buffer, len)) => Err(ApenetError::StreamingOverlap { address, bytes, buffer, len }),
            None if unused.len() >= limit => Err(ApenetError::Streaming { limit }),
            None => Ok(()),
        }
    }

    /// Returns the number of unused streaming buffers.
    pub fn streaming(&self) -> u64 {
        self.card.receive.streaming.borrow().get(&self.number).map_or(0, Unused::len)
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// When events were lost. The loss is reported once.
    pub async fn event(&self, path: &mut Path) -> Result<Event, ApenetError> {
        self.take(Wanted::Any, path).await
    }

    /// Checks once for an event. Returns the event if there is one.
    ///
    /// # Errors
    /// Like [`Process::event`].
    pub async fn poll(&self, path: &mut Path) -> Result<Option<Event>, ApenetError> {
        self.card.poll_event(self.number, Wanted::Any, path).await
    }

    /// Waits for the completion of an operation of this process. Then the buffer of a put may be reused, or the bytes
    /// of a get have arrived.
    ///
    /// # Errors
    /// When the operation was refused, or events were lost. Also when the completion was reported before, by this call
    /// or as an event.
    pub async fn wait(&self, operation: Operation, path: &mut Path) -> Result<Event, ApenetError> {
        let event = self.take(Wanted::End(operation), path).await?;
        match event.kind {
            EventKind::Refused(_, why) => {
                Err(ApenetError::Refused { why, node: event.refused_by.unwrap_or(event.peer.node).0 })
            }
            _ => Ok(event),
        }
    }

    /// Waits for a message from another process, into a streaming buffer or by a put.
    ///
    /// # Errors
    /// When events were lost. The loss is reported once.
    pub async fn received(&self, path: &mut Path) -> Result<Event, ApenetError> {
        self.take(Wanted::Received, path).await
    }

    /// Waits for a wanted event, and takes the event. Other events stay in the queue.
    async fn take(&self, wanted: Wanted, path: &mut Path) -> Result<Event, ApenetError> {
        let (event, _) = self.card.take_event(self.number, wanted, Follow::Thread(path)).await?;
        Ok(event)
    }

    /// Waits for the next event, for a thread of the library. Returns the event and the event's own path.
    pub(super) async fn next(&self) -> Result<(Event, Path), ApenetError> {
        self.card.take_event(self.number, Wanted::Any, Follow::Event).await
    }

    fn hold(&self, address: u64, bytes: u64) -> Result<Hold, ApenetError> {
        let process = self.number;
        let held = self.card.translation.regions.hold(process, address, bytes);
        held.map_err(|_| ApenetError::Unregistered { address, bytes, process })
    }

    fn check(&self, transfer: &Transfer) -> Result<(), ApenetError> {
        let (nodes, limit) = (self.card.nodes, self.card.spec.limits.message);
        if transfer.peer.node.0 >= nodes {
            return Err(ApenetError::NoNode { node: transfer.peer.node.0, nodes });
        }
        let Transfer { remote: address, bytes, .. } = *transfer;
        if bytes > limit {
            return Err(ApenetError::Message { bytes, limit });
        }
        if address.checked_add(bytes).is_none() {
            return Err(ApenetError::Address { address, bytes });
        }
        Ok(())
    }
}
