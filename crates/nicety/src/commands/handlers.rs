//! Commands for handlers: applications, HPU memory, and programs with their state.

use super::{Carried, OnCards, Outcome, Part, Program, nothing, numbered};
use crate::{ApplicationConfig, ApplicationId, Attach, Error, HandlerNames, Host, HpuMemoryId, State};

/// [`Portals`](crate::Portals)'s functions, under the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the functions and arguments of `Portals`, under the same names")]
pub enum HandlerSetup {
    /// Loads a compiled program. Its number is valid on every host.
    Load {
        elf: Vec<u8>,
        names: HandlerNames,
    },
    Application {
        config: ApplicationConfig,
    },
    HpuAlloc {
        application: ApplicationId,
        contents: Vec<u8>,
    },
    HpuFree {
        memory: HpuMemoryId,
    },
    /// Finds a variable. The upper half of the outcome is its number, the lower half its length.
    HpuVariable {
        handlers: u32,
        name: String,
    },
    Attach {
        /// The number in the outcome of `Load`.
        handlers: u64,
        /// The initial state, unless it is shared memory.
        state: Vec<u8>,
        shared: Option<HpuMemoryId>,
        memory: Option<Part>,
        application: ApplicationId,
    },
    Detach {
        handlers: u32,
    },
}

/// [`Portals`](crate::Portals)'s calls, under the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the calls and arguments of `Portals`, under the same names")]
pub enum HandlerCall {
    HpuRead { memory: HpuMemoryId, offset: u64, bytes: u64 },
    HpuWrite { memory: HpuMemoryId, offset: u64, contents: Vec<u8> },
}

impl Program {
    pub(super) fn set_up_handlers(&self, setup: HandlerSetup) -> Result<Outcome, Error> {
        let portals = self.0.host.portals()?;
        match setup {
            HandlerSetup::Load { elf, names } => {
                let handlers = portals.load_handlers(&elf, &names)?;
                let program = OnCards::new((elf, names), portals.spec_address(), handlers);
                Ok(numbered(&self.0.loaded.handlers, program))
            }
            HandlerSetup::Application { config } => Ok(Outcome::Word(portals.application(config)?.0.into())),
            HandlerSetup::HpuAlloc { application, contents } => {
                Ok(Outcome::Word(portals.hpu_alloc(application, contents)?.0))
            }
            HandlerSetup::HpuFree { memory } => portals.hpu_free(memory).map(nothing),
            HandlerSetup::HpuVariable { handlers, name } => {
                let (memory, bytes) = portals.hpu_variable(handlers, &name)?;
                Ok(Outcome::Word((memory.0 << 32) | bytes))
            }
            HandlerSetup::Attach { handlers, state, shared, memory, application } => {
                let loaded = self.0.loaded.handlers.borrow();
                let unknown = || Error::Program(format!("there are no handlers {handlers}"));
                let program = loaded.get(handlers as usize).ok_or_else(unknown)?;
                let load = |(elf, names): &(Vec<u8>, HandlerNames)| portals.load_handlers(elf, names);
                let handlers = &program.on(portals.spec_address(), load)?;
                let memory = memory.map(|part| self.part(part)).transpose()?;
                let state = shared.map_or(State::Own(&state), State::Shared);
                let memory = memory.map(|buffer| (buffer.address(), buffer.len()));
                let attached = portals.attach_as(&Attach { handlers, application, state, memory })?;
                Ok(Outcome::Word(attached.into()))
            }
            HandlerSetup::Detach { handlers } => portals.detach(handlers).map(nothing),
        }
    }

    pub(super) fn handlers<'c>(&'c self, host: &'c Host, call: HandlerCall) -> Carried<'c> {
        match call {
            HandlerCall::HpuRead { memory, offset, bytes } => {
                Box::pin(
                    async move { host.portals()?.hpu_read(memory, offset, bytes).await.map(Outcome::Bytes) },
                )
            }
            HandlerCall::HpuWrite { memory, offset, contents } => {
                Box::pin(
                    async move { host.portals()?.hpu_write(memory, offset, contents).await.map(nothing) },
                )
            }
        }
    }
}
