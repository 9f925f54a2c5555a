//! Instructions that are performed in their order among the cores: atomics, fences, and accesses to ordered memories.

use crate::context::{Context, Pending, loaded_value};
use crate::decode::{Class, Kind};
use crate::image::Image;
use crate::memory::{AccessCost, AddressSpace, Reference, Stop};
use crate::op::Op;
use crate::profile::{Cause, Parts};
use crate::reservations::Reservations;
use crate::run::{misaligned_extra, shape};
use crate::trap::{Access, Trap, TrapKind};

/// An access of an instruction that has not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextAccess {
    /// The first address.
    pub address: u32,
    /// 1, 2, 4 or 8 bytes.
    pub size: u32,
    /// Whether it loads.
    pub reads: bool,
    /// Whether it stores. A conditional store that fails does not.
    pub writes: bool,
}

/// Maximum number of operations of a polling loop.
const MAX_POLLING: usize = 32;

impl Context {
    /// Returns the addresses of the words that the instruction at the pc stores, if it stores whole words. Directly
    /// after a fence, this is C11's atomic store with release order.
    pub fn next_store(&self, image: &Image) -> impl Iterator<Item = u32> {
        let op = image.block(self.pc).and_then(|block| block.ops.first());
        let stored = op.filter(|op| matches!(op.kind, Kind::Sw | Kind::Sd));
        stored.into_iter().flat_map(|op| words(self.address(op), shape(op.kind).0))
    }

    /// Returns the address of a load or store, without what RV64 has above 32 bits.
    fn address(&self, op: &Op) -> u32 {
        (self.regs[usize::from(op.rs1) & 63] as u32).wrapping_add(op.imm)
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
        polls.flat_map(|op| words(self.address(op), shape(op.kind).0)).collect()
    }

    /// Returns the access to memory of the instruction at the pc, if it has one.
    pub fn next_access(&self, image: &Image) -> Option<NextAccess> {
        let op = image.block(self.pc).and_then(|block| block.ops.first())?;
        if op.kind.is_atomic() {
            let (reads, writes) = (op.kind != Kind::Sc, op.kind != Kind::Lr);
            return Some(NextAccess {
                address: self.regs[usize::from(op.rs1) & 63] as u32,
                size: op.imm,
                reads,
                writes,
            });
        }
        matches!(op.kind.class(), Class::Load | Class::Store).then(|| {
            let (size, _, writes) = shape(op.kind);
            NextAccess { address: self.address(op), size, reads: !writes, writes }
        })
    }

