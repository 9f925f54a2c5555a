//! The flow processor as a [`Design`].

use crate::spec::read_processor;
use crate::stages;
use crate::wire::CHECKSUM;
use crate::{
    Card, ChannelCounters, MessageError, MicroengineReport, NfpSpec, PortReport, ProcessTable, QueueCounters,
    Slot,
};
use nicety_host::{BusSpec, KernelCounters};
use nicety_hpu::Core;
use nicety_nic_core::library::Messages;
use nicety_nic_core::parts::Early;
use nicety_nic_core::{
    CardError, CardReport, CardSpec, Counters, Design, LISTED, LinkLayer, NodeContext, NodeSpec, OfDesign,
    Pairs, ProgramFailure, RankedCards, cards_of, counted,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::iter::successors;
use std::rc::Rc;
use std::sync::Arc;

/// The design of cards with long-running processes on microengines, and channels to these processes.
pub const DESIGN: &Design = &Design {
    modes: &["channels"],
    natural_mode: Some("channels"),
    stages: &[stages::STAGES],
    hints,
    ..Design::new("nfp", "nfp-4000", "processes and channels", |reader| Arc::new(read_processor(reader)))
};

/// The counters of a card with microengines: of its channels, its port, and its microengines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ChannelReport")]
pub struct Report {
    /// Counters of the channels to processes.
    #[serde(flatten)]
    pub channels: ChannelCounters,
    /// Counters of the card's Ethernet port.
    pub port: PortReport,
    /// The microengines with a program.
    pub microengines: Vec<MicroengineReport>,
    /// The further cards of the host, from card 1 on.
    pub further_cards: Vec<FurtherReport>,
    /// Entries into the host's kernel.
    #[serde(skip)]
    pub kernel: KernelCounters,
}

/// The counters of a further card of a host. Such a card has no port to the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "FurtherCard")]
pub struct FurtherReport {
    /// The number of the card in the host.
    pub card: usize,
    /// Counters of the channels to processes.
    #[serde(flatten)]
    pub channels: ChannelCounters,
    /// The microengines with a program.
    pub microengines: Vec<MicroengineReport>,
}

impl FurtherReport {
    fn of(table: &ProcessTable) -> FurtherReport {
        FurtherReport {
            card: table.number(),
            channels: table.card().channel_counters(),
            microengines: table.microengines(),
        }
    }
}

impl Counters for Report {
    fn kernel(&self) -> KernelCounters {
        self.kernel
    }
}

/// Returns deadlock hints: the state of processes, frames at ports, and sends that wait.
fn hints(cards: &RankedCards) -> String {
    let tables: Vec<(u32, Rc<ProcessTable>)> = cards_of(cards).collect();
    let facts = |of: fn(&ProcessTable) -> Vec<String>| {
        let of_host = move |table: &ProcessTable| table.all().flat_map(of).collect::<Vec<_>>();
        tables.iter().flat_map(move |(rank, table)| of_host(table).into_iter().map(move |fact| (*rank, fact)))
    };
    let (processes, queues) = (facts(|table| table.doings()), facts(|table| frames(&table.port())));
    let (mut text, mut room) = (String::new(), LISTED);
    list(&mut text, &mut room, processes, ("on the card of rank", "more process", "more processes"));
    list(
        &mut text,
        &mut room,
        queues,
        ("on the card of rank", "more queue of a port", "more queues of ports"),
    );
    let sends = facts(|table| table.blocked_sends());
    list(&mut text, &mut { LISTED }, sends, ("at rank", "more send that waits", "more sends that wait"));
    text
}

/// Adds facts of ranks to a text while there is room, and then the number of further facts.
fn list(
    text: &mut String,
    room: &mut usize,
    facts: impl Iterator<Item = (u32, String)>,
    (place, one, several): (&str, &str, &str),
) {
    let mut others = 0;
    for (rank, fact) in facts {
        match room.checked_sub(1) {
            Some(left) => {
                *room = left;
                *text += &format!("\n  note: {place} {rank}, {fact}");
            }
            None => others += 1,
        }
    }
    match others {
        0 => {}
        1 => *text += &format!("\n  note: and there is 1 {one} on the cards"),
        _ => *text += &format!("\n  note: and there are {others} {several} on the cards"),
    }
}

/// Describes the frames that a card's port still holds or has dropped.
fn frames(port: &PortReport) -> Vec<String> {
    let of = |queue: &QueueCounters| {
        let QueueCounters { queue, unclaimed, waiting, .. } = *queue;
        let waits = format!("{} of queue {queue} for a process to receive", counted(waiting, "frame"));
        let dropped =
            format!("{} for queue {queue}, which no process had opened", counted(unclaimed, "frame"));
        let waits = (waiting > 0).then(|| format!("the port keeps {waits}"));
        waits.into_iter().chain((unclaimed > 0).then(|| format!("the port dropped {dropped}")))
    };
    port.queues.iter().flat_map(of).collect()
}

impl OfDesign for NfpSpec {
    const DESIGN: &'static Design = DESIGN;
}

impl CardSpec for NfpSpec {
    fn design(&self) -> &'static Design {
        DESIGN
    }

    fn bus(&self) -> Option<&BusSpec> {
        Some(&self.bus)
    }

    fn node(&self) -> NodeSpec {
        self.node
    }

    fn core(&self) -> Option<&Core> {
        Some(&self.core)
    }

    fn isa(&self) -> Option<&str> {
        Some(&self.isa)
    }

    fn registers(&self) -> Option<u64> {
        Some(self.node.host.memory / 4)
    }

    fn link_layer(&self) -> LinkLayer {
        LinkLayer::Ethernet { checksum: CHECKSUM }
    }

    fn protocol(&self) -> String {
        // The card's processes split messages into frames, and the receiving card must accept these frames.
        let (frame, message) = (self.port.payload, self.channels.message);
        format!("Ethernet frames of up to {frame} B, in messages of up to {message} B")
    }

    fn largest_packet(&self) -> u64 {
        self.port.payload.max(self.port.least)
    }

    fn install(
        self: Arc<Self>,
        node_context: NodeContext<'_>,
    ) -> Result<Rc<dyn nicety_nic_core::Card>, CardError> {
        let NodeContext { sim, nodes, memory, cpus, port, recorder, .. } = node_context;
        let install = |slot: &Slot, port, nodes| {
            let card =
                Card::install(sim, self.clone(), memory.clone(), cpus, (port, nodes), (slot, recorder));
            ProcessTable::new(sim, card, nodes, slot.card)
        };
        let first = Slot::default();
        let slots = successors(Some(first.next()), |slot| Some(slot.next()));
        let further = slots.take(self.cards - 1).map(|slot| Rc::new(install(&slot, None, 1)));
        Ok(Rc::new(install(&first, (nodes > 1).then_some(port), nodes).with_further(further.collect())))
    }
}

