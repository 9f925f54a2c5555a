//! Blocks of operations, the ways between them, and the registers that live across them.

use super::operation::{Operation, Registers};

/// An operation and the slot that it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Node {
    pub operation: Operation,
    pub slot: u32,
}

/// Operations that always run together. Jumps lead to blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub nodes: Vec<Node>,
    /// Whether some way from the program's begin leads to it.
    pub is_reached: bool,
}

impl Block {
    fn ends(&self) -> bool {
        self.nodes.last().is_some_and(|node| node.operation.ends())
    }
}

/// The blocks of a program in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks(pub Vec<Block>);

impl Blocks {
    /// Cuts a program into blocks.
    pub fn of(nodes: Vec<Node>) -> Blocks {
        let mut leads = vec![false; nodes.len() + 1];
        leads[0] = true;
        for (at, node) in nodes.iter().enumerate() {
            if let Operation::Branch { to, .. } | Operation::Jump(to) = node.operation {
                leads[to] = true;
            }
            leads[at + 1] |= node.operation.is_control();
        }
        let number: Vec<usize> = leads
            .iter()
            .scan(0, |count, &leads| {
                *count += usize::from(leads);
                Some(*count - 1)
            })
            .collect();
        let mut blocks: Vec<Block> = Vec::new();
        for (at, mut node) in nodes.into_iter().enumerate() {
            if leads[at] {
                blocks.push(Block::default());
            }
            if let Operation::Branch { to, .. } | Operation::Jump(to) = &mut node.operation {
                *to = number[*to];
            }
            blocks.last_mut().expect("the first step leads").nodes.push(node);
        }
        let mut blocks = Blocks(blocks);
        blocks.reach();
        blocks
    }

    /// The blocks that can follow one.
    pub fn next(&self, block: usize) -> Vec<usize> {
        let mut next: Vec<usize> = Vec::new();
        for node in &self.0[block].nodes {
            if let Operation::Branch { to, .. } | Operation::Jump(to) = node.operation {
                next.push(to);
            }
        }
        if !self.0[block].ends() {
            next.push(block + 1);
        }
        next
    }

    /// The reached blocks that can precede each.
    pub fn before(&self) -> Vec<Vec<usize>> {
        let mut before = vec![Vec::new(); self.0.len()];
        for block in (0..self.0.len()).filter(|&block| self.0[block].is_reached) {
            for next in self.next(block) {
                before[next].push(block);
            }
        }
        before
    }

    /// Finds the blocks that some way leads to.
    pub fn reach(&mut self) {
        self.0.iter_mut().for_each(|block| block.is_reached = false);
        let mut waiting = vec![0];
        while let Some(block) = waiting.pop() {
            if !std::mem::replace(&mut self.0[block].is_reached, true) {
                waiting.extend(self.next(block));
            }
        }
    }

    /// Removes jumps to the next block, and joins blocks with only one way between them.
    pub fn join(&mut self) {
        loop {
            self.reach();
            let before = self.before();
            let mut is_changed = false;
            for block in 0..self.0.len() {
                if !self.0[block].is_reached {
                    self.0[block].nodes.clear();
                    continue;
                }
                if let Some(&Node { operation: Operation::Jump(to), .. }) = self.0[block].nodes.last()
                    && to > block
                    && (block + 1..to).all(|between| !self.0[between].is_reached)
                {
                    self.0[block].nodes.pop();
                    // The blocks between are empty, and lead on.
                    (block + 1..to).for_each(|between| self.0[between].nodes.clear());
                    is_changed = true;
                }
                let next = block + 1;
                let falls = self.0[block].nodes.last().is_none_or(|node| !node.operation.is_control());
                if falls && before.get(next).is_some_and(|before| before[..] == [block]) {
                    let moved = std::mem::take(&mut self.0[next].nodes);
                    is_changed |= !moved.is_empty();
                    self.0[block].nodes.extend(moved);
                }
            }
            if !is_changed {
                return;
            }
        }
    }

    /// The registers that live at the begin of each block, and at its end.
    pub fn live(&self) -> Vec<(Registers, Registers)> {
        let mut live = vec![(0, 0); self.0.len()];
        loop {
            let mut is_changed = false;
            for block in (0..self.0.len()).rev().filter(|&block| self.0[block].is_reached) {
                let out: Registers = self.next(block).into_iter().fold(0, |all, next| all | live[next].0);
                let begin =
                    self.0[block].nodes.iter().rev().fold(out, |after, node| live_before(node, after));
                is_changed |= live[block] != (begin, out);
                live[block] = (begin, out);
            }
            if !is_changed {
                return live;
            }
        }
    }

    /// Removes operations with results that nothing reads.
    pub fn drop_unread(&mut self) -> usize {
        let mut dropped = 0;
        loop {
            let live = self.live();
            let before = dropped;
            for (block, (_, out)) in self.0.iter_mut().zip(live) {
                let mut after = out;
                let mut kept = Vec::new();
                for node in block.nodes.drain(..).rev() {
                    let is_read = node.operation.writes().is_none_or(|register| after >> register & 1 != 0);
                    if !is_read && node.operation.is_pure() {
                        dropped += 1;
                        continue;
                    }
                    after = live_before(&node, after);
                    kept.push(node);
                }
                kept.reverse();
                block.nodes = kept;
            }
            if before == dropped {
                return dropped;
            }
        }
    }

    /// For each block, the blocks that every way to it passes.
    pub fn dominators(&self) -> Vec<Vec<bool>> {
        let before = self.before();
        self.passed(|block| block == 0, &before)
    }

    /// For each block, the blocks that every way from it to an end passes. A block that only loops has all.
    pub fn postdominators(&self) -> Vec<Vec<bool>> {
        let next: Vec<Vec<usize>> = (0..self.0.len()).map(|block| self.next(block)).collect();
        let leaves = |block: usize| {
            self.0[block]
                .nodes
                .iter()
                .any(|node| matches!(node.operation, Operation::Exit | Operation::ExitWith(_)))
        };
        self.passed(leaves, &next)
    }

    fn passed(&self, is_root: impl Fn(usize) -> bool, neighbours: &[Vec<usize>]) -> Vec<Vec<bool>> {
        let count = self.0.len();
        let mut passed = vec![vec![true; count]; count];
        let mut is_changed = true;
        while is_changed {
            is_changed = false;
            for block in (0..count).filter(|&block| self.0[block].is_reached) {
                let mut met: Vec<bool> = vec![!is_root(block); count];
                for &other in neighbours[block].iter().filter(|_| !is_root(block)) {
                    (0..count).for_each(|at| met[at] &= passed[other][at]);
                }
                met[block] = true;
                if met != passed[block] {
                    passed[block] = met;
                    is_changed = true;
                }
            }
        }
        passed
    }
}

/// The registers that live before an operation, from those behind it.
pub(super) fn live_before(node: &Node, after: Registers) -> Registers {
    let written = node.operation.writes().map_or(0, |register| 1 << register);
    // A branch or guard keeps what lives where it leads: the caller has that in the block's end.
    (after & !written) | node.operation.reads()
}
