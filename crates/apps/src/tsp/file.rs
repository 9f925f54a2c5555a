//! Reads files of TSPLIB (Reinelt, ORSA Journal on Computing 3(4), 1991). It supports the problems that the card's program can
//! solve. These are symmetric, and have EUC_2D distances between cities with whole coordinates.

use nicety::Error;
use std::collections::BTreeMap;
use std::fs;

/// A problem that is built into nicety: 100 cities by Krolak, Felts and Nelson. The shortest tour has length 21282.
pub const KRO_A100: &str = include_str!("kroA100.tsp");

/// Maximum bytes of a file. A file with 256 cities has a few thousand.
const LONGEST: u64 = 1 << 20;

/// Maximum coordinate that the card's program supports, after the cities are moved to the origin.
const FARTHEST: i64 = 32_767;

/// A problem: the cities to visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The name of the problem in the file, or the name of the file.
    pub name: String,
    /// Coordinates of the cities. They are moved so that the lowest coordinate of each axis is 0.
    pub cities: Vec<(u16, u16)>,
    /// The number of each city in the file.
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
        .map_err(|_| Error::Input(format!("{path}: this is no text, so no file in TSPLIB's format")))?;
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
    Parser { place, fields: BTreeMap::new() }.parse(text)
}

struct Parser<'t> {
    place: &'t str,
    /// The keywords of the head, each with its value and its line number.
    fields: BTreeMap<&'t str, (&'t str, usize)>,
}

/// The numbers of the cities, and their coordinates.
type Numbered = (Vec<u32>, Vec<(i64, i64)>);

/// Keywords that do not change distances.
const IGNORED: [&str; 5] = ["NAME", "COMMENT", "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE", "EDGE_DATA_FORMAT"];

impl<'t> Parser<'t> {
    fn wrong<T>(&self, line: usize, what: impl AsRef<str>) -> Result<T, Error> {
        Err(Error::Input(format!("{}:{line}: {}", self.place, what.as_ref())))
    }

    fn parse(mut self, text: &'t str) -> Result<Instance, Error> {
        let mut lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
        let mut coordinates = None;
        let mut last = 0;
        while let Some((line, number)) = lines.next() {
            last = number;
            match line {
                "" => {}
                "EOF" => break,
                "NODE_COORD_SECTION" if coordinates.is_some() => {
                    return self.wrong(number, "a second NODE_COORD_SECTION; there is one");
                }
                "NODE_COORD_SECTION" => {
                    let count = self.check_head(number)?;
                    coordinates = Some(self.coordinates(count, number, &mut lines)?);
                }
                _ => self.field(line, number)?,
            }
        }
        match coordinates {
            Some((nodes, points)) => {
                let (name, _) = self.fields.get("NAME").copied().unwrap_or((self.place, 0));
                Ok(Instance { name: name.to_owned(), cities: self.moved(&points)?, nodes })
            }
            None => {
                self.wrong(last.max(1), "the file ends without a NODE_COORD_SECTION, which has the cities")
            }
        }
    }

    /// Reads a line of the head, such as `TYPE: TSP`.
    fn field(&mut self, line: &'t str, number: usize) -> Result<(), Error> {
        let (key, value) = match line.split_once(':') {
            Some((key, value)) => (key.trim(), value.trim()),
            None if line.ends_with("_SECTION") => {
                return self.wrong(
                    number,
                    format!("{line}: of the sections of TSPLIB, only NODE_COORD_SECTION is understood"),
                );
            }
            None => {
                let shown: String = line.chars().take(40).collect();
                return self.wrong(
                    number,
                    format!("'{shown}': a line is KEYWORD: VALUE, or NODE_COORD_SECTION, or EOF"),
                );
            }
        };
        match key {
            "TYPE" if value != "TSP" => {
                self.wrong(number, format!("TYPE {value}: only symmetric problems, TYPE TSP, can be climbed"))
            }
            "EDGE_WEIGHT_TYPE" if value != "EUC_2D" => self.wrong(
                number,
                format!(
                    "EDGE_WEIGHT_TYPE {value}: the card's program knows EUC_2D only, distances in the plane rounded \
                     to the nearest whole number"
                ),
            ),
            "TYPE" | "EDGE_WEIGHT_TYPE" | "DIMENSION" => self.keep(key, value, number),
            _ if IGNORED.contains(&key) => {
                self.fields.insert(key, (value, number));
                Ok(())
            }
            _ => {
                let shown: String = key.chars().take(40).collect();
                self.wrong(number, format!("'{shown}' is no keyword of a problem with EUC_2D distances"))
            }
        }
    }

    fn keep(&mut self, key: &'t str, value: &'t str, number: usize) -> Result<(), Error> {
        match self.fields.insert(key, (value, number)) {
            Some((_, before)) => self.wrong(number, format!("{key} a second time; it is in line {before}")),
            None => Ok(()),
        }
    }

