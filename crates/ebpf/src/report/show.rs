//! The parts of an object, and the reasons why this machine cannot run some.

use crate::error::ObjectError;
use crate::machine::Limits;
use crate::map::{Map, MapKind};
use crate::object::{Attach, Entry, Linked, MapDefinition, Object};
use crate::op::Group;
use serde::Serialize;

/// An object.
#[derive(Debug, Serialize)]
pub struct ShowReport {
    /// The license.
    pub license: String,
    /// The XDP programs.
    pub programs: Vec<ProgramReport>,
    /// The maps.
    pub maps: Vec<MapReport>,
    /// Programs of other kinds, with their sections.
    pub others: Vec<String>,
}

/// A program.
#[derive(Debug, Serialize)]
pub struct ProgramReport {
    /// The name of its function.
    pub name: String,
    /// The section.
    pub section: String,
    /// The place where Linux attaches it: `device`, `devmap` or `cpumap`.
    pub attach: &'static str,
    /// Whether it takes packets in fragments.
    pub fragments: bool,
    /// Instructions, with those of its functions. A 64-bit constant is one.
    pub instructions: usize,
    /// Functions, with the program itself.
    pub functions: usize,
    /// Conformance groups of RFC 9669.
    pub groups: Vec<&'static str>,
    /// Names of the helpers.
    pub helpers: Vec<String>,
    /// Names of the maps.
    pub maps: Vec<String>,
    /// Relocations of maps and data, of calls, and of types.
    pub relocations: [usize; 3],
    /// The reason why it cannot run.
    pub refused: Option<String>,
}

/// A map.
#[derive(Debug, Serialize)]
pub struct MapReport {
    /// The name.
    pub name: String,
    /// The type, as bpftool prints it.
    pub kind: String,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// The largest number of entries.
    pub max_entries: u32,
    /// Flags of its creation.
    pub flags: u32,
    /// Whether tools share it by its name.
    pub pinned: bool,
    /// Variables of a data section with pointers, which no loader sets.
    pub pointers: Vec<String>,
    /// The reason why it cannot be made.
    pub refused: Option<String>,
}

/// Reads an object and describes it.
///
/// # Errors
/// The file is no object with an XDP program, or it is damaged.
pub fn show(file: &[u8]) -> Result<ShowReport, ObjectError> {
    let object = Object::read(file)?;
    let maps = object.maps.iter().map(|map| {
        let name_of = || MapKind::name_of(map.kind).map_or_else(|| map.kind.to_string(), str::to_owned);
        MapReport {
            name: map.name.clone(),
            kind: name_of(),
            key_size: map.key_size,
            value_size: map.value_size,
            max_entries: map.max_entries,
            flags: map.flags,
            pinned: map.pinned,
            pointers: map.pointers.clone(),
            refused: Map::new(&with_size(map), 1, Limits::default().map_bytes)
                .err()
                .map(|error| error.to_string()),
        }
    });
    Ok(ShowReport {
        license: object.license.clone(),
        maps: maps.collect(),
        programs: object.programs.iter().chain(&object.open).map(|entry| program(&object, entry)).collect(),
        others: object.others.iter().map(|(section, name)| format!("{name} ({section})")).collect(),
    })
}

/// A map with a size, where its loader sets that.
fn with_size(map: &MapDefinition) -> MapDefinition {
    let max_entries = if map.max_entries == 0 { map.least_entries() } else { map.max_entries };
    MapDefinition { max_entries, ..map.clone() }
}

fn program(object: &Object, entry: &Entry) -> ProgramReport {
    let (linked, refused) = match object.link(entry) {
        Ok(linked) => (linked, None),
        Err(error) => (Linked::default(), Some(error.to_string())),
    };
    let steps = &linked.code.steps;
    let used = |group: &Group| steps.iter().any(|step| step.op.group() == *group);
    ProgramReport {
        name: entry.name.clone(),
        section: entry.section.clone(),
        attach: match entry.attach {
            Attach::Device => "device",
            Attach::DeviceMap => "devmap",
            Attach::CpuMap => "cpumap",
        },
        fragments: entry.fragments,
        instructions: steps.len(),
        functions: linked.functions.len(),
        groups: Group::ALL.iter().filter(|group| used(group)).map(|group| group.name()).collect(),
        helpers: linked.helpers().iter().map(|helper| helper.name()).collect(),
        maps: linked.maps.iter().map(|&map| object.maps[map].name.clone()).collect(),
        relocations: linked.relocations,
        refused,
    }
}
