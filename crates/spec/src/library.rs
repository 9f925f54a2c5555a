//! The shipped specs, with their names.

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
    ("bluefield3-dpa", include_str!("../../../specs/bluefield3-dpa.toml")),
    ("ethernet-100g", include_str!("../../../specs/ethernet-100g.toml")),
    ("hxdp-sume", include_str!("../../../specs/hxdp-sume.toml")),
    ("nfp-4000", include_str!("../../../specs/nfp-4000.toml")),
    ("nfp-6000", include_str!("../../../specs/nfp-6000.toml")),
    ("nfp-6000-bdw-e5-2630v4", include_str!("../../../specs/nfp-6000-bdw-e5-2630v4.toml")),
    ("nfp-6000-hsw-e3-1226v3", include_str!("../../../specs/nfp-6000-hsw-e3-1226v3.toml")),
    ("nfp-6000-hsw-e5-2637v3", include_str!("../../../specs/nfp-6000-hsw-e5-2637v3.toml")),
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