    /// Checks that the head has all required keywords. Returns the number of cities.
    fn check_head(&self, line: usize) -> Result<usize, Error> {
        for key in ["TYPE", "EDGE_WEIGHT_TYPE", "DIMENSION"] {
            if !self.fields.contains_key(key) {
                return self.wrong(line, format!("no {key} before NODE_COORD_SECTION"));
            }
        }
        let (value, number) = self.fields["DIMENSION"];
        match value.parse::<usize>() {
            Ok(count @ 5..=256) => Ok(count),
            Ok(count) => {
                self.wrong(number, format!("DIMENSION {count}: the card's program takes 5 to 256 cities"))
            }
            Err(_) => {
                self.wrong(number, format!("DIMENSION '{value}': a number of cities, as in DIMENSION: 100"))
            }
        }
    }

    fn coordinates(
        &self,
        count: usize,
        section: usize,
        lines: &mut impl Iterator<Item = (&'t str, usize)>,
    ) -> Result<Numbered, Error> {
        let (mut nodes, mut points) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut known = BTreeMap::new();
        for (line, number) in lines.filter(|(line, _)| !line.is_empty()).take(count) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [node, x, y] = words[..] else {
                let missing = count - nodes.len();
                return self.wrong(
                    number,
                    format!(
                        "a city is NUMBER X Y; DIMENSION says {count} cities, and {missing} are still to come"
                    ),
                );
            };
            let Ok(node) = node.parse::<u32>() else {
                return self.wrong(number, format!("'{node}' is not the number of a city; they are whole"));
            };
            if let Some(before) = known.insert(node, number) {
                return self.wrong(number, format!("city {node} a second time; it is in line {before}"));
            }
            nodes.push(node);
            points.push((self.coordinate(x, number)?, self.coordinate(y, number)?));
        }
        if nodes.len() < count {
            let found = nodes.len();
            return self.wrong(
                section,
                format!("DIMENSION says {count} cities, and the file has {found}; is it cut off?"),
            );
        }
        Ok((nodes, points))
    }

    fn coordinate(&self, word: &str, line: usize) -> Result<i64, Error> {
        match word.parse::<f64>() {
            Ok(value) if value.fract() == 0.0 && value.abs() < 1e15 => Ok(value as i64),
            Ok(value) if value.is_finite() => self.wrong(
                line,
                format!(
                    "coordinate {word}: the card's program takes whole ones; multiply all by the same number"
                ),
            ),
            _ => self.wrong(line, format!("'{word}' is no coordinate")),
        }
    }

