//! Names of maps, data sections, programs and functions in assembly.

use crate::object::Object;

/// The symbols of an object's maps and data sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbols {
    /// By the map's number: `nicety_map_NAME`, or `nicety_data_SECTION`.
    pub names: Vec<String>,
}

/// A name with characters of symbols alone.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

impl Symbols {
    /// The symbols of an object. Where an earlier map has the same name, the number of the map follows.
    pub fn of(object: &Object) -> Symbols {
        let plain: Vec<String> = object.maps.iter().map(|map| plain(&map.name)).collect();
        let named = object.maps.iter().enumerate().map(|(number, definition)| {
            let kind = if super::is_data(definition) { "data" } else { "map" };
            let own = &plain[number];
            match plain.iter().position(|name| name == own) {
                Some(first) if first < number => format!("nicety_{kind}_{own}_{number}"),
                _ => format!("nicety_{kind}_{own}"),
            }
        });
        Symbols { names: named.collect() }
    }

    /// The symbol of a map's memory.
    pub fn memory(map: &str) -> String {
        format!("nicety_map_memory{}", map.strip_prefix("nicety_map").unwrap_or(map))
    }
}
