//! New registers for values of a block, where two values in one register would wait for each other.

use super::blocks::{Blocks, Node};
use super::operation::{Operand, Operation, Registers};

/// Registers that a call reads or writes, and the frame pointer.
const FIXED: Registers = 0b100_0011_1111;

/// Gives values that live only in a block a register of their own, while there are free ones. Returns the number of renamed values.
pub(super) fn rename(blocks: &mut Blocks) -> usize {
    let live = blocks.live();
    let mut renamed = 0;
    for (block, (begin, end)) in blocks.0.iter_mut().zip(live).filter(|(block, _)| block.is_reached) {
        let nodes = &mut block.nodes;
        let calls = nodes.iter().any(|node| matches!(node.operation, Operation::Helper(_)));
        let used = nodes.iter().fold(begin | end, |used, node| {
            used | node.operation.reads() | node.operation.writes().map_or(0, |register| 1 << register)
        });
        let taken = if calls { used | FIXED } else { used | 1 << 10 | 1 };
        let mut free: Vec<u8> = (0..10).filter(|register| taken >> register & 1 == 0).collect();
        // Least recently given out first.
        for at in 0..nodes.len() {
            let Some(&register) = free.first() else { break };
            let Some(users) = users(nodes, at, end) else { continue };
            if !waits(nodes, at) {
                continue;
            }
            let old = nodes[at].operation.writes().expect("it has users");
            set_result(&mut nodes[at].operation, register);
            users.iter().for_each(|&user| set_operand(&mut nodes[user].operation, old, register));
            free.rotate_left(1);
            free.pop();
            renamed += 1;
        }
    }
    renamed
}

/// Whether an earlier operation of the block reads or writes the register of a result.
fn waits(nodes: &[Node], at: usize) -> bool {
    let Some(register) = nodes[at].operation.writes() else { return false };
    nodes[..at]
        .iter()
        .any(|node| node.operation.reads() >> register & 1 != 0 || node.operation.writes() == Some(register))
}

/// The operations that read a result, if all of them and the operation itself can name another register.
fn users(nodes: &[Node], at: usize, end: Registers) -> Option<Vec<usize>> {
    let renames = matches!(nodes[at].operation, Operation::Alu { .. } | Operation::Load { .. });
    let register = nodes[at].operation.writes().filter(|_| renames)?;
    let mut users = Vec::new();
    for (user, node) in nodes.iter().enumerate().skip(at + 1) {
        if node.operation.reads() >> register & 1 != 0 {
            let takes = matches!(
                node.operation,
                Operation::Alu { .. }
                    | Operation::Load { .. }
                    | Operation::Store { .. }
                    | Operation::Branch { .. }
            );
            if !takes {
                return None;
            }
            users.push(user);
        }
        if node.operation.writes() == Some(register) {
            return Some(users);
        }
    }
    (end >> register & 1 == 0).then_some(users)
}

fn set_result(operation: &mut Operation, register: u8) {
    if let Operation::Alu { dst, .. } | Operation::Load { dst, .. } = operation {
        *dst = register;
    }
}

fn set_operand(operation: &mut Operation, old: u8, new: u8) {
    let set = |register: &mut u8| {
        if *register == old {
            *register = new;
        }
    };
    match operation {
        Operation::Alu { a, b, .. } | Operation::Branch { a, b, .. } => {
            set(a);
            set_value(b, old, new);
        }
        Operation::Load { base, .. } => set(base),
        Operation::Store { base, value, .. } => {
            set(base);
            set_value(value, old, new);
        }
        _ => {}
    }
}

fn set_value(operand: &mut Operand, old: u8, new: u8) {
    if *operand == Operand::Reg(old) {
        *operand = Operand::Reg(new);
    }
}
