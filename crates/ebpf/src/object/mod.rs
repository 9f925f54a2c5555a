//! eBPF objects: programs, functions, maps and types of an ELF file, as compilers write it.

pub mod btf;
mod btf_ext;
mod core_relocation;
mod definition;
mod elf;
mod link;

pub use btf_ext::Line;
pub use definition::{Initial, MapDefinition};
pub use link::Linked;

use crate::error::ObjectError;
use crate::instruction::{Instruction, SLOT};
use btf::{Btf, Kind};
use btf_ext::{BtfExt, CoreRelocation};
use definition::Placed;
use elf::{Elf, Relocation};
use std::collections::BTreeMap;

/// An object file.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// The license, empty where the object has none.
    pub license: String,
    /// The programs for XDP, in the order of the file.
    pub programs: Vec<Entry>,
    /// Programs of other kinds: section and name.
    pub others: Vec<(String, String)>,
    /// The maps. A program names them by their places.
    pub maps: Vec<MapDefinition>,
    /// The types.
    pub btf: Btf,
    functions: Vec<Function>,
}

/// An XDP program of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of its function.
    pub name: String,
    /// The section.
    pub section: String,
    /// Where Linux attaches it.
    pub attach: Attach,
    /// Whether it takes packets in several fragments.
    pub fragments: bool,
    function: usize,
}

/// The place where Linux attaches a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attach {
    /// A device.
    #[default]
    Device,
    /// An entry of a device map.
    DeviceMap,
    /// An entry of a CPU map.
    CpuMap,
}

/// A function of a program.
#[derive(Clone, Debug)]
struct Function {
    name: String,
    section: usize,
    section_name: String,
    /// The first slot in the section.
    first: usize,
    slots: Vec<Instruction>,
    /// By slot of the function.
    references: BTreeMap<usize, Reference>,
    lines: BTreeMap<usize, Line>,
    core: BTreeMap<usize, CoreRelocation>,
}

/// The object of a relocation.
#[derive(Clone, Debug)]
enum Reference {
    /// A map.
    Map(usize),
    /// A byte in the value of a data section's map.
    Value(usize, u32),
    /// Code at a slot of a section.
    Code(usize, i64),
    /// A name that the object does not define.
    Undefined(String),
    /// A place that no program can refer to.
    Other(String),
}

impl Object {
    /// Reads an object.
    ///
    /// # Errors
    /// The file is no object with an XDP program, or it is damaged.
    pub fn read(file: &[u8]) -> Result<Object, ObjectError> {
        let elf = Elf::read(file)?;
        let mut btf = match elf.section(".BTF") {
            Some(at) => Btf::read(elf.sections[at].data)?,
            None => Btf::default(),
        };
        place_variables(&elf, &mut btf);
        let ext = match elf.section(".BTF.ext") {
            Some(at) if elf.section(".BTF").is_some() => BtfExt::read(elf.sections[at].data, &btf)?,
            _ => BtfExt::default(),
        };
        let placed = definition::maps(&elf, &btf)?;
        let functions = functions(&elf, &btf, &ext, &placed)?;
        let (programs, others) = entries(&elf, &functions);
        if programs.is_empty() {
            return Err(no_program(&others));
        }
        let license = elf.section("license").map(|at| elf.sections[at].data).unwrap_or_default();
        let end = license.iter().position(|&byte| byte == 0).unwrap_or(license.len());
        Ok(Object {
            license: String::from_utf8_lossy(&license[..end]).into_owned(),
            programs,
            others,
            maps: placed.into_iter().map(|map| map.definition).collect(),
            btf,
            functions,
        })
    }

    /// The only program, or that of a name.
    ///
    /// # Errors
    /// There is no such program, or there are several and no name.
    pub fn program(&self, name: Option<&str>) -> Result<&Entry, ObjectError> {
        let names: Vec<&str> = self.programs.iter().map(|entry| entry.name.as_str()).collect();
        let names = names.join(", ");
        match (name, &self.programs[..]) {
            (None, [only]) => Ok(only),
            (None, several) => {
                let problem = format!("it has {} programs: {names}", several.len());
                Err(ObjectError::refused("the object", problem, "name one with --program"))
            }
            (Some(name), all) => all.iter().find(|entry| entry.name == name).ok_or_else(|| {
                let problem = format!("the object has no such XDP program; it has {names}");
                ObjectError::refused(format!("program {name}"), problem, "name one of these")
            }),
        }
    }
}

fn no_program(others: &[(String, String)]) -> ObjectError {
    let problem = if others.is_empty() {
        "no program in it".to_owned()
    } else {
        let named: Vec<String> = others.iter().map(|(section, name)| format!("{name} ({section})")).collect();
        format!("no XDP program; it has {}", named.join(", "))
    };
    ObjectError::refused("the object", problem, "write a function with SEC(\"xdp\")")
}

/// Variables of sections get their places from symbols: compilers leave them 0.
fn place_variables(elf: &Elf<'_>, btf: &mut Btf) {
    let by_name: BTreeMap<(&str, &str), u64> = elf
        .symbols
        .iter()
        .filter_map(|s| Some(((elf.sections.get(s.section?)?.name, s.name), s.value)))
        .collect();
    let names: Vec<String> = btf.types.iter().map(|t| t.name.clone()).collect();
    for section in &mut btf.types {
        let Kind::Section(variables) = &mut section.kind else { continue };
        for placed in variables {
            let name = names.get(placed.type_id as usize).map_or("", String::as_str);
            if let Some(&value) = by_name.get(&(section.name.as_str(), name)) {
                placed.offset = u32::try_from(value).unwrap_or(u32::MAX);
            }
        }
    }
}

