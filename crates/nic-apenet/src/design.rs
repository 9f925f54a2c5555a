//! The APEnet+ card as a [`Design`].

use crate::hints::hints;
use crate::messages::Messenger;
use crate::spec::read_apenet;
use crate::{ApenetError, ApenetSpec, Card, LIBRARY, MessagesSpec, Process, Statistics, stages};
use nicety_host::{Allocation, BusSpec, GpuSpec, Kernel, KernelCounters};
use nicety_nic_core::library::Messages;
use nicety_nic_core::parts::{self, Early};
use nicety_nic_core::{
    CardError, CardReport, CardSpec, Counters, Design, NodeContext, NodeSpec, OfDesign, Pairs,
    RefusedCommand, cards_of,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::rc::Rc;
use std::sync::Arc;

/// The design with RDMA between registered memories.
pub const DESIGN: &Design = &Design {
    modes: &["put"],
    stages: &[stages::STAGES, parts::stages::ENGINE, parts::stages::GPU_MEMORY],
    hints: |cards| {
        let own = cards_of::<Node>(cards);
        hints(&own.map(|(rank, node)| (rank, node.card.clone(), node.messenger.clone())).collect::<Vec<_>>())
    },
    ..Design::new("apenet", "apenet-v5", "RDMA", |reader| Arc::new(read_apenet(reader)))
};

/// The counters of a card with RDMA, and the busy times of its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "RdmaReport")]
pub struct Report {
    /// Counters of the card.
    #[serde(flatten)]
    pub card: Statistics,
    /// Busy time of all transmit engines, in picoseconds.
    pub transmit_busy_ps: u64,
    /// Busy time of all receive engines, in picoseconds.
    pub receive_busy_ps: u64,
    /// Busy time of the embedded processor, in picoseconds.
    pub processor_busy_ps: u64,
    /// Peak number of commands that waited for the embedded processor.
    pub processor_queue: u64,
    /// Number of regions registered at the end, including those of the library.
    pub regions: u64,
    /// Number of pages registered at the end.
    pub pages: u64,
    /// Counters of the host's kernel.
    #[serde(skip)]
    pub kernel: KernelCounters,
}

impl Counters for Report {
    fn kernel(&self) -> KernelCounters {
        self.kernel
    }
}

/// An APEnet+ card, and the library of its host.
pub struct Node {
    card: Rc<Card>,
    messenger: Rc<Messenger>,
}

impl Node {
    /// Returns the card.
    pub const fn card(&self) -> &Rc<Card> {
        &self.card
    }

    /// Returns the process with this number, and opens its event queue. Returns `None` for the library's own number,
    /// `u32::MAX`.
    pub fn process(&self, number: u32) -> Option<Process> {
        (number != LIBRARY).then(|| Process::new(&self.card, number))
    }
}

impl OfDesign for ApenetSpec {
    const DESIGN: &'static Design = DESIGN;
}

impl CardSpec for ApenetSpec {
    fn design(&self) -> &'static Design {
        DESIGN
    }

    fn bus(&self) -> Option<&BusSpec> {
        Some(&self.bus)
    }

    fn node(&self) -> NodeSpec {
        self.node
    }

    fn gpu(&self) -> Option<GpuSpec> {
        self.gpu
    }

    fn registers(&self) -> Option<u64> {
        Some(self.limits.pages * self.kernel.page)
    }

    fn protocol(&self) -> String {
        // The window is part of the protocol: the library at the far end returns credits per window.
        format!("APEnet+ packets, {} messages ahead", self.messages.window)
    }

    fn packet_payload(&self) -> Option<u64> {
        Some(self.packet)
    }

    fn eager(&self) -> Option<u64> {
        Some(self.messages.eager)
    }

    fn install(
        self: Arc<Self>,
        node_context: NodeContext<'_>,
    ) -> Result<Rc<dyn nicety_nic_core::Card>, CardError> {
        let NodeContext {
            sim, nodes, ordered, memory, gpu, cpus, port, packet_payload, eager, recorder, ..
        } = node_context;
        let kernel = Rc::new(Kernel::new(sim, cpus, self.kernel));
        let (packet, eager) = (packet_payload.unwrap_or(self.packet), eager.unwrap_or(self.messages.eager));
        let spec = match packet < self.packet || eager < self.messages.eager {
            true => Arc::new(ApenetSpec {
                packet: packet.min(self.packet),
                messages: MessagesSpec { eager: eager.min(self.messages.eager), ..self.messages },
                ..ApenetSpec::clone(&self)
            }),
            false => self,
        };
        let card = Card::install(sim, spec, (memory.clone(), gpu), kernel, port, (nodes, ordered), recorder)?;
        let messenger = Messenger::new(&card);
        Ok(Rc::new(Node { card, messenger }))
    }
}

impl OfDesign for Node {
    const DESIGN: &'static Design = DESIGN;
}

impl nicety_nic_core::Card for Node {
    fn design(&self) -> &'static Design {
        DESIGN
    }

    fn report(&self) -> CardReport {
        let (busy, (regions, pages)) = (self.card.busy(), self.card.registered());
        CardReport::new(Report {
            card: self.card.statistics(),
            transmit_busy_ps: busy.transmit.ps(),
            receive_busy_ps: busy.receive.ps(),
            processor_busy_ps: busy.processor.ps(),
            processor_queue: self.card.longest_queue() as u64,
            regions,
            pages,
            kernel: self.card.kernel().counters(),
        })
    }

    /// Returns refusals with an event that no program has taken, and lost events. Without this report, a program could
    /// continue although its bytes are missing.
    fn refused_commands(&self) -> Vec<RefusedCommand> {
        let (refused, lost) = self.card.events.unnoticed();
        let refused = refused.into_iter().map(|((why, node), times)| RefusedCommand {
            command: "RDMA",
            code: why.name(),
            place: format!("by rank {}; no program has taken the event", node.0),
            times,
        });
        let lost = lost.into_iter().map(|(process, times)| RefusedCommand {
            command: "event",
            code: "no room in its queue",
            place: format!("lost to process {process}; raise events.entries or events.user"),
            times,
        });
        refused.chain(lost).chain(self.messenger.unnoticed()).collect()
    }

    fn unusable(&self) -> u64 {
        self.card.statistics().unusable
    }

    fn adopt(&self, allocation: &Allocation) {
        self.messenger.leases.adopt(allocation.address(), allocation.len());
    }

    fn library(&self) -> Option<Rc<dyn Messages>> {
        Some(self.messenger.clone())
    }

    fn match_in_library(&self, pairs: Pairs) -> Result<(), CardError> {
        self.messenger.have_pairs(pairs);
        Ok(())
    }

    fn early(&self) -> Option<&Early> {
        Some(self.messenger.library.early())
    }
}

impl From<ApenetError> for CardError {
    fn from(error: ApenetError) -> CardError {
        use ApenetError as E;
        match error {
            // These arguments are invalid at any time.
            E::NoNode { .. } | E::Message { .. } | E::Address { .. } | E::Empty => {
                CardError::Input(error.to_string())
            }
            _ => CardError::Failed(error.to_string()),
        }
    }
}
