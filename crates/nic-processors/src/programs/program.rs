//! Programs with handlers, and the check that they fit on a card.

use crate::spec::protection::{self, TooMany};
use crate::spec::{HpuSpec, pspin_map};
use nicety_hpu::{AddressSpace, Image, LoadError, Region, printable};
use std::fmt;
use std::sync::Arc;

/// The memory map of a handler. Programs are linked for these addresses.
pub mod map {
    /// The arguments of this run, read-only.
    pub const ARGUMENTS: u32 = 0x1b00_0000;
    /// The packet of this run.
    pub const PACKET: u32 = 0x1c40_0000;
    /// HPU memory with a program's own data.
    pub const MEMORY: u32 = 0x1000_0000;
    /// HPU memory with states, at their offsets in the card's HPU memory.
    pub const STATE: u32 = 0x1400_0000;
    /// The program, read-only.
    pub const CODE: u32 = 0x1d00_0000;
    /// The stack of the core.
    pub const STACK: u32 = 0x2000_0000;
    /// Size of the guard below the stack. An access there is a stack overflow.
    pub const STACK_GUARD: u32 = 64 << 10;
}

/// The kind of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Runs on the first packet of a message, before the others.
    Header,
    /// Runs on a packet.
    Payload,
    /// Runs after the packets of a message.
    Completion,
}

impl Kind {
    /// Returns the name in texts.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Header => "header handler",
            Kind::Payload => "payload handler",
            Kind::Completion => "completion handler",
        }
    }

    /// Returns the name in tables.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Payload => "payload",
            Self::Completion => "completion",
        }
    }
}

/// Names of the three handlers in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandlerNames {
    /// A name instead of `header_handler`.
    pub header: Option<String>,
    /// A name instead of `payload_handler`.
    pub payload: Option<String>,
    /// A name instead of `completion_handler`.
    pub completion: Option<String>,
}

/// A program with at least one handler, for one kind of core. It may serve many match entries.
#[derive(Clone)]
pub struct Handlers {
    /// The program.
    pub image: Arc<Image>,
    /// The address of the header handler.
    pub header: Option<u32>,
    /// The address of the payload handler.
    pub payload: Option<u32>,
    /// The address of the completion handler.
    pub completion: Option<u32>,
    /// The further parts of a program written for PsPIN.
    pub pspin: Option<Arc<PspinProgram>>,
    /// Whether the payload handler is one of frames, which are in no message.
    pub of_frames: bool,
}

/// A program written for PsPIN, without its handlers.
#[derive(Debug)]
pub struct PspinProgram {
    /// The address at which each run begins.
    pub dispatch: u32,
    /// The handler memory that it names, if any: address and size.
    pub memory: Option<(u32, u32)>,
    /// Its variables after `init_handlers`.
    pub(crate) data: Vec<u8>,
}

