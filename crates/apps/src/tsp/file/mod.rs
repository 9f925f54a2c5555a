//! Reads files of TSPLIB (Reinelt, ORSA Journal on Computing 3(4), 1991; TSPLIB 95). It supports all symmetric problems with
//! 5 to 256 cities, except those with distances of crystallography (XRAY1, XRAY2) and those with fixed edges.
//!
//! - `lines.rs`: lines and words.
//! - `metric.rs`: distances from coordinates.
//! - `format.rs`: the orders of distances in a file.
//! - `head.rs`: keywords, such as `TYPE: TSP`.
//! - `coordinates.rs`: cities with coordinates.
//! - `weights.rs`: distances in the file.

mod coordinates;
mod format;
mod head;
mod lines;
mod metric;
mod weights;

use super::cities::{Cities, DistanceTable};
use coordinates::City;
use head::{EdgeWeights, Head, shown};
use lines::Lines;
use nicety::Error;
use std::fs;

/// A problem that is built into nicety: 100 cities by Krolak, Felts and Nelson. The shortest tour has length 21282.
pub const KRO_A100: &str = include_str!("../kroA100.tsp");

/// Maximum bytes of a file. A matrix of 256 cities has 65536 distances, of up to ten digits.
const LONGEST: u64 = 4 << 20;

/// A problem: the cities to visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The name of the problem in the file, or the name of the file.
    pub name: String,
    /// TSPLIB's name for the kind of its distances, such as `EUC_2D`.
    pub edge_weight_type: &'static str,
    /// The cities. Coordinates are moved so that the lowest coordinate of each axis is 0.
    pub cities: Cities,
    /// The number of each city in the file. A file without coordinates numbers them from 1.
    pub nodes: Vec<u32>,
}

/// Reads a file. If no file `kroA100` or `kroA100.tsp` exists, these names stand for the built-in problem.
///
/// # Errors
/// [`Error::Input`] with the line of the error.
pub fn read(path: &str) -> Result<Instance, Error> {
    let unreadable =
        |error: std::io::Error| Error::Input(format!("{path}: cannot read it ({})", plain(&error)));
    let size = match fs::metadata(path) {
        Err(_) if matches!(path, "kroA100" | "kroA100.tsp") => return parse(KRO_A100, path),
        Err(error) => return Err(unreadable(error)),
        Ok(metadata) => metadata.len(),
    };
    if size > LONGEST {
        return Err(Error::Input(format!(
            "{path}: {size} bytes are too long for a file of at most 256 cities in TSPLIB's format"
        )));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Error::Input(format!("{path}: this is not text, so it is not in TSPLIB's format")))?;
    parse(&text, path)
}

/// Returns the text of a system error, without its number.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// Reads the text of a file. `place` is the name of the file in errors.
///
/// # Errors
/// As [`read`].
pub fn parse(text: &str, place: &str) -> Result<Instance, Error> {
    let mut reader = Reader { head: Head::new(place), lines: Lines::new(text), cities: None, table: None };
    reader.sections()?;
    reader.instance()
}

/// The parts of a file that are read.
struct Reader<'t> {
    head: Head<'t>,
    lines: Lines<'t>,
    /// The cities of a NODE_COORD_SECTION.
    cities: Option<(Vec<City>, EdgeWeights)>,
    /// The distances of an EDGE_WEIGHT_SECTION.
    table: Option<(DistanceTable, EdgeWeights)>,
}

impl Reader<'_> {
    fn sections(&mut self) -> Result<(), Error> {
        while let Some((line, number)) = self.lines.next() {
            let any = self.cities.is_some() || self.table.is_some();
            match line.trim_end_matches(':').trim_end() {
                "EOF" => break,
                // The end of a list, which some programs write after other sections too.
                "-1" if any => {}
                "NODE_COORD_SECTION" => self.coordinates(number)?,
                "EDGE_WEIGHT_SECTION" => self.weights(number)?,
                "DISPLAY_DATA_SECTION" => self.lines.skip_numbers(),
                section if is_section(section) => return self.refuse(section, number),
                _ => self.head.read(line, number)?,
            }
        }
        Ok(())
    }

    fn refuse(&self, section: &str, line: usize) -> Result<(), Error> {
        let why = match section {
            "FIXED_EDGES_SECTION" => {
                "a climb does not keep fixed edges; remove the section, which gives another problem"
            }
            "EDGE_DATA_SECTION" => "a climb uses roads between all cities, not only those of a graph",
            _ => {
                "the sections of a problem are NODE_COORD_SECTION, EDGE_WEIGHT_SECTION and \
                 DISPLAY_DATA_SECTION"
            }
        };
        self.head.wrong(line, format!("{}: {why}", shown(section)))
    }

    fn coordinates(&mut self, line: usize) -> Result<(), Error> {
        if self.cities.is_some() {
            return self.head.wrong(line, "a second NODE_COORD_SECTION; remove one of the two");
        }
        let (count, weights) = self.head.problem("NODE_COORD_SECTION", line)?;
        let cities = coordinates::read(&self.head, &mut self.lines, (count, weights), line)?;
        self.cities = Some((cities, weights));
        Ok(())
    }

    fn weights(&mut self, line: usize) -> Result<(), Error> {
        if self.table.is_some() {
            return self.head.wrong(line, "a second EDGE_WEIGHT_SECTION; remove one of the two");
        }
        let (count, weights) = self.head.problem("EDGE_WEIGHT_SECTION", line)?;
        if weights.metric.is_some() {
            let text = format!(
                "EDGE_WEIGHT_SECTION, but EDGE_WEIGHT_TYPE is {}; write EXPLICIT for the distances of the \
                 section",
                weights.name
            );
            return self.head.wrong(line, text);
        }
        self.table = Some((weights::read(&self.head, &mut self.lines, count, line)?, weights));
        Ok(())
    }

    fn instance(self) -> Result<Instance, Error> {
        let (cities, nodes, weights) = match (self.table, self.cities) {
            (Some((table, weights)), _) => {
                let nodes = (1..=table.rows().count() as u32).collect();
                (Cities::Table(table), nodes, weights)
            }
            (None, Some((cities, weights))) => {
                let Some(metric) = weights.metric else {
                    let text =
                        "the file ends without an EDGE_WEIGHT_SECTION, which has the distances of EXPLICIT";
                    return self.head.wrong(self.lines.last, text);
                };
                let plane = if weights.name == "EUC_2D" { coordinates::plane(&cities) } else { None };
                let nodes = cities.iter().map(|city| city.node).collect();
                let cities = match plane {
                    Some(points) => Cities::Plane(points),
                    None => Cities::Table(coordinates::table(&self.head, &cities, metric)?),
                };
                (cities, nodes, weights)
            }
            (None, None) => {
                let text = "the file ends without a NODE_COORD_SECTION, which has the cities, and without an \
                            EDGE_WEIGHT_SECTION, which has distances";
                return self.head.wrong(self.lines.last, text);
            }
        };
        Ok(Instance { name: self.head.name().to_owned(), edge_weight_type: weights.name, cities, nodes })
    }
}

fn is_section(line: &str) -> bool {
    line.ends_with("_SECTION")
        && !line.contains(|character: char| character == ':' || character.is_whitespace())
}

#[cfg(test)]
mod tests;
