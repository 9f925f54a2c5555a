//! Instructions that are performed in their order among the cores: atomics, fences, and accesses to ordered memories.

use crate::context::{Context, Pending};
use crate::decode::{Class, Kind};
use crate::image::Image;
use crate::memory::{AddressSpace, Reference, Stop};
use crate::op::Op;
use crate::reservations::Reservations;
use crate::run::{misaligned_extra, shape};
use crate::trap::{Access, Trap, TrapKind};

/// Maximum number of operations of a polling loop.
const MAX_POLLING: usize = 32;

impl Context {
    /// Returns the address of the word that the instruction at the pc stores, if it stores a whole word. Directly after
    /// a fence, this is C11's atomic store with release order.
    pub fn next_store(&self, image: &Image) -> Option<u32> {
        let block = image.block(self.pc)?;
        let op = block.ops.first().filter(|op| op.kind == Kind::Sw)?;
        Some(self.regs[op.rs1 as usize].wrapping_add(op.imm))
    }

    /// Returns the words that a short loop polls, if the last slice ended in one. The context waits for another one to
    /// store them. The loop extends to its branch back and has no calls. Loads through a register that the loop changes
    /// do not count.
    pub fn polled(&self, image: &Image) -> Vec<u32> {
        let here = image.block(self.pc);
        let end = here.and_then(|block| block.ops.last());
        let back = |op: &&Op| matches!(op.kind.class(), Class::Branch | Class::Jump) && op.imm <= self.pc;
        // The loop continues after this block if the block's branch leads out of it.
        let next = || {
            let next = image.block(here?.end)?;
            next.ops.last().filter(back).map(|op| (op.imm, next.end))
        };
        let Some((mut pc, end)) =
            end.filter(back).map(|op| (op.imm, here.map_or(0, |b| b.end))).or_else(next)
        else {
            return Vec::new();
        };
        let mut ops: Vec<&Op> = Vec::new();
        while pc < end && ops.len() < MAX_POLLING {
            let Some(block) = image.block(pc) else { return Vec::new() };
            ops.extend(&block.ops[..]);
            pc = block.end;
        }
        let changed = |register: u8| ops.iter().any(|op| op.rd == register && op.rd != 0);
        let polls = ops.iter().filter(|op| op.kind.loads() && !op.kind.is_atomic() && !changed(op.rs1));
        polls.map(|op| self.regs[usize::from(op.rs1) & 63].wrapping_add(op.imm) & !3).collect()
    }

    /// Executes the one instruction that ended the last slice with [`Exit::Order`](crate::Exit::Order), and charges its
    /// cycles. The caller charges the wait before it with [`stall`](Context::stall).
    ///
    /// # Errors
    /// The resulting trap.
    ///
    /// # Panics
    /// If the last slice did not end with [`Exit::Order`](crate::Exit::Order).
    pub fn perform(
        &mut self,
        image: &Image,
        space: &mut AddressSpace<'_>,
        reservations: &mut Reservations,
    ) -> Result<(), Box<Trap>> {
        assert!(self.pending == Pending::Order, "no instruction waits for its turn");
        let block = image.block(self.pc).expect("the pc was in a block a moment ago");
        let op = &block.ops[0];
        let extra = match op.kind {
            Kind::Fence => Ok(0),
            Kind::FenceI => {
                image.changed(space).map_or(Ok(0), |address| Err(TrapKind::CodeChanged { address }))
            }
            kind if kind.is_atomic() => self.atomic(image, space, reservations, op),
            _ => self.ordered_access(image, space, reservations, op),
        };
        match extra {
            Ok(extra) => {
                self.pending = Pending::Nothing;
                self.cycle += u64::from(image.core().costs.of(op.kind)) + u64::from(extra);
                self.pc = self.pc.wrapping_add(u32::from(op.len));
                self.instret += 1;
                self.accesses += u64::from(op.kind.accesses());
                self.loaded = if op.kind.loads() { op.rd } else { 0 };
                Ok(())
            }
            Err(kind) => {
                reservations.release(self.hart);
                Err(image.trap(self.pc, kind))
            }
        }
    }

    /// Performs a load or store. Returns its extra cycles.
    fn ordered_access(
        &mut self,
        image: &Image,
        space: &mut AddressSpace<'_>,
        reservations: &mut Reservations,
        op: &Op,
    ) -> Result<u32, TrapKind> {
        let address = self.regs[op.rs1 as usize].wrapping_add(op.imm);
        let (size, signed, write) = shape(op.kind);
        let access = if write { Access::Write } else { Access::Read };
        let reference = Reference {
            in_order: true,
            cycle: self.cycle,
            ..self.reference(image, op, access, address, size)
        };
        let extra = if write {
            let value = self.regs[op.rs2 as usize];
            let (took, shared) = space.store(reference, value, false).map_err(trap_kind)?;
            if shared {
                reservations.stored(self.hart, address, size);
            }
            took.extra
        } else {
            let (value, took) = space.load(reference).map_err(trap_kind)?;
            let unused = 32 - 8 * size;
            let value = if signed { ((value << unused) as i32 >> unused) as u32 } else { value };
            self.write(op.rd, value);
            took.extra
        };
        Ok(extra + misaligned_extra(image, address, size))
    }

    /// Performs LR, SC or an AMO. Returns its extra cycles.
    fn atomic(
        &mut self,
        image: &Image,
        space: &mut AddressSpace<'_>,
        reservations: &mut Reservations,
        op: &Op,
    ) -> Result<u32, TrapKind> {
        let address = self.regs[op.rs1 as usize];
        let operand = self.regs[op.rs2 as usize];
        let access = if op.kind == Kind::Lr { Access::Read } else { Access::Write };
        let reference =
            Reference { in_order: true, cycle: self.cycle, ..self.reference(image, op, access, address, 4) };
        let mut word = space.atomic(reference).map_err(trap_kind)?;
        let (result, extra) = match op.kind {
            Kind::Lr => {
                reservations.reserve(self.hart, address);
                (word.get(), word.extra.lr)
            }
            Kind::Sc => {
                let held = reservations.take(self.hart, address);
                if held {
                    word.set(operand);
                    if word.shared {
                        reservations.stored(self.hart, address, 4);
                    }
                }
                (u32::from(!held), word.extra.sc)
            }
            kind => {
                let old = word.get();
                word.set(combined(kind, old, operand));
                if word.shared {
                    reservations.stored(self.hart, address, 4);
                }
                (old, word.extra.amo)
            }
        };
        self.write(op.rd, result);
        Ok(extra)
    }
}

fn trap_kind(stop: Stop) -> TrapKind {
    match stop {
        Stop::Trap(kind) => kind,
        Stop::Order | Stop::Device => unreachable!("an access in its order stops only for a trap"),
    }
}

/// Returns the value that an AMO leaves in memory.
fn combined(kind: Kind, old: u32, operand: u32) -> u32 {
    match kind {
        Kind::AmoAdd => old.wrapping_add(operand),
        Kind::AmoXor => old ^ operand,
        Kind::AmoAnd => old & operand,
        Kind::AmoOr => old | operand,
        Kind::AmoMin => (old as i32).min(operand as i32) as u32,
        Kind::AmoMax => (old as i32).max(operand as i32) as u32,
        Kind::AmoMinu => old.min(operand),
        Kind::AmoMaxu => old.max(operand),
        _ => operand,
    }
}
