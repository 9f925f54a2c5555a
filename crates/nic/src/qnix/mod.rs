//! The QNIX card: every process has its own protected piece of it, and needs the kernel only to register itself and to
//! lock memory.
//!
//! | file | what |
//! |---|---|
//! | `library.rs` | what a process calls for its messages: send, receive, test, wait |
//! | `registration.rs`, `pool.rs` | what it has the kernel do: open, close, lock pages; its Buffer Pool |
//! | `holds.rs` | what a call holds until it is done, given back where it fails or is dropped |
//! | `interface.rs` | a virtual network interface on the card: Command Queue, contexts, receives, messages that wait |
//! | `program.rs` | the control program: which interface it looks at next, and what it does there |
//! | `send.rs` | from a Send command to the link, one packet at a time |
//! | `receive.rs` | from the link to a receive, or into the card's memory |
//! | `transfer.rs` | DMA channels: fetches, deposits, doorbells |
//! | `memory.rs` | the card's memory |
//! | `design.rs` | the card as others see it, and the processes of its host |
//! | `header.rs`, `spec.rs`, `error.rs` | the header on the wire, the card's numbers, what is refused |
//!
//! # How a message moves
//! 1. The library writes a Send command into the Command Queue of the process's interface, by programmed I/O. A short
//!    message goes with it the same way; for a longer one the library copies the bytes to the process's Buffer Pool, or has
//!    the kernel lock its pages and writes their descriptors into the Context Region.
//! 2. The control program takes the command. It has a DMA channel fetch a packet at a time. When the link has sent the
//!    packet before, it builds the header of the next one, and hands it to the link.
//! 3. The control program at the other end looks for a receive. A channel writes the bytes where it says. Without one they
//!    stay in the card's memory until there is one; without memory the packet stays where it came in, and so do those
//!    behind it: back-pressure, and no loss.
//! 4. A channel sets the doorbell in host memory, which the process polls.
//!
//! # The polling order
//! The control program goes round: link, DMA, interface, link, DMA, next interface, and so on over the interfaces that are
//! open, by number. Each look takes `program.poll` cycles, and where there is something to do it does that once: it hands the
//! link one packet, if that is free, and takes one that came; it programs one channel for what waits at the DMA controller;
//! or it takes one command of the interface and has one packet of its oldest send fetched. Interfaces with a packet for the
//! link take turns. So whoever sends has the same share in packets, however many commands it has posted.
//!
//! # What is in line with what
//! The link has one packet at a time, and no queue: the look that finds it free and the header of the next packet are in line
//! with a packet's bytes, and nothing hides them. Fetching goes on meanwhile, up to `memory.staging` packets ahead, and so
//! does everything else. Long messages reach the link's rate but for those two.
//!
//! # Timing, where the source leaves a choice
//! - A message is matched with the receives of its interface in the order in which they were posted, by sender and tag.
//! - A packet is in the card's memory before it goes on, in both directions.
//! - Setting up a channel takes the channel's time and not the processor's. Channels are set up at the same time and move
//!   their bytes one after another, so that two hide each other's set-up.
//! - A process that waits for a doorbell takes no CPU until it looks at the doorbell that was set.

mod design;
mod error;
mod header;
mod holds;
mod interface;
mod library;
mod memory;
mod pool;
mod program;
mod receive;
mod registration;
mod send;
mod spec;
mod transfer;

pub use error::QnixError;
pub use library::{Completed, How, Operation, Process, Receive, Send};
pub use memory::CardMemory;
pub use spec::{DmaSpec, LibrarySpec, LimitsSpec, MemorySpec, ProgramSpec, QnixSpec};

pub(crate) use design::DESIGN;
pub use design::{Node, OWN_PROCESS, Report};

use interface::Interface;
use nicety_fabric::Port;
use nicety_host::{Bus, Kernel, Memory};
use nicety_kernel::{Credits, Signal, Sim};
use nicety_types::{MessageId, NodeId, Path, Recorder, Stage};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// A virtual network interface somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The node whose card it is on.
    pub node: NodeId,
    /// Its number there.
    pub vni: u32,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interface {} of {}", self.vni, self.node)
    }
}

/// What a card has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Send commands taken.
    pub sends: u64,
    /// Of these, messages that came by programmed I/O.
    pub programmed: u64,
    /// Receive commands taken.
    pub receives: u64,
    /// Packets handed to the link, or to an interface of the same card.
    pub packets_sent: u64,
    /// Packets that came.
    pub packets_received: u64,
    /// Packets that were put into the card's memory because nothing received them yet.
    pub buffered: u64,
    /// Times that a packet found no memory and had to stay where it came in.
    pub held_back: u64,
    /// Messages for an interface that nobody had open, which are dropped.
    pub strays: u64,
    /// Packets that were none, or came damaged.
    pub unusable: u64,
    /// Doorbells set.
    pub doorbells: u64,
    /// Calls of processes that were refused because something is not theirs.
    pub refused: u64,
}

