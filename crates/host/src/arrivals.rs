//! Arrival times of a transfer's packets, computed one piece at a time. A piece is a TLP of PCI Express or a
//! transaction of PCI.

use nicety_kernel::{Signal, Sim};
use nicety_types::{Flight, Path, Stage, Time};
use std::cell::RefCell;

/// The packets of a transfer, with the arrival times that are already known.
#[derive(Debug)]
pub(crate) struct Packets {
    bytes: u64,
    packet_bytes: u64,
    /// Arrival times of the first and the last known byte of each packet.
    known: Vec<(Time, Time)>,
    /// Number of bytes, from the start of the transfer, that have a known arrival time. `None` before the first piece.
    up_to: Option<u64>,
}

impl Packets {
    pub(crate) fn new(bytes: u64, packet_bytes: u64) -> Packets {
        assert!(packet_bytes > 0, "a packet carries at least one byte");
        Packets { bytes, packet_bytes, known: Vec::new(), up_to: None }
    }

    /// Records that the bytes from `begin` to `end` arrive at `at`. The bytes before `begin` were recorded earlier.
    pub(crate) fn arrived(&mut self, begin: u64, end: u64, at: Time) {
        debug_assert_eq!(self.up_to.unwrap_or(0), begin, "bytes arrive in order");
        let packets = begin / self.packet_bytes..end.div_ceil(self.packet_bytes).max(1);
        for packet in packets {
            match self.known.get_mut(packet as usize) {
                Some((_, tail)) => *tail = at,
                None => self.known.push((at, at)),
            }
        }
        self.up_to = Some(end);
    }

    /// Returns the arrival times of the first and last byte of the packet at `offset`, once both are known.
    fn packet(&self, offset: u64) -> Option<(Time, Time)> {
        debug_assert!(offset.is_multiple_of(self.packet_bytes) && offset <= self.bytes);
        let end = (offset + self.packet_bytes).min(self.bytes);
        self.up_to.filter(|&known| known >= end)?;
        Some(self.known[(offset / self.packet_bytes) as usize])
    }
}

/// A transfer with packets that arrive one after another.
#[derive(Debug)]
pub(crate) struct Arrivals {
    sim: Sim,
    stage: Stage,
    state: RefCell<State>,
    changed: Signal,
}

#[derive(Debug)]
struct State {
    /// The path up to the departure of the first piece that has bytes.
    path: Path,
    packets: Packets,
}

impl Arrivals {
    /// Returns a transfer in which all pieces have arrival times.
    pub(crate) fn complete(sim: &Sim, stage: Stage, path: Path, packets: Packets) -> Arrivals {
        debug_assert_eq!(packets.up_to, Some(packets.bytes));
        Arrivals::under_way(sim, stage, path, packets)
    }

    /// Returns a transfer in which no piece has an arrival time yet.
    pub(crate) fn under_way(sim: &Sim, stage: Stage, path: Path, packets: Packets) -> Arrivals {
        Arrivals {
            sim: sim.clone(),
            stage,
            state: RefCell::new(State { path, packets }),
            changed: Signal::new(sim),
        }
    }

    /// Records that a piece with the bytes from `begin` to `end` arrives at `at`. `path` accounts for the time until
    /// the departure of this piece, or of the first piece of the same request.
    pub(crate) fn arrived(&self, path: Path, begin: u64, end: u64, at: Time) {
        let mut state = self.state.borrow_mut();
        if begin == 0 {
            state.path = path;
        }
        state.packets.arrived(begin, end, at);
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for the packet that begins at `offset`, a multiple of the packet size, at the far end of the bus. Returns
    /// as soon as the arrival time of the packet's last byte is known. Tags or credits may delay later requests of the
    /// packet. The packet is then forwarded only after all of its bytes are in flight.
    pub(crate) async fn packet(&self, offset: u64) -> Flight {
        let asked = self.sim.now();
        self.changed.wait_until(|| self.state.borrow().packets.packet(offset).is_some()).await;
        let now = self.sim.now();
        let state = self.state.borrow();
        let (mut head, tail) = state.packets.packet(offset).expect("just waited for");
        if now > asked {
            head = head.max(now);
        }
        let mut path = state.path.clone();
        path.advance(self.stage, head);
        Flight { head, tail: tail.max(head), path, slowest: self.stage }
    }
}
