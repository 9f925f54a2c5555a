//! The sums of the runs of a program, and a sample of single runs.

use crate::block::Block;
use crate::image::Image;
use crate::profile::counts::{Counts, Entry};
use crate::profile::{Cause, Paths, Profile, what};
use crate::sample::{RunSample, Sample};
use std::cell::RefCell;
use std::rc::Rc;

/// Executions of an instruction, or cycles of it for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The index of its call path.
    pub path: u32,
    /// Its address.
    pub pc: u32,
    /// The cause of the cycles.
    pub cause: Cause,
    /// Number of cycles.
    pub cycles: u64,
    /// Number of executions. Zero where only cycles are counted.
    pub executions: u64,
}

/// The share of an instruction in a counter.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Its address.
    pub pc: u32,
    /// Its cycles for each of the counter's two values.
    pub cycles: [u64; 2],
}

/// The sums of the runs of a program. The sample has every n-th run: all of them up to 8192 runs and 262 144 counters, then every
/// second one, and so on.
#[derive(Debug)]
pub struct Totals {
    paths: Rc<RefCell<Paths>>,
    counts: Counts,
    runs: u64,
    cycles: u64,
    sample: Sample,
}

impl Totals {
    /// Returns the sums of no runs.
    pub fn of(image: &Image) -> Totals {
        Totals {
            paths: Rc::new(RefCell::new(Paths::new(image.function_addresses()))),
            counts: Counts::default(),
            runs: 0,
            cycles: 0,
            sample: Sample::default(),
        }
    }

    /// Returns the call paths.
    pub const fn paths(&self) -> &Rc<RefCell<Paths>> {
        &self.paths
    }

    /// Number of runs.
    pub const fn runs(&self) -> u64 {
        self.runs
    }

    /// Cycles of all runs, by the clocks of their cores.
    pub const fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Adds a run that has ended.
    pub fn add(&mut self, run: &Profile) {
        let sampled = self.sample.takes(self.runs);
        for entry in run.entries() {
            let counter = self.counts.add(entry.key, entry.counts);
            if sampled {
                self.sample.add(counter, entry.counts);
            }
        }
        if sampled {
            self.sample.end_run(run.root());
        }
        self.runs += 1;
        self.cycles += run.cycles();
    }

    /// Calls `with` for the instructions of all runs. An instruction may come several times.
    pub fn for_each(&self, image: &Image, with: impl FnMut(Executed)) {
        divide(image, self.counts.entries(), with);
    }

    /// Returns the shares of instructions in each counter of all runs, by its index.
    pub fn counters(&self, image: &Image) -> impl Iterator<Item = Vec<Share>> {
        self.counts.entries().iter().map(|entry| shares(image, entry.key))
    }

    /// Returns the sampled runs.
    pub fn sample(&self) -> impl ExactSizeIterator<Item = RunSample<'_>> {
        self.sample.runs()
    }
}

/// Returns the shares of instructions in a counter: its cycles are sums of multiples of its two values.
fn shares(image: &Image, key: u64) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    for value in 0..2 {
        let mut counts = [0; 2];
        counts[value] = 1;
        divide(image, &[Entry { key, counts }], |executed| {
            let known = shares.iter().position(|share| share.pc == executed.pc);
            let at = known.unwrap_or_else(|| {
                shares.push(Share { pc: executed.pc, cycles: [0; 2] });
                shares.len() - 1
            });
            shares[at].cycles[value] += executed.cycles;
        });
    }
    shares
}

/// Divides counters into those of instructions.
fn divide(image: &Image, entries: &[Entry], mut with: impl FnMut(Executed)) {
    for entry in entries {
        let (path, pc) = ((entry.key >> 40) as u32, entry.key as u32);
        let kind = (entry.key >> 32) as u8;
        if let Some(cause) = kind.checked_sub(what::CYCLES) {
            let cause = Cause::ALL[usize::from(cause)];
            with(Executed { path, pc, cause, cycles: entry.counts[0], executions: 0 });
            continue;
        }
        let Some(block) = image.block(pc) else { continue };
        let of = Divided { image, block, path };
        let times = entry.counts[0] + entry.counts[1];
        match kind {
            what::BLOCK => {
                of.instructions(block.ops.len() - 1, times, &mut with);
                of.last(entry.counts, &mut with);
            }
            what::ALONE => of.instruction(0, times, &mut with),
            behind => {
                of.instructions(usize::from(behind), times, &mut with);
                // The cycles up to an instruction include its wait for the value of the one before it.
                of.load_use(usize::from(behind), times, &mut with);
            }
        }
    }
}

/// A block to be divided.
struct Divided<'b> {
    image: &'b Image,
    block: &'b Block,
    path: u32,
}

impl Divided<'_> {
    fn pc(&self, index: usize) -> u32 {
        self.block.pc.wrapping_add(self.block.ops[index].offset.into())
    }

    /// The first `end` instructions.
    fn instructions(&self, end: usize, times: u64, with: &mut impl FnMut(Executed)) {
        for index in 0..end {
            self.load_use(index, times, with);
            self.instruction(index, times, with);
        }
    }

    fn instruction(&self, index: usize, times: u64, with: &mut impl FnMut(Executed)) {
        let cycles = self.image.core().costs.of(self.block.ops[index].kind);
        self.own(index, times, u64::from(cycles), with);
    }

    /// The last instruction. A block that only continues in the next one has none.
    fn last(&self, [through, taken]: [u64; 2], with: &mut impl FnMut(Executed)) {
        let index = self.block.ops.len() - 1;
        self.load_use(index, through + taken, with);
        if self.block.ops[index].len == 0 {
            return;
        }
        let cycles = |total: u32| u64::from(total - self.block.last_before);
        self.own(index, through, cycles(self.block.through), with);
        self.own(index, taken, cycles(self.block.taken), with);
    }

    /// Executions of an instruction, with its own cycles.
    fn own(&self, index: usize, times: u64, cycles: u64, with: &mut impl FnMut(Executed)) {
        if times == 0 {
            return;
        }
        let (path, pc) = (self.path, self.pc(index));
        // With overlap, cycles are counted as instructions leave.
        let cycles = if self.image.core().overlap.is_some() { 0 } else { cycles };
        let issue =
            Executed { path, pc, cause: Cause::Issue, cycles: times * cycles.min(1), executions: times };
        with(issue);
        if cycles > 1 {
            let cause = Cause::behind(self.block.ops[index].kind);
            with(Executed { path, pc, cause, cycles: times * (cycles - 1), executions: 0 });
        }
    }

    /// The penalty of an instruction that uses the value loaded by the one before it in its block.
    fn load_use(&self, index: usize, times: u64, with: &mut impl FnMut(Executed)) {
        let Some(before) = index.checked_sub(1).filter(|_| self.image.core().overlap.is_none()) else {
            return;
        };
        let (ops, costs) = (&self.block.ops, &self.image.core().costs);
        let cycles = ops[index].before - ops[before].before - costs.of(ops[before].kind);
        if cycles > 0 && times > 0 {
            let cycles = times * u64::from(cycles);
            with(Executed {
                path: self.path,
                pc: self.pc(index),
                cause: Cause::LoadUse,
                cycles,
                executions: 0,
            });
        }
    }
}
