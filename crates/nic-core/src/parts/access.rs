//! A card's access to host memory over PCI Express, by commands of a core and by DMA engines.
//!
//! A command moves bytes between a core's registers and host memory. The bus unit pulls the bytes of a write from the
//! registers, and pushes those of a read into them. For a DMA transfer, the bus unit pulls a descriptor from a core. An
//! engine then moves the bytes between the card's memory and the link, one move at a time. The core is signalled at the
//! end. An engine moves the bytes of a read when they have arrived, and sends a write's TLP when it has all of its bytes. A
//! write is complete for the card when its last TLP has left.
//!
//! Engines share two parts. One unit starts the moves of all writes, one after another. Read requests and writes of all
//! engines share the way to the host, which takes a [turn](nicety_host::pcie::EnginesSpec::turn) before each of them.
//!
//! Only times are modelled here; [`Dma`](super::Dma) moves bytes.

use nicety_host::pcie::{AccessSpec, PcieSpec};
use nicety_host::{Bus, BusSpec};
use nicety_kernel::{Pool, Sim};
use nicety_types::{Duration, MessageId, NodeId, Path, Time};
use std::cell::Cell;
use std::rc::Rc;

/// A card's access to host memory over an otherwise idle link.
pub struct Access {
    sim: Sim,
    spec: AccessSpec,
    pcie: PcieSpec,
    bus: Bus,
    readers: Pool,
    writers: Pool,
    /// The time at which the next move of a write may start.
    mover_free: Cell<Time>,
    transfers: Cell<u64>,
}

impl Access {
    /// Returns an idle access. A spec without costs in the card has [none](AccessSpec::free).
    ///
    /// # Panics
    /// If the spec has problems.
    pub fn new(sim: &Sim, pcie: PcieSpec) -> Rc<Access> {
        let spec = pcie.access.unwrap_or_else(AccessSpec::free);
        let engines = || Pool::new(sim, spec.engines.count as usize);
        Rc::new(Access {
            sim: sim.clone(),
            spec,
            pcie,
            bus: Bus::new(sim, BusSpec::Pcie(pcie)),
            readers: engines(),
            writers: engines(),
            mover_free: Cell::new(Time::ZERO),
            transfers: Cell::new(0),
        })
    }

    /// The link.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// The costs in the card.
    pub fn spec(&self) -> &AccessSpec {
        &self.spec
    }

    /// A core reads `bytes` bytes at `address` into its registers.
    pub async fn read(&self, address: u64, bytes: u64) {
        self.sim.delay(self.spec.issue).await;
        self.fetch_command(address, bytes).await;
    }

    /// A core issues a write of `bytes` bytes from its registers and then a read of the same bytes. The read follows the
    /// write in the bus unit, and the core waits for both.
    pub async fn write_and_read(&self, address: u64, bytes: u64) {
        self.sim.delay(self.spec.issue + self.spec.pull + self.spec.gap.cover(bytes)).await;
        self.bus.write(self.number(), address, bytes, self.now());
        self.fetch_command(address, bytes).await;
    }

    async fn fetch_command(&self, address: u64, bytes: u64) {
        let transfer = self.bus.read(self.number(), address, bytes, bytes, self.now()).await;
        self.sim.until(transfer.packet(0).await.tail).await;
        self.sim.delay(self.spec.gap.cover(bytes) + self.spec.finish).await;
    }

    /// A DMA engine reads `bytes` bytes at `address` of the host into the card's memory at `card`. Returns when the core
    /// that waits for the transfer continues.
    pub async fn dma_read(&self, address: u64, card: u64, bytes: u64) {
        let engines = self.spec.engines;
        self.describe().await;
        self.sim.delay(engines.read).await;
        let (message, now) = (self.number(), self.now());
        let transfer = self.bus.read_apart(message, address, bytes, engines.line, now, engines.turn).await;
        let mut engine = None;
        for end in engines.read_moves(card, bytes) {
            let packet = (end - 1) / engines.line * engines.line;
            self.sim.until(transfer.packet(packet).await.tail).await;
            if engine.is_none() {
                engine = Some(self.readers.acquire().await);
                self.sim.delay(engines.setup).await;
            }
            self.sim.delay(engines.read_move).await;
        }
        drop(engine);
        self.sim.delay(self.spec.finish).await;
    }

    /// A DMA engine writes `bytes` bytes from the card's memory at `card` to `address` of the host. Returns when the core
    /// that waits for the transfer continues.
    pub async fn dma_write(&self, address: u64, card: u64, bytes: u64) {
        let engines = self.spec.engines;
        self.describe().await;
        self.sim.delay(engines.write).await;
        let engine = self.writers.acquire().await;
        let (mut begin, mut sent, message) = (0, self.sim.now(), self.number());
        let mut ends = self.pcie.writes(address, bytes, engines.transaction).peekable();
        let mut busy = engines.turn + engines.write_gap;
        for moved in engines.write_moves(card, bytes) {
            self.start_move(busy).await;
            busy = engines.write_gap;
            self.sim.delay(engines.write_move).await;
            while let Some((end, begins)) = ends.next_if(|&(end, _)| end <= moved) {
                let apart = if begins { engines.turn } else { Duration::ZERO };
                let (at, len) = (address + begin, end - begin);
                sent = self.bus.write_apart(message, at, len, self.now(), apart).path.at();
                begin = end;
            }
        }
        drop(engine);
        self.sim.until(sent).await;
        self.sim.delay(self.spec.finish).await;
    }

    /// Waits until the unit that starts the moves of all writes starts one. It is busy for `busy` with it.
    async fn start_move(&self, busy: Duration) {
        let start = self.mover_free.get().max(self.sim.now());
        self.mover_free.set(start + busy);
        self.sim.until(start).await;
    }

    /// A core hands the descriptor of a transfer to the bus unit.
    async fn describe(&self) {
        let descriptor = self.spec.gap.cover(self.spec.engines.descriptor);
        self.sim.delay(self.spec.issue + self.spec.pull + descriptor).await;
    }

    fn now(&self) -> Path {
        Path::from(self.sim.now())
    }

    fn number(&self) -> MessageId {
        let sequence = self.transfers.replace(self.transfers.get() + 1);
        MessageId { source: NodeId(0), sequence }
    }
}
