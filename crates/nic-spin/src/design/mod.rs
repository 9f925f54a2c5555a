//! The Portals 4 card with packet handlers as a [`Design`].

mod hints;
pub(super) mod node;
mod report;

pub use report::{PortalsReport, Report, TransportReport};

use crate::design::hints::hints;
use crate::spec::read_spin;
use crate::stages;
use crate::{Card, Node, SpinSpec};
use nicety_host::BusSpec;
use nicety_hpu::Core;
use nicety_nic_core::parts::transport::{self, TransportSpec};
use nicety_nic_core::{CardError, CardSpec, Design, NodeContext, NodeSpec, OfDesign, cards_of};
use std::rc::Rc;
use std::sync::Arc;

/// Portals 4 with packet handlers.
pub const DESIGN: &Design = &Design {
    modes: &["rdma", "portals4", "spin-store", "spin-stream"],
    natural_mode: Some("rdma"),
    stages: &[nicety_nic_processors::stages::STAGES, stages::STAGES, transport::stages::STAGES],
    hints: |cards| {
        hints(&cards_of::<Node>(cards).map(|(rank, node)| (rank, node.card().clone())).collect::<Vec<_>>())
    },
    ..Design::new("portals", "spin-discrete", "a Portals interface", |reader| Arc::new(read_spin(reader)))
};

impl OfDesign for SpinSpec {
    const DESIGN: &'static Design = DESIGN;
}

impl CardSpec for SpinSpec {
    fn design(&self) -> &'static Design {
        DESIGN
    }

    fn bus(&self) -> Option<&BusSpec> {
        Some(&self.bus)
    }

    fn node(&self) -> NodeSpec {
        NodeSpec {
            host: self.host,
            link: self.link,
            ports: self.ports,
            switch: self.switch,
            router: self.router,
            barrier: self.barrier,
        }
    }

    fn core(&self) -> Option<&Core> {
        Some(&self.hpu.core)
    }

    fn isa(&self) -> Option<&str> {
        Some(&self.hpu.isa)
    }

    fn interface(&self) -> &'static str {
        self.hpu.pspin.map_or("nicety", |commands| commands.interface())
    }

    fn transport(&self) -> Option<&TransportSpec> {
        Some(&self.transport)
    }

    fn packets(&self) -> String {
        "Portals 4 packets".to_owned()
    }

    fn packet_payload(&self) -> Option<u64> {
        Some(self.packet_payload)
    }

    fn eager(&self) -> Option<u64> {
        Some(self.messages.eager)
    }

    fn install(
        self: Arc<Self>,
        node_context: NodeContext<'_>,
    ) -> Result<Rc<dyn nicety_nic_core::Card>, CardError> {
        let NodeContext { sim, nodes, memory, cpus, port, packet_payload, eager, uid, log, recorder, .. } =
            node_context;
        let mut spec = self;
        if packet_payload.is_some_and(|least| least < spec.packet_payload)
            || eager.is_some_and(|least| least < spec.messages.eager)
        {
            let own = Arc::make_mut(&mut spec);
            own.packet_payload =
                packet_payload.map_or(own.packet_payload, |least| least.min(own.packet_payload));
            own.messages.eager = eager.map_or(own.messages.eager, |least| least.min(own.messages.eager));
        }
        let card = Card::install(sim, spec, memory.clone(), port, nodes, log.clone(), recorder);
        card.set_uid(uid);
        Ok(Rc::new(Node::set_up(card, cpus.clone())?))
    }
}
