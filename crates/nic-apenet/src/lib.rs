//! The APEnet+ card: RDMA between registered memories, with a TLB on the card and parallel DMA engines.
//!
//! A module imports only from modules before it in this order:
//!
//! | module | contents |
//! |---|---|
//! | `stages`, `spec` | the stages of a message that only this card has; the card's part of a spec |
//! | `error`, `event` | errors of calls and reasons of refusals; kinds of events |
//! | `wire` | header and footer of a packet as bytes |
//! | `translation` | the TLB, registered memory, the embedded processor |
//! | `events` | completions in host memory, interrupts or polling, the queues of processes |
//! | `transmit` | the transmit ring; descriptors, pages and replies through the transmit engines to the link |
//! | `receive` | from the link through translation and the receive engines to memory; refusals, lost messages |
//! | `driver` | the driver: descriptors in the transmit ring, the doorbell |
//! | `library` | a process's calls: register, put, get, send, streaming buffers, events |
//! | `messages` | `send` and `recv` over streaming buffers and puts, and the memory that they register |
//! | `hints`, `design` | deadlock hints; the card with the interface of the design seam |
//!
//! # The steps of a put
//! 1. The library calls the driver. The driver writes a descriptor for each page of the buffer to a ring in host
//!    memory. Then it writes the number of descriptors to a register of the card.
//! 2. The card fetches the descriptors, then the pages. Each packet takes a transmit engine: first the set-up of the
//!    engine, then the read. With two engines, one engine is set up while the other waits for its bytes.
//! 3. When all bytes have been read, the engine is set up again and writes an event to a queue in host memory.
//! 4. Packets go over the link in order, and wait whole in the receiver's packet buffer for a receive engine.
//! 5. The receive engine looks the page up in the TLB. On a miss the embedded processor translates the address. Then
//!    the engine is set up and writes the bytes.
//! 6. The engine is set up again and writes a completion of the packet. The completion of a message's last bytes is the
//!    event of the message.
//! 7. The driver polls for events, or an interrupt calls it. The driver copies each event to the queue of its process.
//!
//! # Timing decisions that the publications leave open
//! - A packet is complete in the transmit FIFO before it goes to the link, and complete in the packet buffer before an
//!   engine takes it.
//! - Transmit engines read in parallel; the bus serialises their bytes. Receive engines write one after another: one
//!   engine is set up while another engine writes.
//! - A TLB miss takes the lookup and the embedded processor's time.
//! - Virtual and physical addresses are equal numbers: a host has one address space. A physical address skips the TLB.
//!   It must be in registered memory of the process, and this check takes no simulated time.
//! - The choice of a streaming buffer takes no simulated time besides the translation of its address.
//! - A completion takes the set-up of an engine like any transfer, and its bytes follow the bytes of the packet.
//! - If a packet is not the last of its message, its completion takes no entry of a queue, but it takes time of the
//!   driver.
//! - A thread that waits for an event occupies no CPU until there is an event.

mod design;
mod driver;
mod error;
mod event;
mod events;
mod hints;
mod library;
mod messages;
mod receive;
mod spec;
pub mod stages;
mod translation;
mod transmit;
mod wire;

pub use design::DESIGN;
pub use design::{Node, Report};
pub use error::{ApenetError, Refusal};
pub use event::{Event, EventKind};
pub use library::{Process, Transfer};
pub use spec::{
    ApenetSpec, DmaSpec, DriverSpec, EventsSpec, LimitsSpec, MessagesSpec, Notify, Per, ProcessorSpec,
    RingSpec, TlbSpec, Writer,
};

use nicety_nic_core::MessageNumbers;
use nicety_nic_core::parts::{Dma, Loopback};

use nicety_fabric::Port;
use nicety_host::{Allocation, Gpu, Kernel, Memory, is_of_gpu};
use nicety_kernel::Sim;
use nicety_types::{Duration, MessageId, NodeId, Recorder};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Number of the process that owns `send` and `recv`.
const LIBRARY: u32 = u32::MAX;

