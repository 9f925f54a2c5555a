//! The content of a program's file: segments, symbols, and errors.

use crate::isa::Isa;
use crate::text::printable;
use crate::trap::Nearest;
use std::fmt;

/// A part of an image that must be in memory.
#[derive(Clone, PartialEq, Eq)]
pub struct Segment {
    pub(crate) address: u32,
    pub(crate) bytes: Box<[u8]>,
    pub(crate) size: u32,
    pub(crate) writable: bool,
    pub(crate) executable: bool,
}

impl Segment {
    /// Its first address.
    pub const fn address(&self) -> u32 {
        self.address
    }

    /// Its initial bytes. The rest, up to [`size`](Self::size), is zero.
    pub const fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its size in memory, in bytes.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Whether the program writes it.
    pub const fn writable(&self) -> bool {
        self.writable
    }

    /// Whether it contains code.
    pub const fn executable(&self) -> bool {
        self.executable
    }

    /// Its contents, for messages.
    pub const fn contents(&self) -> &'static str {
        match (self.writable, self.executable) {
            (true, true) => "code and data",
            (false, true) => "code",
            (true, false) => "data",
            (false, false) => "constants",
        }
    }

    /// Fills `memory` as the program expects: the segment's bytes, then zeros.
    ///
    /// # Panics
    /// If `memory` does not have exactly [`size`](Self::size) bytes.
    pub fn write_to(&self, memory: &mut [u8]) {
        let (head, tail) = memory.split_at_mut(self.bytes.len());
        head.copy_from_slice(&self.bytes);
        tail.fill(0);
        assert_eq!(memory.len(), self.size as usize, "a segment is placed as a whole");
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes at {:#x}", self.contents(), self.size, self.address)
    }
}

/// The reason why a file is unusable as a handler image, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The bytes are not an ELF file.
    NotElf,
    /// An ELF file for another processor or of another byte order.
    NotRiscv {
        /// The format found.
        found: String,
    },
    /// An object file or a position-independent one. It must be linked to fixed addresses.
    NotLinked {
        /// The kind of the file.
        found: &'static str,
    },
    /// Compiled for instructions or a calling convention that the core lacks.
    WrongTarget {
        /// The instructions or calling convention needed.
        needs: &'static str,
        /// The core's isa.
        isa: Isa,
    },
    /// One part of the file contradicts another.
    Malformed {
        /// The contradiction.
        problem: String,
    },
    /// A valid file with a program that no card runs.
    Refused {
        /// Why.
        problem: String,
    },
    /// No symbol of that name is defined.
    NoSymbol {
        /// The requested name.
        name: String,
        /// The defined functions.
        functions: Vec<String>,
    },
    /// No region contains the segment.
    NoRoom {
        /// The segment's contents.
        contents: &'static str,
        /// Its link address.
        address: u32,
        /// Its size in bytes.
        size: u32,
        /// The nearest region, if any.
        nearest: Option<Nearest>,
    },
}

impl LoadError {
    pub(crate) fn no_room(segment: &Segment, nearest: Option<Nearest>) -> LoadError {
        let (contents, address, size) = (segment.contents(), segment.address, segment.size);
        LoadError::NoRoom { contents, address, size, nearest }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::NotElf => f.write_str(
                "not an ELF file; handlers are compiled and linked to a RISC-V ELF executable (nicety cc)",
            ),
            LoadError::NotRiscv { found } => write!(
                f,
                "{found}, not a little-endian RISC-V ELF file; compile it for riscv32 or riscv64 (nicety cc does)"
            ),
            LoadError::NotLinked { found } => write!(
                f,
                "{found}, not an executable linked to fixed addresses; link it with -static and without -pie"
            ),
            LoadError::WrongTarget { needs, isa } => {
                write!(
                    f,
                    "it was compiled for {needs}, which the core ({isa}) lacks; compile it for that isa"
                )
            }
            LoadError::Malformed { problem } => write!(f, "a damaged ELF file: {problem}"),
            LoadError::Refused { problem } => write!(f, "the program cannot be loaded: {problem}"),
            LoadError::NoSymbol { name, functions } => {
                write!(f, "no symbol {} is defined", printable(name))?;
                match functions.as_slice() {
                    [] => f.write_str("; the file exports no functions at all (was it stripped?)"),
                    functions => write!(f, "; the functions there are: {}", listed(functions)),
                }
            }
            LoadError::NoRoom { contents, address, size, nearest } => {
                write!(f, "the {contents} segment of {size} bytes at {address:#x} fits into no region")?;
                match nearest {
                    Some(Nearest { region, base, size: room }) if u64::from(*size) > *room => write!(
                        f,
                        "; the nearest is {region}, {room} bytes at {base:#x}: make the program's {contents} smaller"
                    ),
                    Some(Nearest { region, base, size: room }) => write!(
                        f,
                        "; the nearest is {region}, {room} bytes at {base:#x}: link the {contents} there"
                    ),
                    None => f.write_str("; there are no regions"),
                }
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// The first few names of a list.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let more = if names.len() > SHOWN { ", ..." } else { "" };
    names.iter().take(SHOWN).map(|name| printable(name)).collect::<Vec<_>>().join(", ") + more
}

/// A function or object of the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub address: u32,
    pub size: u32,
    pub function: bool,
    pub global: bool,
}
