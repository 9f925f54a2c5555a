//! The section with the coordinates of cities.

use super::head::{EdgeWeights, Head, shown};
use super::lines::Lines;
use super::metric::Metric;
use crate::tsp::cities::{COORDINATE_END, DISTANCE_END, DistanceTable, below_end};
use nicety::Error;
use std::collections::BTreeMap;

/// A city of the file.
pub(super) struct City {
    /// Its number in the file.
    pub(super) node: u32,
    /// Its coordinates. A third one that it does not have is 0.
    at: [f64; 3],
    line: usize,
}

/// The largest coordinate of GEO in degrees, on either side of 0.
const MOST_DEGREES: f64 = 360.0;

/// Reads `count` cities. `section` is the line of the section's name.
pub(super) fn read(
    head: &Head<'_>,
    lines: &mut Lines<'_>,
    (count, weights): (usize, EdgeWeights),
    section: usize,
) -> Result<Vec<City>, Error> {
    let axes = head.axes(weights)?;
    let mut cities: Vec<City> = Vec::with_capacity(count);
    let mut known = BTreeMap::new();
    while cities.len() < count {
        let words = lines.record(1 + axes);
        let found = cities.len();
        let Some(&(node, line)) = words.first() else {
            let text =
                format!("DIMENSION says {count} cities, but the file has {found}; is the file cut off?");
            return head.wrong(section, text);
        };
        if words.len() != 1 + axes {
            let (form, missing) = (if axes == 2 { "NUMBER X Y" } else { "NUMBER X Y Z" }, count - found);
            let text = format!(
                "a city has the form {form}; DIMENSION says {count} cities, and {missing} are still missing"
            );
            return head.wrong(line, text);
        }
        let Ok(number) = node.parse::<u32>() else {
            return head
                .wrong(line, format!("'{}' is not the number of a city; write a whole number", shown(node)));
        };
        if let Some(before) = known.insert(number, line) {
            return head.wrong(line, format!("city {number} occurs twice; it is already in line {before}"));
        }
        let mut at = [0.0; 3];
        for (axis, &(word, line)) in at.iter_mut().zip(&words[1..]) {
            *axis = coordinate(head, weights, word, line)?;
        }
        cities.push(City { node: number, at, line });
    }
    Ok(cities)
}

fn coordinate(head: &Head<'_>, weights: EdgeWeights, word: &str, line: usize) -> Result<f64, Error> {
    match word.parse::<f64>() {
        Ok(value) if weights.metric == Some(Metric::Geographical) && value.abs() > MOST_DEGREES => {
            head.wrong(line, format!("coordinate {}: GEO takes degrees and minutes, DDD.MM", shown(word)))
        }
        Ok(value) if value.is_finite() => Ok(value),
        _ => head.wrong(line, format!("'{}' is no coordinate", shown(word))),
    }
}

/// Returns the table of the cities' distances.
pub(super) fn table(head: &Head<'_>, cities: &[City], metric: Metric) -> Result<DistanceTable, Error> {
    let apart = |a: usize, b: usize| metric.distance(cities[a].at, cities[b].at);
    for (b, city) in cities.iter().enumerate() {
        for (a, other) in cities[..b].iter().enumerate() {
            if apart(a, b) >= f64::from(DISTANCE_END) {
                let correction = below_end("coordinates");
                let text = format!("too far from city {}; {correction}", other.node);
                return head.wrong(city.line, text);
            }
        }
    }
    DistanceTable::new(cities.len(), |a, b| apart(a, b) as u32)
        .or_else(|text| head.wrong(cities[0].line, text))
}

/// Returns cities with whole coordinates, moved so that the lowest coordinate of each axis is 0, which changes no distance.
/// Returns `None` if the card cannot compute their distances.
pub(super) fn plane(cities: &[City]) -> Option<Vec<(u16, u16)>> {
    let is_whole = |value: f64| value.fract() == 0.0 && value.abs() < 1e15;
    if !cities.iter().all(|city| city.at.into_iter().all(is_whole)) {
        return None;
    }
    let least = [0, 1].map(|axis| cities.iter().map(|city| city.at[axis]).fold(f64::INFINITY, f64::min));
    let point = |city: &City| {
        let [x, y] = [0, 1].map(|axis| city.at[axis] - least[axis]);
        (x.max(y) < f64::from(COORDINATE_END)).then_some((x as u16, y as u16))
    };
    cities.iter().map(point).collect()
}
