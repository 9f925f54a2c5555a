//! Fewer operations for the same result: checks of bounds, zeroing, three operands, constant results.

use super::blocks::{Blocks, Node};
use super::facts::{Known, State, states};
use super::operation::{Operand, Operation};
use crate::op::{Alu, Condition};

/// The longest packet that a check may ask for.
const LONGEST: i64 = 1 << 16;
/// The most blocks on the way of a failed check to the end.
const WAY: usize = 16;

/// Replaces comparisons with `data_end` by checks of the packet's length outside the lanes. The failed way must end with a constant.
pub(super) fn checks(blocks: &mut Blocks) -> usize {
    let before = states(blocks);
    let mut guards = Vec::new();
    for (block, nodes) in blocks.0.iter().enumerate().filter(|(_, block)| block.is_reached) {
        let (Some(node), Some(state)) = (nodes.nodes.last(), before[block].last()) else { continue };
        let Operation::Branch { condition, wide: true, a, b, to } = node.operation else { continue };
        let compared = compared(condition, state.registers[usize::from(a)], state.of(b));
        let Some((bytes, fails_at_jump)) = compared else { continue };
        let (fails, goes_on) = if fails_at_jump { (to, block + 1) } else { (block + 1, to) };
        if let Some(result) = result(blocks, fails, state.clone()) {
            let guard = Operation::Guard { bytes: bytes as u32, result };
            guards.push((block, Node { operation: guard, ..*node }, goes_on));
        }
    }
    for &(block, guard, goes_on) in &guards {
        let nodes = &mut blocks.0[block].nodes;
        nodes.pop();
        nodes.push(guard);
        if goes_on != block + 1 {
            nodes.push(Node { operation: Operation::Jump(goes_on), ..guard });
        }
    }
    guards.len()
}

/// The bytes that a comparison with `data_end` asks for, and whether the jump is the failed way.
fn compared(condition: Condition, a: Known, b: Known) -> Option<(i64, bool)> {
    let (condition, at) = match (a, b) {
        (Known::Packet(at), Known::PacketEnd) => (condition, at?),
        (Known::PacketEnd, Known::Packet(at)) => (mirrored(condition), at?),
        _ => return None,
    };
    let (bytes, fails_at_jump) = match condition {
        Condition::Above => (at, true),
        Condition::AboveOrEqual => (at + 1, true),
        Condition::Below => (at + 1, false),
        Condition::BelowOrEqual => (at, false),
        _ => return None,
    };
    (0..=LONGEST).contains(&bytes).then_some((bytes, fails_at_jump))
}

fn mirrored(condition: Condition) -> Condition {
    match condition {
        Condition::Above => Condition::Below,
        Condition::AboveOrEqual => Condition::BelowOrEqual,
        Condition::Below => Condition::Above,
        Condition::BelowOrEqual => Condition::AboveOrEqual,
        other => other,
    }
}

/// The constant result of a way without memory, helpers and branches.
fn result(blocks: &Blocks, mut block: usize, mut state: State) -> Option<u32> {
    for _ in 0..WAY {
        let mut next = block + 1;
        for node in &blocks.0[block].nodes {
            match node.operation {
                Operation::Exit => {
                    return match state.registers[0] {
                        Known::Number(number) => Some(number as u32),
                        _ => None,
                    };
                }
                Operation::ExitWith(result) => return Some(result),
                Operation::Jump(to) => next = to,
                Operation::Load { .. } => return None,
                operation if operation.is_pure() => state.pass(&operation),
                _ => return None,
            }
        }
        block = next;
    }
    None
}

/// Removes stores of 0 to bytes of the stack that are 0, and moves of 0 to registers that are 0.
pub(super) fn zeroing(blocks: &mut Blocks) -> usize {
    let before = states(blocks);
    let mut removed = 0;
    for (block, states) in blocks.0.iter_mut().zip(before).filter(|(block, _)| block.is_reached) {
        let mut states = states.into_iter();
        block.nodes.retain(|node| {
            let Some(state) = states.next() else { return true };
            let is_zero = match node.operation {
                Operation::Store { base, at, bytes, value } => {
                    let bytes = state.stack_bytes(&state.area(base, at, bytes));
                    state.of(value) == Known::Number(0) && bytes.is_some_and(|bytes| state.is_zero(bytes))
                }
                Operation::Alu { alu: Alu::Mov, dst, b: Operand::Imm(0), .. } => {
                    state.registers[usize::from(dst)] == Known::Number(0)
                }
                _ => false,
            };
            removed += usize::from(is_zero);
            !is_zero
        });
    }
    removed
}

/// Joins a move with the arithmetic behind it: `a = b; a += c` becomes `a = b + c`.
pub(super) fn three_operands(blocks: &mut Blocks) -> usize {
    let mut joined = 0;
    for block in &mut blocks.0 {
        let nodes = &mut block.nodes;
        let mut at = 0;
        while at < nodes.len() {
            match partner(nodes, at) {
                Some((user, operation)) => {
                    nodes[user].operation = operation;
                    nodes.remove(at);
                    joined += 1;
                }
                None => at += 1,
            }
        }
    }
    joined
}

/// The arithmetic that can take the operand of a move, in its new form.
fn partner(nodes: &[Node], at: usize) -> Option<(usize, Operation)> {
    let Operation::Alu { alu: Alu::Mov, wide: true, dst: moved, b: Operand::Reg(from), .. } =
        nodes[at].operation
    else {
        return None;
    };
    for (user, node) in nodes.iter().enumerate().skip(at + 1) {
        let operation = node.operation;
        if let Operation::Alu { alu, wide, dst, a, b } = operation
            && alu != Alu::Mov
            && (dst, a) == (moved, moved)
            && b != Operand::Reg(moved)
        {
            return Some((user, Operation::Alu { alu, wide, dst, a: from, b }));
        }
        let writes = operation.writes();
        if operation.reads() >> moved & 1 != 0
            || writes == Some(moved)
            || writes == Some(from)
            || operation.is_control()
        {
            return None;
        }
    }
    None
}

/// Puts a constant result into the exit.
pub(super) fn exit_values(blocks: &mut Blocks) -> usize {
    let mut joined = 0;
    for block in &mut blocks.0 {
        let Some(Node { operation: Operation::Exit, .. }) = block.nodes.last() else { continue };
        let written = block.nodes.iter().rposition(|node| node.operation.writes() == Some(0));
        let Some(written) = written else { continue };
        let Operation::Alu { alu: Alu::Mov, b: Operand::Imm(number), .. } = block.nodes[written].operation
        else {
            continue;
        };
        if block.nodes[written + 1..block.nodes.len() - 1].iter().any(|node| node.operation.reads() & 1 != 0)
        {
            continue;
        }
        block.nodes.last_mut().expect("it has an exit").operation = Operation::ExitWith(number as u32);
        block.nodes.remove(written);
        joined += 1;
    }
    joined
}
