//! Registered memory on cards with Portals.
//!
//! A region is a match entry for memory of the process. The match bits are the region's key. An entry does not truncate, so an
//! access beyond the region matches no entry. Then no byte is written, and the card reports the failure to the initiator.
//!
//! Each region has entries at two portal table indices. Entries at the first index cause no events, or one for each access if
//! counters of the target count accesses. Entries at the second index are for writes with data for the target's completion queue.
//! Each of these writes causes an event.
//!
//! An operation ends with its acknowledgement or reply. The target's card sends it when the bytes are in the target's memory.

use super::atomics::AtomicForm;
use super::{Ended, FETCHED, NO_KEY, OPERATED, Owner, READ, WRITTEN};
use crate::protocol::{Access, Completion, Kind, Operation, Reason, Registration, done, flag, right};
use nicety::portals::{
    AckRequest, Atomic, AtomicRequest, EqHandle, Event, EventKind, FailType, FetchRequest, GetRequest, List,
    Md, MdHandle, MdOptions, Me, MeHandle, MeOptions, Operand, PutRequest, Request,
};
use nicety::{Buffer, Duration, Error, Host, NodeId, PROCESS_ADDRESSES, PROCESS_BYTES, Portals, Tasks};
use nicety_kernel::Signal;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Maximum events in the queue, unless the card's limit is lower.
const EVENTS: u32 = 1 << 14;
/// Maximum attempts to unlink a region that messages still use. Then the call fails as busy.
const LOOKS: u32 = 1000;

/// Host memory with a copy of bytes of the process, which may change there.
struct Staged {
    buffer: Buffer,
    md: MdHandle,
}

/// An access in flight.
struct Pending {
    access: Access,
    what: Ended,
    /// The number of acknowledgements and replies that have not arrived.
    left: u32,
    fail: FailType,
    /// Whether the process has got its completion.
    is_told: bool,
    staged: Vec<Staged>,
}

struct Region {
    key: u64,
    entries: Vec<(u32, MeHandle)>,
}

pub(super) struct OnPortals {
    owner: Owner,
    portals: Portals,
    /// The portal table indices, equal in all ranks: for regions, and for regions as targets of writes with data.
    tables: [u32; 2],
    has_tables: Cell<bool>,
    eq: EqHandle,
    /// Two descriptors of all memory of the process. `whole` causes an event at the end of an operation. `early` also causes an
    /// event when the bytes have been read.
    whole: MdHandle,
    early: MdHandle,
    /// Maximum accesses in flight. `freed` signals the end of an access.
    most: usize,
    freed: Signal,
    numbers: Cell<u64>,
    pending: RefCell<BTreeMap<u64, Pending>>,
    regions: RefCell<BTreeMap<u64, Region>>,
    /// Free host memory. The key is the logarithm of its length.
    free: RefCell<BTreeMap<u32, Vec<Staged>>>,
}

impl OnPortals {
    pub(super) fn open(owner: Owner, portals: Portals) -> Result<Rc<OnPortals>, Error> {
        let limits = portals.ni_limits();
        let depth = EVENTS.min(limits.event_queue_depth);
        let eq = portals.eq_alloc(depth)?;
        let memory =
            |options| Md { start: PROCESS_ADDRESSES, length: PROCESS_BYTES, options, eq: Some(eq), ct: None };
        let own = Rc::new(OnPortals {
            // The last index belongs to the library that executes collective operations of MPI on the card.
            tables: [limits.portal_table - 2, limits.portal_table - 3],
            has_tables: Cell::new(false),
            whole: portals.md_bind(memory(MdOptions::EVENT_SEND_DISABLE))?,
            early: portals.md_bind(memory(MdOptions::empty()))?,
            eq,
            // Each access has at most two events, and a target refuses a request if it has no room for the reply.
            most: (depth / 4)
                .min(limits.operations / 2)
                .min(portals.card().spec().replies / owner.host.ranks())
                .max(1) as usize,
            freed: owner.host.signal(),
            numbers: Cell::new(0),
            pending: RefCell::default(),
            regions: RefCell::default(),
            free: RefCell::default(),
            owner,
            portals,
        });
        let tasks = Tasks::new(&own.owner.host);
        let following = own.clone();
        tasks.start(&own.owner.host, 0, own.owner.host.path(), move |host| async move {
            if let Err(error) = following.follow(&host).await {
                following.owner.ended.fail(error);
            }
            Ok(None)
        });
        Ok(own)
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.borrow().len()
    }

