//! Reads ELF files of RV32 and RV64: segments and symbols. Changes the data of a segment.

use crate::isa::{Extension, Isa};
use crate::load::{LoadError, Segment, Symbol};
use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader as _, Sym};
use std::collections::{BTreeMap, BTreeSet};

/// The parts of a file that an image needs.
pub(crate) struct Parts {
    pub entry: u32,
    pub segments: Vec<Segment>,
    pub symbols: BTreeMap<String, Symbol>,
}

const LE: LittleEndian = LittleEndian;

/// The header of a file for registers of 32 or of 64 bits.
enum Header<'f> {
    Narrow(&'f elf::FileHeader32<LittleEndian>),
    Wide(&'f elf::FileHeader64<LittleEndian>),
}

/// Does the same for headers of both widths.
macro_rules! each {
    ($header:expr, $name:ident => $result:expr) => {
        match $header {
            Header::Narrow($name) => $result,
            Header::Wide($name) => $result,
        }
    };
}

pub(crate) fn parse(file: &[u8], isa: &Isa) -> Result<Parts, LoadError> {
    let header = riscv(file)?;
    let needs = match (&header, isa.is_wide()) {
        (Header::Narrow(_), true) => Some("registers of 32 bits (RV32)"),
        (Header::Wide(_), false) => Some("registers of 64 bits (RV64)"),
        _ => None,
    };
    match needs {
        Some(needs) => Err(LoadError::WrongTarget { needs, isa: *isa }),
        None => each!(header, header => parts(header, file, isa)),
    }
}

fn parts<H: FileHeader<Endian = LittleEndian>>(
    header: &H,
    file: &[u8],
    isa: &Isa,
) -> Result<Parts, LoadError> {
    check(header, isa)?;
    let segments = segments(header, file)?;
    // A stripped file may lack section headers, and then has no symbols.
    let symbols = symbols(header, file).unwrap_or_default();
    if symbols.keys().map(String::len).sum::<usize>() > MAX_NAMES {
        return Err(too_many_names());
    }
    let entry =
        u32::try_from(header.e_entry(LE).into()).map_err(|_| beyond("entry", header.e_entry(LE).into()))?;
    Ok(Parts { entry, segments, symbols })
}

/// The error of an address that no memory of a card has.
fn beyond(part: &str, address: u64) -> LoadError {
    refused(format!("its {part} at {address:#x} is beyond the addresses of a card; link it below 4 GiB"))
}

fn malformed(problem: impl ToString) -> LoadError {
    LoadError::Malformed { problem: problem.to_string() }
}

fn refused(problem: impl ToString) -> LoadError {
    LoadError::Refused { problem: problem.to_string() }
}

fn too_many_names() -> LoadError {
    refused(format!("the names of its symbols take more than {MAX_NAMES} bytes"))
}

/// Reads the header of a little-endian RISC-V file.
fn riscv(file: &[u8]) -> Result<Header<'_>, LoadError> {
    let header = little_endian(file)?;
    match each!(&header, header => header.e_machine(LE)) {
        elf::EM_RISCV => Ok(header),
        other => Err(other_machine(other)),
    }
}

fn other_machine(machine: elf::Machine) -> LoadError {
    let name = match machine {
        elf::EM_ARM => "ARM".to_owned(),
        elf::EM_AARCH64 => "64-bit ARM".to_owned(),
        elf::EM_386 => "x86".to_owned(),
        elf::EM_X86_64 => "x86-64".to_owned(),
        elf::EM_MIPS => "MIPS".to_owned(),
        elf::EM_BPF => "eBPF".to_owned(),
        other => format!("machine {other}"),
    };
    LoadError::NotRiscv { found: format!("an ELF file for {name}") }
}

/// Reads the header of a little-endian file.
fn little_endian(file: &[u8]) -> Result<Header<'_>, LoadError> {
    let Some(ident) = file.get(..6).filter(|ident| ident.starts_with(&elf::ELFMAG)) else {
        return Err(LoadError::NotElf);
    };
    if ident[5] != elf::ELFDATA2LSB.0 {
        return Err(LoadError::NotRiscv { found: "a big-endian ELF file".to_owned() });
    }
    Ok(match ident[4] == elf::ELFCLASS64.0 {
        true => Header::Wide(elf::FileHeader64::parse(file).map_err(malformed)?),
        false => Header::Narrow(elf::FileHeader32::parse(file).map_err(malformed)?),
    })
}

