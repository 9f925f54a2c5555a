//! A PCI Express link between host and card, modelled by TLPs.
//!
//! # The model
//! Each TLP occupies its direction with its header, payload in doublewords, framing, sequence number, LCRC and, if
//! enabled, ECRC. Posted writes are cut at the MPS, and read requests at the MRRS. Both are cut at 4 KiB. Completions
//! are cut at the RCB and the MPS. A read waits for a tag and a credit. TLPs wait for credits. A credit returns when
//! the receiver's buffer has room and the UpdateFC has arrived. Acks and UpdateFCs occupy the other direction, before
//! its TLPs. SKP ordered sets go between the TLPs of a stream.
//!
//! A direction is first come, first served: TLPs and read requests that follow a posted write arrive after it. There is
//! one exception: a TLP that waits for a tag or a credit is not in flight yet, and can be overtaken. The completions of
//! one request arrive in order. A request that hits the cache or the TLB is answered before an earlier one that misses.
//!
//! A byte can be read or forwarded once its whole TLP has arrived, because the LCRC is at the end of the TLP.
//!
//! # Effective bandwidth
//! Generation 3 x8, MPS 256 B, MRRS 512 B, RCB 64 B, 64-bit addresses, no ECRC: 63.015 Gb/s raw. The overhead of a
//! write is 8 + 16 bytes, and of a completion 8 + 12 bytes. A read request takes 8 + 16 bytes in the other direction.
//! The table has the payload rate in Gb/s of aligned, back-to-back transfers:
//!
//! | bytes | write: wire bytes | write | read: wire bytes | read |
//! |---|---|---|---|---|
//! | 64 | 88 | 45.829 | 84 | 48.012 |
//! | 128 | 152 | 53.066 | 148 | 54.500 |
//! | 256 | 280 | 57.614 | 276 | 58.449 |
//! | 512 | 560 | 57.614 | 552 | 58.449 |
//! | 1024 | 1120 | 57.614 | 1104 | 58.449 |
//! | 2048 | 2240 | 57.614 | 2208 | 58.449 |
//! | 4096 | 4480 | 57.614 | 4416 | 58.449 |
//!
//! Streams lose one block in 375 to ordered sets. Reads also lose bandwidth to the Acks and UpdateFCs for their
//! requests: 16 bytes every 203 ns, or 1 %. This leaves 57.46 Gb/s for writes and 57.74 Gb/s for reads.
//!
//! # Not modelled
//! - Errors, and so Naks and replays. The replay buffer never limits the rate.
//! - Low-power states. The idle symbols that fill the block before an ordered set (up to 0.27 % more). The UpdateFCs
//!   that are repeated every 30 us (0.01 %).
//! - The exact position of a DLLP. DLLPs go between TLPs. A DLLP that becomes ready inside a burst with known times
//!   goes after the burst. It takes the same bandwidth. Its credits arrive as if it had not waited for a TLP.
//! - Interleaving in a burst. The bytes that the host pushes for one message are one burst. So are the bytes that the
//!   card writes at once. Other TLPs wait for the end of the burst. Reads interleave by request. Writes that take turns
//!   interleave by TLP.
//! - Partial packets: a packet that is read is forwarded once the host has answered the packet's last request
//!   (`Transfer::packet`).
//! - Relaxed ordering, ID-based ordering, more than one virtual channel, locked and I/O requests.
//! - Operands of 64-bit atomic operations: such an operation takes the time of a read of 8 bytes, and its request has
//!   no operand.
//! - Flit mode, see [`Generation`].
//!
//! The functions here that only compute sizes follow the model of pcie-bench, which has sizes but not times. Source:
//! Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018. That model leaves 57.88
//! Gb/s for TLPs: it divides the 8 bytes of a DLLP by symbol times, as if a DLLP used one lane. Here a DLLP uses all
//! lanes, as the Base Specification says.

mod access;
mod iommu;
mod root;
mod spec;
mod split;
mod wire;

pub use access::{AccessSpec, EnginesSpec};
pub use iommu::{Iommu, IommuSpec};
pub use root::{RootCache, RootSpec};
pub use spec::{Addressing, Credits, Cut, Generation, LANES, PcieSpec, Problem, UNSCALED};

