//! The cycles of a handler's run, by instruction, cause and call path.
//!
//! A core counts whole blocks of code, and waits at the accesses that wait: that costs a fraction of the execution
//! itself. [`Totals`](crate::Totals) sums runs up, and divides blocks into instructions afterwards. No cycle is counted twice or left
//! out, so the sums are those of the cores' own counters.

mod blocks;
mod cause;
pub(crate) mod counts;
mod paths;

pub use cause::{CAUSES, Cause, Parts};
pub use paths::{CallPath, Paths};

use crate::block::Block;
use crate::decode::{Class, Kind};
use crate::op::Op;
use blocks::Blocks;
use counts::{Counts, Entry};
use paths::Stack;
use std::cell::RefCell;
use std::rc::Rc;

/// The kinds of counters. 0 is that of whole blocks, and from 1 on those of the first instructions of a block.
pub(crate) mod what {
    pub(crate) const BLOCK: u8 = 0;
    /// An instruction that a slice ends before, and that is performed by itself.
    pub(crate) const ALONE: u8 = 40;
    /// Cycles and their number of times, plus the cause.
    pub(crate) const CYCLES: u8 = 64;
}

const fn key(path: u32, what: u8, pc: u32) -> u64 {
    (path as u64) << 40 | (what as u64) << 32 | pc as u64
}

/// The profile of one run at a time, on one thread.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    paths: Rc<RefCell<Paths>>,
    stack: Stack,
    /// Executions of whole blocks, and all other counters.
    blocks: Blocks,
    counts: Counts,
    /// Whether the core overlaps instructions. Then each is charged with the cycles by which it leaves later than the
    /// instruction before it.
    overlaps: bool,
    /// The cycle at which the run begins.
    begun: u64,
    /// The cycle up to which cycles have been charged. Between slices, that is the context's cycle.
    charged: u64,
    /// The instruction that has left last, on a core that overlaps.
    latest: u32,
    /// The waits of the next instruction to leave, on such a core.
    pending: Parts,
}

impl Profile {
    /// Begins a run at `entry`, which has a core since cycle 0. `overlaps` is whether the core overlaps instructions.
    pub fn begin(&mut self, overlaps: bool, paths: &Rc<RefCell<Paths>>, entry: u32, cycle: u64) {
        self.begin_at(overlaps, paths, entry, 0);
        self.reach(entry, Cause::Dispatch, cycle);
    }

    /// Begins a run at `entry` that begins at `cycle`, on a context with a clock that goes on between runs.
    pub fn begin_at(&mut self, overlaps: bool, paths: &Rc<RefCell<Paths>>, entry: u32, cycle: u64) {
        if !Rc::ptr_eq(&self.paths, paths) {
            self.paths.clone_from(paths);
            self.stack.forget();
        }
        self.stack.begin(&mut paths.borrow_mut(), entry);
        self.blocks.clear();
        self.blocks.enter(self.stack.path);
        self.counts.clear();
        self.overlaps = overlaps;
        (self.begun, self.charged, self.latest) = (cycle, cycle, entry);
        self.pending.clear();
    }

    /// The index of the current call path.
    pub const fn path(&self) -> u32 {
        self.stack.path
    }

    /// Charges an instruction with the cycles up to `cycle` that are not charged yet.
    pub fn reach(&mut self, pc: u32, cause: Cause, cycle: u64) {
        let cycles = cycle.saturating_sub(self.charged);
        if cycles > 0 {
            self.charged = cycle;
            self.charge(self.stack.path, pc, cause, cycles);
        }
    }

    /// As [`reach`](Profile::reach), with several causes one after another. The last one has the rest.
    pub fn reach_in_parts(&mut self, pc: u32, parts: &Parts, last: Cause, cycle: u64) {
        for &(cause, cycles) in parts {
            self.reach(pc, cause, cycle.min(self.charged + cycles));
        }
        self.reach(pc, last, cycle);
    }

    /// Charges an instruction of an earlier call path with a wait that is known only now.
    pub fn wait_at(&mut self, path: u32, pc: u32, cause: Cause, cycles: u64) {
        if cycles > 0 {
            self.charged += cycles;
            self.charge(path, pc, cause, cycles);
        }
    }

