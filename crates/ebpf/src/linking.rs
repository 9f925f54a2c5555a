//! The linking of programs, with a check of their stacks.

use crate::error::ObjectError;
use crate::object::{Entry, Linked, Object};
use crate::translate::frames;

impl Object {
    /// Links a program.
    ///
    /// # Errors
    /// When the program uses something that this machine lacks, or needs more stack than Linux gives. The error names the line or
    /// the functions.
    pub fn link(&self, entry: &Entry) -> Result<Linked, ObjectError> {
        let linked = self.joined(entry)?;
        frames::check(&linked)?;
        Ok(linked)
    }
}
