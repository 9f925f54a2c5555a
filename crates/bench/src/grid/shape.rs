//! The grid of ranks of a program in which neighbours communicate.

use nicety::Error;
use nicety_fabric::{TorusShape, most_cubic};
use std::fmt;
use std::str::FromStr;

/// Maximum ranks of a grid.
const MOST: u64 = 1 << 20;

/// Ranks in one to three dimensions. The ends of each dimension are neighbours, so each line of ranks is a ring. Rank 0 is at the
/// origin, and consecutive ranks differ in the first dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    places: TorusShape,
    /// The number of dimensions that the user gave.
    dimensions: usize,
}

impl Grid {
    /// Returns a grid of these sizes. At least one size must be 2 or more.
    pub(super) fn new(sizes: &[u32]) -> Result<Grid, Error> {
        let wrong = |why: String| {
            Err(Error::Input(format!("--grid {}: {why}; write for example 8, 4x4 or 4x4x2", text(sizes))))
        };
        let size = |dimension: usize| sizes.get(dimension).copied().unwrap_or(1);
        let places = TorusShape::places([size(0), size(1), size(2)]);
        let ranks = sizes.iter().try_fold(1u64, |all, &size| all.checked_mul(u64::from(size)));
        match ranks {
            _ if !(1..=3).contains(&sizes.len()) => wrong("a grid has one, two or three dimensions".into()),
            Some(0) => wrong("a dimension has 1 rank at least".into()),
            Some(1) => wrong("a single rank has no neighbour".into()),
            Some(ranks) if ranks <= MOST => Ok(Grid { places, dimensions: sizes.len() }),
            _ => wrong(format!("a grid has {MOST} ranks at most")),
        }
    }

    /// Returns three dimensions for a number of ranks. They are as equal as possible, in descending order.
    pub(super) fn balanced(ranks: u32) -> Result<Grid, Error> {
        if !(2..=MOST).contains(&u64::from(ranks)) {
            return Err(Error::Input(format!("--nodes {ranks}: a grid has 2 to {MOST} ranks")));
        }
        let sizes = most_cubic(ranks);
        let used = sizes.iter().rposition(|&size| size > 1).map_or(sizes.len(), |last| last + 1);
        Grid::new(&sizes[..used])
    }

    /// Returns the grid of a torus. Each rank has the same place in both.
    pub(super) fn of_torus(shape: &TorusShape) -> Result<Grid, Error> {
        let sizes = shape.sizes();
        let used = sizes.iter().rposition(|&size| size > 1).map_or(1, |last| last + 1);
        Grid::new(&sizes[..used])
    }

    /// The number of ranks in a dimension.
    pub(super) fn size(&self, dimension: usize) -> u32 {
        self.places.sizes()[dimension]
    }

    /// Number of ranks.
    pub(super) fn ranks(&self) -> u32 {
        self.places.hosts()
    }

    /// Returns a rank's place in a dimension.
    pub(super) fn place(&self, rank: u32, dimension: usize) -> u32 {
        self.places.coordinates(rank)[dimension]
    }

    /// Returns the rank that is `steps` further along a dimension's ring.
    pub(super) fn on(&self, rank: u32, dimension: usize, steps: u32) -> u32 {
        self.places.on(rank, dimension, steps)
    }

    /// Returns the ranks of a dimension's ring, in order from rank `first` on.
    pub(super) fn ring(&self, first: u32, dimension: usize) -> impl Iterator<Item = u32> + '_ {
        (0..self.size(dimension)).map(move |steps| self.on(first, dimension, steps))
    }

    /// Returns the dimensions in which a rank has neighbours.
    pub(super) fn dimensions(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.dimensions).filter(|&dimension| self.size(dimension) > 1)
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(&self.places.sizes()[..self.dimensions]))
    }
}

/// Formats the sizes of a grid as users write them.
fn text(sizes: &[u32]) -> String {
    sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

impl FromStr for Grid {
    type Err = Error;

    fn from_str(text: &str) -> Result<Grid, Error> {
        let size = |part: &str| part.parse().ok().filter(|_| part.bytes().all(|b| b.is_ascii_digit()));
        match text.split('x').map(size).collect::<Option<Vec<u32>>>() {
            Some(sizes) => Grid::new(&sizes),
            None => Err(Error::Input(format!(
                "--grid {text}: the sizes of its dimensions are whole numbers below 2^32 with an x between \
                 them; write for example 8, 4x4 or 4x4x2"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_by_hand() {
        let grid: Grid = "4x3x2".parse().unwrap();
        assert_eq!(grid.ranks(), 24);
        // Rank 23 is at 3, 2, 1, the last corner. Its next neighbours are across the wrap-around.
        assert_eq!([0, 1, 2].map(|dimension| grid.place(23, dimension)), [3, 2, 1]);
        assert_eq!([0, 1, 2].map(|dimension| grid.on(23, dimension, 1)), [20, 15, 11]);
        assert_eq!(grid.on(0, 0, 3), 3);
        assert_eq!(grid.on(0, 1, 2), 8);
        assert_eq!(grid.ring(5, 1).collect::<Vec<_>>(), [5, 9, 1]);
        let flat: Grid = "1x5".parse().unwrap();
        assert_eq!(flat.dimensions().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_number_of_ranks_becomes_a_grid_near_a_cube() {
        for (ranks, expected) in [
            (2, "2"),
            (4, "2x2"),
            (7, "7"),
            (8, "2x2x2"),
            (12, "3x2x2"),
            (16, "4x2x2"),
            (36, "4x3x3"),
            (64, "4x4x4"),
            (100, "5x5x4"),
            (4096, "16x16x16"),
        ] {
            let grid = Grid::balanced(ranks).unwrap();
            assert_eq!((grid.to_string().as_str(), grid.ranks()), (expected, ranks));
        }
        for ranks in [0, 1] {
            assert!(Grid::balanced(ranks).unwrap_err().to_string().contains("2 to 1048576"));
        }
    }

    #[test]
    fn invalid_grids_are_refused() {
        for (text, why) in [
            ("", "whole numbers"),
            ("4x", "whole numbers"),
            ("4X4", "whole numbers"),
            ("+4x4", "whole numbers"),
            ("4x-4", "whole numbers"),
            ("4294967296", "whole numbers"),
            ("0x4", "1 rank at least"),
            ("1x1", "no neighbour"),
            ("2x2x2x2", "one, two or three dimensions"),
            ("4294967295x4294967295x4294967295", "1048576 ranks at most"),
            ("1025x1024", "1048576 ranks at most"),
        ] {
            let error = text.parse::<Grid>().unwrap_err();
            assert!(error.exit_status() == 2 && error.to_string().contains(why), "{text}: {error}");
        }
    }
}
