//! Maps a pc to function, file and line, through the DWARF of an ELF file.

use crate::text::printable;
use crate::trap::{BY_ZERO, INDEX, Location, UNDEFINED_BEHAVIOUR};
use gimli::{EndianSlice, LittleEndian};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The headers with functions that are inlined into handlers. An error in one of them is reported at its caller.
const HEADERS: [&str; 3] = ["nicety.h", "frame.h", "nfp.h"];

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
    ("Array index out of bounds", INDEX),
    ("Integer divide or remainder overflowed", BY_ZERO),
    (
        "Shift exponent is too large for the type",
        "a shift by a negative number of bits, or by at least the width of the type",
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
    Some(format!("{UNDEFINED_BEHAVIOUR}{known}"))
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

impl Lines {
    /// Returns the places of an instruction, from the innermost inlined function outwards.
    pub(crate) fn frames(&self, pc: u32) -> Vec<Location> {
        self.with_frames(|frames| frames(pc))
    }

    /// Calls `act` with a function that returns the functions at an instruction, the innermost inlined one first.
    pub(crate) fn with_frames<R>(&self, act: impl FnOnce(&dyn Fn(u32) -> Vec<Location>) -> R) -> R {
        match context_of(&self.file) {
            Some(context) => act(&|pc| frames_of(&context, pc)),
            None => act(&|_| Vec::new()),
        }
    }
}

/// Damaged tables locate nothing.
fn read(file: &[u8], pc: u32) -> Option<Location> {
    chosen(&frames_of(&context_of(file)?, pc))
}

type Context<'f> = addr2line::Context<EndianSlice<'f, LittleEndian>>;

fn context_of(file: &[u8]) -> Option<Context<'_>> {
    let file = object::File::parse(file).ok()?;
    let section = |id: gimli::SectionId| -> Result<EndianSlice<'_, LittleEndian>, gimli::Error> {
        let data = file.section_by_name(id.name()).and_then(|s| s.data().ok());
        Ok(EndianSlice::new(data.unwrap_or(&[]), LittleEndian))
    };
    addr2line::Context::from_dwarf(gimli::Dwarf::load(section).ok()?).ok()
}

/// Returns the functions at `pc`, from the innermost inlined one outwards.
fn frames_of(context: &Context<'_>, pc: u32) -> Vec<Location> {
    let Ok(mut frames) = context.find_frames(u64::from(pc)).skip_all_loads() else { return Vec::new() };
    let mut found = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let function = frame.function.and_then(|name| Some(printable(&name.raw_name().ok()?).into_owned()));
        let (file, line) = match frame.location {
            Some(location) => (location.file.map(str::to_owned), location.line),
            None => (None, None),
        };
        found.push(Location { function, file, line, ..Location::default() });
    }
    found
}

/// Returns the place that is reported, of those of all functions at an instruction.
pub(crate) fn chosen(frames: &[Location]) -> Option<Location> {
    let (mut inside, mut reason): (Option<Location>, _) = (None, None);
    // From the innermost function outwards. A function that is not inlined, such as `printf`, is reported
    // itself.
    for place in frames {
        if let Some(why) = place.function.as_deref().and_then(reason_of) {
            reason = Some(why);
            continue;
        }
        if in_interface(place) {
            inside = Some(place.clone());
            continue;
        }
        let called = inside.and_then(|place| place.function);
        let known = place.function.is_some() || place.file.is_some();
        return known.then_some(Location { called, reason, ..place.clone() });
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
