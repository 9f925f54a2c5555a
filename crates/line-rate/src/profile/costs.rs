//! Cycles by instruction, and their sums by groups of instructions.

use super::row::Cost;
use nicety_bench::rank;
use nicety_hpu::profile::{CAUSES, CallPath, Cause};
use nicety_hpu::{Executed, Image, RunSample, Totals};
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

/// The counters of a program's runs.
pub(super) struct Costs {
    packets: u64,
    /// The shares of instructions in each counter: the index of the instruction, and its cycles for each value.
    shares: Vec<Vec<(usize, [u64; 2])>>,
    sample: Vec<Sampled>,
    /// The entry of each call path.
    roots: Vec<u32>,
    by_pc: BTreeMap<u32, Counts>,
    /// By instruction and call path.
    pub(super) samples: BTreeMap<(u32, u32), OnPath>,
}

/// A run of the sample: the call path of its entry, and the values of its counters.
struct Sampled {
    root: u32,
    counts: Vec<(usize, [u64; 2])>,
}

impl Costs {
    pub(super) fn of(image: &Image, totals: &Totals, packets: u64) -> Costs {
        let (mut by_pc, mut samples): (BTreeMap<u32, Counts>, BTreeMap<_, OnPath>) = Default::default();
        totals.for_each(image, |executed| {
            by_pc.entry(executed.pc).or_default().add(&executed);
            let sample = samples.entry((executed.pc, executed.path)).or_default();
            sample.executions += executed.executions;
            sample.cycles += executed.cycles;
        });
        let roots = roots(totals.paths().borrow().all());
        let index: HashMap<u32, usize> = by_pc.keys().enumerate().map(|(index, pc)| (*pc, index)).collect();
        let (mut places, mut shares) = (HashMap::new(), Vec::new());
        for (key, of) in totals.counters(image) {
            places.insert(key, shares.len());
            shares.push(of.iter().map(|share| (index[&share.pc], share.cycles)).collect());
        }
        let sampled = |run: RunSample<'_>| Sampled {
            root: run.root,
            counts: run.counts().map(|(key, values)| (places[&key], values)).collect(),
        };
        let sample = totals.sample().map(sampled).collect();
        Costs { packets, shares, sample, roots, by_pc, samples }
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
        let shares = self.shares_of_groups(groups, of);
        let mut runs: BTreeMap<u32, usize> = BTreeMap::new();
        let mut values = vec![Vec::new(); groups];
        let mut of_run = vec![0; groups];
        for run in &self.sample {
            *runs.entry(run.root).or_default() += 1;
            let mut touched = Vec::new();
            for &(counter, [through, taken]) in &run.counts {
                for &(group, cycles) in &shares[counter] {
                    let cycles = through * cycles[0] + taken * cycles[1];
                    if cycles > 0 && of_run[group] == 0 {
                        touched.push(group);
                    }
                    of_run[group] += cycles;
                }
            }
            for group in touched {
                values[group].push(std::mem::take(&mut of_run[group]));
            }
        }
        let percentile = |(mut values, reached): (Vec<u64>, BTreeSet<u32>)| {
            let all: usize = reached.iter().filter_map(|root| runs.get(root)).sum();
            // The other runs have none of its cycles.
            values.resize(all.max(values.len()), 0);
            match values.len() {
                0 => 0,
                len => *values.select_nth_unstable(rank(len, 990)).1,
            }
        };
        values.into_iter().zip(reached).map(percentile).collect()
    }
}

impl Costs {
    /// Returns the shares of groups of instructions in each counter.
    fn shares_of_groups(&self, groups: usize, of: &[usize]) -> Vec<Vec<(usize, [u64; 2])>> {
        let mut sums = vec![[0u64; 2]; groups];
        let of_counter = |shares: &Vec<(usize, [u64; 2])>| {
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

/// Returns the entry of each call path.
fn roots(paths: &[CallPath]) -> Vec<u32> {
    let mut roots: Vec<u32> = Vec::with_capacity(paths.len());
    for (index, path) in paths.iter().enumerate() {
        roots.push(path.caller.map_or(index as u32, |caller| roots[caller as usize]));
    }
    roots
}
