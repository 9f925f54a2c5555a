//! Handlers on the card: a program, the memory of the application it belongs to, and the match entry it serves.

use super::Card;
use super::receive::Fate;
use crate::spec::HpuSpec;
use nicety_hpu::{AddressSpace, Image, LoadError, Region, Reservations};
use nicety_portals::CtHandle;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Where a handler finds what it may touch; programs are linked for these addresses.
pub mod map {
    /// The arguments of this run; read-only.
    pub const ARGUMENTS: u32 = 0x1b00_0000;
    /// The packet of this run.
    pub const PACKET: u32 = 0x1c40_0000;
    /// HPU memory of the application.
    pub const MEMORY: u32 = 0x1000_0000;
    /// The program; read-only.
    pub const CODE: u32 = 0x1d00_0000;
    /// The stack of the core.
    pub const STACK: u32 = 0x2000_0000;
    /// Unmapped bytes below the stack in which an access is an overflow.
    pub const STACK_GUARD: u32 = 64 << 10;
}

/// Names of the three handlers in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandlerNames {
    /// Instead of `header_handler`.
    pub header: Option<String>,
    /// Instead of `payload_handler`.
    pub payload: Option<String>,
    /// Instead of `completion_handler`.
    pub completion: Option<String>,
}

/// A program with at least one handler, ready for a kind of core. The same one may be given to many match entries.
#[derive(Clone)]
pub struct Handlers {
    pub(super) image: Arc<Image>,
    pub(super) header: Option<u32>,
    pub(super) payload: Option<u32>,
    pub(super) completion: Option<u32>,
}

/// Why handlers cannot be put on a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerError {
    /// The program cannot be loaded.
    Load(LoadError),
    /// A handler that was named does not exist.
    NoSuchHandler {
        /// The name.
        name: String,
    },
    /// The program has none of the handlers.
    NoHandlers,
    /// There is not enough HPU memory left.
    NoMemory {
        /// Bytes wanted.
        wanted: u64,
        /// Bytes left.
        left: u64,
    },
    /// These handlers serve another match entry already.
    AlreadyServing,
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandlerError::Load(error) => error.fmt(f),
            HandlerError::NoSuchHandler { name } => {
                write!(f, "the program has no function {name}; is it static, or spelt differently?")
            }
            HandlerError::NoHandlers => f.write_str(
                "the program exports no handler: write at least one of header_handler, payload_handler and \
                 completion_handler, with __handler before it and without static",
            ),
            HandlerError::NoMemory { wanted, left } => write!(
                f,
                "{wanted} bytes of HPU memory were asked for, {left} are left; use less or raise hpu.memory"
            ),
            HandlerError::AlreadyServing => f.write_str(
                "these attached handlers serve another match entry; attach them again for this one",
            ),
        }
    }
}

impl std::error::Error for HandlerError {}

impl From<LoadError> for HandlerError {
    fn from(error: LoadError) -> HandlerError {
        HandlerError::Load(error)
    }
}

impl Handlers {
    /// Loads a program from ELF.
    ///
    /// # Errors
    /// When it is no RV32 program for this card's cores, or the handlers are not in it.
    pub fn load(elf: &[u8], names: &HandlerNames, hpu: &HpuSpec) -> Result<Handlers, HandlerError> {
        Handlers::from_image(Image::load(elf, &hpu.core)?, names)
    }

    /// Handlers of a program that is loaded already.
    ///
    /// # Errors
    /// When the handlers are not in it.
    pub fn from_image(image: Arc<Image>, names: &HandlerNames) -> Result<Handlers, HandlerError> {
        let find = |chosen: &Option<String>, default: &str| match chosen {
            None => Ok(image.symbol(default)),
            Some(name) => match image.symbol(name) {
                None => Err(HandlerError::NoSuchHandler { name: name.clone() }),
                found => Ok(found),
            },
        };
        let header = find(&names.header, "header_handler")?;
        let payload = find(&names.payload, "payload_handler")?;
        let completion = find(&names.completion, "completion_handler")?;
        Handlers::at(image, header, payload, completion)
    }

    /// Handlers at these addresses of a program, for hand-made code without symbols.
    ///
    /// # Errors
    /// When there is none at all.
    pub fn at(
        image: Arc<Image>,
        header: Option<u32>,
        payload: Option<u32>,
        completion: Option<u32>,
    ) -> Result<Handlers, HandlerError> {
        if header.is_none() && payload.is_none() && completion.is_none() {
            return Err(HandlerError::NoHandlers);
        }
        Ok(Handlers { image, header, payload, completion })
    }