fn functions(elf: &Elf<'_>, btf: &Btf, ext: &BtfExt, maps: &[Placed]) -> Result<Vec<Function>, ObjectError> {
    let mut found = Vec::new();
    for (at, section) in elf.sections.iter().enumerate().filter(|(_, section)| section.executable) {
        let symbols = elf.symbols.iter().filter(|s| s.section == Some(at) && s.is_function);
        let mut starts: BTreeMap<u64, &elf::Symbol<'_>> = BTreeMap::new();
        for symbol in symbols {
            starts.entry(symbol.value).or_insert(symbol);
        }
        let mut covered = 0;
        for (&begin, symbol) in &starts {
            let place = format!("function {}", symbol.name);
            let end = begin.checked_add(symbol.size).filter(|&end| end <= section.data.len() as u64);
            let aligned = begin % SLOT as u64 == 0 && symbol.size % SLOT as u64 == 0;
            let Some(end) = end.filter(|_| aligned && begin >= covered) else {
                return Err(ObjectError::malformed(format!("{place} is not inside its section")));
            };
            covered = end;
            let (slots, _) = section.data[begin as usize..end as usize].as_chunks::<SLOT>();
            found.push(Function {
                name: symbol.name.to_owned(),
                section: at,
                section_name: section.name.to_owned(),
                first: begin as usize / SLOT,
                slots: slots.iter().map(|slot| Instruction::read(*slot)).collect(),
                references: BTreeMap::new(),
                lines: within(ext.lines.get(section.name), begin, end)
                    .map(|(slot, &(file, line))| (slot, Line { file: btf.text(file).to_owned(), line }))
                    .collect(),
                core: within(ext.core.get(section.name), begin, end)
                    .map(|(slot, core)| (slot, core.clone()))
                    .collect(),
            });
        }
    }
    for function in &mut found {
        references(elf, maps, function)?;
    }
    Ok(found)
}

/// Facts of the instructions from `begin` to `end`, by slot from `begin`.
fn within<T>(facts: Option<&btf_ext::Facts<T>>, begin: u64, end: u64) -> impl Iterator<Item = (usize, &T)> {
    let found = facts.into_iter().flat_map(move |facts| facts.range(begin..end.max(begin)));
    found.map(move |(at, fact)| ((at - begin) as usize / SLOT, fact))
}

fn references(elf: &Elf<'_>, maps: &[Placed], function: &mut Function) -> Result<(), ObjectError> {
    let first = (function.first * SLOT) as u64;
    let end = first + (function.slots.len() * SLOT) as u64;
    for relocation in elf.relocations.get(&function.section).into_iter().flatten() {
        if !(first..end).contains(&relocation.offset) {
            continue;
        }
        let slot = ((relocation.offset - first) as usize) / SLOT;
        let found = reference(elf, maps, relocation, function.slots[slot])?;
        function.references.insert(slot, found);
    }
    Ok(())
}

fn reference(
    elf: &Elf<'_>,
    maps: &[Placed],
    relocation: &Relocation,
    slot: Instruction,
) -> Result<Reference, ObjectError> {
    let symbol = elf.symbols.get(relocation.symbol);
    let symbol = symbol.ok_or_else(|| ObjectError::malformed("a relocation without its symbol"))?;
    let Some((at, section)) = symbol.section.and_then(|at| Some((at, elf.sections.get(at)?))) else {
        return Ok(Reference::Undefined(symbol.name.to_owned()));
    };
    let value = symbol.value as i64;
    Ok(match relocation.kind {
        elf::R_64_32 if slot.is_local_call() && section.executable => {
            // Of a section, the constant has the place, less one; of a function it has -1.
            Reference::Code(at, (value / SLOT as i64).wrapping_add(i64::from(slot.imm) + 1))
        }
        elf::R_64_64 if slot.is_wide() && section.executable => {
            Reference::Code(at, value.wrapping_add(i64::from(slot.imm)) / SLOT as i64)
        }
        elf::R_64_64 if slot.is_wide() => {
            let own = |map: &&Placed| map.section == at;
            let data = maps.iter().position(|map| own(&map) && map.definition.contents.is_some());
            let exact = maps.iter().position(|map| own(&map) && map.offset == symbol.value);
            match (data, exact) {
                (Some(map), _) => Reference::Value(map, (value as u32).wrapping_add(slot.imm as u32)),
                (None, Some(map)) => Reference::Map(map),
                (None, None) => Reference::Other(format!("{} in section {}", symbol.name, section.name)),
            }
        }
        kind => {
            let name = if symbol.is_section { section.name } else { symbol.name };
            Reference::Other(format!("{name} by a relocation of type {kind}"))
        }
    })
}

/// A list of programs, and of programs of other kinds with their sections.
type Entries = (Vec<Entry>, Vec<(String, String)>);

fn entries(elf: &Elf<'_>, functions: &[Function]) -> Entries {
    let (mut programs, mut others) = (Vec::new(), Vec::new());
    for (at, function) in functions.iter().enumerate() {
        let section = function.section_name.as_str();
        let global = elf.symbols.iter().any(|s| {
            s.is_global
                && s.is_function
                && s.section == Some(function.section)
                && s.value == (function.first * SLOT) as u64
        });
        if section == ".text" || !global {
            continue;
        }
        if !section.starts_with("xdp") {
            others.push((section.to_owned(), function.name.clone()));
            continue;
        }
        programs.push(Entry {
            name: function.name.clone(),
            section: section.to_owned(),
            attach: if section.ends_with("/devmap") {
                Attach::DeviceMap
            } else if section.ends_with("/cpumap") {
                Attach::CpuMap
            } else {
                Attach::Device
            },
            fragments: section.starts_with("xdp.frags"),
            function: at,
        });
    }
    (programs, others)
}
