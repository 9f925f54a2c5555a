//! `bpf_trace_printk` and `bpf_trace_vprintk`: texts as in the kernel's trace.

use super::Machine;
use super::call::Returned;
use super::run::Registers;
use crate::helper::Helper;
use crate::map::Errno;

/// Bytes of the longest text.
const LONGEST: usize = 512;

/// A part of a format behind `%`.
struct Conversion {
    flags: String,
    width: usize,
    /// 1, 2, 4 or 8.
    bytes: usize,
    letter: u8,
}

/// The letters behind `%p`.
#[derive(Clone, Copy)]
enum Pointer {
    Address,
    /// `%pks` and `%pus`.
    Text,
    /// `%pI4`, `%pi4`, `%pI6` and `%pi6`.
    Internet {
        letter: u8,
        version: u8,
    },
}

impl Pointer {
    /// Takes the letters that Linux's helpers know (`bpf_bprintf_prepare`), and all letters and digits behind them.
    fn read(rest: &mut &[u8]) -> Option<Pointer> {
        let found = match rest {
            [b'k' | b'u', b's', ..] => Pointer::Text,
            [letter @ (b'i' | b'I'), version @ (b'4' | b'6'), ..] => {
                Pointer::Internet { letter: *letter, version: *version }
            }
            [b'K' | b'x' | b's' | b'S' | b'B', ..] => Pointer::Address,
            [next, ..] if next.is_ascii_alphanumeric() => return None,
            _ => Pointer::Address,
        };
        let letters = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        *rest = &rest[letters..];
        Some(found)
    }
}

impl Machine {
    pub(crate) fn print(&mut self, helper: Helper, r: &Registers) -> Returned {
        let size = r[2] as u32 as usize;
        let format = self.copied(r[1], size)?;
        let Some(end) = format.iter().position(|&byte| byte == 0) else {
            return Ok(Errno::EINVAL.returned());
        };
        let arguments: Vec<u64> = if helper == Helper::TraceVprintk {
            let length = r[4] as u32 as usize;
            if !length.is_multiple_of(8) || length > 12 * 8 {
                return Ok(Errno::EINVAL.returned());
            }
            let bytes = self.copied(r[3], length)?;
            bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
        } else {
            r[3..6].to_vec()
        };
        let text = match self.formatted(&format[..end], &arguments) {
            Ok(text) => text,
            Err(error) => return Ok(error.returned()),
        };
        let length = text.len() as u64;
        if self.room(text.len()) {
            self.printed.push(text);
        }
        Ok(length)
    }

    fn formatted(&mut self, format: &[u8], arguments: &[u64]) -> Result<String, Errno> {
        let mut text = String::new();
        let mut arguments = arguments.iter();
        let mut rest = format;
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            if byte != b'%' {
                text.push(char::from(byte));
                continue;
            }
            if rest.first() == Some(&b'%') {
                text.push('%');
                rest = &rest[1..];
                continue;
            }
            let conversion = Conversion::read(&mut rest).ok_or(Errno::EINVAL)?;
            let pointer = match conversion.letter {
                b'p' => Pointer::read(&mut rest).ok_or(Errno::EINVAL)?,
                _ => Pointer::Address,
            };
            let value = *arguments.next().ok_or(Errno::EINVAL)?;
            if let Pointer::Internet { letter, version } = pointer {
                text.push_str(&self.internet_address(value, letter, version));
                continue;
            }
            let shown = match (conversion.letter, pointer) {
                (b's', _) | (_, Pointer::Text) => self.string(value),
                _ => conversion.shown(value).ok_or(Errno::EINVAL)?,
            };
            text.push_str(&conversion.padded(shown));
        }
        text.truncate(text.floor_char_boundary(LONGEST));
        Ok(text)
    }

    /// The IP address at an address; zeros where there is none. Linux gives it no width.
    fn internet_address(&mut self, at: u64, letter: u8, version: u8) -> String {
        let length = if version == b'4' { 4 } else { 16 };
        let bytes = self.copied(at, length).map_or_else(|_| vec![0; length], |bytes| bytes.to_vec());
        let parts: Vec<String> = match (version, letter) {
            (b'4', b'I') => bytes.iter().map(u8::to_string).collect(),
            (b'4', _) => bytes.iter().map(|byte| format!("{byte:03}")).collect(),
            _ => bytes.chunks(2).map(|pair| format!("{:02x}{:02x}", pair[0], pair[1])).collect(),
        };
        parts.join(if version == b'4' {
            "."
        } else if letter == b'I' {
            ":"
        } else {
            ""
        })
    }

    /// The text at an address, up to its end or that of its memory.
    fn string(&mut self, at: u64) -> String {
        let byte = |machine: &mut Machine, offset| {
            let bytes = machine.bytes(at.wrapping_add(offset), 1, super::memory::Access::Read)?;
            (bytes[0] != 0).then(|| char::from(bytes[0]))
        };
        (0..LONGEST as u64).map_while(|offset| byte(self, offset)).collect()
    }
}

impl Conversion {
    fn read(rest: &mut &[u8]) -> Option<Conversion> {
        let take = |rest: &mut &[u8], wanted: fn(u8) -> bool| {
            let count = rest.iter().take_while(|&&byte| wanted(byte)).count();
            let (found, behind) = rest.split_at(count);
            *rest = behind;
            String::from_utf8_lossy(found).into_owned()
        };
        let flags = take(rest, |byte| b"-+ #0".contains(&byte));
        let width = take(rest, |byte| byte.is_ascii_digit());
        let size = take(rest, |byte| b"hlz".contains(&byte));
        let (&letter, behind) = rest.split_first()?;
        *rest = behind;
        let bytes = match size.as_str() {
            "hh" => 1,
            "h" => 2,
            "" if letter == b'p' => 8,
            "" => 4,
            "l" | "ll" | "z" => 8,
            _ => return None,
        };
        Some(Conversion { flags, width: width.parse::<usize>().unwrap_or(0).min(LONGEST), bytes, letter })
    }

    fn shown(&self, value: u64) -> Option<String> {
        let unsigned = value & (u64::MAX >> (64 - 8 * self.bytes));
        let unused = 64 - 8 * self.bytes as u32;
        let signed = ((value << unused) as i64) >> unused;
        let alternate = self.flags.contains('#');
        Some(match self.letter {
            b'd' | b'i' if self.flags.contains('+') => format!("{signed:+}"),
            b'd' | b'i' => signed.to_string(),
            b'u' => unsigned.to_string(),
            b'x' if alternate => format!("{unsigned:#x}"),
            b'x' => format!("{unsigned:x}"),
            b'X' if alternate => format!("0X{unsigned:X}"),
            b'X' => format!("{unsigned:X}"),
            b'c' => char::from(value as u8).to_string(),
            b'p' => format!("{value:016x}"),
            _ => return None,
        })
    }

    fn padded(&self, text: String) -> String {
        let missing = self.width.saturating_sub(text.len());
        if self.flags.contains('-') {
            return text + &" ".repeat(missing);
        }
        if self.flags.contains('0') && self.letter != b's' {
            let sign = text.len() - text.trim_start_matches(['-', '+']).len();
            return format!("{}{}{}", &text[..sign], "0".repeat(missing), &text[sign..]);
        }
        " ".repeat(missing) + &text
    }
}