/// The global names of an object file or a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The functions that it defines.
    pub functions: BTreeSet<String>,
    /// All names that it defines, with the functions.
    pub defined: BTreeSet<String>,
    /// Names that it uses and does not define.
    pub undefined: BTreeSet<String>,
}

impl Names {
    /// Reads the global names of a RISC-V or eBPF file.
    ///
    /// # Errors
    /// The bytes are no such file, or damaged.
    pub fn read(file: &[u8]) -> Result<Names, LoadError> {
        let header = little_endian(file)?;
        match each!(&header, header => header.e_machine(LE)) {
            elf::EM_RISCV | elf::EM_BPF => each!(header, header => Names::of(header, file)),
            other => Err(other_machine(other)),
        }
    }

    fn of<H: FileHeader<Endian = LittleEndian>>(header: &H, file: &[u8]) -> Result<Names, LoadError> {
        let sections = header.sections(LE, file).map_err(malformed)?;
        let table = sections.symbols(LE, file, elf::SHT_SYMTAB).map_err(malformed)?;
        let (mut names, mut bytes) = (Names::default(), 0);
        for symbol in table.iter().skip(1).filter(|symbol| symbol.st_bind() != elf::STB_LOCAL) {
            let name = table.symbol_name(LE, symbol).map_err(malformed)?;
            let name = std::str::from_utf8(name).map_err(malformed)?.to_owned();
            bytes += name.len();
            if bytes > MAX_NAMES {
                return Err(too_many_names());
            }
            if symbol.st_shndx(LE) == elf::SHN_UNDEF {
                names.undefined.insert(name);
                continue;
            }
            if symbol.st_type() == elf::STT_FUNC {
                names.functions.insert(name.clone());
            }
            names.defined.insert(name);
        }
        Ok(names)
    }
}

/// Whether a RISC-V file is for registers of 64 bits.
///
/// # Errors
/// The bytes are no such file, or damaged.
pub fn is_wide(file: &[u8]) -> Result<bool, LoadError> {
    riscv(file).map(|header| matches!(header, Header::Wide(_)))
}

/// Whether a linked RISC-V program has executable bytes.
///
/// # Errors
/// The bytes are no such file, or damaged.
pub fn has_code(file: &[u8]) -> Result<bool, LoadError> {
    each!(riscv(file)?, header => has_code_in(header, file))
}

fn has_code_in<H: FileHeader<Endian = LittleEndian>>(header: &H, file: &[u8]) -> Result<bool, LoadError> {
    let segments = header.program_headers(LE, file).map_err(malformed)?;
    Ok(segments.iter().any(|segment| {
        let executable = segment.p_flags(LE).0 & elf::PF_X.0 != 0;
        segment.p_type(LE) == elf::PT_LOAD && executable && segment.p_filesz(LE).into() > 0
    }))
}

/// Returns the file of a linked program with these bytes as the contents of the segment at `address`.
///
/// The bytes are appended, because a segment with only zeros has no bytes in the file.
///
/// # Errors
/// The file is no RISC-V program, or it has no segment of this size there.
pub fn with_segment(file: &[u8], address: u32, data: &[u8]) -> Result<Vec<u8>, LoadError> {
    /// Does it for headers of a width.
    macro_rules! replaced {
        ($header:ident, $Segment:ident, $Word:ident) => {{
            let segments = $header.program_headers(LE, file).map_err(malformed)?;
            let at = segment_at(segments, address, data.len() as u64)?;
            let mut whole = padded(file, segments[at].p_align(LE).into(), address);
            let offset = whole.len();
            whole.extend_from_slice(data);
            let place = $header.e_phoff(LE) as usize + at * size_of::<elf::$Segment<LittleEndian>>();
            let (segment, _) =
                object::pod::from_bytes_mut::<elf::$Segment<LittleEndian>>(&mut whole[place..])
                    .map_err(|()| malformed("its program headers are cut off"))?;
            segment.p_offset = object::$Word::new(LE, offset as _);
            segment.p_filesz = object::$Word::new(LE, data.len() as _);
            whole
        }};
    }
    Ok(match riscv(file)? {
        Header::Narrow(header) => replaced!(header, ProgramHeader32, U32),
        Header::Wide(header) => replaced!(header, ProgramHeader64, U64),
    })
}

