//! The path of a node's program. A call of the program takes the path and puts it back.

use nicety_types::Path;
use std::cell::RefCell;

/// A cell that holds a path.
pub struct PathCell(RefCell<Path>);

impl PathCell {
    /// Returns a cell with a path.
    pub fn new(path: Path) -> PathCell {
        PathCell(RefCell::new(path))
    }

    /// Returns the path.
    pub fn get(&self) -> Path {
        self.0.borrow().clone()
    }

    /// Replaces the path.
    pub fn set(&self, path: Path) {
        self.0.replace(path);
    }
}
