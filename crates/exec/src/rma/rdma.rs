//! Registered memory on cards with RDMA.
//!
//! A region of a process is registered with the card, and accesses name addresses in it. At the initiator, the bytes of an access
//! are in host memory that the library has registered. That memory stays registered for later accesses.
//!
//! The sender of a put gets an event when the card has read the bytes. The receiver gets an event when the bytes are in memory.
//! So the receiver's library answers each put with an empty put, which ends the access for the sender.
//!
//! | bits of a put's data | field |
//! |---|---|
//! | 62..64 | 1 for a write, 2 for its answer |
//! | 61 | whether the write has data for the receiver's completion |
//! | 32..61 | the number of the access at its sender |
//! | 0..32 | the data for the receiver's completion |

use super::{Ended, Owner, READ, WRITTEN};
use crate::memory;
use crate::protocol::{Access, Completion, Reason, Registration, done, flag};
use nicety::apenet::{Event, EventKind, Operation, Region};
use nicety::{Buffer, Error, Host, PROCESS_ADDRESSES, PROCESS_BYTES, Rdma, Tasks};
use nicety_kernel::Signal;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

const WRITE: u64 = 1;
const ANSWER: u64 = 2;
const HAS_DATA: u64 = 1 << 61;
/// The mask of an access's number, which has 29 bits.
const NUMBER: u64 = (1 << 29) - 1;
/// Empty puts name this address, at which no memory is.
const NOWHERE: u64 = 1;

const fn data(kind: u64, number: u64, low: u32) -> u64 {
    kind << 62 | (number & NUMBER) << 32 | low as u64
}

const fn number(data: u64) -> u64 {
    data >> 32 & NUMBER
}

/// An access in flight.
struct Pending {
    access: Access,
    what: Ended,
    operation: Option<Operation>,
    /// For a read, the buffer that receives the bytes. They are then copied to these parts of the process's memory.
    buffer: Option<Buffer>,
    parts: Vec<(u64, u64)>,
    is_told: bool,
}

pub(super) struct OnRdma {
    owner: Owner,
    rdma: Rdma,
    most: usize,
    numbers: Cell<u64>,
    pending: RefCell<BTreeMap<u64, Pending>>,
    ended: Signal,
    regions: RefCell<BTreeMap<u64, Region>>,
    /// Free host memory that is registered. The key is the logarithm of its length.
    free: RefCell<BTreeMap<u32, Vec<Buffer>>>,
}

impl OnRdma {
    pub(super) fn open(owner: Owner, rdma: Rdma) -> Rc<OnRdma> {
        let (gets, events) = rdma.limits();
        // Each access has two events at this process, and one at the target.
        let most = (events / (4 * u64::from(owner.host.ranks()))).min(gets).max(1) as usize;
        let own = Rc::new(OnRdma {
            ended: owner.host.signal(),
            owner,
            rdma,
            most,
            numbers: Cell::new(0),
            pending: RefCell::default(),
            regions: RefCell::default(),
            free: RefCell::default(),
        });
        let following = own.clone();
        let host = &own.owner.host;
        Tasks::new(host).start(host, 0, host.path(), move |host| async move {
            if let Err(error) = following.follow(&host).await {
                following.owner.ended.fail(error);
            }
            Ok(None)
        });
        own
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.borrow().len()
    }

