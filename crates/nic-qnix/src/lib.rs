//! The QNIX card: every process has its own protected interface. A process needs the kernel only to register itself and
//! to lock memory.
//!
//! A packet passes the functions of `transmit` and `receive` in the order of the files. A module imports only from
//! modules before it in this order:
//!
//! | module | contents |
//! |---|---|
//! | `wire` | the header of a packet as bytes |
//! | `spec`, `error` | the card's part of a spec; errors |
//! | `stages` | the stages of a message that only this card has |
//! | `memory` | the card's memory |
//! | `interface` | a virtual network interface on the card: Command Queue, contexts, receives, unmatched messages |
//! | `transfer` | DMA channels: fetches, deposits, doorbells |
//! | `transmit` | from a Send command to the link, one packet at a time |
//! | `receive` | from the link to a receive, or into the card's memory |
//! | `program` | the control program's polling loop |
//! | `process` | the library in a process: send, receive, test, wait; its system calls, its Buffer Pool |
//! | `messages` | `send` and `recv` if the library matches them |
//! | `design` | the card with the interface of the design seam, and the processes of its host |
//!
//! # The steps of a message
//! 1. The library writes a Send command into the Command Queue of the process's interface, by programmed I/O. A short
//!    message goes with the command, also by programmed I/O. A longer message is copied to the process's Buffer Pool.
//!    Or the kernel locks the message's pages, and the library writes the pages' descriptors into the Context Region.
//! 2. The control program takes the command. A DMA channel fetches one packet of the message at a time. When the link
//!    has sent the previous packet, the control program builds the header of the next packet and hands the packet to
//!    the link.
//! 3. The control program of the receiving card looks for a matching receive, and a DMA channel writes the bytes to the
//!    receive's buffer. Without a matching receive, the bytes stay in the card's memory until there is one. If the
//!    card's memory is full, the packet and all packets behind it stay in the packet buffer. This is back-pressure,
//!    without loss.
//! 4. A DMA channel sets the doorbell in host memory, which the process polls.
//!
//! # The polling order
//! The control program polls in a cycle: link, DMA, interface, link, DMA, next interface, and so on over the open
//! interfaces, by number. Each poll takes `program.poll` cycles. A poll that finds work does one unit of work. At the
//! link, the control program hands over a packet if the link is free, and takes a received packet. At the DMA
//! controller, it programs one channel. At an interface, it takes one command and starts the fetch of one packet of the
//! interface's oldest send. Interfaces with a packet for the link take turns. Senders thus get equal shares of packets,
//! whatever their number of commands.
//!
//! # The critical path
//! The link takes one packet at a time, without a queue. Between two packets, the link is idle while a poll finds it
//! free and while the control program builds the next header. Fetches overlap with transmission, up to `memory.staging`
//! packets ahead, and so does all other work. Long messages thus reach the link's rate, apart from the time of the poll
//! and of the header.
//!
//! # Timing decisions that the publication leaves open
//! - A message is matched with the receives of its interface in posting order, by sender and tag.
//! - Packets are stored and forwarded in the card's memory, in both directions.
//! - The set-up of a DMA channel occupies the channel, not the card's processor. Channels are set up in parallel and
//!   move their bytes one after another, so two channels hide each other's set-up.
//! - A process that waits for a doorbell occupies no CPU until the doorbell is set. Then the process polls the
//!   doorbell.

mod design;
mod error;
mod interface;
mod memory;
mod messages;
mod process;
mod program;
mod receive;
mod spec;
pub mod stages;
mod transfer;
mod transmit;
mod wire;

pub use error::QnixError;
pub use interface::Completed;
pub use memory::CardMemory;
pub use process::{Operation, Process, Receive, Send, TransferMethod};
pub use spec::{DmaSpec, LibrarySpec, LimitsSpec, MemorySpec, ProgramSpec, QnixSpec};

pub use design::DESIGN;
pub use design::{Node, OWN_PROCESS, Report};

use interface::Interface;
use nicety_fabric::Port;
use nicety_host::{Kernel, Memory};
use nicety_kernel::{Credits, Signal, Sim};
use nicety_nic_core::MessageNumbers;
use nicety_nic_core::parts::{Dma, LastUse};
use nicety_types::{MessageId, NodeId, Path, Recorder};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// A virtual network interface of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The node of the interface's card.
    pub node: NodeId,
    /// Number of the interface on that card.
    pub vni: u32,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interface {} of {}", self.vni, self.node)
    }
}

