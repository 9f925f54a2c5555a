//! Quantities of a spec: a decimal number and a unit, read exactly, without floating point.

use crate::ratio::Rational;
use nicety_types::{Duration, Frequency, Gap};

/// The quantity of a parameter. It determines the allowed units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    /// A time in whole picoseconds.
    Time,
    /// Time per byte, or its inverse, a bandwidth.
    Gap,
    /// A clock frequency in whole hertz.
    Frequency,
    /// An amount of memory or data in whole bytes.
    Size,
    /// A number of items.
    Count,
    /// A share or factor without a unit.
    Ratio,
    /// One of a few words.
    Choice,
    /// Any text.
    Text,
    /// True or false.
    Flag,
}

impl Quantity {
    /// The quantity in a sentence: 'a time'.
    pub const fn article(self) -> &'static str {
        match self {
            Quantity::Time => "a time",
            Quantity::Gap => "a gap a byte or a bandwidth",
            Quantity::Frequency => "a frequency",
            Quantity::Size => "a size",
            Quantity::Count => "a whole number",
            Quantity::Ratio => "a ratio",
            Quantity::Choice => "a choice",
            Quantity::Text => "a text",
            Quantity::Flag => "true or false",
        }
    }

    /// An example in TOML, without quotes.
    pub const fn example(self) -> &'static str {
        match self {
            Quantity::Time => "250 ns",
            Quantity::Gap => "15.6 ps/B",
            Quantity::Frequency => "2.5 GHz",
            Quantity::Size => "4096 B",
            Quantity::Count => "8",
            Quantity::Ratio => "0.5",
            Quantity::Choice | Quantity::Text => "text",
            Quantity::Flag => "true",
        }
    }

    /// Whether it is in quotes in TOML.
    pub const fn is_quoted(self) -> bool {
        !matches!(self, Quantity::Count | Quantity::Ratio | Quantity::Flag)
    }

    const fn units(self) -> &'static [Unit] {
        match self {
            Quantity::Time => &TIME,
            Quantity::Gap => &GAP,
            Quantity::Frequency => &FREQUENCY,
            Quantity::Size => &SIZE,
            _ => &[],
        }
    }

    /// The units, for messages.
    const fn unit_list(self) -> &'static str {
        match self {
            Quantity::Time => "ps, ns, us, ms, s",
            Quantity::Gap => "ps/B, ns/B, or a bandwidth in Gb/s, MB/s, GB/s, GiB/s",
            Quantity::Frequency => "Hz, kHz, MHz, GHz",
            Quantity::Size => "B, KiB, MiB, GiB",
            _ => "",
        }
    }
}

/// The reason why a text is not the expected quantity, and a suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    /// The problem, as a sentence without a full stop.
    pub message: String,
    /// The probable value, without quotes.
    pub suggestion: Option<String>,
}

impl std::fmt::Display for UnitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(value) => write!(f, ": write \"{value}\""),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnitError {}

/// A unit's name, and its size as a fraction of the quantity's base unit.
struct Unit {
    name: &'static str,
    scale: u64,
    /// Whether it is a bandwidth, the inverse of a gap.
    inverse: bool,
    /// Whether it counts bits, not bytes.
    bits: bool,
}

const fn unit(name: &'static str, scale: u64) -> Unit {
    Unit { name, scale, inverse: false, bits: false }
}

const fn bandwidth(name: &'static str, scale: u64, bits: bool) -> Unit {
    Unit { name, scale, inverse: true, bits }
}

/// In picoseconds. Unicode has two micro signs.
const TIME: [Unit; 7] = [
    unit("ps", 1),
    unit("ns", 1_000),
    unit("us", 1_000_000),
    unit("\u{b5}s", 1_000_000),
    unit("\u{3bc}s", 1_000_000),
    unit("ms", 1_000_000_000),
    unit("s", 1_000_000_000_000),
];

/// In hertz.
const FREQUENCY: [Unit; 4] =
    [unit("Hz", 1), unit("kHz", 1_000), unit("MHz", 1_000_000), unit("GHz", 1_000_000_000)];

