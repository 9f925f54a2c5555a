//! DWARF: a compilation unit with the names and places of functions. The assembler writes the lines.

use std::fmt::Write;

/// Where functions end: the label behind one.
pub(super) fn end_label(function: &str) -> String {
    format!(".L{function}_end")
}

/// The sections of a unit with functions; `word` is the directive of an address.
pub(super) fn sections(source: &str, functions: &[(String, String)], wide: bool) -> String {
    let word = if wide { ".dword" } else { ".word" };
    let size = if wide { 8 } else { 4 };
    let mut text = String::from(ABBREVIATIONS);
    text.push_str("\t.section .debug_line,\"\",@progbits\n.Lnicety_xdp_lines:\n");
    text.push_str("\t.section .debug_info,\"\",@progbits\n");
    text.push_str("\t.word .Lnicety_xdp_unit_end-.Lnicety_xdp_unit\n.Lnicety_xdp_unit:\n");
    let _ = write!(text, "\t.half 4\n\t.word .Lnicety_xdp_abbreviations\n\t.byte {size}\n");
    let _ = write!(text, "\t.byte 1\n\t.asciz \"{source}\"\n\t.word .Lnicety_xdp_lines\n");
    for (name, label) in functions {
        let end = end_label(label);
        let _ = write!(text, "\t.byte 2\n\t.asciz \"{name}\"\n\t{word} {label}\n\t.word {end}-{label}\n");
    }
    text.push_str("\t.byte 0\n.Lnicety_xdp_unit_end:\n");
    text
}

/// A unit has a name and lines; a function has a name, a begin and a length.
const ABBREVIATIONS: &str = "\t.section .debug_abbrev,\"\",@progbits\n.Lnicety_xdp_abbreviations:\n\
    \t.byte 1, 0x11, 1, 0x03, 0x08, 0x10, 0x17, 0, 0\n\
    \t.byte 2, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0\n\
    \t.byte 0\n";
