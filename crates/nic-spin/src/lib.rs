//! The card of the sPIN paper: Portals 4 messages, with packet handlers on handler processors.
//!
//! A packet passes through `transmit`, `receive`, `handlers`, `deposit` and `complete`, in this order, and returns to
//! none of them. A module imports only from the modules above it in this table:
//!
//! | module | contents |
//! |---|---|
//! | `wire` | the header of a packet as bytes |
//! | `spec` | the card's part of a spec |
//! | `programs` | programs with handlers, applications, HPU memory, attached handlers |
//! | `watch` | an observer of packets and handlers |
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
mod programs;
mod receive;
pub mod resources;
mod spec;
pub mod stages;
mod transmit;
mod watch;
mod wire;

pub use design::DESIGN;
pub use design::node::Node;
pub use design::{PortalsReport, Report, TransportReport};
pub use handlers::commands::printf::Printed;
pub use handlers::contention::{AtomicWord, HeldWord, RetriedWord};
pub use handlers::memory::cached::{CacheCounts, CacheUse};
pub use handlers::memory::levels::LevelUse;
pub use handlers::memory::waits::WaitingLine;
pub use handlers::run::frames::{Frame, FrameAction, FrameLimits, Handled, Owner as FrameOwner};
pub use handlers::run::frames::{Frames, load_frame_handler};
pub use host::CallError;
pub use host::command::{Appending, Pending};
pub use host::match_bits::MESSAGES;
pub use nicety_nic_core::parts::{DueTime, Offered, Pace};
pub use programs::application::HandlerStatistics;
pub use programs::application::{ApplicationConfig, ApplicationId, ApplicationReport};
pub use programs::attachments::{Attach, AttachError, Attachment, HpuMemoryId, State};
pub use programs::program::{HandlerError, HandlerNames, Handlers, map};
pub use receive::intake::Unusable;
pub use spec::pspin_map;
pub use spec::read_hpu;
pub use spec::{CommandsSpec, DataCacheSpec, HpuSpec, Scheduling, SpinSpec};
pub use spec::{InstructionCacheSpec, Level, LevelSpec, MemorySpec, MessagesSpec, PacketsSpec, Piece};
pub use transmit::generate::{Generated, Target};
pub use watch::Watch;

use deposit::reply::Atomics;
use handlers::clusters::packets::Scheduler;
use handlers::contention::Contention;
use handlers::hpus::Hpus;
use handlers::memory::levels::Memories;
use handlers::refusals::Refusals;
use host::messages::Messages;
use host::view::{ChangeOrigin, HostView};
use incoming::IncomingTable;
use nicety_fabric::Port;
use nicety_host::{Memory, Notice};
use nicety_kernel::{Credits, Pool, Signal, Sim};
use nicety_nic_core::parts::Dma;
use nicety_nic_core::parts::transport::{TransportStatistics, Undelivered, Wire};
use nicety_nic_core::{FailureKind, Log, ProgramFailure, RefusedCommand};
use nicety_portals::{Effect, Effects, Interface, MeHandle, Statistics, WaitingTriggered};
use nicety_types::{Duration, MessageId, NodeId, Occupancy, Path, Payload, Recorder, Stage, Starter, Time};
use programs::attachments::Attachments;
pub use receive::contexts::ContextUse;
use receive::contexts::Contexts;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use transmit::SendEngine;
use transmit::reply_timeout::Answers;

/// Busy times of parts of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// The matching unit.
    pub matching: Duration,
    /// The link, for packets that this card sends.
    pub link: Duration,
    /// The host bus, towards the card.
    pub bus_to_card: Duration,
    /// The host bus, towards host memory.
    pub bus_to_host: Duration,
    /// The send engine. It starts a message one gap after the previous one, or once that has left.
    pub send_engine: Option<Duration>,
    /// The units that move packets, on a card with clusters of handler processors.
    pub movers: Option<Movers>,
    /// Contexts of messages: `hpu.contexts`.
    pub contexts: ContextUse,
}

/// Busy times of the units that move packets, one beat a cycle, on a card with clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Movers {
    /// The writer of the packet buffer.
    pub writer: Duration,
    /// The sender of handlers' packets.
    pub sender: Duration,
    /// The busiest cluster, and its DMA engine.
    pub cluster: (usize, Duration),
    /// The command engine with the most occupied places (`hpu.commands.engine_commands`), and the time for which they were, over the places.
    pub engine: Option<(&'static str, Duration)>,
    /// The busiest channel between the engines and the card's memories (`hpu.interconnect`).
    pub channel: Option<(&'static str, Duration)>,
    /// Places of packets in clusters: `hpu.packets.in_flight`.
    pub in_flight: Occupied,
    /// The memories of clusters for packets: `hpu.packets.cluster_buffer`.
    pub cluster_buffer: Occupied,
    /// The packet buffer: `hpu.packets.buffer`.
    pub packet_buffer: Occupied,
}

/// Mean time per place for which packets occupied the places of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupied {
    /// The time that the packets need: without waits for the copy and for a processor.
    pub needed: Duration,
    /// The time including these waits.
    pub taken: Duration,
}