    /// Checks that the program fits on a card, before anything runs.
    ///
    /// # Errors
    /// Names the part that does not fit.
    pub fn check(&self, hpu: &HpuSpec) -> Result<(), HandlerError> {
        Application::new(self, hpu).map(|_| ())
    }
}

/// What all handlers of a program share on one card: program memory, HPU memory, reservations. Other applications
/// have memory of their own at the same addresses, so they cannot reach each other's.
pub(super) struct Application {
    pub(super) program: Handlers,
    pub(super) code: Vec<u8>,
    pub(super) memory: RefCell<Vec<u8>>,
    pub(super) reservations: RefCell<Reservations>,
    /// Bytes of HPU memory that program and states have taken.
    used: Cell<u32>,
}

impl Application {
    fn new(program: &Handlers, hpu: &HpuSpec) -> Result<Application, HandlerError> {
        let mut code = vec![0; hpu.code as usize];
        let mut memory = vec![0; hpu.memory as usize];
        AddressSpace::new()
            .with(Region::memory("program memory", map::CODE, &mut code))
            .with(Region::memory("HPU memory", map::MEMORY, &mut memory))
            .place(&program.image)?;
        let data_end = program
            .image
            .segments()
            .iter()
            .filter(|s| (map::MEMORY..map::MEMORY + hpu.memory).contains(&s.address()))
            .map(|s| s.address() - map::MEMORY + s.size())
            .max();
        Ok(Application {
            program: program.clone(),
            code,
            memory: RefCell::new(memory),
            reservations: RefCell::default(),
            used: Cell::new(data_end.unwrap_or(0)),
        })
    }

    /// Allocates HPU memory with these contents, 16-byte aligned; returns its address.
    pub(super) fn allocate(&self, contents: &[u8]) -> Result<u32, HandlerError> {
        let mut memory = self.memory.borrow_mut();
        let start = self.used.get().next_multiple_of(16) as usize;
        let left = memory.len().saturating_sub(start);
        if contents.len() > left {
            return Err(HandlerError::NoMemory { wanted: contents.len() as u64, left: left as u64 });
        }
        memory[start..start + contents.len()].copy_from_slice(contents);
        self.used.set((start + contents.len()) as u32);
        Ok(map::MEMORY + start as u32)
    }
}

/// The match entry that attached handlers serve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) ct: Option<CtHandle>,
}

/// Handlers with a state, on a card.
pub struct Attachment {
    pub(super) application: Rc<Application>,
    /// Address of the state in HPU memory.
    pub(super) state: u32,
    /// The second host memory region: address and length.
    pub(super) handler_memory: Option<(u64, u64)>,
    serving: Cell<Option<Serving>>,
}

impl Attachment {
    pub(super) fn new(
        application: Rc<Application>,
        state: u32,
        handler_memory: Option<(u64, u64)>,
    ) -> Attachment {
        Attachment { application, state, handler_memory, serving: Cell::new(None) }
    }

    /// These handlers serve this match entry from now on.
    pub(super) fn serve(&self, serving: Serving) -> Result<(), HandlerError> {
        match self.serving.replace(Some(serving)) {
            None => Ok(()),
            Some(before) => {
                self.serving.set(Some(before));
                Err(HandlerError::AlreadyServing)
            }
        }
    }

    /// Where the data of a message goes that no header handler takes elsewhere: to the payload handlers, and to host
    /// memory where the program has none.
    pub(super) fn processing(&self) -> Fate {
        if self.application.program.payload.is_some() { Fate::Process } else { Fate::Deposit }
    }

    /// The match entry.
    pub(super) fn serving(&self) -> Serving {
        self.serving.get().expect("messages come through a match entry that has been appended")
    }
}

impl Card {
    /// The application of a program on this card, made at its first use.
    pub(super) fn application(&self, program: &Handlers) -> Result<Rc<Application>, HandlerError> {
        let mut applications = self.applications.borrow_mut();
        let same = |a: &&Rc<Application>| {
            let own = &a.program;
            Arc::ptr_eq(&own.image, &program.image)
                && (own.header, own.payload, own.completion)
                    == (program.header, program.payload, program.completion)
        };
        if let Some(application) = applications.iter().find(same) {
            return Ok(application.clone());
        }
        let application = Rc::new(Application::new(program, &self.spec.hpu)?);
        applications.push(application.clone());
        Ok(application)
    }
}
