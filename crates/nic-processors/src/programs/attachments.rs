//! A host's objects on its card: applications, their programs, pieces of HPU memory, and handlers attached to a
//! state, to which match entries refer.

use crate::programs::application::{Application, ApplicationConfig, ApplicationId, HandlerStatistics};
use crate::programs::memory::{Piece, Short, hpu_memory};
use crate::programs::program::{HandlerError, Handlers, Placed, map};
use crate::spec::{HpuSpec, pspin_map};
use nicety_nic_core::parts::FirstFit;
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
    /// Private HPU memory with these contents.
    Own(&'a [u8]),
    /// A piece of HPU memory that the host has allocated. Other handlers may share it.
    Shared(HpuMemoryId),
}

/// Handlers to be attached.
#[derive(Clone, Copy)]
pub struct Attach<'a> {
    /// The program.
    pub handlers: &'a Handlers,
    /// The application of the handlers.
    pub application: ApplicationId,
    /// The target of `state`.
    pub state: State<'a>,
    /// The second host memory region, for handlers only: address and length.
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
    /// The application does not exist.
    NoSuchApplication {
        /// Its number.
        number: u32,
    },
    /// The HPU memory was never allocated, or has been freed.
    NoSuchMemory {
        /// Its number.
        number: u64,
    },
    /// An allocation of zero bytes.
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
    /// The program has no such variable.
    NoSuchVariable {
        /// Its name.
        name: String,
    },
    /// Handlers refer to memory of another application.
    Foreign {
        /// The owner of the memory.
        owner: String,
        /// The application of the handlers.
        handlers: String,
    },
    /// The HPU memory is the state of attached handlers.
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
                write!(f, "there is no application {number} on this card; create it first")
            }
            AttachError::NoSuchMemory { number } => {
                write!(f, "there is no HPU memory {number} on this card; it was freed, or is another host's")
            }
            AttachError::Nothing => f.write_str("HPU memory is at least one byte long"),
            AttachError::Outside { offset, bytes, length } => {
                write!(f, "{bytes} bytes from offset {offset} on are not in HPU memory of {length} bytes")
            }
            AttachError::NoSuchVariable { name } => {
                write!(
                    f,
                    "the program has no variable '{name}'; name one that is not static and that its handlers use"
                )
            }
            AttachError::Foreign { owner, handlers } => {
                write!(
                    f,
                    "the HPU memory belongs to {owner}, the handlers to {handlers}: applications cannot share HPU memory"
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
pub struct Program {
    /// Its handlers.
    pub handlers: Handlers,
    /// Its number on this card.
    pub(crate) number: u32,
    pub(crate) code: Vec<u8>,
    /// Its variables.
    pub data: Rc<Piece>,
    /// The scratchpads of its handlers in the L1 of all clusters, concatenated, if it is written for PsPIN.
    pub(crate) pads: RefCell<Vec<u8>>,
    /// Bytes of each scratchpad, and their number.
    pub(crate) pad_bytes: u32,
    pub(crate) clusters: u32,
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

/// Handlers with a state on a card. They may serve any number of match entries.
pub struct Attachment {
    /// The program.
    pub program: Rc<Program>,
    /// The state.
    pub state: Rc<Piece>,
    /// The second host memory region: address and length.
    pub handler_memory: Option<(u64, u64)>,
    /// Appends in flight to the card of match entries with these handlers.
    pub appending: Cell<u32>,
}

impl Attachment {
    /// Returns the address of the state for handlers.
    pub fn state_address(&self) -> u32 {
        let handlers = &self.program.handlers;
        let base = if handlers.pspin.is_some() { pspin_map::HANDLER_MEMORY } else { map::STATE };
        base + self.state.start
    }

    /// Returns the application of the handlers.
    pub fn application(&self) -> &Rc<Application> {
        &self.program.data.application
    }

    /// Returns the offset of `bytes` bytes at `address` in the concatenated scratchpads. None if they are not within
    /// one scratchpad.
    pub(crate) fn pad_offset(&self, address: u32, bytes: u32) -> Option<usize> {
        let in_l1 = address.checked_sub(pspin_map::L1)?;
        let (cluster, offset) = (in_l1 / pspin_map::L1_EACH, in_l1 % pspin_map::L1_EACH);
        let offset = offset.checked_sub(pspin_map::PADS)?;
        let each = self.program.pad_bytes;
        (cluster < self.program.clusters && u64::from(offset) + u64::from(bytes) <= u64::from(each))
            .then_some((cluster * each + offset) as usize)
    }
}

/// A variable of a program, as seen by its host.
#[derive(Clone)]
pub struct Variable {
    /// The program's variables.
    pub data: Rc<Piece>,
    /// Its offset in them, its length in bytes, and its address for handlers.
    pub offset: usize,
    /// Its size.
    pub bytes: u64,
    /// Its address.
    pub address: u32,
}

/// All objects of a host on its card.
pub struct Attachments {
    /// The applications.
    pub applications: RefCell<Vec<Rc<Application>>>,
    /// The programs.
    pub programs: RefCell<Vec<Rc<Program>>>,
    memory: Rc<RefCell<FirstFit>>,
    /// The allocations of the host.
    pub pieces: RefCell<BTreeMap<HpuMemoryId, Rc<Piece>>>,
    /// The variables of programs that the host uses.
    pub variables: RefCell<BTreeMap<HpuMemoryId, Variable>>,
    /// The number of allocations so far.
    pub allocated: Cell<u64>,
    /// The attached handlers, by their numbers.
    pub attached: RefCell<Vec<Option<Rc<Attachment>>>>,
}

impl Attachments {
    pub(crate) fn new(spec: &HpuSpec) -> Attachments {
        let unnamed = Application::new(ApplicationId::default(), ApplicationConfig::new("default"));
        Attachments {
            applications: RefCell::new(vec![Rc::new(unnamed)]),
            programs: RefCell::default(),
            memory: hpu_memory(spec.memory),
            pieces: RefCell::default(),
            variables: RefCell::default(),
            allocated: Cell::new(0),
            attached: RefCell::default(),
        }
    }

    /// Returns the handlers with this number.
    pub fn get(&self, cookie: u32) -> Option<Rc<Attachment>> {
        self.attached.borrow().get(cookie as usize).cloned().flatten()
    }

    /// Returns an application.
    ///
    /// # Errors
    /// When it is unknown.
    pub fn application(&self, id: ApplicationId) -> Result<Rc<Application>, AttachError> {
        let found = self.applications.borrow().get(id.0 as usize).cloned();
        found.ok_or(AttachError::NoSuchApplication { number: id.0 })
    }

    /// Returns an application's share of `of` slots, by weight among all applications with attached handlers. It is
    /// at least one.
    pub fn share(&self, application: &Application, of: u32) -> u32 {
        let applications = self.applications.borrow();
        let weights =
            applications.iter().filter(|a| a.attached.get() > 0).map(|a| u64::from(a.config.weight));
        let all = weights.sum::<u64>().max(1);
        let share = u64::from(of) * u64::from(application.config.weight) / all;
        u32::try_from(share).unwrap_or(of).clamp(1, of)
    }

    pub(crate) fn statistics(&self) -> HandlerStatistics {
        self.applications.borrow().iter().map(|a| a.statistics.get()).sum()
    }

    /// Takes HPU memory with these contents.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn take(&self, application: &Rc<Application>, contents: Vec<u8>) -> Result<Piece, HandlerError> {
        let wanted = contents.len() as u64;
        Piece::new(&self.memory, application, contents).map_err(|Short { left, largest, own }| {
            let application = format!("application '{}'", application.name());
            match own {
                true => HandlerError::NoShare { application, wanted, left },
                false => HandlerError::NoMemory { application, wanted, left, largest },
            }
        })
    }

    /// Returns the program of an application on this card. Loads it on first use.
    pub fn program(
        &self,
        application: &Rc<Application>,
        handlers: &Handlers,
        spec: &HpuSpec,
    ) -> Result<Rc<Program>, HandlerError> {
        let mut programs = self.programs.borrow_mut();
        if let Some(program) = programs.iter().find(|program| program.is(application.id, handlers)) {
            return Ok(program.clone());
        }
        if handlers.pspin.is_some() != spec.pspin.is_some() {
            return Err(HandlerError::OtherInterface);
        }
        if spec.pspin.is_some() && !programs.is_empty() {
            return Err(HandlerError::OneProgram);
        }
        let clusters = (spec.cores / spec.memories.cluster) as u32;
        let pad_bytes = spec.pspin.map_or(0, |commands| commands.scratchpad);
        let Placed { code, data } = Placed::new(handlers, spec)?;
        let data = Rc::new(self.take(application, data)?);
        let number = programs.len() as u32;
        let pads = RefCell::new(vec![0; clusters as usize * pad_bytes as usize]);
        let handlers = handlers.clone();
        let program = Rc::new(Program { handlers, number, code, data, pads, pad_bytes, clusters });
        programs.push(program.clone());
        Ok(program)
    }

    /// Attaches handlers. Returns their number.
    pub fn attach(&self, attachment: Attachment) -> u32 {
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
