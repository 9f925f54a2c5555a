//! Parses quantities: a decimal number and a unit. The result is exact, because the parser uses no floating-point
//! numbers.
//!
//! This is the only parser of sizes, counts, times and rates in specs, options and traffic expressions.
//! `docs/reference/units.md` has the table of its units.

mod error;
mod quantity;
mod table;
#[cfg(test)]
mod tests;

pub use error::UnitError;
pub use quantity::Quantity;
pub use table::markdown;

use crate::ratio::Rational;
use error::{no_such_unit, too_large, wrong};
use nicety_types::{Duration, Frequency, Gap};
use table::{Dimension, Unit};

/// Reads a time such as "250 ns" or "6.7 ns".
///
/// # Errors
/// No number, no unit, a unit of another quantity, a fraction of a picosecond, 2^64 ps or more.
pub fn parse_time(text: &str) -> Result<Duration, UnitError> {
    let ps = scaled(Quantity::Time, text)?;
    match ps.whole() {
        Some(ps) => Ok(Duration::from_ps(ps)),
        None if ps.is_whole() => Err(too_large(text)),
        None => {
            let nearest = ps.nearest().map(|ps| print_time(Duration::from_ps(ps)));
            Err(wrong(format!("{text} is not a whole number of picoseconds"), nearest))
        }
    }
}

/// Reads a gap per byte such as "15.6 ps/B", or a bandwidth such as "400 Gb/s" or "150 GiB/s".
///
/// # Errors
/// No number, no unit, a unit of another quantity, a bandwidth of zero, more digits than 64 bits hold.
pub fn parse_gap(text: &str) -> Result<Gap, UnitError> {
    let (numerator, denominator) = gap_fraction(text)?;
    Ok(Gap::new(numerator, denominator))
}

/// Reads a gap or bandwidth. Returns the picoseconds per byte as numerator and denominator in lowest terms.
pub(crate) fn gap_fraction(text: &str) -> Result<(u64, u64), UnitError> {
    scaled(Quantity::Gap, text)?.fraction().ok_or_else(|| too_large(text))
}

/// Reads a frequency such as "2.5 GHz".
///
/// # Errors
/// No number, no unit, a unit of another quantity, zero, a fraction of a hertz, or more than 1000 GHz. Above 1000 GHz,
/// a cycle is shorter than a picosecond.
pub fn parse_frequency(text: &str) -> Result<Frequency, UnitError> {
    let hz = scaled(Quantity::Frequency, text)?;
    match hz.whole() {
        Some(0) => Err(wrong("a clock of 0 Hz never ticks".to_owned(), None)),
        Some(hz) if hz <= 1_000_000_000_000 => Ok(Frequency::from_hz(hz)),
        None if !hz.is_whole() => {
            let nearest = hz.nearest().filter(|&hz| hz > 0).map(|hz| print_frequency(Frequency::from_hz(hz)));
            Err(wrong(format!("{text} is not a whole number of hertz"), nearest))
        }
        _ => Err(wrong(format!("{text} is more than 1000 GHz: a cycle takes at least 1 ps"), None)),
    }
}

/// Reads a size such as "4096 B" or "8 MiB", in bytes.
///
/// # Errors
/// No number, no unit, a unit of another quantity, a fraction of a byte, 2^64 bytes or more.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let bytes = scaled(Quantity::Size, text)?;
    match bytes.whole() {
        Some(bytes) => Ok(bytes),
        None if bytes.is_whole() => Err(too_large(text)),
        None => Err(wrong(format!("{text} is not a whole number of bytes"), bytes.nearest().map(print_size))),
    }
}

/// Reads the size in an option, in bytes. The unit may be omitted: "4096", "4 KiB".
///
/// # Errors
/// Those of [`parse_size`].
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    match parts(text.trim()) {
        (number, "") if !number.is_empty() => parse_size(&format!("{number} B")),
        _ => parse_size(text),
    }
}

/// Reads a whole number such as "64", "10k" or "4Ki".
///
/// # Errors
/// No number, an unknown prefix, a fraction, 2^64 or more.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    let count = match parts(text.trim()) {
        (number, "") if !number.is_empty() => number_of(number)?,
        _ => scaled(Quantity::Count, text)?,
    };
    match count.whole() {
        Some(count) => Ok(count),
        None if count.is_whole() => Err(too_large(text)),
        None => Err(wrong(format!("{text} is not a whole number"), None)),
    }
}

/// A rate in bits or packets per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerSecond {
    /// Bits per second.
    Bits(u64),
    /// Packets per second.
    Packets(u64),
}

impl std::fmt::Display for PerSecond {
    /// Prints the rate in a suitable unit, without rounding. [`parse_rate`] returns the same rate.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (value, unit) = match *self {
            PerSecond::Bits(bits) => (bits, "b/s"),
            PerSecond::Packets(packets) => (packets, "pps"),
        };
        let (value, prefix) = prefixed(value);
        write!(f, "{value} {prefix}{unit}")
    }
}

/// Reads a rate such as "10 Gb/s", "1 GB/s" or "5 Mpps".
///
/// # Errors
/// No number, no unit, a unit of another quantity, a fraction of a bit or packet, 2^64 or more.
pub fn parse_rate(text: &str) -> Result<PerSecond, UnitError> {
    let (value, unit) = measured(Quantity::Rate, text)?;
    let value = value.times(unit.scale).ok_or_else(|| too_large(text))?;
    let (what, of): (_, fn(u64) -> PerSecond) = match unit.dimension {
        Dimension::Packets => ("packets", PerSecond::Packets),
        _ => ("bits", PerSecond::Bits),
    };
    match value.whole() {
        Some(rate) => Ok(of(rate)),
        None if value.is_whole() => Err(too_large(text)),
        None => Err(wrong(format!("{text} is not a whole number of {what} a second"), None)),
    }
}

