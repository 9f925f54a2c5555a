//! Portals 4 for processes. The files `shim/portals*.c` make the calls, and the Portals interface of a host's card executes them.
//!
//! - `wire.rs`: the calls and outcomes of the table of calls, encoded in words;
//! - `codes.rs`: constants of the header, and return codes;
//! - `handles.rs`: handles of the card's objects;
//! - `process.rs`: the memory of a process, which its card reads and writes in place;
//! - `setup.rs`: calls that take no virtual time;
//! - `posted.rs`: calls that take virtual time: posts and waits.

mod codes;
mod handles;
mod posted;
mod process;
mod setup;
mod wire;

use crate::memory;
use crate::protocol::WORDS;
use crate::spent::Part;
use crate::turns::Turns;
use codes::{Stop, number};
use nicety::portals::{CtEvent, CtHandle, EqHandle, MdHandle, MeHandle};
use nicety::{Buffer, Duration, Error, Host, HpuMemoryId, PROCESS_ADDRESSES, Portals, Time};
pub(crate) use process::{Notes, Process};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use wire::{Call, Compute, Copied, Limits, Nothing, Number};
pub(crate) use wire::{is_look, op};

/// Maximum bytes of process memory in a call. No card has as much HPU memory.
const MOST_BYTES: u64 = 64 << 20;

/// The transfers of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
    /// Messages of other processes that matched an entry of this process.
    pub(crate) matched: u64,
}

/// Whether a memory descriptor reports its operations by events and by counts.
#[derive(Clone, Copy)]
struct Reporting {
    by_events: bool,
    by_counts: bool,
}

/// The objects of an interface. They are freed when the interface is closed.
#[derive(Default)]
struct Objects {
    entries: Vec<MeHandle>,
    descriptors: BTreeMap<MdHandle, Reporting>,
    queues: Vec<EqHandle>,
    /// Counters, each with the value that the process has last read.
    counters: BTreeMap<CtHandle, CtEvent>,
    table: Vec<u32>,
    pieces: Vec<HpuMemoryId>,
    attached: Vec<u32>,
}

/// The Portals interface of one process.
pub(crate) struct Interface {
    host: Host,
    turns: Rc<Turns>,
    rank: u32,
    /// The virtual time of a look at a counter.
    look: Duration,
    /// The start of the first of the process's failed looks.
    failed_looks: Cell<Option<Time>>,
    /// Whether commands that name counters or descriptors may be in flight. The card does not answer them.
    commands: Cell<bool>,
    portals: OnceCell<Portals>,
    is_open: Cell<bool>,
    objects: RefCell<Objects>,
    notes: Notes,
    moved: Cell<Moved>,
    /// Two buffers of the host. In a simulated copy, they represent the process's memory.
    copied: RefCell<Option<(Buffer, Buffer)>>,
}

type Words = [u64; WORDS];

/// Returns the result of a wait that ended before a counter reached its value.
pub(crate) fn not_reached() -> i64 {
    number("PTL_CT_NONE_REACHED")
}

impl Interface {
    pub(crate) fn new(host: &Host, turns: &Rc<Turns>, look: Duration) -> Interface {
        Interface {
            host: host.clone(),
            turns: turns.clone(),
            rank: host.rank(),
            look,
            failed_looks: Cell::default(),
            commands: Cell::new(false),
            portals: OnceCell::new(),
            is_open: Cell::new(false),
            objects: RefCell::default(),
            notes: Notes::default(),
            moved: Cell::default(),
            copied: RefCell::default(),
        }
    }

    /// Returns the transfers of the process so far.
    pub(crate) fn moved(&self) -> Moved {
        let matched = self.portals.get().map_or(0, |portals| {
            let statistics = portals.card().statistics();
            statistics.matched + statistics.matched_overflow
        });
        Moved { matched, ..self.moved.get() }
    }

    /// Returns the error if the card could not access memory of the process.
    pub(crate) fn missed(&self) -> Option<Error> {
        self.notes.missed.borrow().clone().map(Error::Program)
    }