/// Most different failures that a card keeps. Further ones are only counted, by kind.
const FAILURES_KEPT: usize = 100;

/// The handler processors of a node's card.
pub struct Processors {
    sim: Sim,
    node: NodeId,
    hpu: Arc<HpuSpec>,
    hpus: Hpus,
    attachments: Attachments,
    failures: RefCell<Vec<ProgramFailure>>,
    /// Set when a handler is stopped.
    alarm: RefCell<Option<Arc<AtomicBool>>>,
    refusals: Refusals,
    contention: Contention,
    levels: Memories,
    log: Log,
    printed: Cell<Printed>,
    recorder: Recorder,
    watch: OnceCell<Rc<dyn Watch>>,
}

impl Processors {
    /// Returns handler processors without programs. Packets have at most `packet` bytes.
    fn new(sim: &Sim, hpu: Arc<HpuSpec>, packet: u64, log: Log, recorder: &Recorder) -> Processors {
        Processors {
            sim: sim.clone(),
            node: sim.node(),
            hpus: Hpus::new(sim, hpu.clone()),
            attachments: Attachments::new(&hpu),
            failures: RefCell::default(),
            alarm: RefCell::default(),
            refusals: Refusals::default(),
            contention: Contention::default(),
            levels: Memories::new(&hpu, packet),
            log,
            printed: Cell::default(),
            recorder: recorder.clone(),
            watch: OnceCell::new(),
            hpu,
        }
    }

    /// Returns the sum of the statistics of all handlers.
    pub fn handler_statistics(&self) -> HandlerStatistics {
        self.attachments.statistics()
    }

    /// Returns the failed handlers, for the first hundred reasons. Failures for other reasons are counted by kind.
    pub fn failures(&self) -> Vec<ProgramFailure> {
        self.failures.borrow().clone()
    }

    /// Returns whether a trap or an application's budget has stopped a handler.
    pub fn has_stopped_one(&self) -> bool {
        let failures = self.failures.borrow();
        failures.iter().any(|failure| matches!(failure.kind, FailureKind::Trap | FailureKind::Budget))
    }

    /// Sets `alarm` as soon as a trap or an application's budget stops a handler. That may end the run.
    pub fn on_stop(&self, alarm: Arc<AtomicBool>) {
        self.alarm.replace(Some(alarm));
    }

    /// Returns the words of memory that handlers hold one at a time: locks, and uncontended words that may be locks.
    pub fn held_words(&self) -> Vec<HeldWord> {
        self.contention.list()
    }

    /// Returns the word that handlers retried most often, among the words that are no locks.
    pub fn retried_word(&self) -> Option<RetriedWord> {
        self.contention.retried()
    }

    /// Returns whether handlers use atomic operations other than additions on words of memory, so that other handlers
    /// may wait or retry.
    pub fn takes_words(&self) -> bool {
        self.contention.takes()
    }

    /// Returns the number of lines filled into the instruction caches.
    pub fn code_lines_filled(&self) -> u64 {
        self.levels.fills()
    }

    /// Returns the use of each contended level of memory.
    pub fn memory_levels(&self) -> Vec<LevelUse> {
        self.levels.list()
    }

    /// Returns the use of the data caches, by the level behind them.
    pub fn data_caches(&self) -> Vec<CacheUse> {
        self.levels.list_caches()
    }

    /// Returns the commands of handlers that this card has refused, in the order of their first refusals.
    pub fn refused_commands(&self) -> Vec<RefusedCommand> {
        self.refusals.list()
    }

    /// Returns the counters of handlers' output.
    pub fn printed(&self) -> Printed {
        self.printed.get()
    }
}

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
    posted: RefCell<VecDeque<(Time, Effect, ChangeOrigin)>>,
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
        let mut matching = Occupancy::new(stages::MATCH, stages::MATCH_QUEUED);
        matching.record(recorder, resources::MATCHING);
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
            if let Some(seen) = self.apply(effect, ChangeOrigin { path: path.clone(), message }) {
                visible = seen;
            }
        }
        self.effects.replace(effects);
        visible
    }

    /// Carries out an effect. Returns the path up to the time at which the host sees it, if it does.
    fn apply(self: &Rc<Card>, effect: Effect, seen: ChangeOrigin) -> Option<Path> {
        let ChangeOrigin { path, message } = seen;
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
                posted.push_back((visible, seen_by_host, ChangeOrigin { path: path.clone(), message }));
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
