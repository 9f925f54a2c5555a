//! The card: rings in host memory, DMA channels, and the link between them.

pub(crate) mod disposition;
pub(crate) mod handling;
pub(crate) mod joining;
pub(crate) mod receive;
pub(crate) mod transmit;

use crate::card::disposition::Testers;
use crate::card::handling::Handling;
use crate::card::receive::ReceiveRing;
use crate::card::transmit::{Leaving, TransmitRing};
use crate::flows::FlowHash;
use crate::interrupts::Coalescing;
use crate::spec::{EthernetSpec, HEADERS};
use crate::xdp::Xdp;
use nicety_fabric::Port;
use nicety_host::Memory;
use nicety_kernel::{Credits, Pool, Signal, Sim};
use nicety_nic_core::parts::Dma;
use nicety_nic_core::{Log, MessageNumbers};
use nicety_stack::Toeplitz;
use nicety_types::{Duration, MessageId, NodeId, Recorder};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// Counters of an Ethernet card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Statistics {
    /// Frames sent.
    pub frames_sent: u64,
    /// Frames received into host memory.
    pub frames_received: u64,
    /// Frames dropped because their receive ring was full.
    pub ring_full: u64,
    /// Frames dropped because they are longer than a receive buffer.
    pub too_long: u64,
    /// Frames dropped because their frame check sequence was wrong.
    pub fcs_errors: u64,
    /// Frames sent to an address without a station, which nobody takes.
    pub unknown_destination: u64,
    /// Reads that fetched descriptors.
    pub fetches: u64,
    /// Interrupts raised for received frames.
    pub receive_interrupts: u64,
    /// Interrupts raised for sent frames because the driver waited for them.
    pub transmit_interrupts: u64,
}

/// An Ethernet card.
pub struct Card {
    pub(crate) sim: Sim,
    pub(crate) spec: Arc<EthernetSpec>,
    pub(crate) node: NodeId,
    pub(crate) nodes: u32,
    pub(crate) dma: Rc<Dma>,
    pub(crate) port: Port,
    pub(crate) recorder: Recorder,
    pub(crate) rss: Toeplitz,
    pub(crate) transmit: Vec<TransmitRing>,
    pub(crate) announced: Signal,
    pub(crate) fifo: Credits,
    pub(crate) leaving: RefCell<VecDeque<Rc<Leaving>>>,
    pub(crate) fetched: Signal,
    /// The total time of fetches of descriptors. A fetch of fewer descriptors than possible counts in proportion to its
    /// descriptors.
    pub(crate) fetching: Cell<Duration>,
    pub(crate) receive: Vec<ReceiveRing>,
    /// Rules and handlers, if the card has processors for them.
    pub(crate) handling: Option<Handling>,
    /// Ownership of the link. Frames of the rings and those of handlers alternate.
    pub(crate) link: Pool,
    /// Whether the card generates frames, and drops received frames.
    pub(crate) discards: Cell<bool>,
    /// Stations with separate counters for the frames that they send.
    pub(crate) testers: Testers,
    /// The XDP program of the driver, and its counters.
    pub(crate) xdp: Xdp,
    /// Bus time of frames to the host: of frames with a buffer, and of frames without one.
    pub(crate) carried: Cell<Duration>,
    pub(crate) left_out: Cell<Duration>,
    counters: Cell<Statistics>,
    messages: MessageNumbers,
}

impl Card {
    /// Installs a card, and starts its tasks.
    pub(crate) fn install(
        sim: &Sim,
        spec: Arc<EthernetSpec>,
        memory: &Rc<Memory>,
        mut port: Port,
        nodes: u32,
        (log, recorder): (&Log, &Recorder),
    ) -> Result<Rc<Card>, nicety_host::MemoryError> {
        let rings = (0..spec.transmit.channels).map(|_| TransmitRing::new(&spec, memory));
        let transmit = rings.collect::<Result<Vec<_>, _>>()?;
        let coalescing = |channel| Coalescing::new(sim, spec.interrupts, channel);
        let rings = (0..spec.receive.channels).map(|i| ReceiveRing::new(&spec, memory, coalescing(i)));
        let receive = rings.collect::<Result<Vec<_>, _>>()?;
        let limits = (spec.frames.mtu + HEADERS, spec.receive.channels);
        port.record(recorder);
        let handling = spec.handlers.as_ref().map(|own| Handling::new(sim, own, limits, log, recorder));
        let card = Rc::new(Card {
            dma: Dma::new(sim, spec.bus, memory.clone(), recorder),
            node: sim.node(),
            nodes,
            port,
            recorder: recorder.clone(),
            rss: Toeplitz::default(),
            transmit,
            announced: Signal::new(sim),
            fifo: Credits::new(sim, spec.transmit.fifo),
            leaving: RefCell::default(),
            fetched: Signal::new(sim),
            fetching: Cell::new(Duration::ZERO),
            receive,
            handling,
            link: Pool::new(sim, 1),
            discards: Cell::new(false),
            testers: Testers::default(),
            xdp: Xdp::default(),
            carried: Cell::new(Duration::ZERO),
            left_out: Cell::new(Duration::ZERO),
            counters: Cell::default(),
            messages: MessageNumbers::default(),
            sim: sim.clone(),
            spec,
        });
        if let Some(handling) = &card.handling {
            let owner = Rc::downgrade(&card);
            handling.frames().belong_to(owner);
            sim.spawn(card.clone().serve_host());
        }
        sim.spawn(card.clone().fetch_descriptors());
        sim.spawn(card.clone().serve_link());
        sim.spawn(card.clone().serve_port());
        Ok(card)
    }

    /// The counters so far.
    pub fn statistics(&self) -> Statistics {
        self.counters.get()
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Statistics)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }

    /// Returns the number of a new frame or message of this node.
    pub(crate) fn next_message(&self) -> MessageId {
        self.messages.next(self.node)
    }

    /// Returns the hash of a frame's connection, which selects its receive channel.
    pub(crate) fn hash(&self, frame: &[u8]) -> usize {
        self.spec.receive.hash.of(&self.rss, frame)
    }

    /// Returns the transmit ring of a frame.
    pub(crate) fn transmit_ring(&self, frame: &[u8]) -> usize {
        self.spec.transmit.hash.of(&self.rss, frame) % self.transmit.len()
    }

    /// Returns the soft ring of a frame.
    pub(crate) fn soft_ring(&self, frame: &[u8]) -> usize {
        let hash = self.spec.stack.hash.of(&self.rss, frame);
        match self.spec.stack.hash {
            // The remainder of the hash selects the receive channel, and the quotient the soft ring.
            FlowHash::Toeplitz => hash / self.receive.len() % self.spec.stack.rings,
            _ => hash % self.spec.stack.rings,
        }
    }
}
