//! The port: buffers in CTM, frames that wait, and contexts that wait for one.

use super::{Arrival, buffer_address};
use crate::map::{self, MemoryKind};
use crate::processor::{Nfp, Place, Reference, Served, Services, XDP_END, XDP_TAKE};
use crate::spec::XdpSpec;
use nicety_hpu::TrapKind;
use nicety_types::{Duration, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

/// Bytes that the port writes in front of a frame.
const PREPEND: u32 = 8;
/// Bytes of a descriptor for the host.
const DESCRIPTOR: u64 = 8;
/// Verdicts of XDP.
const PASS: u32 = 2;
const TRANSMIT: u32 = 3;

/// A frame with its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The number of the frame, in the order of arrivals.
    pub number: u64,
    /// The verdict: the program's result.
    pub verdict: u32,
    /// The time of its last byte on the wire, of the take by a context, and of the end.
    pub arrived: Time,
    /// See `arrived`.
    pub taken: Time,
    /// See `arrived`.
    pub at: Time,
    /// The bytes after the program, if they are kept.
    pub bytes: Vec<u8>,
}

/// A frame in a buffer.
struct Held {
    number: u64,
    arrived: Time,
    taken: Time,
    buffer: usize,
    length: u32,
}

/// The state of an island.
struct Island {
    /// Free buffers.
    free: Vec<usize>,
    /// Frames in buffers without a context.
    ready: VecDeque<Held>,
    /// Contexts without a frame, and the places for what they get.
    waiting: VecDeque<(Place, u32)>,
}

/// The port of a card.
pub(super) struct Port {
    nfp: Weak<Nfp>,
    spec: XdpSpec,
    islands: RefCell<Vec<Island>>,
    /// Frames without a buffer.
    queue: RefCell<VecDeque<(u64, Arrival)>>,
    /// The frame of each context.
    held: RefCell<Vec<Option<Held>>>,
    arrived: Cell<u64>,
    lost: Cell<u64>,
    ended: RefCell<Vec<Ended>>,
    keep: Cell<bool>,
    wire: Cell<Duration>,
    bus: Cell<Duration>,
}

/// The calls of contexts to the port.
struct Calls(Rc<Port>);

impl Port {
    pub(super) fn new(nfp: &Rc<Nfp>, spec: XdpSpec) -> Rc<Port> {
        let island = |_| Island {
            free: (0..spec.buffers).rev().collect(),
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
        };
        let all = nfp.spec();
        let port = Rc::new(Port {
            nfp: Rc::downgrade(nfp),
            spec,
            islands: RefCell::new((0..all.islands()).map(island).collect()),
            queue: RefCell::default(),
            held: RefCell::new((0..all.cores * all.contexts).map(|_| None).collect()),
            arrived: Cell::new(0),
            lost: Cell::new(0),
            ended: RefCell::default(),
            keep: Cell::new(false),
            wire: Cell::new(Duration::ZERO),
            bus: Cell::new(Duration::ZERO),
        });
        nfp.offer(Calls(port.clone()));
        port
    }

    fn nfp(&self) -> Rc<Nfp> {
        self.nfp.upgrade().expect("a port is part of a processor that runs")
    }

    /// Keeps the bytes of frames.
    pub(super) fn keep(&self, keep: bool) {
        self.keep.set(keep);
    }

    /// Frames that no context has taken.
    pub(super) fn waiting(&self) -> u64 {
        let ready: usize = self.islands.borrow().iter().map(|island| island.ready.len()).sum();
        (ready + self.queue.borrow().len()) as u64
    }

    /// The frames with a verdict, and the number of lost ones.
    pub(super) fn take(&self) -> (Vec<Ended>, u64) {
        (self.ended.take(), self.lost.get())
    }

    /// The time of all sent frames on the wire, and of the passed ones on the bus.
    pub(super) fn out(&self) -> (Duration, Duration) {
        (self.wire.get(), self.bus.get())
    }

    /// A frame arrives: it takes a buffer, or waits for one, or is lost.
    pub(super) fn arrive(port: &Rc<Port>, frame: Arrival) {
        let number = port.arrived.replace(port.arrived.get() + 1);
        match port.island_with_room() {
            Some(island) => Port::fill(port, island, number, frame),
            None if port.queue.borrow().len() < port.spec.queue => {
                port.queue.borrow_mut().push_back((number, frame));
            }
            None => port.lost.set(port.lost.get() + 1),
        }
    }

    /// The island with the most contexts that wait, and then the most free buffers.
    fn island_with_room(&self) -> Option<usize> {
        let islands = self.islands.borrow();
        let room = islands.iter().enumerate().filter(|(_, island)| !island.free.is_empty());
        let load = |island: &Island| {
            let used = self.spec.buffers - island.free.len();
            (used as i64 - island.waiting.len() as i64, used)
        };
        room.min_by_key(|(number, island)| (load(island), *number)).map(|(number, _)| number)
    }

