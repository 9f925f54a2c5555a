//! Places operations in rows: block by block, in the order of the program, each in the first row that takes it.

use super::Switches;
use super::blocks::{Block, Blocks, Node};
use super::effects::{Distance, Effect, distance, effect};
use super::facts::{State, states};
use super::operation::{Operation, Registers};
use super::row::{Placed, Row, Wanted, assign};

/// The most blocks of a program with operations that move to earlier blocks.
const MOST_BLOCKS: usize = 512;
/// The distance in blocks within which operations move.
const NEAR: usize = 64;

/// The order of loads and stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// A load waits for an earlier store that may have the same bytes, and so on.
    InOrder,
    /// Loads and stores depend on registers alone.
    Ignored,
}

/// An operation with its effect.
#[derive(Clone, Copy)]
struct Item {
    node: Node,
    effect: Effect,
}

/// An operation in a row of a block.
#[derive(Clone, Copy)]
struct Seated {
    item: Item,
    /// The lanes that it may take.
    lanes: u32,
}

/// The rows of a block: checks, and operations in lanes.
#[derive(Clone, Default)]
struct Seats {
    guards: Vec<Item>,
    seated: Vec<Seated>,
    lanes: Vec<usize>,
}

impl Seats {
    /// Lanes for all with a further operation. `pinned` keeps the lanes of the others, since a later row may forward from them.
    fn takes(&self, seated: Seated, switches: &Switches, pinned: bool) -> Option<Vec<usize>> {
        let helpers = |operation: &Operation| matches!(operation, Operation::Helper(_));
        if helpers(&seated.item.node.operation)
            && self.seated.iter().any(|other| helpers(&other.item.node.operation))
        {
            return None;
        }
        let wanted =
            |seated: &Seated, lanes| Wanted { lanes, is_control: seated.item.node.operation.is_control() };
        let own = |(at, other): (usize, &Seated)| {
            wanted(other, if pinned { self.lane_of(at) } else { other.lanes })
        };
        let mut all: Vec<Wanted> = self.seated.iter().enumerate().map(own).collect();
        all.push(wanted(&seated, seated.lanes));
        assign(&all, usize::from(switches.lanes))
    }

    fn lane_of(&self, slot: usize) -> u32 {
        1 << self.lanes[slot]
    }

    fn has_control(&self) -> bool {
        self.seated.iter().any(|seated| seated.item.node.operation.is_control())
    }
}

/// The row of an operation, and its number among those of the row.
#[derive(Clone, Copy)]
struct Place {
    row: usize,
    index: usize,
}

/// The earlier operations that each operation depends on, the latest first.
fn needs(items: &[Item]) -> Vec<Vec<(usize, Distance)>> {
    let of = |at: usize| {
        let second = (&items[at].node.operation, items[at].effect);
        let to = |other: usize| {
            let first = (&items[other].node.operation, items[other].effect);
            Some((other, distance(first, second)?))
        };
        (0..at).rev().filter_map(to).collect()
    };
    (0..items.len()).map(of).collect()
}

/// A placed program before rows have numbers.
pub(super) struct Placing<'s> {
    switches: &'s Switches,
    blocks: Blocks,
    items: Vec<Vec<Item>>,
    before: Vec<Vec<usize>>,
    rows: Vec<Vec<Seats>>,
    /// Whether the only operation of a block went into the last row of an earlier one.
    merged: Vec<bool>,
    /// Operations that went into rows of earlier blocks.
    pub moved: usize,
}

/// Places the blocks of a program in rows.
pub(super) fn place(blocks: Blocks, switches: &Switches, memory: Memory) -> (Vec<Row>, usize) {
    let before = blocks.before();
    let items = items(&blocks, memory);
    let count = blocks.0.len();
    let mut placing = Placing {
        switches,
        blocks,
        items,
        before,
        rows: vec![Vec::new(); count],
        merged: vec![false; count],
        moved: 0,
    };
    let moves = switches.movement && count <= MOST_BLOCKS;
    let ways = moves.then(|| (placing.blocks.dominators(), placing.blocks.postdominators()));
    for block in 0..count {
        placing.block(block);
        if let Some((dominators, postdominators)) = &ways {
            for later in block + 1..count.min(block + NEAR) {
                let is_equivalent = dominators[later][block] && postdominators[block][later];
                // Both run equally often: none of them repeats without the other.
                let repeats = || placing.repeats(later, block) || placing.repeats(block, later);
                if placing.blocks.0[later].is_reached && is_equivalent && !repeats() {
                    placing.move_up(block, later);
                }
            }
        }
    }
    let moved = placing.moved;
    (placing.numbered(), moved)
}