/// Counters of a card with virtual network interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "InterfaceReport")]
pub struct Statistics {
    /// Number of Send commands taken.
    pub sends: u64,
    /// Number of Send commands for messages that were sent by programmed I/O.
    pub programmed_io_sends: u64,
    /// Number of Receive commands taken.
    pub receives: u64,
    /// Number of packets handed to the link, or to another interface of the card.
    pub packets_sent: u64,
    /// Number of packets received.
    pub packets_received: u64,
    /// Number of packets put into the card's memory because no receive matched.
    pub buffered: u64,
    /// Number of times that the card had no memory for a packet. The packet stayed in the packet buffer.
    pub buffer_stalls: u64,
    /// Number of messages dropped because their interface was not open, or was closed before a receive took them.
    pub strays: u64,
    /// Number of invalid or damaged packets.
    pub unusable: u64,
    /// Number of doorbells set.
    pub doorbells: u64,
    /// Number of calls refused because a resource did not belong to the process.
    pub refused: u64,
}

/// A QNIX card.
pub struct Card {
    sim: Sim,
    node: NodeId,
    nodes: u32,
    spec: Arc<QnixSpec>,
    dma: Rc<Dma>,
    kernel: Rc<Kernel>,
    port: Port,
    recorder: Recorder,
    /// The interfaces by number. `None` if an interface is not open.
    interfaces: RefCell<Vec<Option<Interface>>>,
    /// Numbers of the open interfaces, in order.
    open: RefCell<Vec<u32>>,
    /// Notified when the control program may find new work.
    changed: Signal,
    arrivals: receive::Arrivals,
    transfers: transfer::Transfers,
    /// Slots for packets that are being fetched or wait for the link.
    staging: Credits,
    unstaged: LastUse,
    departures: transmit::Departures,
    card_memory: RefCell<CardMemory>,
    messages: MessageNumbers,
    statistics: Cell<Statistics>,
}

impl Card {
    /// Installs a card on its bus and its link, and starts its control program. `nodes` is the number of hosts.
    pub fn install(
        sim: &Sim,
        spec: Arc<QnixSpec>,
        memory: Rc<Memory>,
        kernel: Rc<Kernel>,
        mut port: Port,
        nodes: u32,
        recorder: &Recorder,
    ) -> Rc<Card> {
        port.record(recorder);
        let card = Rc::new(Card {
            node: sim.node(),
            nodes,
            dma: Dma::new(sim, spec.bus, memory, recorder),
            kernel,
            port,
            recorder: recorder.clone(),
            interfaces: RefCell::new((0..spec.limits.vnis).map(|_| None).collect()),
            open: RefCell::default(),
            changed: Signal::new(sim),
            arrivals: receive::Arrivals::default(),
            transfers: transfer::Transfers::new(sim, spec.dma.channels, recorder),
            staging: Credits::new(sim, u64::from(spec.memory.staging)),
            unstaged: LastUse::default(),
            departures: transmit::Departures::default(),
            card_memory: RefCell::new(CardMemory::new(spec.memory.size, spec.fixed_memory())),
            messages: MessageNumbers::default(),
            statistics: Cell::default(),
            sim: sim.clone(),
            spec,
        });
        sim.spawn(card.clone().listen());
        sim.spawn(card.clone().run());
        card
    }

    /// Returns the specification of the card.
    pub fn spec(&self) -> &QnixSpec {
        &self.spec
    }

    /// Returns the operating system of the card's host.
    pub fn kernel(&self) -> &Rc<Kernel> {
        &self.kernel
    }

    /// Returns the memory of the card's host.
    pub fn host_memory(&self) -> &Rc<Memory> {
        self.dma.memory()
    }

    /// Returns the use of the card's memory.
    pub fn memory(&self) -> CardMemory {
        *self.card_memory.borrow()
    }

    /// Returns the card's counters.
    pub fn statistics(&self) -> Statistics {
        self.statistics.get()
    }

    /// Returns the numbers of packets sent and received over the link so far.
    pub fn packets(&self) -> (u64, u64) {
        self.port.packets()
    }

    /// Returns the open interfaces in order: the number of each interface and the number of its process.
    pub fn interfaces(&self) -> Vec<(u32, u32)> {
        let interfaces = self.interfaces.borrow();
        let owner = |vni: &u32| Some((*vni, interfaces[*vni as usize].as_ref()?.owner));
        self.open.borrow().iter().filter_map(owner).collect()
    }

    fn next_message(&self) -> MessageId {
        self.messages.next(self.node)
    }

    fn count(&self, change: impl FnOnce(&mut Statistics)) {
        let mut statistics = self.statistics.get();
        change(&mut statistics);
        self.statistics.set(statistics);
    }

    /// Calls `act` with an interface. Returns `None` if the interface is not open.
    fn interface<T>(&self, vni: u32, act: impl FnOnce(&mut Interface) -> T) -> Option<T> {
        self.interfaces.borrow_mut().get_mut(vni as usize)?.as_mut().map(act)
    }

    /// Works for `cycles` cycles on the card's processor. Charges the wait until now and the work to `path`.
    async fn work(&self, cycles: u64, path: &mut Path) {
        path.advance(stages::CONTROL_QUEUED, self.sim.now());
        self.sim.delay(self.spec.program.clock.cycles(cycles)).await;
        path.advance(stages::CONTROL, self.sim.now());
    }
}
