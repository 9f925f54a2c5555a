//! Frames one behind another: the input queue, the core, and the emission.

use crate::cycles::Cycles;
use crate::spec::HxdpSpec;
use nicety_types::{Duration, Frequency};
use std::collections::VecDeque;

/// The end of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The program drops it.
    Dropped,
    /// It leaves with this many bytes.
    Emitted(u64),
}

/// The times of a frame, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Through {
    /// The begin of its transfer into the buffer.
    pub begins: u64,
    /// The end of its program.
    pub decided: u64,
    /// The end of its emission, or of its program where it is dropped.
    pub done: u64,
}

/// The parts of a card in time. Frames come in the order of their times.
#[derive(Clone, Debug)]
pub struct Pipeline {
    clock: Frequency,
    width: u64,
    emission: u64,
    queue: usize,
    /// Times at which frames leave the input queue.
    leaving: VecDeque<u64>,
    core_free: u64,
    emission_free: u64,
    /// Busy time of the core.
    pub core_busy: Duration,
    /// Busy time of the emission.
    pub emission_busy: Duration,
}

impl Pipeline {
    /// The idle parts of a card.
    pub fn new(spec: &HxdpSpec) -> Pipeline {
        Pipeline {
            clock: spec.core.clock,
            width: spec.transfer.width,
            emission: spec.transfer.emission,
            queue: spec.node.link.buffer as usize,
            leaving: VecDeque::new(),
            core_free: 0,
            emission_free: 0,
            core_busy: Duration::ZERO,
            emission_busy: Duration::ZERO,
        }
    }

    /// Whether the input queue has a place for a frame that comes at a time.
    pub fn takes(&mut self, at: u64) -> bool {
        while self.leaving.front().is_some_and(|&leaves| leaves <= at) {
            self.leaving.pop_front();
        }
        self.leaving.len() < self.queue
    }

    /// The times of a frame that comes at a time, and that [`Pipeline::takes`].
    pub fn pass(&mut self, at: u64, cycles: &Cycles, disposition: Disposition) -> Through {
        let begins = self.core_free.max(at);
        let core = self.clock.cycles(cycles.core);
        let decided = begins + self.clock.cycles(cycles.program).ps();
        self.core_free = begins + core.ps();
        self.core_busy += core;
        self.leaving.push_back(begins);
        let done = match disposition {
            Disposition::Dropped => decided,
            Disposition::Emitted(bytes) => {
                let emission = self.clock.cycles(bytes.div_ceil(self.width) + self.emission);
                self.emission_busy += emission;
                self.emission_free = decided.max(self.emission_free) + emission.ps();
                // The next program may change its packet when this one has begun to leave.
                self.core_free = self.core_free.max(self.emission_free - emission.ps());
                self.emission_free
            }
        };
        Through { begins, decided, done }
    }
}