/// Returns the index of the segment at `address`, which takes `size` bytes.
fn segment_at<P>(segments: &[P], address: u32, size: u64) -> Result<usize, LoadError>
where
    P: ProgramHeader<Endian = LittleEndian>,
{
    let is_it =
        |segment: &P| segment.p_type(LE) == elf::PT_LOAD && segment.p_vaddr(LE).into() == u64::from(address);
    let at = segments
        .iter()
        .position(is_it)
        .ok_or_else(|| refused(format!("it has no segment at {address:#x}; link it again")))?;
    let found = segments[at].p_memsz(LE).into();
    match found == size {
        true => Ok(at),
        false => {
            Err(refused(format!("its segment at {address:#x} has {found} bytes, not {size}; link it again")))
        }
    }
}

/// Returns the file, padded to an offset that equals `address` modulo the alignment.
fn padded(file: &[u8], alignment: u64, address: u32) -> Vec<u8> {
    let alignment = alignment.clamp(1, 1 << 16);
    let mut whole = file.to_vec();
    while whole.len() as u64 % alignment != u64::from(address) % alignment {
        whole.push(0);
    }
    whole
}

/// Checks that the program is linked, and compiled for this instruction set.
fn check<H: FileHeader<Endian = LittleEndian>>(header: &H, isa: &Isa) -> Result<(), LoadError> {
    match header.e_type(LE) {
        elf::ET_EXEC => {}
        elf::ET_REL => return Err(LoadError::NotLinked { found: "an object file" }),
        elf::ET_DYN => {
            return Err(LoadError::NotLinked { found: "a shared or position-independent file" });
        }
        elf::ET_CORE => return Err(LoadError::NotLinked { found: "a core dump" }),
        _ => return Err(LoadError::NotLinked { found: "an ELF file of an unknown type" }),
    }
    let flags = header.e_flags(LE).0;
    let float_abi = flags & elf::EF_RISCV_FLOAT_ABI;
    let needs = if flags & elf::EF_RISCV_RVC.0 != 0 && !isa.has(Extension::C) {
        Some("compressed instructions")
    } else if float_abi == elf::EF_RISCV_FLOAT_ABI_SINGLE.0 && !isa.has(Extension::F) {
        Some("a floating-point calling convention (-mabi=ilp32f or lp64f)")
    } else if float_abi > elf::EF_RISCV_FLOAT_ABI_SINGLE.0 {
        Some("a double-precision calling convention (-mabi=ilp32d or lp64d)")
    } else if flags & elf::EF_RISCV_RVE.0 != 0 {
        Some("16 registers (base e)")
    } else {
        None
    };
    match needs {
        Some(needs) => Err(LoadError::WrongTarget { needs, isa: *isa }),
        None => Ok(()),
    }
}

/// Maximum number of segments. Linkers make a handful.
pub(crate) const MAX_SEGMENTS: usize = 64;

/// Maximum bytes of memory for all segments of a program, zeroed bytes included.
pub const MAX_MEMORY: u64 = 256 << 20;

/// Maximum bytes of code. Each takes eight bytes of host memory.
pub(crate) const MAX_CODE: u64 = 16 << 20;

/// Maximum length of a symbol's name in bytes. Symbols with longer names are ignored.
const LONGEST_NAME: usize = 4096;

/// Maximum bytes of all names. Many symbols may end in the same bytes of the file.
const MAX_NAMES: usize = 8 << 20;

/// Checks the host memory a program needs before allocating any of it.
fn check_sizes<P: ProgramHeader<Endian = LittleEndian>>(loaded: &[&P]) -> Result<(), LoadError> {
    if loaded.len() > MAX_SEGMENTS {
        let count = loaded.len();
        return Err(refused(format!("it has {count} segments; a program may have {MAX_SEGMENTS}")));
    }
    let memory: u64 = loaded.iter().map(|header| header.p_memsz(LE).into()).fold(0, u64::saturating_add);
    if memory > MAX_MEMORY {
        return Err(refused(format!(
            "its segments take {memory} bytes of memory; a program may take {MAX_MEMORY}"
        )));
    }
    let code = loaded.iter().filter(|header| header.p_flags(LE).0 & elf::PF_X.0 != 0);
    let code: u64 = code.map(|header| header.p_filesz(LE).into()).fold(0, u64::saturating_add);
    if code > MAX_CODE {
        return Err(refused(format!("it has {code} bytes of code; a program may have {MAX_CODE}")));
    }
    Ok(())
}

