//! Cycles by instruction, and their sums by groups of instructions.

use super::distribution::Distribution;
use super::row::Cost;
use nicety_bench::rank;
use nicety_hpu::profile::{CAUSES, CallPath, Cause};
use nicety_hpu::{Executed, Image, Totals};
use std::collections::{BTreeMap, BTreeSet, HashMap};

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

/// The share of an instruction or of a group in a counter: its index, and its cycles for each of the counter's values.
type Share = (usize, [u64; 2]);

/// The counters of a program's runs.
pub(super) struct Costs<'t> {
    packets: u64,
    totals: &'t Totals,
    /// The shares of instructions in each counter.
    shares: Vec<Vec<Share>>,
    /// The entry of each call path.
    roots: Vec<u32>,
    by_pc: BTreeMap<u32, Counts>,
    /// By instruction and call path.
    pub(super) samples: BTreeMap<(u32, u32), OnPath>,
}

impl Costs<'_> {
    pub(super) fn of<'t>(image: &Image, totals: &'t Totals, packets: u64) -> Costs<'t> {
        let (mut by_pc, mut samples): (BTreeMap<u32, Counts>, BTreeMap<_, OnPath>) = Default::default();
        totals.for_each(image, |executed| {
            by_pc.entry(executed.pc).or_default().add(&executed);
            let sample = samples.entry((executed.pc, executed.path)).or_default();
            sample.executions += executed.executions;
            sample.cycles += executed.cycles;
        });
        let roots = roots(totals.paths().borrow().all());
        let index: HashMap<u32, usize> = by_pc.keys().enumerate().map(|(index, pc)| (*pc, index)).collect();
        let of_counter = totals.counters(image);
        let shares = of_counter
            .map(|shares| shares.iter().map(|share| (index[&share.pc], share.cycles)).collect())
            .collect();
        Costs { packets, totals, shares, roots, by_pc, samples }
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
        let Alike { of, first, shares } = alike(self.shares_of_groups(groups, of), &reached);
        let mut runs: BTreeMap<u32, usize> = BTreeMap::new();
        let mut values = vec![Distribution::default(); first.len()];
        let (mut of_run, mut touched) = (vec![0; first.len()], Vec::new());
        for run in self.totals.sample() {
            *runs.entry(run.root).or_default() += 1;
            for (counter, [through, taken]) in run.counts() {
                for &(kind, cycles) in &shares[counter] {
                    let cycles = through * cycles[0] + taken * cycles[1];
                    if cycles > 0 && of_run[kind] == 0 {
                        touched.push(kind);
                    }
                    of_run[kind] += cycles;
                }
            }
            for kind in touched.drain(..) {
                values[kind].add(std::mem::take(&mut of_run[kind]));
            }
        }
        let percentile = |(values, group): (&mut Distribution, &usize)| {
            let all: usize = reached[*group].iter().filter_map(|root| runs.get(root)).sum();
            // The other runs have none of its cycles.
            let all = all.max(values.len());
            if all == 0 { 0 } else { values.nth(all, rank(all, 990)) }
        };
        let percentiles: Vec<u64> = values.iter_mut().zip(&first).map(percentile).collect();
        of.iter().map(|&kind| percentiles[kind]).collect()
    }

    /// Returns the shares of groups of instructions in each counter.
    fn shares_of_groups(&self, groups: usize, of: &[usize]) -> Vec<Vec<Share>> {
        let mut sums = vec![[0u64; 2]; groups];
        let of_counter = |shares: &Vec<Share>| {
            let mut touched = Vec::new();
            for &(instruction, cycles) in shares {
                let group = of[instruction];
                if sums[group] == [0; 2] && cycles != [0; 2] {
                    touched.push(group);
                }
                sums[group] = [sums[group][0] + cycles[0], sums[group][1] + cycles[1]];
            }
            touched.into_iter().map(|group| (group, std::mem::take(&mut sums[group]))).collect()
        };
        self.shares.iter().map(of_counter).collect()
    }
}

/// Groups with the same cycles in each run, such as most instructions of a block.
struct Alike {
    /// The kind of each group, and the first group of each kind.
    of: Vec<usize>,
    first: Vec<usize>,
    /// The shares of kinds in each counter.
    shares: Vec<Vec<Share>>,
}

/// Finds groups with the same shares in each counter that the same handlers reach.
fn alike(shares: Vec<Vec<Share>>, reached: &[BTreeSet<u32>]) -> Alike {
    let mut of_groups = vec![Vec::new(); reached.len()];
    for (counter, shares) in shares.iter().enumerate() {
        shares.iter().for_each(|&(group, cycles)| of_groups[group].push((counter, cycles)));
    }
    let (mut known, mut of, mut first) = (HashMap::new(), Vec::new(), Vec::new());
    for (group, shares) in of_groups.iter().zip(reached).enumerate() {
        of.push(*known.entry(shares).or_insert_with(|| {
            first.push(group);
            first.len() - 1
        }));
    }
    let of_kinds = |shares: Vec<Share>| {
        let firsts = shares.into_iter().filter(|(group, _)| first[of[*group]] == *group);
        firsts.map(|(group, cycles)| (of[group], cycles)).collect()
    };
    let shares = shares.into_iter().map(of_kinds).collect();
    Alike { of, first, shares }
}

/// Returns the entry of each call path.
fn roots(paths: &[CallPath]) -> Vec<u32> {
    let mut roots: Vec<u32> = Vec::with_capacity(paths.len());
    for (index, path) in paths.iter().enumerate() {
        roots.push(path.caller.map_or(index as u32, |caller| roots[caller as usize]));
    }
    roots
}
