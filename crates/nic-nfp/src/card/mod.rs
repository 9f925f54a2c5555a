//! The card around the processor: channels between the host's threads and the processes, in virtual time.
//!
//! A file imports only from files above it in this table:
//!
//! | file | contents |
//! |---|---|
//! | `error.rs` | [`ChannelError`] |
//! | `record.rs` | the recording of messages on channels |
//! | `ethernet.rs` | the port: frames of processes |
//! | `calls.rs` | the `channel_*` calls of processes |
//! | `managers.rs` | the managers: mailboxes over the bus, transfer registers, DMA |
//! | `driver.rs` | the host's driver: threads, the shared interrupt, pinned pages |
//! | `device.rs` | [`Device`]: the calls of a host's programs |
//! | `pending.rs` | asynchronous calls on channels |
//! | `setup.rs` | channels connected before the run |
//!
//! The state machines of the two ends are in the `channels` crate, and model no time. In this module, each of their
//! actions takes virtual time: on the host's CPUs, on the bus, or on the clock of the microengines.
//!
//! # Accounting for time
//! Every mailbox has a path that accounts for the time of its message. The wait of a message in a mailbox counts as the
//! stage [receiver](crate::stages::RECEIVER). The path of a receiver that waited for the message continues the
//! message's path.

mod calls;
mod device;
mod driver;
mod error;
mod ethernet;
mod managers;
mod pending;
mod record;
mod setup;

pub use device::{Device, Selected};
pub use error::ChannelError;
pub use ethernet::{MESSAGE_QUEUE, PortCounters, QueueCounters};
pub use pending::{Job, Pending};

use crate::{Nfp, NfpSpec};
use calls::{ContextCall, Processes};
use driver::Thread;
use ethernet::Ethernet;
use managers::Lane;
use nicety_channels as channels;
use nicety_channels::{CardEffect, Direction, HostEffect, Mailbox};
use nicety_fabric::Port;
use nicety_host::{Cpus, Kernel, KernelCounters, Memory, Vector};
use nicety_kernel::{Rng, Signal, Sim, race};
use nicety_nic_core::MessageNumbers;
use nicety_nic_core::parts::Dma;
use nicety_types::{MessageId, Path, Recorder, Stage};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Counters of a card's channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChannelCounters {
    /// Mailboxes that the host posted.
    pub posted: u64,
    /// Mailboxes that the card pushed, each with an interrupt.
    pub pushed: u64,
    /// DMA transfers of indirect messages, one for each page.
    pub transfers: u64,
    /// Bytes of the successful transfers.
    #[serde(rename = "transferred_bytes")]
    pub bytes: u64,
    /// DMA transfers that failed.
    #[serde(rename = "dma_errors")]
    pub errors: u64,
    /// Resent page lists.
    pub retries: u64,
    /// Invalid mailboxes, which were ignored.
    pub dropped: u64,
    /// Pages of the host pinned now.
    #[serde(rename = "pages_pinned")]
    pub pinned: u64,
}

/// The slot of a card in its host.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    /// The number of the card. The first card is 0.
    pub card: usize,
    /// All cards of the host number their messages together.
    messages: Rc<MessageNumbers>,
}

impl Slot {
    /// The slot of the next card of the host.
    #[must_use]
    pub fn next(&self) -> Slot {
        Slot { card: self.card + 1, messages: self.messages.clone() }
    }

    /// Returns a name that is different on each card of the host. The first card has the given name.
    fn name(&self, name: &str) -> String {
        match self.card {
            0 => name.to_owned(),
            card => format!("{name} of card {card}"),
        }
    }
}

/// A card: its processor, its managers, and its path to the host.
pub struct Card {
    sim: Sim,
    spec: Arc<NfpSpec>,
    nfp: Rc<Nfp>,
    dma: Rc<Dma>,
    kernel: Kernel,
    /// The interrupt that all channels share.
    vector: Vector,
    card: RefCell<channels::Card>,
    card_effects: RefCell<Vec<CardEffect>>,
    host: RefCell<channels::Host>,
    host_effects: RefCell<Vec<HostEffect>>,
    lanes: RefCell<Vec<[Lane; 2]>>,
    /// The last subscribed target of each channel, for error texts.
    targets: RefCell<Vec<u32>>,
    contexts: RefCell<Vec<ContextCall>>,
    threads: RefCell<Vec<Rc<Thread>>>,
    /// Notified when a thread is free.
    thread_freed: Signal,
    /// The deadline until which the timer task sleeps, and a signal that is notified when the deadline changes.
    armed: Cell<Option<u64>>,
    deadlines: Signal,
    /// The random stream that decides which DMA transfers fail.
    faults: RefCell<Rng>,
    messages: Rc<MessageNumbers>,
    counters: Cell<ChannelCounters>,
    ethernet: Ethernet,
    recorder: Recorder,
}

