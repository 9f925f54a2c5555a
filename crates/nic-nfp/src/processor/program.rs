//! A program that fits into microengines.

use crate::map::{self, MemoryKind};
use crate::spec::NfpSpec;
use nicety_hpu::{Image, LoadError, Segment};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Minimum size of a context's stack, in bytes.
pub const LEAST_STACK: u32 = 64;

/// A program that fits into a microengine. Several microengines share its code.
pub struct Program {
    pub(super) image: Arc<Image>,
    /// Code and constants, from the address [`map::CODE`] on.
    pub(super) code: Vec<u8>,
    /// Size of the data at the bottom of local memory, in bytes.
    pub(super) data: u32,
    local: u32,
}

/// The reason why a program cannot run on this card, and a correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// The file is not a program for these cores.
    Image(LoadError),
    /// The code store is too small.
    Code {
        /// Size of code and constants in bytes.
        size: u64,
        /// Capacity of the code store in bytes.
        room: u32,
    },
    /// Local memory is too small for the data.
    Data {
        /// Size of the data in bytes.
        size: u64,
        /// Size of local memory in bytes.
        room: u32,
    },
    /// A segment of the program is neither in the code store nor in local memory.
    Place {
        /// A description of the segment's contents.
        contents: &'static str,
        /// The segment's address.
        address: u32,
    },
    /// The requested number of contexts is zero, or higher than that of a microengine.
    Contexts {
        /// The requested number.
        asked: usize,
        /// The available number.
        contexts: usize,
    },
    /// A resource of the card is too small for the program.
    Room {
        /// The resource.
        what: &'static str,
        /// The spec key that sets its amount.
        key: &'static str,
        /// Amount needed.
        needed: u64,
        /// Amount available.
        there: u64,
    },
    /// The local memory beside the data is too small for the stacks.
    Stack {
        /// Number of stacks.
        contexts: usize,
        /// Size of a stack in bytes.
        stack: u32,
        /// Size of the data in bytes.
        data: u32,
        /// Size of local memory in bytes.
        local: u32,
    },
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramError::Image(error) => error.fmt(f),
            ProgramError::Code { size, room } => write!(
                f,
                "{size} bytes of code and constants do not fit a microengine's code store of {room} bytes (hpu.code); \
                 make the program smaller, or keep tables in a memory"
            ),
            ProgramError::Data { size, room } => write!(
                f,
                "{size} bytes of data do not fit a microengine's local memory of {room} bytes (hpu.local_memory); \
                 keep them in CLS, CTM, IMEM or EMEM"
            ),
            ProgramError::Place { contents, address } => write!(
                f,
                "its {contents} at {address:#x} are in no part of a microengine; link code to {:#x} and data to {:#x}",
                map::CODE,
                map::LOCAL
            ),
            ProgramError::Contexts { asked: 0, .. } => f.write_str("no contexts; start at least 1"),
            ProgramError::Contexts { asked, contexts } => write!(
                f,
                "{asked} processes, but a microengine has {contexts} contexts (hpu.contexts); start the \
                 others on another microengine"
            ),
            ProgramError::Room { what, key, needed, there } => {
                write!(f, "it needs {needed} {what}, but the card has {there} ({key})")
            }
            ProgramError::Stack { contexts, stack, data, local } => write!(
                f,
                "{data} bytes of data leave {stack} bytes of stack for each of {contexts} contexts in a \
                 local memory of {local} bytes; the minimum is {LEAST_STACK}; run fewer contexts or keep \
                 data in a memory"
            ),
        }
    }
}

impl std::error::Error for ProgramError {}

impl Program {
    /// Parses a linked RV32 ELF file.
    ///
    /// # Errors
    /// When the file is not such a file, or the program does not fit into a microengine.
    pub fn load(file: &[u8], spec: &NfpSpec) -> Result<Rc<Program>, ProgramError> {
        Program::new(Image::load(file, &spec.core).map_err(ProgramError::Image)?, spec)
    }

