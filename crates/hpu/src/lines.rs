//! Maps a pc to function, file and line, through the DWARF of an ELF file.

use crate::text::printable;
use crate::trap::Location;
use gimli::{EndianSlice, LittleEndian};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The headers with functions that are inlined into handlers. An error in one of them is reported at its caller.
const HEADERS: [&str; 2] = ["nicety.h", "frame.h"];

/// The folders of such headers, for handlers written for PsPIN and FPsPIN.
const INTERFACES: [&str; 2] = ["include/pspin/", "include/fpspin/"];

/// The name of the function that clang inlines at its own traps. A category and a message follow, each after a dollar
/// sign.
const TRAP: &str = "__clang_trap_msg";

/// The category of undefined behaviour.
const UNDEFINED: &str = "Undefined Behavior Sanitizer";

/// Replacements for clang's less precise messages. Other messages are clang's own.
const MESSAGES: [(&str, &str); 4] = [
    (
        "_builtin_unreachable(), execution reached an unreachable program point",
        "execution reached __builtin_unreachable()",
    ),
    ("Array index out of bounds", "an index outside its array"),
    ("Integer divide or remainder overflowed", "a division by zero"),
    (
        "Shift exponent is too large for the type",
        "a shift by a negative number of bits, or by as many as the type has or more",
    ),
];

/// Returns the reason of a trap, from the name of the function inlined there.
fn reason_of(function: &str) -> Option<String> {
    let mut parts = function.strip_prefix(TRAP)?.strip_prefix('$')?.splitn(2, '$');
    let (category, message) = (parts.next()?, parts.next()?);
    if category != UNDEFINED {
        return Some(message.to_owned());
    }
    let known = MESSAGES.iter().find(|(clang, _)| *clang == message).map_or(message, |(_, here)| here);
    Some(format!("undefined behaviour: {known}"))
}

/// Whether a place is in a header with functions that are inlined into handlers.
fn in_interface(place: &Location) -> bool {
    let Some(name) = place.file_name() else { return false };
    let folder = place.file.as_deref().and_then(|file| file.strip_suffix(&*name));
    HEADERS.contains(&&*name)
        || folder.is_some_and(|folder| INTERFACES.iter().any(|interface| folder.ends_with(interface)))
}

/// The line tables of an image. They are read on the first lookup, since most runs have nothing to locate. Results are
/// kept, since lookups repeat.
pub(crate) struct Lines {
    file: Box<[u8]>,
    known: Mutex<BTreeMap<u32, Option<Location>>>,
}

impl Lines {
    /// Returns the line tables of an ELF file. Their presence and soundness are found out on reading them.
    pub(crate) fn of_file(file: &[u8]) -> Lines {
        Lines { file: file.into(), known: Mutex::default() }
    }

    /// Returns the line tables of code without a file.
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
    let (mut inside, mut reason): (Option<Location>, _) = (None, None);
    // From the innermost function outwards. A function that is not inlined, such as `printf`, is reported
    // itself.
    while let Ok(Some(frame)) = frames.next() {
        let function = frame.function.and_then(|name| Some(printable(&name.raw_name().ok()?).into_owned()));
        if let Some(why) = function.as_deref().and_then(reason_of) {
            reason = Some(why);
            continue;
        }
        let (file, line) = match frame.location {
            Some(location) => (location.file.map(str::to_owned), location.line),
            None => (None, None),
        };
        let place = Location { function, file, line, ..Location::default() };
        if in_interface(&place) {
            inside = Some(place);
            continue;
        }
        let called = inside.and_then(|place| place.function);
        let known = place.function.is_some() || place.file.is_some();
        return known.then_some(Location { called, reason, ..place });
    }
    inside.map(|place| Location { reason, ..place })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_trap_is_in_a_functions_name() {
        let said = |name: &str| reason_of(name).unwrap_or_default();
        let undefined = |message| said(&format!("__clang_trap_msg$Undefined Behavior Sanitizer${message}"));
        assert_eq!(undefined("Array index out of bounds"), "undefined behaviour: an index outside its array");
        assert_eq!(undefined("Something new: $3"), "undefined behaviour: Something new: $3");
        assert_eq!(said("__clang_trap_msg$pspin$assertion failed: a < $b"), "assertion failed: a < $b");
        for name in ["payload_handler", "__clang_trap_msg", "__clang_trap_msg$x", ""] {
            assert_eq!(reason_of(name), None, "{name}");
        }
    }
}
