//! A virtual channel at a port of a switch: its input buffer; its queue before the output, and the credits there.

use crate::Symbol;
use crate::transit::{Span, Transit};
use nicety_kernel::{Few, Units};
use nicety_types::Time;

/// A virtual channel of an output.
pub(crate) struct Lane {
    /// Packets that have no credit yet, or wait behind one that has none.
    queue: Queue,
    /// Free slots at the far end; more may have been freed since they were last counted.
    credits: u32,
    /// Slots at the far end.
    slots: u32,
    /// The credits for them.
    freed: Units<Symbol>,
}

/// A packet that has been routed.
pub(crate) struct Waiting {
    /// Accounted for until its first byte would leave a free switch. Its channel is that of the output.
    pub(crate) packet: Transit,
    /// The port it came in by, and its channel there.
    pub(crate) from: (u32, u8),
    /// Its times on leaving a free switch.
    pub(crate) span: Span,
}

impl Lane {
    /// A channel with so many slots at the far end, all free.
    pub(crate) fn new(slots: u32, freed: Units<Symbol>) -> Lane {
        Lane { queue: Queue::EMPTY, credits: slots, slots, freed }
    }

    /// Prefetches the returned credits, where the next packet needs them.
    pub(crate) fn prepare(&self) {
        if self.credits == 0 {
            self.freed.prefetch();
        }
    }

    /// Whether there is a credit for a packet that comes now.
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

    /// Takes a credit.
    pub(crate) fn spend(&mut self) {
        self.credits -= 1;
    }

    /// Keeps a packet until there is a credit for it.
    pub(crate) fn wait(&mut self, waiting: Waiting, memory: &mut Memory) {
        if self.queue.is_empty() {
            self.freed.wait();
        }
        memory.push(&mut self.queue, waiting);
    }

    /// The next packet that there is a credit for; where there is none, its arrival will be an event.
    pub(crate) fn next(&mut self, memory: &mut Memory) -> Option<Waiting> {
        if self.credits == 0 && !self.queue.is_empty() {
            self.freed.wait();
            return None;
        }
        memory.pop(&mut self.queue)
    }

    /// Whether all credits are back or on their way.
    pub(crate) fn is_idle(&self) -> bool {
        u64::from(self.credits) + self.freed.outstanding() == u64::from(self.slots)
    }
}

/// A queue of packets in a [`Memory`]: the first and the last.
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

/// Waiting packets, in memory that all queues of a switch share: few of them have packets at a time.
pub(crate) struct Memory {
    /// Each with the one behind it in its queue, or with the next that is free.
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

/// The buffer of a virtual channel of an input, and the counts of what came. It fills whole lines of the processor's caches.
#[repr(align(64))]
pub(crate) struct InputBuffer {
    size: u32,
    used: u32,
    /// When the packets that have their time of sending will have left; the others are not among them. In
    /// order: they get their times in nearly that order.
    leaving: Few<Time, 8>,
    /// Packets that came, those of the control channel in the first buffer.
    pub(crate) packets: u64,
    /// Their bytes on the wire, headers included.
    pub(crate) bytes: u64,
    /// The most packets that were in the buffer at once.
    pub(crate) peak: u32,
}

impl InputBuffer {
    /// An empty buffer of so many slots.
    pub(crate) fn new(size: u32) -> InputBuffer {
        InputBuffer { size, used: 0, leaving: Few::new(), packets: 0, bytes: 0, peak: 0 }
    }

    /// Frees the slots of packets that have left by now.
    fn leave(&mut self, now: Time) {
        self.used -= self.leaving.take_while(|left| left <= now) as u32;
    }

    /// A packet comes that needs no slot.
    pub(crate) fn pass(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }

    /// A packet comes and takes a slot.
    pub(crate) fn take(&mut self, bytes: u64, now: Time) {
        self.pass(bytes);
        self.leave(now);
        self.used += 1;
        assert!(self.used <= self.size, "a packet came without a credit");
        self.peak = self.peak.max(self.used);
    }

    /// Whether nothing is in it by `now`.
    pub(crate) fn is_empty(&mut self, now: Time) -> bool {
        self.leave(now);
        self.used == 0
    }

    /// Prefetches the places of the packets that leave next and last, where they are not near this.
    pub(crate) fn prepare(&self) {
        self.leaving.prefetch();
    }

    /// A packet in it will have left at `left`.
    pub(crate) fn leaves(&mut self, left: Time) {
        self.leaving.insert(left);
    }
}
