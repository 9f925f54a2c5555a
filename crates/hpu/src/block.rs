//! Straight-line code blocks, decoded once and shared by all cores.

use crate::core::Core;
use crate::decode::{Class, Inst, Kind, decode};
use crate::op::Op;
use crate::overlap::Step;

/// Maximum length of a block, so that resuming inside code does not decode much of it twice.
const MAX_OPS: usize = 32;

/// The stack pointer's register number.
const SP: u8 = 2;

/// Instructions of a slice, and the memory accesses among them, packed into one number: counting both costs a block one
/// addition. A slice has fewer than 2^32 instructions, since it has at most 2^31 cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count(u64);

impl Count {
    pub const ZERO: Count = Count(0);

    /// The counts of a block before this operation of it.
    #[inline]
    pub const fn before(op: &Op) -> Count {
        Count(op.index as u64 | (op.accesses as u64) << 32)
    }

    /// Adds an instruction, which may access memory.
    const fn and(self, accesses: bool) -> Count {
        Count(self.0 + 1 + ((accesses as u64) << 32))
    }

    pub const fn instructions(self) -> u64 {
        self.0 & 0xffff_ffff
    }

    pub const fn accesses(self) -> u64 {
        self.0 >> 32
    }
}

impl std::ops::Add for Count {
    type Output = Count;

    #[inline(always)]
    fn add(self, other: Count) -> Count {
        Count(self.0 + other.0)
    }
}

/// Code from one address up to its first jump, branch, ordering point, change of the stack pointer or end.
#[derive(Debug)]
pub(crate) struct Block {
    pub pc: u32,
    /// Its number among the blocks of its image, in the order in which they were decoded.
    pub number: u32,
    /// The address after its last instruction.
    pub end: u32,
    /// The address of the instruction that ends it.
    pub last_pc: u32,
    /// Cycles when it is left at its end, and when its branch is taken.
    pub through: u32,
    pub taken: u32,
    /// The registers its first instruction reads.
    pub first_reads: u64,
    /// The register that its last instruction loads, or zero.
    pub last_load: u8,
    /// Its instructions, and the number of them that access memory.
    pub count: Count,
    /// Start of its last operation, in cycles.
    pub last_before: u32,
    /// At least one. The last one always ends the block.
    pub ops: Box<[Op]>,
    /// The same operations for the instruction window of a core that has one.
    pub steps: Box<[Step]>,
}

impl Block {
    /// Decodes the block at `pc`, the start of `code`.
    pub(crate) fn decode(code: &[u8], pc: u32, core: &Core) -> Block {
        let costs = &core.costs;
        let (mut ops, mut steps) = (Vec::with_capacity(8), Vec::new());
        let (mut cycles, mut offset, mut loaded, mut first_reads) = (0u32, 0usize, 0u8, 0u64);
        let (mut moved_stack, mut count) = (false, Count::ZERO);
        loop {
            let at = pc.wrapping_add(offset as u32);
            let inst = decode(&code[offset..], at, &core.isa).unwrap_or(ILLEGAL);
            if ops.is_empty() {
                first_reads = inst.reads;
            }
            // The stack pointer is compared with its limit at the start of a block.
            let full = ops.len() == MAX_OPS || moved_stack;
            if !full && inst.reads & mask(loaded) != 0 {
                cycles += u32::from(costs.load_use);
            }
            let inst = if full { Inst { kind: Kind::Through, len: 0, ..inst } } else { inst };
            if core.overlap.is_some() {
                steps.push(Step::of(&inst, costs));
            }
            ops.push(Op {
                kind: if does_nothing(&inst) { Kind::Nop } else { inst.kind },
                rd: inst.rd,
                rs1: inst.rs1,
                rs2: inst.rs2,
                imm: inst.imm,
                before: cycles,
                offset: offset as u8,
                index: ops.len() as u8,
                len: inst.len,
                accesses: count.accesses() as u8,
            });
            if !full {
                count = count.and(inst.kind.accesses());
            }
            if inst.kind.ends_block() {
                let before = cycles;
                return Block {
                    pc,
                    number: 0,
                    end: at.wrapping_add(u32::from(inst.len)),
                    last_pc: at,
                    through: before + costs.of(inst.kind),
                    taken: before + u32::from(costs.branch_taken.max(1)),
                    first_reads,
                    last_load: if full { loaded } else { 0 },
                    count,
                    last_before: before,
                    ops: ops.into(),
                    steps: steps.into(),
                };
            }
            cycles += costs.of(inst.kind);
            moved_stack = inst.rd == SP;
            loaded = if inst.kind.loads() { inst.rd } else { 0 };
            offset += usize::from(inst.len);
        }
    }

    /// Returns the number of operations that start fewer than `budget` cycles after the block.
    #[inline(always)]
    pub(crate) fn within(&self, budget: u64) -> usize {
        if u64::from(self.last_before) < budget {
            self.ops.len()
        } else {
            self.ops.partition_point(|op| u64::from(op.before) < budget)
        }
    }
}

/// Represents a word that does not decode. The trap examines the word again.
const ILLEGAL: Inst = Inst { kind: Kind::Illegal, rd: 0, rs1: 0, rs2: 0, imm: 0, reads: 0, len: 0 };

/// Returns the register as a set. No instruction waits for x0.
const fn mask(register: u8) -> u64 {
    (1 << register) & !1
}

/// Whether an instruction only computes and only writes x0. It still costs its cycles.
fn does_nothing(inst: &Inst) -> bool {
    use Class::{Alu, Csr, Div, DivWord, Mul, MulHigh};
    let computes = matches!(inst.kind.class(), Alu | Mul | MulHigh | Div | DivWord | Csr);
    inst.rd == 0 && computes && inst.kind != Kind::FloatCsr
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_small() {
        assert_eq!(size_of::<Op>(), 16);
    }
}
