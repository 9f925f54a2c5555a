//! Commands for handlers: applications, HPU memory, and programs with their state.

use super::calls::{calls, setups};
use super::{OnCards, Part, numbered};
use crate::{ApplicationConfig, ApplicationId, Attach, Error, HandlerNames, HpuMemoryId, State};

setups! {
    /// The set-up functions of [`Portals`](crate::Portals) for handlers, under the same names.
    enum HandlerSetup by set_up_handlers(program) portals = program.0.host.portals()?;

    /// Loads a compiled program. The outcome is its number, which is valid on every host.
    Load { elf: Vec<u8>, names: HandlerNames } => {
        let handlers = portals.load_handlers(&elf, &names)?;
        numbered(&program.0.loaded.handlers, OnCards::new((elf, names), portals.spec_address(), handlers))
    };
    Application { config: ApplicationConfig } => portals.application(config)?.0;
    HpuAlloc { application: ApplicationId, contents: Vec<u8> } => portals.hpu_alloc(application, contents)?.0;
    HpuFree { memory: HpuMemoryId } => portals.hpu_free(memory)?;
    /// Finds a variable of a program in HPU memory. The upper 32 bits of the outcome are the number of the memory, and the lower
    /// 32 bits are its length.
    HpuVariable { handlers: u32, name: String } => {
        let (memory, bytes) = portals.hpu_variable(handlers, &name)?;
        (memory.0 << 32) | bytes
    };
    Attach {
        /// The program's number, from the outcome of `Load`.
        handlers: u64,
        /// The initial state, unless the handlers share the state of others.
        state: Vec<u8>,
        shared: Option<HpuMemoryId>,
        memory: Option<Part>,
        application: ApplicationId,
    } => {
        let loaded = program.0.loaded.handlers.borrow();
        let unknown = || Error::Program(format!("there are no handlers {handlers}"));
        let compiled = loaded.get(handlers as usize).ok_or_else(unknown)?;
        let load = |(elf, names): &(Vec<u8>, HandlerNames)| portals.load_handlers(elf, names);
        let handlers = &compiled.on(portals.spec_address(), load)?;
        let memory = memory.map(|part| program.part(part)).transpose()?;
        let state = shared.map_or(State::Own(&state), State::Shared);
        let memory = memory.map(|buffer| (buffer.address(), buffer.len()));
        portals.attach_as(&Attach { handlers, application, state, memory })?
    };
    Detach { handlers: u32 } => portals.detach(handlers)?;
}

calls! {
    /// The calls of [`Portals`](crate::Portals) for handlers, under the same names.
    enum HandlerCall by handlers(_, host) portals = host.portals()?;

    HpuRead { memory: HpuMemoryId, offset: u64, bytes: u64 } => portals.hpu_read(memory, offset, bytes).await?;
    HpuWrite { memory: HpuMemoryId, offset: u64, contents: Vec<u8> } => {
        portals.hpu_write(memory, offset, contents).await?;
    };
}