/// The reason why handlers cannot be attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerError {
    /// The program cannot be loaded.
    Load(LoadError),
    /// A named handler does not exist.
    NoSuchHandler {
        /// The name.
        name: String,
    },
    /// The program has no handlers.
    NoHandlers,
    /// The program has a handler for frames, but is to serve messages.
    OfFrames,
    /// The program has a handler for messages, but is to serve frames.
    OfMessages {
        /// Its name.
        found: &'static str,
    },
    /// A function has nearly the name of a handler.
    Misspelt {
        /// The name.
        name: String,
        /// The handler's name.
        meant: &'static str,
    },
    /// The card runs programs written for PsPIN, and the program has no `init_handlers`.
    NoInitHandlers,
    /// The call names handlers of a program that names them itself.
    NamedByProgram,
    /// The `init_handlers` of a program fails, with the reason.
    InitHandlers(String),
    /// The card already has a program and takes only one.
    OneProgram,
    /// A handler needs more protection entries than a core has.
    Protection(TooMany),
    /// The program is written for another interface than the card's.
    OtherInterface,
    /// The card has too little HPU memory left.
    NoMemory {
        /// The application.
        application: String,
        /// Requested bytes.
        wanted: u64,
        /// Free bytes.
        left: u64,
        /// Bytes of the largest free piece.
        largest: u64,
    },
    /// An application has used up its share of HPU memory.
    NoShare {
        /// The application.
        application: String,
        /// Requested bytes.
        wanted: u64,
        /// Free bytes.
        left: u64,
    },
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandlerError::Load(error) => error.fmt(f),
            HandlerError::NoSuchHandler { name } => {
                write!(
                    f,
                    "the program has no function {}; is it static, or spelt differently?",
                    printable(name)
                )
            }
            HandlerError::NoHandlers => f.write_str(
                "the program exports no handler: write at least one of header_handler, payload_handler and \
                 completion_handler, with __handler before it and without static",
            ),
            HandlerError::OfFrames => f.write_str(
                "the program has a frame_handler, which is for frames; name a card with frames, for example spin-100g",
            ),
            HandlerError::OfMessages { found } => write!(
                f,
                "the program has a {found}, which is for messages, but no frame_handler; include <frame.h> \
                 and write a frame_handler"
            ),
            HandlerError::Misspelt { name, meant } => write!(
                f,
                "the program has a function {} but no {meant}; call it {meant}, choose it by its name, or make it \
                 static if it is no handler",
                printable(name)
            ),
            HandlerError::NoInitHandlers => f.write_str(
                "the program has no init_handlers: this card runs handlers written for PsPIN (hpu.interface): they include \
                 handler.h and have an init_handlers that names them",
            ),
            HandlerError::NamedByProgram => f.write_str(
                "names of handlers were given, but a program written for PsPIN names them in its \
                 init_handlers; leave the names out",
            ),
            HandlerError::InitHandlers(why) => write!(f, "init_handlers: {why}"),
            HandlerError::OneProgram => f.write_str(
                "the card has another program already: its program memory and handler memory hold one \
                 program; attach the same program again, or detach the other one",
            ),
            HandlerError::Protection(error) => error.fmt(f),
            HandlerError::OtherInterface => f.write_str(
                "the program is written for another interface than the card's (hpu.interface): load it with this card's spec",
            ),
            HandlerError::NoMemory { application, wanted, left, largest } => {
                write!(
                    f,
                    "{application} asked for {wanted} bytes of HPU memory, but {left} are left on the card"
                )?;
                if left >= wanted {
                    write!(f, ", {largest} in one piece")?;
                }
                f.write_str("; use less, free some, or raise hpu.memory")
            }
            HandlerError::NoShare { application, wanted, left } => write!(
                f,
                "{application} asked for {wanted} bytes of HPU memory, but its limit leaves {left}; use \
                 less, free some, or raise the limit"
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
    /// Returns the handlers of a loaded program.
    ///
    /// # Errors
    /// When the program lacks the handlers.
    pub fn from_image(image: Arc<Image>, names: &HandlerNames) -> Result<Handlers, HandlerError> {
        let find = |chosen: &Option<String>, default: &str| match chosen {
            None => Ok(image.symbol(default)),
            Some(name) => match image.symbol(name) {
                None => Err(HandlerError::NoSuchHandler { name: name.clone() }),
                found => Ok(found),
            },
        };
        let [header, payload, completion] = HANDLERS;
        let header = find(&names.header, header)?;
        let payload = find(&names.payload, payload)?;
        let completion = find(&names.completion, completion)?;
        if *names == HandlerNames::default() {
            spelling(&image)?;
            if header.or(payload).or(completion).is_none() && image.symbol(FRAME_HANDLER).is_some() {
                return Err(HandlerError::OfFrames);
            }
        }
        Handlers::at(image, header, payload, completion)
    }

    /// Returns handlers at these addresses of a program, for hand-assembled code without symbols.
    ///
    /// # Errors
    /// When no handler is given.
    pub fn at(
        image: Arc<Image>,
        header: Option<u32>,
        payload: Option<u32>,
        completion: Option<u32>,
    ) -> Result<Handlers, HandlerError> {
        if header.is_none() && payload.is_none() && completion.is_none() {
            return Err(HandlerError::NoHandlers);
        }
        Ok(Handlers { image, header, payload, completion, pspin: None, of_frames: false })
    }

    /// Returns whether packets run a handler.
    pub const fn has_payload_handler(&self) -> bool {
        self.payload.is_some()
    }

    /// Checks that the program fits on a card, before anything runs.
    ///
    /// # Errors
    /// The part that does not fit.
    pub fn check(&self, hpu: &HpuSpec) -> Result<(), HandlerError> {
        Placed::new(self, hpu).map(|_| ())
    }

    /// Returns the variable at an address, such as `table+8`.
    pub(crate) fn variable_at(&self, address: u32) -> Option<String> {
        let (name, offset) = self.image.variable_at(address)?;
        let name = printable(name);
        Some(if offset == 0 { name.into_owned() } else { format!("{name}+{offset}") })
    }

    /// Returns the address of its variables.
    pub fn data_address(&self) -> u32 {
        if self.pspin.is_some() { pspin_map::HANDLER_MEMORY } else { map::MEMORY }
    }
}

