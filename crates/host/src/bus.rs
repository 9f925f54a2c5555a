//! The bus between host and card: a plain bus, PCI Express or PCI.

use crate::arrivals::Arrivals;
use crate::notice::Notice;
use crate::pci::{PciSpec, Shared};
use crate::pcie::{Iommu, Link, PcieSpec, RootCache};
use nicety_kernel::Sim;
use nicety_types::{
    Burst, Duration, Flight, Gap, Handover, MessageId, Path, Recorder, Resource, Stage, Stream,
};
use std::cell::RefCell;
use std::rc::Rc;

/// The specification of a bus.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each card")]
pub enum BusSpec {
    /// A bus with a latency and a gap per byte in each direction.
    Plain(PlainSpec),
    /// PCI Express: TLPs over lanes.
    Pcie(PcieSpec),
    /// PCI: transactions on wires that both directions share.
    Pci(PciSpec),
}

impl BusSpec {
    /// Returns the time for which a CPU is busy when it writes `bytes` bytes into the card over an idle bus.
    pub fn store_time(&self, bytes: u64) -> Duration {
        match self {
            BusSpec::Plain(plain) => plain.gap.cover(bytes),
            BusSpec::Pcie(pcie) => crate::pcie::store_time(pcie, bytes),
            BusSpec::Pci(_) if bytes == 0 => Duration::ZERO,
            BusSpec::Pci(pci) => pci.clock.cycles(pci.arbitration) + pci.clock.cycles(pci.programmed(bytes)),
        }
    }

    /// Returns the time for which a card occupies an idle bus when it writes `bytes` bytes to host memory.
    pub fn write_time(&self, bytes: u64) -> Duration {
        match self {
            BusSpec::Plain(plain) => plain.gap.cover(bytes),
            BusSpec::Pcie(pcie) => crate::pcie::write_time(pcie, bytes),
            BusSpec::Pci(pci) => pci.clock.cycles(pci.mastered(0, bytes)),
        }
    }
}

/// The specification of a plain bus.
#[derive(Clone, Copy, Debug)]
pub struct PlainSpec {
    /// The latency of one crossing, in either direction.
    pub latency: Duration,
    /// Time per byte, in each direction.
    pub gap: Gap,
}

/// The bus between a host and its card.
///
/// Transfers in one direction are served in the order of their requests. The card's posted writes and read requests
/// share the direction to the host, so a read never overtakes a write.
#[derive(Debug)]
pub struct Bus(Kind);

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each node")]
enum Kind {
    /// Two directions that may be busy at the same time.
    Plain {
        sim: Sim,
        to_card: RefCell<Stream>,
        to_host: RefCell<Stream>,
    },
    Pcie(Rc<Link>),
    Pci(Rc<Shared>),
}

/// A message in flight over the bus to the card, with its packets back to back.
#[derive(Clone, Debug)]
pub struct Transfer(Arriving);

#[derive(Clone, Debug)]
enum Arriving {
    Plain(Burst),
    Packets(Rc<Arrivals>),
}

impl Transfer {
    /// Waits for the packet that begins at `offset`, a multiple of the packet size, at the far end of the bus. Returns
    /// when the arrival time of the packet's last byte is known.
    pub async fn packet(&self, offset: u64) -> Flight {
        match &self.0 {
            Arriving::Plain(burst) => burst.packet(offset),
            Arriving::Packets(arrivals) => arrivals.packet(offset).await,
        }
    }
}

impl Bus {
    /// Returns an idle bus.
    ///
    /// # Panics
    /// If the spec has [problems](PcieSpec::problems) of PCI Express or [of PCI](PciSpec::problems).
    pub fn new(sim: &Sim, spec: BusSpec) -> Bus {
        Bus(match spec {
            BusSpec::Plain(PlainSpec { latency, gap }) => {
                let direction = |stage, queued| RefCell::new(Stream::new(latency, gap, stage, queued));
                Kind::Plain {
                    sim: sim.clone(),
                    to_card: direction(Stage::BUS, Stage::BUS_QUEUED),
                    to_host: direction(Stage::DEPOSIT, Stage::DEPOSIT_QUEUED),
                }
            }
            BusSpec::Pcie(spec) => Kind::Pcie(Rc::new(Link::new(sim, spec))),
            BusSpec::Pci(spec) => Kind::Pci(Rc::new(Shared::new(sim, spec))),
        })
    }

    /// Declares the state of the last-level cache behind a root complex of PCI Express. The first call finds it empty.
    /// Until then, every access hits. Returns `None` if the spec has no such cache.
    pub fn root_cache<R>(&self, declare: impl FnOnce(&mut RootCache) -> R) -> Option<R> {
        match &self.0 {
            Kind::Pcie(link) => link.root_cache(declare),
            Kind::Plain { .. } | Kind::Pci(_) => None,
        }
    }

