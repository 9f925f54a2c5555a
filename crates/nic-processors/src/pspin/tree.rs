//! Two levels of round-robin arbitration, by cycle. Each cluster takes an item from its cores, and each output takes
//! one from the clusters.
//!
//! This follows the paths of PsPIN's commands to engines (`cluster_cmd.sv`, `cmd_unit.sv`) and of its feedbacks to
//! the scheduler (`cluster_scheduler.sv`, `scheduler.sv`). There is an `rr_arb_tree` in each cluster, a
//! `spill_register` behind it, and an `rr_arb_tree` before each output. A cluster's register is in order, with
//! head-of-line blocking: an item for an output without room holds up those behind it.

use std::collections::VecDeque;

/// An item, and the cycle of its arrival.
type Queued<T> = (u64, T);

/// Items of cores that wait for a turn.
pub(crate) struct Tree<T> {
    /// Items by core.
    cores: Box<[VecDeque<Queued<T>>]>,
    /// Number of items in the queues of cores, by cluster. Most clusters have none.
    waiting: Box<[usize]>,
    /// Items that a cluster's arbiter has taken, by cluster.
    registers: Box<[VecDeque<Queued<T>>]>,
    /// The next core of each cluster and the next cluster of each output in round-robin order.
    first_core: Box<[usize]>,
    first_cluster: Box<[usize]>,
    cluster_cores: usize,
    /// Items that a register holds.
    depth: usize,
    /// Fewest cycles in a register.
    delay: u64,
    /// The lengths of the registers at the begin of a step, and whether each has given an item in it. Kept, so that a
    /// step allocates nothing.
    held: Vec<usize>,
    gave: Vec<bool>,
}

/// The outputs of a step.
pub(crate) trait Outputs<T> {
    /// Returns the output of an item.
    fn of(&self, item: &T) -> usize;
    /// Returns whether an output takes an item in this cycle.
    fn has_room(&self, output: usize) -> bool;
    /// Called when an item has left its core.
    fn left_core(&mut self, item: &T);
    /// Called when an output has taken an item.
    fn take(&mut self, output: usize, item: T);
}

impl<T> Tree<T> {
    /// Returns a tree for `outputs` outputs, without items. A register holds `depth` items. 0 for no limit.
    pub fn new(clusters: usize, cluster_cores: usize, outputs: usize, depth: usize, delay: u64) -> Tree<T> {
        let queues = |number: usize| (0..number).map(|_| VecDeque::new()).collect();
        Tree {
            cores: queues(clusters * cluster_cores),
            waiting: vec![0; clusters].into(),
            registers: queues(clusters),
            first_core: vec![0; clusters].into(),
            first_cluster: vec![0; outputs].into(),
            cluster_cores,
            depth: if depth == 0 { usize::MAX } else { depth },
            delay,
            held: Vec::with_capacity(clusters),
            gave: Vec::with_capacity(clusters),
        }
    }

    /// Queues an item of a core in a cycle. Its cluster may take it in the next.
    pub fn push(&mut self, core: usize, cycle: u64, item: T) {
        self.waiting[core / self.cluster_cores] += 1;
        self.cores[core].push_back((cycle, item));
    }

