//! The card of the sPIN paper: Portals 4 messages, with packet handlers on handler processors.
//!
//! A packet passes through `transmit`, `receive`, `handlers`, `deposit` and `complete`, in this order, and returns to
//! none of them. A module imports only from the modules above it in this table:
//!
//! | module | contents |
//! |---|---|
//! | `wire` | the header of a packet as bytes |
//! | `spec` | the card's part of a spec |
//! | `stages`, `resources` | the stages of a message and the resources that only this card has |
//! | `incoming` | the messages in progress at the receiver, and the state of each |
//! | `transmit` | send engine, packetisation, fetches from host memory; the packet generator; timeouts of replies |
//! | `receive` | packet buffer, validation, matching, contexts |
//! | `handlers` | disposition of packets; handler processors, runs, commands, results |
//! | `deposit` | writes to host memory; gets and atomic operations, and their replies |
//! | `complete` | settling of packets; completion and events in message order |
//! | `host` | host calls: set-up, posts, waits, `send` and `recv`; the host's view of the card |
//! | `design` | the card behind the design seam, and its deadlock hints |
//!
//! The `portals` crate decides which entry a message matches and which events it generates. The `hpu` crate executes
//! instructions. This crate adds the time they take.

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

use deposit::reply::Atomics;
use host::messages::Messages;
use host::view::{HostView, Seen};
use incoming::IncomingTable;
use nicety_fabric::Port;
use nicety_host::{Memory, Notice};
use nicety_kernel::{Credits, Pool, Signal, Sim};
use nicety_nic_core::parts::Dma;
use nicety_nic_core::parts::transport::{TransportStatistics, Undelivered, Wire};
use nicety_nic_core::{FailureKind, Log, ProgramFailure, RefusedCommand};
use nicety_nic_processors as processors;
use nicety_nic_processors::clusters::packets::Scheduler;
use nicety_nic_processors::{Busy, Processors};
use nicety_portals::{Effect, Effects, Interface, MeHandle, Statistics, WaitingTriggered};
use nicety_types::{MessageId, NodeId, Occupancy, Path, Payload, Recorder, Stage, Starter, Time};
use receive::contexts::Contexts;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use transmit::SendEngine;
use transmit::reply_timeout::Answers;

/// One node's card: its handler processors, and messages.
pub struct Card {
    sim: Sim,
    node: NodeId,
    nodes: u32,
    spec: Arc<SpinSpec>,
    dma: Rc<Dma>,
    port: Rc<Wire>,
    /// Unusable packets received.
    unusable: Cell<Unusable>,
    interface: RefCell<Interface>,
    effects: RefCell<Effects>,
    engine: SendEngine,
    /// Slots for messages that handlers have handed to the card to send.
    staging: Credits,
    /// Credits for bursts of handlers' DMA to and from the host, where the spec limits them.
    host_bursts: Option<Box<[Credits; 2]>>,
    matching: RefCell<Occupancy>,
    incoming: RefCell<IncomingTable>,
    /// Serializes atomic operations on host memory.
    atomics: Atomics,
    /// Operations in progress that need a reply.
    replies: Cell<u32>,
    answers: Answers,
    scheduler: Scheduler,
    processors: Processors,
    contexts: Contexts,
    /// Match entries that handlers have left open.
    held: RefCell<Vec<MeHandle>>,
    view: HostView,
    /// The state of `send` and `recv`, if it is on a node.
    library: OnceCell<Messages>,
    /// Changes in flight to the host's view, in the order in which the host sees them.
    posted: RefCell<VecDeque<(Time, Effect, Seen)>>,
    posting: Signal,
    messages: Cell<u64>,
    /// Whether the card generates packets and drops received ones.
    discards: Cell<bool>,
    recorder: Recorder,
}

