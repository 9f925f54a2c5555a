//! Reads ELF files: segments and symbols.

use crate::isa::{Extension, Isa};
use crate::load::{LoadError, Segment, Symbol};
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader as _, Sym};
use std::collections::{BTreeMap, BTreeSet};

/// The parts of a file that an image needs.
pub(crate) struct Parts {
    pub entry: u32,
    pub segments: Vec<Segment>,
    pub symbols: BTreeMap<String, Symbol>,
}

type Header = elf::FileHeader32<object::LittleEndian>;
const LE: object::LittleEndian = object::LittleEndian;

pub(crate) fn parse(file: &[u8], isa: &Isa) -> Result<Parts, LoadError> {
    let header = header(file, isa)?;
    let segments = segments(header, file)?;
    // A stripped file may lack section headers, and then has no symbols.
    let symbols = symbols(header, file).unwrap_or_default();
    if symbols.keys().map(String::len).sum::<usize>() > MAX_NAMES {
        return Err(too_many_names());
    }
    Ok(Parts { entry: header.e_entry(LE), segments, symbols })
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

/// Reads the header of a 32-bit little-endian RISC-V file.
fn rv32(file: &[u8]) -> Result<&Header, LoadError> {
    let Some(ident) = file.get(..6).filter(|ident| ident.starts_with(&elf::ELFMAG)) else {
        return Err(LoadError::NotElf);
    };
    if ident[4] != elf::ELFCLASS32.0 {
        return Err(LoadError::NotRv32 { found: "a 64-bit ELF file".to_owned() });
    }
    if ident[5] != elf::ELFDATA2LSB.0 {
        return Err(LoadError::NotRv32 { found: "a big-endian ELF file".to_owned() });
    }
    let header = Header::parse(file).map_err(malformed)?;
    let machine = header.e_machine(LE);
    if machine != elf::EM_RISCV {
        let name = match machine {
            elf::EM_ARM => "ARM".to_owned(),
            elf::EM_386 => "x86".to_owned(),
            elf::EM_MIPS => "MIPS".to_owned(),
            other => format!("machine {other}"),
        };
        return Err(LoadError::NotRv32 { found: format!("an ELF file for {name}") });
    }
    Ok(header)
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
    /// Reads the global names of an RV32 file.
    ///
    /// # Errors
    /// The bytes are no such file, or damaged.
    pub fn read(file: &[u8]) -> Result<Names, LoadError> {
        let sections = rv32(file)?.sections(LE, file).map_err(malformed)?;
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

/// Whether a linked RV32 program has executable bytes.
///
/// # Errors
/// The bytes are no such file, or damaged.
pub fn has_code(file: &[u8]) -> Result<bool, LoadError> {
    let segments = rv32(file)?.program_headers(LE, file).map_err(malformed)?;
    Ok(segments.iter().any(|segment| {
        let executable = segment.p_flags(LE).0 & elf::PF_X.0 != 0;
        segment.p_type(LE) == elf::PT_LOAD && executable && segment.p_filesz(LE) > 0
    }))
}

fn header<'f>(file: &'f [u8], isa: &Isa) -> Result<&'f Header, LoadError> {
    let header = rv32(file)?;
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
        Some("a floating-point calling convention (-mabi=ilp32f)")
    } else if float_abi > elf::EF_RISCV_FLOAT_ABI_SINGLE.0 {
        Some("a double-precision calling convention (-mabi=ilp32d)")
    } else if flags & elf::EF_RISCV_RVE.0 != 0 {
        Some("16 registers (rv32e)")
    } else {
        None
    };
    match needs {
        Some(needs) => Err(LoadError::WrongTarget { needs, isa: *isa }),
        None => Ok(header),
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
fn check_sizes(loaded: &[&elf::ProgramHeader32<object::LittleEndian>]) -> Result<(), LoadError> {
    if loaded.len() > MAX_SEGMENTS {
        let count = loaded.len();
        return Err(refused(format!("it has {count} segments; a program may have {MAX_SEGMENTS}")));
    }
    let memory: u64 = loaded.iter().map(|header| u64::from(header.p_memsz(LE))).sum();
    if memory > MAX_MEMORY {
        return Err(refused(format!(
            "its segments take {memory} bytes of memory; a program may take {MAX_MEMORY}"
        )));
    }
    let code = loaded.iter().filter(|header| header.p_flags(LE).0 & elf::PF_X.0 != 0);
    let code: u64 = code.map(|header| u64::from(header.p_filesz(LE))).sum();
    if code > MAX_CODE {
        return Err(refused(format!("it has {code} bytes of code; a program may have {MAX_CODE}")));
    }
    Ok(())
}

fn segments(header: &Header, file: &[u8]) -> Result<Vec<Segment>, LoadError> {
    let mut segments: Vec<Segment> = Vec::new();
    let headers = header.program_headers(LE, file).map_err(malformed)?;
    let loaded: Vec<_> =
        headers.iter().filter(|h| h.p_type(LE) == elf::PT_LOAD && h.p_memsz(LE) != 0).collect();
    check_sizes(&loaded)?;
    for program_header in loaded {
        let size = program_header.p_memsz(LE);
        let address = program_header.p_vaddr(LE);
        let bytes = program_header.data(LE, file).map_err(|()| {
            malformed(format!("the segment at {address:#x} has bytes beyond the end of the file"))
        })?;
        if bytes.len() > size as usize {
            return Err(malformed(format!(
                "the segment at {address:#x} is larger in the file than in memory"
            )));
        }
        if u64::from(address) + u64::from(size) > 1 << 32 {
            return Err(malformed(format!(
                "the segment at {address:#x} reaches over the end of the address space"
            )));
        }
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

fn symbols(header: &Header, file: &[u8]) -> object::Result<BTreeMap<String, Symbol>> {
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
            let (address, size) = (symbol.st_value(LE), symbol.st_size(LE));
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
