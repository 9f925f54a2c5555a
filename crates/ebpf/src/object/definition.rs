//! Definitions of maps: BTF-defined, legacy `struct bpf_map_def`, and data sections.

use super::btf::{Btf, Kind, Member};
use super::elf::{Elf, R_64_64, R_ABS64, Symbol, is_data};
use super::legacy;
use super::placed::{Extra, Initial, MapDefinition, Placed, map_place};
use crate::error::{ObjectError, printable};
use crate::map::{Flags, MapKind};
use std::collections::{BTreeMap, BTreeSet};

/// Reads all maps. Their numbers are their places in the list.
pub(crate) fn maps(elf: &Elf<'_>, btf: &Btf) -> Result<Vec<Placed>, ObjectError> {
    let mut found = Vec::new();
    for (at, section) in elf.sections.iter().enumerate() {
        match section.name {
            ".maps" => btf_maps(elf, btf, at, &mut found)?,
            "maps" => legacy::maps(elf, at, &mut found)?,
            name if section.loaded && !section.executable && is_data(name) && section.size > 0 => {
                found.push(data_map(elf, btf, at)?);
            }
            _ => {}
        }
    }
    initial_entries(elf, &mut found)?;
    legacy::join_inner(&mut found)?;
    for Placed { definition, .. } in &mut found {
        // Loaders set the key of arrays of perf events.
        if definition.kind == MapKind::PerfEvents as u32 && definition.key_size == 0 {
            definition.key_size = 4;
        }
    }
    Ok(found)
}

fn data_map(elf: &Elf<'_>, btf: &Btf, at: usize) -> Result<Placed, ObjectError> {
    let section = &elf.sections[at];
    let size = u32::try_from(section.size).ok().filter(|&size| size <= 1 << 28).ok_or_else(|| {
        let problem = format!("the section has {} bytes", section.size);
        ObjectError::refused(section.name, problem, "make its variables smaller")
    })?;
    let mut contents = section.data.to_vec();
    contents.resize(size as usize, 0);
    let read_only = section.name.starts_with(".rodata");
    let definition = MapDefinition {
        name: section.name.to_owned(),
        kind: MapKind::Array as u32,
        key_size: 4,
        value_size: size,
        max_entries: 1,
        flags: if read_only { Flags::READ_ONLY_PROGRAM } else { 0 },
        contents: Some(contents),
        pointers: pointers(elf, at),
        types: (0, btf.section(section.name).unwrap_or(0)),
        ..MapDefinition::default()
    };
    Ok(Placed { definition, section: at, offset: 0, values_at: None, legacy: Extra::default() })
}

/// The variables of a data section that relocations change, in the order of the section.
fn pointers(elf: &Elf<'_>, at: usize) -> Vec<String> {
    let Some(relocations) = elf.relocations.get(&at) else { return Vec::new() };
    let own = elf.symbols.iter().filter(|symbol| symbol.section == Some(at) && !symbol.name.is_empty());
    let by_place: BTreeMap<u64, &Symbol<'_>> = own.map(|symbol| (symbol.value, symbol)).collect();
    let places: BTreeSet<u64> = relocations.iter().map(|relocation| relocation.offset).collect();
    let mut found: Vec<String> = Vec::new();
    for place in places {
        let before = by_place.range(..=place).next_back();
        let name = match before.filter(|(begin, symbol)| place - *begin < symbol.size) {
            Some((_, symbol)) => printable(symbol.name),
            // The compiler writes tables of its own without a symbol.
            None => "a table of the compiler".to_owned(),
        };
        if found.last() != Some(&name) {
            found.push(name);
        }
    }
    found
}

fn btf_maps(elf: &Elf<'_>, btf: &Btf, at: usize, found: &mut Vec<Placed>) -> Result<(), ObjectError> {
    let Some(Kind::Section(variables)) = btf.section(".maps").and_then(|id| btf.kind(id)) else {
        let advice = "compile the object with -g, so that BTF describes the maps";
        return Err(ObjectError::refused(".maps", "the section has no types", advice));
    };
    for placed in variables {
        let Some(variable) = btf.types.get(placed.type_id as usize) else { continue };
        let name = &variable.name;
        // Sections of objects have no offsets in BTF yet; symbols have them.
        let symbol = elf.symbols.iter().find(|s| s.section == Some(at) && s.name == name);
        let Some(symbol) = symbol else {
            return Err(ObjectError::malformed(format!("the map {name} has no symbol")));
        };
        let Some(members) = btf.members(placed.type_id) else {
            let advice = "define it as a structure with type, key, value and max_entries";
            return Err(ObjectError::refused(map_place(name), "it is no structure", advice));
        };
        let (definition, values_at) = btf_map(btf, name, members, true)?;
        found.push(Placed {
            definition,
            section: at,
            offset: symbol.value,
            values_at,
            legacy: Extra::default(),
        });
    }
    Ok(())
}

