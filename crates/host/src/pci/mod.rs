//! A PCI bus between host and card, modelled by transactions.
//!
//! # The model
//! One set of wires serves both directions. The initiator of a transfer is the host or the card. It is granted the bus
//! for one transaction at a time. A transaction consists of an address phase, wait clocks, data phases of 4 or 8 bytes,
//! and the turnaround. Wait clocks are the clocks without data before and between data phases. Concurrent initiators
//! take turns: each requests its next transaction at the end of a transaction, and requests are served in order.
//! Arbitration overlaps with the previous transaction, so it takes time only on an idle bus.
//!
//! - The **host** writes through write-combining buffers. Each full buffer is one burst. Each data phase of the last,
//!   partly filled buffer is one transaction. So the rate of programmed I/O depends on the size of the writes.
//! - The **card** reads and writes host memory in bursts that end at multiples of the maximum burst length. A read is
//!   answered within its own transaction. Transactions are not split, so the bus waits for the answer.
//!
//! # Bandwidth
//! The bus has 64 bits at 15 ns, 12 wait clocks, buffers of 32 B and bursts of 128 B: 533 MB/s raw. A full buffer takes
//! 1 + 12 + 4 + 1 = 18 clocks. So programmed I/O reaches 32 B / 270 ns = 118.5 MB/s. A burst of the card takes 1 + 12 +
//! 16 + 1 = 30 clocks: 128 B / 450 ns = 284.4 MB/s.
//!
//! # Not modelled
//! - Turns within a push or a write. The bytes that the host pushes for one message get their times at once. So do the
//!   bytes of one [`Bus::write`](crate::Bus::write). Other transfers wait for the end of these bytes.
//!   [`Bus::store`](crate::Bus::store), [`Bus::deposit`](crate::Bus::deposit) and [`Bus::read`](crate::Bus::read) take
//!   turns.
//! - Bytes within a burst. A byte that is read is available at the end of its burst. A packet is forwarded when its
//!   last burst has been granted.
//! - Retries, latency timers, parity, dual address cycles, interrupts, and other devices on the bus.

mod spec;
#[cfg(test)]
mod tests;

pub use spec::{PciSpec, Problem};

use crate::Notice;
use crate::arrivals::{Arrivals, Packets};
use nicety_kernel::Sim;
use nicety_types::{Duration, Handover, Level, MessageId, Path, Recorder, Resource, Stage, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// A PCI bus.
#[derive(Debug)]
pub(crate) struct Shared {
    sim: Sim,
    spec: PciSpec,
    wires: RefCell<Wires>,
}

/// The kind of a transfer: its initiator and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ToCard,
    ToHost,
}

#[derive(Debug)]
struct Wires {
    /// End of the last granted transaction.
    free: Time,
    /// The message of this transaction, and the path up to the transaction's end.
    last: Option<(Option<MessageId>, Path)>,
    to_card: Duration,
    to_host: Duration,
    recorder: Option<Recorder>,
}

/// The stage for time on the bus, and the stage for the wait for the bus.
type Stages = (Stage, Stage);

const BUS: Stages = (Stage::BUS, Stage::BUS_QUEUED);
const FETCH: Stages = (Stage::FETCH, Stage::FETCH_QUEUED);
const DEPOSIT: Stages = (Stage::DEPOSIT, Stage::DEPOSIT_QUEUED);

impl Shared {
    /// Returns an idle bus.
    ///
    /// # Panics
    /// If the spec has problems.
    pub(crate) fn new(sim: &Sim, spec: PciSpec) -> Shared {
        let problems = spec.problems();
        assert!(problems.is_empty(), "not a PCI bus: {problems:?}");
        let wires = Wires {
            free: Time::ZERO,
            last: None,
            to_card: Duration::ZERO,
            to_host: Duration::ZERO,
            recorder: None,
        };
        Shared { sim: sim.clone(), spec, wires: RefCell::new(wires) }
    }

