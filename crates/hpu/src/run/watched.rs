//! Slices with a report of each instruction before it is executed, for an observer.

use crate::block::Count;
use crate::context::{Context, Exit};
use crate::decode::{Class, Kind};
use crate::image::Image;
use crate::memory::AddressSpace;
use crate::op::Op;
use crate::reservations::Reservations;
use crate::run::{Place, shape};
use crate::trap::Access;
use crate::width::Width;

/// Takes an instruction before it is executed: the one at the context's pc. It may change registers, memory and the pc.
/// Cycle and pc are those of the instruction. The count of completed instructions is that at the begin of the slice.
pub type Watch<'w> = dyn FnMut(&mut Context, &mut AddressSpace<'_>) + 'w;

impl Context {
    /// Executes instructions of a slice that ends at cycle `until`, and reports each of them to `watch` before. The
    /// state is that of [`step`](Context::step) for each of them.
    ///
    /// Leaves an instruction that may end the slice to [`step`](Context::step), without a report. Such instructions are
    /// accesses outside plain memory, atomics, calls, those of floats, and those that trap. [`Exit::Limit`] ends the
    /// slice if [`cycle`](Context::cycle) is then `until` or later. Cores with a cache of code or with overlap have no
    /// such part.
    pub fn run_watched(
        &mut self,
        image: &Image,
        space: &mut AddressSpace<'_>,
        reservations: &mut Reservations,
        until: u64,
        watch: &mut Watch<'_>,
    ) -> Exit {
        if image.core().overlap.is_some() || space.has_code_cache() {
            return Exit::Limit;
        }
        space.take_no_turns();
        let watch = Some(watch);
        match image.core().isa.is_wide() {
            false => self.run_on::<u32, false, false, false, false, true>(
                image,
                space,
                reservations,
                until,
                None,
                watch,
            ),
            true => self.run_on::<u64, false, false, false, false, true>(
                image,
                space,
                reservations,
                until,
                None,
                watch,
            ),
        }
    }

    /// Reports an operation. Returns false if the slice ends before it: it needs a step of its own, or the report has
    /// changed the pc.
    #[inline(always)]
    pub(super) fn watched<W: Width>(
        &mut self,
        image: &Image,
        space: &mut AddressSpace<'_>,
        place: Place<'_>,
        op: &Op,
        watch: &mut Watch<'_>,
    ) -> bool {
        if op.kind == Kind::Through {
            return true;
        }
        let pc = place.block.pc.wrapping_add(u32::from(op.offset));
        (self.pc, self.cycle) = (pc, place.cycle + u64::from(op.before));
        let plain = self.is_plain::<W>(image, space, op);
        if plain {
            watch(self, space);
            if self.pc == pc {
                return true;
            }
        }
        self.counted(place.count + Count::before(op));
        false
    }

    /// Whether an operation completes inside a slice.
    #[inline(always)]
    fn is_plain<W: Width>(&self, image: &Image, space: &AddressSpace<'_>, op: &Op) -> bool {
        match op.kind.class() {
            Class::Load | Class::Store => {
                let (size, _, write) = shape(op.kind);
                let address = W::of(self.regs[usize::from(op.rs1) & 63]).plus(W::extended(op.imm));
                if address.is_beyond() {
                    return false;
                }
                let address = address.low();
                space.is_hot(op.rs1, address, size, write) || {
                    let access = if write { Access::Write } else { Access::Read };
                    let reference = self.reference(image, op, access, address, size);
                    space.is_plain(reference)
                }
            }
            // A jump to an address that no memory has traps.
            Class::JumpRegister => !W::WIDE,
            Class::Atomic | Class::Fence | Class::Ecall | Class::Never => false,
            _ => !op.kind.is_float(),
        }
    }
}
