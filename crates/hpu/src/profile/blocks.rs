//! Executions of whole blocks in a run: a row of counters for each call path, with a counter for each block.
//!
//! A block that has run costs one addition here, where a table by key would cost a hash and a comparison.

use super::counts::Entry;
use super::{key, what};
use crate::block::Block;

/// Most counters. Blocks and call paths beyond have none here.
const CELLS: usize = 1 << 15;

/// The first counters of a run.
const ROWS: usize = 4;
const WIDTH: usize = 64;

/// A counter that the run has used.
#[derive(Clone, Copy, Debug)]
struct Used {
    cell: u32,
    path: u32,
    pc: u32,
}

/// The counters of a run: executions of a block that went through, and of those that branched.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    cells: Vec<[u64; 2]>,
    used: Vec<Used>,
    /// Counters of a row.
    width: usize,
    /// The first counter of the current call path, and the number of its counters. Zero for a path without a row.
    row: usize,
    counters: usize,
}

impl Blocks {
    /// The run is in this call path from now on.
    #[inline]
    pub(super) const fn enter(&mut self, path: u32) {
        self.row = path as usize * self.width;
        self.counters = if self.row < self.cells.len() { self.width } else { 0 };
    }

    /// Counts an execution of a block in the current call path. Returns false if it has no counter.
    #[inline]
    pub(super) fn count(&mut self, path: u32, block: &Block, taken: bool) -> bool {
        let number = block.number as usize;
        if number >= self.counters && !self.make_room(path, number) {
            return false;
        }
        let cell = self.row + number;
        let counts = &mut self.cells[cell];
        if *counts == [0; 2] {
            self.used.push(Used { cell: cell as u32, path, pc: block.pc });
        }
        counts[usize::from(taken)] += 1;
        true
    }

    /// Makes a counter for a block of a call path. Returns false if there would be too many.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, path: u32, number: usize) -> bool {
        let rows = (path as usize + 1).next_power_of_two().max(ROWS);
        let rows = rows.max(self.cells.len().checked_div(self.width).unwrap_or(0));
        let width = (number + 1).next_power_of_two().max(WIDTH).max(self.width);
        if rows.saturating_mul(width) > CELLS {
            return false;
        }
        let mut cells = vec![[0; 2]; rows * width];
        for used in &mut self.used {
            let number = used.cell as usize % self.width;
            let cell = used.path as usize * width + number;
            cells[cell] = self.cells[used.cell as usize];
            used.cell = cell as u32;
        }
        (self.cells, self.width) = (cells, width);
        self.enter(path);
        true
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        let entry = |used: &Used| Entry {
            key: key(used.path, what::BLOCK, used.pc),
            counts: self.cells[used.cell as usize],
        };
        self.used.iter().map(entry)
    }

    /// Forgets all executions.
    pub(super) fn clear(&mut self) {
        for used in self.used.drain(..) {
            self.cells[used.cell as usize] = [0; 2];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Core;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The counters have the sums of a map, for any order of blocks and call paths, also after they have been cleared.
        /// Blocks without a counter are those beyond the limit.
        #[test]
        fn counters_are_sums_by_path_and_block(
            adds in prop::collection::vec((0u32..40, 0u32..1500, any::<bool>()), 0..400),
            scale in prop::sample::select(vec![1u32, 7, 1000]),
        ) {
            let block = Block::decode(&[0x82, 0x80], 0, &Core::default());
            let (mut blocks, mut most) = (Blocks::default(), 0);
            for _ in 0..2 {
                let mut sums: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
                for &(path, number, taken) in &adds {
                    let path = path * scale;
                    most = most.max(path as usize);
                    blocks.enter(path);
                    let block = Block { number, pc: 2 * number, ops: [].into(), steps: [].into(), ..block };
                    if blocks.count(path, &block, taken) {
                        sums.entry(key(path, what::BLOCK, block.pc)).or_default()[usize::from(taken)] += 1;
                    } else {
                        prop_assert!((most + 1).next_power_of_two() * 2048 > CELLS);
                    }
                }
                let found: Vec<Entry> = blocks.entries().collect();
                let by_key: BTreeMap<u64, [u64; 2]> =
                    found.iter().map(|entry| (entry.key, entry.counts)).collect();
                prop_assert_eq!(found.len(), sums.len());
                prop_assert_eq!(by_key, sums);
                blocks.clear();
                prop_assert_eq!(blocks.entries().count(), 0);
            }
        }
    }
}
