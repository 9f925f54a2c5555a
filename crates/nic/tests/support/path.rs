//! A node's path, which its calls take and put back.

use nicety_types::Path;
use std::cell::RefCell;

/// A place for a path.
pub struct PathCell(RefCell<Path>);

impl PathCell {
    pub fn new(path: Path) -> PathCell {
        PathCell(RefCell::new(path))
    }

    pub fn get(&self) -> Path {
        self.0.borrow().clone()
    }

    pub fn set(&self, path: Path) {
        self.0.replace(path);
    }
}
