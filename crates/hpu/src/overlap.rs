//! Cores that overlap instructions: which enters a window when, when it begins, and when it leaves.
//!
//! Instructions are executed one after another, as on any core; only their cycles are worked out here. So what
//! handlers compute does not depend on it.

use crate::block::Op;
use crate::core::CycleCosts;
use crate::decode::{Class, Inst, Kind};
use std::collections::VecDeque;

/// How far a core overlaps instructions. [`CycleCosts`] are then the latencies of their results.
///
/// - An instruction enters the window in program order, `width` of them a cycle, once there is room for it.
/// - It begins when the registers that it reads have their values, a load also when earlier stores to its bytes that
///   are in the window have theirs, and when a unit for it is free. What comes later may begin earlier.
/// - It leaves in program order when it has its result, `width` a cycle.
/// - What follows a taken branch or a jump enters in the next cycle at the earliest. A branch backwards is predicted taken,
///   one forwards not taken; `jal` and returns are predicted right, other jumps through registers wrong. What follows a
///   wrong prediction enters when the branch has its result, and [`mispredict`](Overlap::mispredict) cycles later.
/// - Commands, atomics, fences, and accesses to ordered memories and devices begin when everything before them
///   has left, and nothing enters before they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Overlap {
    /// Instructions that enter the window in a cycle, and that leave it.
    pub width: u16,
    /// Instructions in it.
    pub window: u16,
    /// Operations of the integer units that begin in a cycle: those of [`CycleCosts::alu`], branches and jumps.
    pub alus: u16,
    /// Loads that begin in a cycle.
    pub loads: u16,
    /// Stores that begin in a cycle.
    pub stores: u16,
    /// Cycles from a wrongly predicted branch's result until what follows it enters.
    pub mispredict: u16,
}

/// The unit that an instruction needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Alu,
    Load,
    Store,
    /// There are enough of them.
    Any,
    /// It begins when everything before it has left.
    Last,
}

/// One instruction as the window sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    reads: u64,
    /// Cycles until it has its result, without latencies of memories.
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

/// Bytes that an instruction accesses, and the cycles that this takes beside its latency.
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

/// Cycles of which the units' operations are counted, a power of two. Operations further apart count as if units were free.
const CYCLES: usize = 512;

/// The instructions in flight of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    overlap: Overlap,
    /// The cycle in which the next instruction enters, if there is room, and how many have in it.
    front: u64,
    entered: u16,
    /// The cycle in which the last one leaves, and how many do in it.
    last: u64,
    left: u16,
    /// When registers have their values.
    ready: [u64; 64],
    /// When the instructions in the window leave, and which of them is the oldest.
    leaving: Box<[u64]>,
    oldest: usize,
    /// Instructions that have entered.
    number: u64,
    stores: VecDeque<Stored>,
    /// By cycle, operations that begin then in each kind of unit.
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

    /// Nothing enters before this cycle.
    pub(crate) const fn resume(&mut self, cycle: u64) {
        if cycle > self.front {
            (self.front, self.entered) = (cycle, 0);
        }
    }

    /// A register has its value at this cycle.
    pub(crate) fn loaded(&mut self, register: u8, cycle: u64) {
        self.ready[usize::from(register)] = cycle;
    }

    /// The cycle in which the next instruction enters.
    pub(crate) fn enter(&mut self) -> u64 {
        self.resume(self.leaving[self.oldest]);
        self.front
    }

    /// The cycle in which an instruction can begin that waits for everything before it.
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

    /// The next instruction enters. Returns when it has its result.
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

    /// When the bytes of a load have the values of earlier stores in the window.
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

    /// The first cycle from `start` on in which a unit is free; it is then taken.
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

    /// The branch or jump `op` at `pc` enters.
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

/// Whether a `jalr` is a return, as the calling convention has it for return stacks: through ra or t0, without a link.
const fn is_return(op: &Op) -> bool {
    op.rd == 0 && matches!(op.rs1, 1 | 5)
}