    /// Registers memory: appends the match entries of a region.
    pub(super) async fn register(&self, memory: Registration) -> Result<i64, Error> {
        if self.regions.borrow().values().any(|region| region.key == memory.key) {
            return Ok(-NO_KEY);
        }
        if memory.address >= PROCESS_BYTES {
            return Ok(-i64::from(libc::EINVAL));
        }
        if !self.has_tables.replace(true) {
            for table in self.tables {
                self.portals.pt_alloc(Some(table), Some(self.eq))?;
            }
        }
        let mut options =
            MeOptions::NO_TRUNCATE | MeOptions::EVENT_LINK_DISABLE | MeOptions::EVENT_UNLINK_DISABLE;
        options.set(MeOptions::OP_GET, memory.rights & right::READ != 0);
        options.set(MeOptions::OP_PUT, memory.rights & right::WRITE != 0);
        let silent =
            if memory.flags & flag::EVENTS == 0 { MeOptions::EVENT_COMM_DISABLE } else { MeOptions::empty() };
        let mut region = Region { key: memory.key, entries: Vec::new() };
        for (table, options) in self.tables.into_iter().zip([options | silent, options - MeOptions::OP_GET]) {
            if !options.intersects(MeOptions::OP_GET | MeOptions::OP_PUT) {
                continue;
            }
            let me = Me {
                start: PROCESS_ADDRESSES + memory.address,
                // A region of this length means all memory from its address on.
                length: memory.bytes.min(PROCESS_BYTES - memory.address),
                match_bits: memory.key,
                options,
                user_ptr: u64::from(memory.flags),
                ..Me::default()
            };
            let appending = self.portals.me_append(table, me, List::Priority).await?;
            match self.portals.appended(appending).await {
                Ok(entry) => region.entries.push((table, entry)),
                Err(_) => {
                    self.unlink(region).await?;
                    return Ok(-i64::from(libc::ENOSPC));
                }
            }
        }
        if memory.rights & right::WRITE != 0 {
            self.owner.opens(&memory);
        }
        self.regions.borrow_mut().insert(memory.number, region);
        Ok(0)
    }

    pub(super) async fn deregister(&self, number: u64) -> Result<i64, Error> {
        let Some(region) = self.regions.borrow_mut().remove(&number) else {
            return Ok(-i64::from(libc::EINVAL));
        };
        self.owner.closes(number);
        self.unlink(region).await
    }

    /// Unlinks the match entries of a region, after messages that use them have ended.
    async fn unlink(&self, region: Region) -> Result<i64, Error> {
        for (_, entry) in region.entries {
            let mut looks = 0;
            while let Err(error) = self.portals.me_unlink(entry).await {
                let Error::Program(why) = &error else { return Err(error) };
                if looks == LOOKS || !why.starts_with("PTL_IN_USE") {
                    return Ok(-i64::from(libc::EBUSY));
                }
                looks += 1;
                self.owner.host.pause(Duration::from_ps(1_000_000)).await;
            }
        }
        Ok(0)
    }

    /// Returns host memory for `bytes` bytes.
    fn stage(&self, bytes: u64) -> Result<Staged, Error> {
        let class = bytes.max(64).next_power_of_two().ilog2();
        if let Some(staged) = self.free.borrow_mut().get_mut(&class).and_then(Vec::pop) {
            return Ok(staged);
        }
        let buffer = self.owner.host.alloc(1 << class)?;
        let md = Md {
            start: buffer.address(),
            length: buffer.len(),
            options: MdOptions::EVENT_SEND_DISABLE,
            eq: Some(self.eq),
            ct: None,
        };
        Ok(Staged { md: self.portals.md_bind(md)?, buffer })
    }

