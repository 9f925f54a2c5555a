//! The section with the distances of an EXPLICIT problem.

use super::head::{Head, shown};
use super::lines::{Lines, Word};
use crate::tsp::cities::{DISTANCE_END, DistanceTable, below_end};
use nicety::Error;

/// Reads the distances of `cities` cities. `section` is the line of the section's name.
pub(super) fn read(
    head: &Head<'_>,
    lines: &mut Lines<'_>,
    cities: usize,
    section: usize,
) -> Result<DistanceTable, Error> {
    let format = head.format("EDGE_WEIGHT_SECTION", section)?;
    let total = format.pairs(cities).count();
    let mut distances: Vec<Option<u32>> = vec![None; cities * cities];
    let mut words = lines.words();
    for (done, (row, column)) in format.pairs(cities).enumerate() {
        let short = || format!("{done} of the {total} distances of {} for {cities} cities", format.name());
        let Some(word) = words.next() else {
            return head.wrong(section, format!("the section has {}; is the file cut off?", short()));
        };
        if word.0.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return head.wrong(word.1, format!("'{}' after {}", shown(word.0), short()));
        }
        // A tour has no road from a city to itself.
        let distance = if row == column { diagonal(head, word)? } else { distance(head, word)? };
        match distances[column * cities + row] {
            Some(other) if other != distance => {
                let (a, b) = (row + 1, column + 1);
                let text = format!(
                    "distance {distance} from city {a} to city {b}, but {other} back; only symmetric \
                     problems can be climbed"
                );
                return head.wrong(word.1, text);
            }
            _ => {}
        }
        distances[row * cities + column] = Some(distance);
    }
    if let Some((word, line)) = words.left() {
        let text =
            format!("'{}' after the {total} distances of {} for {cities} cities", shown(word), format.name());
        return head.wrong(line, text);
    }
    let at = |row: usize, column: usize| distances[row * cities + column];
    let either = |a, b| at(a, b).or(at(b, a)).expect("each format has each pair");
    DistanceTable::new(cities, either).or_else(|text| head.wrong(section, text))
}

fn diagonal(head: &Head<'_>, (word, line): Word<'_>) -> Result<u32, Error> {
    match word.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(0),
        _ => head.wrong(line, format!("'{}' is no distance", shown(word))),
    }
}

fn distance(head: &Head<'_>, (word, line): Word<'_>) -> Result<u32, Error> {
    let end = f64::from(DISTANCE_END);
    match word.parse::<f64>() {
        Ok(value) if value.is_nan() => head.wrong(line, format!("'{}' is no distance", shown(word))),
        Ok(value) if value < 0.0 => {
            head.wrong(line, format!("distance {}: distances are 0 or more", shown(word)))
        }
        Ok(value) if value >= end => {
            head.wrong(line, format!("distance {}: {}", shown(word), below_end("distances")))
        }
        Ok(value) if value.fract() != 0.0 => {
            let text = "TSPLIB's distances are whole numbers; multiply all distances by the same number";
            head.wrong(line, format!("distance {}: {text}", shown(word)))
        }
        Ok(value) => Ok(value as u32),
        Err(_) => head.wrong(line, format!("'{}' is no distance", shown(word))),
    }
}