    /// Moves a frame into a buffer of an island. It is ready when CTM has written it.
    fn fill(port: &Rc<Port>, island: usize, number: u64, frame: Arrival) {
        let nfp = port.nfp();
        let buffer = port.islands.borrow_mut()[island].free.pop().expect("an island with room");
        let memory = nfp.memory(MemoryKind::Ctm, island);
        let length = frame.bytes.len() as u32;
        let done = memory.claim(Reference::Write, nfp.cycle(), u64::from(PREPEND + length));
        let port = port.clone();
        let sim = nfp.sim().clone();
        sim.clone().spawn(async move {
            sim.until(nfp.time(done)).await;
            let address = buffer_address(buffer, port.spec.buffer) + port.spec.offset;
            let memory = nfp.memory(MemoryKind::Ctm, island);
            memory.poke((address - map::CTM).into(), &frame.bytes).expect("the spec's buffers are in CTM");
            let now = sim.now();
            let held = Held { number, arrived: frame.at, taken: now, buffer, length };
            let waiting = port.islands.borrow_mut()[island].waiting.pop_front();
            match waiting {
                Some((place, to)) => port.give(&nfp, place, to, held),
                None => port.islands.borrow_mut()[island].ready.push_back(held),
            }
        });
    }

    /// Gives a frame to a context that sleeps in its call.
    fn give(&self, nfp: &Nfp, place: Place, to: u32, held: Held) {
        let buffer = buffer_address(held.buffer, self.spec.buffer);
        let words = [buffer + self.spec.offset, held.length, buffer];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        nfp.write_local(place, to, &bytes).expect("checked when the context called");
        let held = Held { taken: nfp.sim().now(), ..held };
        self.held.borrow_mut()[self.index(place)] = Some(held);
        nfp.resume(place, 0);
    }

    fn index(&self, place: Place) -> usize {
        place.core * self.nfp().spec().contexts + place.context
    }

    /// A context waits for a frame, with the place for it in local memory.
    fn wait(port: &Rc<Port>, place: Place, to: u32) -> Result<Served, TrapKind> {
        let nfp = port.nfp();
        nfp.check_local(place, to, 12)?;
        let island = place.core / nfp.spec().island;
        let ready = port.islands.borrow_mut()[island].ready.pop_front();
        match ready {
            None => port.islands.borrow_mut()[island].waiting.push_back((place, to)),
            Some(held) => {
                let (port, sim) = (port.clone(), nfp.sim().clone());
                // The context sleeps from the end of this call on.
                sim.spawn(async move { port.give(&nfp, place, to, held) });
            }
        }
        Ok(Served::Later)
    }

    /// A context has ended its frame.
    fn end(port: &Rc<Port>, place: Place, verdict: u32, (data, length): (u32, u32)) -> Served {
        let nfp = port.nfp();
        let Some(held) = port.held.borrow_mut()[port.index(place)].take() else { return Served::Now(0) };
        let island = place.core / nfp.spec().island;
        let (now, length) = (nfp.sim().now(), length.min(port.spec.buffer));
        let mut bytes = Vec::new();
        if port.keep.get() {
            bytes = vec![0; length as usize];
            let at = u64::from(data.saturating_sub(map::CTM));
            // A program moves the start of its frame within the buffer.
            let _ = nfp.memory(MemoryKind::Ctm, island).peek(at, &mut bytes);
        }
        let spec = port.spec;
        match verdict {
            TRANSMIT => {
                let time = spec.gap.cover(u64::from(length) + spec.header);
                port.wire.set(port.wire.get() + time);
            }
            PASS => {
                let time = nfp.spec().bus.write_time(u64::from(length) + DESCRIPTOR);
                port.bus.set(port.bus.get() + time);
            }
            _ => {}
        }
        let Held { number, arrived, taken, buffer, .. } = held;
        port.ended.borrow_mut().push(Ended { number, verdict, arrived, taken, at: now, bytes });
        port.islands.borrow_mut()[island].free.push(buffer);
        let next = port.queue.borrow_mut().pop_front();
        if let Some((number, frame)) = next {
            Port::fill(port, island, number, frame);
        }
        Served::Now(0)
    }
}

impl Services for Calls {
    fn serve(&self, place: Place, registers: &[u32; 8]) -> Option<Result<Served, TrapKind>> {
        let &[a, b, c, .., number] = registers;
        match number {
            XDP_TAKE => Some(Port::wait(&self.0, place, a)),
            XDP_END => Some(Ok(Port::end(&self.0, place, a, (b, c)))),
            _ => None,
        }
    }

    fn released(&self, _: Place, _: Place) {}

    fn ended(&self, _: Place) {}
}
