//! The handlers' `printf`: the card reads format and arguments from the handler's memory.

use crate::Processors;
use crate::running::Running;
use nicety_hpu::{AddressSpace, TrapKind};
use nicety_nic_core::{LINES_KEPT, LogLine, Logged, lines};
use schemars::JsonSchema;
use serde::Serialize;

/// Counters of handlers' output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Printed {
    /// Lines of handlers that the card has shown: at most 1000 ([`LINES_KEPT`]), and the rest of one call.
    #[serde(rename = "handler_lines_printed")]
    pub lines: u64,
    /// Lines of handlers that it has only counted.
    #[serde(rename = "handler_lines_suppressed")]
    pub suppressed: u64,
}

impl Processors {
    /// Prints for a handler. Returns the number of bytes.
    pub fn print(&self, running: &mut Running, text: u32, arguments: u32) -> Result<u32, TrapKind> {
        let wide = self.hpu.core.isa.is_wide();
        let text = running.with_space(|space| format(space, text, Arguments { at: arguments, wide }))?;
        let length = text.len() as u32;
        running.busy += self.hpu.printf + self.hpu.printf_byte * u64::from(length);
        let mut printed = self.printed.get();
        let count = lines(&text).count() as u64;
        if printed.lines < LINES_KEPT {
            printed.lines += count;
            let (time, node, hpu) = (self.sim.now(), self.node, running.thread.core);
            (self.log)(&Logged::Line(LogLine { time, node, hpu, text }));
        } else {
            printed.suppressed += count;
        }
        self.printed.set(printed);
        Ok(length)
    }
}

/// Longest line of a handler's output, in bytes. The rest is cut.
const LINE: usize = 1024;
/// Longest string read from a handler's memory, in bytes.
const STRING: u32 = 512;

/// The variable arguments of a call, in the memory layout of the calling convention. They are in words in RV32, and in
/// 8 bytes each in RV64.
pub(crate) struct Arguments {
    at: u32,
    wide: bool,
}

impl Arguments {
    fn word(&mut self, space: &AddressSpace<'_>) -> Result<u32, TrapKind> {
        let bytes = space.read(self.at, 4)?;
        self.at = self.at.wrapping_add(if self.wide { 8 } else { 4 });
        Ok(u32::from_le_bytes(*bytes.first_chunk().expect("four bytes were asked for")))
    }

    /// 64-bit arguments lie at multiples of 8.
    fn long(&mut self, space: &AddressSpace<'_>) -> Result<u64, TrapKind> {
        self.at = self.at.wrapping_add(7) & !7;
        let bytes = space.read(self.at, 8)?;
        self.at = self.at.wrapping_add(8);
        Ok(u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes were asked for")))
    }

    fn pointer(&mut self, space: &AddressSpace<'_>) -> Result<u64, TrapKind> {
        if self.wide { self.long(space) } else { self.word(space).map(u64::from) }
    }
}

fn string(space: &AddressSpace<'_>, address: u32, most: u32) -> Result<Vec<u8>, TrapKind> {
    let mut bytes = Vec::new();
    for i in 0..most {
        match space.read(address.wrapping_add(i), 1)?[0] {
            0 => break,
            byte => bytes.push(byte),
        }
    }
    Ok(bytes)
}

/// One conversion of a format: flags, width, precision, and whether it is 64 bits wide.
#[derive(Default)]
struct Conversion {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    long: bool,
    /// The significant bits of a shorter argument.
    bits: u32,
}

impl Conversion {
    /// Joins sign or prefix, digits and padding.
    fn number(&self, sign: &str, digits: String) -> String {
        let digits = match self.precision {
            Some(0) if digits == "0" => String::new(),
            Some(precision) => format!("{digits:0>precision$}"),
            None => digits,
        };
        let length = sign.len() + digits.len();
        if self.zero && !self.left && self.precision.is_none() && length < self.width {
            return format!("{sign}{digits:0>width$}", width = self.width - sign.len());
        }
        self.pad(format!("{sign}{digits}"))
    }

    fn pad(&self, text: String) -> String {
        let width = self.width;
        if self.left { format!("{text:<width$}") } else { format!("{text:>width$}") }
    }

    fn unsigned(&self, arguments: &mut Arguments, space: &AddressSpace<'_>) -> Result<u64, TrapKind> {
        let value = if self.long { arguments.long(space)? } else { u64::from(arguments.word(space)?) };
        Ok(if self.bits < 64 { value & ((1 << self.bits) - 1) } else { value })
    }

