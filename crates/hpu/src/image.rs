//! A program for handler cores: its segments, symbols and code, decoded once and shared by all cores.

use crate::block::Block;
use crate::core::Core;
use crate::decode::{self, Kind};
use crate::disassemble;
use crate::elf;
use crate::isa::Extension;
use crate::lines::{self, Lines};
use crate::load::{LoadError, Segment, Symbol};
use crate::memory::AddressSpace;
use crate::op::Op;
use crate::profile::Profile;
use crate::text::printable;
use crate::trap::{Illegal, Location, Trap, TrapKind};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// The blocks of an executable segment, by their first halfword.
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
    /// The number of decoded blocks.
    decoded: AtomicU32,
    symbols: BTreeMap<String, Symbol>,
    global_pointer: Option<u32>,
    lines: Lines,
}

/// The place of an instruction in the source, with the functions that are inlined there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// As [`Image::locate`] has it.
    pub place: Option<Location>,
    /// The inlined functions, the innermost first, and the function that has them. Empty without line tables.
    pub frames: Vec<Location>,
    /// The name of the function's symbol.
    pub function: Option<String>,
}

/// An instruction, for observers of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its operation.
    pub kind: Kind,
    /// The register of its result: integer ones from 0 on, float ones from 32 on.
    pub rd: u8,
    /// The registers of its operands.
    pub rs1: u8,
    /// The second one.
    pub rs2: u8,
    /// The immediate, or the target of a branch or jump; of an atomic operation its size in bytes.
    pub imm: u32,
    /// Its length in bytes.
    pub len: u8,
}

/// Maximum distance of a preceding line, for an instruction without one.
const LINELESS_BYTES: u32 = 64;

impl Image {
    /// Loads a linked RISC-V ELF file.
    ///
    /// # Errors
    /// [`LoadError`] has the defect of the file and the remedy.
    pub fn load(file: &[u8], core: &Core) -> Result<Arc<Image>, LoadError> {
        let parts = elf::parse(file, &core.isa)?;
        Ok(Image::assemble(core, parts.entry, parts.segments, parts.symbols, Lines::of_file(file)))
    }

    /// Returns an image of hand-made code at `base`, which is also its entry.
    ///
    /// # Panics
    /// If `base` is odd or the code exceeds the address space.
    pub fn from_bytes(base: u32, code: &[u8], core: &Core) -> Arc<Image> {
        assert!(base.is_multiple_of(2), "code at the odd address {base:#x}");
        let size = u32::try_from(code.len()).expect("code of 4 GiB");
        assert!(base.checked_add(size).is_some(), "code reaches over the end of the address space");
        let segment = Segment { address: base, bytes: code.into(), size, writable: false, executable: true };
        Image::assemble(core, base, vec![segment], BTreeMap::new(), Lines::none())
    }

