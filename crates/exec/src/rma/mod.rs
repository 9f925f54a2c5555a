//! Registered memory of processes. The hosts' card executes libfabric's writes, reads and atomic operations on it.
//!
//! - `portals.rs`: on cards with Portals, a region is a match entry for memory of the process, and accesses are puts, gets and
//!   atomics;
//! - `atomics.rs`: libfabric's numbers of operators and types;
//! - `rdma.rs`: on cards with RDMA, a region is registered with the card, and accesses are the card's puts and gets.

mod atomics;
mod portals;
mod rdma;

use crate::completions::Completions;
use crate::memory;
use crate::pages::Abilities;
use crate::portals::{Notes, Process};
use crate::protocol::{Access, Completion, Kind, Operation, Reason, Registration, card, done, flag};
use nicety::portals::Features;
use nicety::{Error, Host};
use portals::OnPortals;
use rdma::OnRdma;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

/// Maximum parts of an access.
const MOST_PARTS: u64 = 8;
/// Minimum number of portal table entries: one for messages, one for the program, two for regions, and one for collective
/// operations on the card.
const LEAST_TABLE: u32 = 5;
/// The error number FI_ENOKEY of libfabric.
const NO_KEY: i64 = 266;

/// Returns the operations on registered memory that a host's card can execute for its process. It can execute none if several
/// processes share the host, because host memory is then not the memory of one process.
pub(crate) fn abilities(host: &Host, is_shared: bool) -> Abilities {
    if is_shared {
        return Abilities::default();
    }
    if let Ok(portals) = host.portals() {
        let limits = portals.ni_limits();
        let (gets, atomics) =
            (limits.features.contains(Features::GET), limits.features.contains(Features::ATOMIC));
        return match (gets && limits.portal_table >= LEAST_TABLE, atomics) {
            (false, _) => Abilities::default(),
            (true, false) => Abilities { card: card::RMA | card::EVENTS, ..Abilities::default() },
            (true, true) => Abilities {
                card: card::RMA | card::EVENTS | card::ATOMIC,
                atomic_bytes: u32::try_from(limits.atomic_bytes).unwrap_or(u32::MAX),
                fetch_bytes: u32::try_from(limits.fetch_atomic_bytes).unwrap_or(u32::MAX),
            },
        };
    }
    match host.rdma() {
        Ok(_) => Abilities { card: card::RMA | card::ADDRESSES, ..Abilities::default() },
        Err(_) => Abilities::default(),
    }
}

/// The implementation of registered memory on a card.
enum Mechanism {
    Portals(Rc<OnPortals>),
    Rdma(Rc<OnRdma>),
}

/// The state that both implementations need.
#[derive(Clone)]
struct Owner {
    host: Host,
    pid: u32,
    ended: Rc<Completions>,
    /// Ranges that other processes may write: number, address and length.
    writable: Rc<RefCell<Vec<(u64, u64, u64)>>>,
}

/// The registered memory of a process, and the process's accesses to registered memory of others.
pub(crate) struct Rma {
    host: Host,
    ended: Rc<Completions>,
    notes: Notes,
    mechanism: OnceCell<Mechanism>,
}

/// Returns the error of a call that the card of the run does not support.
fn none() -> Error {
    Error::Program("the process accesses registered memory, which its card does not offer".to_owned())
}

impl Rma {
    pub(crate) fn new(host: &Host, ended: &Rc<Completions>, notes: &Notes) -> Rma {
        Rma { host: host.clone(), ended: ended.clone(), notes: notes.clone(), mechanism: OnceCell::new() }
    }

    /// Returns the implementation. Creates it at the first call.
    fn mechanism(&self, pid: Option<u32>) -> Result<&Mechanism, Error> {
        if let Some(mechanism) = self.mechanism.get() {
            return Ok(mechanism);
        }
        let pid = pid.ok_or_else(|| Error::Program("the rank has no process".to_owned()))?;
        let owner =
            Owner { host: self.host.clone(), pid, ended: self.ended.clone(), writable: Rc::default() };
        let process = self.process(&owner);
        let mechanism = if let Ok(portals) = self.host.portals() {
            portals.add_process(process);
            Mechanism::Portals(OnPortals::open(owner, portals)?)
        } else if let Ok(rdma) = self.host.rdma() {
            rdma.add_process(process);
            Mechanism::Rdma(OnRdma::open(owner, rdma))
        } else {
            return Err(none());
        };
        Ok(self.mechanism.get_or_init(|| mechanism))
    }

