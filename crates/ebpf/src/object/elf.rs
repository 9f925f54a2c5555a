//! Reads the ELF file: sections, symbols and relocations that an eBPF object needs.

use crate::error::ObjectError;
use object::elf;
use object::read::elf::{FileHeader, Rel as _, SectionHeader as _, Sym as _};
use std::collections::BTreeMap;

type Header = elf::FileHeader64<object::LittleEndian>;
const LE: object::LittleEndian = object::LittleEndian;

/// A section.
pub(crate) struct Section<'f> {
    pub name: &'f str,
    pub data: &'f [u8],
    /// Bytes in memory, more than `data` for `.bss`.
    pub size: u64,
    pub loaded: bool,
    pub executable: bool,
}

/// A symbol.
pub(crate) struct Symbol<'f> {
    pub name: &'f str,
    pub value: u64,
    pub size: u64,
    pub section: Option<usize>,
    pub is_function: bool,
    /// Whether the compiler gave it no type.
    pub is_plain: bool,
    pub is_section: bool,
    pub is_global: bool,
    /// Whether a loader goes on without it.
    pub is_weak: bool,
}

/// A relocation.
#[derive(Clone, Copy)]
pub(crate) struct Relocation {
    pub offset: u64,
    pub symbol: usize,
    pub kind: u32,
}

/// A relocation of a 64-bit constant.
pub(crate) const R_64_64: u32 = 1;
/// A relocation of a pointer in data. LLVM 12 and older write `R_64_64` there.
pub(crate) const R_ABS64: u32 = 2;
/// A relocation of a call.
pub(crate) const R_64_32: u32 = 10;

pub(crate) struct Elf<'f> {
    pub sections: Vec<Section<'f>>,
    pub symbols: Vec<Symbol<'f>>,
    /// By section.
    pub relocations: BTreeMap<usize, Vec<Relocation>>,
}

const COMPILE: &str = "compile the C file with nicety cc --xdp, or with clang -target bpf -O2 -g -c";

fn header(file: &[u8]) -> Result<&Header, ObjectError> {
    let wrong = |found: String| Err(ObjectError::Format { found, advice: COMPILE });
    let Some(ident) = file.get(..6).filter(|ident| ident.starts_with(&elf::ELFMAG)) else {
        return wrong("not an ELF file".to_owned());
    };
    if ident[5] != elf::ELFDATA2LSB.0 {
        return wrong("a big-endian ELF file".to_owned());
    }
    if ident[4] != elf::ELFCLASS64.0 {
        return wrong("a 32-bit ELF file".to_owned());
    }
    let header = Header::parse(file).map_err(ObjectError::malformed)?;
    match header.e_machine(LE) {
        elf::EM_BPF => {}
        elf::EM_X86_64 => return wrong("an ELF file for x86-64, not eBPF".to_owned()),
        elf::EM_AARCH64 => return wrong("an ELF file for AArch64, not eBPF".to_owned()),
        elf::EM_RISCV => return wrong("an ELF file for RISC-V, not eBPF".to_owned()),
        other => return wrong(format!("an ELF file for machine {}, not eBPF", other.0)),
    }
    if header.e_type(LE) != elf::ET_REL {
        return wrong("a linked eBPF file, not an object".to_owned());
    }
    Ok(header)
}