/// In bytes. k, M and G are decimal; Ki, Mi and Gi are powers of two.
const SIZE: [Unit; 8] = [
    unit("B", 1),
    unit("kB", 1_000),
    unit("MB", 1_000_000),
    unit("GB", 1_000_000_000),
    unit("KiB", 1 << 10),
    unit("MiB", 1 << 20),
    unit("GiB", 1 << 30),
    unit("TiB", 1 << 40),
];

/// Gaps in picoseconds per byte; bandwidths in bytes or bits per second.
const GAP: [Unit; 14] = [
    unit("ps/B", 1),
    unit("ns/B", 1_000),
    unit("us/B", 1_000_000),
    bandwidth("b/s", 1, true),
    bandwidth("kb/s", 1_000, true),
    bandwidth("Mb/s", 1_000_000, true),
    bandwidth("Gb/s", 1_000_000_000, true),
    bandwidth("Tb/s", 1_000_000_000_000, true),
    bandwidth("kB/s", 1_000, false),
    bandwidth("MB/s", 1_000_000, false),
    bandwidth("GB/s", 1_000_000_000, false),
    bandwidth("KiB/s", 1 << 10, false),
    bandwidth("MiB/s", 1 << 20, false),
    bandwidth("GiB/s", 1 << 30, false),
];

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

/// Reads a gap or bandwidth as picoseconds per byte, a fraction in lowest terms.
pub(crate) fn gap_fraction(text: &str) -> Result<(u64, u64), UnitError> {
    scaled(Quantity::Gap, text)?.fraction().ok_or_else(|| too_large(text))
}

/// Reads a frequency such as "2.5 GHz".
///
/// # Errors
/// No number, no unit, a unit of another quantity, zero, a fraction of a hertz, or more than 1000 GHz. Above that, a
/// cycle is shorter than a picosecond.
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

/// Prints a frequency in a suitable unit with all its digits. [`parse_frequency`] returns the same frequency.
pub fn print_frequency(frequency: Frequency) -> String {
    let hz = frequency.hz();
    let (unit, scale) = match hz {
        1_000_000_000.. => ("GHz", 1_000_000_000),
        1_000_000.. => ("MHz", 1_000_000),
        1_000.. => ("kHz", 1_000),
        _ => ("Hz", 1),
    };
    format!("{} {unit}", Rational::new(u128::from(hz), scale))
}

/// Prints a gap of `numerator / denominator` picoseconds per byte: a decimal if it terminates, else a fraction.
/// [`parse_gap`] returns the same gap.
pub fn print_gap(numerator: u64, denominator: u64) -> String {
    format!("{} ps/B", Rational::new(u128::from(numerator), u128::from(denominator)))
}

/// Splits number and unit, and returns the value in the quantity's base unit.
fn scaled(quantity: Quantity, text: &str) -> Result<Rational, UnitError> {
    let text = text.trim();
    let (number, unit_name) = split(quantity, text)?;
    let Some(unit) = quantity.units().iter().find(|u| u.name == unit_name) else {
        return Err(no_such_unit(quantity, text, number, unit_name));
    };
    let value = Rational::parse(number).map_err(|why| wrong(format!("{number} {why}"), None))?;
    let scale = Rational::new(u128::from(unit.scale), if unit.bits { 8 } else { 1 });
    if !unit.inverse {
        return value.times(scale).ok_or_else(|| too_large(text));
    }
    if value.is_zero() {
        return Err(wrong("a bandwidth of zero moves nothing".to_owned(), None));
    }
    let seconds = Rational::new(1_000_000_000_000, 1);
    value.times(scale).and_then(|rate| seconds.divided_by(rate)).ok_or_else(|| too_large(text))
}

