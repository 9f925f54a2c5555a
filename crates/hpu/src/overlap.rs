//! Cores that overlap instructions: the entry of each into a window, its start and its exit.
//!
//! Instructions are executed one after another, as on any core. Only their cycles are computed here, so results of
//! handlers do not depend on the overlap.

use crate::costs::CycleCosts;
use crate::decode::{Class, Inst, Kind};
use crate::op::Op;
use std::collections::VecDeque;

/// The degree of overlap of a core. [`CycleCosts`] are then the latencies of results.
///
/// - Instructions enter the window in program order, at most `width` per cycle, once there is room.
/// - An instruction begins when its source registers have their values and a unit for it is free. A load also waits for
///   the values of earlier stores in the window to its bytes. Later instructions may begin earlier.
/// - Instructions leave in program order when they have their results, at most `width` per cycle.
/// - The instruction after a taken branch or a jump enters in the next cycle at the earliest. A backward branch is
///   predicted taken, a forward one not taken. `jal` and returns are predicted right, other jumps through registers
///   wrong. After a wrong prediction, the next instruction enters [`mispredict`](Overlap::mispredict) cycles after the
///   result of the branch.
/// - Commands, atomics, fences, and accesses to ordered memories and devices begin when all earlier instructions have
///   left. No instruction enters before their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Overlap {
    /// Maximum number of instructions that enter the window per cycle, and that leave it.
    pub width: u16,
    /// Instructions in it.
    pub window: u16,
    /// Integer-unit operations that begin per cycle: those of [`CycleCosts::alu`], branches and jumps.
    pub alus: u16,
    /// Loads that begin per cycle.
    pub loads: u16,
    /// Stores that begin per cycle.
    pub stores: u16,
    /// Cycles from a wrongly predicted branch's result until the next instruction enters.
    pub mispredict: u16,
}

/// The unit that an instruction needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Alu,
    Load,
    Store,
    /// Their number is no limit.
    Any,
    /// It begins when all earlier instructions have left.
    Last,
}

/// An instruction in the view of the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    reads: u64,
    /// Cycles until its result, without memory latencies.
    latency: u32,
    /// Cycles from then until another one can use it.
    forward: u16,
    rd: u8,
    unit: Unit,
}

impl Step {
    pub(crate) fn of(inst: &Inst, costs: &CycleCosts) -> Step {
        let unit = match inst.kind.class() {
            _ if inst.kind == Kind::FloatCsr => Unit::Last,
            Class::Alu | Class::Branch | Class::Jump | Class::JumpRegister => Unit::Alu,
            Class::Load => Unit::Load,
            Class::Store => Unit::Store,
            _ => Unit::Any,
        };
        let forward = if inst.kind.loads() { costs.load_use } else { 0 };
        Step { reads: inst.reads, latency: costs.of(inst.kind), forward, rd: inst.rd, unit }
    }
}

/// Bytes that an instruction accesses, and the additional cycles of the access.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Touched {
    pub(crate) address: u32,
    pub(crate) size: u32,
    pub(crate) extra: u32,
}

/// A store in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    number: u64,
    address: u32,
    size: u32,
    ready: u64,
}

/// Number of cycles for which operations of units are counted, a power of two. Operations further apart do not compete
/// for units.
const CYCLES: usize = 512;

/// The instructions in flight of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    overlap: Overlap,
    /// The cycle in which the next instruction enters, if there is room, and the number of those that have entered in
    /// it.
    front: u64,
    entered: u16,
    /// The cycle in which the last one leaves, and the number of those that leave in it.
    last: u64,
    left: u16,
    /// The cycle in which each register has its value.
    ready: [u64; 64],
    /// Exit cycles of the instructions in the window, and the index of the oldest one.
    leaving: Box<[u64]>,
    oldest: usize,
    /// Number of instructions that have entered.
    number: u64,
    stores: VecDeque<Stored>,
    /// Number of operations that begin in each kind of unit, by cycle.
    begun: Box<[(u64, [u16; 3])]>,
}

impl Window {
    pub(crate) fn new(overlap: &Overlap) -> Window {
        let Overlap { width, window, alus, loads, stores, .. } = *overlap;
        assert!([width, window, alus, loads, stores].iter().all(|&count| count > 0), "{overlap:?}");
        Window {
            overlap: *overlap,
            front: 0,
            entered: 0,
            last: 0,
            left: 0,
            ready: [0; 64],
            leaving: vec![0; usize::from(window)].into(),
            oldest: 0,
            number: 0,
            stores: VecDeque::new(),
            begun: vec![(0, [0; 3]); CYCLES].into(),
        }
    }