impl<'f> Elf<'f> {
    pub(crate) fn read(file: &'f [u8]) -> Result<Elf<'f>, ObjectError> {
        let header = header(file)?;
        let table = header.sections(LE, file).map_err(ObjectError::malformed)?;
        let mut sections = Vec::new();
        for section in table.iter() {
            let name = table.section_name(LE, section).map_err(ObjectError::malformed)?;
            let flags = section.sh_flags(LE).0;
            let kind = section.sh_type(LE);
            let data = section.data(LE, file).map_err(ObjectError::malformed)?;
            sections.push(Section {
                name: text(name)?,
                data,
                size: section.sh_size(LE),
                loaded: flags & elf::SHF_ALLOC.0 != 0
                    && (kind == elf::SHT_PROGBITS || kind == elf::SHT_NOBITS),
                executable: flags & elf::SHF_EXECINSTR.0 != 0 && kind == elf::SHT_PROGBITS,
            });
        }
        let loaded: usize = sections.iter().filter(|s| s.loaded).map(|s| s.data.len()).sum();
        if loaded > file.len() {
            return Err(ObjectError::malformed("sections overlap"));
        }
        let mut symbols = symbols(&table, file)?;
        complete_functions(&mut symbols, &sections);
        let relocations = relocations(&table, file, &sections)?;
        Ok(Elf { sections, symbols, relocations })
    }

    pub(crate) fn section(&self, name: &str) -> Option<usize> {
        self.sections.iter().position(|section| section.name == name)
    }
}

/// Whether a section has variables, by its name.
pub(crate) fn is_data(name: &str) -> bool {
    [".data", ".rodata", ".bss"]
        .iter()
        .any(|kind| name.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

fn text(bytes: &[u8]) -> Result<&str, ObjectError> {
    std::str::from_utf8(bytes).map_err(|_| ObjectError::malformed("a name is not text"))
}

type Sections<'f> = object::read::elf::SectionTable<'f, Header>;

fn symbols<'f>(table: &Sections<'f>, file: &'f [u8]) -> Result<Vec<Symbol<'f>>, ObjectError> {
    let symbols = table.symbols(LE, file, elf::SHT_SYMTAB).map_err(ObjectError::malformed)?;
    let read = |symbol: &'f elf::Sym64<object::LittleEndian>| {
        let name = symbols.symbol_name(LE, symbol).map_err(ObjectError::malformed)?;
        let index = symbol.st_shndx(LE);
        let special = index == elf::SHN_UNDEF || index.0 >= elf::SHN_LORESERVE;
        Ok(Symbol {
            name: text(name)?,
            value: symbol.st_value(LE),
            size: symbol.st_size(LE),
            section: (!special).then_some(usize::from(index.0)),
            is_function: symbol.st_type() == elf::STT_FUNC,
            is_plain: symbol.st_type() == elf::STT_NOTYPE,
            is_section: symbol.st_type() == elf::STT_SECTION,
            is_global: symbol.st_bind() != elf::STB_LOCAL,
            is_weak: symbol.st_bind() == elf::STB_WEAK,
        })
    };
    symbols.iter().map(read).collect()
}

/// Clang of 2018 gives a function's symbol neither a type nor a size, and writes the labels of its blocks as symbols. Such a
/// function reaches to the next one, or to its section's end.
fn complete_functions(symbols: &mut [Symbol<'_>], sections: &[Section<'_>]) {
    for (at, section) in sections.iter().enumerate().filter(|(_, section)| section.executable) {
        let here = |symbol: &Symbol<'_>| symbol.section == Some(at);
        if symbols.iter().any(|symbol| here(symbol) && symbol.is_function) {
            continue;
        }
        let untyped = |symbol: &Symbol<'_>| here(symbol) && symbol.is_plain && !is_label(symbol);
        let mut starts: Vec<u64> = symbols.iter().filter(|s| untyped(s)).map(|s| s.value).collect();
        starts.push(section.data.len() as u64);
        starts.sort_unstable();
        for symbol in symbols.iter_mut().filter(|symbol| untyped(symbol)) {
            let next = starts[starts.partition_point(|&start| start <= symbol.value).min(starts.len() - 1)];
            (symbol.is_function, symbol.size) = (true, next.saturating_sub(symbol.value));
        }
    }
}

/// Whether a symbol is the label of a block, such as `LBB0_15`.
fn is_label(symbol: &Symbol<'_>) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = symbol.name.strip_prefix("LBB").and_then(|rest| rest.split_once('_'));
    symbol.name.is_empty()
        || !symbol.is_global && numbers.is_some_and(|(one, two)| digits(one) && digits(two))
}

fn relocations(
    table: &Sections<'_>,
    file: &[u8],
    sections: &[Section<'_>],
) -> Result<BTreeMap<usize, Vec<Relocation>>, ObjectError> {
    let mut found: BTreeMap<usize, Vec<Relocation>> = BTreeMap::new();
    let mut total = 0;
    for section in table.iter() {
        let target = section.sh_info(LE) as usize;
        let wanted = |s: &Section<'_>| s.executable || s.name == ".maps" || s.loaded && is_data(s.name);
        let wanted = sections.get(target).is_some_and(wanted);
        let Some((rels, _)) = section.rel(LE, file).map_err(ObjectError::malformed)?.filter(|_| wanted)
        else {
            continue;
        };
        total += rels.len();
        if total > file.len() / 16 {
            return Err(ObjectError::malformed("sections of relocations overlap"));
        }
        found.entry(target).or_default().extend(rels.iter().map(|rel| Relocation {
            offset: rel.r_offset(LE),
            symbol: rel.r_sym(LE) as usize,
            kind: rel.r_type(LE).0,
        }));
    }
    Ok(found)
}