    /// Declares the state of the TLB of a root complex's IOMMU. Returns `None` if the spec has no IOMMU.
    pub fn iommu<R>(&self, declare: impl FnOnce(&mut Iommu) -> R) -> Option<R> {
        match &self.0 {
            Kind::Pcie(link) => link.iommu(declare),
            Kind::Plain { .. } | Kind::Pci(_) => None,
        }
    }

    /// Records every use of both directions, if the recorder keeps such rows.
    pub fn record(&self, recorder: &Recorder) {
        match &self.0 {
            Kind::Plain { to_card, to_host, .. } => {
                to_card.borrow_mut().record(recorder, Resource::BUS_TO_CARD);
                to_host.borrow_mut().record(recorder, Resource::BUS_TO_HOST);
            }
            Kind::Pcie(link) => link.record(recorder),
            Kind::Pci(bus) => bus.record(recorder),
        }
    }

    /// The host pushes a command and `bytes` bytes of payload to the card, in packets of at most `packet_bytes`.
    pub fn push(&self, message: MessageId, bytes: u64, packet_bytes: u64, path: Path) -> Transfer {
        Transfer(match &self.0 {
            Kind::Plain { to_card, .. } => {
                let (flight, mut to_card) = (Flight::resting(path), to_card.borrow_mut());
                let burst =
                    to_card.burst(message, bytes, packet_bytes, flight, Stage::BUS, Stage::BUS_QUEUED);
                Arriving::Plain(burst)
            }
            Kind::Pcie(link) => Arriving::Packets(link.push(message, bytes, packet_bytes, path)),
            Kind::Pci(bus) => Arriving::Packets(bus.push(message, bytes, packet_bytes, path)),
        })
    }

    /// A CPU writes `bytes` bytes into the card by programmed I/O, without a command before them. Returns when the CPU
    /// has handed over the last byte. Other users of a shared bus take turns with this write.
    pub async fn store(&self, message: MessageId, bytes: u64, path: Path) -> Handover {
        match &self.0 {
            Kind::Plain { sim, to_card, .. } => {
                let handover =
                    to_card.borrow_mut().hand_over(message, bytes, path, Stage::BUS, Stage::BUS_QUEUED);
                sim.until(handover.path.at()).await;
                handover
            }
            Kind::Pcie(link) => link.store(message, bytes, path).await,
            Kind::Pci(bus) => bus.store(message, bytes, path).await,
        }
    }

    /// A CPU reads `bytes` bytes from a register of the card. The request crosses the bus after earlier writes to the
    /// card, and the answer after earlier writes of the card. The CPU waits, and this returns when the CPU has the
    /// bytes.
    pub async fn load(&self, message: MessageId, bytes: u64, path: Path) -> Path {
        match &self.0 {
            Kind::Plain { sim, to_card, to_host } => {
                let (stage, queued) = (Stage::BUS, Stage::BUS_QUEUED);
                let request = to_card.borrow_mut().cross_as(message, 0, Flight::resting(path), stage, queued);
                sim.until(request.tail).await;
                let answer = to_host.borrow_mut().cross_as(message, bytes, request, stage, queued);
                sim.until(answer.tail).await;
                let mut path = answer.path;
                path.advance(stage, answer.tail);
                path
            }
            Kind::Pcie(link) => link.load(message, bytes, path).await,
            Kind::Pci(bus) => bus.load(message, bytes, path).await,
        }
    }

    /// The card writes `bytes` bytes to host memory at `address`. All bytes are already in a buffer of the card.
    pub fn write(&self, message: MessageId, address: u64, bytes: u64, path: Path) -> Handover {
        match &self.0 {
            Kind::Plain { to_host, .. } => {
                to_host.borrow_mut().hand_over(message, bytes, path, Stage::DEPOSIT, Stage::DEPOSIT_QUEUED)
            }
            Kind::Pcie(link) => link.write(message, address, bytes, path),
            Kind::Pci(bus) => bus.write(message, address, bytes, path),
        }
    }

    /// Like [`Bus::write`]. On PCI Express, at least `apart` passes between the previous packet and the first one.
    pub fn write_apart(
        &self,
        message: MessageId,
        address: u64,
        bytes: u64,
        path: Path,
        apart: Duration,
    ) -> Handover {
        match &self.0 {
            Kind::Pcie(link) => link.write_apart(message, address, bytes, path, apart),
            _ => self.write(message, address, bytes, path),
        }
    }

    /// Like [`Bus::read`]. On PCI Express, at least `apart` passes between the previous packet and each request.
    pub async fn read_apart(
        &self,
        message: MessageId,
        address: u64,
        bytes: u64,
        packet_bytes: u64,
        path: Path,
        apart: Duration,
    ) -> Transfer {
        match &self.0 {
            Kind::Pcie(link) => {
                let arrivals = link.read(message, address, bytes, packet_bytes, path, apart).await;
                Transfer(Arriving::Packets(arrivals))
            }
            _ => self.read(message, address, bytes, packet_bytes, path).await,
        }
    }