    fn signed(&self, arguments: &mut Arguments, space: &AddressSpace<'_>) -> Result<String, TrapKind> {
        let value = self.unsigned(arguments, space)?;
        let unused = 64 - self.bits;
        let value = ((value << unused) as i64) >> unused;
        let sign = match value {
            ..0 => "-",
            _ if self.plus => "+",
            _ if self.space => " ",
            _ => "",
        };
        Ok(self.number(sign, value.unsigned_abs().to_string()))
    }
}

/// Returns the text of a `printf` with its format at `format`.
///
/// # Errors
/// When format, arguments or a string are outside the handler's memory.
pub(crate) fn format(
    space: &AddressSpace<'_>,
    format: u32,
    mut arguments: Arguments,
) -> Result<String, TrapKind> {
    let format = string(space, format, LINE as u32)?;
    let mut text = Vec::new();
    let mut rest = format.as_slice();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            text.push(byte);
            continue;
        }
        let (conversion, letter, after) = parse(rest, &mut arguments, space)?;
        let written = convert(&conversion, letter, &mut arguments, space)?;
        match written {
            Some(written) => text.extend(written),
            // An unknown conversion is printed unchanged.
            None => {
                text.push(b'%');
                text.extend(&rest[..rest.len() - after.len()]);
            }
        }
        rest = after;
        if text.len() >= LINE {
            break;
        }
    }
    text.truncate(LINE);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn parse<'f>(
    mut rest: &'f [u8],
    arguments: &mut Arguments,
    space: &AddressSpace<'_>,
) -> Result<(Conversion, Option<u8>, &'f [u8]), TrapKind> {
    let mut c = Conversion { bits: 32, ..Conversion::default() };
    while let Some((&flag, after)) = rest.split_first() {
        match flag {
            b'-' => c.left = true,
            b'0' => c.zero = true,
            b'+' => c.plus = true,
            b' ' => c.space = true,
            b'#' => c.alternate = true,
            _ => break,
        }
        rest = after;
    }
    if let Some(width) = number(&mut rest, arguments, space)? {
        c.left |= width < 0;
        c.width = (width.unsigned_abs() as usize).min(LINE);
    }
    if let Some((b'.', after)) = rest.split_first() {
        rest = after;
        let precision = number(&mut rest, arguments, space)?.unwrap_or(0);
        c.precision = usize::try_from(precision).ok().map(|p| p.min(LINE));
    }
    while let Some((&length, after)) = rest.split_first() {
        match length {
            b'h' => c.bits /= 2,
            b'l' if after.first() == Some(&b'l') => (c.long, c.bits) = (true, 64),
            b'j' => (c.long, c.bits) = (true, 64),
            b'l' | b'z' | b't' if arguments.wide => (c.long, c.bits) = (true, 64),
            b'l' | b'z' | b't' => {}
            _ => break,
        }
        rest = after;
    }
    match rest.split_first() {
        Some((&letter, after)) => Ok((c, Some(letter), after)),
        None => Ok((c, None, rest)),
    }
}

/// Reads a number from the format or, for '*', from the arguments.
fn number(
    rest: &mut &[u8],
    arguments: &mut Arguments,
    space: &AddressSpace<'_>,
) -> Result<Option<i32>, TrapKind> {
    if let Some((b'*', after)) = rest.split_first() {
        *rest = after;
        return Ok(Some(arguments.word(space)? as i32));
    }
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let (written, after) = rest.split_at(digits);
    *rest = after;
    let value = written.iter().fold(0i32, |v, b| v.saturating_mul(10).saturating_add(i32::from(b - b'0')));
    Ok((digits > 0).then_some(value))
}

