//! A sample of the runs of a program, each with the values of its counters.

/// Most runs of a sample, and most values of them.
const RUNS: usize = 8192;
const VALUES: usize = 1 << 18;

/// The largest count of a value.
const MOST: u64 = u32::MAX as u64;

/// The values of a counter in a run. Those that do not fit are several times here, with the same sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    counter: u32,
    counts: [u32; 2],
}

/// A run of the sample.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The call path of its entry.
    root: u32,
    /// The end of its values, which begin behind those of the run before it.
    end: u32,
}

/// Every n-th run: all of them up to the limits above, then every second one, and so on.
#[derive(Debug)]
pub(crate) struct Sample {
    stride: u64,
    runs: Vec<Run>,
    values: Vec<Value>,
}

/// One run of the sample.
#[derive(Clone, Copy, Debug)]
pub struct RunSample<'t> {
    /// The index of the call path of its entry.
    pub root: u32,
    values: &'t [Value],
}

impl Default for Sample {
    fn default() -> Sample {
        Sample { stride: 1, runs: Vec::new(), values: Vec::new() }
    }
}

impl Sample {
    /// Whether the sample has the run with this number.
    pub(crate) const fn takes(&self, run: u64) -> bool {
        run.is_multiple_of(self.stride)
    }

    /// Adds values of a counter to the run that is being added.
    #[inline]
    pub(crate) fn add(&mut self, counter: usize, mut counts: [u64; 2]) {
        loop {
            // Not by `map` of arrays, which is not inlined.
            let fit = [counts[0].min(MOST) as u32, counts[1].min(MOST) as u32];
            self.values.push(Value { counter: counter as u32, counts: fit });
            counts = [counts[0] - u64::from(fit[0]), counts[1] - u64::from(fit[1])];
            if counts == [0; 2] {
                return;
            }
        }
    }

    /// Ends the run that is being added.
    pub(crate) fn end_run(&mut self, root: u32) {
        self.runs.push(Run { root, end: self.values.len() as u32 });
        if self.runs.len() > RUNS || self.values.len() > VALUES {
            self.thin_out();
        }
    }

    /// Drops every second run.
    fn thin_out(&mut self) {
        let (mut from, mut kept, mut end) = (0, 0, 0);
        for index in 0..self.runs.len() {
            let run = self.runs[index];
            let to = run.end as usize;
            if index % 2 == 0 {
                self.values.copy_within(from..to, end);
                end += to - from;
                self.runs[kept] = Run { end: end as u32, ..run };
                kept += 1;
            }
            from = to;
        }
        self.runs.truncate(kept);
        self.values.truncate(end);
        self.stride *= 2;
    }

    pub(crate) fn runs(&self) -> impl ExactSizeIterator<Item = RunSample<'_>> {
        let begin = |index: usize| index.checked_sub(1).map_or(0, |before| self.runs[before].end as usize);
        self.runs.iter().enumerate().map(move |(index, run)| RunSample {
            root: run.root,
            values: &self.values[begin(index)..run.end as usize],
        })
    }
}

impl RunSample<'_> {
    /// Returns the values of its counters, by their indices. A counter may come several times.
    pub fn counts(&self) -> impl Iterator<Item = (usize, [u64; 2])> {
        let of = |value: &Value| {
            (value.counter as usize, [u64::from(value.counts[0]), u64::from(value.counts[1])])
        };
        self.values.iter().map(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(run: &RunSample<'_>) -> Vec<[u64; 2]> {
        let mut sums = vec![[0; 2]; 3];
        for (counter, counts) in run.counts() {
            sums[counter] = [sums[counter][0] + counts[0], sums[counter][1] + counts[1]];
        }
        sums
    }

    #[test]
    fn values_of_any_size_keep_their_sums() {
        let mut sample = Sample::default();
        let counts = [[1 << 32, 0], [(3 << 32) + 5, 7], [u64::from(u32::MAX), u64::from(u32::MAX)]];
        (0..3).for_each(|counter| sample.add(counter, counts[counter]));
        sample.end_run(0);
        assert_eq!(sums(&sample.runs().next().unwrap()), counts);
    }

    #[test]
    fn many_values_leave_every_second_run() {
        let mut sample = Sample::default();
        let mut added = 0;
        for run in 0..1000u64 {
            if sample.takes(run) {
                // 500 values of one counter, with the number of the run as their sum.
                (0..500).for_each(|place| sample.add(1, [u64::from(place == 0) * run, 0]));
                sample.end_run(run as u32);
                added += 1;
            }
        }
        let runs: Vec<_> = sample.runs().collect();
        assert!(added > runs.len() && sample.stride == 2);
        for (index, run) in runs.iter().enumerate() {
            assert_eq!(u64::from(run.root), index as u64 * sample.stride);
            assert_eq!(sums(run), [[0, 0], [run.root.into(), 0], [0, 0]]);
        }
    }
}
