//! A virtual channel at a port of a switch: its input buffer, its queue before the output, its credits.

use crate::Symbol;
use crate::transit::{Span, Transit};
use nicety_kernel::{Units, prefetch};
use nicety_types::Time;
use std::collections::VecDeque;

/// A virtual channel of a port, an input and an output.
pub(crate) struct Lane {
    pub(crate) buffer: InputBuffer,
    /// Packets that have no credit yet, or wait behind one that has none.
    pub(crate) queue: VecDeque<Waiting>,
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
    pub(crate) fn new(buffer: u32, far: u32, freed: Units<Symbol>) -> Lane {
        let buffer = InputBuffer { size: buffer, used: 0, leaving: VecDeque::new() };
        Lane { buffer, queue: VecDeque::new(), credits: far, slots: far, freed }
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
    pub(crate) fn wait(&mut self, waiting: Waiting) {
        if self.queue.is_empty() {
            self.freed.wait();
        }
        self.queue.push_back(waiting);
    }

    /// The next packet that there is a credit for; where there is none, its arrival will be an event.
    pub(crate) fn next(&mut self) -> Option<Waiting> {
        if self.credits == 0 && !self.queue.is_empty() {
            self.freed.wait();
            return None;
        }
        self.queue.pop_front()
    }

    /// Whether nothing is in the buffer by `now`, and all credits are back or on their way.
    pub(crate) fn is_idle(&mut self, now: Time) -> bool {
        self.buffer.leave(now);
        self.buffer.used == 0 && u64::from(self.credits) + self.freed.outstanding() == u64::from(self.slots)
    }
}

/// The slots of a buffer that are in use.
pub(crate) struct InputBuffer {
    size: u32,
    used: u32,
    /// When the packets that have their time of sending will have left; the others are not among them. In
    /// order: they get their times in nearly that order.
    leaving: VecDeque<Time>,
}

impl InputBuffer {
    /// How many are in use.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// Frees the slots of packets that have left by now.
    fn leave(&mut self, now: Time) {
        while self.leaving.front().is_some_and(|left| *left <= now) {
            self.leaving.pop_front();
            self.used -= 1;
        }
    }

    /// Takes a slot, and returns how many are in use.
    pub(crate) fn take(&mut self, now: Time) -> u32 {
        self.leave(now);
        self.used += 1;
        assert!(self.used <= self.size, "a packet came without a credit");
        self.used
    }

    /// Prefetches the places of the packets that leave next and last.
    pub(crate) fn prepare(&self) {
        for left in self.leaving.front().iter().chain(&self.leaving.back()) {
            prefetch(*left);
        }
    }

    /// A packet in it will have left at `left`.
    pub(crate) fn leaves(&mut self, left: Time) {
        match self.leaving.back() {
            Some(last) if *last > left => {
                let at = self.leaving.partition_point(|other| *other <= left);
                self.leaving.insert(at, left);
            }
            _ => self.leaving.push_back(left),
        }
    }
}
