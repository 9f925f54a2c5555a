//! Applications, HPU memory and handlers of a host. All calls are set-up and take no virtual time, except for reads and
//! writes of HPU memory.

use super::Portals;
use crate::Error;
use nicety_nic_processors::{ApplicationConfig, ApplicationId, Attach, HpuMemoryId};
use nicety_nic_spin::CallError;

impl Portals {
    /// Creates an application on this host's card, with its own weight and limits.
    ///
    /// # Errors
    /// When the configuration is invalid, or the card cannot hold another application.
    pub fn application(&self, config: ApplicationConfig) -> Result<ApplicationId, Error> {
        self.card.application(config).map_err(input)
    }

    /// Allocates HPU memory with these contents (`PtlHPUAllocMem`). Handlers of the application may use it as their state.
    ///
    /// # Errors
    /// When the card or the application has too little memory left.
    pub fn hpu_alloc(&self, application: ApplicationId, contents: Vec<u8>) -> Result<HpuMemoryId, Error> {
        self.card.hpu_alloc(application, contents).map_err(input)
    }

    /// Finds a variable in the program of attached handlers. Returns it as HPU memory, which the host can read and write, and its
    /// length in bytes.
    ///
    /// # Errors
    /// When the handlers do not exist, or their program has no such variable.
    pub fn hpu_variable(&self, handlers: u32, name: &str) -> Result<(HpuMemoryId, u64), Error> {
        self.card.hpu_variable(handlers, name).map_err(input)
    }

    /// Frees HPU memory (`PtlHPUFreeMem`).
    ///
    /// # Errors
    /// When the memory does not exist, or attached handlers use it as their state.
    pub fn hpu_free(&self, memory: HpuMemoryId) -> Result<(), Error> {
        self.card.hpu_free(memory).map_err(input)
    }

    /// Posts a write of HPU memory from `offset` on. The write takes effect when the bytes have crossed the bus. Later
    /// posts take effect after it.
    ///
    /// # Errors
    /// When the memory does not exist, or the write reaches beyond it.
    pub async fn hpu_write(&self, memory: HpuMemoryId, offset: u64, contents: Vec<u8>) -> Result<(), Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let post = async |path: &mut _| card.hpu_write(cpus, path, memory, offset, contents).await;
        self.host.timed("write HPU memory", post).await.map_err(input)
    }

    /// Reads `bytes` bytes of HPU memory from `offset` on. The card reads the bytes when the request arrives at the
    /// card.
    ///
    /// # Errors
    /// When the memory does not exist, or the read reaches beyond it.
    pub async fn hpu_read(&self, memory: HpuMemoryId, offset: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let read = async |path: &mut _| card.hpu_read(cpus, path, memory, offset, bytes).await;
        self.host.timed("read HPU memory", read).await.map_err(input)
    }

    /// Attaches handlers, with a state of their own or a shared state. Returns their number, which goes into the `handlers` field
    /// of match entries.
    ///
    /// # Errors
    /// When the program or the state does not fit the card.
    pub fn attach_as(&self, attach: &Attach<'_>) -> Result<u32, Error> {
        self.card.attach_as(attach).map_err(input)
    }

    /// Detaches handlers, and frees the memory that no other handlers use.
    ///
    /// # Errors
    /// When the handlers do not exist, or a match entry uses them.
    pub fn detach(&self, handlers: u32) -> Result<(), Error> {
        self.card.detach(handlers).map_err(input)
    }
}

/// Converts an error that the user can correct before the run.
fn input(error: CallError) -> Error {
    Error::Input(error.to_string())
}