impl Card {
    /// Installs a card at its host and starts the card's tasks. A card with a link has a port to the other `nodes` - 1
    /// nodes. `slot` is its slot in
    /// the host.
    pub fn install(
        sim: &Sim,
        spec: Arc<NfpSpec>,
        memory: Rc<Memory>,
        cpus: &Rc<Cpus>,
        (port, nodes): (Option<Port>, u32),
        (slot, recorder): (&Slot, &Recorder),
    ) -> Rc<Card> {
        let channels = &spec.channels;
        let nfp = Nfp::new(sim, &spec);
        let kernel = Kernel::new(sim, cpus, channels.kernel);
        let port = port.map(|mut port| {
            port.record(recorder);
            port
        });
        let linked = port.is_some();
        let machine = channels::Card::new(channels.card_limits(spec.hardware_contexts()));
        let card = Rc::new(Card {
            vector: kernel.vector(),
            card: RefCell::new(machine.expect("the spec's limits are those that a card can have")),
            host: RefCell::new(channels::Host::new(channels.host_limits())),
            card_effects: RefCell::default(),
            host_effects: RefCell::default(),
            lanes: RefCell::default(),
            targets: RefCell::default(),
            contexts: RefCell::default(),
            threads: RefCell::default(),
            thread_freed: Signal::new(sim),
            armed: Cell::default(),
            deadlines: Signal::new(sim),
            faults: RefCell::new(sim.rng(&slot.name("dma errors"))),
            messages: slot.messages.clone(),
            counters: Cell::default(),
            ethernet: Ethernet::new(sim, port, nodes, &spec.port),
            recorder: recorder.clone(),
            sim: sim.clone(),
            nfp,
            dma: Dma::new(sim, spec.bus, memory, recorder),
            kernel,
            spec,
        });
        card.nfp.offer(Processes::of(&card));
        sim.spawn(card.clone().keep_time());
        if linked {
            sim.spawn(card.clone().listen());
        }
        card
    }

    /// Returns the processor, to load programs and start processes.
    pub fn processor(&self) -> &Rc<Nfp> {
        &self.nfp
    }

    /// Returns the card's spec.
    pub fn spec(&self) -> &Arc<NfpSpec> {
        &self.spec
    }

    /// Returns the host's memory.
    pub fn memory(&self) -> &Memory {
        self.dma.memory()
    }

    /// Opens the device for the host's programs. This takes no virtual time.
    pub fn open(self: &Rc<Card>) -> Device {
        Device::new(self)
    }

    /// Returns the counters of the channels.
    pub fn channel_counters(&self) -> ChannelCounters {
        self.counters.get()
    }

    /// Returns the operating system of the card's host.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Returns the counters of entries into the host's kernel.
    pub fn kernel_counters(&self) -> KernelCounters {
        self.kernel.counters()
    }

    /// Number of idle managers of a direction.
    pub fn idle_managers(&self, direction: Direction) -> usize {
        self.card.borrow().idle_managers(direction)
    }

    fn count(&self, change: impl FnOnce(&mut ChannelCounters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }

    /// The recorder of messages.
    pub(super) const fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    pub(super) fn next_message(&self) -> MessageId {
        self.messages.next(self.sim.node())
    }

    /// Calls `act` with the state of a mailbox.
    fn lane<R>(&self, mailbox: Mailbox, act: impl FnOnce(&mut Lane) -> R) -> R {
        let mut lanes = self.lanes.borrow_mut();
        let channel = usize::from(mailbox.channel);
        if lanes.len() <= channel {
            lanes.resize_with(channel + 1, Default::default);
        }
        act(&mut lanes[channel][mailbox.direction as usize])
    }

    /// Runs a step of the card's state machine, and begins the step's effects. If a manager has just done a step,
    /// `step` has the mailbox of that step, and the mailbox's path.
    fn on_card<R>(
        self: &Rc<Card>,
        step: Option<(Mailbox, Path)>,
        act: impl FnOnce(&mut channels::Card, &mut Vec<CardEffect>) -> R,
    ) -> R {
        if let Some((mailbox, path)) = &step {
            self.lane(*mailbox, |lane| lane.path.clone_from(path));
        }
        let mut effects = self.card_effects.take();
        let result = act(&mut self.card.borrow_mut(), &mut effects);
        for effect in effects.drain(..) {
            self.begin(effect, step.clone());
        }
        self.card_effects.replace(effects);
        self.arm();
        result
    }

    /// Updates the timer if the earliest deadline has changed.
    fn arm(&self) {
        let (card, host) = (self.card.borrow().next_deadline(), self.host.borrow().next_deadline());
        let next = card.into_iter().chain(host).min();
        if next != self.armed.replace(next) {
            self.deadlines.notify_all();
        }
    }

    /// Notifies both state machines of passed deadlines.
    async fn keep_time(self: Rc<Card>) {
        loop {
            match self.armed.get() {
                None => self.deadlines.wait().await,
                Some(at) if at > self.sim.now().ps() => {
                    let at = self.sim.until(nicety_types::Time::from_ps(at));
                    race(at, self.deadlines.wait()).await;
                }
                Some(_) => {
                    let now = self.sim.now();
                    self.on_card(None, |card, effects| card.tick(now.ps(), effects));
                    self.on_host(None, None, |host, effects| host.tick(now.ps(), effects));
                }
            }
        }
    }
}

impl fmt::Debug for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Card({:?}, {:?})", self.nfp, self.counters.get())
    }
}

/// Counts the time up to now as time in a stage.
fn waited(path: &mut Path, stage: Stage, sim: &Sim) {
    path.advance(stage, sim.now());
}