    /// Moves the cities so that the lowest coordinate of each axis is 0. This changes no distance.
    fn moved(&self, points: &[(i64, i64)]) -> Result<Vec<(u16, u16)>, Error> {
        let least = |of: fn(&(i64, i64)) -> i64| points.iter().map(of).min().unwrap_or(0);
        let (left, low) = (least(|point| point.0), least(|point| point.1));
        let farthest = points.iter().map(|&(x, y)| (x - left).max(y - low)).max().unwrap_or(0);
        if farthest > FARTHEST {
            return Err(Error::Input(format!(
                "{}: the cities are {farthest} apart on one axis, and the card's program takes {FARTHEST} at most; \
                 divide all coordinates by the same number",
                self.place
            )));
        }
        Ok(points.iter().map(|&(x, y)| ((x - left) as u16, (y - low) as u16)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(head: &str, cities: &str) -> Result<Instance, String> {
        parse(&format!("{head}\nNODE_COORD_SECTION\n{cities}\nEOF\n"), "f.tsp")
            .map_err(|error| error.to_string())
    }

    const HEAD: &str = "NAME : square\nTYPE: TSP\nDIMENSION: 5\nEDGE_WEIGHT_TYPE : EUC_2D";
    const CITIES: &str = "1 0 0\n 2 10 0\n3\t1e1 10.0\n4 0 10\n9 -5 +5";

    #[test]
    fn cities_are_moved_to_the_origin() {
        let read = file(HEAD, CITIES).unwrap();
        assert_eq!(read.name, "square");
        assert_eq!(read.nodes, [1, 2, 3, 4, 9]);
        assert_eq!(read.cities, [(5, 0), (15, 0), (15, 10), (5, 10), (0, 5)]);
        let shipped = super::read("kroA100").unwrap();
        assert_eq!(super::read("kroA100.tsp").unwrap().cities, shipped.cities);
        assert_eq!((shipped.cities.len(), shipped.nodes[99]), (100, 100));
        // The city has coordinates 1380 and 939, and is moved by 10 and 5.
        let least = |axis: fn(&(u16, u16)) -> u16| shipped.cities.iter().map(axis).min();
        assert_eq!((least(|city| city.0), least(|city| city.1)), (Some(0), Some(0)));
    }

    #[test]
    fn errors_name_their_line() {
        for (head, cities, text) in [
            ("TYPE: ATSP", "", "f.tsp:1: TYPE ATSP: only symmetric problems, TYPE TSP"),
            (
                "TYPE: TSP\nEDGE_WEIGHT_TYPE: GEO",
                "",
                "f.tsp:2: EDGE_WEIGHT_TYPE GEO: the card's program knows EUC_2D",
            ),
            ("TYPE: TSP", "", "f.tsp:2: no EDGE_WEIGHT_TYPE before NODE_COORD_SECTION"),
            ("TYPE: TSP\nTYPE: TSP", "", "f.tsp:2: TYPE a second time; it is in line 1"),
            ("CAPACITY: 5", "", "f.tsp:1: 'CAPACITY' is no keyword"),
            (
                "EDGE_WEIGHT_SECTION",
                "",
                "f.tsp:1: EDGE_WEIGHT_SECTION: of the sections of TSPLIB, only NODE_COORD",
            ),
            ("hello", "", "f.tsp:1: 'hello': a line is KEYWORD: VALUE"),
            (
                HEAD,
                "1 0 0\n2 10 0",
                "f.tsp:8: a city is NUMBER X Y; DIMENSION says 5 cities, and 3 are still to come",
            ),
            (HEAD, "1 0 0\n1 10 0", "f.tsp:7: city 1 a second time; it is in line 6"),
            (HEAD, "one 0 0", "f.tsp:6: 'one' is not the number of a city"),
            (HEAD, "1 0.5 0", "f.tsp:6: coordinate 0.5: the card's program takes whole ones"),
            (HEAD, "1 0 nan", "f.tsp:6: 'nan' is no coordinate"),
            (HEAD, &CITIES.replace("-5", "-32770"), "f.tsp: the cities are 32780 apart on one axis"),
            (HEAD, &format!("{CITIES}\nNODE_COORD_SECTION"), "f.tsp:11: a second NODE_COORD_SECTION"),
            (HEAD, &format!("{CITIES}\n10 1 1"), "f.tsp:11: '10 1 1': a line is KEYWORD: VALUE"),
            (
                &HEAD.replace('5', "4"),
                CITIES,
                "f.tsp:3: DIMENSION 4: the card's program takes 5 to 256 cities",
            ),
            (&HEAD.replace('5', "five"), CITIES, "f.tsp:3: DIMENSION 'five': a number of cities"),
        ] {
            let error = file(head, cities).unwrap_err();
            assert!(error.contains(text), "{error}\n  for {text}");
        }
        let cut = parse(&format!("{HEAD}\nNODE_COORD_SECTION\n1 0 0\n"), "f.tsp").unwrap_err().to_string();
        assert!(
            cut.contains("f.tsp:5: DIMENSION says 5 cities, and the file has 1; is it cut off?"),
            "{cut}"
        );
        let empty = parse("", "f.tsp").unwrap_err().to_string();
        assert!(empty.contains("f.tsp:1: the file ends without a NODE_COORD_SECTION"), "{empty}");
        let error = super::read("/nowhere/f.tsp").unwrap_err().to_string();
        assert!(error.contains("/nowhere/f.tsp: cannot read it (No such file or directory)"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(?s).{0,400}") {
            let _ = parse(&text, "f.tsp");
        }

        #[test]
        fn damaged_files_are_read_or_refused(
            cuts in prop::collection::vec((0usize..1400, 0u8..128), 0..8),
            end in 0usize..1400,
        ) {
            let mut bytes = KRO_A100.as_bytes().to_vec();
            for (at, byte) in cuts {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            bytes.truncate(end);
            let text = String::from_utf8(bytes).unwrap();
            if let Ok(instance) = parse(&text, "f.tsp") {
                prop_assert_eq!(instance.cities.len(), instance.nodes.len());
                prop_assert!((5..=256).contains(&instance.cities.len()));
            }
        }

        #[test]
        fn written_files_are_read(points in prop::collection::vec((-9000i64..9000, -9000i64..9000), 5..=256)) {
            let lines = points.iter().zip(1..).map(|((x, y), node)| format!("{node} {x} {y}\n"));
            let cities: String = lines.collect();
            let read = file(&HEAD.replace('5', &points.len().to_string()), &cities).unwrap();
            let least = points.iter().fold((i64::MAX, i64::MAX), |a, b| (a.0.min(b.0), a.1.min(b.1)));
            for (&(x, y), &(a, b)) in read.cities.iter().zip(&points) {
                prop_assert_eq!((i64::from(x) + least.0, i64::from(y) + least.1), (a, b));
            }
        }
    }
}