    /// Records every use of the bus, if the recorder keeps such rows.
    pub(crate) fn record(&self, recorder: &Recorder) {
        self.wires.borrow_mut().recorder = recorder.keeps(Level::Everything).then(|| recorder.clone());
    }

    /// Returns the time for which the bus moved bytes to the card, and the time for which it moved bytes to the host.
    pub(crate) fn busy(&self) -> (Duration, Duration) {
        let wires = self.wires.borrow();
        (wires.to_card, wires.to_host)
    }

    /// Requests the bus for the first transaction of a transfer, and accounts for the arbitration in `path`.
    fn ask(&self, path: &mut Path, stages: Stages) {
        let granted = path.at() + self.spec.clock.cycles(self.spec.arbitration);
        path.advance(stages.0, granted);
    }

    /// Occupies the bus for `clocks` clocks from the end of `path` on, or from the instant on at which the bus is free.
    /// Advances the path to the start of this time, and returns its end.
    fn claim(
        &self,
        way: Way,
        message: Option<MessageId>,
        clocks: u64,
        path: &mut Path,
        stages: Stages,
    ) -> Time {
        let mut wires = self.wires.borrow_mut();
        let start = path.at().max(wires.free);
        if start > path.at() {
            // The bus was busy with another part of the same message, so that part's path is the critical path.
            if let Some((_, its)) =
                wires.last.as_ref().filter(|(last, _)| message.is_some() && *last == message)
            {
                *path = its.clone();
            }
            path.advance(stages.1, start);
        }
        let duration = self.spec.clock.cycles(clocks);
        let end = start + duration;
        let mut whole = path.clone();
        whole.advance(stages.0, end);
        wires.free = end;
        wires.last = Some((message, whole));
        let (busy, resource) = match way {
            Way::ToCard => (&mut wires.to_card, Resource::BUS_TO_CARD),
            Way::ToHost => (&mut wires.to_host, Resource::BUS_TO_HOST),
        };
        *busy += duration;
        if let Some(recorder) = &wires.recorder {
            recorder.slice(resource, start, end, message, stages.0.name());
        }
        end
    }

    /// The host pushes a command and `bytes` bytes of payload. All transactions get their times at once.
    pub(crate) fn push(
        &self,
        message: MessageId,
        bytes: u64,
        packet_bytes: u64,
        mut path: Path,
    ) -> Rc<Arrivals> {
        let PciSpec { clock, command, latency, .. } = self.spec;
        let mut packets = Packets::new(bytes, packet_bytes);
        self.ask(&mut path, BUS);
        let total = command + bytes;
        self.claim(Way::ToCard, Some(message), self.spec.programmed(total), &mut path, BUS);
        let there = |end: u64| path.at() + clock.cycles(self.spec.programmed(end)) + latency;
        let mut begin = command;
        loop {
            let end = self.spec.gathered(begin, total);
            packets.arrived(begin - command, end - command, there(end));
            if end == total {
                return Rc::new(Arrivals::complete(&self.sim, BUS.0, path, packets));
            }
            begin = end;
        }
    }

    /// A CPU writes `bytes` bytes to the card, one transaction at a time. Returns at the end of the last transaction.
    pub(crate) async fn store(&self, message: MessageId, bytes: u64, mut path: Path) -> Handover {
        let mut begin = 0;
        while begin < bytes {
            if begin == 0 {
                self.ask(&mut path, BUS);
            }
            let end = self.spec.gathered(begin, bytes);
            let clocks = self.spec.programmed(end) - self.spec.programmed(begin);
            let until = self.claim(Way::ToCard, Some(message), clocks, &mut path, BUS);
            path.advance(BUS.0, until);
            self.sim.until(until).await;
            begin = end;
        }
        Handover { path: path.clone(), landed: path.at() + self.spec.latency }
    }