use crate::Notice;
use crate::arrivals::{Arrivals, Packets};
use nicety_kernel::{Permit, Pool, Sim};
use nicety_types::{Duration, Handover, Level, MessageId, Path, Recorder, Resource, Stage, Time};
use split::Piece;
use std::cell::RefCell;
use std::rc::Rc;
use wire::{Class, Sent, Stages, Tlp, Way, Wires};

/// A PCI Express link.
#[derive(Debug)]
pub(crate) struct Link {
    sim: Sim,
    spec: PcieSpec,
    wires: RefCell<Wires>,
    tags: Pool,
    recorder: RefCell<Option<Recorder>>,
    /// The last-level cache. `None` until its state is declared.
    root: RefCell<Option<RootCache>>,
    iommu: Option<Box<RefCell<Iommu>>>,
}

/// The bytes of host memory that a request reads.
#[derive(Clone, Copy)]
struct Request {
    address: u64,
    piece: Piece,
}

impl Link {
    /// Returns an idle link.
    ///
    /// # Panics
    /// If the spec has problems.
    pub(crate) fn new(sim: &Sim, spec: PcieSpec) -> Link {
        let problems = spec.problems();
        assert!(problems.is_empty(), "not a PCI Express link: {problems:?}");
        let tags = Pool::new(sim, spec.tags as usize);
        Link {
            sim: sim.clone(),
            wires: RefCell::new(Wires::new(&spec)),
            spec,
            tags,
            recorder: RefCell::default(),
            root: RefCell::default(),
            iommu: spec.iommu.map(|spec| Box::new(RefCell::new(Iommu::new(spec)))),
        }
    }

    /// Declares the state of the last-level cache. The first call finds it empty. Returns `None` if the spec has no
    /// cache.
    pub(crate) fn root_cache<R>(&self, declare: impl FnOnce(&mut RootCache) -> R) -> Option<R> {
        let spec = self.spec.root?;
        Some(declare(self.root.borrow_mut().get_or_insert_with(|| RootCache::new(spec))))
    }

    /// Declares the state of the IOMMU's TLB. Returns `None` if the spec has no IOMMU.
    pub(crate) fn iommu<R>(&self, declare: impl FnOnce(&mut Iommu) -> R) -> Option<R> {
        self.iommu.as_ref().map(|iommu| declare(&mut iommu.borrow_mut()))
    }

    /// Sends a posted write of the card at `from` or later. Returns when it leaves, and the time at which the host can see the
    /// bytes. The root complex holds the write, and its credits, until its address is translated.
    fn post_write(&self, from: Time, address: u64, piece: &Piece, apart: Duration) -> (Sent, Time) {
        let address = address + piece.offset;
        let (bytes, payload) = (self.spec.write_bytes(piece.padded), piece.padded);
        let tlp = Tlp { class: Class::Posted, bytes, payload, apart };
        let mut held = Duration::ZERO;
        let sent = self.wires.borrow_mut().send_held(Way::ToHost, self.sim.now(), from, tlp, |end| {
            let came = end + self.spec.latency_to_host;
            if let Some(iommu) = &self.iommu {
                held = iommu.borrow_mut().write(came, address).since(came);
            }
            held
        });
        let at = sent.end + self.spec.latency_to_host + held + self.spec.remote;
        if let Some(root) = &mut *self.root.borrow_mut() {
            root.write_at(at, address..address + piece.len);
        }
        (sent, at)
    }

    /// A read request arrives at `at`. Returns the time at which the bytes are back at the root complex.
    fn fetched(&self, mut at: Time, address: u64, bytes: u64) -> Time {
        if let Some(iommu) = &self.iommu {
            at = iommu.borrow_mut().read(at, address);
        }
        at += self.spec.remote;
        if let Some(root) = &mut *self.root.borrow_mut() {
            at = root.read_at(at, address..address + bytes);
        }
        at + self.spec.read_latency + self.spec.remote
    }

    /// Records bursts in both directions, if the recorder keeps such rows.
    pub(crate) fn record(&self, recorder: &Recorder) {
        self.recorder.replace(recorder.keeps(Level::Everything).then(|| recorder.clone()));
    }

    /// Returns the busy time of the direction to the card, and of the direction to the host. Both include DLLPs.
    pub(crate) fn busy(&self) -> (Duration, Duration) {
        let wires = self.wires.borrow();
        (wires.busy(Way::ToCard), wires.busy(Way::ToHost))
    }