fn items(blocks: &Blocks, memory: Memory) -> Vec<Vec<Item>> {
    let of = |(block, states): (&Block, Vec<State>)| {
        let with = |(node, state): (&Node, State)| {
            let effect = match effect(&node.operation, &state) {
                Effect::Load(_) | Effect::Store(_) if memory == Memory::Ignored => Effect::None,
                ordered => ordered,
            };
            Item { node: *node, effect }
        };
        block.nodes.iter().zip(states).map(with).collect()
    };
    blocks.0.iter().zip(states(blocks)).map(of).collect()
}

impl Placing<'_> {
    fn all_lanes(&self) -> u32 {
        (1 << self.switches.lanes) - 1
    }

    /// The lanes that an operation may take in a row; none where it has to wait.
    fn lanes(&self, item: &Item, earlier: impl Iterator<Item = u32>) -> Option<u32> {
        let mut lanes = self.all_lanes();
        if self.switches.lane_forwarding {
            earlier.for_each(|lane| lanes &= lane);
        }
        if item.node.operation.is_control() && !self.switches.branches_in_any_lane {
            lanes &= 1;
        }
        (lanes != 0).then_some(lanes)
    }

    /// The lanes of values from the last rows of the blocks in front of one; none where a value's lane is unknown.
    fn arriving(&self, block: usize, reads: Registers) -> Option<Vec<u32>> {
        let (mut lanes, mut seen) = (Vec::new(), vec![false; self.blocks.0.len()]);
        let mut waiting = self.before[block].clone();
        while let Some(other) = waiting.pop() {
            if std::mem::replace(&mut seen[other], true) {
                continue;
            }
            // Blocks from this one on are not placed yet, so that the lanes of their values are unknown.
            if other >= block && self.writes(other, reads) {
                return None;
            }
            let last = self.rows[other].last().filter(|_| other < block);
            if let Some(last) = last {
                let arrives = |(_, seated): &(usize, &Seated)| writes(&seated.item.node, reads);
                let seated = last.seated.iter().enumerate().filter(arrives);
                lanes.extend(seated.map(|(at, _)| last.lane_of(at)));
            } else if other < block || (other > block && !self.keeps_rows(other)) {
                // Values pass a block without rows.
                waiting.extend(&self.before[other]);
            }
        }
        Some(lanes)
    }

    /// Whether a block has an operation that writes one of some registers.
    fn writes(&self, block: usize, registers: Registers) -> bool {
        self.blocks.0[block].nodes.iter().any(|node| writes(node, registers))
    }

    /// Whether a block has an operation that no other block takes: only pure ones move, and only a control is merged.
    fn keeps_rows(&self, block: usize) -> bool {
        let stays = |node: &Node| !node.operation.is_pure() && !node.operation.is_control();
        self.blocks.0[block].nodes.iter().any(stays)
    }

    /// The place of an operation in a row of a block, behind those that are there already.
    fn fits(&self, block: usize, row: usize, item: &Item) -> Option<Seated> {
        let mut lanes = Vec::new();
        for (other_row, seats) in self.rows[block].iter().enumerate() {
            let guards = seats.guards.iter().map(|guard| (guard, 0));
            let seated = seats.seated.iter().enumerate().map(|(at, s)| (&s.item, seats.lane_of(at)));
            for (other, lane) in guards.chain(seated) {
                let first = (&other.node.operation, other.effect);
                let Some(distance) = distance(first, (&item.node.operation, item.effect)) else { continue };
                if other_row + distance.rows > row {
                    return None;
                }
                if distance.forwards && other_row + 1 == row {
                    lanes.push(lane);
                }
            }
        }
        self.seated(block, row, item, lanes)
    }

    fn block(&mut self, block: usize) {
        let items = std::mem::take(&mut self.items[block]);
        if !self.blocks.0[block].is_reached || items.is_empty() || self.merge(block, &items) {
            return;
        }
        let needs = needs(&items);
        let mut places: Vec<Option<Place>> = vec![None; items.len()];
        let mut left = items.len();
        while left > 0 {
            let row = self.rows[block].len();
            self.rows[block].push(Seats::default());
            for (at, item) in items.iter().enumerate() {
                if places[at].is_some() {
                    continue;
                }
                let Some(seated) = self.ready(block, item, &needs[at], &places) else { continue };
                let index = self.rows[block][row].seated.len();
                if self.seat(block, row, seated, false) {
                    places[at] = Some(Place { row, index });
                    left -= 1;
                }
            }
        }
    }

    /// An operation for the last row of a block, if all that it needs has a place.
    fn ready(
        &self,
        block: usize,
        item: &Item,
        needs: &[(usize, Distance)],
        places: &[Option<Place>],
    ) -> Option<Seated> {
        let row = self.rows[block].len() - 1;
        let mut lanes = Vec::new();
        for &(other, distance) in needs {
            let place = places[other]?;
            if place.row + distance.rows > row {
                return None;
            }
            if distance.forwards && place.row + 1 == row {
                lanes.push(self.rows[block][place.row].lane_of(place.index));
            }
        }
        self.seated(block, row, item, lanes)
    }

    /// An operation with the lanes that the values from the row before leave it.
    fn seated(&self, block: usize, row: usize, item: &Item, mut lanes: Vec<u32>) -> Option<Seated> {
        if row == 0 && self.switches.lane_forwarding && !takes_late(&item.node.operation) {
            lanes.extend(self.arriving(block, item.node.operation.reads())?);
        }
        Some(Seated { item: *item, lanes: self.lanes(item, lanes.into_iter())? })
    }

    fn seat(&mut self, block: usize, row: usize, seated: Seated, pinned: bool) -> bool {
        if matches!(seated.item.effect, Effect::Guard) {
            self.rows[block][row].guards.push(seated.item);
            return true;
        }
        let Some(lanes) = self.rows[block][row].takes(seated, self.switches, pinned) else {
            return false;
        };
        let seats = &mut self.rows[block][row];
        seats.seated.push(seated);
        seats.lanes = lanes;
        true
    }

    /// Puts the only operation of a block, a jump or an end, beside the jump in front of it, with less priority.
    fn merge(&mut self, block: usize, items: &[Item]) -> bool {
        let [item] = items else { return false };
        let alone = block.checked_sub(1).filter(|before| self.before[block][..] == [*before]);
        let (Some(front), true) = (alone, self.switches.branches_in_any_lane) else { return false };
        if !item.node.operation.is_control() {
            return false;
        }
        let mut home = front;
        while self.merged[home] && home > 0 {
            home -= 1;
        }
        let Some(row) = self.rows[home].len().checked_sub(1) else { return false };
        if !self.rows[home][row].has_control() {
            return false;
        }
        let Some(seated) = self.fits(home, row, item) else { return false };
        self.merged[block] = self.seat(home, row, seated, false);
        self.merged[block]
    }

    /// Fills gaps in the rows of a block with operations of a later one that runs if and only if the block runs.
    fn move_up(&mut self, block: usize, later: usize) {
        let lanes = usize::from(self.switches.lanes);
        if self.rows[block].iter().all(|seats| seats.seated.len() == lanes) {
            return;
        }
        let between = self.between(block, later);
        let mut live = self.blocks.live()[block].1;
        let mut passed = Passed::default();
        between.iter().for_each(|&other| self.items[other].iter().for_each(|item| passed.add(item)));
        for &other in &between {
            for seats in &self.rows[other] {
                seats.guards.iter().for_each(|item| passed.add(item));
                seats.seated.iter().for_each(|seated| passed.add(&seated.item));
            }
        }
        let mut at = 0;
        while at < self.items[later].len() {
            let item = self.items[later][at];
            let dead = item.node.operation.writes().is_some_and(|register| live >> register & 1 == 0);
            let row = (dead && passed.lets(&item)).then(|| self.gap(block, &item)).flatten();
            match row {
                Some((row, seated)) => {
                    self.seat(block, row, seated, true);
                    self.items[later].remove(at);
                    self.moved += 1;
                    // Later moves see the longer life of its operands.
                    self.blocks.0[later].nodes.retain(|node| *node != item.node);
                    let nodes = &mut self.blocks.0[block].nodes;
                    let end = nodes.iter().position(|node| node.operation.is_control());
                    nodes.insert(end.unwrap_or(nodes.len()), item.node);
                    live = self.blocks.live()[block].1;
                }
                None => {
                    passed.add(&item);
                    at += 1;
                }
            }
        }
    }

    /// The first row of a block that takes an operation from behind it.
    fn gap(&self, block: usize, item: &Item) -> Option<(usize, Seated)> {
        (0..self.rows[block].len()).find_map(|row| {
            let seated = self.fits(block, row, item)?;
            self.rows[block][row].takes(seated, self.switches, true)?;
            Some((row, seated))
        })
    }

    /// Whether a block may run again without another one in between.
    fn repeats(&self, block: usize, other: usize) -> bool {
        self.between(block, other).iter().any(|&between| self.blocks.next(between).contains(&block))
            || self.blocks.next(block).contains(&block)
    }

    /// The blocks on ways from one to another.
    fn between(&self, block: usize, later: usize) -> Vec<usize> {
        let (mut found, mut waiting) = (Vec::new(), self.blocks.next(block));
        let mut is_seen = vec![false; self.blocks.0.len()];
        while let Some(other) = waiting.pop() {
            if other != later && other != block && !std::mem::replace(&mut is_seen[other], true) {
                found.push(other);
                waiting.extend(self.blocks.next(other));
            }
        }
        found
    }

    /// The rows of all blocks, one behind another, with rows as the destinations of jumps.
    fn numbered(self) -> Vec<Row> {
        let mut first = Vec::new();
        let mut count = 0;
        for rows in &self.rows {
            first.push(count);
            count += rows.len();
        }
        let lanes = usize::from(self.switches.lanes);
        let placed = |item: &Item| {
            let mut operation = item.node.operation;
            if let Operation::Branch { to, .. } | Operation::Jump(to) = &mut operation {
                *to = first[*to];
            }
            Placed { operation, slot: item.node.slot }
        };
        let row = |seats: &Seats| {
            let mut row = Row { guards: seats.guards.iter().map(placed).collect(), lanes: vec![None; lanes] };
            for (seated, &lane) in seats.seated.iter().zip(&seats.lanes) {
                row.lanes[lane] = Some(placed(&seated.item));
            }
            row
        };
        self.rows.iter().flatten().map(row).collect()
    }
}

/// The operations that another one would overtake.
#[derive(Default)]
struct Passed {
    reads: Registers,
    writes: Registers,
    /// Whether there are stores, helpers or checks.
    has_effects: bool,
}

impl Passed {
    fn add(&mut self, item: &Item) {
        self.reads |= item.node.operation.reads();
        self.writes |= item.node.operation.writes().map_or(0, |register| 1 << register);
        self.has_effects |= !matches!(item.effect, Effect::None | Effect::Load(_));
    }

    fn lets(&self, item: &Item) -> bool {
        let operation = &item.node.operation;
        let written: Registers = operation.writes().map_or(0, |register| 1 << register);
        let free = self.writes & operation.reads() == 0 && (self.reads | self.writes) & written == 0;
        let quiet = matches!(item.effect, Effect::None) || !self.has_effects;
        operation.is_pure() && free && quiet
    }
}

/// Whether an operation writes one of some registers.
fn writes(node: &Node, registers: Registers) -> bool {
    node.operation.writes().is_some_and(|register| registers >> register & 1 != 0)
}

/// Whether an operation finds results of its own row, in any lane.
fn takes_late(operation: &Operation) -> bool {
    matches!(operation, Operation::Exit | Operation::Helper(_))
}
