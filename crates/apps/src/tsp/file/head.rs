//! The keywords of a file, such as `TYPE: TSP`.

use super::format::Format;
use super::metric::Metric;
use nicety::Error;
use std::collections::BTreeMap;

/// The keywords that a file has had so far.
pub(super) struct Head<'t> {
    place: &'t str,
    /// Each keyword, with its value and its line number.
    fields: BTreeMap<&'t str, (&'t str, usize)>,
}

/// The source of distances, from EDGE_WEIGHT_TYPE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EdgeWeights {
    pub(super) name: &'static str,
    /// The rule for distances of coordinates; `None` if the file has the distances.
    pub(super) metric: Option<Metric>,
    /// Number of coordinates of a city.
    axes: usize,
}

const fn weights(name: &'static str, metric: Option<Metric>, axes: usize) -> EdgeWeights {
    EdgeWeights { name, metric, axes }
}

const EDGE_WEIGHTS: [EdgeWeights; 10] = [
    weights("EUC_2D", Some(Metric::Euclidean), 2),
    weights("EUC_3D", Some(Metric::Euclidean), 3),
    weights("CEIL_2D", Some(Metric::Ceiling), 2),
    weights("ATT", Some(Metric::Att), 2),
    weights("GEO", Some(Metric::Geographical), 2),
    weights("MAN_2D", Some(Metric::Manhattan), 2),
    weights("MAN_3D", Some(Metric::Manhattan), 3),
    weights("MAX_2D", Some(Metric::Maximum), 2),
    weights("MAX_3D", Some(Metric::Maximum), 3),
    weights("EXPLICIT", None, 2),
];

/// Keywords that change the meaning of the problem. A file has each of them once.
const KEPT: [&str; 5] = ["TYPE", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT", "NODE_COORD_TYPE", "DIMENSION"];

/// Keywords that do not change distances.
const IGNORED: [&str; 4] = ["NAME", "COMMENT", "DISPLAY_DATA_TYPE", "EDGE_DATA_FORMAT"];

impl<'t> Head<'t> {
    pub(super) fn new(place: &'t str) -> Head<'t> {
        Head { place, fields: BTreeMap::new() }
    }

    /// Returns an error at a line of the file.
    pub(super) fn wrong<T>(&self, line: usize, what: impl AsRef<str>) -> Result<T, Error> {
        Err(Error::Input(format!("{}:{line}: {}", self.place, what.as_ref())))
    }

    /// The name of the problem, or else the name of the file.
    pub(super) fn name(&self) -> &'t str {
        self.fields.get("NAME").map_or(self.place, |&(name, _)| name)
    }

    /// Reads a line such as `TYPE: TSP`.
    pub(super) fn read(&mut self, line: &'t str, number: usize) -> Result<(), Error> {
        let Some((key, value)) = line.split_once(':') else {
            let shown = shown(line);
            return self.wrong(number, format!("'{shown}': a line is KEYWORD: VALUE, a section, or EOF"));
        };
        let (key, value) = (key.trim(), value.trim());
        if key == "TYPE" && value.split_whitespace().next() != Some("TSP") {
            let text = format!("TYPE {value}: only symmetric problems, TYPE TSP, can be climbed");
            return self.wrong(number, text);
        }
        if IGNORED.contains(&key) {
            self.fields.insert(key, (value, number));
            return Ok(());
        }
        if !KEPT.contains(&key) {
            let shown = shown(key);
            return self.wrong(number, format!("'{shown}' is no keyword of a symmetric problem"));
        }
        match self.fields.insert(key, (value, number)) {
            Some((_, before)) => {
                self.wrong(number, format!("{key} occurs twice; it is already in line {before}"))
            }
            None => Ok(()),
        }
    }

    /// Returns the value of a keyword that must precede `section`, which is in this line.
    fn need(&self, key: &str, section: &str, line: usize) -> Result<(&'t str, usize), Error> {
        match self.fields.get(key) {
            Some(&found) => Ok(found),
            None => self.wrong(line, format!("no {key} before {section}")),
        }
    }

    /// Returns the number of cities, and the source of their distances, at the first line of a section.
    pub(super) fn problem(&self, section: &str, line: usize) -> Result<(usize, EdgeWeights), Error> {
        self.need("TYPE", section, line)?;
        let (value, number) = self.need("EDGE_WEIGHT_TYPE", section, line)?;
        let Some(&weights) = EDGE_WEIGHTS.iter().find(|weights| weights.name == value) else {
            let names = EDGE_WEIGHTS.map(|weights| weights.name).join(", ");
            return self.wrong(
                number,
                format!(
                    "EDGE_WEIGHT_TYPE {}: write one of {names}; EXPLICIT takes any distances in an \
                     EDGE_WEIGHT_SECTION",
                    shown(value)
                ),
            );
        };
        Ok((self.dimension(section, line)?, weights))
    }

    fn dimension(&self, section: &str, line: usize) -> Result<usize, Error> {
        let (value, number) = self.need("DIMENSION", section, line)?;
        match value.parse::<usize>() {
            Ok(count @ 5..=256) => Ok(count),
            Ok(count) => {
                self.wrong(number, format!("DIMENSION {count}: the card's program takes 5 to 256 cities"))
            }
            Err(_) => self.wrong(
                number,
                format!("DIMENSION '{}': write a number of cities, as in DIMENSION: 100", shown(value)),
            ),
        }
    }

    /// Returns the number of coordinates of a city.
    pub(super) fn axes(&self, weights: EdgeWeights) -> Result<usize, Error> {
        let Some(&(value, line)) = self.fields.get("NODE_COORD_TYPE") else { return Ok(weights.axes) };
        let axes = match value {
            "TWOD_COORDS" => 2,
            "THREED_COORDS" => 3,
            // Some programs write this beside coordinates.
            "NO_COORDS" => weights.axes,
            _ => {
                let text = format!(
                    "NODE_COORD_TYPE {}: write TWOD_COORDS, THREED_COORDS or NO_COORDS",
                    shown(value)
                );
                return self.wrong(line, text);
            }
        };
        if weights.metric.is_some() && axes != weights.axes {
            let text = format!(
                "NODE_COORD_TYPE is {value}, but EDGE_WEIGHT_TYPE {} takes {} coordinates",
                weights.name, weights.axes
            );
            return self.wrong(line, text);
        }
        Ok(axes)
    }

    /// Returns the order of the distances in EDGE_WEIGHT_SECTION, which is in this line.
    pub(super) fn format(&self, section: &str, line: usize) -> Result<Format, Error> {
        let (value, number) = self.need("EDGE_WEIGHT_FORMAT", section, line)?;
        match Format::of(value) {
            Some(format) => Ok(format),
            None => self.wrong(
                number,
                format!("EDGE_WEIGHT_FORMAT {}: write one of {}", shown(value), Format::names()),
            ),
        }
    }
}

/// Returns a text of the file as errors show it.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}