impl Deref for Card {
    type Target = Processors;
    fn deref(&self) -> &Processors {
        &self.processors
    }
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
        let mut matching = Occupancy::new(processors::stages::MATCH, processors::stages::MATCH_QUEUED);
        matching.record(recorder, processors::resources::MATCHING);
        let card = Rc::new(Card {
            node,
            nodes,
            dma: Dma::new(sim, spec.bus, memory, recorder),
            port: Wire::new(sim, port, spec.transport, nodes, recorder),
            unusable: Cell::default(),
            interface: RefCell::new(Interface::new(node, spec.limits)),
            effects: RefCell::default(),
            engine: SendEngine::new(Pool::new(sim, 1), spec.send_gap),
            staging: Credits::new(sim, spec.send_queue),
            host_bursts: spec
                .hpu
                .interconnect
                .map(|limits| Box::new([(); 2].map(|()| Credits::new(sim, limits.host_bursts.into())))),
            matching: RefCell::new(matching),
            incoming: RefCell::default(),
            atomics: Atomics::new(sim),
            replies: Cell::new(0),
            answers: Answers::new(sim),
            scheduler: Scheduler::new(sim, &spec.hpu),
            processors: Processors::new(sim, spec.hpu.clone(), spec.packet_payload, log, recorder),
            contexts: Contexts::new(sim, spec.hpu.contexts, spec.link.buffer, spec.hpu.scheduling),
            held: RefCell::default(),
            view: HostView::new(Signal::new(sim)),
            library: OnceCell::new(),
            posted: RefCell::default(),
            posting: Signal::new(sim),
            messages: Cell::new(0),
            discards: Cell::new(false),
            recorder: recorder.clone(),
            sim: sim.clone(),
            spec,
        });
        card.keep_near();
        card.contexts.belong_to(&card);
        sim.spawn(card.clone().listen());
        sim.spawn(card.clone().listen_to_itself());
        sim.spawn(card.clone().publish());
        if let Some(patience) = card.port.patience() {
            sim.spawn(card.clone().watch_answers(patience));
        }
        card
    }

    /// Marks the data that every packet touches as [kept near](Sim::keep_near).
    fn keep_near(&self) {
        self.sim.keep_near(&self.incoming);
        self.sim.keep_near(&self.matching);
        self.sim.keep_near(&self.engine);
        self.port.keep_near();
        self.dma.keep_near();
    }

    /// Sets the user of this node's operations, which match entries may require. The default is user 0. Operations in
    /// flight keep their user.
    pub fn set_uid(&self, uid: u32) {
        self.interface.borrow_mut().set_uid(uid);
    }

    /// Returns the user of this node's operations (`PtlGetUid`).
    pub fn uid(&self) -> u32 {
        self.interface.borrow().uid()
    }

    /// Returns the counters of the Portals interface.
    pub fn statistics(&self) -> Statistics {
        *self.interface.borrow().statistics()
    }

    /// Returns the counters of the card's reliable transport.
    pub fn transport_statistics(&self) -> TransportStatistics {
        self.port.statistics()
    }

    /// Returns the first hundred messages that this card failed to deliver.
    pub fn undelivered(&self) -> Vec<Undelivered> {
        self.port.undelivered()
    }

    /// Returns the counters of unusable packets.
    pub fn unusable(&self) -> Unusable {
        self.unusable.get()
    }

    /// Returns the number of unfinished operations of this card, started or waiting for a trigger.
    pub fn pending_operations(&self) -> usize {
        self.interface.borrow().pending_operations()
    }

    /// Returns one of the card's waiting triggered operations, and their number.
    pub fn waiting_triggered(&self) -> Option<(WaitingTriggered, u32)> {
        let interface = self.interface.borrow();
        Some((interface.waiting_triggered()?, interface.pending_triggered()))
    }

    /// Returns the number of packets that this card has put on its link.
    pub fn packets_sent(&self) -> u64 {
        self.port.packets().0
    }

    /// Returns the busy times of the card's units so far.
    pub fn busy(&self) -> Busy {
        let (bus_to_card, bus_to_host) = self.dma.bus().busy();
        Busy {
            matching: self.matching.borrow().busy(),
            link: self.port.busy(),
            bus_to_card,
            bus_to_host,
            send_engine: Some(self.engine.busy.get()),
            movers: self.scheduler.movers(),
            contexts: self.contexts.used(),
        }
    }

    /// Calls `act` on the interface at the end of `path`, and carries out the effects.
    fn with_effects(self: &Rc<Card>, path: Path, act: impl FnOnce(&mut Interface, &mut Effects)) {
        self.with_effects_of(None, path, act);
    }

    /// Does the same, and attributes changes in the host's view to `message`. Returns the path up to the time at
    /// which the host sees them.
    fn with_effects_of(
        self: &Rc<Card>,
        message: Option<MessageId>,
        path: Path,
        act: impl FnOnce(&mut Interface, &mut Effects),
    ) -> Path {
        debug_assert!(
            path.at() >= self.sim.now(),
            "a path that ends in the past would show its effects too early"
        );
        let mut effects = self.effects.take();
        let (before, after) = {
            let mut interface = self.interface.borrow_mut();
            let before = interface.unanswered_operations();
            act(&mut interface, &mut effects);
            (before, interface.unanswered_operations())
        };
        self.answers.count(before, after);
        let mut visible = path.clone();
        for effect in effects.drain() {
            if let Some(seen) = self.apply(effect, Seen { path: path.clone(), message }) {
                visible = seen;
            }
        }
        self.effects.replace(effects);
        visible
    }

    /// Carries out an effect. Returns the path up to the time at which the host sees it, if it does.
    fn apply(self: &Rc<Card>, effect: Effect, seen: Seen) -> Option<Path> {
        let Seen { path, message } = seen;
        match effect {
            Effect::Start(out) => {
                self.start(&out, path, Starter::Trigger);
                None
            }
            Effect::Ack(header) => {
                self.send_from_card(header, Payload::empty(), None, None, path, Starter::Card);
                None
            }
            Effect::Redeliver { header, start } => {
                self.redeliver(header, start, path);
                None
            }
            seen_by_host => {
                // A posted write: it stays behind all earlier ones.
                let mut posted = self.posted.borrow_mut();
                let behind = posted.back().map_or(Time::ZERO, |(time, ..)| *time);
                let notice = match seen_by_host {
                    Effect::Count { .. } => Notice::Counter,
                    _ => Notice::Event,
                };
                let mut path = self.dma.bus().post(notice, path);
                let visible = path.at().max(behind);
                path.advance(Stage::DEPOSIT, visible);
                posted.push_back((visible, seen_by_host, Seen { path: path.clone(), message }));
                self.posting.notify_one();
                Some(path)
            }
        }
    }

    /// Makes events and counts visible to the host when they have crossed the bus. Runs as a task.
    async fn publish(self: Rc<Card>) {
        loop {
            self.posting.wait_until(|| !self.posted.borrow().is_empty()).await;
            let visible = self.posted.borrow().front().expect("just seen").0;
            self.sim.until(visible).await;
            // Bytes that arrive at this instant were handed over before the event.
            self.dma.land_due();
            let (_, effect, seen) = self.posted.borrow_mut().pop_front().expect("only this task takes them");
            match effect {
                Effect::Event { eq, event } if self.is_for_library(eq, &event, &seen) => {}
                Effect::Event { eq, event } => self.view.event(eq, event, seen),
                Effect::EventDropped { eq } => {
                    self.view.lost(eq);
                    if let Some(messages) = self.library.get().filter(|messages| messages.events == eq) {
                        messages.wake_all();
                    }
                }
                Effect::Count { ct, value } => self.view.count(ct, value, seen),
                Effect::Start(_) | Effect::Ack(_) | Effect::Redeliver { .. } => {
                    unreachable!("carried out by the card")
                }
            }
        }
    }
}