    /// Prevents entries before this cycle.
    pub(crate) const fn resume(&mut self, cycle: u64) {
        if cycle > self.front {
            (self.front, self.entered) = (cycle, 0);
        }
    }

    /// Sets the cycle from which a register has its value.
    pub(crate) fn loaded(&mut self, register: u8, cycle: u64) {
        self.ready[usize::from(register)] = cycle;
    }

    /// Returns the cycle in which the next instruction enters.
    pub(crate) fn enter(&mut self) -> u64 {
        self.resume(self.leaving[self.oldest]);
        self.front
    }

    /// Returns the cycle in which an instruction that waits for all earlier ones can begin.
    pub(crate) fn drained(&self, step: Option<&Step>) -> u64 {
        self.operands(step.map_or(0, |step| step.reads)).max(self.last).max(self.front)
    }

    fn operands(&self, mut reads: u64) -> u64 {
        let mut ready = 0;
        while reads != 0 {
            ready = ready.max(self.ready[reads.trailing_zeros() as usize]);
            reads &= reads - 1;
        }
        ready
    }

    /// Enters the next instruction. Returns the cycle of its result.
    pub(crate) fn step(&mut self, step: &Step, touched: Touched) -> u64 {
        let mut start = self.enter().max(self.operands(step.reads));
        self.entered += 1;
        if self.entered == self.overlap.width {
            (self.front, self.entered) = (self.front + 1, 0);
        }
        match step.unit {
            Unit::Alu => start = self.begin(start, 0, self.overlap.alus),
            Unit::Load => {
                let stored = self.stored(touched);
                start = self.begin(start.max(stored), 1, self.overlap.loads);
            }
            Unit::Store => start = self.begin(start, 2, self.overlap.stores),
            Unit::Any => {}
            Unit::Last => start = start.max(self.last),
        }
        let end = start + u64::from(step.latency) + u64::from(touched.extra);
        self.ready[usize::from(step.rd)] = end + u64::from(step.forward);
        self.ready[0] = 0;
        if step.unit == Unit::Store {
            let Touched { address, size, .. } = touched;
            self.stores.push_back(Stored { number: self.number, address, size, ready: end });
        }
        self.leave(end);
        end
    }

    /// Returns the cycle in which the bytes of a load have the values of earlier stores in the window.
    fn stored(&mut self, load: Touched) -> u64 {
        let in_window = self.number.saturating_sub(u64::from(self.overlap.window));
        while self.stores.front().is_some_and(|store| store.number < in_window) {
            self.stores.pop_front();
        }
        let overlaps = |store: &&Stored| {
            load.address.wrapping_sub(store.address) < store.size
                || store.address.wrapping_sub(load.address) < load.size
        };
        self.stores.iter().filter(overlaps).map(|store| store.ready).max().unwrap_or(0)
    }

    /// Returns the first cycle from `start` on in which a unit is free, and takes the unit.
    fn begin(&mut self, start: u64, unit: usize, units: u16) -> u64 {
        let mut cycle = start;
        loop {
            let (of, counts) = &mut self.begun[cycle as usize % CYCLES];
            if *of != cycle {
                (*of, *counts) = (cycle, [0; 3]);
            }
            if counts[unit] < units {
                counts[unit] += 1;
                return cycle;
            }
            cycle += 1;
        }
    }

    fn leave(&mut self, end: u64) {
        if end > self.last {
            (self.last, self.left) = (end, 0);
        } else if self.left == self.overlap.width {
            (self.last, self.left) = (self.last + 1, 0);
        }
        self.left += 1;
        self.leaving[self.oldest] = self.last;
        self.oldest = if self.oldest + 1 == self.leaving.len() { 0 } else { self.oldest + 1 };
        self.number += 1;
    }

    /// Returns the cycle in which the last instruction leaves, and the first in which another one can enter.
    pub(crate) const fn ends(&self) -> (u64, u64) {
        (self.last, self.front)
    }

    /// Enters the branch or jump `op` at `pc`.
    pub(crate) fn branch(&mut self, step: &Step, op: &Op, pc: u32, taken: bool) {
        let end = self.step(step, Touched::default());
        let right = match op.kind {
            Kind::Jal => true,
            Kind::Jalr => is_return(op),
            _ => taken == (op.imm <= pc),
        };
        if !right {
            self.resume(end + u64::from(self.overlap.mispredict));
        } else if taken && self.entered > 0 {
            (self.front, self.entered) = (self.front + 1, 0);
        }
    }
}

/// Whether a `jalr` is a return by the calling convention for return stacks: through ra or t0, without a link.
const fn is_return(op: &Op) -> bool {
    op.rd == 0 && matches!(op.rs1, 1 | 5)
}
