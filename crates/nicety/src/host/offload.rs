//! Applications, HPU memory and handlers of a host; all of it is set-up and takes no virtual time.

use super::Host;
use crate::Error;
use nicety_nic::spin::{ApplicationConfig, ApplicationId, Attach, CallError, HpuMemoryId};

impl Host {
    /// An application on this host's card, with a weight and limits of its own.
    ///
    /// # Errors
    /// When something is wrong with it, or the card has no room for one more.
    pub fn application(&self, config: ApplicationConfig) -> Result<ApplicationId, Error> {
        self.spin()?.application(config).map_err(input)
    }

    /// HPU memory with these contents, which attached handlers of the application may have as their state
    /// (`PtlHPUAllocMem`).
    ///
    /// # Errors
    /// When the card, or the application, has not so much left.
    pub fn hpu_alloc(&self, application: ApplicationId, contents: Vec<u8>) -> Result<HpuMemoryId, Error> {
        self.spin()?.hpu_alloc(application, contents).map_err(input)
    }

    /// Frees HPU memory (`PtlHPUFreeMem`).
    ///
    /// # Errors
    /// When it is none, or handlers that are attached have it as their state.
    pub fn hpu_free(&self, memory: HpuMemoryId) -> Result<(), Error> {
        self.spin()?.hpu_free(memory).map_err(input)
    }

    /// Puts handlers on the card, for match entries whose `handlers` the result becomes: with a state of their own or a
    /// shared one.
    ///
    /// # Errors
    /// When program or state do not fit the card.
    pub fn attach_as(&self, attach: &Attach<'_>) -> Result<u32, Error> {
        self.spin()?.attach_as(attach).map_err(input)
    }

    /// Takes handlers off the card and frees what memory only they have.
    ///
    /// # Errors
    /// When there are none of this number, or a match entry has them.
    pub fn detach(&self, handlers: u32) -> Result<(), Error> {
        self.spin()?.detach(handlers).map_err(input)
    }
}

/// What is wrong with it is the user's to put right before anything runs.
fn input(error: CallError) -> Error {
    Error::Input(error.to_string())
}
