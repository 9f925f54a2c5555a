//! Names of the translation's symbols.

use super::Program;
use super::fact::Known;
use super::ir::Value;
use crate::card::of_map;
use crate::helper::{self, Helper};
use crate::map::MapKind;
use crate::object::MapDefinition;

/// The descriptor of a map.
pub(super) fn map(maps: &[MapDefinition], number: u32) -> String {
    format!("nicety_map_{}", of_map(maps, number))
}

/// The memory of a map; of a data section, its bytes.
pub(super) fn memory(maps: &[MapDefinition], number: u32) -> String {
    let kind = if maps[number as usize].contents.is_some() { "data" } else { "map_memory" };
    format!("nicety_{kind}_{}", of_map(maps, number))
}

/// A helper.
pub(super) fn helper(number: u32) -> String {
    format!("nicety_bpf_{}", helper::name(number).unwrap_or("unknown"))
}

/// A lookup in a map that is known. For a hash or an LRU hash with keys of a usual size, aligned on the stack, it is code for that
/// size.
pub(super) fn lookup(maps: &[MapDefinition], map: Known, key: Known) -> String {
    let sized = match map {
        Known::Is(Value::Map(number)) => sized_lookup(maps, number, key),
        _ => None,
    };
    sized.unwrap_or_else(|| helper(Helper::MapLookup as u32))
}

/// The lookup in a map with code for its keys.
pub(super) fn sized_lookup(maps: &[MapDefinition], number: u32, key: Known) -> Option<String> {
    let aligned = matches!(key, Known::Is(Value::Frame(at)) if at % 4 == 0);
    let kinds = [(MapKind::Hash, "hash"), (MapKind::LruHash, "lru")];
    let map = maps.get(number as usize).filter(|map| aligned && LOOKUPS.contains(&map.key_size));
    let (map, (_, kind)) =
        map.and_then(|map| Some((map, kinds.iter().find(|(kind, _)| *kind as u32 == map.kind)?)))?;
    Some(format!("nicety_bpf_map_lookup_{kind}{}", map.key_size))
}

/// A sum of the Internet checksum. It is code of its own for the sizes that IP headers and changed words have.
pub(super) fn csum_diff(arguments: &[Known]) -> String {
    let plain = helper(Helper::CsumDiff as u32);
    let number = |at: usize| match arguments.get(at) {
        Some(Known::Is(Value::Const(number))) => Some(*number as u32),
        _ => None,
    };
    match (number(1), number(3)) {
        (Some(gone), Some(come)) if CSUMS.contains(&(gone, come)) => format!("{plain}_{gone}_{come}"),
        _ => plain,
    }
}

/// The sizes of old and new bytes for which the runtime has a sum of its own.
pub(super) const CSUMS: [(u32, u32); 2] = [(0, 20), (4, 4)];

/// The sizes of keys for which the runtime has a lookup of its own.
pub(super) const LOOKUPS: [u32; 4] = [4, 8, 12, 16];

/// The code of a function.
pub(super) fn function(program: &Program<'_>, first: usize) -> String {
    match first {
        0 if program.tail => format!("{}_body", program.symbol),
        0 => program.symbol.clone(),
        _ => format!("{}_function_{first}", program.symbol),
    }
}

/// The entry for helpers that call a function.
pub(super) fn callback(program: &Program<'_>, first: usize) -> String {
    format!("{}_callback_{first}", program.symbol)
}

/// An address.
pub(super) fn value(maps: &[MapDefinition], program: &Program<'_>, value: Value) -> String {
    match value {
        Value::Map(number) => map(maps, number),
        Value::Data(number, at) => format!("{}+{at}", memory(maps, number)),
        Value::Memory(number, at) => format!("{}+{at}", memory(maps, number)),
        Value::Function(first) => callback(program, first as usize),
        _ => String::new(),
    }
}