fn convert(
    c: &Conversion,
    letter: Option<u8>,
    arguments: &mut Arguments,
    space: &AddressSpace<'_>,
) -> Result<Option<Vec<u8>>, TrapKind> {
    let text = match letter {
        Some(b'%') => "%".to_string(),
        Some(b'd' | b'i') => c.signed(arguments, space)?,
        Some(b'u') => c.number("", c.unsigned(arguments, space)?.to_string()),
        Some(b'o') => {
            c.number(if c.alternate { "0" } else { "" }, format!("{:o}", c.unsigned(arguments, space)?))
        }
        Some(b'x') => {
            c.number(if c.alternate { "0x" } else { "" }, format!("{:x}", c.unsigned(arguments, space)?))
        }
        Some(b'X') => {
            c.number(if c.alternate { "0X" } else { "" }, format!("{:X}", c.unsigned(arguments, space)?))
        }
        Some(b'p') => c.number("0x", format!("{:x}", arguments.pointer(space)?)),
        Some(b'c') => c.pad(char::from(arguments.word(space)? as u8).to_string()),
        Some(b's') => {
            let most = c.precision.map_or(STRING, |p| (p as u32).min(STRING));
            let argument = arguments.pointer(space)?;
            let address = u32::try_from(argument).map_err(|_| TrapKind::ArgumentBeyond { argument })?;
            c.pad(String::from_utf8_lossy(&string(space, address, most)?).into_owned())
        }
        _ => return Ok(None),
    };
    Ok(Some(text.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_hpu::Region;
    use proptest::prelude::*;

    const BASE: u32 = 0x1000;

    fn printed(format_text: &str, words: &[u32]) -> String {
        printed_by(false, format_text, words)
    }

    /// Returns the output with the format at the start of memory and argument words from offset 512 on.
    fn printed_by(wide: bool, format_text: &str, words: &[u32]) -> String {
        let mut memory = vec![0; 1024];
        memory[..format_text.len()].copy_from_slice(format_text.as_bytes());
        memory[256..262].copy_from_slice(b"hello\0");
        for (i, word) in words.iter().enumerate() {
            memory[512 + 4 * i..516 + 4 * i].copy_from_slice(&word.to_le_bytes());
        }
        let space = AddressSpace::new().with(Region::memory("memory", BASE, &mut memory));
        format(&space, BASE, Arguments { at: BASE + 512, wide }).unwrap()
    }

    #[test]
    fn conversions_follow_the_c_standard() {
        assert_eq!(printed("%d %i %u", &[-5i32 as u32, 7, -1i32 as u32]), "-5 7 4294967295");
        assert_eq!(
            printed("[%5d] [%-5d] [%05d] [%+d]", &[42, 42, -42i32 as u32, 42]),
            "[   42] [42   ] [-0042] [+42]"
        );
        assert_eq!(
            printed("%x %X %#x %o %08x", &[0xbeef, 0xbeef, 0xbeef, 8, 0xbeef]),
            "beef BEEF 0xbeef 10 0000beef"
        );
        assert_eq!(printed("%s|%8s|%-8s|%.2s", &[BASE + 256; 4]), "hello|   hello|hello   |he");
        assert_eq!(printed("%c%c %% %p", &[b'o'.into(), b'k'.into(), 0x1000]), "ok % 0x1000");
        assert_eq!(printed("%hhu %hd", &[0x1ff, 0xffff]), "255 -1");
        assert_eq!(printed("%*d|%-*d|%.*d", &[4, 1, 3, 2, 3, 7]), "   1|2  |007");
        assert_eq!(printed("%zu %ld", &[9, -9i32 as u32]), "9 -9");
    }

    #[test]
    fn long_arguments_are_aligned_to_eight_bytes() {
        assert_eq!(printed("%d %llu %lld", &[1, 0, 0, 1, 0xffff_fffe, 0xffff_ffff]), "1 4294967296 -2");
    }

    #[test]
    fn unknown_conversions_are_printed_unchanged() {
        assert_eq!(printed("100%! %y %-5q| %", &[]), "100%! %y %-5q| %");
        assert_eq!(printed("%f", &[0]), "%f");
    }

    #[test]
    fn a_string_outside_the_memory_fails() {
        let mut memory = *b"%s\0\0\x00\x00\x00\x00";
        let space = AddressSpace::new().with(Region::memory("memory", BASE, &mut memory));
        assert!(matches!(
            format(&space, BASE, Arguments { at: BASE + 4, wide: false }),
            Err(TrapKind::OutOfRegion { address: 0, .. })
        ));
    }

    #[test]
    fn arguments_of_rv64_are_8_bytes_each() {
        let low = |value: u32| [value, u32::MAX];
        let words = [low(1), [0, 1], [3, 0], low(-4i32 as u32), [BASE + 256, 0], [0x10, 0x20]].concat();
        assert_eq!(printed_by(true, "%d %ld %zu %hd %s %p", &words), "1 4294967296 3 -4 hello 0x2000000010");
        let mut memory = *b"%s\0\0\0\0\0\0\0\0\0\0\x01\0\0\0";
        let space = AddressSpace::new().with(Region::memory("memory", BASE, &mut memory));
        let text = format(&space, BASE, Arguments { at: BASE + 8, wide: true });
        assert_eq!(text, Err(TrapKind::ArgumentBeyond { argument: 1 << 32 }));
    }

    proptest! {
        #[test]
        fn no_format_panics(text in "[ -~]{0,200}", words in prop::collection::vec(any::<u32>(), 0..100), wide: bool) {
            let mut memory = vec![0; 1024];
            memory[..text.len()].copy_from_slice(text.as_bytes());
            for (i, word) in words.iter().enumerate() {
                memory[512 + 4 * i..516 + 4 * i].copy_from_slice(&word.to_le_bytes());
            }
            let space = AddressSpace::new().with(Region::memory("memory", BASE, &mut memory));
            if let Ok(text) = format(&space, BASE, Arguments { at: BASE + 512, wide }) {
                prop_assert!(text.len() <= 3 * LINE);
            }
        }
    }
}