    /// Returns the notes about the process's memory.
    pub(crate) fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Executes a call, and returns the number of its return code.
    pub(crate) async fn call(&self, op: u32) -> Result<i64, Error> {
        if !is_look(op) {
            self.failed_looks.set(None);
        }
        let done = self.carry_out(Call::of(op, &self.turns.pages.words(self.rank))).await;
        if let Some(missed) = self.missed() {
            return Err(missed);
        }
        match done {
            Ok(words) => {
                self.turns.pages.set_words(self.rank, &words);
                Ok(0)
            }
            Err(Stop::Refused(code, why)) => {
                self.turns.pages.set_reason(self.rank, &why);
                Ok(number(code))
            }
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    /// Executes a call, and returns the words of its outcome. Refuses a call with an unknown number.
    async fn carry_out(&self, call: Option<Call>) -> Result<Words, Stop> {
        match call {
            Some(Call::Barrier(_)) => {
                self.host.barrier().await;
                return Ok(Nothing {}.into());
            }
            Some(Call::Compute(Compute { ns })) => {
                let ps = ns.checked_mul(1000).ok_or_else(|| Stop::invalid("a time of more than 213 days"))?;
                self.host.compute(Duration::from_ps(ps)).await;
                return Ok(Nothing {}.into());
            }
            Some(Call::Fini(_)) => return Ok(Nothing {}.into()),
            Some(Call::Copied(Copied { bytes })) => {
                self.copy(bytes).await?;
                return Ok(Nothing {}.into());
            }
            Some(Call::NiInit(_)) => return Ok(self.open()?.into()),
            _ => {}
        }
        let Some(portals) = self.portals.get().filter(|_| self.is_open.get()) else {
            let why = "no interface is open; PtlNIInit opens one";
            return Err(Stop::Refused("PTL_NO_INIT", why.to_owned()));
        };
        let Some(call) = call else {
            return Err(Stop::invalid(
                "there is no such call: the process has another version of the library",
            ));
        };
        // An object must exist until commands that name it have reached the card, even if the process has freed it.
        if matches!(call, Call::CtFree(_) | Call::MdRelease(_) | Call::NiFini(_)) && self.commands.take() {
            portals.atomic_sync().await?;
        }
        match self.set_up(portals, &call)? {
            Some(value) => Ok(Number { value }.into()),
            None => self.post(portals, call).await,
        }
    }

    /// Opens the interface (`PtlNIInit`).
    fn open(&self) -> Result<Limits, Stop> {
        if self.portals.get().is_none() {
            let portals = self.host.portals()?;
            let none = || Error::Program(format!("rank {} has no process", self.rank));
            let pid = self.turns.pages.process(self.rank).ok_or_else(none)?;
            portals.add_process(Process { pid, rank: self.rank, notes: self.notes.clone() });
            let _ = self.portals.set(portals);
        }
        self.is_open.set(true);
        let limits = self.portals.get().expect("just opened").ni_limits();
        Ok(Limits {
            max_entries: limits.entries.into(),
            max_unexpected_headers: limits.unexpected_headers.into(),
            max_mds: limits.descriptors.into(),
            max_eqs: limits.event_queues.into(),
            max_cts: limits.counters.into(),
            max_pt_index: limits.portal_table.saturating_sub(1).into(),
            max_list_size: limits.list_length.into(),
            max_triggered_ops: limits.triggered.into(),
            max_msg_size: limits.message_bytes,
            max_atomic_size: limits.atomic_bytes,
            max_fetch_atomic_size: limits.fetch_atomic_bytes,
        })
    }

    /// Frees the objects of the interface, except those in use (`PtlNIFini`). Use-once entries free themselves.
    async fn close(&self, portals: &Portals) {
        self.is_open.set(false);
        let objects = self.objects.take();
        for me in objects.entries {
            let _ = portals.me_unlink(me).await;
        }
        let card = portals.card();
        objects.table.into_iter().for_each(|pt| drop(card.pt_free(pt)));
        objects.descriptors.into_keys().for_each(|md| drop(card.md_release(md)));
        objects.queues.into_iter().for_each(|eq| drop(card.eq_free(eq)));
        objects.counters.into_keys().for_each(|ct| drop(card.ct_free(ct)));
        objects.attached.into_iter().for_each(|cookie| drop(card.detach(cookie)));
        objects.pieces.into_iter().for_each(|piece| drop(card.hpu_free(piece)));
    }

    /// Reads bytes from the memory of the process.
    fn bytes(&self, address: u64, bytes: u64) -> Result<Vec<u8>, Stop> {
        let none = || Stop::invalid("the rank has no process");
        let pid = self.turns.pages.process(self.rank).ok_or_else(none)?;
        if bytes > MOST_BYTES {
            return Err(Stop::invalid(&format!("{bytes} bytes in one call; the maximum is {MOST_BYTES}")));
        }
        let mut read = vec![0; bytes as usize];
        memory::read(pid, address, &mut read).map_err(|error| {
            Stop::invalid(&format!("{bytes} bytes at {address:#x} of the process: {error}"))
        })?;
        Ok(read)
    }

    fn text(&self, address: u64, bytes: u64) -> Result<Option<String>, Stop> {
        if address == 0 {
            return Ok(None);
        }
        let text = String::from_utf8(self.bytes(address, bytes)?);
        text.map(Some).map_err(|_| Stop::invalid("a name that is not UTF-8"))
    }

    /// Returns the address in host memory that stands for an address of the process, and the length.
    fn place(start: u64, length: u64) -> Result<(u64, u64), Stop> {
        if start >= nicety::PROCESS_BYTES {
            return Err(Stop::invalid("an address outside the memory of any process"));
        }
        // A descriptor of all memory ends at the last address of the process.
        Ok((PROCESS_ADDRESSES + start, length.min(nicety::PROCESS_BYTES - start)))
    }

    /// Takes the virtual time of a copy of `bytes` bytes.
    async fn copy(&self, bytes: u64) -> Result<(), Stop> {
        let room = self.copied.take().filter(|(from, _)| from.len() >= bytes);
        let (from, to) = match room {
            Some(room) => room,
            None => {
                // The process gives the length: a length beyond every memory is refused by the allocation.
                let room = bytes.checked_next_power_of_two().unwrap_or(bytes);
                (self.host.alloc(room)?, self.host.alloc(room)?)
            }
        };
        let done = self.host.copy(&from.slice(0, bytes)?, &to.slice(0, bytes)?).await;
        self.copied.replace(Some((from, to)));
        Ok(done?)
    }

    /// Records the end of a look at a counter that began at `begun`.
    async fn looked(&self, portals: &Portals, begun: Time, found: bool) {
        if found {
            return self.failed_looks.set(None);
        }
        let since = self.failed_looks.get().unwrap_or(begun);
        self.failed_looks.set(Some(since));
        let what = || "an event or a count of Portals, for which it polls".to_owned();
        self.turns.lap(self.rank, Part::Looks);
        self.turns.looked_in_vain((self.rank, since), 1, what, portals.changed().wait()).await;
        self.turns.lap(self.rank, Part::Waits);
    }

    /// Counts an operation that transfers `bytes` bytes.
    fn count(&self, bytes: u64) {
        let Moved { operations, bytes: before, matched } = self.moved.get();
        self.moved.set(Moved { operations: operations + 1, bytes: before + bytes, matched });
    }
}
