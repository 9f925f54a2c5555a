//! eBPF objects: programs, functions, maps and types of an ELF file, as compilers write it.

pub mod btf;
mod btf_ext;
mod core_relocation;
mod dead;
mod definition;
mod elf;
mod entry;
mod function;
mod legacy;
mod link;
mod placed;

pub use btf_ext::Line;
pub use entry::{Attach, Entry};
pub use link::Linked;
pub(crate) use placed::unset_pointers;
pub use placed::{Initial, MapDefinition};

use crate::error::ObjectError;
use btf::{Btf, Kind};
use btf_ext::BtfExt;
use elf::Elf;
use function::Function;
use std::collections::BTreeMap;

/// An object file.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// The license, empty where the object has none.
    pub license: String,
    /// The programs for XDP, in the order of the file.
    pub programs: Vec<Entry>,
    /// Programs of sections with a name of no type, which a user may take as XDP.
    pub open: Vec<Entry>,
    /// Programs of other kinds: section and name.
    pub others: Vec<(String, String)>,
    /// The maps. A program names them by their places.
    pub maps: Vec<MapDefinition>,
    /// The types.
    pub btf: Btf,
    functions: Vec<Function>,
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
        let mut functions = function::functions(&elf, &btf, &ext)?;
        let mut found = entry::programs(&elf, &functions);
        // An object of another kind is that, and no object with odd maps.
        if found.programs.is_empty() && found.open.is_empty() {
            return Err(found.none());
        }
        let mut placed = definition::maps(&elf, &btf)?;
        legacy::fill_jumps(&mut placed, &mut found);
        function::refer(&elf, &placed, &mut functions)?;
        // Functions of odd sections that others call are no programs.
        found.open.retain(|entry| !function::is_called(&functions, entry.function));
        if found.programs.is_empty() && found.open.is_empty() {
            return Err(found.none());
        }
        let license = elf.section("license").map(|at| elf.sections[at].data).unwrap_or_default();
        let end = license.iter().position(|&byte| byte == 0).unwrap_or(license.len());
        Ok(Object {
            license: String::from_utf8_lossy(&license[..end]).into_owned(),
            programs: found.programs,
            open: found.open,
            others: found.others,
            maps: placed.into_iter().map(|map| map.definition).collect(),
            btf,
            functions,
        })
    }

    /// Whether a file has a program of any type: a global function in a section of its own.
    ///
    /// # Errors
    /// The file is no object, or it is damaged.
    pub fn has_program(file: &[u8]) -> Result<bool, ObjectError> {
        let elf = Elf::read(file)?;
        let functions = function::functions(&elf, &Btf::default(), &BtfExt::default())?;
        Ok(entry::programs(&elf, &functions).any())
    }

    /// The only program for a device, or that of a name.
    ///
    /// # Errors
    /// There is no such program, or there are several and no name.
    pub fn program(&self, name: Option<&str>) -> Result<&Entry, ObjectError> {
        if let Some(name) = name {
            let found = self.programs.iter().chain(&self.open).find(|entry| entry.name == name);
            return found.ok_or_else(|| {
                let all = self.programs.iter().chain(&self.open);
                let problem = format!("the object has no such XDP program; it has {}", names(all));
                ObjectError::refused(format!("program {name}"), problem, "name one of these")
            });
        }
        let mut starts: Vec<&Entry> = self.programs.iter().filter(|entry| !entry.jump).collect();
        // Programs for entries of maps stand beside the one that redirects to these entries.
        if starts.iter().any(|entry| entry.attach == Attach::Device) {
            starts.retain(|entry| entry.attach == Attach::Device);
        }
        match starts[..] {
            [only] => Ok(only),
            [] => {
                let problem = format!(
                    "no section name declares an XDP program; the object has {}",
                    names(self.open.iter())
                );
                Err(ObjectError::refused("the object", problem, "name the XDP program with --program"))
            }
            [..] => {
                let problem = format!("it has {} programs: {}", starts.len(), names(starts.into_iter()));
                Err(ObjectError::refused("the object", problem, "name one with --program"))
            }
        }
    }
}

impl Object {
    /// As [`program`](Object::program), for the program of a device.
    ///
    /// # Errors
    /// As there; and Linux does not attach the program to a device, nor test it.
    pub fn device_program(&self, name: Option<&str>) -> Result<&Entry, ObjectError> {
        let entry = self.program(name)?;
        let map = match entry.attach {
            Attach::Device => return Ok(entry),
            Attach::DeviceMap => "a devmap",
            Attach::CpuMap => "a cpumap",
        };
        let problem = format!("its section {} is for an entry of {map}, not for a device", entry.section);
        let advice = "name another program here, and this one in the entries of the map";
        Err(ObjectError::refused(format!("program {}", entry.name), problem, advice))
    }
}

fn names<'e>(entries: impl Iterator<Item = &'e Entry>) -> String {
    entries.map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ")
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
