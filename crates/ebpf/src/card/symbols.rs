//! Names of maps, data sections, programs and functions in assembly.

use crate::object::{MapDefinition, Object};

/// The symbols of an object's maps and data sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbols {
    /// By the map's number: `nicety_map_NAME`, or `nicety_data_SECTION`.
    pub names: Vec<String>,
}

/// A name with characters of symbols alone: letters, digits and underscores.
pub(crate) fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// The name of a map among others. Where an earlier map has the same name, the number of the map follows.
pub(crate) fn of_map(maps: &[MapDefinition], number: u32) -> String {
    let own = plain(&maps[number as usize].name);
    let first = maps.iter().position(|map| plain(&map.name) == own);
    if first == Some(number as usize) { own } else { format!("{own}_{number}") }
}

impl Symbols {
    /// The symbols of an object.
    pub fn of(object: &Object) -> Symbols {
        let named = (0u32..).zip(&object.maps).map(|(number, definition)| {
            let kind = if super::is_data(definition) { "data" } else { "map" };
            format!("nicety_{kind}_{}", of_map(&object.maps, number))
        });
        Symbols { names: named.collect() }
    }

    /// The symbol of a map's memory.
    pub fn memory(map: &str) -> String {
        format!("nicety_map_memory{}", map.strip_prefix("nicety_map").unwrap_or(map))
    }
}
