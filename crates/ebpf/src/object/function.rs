//! Functions of an object: their instructions, and all that refers to other parts of the file.

use super::btf::Btf;
use super::btf_ext::{self, BtfExt, CoreRelocation, Line};
use super::elf::{self, Elf, Relocation};
use super::placed::Placed;
use crate::error::ObjectError;
use crate::instruction::{Instruction, SLOT};
use std::collections::BTreeMap;

/// A function of a program.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub name: String,
    pub section: usize,
    pub section_name: String,
    /// The first slot in the section.
    pub first: usize,
    pub slots: Vec<Instruction>,
    /// By slot of the function.
    pub references: BTreeMap<usize, Reference>,
    pub lines: BTreeMap<usize, Line>,
    pub core: BTreeMap<usize, CoreRelocation>,
}

/// The object of a relocation.
#[derive(Clone, Debug)]
pub(super) enum Reference {
    /// A map.
    Map(usize),
    /// A byte in the value of a data section's map.
    Value(usize, u32),
    /// Code at a slot of a section.
    Code(usize, i64),
    /// A name that the object does not define, and whether a loader goes on without it.
    Undefined(String, bool),
    /// A place that no program can refer to.
    Other(String),
}

pub(super) fn functions(elf: &Elf<'_>, btf: &Btf, ext: &BtfExt) -> Result<Vec<Function>, ObjectError> {
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
                // Line 0 is code that no line of the source has.
                lines: within(ext.lines.get(section.name), begin, end)
                    .filter(|(_, (_, line))| *line != 0)
                    .map(|(slot, &(file, line))| (slot, Line { file: btf.text(file).to_owned(), line }))
                    .collect(),
                core: within(ext.core.get(section.name), begin, end)
                    .map(|(slot, core)| (slot, core.clone()))
                    .collect(),
            });
        }
    }
    Ok(found)
}

/// Whether a function is called, or is a callback.
pub(super) fn is_called(functions: &[Function], number: usize) -> bool {
    let own = &functions[number];
    let calls = |function: &Function| {
        function.references.values().any(|reference| {
            matches!(reference, Reference::Code(section, slot) if *section == own.section && *slot == own.first as i64)
        })
    };
    functions.iter().any(calls)
}

/// Reads the relocations of all functions.
pub(super) fn refer(elf: &Elf<'_>, maps: &[Placed], functions: &mut [Function]) -> Result<(), ObjectError> {
    functions.iter_mut().try_for_each(|function| references(elf, maps, function))
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
        return Ok(Reference::Undefined(symbol.name.to_owned(), symbol.is_weak));
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
