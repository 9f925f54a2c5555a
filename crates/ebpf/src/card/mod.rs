//! Maps and data of a program in a card's memory, for the runtime in `handlers/runtime/xdp`.
//!
//! [`Layout`] has the sizes and offsets of a map; `map.h` of the runtime names them. [`assembly`] writes maps and data as directives
//! of the assembler. The names of their symbols are in [`Symbols`].

mod layout;
mod symbols;

pub use layout::Layout;
pub use symbols::Symbols;
pub(crate) use symbols::{of_map, plain};

use crate::error::ObjectError;
use crate::map::Flags;
use crate::object::{MapDefinition, Object};
use std::fmt::Write;

/// The values of a card that its runtime needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardValues {
    /// Cores, each with values of per-CPU maps.
    pub cpus: u32,
    /// Bytes of headroom before a frame.
    pub headroom: u32,
    /// Bytes of the longest frame that it sends.
    pub longest: u32,
    /// Receive channels of the host.
    pub queues: u32,
    /// Picoseconds of a cycle.
    pub cycle_ps: u32,
    /// Bytes of memory for maps and data.
    pub memory: u64,
    /// Whether the program is checked while it runs.
    pub unverified: bool,
    /// Whether the card has a table of maps for its firmware.
    pub table: bool,
}

impl Default for CardValues {
    /// One core at 1 GHz with a mebibyte.
    fn default() -> CardValues {
        CardValues {
            cpus: 1,
            headroom: 64,
            longest: 1518,
            queues: 1,
            cycle_ps: 1000,
            memory: 1 << 20,
            unverified: false,
            table: false,
        }
    }
}

/// Bytes of `struct nicety_xdp_counts`.
const COUNTS: u64 = 32;
/// The number of the card's only interface.
pub(crate) const INTERFACE: u32 = 1;

/// Whether a definition is that of a data section.
pub fn is_data(definition: &MapDefinition) -> bool {
    definition.contents.is_some()
}

/// The bytes that a map or a section takes in the card's memory.
///
/// # Errors
/// Linux refuses the definition.
pub fn memory_bytes(definition: &MapDefinition, cpus: u32) -> Result<u64, ObjectError> {
    if is_data(definition) {
        let constant = definition.flags & Flags::READ_ONLY_PROGRAM != 0;
        return Ok(if constant { 0 } else { u64::from(definition.value_size) });
    }
    Ok(Layout::of(definition, cpus, None)?.memory_bytes)
}

/// Writes the maps and data sections with these numbers, and the card's own part.
///
/// # Errors
/// Linux refuses a map, or all together exceed the card's memory: the error names the largest.
pub fn assembly(object: &Object, maps: &[usize], card: &CardValues) -> Result<String, ObjectError> {
    let symbols = Symbols::of(object);
    let mut text = String::new();
    check_memory(object, maps, card)?;
    for &number in maps {
        let definition = &object.maps[number];
        match &definition.contents {
            Some(contents) => data(&mut text, &symbols.names[number], definition, contents),
            None => {
                let lock = crate::machine::lock(&object.btf, definition);
                let layout = Layout::of(definition, card.cpus, lock)?;
                map(&mut text, &symbols.names[number], number as u32, &layout);
            }
        }
    }
    own(&mut text, card);
    if card.table {
        table(&mut text, object, maps, &symbols, card.cpus)?;
    }
    if card.unverified {
        areas(&mut text, object, maps, &symbols, card.cpus)?;
    }
    Ok(text)
}

/// Checks that maps and data sections fit into the card's memory.
///
/// # Errors
/// Linux refuses a map, or all together are too large: the error names the largest.
pub fn check_memory(object: &Object, maps: &[usize], card: &CardValues) -> Result<(), ObjectError> {
    let mut sizes = Vec::new();
    for &number in maps {
        sizes.push((memory_bytes(&object.maps[number], card.cpus)?, number));
    }
    let all: u64 = sizes.iter().map(|(bytes, _)| bytes).sum();
    let Some((largest, number)) = sizes.into_iter().max().filter(|_| all > card.memory) else {
        return Ok(());
    };
    let problem = format!(
        "it takes {largest} bytes on {} cores, and all maps together take {all} bytes, but the card's \
         memory has {} (hpu.memory)",
        card.cpus, card.memory
    );
    let name = &object.maps[number].name;
    let advice = format!("write a smaller max_entries, give one by --map {name}=FILE, or raise hpu.memory");
    Err(ObjectError::refused(format!("map {name}"), problem, advice))
}

fn object_symbol(text: &mut String, name: &str, bytes: u64) {
    let _ = write!(
        text,
        "\t.balign 16\n\t.globl {name}\n\t.type {name}, @object\n\t.size {name}, {bytes}\n{name}:\n"
    );
}

