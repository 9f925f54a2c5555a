//! Cycles by instruction, and their sums by groups of instructions.

use super::row::Cost;
use nicety_bench::nearest_rank;
use nicety_hpu::profile::{CAUSES, CallPath, Cause};
use nicety_hpu::{Executed, Image, Totals};
use std::collections::{BTreeMap, BTreeSet};

/// Counters of an instruction, or of a group of them.
#[derive(Clone, Copy, Default)]
struct Counts {
    executions: u64,
    cycles: [u64; CAUSES],
}

impl Counts {
    fn add(&mut self, executed: &Executed) {
        self.executions += executed.executions;
        self.cycles[executed.cause as usize] += executed.cycles;
    }
}

/// Executions and cycles of an instruction on a call path.
#[derive(Clone, Copy, Default)]
pub(super) struct OnPath {
    pub(super) executions: u64,
    pub(super) cycles: u64,
}

/// The counters of a program's runs.
pub(super) struct Costs<'p> {
    image: &'p Image,
    totals: &'p Totals,
    packets: u64,
    /// The entry of each call path.
    roots: Vec<u32>,
    by_pc: BTreeMap<u32, Counts>,
    /// By instruction and call path.
    pub(super) samples: BTreeMap<(u32, u32), OnPath>,
}

impl<'p> Costs<'p> {
    pub(super) fn of(image: &'p Image, totals: &'p Totals, packets: u64) -> Costs<'p> {
        let (mut by_pc, mut samples): (BTreeMap<u32, Counts>, BTreeMap<_, OnPath>) = Default::default();
        totals.for_each(image, |executed| {
            by_pc.entry(executed.pc).or_default().add(&executed);
            let sample = samples.entry((executed.pc, executed.path)).or_default();
            sample.executions += executed.executions;
            sample.cycles += executed.cycles;
        });
        let roots = roots(totals.paths().borrow().all());
        Costs { image, totals, packets, roots, by_pc, samples }
    }

    /// The addresses of the instructions.
    pub(super) fn addresses(&self) -> Vec<u32> {
        self.by_pc.keys().copied().collect()
    }

    /// Returns the costs of `groups` groups of instructions. `of` is the group of each instruction, by address.
    pub(super) fn of_groups(&self, groups: usize, of: &[usize]) -> Vec<Cost> {
        let mut sums = vec![Counts::default(); groups];
        for (counts, &group) in self.by_pc.values().zip(of) {
            sums[group].executions += counts.executions;
            sums[group].cycles.iter_mut().zip(counts.cycles).for_each(|(sum, cycles)| *sum += cycles);
        }
        let p99 = self.percentiles(groups, of);
        let cost = |(sum, cycles_p99): (&Counts, u64)| {
            let cycles = sum.cycles.iter().sum();
            let causes = Cause::ALL.iter().zip(sum.cycles).filter(|(_, cycles)| *cycles > 0);
            Cost {
                executions: sum.executions,
                cycles,
                cycles_mean: cycles as f64 / self.packets.max(1) as f64,
                cycles_p99,
                causes: causes.map(|(cause, cycles)| (cause.name(), cycles)).collect(),
            }
        };
        sums.iter().zip(p99).map(cost).collect()
    }

    /// Returns the 99th percentiles of the cycles of groups of instructions, over the runs of the handlers that reach the group.
    fn percentiles(&self, groups: usize, of: &[usize]) -> Vec<u64> {
        let index: BTreeMap<u32, usize> = self.by_pc.keys().copied().zip(of.iter().copied()).collect();
        let mut reached = vec![BTreeSet::new(); groups];
        for (pc, path) in self.samples.keys() {
            reached[index[pc]].insert(self.roots[*path as usize]);
        }
        let mut runs: BTreeMap<u32, usize> = BTreeMap::new();
        let mut values = vec![Vec::new(); groups];
        let mut of_run = vec![0; groups];
        for run in self.totals.sample() {
            *runs.entry(run.root).or_default() += 1;
            let mut touched = Vec::new();
            run.for_each(self.image, |executed| {
                let group = index[&executed.pc];
                if of_run[group] == 0 {
                    touched.push(group);
                }
                of_run[group] += executed.cycles;
            });
            for group in touched {
                let cycles = std::mem::take(&mut of_run[group]);
                if cycles > 0 {
                    values[group].push(cycles);
                }
            }
        }
        let percentile = |(mut values, reached): (Vec<u64>, BTreeSet<u32>)| {
            let all: usize = reached.iter().filter_map(|root| runs.get(root)).sum();
            // The other runs have none of its cycles.
            values.resize(all.max(values.len()), 0);
            values.sort_unstable();
            if values.is_empty() { 0 } else { nearest_rank(&values, 990) }
        };
        values.into_iter().zip(reached).map(percentile).collect()
    }
}

/// Returns the entry of each call path.
fn roots(paths: &[CallPath]) -> Vec<u32> {
    let mut roots: Vec<u32> = Vec::with_capacity(paths.len());
    for (index, path) in paths.iter().enumerate() {
        roots.push(path.caller.map_or(index as u32, |caller| roots[caller as usize]));
    }
    roots
}