    fn send(&self, way: Way, from: Time, class: Class, payload: u64) -> Sent {
        self.send_apart(way, from, class, payload, Duration::ZERO)
    }

    fn send_apart(&self, way: Way, from: Time, class: Class, payload: u64, apart: Duration) -> Sent {
        let bytes = match class {
            Class::Posted => self.spec.write_bytes(payload),
            Class::NonPosted => self.spec.request_bytes(),
            Class::Completion => self.spec.completion_bytes(payload),
        };
        self.wires.borrow_mut().send(way, self.sim.now(), from, Tlp { class, bytes, payload, apart })
    }

    /// Records a burst or a single TLP.
    fn used(&self, way: Way, start: Time, end: Time, message: Option<MessageId>, stage: Stage) {
        if let Some(recorder) = &*self.recorder.borrow() {
            let resource = match way {
                Way::ToCard => Resource::BUS_TO_CARD,
                Way::ToHost => Resource::BUS_TO_HOST,
            };
            recorder.slice(resource, start, end, message, stage.name());
        }
    }

    /// Accounts in `path` for the wait until the first of several TLPs left.
    fn waited(&self, way: Way, message: Option<MessageId>, sent: Sent, path: &mut Path, stages: Stages) {
        self.wires.borrow_mut().waited(way, message, sent, path, stages);
    }

    /// The host pushes a command and `bytes` bytes of payload in back-to-back posted writes. The host's window on the
    /// card is aligned. So the transfer is cut as if its first byte were at a multiple of 4 KiB.
    pub(crate) fn push(
        &self,
        message: MessageId,
        bytes: u64,
        packet_bytes: u64,
        mut path: Path,
    ) -> Rc<Arrivals> {
        let command = self.spec.command;
        let mut packets = Packets::new(bytes, packet_bytes);
        let from = path.at();
        let mut span = None;
        for piece in split::requests(0, command + bytes, self.spec.push_payload) {
            let sent = self.send(Way::ToCard, from, Class::Posted, piece.padded);
            if span.is_none() {
                self.waited(Way::ToCard, Some(message), sent, &mut path, BUS);
            }
            let (start, _) = span.unwrap_or((sent.start, sent.end));
            span = Some((start, sent.end));
            let end = piece.offset + piece.len;
            if end > command || end == command + bytes {
                let begin = piece.offset.max(command) - command;
                packets.arrived(begin, end - command, sent.end + self.spec.latency_to_card);
            }
        }
        let (start, end) = span.expect("a transfer is one TLP at least");
        self.used(Way::ToCard, start, end, Some(message), BUS.0);
        Rc::new(Arrivals::complete(&self.sim, BUS.0, path, packets))
    }

    /// A CPU writes `bytes` bytes to the card, like [`Link::push`] without a command. Returns when the last TLP has
    /// left.
    pub(crate) async fn store(&self, message: MessageId, bytes: u64, mut path: Path) -> Handover {
        let from = path.at();
        let mut span = None;
        for piece in split::requests(0, bytes, self.spec.push_payload).filter(|_| bytes > 0) {
            let sent = self.send(Way::ToCard, from, Class::Posted, piece.padded);
            if span.is_none() {
                self.waited(Way::ToCard, Some(message), sent, &mut path, BUS);
            }
            let (start, _) = span.unwrap_or((sent.start, sent.end));
            span = Some((start, sent.end));
        }
        if let Some((start, end)) = span {
            self.used(Way::ToCard, start, end, Some(message), BUS.0);
            path.advance(BUS.0, end);
            self.sim.until(end).await;
        }
        Handover { path: path.clone(), landed: path.at() + self.spec.latency_to_card }
    }

    /// A CPU reads `bytes` bytes from the card: a request and its completion. Returns when the completion has reached
    /// the CPU.
    pub(crate) async fn load(&self, message: MessageId, bytes: u64, mut path: Path) -> Path {
        let legs = [
            (Way::ToCard, Class::NonPosted, 0, self.spec.latency_to_card),
            (Way::ToHost, Class::Completion, bytes.next_multiple_of(4), self.spec.latency_to_host),
        ];
        for (way, class, payload, latency) in legs {
            let sent = self.send(way, path.at(), class, payload);
            self.waited(way, Some(message), sent, &mut path, BUS);
            self.used(way, sent.start, sent.end, Some(message), BUS.0);
            path.advance(BUS.0, sent.end + latency);
            self.sim.until(path.at()).await;
        }
        path
    }

