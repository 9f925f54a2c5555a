//! The interpreter.

use super::memory::Access;
use super::trap::{Fault, Trap, TrapKind};
use super::{FRAMES, Machine};
use crate::address;
use crate::helper::Helper;
use crate::object::Linked;
use crate::op::{Atomic, Op, Step, Width};
use std::rc::Rc;

/// Registers; those behind r10 do not exist, and make any four-bit number a place.
pub(crate) type Registers = [u64; 16];

/// The most tail calls of a run.
const TAIL_CALLS: u32 = 33;

impl Machine {
    /// Runs a function to its end, in a frame of its own.
    pub(crate) fn function(
        &mut self,
        code: &Rc<Linked>,
        step: usize,
        arguments: [u64; 5],
    ) -> Result<u64, Fault> {
        let mut registers: Registers = [0; 16];
        registers[1..6].copy_from_slice(&arguments);
        registers[10] = self.enter(true)?;
        let depth = self.depth;
        let result = self.execute(Rc::clone(code), step, registers);
        self.depth = depth - 1;
        result.map_err(|trap| Fault::Inner(Box::new(trap)))
    }

    /// Takes a frame, with zeros where the function uses them, and returns its end.
    pub(crate) fn enter(&mut self, clear: bool) -> Result<u64, Fault> {
        if self.depth == FRAMES {
            return Err(Fault::new(TrapKind::Depth, format!("calls inside more than {FRAMES} functions")));
        }
        if clear {
            self.stack[self.depth * super::STACK_SIZE..][..super::STACK_SIZE].fill(0);
        }
        self.depth += 1;
        Ok(address::at(address::STACK, (self.depth * super::FRAME) as u32))
    }

    pub(crate) fn trap(&self, code: &Linked, step: usize, fault: Fault) -> Trap {
        match fault {
            Fault::Inner(trap) => *trap,
            Fault::Here(kind, problem) => {
                let slot = code.code.slots.get(step).map_or(0, |slot| *slot as usize);
                Trap { kind, place: code.place(slot), problem: problem.into() }
            }
        }
    }

    /// Memory, moves and byte orders.
    #[inline(always)]
    pub(crate) fn other(&mut self, step: Step, r: &mut Registers) -> Result<(), Fault> {
        let (dst, src) = (usize::from(step.dst & 15), usize::from(step.src & 15));
        let to = step.to as i64 as u64;
        match step.op {
            Op::Load(width) => r[dst] = self.load(r[src].wrapping_add(to), width)?,
            Op::LoadSigned(width) => r[dst] = width.extended(self.load(r[src].wrapping_add(to), width)?),
            Op::Store(width) => self.store(r[dst].wrapping_add(to), width, r[src])?,
            Op::StoreImm(width) => self.store(r[dst].wrapping_add(to), width, step.imm as u64)?,
            Op::Neg64 => r[dst] = r[dst].wrapping_neg(),
            Op::Neg32 => r[dst] = u64::from((r[dst] as u32).wrapping_neg()),
            Op::Extend64(width) => r[dst] = width.extended(r[src]),
            Op::Extend32(width) => r[dst] = u64::from(width.extended(r[src]) as u32),
            Op::Truncate(width) => r[dst] = width.truncated(r[dst]),
            Op::Swap(width) => r[dst] = width.swapped(r[dst]),
            Op::Atomic32(atomic) => self.atomic(atomic, Width::B4, step, r)?,
            Op::Atomic64(atomic) => self.atomic(atomic, Width::B8, step, r)?,
            Op::LoadAcquire(width) => {
                let at = r[src].wrapping_add(to);
                self.aligned(at, width)?;
                r[dst] = self.load(at, width)?;
            }
            Op::StoreRelease(width) => {
                let at = r[dst].wrapping_add(to);
                self.aligned(at, width)?;
                self.store(at, width, r[src])?;
            }
            _ => {}
        }
        Ok(())
    }

    fn atomic(&mut self, atomic: Atomic, width: Width, step: Step, r: &mut Registers) -> Result<(), Fault> {
        let (dst, src) = (usize::from(step.dst & 15), usize::from(step.src & 15));
        let at = r[dst].wrapping_add(step.to as i64 as u64);
        self.aligned(at, width)?;
        if matches!(address::parts(at).0, address::PACKET | address::CONTEXT) {
            let problem = "an atomic operation on the packet or the context; use map values or the stack";
            return Err(Fault::new(TrapKind::Access, problem));
        }
        let old = self.load(at, width)?;
        let new = atomic.stored(old, width.truncated(r[src]), width.truncated(r[0]));
        self.store(at, width, new)?;
        if atomic == Atomic::CompareExchange {
            r[0] = old;
        } else if atomic.fetches() {
            r[src] = old;
        }
        Ok(())
    }

    fn aligned(&mut self, at: u64, width: Width) -> Result<(), Fault> {
        if at.is_multiple_of(width.bytes() as u64) {
            return Ok(());
        }
        let problem = format!("an atomic access to {} bytes at {at:#x}, not aligned", width.bytes());
        Err(Fault::new(TrapKind::Access, problem))
    }

    /// Calls a helper, or goes on in another program.
    pub(crate) fn helper_or_tail(
        &mut self,
        code: &mut Rc<Linked>,
        at: &mut usize,
        number: u32,
        r: &Registers,
    ) -> Result<Option<u64>, Fault> {
        if number != Helper::TailCall as u32 {
            return self.helper(code, number, r).map(Some);
        }
        let map = self.map_argument(r[2], Helper::TailCall, 2)?;
        if self.maps[map].kind != crate::map::MapKind::Programs {
            return Err(self.wrong_map(map, Helper::TailCall));
        }
        let next = self.maps[map].number(r[3] as u32).and_then(|number| self.programs.get(number as usize));
        if let Some(next) = next.filter(|_| self.tail_calls < TAIL_CALLS) {
            *code = Rc::clone(next);
            *at = 0;
            self.tail_calls += 1;
            return Ok(None);
        }
        // r0 keeps no promise behind a tail call that goes on.
        Ok(Some(0))
    }

    /// Checks that the program keeps nothing at its end.
    pub(crate) fn released(&mut self) -> Result<(), Fault> {
        if self.locked.take().is_some() {
            return Err(Fault::new(TrapKind::Kept, "the program ends with a lock; call bpf_spin_unlock"));
        }
        let kept = self.maps.iter_mut().any(|map| map.ring().is_some_and(|ring| ring.has_reserved()));
        if kept {
            let problem = "the program ends with a reserved record; submit or discard it";
            return Err(Fault::new(TrapKind::Kept, problem));
        }
        Ok(())
    }

    /// Checks that bytes are readable for a helper that keeps no copy.
    pub(crate) fn readable(&mut self, at: u64, length: usize) -> Result<(), Fault> {
        match length == 0 || self.bytes(at, length, Access::Read).is_some() {
            true => Ok(()),
            false => Err(self.refused(at, length, Access::Read)),
        }
    }
}
