//! A virtual channel at a switch port: the input's buffer, the output's queue, and the output's credits.

use crate::Symbol;
use crate::transit::{Span, Transit};
use nicety_kernel::{SortedQueue, Units};
use nicety_types::Time;

/// A virtual channel of an output.
pub(crate) struct Lane {
    /// Packets that wait for a credit, and packets behind them.
    queue: Queue,
    /// Number of credits that are already collected. More credits may have returned since then.
    credits: u32,
    /// Number of slots at the far end.
    slots: u32,
    /// The returned credits.
    freed: Units<Symbol>,
}

/// A packet that has been routed.
pub(crate) struct Waiting {
    /// The packet. Its trace accounts for the time until its first byte would leave an idle switch. Its channel is the
    /// virtual channel of the output.
    pub(crate) packet: Transit,
    /// Its input port, and its virtual channel there.
    pub(crate) from: (u32, u8),
    /// The times at which its first and its last byte would leave an idle switch.
    pub(crate) span: Span,
}

impl Lane {
    /// Returns a virtual channel with this number of slots at the far end, all free.
    pub(crate) fn new(slots: u32, freed: Units<Symbol>) -> Lane {
        Lane { queue: Queue::EMPTY, credits: slots, slots, freed }
    }

    /// Prefetches the returned credits, if the next packet needs them.
    pub(crate) fn prepare(&self) {
        if self.credits == 0 {
            self.freed.prefetch();
        }
    }

    /// Whether there is a credit for a packet that arrives now.
    pub(crate) fn has_credit(&mut self) -> bool {
        if self.credits == 0 {
            self.count_credits();
        }
        self.credits > 0
    }

    /// Collects the returned credits.
    pub(crate) fn count_credits(&mut self) {
        self.credits += self.freed.take() as u32;
    }

    /// Spends a credit.
    pub(crate) fn spend(&mut self) {
        self.credits -= 1;
    }

    /// Queues a packet that has no credit.
    pub(crate) fn wait(&mut self, waiting: Waiting, memory: &mut Memory) {
        if self.queue.is_empty() {
            self.freed.wait();
        }
        memory.push(&mut self.queue, waiting);
    }

    /// Takes the next packet if there is a credit for it. Without a credit, the arrival of the next credit becomes an
    /// event.
    pub(crate) fn next(&mut self, memory: &mut Memory) -> Option<Waiting> {
        if self.credits == 0 && !self.queue.is_empty() {
            self.freed.wait();
            return None;
        }
        memory.pop(&mut self.queue)
    }

    /// Whether all credits are here or on their way back.
    pub(crate) fn is_idle(&self) -> bool {
        u64::from(self.credits) + self.freed.outstanding() == u64::from(self.slots)
    }
}

/// A queue of packets in a [`Memory`]: the slots of the first and the last packet.
struct Queue {
    first: u32,
    last: u32,
}

/// No packet.
const NONE: u32 = u32::MAX;

impl Queue {
    const EMPTY: Queue = Queue { first: NONE, last: NONE };

    fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

/// Queued packets, in memory shared by all queues of a switch. At any time, few queues have packets.
pub(crate) struct Memory {
    /// Each slot has a packet and the next slot in the packet's queue, or only the next slot in the free list.
    slots: Vec<(Option<Waiting>, u32)>,
    free: u32,
}

impl Memory {
    pub(crate) fn new() -> Memory {
        Memory { slots: Vec::new(), free: NONE }
    }

    fn push(&mut self, queue: &mut Queue, waiting: Waiting) {
        let slot = if self.free == NONE {
            self.slots.push((Some(waiting), NONE));
            self.slots.len() as u32 - 1
        } else {
            let slot = self.free;
            self.free = std::mem::replace(&mut self.slots[slot as usize], (Some(waiting), NONE)).1;
            slot
        };
        match queue.last {
            NONE => queue.first = slot,
            last => self.slots[last as usize].1 = slot,
        }
        queue.last = slot;
    }

    fn pop(&mut self, queue: &mut Queue) -> Option<Waiting> {
        let slot = queue.first;
        let (waiting, next) = self.slots.get_mut(slot as usize)?;
        queue.first = std::mem::replace(next, self.free);
        if queue.first == NONE {
            queue.last = NONE;
        }
        self.free = slot;
        waiting.take()
    }
}

/// The buffer of an input's virtual channel, and its counters. It fills whole cache lines.
#[repr(align(64))]
pub(crate) struct InputBuffer {
    size: u32,
    used: u32,
    /// Departure times of packets, in ascending order. A packet without a known departure time has no entry. The times
    /// become known in nearly this order.
    leaving: SortedQueue<Time, 8>,
    /// Number of received packets. The buffer of channel 0 also counts control packets.
    pub(crate) packets: u64,
    /// Size of the received packets on the wire, in bytes, with headers.
    pub(crate) bytes: u64,
    /// The peak occupancy in packets.
    pub(crate) peak: u32,
}

impl InputBuffer {
    /// Returns an empty buffer with this number of slots.
    pub(crate) fn new(size: u32) -> InputBuffer {
        InputBuffer { size, used: 0, leaving: SortedQueue::new(), packets: 0, bytes: 0, peak: 0 }
    }

    /// Frees the slots of packets that have left by now.
    fn leave(&mut self, now: Time) {
        self.used -= self.leaving.take_while(|left| left <= now) as u32;
    }

    /// Counts an arriving packet that needs no slot.
    pub(crate) fn pass(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }

    /// Counts an arriving packet, and takes a slot.
    pub(crate) fn take(&mut self, bytes: u64, now: Time) {
        self.pass(bytes);
        self.leave(now);
        self.used += 1;
        assert!(self.used <= self.size, "a packet came without a credit");
        self.peak = self.peak.max(self.used);
    }

    /// Whether the buffer is empty at `now`.
    pub(crate) fn is_empty(&mut self, now: Time) -> bool {
        self.leave(now);
        self.used == 0
    }

    /// Prefetches the entries of the next and the last departure, if they are in separate memory.
    pub(crate) fn prepare(&self) {
        self.leaving.prefetch();
    }

    /// Records that a packet in the buffer leaves at `left`.
    pub(crate) fn leaves(&mut self, left: Time) {
        self.leaving.insert(left);
    }
}
