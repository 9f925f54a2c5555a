//! The spellings of units: a base unit, with a prefix if the base allows one.

use super::Quantity;
use crate::ratio::Rational;
use std::fmt::Write as _;

/// A prefix and its factor.
type Prefix = (&'static str, u64);

const PREFIXES: [Prefix; 9] = [
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
];

/// The number of decimal prefixes. They are the first entries of [`PREFIXES`].
const DECIMAL: usize = 5;

/// The dimension of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dimension {
    /// The quantity's own dimension. Its base unit is picoseconds, bytes, items, hertz, or picoseconds per byte.
    Own,
    /// Bits per second.
    Bits,
    /// Packets per second.
    Packets,
}

/// A unit without prefix.
struct Base {
    name: &'static str,
    scale: u64,
    dimension: Dimension,
    /// Number of allowed prefixes. They are the first entries of [`PREFIXES`].
    prefixes: usize,
}

const fn base(name: &'static str, scale: u64, dimension: Dimension, prefixes: usize) -> Base {
    Base { name, scale, dimension, prefixes }
}

const fn plain(name: &'static str, scale: u64) -> Base {
    base(name, scale, Dimension::Own, 0)
}

/// Microseconds have two more spellings, because Unicode has two micro signs.
const TIME: [Base; 7] = [
    plain("ps", 1),
    plain("ns", 1_000),
    plain("us", 1_000_000),
    plain("\u{b5}s", 1_000_000),
    plain("\u{3bc}s", 1_000_000),
    plain("ms", 1_000_000_000),
    plain("s", 1_000_000_000_000),
];

/// A prefix without a unit means bytes: 8k is 8 kB.
const SIZE: [Base; 2] =
    [base("B", 1, Dimension::Own, PREFIXES.len()), base("", 1, Dimension::Own, PREFIXES.len())];

const COUNT: [Base; 1] = [base("", 1, Dimension::Own, PREFIXES.len())];

const FREQUENCY: [Base; 1] = [base("Hz", 1, Dimension::Own, DECIMAL)];

const GAP: [Base; 3] = [plain("ps/B", 1), plain("ns/B", 1_000), plain("us/B", 1_000_000)];

const BANDWIDTH: [Base; 5] = [
    base("b/s", 1, Dimension::Bits, PREFIXES.len()),
    base("bps", 1, Dimension::Bits, PREFIXES.len()),
    base("bit/s", 1, Dimension::Bits, PREFIXES.len()),
    base("B/s", 8, Dimension::Bits, PREFIXES.len()),
    base("Bps", 8, Dimension::Bits, PREFIXES.len()),
];

const PACKETS: [Base; 1] = [base("pps", 1, Dimension::Packets, DECIMAL)];

fn bases(quantity: Quantity) -> impl Iterator<Item = &'static Base> {
    let (own, more): (&[Base], &[Base]) = match quantity {
        Quantity::Time => (&TIME, &[]),
        Quantity::Gap => (&GAP, &BANDWIDTH),
        Quantity::Rate => (&BANDWIDTH, &PACKETS),
        Quantity::Frequency => (&FREQUENCY, &[]),
        Quantity::Size => (&SIZE, &[]),
        Quantity::Count => (&COUNT, &[]),
        _ => (&[], &[]),
    };
    own.iter().chain(more)
}

/// The meaning of a unit's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) scale: Rational,
    pub(super) dimension: Dimension,
}

impl Base {
    /// Returns the unit with this prefix, if the base allows it. The prefix may be empty.
    fn with(&self, prefix: &str) -> Option<Unit> {
        let factor = match prefix {
            "" if self.name.is_empty() => None,
            "" => Some(1),
            _ => {
                PREFIXES[..self.prefixes].iter().find(|(name, _)| *name == prefix).map(|(_, factor)| *factor)
            }
        };
        let scale = |factor| Rational::new(u128::from(self.scale) * u128::from(factor), 1);
        factor.map(|factor| Unit { scale: scale(factor), dimension: self.dimension })
    }
}

/// Finds a unit by its name.
pub(super) fn find(quantity: Quantity, name: &str) -> Option<Unit> {
    bases(quantity).find_map(|base| base.with(name.strip_suffix(base.name)?))
}

/// Returns all names of a quantity's units, each with the unit.
pub(super) fn all(quantity: Quantity) -> impl Iterator<Item = (String, Unit)> {
    bases(quantity).flat_map(|base| {
        let prefixes = PREFIXES[..base.prefixes].iter().map(|(name, _)| *name);
        std::iter::once("")
            .chain(prefixes)
            .filter_map(|prefix| Some((format!("{prefix}{}", base.name), base.with(prefix)?)))
    })
}

/// Returns the table of units for the documentation, in Markdown.
pub fn markdown() -> String {
    let list = |names: Vec<&str>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let mut text = "| prefix | factor |\n|---|---|\n".to_owned();
    for (at, (name, factor)) in PREFIXES.iter().enumerate() {
        let kind = if at < DECIMAL { "decimal" } else { "binary" };
        let _ = writeln!(text, "| `{name}` | {factor} ({kind}) |");
    }
    text.push_str("\n| quantity | units | prefixes | example |\n|---|---|---|---|\n");
    for quantity in Quantity::MEASURED {
        let (own, shared): (Vec<_>, Vec<_>) =
            bases(quantity).partition(|base| base.dimension != Dimension::Bits);
        for bases in [shared, own].into_iter().filter(|bases| !bases.is_empty()) {
            let names =
                bases.iter().map(|base| base.name).filter(|name| !name.is_empty()).collect::<Vec<_>>();
            let units = if names.is_empty() { "none".to_owned() } else { list(names) };
            let prefixes = match bases[0].prefixes {
                0 => "none",
                DECIMAL => "decimal",
                _ => "all",
            };
            let example = match bases[0].dimension {
                Dimension::Own => quantity.example(),
                Dimension::Bits => "400 Gb/s",
                Dimension::Packets => "5 Mpps",
            };
            let _ = writeln!(text, "| {} | {units} | {prefixes} | `{example}` |", quantity.article());
        }
    }
    text
}
