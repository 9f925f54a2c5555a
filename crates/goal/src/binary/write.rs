//! Writes the binary format.

use super::{HEAD, MAGIC, NODE, ORIGIN};
use crate::schedule::{Kind, Op, Rank, Schedule};
use std::io::{self, Write};

/// Writes a schedule to a buffered destination.
///
/// # Errors
/// When the destination returns an error.
pub fn write(schedule: &Schedule, mut to: impl Write) -> io::Result<()> {
    let highest = |of: fn(&Op) -> u8| schedule.ops().iter().map(of).max().unwrap_or(0);
    to.write_all(&MAGIC.to_le_bytes())?;
    to.write_all(&schedule.ranks().to_le_bytes())?;
    to.write_all(&[highest(|op| op.cpu), highest(|op| op.nic)])?;
    let mut at = HEAD - ORIGIN + u64::from(schedule.ranks()) * 16;
    for rank in schedule.iter() {
        let (ops, edges) = (rank.ops.len() as u64, rank.edges() as u64);
        let end = at + 8 + 4 * roots(rank).count() as u64 + NODE * ops + 4 * edges;
        to.write_all(&at.to_le_bytes())?;
        to.write_all(&end.to_le_bytes())?;
        at = end;
    }
    for rank in schedule.iter() {
        block(rank, &mut to)?;
    }
    to.flush()
}

/// Returns the operations that depend on no other operation.
fn roots(rank: Rank<'_>) -> impl Iterator<Item = u32> {
    (0..).zip(rank.ops).filter(|(_, op)| op.dependencies == 0).map(|(number, _)| number)
}

fn block(rank: Rank<'_>, to: &mut impl Write) -> io::Result<()> {
    to.write_all(&(rank.ops.len() as u32).to_le_bytes())?;
    to.write_all(&(roots(rank).count() as u32).to_le_bytes())?;
    for root in roots(rank) {
        to.write_all(&root.to_le_bytes())?;
    }
    let mut first = 0;
    for (number, op) in rank.ops.iter().enumerate() {
        let dependents = rank.dependents(number);
        let on_end = dependents.iter().filter(|dependent| !dependent.on_start()).count() as u32;
        let on_start = dependents.len() as u32 - on_end;
        to.write_all(&node(op, [on_end, first, on_start, first + on_end]))?;
        first += on_end + on_start;
    }
    for number in 0..rank.ops.len() {
        for dependent in rank.dependents(number) {
            to.write_all(&dependent.op().to_le_bytes())?;
        }
    }
    Ok(())
}

fn node(op: &Op, dependents: [u32; 4]) -> [u8; NODE as usize] {
    let mut bytes = [0; NODE as usize];
    bytes[..4].copy_from_slice(&op.dependencies.to_le_bytes());
    bytes[4] = match op.kind {
        Kind::Send => 1,
        Kind::Recv => 2,
        Kind::Calc => 3,
    };
    bytes[5..9].copy_from_slice(&op.peer.to_le_bytes());
    bytes[9..17].copy_from_slice(&op.size.to_le_bytes());
    bytes[17..21].copy_from_slice(&op.tag.to_le_bytes());
    (bytes[21], bytes[22]) = (op.cpu, op.nic);
    for (place, word) in bytes[23..].chunks_exact_mut(4).zip(dependents) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
