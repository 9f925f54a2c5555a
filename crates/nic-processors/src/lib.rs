//! Handler cores of cards: cores and their memories, clusters of cores, commands, and runs of handlers.
//!
//! A module imports only from the modules above it in this table:
//!
//! | module | contents |
//! |---|---|
//! | `spec` | the sections `[hpu]` and `[memory]` of a spec |
//! | `programs` | programs with handlers, applications, HPU memory, attached handlers |
//! | `stages`, `resources` | the stages of a message and the resources of these cards |
//! | `watch` | an observer of packets and handlers |
//! | `commands` | numbers of commands, refusals, transfers in flight |
//! | `ready` | handlers that are ready to run, and their packets |
//! | `contention` | words of memory that handlers wait for or hold one at a time |
//! | `pspin` | a core as seen by handlers written for PsPIN |
//! | `hpus` | handler cores, their threads and their queue |
//! | `running` | a running handler, its memory, and the services of its card |
//! | `memory` | the levels of memory, their banks, and the caches before them |
//! | `clusters` | the packet scheduler of clusters, and the slots of packets |
//! | `run` | the run of a handler, slice after slice; handlers of frames |
//!
//! The `hpu` crate executes instructions. This crate adds the time they take. A card gives it packets, and implements
//! [`Commands`](running::Commands) for the commands that differ between cards. No card is named here.

pub mod clusters;
pub mod commands;
pub mod contention;
pub mod hpus;
pub mod memory;
pub mod programs;
pub mod pspin;
pub mod ready;
pub mod resources;
pub mod run;
pub mod running;
pub mod spec;
pub mod stages;
mod watch;

pub use contention::{AtomicWord, HeldWord, RetriedWord};
pub use memory::bank_waits::BankUse;
pub use memory::cached::{CacheCounts, CacheUse};
pub use memory::levels::LevelUse;
pub use memory::waits::WaitingLine;
pub use programs::application::HandlerStatistics;
pub use programs::application::{ApplicationConfig, ApplicationId, ApplicationReport};
pub use programs::attachments::{Attach, AttachError, Attachment, HpuMemoryId, State};
pub use programs::program::{HandlerError, HandlerNames, Handlers, map};
pub use run::frames::{Frame, FrameAction, FrameLimits, Handled, Owner as FrameOwner};
pub use run::frames::{Frames, load_frame_handler};
pub use run::observe;
pub use run::printf::Printed;
pub use run::profile::ProgramProfile;
pub use spec::pspin_map;
pub use spec::read_hpu;
pub use spec::{CommandsSpec, DataCacheSpec, HpuSpec, OuterCacheSpec, OuterCachesSpec, Scheduling};
pub use spec::{InstructionCacheSpec, Level, LevelSpec, MemorySpec, PacketsSpec, Piece};
pub use watch::Watch;

use commands::refusals::Refusals;
use contention::Contention;
use hpus::Hpus;
use hpus::issue::Issue;
use memory::levels::Memories;
use nicety_kernel::Sim;
use nicety_nic_core::{FailureKind, Log, ProgramFailure, RefusedCommand};
use nicety_types::{Duration, NodeId, Recorder};
use programs::attachments::Attachments;
use run::observe::Observe;
use run::profile::Profiles;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// The units that move packets, on a card with clusters of handler cores.
    pub movers: Option<Movers>,
    /// Contexts of messages: `hpu.contexts`.
    pub contexts: ContextUse,
}

/// The time for which messages have had contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextUse {
    /// The sum over all messages.
    pub taken: Duration,
    /// The time for which all contexts were in use.
    pub full: Duration,
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

/// The handler cores of a node's card.
pub struct Processors {
    sim: Sim,
    node: NodeId,
    /// The spec of the processors.
    pub hpu: Arc<HpuSpec>,
    /// The cores and their queue.
    pub hpus: Hpus,
    /// The programs, and the attached handlers.
    pub attachments: Attachments,
    failures: RefCell<Vec<ProgramFailure>>,
    /// Set when a handler is stopped.
    alarm: RefCell<Option<Arc<AtomicBool>>>,
    refusals: Refusals,
    /// The words that handlers wait for.
    pub contention: Contention,
    /// The levels of memory.
    pub levels: Memories,
    log: Log,
    printed: Cell<Printed>,
    recorder: Recorder,
    watch: OnceCell<Rc<dyn Watch>>,
    /// Boxed, since few nodes have profiles.
    profiles: OnceCell<Box<Profiles>>,
    observer: OnceCell<Rc<dyn Observe>>,
}

impl Processors {
    /// Returns handler cores without programs. Packets have at most `packet` bytes.
    pub fn new(sim: &Sim, hpu: Arc<HpuSpec>, packet: u64, log: Log, recorder: &Recorder) -> Processors {
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
            profiles: OnceCell::new(),
            observer: OnceCell::new(),
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
        self.contention.list(|place| self.variable_at(place))
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

    /// Returns the cycles in which a port of the issue that threads share was busy, the mean of all ports. None where each processor
    /// is a core of its own.
    pub fn issue_cycles(&self) -> Option<u64> {
        self.hpus.issue.as_ref().map(Issue::busy)
    }

    /// Returns the commands of handlers that this card has refused, in the order of their first refusals.
    pub fn refused_commands(&self) -> Vec<RefusedCommand> {
        self.refusals.list()
    }

    /// Returns the counters of handlers' output.
    pub fn printed(&self) -> Printed {
        self.printed.get()
    }

    /// Keeps a failure for the run's report. Equal ones are counted.
    pub fn report_failure(&self, kind: FailureKind, hpu: Option<usize>, text: String) {
        if let (FailureKind::Trap | FailureKind::Budget, Some(alarm)) = (kind, &*self.alarm.borrow()) {
            alarm.store(true, Ordering::Relaxed);
        }
        let mut failures = self.failures.borrow_mut();
        let known = failures.iter().any(|failure| failure.text == text);
        let text = match known || failures.len() < FAILURES_KEPT {
            true => text,
            false => format!("further handlers failed for other reasons ({})", kind.name()),
        };
        match failures.iter_mut().find(|failure| failure.text == text) {
            Some(same) => same.times += 1,
            None => {
                failures.push(ProgramFailure {
                    kind,
                    time: self.sim.now(),
                    node: self.node,
                    hpu,
                    text,
                    times: 1,
                });
            }
        }
    }
}