    /// Like [`Image::from_bytes`], from words of [`asm`](crate::asm).
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
        let decoded = AtomicU32::new(0);
        Arc::new(Image { core: *core, entry, segments, code, decoded, symbols, global_pointer, lines })
    }

    /// The kind of core the image is decoded for.
    pub const fn core(&self) -> &Core {
        &self.core
    }

    /// The entry of the whole program (`_start`).
    pub const fn entry(&self) -> u32 {
        self.entry
    }

    /// The parts that must be in memory. Code is one too, where handlers read constants from it.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The address of a symbol, if it is defined.
    pub fn symbol(&self, name: &str) -> Option<u32> {
        self.symbols.get(name).map(|s| s.address)
    }

    /// A variable: its address and its size in bytes.
    pub fn variable(&self, name: &str) -> Option<(u32, u32)> {
        let symbol = self.symbols.get(name).filter(|symbol| !symbol.function && symbol.size > 0)?;
        Some((symbol.address, symbol.size))
    }

    /// The address of a required symbol.
    ///
    /// # Errors
    /// [`LoadError::NoSymbol`] lists the defined functions.
    pub fn require(&self, name: &str) -> Result<u32, LoadError> {
        let functions = || self.functions().map(str::to_owned).collect();
        self.symbol(name).ok_or_else(|| LoadError::NoSymbol { name: name.to_owned(), functions: functions() })
    }

    /// The names of the global functions, in alphabetical order.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.symbols.iter().filter(|(_, s)| s.function && s.global).map(|(name, _)| name.as_str())
    }

    /// The required value of gp (`__global_pointer$`), if the linker relaxed accesses to it.
    pub const fn global_pointer(&self) -> Option<u32> {
        self.global_pointer
    }

    /// Counts the instruction at `pc` in a profile, since it was performed between slices.
    pub fn count_in(&self, profile: &mut Profile, pc: u32) {
        if let Some(op) = self.block(pc).and_then(|block| block.ops.first()) {
            profile.performed(pc, op.kind, self.core.costs.of(op.kind).into());
        }
    }

    /// The addresses of functions, sorted.
    pub(crate) fn function_addresses(&self) -> Vec<u32> {
        let mut addresses: Vec<u32> =
            self.symbols.values().filter(|s| s.function).map(|s| s.address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// Returns the instruction at `pc` as text, such as `lw a0, 4(a1)`, and its length in bytes. Jumps have the names
    /// of functions. None where no instruction can begin.
    pub fn disassemble(&self, pc: u32) -> Option<(String, u8)> {
        let code = self.code.iter().find(|code| self.aligned(pc) && code.slot(pc).is_some())?;
        let inst = decode::decode(&code.bytes[(pc - code.base) as usize..], pc, &self.core.isa).ok()?;
        let label =
            |target: u32| match self.function_at(target).and_then(|name| Some((name, self.symbol(name)?))) {
                Some((name, start)) if start == target => format!("{target:#x} <{}>", printable(name)),
                Some((name, start)) => format!("{target:#x} <{}+{:#x}>", printable(name), target - start),
                None => format!("{target:#x}"),
            };
        (inst.len > 0).then(|| (disassemble::text(&inst, label), inst.len))
    }

    /// Returns the places of instructions in the source. The line tables are read once for all of them.
    pub fn sources(&self, pcs: &[u32]) -> Vec<Source> {
        self.lines.with_frames(|frames| {
            let mut found = Vec::with_capacity(pcs.len());
            for &pc in pcs {
                let place = self.place(pc, &|pc| lines::chosen(&frames(pc)));
                found.push(Source { place, frames: frames(pc), function: self.symbol_at(pc) });
            }
            found
        })
    }

    /// Returns the function symbol at or before `pc`, for a report.
    fn symbol_at(&self, pc: u32) -> Option<String> {
        Some(printable(self.function_at(pc)?).into_owned())
    }

    /// Returns the variable at `address`, and the offset in it.
    pub fn variable_at(&self, address: u32) -> Option<(&str, u32)> {
        let inside = |symbol: &Symbol| !symbol.function && address.wrapping_sub(symbol.address) < symbol.size;
        let (name, symbol) = self.symbols.iter().find(|(_, symbol)| inside(symbol))?;
        Some((name, address - symbol.address))
    }

    /// Returns the place of an instruction in the source. DWARF gives function, file and line of the innermost inlined
    /// function outside `nicety.h` and `frame.h`. Otherwise symbols give the function alone.
    pub fn locate(&self, pc: u32) -> Option<Location> {
        self.place(pc, &|pc| self.lines.locate(pc))
    }

    /// As [`locate`](Image::locate), with the line tables given by `lines`.
    fn place(&self, pc: u32, lines: &dyn Fn(u32) -> Option<Location>) -> Option<Location> {
        let found = lines(pc).or_else(|| {
            let function = self.symbol_at(pc)?;
            Some(Location { function: Some(function), ..Location::default() })
        })?;
        if found.line.is_some() || found.file.is_none() {
            return Some(found);
        }
        // Optimised code has instructions without a line. The preceding line in the function is the best estimate.
        let before = (2..=LINELESS_BYTES).step_by(2).filter_map(|back| lines(pc.checked_sub(back)?));
        let near = before.take_while(|at| at.function == found.function).find(|at| at.line.is_some());
        Some(near.unwrap_or(found))
    }

    /// Returns the function symbol at or before `pc`, within its size if it has one.
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

    /// Whether an instruction may begin at this address, in code or not.
    pub(crate) const fn aligned(&self, pc: u32) -> bool {
        let mask = if self.core.isa.has(Extension::C) { 1 } else { 3 };
        pc & mask == 0
    }

    /// Returns the block at `pc`, decoded on first use, or `None` if there is no code.
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
            let number = self.decoded.fetch_add(1, Ordering::Relaxed);
            Box::new(Block { number, ..Block::decode(bytes, pc, &self.core) })
        }))
    }

    /// Returns the word at `pc` and the reason why it is illegal, if it is.
    pub(crate) fn illegal_at(&self, pc: u32) -> Option<(u32, Illegal)> {
        let code = self.code.iter().find(|c| c.slot(pc).is_some())?;
        decode::decode(&code.bytes[(pc - code.base) as usize..], pc, &self.core.isa).err()
    }

    /// Whether the instruction at `pc` is an atomic addition, of a word or a double word, which cannot fail.
    pub fn adds_at(&self, pc: u32) -> bool {
        self.is_code(pc) && self.word_at(pc) & 0xf800_607f == 0x0000_202f
    }

    /// Whether the instruction at `pc` is an atomic exchange, of a word or a double word.
    pub fn swaps_at(&self, pc: u32) -> bool {
        self.is_code(pc) && self.word_at(pc) & 0xf800_607f == 0x0800_202f
    }

    /// Returns the instruction at `pc`, decoded. None if there is no code.
    #[inline]
    pub fn instruction(&self, pc: u32) -> Option<Instruction> {
        let op = self.block(pc)?.ops.first()?;
        let Op { kind, rd, rs1, rs2, imm, len, .. } = *op;
        Some(Instruction { kind, rd, rs1, rs2, imm, len })
    }

    /// Returns the places of an instruction in the source, from the innermost inlined function outwards. One without a line where
    /// symbols alone are known.
    pub fn frames(&self, pc: u32) -> Vec<Location> {
        let found = self.lines.frames(pc);
        if !found.is_empty() {
            return found;
        }
        let function = self.function_at(pc).map(|name| printable(name).into_owned());
        function.map(|name| Location { function: Some(name), ..Location::default() }).into_iter().collect()
    }

    /// The instruction word at `pc`, or zero if there is no whole one.
    pub fn word_at(&self, pc: u32) -> u32 {
        let code = self.code.iter().find(|c| c.slot(pc).is_some());
        let bytes = code.and_then(|c| c.bytes[(pc - c.base) as usize..].first_chunk());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Returns the first instruction word that the program has changed since it was loaded, in writable code.
    pub(crate) fn changed(&self, space: &AddressSpace<'_>) -> Option<u32> {
        self.code.iter().filter(|code| code.writable).find_map(|code| {
            let now = space.read(code.base, code.bytes.len() as u32).ok()?;
            let at = now.iter().zip(&code.bytes).position(|(now, loaded)| now != loaded)?;
            Some(code.base + (at as u32 & !1))
        })
    }

    /// Returns a trap at `pc`, with its place in the source.
    #[cold]
    pub fn trap(&self, pc: u32, kind: TrapKind) -> Box<Trap> {
        Box::new(Trap { kind, pc, location: self.locate(pc) })
    }
}

impl Code {
    /// Returns the code of a segment, if any. In a segment at an odd address the first instruction is one byte later.
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

impl AddressSpace<'_> {
    /// Copies the segments of an image into their regions, regardless of the core's permissions, and zeroes the rest of
    /// each segment. A segment that is only read may be in a region of shared bytes, which must have its contents
    /// already.
    ///
    /// # Errors
    /// [`LoadError::NoRoom`] names the first segment that fits into no region.
    pub fn place(&mut self, image: &Image) -> Result<(), LoadError> {
        for segment in image.segments() {
            let size = u64::from(segment.size());
            let nearest = self.nearest(segment.address(), segment.size());
            let mut memories = self.regions.iter_mut().filter(|r| !r.device);
            let room = memories.find_map(|r| Some((r.offset_of(segment.address(), size)?, r)));
            let Some((offset, region)) = room else { return Err(LoadError::no_room(segment, nearest)) };
            match region.bytes_mut() {
                Some(bytes) => segment.write_to(&mut bytes[offset..offset + size as usize]),
                None if segment.writable() => return Err(LoadError::no_room(segment, nearest)),
                None => {}
            }
        }
        Ok(())
    }
}