    /// The card writes `bytes` bytes to host memory. All bytes are already in a buffer of the card.
    pub(crate) fn write(&self, message: MessageId, address: u64, bytes: u64, path: Path) -> Handover {
        self.write_apart(message, address, bytes, path, Duration::ZERO)
    }

    /// Like [`Link::write`], with at least `apart` between the previous TLP and the first one of this transfer.
    pub(crate) fn write_apart(
        &self,
        message: MessageId,
        address: u64,
        bytes: u64,
        path: Path,
        apart: Duration,
    ) -> Handover {
        self.write_as(Some(message), address, bytes, path, apart)
    }

    /// Like [`Link::write`], one TLP at a time. TLPs of other writes and requests take turns with these TLPs. Returns
    /// when the last TLP has left.
    pub(crate) async fn deposit(
        &self,
        message: MessageId,
        address: u64,
        bytes: u64,
        mut path: Path,
    ) -> Handover {
        let mut first = true;
        let mut landed = path.at() + self.spec.latency_to_host;
        for piece in split::requests(address, bytes, self.spec.mps) {
            let from = if first { path.at() } else { self.sim.now() };
            let (sent, visible) = self.post_write(from, address, &piece, Duration::ZERO);
            landed = visible;
            if first {
                self.waited(Way::ToHost, Some(message), sent, &mut path, DEPOSIT);
                first = false;
            } else {
                path.advance(DEPOSIT.1, sent.start);
            }
            self.used(Way::ToHost, sent.start, sent.end, Some(message), DEPOSIT.0);
            path.advance(DEPOSIT.0, sent.end);
            self.sim.until(sent.end).await;
        }
        Handover { path, landed }
    }

    /// The card writes an event or a counter. Returns the path up to the instant at which the host can see it.
    pub(crate) fn post(&self, notice: Notice, path: Path) -> Path {
        let bytes = match notice {
            Notice::Event => self.spec.event,
            Notice::Counter => self.spec.counter,
        };
        let Handover { mut path, landed } = self.write_as(None, 0, bytes, path, Duration::ZERO);
        path.advance(DEPOSIT.0, landed);
        path
    }

    fn write_as(
        &self,
        message: Option<MessageId>,
        address: u64,
        bytes: u64,
        mut path: Path,
        apart: Duration,
    ) -> Handover {
        let from = path.at();
        let mut span = None;
        for piece in split::requests(address, bytes, self.spec.mps) {
            let apart = if span.is_none() { apart } else { Duration::ZERO };
            let (sent, landed) = self.post_write(from, address, &piece, apart);
            if span.is_none() {
                self.waited(Way::ToHost, message, sent, &mut path, DEPOSIT);
            }
            let (start, _, _) = span.unwrap_or((sent.start, sent.end, landed));
            span = Some((start, sent.end, landed));
        }
        let (start, end, landed) = span.expect("a transfer is one TLP at least");
        self.used(Way::ToHost, start, end, message, DEPOSIT.0);
        path.advance(DEPOSIT.0, end);
        Handover { path, landed }
    }

    /// The card reads `bytes` bytes of host memory. Returns once the first request has reached the host. [`Arrivals`]
    /// has the arrival times of the bytes. There is at least `apart` between the previous TLP and each request.
    pub(crate) async fn read(
        self: &Rc<Link>,
        message: MessageId,
        address: u64,
        bytes: u64,
        packet_bytes: u64,
        mut path: Path,
        apart: Duration,
    ) -> Rc<Arrivals> {
        let packets = Packets::new(bytes, packet_bytes);
        let arrivals = Rc::new(Arrivals::under_way(&self.sim, FETCH.0, path.clone(), packets));
        let mut pieces = split::requests(address, bytes, self.spec.mrrs);
        let first = pieces.next().expect("a transfer is one TLP at least");

        let tag = self.tags.acquire().await;
        let sent = self.request(message, path.at(), apart).await;
        self.waited(Way::ToHost, Some(message), sent, &mut path, FETCH);
        let reached = sent.end + self.spec.latency_to_host;
        path.advance(FETCH.0, reached);
        let request = Request { address, piece: first };
        self.sim.spawn(self.clone().complete(message, request, path.clone(), tag, arrivals.clone()));
        if first.len < bytes {
            let (link, arrivals) = (self.clone(), arrivals.clone());
            self.sim.spawn(async move {
                let mut wire_free = sent.end;
                for piece in pieces {
                    link.sim.until(wire_free).await;
                    let tag = link.tags.acquire().await;
                    let sent = link.request(message, link.sim.now(), apart).await;
                    wire_free = sent.end;
                    let mut path = path.clone();
                    path.advance(FETCH.0, sent.end + link.spec.latency_to_host);
                    let request = Request { address, piece };
                    link.sim.spawn(link.clone().complete(message, request, path, tag, arrivals.clone()));
                }
            });
        }
        self.sim.until(reached).await;
        arrivals
    }

