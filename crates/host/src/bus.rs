//! The host bus: a latency and a gap a byte in each direction, both directions at once.

use nicety_kernel::Sim;
use nicety_types::{
    Burst, Duration, Flight, Gap, Handover, MessageId, Path, Recorder, Resource, Stage, Stream,
};
use std::cell::RefCell;

/// What a plain bus is described by.
#[derive(Clone, Copy, Debug)]
pub struct BusSpec {
    /// One crossing, either way.
    pub latency: Duration,
    /// Per byte, each direction.
    pub gap: Gap,
}

/// The bus between a host and its card.
///
/// Transfers in one direction are served in the order in which they come, and posted writes and read requests of
/// the card share the direction to the host, so a read never passes a write.
#[derive(Debug)]
pub struct Bus {
    to_card: RefCell<Stream>,
    to_host: RefCell<Stream>,
}

impl Bus {
    /// An idle bus.
    pub fn new(spec: BusSpec) -> Bus {
        let direction = |stage, queued| RefCell::new(Stream::new(spec.latency, spec.gap, stage, queued));
        Bus {
            to_card: direction(Stage::Bus, Stage::BusQueued),
            to_host: direction(Stage::Deposit, Stage::DepositQueued),
        }
    }

    /// Has every crossing recorded, where such rows are kept.
    pub fn record(&self, recorder: &Recorder) {
        self.to_card.borrow_mut().record(recorder, Resource::BusToCard);
        self.to_host.borrow_mut().record(recorder, Resource::BusToHost);
    }

    /// One crossing.
    pub fn latency(&self) -> Duration {
        self.to_card.borrow().latency()
    }

    /// The host pushes a command and `bytes` of payload to the card, in packets of at most `packet_bytes`.
    pub fn push(&self, message: MessageId, bytes: u64, packet_bytes: u64, path: Path) -> Burst {
        let flight = Flight::resting(path);
        self.to_card.borrow_mut().burst(message, bytes, packet_bytes, flight, Stage::Bus, Stage::BusQueued)
    }

    /// The card writes `bytes`, which lie complete in a buffer of its own, to host memory.
    pub fn write(&self, message: MessageId, bytes: u64, path: Path) -> Handover {
        let mut to_host = self.to_host.borrow_mut();
        to_host.hand_over(message, bytes, path, Stage::Deposit, Stage::DepositQueued)
    }

    /// The card reads `bytes` of host memory: the request crosses behind the writes before it, then the data comes
    /// back. Returns once the request has reached the host.
    pub async fn read(
        &self,
        sim: &Sim,
        message: MessageId,
        bytes: u64,
        packet_bytes: u64,
        path: Path,
    ) -> Burst {
        let request = self.to_host.borrow_mut().cross_as(
            message,
            0,
            Flight::resting(path),
            Stage::Fetch,
            Stage::FetchQueued,
        );
        sim.until(request.head).await;
        self.to_card.borrow_mut().burst(
            message,
            bytes,
            packet_bytes,
            request,
            Stage::Fetch,
            Stage::FetchQueued,
        )
    }

    /// How long each direction has been occupied: to the card, to the host.
    pub fn busy(&self) -> (Duration, Duration) {
        (self.to_card.borrow().busy(), self.to_host.borrow().busy())
    }
}
