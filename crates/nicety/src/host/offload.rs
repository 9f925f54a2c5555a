//! Applications, HPU memory and handlers of a host; all of it but access to HPU memory is set-up and takes no virtual time.

use super::Portals;
use crate::Error;
use nicety_nic::spin::{ApplicationConfig, ApplicationId, Attach, CallError, HpuMemoryId};

impl Portals {
    /// An application on this host's card, with a weight and limits of its own.
    ///
    /// # Errors
    /// When something is wrong with it, or the card has no room for one more.
    pub fn application(&self, config: ApplicationConfig) -> Result<ApplicationId, Error> {
        self.card.application(config).map_err(input)
    }

    /// HPU memory with these contents, which attached handlers of the application may have as their state
    /// (`PtlHPUAllocMem`).
    ///
    /// # Errors
    /// When the card, or the application, has not so much left.
    pub fn hpu_alloc(&self, application: ApplicationId, contents: Vec<u8>) -> Result<HpuMemoryId, Error> {
        self.card.hpu_alloc(application, contents).map_err(input)
    }

    /// Frees HPU memory (`PtlHPUFreeMem`).
    ///
    /// # Errors
    /// When it is none, or handlers that are attached have it as their state.
    pub fn hpu_free(&self, memory: HpuMemoryId) -> Result<(), Error> {
        self.card.hpu_free(memory).map_err(input)
    }

    /// Posts a write of HPU memory from `offset` on: the CPU posts it, and the bytes are there when they have crossed the
    /// bus, before anything that is posted afterwards.
    ///
    /// # Errors
    /// When there is no such memory, or it ends before the bytes do.
    pub async fn hpu_write(&self, memory: HpuMemoryId, offset: u64, contents: Vec<u8>) -> Result<(), Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let post = async |path: &mut _| card.hpu_write(cpus, path, memory, offset, contents).await;
        self.host.timed("write HPU memory", post).await.map_err(input)
    }

    /// Reads `bytes` of HPU memory from `offset` on, as they are when the request has crossed the bus.
    ///
    /// # Errors
    /// When there is no such memory, or it ends before.
    pub async fn hpu_read(&self, memory: HpuMemoryId, offset: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let read = async |path: &mut _| card.hpu_read(cpus, path, memory, offset, bytes).await;
        self.host.timed("read HPU memory", read).await.map_err(input)
    }

    /// Puts handlers on the card, for match entries whose `handlers` the result becomes: with a state of their own or a
    /// shared one.
    ///
    /// # Errors
    /// When program or state do not fit the card.
    pub fn attach_as(&self, attach: &Attach<'_>) -> Result<u32, Error> {
        self.card.attach_as(attach).map_err(input)
    }

    /// Takes handlers off the card and frees what memory only they have.
    ///
    /// # Errors
    /// When there are none of this number, or a match entry has them.
    pub fn detach(&self, handlers: u32) -> Result<(), Error> {
        self.card.detach(handlers).map_err(input)
    }
}

/// What is wrong with it is the user's to put right before anything runs.
fn input(error: CallError) -> Error {
    Error::Input(error.to_string())
}