/// A process of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The node of the process's host.
    pub node: NodeId,
    /// Number of the process on that host.
    pub process: u32,
}

/// A put, send or get of a node, identified by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation(pub u64);

/// A registered region of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Number of the region on its card.
    pub number: u64,
    /// Number of the process that owns the region.
    pub process: u32,
    /// First address of the region.
    pub address: u64,
    /// Size of the region in bytes.
    pub bytes: u64,
}

/// Counters of a card with RDMA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Statistics {
    /// Number of puts posted.
    pub puts: u64,
    /// Number of sends into streaming buffers posted.
    pub sends: u64,
    /// Number of gets posted.
    pub gets: u64,
    /// Number of gets that arrived at this card.
    pub gets_served: u64,
    /// Number of regions registered by system calls.
    pub registrations: u64,
    /// Number of writes to the doorbell register.
    pub doorbells: u64,
    /// Number of times that the driver found the transmit ring full.
    pub ring_full: u64,
    /// Number of descriptors fetched.
    pub descriptors: u64,
    /// Number of reads of host memory that fetched descriptors.
    pub fetches: u64,
    /// Number of packets sent, over the link and to this card.
    pub packets_sent: u64,
    /// Number of packets received.
    pub packets_received: u64,
    /// Number of received packets that were dropped because the receive side was flushed.
    pub flushed: u64,
    /// Number of page lookups that hit the TLB.
    pub tlb_hits: u64,
    /// Number of page lookups that missed the TLB.
    pub tlb_misses: u64,
    /// Number of messages that this card refused.
    pub refused: u64,
    /// Number of messages of this card that their receiving card refused.
    pub refused_by_peer: u64,
    /// Number of events written.
    pub events: u64,
    /// Number of completions written for packets that are not the last of their message.
    pub packet_completions: u64,
    /// Number of events lost because a queue was full.
    pub events_lost: u64,
    /// Number of messages given up because one of their packets never arrived. These messages also count as refused.
    pub abandoned: u64,
    /// Number of received reply packets that no pending get expects.
    pub stale_replies: u64,
    /// Number of invalid or damaged packets, and of invalid messages to the library.
    pub unusable: u64,
}

/// Busy times of parts of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Busy time of all transmit engines.
    pub transmit: Duration,
    /// Busy time of all receive engines.
    pub receive: Duration,
    /// Busy time of the embedded processor.
    pub processor: Duration,
}

/// An APEnet+ card.
pub struct Card {
    sim: Sim,
    node: NodeId,
    nodes: u32,
    ordered: bool,
    spec: Arc<ApenetSpec>,
    dma: Rc<Dma>,
    gpu: Option<Gpu>,
    kernel: Rc<Kernel>,
    port: Port,
    loopback: Loopback,
    recorder: Recorder,
    tx_ring: Allocation,
    event_ring: Allocation,
    ring: transmit::Ring,
    transmit: transmit::Transmit,
    receive: receive::Receive,
    translation: translation::Translation,
    events: events::Events,
    /// Whether puts and gets name physical addresses.
    physical: Cell<bool>,
    messages: MessageNumbers,
    statistics: Cell<Statistics>,
}

