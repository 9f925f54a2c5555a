//! Copies of six bytes in parts become one load and one store.

use super::blocks::{Blocks, Node};
use super::effects::{Effect, effect};
use super::facts::{Area, State, states};
use super::operation::{Operand, Operation, Registers};

/// Bytes of an Ethernet address.
const SIX: i64 = 6;

/// A load, and the store of its value.
#[derive(Clone, Copy, Debug)]
struct Copy {
    load: usize,
    store: usize,
    from: (u8, i32),
    to: (u8, i32),
    bytes: u8,
    register: u8,
}

/// Joins copies, and returns their number.
pub(super) fn six_bytes(blocks: &mut Blocks) -> usize {
    let mut joined = 0;
    loop {
        let (before, live) = (states(blocks), blocks.live());
        let mut is_changed = false;
        for (block, states) in before.iter().enumerate() {
            if !blocks.0[block].is_reached {
                continue;
            }
            if let Some(nodes) = join(&blocks.0[block].nodes, states, live[block].1) {
                blocks.0[block].nodes = nodes;
                is_changed = true;
                joined += 1;
            }
        }
        if !is_changed {
            return joined;
        }
    }
}

/// Joins the parts of one copy; none where there is no such copy.
fn join(nodes: &[Node], states: &[State], live: Registers) -> Option<Vec<Node>> {
    let copies: Vec<Copy> = (0..nodes.len()).filter_map(|at| copy(nodes, at, live)).collect();
    copies.iter().find_map(|first| {
        let group = group(&copies, first)?;
        replaced(nodes, states, &group)
    })
}

/// The copy that a load begins. Nothing else reads its register.
fn copy(nodes: &[Node], load: usize, live: Registers) -> Option<Copy> {
    let Operation::Load { dst, base, at, bytes, signed: false } = nodes[load].operation else { return None };
    let is_read = |node: &Node| node.operation.reads() >> dst & 1 != 0;
    let is_written = |node: &Node| node.operation.writes() == Some(dst);
    let store = load + 1 + nodes[load + 1..].iter().position(|node| is_read(node) || is_written(node))?;
    let Operation::Store { base: to, at: far, bytes: same, value: Operand::Reg(_) } = nodes[store].operation
    else {
        return None;
    };
    if same != bytes || to == dst || base == dst {
        return None;
    }
    let after = nodes[store + 1..].iter().find(|node| is_read(node) || is_written(node));
    let is_dead = after.map_or(live >> dst & 1 == 0, |node| !is_read(node));
    is_dead.then_some(Copy { load, store, from: (base, at), to: (to, far), bytes, register: dst })
}

/// The copies that continue a first one up to six bytes.
fn group(copies: &[Copy], first: &Copy) -> Option<Vec<Copy>> {
    let mut group = vec![*first];
    let mut bytes = i64::from(first.bytes);
    while bytes < SIX {
        let moved = |(base, at): (u8, i32)| (base, at.wrapping_add(bytes as i32));
        let (from, to) = (moved(first.from), moved(first.to));
        let next = copies.iter().find(|copy| copy.from == from && copy.to == to)?;
        bytes += i64::from(next.bytes);
        group.push(*next);
    }
    (bytes == SIX && group.len() > 1).then_some(group)
}

fn replaced(nodes: &[Node], states: &[State], group: &[Copy]) -> Option<Vec<Node>> {
    let loads = span(group.iter().map(|copy| copy.load));
    let stores = span(group.iter().map(|copy| copy.store));
    let first = group[0];
    let own = |at: usize| group.iter().any(|copy| copy.load == at || copy.store == at);
    let holder = *group.iter().filter(|copy| copy.load < stores.0 || copy.load == loads.0).find(|copy| {
        (copy.load + 1..=stores.1).filter(|&at| !own(at)).all(|at| {
            let operation = nodes[at].operation;
            operation.reads() >> copy.register & 1 == 0 && operation.writes() != Some(copy.register)
        }) && copy.register != first.to.0
            && copy.register != first.from.0
    })?;
    let moves = |copy: &Copy| {
        let from = states[copy.load].area(copy.from.0, copy.from.1, copy.bytes);
        let to = states[copy.store].area(copy.to.0, copy.to.1, copy.bytes);
        // The load goes to that of the holder, and the store to the last one. Stores of the group stand at its end then.
        let over = |a: usize, b: usize| a.min(b) + 1..a.max(b);
        over(copy.load, holder.load).all(|at| {
            let changes = nodes[at].operation.writes() == Some(copy.from.0);
            !changes && lets_pass(&nodes[at], &states[at], &from, false)
        }) && over(copy.store, stores.1).all(|at| {
            let changes = nodes[at].operation.writes() == Some(copy.to.0);
            !changes && (own(at) || lets_pass(&nodes[at], &states[at], &to, true))
        })
    };
    // Joined, all loads of the group stand in front of all of its stores.
    if !group.iter().all(moves) || !keeps_order(states, group) {
        return None;
    }
    let fused = (
        Operation::Load {
            dst: holder.register,
            base: first.from.0,
            at: first.from.1,
            bytes: SIX as u8,
            signed: false,
        },
        Operation::Store {
            base: first.to.0,
            at: first.to.1,
            bytes: SIX as u8,
            value: Operand::Reg(holder.register),
        },
    );
    let kept = nodes.iter().enumerate().filter_map(|(at, node)| match at {
        _ if at == holder.load => Some(Node { operation: fused.0, ..*node }),
        _ if at == stores.1 => Some(Node { operation: fused.1, ..*node }),
        _ => (!own(at)).then_some(*node),
    });
    Some(kept.collect())
}

/// Whether the group's loads stand in front of its stores to the same bytes, as they do when joined.
fn keeps_order(states: &[State], group: &[Copy]) -> bool {
    group.iter().all(|copy| {
        let from = states[copy.load].area(copy.from.0, copy.from.1, copy.bytes);
        group.iter().all(|other| {
            let to = states[other.store].area(other.to.0, other.to.1, other.bytes);
            copy.load < other.store || !from.meets(&to)
        })
    })
}

/// Whether a load or a store of some bytes may change places with an operation.
fn lets_pass(node: &Node, state: &State, bytes: &Area, is_store: bool) -> bool {
    match effect(&node.operation, state) {
        Effect::None => true,
        Effect::Load(area) => !is_store || !area.meets(bytes),
        Effect::Store(area) => !area.meets(bytes),
        _ => false,
    }
}

fn span(of: impl Iterator<Item = usize>) -> (usize, usize) {
    of.fold((usize::MAX, 0), |(first, last), at| (first.min(at), last.max(at)))
}