fn segments<H: FileHeader<Endian = LittleEndian>>(
    header: &H,
    file: &[u8],
) -> Result<Vec<Segment>, LoadError> {
    let mut segments: Vec<Segment> = Vec::new();
    let headers = header.program_headers(LE, file).map_err(malformed)?;
    let loaded: Vec<_> =
        headers.iter().filter(|h| h.p_type(LE) == elf::PT_LOAD && h.p_memsz(LE).into() != 0).collect();
    check_sizes(&loaded)?;
    for program_header in loaded {
        let (size, address) = (program_header.p_memsz(LE).into(), program_header.p_vaddr(LE).into());
        let bytes = program_header.data(LE, file).map_err(|()| {
            malformed(format!("the segment at {address:#x} has bytes beyond the end of the file"))
        })?;
        if bytes.len() as u64 > size {
            return Err(malformed(format!(
                "the segment at {address:#x} is larger in the file than in memory"
            )));
        }
        let Ok(address) = u32::try_from(address) else { return Err(beyond("segment", address)) };
        if u64::from(address) + size > 1 << 32 {
            return Err(malformed(format!(
                "the segment at {address:#x} reaches over the end of the address space"
            )));
        }
        let size = u32::try_from(size).expect("no larger than MAX_MEMORY");
        let flags = program_header.p_flags(LE).0;
        let (writable, executable) = (flags & elf::PF_W.0 != 0, flags & elf::PF_X.0 != 0);
        segments.push(Segment { address, bytes: bytes.into(), size, writable, executable });
    }
    segments.sort_by_key(|s| s.address);
    for pair in segments.windows(2) {
        if pair[1].address - pair[0].address < pair[0].size {
            let (a, b) = (pair[0].address, pair[1].address);
            return Err(malformed(format!("the segments at {a:#x} and {b:#x} overlap")));
        }
    }
    if !segments.iter().any(|s| s.executable) {
        return Err(refused("it has no code; write at least one function that is not static"));
    }
    Ok(segments)
}

fn symbols<H: FileHeader<Endian = LittleEndian>>(
    header: &H,
    file: &[u8],
) -> object::Result<BTreeMap<String, Symbol>> {
    let sections = header.sections(LE, file)?;
    let table = sections.symbols(LE, file, elf::SHT_SYMTAB)?;
    let mut symbols = BTreeMap::<String, Symbol>::new();
    let mut names = 0;
    for symbol in table.iter() {
        let (kind, bind) = (symbol.st_type(), symbol.st_bind());
        let named = matches!(kind, elf::STT_NOTYPE | elf::STT_OBJECT | elf::STT_FUNC);
        if !named || symbol.st_shndx(LE) == elf::SHN_UNDEF {
            continue;
        }
        let (address, size) = (symbol.st_value(LE).into(), symbol.st_size(LE).into());
        // A constant of RV64 that is no address.
        let (Ok(address), Ok(size)) = (u32::try_from(address), u32::try_from(size)) else { continue };
        let name = table.symbol_name(LE, symbol)?;
        if name.len() > LONGEST_NAME {
            continue;
        }
        let Ok(name) = std::str::from_utf8(name) else { continue };
        // Mapping symbols and assembler labels mean nothing to a user.
        if name.is_empty() || name.starts_with('$') || name.starts_with(".L") {
            continue;
        }
        let global = bind != elf::STB_LOCAL;
        let known = symbols.get(name).is_some_and(|other| other.global >= global);
        if !known {
            let section = symbol.st_shndx(LE).index().map(|i| object::SectionIndex(i.into()));
            let in_code = section
                .and_then(|i| sections.section(i).ok())
                .is_some_and(|s| s.sh_flags(LE).0 & elf::SHF_EXECINSTR.0 != 0);
            // Functions in assembly often have no type.
            let function = kind == elf::STT_FUNC || kind == elf::STT_NOTYPE && in_code;
            names += name.len();
            symbols.insert(name.to_owned(), Symbol { address, size, function, global });
            if names > MAX_NAMES {
                // A file with more is refused at load time.
                break;
            }
        }
    }
    Ok(symbols)
}