fn split(quantity: Quantity, text: &str) -> Result<(&str, &str), UnitError> {
    if text.starts_with('-') {
        return Err(wrong(format!("{} cannot be negative", quantity.article()), None));
    }
    let end = text.find(|c: char| !(c.is_ascii_digit() || "._,+/".contains(c))).unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    if number.is_empty() {
        let message =
            format!("expected {}: a number and a unit ({})", quantity.article(), quantity.unit_list());
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

/// Common spellings of units, and their spellings in a spec.
const ALIASES: [(&str, &str); 16] = [
    ("kbps", "kb/s"),
    ("mbps", "Mb/s"),
    ("gbps", "Gb/s"),
    ("tbps", "Tb/s"),
    ("kbit/s", "kb/s"),
    ("mbit/s", "Mb/s"),
    ("gbit/s", "Gb/s"),
    ("tbit/s", "Tb/s"),
    ("bytes", "B"),
    ("byte", "B"),
    ("k", "KiB"),
    ("m", "MiB"),
    ("g", "GiB"),
    ("ki", "KiB"),
    ("mi", "MiB"),
    ("gi", "GiB"),
];

fn no_such_unit(quantity: Quantity, text: &str, number: &str, unit: &str) -> UnitError {
    let others = [Quantity::Time, Quantity::Gap, Quantity::Frequency, Quantity::Size];
    if let Some(other) = others.iter().find(|q| q.units().iter().any(|u| u.name == unit)) {
        let message = format!(
            "expected {} ({}), but {text} is {}",
            quantity.article(),
            quantity.unit_list(),
            other.article()
        );
        return wrong(message, None);
    }
    let lower = unit.to_lowercase();
    let alias = ALIASES.iter().find(|(name, _)| *name == lower).map(|(_, meant)| *meant);
    let alias = alias.filter(|meant| quantity.units().iter().any(|u| u.name == *meant));
    // Case distinguishes bits from bytes. A wrong case is corrected only if a single unit remains.
    let mut same: Vec<_> = quantity.units().iter().filter(|u| u.name.to_lowercase() == lower).collect();
    let meant = alias.or(if same.len() == 1 { same.pop().map(|u| u.name) } else { None });
    let message = format!(
        "\"{unit}\" is not a unit of {} ({})",
        quantity.article().trim_start_matches("a "),
        quantity.unit_list()
    );
    wrong(message, meant.map(|meant| format!("{number} {meant}")))
}

fn too_large(text: &str) -> UnitError {
    wrong(format!("{text} has more digits than 64 bits hold"), None)
}

fn wrong(message: String, suggestion: Option<String>) -> UnitError {
    UnitError { message, suggestion }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_are_exact() {
        assert_eq!(parse_time("6.7 ns"), Ok(Duration::from_ps(6_700)));
        assert_eq!(parse_time("400ps"), Ok(Duration::from_ps(400)));
        assert_eq!(parse_time(" 1.5 us "), Ok(Duration::from_ps(1_500_000)));
        assert_eq!(parse_time("2 ms"), Ok(Duration::from_us(2_000)));
        assert_eq!(parse_time("3 \u{b5}s"), Ok(Duration::from_us(3)));
        assert_eq!(parse_time("0 ns"), Ok(Duration::ZERO));
        assert_eq!(parse_gap("15.6 ps/B"), Ok(Gap::new(78, 5)));
        assert_eq!(parse_gap("400 Gb/s"), Ok(Gap::new(20, 1)));
        assert_eq!(parse_gap("285 MB/s"), Ok(Gap::from_bytes_per_s(285_000_000)));
        assert_eq!(parse_gap("150 GiB/s"), Ok(Gap::from_bytes_per_s(150 << 30)));
        assert_eq!(parse_gap("0 ps/B"), Ok(Gap::ZERO));
        assert_eq!(parse_gap("1/3 ps/B"), Ok(Gap::new(1, 3)));
        assert_eq!(parse_frequency("2.5 GHz"), Ok(Frequency::from_hz(2_500_000_000)));
        assert_eq!(parse_size("4 KiB"), Ok(4_096));
        assert_eq!(parse_size("1.5 KiB"), Ok(1_536));
        assert_eq!(parse_size("2 MB"), Ok(2_000_000));
    }

    #[track_caller]
    fn refused<T: std::fmt::Debug>(parsed: Result<T, UnitError>, expected: &str) {
        assert_eq!(parsed.unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_wrong_time_gets_a_suggestion() {
        refused(parse_time("250"), "a time needs a unit (ps, ns, us, ms, s)");
        refused(parse_time("fast"), "expected a time: a number and a unit (ps, ns, us, ms, s)");
        refused(parse_time("-5 ns"), "a time cannot be negative");
        refused(parse_time("0.0334 ns"), "0.0334 ns is not a whole number of picoseconds: write \"33 ps\"");
        refused(parse_time("4 KiB"), "expected a time (ps, ns, us, ms, s), but 4 KiB is a size");
        refused(parse_time("250 NS"), "\"NS\" is not a unit of time (ps, ns, us, ms, s): write \"250 ns\"");
        refused(parse_time("1.2.3 ns"), "1.2.3 is not a number");
        refused(parse_time("1,5 ns"), "1,5 is not a number: the decimal point is '.'");
        refused(parse_time("1e3 ns"), "\"e3 ns\" is not a unit of time (ps, ns, us, ms, s)");
        refused(parse_time("99999999999 s"), "99999999999 s has more digits than 64 bits hold");
        refused(
            parse_time("99999999999999.5 ps"),
            "99999999999999.5 ps is not a whole number of picoseconds: write \"100 s\"",
        );
    }

    #[test]
    fn wrong_sizes_gaps_and_frequencies_too() {
        refused(parse_size("4096"), "a size needs a unit (B, KiB, MiB, GiB): write \"4096 B\"");
        refused(parse_size("4 KB"), "\"KB\" is not a unit of size (B, KiB, MiB, GiB): write \"4 kB\"");
        refused(parse_size("4 k"), "\"k\" is not a unit of size (B, KiB, MiB, GiB): write \"4 KiB\"");
        refused(parse_size("0.3 B"), "0.3 B is not a whole number of bytes: write \"0 B\"");
        refused(parse_size("99999999999 TiB"), "99999999999 TiB has more digits than 64 bits hold");
        refused(parse_gap("0 Gb/s"), "a bandwidth of zero moves nothing");
        refused(parse_gap("1/0 ps/B"), "1/0 is not a number");
        let gap = "gap a byte or a bandwidth (ps/B, ns/B, or a bandwidth in Gb/s, MB/s, GB/s, GiB/s)";
        refused(parse_gap("400 Gbps"), &format!("\"Gbps\" is not a unit of {gap}: write \"400 Gb/s\""));
        refused(parse_gap("400 gb/s"), &format!("\"gb/s\" is not a unit of {gap}"));
        refused(parse_frequency("0 GHz"), "a clock of 0 Hz never ticks");
        refused(parse_frequency("0.5 Hz"), "0.5 Hz is not a whole number of hertz: write \"1 Hz\"");
        refused(parse_frequency("0.2 Hz"), "0.2 Hz is not a whole number of hertz");
        refused(parse_frequency("1001 GHz"), "1001 GHz is more than 1000 GHz: a cycle takes at least 1 ps");
    }

    proptest! {
        #[test]
        fn printed_quantities_read_back(n in any::<u64>(), d in 1..u64::MAX, shift in 0..64u32) {
            let n = n >> shift;
            prop_assert_eq!(parse_time(&print_time(Duration::from_ps(n))), Ok(Duration::from_ps(n)));
            prop_assert_eq!(parse_size(&print_size(n)), Ok(n));
            prop_assert_eq!(parse_gap(&print_gap(n, d)), Ok(Gap::new(n, d)));
            let hz = n % 1_000_000_000_000 + 1;
            prop_assert_eq!(parse_frequency(&print_frequency(Frequency::from_hz(hz))), Ok(Frequency::from_hz(hz)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*|[0-9./_,+-]{0,40} ?[a-zA-Z/]{0,5}") {
            let _ = (parse_time(&text), parse_gap(&text), parse_frequency(&text), parse_size(&text));
        }

        #[test]
        fn decimals_are_not_rounded(whole in 0..1_000_000u64, ps in 0..1_000u64) {
            let text = format!("{whole}.{ps:03} ns");
            prop_assert_eq!(parse_time(&text), Ok(Duration::from_ps(whole * 1_000 + ps)));
        }
    }
}
