//! The shipped specs, with their names.

/// Built-in specs with their names.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    specs: &'static [(&'static str, &'static str)],
}

/// The specs of the folder `specs`, one per card.
pub const SHIPPED: Library = Library::new(nicety_specs::FILES);

impl Library {
    /// Makes a library of pairs of a spec's name and its text.
    pub const fn new(specs: &'static [(&'static str, &'static str)]) -> Library {
        Library { specs }
    }

    /// Returns the text of the spec with this name.
    pub fn get(&self, name: &str) -> Option<&'static str> {
        self.specs.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// Returns the names of all specs, in the library's order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.specs.iter().map(|(name, _)| *name)
    }
}
