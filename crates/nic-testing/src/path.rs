//! A node's path, which its calls take and put back.

use nicety_types::Path;
use std::cell::RefCell;

/// A place for a path.
pub struct PathCell(RefCell<Path>);

impl PathCell {
    /// A place with a path.
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
