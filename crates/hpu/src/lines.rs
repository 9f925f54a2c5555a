//! From a pc to function, file and line, through the DWARF of an ELF file.

use crate::text::printable;
use crate::trap::Location;
use gimli::{EndianSlice, LittleEndian};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The headers whose functions are inlined into handlers: an error in one of them is reported at its caller.
const HEADERS: [&str; 2] = ["nicety.h", "frame.h"];

/// The folder of such headers, for handlers written for PsPIN.
const INTERFACES: &str = "include/pspin/";

/// Whether a place is in a header whose functions are inlined into handlers.
fn in_interface(place: &Location) -> bool {
    let Some(name) = place.file_name() else { return false };
    let folder = place.file.as_deref().and_then(|file| file.strip_suffix(&*name));
    HEADERS.contains(&&*name) || folder.is_some_and(|folder| folder.ends_with(INTERFACES))
}

/// The line tables of an image. They are read on the first lookup, since most runs have nothing to locate,
/// and results are kept, since lookups repeat.
pub(crate) struct Lines {
    file: Box<[u8]>,
    known: Mutex<BTreeMap<u32, Option<Location>>>,
}

impl Lines {
    /// Those of an ELF file. Whether it has any, and whether they are sound, shows when they are read.
    pub(crate) fn of_file(file: &[u8]) -> Lines {
        Lines { file: file.into(), known: Mutex::default() }
    }

    /// Those of code that has no file.
    pub(crate) fn none() -> Lines {
        Lines::of_file(&[])
    }

    pub(crate) fn locate(&self, pc: u32) -> Option<Location> {
        if self.file.is_empty() {
            return None;
        }
        let mut known = self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        known.entry(pc).or_insert_with(|| read(&self.file, pc)).clone()
    }
}

/// Damaged tables locate nothing.
fn read(file: &[u8], pc: u32) -> Option<Location> {
    let file = object::File::parse(file).ok()?;
    let section = |id: gimli::SectionId| -> Result<EndianSlice<'_, LittleEndian>, gimli::Error> {
        let data = file.section_by_name(id.name()).and_then(|s| s.data().ok());
        Ok(EndianSlice::new(data.unwrap_or(&[]), LittleEndian))
    };
    let dwarf = gimli::Dwarf::load(section).ok()?;
    let context = addr2line::Context::from_dwarf(dwarf).ok()?;
    let mut frames = context.find_frames(u64::from(pc)).skip_all_loads().ok()?;
    let mut inside: Option<Location> = None;
    // From the innermost function outwards. A function that is not inlined, such as `printf`, is reported
    // itself.
    while let Ok(Some(frame)) = frames.next() {
        let function = frame.function.and_then(|name| Some(printable(&name.raw_name().ok()?).into_owned()));
        let (file, line) = match frame.location {
            Some(location) => (location.file.map(str::to_owned), location.line),
            None => (None, None),
        };
        let place = Location { function, file, line, called: None };
        if in_interface(&place) {
            inside = Some(place);
            continue;
        }
        let called = inside.and_then(|place| place.function);
        let known = place.function.is_some() || place.file.is_some();
        return known.then_some(Location { called, ..place });
    }
    inside
}
