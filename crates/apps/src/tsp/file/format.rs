//! The orders in which a file has distances: EDGE_WEIGHT_FORMAT.

use std::ops::Range;

/// The part of the matrix of distances that a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Full,
    Upper,
    Lower,
}

/// The order of distances in a file: row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    name: &'static str,
    part: Part,
    diagonal: bool,
}

const fn format(name: &'static str, part: Part, diagonal: bool) -> Format {
    Format { name, part, diagonal }
}

/// A triangle by columns is the other one by rows, since distances are symmetric.
const FORMATS: [Format; 9] = [
    format("FULL_MATRIX", Part::Full, true),
    format("UPPER_ROW", Part::Upper, false),
    format("LOWER_ROW", Part::Lower, false),
    format("UPPER_DIAG_ROW", Part::Upper, true),
    format("LOWER_DIAG_ROW", Part::Lower, true),
    format("UPPER_COL", Part::Lower, false),
    format("LOWER_COL", Part::Upper, false),
    format("UPPER_DIAG_COL", Part::Lower, true),
    format("LOWER_DIAG_COL", Part::Upper, true),
];

impl Format {
    pub(super) fn of(name: &str) -> Option<Format> {
        FORMATS.into_iter().find(|format| format.name == name)
    }

    pub(super) fn name(self) -> &'static str {
        self.name
    }

    pub(super) fn names() -> String {
        FORMATS.map(|format| format.name).join(", ")
    }

    /// The columns of a row that the file has.
    fn columns(self, row: usize, cities: usize) -> Range<usize> {
        match self.part {
            Part::Full => 0..cities,
            Part::Upper => row + usize::from(!self.diagonal)..cities,
            Part::Lower => 0..row + usize::from(self.diagonal),
        }
    }

    /// The pairs of cities in the order of the file.
    pub(super) fn pairs(self, cities: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..cities).flat_map(move |row| self.columns(row, cities).map(move |column| (row, column)))
    }
}
