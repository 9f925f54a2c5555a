//! A host's interface to a card with processes: [`Channels`]. Most calls are set-up and take no virtual time.

use super::{Buffer, Device, Host};
use crate::Error;
use nicety_nic_nfp::observe::Observe;
use nicety_nic_nfp::{
    CardMemory, MESSAGE_QUEUE, NfpSpec, Process, ProcessTable, Processes, Program, ProgramProfile, Start,
};
use std::rc::Rc;
use std::sync::Arc;

/// The processes on a host's card and the channels to them. The interface belongs to one thread of the host's program. Cheap to
/// clone.
#[derive(Clone)]
pub struct Channels {
    host: Host,
    table: Rc<ProcessTable>,
}

impl Host {
    /// Returns the interface to the processes on this host's card, and to their channels.
    ///
    /// # Errors
    /// When the card is of another design. The error names a card with processes.
    pub fn channels(&self) -> Result<Channels, Error> {
        Ok(Channels { host: self.clone(), table: self.inner.card.of::<ProcessTable>()? })
    }
}

impl Channels {
    /// Returns the interface to a further card of the host. Card 0 is the one that [`Host::channels`] returns.
    ///
    /// # Errors
    /// When the host has no such card (`host.cards`).
    pub fn card(&self, number: u32) -> Result<Channels, Error> {
        let Some(further) = (number as usize).checked_sub(1) else { return self.host.channels() };
        let first = self.host.inner.card.of::<ProcessTable>()?;
        let missing = || {
            let last = first.further().len();
            Error::Input(format!(
                "there is no card {number}; the host has cards 0 to {last} (host.cards); set host.cards = {} or more",
                u64::from(number) + 1
            ))
        };
        let table = first.further().get(further).ok_or_else(missing)?.clone();
        Ok(Channels { host: self.host.clone(), table })
    }

    /// Number of cards in the host.
    ///
    /// # Errors
    /// When the host's card has another design.
    pub fn cards(&self) -> Result<u32, Error> {
        let first = self.host.inner.card.of::<ProcessTable>()?;
        Ok(first.all().count() as u32)
    }

    /// Profiles the processes that start from now on, on this card.
    pub fn profile(&self) {
        self.table.profile();
    }

    /// Ends the profiles of this card, and returns them in the order of the programs' first processes.
    pub fn take_profiles(&self) -> Vec<ProgramProfile> {
        self.table.take_profiles()
    }

    /// Reports the instructions of all processes that start from now on to `observer`, on this card.
    ///
    /// # Panics
    /// When the card already has an observer.
    pub fn observed_by(&self, observer: Rc<dyn Observe>) {
        self.table.observed_by(observer);
    }

    /// The number of this card in the host.
    pub fn number(&self) -> usize {
        self.table.number()
    }

    /// The card's spec.
    pub fn spec(&self) -> &NfpSpec {
        self.table.spec()
    }

    /// The address of the card's specification. It identifies the specification while the cards exist.
    pub(crate) fn spec_address(&self) -> usize {
        Arc::as_ptr(self.table.card().spec()).addr()
    }

    /// Opens the device through which this thread calls the processes. This is set-up: it takes no virtual time.
    pub fn open(&self) -> Device {
        Device { host: self.host.clone(), device: self.table.card().open(), card: self.number() }
    }

    /// Makes a system call that locks the pages of a buffer for the card, and then unlocks them. Returns the number of pages.
    pub async fn lock(&self, buffer: &Buffer) -> u64 {
        let kernel = self.table.card().kernel();
        let pages = kernel.spec().pages(buffer.address(), buffer.len());
        let lock = async |path: &mut _| {
            kernel.call(path).await;
            kernel.pin(pages, path).await;
            kernel.unpin(pages, path).await;
        };
        self.host.timed("lock and translate", lock).await;
        pages
    }

    /// Loads a compiled program with functions of processes, for this card.
    ///
    /// # Errors
    /// When the program is not for the card's microengines, or does not fit a microengine.
    pub fn load(&self, elf: &[u8]) -> Result<Processes, Error> {
        let program = Program::load(elf, self.table.spec());
        program.map(Processes).map_err(|error| Error::Input(error.to_string()))
    }

    /// Starts a process on a context of a microengine. The process runs there until its function returns.
    ///
    /// # Errors
    /// When the function, microengine or context does not exist, or the context already runs a process. Also when the stacks do
    /// not fit local memory.
    pub fn start(&self, processes: &Processes, start: &Start<'_>) -> Result<Process, Error> {
        Ok(self.table.start(processes, start)?)
    }

    /// Opens a receive queue of the card's port. From now on, frames in the queue wait until a process receives them.
    /// The card drops frames for a queue that is not open.
    ///
    /// # Errors
    /// When the queue does not exist, or belongs to the messages between hosts.
    pub fn open_queue(&self, queue: u32) -> Result<(), Error> {
        let card = self.table.card();
        match u8::try_from(queue).ok().filter(|&queue| queue != MESSAGE_QUEUE) {
            Some(queue) => card.open_queue(queue),
            None => {
                return Err(Error::Input(format!(
                    "no queue {queue} for processes; a port has queues 0 to {}, and one for messages between hosts",
                    MESSAGE_QUEUE - 1
                )));
            }
        }
        Ok(())
    }

    /// Waits until a process has ended, and returns the result of its function.
    ///
    /// # Errors
    /// [`Error::HandlerTrap`] when the process trapped. Another error when a new process has started on the same context.
    pub async fn finished(&self, process: &Process) -> Result<u32, Error> {
        let start = self.host.now();
        let result = self.table.finished(process).await;
        // A process of the card has no critical path, so the host's path restarts.
        self.host.restart_path();
        self.host.called("wait for a process", start);
        Ok(result?)
    }

    /// Checks that a part of the card's memory exists.
    ///
    /// # Errors
    /// When the part reaches beyond the memory.
    pub fn check(&self, part: &CardMemory) -> Result<(), Error> {
        Ok(self.table.check(part)?)
    }

    /// Returns the current bytes of a part of the card's memory.
    ///
    /// # Errors
    /// When the part reaches beyond the memory.
    pub fn read(&self, part: &CardMemory) -> Result<Vec<u8>, Error> {
        let card = &self.table;
        card.check(part)?;
        let mut bytes = vec![0; part.bytes as usize];
        card.read(part, &mut bytes)?;
        Ok(bytes)
    }

    /// Overwrites the first bytes of a part of the card's memory.
    ///
    /// # Errors
    /// When the part reaches beyond the memory, or `bytes` is longer than the part.
    pub fn write(&self, part: &CardMemory, bytes: &[u8]) -> Result<(), Error> {
        let card = &self.table;
        card.check(part)?;
        if bytes.len() as u64 > u64::from(part.bytes) {
            let (many, room) = (bytes.len(), part.bytes);
            return Err(Error::Input(format!("{many} bytes for a part of a memory of {room} bytes")));
        }
        Ok(card.write(part, bytes)?)
    }
}
