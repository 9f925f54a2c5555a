//! Errors of quantities. If a unit may mean two units, the error states both.

use super::table::{self, Dimension, Unit};
use super::{Quantity, print_gap};
use crate::ratio::Rational;
use std::fmt;

/// The reason why a text is not a value of the expected quantity, and a suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    /// The problem, as a sentence without a full stop.
    pub message: String,
    /// The probable value, without quotes.
    pub suggestion: Option<String>,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(value) => write!(f, ": write \"{value}\""),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnitError {}

pub(super) fn wrong(message: String, suggestion: Option<String>) -> UnitError {
    UnitError { message, suggestion }
}

pub(super) fn too_large(text: &str) -> UnitError {
    wrong(format!("{text} has more digits than 64 bits hold"), None)
}

/// Pairs of a word for a unit and the unit's correct spelling.
const WORDS: [(&str, &str); 4] = [("byte", "B"), ("bytes", "B"), ("packets/s", "pps"), ("p/s", "pps")];

/// Returns the beginning of the message about a text that is not a value of the expected quantity.
pub(super) fn expected(quantity: Quantity) -> String {
    match quantity {
        Quantity::Count => "expected a whole number such as 64 or 10k".to_owned(),
        _ => format!("expected {} ({})", quantity.article(), quantity.unit_list()),
    }
}

/// Returns the error for a unit that the quantity does not have.
pub(super) fn no_such_unit(quantity: Quantity, text: &str, number: &str, unit: &str) -> UnitError {
    if let Some(other) = Quantity::MEASURED.iter().find(|other| table::find(**other, unit).is_some()) {
        return wrong(format!("{}, but {text} is {}", expected(quantity), other.article()), None);
    }
    let readings = readings(quantity, unit);
    if let [(one, first), (other, second)] = &readings[..] {
        let (first, second) = (in_base(quantity, number, *first), in_base(quantity, number, *second));
        let message = format!(
            "\"{unit}\" has two readings: {number} {one} is {first}, and {number} {other} is {second}; write one of the two"
        );
        return wrong(message, None);
    }
    let meant = match &readings[..] {
        [(one, _)] => Some(one.clone()),
        _ => {
            let word = WORDS.iter().find(|(word, _)| *word == unit.to_lowercase()).map(|(_, unit)| *unit);
            word.filter(|unit| table::find(quantity, unit).is_some()).map(str::to_owned)
        }
    };
    let of = match quantity {
        Quantity::Count => "is not a prefix of a number".to_owned(),
        _ => format!("is not a unit of {}", quantity.article().trim_start_matches("a ")),
    };
    let message = format!("\"{unit}\" {of} ({})", quantity.unit_list());
    wrong(message, meant.map(|meant| format!("{number} {meant}")))
}

/// Returns the units that differ from `unit` only in upper and lower case, one for each meaning. A size or count with a
/// decimal prefix in the wrong case may also mean the binary prefix.
fn readings(quantity: Quantity, unit: &str) -> Vec<(String, Unit)> {
    let lower = unit.to_lowercase();
    let mut found: Vec<(String, Unit)> = Vec::new();
    for (name, unit) in table::all(quantity) {
        if name.to_lowercase() == lower && found.iter().all(|(_, other)| *other != unit) {
            found.push((name, unit));
        }
    }
    if let [(name, _)] = &found[..]
        && matches!(quantity, Quantity::Size | Quantity::Count)
        && let Some(prefix) = name.get(..1)
    {
        let binary = format!("{}i{}", prefix.to_uppercase(), &name[1..]);
        found.extend(table::find(quantity, &binary).map(|unit| (binary, unit)));
    }
    found
}

/// Prints a value in the quantity's base unit.
fn in_base(quantity: Quantity, number: &str, unit: Unit) -> String {
    let Some(value) = Rational::parse(number).ok().and_then(|value| value.times(unit.scale)) else {
        return "more than 64 bits hold".to_owned();
    };
    match (quantity, unit.dimension) {
        (Quantity::Gap, Dimension::Bits) => match super::gap_of(value).and_then(Rational::fraction) {
            Some((numerator, denominator)) => print_gap(numerator, denominator),
            None => format!("{value} b/s"),
        },
        (_, Dimension::Bits) => format!("{value} b/s"),
        (Quantity::Size, _) => format!("{value} B"),
        _ => value.to_string(),
    }
}
