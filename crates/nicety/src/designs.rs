//! The card designs. `OWN` lists the designs of nicety, and [`CardCounts`] has a variant for each of them. Other crates
//! [register](register()) further designs.

use nicety_nic_core::{CardReport, CardSpec, Design};
use nicety_spec::{Listing, Spec, SpecErrors};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::{Arc, PoisonError, RwLock};
use {
    nicety_nic_apenet as apenet, nicety_nic_ethernet as ethernet, nicety_nic_hxdp as hxdp,
    nicety_nic_nfp as nfp, nicety_nic_qnix as qnix, nicety_nic_spin as spin,
};

/// The designs of nicety.
static OWN: [&Design; 6] =
    [spin::DESIGN, nfp::DESIGN, qnix::DESIGN, apenet::DESIGN, ethernet::DESIGN, hxdp::DESIGN];
/// The registered designs.
static REGISTERED: RwLock<Vec<&'static Design>> = RwLock::new(Vec::new());

/// Registers a design. From then on, specifications may name this design. It replaces a registered design of the same
/// name.
///
/// # Panics
/// When a design of nicety has this name.
pub fn register(design: &'static Design) {
    assert!(!OWN.contains(&design), "design {} is a design of nicety's", design.name);
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.retain(|known| *known != design);
    registered.push(design);
}

/// Returns all designs: first those of nicety, then the registered designs.
pub fn designs() -> Vec<&'static Design> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    OWN.iter().chain(&*registered).copied().collect()
}

/// Reads a card's specification.
///
/// # Errors
/// All errors in it, each with its place and a correction.
pub fn read(spec: &Spec) -> Result<(Arc<dyn CardSpec>, Listing), SpecErrors> {
    nicety_nic_core::read(spec, &designs())
}

/// The counters of a card. Each design has its own variant.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum CardCounts {
    /// A card with Portals.
    Portals(spin::PortalsReport),
    /// A card with microengines.
    Channels(nfp::Report),
    /// A card with virtual network interfaces.
    Vni(qnix::Statistics),
    /// A card with RDMA.
    Rdma(apenet::Report),
    /// A card below the kernel's sockets.
    Socket(ethernet::Report),
}

impl CardCounts {
    /// Returns the counters of a card. `None` if another crate has registered the card's design.
    pub fn of(card: &CardReport) -> Option<CardCounts> {
        let portals = || card.of().map(spin::PortalsReport::of).map(CardCounts::Portals);
        let channels = || card.of::<nfp::Report>().cloned().map(CardCounts::Channels);
        let vni = || card.of::<qnix::Report>().map(|report| CardCounts::Vni(report.interfaces));
        let rdma = || card.of::<apenet::Report>().copied().map(CardCounts::Rdma);
        let socket = || card.of::<ethernet::Report>().cloned().map(CardCounts::Socket);
        portals().or_else(channels).or_else(vni).or_else(rdma).or_else(socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelCounters;

    #[test]
    fn counters_of_other_designs_have_no_plain_form() {
        let kernel = KernelCounters { calls: 3, ..KernelCounters::default() };
        let interfaces = qnix::Statistics::default();
        let report = CardReport::new(qnix::Report { interfaces, kernel });
        assert_eq!(report.kernel(), kernel);
        assert!(matches!(CardCounts::of(&report), Some(CardCounts::Vni(found)) if found == interfaces));
        assert!(CardCounts::of(&CardReport::new(())).is_none());
    }
}