    /// A CPU reads `bytes` bytes from the card, with one transaction per data phase. A transaction holds the bus until
    /// the card has answered. Returns when the CPU has the last bytes.
    pub(crate) async fn load(&self, message: MessageId, bytes: u64, mut path: Path) -> Path {
        let single = self.spec.transaction(0, self.spec.width);
        for part in 0..bytes.div_ceil(self.spec.width) {
            if part == 0 {
                self.ask(&mut path, BUS);
            }
            let until = self.claim(Way::ToCard, Some(message), single, &mut path, BUS);
            path.advance(BUS.0, until);
            self.sim.until(until).await;
        }
        path.advance(BUS.0, path.at() + self.spec.latency);
        self.sim.until(path.at()).await;
        path
    }

    /// The card writes `bytes` bytes to host memory. All transactions get their times at once.
    pub(crate) fn write(&self, message: MessageId, address: u64, bytes: u64, path: Path) -> Handover {
        self.write_as(Some(message), address, bytes, path)
    }

    fn write_as(&self, message: Option<MessageId>, address: u64, bytes: u64, mut path: Path) -> Handover {
        if bytes > 0 {
            self.ask(&mut path, DEPOSIT);
            let clocks = self.spec.mastered(address, bytes);
            let until = self.claim(Way::ToHost, message, clocks, &mut path, DEPOSIT);
            path.advance(DEPOSIT.0, until);
        }
        Handover { path: path.clone(), landed: path.at() + self.spec.latency }
    }

    /// The card writes `bytes` bytes to host memory, one burst at a time. Returns at the end of the last burst.
    pub(crate) async fn deposit(
        &self,
        message: MessageId,
        address: u64,
        bytes: u64,
        mut path: Path,
    ) -> Handover {
        for (begin, end) in self.spec.bursts(address, bytes) {
            if begin == 0 {
                self.ask(&mut path, DEPOSIT);
            }
            let clocks = self.spec.transaction(address + begin, end - begin);
            let until = self.claim(Way::ToHost, Some(message), clocks, &mut path, DEPOSIT);
            path.advance(DEPOSIT.0, until);
            self.sim.until(until).await;
        }
        Handover { path: path.clone(), landed: path.at() + self.spec.latency }
    }

    /// The card writes an event or a counter. Returns the path up to the instant at which the host can see it.
    pub(crate) fn post(&self, notice: Notice, path: Path) -> Path {
        let bytes = match notice {
            Notice::Event => self.spec.event,
            Notice::Counter => self.spec.counter,
        };
        let Handover { mut path, landed } = self.write_as(None, 0, bytes, path);
        path.advance(DEPOSIT.0, landed);
        path
    }

    /// The card reads `bytes` bytes of host memory, one burst at a time. Returns when the first burst begins.
    /// [`Arrivals`] has the arrival times of the bytes.
    pub(crate) async fn read(
        self: &Rc<Shared>,
        message: MessageId,
        address: u64,
        bytes: u64,
        packet_bytes: u64,
        mut path: Path,
    ) -> Rc<Arrivals> {
        let mut bursts = self.spec.bursts(address, bytes);
        let Some(mut burst) = bursts.next() else {
            let mut packets = Packets::new(0, packet_bytes);
            packets.arrived(0, 0, path.at() + self.spec.latency);
            return Rc::new(Arrivals::complete(&self.sim, FETCH.0, path, packets));
        };
        self.ask(&mut path, FETCH);
        let arrivals =
            Rc::new(Arrivals::under_way(&self.sim, FETCH.0, path.clone(), Packets::new(bytes, packet_bytes)));
        let (bus, told) = (self.clone(), arrivals.clone());
        let clocks = self.spec.transaction(address, burst.1);
        let mut until = self.claim(Way::ToCard, Some(message), clocks, &mut path, FETCH);
        let begins = path.at();
        let telling = async move {
            loop {
                told.arrived(path.clone(), burst.0, burst.1, until + bus.spec.latency);
                let Some(next) = bursts.next() else { return };
                path.advance(FETCH.0, until);
                bus.sim.until(until).await;
                burst = next;
                let clocks = bus.spec.transaction(address + burst.0, burst.1 - burst.0);
                until = bus.claim(Way::ToCard, Some(message), clocks, &mut path, FETCH);
            }
        };
        self.sim.spawn(telling);
        self.sim.until(begins).await;
        arrivals
    }
}