/// A QNIX card.
pub struct Card {
    sim: Sim,
    node: NodeId,
    nodes: u32,
    spec: Arc<QnixSpec>,
    memory: Rc<Memory>,
    kernel: Rc<Kernel>,
    bus: Bus,
    port: Port,
    recorder: Recorder,
    /// By number.
    interfaces: RefCell<Vec<Option<Interface>>>,
    /// Numbers of those that are open, in order.
    open: RefCell<Vec<u32>>,
    /// Something that the control program may look at has changed.
    changed: Signal,
    arrivals: receive::Arrivals,
    transfers: transfer::Transfers,
    /// Packets that a channel fetches, or that wait for the link.
    staging: Credits,
    unstaged: Cell<Option<transfer::Released>>,
    departures: send::Departures,
    card_memory: RefCell<CardMemory>,
    messages: Cell<u64>,
    statistics: Cell<Statistics>,
}

impl Card {
    /// A card on its bus and its link, its control program running. `nodes` is how many hosts there are to talk to.
    pub fn install(
        sim: &Sim,
        spec: Arc<QnixSpec>,
        memory: Rc<Memory>,
        kernel: Rc<Kernel>,
        mut port: Port,
        nodes: u32,
        recorder: &Recorder,
    ) -> Rc<Card> {
        let bus = Bus::new(sim, spec.bus);
        bus.record(recorder);
        port.record(recorder);
        let card = Rc::new(Card {
            node: sim.node(),
            nodes,
            memory,
            kernel,
            bus,
            port,
            recorder: recorder.clone(),
            interfaces: RefCell::new((0..spec.limits.vnis).map(|_| None).collect()),
            open: RefCell::default(),
            changed: Signal::new(sim),
            arrivals: receive::Arrivals::default(),
            transfers: transfer::Transfers::new(sim, spec.dma.channels),
            staging: Credits::new(sim, u64::from(spec.memory.staging)),
            unstaged: Cell::default(),
            departures: send::Departures::default(),
            card_memory: RefCell::new(CardMemory::new(spec.memory.size, spec.fixed_memory())),
            messages: Cell::new(0),
            statistics: Cell::default(),
            sim: sim.clone(),
            spec,
        });
        sim.spawn(card.clone().listen());
        sim.spawn(card.clone().run());
        card
    }

    /// What it is made of.
    pub fn spec(&self) -> &QnixSpec {
        &self.spec
    }

    /// The operating system of its host.
    pub fn kernel(&self) -> &Rc<Kernel> {
        &self.kernel
    }

    /// The memory of its host.
    pub fn host_memory(&self) -> &Rc<Memory> {
        &self.memory
    }

    /// How the card's memory is used.
    pub fn memory(&self) -> CardMemory {
        *self.card_memory.borrow()
    }

    /// What it has counted.
    pub fn statistics(&self) -> Statistics {
        self.statistics.get()
    }

    /// Packets sent and received over the link so far.
    pub fn packets(&self) -> (u64, u64) {
        self.port.packets()
    }

    /// Interfaces that are open, by number, and the process that has each.
    pub fn interfaces(&self) -> Vec<(u32, u32)> {
        let interfaces = self.interfaces.borrow();
        let owner = |vni: &u32| Some((*vni, interfaces[*vni as usize].as_ref()?.owner));
        self.open.borrow().iter().filter_map(owner).collect()
    }

    fn next_message(&self) -> MessageId {
        let sequence = self.messages.get();
        self.messages.set(sequence + 1);
        MessageId { source: self.node, sequence }
    }

    fn count(&self, change: impl FnOnce(&mut Statistics)) {
        let mut statistics = self.statistics.get();
        change(&mut statistics);
        self.statistics.set(statistics);
    }

    /// Works on an interface, if somebody has it.
    fn interface<T>(&self, vni: u32, act: impl FnOnce(&mut Interface) -> T) -> Option<T> {
        self.interfaces.borrow_mut().get_mut(vni as usize)?.as_mut().map(act)
    }

    /// The processor works so many cycles on what `path` accounts for, which waited for it until now.
    async fn work(&self, cycles: u64, path: &mut Path) {
        path.advance(Stage::ControlQueued, self.sim.now());
        self.sim.delay(self.spec.program.clock.cycles(cycles)).await;
        path.advance(Stage::Control, self.sim.now());
    }
}
