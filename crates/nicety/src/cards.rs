//! Card specifications: those shipped with nicety, and files of the user.

use crate::{Error, designs};
use nicety_nic_core::CardSpec;
use nicety_nic_nfp::NfpSpec;
use nicety_spec::{Listing, SHIPPED, Spec, parse_override};
use std::sync::Arc;

/// A card's specification, parsed and checked.
#[derive(Clone, Debug)]
pub struct Card {
    /// The parsed specification.
    pub spec: Arc<dyn CardSpec>,
    /// Every parameter with its value, unit, kind and source, and the hash that identifies the card.
    pub listing: Listing,
}

impl Card {
    /// Returns the specification of a card with microengines. `name` is the prefix of the error.
    ///
    /// # Errors
    /// [`Error::Input`] when the card has no microengines.
    pub fn processor(&self, name: &str) -> Result<&NfpSpec, Error> {
        self.spec.of::<NfpSpec>().map_err(|_| {
            Error::Input(format!(
                "{name}: a card of design {} has no microengines; name a card of design nfp, for example nfp-4000",
                self.listing.design
            ))
        })
    }
}

/// Returns names and titles of the shipped cards.
///
/// # Errors
/// When a shipped specification cannot be read. A test checks that this does not happen.
pub fn shipped() -> Result<Vec<(String, String)>, Error> {
    SHIPPED
        .names()
        .map(|name| {
            let spec = Spec::load(name, &[], SHIPPED)?;
            Ok((spec.name().to_owned(), spec.title().to_owned()))
        })
        .collect()
}

/// Reads a card's specification. The argument is the name of a shipped specification or the path of a TOML file.
/// `overrides` are `KEY=VALUE` texts.
///
/// # Errors
/// [`Error::Input`] with all errors in the specification.
pub fn load(name_or_path: &str, overrides: &[String]) -> Result<Card, Error> {
    let overrides = overrides.iter().map(|text| parse_override(text)).collect::<Result<Vec<_>, _>>()?;
    let spec = Spec::load(name_or_path, &overrides, SHIPPED)?;
    let (spec, listing) = designs::read(&spec)?;
    Ok(Card { spec, listing })
}

/// Reads several cards. A repeated name or path is read once.
///
/// # Errors
/// Those of [`load`]. Also when the list is empty.
pub fn load_all(names_or_paths: &[String], overrides: &[String]) -> Result<Vec<Card>, Error> {
    let mut known: Vec<(&String, Card)> = Vec::new();
    let mut cards = Vec::with_capacity(names_or_paths.len());
    for name in names_or_paths {
        let card = match known.iter().find(|(other, _)| *other == name) {
            Some((_, card)) => card.clone(),
            None => {
                let card = load(name, overrides)?;
                known.push((name, card.clone()));
                card
            }
        };
        cards.push(card);
    }
    match cards.is_empty() {
        true => Err(Error::Input("no card named; name one for all hosts, or one for each rank".to_owned())),
        false => Ok(cards),
    }
}

/// Reads cards to compare. Returns each card with the name in its specification. The error for an empty list suggests the card
/// `example`.
///
/// # Errors
/// Those of [`load`]. Also when the list is empty, or two cards have the same name.
pub fn load_distinct(
    names: &[String],
    overrides: &[String],
    example: &str,
) -> Result<Vec<(String, Card)>, Error> {
    if names.is_empty() {
        return Err(Error::Input(format!("no card named; write for example --nic {example}")));
    }
    let mut cards: Vec<(String, Card)> = Vec::with_capacity(names.len());
    for name in names {
        let card = load(name, overrides)?;
        let name = card.listing.name.clone();
        if cards.iter().any(|(other, _)| *other == name) {
            return Err(Error::Input(format!(
                "two of the cards are called {name}; change the name of one in its file"
            )));
        }
        cards.push((name, card));
    }
    Ok(cards)
}

/// Checks that the cards of all ranks use the same protocol. The first card belongs to rank 0.
///
/// # Errors
/// [`Error::Input`] with the first rank that uses another protocol than rank 0.
pub fn check<'c>(cards: impl IntoIterator<Item = &'c Card>) -> Result<(), Error> {
    let mut cards = cards.into_iter();
    let Some(first) = cards.next() else { return Ok(()) };
    let own = first.spec.protocol();
    for (rank, other) in (1..).zip(cards) {
        let theirs = other.spec.protocol();
        if theirs != own {
            let (one, another) = (&first.listing.name, &other.listing.name);
            return Err(Error::Input(format!(
                "rank 0 has card {one}, which sends {own}, and rank {rank} has {another}, which sends \
                 {theirs}: they cannot communicate; name cards of one design that send the same packets"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cluster, ClusterConfig};

    #[test]
    fn every_card_makes_a_cluster_and_says_what_its_design_has_not() {
        for (name, _) in shipped().unwrap() {
            let card = load(&name, &[]).unwrap_or_else(|error| panic!("{error}"));
            let design = card.spec.design();
            let cluster = Cluster::new(ClusterConfig::new(1, card));
            if design.name == "hxdp" {
                let error = cluster.err().unwrap().to_string();
                assert!(error.contains("runs only XDP programs, and has no path to a host"), "{error}");
                continue;
            }
            let cluster = cluster.unwrap();
            let host = cluster.host(0);
            let (portals, channels) = (host.portals(), host.channels());
            assert_eq!(channels.is_ok(), design.name == "nfp", "{name}");
            assert_eq!(host.vni().is_ok(), design.name == "qnix", "{name}");
            assert_eq!(host.rdma().is_ok(), design.name == "apenet", "{name}");
            assert_eq!(host.gpu().is_ok(), design.name == "apenet", "{name}");
            assert_eq!(portals.is_ok(), design.name == "portals", "{name}");
            let errors = [portals.err(), channels.err()];
            let errors = errors.iter().flatten().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            let expected = match design.name {
                "portals" => {
                    "of design portals has no processes and channels, but a Portals interface; name a card of design nfp"
                }
                "nfp" => {
                    "of design nfp has no Portals interface, but processes and channels; name a card of design portals"
                }
                "apenet" => {
                    "of design apenet has no Portals interface, but RDMA; name a card of design portals"
                }
                "ethernet" => {
                    "of design ethernet has no Portals interface, but sockets; name a card of design portals"
                }
                _ => {
                    "of design qnix has no Portals interface, but virtual network interfaces; name a card of design portals"
                }
            };
            assert!(errors.contains(expected), "{errors}");
        }
    }

    #[test]
    fn cards_with_programs_name_their_instruction_set() {
        for (name, isa) in [
            ("spin-discrete", Some("rv32imac_zicsr")),
            ("nfp-4000", Some("rv32ia_zicsr_zmmul_zba_zbb")),
            ("qnix", None),
        ] {
            assert_eq!(load(name, &[]).unwrap().spec.isa(), isa, "{name}");
        }
    }

    #[test]
    fn the_shipped_cards_are_named() {
        let names: Vec<String> = shipped().unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                "apenet-6",
                "apenet-v4",
                "apenet-v5",
                "bluefield3-dpa",
                "ethernet-100g",
                "hxdp-sume",
                "nfp-4000",
                "nfp-6000",
                "nfp-6000-bdw-e5-2630v4",
                "nfp-6000-hsw-e3-1226v3",
                "nfp-6000-hsw-e5-2637v3",
                "niagara2-neptune",
                "niagara2-niu",
                "pspin",
                "qnix",
                "spin-100g",
                "spin-100g-rv64",
                "spin-discrete",
                "spin-integrated",
                "xeon-oplin"
            ]
        );
    }
}
