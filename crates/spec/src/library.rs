//! The shipped specs, by name.

/// Built-in specs with their names.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    specs: &'static [(&'static str, &'static str)],
}

/// The specs of the folder `specs`, one per card.
pub const SHIPPED: Library = Library::new(&[
    ("apenet-6", include_str!("../../../specs/apenet-6.toml")),
    ("apenet-v4", include_str!("../../../specs/apenet-v4.toml")),
    ("apenet-v5", include_str!("../../../specs/apenet-v5.toml")),
    ("ethernet-100g", include_str!("../../../specs/ethernet-100g.toml")),
    ("nfp-4000", include_str!("../../../specs/nfp-4000.toml")),
    ("niagara2-neptune", include_str!("../../../specs/niagara2-neptune.toml")),
    ("niagara2-niu", include_str!("../../../specs/niagara2-niu.toml")),
    ("pspin", include_str!("../../../specs/pspin.toml")),
    ("qnix", include_str!("../../../specs/qnix.toml")),
    ("spin-100g", include_str!("../../../specs/spin-100g.toml")),
    ("spin-100g-rv64", include_str!("../../../specs/spin-100g-rv64.toml")),
    ("spin-discrete", include_str!("../../../specs/spin-discrete.toml")),
    ("spin-integrated", include_str!("../../../specs/spin-integrated.toml")),
    ("xeon-oplin", include_str!("../../../specs/xeon-oplin.toml")),
]);

impl Library {
    /// Makes a library of `(name, text)`.
    pub const fn new(specs: &'static [(&'static str, &'static str)]) -> Library {
        Library { specs }
    }

    /// Returns the text of a spec.
    pub fn get(&self, name: &str) -> Option<&'static str> {
        self.specs.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// The names, in the library's order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.specs.iter().map(|(name, _)| *name)
    }
}