    /// Whether the instruction at the pc would end a slice with [`Exit::Order`](crate::Exit::Order), if no turns are
    /// requested. Such instructions are atomics, fences, and accesses to ordered memory.
    pub fn is_ordered_next(&self, image: &Image, space: &AddressSpace<'_>) -> bool {
        let Some(op) = image.block(self.pc).and_then(|block| block.ops.first()) else { return false };
        let base = self.regs[usize::from(op.rs1) & 63];
        match op.kind {
            Kind::Fence | Kind::FenceI => true,
            kind if kind.is_atomic() => u32::try_from(base).is_ok(),
            kind if matches!(kind.class(), Class::Load | Class::Store) => {
                let (size, _, write) = shape(kind);
                let access = if write { Access::Write } else { Access::Read };
                let beyond = base.wrapping_add(i64::from(op.imm as i32) as u64) > u64::from(u32::MAX);
                let reference = self.reference(image, op, access, self.address(op), size);
                !(self.wide && beyond) && space.is_ordered(reference)
            }
            _ => false,
        }
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
            Kind::Fence => Ok((0, None)),
            Kind::FenceI => {
                image.changed(space).map_or(Ok((0, None)), |address| Err(TrapKind::CodeChanged { address }))
            }
            kind if kind.is_atomic() => {
                self.atomic(image, space, reservations, op).map(|extra| (extra, None))
            }
            _ => self.ordered_access(image, space, reservations, op),
        };
        match extra {
            Ok((extra, access)) => {
                self.pending = Pending::Nothing;
                self.cycle += u64::from(image.core().costs.of(op.kind)) + u64::from(extra);
                if let Some(profile) = space.profile() {
                    image.count_in(profile, self.pc);
                    let causes = access.map(|(cost, misaligned)| cost.causes(misaligned));
                    let causes: Parts =
                        causes.into_iter().flatten().map(|(cause, cycles)| (cause, cycles.into())).collect();
                    profile.reach_in_parts(self.pc, &causes, Cause::Atomic, self.cycle);
                }
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

    /// Performs a load or store. Returns its extra cycles, and among them its cost and those of its misalignment.
    fn ordered_access(
        &mut self,
        image: &Image,
        space: &mut AddressSpace<'_>,
        reservations: &mut Reservations,
        op: &Op,
    ) -> Result<(u32, Option<(AccessCost, u32)>), TrapKind> {
        let address = self.address(op);
        let (size, signed, write) = shape(op.kind);
        let access = if write { Access::Write } else { Access::Read };
        let reference = Reference {
            in_order: true,
            cycle: self.cycle,
            ..self.reference(image, op, access, address, size)
        };
        let took = if write {
            let value = self.regs[op.rs2 as usize];
            let (took, shared) = space.store(reference, value, false).map_err(trap_kind)?;
            if shared {
                reservations.stored(self.hart, address, size);
            }
            took
        } else {
            let (value, took) = space.load(reference).map_err(trap_kind)?;
            self.write(op.rd, loaded_value(value, 8 * size, signed));
            took
        };
        let misaligned = misaligned_extra(image, address, size);
        Ok((took.extra + misaligned, Some((took, misaligned))))
    }

    /// Performs LR, SC or an AMO. Returns its extra cycles.
    fn atomic(
        &mut self,
        image: &Image,
        space: &mut AddressSpace<'_>,
        reservations: &mut Reservations,
        op: &Op,
    ) -> Result<u32, TrapKind> {
        let (address, size) = (self.regs[op.rs1 as usize] as u32, op.imm);
        let operand = self.regs[op.rs2 as usize];
        let access = if op.kind == Kind::Lr { Access::Read } else { Access::Write };
        let reference = Reference {
            in_order: true,
            cycle: self.cycle,
            ..self.reference(image, op, access, address, size)
        };
        let mut word = space.atomic(reference).map_err(trap_kind)?;
        let (result, extra) = match op.kind {
            Kind::Lr => {
                reservations.reserve(self.hart, address, size);
                (word.get(), word.extra.lr)
            }
            Kind::Sc => {
                let held = reservations.take(self.hart, address, size);
                if held {
                    word.set(operand);
                    if word.shared {
                        reservations.stored(self.hart, address, size);
                    }
                }
                (u64::from(!held), word.extra.sc)
            }
            kind => {
                let old = word.get();
                word.set(combined(kind, old, operand, size));
                if word.shared {
                    reservations.stored(self.hart, address, size);
                }
                (old, word.extra.amo)
            }
        };
        self.write(op.rd, loaded_value(result, 8 * size, true));
        Ok(extra)
    }
}

fn trap_kind(stop: Stop) -> TrapKind {
    match stop {
        Stop::Trap(kind) => kind,
        Stop::Order | Stop::Device => unreachable!("an access in its order stops only for a trap"),
    }
}

/// Returns the addresses of the words of an access.
fn words(address: u32, size: u32) -> impl Iterator<Item = u32> {
    let last = address.wrapping_add(size - 1) & !3;
    let first = address & !3;
    (0..=last.wrapping_sub(first) / 4).map(move |word| first.wrapping_add(4 * word))
}

/// Returns the value that an AMO on this many bytes leaves in memory. Its bits above them are not stored.
fn combined(kind: Kind, old: u64, operand: u64, size: u32) -> u64 {
    let signed = |value| loaded_value(value, 8 * size, true) as i64;
    let unsigned = |value| loaded_value(value, 8 * size, false);
    match kind {
        Kind::AmoAdd => old.wrapping_add(operand),
        Kind::AmoXor => old ^ operand,
        Kind::AmoAnd => old & operand,
        Kind::AmoOr => old | operand,
        Kind::AmoMin => signed(old).min(signed(operand)) as u64,
        Kind::AmoMax => signed(old).max(signed(operand)) as u64,
        Kind::AmoMinu => unsigned(old).min(unsigned(operand)),
        Kind::AmoMaxu => unsigned(old).max(unsigned(operand)),
        _ => operand,
    }
}