/// Converts a quantity to its base unit: 100 ns, 100ns and 0.1 us all become `100000 ps`. Returns other text unchanged.
///
/// A size is returned without a unit, because 8k and 8 kB are the same size.
pub fn in_base_unit(text: &str) -> String {
    // A bandwidth is parsed as a gap first, so only packets per second are parsed as a rate.
    const BASES: [(Quantity, &str); 5] = [
        (Quantity::Size, ""),
        (Quantity::Time, "ps"),
        (Quantity::Frequency, "Hz"),
        (Quantity::Gap, "ps/B"),
        (Quantity::Rate, "pps"),
    ];
    let (_, name) = parts(text.trim());
    let read = || {
        if let (false, Ok(count)) = (name.is_empty(), parse_count(text)) {
            return Some(count.to_string());
        }
        let (quantity, base) = BASES.iter().find(|(quantity, _)| table::find(*quantity, name).is_some())?;
        let value = match quantity {
            Quantity::Rate => {
                measured(*quantity, text).ok().and_then(|(value, unit)| value.times(unit.scale))
            }
            _ => scaled(*quantity, text).ok(),
        };
        Some(format!("{} {base}", value?).trim_end().to_owned())
    };
    read().unwrap_or_else(|| text.to_owned())
}

/// Prints a time in the form of a spec. [`parse_time`] returns the same time.
pub fn print_time(time: Duration) -> String {
    time.to_string()
}

/// Prints a size in the largest binary unit that divides it. [`parse_size`] returns the same size.
pub fn print_size(bytes: u64) -> String {
    let binary = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match binary.iter().find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift) {
        Some((unit, shift)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} B"),
    }
}

/// Prints a frequency in a suitable unit, without rounding. [`parse_frequency`] returns the same frequency.
pub fn print_frequency(frequency: Frequency) -> String {
    let (value, prefix) = prefixed(frequency.hz());
    format!("{value} {prefix}Hz")
}

/// Returns a number divided by the largest suitable decimal prefix up to G, and this prefix.
fn prefixed(value: u64) -> (Rational, &'static str) {
    let (prefix, scale) = match value {
        1_000_000_000.. => ("G", 1_000_000_000),
        1_000_000.. => ("M", 1_000_000),
        1_000.. => ("k", 1_000),
        _ => ("", 1),
    };
    (Rational::new(u128::from(value), scale), prefix)
}

/// Prints a gap of `numerator / denominator` picoseconds per byte. The text is a finite decimal if there is one, or
/// else a fraction. [`parse_gap`] returns the same gap.
pub fn print_gap(numerator: u64, denominator: u64) -> String {
    format!("{} ps/B", Rational::new(u128::from(numerator), u128::from(denominator)))
}

/// Parses a number and a unit, and returns the value in the quantity's base unit.
fn scaled(quantity: Quantity, text: &str) -> Result<Rational, UnitError> {
    let (value, unit) = measured(quantity, text)?;
    let value = value.times(unit.scale).ok_or_else(|| too_large(text.trim()))?;
    if unit.dimension == Dimension::Own {
        return Ok(value);
    }
    if value.is_zero() {
        return Err(wrong("a bandwidth of zero moves nothing".to_owned(), None));
    }
    gap_of(value).ok_or_else(|| too_large(text.trim()))
}

/// Converts a bandwidth in bits per second to picoseconds per byte. The bandwidth must not be zero.
fn gap_of(bits: Rational) -> Option<Rational> {
    Rational::new(8_000_000_000_000, 1).divided_by(bits)
}

/// Reads a number and its unit.
fn measured(quantity: Quantity, text: &str) -> Result<(Rational, Unit), UnitError> {
    let text = text.trim();
    let (number, name) = split(quantity, text)?;
    let unit = table::find(quantity, name).ok_or_else(|| no_such_unit(quantity, text, number, name))?;
    Ok((number_of(number)?, unit))
}

fn number_of(number: &str) -> Result<Rational, UnitError> {
    Rational::parse(number).map_err(|why| wrong(format!("{number} {why}"), None))
}

/// Splits a text into a number and its unit, which may be empty.
fn parts(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || "._,+/".contains(c))).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

fn split(quantity: Quantity, text: &str) -> Result<(&str, &str), UnitError> {
    if text.starts_with('-') {
        return Err(wrong(format!("{} cannot be negative", quantity.article()), None));
    }
    let (number, unit) = parts(text);
    if number.is_empty() {
        let message = match quantity {
            Quantity::Count => error::expected(quantity),
            _ => format!("expected {}: a number and a unit ({})", quantity.article(), quantity.unit_list()),
        };
        return Err(wrong(message, None));
    }
    if unit.is_empty() {
        let message = format!("{} needs a unit ({})", quantity.article(), quantity.unit_list());
        let suggestion = match quantity {
            Quantity::Size if number.bytes().all(|b| b.is_ascii_digit()) => Some(format!("{number} B")),
            _ => None,
        };
        return Err(wrong(message, suggestion));
    }
    Ok((number, unit))
}
