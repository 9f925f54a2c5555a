//! A map's definition, and its place in the file.

use crate::map::{Flags, MapKind};

/// A map as an object defines it.
#[derive(Clone, Debug, Default)]
pub struct MapDefinition {
    /// The name: of the variable, or of the section with data.
    pub name: String,
    /// The number of its type, as in `enum bpf_map_type`.
    pub kind: u32,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// The largest number of entries.
    pub max_entries: u32,
    /// Flags of its creation.
    pub flags: u32,
    /// A further number: hash functions of a bloom filter.
    pub extra: u64,
    /// Whether tools share it by its name.
    pub pinned: bool,
    /// The definition of maps in this map.
    pub inner: Option<Box<MapDefinition>>,
    /// Entries that the object names: a key, and a map or a program.
    pub initial: Vec<(u32, Initial)>,
    /// The bytes of a data section.
    pub contents: Option<Vec<u8>>,
    /// Variables of a data section with pointers. Neither Linux's loaders nor this one fill these pointers.
    pub pointers: Vec<String>,
    /// BTF types of key and value, or 0.
    pub types: (u32, u32),
}

impl MapDefinition {
    /// Whether it is a section of constants, which a loader freezes.
    pub fn is_constant(&self) -> bool {
        self.contents.is_some() && self.flags & Flags::READ_ONLY_PROGRAM != 0
    }

    /// The least number of entries that Linux takes.
    pub(crate) fn least_entries(&self) -> u32 {
        if self.kind == MapKind::Ring as u32 { 4096 } else { 1 }
    }
}

/// Advice for an address that may be a pointer of a data section; none where no section has pointers.
pub(crate) fn unset_pointers<'m>(maps: impl IntoIterator<Item = &'m MapDefinition>) -> Option<String> {
    let with = |map: &&MapDefinition| !map.pointers.is_empty();
    let names = |map: &MapDefinition| match map.pointers.len() {
        1..=MOST_NAMED => format!("{} in {}", map.pointers.join(", "), map.name),
        _ => format!("{} and others in {}", map.pointers[..MOST_NAMED].join(", "), map.name),
    };
    let found: Vec<String> = maps.into_iter().filter(with).map(names).collect();
    (!found.is_empty()).then(|| {
        format!(
            "no loader sets the pointers of {}: write arrays in their place, as in char NAME[COUNT][SIZE]",
            found.join(" and of ")
        )
    })
}

/// The variables with pointers that a text names at most, for each section.
const MOST_NAMED: usize = 3;

/// An entry that the object names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initial {
    /// The number of another map.
    Map(usize),
    /// The name of a program.
    Program(String),
}

/// A map with its place in the file.
pub(crate) struct Placed {
    pub definition: MapDefinition,
    pub section: usize,
    pub offset: u64,
    /// Where the initial entries are, in bytes from the definition's begin.
    pub values_at: Option<u64>,
    /// Facts for iproute2.
    pub legacy: Extra,
}

/// Words behind the flags.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra {
    /// The number that sections of tail calls, and maps of maps, name the map by.
    pub id: u32,
    /// The map that is an example of those in a map of maps.
    pub inner: Inner,
    /// The key of this map in a map of maps.
    pub key: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Inner {
    #[default]
    None,
    /// By its number.
    Id(u32),
    /// By its place in the section.
    Place(u32),
}

pub(super) fn map_place(name: &str) -> String {
    format!("map {name}")
}
