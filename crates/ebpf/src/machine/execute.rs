//! The loop of the interpreter.
//!
//! A row of steps up to a jump is counted at the jump. Near the end of the budget each step is counted, so that the trap is exact.

use super::fast::{self, Fast, dispatch};
use super::run::Registers;
use super::trap::{Fault, Trap, TrapKind};
use super::{ABORTED, Machine};
use crate::address;
use crate::object::Linked;
use crate::op::{Alu, Condition, Width};
use std::rc::Rc;

/// The caller of a function.
#[derive(Debug)]
pub(crate) struct Frame {
    /// r6 to r9.
    saved: [u64; 4],
    /// The step behind the call.
    back: usize,
    /// The caller's program, where it is not that of the function.
    code: Option<Rc<Linked>>,
}

/// A function that runs.
struct Running {
    code: Rc<Linked>,
    at: usize,
    r: Registers,
    /// The jump or the call that led to `at`.
    from: usize,
    /// Frames below it that are not its own.
    base: usize,
}

/// The end of a loop.
enum End {
    Result(u64),
    /// It goes on in another program.
    Elsewhere,
    /// The budget may end before the next jump.
    Short,
}

impl Machine {
    pub(crate) fn execute(&mut self, code: Rc<Linked>, at: usize, r: Registers) -> Result<u64, Trap> {
        let mut running = Running { code, at, r, from: at, base: self.frames.len() };
        loop {
            let long = self.budget >= running.code.code.fast.len() as u64;
            let end =
                if long { self.steps::<false>(&mut running)? } else { self.steps::<true>(&mut running)? };
            if let End::Result(value) = end {
                return Ok(value);
            }
        }
    }

    /// Runs steps. `EACH` counts each of them.
    fn steps<const EACH: bool>(&mut self, running: &mut Running) -> Result<End, Trap> {
        let code = Rc::clone(&running.code);
        let steps: &[Fast] = &code.code.fast;
        let (mut r, mut at, mut begin, mut from) = (running.r, running.at, running.at, running.from);
        // Takes the steps of the row from the budget.
        macro_rules! count {
            () => {
                self.budget -= if EACH { 0 } else { (at - begin) as u64 }
            };
        }
        macro_rules! go {
            ($to:expr) => {{
                count!();
                (from, at, begin) = (at - 1, $to, $to);
                if !EACH && self.budget < steps.len() as u64 {
                    (running.at, running.from, running.r) = (at, from, r);
                    return Ok(End::Short);
                }
            }};
        }
        macro_rules! fallible {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(fault) => return Err(self.trap(&code, at - 1, fault)),
                }
            };
        }
        loop {
            let step = steps[at];
            let (dst, src) = (usize::from(step.dst & 15), usize::from(step.src & 15));
            if EACH {
                self.one(&code, at)?;
            }
            at += 1;
            let far = step.to as i64 as u64;
            macro_rules! load {
                ($w:expr) => {
                    r[dst] = fallible!(self.load(r[src].wrapping_add(far), $w))
                };
            }
            macro_rules! store {
                ($w:expr, $value:expr) => {
                    fallible!(self.store(r[dst].wrapping_add(far), $w, $value))
                };
            }
            dispatch!(step, r[dst, src], (go, load, store),
                fast::CONSTANT => r[dst] = step.imm as u64,
                fast::JUMP => go!(step.to as usize),
                fast::HELPER => {
                    // Helpers take from the budget as well.
                    count!();
                    begin = at;
                    let next = fallible!(self.helper_step(&code, at, step.imm as u32, &mut r));
                    if let Some(next) = next {
                        return Ok(self.leave(running, next, r));
                    }
                    go!(at);
                }
                fast::CALL => {
                    let end = fallible!(self.enter(step.src != 0));
                    self.frames.push(Frame { saved: [r[6], r[7], r[8], r[9]], back: at, code: None });
                    r[10] = end;
                    go!(step.to as usize);
                }
                fast::EXIT if self.frames.len() == running.base => {
                    count!();
                    let before = if begin + 1 == at { from } else { at - 2 };
                    return Ok(self.result(&code, before, r[0]));
                }
                fast::EXIT => {
                    let other = self.back(&mut r, running);
                    count!();
                    (at, begin) = (running.at, running.at);
                    go!(at);
                    if other {
                        (running.from, running.r) = (from, r);
                        return Ok(End::Elsewhere);
                    }
                }
                _ => fallible!(self.other(code.code.steps[at - 1], &mut r)),
            );
        }
    }

    /// Takes one step from the budget.
    fn one(&mut self, code: &Linked, at: usize) -> Result<(), Trap> {
        if self.budget == 0 {
            let problem = format!("the budget of {} instructions is used up", self.limits.instructions);
            return Err(self.trap(code, at, Fault::new(TrapKind::Budget, problem)));
        }
        self.budget -= 1;
        Ok(())
    }

    /// Calls a helper, and returns the step of another program that goes on in its place.
    fn helper_step(
        &mut self,
        code: &Rc<Linked>,
        at: usize,
        number: u32,
        r: &mut Registers,
    ) -> Result<Option<(Rc<Linked>, usize)>, Fault> {
        let mut next = (Rc::clone(code), at);
        match self.helper_or_tail(&mut next.0, &mut next.1, number, r)? {
            Some(value) => {
                r[0] = value;
                Ok(None)
            }
            None => Ok(Some(next)),
        }
    }

    /// Goes on in another program. Notes the program that a caller goes on in, where its function is replaced.
    fn leave(&mut self, running: &mut Running, (code, to): (Rc<Linked>, usize), r: Registers) -> End {
        if self.frames.len() > running.base
            && let Some(frame) = self.frames.last_mut()
        {
            frame.code.get_or_insert_with(|| Rc::clone(&running.code));
        }
        (running.code, running.at, running.from, running.r) = (code, to, to, r);
        End::Elsewhere
    }

    /// The end with a result. Notes the step in front of it, if the result is that of an aborted program.
    fn result(&mut self, code: &Rc<Linked>, before: usize, value: u64) -> End {
        if value as u32 == ABORTED {
            self.aborted = Some((Rc::clone(code), before));
        }
        End::Result(value)
    }

    /// Goes back to the caller, and returns whether it is another program.
    fn back(&mut self, r: &mut Registers, running: &mut Running) -> bool {
        let Some(frame) = self.frames.pop() else { return false };
        self.depth -= 1;
        r[6..10].copy_from_slice(&frame.saved);
        r[10] = address::at(address::STACK, (self.depth * super::FRAME) as u32);
        running.at = frame.back;
        let other = frame.code.is_some();
        if let Some(code) = frame.code {
            running.code = code;
        }
        other
    }
}
