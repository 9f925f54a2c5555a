//! The cities of a problem and their distances, as the card's programs take them.

use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// The end of distances: each is shorter, so that the difference of two sums of two fits 32 bits with a sign.
pub const DISTANCE_END: u32 = 1 << 30;

/// The end of the coordinates of [`Cities::Plane`].
pub const COORDINATE_END: u16 = 1 << 15;

/// The cities of a problem, with their distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cities {
    /// Whole coordinates below [`COORDINATE_END`]. The card can compute their distances ([`distance`]).
    Plane(Vec<(u16, u16)>),
    /// Distances that the host has computed or read.
    Table(DistanceTable),
}

/// The distances of all pairs of cities. They are symmetric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistanceTable {
    cities: usize,
    /// By rows.
    distances: Vec<u32>,
}

/// Returns the distance of two cities, rounded to the nearest whole number (EUC_2D of TSPLIB).
pub fn distance(a: (u16, u16), b: (u16, u16)) -> u32 {
    let (dx, dy) = (u32::from(a.0.abs_diff(b.0)), u32::from(a.1.abs_diff(b.1)));
    let square = dx * dx + dy * dy;
    let root = square.isqrt();
    root + u32::from(square - root * root > root)
}

impl Cities {
    /// Number of cities.
    pub fn count(&self) -> usize {
        match self {
            Cities::Plane(points) => points.len(),
            Cities::Table(table) => table.cities,
        }
    }

    /// The distances of all pairs.
    pub fn table(&self) -> Cow<'_, DistanceTable> {
        match self {
            Cities::Table(table) => Cow::Borrowed(table),
            Cities::Plane(points) => {
                Cow::Owned(DistanceTable::of(points.len(), |a, b| distance(points[a], points[b])))
            }
        }
    }

    /// Returns a digest that identifies the problem, in hexadecimal digits: SHA-256 of its coordinates or distances.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        match self {
            Cities::Plane(points) => {
                hash.update(b"plane");
                points.iter().for_each(|&(x, y)| hash.update([x.to_le_bytes(), y.to_le_bytes()].concat()));
            }
            Cities::Table(table) => {
                hash.update(b"table");
                table.distances.iter().for_each(|distance| hash.update(distance.to_le_bytes()));
            }
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl From<Vec<(u16, u16)>> for Cities {
    fn from(points: Vec<(u16, u16)>) -> Cities {
        Cities::Plane(points)
    }
}

impl DistanceTable {
    /// Returns the table of the distances `of(a, b)`, with `a` below `b`.
    ///
    /// # Errors
    /// When a distance is not below [`DISTANCE_END`], or a tour could be longer than 32 bits hold: the problem and a correction.
    pub fn new(cities: usize, of: impl Fn(usize, usize) -> u32) -> Result<DistanceTable, String> {
        let table = DistanceTable::of(cities, of);
        if let Some(distance) = table.distances.iter().find(|&&distance| distance >= DISTANCE_END) {
            return Err(format!("a distance of {distance}; {}", below_end("distances")));
        }
        // A tour has one road from each city.
        let longest: u64 = table.rows().map(|row| u64::from(row.iter().copied().max().unwrap_or(0))).sum();
        if longest > u64::from(u32::MAX) {
            return Err(format!(
                "a tour could have length {longest}, but the card's program takes at most {}; divide all \
                 distances by the same number",
                u32::MAX
            ));
        }
        Ok(table)
    }

    fn of(cities: usize, of: impl Fn(usize, usize) -> u32) -> DistanceTable {
        let mut distances = vec![0; cities * cities];
        for a in 0..cities {
            for b in a + 1..cities {
                let distance = of(a, b);
                distances[a * cities + b] = distance;
                distances[b * cities + a] = distance;
            }
        }
        DistanceTable { cities, distances }
    }

    /// The distances by rows.
    pub fn rows(&self) -> impl Iterator<Item = &[u32]> {
        self.distances.chunks(self.cities.max(1))
    }

    /// All distances, row by row.
    pub fn distances(&self) -> &[u32] {
        &self.distances
    }

    /// Whether two bytes hold each distance.
    pub fn is_narrow(&self) -> bool {
        self.distances.iter().all(|&distance| distance <= u32::from(u16::MAX))
    }
}

/// Returns the correction of distances or coordinates that are too large.
pub(super) fn below_end(what: &str) -> String {
    format!("the card's program takes distances below {DISTANCE_END}; divide all {what} by the same number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_symmetric_with_zeros_for_cities_themselves() {
        let table = DistanceTable::new(3, |a, b| (10 * a + b) as u32).unwrap();
        assert_eq!(table.distances(), [0, 1, 2, 1, 0, 12, 2, 12, 0]);
        assert_eq!(table.rows().collect::<Vec<_>>(), [[0, 1, 2], [1, 0, 12], [2, 12, 0]]);
        assert!(table.is_narrow());
        assert!(DistanceTable::new(2, |_, _| 65_535).unwrap().is_narrow());
        assert!(!DistanceTable::new(2, |_, _| 65_536).unwrap().is_narrow());
        let plane = Cities::from(vec![(0, 0), (3, 4), (0, 8)]);
        assert_eq!(plane.table().distances(), [0, 5, 8, 5, 0, 5, 8, 5, 0]);
        assert_eq!(plane.count(), 3);
    }

    #[test]
    fn tours_that_32_bits_do_not_hold_are_refused() {
        // Five cities have five roads: 5 x 858993459 is 2^32 - 1.
        let longest = 858_993_459;
        assert!(DistanceTable::new(5, |_, _| longest).is_ok());
        let error = DistanceTable::new(5, |_, _| longest + 1).unwrap_err();
        assert!(error.starts_with("a tour could have length 4294967300, but the card's"), "{error}");
        // Two cities have a road that is longer by 2.
        let error = DistanceTable::new(5, |a, b| longest + 2 * u32::from((a, b) == (0, 1))).unwrap_err();
        assert!(error.starts_with("a tour could have length 4294967299"), "{error}");
        assert!(DistanceTable::new(3, |_, _| DISTANCE_END - 1).is_ok());
        let error = DistanceTable::new(3, |_, _| DISTANCE_END).unwrap_err();
        assert!(
            error.starts_with("a distance of 1073741824; the card's program takes distances below"),
            "{error}"
        );
    }

    #[test]
    fn a_digest_identifies_the_problem() {
        let points = vec![(0, 0), (3, 4), (0, 8), (1, 1), (9, 9)];
        let plane = Cities::from(points.clone());
        let table = Cities::Table(plane.table().into_owned());
        let mut moved = points;
        moved[2].1 += 1;
        let digests = [plane.digest(), table.digest(), Cities::from(moved).digest()];
        assert!(digests.iter().all(|digest| digest.len() == 64));
        assert!(digests[0] != digests[1] && digests[0] != digests[2], "{digests:?}");
    }
}