    /// Sends a read request as soon as it has a credit. Posted writes can go before the waiting request.
    async fn request(&self, message: MessageId, from: Time, apart: Duration) -> Sent {
        loop {
            let now = self.sim.now();
            let credit = self.wires.borrow().request_credit(now);
            if credit <= now {
                let sent = self.send_apart(Way::ToHost, from.max(now), Class::NonPosted, 0, apart);
                self.used(Way::ToHost, sent.start, sent.end, Some(message), FETCH.0);
                return sent;
            }
            self.sim.until(credit).await;
        }
    }

    /// The host answers a request, which arrives at the end of `path`. The tag is free when the last byte has reached
    /// the card.
    async fn complete(
        self: Rc<Link>,
        message: MessageId,
        request: Request,
        mut path: Path,
        tag: Permit,
        arrivals: Rc<Arrivals>,
    ) {
        let Request { address, piece } = request;
        path.advance(FETCH.0, self.fetched(path.at(), address + piece.offset, piece.len));
        self.sim.until(path.at()).await;
        let from = path.at();
        let most = match self.spec.cut {
            Cut::Payload => self.spec.mps,
            Cut::Boundary => self.spec.rcb,
        };
        let mut span = (from, from);
        for part in split::completions(address + piece.offset, piece.len, most, self.spec.rcb) {
            let sent = self.send(Way::ToCard, from, Class::Completion, part.padded);
            if part.offset == 0 {
                self.waited(Way::ToCard, Some(message), sent, &mut path, FETCH);
                span.0 = sent.start;
            }
            span.1 = sent.end;
            let begin = piece.offset + part.offset;
            arrivals.arrived(path.clone(), begin, begin + part.len, sent.end + self.spec.latency_to_card);
        }
        self.used(Way::ToCard, span.0, span.1, Some(message), FETCH.0);
        self.sim.until(span.1 + self.spec.latency_to_card).await;
        drop(tag);
    }
}

/// Returns the time for which a CPU is busy when it writes `bytes` bytes into the card over an idle link.
pub(crate) fn store_time(spec: &PcieSpec, bytes: u64) -> Duration {
    if bytes == 0 { Duration::ZERO } else { time_of_writes(spec, bytes, spec.push_payload) }
}

/// Returns the time for which the card occupies an idle link when it writes `bytes` bytes to host memory.
pub(crate) fn write_time(spec: &PcieSpec, bytes: u64) -> Duration {
    time_of_writes(spec, bytes, spec.mps)
}

/// Returns the time on the wire of writes with at most `most` bytes of payload each.
fn time_of_writes(spec: &PcieSpec, bytes: u64, most: u64) -> Duration {
    let pieces = split::requests(0, bytes, most);
    pieces.map(|piece| spec.gap().cover(spec.write_bytes(piece.padded))).sum()
}

impl PcieSpec {
    /// Returns the offsets at which the posted writes of a card's transfer end. `true` marks the first one of a transaction.
    /// A transaction has at most `transaction` bytes, a power of two up to 4 KiB.
    pub fn writes(
        &self,
        address: u64,
        bytes: u64,
        transaction: u64,
    ) -> impl Iterator<Item = (u64, bool)> + use<> {
        let mps = self.mps;
        split::requests(address, bytes, transaction).flat_map(move |whole| {
            let pieces = split::requests(address + whole.offset, whole.len, mps);
            pieces.map(move |piece| (whole.offset + piece.offset + piece.len, piece.offset == 0))
        })
    }
}

const BUS: Stages = (Stage::BUS, Stage::BUS_QUEUED);
const FETCH: Stages = (Stage::FETCH, Stage::FETCH_QUEUED);
const DEPOSIT: Stages = (Stage::DEPOSIT, Stage::DEPOSIT_QUEUED);
