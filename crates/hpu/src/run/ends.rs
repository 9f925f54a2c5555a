//! The ends of slices: traps, limits, and operations that are not done inside a slice.

use crate::context::{Context, DeviceAccess, Exit, Pending, RETURN_ADDRESS};
use crate::decode::Kind;
use crate::image::Image;
use crate::memory::OrderPoint;
use crate::memory::{AddressSpace, Stop};
use crate::op::Op;
use crate::reservations::Reservations;
use crate::run::Place;
use crate::trap::{Access, Illegal, TrapKind};

impl Context {
    pub(super) fn trap(
        &self,
        image: &Image,
        reservations: &mut Reservations,
        pc: u32,
        kind: TrapKind,
    ) -> Exit {
        reservations.release(self.hart);
        Exit::Trap(image.trap(pc, kind))
    }

    #[cold]
    pub(super) fn limit(&self, image: &Image, reservations: &mut Reservations) -> Exit {
        if self.cycle < self.cycle_limit {
            return Exit::Limit;
        }
        self.trap(image, reservations, self.pc, TrapKind::CycleLimit { limit: self.cycle_limit })
    }

    /// Handles a pc without code: the call returns or traps.
    #[inline(never)]
    pub(super) fn nowhere(&self, image: &Image, reservations: &mut Reservations, from: Option<u32>) -> Exit {
        let address = self.pc;
        if address == RETURN_ADDRESS {
            reservations.release(self.hart);
            return Exit::Return(self.args()[0]);
        }
        let access = Access::Execute;
        let kind = if image.aligned(address) {
            TrapKind::OutOfRegion { access, address, size: 2, nearest: None }
        } else {
            TrapKind::Misaligned { access, address, size: 4 }
        };
        self.trap(image, reservations, from.unwrap_or(address), kind)
    }

    /// Handles a stack pointer outside the stack.
    #[cold]
    pub(super) fn overrun(
        &self,
        image: &Image,
        space: &AddressSpace<'_>,
        reservations: &mut Reservations,
        from: Option<u32>,
    ) -> Exit {
        let (bottom, size) = space.stack().map_or((self.stack_limit, 0), |s| (s.base(), s.size()));
        let kind = TrapKind::StackExhausted { pointer: self.reg(crate::asm::SP as usize), bottom, size };
        self.trap(image, reservations, from.unwrap_or(self.pc), kind)
    }

    /// Handles a load or store that cannot be done inside the slice.
    #[cold]
    #[inline(never)]
    pub(super) fn stopped(
        &mut self,
        image: &Image,
        reservations: &mut Reservations,
        stop: Stop,
        place: Place<'_>,
        op: &Op,
    ) -> Exit {
        self.stay(place, op);
        let address = (self.regs[op.rs1 as usize] as u32).wrapping_add(op.imm);
        let (size, signed, write) = shape(op.kind);
        match stop {
            Stop::Trap(kind) => self.trap(image, reservations, self.pc, kind),
            Stop::Order => {
                self.pending = Pending::Order;
                Exit::Order(OrderPoint::Memory { address, size, write })
            }
            Stop::Device => {
                let (bits, cycles) = (8 * size as u8, image.core().costs.of(op.kind));
                self.pending = Pending::Device { rd: op.rd, bits, signed, write, cycles, len: op.len };
                let value = self.regs[op.rs2 as usize] as u32 & (u32::MAX >> (32 - u32::from(bits)));
                Exit::Device(DeviceAccess { address, size, write: write.then_some(value) })
            }
        }
    }

    /// Handles an access or a jump to an address of more than 32 bits.
    #[cold]
    #[inline(never)]
    pub(super) fn beyond(
        &mut self,
        image: &Image,
        reservations: &mut Reservations,
        address: u64,
        place: Place<'_>,
        op: &Op,
    ) -> Exit {
        self.stay(place, op);
        let (access, size) = match op.kind {
            Kind::Jalr => (Access::Execute, 2),
            Kind::Lr => (Access::Read, op.imm),
            kind if kind.is_atomic() => (Access::Write, op.imm),
            kind => {
                let (size, _, write) = shape(kind);
                (if write { Access::Write } else { Access::Read }, size)
            }
        };
        self.trap(image, reservations, self.pc, TrapKind::BeyondAddresses { access, address, size })
    }

    /// Executes the operations that end a slice.
    #[inline(never)]
    pub(super) fn ended(
        &mut self,
        image: &Image,
        reservations: &mut Reservations,
        place: Place<'_>,
        op: &Op,
    ) -> Exit {
        let address = self.regs[op.rs1 as usize & 63];
        if op.kind.is_atomic() && u32::try_from(address).is_err() {
            return self.beyond(image, reservations, address, place, op);
        }
        self.stay(place, op);
        let pc = self.pc;
        match op.kind {
            Kind::Ecall => {
                self.pending = Pending::Ecall { cycles: image.core().costs.of(Kind::Ecall) };
                Exit::Ecall
            }
            Kind::Fence | Kind::FenceI => {
                self.pending = Pending::Order;
                Exit::Order(OrderPoint::Fence)
            }
            Kind::Ebreak => self.trap(image, reservations, pc, TrapKind::Breakpoint),
            Kind::Illegal => {
                let (word, why) = image.illegal_at(pc).expect("the block says that this is illegal");
                self.trap(image, reservations, pc, TrapKind::IllegalInstruction { word, why })
            }
            kind if kind.is_float() => {
                let why = Illegal::RoundingMode(self.fcsr >> 5);
                self.trap(
                    image,
                    reservations,
                    pc,
                    TrapKind::IllegalInstruction { word: image.word_at(pc), why },
                )
            }
            Kind::CodeEnd => {
                let kind =
                    TrapKind::OutOfRegion { access: Access::Execute, address: pc, size: 2, nearest: None };
                self.trap(image, reservations, pc, kind)
            }
            _ => {
                assert!(op.kind.is_atomic(), "{:?} does not end a slice", op.kind);
                self.pending = Pending::Order;
                Exit::Order(OrderPoint::Atomic {
                    address: address as u32,
                    size: op.imm,
                    write: op.kind != Kind::Lr,
                })
            }
        }
    }
}

/// Size in bytes of a load or store, whether it sign-extends, and whether it stores.
pub(crate) const fn shape(kind: Kind) -> (u32, bool, bool) {
    match kind {
        Kind::Lb => (1, true, false),
        Kind::Lh => (2, true, false),
        Kind::Lbu => (1, false, false),
        Kind::Lhu => (2, false, false),
        Kind::Sb => (1, false, true),
        Kind::Sh => (2, false, true),
        Kind::Sw => (4, false, true),
        Kind::Ld => (8, false, false),
        Kind::Sd => (8, false, true),
        Kind::Lwu => (4, false, false),
        _ => (4, true, false),
    }
}
