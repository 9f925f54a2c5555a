//! The critical path of a node's program. Each call of the program reads the path and stores the new path.

use nicety_types::Path;
use std::cell::RefCell;

/// A cell with a path.
pub struct PathCell(RefCell<Path>);

impl PathCell {
    /// Returns a cell with the given path.
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