    /// Returns whether no item waits.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.cores.iter().chain(&self.registers).all(VecDeque::is_empty)
    }

    /// Advances by a cycle. Returns whether the next cycle may move an item without a further event.
    pub(crate) fn step(&mut self, cycle: u64, outputs: &mut impl Outputs<T>) -> bool {
        // The room of a register is that at the begin of the cycle.
        self.held.clear();
        self.held.extend(self.registers.iter().map(VecDeque::len));
        let mut moved = false;
        if self.delay == 0 {
            moved |= self.fill_registers(cycle, outputs);
        }
        moved |= self.pass_outputs(cycle, outputs);
        if self.delay > 0 {
            moved |= self.fill_registers(cycle, outputs);
        }
        moved || self.came_in(cycle)
    }

    /// Returns whether an item of a core has come in this cycle.
    fn came_in(&self, cycle: u64) -> bool {
        let clusters = self.cores.chunks_exact(self.cluster_cores).zip(&self.waiting);
        let mut cores = clusters.filter(|(_, waiting)| **waiting > 0).flat_map(|(cores, _)| cores);
        cores.any(|queue| queue.iter().any(|(came, _)| *came >= cycle))
    }

    fn pass_outputs(&mut self, cycle: u64, outputs: &mut impl Outputs<T>) -> bool {
        let clusters = self.registers.len();
        // A register shows its next item in the next cycle.
        self.gave.clear();
        self.gave.resize(clusters, false);
        for output in 0..self.first_cluster.len() {
            if !outputs.has_room(output) {
                continue;
            }
            let first = self.first_cluster[output];
            let asks = |cluster: &usize| {
                let head = self.registers[*cluster].front().filter(|_| !self.gave[*cluster]);
                head.is_some_and(|(came, item)| *came + self.delay <= cycle && outputs.of(item) == output)
            };
            let next = (first..clusters).chain(0..first).find(asks);
            if let Some(cluster) = next {
                let (_, item) = self.registers[cluster].pop_front().expect("just seen");
                self.first_cluster[output] = (cluster + 1) % clusters;
                outputs.take(output, item);
                self.gave[cluster] = true;
            }
        }
        self.gave.contains(&true)
    }

    fn fill_registers(&mut self, cycle: u64, outputs: &mut impl Outputs<T>) -> bool {
        let mut moved = false;
        for cluster in 0..self.registers.len() {
            if self.waiting[cluster] == 0 || self.held[cluster] >= self.depth {
                continue;
            }
            let (first, cores) = (self.first_core[cluster], self.cluster_cores);
            let base = cluster * cores;
            let asks = |core: &usize| self.cores[base + core].front().is_some_and(|(came, _)| *came < cycle);
            let next = (first..cores).chain(0..first).find(asks);
            if let Some(core) = next {
                let (_, item) = self.cores[base + core].pop_front().expect("just seen");
                self.waiting[cluster] -= 1;
                self.first_core[cluster] = (core + 1) % cores;
                outputs.left_core(&item);
                self.registers[cluster].push_back((cycle, item));
                moved = true;
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An item's core, number and output.
    type Item = (usize, usize, usize);

    #[derive(Default)]
    struct Taken {
        cycle: u64,
        room: Vec<usize>,
        taken: Vec<(u64, usize, Item)>,
        left: Vec<(u64, Item)>,
    }

    impl Outputs<Item> for Taken {
        fn of(&self, item: &Item) -> usize {
            item.2
        }
        fn has_room(&self, output: usize) -> bool {
            self.room[output] > 0
        }
        fn left_core(&mut self, item: &Item) {
            self.left.push((self.cycle, *item));
        }
        fn take(&mut self, output: usize, item: Item) {
            self.room[output] -= 1;
            self.taken.push((self.cycle, output, item));
        }
    }

    fn steps(tree: &mut Tree<Item>, taken: &mut Taken, cycles: std::ops::Range<u64>) {
        for cycle in cycles {
            taken.cycle = cycle;
            tree.step(cycle, taken);
        }
    }

    #[test]
    fn an_item_takes_a_cycle_a_level_and_cores_and_clusters_take_turns() {
        let mut tree = Tree::new(2, 2, 1, 2, 1);
        let mut taken = Taken { room: vec![100], ..Taken::default() };
        // Two cores of cluster 0 have two items each, and core 3 of cluster 1 has one, all from cycle 10 on.
        for (core, number) in [(0, 0), (0, 1), (1, 0), (1, 1), (3, 0)] {
            tree.push(core, 10, (core, number, 0));
        }
        steps(&mut tree, &mut taken, 10..30);
        let order: Vec<_> = taken.taken.iter().map(|&(cycle, _, item)| (cycle, item.0, item.1)).collect();
        // At 11 each cluster takes one. The output takes that of cluster 0 at 12 and that of cluster 1 at 13, while
        // cluster 0 fills its register.
        assert_eq!(order, [(12, 0, 0), (13, 3, 0), (14, 1, 0), (15, 0, 1), (16, 1, 1)]);
        // Its register of two is full at 13. The output frees a place at 14, so the next item is in at 15.
        let left: Vec<_> = taken.left.iter().map(|&(cycle, item)| (cycle, item.0, item.1)).collect();
        assert_eq!(left, [(11, 0, 0), (11, 3, 0), (12, 1, 0), (13, 0, 1), (15, 1, 1)]);
        assert!(tree.is_empty());
    }

    #[test]
    fn an_item_for_a_full_output_holds_up_those_behind_it() {
        let mut tree = Tree::new(1, 2, 2, 2, 1);
        let mut taken = Taken { room: vec![0, 9], ..Taken::default() };
        tree.push(0, 0, (0, 0, 0));
        tree.push(1, 0, (1, 0, 1));
        steps(&mut tree, &mut taken, 0..9);
        assert_eq!(taken.taken, [], "output 1 has room, and its item is behind one for output 0");
        taken.room[0] = 1;
        steps(&mut tree, &mut taken, 9..12);
        assert_eq!(taken.taken, [(9, 0, (0, 0, 0)), (10, 1, (1, 0, 1))]);
    }

    #[test]
    fn without_a_delay_an_item_passes_both_levels_in_a_cycle() {
        let mut tree = Tree::new(2, 2, 1, 2, 0);
        let mut taken = Taken { room: vec![100], ..Taken::default() };
        for core in 0..4 {
            tree.push(core, 5, (core, 0, 0));
        }
        steps(&mut tree, &mut taken, 5..12);
        let order: Vec<_> = taken.taken.iter().map(|&(cycle, _, item)| (cycle, item.0)).collect();
        assert_eq!(order, [(6, 0), (7, 2), (8, 1), (9, 3)]);
    }

    proptest! {
        /// Every item comes out once, and items of a core keep their order. An output and a cluster's arbiter each
        /// take one item a cycle. No item waits while its path is free.
        #[test]
        fn items_come_out_once_in_order_and_one_a_cycle(
            pushes in prop::collection::vec((0usize..8, 0u64..40, 0usize..3), 1..120),
            depth in 0usize..4,
            delay in 0u64..2,
        ) {
            let mut pushes = pushes;
            pushes.sort_by_key(|push| push.1);
            let mut tree = Tree::new(2, 4, 3, depth, delay);
            let mut taken = Taken { room: vec![usize::MAX; 3], ..Taken::default() };
            let mut coming = pushes.iter().enumerate().peekable();
            for cycle in 0..600 {
                taken.cycle = cycle;
                tree.step(cycle, &mut taken);
                while let Some((number, &(core, _, output))) = coming.next_if(|(_, push)| push.1 <= cycle) {
                    tree.push(core, cycle, (core, number, output));
                }
            }
            prop_assert!(tree.is_empty());
            prop_assert_eq!(taken.taken.len(), pushes.len());
            for core in 0..8 {
                let mine: Vec<_> = taken.taken.iter().filter(|taken| taken.2.0 == core).map(|taken| taken.2.1).collect();
                prop_assert!(mine.is_sorted());
            }
            for output in 0..3 {
                let cycles: Vec<_> = taken.taken.iter().filter(|taken| taken.1 == output).map(|taken| taken.0).collect();
                prop_assert!(cycles.is_sorted_by(|a, b| a < b), "one a cycle");
            }
            for cluster in 0..2 {
                let cycles: Vec<_> = taken.left.iter().filter(|left| left.1.0 / 4 == cluster).map(|left| left.0).collect();
                prop_assert!(cycles.is_sorted_by(|a, b| a < b), "one a cycle of a cluster");
            }
        }
    }
}