    /// Returns the memory of the process as host memory. Writes of other processes into it are news for the process.
    fn process(&self, owner: &Owner) -> Process {
        let (writable, ended) = (owner.writable.clone(), self.ended.clone());
        let wrote = move |address: u64, bytes: usize| {
            let touches = |(_, start, length): &(u64, u64, u64)| {
                *start < address + bytes as u64 && address < start.saturating_add(*length)
            };
            if writable.borrow().iter().any(touches) {
                ended.change();
            }
        };
        let _ = self.notes.wrote.set(Box::new(wrote));
        Process { pid: owner.pid, rank: self.host.rank(), notes: self.notes.clone() }
    }

    /// Registers memory. Returns 0 or a negative error.
    pub(crate) async fn register(&self, pid: Option<u32>, memory: Registration) -> Result<i64, Error> {
        match self.mechanism(pid)? {
            Mechanism::Portals(portals) => portals.register(memory).await,
            Mechanism::Rdma(rdma) => rdma.register(memory).await,
        }
    }

    /// Ends a registration. Returns 0 or a negative error.
    pub(crate) async fn deregister(&self, number: u64) -> Result<i64, Error> {
        match self.mechanism.get() {
            Some(Mechanism::Portals(portals)) => portals.deregister(number).await,
            Some(Mechanism::Rdma(rdma)) => rdma.deregister(number).await,
            None => Err(none()),
        }
    }

    pub(crate) async fn write(&self, pid: Option<u32>, access: Access) -> Result<(), Error> {
        match self.mechanism(pid)? {
            Mechanism::Portals(portals) => portals.write(access).await,
            Mechanism::Rdma(rdma) => rdma.write(access).await,
        }
    }

    pub(crate) async fn read(&self, pid: Option<u32>, access: Access) -> Result<(), Error> {
        match self.mechanism(pid)? {
            Mechanism::Portals(portals) => portals.read(access).await,
            Mechanism::Rdma(rdma) => rdma.read(access).await,
        }
    }

    pub(crate) async fn atomic(&self, pid: Option<u32>, access: Access, op: Operation) -> Result<(), Error> {
        match self.mechanism(pid)? {
            Mechanism::Portals(portals) => portals.atomic(access, op).await,
            Mechanism::Rdma(_) => Err(none()),
        }
    }

    /// Returns the number of accesses that have not ended.
    pub(crate) fn pending(&self) -> usize {
        match self.mechanism.get() {
            Some(Mechanism::Portals(portals)) => portals.pending(),
            Some(Mechanism::Rdma(rdma)) => rdma.pending(),
            None => 0,
        }
    }
}

impl Owner {
    /// Reads bytes from the memory of the process now.
    fn bytes(&self, address: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        memory::bytes(self.pid, 0, address, bytes).map_err(|error| self.unreachable((address, bytes), &error))
    }

    fn unreachable(&self, place: (u64, u64), error: &std::io::Error) -> Error {
        self.ended.unreachable(", of an access to registered memory,", place, error)
    }

    /// Returns the parts of memory to which a read goes: addresses and lengths.
    fn parts(&self, access: &Access) -> Result<Vec<(u64, u64)>, Error> {
        if access.flags & flag::PARTS == 0 {
            return Ok(vec![(access.address, access.bytes)]);
        }
        let list = self.bytes(access.address, 16 * access.bytes.min(MOST_PARTS))?;
        let words: Vec<u64> = list.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Ok(words.as_chunks::<2>().0.iter().map(|[address, bytes]| (*address, *bytes)).collect())
    }

    /// Records that other processes may write to this memory.
    fn opens(&self, memory: &Registration) {
        self.writable.borrow_mut().push((memory.number, memory.address, memory.bytes));
    }

    fn closes(&self, number: u64) {
        self.writable.borrow_mut().retain(|(own, ..)| *own != number);
    }

    /// Ends an access. It is counted. The process gets a completion if it has requested one, or if the access failed.
    fn ends(&self, access: &Access, what: Ended, failed: Option<(i32, Reason)>) {
        self.ended.count(what.kind, failed.is_none());
        if access.flags & flag::COMPLETION == 0 && failed.is_none() {
            return;
        }
        let (error, reason) = failed.map_or((0, 0), |(error, reason)| (error, reason as u64));
        let completion = Completion {
            context: access.context,
            flags: what.flags,
            error,
            source: crate::protocol::ANY,
            cut: reason,
            ..Completion::default()
        };
        self.ended.complete(completion, None);
    }
}

/// The kind of an access that ends, for counters, and the flags of its completion.
#[derive(Clone, Copy)]
struct Ended {
    kind: Kind,
    flags: u32,
}

const WRITTEN: Ended = Ended { kind: Kind::Write, flags: done::WRITE };
const READ: Ended = Ended { kind: Kind::Read, flags: done::READ };
const OPERATED: Ended = Ended { kind: Kind::Write, flags: done::WRITE | done::ATOMIC };
const FETCHED: Ended = Ended { kind: Kind::Read, flags: done::READ | done::ATOMIC };
