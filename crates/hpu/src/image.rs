//! A program for handler processors: its segments, symbols and code, decoded once and shared by all cores.

use crate::block::Block;
use crate::core::Core;
use crate::decode;
use crate::elf;
use crate::isa::{Extension, Isa};
use crate::lines::Lines;
use crate::memory::AddressSpace;
use crate::text::printable;
use crate::trap::{Illegal, Location, Nearest, Trap, TrapKind};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A part of an image that must lie in memory.
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

    /// The bytes it begins with; the rest, up to [`size`](Self::size), is zero.
    pub const fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes it takes in memory.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Whether the program writes it.
    pub const fn writable(&self) -> bool {
        self.writable
    }

    /// Whether it holds code.
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

    /// Fills `memory` as the program expects it: the segment's bytes, then zeros.
    ///
    /// # Panics
    /// When `memory` is not exactly [`size`](Self::size) bytes.
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

/// Why a file cannot be used as a handler image, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The bytes are not an ELF file.
    NotElf,
    /// An ELF file of another word size or byte order.
    NotRv32 {
        /// The format found.
        found: String,
    },
    /// An object file or a position-independent one: it has to be linked to fixed addresses.
    NotLinked {
        /// The kind of file found.
        found: &'static str,
    },
    /// Compiled for instructions or a calling convention that the core lacks.
    WrongTarget {
        /// The instructions or calling convention needed.
        needs: &'static str,
        /// The core's isa.
        isa: Isa,
    },
    /// A part of the file contradicts another.
    Malformed {
        /// The contradiction.
        problem: String,
    },
    /// A valid file whose program no card runs.
    Refused {
        /// Why.
        problem: String,
    },
    /// No symbol of that name is defined.
    NoSymbol {
        /// The name looked for.
        name: String,
        /// The functions there are.
        functions: Vec<String>,
    },
    /// A segment lies in no region.
    NoRoom {
        /// The segment's contents.
        contents: &'static str,
        /// Where it is linked to.
        address: u32,
        /// Its size in bytes.
        size: u32,
        /// The nearest region, if there is one.
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
                "not an ELF file; handlers are compiled and linked to a 32-bit RISC-V ELF executable (nicety cc)",
            ),
            LoadError::NotRv32 { found } => write!(
                f,
                "{found}, not a 32-bit little-endian RISC-V ELF file; compile it for riscv32 (nicety cc does)"
            ),
            LoadError::NotLinked { found } => write!(
                f,
                "{found}, not an executable linked to fixed addresses; link it with -static and without -pie"
            ),
            LoadError::WrongTarget { needs, isa } => {
                write!(f, "it was compiled for {needs}, which the core ({isa}) lacks; compile it for that isa")
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

/// The blocks of one executable segment, by the halfword they begin at.
struct Code {
    base: u32,
    bytes: Box<[u8]>,
    blocks: Box<[OnceLock<Box<Block>>]>,
    /// Whether the program may write it.
    writable: bool,
}

/// A program, decoded for one kind of core and shared by all cores of that kind. Its code is read-only.
pub struct Image {
    core: Core,
    entry: u32,
    segments: Vec<Segment>,
    code: Vec<Code>,
    symbols: BTreeMap<String, Symbol>,
    global_pointer: Option<u32>,
    lines: Lines,
}

/// How far back a line is looked for, for an instruction that has none.
const LINELESS_BYTES: u32 = 64;

impl Image {
    /// Loads a linked 32-bit RISC-V ELF file.
    ///
    /// # Errors
    /// [`LoadError`] says what is wrong with the file and what to do.
    pub fn load(file: &[u8], core: &Core) -> Result<Arc<Image>, LoadError> {
        let parts = elf::parse(file, &core.isa)?;
        Ok(Image::assemble(core, parts.entry, parts.segments, parts.symbols, Lines::of_file(file)))
    }

    /// An image of hand-made code at `base`, which is also its entry.
    ///
    /// # Panics
    /// When `base` is odd or the code reaches over the end of the address space.
    pub fn from_bytes(base: u32, code: &[u8], core: &Core) -> Arc<Image> {
        assert!(base.is_multiple_of(2), "code at the odd address {base:#x}");
        let size = u32::try_from(code.len()).expect("code of 4 GiB");
        assert!(base.checked_add(size).is_some(), "code reaches over the end of the address space");
        let segment = Segment { address: base, bytes: code.into(), size, writable: false, executable: true };
        Image::assemble(core, base, vec![segment], BTreeMap::new(), Lines::none())
    }

    /// The same from words, as [`asm`](crate::asm) makes them.
    pub fn from_words(base: u32, words: &[u32], core: &Core) -> Arc<Image> {
        Image::from_bytes(base, &crate::asm::bytes(words), core)
    }

    fn assemble(
        core: &Core,
        entry: u32,
        segments: Vec<Segment>,
        symbols: BTreeMap<String, Symbol>,
        lines: Lines,
    ) -> Arc<Image> {
        let code = segments.iter().filter(|s| s.executable).filter_map(Code::of).collect();
        let global_pointer = symbols.get("__global_pointer$").map(|s| s.address);
        Arc::new(Image { core: *core, entry, segments, code, symbols, global_pointer, lines })
    }

    /// The kind of core the image is decoded for.
    pub const fn core(&self) -> &Core {
        &self.core
    }

    /// Where the program as a whole begins (`_start`).
    pub const fn entry(&self) -> u32 {
        self.entry
    }

    /// The parts that must lie in memory. Code too, where handlers read constants from it.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The address of a symbol, if one of that name is defined.
    pub fn symbol(&self, name: &str) -> Option<u32> {
        self.symbols.get(name).map(|s| s.address)
    }

    /// A variable: its address and its size in bytes.
    pub fn variable(&self, name: &str) -> Option<(u32, u32)> {
        let symbol = self.symbols.get(name).filter(|symbol| !symbol.function && symbol.size > 0)?;
        Some((symbol.address, symbol.size))
    }

    /// The address of a symbol that has to be there.
    ///
    /// # Errors
    /// [`LoadError::NoSymbol`] lists the functions there are.
    pub fn require(&self, name: &str) -> Result<u32, LoadError> {
        let functions = || self.functions().map(str::to_owned).collect();
        self.symbol(name).ok_or_else(|| LoadError::NoSymbol { name: name.to_owned(), functions: functions() })
    }

    /// The names of the global functions, in alphabetical order.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.symbols.iter().filter(|(_, s)| s.function && s.global).map(|(name, _)| name.as_str())
    }

    /// The value that gp must have (`__global_pointer$`), where the linker relaxed accesses to it.
    pub const fn global_pointer(&self) -> Option<u32> {
        self.global_pointer
    }

    /// The place of an instruction in the source: function, file and line from DWARF, the innermost inlined
    /// function outside `nicety.h` and `frame.h`; or the function alone, from the symbols.
    pub fn locate(&self, pc: u32) -> Option<Location> {
        let found = self.lines.locate(pc).or_else(|| {
            let name = printable(self.function_at(pc)?).into_owned();
            Some(Location { function: Some(name), ..Location::default() })
        })?;
        if found.line.is_some() || found.file.is_none() {
            return Some(found);
        }
        // Optimised code has instructions that belong to no line; the one before it in the function is the
        // best estimate.
        let before =
            (2..=LINELESS_BYTES).step_by(2).filter_map(|back| self.lines.locate(pc.checked_sub(back)?));
        let near = before.take_while(|at| at.function == found.function).find(|at| at.line.is_some());
        Some(near.unwrap_or(found))
    }

    /// The function symbol at or before `pc`, within its size where it has one.
    fn function_at(&self, pc: u32) -> Option<&str> {
        let (name, symbol) = self
            .symbols
            .iter()
            .filter(|(_, s)| s.function && s.address <= pc)
            .max_by_key(|(_, s)| (s.address, s.global))?;
        let inside = symbol.size == 0 || pc - symbol.address < symbol.size;
        (inside && self.is_code(pc)).then_some(name)
    }

    /// Whether an instruction can begin at `pc`.
    pub fn is_code(&self, pc: u32) -> bool {
        self.aligned(pc) && self.code.iter().any(|c| c.slot(pc).is_some())
    }

    /// Whether an instruction may begin at this address, code or not.
    pub(crate) const fn aligned(&self, pc: u32) -> bool {
        let mask = if self.core.isa.has(Extension::C) { 1 } else { 3 };
        pc & mask == 0
    }

    /// The block at `pc`, decoded on first use; `None` where there is no code.
    #[inline(always)]
    pub(crate) fn block(&self, pc: u32) -> Option<&Block> {
        if let Some(code) = self.code.first()
            && let Some(cell) = code.slot(pc)
            && let Some(block) = cell.get()
        {
            return Some(block);
        }
        self.block_slow(pc)
    }

    #[cold]
    #[inline(never)]
    fn block_slow(&self, pc: u32) -> Option<&Block> {
        if !self.aligned(pc) {
            return None;
        }
        let (code, cell) = self.code.iter().find_map(|c| Some((c, c.slot(pc)?)))?;
        Some(cell.get_or_init(|| {
            let bytes = &code.bytes[(pc - code.base) as usize..];
            Box::new(Block::decode(bytes, pc, &self.core))
        }))
    }

    /// The word at `pc` and why it is illegal, if it is.
    pub(crate) fn illegal_at(&self, pc: u32) -> Option<(u32, Illegal)> {
        let code = self.code.iter().find(|c| c.slot(pc).is_some())?;
        decode::decode(&code.bytes[(pc - code.base) as usize..], pc, &self.core.isa).err()
    }

    /// Whether the instruction there is an atomic addition (`amoadd.w`), which cannot fail.
    pub fn adds_at(&self, pc: u32) -> bool {
        self.is_code(pc) && self.word_at(pc) & 0xf800_707f == 0x0000_202f
    }

    /// Whether the instruction at `pc` is an atomic exchange, `amoswap.w`.
    pub fn swaps_at(&self, pc: u32) -> bool {
        self.is_code(pc) && self.word_at(pc) & 0xf800_707f == 0x0800_202f
    }

    /// The instruction word at `pc`; zero where there is no whole one.
    pub(crate) fn word_at(&self, pc: u32) -> u32 {
        let code = self.code.iter().find(|c| c.slot(pc).is_some());
        let bytes = code.and_then(|c| c.bytes[(pc - c.base) as usize..].first_chunk());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// The first instruction word that the program has changed since it was loaded, in code that it may write.
    pub(crate) fn changed(&self, space: &AddressSpace<'_>) -> Option<u32> {
        self.code.iter().filter(|code| code.writable).find_map(|code| {
            let now = space.read(code.base, code.bytes.len() as u32).ok()?;
            let at = now.iter().zip(&code.bytes).position(|(now, loaded)| now != loaded)?;
            Some(code.base + (at as u32 & !1))
        })
    }

    /// A trap at `pc`, with its place in the source.
    #[cold]
    pub fn trap(&self, pc: u32, kind: TrapKind) -> Box<Trap> {
        Box::new(Trap { kind, pc, location: self.locate(pc) })
    }
}

impl Code {
    /// The code of a segment, where it has any. One that begins at an odd address has its first instruction behind it.
    fn of(segment: &Segment) -> Option<Code> {
        let base = segment.address.checked_next_multiple_of(2)?;
        let bytes = segment.bytes.get((base - segment.address) as usize..)?;
        let blocks = (0..bytes.len().div_ceil(2)).map(|_| OnceLock::new()).collect();
        let code = Code { base, bytes: bytes.into(), blocks, writable: segment.writable };
        (!bytes.is_empty()).then_some(code)
    }

    #[inline(always)]
    fn slot(&self, pc: u32) -> Option<&OnceLock<Box<Block>>> {
        self.blocks.get((pc.wrapping_sub(self.base) >> 1) as usize)
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("core", &self.core)
            .field("segments", &self.segments)
            .finish_non_exhaustive()
    }
}
