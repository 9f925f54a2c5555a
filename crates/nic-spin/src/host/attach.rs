//! A host's calls for its objects on its card: applications, HPU memory and attached handlers. All these calls belong
//! to the set-up of a program, and take no simulated time.

use crate::Card;
use crate::host::CallError;
use nicety_nic_processors::programs::application::{
    Application, ApplicationConfig, ApplicationId, ApplicationReport,
};
use nicety_nic_processors::programs::attachments::{
    Attach, AttachError, Attachment, HpuMemoryId, Program, State, Variable,
};
use nicety_nic_processors::programs::memory::Piece;
use nicety_nic_processors::programs::program::Handlers;
use std::cell::Cell;
use std::rc::Rc;

impl Card {
    /// Creates an application with its own weight and limits. This is set-up, and takes no simulated time.
    ///
    /// # Errors
    /// When the configuration is invalid, or the card has too many applications.
    pub fn application(&self, config: ApplicationConfig) -> Result<ApplicationId, CallError> {
        let mut applications = self.processors().attachments.applications.borrow_mut();
        if let Some(problem) = config.problem() {
            return Err(AttachError::Application(problem).into());
        }
        if applications.iter().any(|other| other.name() == config.name) {
            let problem = format!("there is an application '{}' already; give each a name", config.name);
            return Err(AttachError::Application(problem).into());
        }
        let limit = self.spec.hpu.applications;
        if applications.len() >= limit as usize {
            return Err(AttachError::NoApplications { limit }.into());
        }
        let id = ApplicationId(applications.len() as u32);
        applications.push(Rc::new(Application::new(id, config)));
        Ok(id)
    }

    /// Returns the resource use of each application. The default application is first.
    pub fn applications(&self) -> Vec<ApplicationReport> {
        self.processors().attachments.applications.borrow().iter().map(|a| a.report()).collect()
    }

    /// Allocates HPU memory with these contents (`PtlHPUAllocMem`). Handlers of the application may be attached with
    /// this memory as their state. This is set-up, and takes no simulated time.
    ///
    /// # Errors
    /// When too little memory is left.
    pub fn hpu_alloc(&self, application: ApplicationId, contents: Vec<u8>) -> Result<HpuMemoryId, CallError> {
        let application = self.processors().attachments.application(application)?;
        if contents.is_empty() {
            return Err(AttachError::Nothing.into());
        }
        let piece = Rc::new(self.processors().attachments.take(&application, contents)?);
        let id = self.next_memory();
        self.processors().attachments.pieces.borrow_mut().insert(id, piece);
        Ok(id)
    }

    fn next_memory(&self) -> HpuMemoryId {
        let id = HpuMemoryId(self.processors().attachments.allocated.get());
        self.processors().attachments.allocated.set(id.0 + 1);
        id
    }

    /// Returns a variable in the program of attached handlers as HPU memory that the host may read and write. Also
    /// returns the variable's length in bytes. This is set-up, and takes no simulated time.
    ///
    /// # Errors
    /// When there are no such handlers, or their program has no such variable.
    pub fn hpu_variable(&self, cookie: u32, name: &str) -> Result<(HpuMemoryId, u64), CallError> {
        let attachment =
            self.processors().attachments.get(cookie).ok_or(CallError::NotAttached { cookie })?;
        let program = &attachment.program;
        let base = program.handlers.data_address();
        let found = program.handlers.image.variable(name).and_then(|(address, bytes)| {
            let offset = address.checked_sub(base)? as usize;
            let inside = offset + bytes as usize <= program.data.bytes.borrow().len();
            inside.then(|| Variable { data: program.data.clone(), offset, bytes: bytes.into(), address })
        });
        let variable = found.ok_or_else(|| AttachError::NoSuchVariable { name: name.to_owned() })?;
        let (id, bytes) = (self.next_memory(), variable.bytes);
        self.processors().attachments.variables.borrow_mut().insert(id, variable);
        Ok((id, bytes))
    }

