//! A host's objects on its card: applications, their programs, pieces of HPU memory, and handlers attached to a
//! state, which match entries refer to.

use super::application::{Application, ApplicationConfig, ApplicationId, ApplicationReport};
use super::handlers::{HandlerError, Handlers, Placed, map};
use super::host::CallError;
use super::incoming::Fate;
use super::memory::{Piece, Short, hpu_memory};
use super::spec::HpuSpec;
use super::{Card, HandlerStatistics};
use crate::parts::FirstFit;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// A piece of HPU memory that a host has allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HpuMemoryId(pub u64);

/// The state of handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<'a> {
    /// HPU memory of their own with these contents.
    Own(&'a [u8]),
    /// A piece that the host has allocated, possibly shared with others.
    Shared(HpuMemoryId),
}

/// Handlers to be attached.
#[derive(Clone, Copy)]
pub struct Attach<'a> {
    /// The program.
    pub handlers: &'a Handlers,
    /// The application that it belongs to.
    pub application: ApplicationId,
    /// The target of `state`.
    pub state: State<'a>,
    /// The second host memory region, which only handlers use: address and length.
    pub memory: Option<(u64, u64)>,
}

/// An error with a host's objects on its card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// The configuration of an application is invalid.
    Application(String),
    /// The card has no room for another application.
    NoApplications {
        /// The number of applications.
        limit: u32,
    },
    /// There is no such application.
    NoSuchApplication {
        /// Its number.
        number: u32,
    },
    /// HPU memory that was never allocated, or has been freed.
    NoSuchMemory {
        /// Its number.
        number: u64,
    },
    /// HPU memory of zero bytes.
    Nothing,
    /// An access beyond the end of HPU memory.
    Outside {
        /// Its offset.
        offset: u64,
        /// Its length in bytes.
        bytes: u64,
        /// Bytes of the memory.
        length: u64,
    },
    /// Handlers of one application refer to another's memory.
    Foreign {
        /// The owner of the memory.
        owner: String,
        /// The application of the handlers.
        handlers: String,
    },
    /// HPU memory is the state of attached handlers.
    MemoryInUse {
        /// Number of attached handlers.
        users: u32,
    },
    /// A match entry refers to the handlers.
    HandlersInUse,
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttachError::Application(problem) => f.write_str(problem),
            AttachError::NoApplications { limit } => {
                write!(f, "the card has room for {limit} applications; use fewer, or raise hpu.applications")
            }
            AttachError::NoSuchApplication { number } => {
                write!(f, "there is no application {number} on this card; make it first")
            }
            AttachError::NoSuchMemory { number } => {
                write!(f, "there is no HPU memory {number} on this card; it was freed, or is another host's")
            }
            AttachError::Nothing => f.write_str("HPU memory is at least one byte long"),
            AttachError::Outside { offset, bytes, length } => {
                write!(f, "{bytes} bytes from offset {offset} on are not in HPU memory of {length} bytes")
            }
            AttachError::Foreign { owner, handlers } => {
                write!(
                    f,
                    "the HPU memory belongs to {owner}, the handlers to {handlers}: applications share none"
                )
            }
            AttachError::MemoryInUse { users } => {
                write!(f, "the HPU memory is the state of {users} attached handlers; detach them first")
            }
            AttachError::HandlersInUse => {
                f.write_str("a match entry has these handlers; detach them when it is unlinked")
            }
        }
    }
}

impl std::error::Error for AttachError {}

/// A program of an application. Another application with the same program has its own copy.
pub(super) struct Program {
    pub(super) handlers: Handlers,
    pub(super) code: Vec<u8>,
    pub(super) data: Piece,
}

impl Program {
    fn is(&self, application: ApplicationId, handlers: &Handlers) -> bool {
        let own = &self.handlers;
        self.data.application.id == application
            && Arc::ptr_eq(&own.image, &handlers.image)
            && (own.header, own.payload, own.completion)
                == (handlers.header, handlers.payload, handlers.completion)
    }
}

/// Handlers with a state, on a card. They may serve any number of match entries.
pub struct Attachment {
    pub(super) program: Rc<Program>,
    pub(super) state: Rc<Piece>,
    /// The second host memory region: address and length.
    pub(super) handler_memory: Option<(u64, u64)>,
    /// Appends of match entries with these handlers in flight to the card.
    pub(super) appending: Cell<u32>,
}