    /// Returns a decoded program, after a check that it fits into a microengine.
    ///
    /// # Errors
    /// When the program does not fit.
    pub fn new(image: Arc<Image>, spec: &NfpSpec) -> Result<Rc<Program>, ProgramError> {
        Program::beside(image, spec, |_| false)
    }

    /// Returns a program with its variables in EMEM, and these variables. They begin at the memory's first byte.
    ///
    /// # Errors
    /// When the program or its variables do not fit.
    pub(crate) fn with_variables_in_emem(
        image: Arc<Image>,
        spec: &NfpSpec,
    ) -> Result<(Rc<Program>, Vec<u8>), ProgramError> {
        let is_far = |segment: &Segment| segment.writable() && segment.address() == map::EMEM;
        let size = image.segments().iter().filter(|s| is_far(s)).map(|s| u64::from(s.size())).sum();
        let room = spec.memory(MemoryKind::Emem).size;
        if size > u64::from(room) {
            let key = "memory.emem.size";
            let there = room.into();
            return Err(ProgramError::Room { what: "bytes of EMEM", key, needed: size, there });
        }
        let mut variables = vec![0; size as usize];
        image.segments().iter().filter(|s| is_far(s)).for_each(|s| write(s, map::EMEM, &mut variables));
        Ok((Program::beside(image, spec, is_far)?, variables))
    }

    /// Returns a program, apart from segments that are elsewhere.
    fn beside(
        image: Arc<Image>,
        spec: &NfpSpec,
        elsewhere: impl Fn(&Segment) -> bool,
    ) -> Result<Rc<Program>, ProgramError> {
        let (mut code, mut data) = (0, 0);
        for segment in image.segments().iter().filter(|segment| !elsewhere(segment)) {
            let end = |base: u32| {
                segment.address().checked_sub(base).map(|at| u64::from(at) + u64::from(segment.size()))
            };
            let (base, far) =
                if segment.writable() { (map::LOCAL, map::CODE) } else { (map::CODE, map::CLS) };
            let end = end(base).filter(|_| segment.address() < far);
            let Some(end) = end else {
                return Err(ProgramError::Place { contents: segment.contents(), address: segment.address() });
            };
            let most = if segment.writable() { &mut data } else { &mut code };
            *most = end.max(*most);
        }
        if code > u64::from(spec.code) {
            return Err(ProgramError::Code { size: code, room: spec.code });
        }
        if data > u64::from(spec.local_memory) {
            return Err(ProgramError::Data { size: data, room: spec.local_memory });
        }
        let mut bytes = vec![0; code as usize];
        image.segments().iter().filter(|s| !s.writable()).for_each(|s| write(s, map::CODE, &mut bytes));
        let data = data as u32;
        let local = spec.local_memory;
        Ok(Rc::new(Program { image, code: bytes, data: data.next_multiple_of(16), local }))
    }

    /// Returns the program's image, in which functions can be looked up.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Returns the size in bytes of each context's stack. It is the local memory beside the data divided by `contexts`,
    /// and rounded down to 16 bytes.
    ///
    /// # Errors
    /// When the stacks would be too small.
    pub fn stack(&self, contexts: usize) -> Result<u32, ProgramError> {
        let (data, local) = (self.data, self.local);
        let stack = (local.saturating_sub(data) / contexts as u32) & !15;
        if stack >= LEAST_STACK {
            Ok(stack)
        } else {
            Err(ProgramError::Stack { contexts, stack, data, local })
        }
    }

    /// Fills local memory with its initial contents.
    pub(super) fn fill(&self, local: &mut [u8]) {
        local.fill(0);
        let own = |s: &&Segment| s.writable() && s.address() < map::CODE;
        self.image.segments().iter().filter(own).for_each(|s| write(s, map::LOCAL, local));
    }
}

fn write(segment: &Segment, base: u32, memory: &mut [u8]) {
    let at = (segment.address() - base) as usize;
    segment.write_to(&mut memory[at..at + segment.size() as usize]);
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("code", &self.code.len())
            .field("data", &self.data)
            .finish_non_exhaustive()
    }
}
