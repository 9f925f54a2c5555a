//! Cards by specification: those that come with nicety, and the user's own.

use crate::Error;
use nicety_nic::CardSpec;
use nicety_nic::nfp::NfpSpec;
use nicety_spec::{Listing, SHIPPED, Spec, parse_override};
use std::sync::Arc;

/// A card's specification, read and checked.
#[derive(Clone, Debug)]
pub struct Card {
    /// What its parts take.
    pub spec: Arc<dyn CardSpec>,
    /// Every parameter with its value, unit, kind and source, and the hash that names the card.
    pub listing: Listing,
}

impl Card {
    /// The microengines of a card with a network flow processor, which results call `name`.
    ///
    /// # Errors
    /// [`Error::Input`] when it has none.
    pub fn processor(&self, name: &str) -> Result<&NfpSpec, Error> {
        self.spec.of::<NfpSpec>().map_err(|_| {
            Error::Input(format!(
                "{name}: a card of design {} has no microengines; name one of design nfp, for example nfp-4000",
                self.listing.design
            ))
        })
    }
}

/// Names and titles of the cards that come with nicety.
///
/// # Errors
/// When one of them cannot be read, which a test rules out.
pub fn shipped() -> Result<Vec<(String, String)>, Error> {
    SHIPPED
        .names()
        .map(|name| {
            let spec = Spec::load(name, &[], SHIPPED)?;
            Ok((spec.name().to_owned(), spec.title().to_owned()))
        })
        .collect()
}

/// Reads a card: the name of one that comes with nicety, or the path of a TOML file. `overrides` are `KEY=VALUE` texts.
///
/// # Errors
/// [`Error::Input`] with everything that is wrong.
pub fn load(name_or_path: &str, overrides: &[String]) -> Result<Card, Error> {
    let overrides = overrides.iter().map(|text| parse_override(text)).collect::<Result<Vec<_>, _>>()?;
    let spec = Spec::load(name_or_path, &overrides, SHIPPED)?;
    let (spec, listing) = nicety_nic::read(&spec)?;
    Ok(Card { spec, listing })
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
            let cluster = Cluster::new(ClusterConfig::new(1, card)).unwrap();
            let host = cluster.host(0);
            let (portals, channels) = (host.portals(), host.channels());
            assert_eq!(channels.is_ok(), design.name() == "nfp", "{name}");
            assert_eq!(host.vni().is_ok(), design.name() == "qnix", "{name}");
            assert_eq!(portals.is_ok(), design.name() == "portals", "{name}");
            let errors = [portals.err(), channels.err()];
            let errors = errors.iter().flatten().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            let expected = match design.name() {
                "portals" => {
                    "of design portals has no processes and channels, but a Portals interface; name one of design nfp"
                }
                "nfp" => {
                    "of design nfp has no Portals interface, but processes and channels; name one of design portals"
                }
                _ => {
                    "of design qnix has no Portals interface, but virtual network interfaces; name one of design portals"
                }
            };
            assert!(errors.contains(expected), "{errors}");
        }
    }
}