fn data(text: &mut String, name: &str, definition: &MapDefinition, contents: &[u8]) {
    let constant = definition.flags & Flags::READ_ONLY_PROGRAM != 0;
    let zeros = contents.iter().all(|&byte| byte == 0);
    let (kind, section) = match (constant, zeros) {
        (true, _) => ("a", "rodata"),
        (false, false) => ("aw", "data"),
        (false, true) => ("aw", "bss"),
    };
    let bits = if section == "bss" { "@nobits" } else { "@progbits" };
    let _ = writeln!(text, "\t.section .{section}.{name}, \"{kind}\", {bits}");
    object_symbol(text, name, contents.len() as u64);
    if section == "bss" {
        let _ = writeln!(text, "\t.zero {}", contents.len());
        return;
    }
    for row in contents.chunks(32) {
        let bytes: Vec<String> = row.iter().map(u8::to_string).collect();
        let _ = writeln!(text, "\t.byte {}", bytes.join(", "));
    }
}

fn map(text: &mut String, name: &str, number: u32, layout: &Layout) {
    let memory = Symbols::memory(name);
    let _ = writeln!(text, "\t.section .bss.{memory}, \"aw\", @nobits");
    object_symbol(text, &memory, layout.memory_bytes);
    let _ = writeln!(text, "\t.zero {}", layout.memory_bytes);
    let words = layout.words(number, &memory);
    let _ = writeln!(text, "\t.section .rodata.{name}, \"a\", @progbits");
    object_symbol(text, name, 4 * words.len() as u64);
    let _ = writeln!(text, "\t.word {}", words.join(", "));
}

/// The name of the table of maps that a card's firmware reads, and the bytes of an entry.
pub const TABLE_NAME: &str = "nicety_xdp_table";
/// See [`TABLE_NAME`].
pub const TABLE_ENTRY: usize = 64;

/// The table of maps for a firmware: an entry for each number up to the last, as `struct table` of the runtime has it.
fn table(
    text: &mut String,
    object: &Object,
    maps: &[usize],
    symbols: &Symbols,
    cpus: u32,
) -> Result<(), ObjectError> {
    let entries = maps.iter().max().map_or(0, |last| last + 1);
    let _ = writeln!(text, "\t.section .rodata.{TABLE_NAME}, \"a\", @progbits");
    object_symbol(text, TABLE_NAME, (TABLE_ENTRY * entries) as u64);
    for number in 0..entries {
        let words = match maps.contains(&number) && !is_data(&object.maps[number]) {
            true => {
                let memory = Symbols::memory(&symbols.names[number]);
                Layout::of(&object.maps[number], cpus, None)?.table_words(&memory).to_vec()
            }
            false => vec!["0".to_owned(); TABLE_WORDS],
        };
        let _ = writeln!(text, "\t.word {}\n\t.zero {}", words.join(", "), TABLE_ENTRY - 4 * TABLE_WORDS);
    }
    Ok(())
}

/// Words of an entry of the table that are in use.
const TABLE_WORDS: usize = 8;

/// The table of all maps and data sections for checks: begin, bytes, descriptor, and whether programs may only read.
fn areas(
    text: &mut String,
    object: &Object,
    maps: &[usize],
    symbols: &Symbols,
    cpus: u32,
) -> Result<(), ObjectError> {
    let _ = writeln!(text, "\t.section .rodata.nicety_xdp_areas, \"a\", @progbits");
    object_symbol(text, "nicety_xdp_areas", 4 + 16 * maps.len() as u64);
    let _ = writeln!(text, "\t.word {}", maps.len());
    for &number in maps {
        let (definition, name) = (&object.maps[number], &symbols.names[number]);
        let constant = u32::from(definition.flags & Flags::READ_ONLY_PROGRAM != 0);
        let (memory, bytes, map) = match is_data(definition) {
            true => (name.clone(), u64::from(definition.value_size), "0"),
            false => (Symbols::memory(name), memory_bytes(definition, cpus)?, name.as_str()),
        };
        let _ = writeln!(text, "\t.word {memory}, {bytes}, {map}, {constant}");
    }
    Ok(())
}

/// The card's values, the place of redirects and the states of random numbers of each core, and counters of verdicts.
fn own(text: &mut String, card: &CardValues) {
    let CardValues { cpus, headroom, longest, queues, cycle_ps, .. } = *card;
    let mult = (u64::from(cycle_ps) << 22) / 1000;
    let _ = writeln!(text, "\t.section .rodata.nicety_xdp_card, \"a\", @progbits");
    object_symbol(text, "nicety_xdp_card", 24);
    let _ = writeln!(text, "\t.word {cpus}, {headroom}, {longest}, {queues}, {INTERFACE}, {mult}");
    let _ = writeln!(text, "\t.section .data.nicety_xdp_random, \"aw\", @progbits");
    object_symbol(text, "nicety_xdp_random", 4 * u64::from(cpus));
    for core in 1..=cpus {
        // Never 0, which xorshift would keep.
        let _ = writeln!(text, "\t.word {}", core.wrapping_mul(0x9e37_79b9) | 1);
    }
    for (name, bytes) in [("nicety_xdp_redirects", 8 * u64::from(cpus)), ("nicety_xdp_counts", COUNTS)] {
        let _ = writeln!(text, "\t.section .bss.{name}, \"aw\", @nobits");
        object_symbol(text, name, bytes);
        let _ = writeln!(text, "\t.zero {bytes}");
    }
}

#[cfg(test)]
mod tests;