    /// Like [`Bus::write`], but returns when the last byte has been handed over. Other users of a shared bus take turns
    /// with this write.
    pub async fn deposit(&self, message: MessageId, address: u64, bytes: u64, path: Path) -> Handover {
        let sim = match &self.0 {
            Kind::Plain { sim, .. } => sim,
            Kind::Pcie(link) => return link.deposit(message, address, bytes, path).await,
            Kind::Pci(bus) => return bus.deposit(message, address, bytes, path).await,
        };
        let handover = self.write(message, address, bytes, path);
        sim.until(handover.path.at()).await;
        handover
    }

    /// The card posts an event or a counter after its earlier writes. Returns the path up to the instant at which the
    /// host can see the event or counter. On a plain bus, the post takes the latency and no bandwidth.
    pub fn post(&self, notice: Notice, mut path: Path) -> Path {
        match &self.0 {
            Kind::Plain { to_host, .. } => {
                path.advance(Stage::DEPOSIT, path.at() + to_host.borrow().latency());
                path
            }
            Kind::Pcie(link) => link.post(notice, path),
            Kind::Pci(bus) => bus.post(notice, path),
        }
    }

    /// The card reads `bytes` bytes of host memory at `address`. The request crosses the bus after earlier writes. Then
    /// the data come back. Returns once the request has reached the host.
    pub async fn read(
        &self,
        message: MessageId,
        address: u64,
        bytes: u64,
        packet_bytes: u64,
        path: Path,
    ) -> Transfer {
        match &self.0 {
            Kind::Plain { sim, to_card, to_host } => {
                let (stage, queued, flight) = (Stage::FETCH, Stage::FETCH_QUEUED, Flight::resting(path));
                let request = to_host.borrow_mut().cross_as(message, 0, flight, stage, queued);
                sim.until(request.head).await;
                let mut to_card = to_card.borrow_mut();
                let burst = to_card.burst(message, bytes, packet_bytes, request, stage, queued);
                Transfer(Arriving::Plain(burst))
            }
            Kind::Pcie(link) => {
                let arrivals = link.read(message, address, bytes, packet_bytes, path, Duration::ZERO).await;
                Transfer(Arriving::Packets(arrivals))
            }
            Kind::Pci(bus) => {
                Transfer(Arriving::Packets(bus.read(message, address, bytes, packet_bytes, path).await))
            }
        }
    }

    /// Returns the busy time of the direction to the card, and of the direction to the host.
    pub fn busy(&self) -> (Duration, Duration) {
        match &self.0 {
            Kind::Plain { to_card, to_host, .. } => (to_card.borrow().busy(), to_host.borrow().busy()),
            Kind::Pcie(link) => link.busy(),
            Kind::Pci(bus) => bus.busy(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_kernel::{Config, World};
    use nicety_types::{Frequency, NodeId, Time};

    /// Returns the time at which a CPU has read 8 bytes from the card, if it begins at time zero.
    fn loaded(spec: BusSpec) -> Time {
        let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
        let node = world.add_node();
        let sim = world.sim(node);
        let bus = Bus::new(&sim, spec);
        let message = MessageId { source: NodeId(0), sequence: 0 };
        sim.clone().spawn_program("reader", async move {
            let path = bus.load(message, 8, Path::from(Time::ZERO)).await;
            assert_eq!(path.total(Stage::BUS), path.at().since(Time::ZERO));
            assert_eq!(path.at(), sim.now());
        });
        world.run().unwrap().end
    }

    #[test]
    fn a_cpu_reads_a_register_by_a_round_trip() {
        let plain = PlainSpec { latency: Duration::from_ns(50), gap: Gap::new(3, 1) };
        assert_eq!(loaded(BusSpec::Plain(plain)).ps(), 50_000 + 8 * 3 + 50_000);
        let pci = PciSpec {
            clock: Frequency::from_hz(33_333_333),
            width: 4,
            wait: 2,
            arbitration: 3,
            combine: 32,
            burst: 64,
            latency: Duration::from_ns(10),
            command: 8,
            event: 8,
            counter: 8,
        };
        // Arbitration takes 3 clocks. Each of two transactions has an address phase, two wait clocks, one data phase
        // and a turnaround.
        let clocks = 3 + 2 * (1 + 2 + 1 + 1);
        let end = loaded(BusSpec::Pci(pci)).ps();
        assert!(end.abs_diff(pci.clock.cycles(clocks).ps() + 10_000) < 10, "{end}");
    }

    #[test]
    fn a_write_occupies_an_idle_bus_for_its_time() {
        let plain = PlainSpec { latency: Duration::from_ns(50), gap: Gap::new(3, 1) };
        assert_eq!(BusSpec::Plain(plain).write_time(60).ps(), 60 * 3);
        let pcie = PcieSpec::new(crate::pcie::Generation::Gen4, 16, Duration::from_ns(200));
        // The write takes two TLPs. The second TLP has one byte of payload, padded to 4.
        let gap = pcie.gap();
        let time = gap.cover(pcie.write_bytes(pcie.mps)) + gap.cover(pcie.write_bytes(4));
        assert_eq!(BusSpec::Pcie(pcie).write_time(pcie.mps + 1), time);
    }
}
