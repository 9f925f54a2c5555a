//! Maps of the section `maps`: `struct bpf_map_def` of Linux's samples and of loaders, and `struct bpf_elf_map` of iproute2.
//!
//! All begin with type, sizes, entries and flags. The size of the structure tells what follows.

use super::elf::{Elf, Symbol};
use super::entry::Programs;
use super::placed::{Extra, Initial, Inner, MapDefinition, Placed, map_place};
use crate::error::ObjectError;
use crate::map::MapKind;

/// Bytes of a structure with `inner_map_idx` and `numa_node`, or with iproute2's `id` and `pinning`.
const SAMPLES: usize = 28;
/// Bytes of iproute2's structure, with `id`, `pinning`, `inner_id` and `inner_idx`.
const IPROUTE2: usize = 36;
/// Bytes of the structure of gobpf and its descendants, with `pinning` and a path.
const GOBPF: usize = 280;

pub(super) fn maps(elf: &Elf<'_>, at: usize, found: &mut Vec<Placed>) -> Result<(), ObjectError> {
    let section = &elf.sections[at];
    let mut symbols: Vec<&Symbol<'_>> =
        elf.symbols.iter().filter(|s| s.section == Some(at) && !s.is_section && !s.name.is_empty()).collect();
    symbols.sort_by_key(|symbol| symbol.value);
    for (number, symbol) in symbols.iter().enumerate() {
        let next = symbols.get(number + 1).map_or(section.data.len() as u64, |next| next.value);
        let end = if symbol.size == 0 { Some(next) } else { symbol.value.checked_add(symbol.size) };
        let range = usize::try_from(symbol.value).ok().zip(end.and_then(|end| usize::try_from(end).ok()));
        let bytes = range.and_then(|(begin, end)| section.data.get(begin..end)).unwrap_or_default();
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap_or_default()))
            .collect();
        let &[kind, key_size, value_size, max_entries, ref rest @ ..] = &words[..] else {
            return Err(ObjectError::malformed(format!("the map {} is cut off", symbol.name)));
        };
        let (flags, rest) = rest.split_first().map_or((0, rest), |(flags, rest)| (*flags, rest));
        let (extra, pinned) = extra(symbol.name, kind, bytes.len(), rest)?;
        let definition = MapDefinition {
            name: symbol.name.to_owned(),
            kind,
            key_size,
            value_size,
            max_entries,
            flags,
            pinned,
            ..MapDefinition::default()
        };
        found.push(Placed { definition, section: at, offset: symbol.value, values_at: None, legacy: extra });
    }
    Ok(())
}

/// The meaning of the words behind the flags, and whether tools share the map.
fn extra(name: &str, kind: u32, size: usize, words: &[u32]) -> Result<(Extra, bool), ObjectError> {
    let of_maps = [MapKind::ArrayOfMaps as u32, MapKind::HashOfMaps as u32].contains(&kind);
    Ok(match (size, words) {
        (SAMPLES, &[inner, _]) if of_maps => {
            (Extra { inner: Inner::Place(inner), ..Extra::default() }, false)
        }
        (SAMPLES, &[id, pinning]) => (Extra { id, ..Extra::default() }, pinning != 0),
        (IPROUTE2, &[id, pinning, inner, key]) => {
            let inner = if inner == 0 { Inner::None } else { Inner::Id(inner) };
            (Extra { id, inner, key: (key != u32::MAX).then_some(key) }, pinning != 0)
        }
        (GOBPF, &[pinning, ..]) => (Extra::default(), pinning != 0),
        _ if words.iter().all(|&word| word == 0) => (Extra::default(), false),
        _ => {
            let problem =
                format!("its structure of {size} bytes is neither Linux's bpf_map_def nor iproute2's");
            return Err(ObjectError::refused(map_place(name), problem, "define it in .maps with BTF"));
        }
    })
}

/// Gives maps of maps their inner definitions, and the entries that iproute2 puts in.
pub(super) fn join_inner(found: &mut [Placed]) -> Result<(), ObjectError> {
    for outer in 0..found.len() {
        let Placed { section, legacy, .. } = found[outer];
        let mut beside = found.iter().filter(|map| map.section == section);
        let example = match legacy.inner {
            Inner::None => continue,
            Inner::Id(id) => beside.find(|map| map.legacy.id == id),
            Inner::Place(place) => beside.nth(place as usize),
        };
        let name = &found[outer].definition.name;
        let Some(example) = example.filter(|map| map.definition.name != *name) else {
            let advice = "name a map of the object as the inner map";
            return Err(ObjectError::refused(map_place(name), "its inner map is not in the object", advice));
        };
        let inner = Some(Box::new(example.definition.clone()));
        let Inner::Id(id) = legacy.inner else {
            found[outer].definition.inner = inner;
            continue;
        };
        let within = found.iter().enumerate().filter(|(_, map)| {
            map.section == section && map.legacy.id == id && matches!(map.legacy.inner, Inner::None)
        });
        let entries: Vec<(u32, Initial)> =
            within.filter_map(|(number, map)| Some((map.legacy.key?, Initial::Map(number)))).collect();
        found[outer].definition.inner = inner;
        found[outer].definition.initial.extend(entries);
    }
    Ok(())
}

/// Puts the programs of sections such as `2/5` into the program arrays that they name. Others are open.
pub(super) fn fill_jumps(maps: &mut [Placed], programs: &mut Programs) {
    for (id, key, entry) in std::mem::take(&mut programs.jumps) {
        let named = |map: &&mut Placed| {
            map.definition.kind == MapKind::Programs as u32 && map.legacy.id == id && id != 0
        };
        match maps.iter_mut().find(named) {
            Some(map) => {
                map.definition.initial.push((key, Initial::Program(entry.name.clone())));
                programs.programs.push(entry);
            }
            None => programs.open.push(entry),
        }
    }
}