impl Card {
    /// Installs a card on its bus and its link. `nodes` is the number of hosts. `ordered` is true if packets from one
    /// host to another arrive in the order of sending.
    ///
    /// # Errors
    /// When the host has no memory for the rings.
    pub fn install(
        sim: &Sim,
        spec: Arc<ApenetSpec>,
        (memory, gpu): (Rc<Memory>, Option<&Gpu>),
        kernel: Rc<Kernel>,
        mut port: Port,
        (nodes, ordered): (u32, bool),
        recorder: &Recorder,
    ) -> Result<Rc<Card>, ApenetError> {
        port.record(recorder);
        let (tx, events) =
            (spec.ring.entries * spec.ring.descriptor, spec.events.entries * spec.events.bytes);
        let card = Rc::new(Card {
            node: sim.node(),
            nodes,
            ordered,
            tx_ring: memory.allocate(tx)?,
            event_ring: memory.allocate(events)?,
            dma: Dma::with_gpu(sim, spec.bus, memory, gpu, recorder),
            gpu: gpu.cloned(),
            loopback: Loopback::new(sim, port.buffer().max(1), recorder),
            port,
            recorder: recorder.clone(),
            ring: transmit::Ring::new(sim, spec.ring.entries, spec.ring.fetch),
            transmit: transmit::Transmit::new(sim, &spec, recorder),
            receive: receive::Receive::new(sim, spec.dma.receive_engines, recorder),
            translation: translation::Translation::new(sim, &spec),
            events: events::Events::new(sim, spec.events.notify, kernel.vector()),
            kernel,
            physical: Cell::new(false),
            messages: MessageNumbers::default(),
            statistics: Cell::default(),
            sim: sim.clone(),
            spec,
        });
        sim.spawn(card.clone().fetch_descriptors());
        sim.spawn(card.clone().serve_transmit());
        sim.spawn(card.clone().serve_link());
        sim.spawn(card.clone().serve_refusals());
        sim.spawn(card.clone().listen());
        sim.spawn(card.clone().listen_here());
        sim.spawn(card.clone().serve_receive());
        sim.spawn(card.clone().serve_interrupts());
        Ok(card)
    }

    /// Returns the specification of the card.
    pub fn spec(&self) -> &ApenetSpec {
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

    /// Returns the graphics processor of the card's host, if there is one.
    pub fn gpu(&self) -> Option<&Gpu> {
        self.gpu.as_ref()
    }

    /// Returns a process of the card's host.
    pub fn process_of(self: &Rc<Card>, number: u32) -> Process {
        Process::new(self, number)
    }

    /// Returns the card's counters.
    pub fn statistics(&self) -> Statistics {
        self.statistics.get()
    }

    /// Returns the busy times of the card's parts.
    pub fn busy(&self) -> Busy {
        let (transmit, receive) = (self.transmit.engine.busy(), self.receive.engine.busy());
        Busy { transmit, receive, processor: self.translation.busy() }
    }

    /// Returns the number of regions and the number of pages registered at present.
    pub fn registered(&self) -> (u64, u64) {
        self.translation.regions.size()
    }

    /// Returns the peak number of commands that waited for the embedded processor.
    pub fn longest_queue(&self) -> usize {
        self.translation.longest()
    }

    /// If true, puts and gets use physical addresses, which skip the TLB.
    pub fn set_physical(&self, physical: bool) {
        self.physical.set(physical);
    }

    /// If true, drops arriving packets without processing, for measurements of the transmit side.
    pub fn set_flushed(&self, flushed: bool) {
        self.receive.flushed.set(flushed);
    }

    /// Sets the way in which the driver is notified of events from now on.
    pub fn set_notify(&self, notify: Notify) {
        self.events.set_notify(notify);
    }

    /// Returns the way in which the driver is notified of events.
    pub fn notify(&self) -> Notify {
        self.events.notify()
    }

    fn next_message(&self) -> MessageId {
        self.messages.next(self.node)
    }

    fn count(&self, change: impl FnOnce(&mut Statistics)) {
        let mut statistics = self.statistics.get();
        change(&mut statistics);
        self.statistics.set(statistics);
    }

    /// Returns the size in bytes of the page at an address.
    fn page(&self, address: u64) -> u64 {
        self.gpu.as_ref().filter(|_| is_of_gpu(address)).map_or(self.spec.kernel.page, |gpu| gpu.spec.page)
    }

    /// Whether an address is in the memory of the graphics processor.
    fn is_gpu(&self, address: u64) -> bool {
        self.gpu.is_some() && is_of_gpu(address)
    }
}
