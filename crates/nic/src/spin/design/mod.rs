//! The implementation of the card design seam by a Portals 4 card with packet handlers.

mod hints;
pub(super) mod node;

use crate::design::{self, CardError, CardSpec, Design, OfDesign, Seat};
use crate::parts::transport::{self, TransportStatistics};
use crate::sections::NodeSpec;
use crate::spin::design::hints::hints;
use crate::spin::spec::read_spin;
use crate::spin::stages;
use crate::spin::{ApplicationReport, Card, HandlerStatistics, Node, Printed, SpinSpec, Unusable};
use nicety_hpu::Core;
use nicety_portals::Statistics;
use nicety_spec::Reader;
use nicety_types::Stage;
use std::rc::Rc;
use std::sync::Arc;

/// Portals 4 with packet handlers.
pub(crate) const DESIGN: &dyn Design = &Portals;

struct Portals;

/// Counters of a Portals 4 card with packet handlers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Counters of the Portals interface.
    pub portals: Statistics,
    /// Statistics of the handlers.
    pub handlers: HandlerStatistics,
    /// The use of resources by each application, the default one first.
    pub applications: Vec<ApplicationReport>,
    /// Lines that handlers printed.
    pub printed: Printed,
    /// Counters of reliable transport.
    pub transport: TransportStatistics,
    /// Packets that came damaged or out of place, without reliable transport.
    pub unusable: Unusable,
}

impl Design for Portals {
    fn name(&self) -> &'static str {
        "portals"
    }

    fn example(&self) -> &'static str {
        "spin-discrete"
    }

    fn interface(&self) -> &'static str {
        "a Portals interface"
    }

    fn modes(&self) -> &'static [&'static str] {
        &["rdma", "portals4", "spin-store", "spin-stream"]
    }

    fn natural_mode(&self) -> Option<&'static str> {
        Some("rdma")
    }

    fn stages(&self) -> Vec<Stage> {
        [stages::STAGES, transport::stages::STAGES].concat()
    }

    fn read(&self, reader: &Reader<'_>) -> Arc<dyn CardSpec> {
        Arc::new(read_spin(reader))
    }

    fn hints(&self, cards: &[(u32, Rc<dyn design::Card>)]) -> String {
        let own = |(rank, card): &(u32, Rc<dyn design::Card>)| {
            Some((*rank, card.of::<Node>().ok()?.card().clone()))
        };
        hints(&cards.iter().filter_map(own).collect::<Vec<_>>())
    }
}

impl OfDesign for SpinSpec {
    const DESIGN: &'static dyn Design = DESIGN;
}

impl CardSpec for SpinSpec {
    fn design(&self) -> &'static dyn Design {
        DESIGN
    }

    fn node(&self) -> NodeSpec {
        NodeSpec {
            host: self.host,
            link: self.link,
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

    fn protocol(&self) -> String {
        let reliable = if self.transport.reliable { " with reliable transport" } else { "" };
        format!("Portals 4 packets{reliable}")
    }

    fn packet_payload(&self) -> Option<u64> {
        Some(self.packet_payload)
    }

    fn eager(&self) -> Option<u64> {
        Some(self.messages.eager)
    }

    fn install(self: Arc<Self>, seat: Seat<'_>) -> Result<Rc<dyn design::Card>, CardError> {
        let Seat { sim, nodes, memory, cpus, port, packet_payload, eager, uid, log, recorder, .. } = seat;
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