/// Default name of the handler of frames.
pub(crate) const FRAME_HANDLER: &str = "frame_handler";

/// Default names of the handlers.
const HANDLERS: [&str; 3] = ["header_handler", "payload_handler", "completion_handler"];

/// Maximum edit distance between a misspelt name and the right one.
const SLIPS: usize = 2;

/// Refuses a program that lacks a handler but has a function of nearly the same name. Otherwise the handler would
/// silently never run.
fn spelling(image: &Image) -> Result<(), HandlerError> {
    for meant in HANDLERS.into_iter().filter(|name| image.symbol(name).is_none()) {
        let near = |name: &&str| {
            !HANDLERS.contains(name) && strsim::osa_distance(&name.to_lowercase(), meant) <= SLIPS
        };
        if let Some(name) = image.functions().find(near) {
            return Err(HandlerError::Misspelt { name: name.to_string(), meant });
        }
    }
    Ok(())
}

/// A program's initial memory on a card: its code, and its data in HPU memory.
pub(crate) struct Placed {
    pub(crate) code: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl Placed {
    /// Lays a program out.
    ///
    /// # Errors
    /// The part that does not fit.
    pub fn new(program: &Handlers, hpu: &HpuSpec) -> Result<Placed, HandlerError> {
        let placed = Placed::at(&program.image, hpu, program.data_address())?;
        let Some(pspin) = &program.pspin else { return Ok(placed) };
        protection::check(hpu, !pspin.data.is_empty()).map_err(HandlerError::Protection)?;
        Ok(Placed { data: pspin.data.clone(), ..placed })
    }

    /// Lays an image out, with its data at this address.
    pub fn at(image: &Image, hpu: &HpuSpec, address: u32) -> Result<Placed, HandlerError> {
        let segments = image.segments().iter();
        let ends = segments.map(|segment| (segment.address(), segment.address() + segment.size()));
        let end_in = |base: u32, size: u32| {
            let inside = ends.clone().filter(|(start, _)| (base..base + size).contains(start));
            inside.map(|(_, end)| end - base).max().unwrap_or(0).min(size)
        };
        // Memory beyond the program's own is not mapped: an access there is a bug.
        let own = (end_in(map::CODE, hpu.code), end_in(address, hpu.memory));
        match Placed::within(image, address, own) {
            // If it does not fit, the error refers to the memory of the whole card.
            Err(_) => Placed::within(image, address, (hpu.code, hpu.memory)),
            placed => placed,
        }
    }

    /// Lays a program out in `code` bytes of program memory and `data` bytes of HPU memory.
    fn within(image: &Image, address: u32, (code, data): (u32, u32)) -> Result<Placed, HandlerError> {
        let (mut code, mut data) = (vec![0; code as usize], vec![0; data as usize]);
        AddressSpace::new()
            .with(Region::memory("program memory", map::CODE, &mut code))
            .with(Region::memory("HPU memory", address, &mut data))
            .place(image)?;
        Ok(Placed { code, data })
    }
}