impl Attachment {
    /// The address of the state for handlers.
    pub(super) fn state_address(&self) -> u32 {
        map::STATE + self.state.start
    }

    pub(super) fn application(&self) -> &Rc<Application> {
        &self.program.data.application
    }

    /// The default fate of a message's data, unless a header handler decides otherwise: to the payload handlers, or
    /// to host memory if the program has none.
    pub(super) fn processing(&self) -> Fate {
        if self.program.handlers.payload.is_some() { Fate::Process } else { Fate::Deposit }
    }
}

/// All objects of a host on its card.
pub(super) struct Attachments {
    applications: RefCell<Vec<Rc<Application>>>,
    programs: RefCell<Vec<Rc<Program>>>,
    memory: Rc<RefCell<FirstFit>>,
    pieces: RefCell<BTreeMap<HpuMemoryId, Rc<Piece>>>,
    allocated: Cell<u64>,
    attached: RefCell<Vec<Option<Rc<Attachment>>>>,
}

impl Attachments {
    pub(super) fn new(spec: &HpuSpec) -> Attachments {
        let unnamed = Application::new(ApplicationId::default(), ApplicationConfig::new("default"));
        Attachments {
            applications: RefCell::new(vec![Rc::new(unnamed)]),
            programs: RefCell::default(),
            memory: hpu_memory(spec.memory),
            pieces: RefCell::default(),
            allocated: Cell::new(0),
            attached: RefCell::default(),
        }
    }

    /// The handlers with this number.
    pub(super) fn get(&self, cookie: u32) -> Option<Rc<Attachment>> {
        self.attached.borrow().get(cookie as usize).cloned().flatten()
    }

    fn application(&self, id: ApplicationId) -> Result<Rc<Application>, AttachError> {
        let found = self.applications.borrow().get(id.0 as usize).cloned();
        found.ok_or(AttachError::NoSuchApplication { number: id.0 })
    }

    /// An application's share of so many slots, by weight among all applications with attached handlers; at least
    /// one.
    pub(super) fn share(&self, application: &Application, of: u32) -> u32 {
        let applications = self.applications.borrow();
        let weights =
            applications.iter().filter(|a| a.attached.get() > 0).map(|a| u64::from(a.config.weight));
        let all = weights.sum::<u64>().max(1);
        let share = u64::from(of) * u64::from(application.config.weight) / all;
        u32::try_from(share).unwrap_or(of).clamp(1, of)
    }

    pub(super) fn statistics(&self) -> HandlerStatistics {
        self.applications.borrow().iter().map(|a| a.statistics.get()).sum()
    }

    fn take(&self, application: &Rc<Application>, contents: Vec<u8>) -> Result<Piece, HandlerError> {
        let wanted = contents.len() as u64;
        Piece::new(&self.memory, application, contents).map_err(|Short { left, largest, own }| {
            let application = format!("application '{}'", application.name());
            match own {
                true => HandlerError::NoShare { application, wanted, left },
                false => HandlerError::NoMemory { application, wanted, left, largest },
            }
        })
    }

    /// The program of an application on this card, loaded on first use.
    fn program(
        &self,
        application: &Rc<Application>,
        handlers: &Handlers,
        spec: &HpuSpec,
    ) -> Result<Rc<Program>, HandlerError> {
        let mut programs = self.programs.borrow_mut();
        if let Some(program) = programs.iter().find(|program| program.is(application.id, handlers)) {
            return Ok(program.clone());
        }
        let Placed { code, data } = Placed::new(handlers, spec)?;
        let data = self.take(application, data)?;
        let program = Rc::new(Program { handlers: handlers.clone(), code, data });
        programs.push(program.clone());
        Ok(program)
    }

    fn attach(&self, attachment: Attachment) -> u32 {
        attachment.state.users.set(attachment.state.users.get() + 1);
        let count = &attachment.application().attached;
        count.set(count.get() + 1);
        let mut attached = self.attached.borrow_mut();
        let index = attached.iter().position(Option::is_none).unwrap_or(attached.len());
        if index == attached.len() {
            attached.push(None);
        }
        attached[index] = Some(Rc::new(attachment));
        index as u32
    }
}