    /// Frees HPU memory (`PtlHPUFreeMem`).
    ///
    /// # Errors
    /// When there is no such memory, or attached handlers use it as their state.
    pub fn hpu_free(&self, memory: HpuMemoryId) -> Result<(), CallError> {
        let mut pieces = self.processors().attachments.pieces.borrow_mut();
        let piece = pieces.get(&memory).ok_or(AttachError::NoSuchMemory { number: memory.0 })?;
        match piece.users.get() {
            0 => pieces.remove(&memory),
            users => return Err(AttachError::MemoryInUse { users }.into()),
        };
        Ok(())
    }

    /// Attaches handlers of the default application with their initial state. `memory` is the address and length of the
    /// handlers' own region of host memory, if they use one.
    ///
    /// # Errors
    /// Like [`Card::attach_as`].
    pub fn attach(
        &self,
        handlers: &Handlers,
        state: &[u8],
        memory: Option<(u64, u64)>,
    ) -> Result<u32, CallError> {
        let (application, state) = (ApplicationId::default(), State::Own(state));
        self.attach_as(&Attach { handlers, application, state, memory })
    }

    /// Attaches handlers. Returns their number, for [`Me::handlers`](nicety_portals::Me) of any number of match
    /// entries. All these entries share the state of the handlers.
    ///
    /// # Errors
    /// When the program or the state does not fit on the card.
    pub fn attach_as(&self, attach: &Attach<'_>) -> Result<u32, CallError> {
        if let Some((address, length)) = attach.memory {
            self.dma.memory().check(address, length)?;
        }
        let application = self.processors().attachments.application(attach.application)?;
        let shared = match attach.state {
            State::Own(_) => None,
            State::Shared(id) => Some(self.allocated(id, &application)?),
        };
        let program = self.processors().attachments.program(&application, attach.handlers, &self.spec.hpu)?;
        let state = match (attach.state, shared) {
            (_, Some(piece)) => Ok(piece),
            (State::Own(contents), None) => {
                self.processors().attachments.take(&application, contents.to_vec()).map(Rc::new)
            }
            (State::Shared(_), None) => unreachable!("it was just looked up"),
        };
        let state = state.inspect_err(|_| self.forget(&program))?;
        let (handler_memory, appending) = (attach.memory, Cell::new(0));
        Ok(self.processors().attachments.attach(Attachment { program, state, handler_memory, appending }))
    }

    /// Returns the piece of HPU memory with this number.
    pub(crate) fn hpu_piece(&self, id: HpuMemoryId) -> Result<Rc<Piece>, AttachError> {
        let piece = self.processors().attachments.pieces.borrow().get(&id).cloned();
        piece.ok_or(AttachError::NoSuchMemory { number: id.0 })
    }

    fn allocated(&self, id: HpuMemoryId, application: &Application) -> Result<Rc<Piece>, AttachError> {
        let piece = self.hpu_piece(id)?;
        if piece.application.id != application.id {
            let owner = format!("application '{}'", piece.application.name());
            let handlers = format!("application '{}'", application.name());
            return Err(AttachError::Foreign { owner, handlers });
        }
        Ok(piece)
    }

    /// Detaches handlers, and frees memory that only they use.
    ///
    /// # Errors
    /// When there are no such handlers, or a match entry refers to them.
    pub fn detach(&self, cookie: u32) -> Result<(), CallError> {
        let attachment =
            self.processors().attachments.get(cookie).ok_or(CallError::NotAttached { cookie })?;
        if attachment.appending.get() > 0 || self.interface.borrow().handlers_in_use(cookie) {
            return Err(AttachError::HandlersInUse.into());
        }
        self.processors().attachments.attached.borrow_mut()[cookie as usize] = None;
        attachment.state.users.set(attachment.state.users.get() - 1);
        let count = &attachment.application().attached;
        count.set(count.get() - 1);
        self.forget(&attachment.program);
        Ok(())
    }

    /// Unloads a program if no attached handlers use it.
    fn forget(&self, program: &Rc<Program>) {
        let attached = self.processors().attachments.attached.borrow();
        if !attached.iter().flatten().any(|attachment| Rc::ptr_eq(&attachment.program, program)) {
            self.processors().attachments.programs.borrow_mut().retain(|other| !Rc::ptr_eq(other, program));
        }
    }
}