impl OfDesign for ProcessTable {
    const DESIGN: &'static Design = DESIGN;
}

impl nicety_nic_core::Card for ProcessTable {
    fn design(&self) -> &'static Design {
        DESIGN
    }

    fn report(&self) -> CardReport {
        CardReport::new(Report {
            microengines: self.microengines(),
            channels: self.card().channel_counters(),
            port: self.port(),
            further_cards: self.further().iter().map(|table| FurtherReport::of(table)).collect(),
            kernel: self.all().map(|table| table.card().kernel_counters()).sum(),
        })
    }

    fn failures(&self) -> Vec<ProgramFailure> {
        ProcessTable::failures(self)
    }

    fn unusable(&self) -> u64 {
        self.port().unusable()
    }

    fn library(&self) -> Option<Rc<dyn Messages>> {
        Some(self.messenger().clone())
    }

    fn match_in_library(&self, pairs: Pairs) -> Result<(), CardError> {
        self.have_pairs(pairs)
    }

    fn early(&self) -> Option<&Early> {
        Some(self.messenger().library.early())
    }
}

impl From<MessageError> for CardError {
    fn from(error: MessageError) -> CardError {
        let text = error.to_string();
        match error {
            // These errors are detected before the message reaches the card.
            MessageError::Rank { .. } | MessageError::TooLong { .. } | MessageError::Microengine { .. } => {
                CardError::Input(text)
            }
            _ => CardError::Failed(text),
        }
    }
}