/// A definition, and the byte where its initial entries begin.
fn btf_map(
    btf: &Btf,
    name: &str,
    members: &[Member],
    outer: bool,
) -> Result<(MapDefinition, Option<u64>), ObjectError> {
    let mut map = MapDefinition { name: name.to_owned(), ..MapDefinition::default() };
    let mut values_at = None;
    for member in members {
        let number = || number(btf, member);
        let pointed = || pointed(btf, member);
        let missing = || {
            let problem = format!("its member {} has no value", member.name);
            ObjectError::refused(map_place(name), problem, "write it with __uint or __type")
        };
        match member.name.as_str() {
            "type" => map.kind = number().ok_or_else(missing)?,
            "max_entries" => map.max_entries = number().ok_or_else(missing)?,
            "map_flags" => map.flags = number().ok_or_else(missing)?,
            "key_size" => map.key_size = number().ok_or_else(missing)?,
            "value_size" => map.value_size = number().ok_or_else(missing)?,
            "map_extra" => {
                map.extra = number().map(u64::from).or_else(|| long(btf, member)).ok_or_else(missing)?;
            }
            "pinning" => map.pinned = number().ok_or_else(missing)? != 0,
            "numa_node" => {}
            "key" => {
                map.types.0 = pointed().ok_or_else(missing)?;
                map.key_size = btf.size(map.types.0).ok_or_else(missing)?;
            }
            "value" => {
                map.types.1 = pointed().ok_or_else(missing)?;
                map.value_size = btf.size(map.types.1).ok_or_else(missing)?;
            }
            "values" if outer => {
                values_at = Some(u64::from(member.bit / 8));
                map.inner = inner(btf, name, member)?.map(Box::new);
                map.value_size = 4;
                map.key_size = if map.key_size == 0 { 4 } else { map.key_size };
            }
            other => {
                let problem = format!("its definition has an unknown member {other}");
                return Err(ObjectError::refused(map_place(name), problem, "remove the member"));
            }
        }
    }
    Ok((map, values_at))
}

/// The number of `__uint`: the length of an array behind a pointer.
fn number(btf: &Btf, member: &Member) -> Option<u32> {
    let Kind::Pointer(array) = btf.kind(member.type_id)? else { return None };
    match btf.kind(*array)? {
        Kind::Array { count, .. } => Some(*count),
        _ => None,
    }
}

/// The number of `__ulong`: that of an enumeration's only name.
fn long(btf: &Btf, member: &Member) -> Option<u64> {
    match btf.kind(member.type_id)? {
        Kind::Enum { values, .. } => values.first().map(|(_, value)| *value as u64),
        _ => None,
    }
}

/// The type of `__type`, behind a pointer.
fn pointed(btf: &Btf, member: &Member) -> Option<u32> {
    match btf.kind(member.type_id)? {
        Kind::Pointer(to) => Some(*to),
        _ => None,
    }
}

/// The definition of the maps in `values`: none for a program array.
fn inner(btf: &Btf, name: &str, member: &Member) -> Result<Option<MapDefinition>, ObjectError> {
    let element = match btf.kind(member.type_id) {
        Some(Kind::Array { element, .. }) => btf.kind(*element),
        _ => None,
    };
    let Some(Kind::Pointer(to)) = element else {
        let problem = "its member 'values' is not an array of pointers";
        return Err(ObjectError::refused(map_place(name), problem, "write it with __array"));
    };
    let Some(members) = btf.members(*to) else { return Ok(None) };
    let (map, _) = btf_map(btf, &format!("{name}.inner"), members, false)?;
    Ok(Some(map))
}

/// Reads the relocations of `values`.
fn initial_entries(elf: &Elf<'_>, found: &mut [Placed]) -> Result<(), ObjectError> {
    let Some(section) = elf.section(".maps") else { return Ok(()) };
    let starts: Vec<(usize, u64)> = found.iter().map(|map| (map.section, map.offset)).collect();
    for relocation in elf.relocations.get(&section).into_iter().flatten() {
        let symbol =
            elf.symbols.get(relocation.symbol).filter(|_| [R_ABS64, R_64_64].contains(&relocation.kind));
        let symbol = symbol.ok_or_else(|| ObjectError::malformed("an invalid relocation of .maps"))?;
        let owner = found
            .iter_mut()
            .filter(|map| map.section == section && map.offset <= relocation.offset)
            .max_by_key(|map| map.offset);
        let Some((owner, begin)) =
            owner.and_then(|map| Some((&mut map.definition, map.offset + map.values_at?)))
        else {
            return Err(ObjectError::malformed("a relocation of .maps outside initial entries"));
        };
        let key = (relocation.offset.saturating_sub(begin) / 8) as u32;
        let other =
            symbol.section.and_then(|at| starts.iter().position(|start| *start == (at, symbol.value)));
        let initial = match other {
            Some(map) if !symbol.is_function => Initial::Map(map),
            _ if symbol.is_function => Initial::Program(symbol.name.to_owned()),
            _ => {
                let problem =
                    format!("its entry {key} names {}, which is neither a map nor a program", symbol.name);
                return Err(ObjectError::refused(map_place(&owner.name), problem, "name a map or a program"));
            }
        };
        owner.initial.push((key, initial));
        // A program array or a map without a size has as many entries as it names.
        owner.max_entries = owner.max_entries.max(if owner.max_entries == 0 { key + 1 } else { 0 });
    }
    Ok(())
}