impl Card {
    /// An application with a weight and limits of its own; set-up, takes no virtual time.
    ///
    /// # Errors
    /// When the configuration is invalid, or there are too many.
    pub fn application(&self, config: ApplicationConfig) -> Result<ApplicationId, CallError> {
        let mut applications = self.attachments.applications.borrow_mut();
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

    /// The use of resources by each application, the default one first.
    pub fn applications(&self) -> Vec<ApplicationReport> {
        self.attachments.applications.borrow().iter().map(|a| a.report()).collect()
    }

    /// Allocates HPU memory with these contents (`PtlHPUAllocMem`), to which handlers of the application may be
    /// attached as their state; set-up, takes no virtual time.
    ///
    /// # Errors
    /// When too little memory is left.
    pub fn hpu_alloc(&self, application: ApplicationId, contents: Vec<u8>) -> Result<HpuMemoryId, CallError> {
        let application = self.attachments.application(application)?;
        if contents.is_empty() {
            return Err(AttachError::Nothing.into());
        }
        let piece = Rc::new(self.attachments.take(&application, contents)?);
        let id = HpuMemoryId(self.attachments.allocated.get());
        self.attachments.allocated.set(id.0 + 1);
        self.attachments.pieces.borrow_mut().insert(id, piece);
        Ok(id)
    }

    /// Frees HPU memory (`PtlHPUFreeMem`).
    ///
    /// # Errors
    /// When there is no such memory, or attached handlers use it as their state.
    pub fn hpu_free(&self, memory: HpuMemoryId) -> Result<(), CallError> {
        let mut pieces = self.attachments.pieces.borrow_mut();
        let piece = pieces.get(&memory).ok_or(AttachError::NoSuchMemory { number: memory.0 })?;
        match piece.users.get() {
            0 => pieces.remove(&memory),
            users => return Err(AttachError::MemoryInUse { users }.into()),
        };
        Ok(())
    }

    /// Attaches handlers of the default application with their initial state and, if they use one, a host memory
    /// region of their own (address and length).
    ///
    /// # Errors
    /// As [`Card::attach_as`].
    pub fn attach(
        &self,
        handlers: &Handlers,
        state: &[u8],
        memory: Option<(u64, u64)>,
    ) -> Result<u32, CallError> {
        let (application, state) = (ApplicationId::default(), State::Own(state));
        self.attach_as(&Attach { handlers, application, state, memory })
    }

    /// Attaches handlers. The result goes into [`Me::handlers`](nicety_portals::Me) of any number of match entries,
    /// which then share the state.
    ///
    /// # Errors
    /// When program or state do not fit.
    pub fn attach_as(&self, attach: &Attach<'_>) -> Result<u32, CallError> {
        if let Some((address, length)) = attach.memory {
            self.dma.memory().check(address, length)?;
        }
        let application = self.attachments.application(attach.application)?;
        let shared = match attach.state {
            State::Own(_) => None,
            State::Shared(id) => Some(self.allocated(id, &application)?),
        };
        let program = self.attachments.program(&application, attach.handlers, &self.spec.hpu)?;
        let state = match (attach.state, shared) {
            (_, Some(piece)) => Ok(piece),
            (State::Own(contents), None) => {
                self.attachments.take(&application, contents.to_vec()).map(Rc::new)
            }
            (State::Shared(_), None) => unreachable!("it was just looked up"),
        };
        let state = state.inspect_err(|_| self.forget(&program))?;
        let (handler_memory, appending) = (attach.memory, Cell::new(0));
        Ok(self.attachments.attach(Attachment { program, state, handler_memory, appending }))
    }

    /// The piece of HPU memory with this number.
    pub(super) fn hpu_piece(&self, id: HpuMemoryId) -> Result<Rc<Piece>, AttachError> {
        let piece = self.attachments.pieces.borrow().get(&id).cloned();
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
        let attachment = self.attachments.get(cookie).ok_or(CallError::NotAttached { cookie })?;
        if attachment.appending.get() > 0 || self.interface.borrow().handlers_in_use(cookie) {
            return Err(AttachError::HandlersInUse.into());
        }
        self.attachments.attached.borrow_mut()[cookie as usize] = None;
        attachment.state.users.set(attachment.state.users.get() - 1);
        let count = &attachment.application().attached;
        count.set(count.get() - 1);
        self.forget(&attachment.program);
        Ok(())
    }

    /// Unloads a program without attached handlers.
    fn forget(&self, program: &Rc<Program>) {
        let attached = self.attachments.attached.borrow();
        if !attached.iter().flatten().any(|attachment| Rc::ptr_eq(&attachment.program, program)) {
            self.attachments.programs.borrow_mut().retain(|other| !Rc::ptr_eq(other, program));
        }
    }
}