    /// Returns host memory with these bytes.
    fn stage_with(&self, bytes: &[u8]) -> Result<Staged, Error> {
        let staged = self.stage(bytes.len() as u64)?;
        if !bytes.is_empty() {
            staged.buffer.write(0, bytes);
        }
        Ok(staged)
    }

    fn give_back(&self, staged: Staged) {
        let class = staged.buffer.len().ilog2();
        self.free.borrow_mut().entry(class).or_default().push(staged);
    }

    /// Waits until another access may be in flight, and returns the number of the new access.
    async fn begin(&self, access: Access, what: Ended, left: u32, staged: Vec<Staged>) -> u64 {
        self.freed.wait_until(|| self.pending() < self.most).await;
        let number = self.numbers.replace(self.numbers.get() + 1);
        let pending = Pending { access, what, left, fail: FailType::Ok, is_told: false, staged };
        self.pending.borrow_mut().insert(number, pending);
        number
    }

    /// Returns the put of an access. Its bytes are in staged host memory, or in the process's own memory.
    fn put(&self, access: &Access, staged: Option<&Staged>, number: u64) -> PutRequest {
        let has_data = access.flags & flag::DATA != 0;
        let own = if access.flags & flag::EARLY != 0 { self.early } else { self.whole };
        PutRequest {
            local_offset: if staged.is_some() { 0 } else { access.address },
            ack: AckRequest::Full,
            remote_offset: access.remote,
            user_ptr: number,
            hdr_data: if has_data { access.data } else { 0 },
            ..PutRequest::new(
                staged.map_or(own, |staged| staged.md),
                access.bytes,
                NodeId(access.rank as u32),
                self.tables[usize::from(has_data)],
                access.key,
            )
        }
    }

    pub(super) async fn write(&self, access: Access) -> Result<(), Error> {
        let staged = match access.flags & flag::COPY {
            0 => None,
            _ => Some(self.stage_with(&self.owner.bytes(access.address, access.bytes)?)?),
        };
        let mut put = self.put(&access, staged.as_ref(), 0);
        put.user_ptr = self.begin(access, WRITTEN, 1, staged.into_iter().collect()).await;
        self.portals.put(&put).await
    }

    pub(super) async fn read(&self, access: Access) -> Result<(), Error> {
        let parts = self.owner.parts(&access)?;
        let number = self.begin(access, READ, parts.len() as u32, Vec::new()).await;
        let mut remote_offset = access.remote;
        for (address, bytes) in parts {
            let get = GetRequest {
                local_offset: address,
                remote_offset,
                user_ptr: number,
                ..GetRequest::new(self.whole, bytes, NodeId(access.rank as u32), self.tables[0], access.key)
            };
            remote_offset = remote_offset.saturating_add(bytes);
            self.portals.get(&get).await?;
        }
        Ok(())
    }

    pub(super) async fn atomic(&self, access: Access, operation: Operation) -> Result<(), Error> {
        let does = AtomicForm::of(&operation).ok_or_else(|| {
            Error::Program(format!("the process requests an unknown atomic operation: {operation:?}"))
        })?;
        let items = match does {
            AtomicForm::Reads(_) => Some(self.stage_with(&vec![0; access.bytes as usize])?),
            _ if access.flags & flag::COPY == 0 => None,
            _ => Some(self.stage_with(&self.owner.bytes(access.address, access.bytes)?)?),
        };
        let scratch = match does {
            AtomicForm::Writes(_) => Some(self.stage(access.bytes)?),
            _ => None,
        };
        let mut put = self.put(&access, items.as_ref(), 0);
        let (get_md, local_get_offset) =
            scratch.as_ref().map_or((self.whole, operation.result), |scratch| (scratch.md, 0));
        let what = if operation.kind == 0 { OPERATED } else { FETCHED };
        let operand = |atomic: Atomic| -> Result<Operand, Error> {
            let bytes = self.owner.bytes(operation.compared, atomic.operand_bytes() as u64)?;
            Operand::new(&bytes).map_err(|error| Error::Program(error.to_string()))
        };
        let operand = match does {
            AtomicForm::Swaps(atomic) => operand(atomic)?,
            _ => Operand::NONE,
        };
        put.user_ptr = self.begin(access, what, 1, items.into_iter().chain(scratch).collect()).await;
        let fetch = |atomic| {
            let put = PutRequest { ack: AckRequest::None, ..put };
            FetchRequest { get_md, local_get_offset, put, atomic, operand }
        };
        let request = match does {
            AtomicForm::Combines(atomic) => Request::Atomic(AtomicRequest { put, atomic }),
            AtomicForm::Fetches(atomic) | AtomicForm::Reads(atomic) => Request::FetchAtomic(fetch(atomic)),
            AtomicForm::Swaps(atomic) | AtomicForm::Writes(atomic) => Request::Swap(fetch(atomic)),
        };
        self.portals.post(&request).await
    }

