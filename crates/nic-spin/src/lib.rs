//! The card of the sPIN paper: Portals 4 messages, with packet handlers on handler cores.
//!
//! A packet passes through `transmit`, `receive`, `handlers`, `deposit` and `complete` in this order, and never goes
//! back. A module imports only from modules above it in this table:
//!
//! | module | contents |
//! |---|---|
//! | `wire` | the header of a packet as bytes |
//! | `spec` | the card's part of a spec |
//! | `stages`, `resources` | the stages of a message and the resources that only this card has |
//! | `incoming` | the messages in progress at the receiver, and the state of each |
//! | `transmit` | send engine, packetisation, fetches from host memory; the packet generator; timeouts of replies |
//! | `receive` | packet buffer, validation, matching, contexts |
//! | `handlers` | disposition of packets; the runs of handlers, their commands and results |
//! | `deposit` | writes to host memory; gets and atomic operations, and their replies |
//! | `complete` | settling of packets; completion and events in message order |
//! | `host` | host calls: set-up, posts, waits, `send` and `recv`; the host's view of the card |
//! | `design` | the card with the interface of the design seam, and its deadlock hints |
//!
//! Each stage of [`Card`] owns its state, and neighbouring stages call a few of its functions. The `portals` crate
//! decides which entry a message matches and which events it generates. The `nic-processors` crate runs handlers. This
//! crate adds the simulated time of the card's other parts.

mod complete;
mod deposit;
mod design;
mod handlers;
mod host;
mod incoming;
mod receive;
pub mod resources;
mod spec;
pub mod stages;
mod transmit;
mod wire;

pub use design::DESIGN;
pub use design::node::Node;
pub use design::{PortalsReport, Report, TransportReport};
pub use host::CallError;
pub use host::command::{Appending, Pending};
pub use host::match_bits::MESSAGES;
pub use receive::intake::Unusable;
pub use spec::{MessagesSpec, SpinSpec};
pub use transmit::generate::{Generated, Target};

use complete::Complete;
use deposit::reply::Atomics;
use handlers::HandlerStage;
use host::messages::Messages;
use host::view::HostView;
use incoming::IncomingTable;
use nicety_fabric::Port;
use nicety_host::Memory;
use nicety_kernel::{Signal, Sim};
use nicety_nic_core::Log;
use nicety_nic_core::parts::Dma;
use nicety_nic_core::parts::transport::{TransportStatistics, Wire};
use nicety_nic_processors::{Busy, Processors};
use nicety_portals::{Interface, Statistics, WaitingTriggered};
use nicety_types::{NodeId, Recorder};
use receive::Receive;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use transmit::Transmit;

/// One node's card. Each stage of a packet owns its state.
pub struct Card {
    sim: Sim,
    node: NodeId,
    nodes: u32,
    spec: Arc<SpinSpec>,
    recorder: Recorder,
    /// Reads and writes of host memory over the bus.
    dma: Rc<Dma>,
    /// Entries, counters and operations in progress.
    interface: RefCell<Interface>,
    /// The messages in progress at this receiver.
    incoming: RefCell<IncomingTable>,
    transmit: Transmit,
    receive: Receive,
    handlers: HandlerStage,
    /// Makes atomic operations on host memory run one after another.
    atomics: Atomics,
    complete: Complete,
    view: HostView,
    /// The state of `send` and `recv`, if the card is on a node.
    library: OnceCell<Messages>,
}

impl Card {
    /// Installs a card on its bus and its link, and starts its tasks. `nodes` is the number of hosts.
    pub fn install(
        sim: &Sim,
        spec: Arc<SpinSpec>,
        memory: Rc<Memory>,
        port: Port,
        nodes: u32,
        log: Log,
        recorder: &Recorder,
    ) -> Rc<Card> {
        let node = sim.node();
        let port = Wire::new(sim, port, spec.transport, nodes, recorder);
        let card = Rc::new(Card {
            node,
            nodes,
            dma: Dma::new(sim, spec.bus, memory, recorder),
            interface: RefCell::new(Interface::new(node, spec.limits)),
            incoming: RefCell::default(),
            transmit: Transmit::new(sim, &spec, port.clone()),
            receive: Receive::new(sim, &spec, port, recorder),
            handlers: HandlerStage::new(sim, &spec, log, recorder),
            atomics: Atomics::new(sim),
            complete: Complete::new(sim),
            view: HostView::new(Signal::new(sim)),
            library: OnceCell::new(),
            recorder: recorder.clone(),
            sim: sim.clone(),
            spec,
        });
        card.keep_near();
        card.receive.contexts().belong_to(&card);
        sim.spawn(card.clone().listen());
        sim.spawn(card.clone().listen_to_itself());
        sim.spawn(card.clone().publish());
        if let Some(patience) = card.transmit.link().patience() {
            sim.spawn(card.clone().watch_answers(patience));
        }
        card
    }

    /// Returns the handler cores.
    pub const fn processors(&self) -> &Processors {
        self.handlers.processors()
    }

    /// Requests that the data that every packet uses is [kept near](Sim::keep_near).
    fn keep_near(&self) {
        self.sim.keep_near(&self.incoming);
        self.receive.keep_near(&self.sim);
        self.transmit.keep_near(&self.sim);
        self.dma.keep_near();
    }

    /// Sets the user ID of this node's operations, which match entries may require. The default is user 0. Operations
    /// in flight keep their user ID.
    pub fn set_uid(&self, uid: u32) {
        self.interface.borrow_mut().set_uid(uid);
    }

    /// Returns the user ID of this node's operations (`PtlGetUid`).
    pub fn uid(&self) -> u32 {
        self.interface.borrow().uid()
    }

    /// Returns the counters of the Portals interface.
    pub fn statistics(&self) -> Statistics {
        *self.interface.borrow().statistics()
    }

    /// Returns the counters of the card's reliable transport.
    pub fn transport_statistics(&self) -> TransportStatistics {
        self.transmit.link().statistics()
    }

    /// Returns the card's end of its link.
    pub fn wire(&self) -> &Wire {
        self.transmit.link()
    }

    /// Returns the counters of unusable packets.
    pub fn unusable(&self) -> Unusable {
        self.receive.unusable()
    }

    /// Returns the number of this card's operations that have started or wait for a trigger, and have not finished.
    pub fn pending_operations(&self) -> usize {
        self.interface.borrow().pending_operations()
    }

    /// Returns one of the card's triggered operations that wait for their trigger, and the number of these operations.
    pub fn waiting_triggered(&self) -> Option<(WaitingTriggered, u32)> {
        let interface = self.interface.borrow();
        Some((interface.waiting_triggered()?, interface.pending_triggered()))
    }

    /// Returns the number of packets that this card has put on its link.
    pub fn packets_sent(&self) -> u64 {
        self.transmit.link().packets().0
    }

    /// Returns the busy times of the card's units so far.
    pub fn busy(&self) -> Busy {
        let (bus_to_card, bus_to_host) = self.dma.bus().busy();
        Busy {
            matching: self.receive.matching_busy(),
            link: self.transmit.link().busy(),
            bus_to_card,
            bus_to_host,
            send_engine: Some(self.transmit.engine_busy()),
            movers: self.handlers.movers(),
            contexts: self.receive.contexts().used(),
        }
    }
}
