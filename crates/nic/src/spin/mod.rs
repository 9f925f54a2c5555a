//! The card of the sPIN paper: Portals 4 messages, with packet handlers on handler processors.
//!
//! What happens to a message, in the order in which it happens:
//!
//! | part | file |
//! |---|---|
//! | a host's commands, and what it sees of the card | `host.rs`, `view.rs` |
//! | send engine, packetisation, fetching from host memory | `send.rs` |
//! | packet buffer, matching, deposit, completion in order | `receive.rs` |
//! | handler processors: pool, queue, one handler's run | `hpus.rs` |
//! | the commands a handler gives to the card | `commands.rs`, `printf.rs` |
//!
//! Which entry a message matches and which events it leaves is decided by the `portals` crate; how instructions run,
//! by the `hpu` crate. Here they get time.

mod commands;
mod handlers;
mod host;
mod hpus;
mod printf;
mod receive;
mod send;
mod view;

pub use handlers::{HandlerError, HandlerNames, Handlers};
pub use host::{Appending, CallError};
pub use hpus::HandlerStatistics;

use crate::SpinSpec;
use handlers::{Application, Attachment};
use hpus::Hpus;
use nicety_fabric::Port;
use nicety_host::{Bus, Memory};
use nicety_kernel::{Credits, Pool, Signal, Sim};
use nicety_portals::{Effect, Effects, Header, Interface, Statistics};
use nicety_types::{NodeId, Occupancy, Path, Payload, Stage, Time};
use receive::IncomingTable;
use send::{Bytes, Leaving, SendEngine};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use view::HostView;

/// A line that a handler printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When.
    pub time: Time,
    /// On which node.
    pub node: NodeId,
    /// On which handler processor.
    pub hpu: usize,
    /// What.
    pub text: String,
}

/// Takes the lines that handlers print; shared by all nodes.
pub type Log = Arc<dyn Fn(&LogLine) + Send + Sync>;

/// A handler that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub time: Time,
    /// On which node.
    pub node: NodeId,
    /// On which handler processor; none where the card itself refused a command.
    pub hpu: Option<usize>,
    /// What went wrong, where in the source.
    pub text: String,
}

/// Most faults a card keeps; further ones are only counted.
const FAULTS_KEPT: usize = 100;

/// One node's card.
pub struct Card {
    sim: Sim,
    node: NodeId,
    nodes: u32,
    spec: Rc<SpinSpec>,
    memory: Rc<Memory>,
    bus: Bus,
    port: Port,
    interface: RefCell<Interface>,
    effects: RefCell<Effects>,
    engine: SendEngine,
    /// Places for messages that handlers have given to the card to send.
    staging: Credits,
    matching: RefCell<Occupancy>,
    incoming: RefCell<IncomingTable>,
    hpus: Hpus,
    applications: RefCell<Vec<Rc<Application>>>,
    attachments: RefCell<Vec<Rc<Attachment>>>,
    /// A handler's DMA is done.
    transferred: Signal,
    view: HostView,
    /// What is on its way to the host's view, in the order in which it will be seen.
    posted: RefCell<VecDeque<(Time, Effect, Path)>>,
    posting: Signal,
    messages: Cell<u64>,
    faults: RefCell<Vec<Fault>>,
    log: Log,
}

impl Card {
    /// A card on its bus and its link, its services started. `nodes` is how many hosts there are to talk to.
    pub fn install(
        sim: &Sim,
        spec: Rc<SpinSpec>,
        memory: Rc<Memory>,
        port: Port,
        nodes: u32,
        log: Log,
    ) -> Rc<Card> {
        let node = sim.node();
        let card = Rc::new(Card {
            node,
            nodes,
            memory,
            bus: Bus::new(spec.bus),
            port,
            interface: RefCell::new(Interface::new(node, spec.limits)),
            effects: RefCell::default(),
            engine: SendEngine::new(Pool::new(sim, 1), spec.send_gap),
            staging: Credits::new(sim, spec.send_queue),
            transferred: Signal::new(sim),
            matching: RefCell::new(Occupancy::new(Stage::Match, Stage::MatchQueued)),
            incoming: RefCell::default(),
            hpus: Hpus::new(sim, &spec.hpu),
            applications: RefCell::default(),
            attachments: RefCell::default(),
            view: HostView::new(Signal::new(sim)),
            posted: RefCell::default(),
            posting: Signal::new(sim),
            messages: Cell::new(0),
            faults: RefCell::default(),
            log,
            sim: sim.clone(),
            spec,
        });
        sim.spawn(card.clone().listen());
        sim.spawn(card.clone().publish());
        for core in 0..card.spec.hpu.cores {
            sim.spawn(card.clone().serve_core(core));
        }
        card
    }

    /// What the Portals interface has counted.
    pub fn statistics(&self) -> Statistics {
        *self.interface.borrow().statistics()
    }

    /// What the handlers of this card have done, added up.
    pub fn handler_statistics(&self) -> HandlerStatistics {
        self.hpus.statistics()
    }

    /// Handlers that failed, the first hundred.
    pub fn faults(&self) -> Vec<Fault> {
        self.faults.borrow().clone()
    }

    /// Lets the interface do something at the instant `path` accounts for, and carries out what follows from it.
    fn with_effects(self: &Rc<Card>, path: Path, act: impl FnOnce(&mut Interface, &mut Effects)) {
        let mut effects = self.effects.take();
        act(&mut self.interface.borrow_mut(), &mut effects);
        for effect in effects.drain() {
            self.apply(effect, path);
        }
        self.effects.replace(effects);
    }

    fn apply(self: &Rc<Card>, effect: Effect, path: Path) {
        match effect {
            Effect::Start(out) => {
                self.sim.spawn(self.clone().fetch_and_send(out.header, out.start, Some(out.operation), path));
            }
            Effect::Ack(header) => self.acknowledge(header, path),
            seen_by_host => {
                // A posted write behind all that were posted before.
                let mut posted = self.posted.borrow_mut();
                let behind = posted.back().map_or(Time::ZERO, |(time, ..)| *time);
                let visible = (path.at() + self.bus.latency()).max(behind);
                let mut path = path;
                path.advance(Stage::Deposit, visible);
                posted.push_back((visible, seen_by_host, path));
                self.posting.notify_one();
            }
        }
    }

    fn acknowledge(self: &Rc<Card>, header: Header, path: Path) {
        let bytes = Bytes::Card { payload: Payload::empty(), path };
        let message = self.next_message();
        let leaving = Leaving { message, header, length: 0, bytes, operation: None };
        self.sim.spawn(self.clone().send(leaving));
    }

    /// Makes events and counts visible to the host when they have crossed the bus.
    async fn publish(self: Rc<Card>) {
        loop {
            self.posting.wait_until(|| !self.posted.borrow().is_empty()).await;
            let visible = self.posted.borrow().front().expect("just seen").0;
            self.sim.until(visible).await;
            let (_, effect, path) = self.posted.borrow_mut().pop_front().expect("only this task takes them");
            match effect {
                Effect::Event { eq, event } => self.view.event(eq, event, path),
                Effect::EventDropped { eq } => self.view.lost(eq),
                Effect::Count { ct, value } => self.view.count(ct, value, path),
                Effect::Start(_) | Effect::Ack(_) => unreachable!("carried out by the card"),
            }
        }
    }
}