    /// Handles the events of accesses, in a task beside the process. It acts as the library, which polls for them.
    async fn follow(&self, host: &Host) -> Result<(), Error> {
        let portals = host.portals()?;
        loop {
            let what = || "the end of an access to registered memory".to_owned();
            let event = portals.eq_wait(self.eq, |_| true, what).await?;
            self.heard(&event);
        }
    }

    fn heard(&self, event: &Event) {
        match event.kind {
            EventKind::Send => self.has_left(event.user_ptr, event.fail),
            EventKind::Ack | EventKind::Reply => self.answered(event.user_ptr, event.fail),
            EventKind::Put | EventKind::Atomic | EventKind::FetchAtomic | EventKind::Get => {
                self.served(event)
            }
            _ => {}
        }
    }

    /// Handles the SEND event of a write: the card has read the bytes of the write.
    fn has_left(&self, number: u64, fail: FailType) {
        let mut pending = self.pending.borrow_mut();
        let Some(own) = pending.get_mut(&number).filter(|_| fail.is_ok()) else { return };
        if own.access.flags & flag::EARLY != 0 && !own.is_told {
            own.is_told = true;
            let (access, what) = (own.access, own.what);
            drop(pending);
            self.owner.ends(&access, what, None);
        }
    }

    /// Handles an acknowledgement or a reply.
    fn answered(&self, number: u64, fail: FailType) {
        let ended = {
            let mut pending = self.pending.borrow_mut();
            let Some(own) = pending.get_mut(&number) else { return };
            own.left -= 1;
            own.fail = own.fail.or(fail);
            if own.left > 0 {
                return;
            }
            pending.remove(&number).expect("just found")
        };
        self.freed.notify_all();
        ended.staged.into_iter().for_each(|staged| self.give_back(staged));
        let failed = reason(ended.fail);
        if !ended.is_told || failed.is_some() {
            self.owner.ends(&ended.access, ended.what, failed);
        }
    }

    /// Handles an access of another process to a region of this process.
    fn served(&self, event: &Event) {
        if !event.fail.is_ok() {
            return;
        }
        let reads = matches!(event.kind, EventKind::Get | EventKind::FetchAtomic);
        if event.user_ptr & u64::from(flag::EVENTS) != 0 {
            self.owner.ended.count(if reads { Kind::RemoteRead } else { Kind::RemoteWrite }, true);
        }
        if event.pt == self.tables[1] {
            let completion = Completion {
                flags: done::REMOTE,
                bytes: event.mlength,
                data: event.hdr_data,
                source: event.initiator.0.into(),
                ..Completion::default()
            };
            self.owner.ended.complete(completion, None);
        }
    }
}

/// Returns the error number of an access and the reason; `None` if the access succeeded.
fn reason(fail: FailType) -> Option<(i32, Reason)> {
    match fail {
        FailType::Ok => None,
        FailType::Dropped => Some((libc::EACCES, Reason::Bounds)),
        FailType::OpViolation | FailType::PermViolation => Some((libc::EACCES, Reason::Rights)),
        _ => Some((libc::EIO, Reason::Other)),
    }
}
