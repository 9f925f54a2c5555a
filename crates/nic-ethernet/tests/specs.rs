//! Tests that the specs of the Niagara 2 study differ only as the study's paper and the driver state.

use nicety_spec::{SHIPPED, Spec};
use std::collections::BTreeMap;

/// Returns every parameter of a card as in the card's file, with the parameter's kind and source.
fn parameters(name: &str) -> BTreeMap<String, (String, String, String)> {
    let (_, listing) =
        nicety_nic_core::read(&Spec::load(name, &[], SHIPPED).unwrap(), &[nicety_nic_ethernet::DESIGN])
            .unwrap();
    let of = |p: &nicety_spec::Parameter| {
        (format!("{}.{}", p.section, p.key), (p.value.clone(), format!("{:?}", p.kind), p.source.clone()))
    };
    listing.parameters.iter().map(of).collect()
}

#[test]
fn integrated_and_discrete_differ_by_the_host_link_and_by_what_the_driver_makes_of_it() {
    let (integrated, discrete) = (parameters("niagara2-niu"), parameters("niagara2-neptune"));
    let keys =
        integrated.keys().chain(discrete.keys()).filter(|&key| integrated.get(key) != discrete.get(key));
    let mut differ: Vec<&str> = keys.map(String::as_str).collect();
    differ.sort_unstable();
    differ.dedup();
    let others: Vec<_> = differ.iter().filter(|key| !key.starts_with("bus.")).collect();
    // The pages of the buffers and the number of vectors are those of the public driver on each bus.
    assert_eq!(others, [&"interrupts.vectors", &"receive.page", &"transmit.channels"]);
    for key in ["bus.kind", "bus.latency", "bus.pcie.generation"] {
        assert!(differ.contains(&key), "{key}");
    }
    assert_eq!(integrated["transmit.channels"].0, "8");
    assert_eq!(discrete["transmit.channels"].0, "12");
    for (card, other) in [(&integrated, "plain"), (&discrete, "pcie")] {
        assert_eq!(card["bus.kind"].0, other);
    }
}
