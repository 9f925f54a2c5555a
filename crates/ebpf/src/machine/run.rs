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

/// The caller of a function.
struct Frame {
    /// r6 to r9.
    saved: [u64; 4],
    /// The step behind the call.
    back: usize,
    code: Rc<Linked>,
}

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
        registers[10] = self.enter()?;
        let depth = self.depth;
        let result = self.execute(Rc::clone(code), step, registers);
        self.depth = depth - 1;
        result.map_err(|trap| Fault::Inner(Box::new(trap)))
    }

    /// Takes a frame, and returns its end.
    fn enter(&mut self) -> Result<u64, Fault> {
        if self.depth == FRAMES {
            return Err(Fault::new(TrapKind::Depth, format!("calls inside more than {FRAMES} functions")));
        }
        let stack = &mut self.stack[self.depth * super::STACK_SIZE..][..super::STACK_SIZE];
        stack.fill(0);
        self.depth += 1;
        Ok(address::at(address::STACK, (self.depth * super::FRAME) as u32))
    }

    fn trap(&self, code: &Linked, step: usize, fault: Fault) -> Trap {
        match fault {
            Fault::Inner(trap) => *trap,
            Fault::Here(kind, problem) => {
                let slot = code.code.slots.get(step).map_or(0, |slot| *slot as usize);
                Trap { kind, place: code.place(slot), problem: problem.into() }
            }
        }
    }

    fn execute(&mut self, mut code: Rc<Linked>, mut at: usize, mut r: Registers) -> Result<u64, Trap> {
        let mut frames: Vec<Frame> = Vec::new();
        loop {
            let step = code.code.steps[at];
            let (dst, src) = (usize::from(step.dst & 15), usize::from(step.src & 15));
            if self.budget == 0 {
                let problem = format!("the budget of {} instructions is used up", self.limits.instructions);
                return Err(self.trap(&code, at, Fault::new(TrapKind::Budget, problem)));
            }
            self.budget -= 1;
            at += 1;
            match step.op {
                Op::Alu64Imm(alu) => r[dst] = alu.of64(r[dst], step.imm as u64),
                Op::Alu64Reg(alu) => r[dst] = alu.of64(r[dst], r[src]),
                Op::Alu32Imm(alu) => r[dst] = u64::from(alu.of32(r[dst] as u32, step.imm as u32)),
                Op::Alu32Reg(alu) => r[dst] = u64::from(alu.of32(r[dst] as u32, r[src] as u32)),
                Op::Constant => r[dst] = step.imm as u64,
                Op::Jump => at = step.to as usize,
                Op::Jump64Imm(condition) if condition.holds(r[dst], step.imm as u64) => at = step.to as usize,
                Op::Jump64Reg(condition) if condition.holds(r[dst], r[src]) => at = step.to as usize,
                Op::Jump32Imm(condition) if condition.holds32(r[dst] as u32, step.imm as u32) => {
                    at = step.to as usize
                }
                Op::Jump32Reg(condition) if condition.holds32(r[dst] as u32, r[src] as u32) => {
                    at = step.to as usize
                }
                Op::Jump64Imm(_) | Op::Jump64Reg(_) | Op::Jump32Imm(_) | Op::Jump32Reg(_) => {}
                Op::Helper => match self.helper_or_tail(&mut code, &mut at, step.imm as u32, &r) {
                    Ok(Some(value)) => r[0] = value,
                    Ok(None) => {}
                    Err(fault) => return Err(self.trap(&code, at - 1, fault)),
                },
                Op::Call => {
                    let end = self.enter().map_err(|fault| self.trap(&code, at - 1, fault))?;
                    frames.push(Frame { saved: [r[6], r[7], r[8], r[9]], back: at, code: Rc::clone(&code) });
                    r[10] = end;
                    at = step.to as usize;
                }
                Op::Exit => {
                    let Some(frame) = frames.pop() else { return Ok(r[0]) };
                    self.depth -= 1;
                    r[6..10].copy_from_slice(&frame.saved);
                    r[10] = address::at(address::STACK, (self.depth * super::FRAME) as u32);
                    (at, code) = (frame.back, frame.code);
                }
                _ => {
                    if let Err(fault) = self.other(step, &mut r) {
                        return Err(self.trap(&code, at - 1, fault));
                    }
                }
            }
        }
    }

    /// Memory, moves and byte orders.
    #[inline(always)]
    fn other(&mut self, step: Step, r: &mut Registers) -> Result<(), Fault> {
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
    fn helper_or_tail(
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
