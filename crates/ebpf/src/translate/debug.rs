//! DWARF: a compilation unit with the names and places of functions. The assembler writes the lines.

use std::fmt::Write;

/// Where functions end: the label behind one.
pub(super) fn end_label(function: &str) -> String {
    format!(".L{function}_end")
}

/// A trap of an unverified program.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    /// Its label.
    pub label: String,
    /// The reason.
    pub text: String,
    /// The number of the file, and the line.
    pub place: Option<(usize, u32)>,
}

impl Refusal {
    /// The label behind it.
    pub fn end(&self) -> String {
        end_label(&self.label)
    }
}

/// A function of the unit.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// Its name.
    pub name: String,
    /// Its label.
    pub label: String,
    /// Its traps.
    pub refusals: Vec<Refusal>,
}

/// The sections of a unit with functions; `word` is the directive of an address.
pub(super) fn sections(source: &str, functions: &[Unit], wide: bool) -> String {
    let word = if wide { ".dword" } else { ".word" };
    let size = if wide { 8 } else { 4 };
    let mut text = String::from(ABBREVIATIONS);
    text.push_str("\t.section .debug_line,\"\",@progbits\n.Lnicety_xdp_lines:\n");
    text.push_str("\t.section .debug_info,\"\",@progbits\n");
    text.push_str("\t.word .Lnicety_xdp_unit_end-.Lnicety_xdp_unit\n.Lnicety_xdp_unit:\n");
    let _ = write!(text, "\t.half 4\n\t.word .Lnicety_xdp_abbreviations\n\t.byte {size}\n");
    let _ = write!(text, "\t.byte 1\n\t.asciz \"{source}\"\n\t.word .Lnicety_xdp_lines\n");
    for Unit { name, label, refusals } in functions {
        let end = end_label(label);
        let kind = if refusals.is_empty() { 2 } else { 3 };
        let _ =
            write!(text, "\t.byte {kind}\n\t.asciz \"{name}\"\n\t{word} {label}\n\t.word {end}-{label}\n");
        for refusal in refusals {
            let Refusal { label, text: reason, place } = refusal;
            let ((file, line), end) = (place.unwrap_or((1, 0)), refusal.end());
            // As clang names its own traps: a function that is inlined there.
            let _ = write!(
                text,
                "\t.byte 4\n\t.asciz \"__clang_trap_msg$XDP${reason}\"\n\t{word} {label}\n\t.word {end}-{label}\n\
                 \t.half {file}\n\t.word {line}\n"
            );
        }
        if !refusals.is_empty() {
            text.push_str("\t.byte 0\n");
        }
    }
    text.push_str("\t.byte 0\n.Lnicety_xdp_unit_end:\n");
    text
}

/// A unit has a name and lines. A function has a name, a begin and a length. Its traps have a file and a line as well.
const ABBREVIATIONS: &str = "\t.section .debug_abbrev,\"\",@progbits\n.Lnicety_xdp_abbreviations:\n\
    \t.byte 1, 0x11, 1, 0x03, 0x08, 0x10, 0x17, 0, 0\n\
    \t.byte 2, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0\n\
    \t.byte 3, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0\n\
    \t.byte 4, 0x1d, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0x58, 0x05, 0x59, 0x06, 0, 0\n\
    \t.byte 0\n";
