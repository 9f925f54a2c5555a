//! The shipped card specifications.

/// Every spec of the folder `specs`: its name, and its text.
pub const FILES: &[(&str, &str)] = &[
    ("apenet-6", include_str!("apenet-6.toml")),
    ("apenet-v4", include_str!("apenet-v4.toml")),
    ("apenet-v5", include_str!("apenet-v5.toml")),
    ("bluefield3-dpa", include_str!("bluefield3-dpa.toml")),
    ("ethernet-100g", include_str!("ethernet-100g.toml")),
    ("hxdp-sume", include_str!("hxdp-sume.toml")),
    ("nfp-4000", include_str!("nfp-4000.toml")),
    ("nfp-6000", include_str!("nfp-6000.toml")),
    ("nfp-6000-bdw-e5-2630v4", include_str!("nfp-6000-bdw-e5-2630v4.toml")),
    ("nfp-6000-hsw-e3-1226v3", include_str!("nfp-6000-hsw-e3-1226v3.toml")),
    ("nfp-6000-hsw-e5-2637v3", include_str!("nfp-6000-hsw-e5-2637v3.toml")),
    ("niagara2-neptune", include_str!("niagara2-neptune.toml")),
    ("niagara2-niu", include_str!("niagara2-niu.toml")),
    ("pspin", include_str!("pspin.toml")),
    ("qnix", include_str!("qnix.toml")),
    ("spin-100g", include_str!("spin-100g.toml")),
    ("spin-100g-rv64", include_str!("spin-100g-rv64.toml")),
    ("spin-discrete", include_str!("spin-discrete.toml")),
    ("spin-integrated", include_str!("spin-integrated.toml")),
    ("xeon-oplin", include_str!("xeon-oplin.toml")),
];

#[cfg(test)]
mod tests {
    use super::FILES;

    #[test]
    fn every_spec_of_the_folder_is_embedded() {
        let files = std::fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names
            .filter(|name| name != "Cargo.toml")
            .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
            .collect();
        names.sort();
        assert_eq!(names, FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