    /// Counts an instruction that was performed between slices, with its own cycles.
    pub(crate) fn performed(&mut self, pc: u32, kind: Kind, cycles: u64) {
        self.counts.add(key(self.stack.path, what::ALONE, pc), [1, 0]);
        if self.overlaps {
            let issue = cycles.min(1);
            self.reach(pc, Cause::Issue, self.charged + issue);
            self.reach(pc, Cause::behind(kind), self.charged + cycles - issue);
        } else {
            self.charged += cycles;
        }
    }

    fn charge(&mut self, path: u32, pc: u32, cause: Cause, cycles: u64) {
        self.counts.add(key(path, what::CYCLES + cause as u8, pc), [cycles, 1]);
    }

    /// The call path of the run's entry.
    pub(crate) const fn root(&self) -> u32 {
        self.stack.root
    }

    /// The cycles of the run so far.
    pub const fn cycles(&self) -> u64 {
        self.charged - self.begun
    }

    /// The counters of the run. A key may come twice.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.blocks.entries().chain(self.counts.used())
    }
}

/// The calls of a slice.
impl Profile {
    /// A block has been executed to its end, and its branch is taken or not.
    #[inline]
    pub(crate) fn ran(&mut self, block: &Block, taken: bool) {
        if !self.blocks.count(self.stack.path, block, taken) {
            let counts = [u64::from(!taken), u64::from(taken)];
            self.counts.add(key(self.stack.path, what::BLOCK, block.pc), counts);
        }
    }

    /// The slice ends before an instruction of a block.
    #[inline]
    pub(crate) fn ran_up_to(&mut self, block: &Block, op: &Op) {
        if op.index > 0 {
            self.counts.add(key(self.stack.path, op.index, block.pc), [1, 0]);
        }
    }

    /// A wait of an instruction in a slice of a core without overlap. The slice's end charges the cycles.
    #[inline]
    pub(crate) fn waits(&mut self, pc: u32, cause: Cause, cycles: u32) {
        if cycles > 0 {
            self.charge(self.stack.path, pc, cause, cycles.into());
        }
    }

    /// The waits of a load or store in a slice. `parts` has those of a granted turn, which are also in the first of all.
    pub(crate) fn accessed(&mut self, pc: u32, parts: &[(Cause, u64)], mut all: [(Cause, u32); 3]) {
        let known: u64 = parts.iter().map(|(_, cycles)| cycles).sum();
        all[0].1 -= all[0].1.min(known as u32);
        let all = all.into_iter().map(|(cause, cycles)| (cause, u64::from(cycles)));
        let waits = parts.iter().copied().chain(all).filter(|(_, cycles)| *cycles > 0);
        if self.overlaps {
            // All fit: a turn has at most three causes.
            self.pending = waits.collect();
        } else {
            waits.for_each(|(cause, cycles)| self.charge(self.stack.path, pc, cause, cycles));
        }
    }

    /// An instruction enters the window of a core that overlaps instructions, and leaves it in cycle `leaves`.
    pub(crate) fn left(&mut self, pc: u32, kind: Kind, leaves: u64) {
        self.latest = pc;
        let parts = std::mem::take(&mut self.pending);
        self.reach(pc, Cause::Issue, leaves.min(self.charged + 1));
        self.reach_in_parts(pc, &parts, Cause::behind(kind), leaves);
    }

    /// No instruction enters before `cycle`, because of the branch or jump at `pc`.
    pub(crate) fn resumes(&mut self, pc: u32, cycle: u64) {
        self.reach(pc, Cause::Branch, cycle);
    }

    /// A jump, which may call a function or return from one.
    pub(crate) fn jumps(&mut self, op: &Op, to: u32, behind: u32) {
        let links = matches!(op.rd, 1 | 5);
        let before = self.stack.path;
        match op.kind.class() {
            _ if links => self.stack.call(&self.paths, to, behind),
            Class::JumpRegister => self.stack.jump(&self.paths, to),
            _ => self.stack.tail_call(&self.paths, to),
        }
        if self.stack.path != before {
            self.blocks.enter(self.stack.path);
        }
    }

    /// The slice ends at this cycle.
    pub(crate) fn ends(&mut self, cycle: u64) {
        if self.overlaps {
            self.reach(self.latest, Cause::Branch, cycle);
        } else {
            self.charged = cycle;
        }
    }
}
