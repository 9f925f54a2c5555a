//! Programs with handlers: which there are, and whether they fit on a card.

use super::spec::HpuSpec;
use nicety_hpu::{AddressSpace, Image, LoadError, Region, printable};
use std::fmt;
use std::sync::Arc;

/// Where a handler finds what it may touch; programs are linked for these addresses.
pub mod map {
    /// The arguments of this run; read-only.
    pub const ARGUMENTS: u32 = 0x1b00_0000;
    /// The packet of this run.
    pub const PACKET: u32 = 0x1c40_0000;
    /// HPU memory with a program's own data.
    pub const MEMORY: u32 = 0x1000_0000;
    /// HPU memory with states: a state is as far behind this as it lies in the card's HPU memory.
    pub const STATE: u32 = 0x1400_0000;
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
    /// A function is called nearly like a handler.
    Misspelt {
        /// What it is called.
        name: String,
        /// What it should be called.
        meant: &'static str,
    },
    /// There is not enough HPU memory left on the card.
    NoMemory {
        /// The application that wanted it.
        application: String,
        /// Bytes wanted.
        wanted: u64,
        /// Bytes left.
        left: u64,
        /// Bytes of the largest piece that is left.
        largest: u64,
    },
    /// An application has no more HPU memory of its share.
    NoShare {
        /// The application.
        application: String,
        /// Bytes wanted.
        wanted: u64,
        /// Bytes left.
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
            HandlerError::Misspelt { name, meant } => write!(
                f,
                "the program has a function {} and no {meant}; call it {meant}, choose it by its name, or make it \
                 static if it is no handler",
                printable(name)
            ),
            HandlerError::NoMemory { application, wanted, left, largest } => {
                write!(
                    f,
                    "{application} asked for {wanted} bytes of HPU memory, and {left} are left on the card"
                )?;
                if left >= wanted {
                    write!(f, ", {largest} in one piece")?;
                }
                f.write_str("; use less, free some, or raise hpu.memory")
            }
            HandlerError::NoShare { application, wanted, left } => write!(
                f,
                "{application} asked for {wanted} bytes of HPU memory, and {left} are left of what it may have; use \
                 less, free some, or give it more"
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
        let [header, payload, completion] = HANDLERS;
        let header = find(&names.header, header)?;
        let payload = find(&names.payload, payload)?;
        let completion = find(&names.completion, completion)?;
        if *names == HandlerNames::default() {
            spelling(&image)?;
        }
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

    /// Whether packets run a handler of their own.
    pub const fn has_payload_handler(&self) -> bool {
        self.payload.is_some()
    }

    /// Checks that the program fits on a card, before anything runs.
    ///
    /// # Errors
    /// Names the part that does not fit.
    pub fn check(&self, hpu: &HpuSpec) -> Result<(), HandlerError> {
        Placed::new(self, hpu).map(|_| ())
    }
}

/// What handlers are called unless their program says otherwise.
const HANDLERS: [&str; 3] = ["header_handler", "payload_handler", "completion_handler"];

/// How many letters a misspelt name may be off.
const SLIPS: usize = 2;

/// A handler that is missing, and a function that is called nearly like it, are a misspelling: without the word, the
/// handler would never run.
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

/// A program as it begins on a card: its code, and its data in HPU memory.
pub(super) struct Placed {
    pub(super) code: Vec<u8>,
    pub(super) data: Vec<u8>,
}

impl Placed {
    /// Lays a program out.
    ///
    /// # Errors
    /// Names the part that does not fit.
    pub(super) fn new(program: &Handlers, hpu: &HpuSpec) -> Result<Placed, HandlerError> {
        let segments = program.image.segments().iter();
        let ends = segments.map(|segment| (segment.address(), segment.address() + segment.size()));
        let end_in = |base: u32, size: u32| {
            let inside = ends.clone().filter(|(start, _)| (base..base + size).contains(start));
            inside.map(|(_, end)| end - base).max().unwrap_or(0).min(size)
        };
        // What is not the program's is nobody's: an access there is a slip.
        let own = (end_in(map::CODE, hpu.code), end_in(map::MEMORY, hpu.memory));
        match Placed::within(program, own) {
            // Where it does not fit, what there is room for is part of the error.
            Err(_) => Placed::within(program, (hpu.code, hpu.memory)),
            placed => placed,
        }
    }

    /// Lays a program out in so many bytes of program memory and HPU memory.
    fn within(program: &Handlers, (code, data): (u32, u32)) -> Result<Placed, HandlerError> {
        let (mut code, mut data) = (vec![0; code as usize], vec![0; data as usize]);
        AddressSpace::new()
            .with(Region::memory("program memory", map::CODE, &mut code))
            .with(Region::memory("HPU memory", map::MEMORY, &mut data))
            .place(&program.image)?;
        Ok(Placed { code, data })
    }
}