    pub(super) async fn register(&self, memory: Registration) -> Result<i64, Error> {
        let fits = memory.address.checked_add(memory.bytes).is_some_and(|end| end <= PROCESS_BYTES);
        if !fits {
            return Ok(-i64::from(libc::EINVAL));
        }
        match self.rdma.register_at(PROCESS_ADDRESSES + memory.address, memory.bytes).await {
            Ok(region) => {
                self.owner.opens(&memory);
                self.regions.borrow_mut().insert(memory.number, region);
                Ok(0)
            }
            // The region is empty, or the card's table has no room for it.
            Err(Error::Input(_) | Error::Program(_)) => Ok(-i64::from(libc::ENOMEM)),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn deregister(&self, number: u64) -> Result<i64, Error> {
        let Some(region) = self.regions.borrow_mut().remove(&number) else {
            return Ok(-i64::from(libc::EINVAL));
        };
        self.owner.closes(number);
        self.rdma.deregister(region).await?;
        Ok(0)
    }

    /// Returns host memory that is registered with the card.
    async fn stage(&self, bytes: u64) -> Result<Buffer, Error> {
        let class = bytes.max(64).next_power_of_two().ilog2();
        if let Some(buffer) = self.free.borrow_mut().get_mut(&class).and_then(Vec::pop) {
            return Ok(buffer);
        }
        let buffer = self.owner.host.alloc(1 << class)?;
        self.rdma.register(&buffer).await?;
        Ok(buffer)
    }

    fn give_back(&self, buffer: Buffer) {
        let class = buffer.len().ilog2();
        self.free.borrow_mut().entry(class).or_default().push(buffer);
    }

    /// Waits until another access may be in flight, starts the access, and returns its number. An access to an address that no
    /// process has fails at once.
    async fn begin(&self, access: Access, what: Ended, parts: Vec<(u64, u64)>) -> Option<u64> {
        let fits = access.remote.checked_add(access.bytes).is_some_and(|end| end <= PROCESS_BYTES);
        if !fits {
            self.owner.ends(&access, what, Some((libc::EACCES, Reason::Bounds)));
            return None;
        }
        self.ended.wait_until(|| self.pending() < self.most).await;
        let number = self.numbers.replace(self.numbers.get() + 1) & NUMBER;
        let pending = Pending { access, what, operation: None, buffer: None, parts, is_told: false };
        self.pending.borrow_mut().insert(number, pending);
        Some(number)
    }

    fn posted(&self, number: u64, operation: Operation, buffer: Buffer) {
        // The task that handles events has not run since the post, so no event of this access has been handled.
        if let Some(own) = self.pending.borrow_mut().get_mut(&number) {
            (own.operation, own.buffer) = (Some(operation), Some(buffer));
        }
    }

    pub(super) async fn write(&self, access: Access) -> Result<(), Error> {
        let bytes = self.owner.bytes(access.address, access.bytes)?;
        let Some(number) = self.begin(access, WRITTEN, Vec::new()).await else { return Ok(()) };
        let buffer = self.stage(access.bytes).await?;
        if !bytes.is_empty() {
            buffer.write(0, &bytes);
        }
        let has_data = access.flags & flag::DATA != 0;
        let word = data(WRITE, number, access.data as u32) | if has_data { HAS_DATA } else { 0 };
        let part = buffer.slice(0, access.bytes)?;
        let address = PROCESS_ADDRESSES + access.remote;
        let operation = self.rdma.put(&part, access.rank as u32, address, word).await?;
        self.posted(number, operation, buffer);
        Ok(())
    }

    pub(super) async fn read(&self, access: Access) -> Result<(), Error> {
        let parts = self.owner.parts(&access)?;
        let access = Access { bytes: parts.iter().map(|(_, bytes)| bytes).sum(), ..access };
        let Some(number) = self.begin(access, READ, parts).await else { return Ok(()) };
        let buffer = self.stage(access.bytes).await?;
        let part = buffer.slice(0, access.bytes)?;
        let operation = self.rdma.get(&part, access.rank as u32, PROCESS_ADDRESSES + access.remote).await?;
        self.posted(number, operation, buffer);
        Ok(())
    }

    /// Handles the events of accesses, in a task beside the process. It acts as the library, which polls for them.
    async fn follow(&self, host: &Host) -> Result<(), Error> {
        let rdma = host.rdma()?;
        let empty = self.owner.host.alloc(64)?.slice(0, 0)?;
        loop {
            let event = rdma.event().await?;
            match event.kind {
                EventKind::Sent(operation) => self.has_left(operation),
                EventKind::Fetched(operation) => self.fetched(operation)?,
                EventKind::Refused(operation, _) => self.refused(operation),
                EventKind::Received if event.data >> 62 == ANSWER => self.ends(number(event.data), None),
                EventKind::Received if event.data >> 62 == WRITE => {
                    self.served(&event);
                    let word = data(ANSWER, number(event.data), 0);
                    rdma.put(&empty, event.peer.node.0, NOWHERE, word).await?;
                }
                EventKind::Received | EventKind::Rejected(_) => {}
            }
        }
    }

    /// Returns the number of the access to which an operation of the card belongs; `None` for an answer.
    fn number_of(&self, operation: Operation) -> Option<u64> {
        let pending = self.pending.borrow();
        pending.iter().find(|(_, own)| own.operation == Some(operation)).map(|(number, _)| *number)
    }

    /// Handles the event of a write at its sender: the card has read the bytes.
    fn has_left(&self, operation: Operation) {
        let Some(number) = self.number_of(operation) else { return };
        let told = {
            let mut pending = self.pending.borrow_mut();
            let own = pending.get_mut(&number).expect("just found");
            own.buffer.take().into_iter().for_each(|buffer| self.give_back(buffer));
            let tells = own.access.flags & flag::EARLY != 0 && !own.is_told;
            own.is_told |= tells;
            tells.then_some((own.access, own.what))
        };
        if let Some((access, what)) = told {
            self.owner.ends(&access, what, None);
        }
    }

    /// Handles the arrival of the bytes of a read, and copies them to the process.
    fn fetched(&self, operation: Operation) -> Result<(), Error> {
        let Some(number) = self.number_of(operation) else { return Ok(()) };
        if let Some(Pending { buffer: Some(buffer), parts, .. }) = self.pending.borrow().get(&number) {
            let mut at = 0;
            for (address, bytes) in parts.iter().filter(|(_, bytes)| *bytes > 0) {
                memory::write(self.owner.pid, *address, &buffer.read(at, *bytes))
                    .map_err(|error| self.owner.unreachable((*address, *bytes), &error))?;
                at += bytes;
            }
        }
        self.ends(number, None);
        Ok(())
    }

    fn refused(&self, operation: Operation) {
        if let Some(number) = self.number_of(operation) {
            self.ends(number, Some((libc::EACCES, Reason::Bounds)));
        }
    }

    fn ends(&self, number: u64, failed: Option<(i32, Reason)>) {
        let Some(own) = self.pending.borrow_mut().remove(&number) else { return };
        own.buffer.into_iter().for_each(|buffer| self.give_back(buffer));
        self.ended.notify_all();
        if !own.is_told || failed.is_some() {
            self.owner.ends(&own.access, own.what, failed);
        }
    }

    /// Handles a write of another process that is now in memory.
    fn served(&self, event: &Event) {
        if event.data & HAS_DATA == 0 {
            return;
        }
        let completion = Completion {
            flags: done::REMOTE,
            bytes: event.bytes,
            data: u64::from(event.data as u32),
            source: event.peer.node.0.into(),
            ..Completion::default()
        };
        self.owner.ended.complete(completion, None);
    }
}
