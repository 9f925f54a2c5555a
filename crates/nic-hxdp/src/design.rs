//! The hXDP card as a [`Design`].

use crate::spec::{HxdpSpec, read};
use nicety_nic_core::{Card, CardError, CardSpec, Design, LinkLayer, NodeContext, NodeSpec, OfDesign};
use std::rc::Rc;
use std::sync::Arc;

/// The design with a core that executes eBPF.
pub const DESIGN: &Design =
    &Design::new("hxdp", "hxdp-sume", "an eBPF core", |reader| Arc::new(read(reader)));

impl OfDesign for HxdpSpec {
    const DESIGN: &'static Design = DESIGN;
}

impl CardSpec for HxdpSpec {
    fn design(&self) -> &'static Design {
        DESIGN
    }

    fn node(&self) -> NodeSpec {
        self.node
    }

    fn packets(&self) -> String {
        "Ethernet frames".to_owned()
    }

    fn link_layer(&self) -> LinkLayer {
        LinkLayer::Ethernet { checksum: 0 }
    }

    fn packet_payload(&self) -> Option<u64> {
        Some(self.longest)
    }

    /// The card has no path between its core and a host: the paper measures programs that end on the card.
    fn install(self: Arc<Self>, _: NodeContext<'_>) -> Result<Rc<dyn Card>, CardError> {
        Err(CardError::Input(
            "a card of design hxdp runs only XDP programs, and has no path to a host; use nicety bench \
             handlers FILE.o"
                .to_owned(),
        ))
    }
}
