//! Runs a program in rows: each row reads at its begin, and writes at its end.

use super::run::Registers;
use super::trap::{Fault, TrapKind};
use super::{ABORTED, Machine, Outcome, Packet, Trap};
use crate::address;
use crate::helper::Helper;
use crate::lanes::{Operand, Operation, Placed, Row, Schedule};
use crate::object::Linked;
use crate::op::{Alu, Width};
use std::rc::Rc;

/// The work of a run in rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Rows that ran.
    pub rows: u64,
    /// Operations in their lanes.
    pub operations: u64,
    /// Jumps that were taken to another row: rows that ran before each.
    pub taken: Vec<u64>,
    /// Whether the program ended by an exit with a constant, or by a check of the packet's length.
    pub ended_early: bool,
    /// Calls of helpers: rows that ran before, and the helper's number.
    pub helpers: Vec<(u64, u32)>,
    /// Bytes of the key in the map of each call; 0 where there is none.
    pub keys: Vec<u32>,
    /// Rows that reached further into the packet than those before: rows that ran before, and bytes from the origin. That is the
    /// packet's begin before the program moved it.
    pub reach: Vec<(u64, u32)>,
}

impl Machine {
    /// Runs the rows of a program on a packet, with the results of [`Machine::run`].
    ///
    /// # Errors
    /// The program trapped. The packet has the changes up to the trap.
    ///
    /// # Panics
    /// No program has the number, or the schedule is of another program.
    pub fn run_rows(
        &mut self,
        program: usize,
        schedule: &Schedule,
        packet: &mut Packet,
    ) -> Result<(Outcome, Trace), Trap> {
        let mut trace = Trace::default();
        [_, self.origin, _] = packet.places();
        let outcome =
            self.run_with(program, packet, |machine, code| machine.rows(code, schedule, &mut trace))?;
        Ok((outcome, trace))
    }

    fn rows(&mut self, code: &Rc<Linked>, schedule: &Schedule, trace: &mut Trace) -> Result<u64, Fault> {
        let mut r: Registers = [0; 16];
        r[1] = address::at(address::CONTEXT, 0);
        r[10] = self.enter(true)?;
        let depth = self.depth;
        let result = self.all_rows(code, schedule, &mut r, trace);
        self.depth = depth - 1;
        result
    }

    fn all_rows(
        &mut self,
        code: &Rc<Linked>,
        schedule: &Schedule,
        r: &mut Registers,
        trace: &mut Trace,
    ) -> Result<u64, Fault> {
        let mut at = 0;
        loop {
            let row = &schedule.rows[at];
            if self.budget == 0 {
                let problem = format!("the budget of {} rows is used up", self.limits.instructions);
                return Err(Fault::new(TrapKind::Budget, problem));
            }
            self.budget -= 1;
            trace.rows += 1;
            if let Some((placed, result)) = self.failed(row) {
                trace.ended_early = true;
                return Ok(self.end(code, placed, result));
            }
            trace.operations += row.operations().count() as u64;
            let before = *r;
            self.work(code, row, &before, r, trace)?;
            at = match self.control(row, &before) {
                None => at + 1,
                Some(Placed { operation: Operation::Branch { to, .. } | Operation::Jump(to), .. }) => {
                    trace.taken.push(trace.rows - 1);
                    *to
                }
                Some(placed @ Placed { operation: Operation::ExitWith(result), .. }) => {
                    trace.ended_early = true;
                    return Ok(self.end(code, placed, *result));
                }
                Some(placed) => return Ok(self.end(code, placed, r[0] as u32)),
            };
        }
    }

    /// The first check that finds the packet too short, and the result.
    fn failed<'r>(&self, row: &'r Row) -> Option<(&'r Placed, u32)> {
        let [_, data, end] = self.packet.places();
        row.guards.iter().find_map(|placed| match placed.operation {
            Operation::Guard { bytes, result } if end - data < bytes as usize => Some((placed, result)),
            _ => None,
        })
    }

    /// Notes the end of a program with the result of an aborted one.
    fn end(&mut self, code: &Rc<Linked>, placed: &Placed, result: u32) -> u64 {
        if result == ABORTED {
            let step = code.code.slots.partition_point(|&slot| slot < placed.slot);
            self.aborted = Some((Rc::clone(code), step.saturating_sub(1)));
        }
        u64::from(result)
    }

    /// Loads and arithmetic, then helpers, then stores.
    fn work(
        &mut self,
        code: &Rc<Linked>,
        row: &Row,
        before: &Registers,
        r: &mut Registers,
        trace: &mut Trace,
    ) -> Result<(), Fault> {
        for placed in row.operations() {
            let fault = |machine: &Machine, fault| machine.fault_at(code, placed, fault);
            match placed.operation {
                Operation::Alu { alu, wide, dst, a, b } => {
                    r[usize::from(dst)] = computed(alu, wide, before[usize::from(a)], value(before, b));
                }
                Operation::Load { dst, base, at, bytes, signed } => {
                    let from = before[usize::from(base)].wrapping_add(i64::from(at) as u64);
                    self.note(from, u32::from(bytes), trace);
                    let loaded = self.load_bytes(from, bytes, signed);
                    r[usize::from(dst)] = loaded.map_err(|problem| fault(self, problem))?;
                }
                Operation::Plain(step) if !crate::lanes::touches_memory(step.op) => {
                    let mut own = *before;
                    match step.op {
                        crate::op::Op::Constant => own[usize::from(step.dst)] = step.imm as u64,
                        _ => self.other(step, &mut own).map_err(|problem| fault(self, problem))?,
                    }
                    r[usize::from(step.dst)] = own[usize::from(step.dst)];
                }
                _ => {}
            }
        }
        for placed in row.operations() {
            let fault = |machine: &Machine, fault| machine.fault_at(code, placed, fault);
            match placed.operation {
                Operation::Helper(number) => {
                    trace.helpers.push((trace.rows - 1, number));
                    trace.keys.push(self.key_bytes(number, r[1]));
                    self.note_arguments(number, r, trace);
                    let result = self.helper(code, number, r);
                    r[0] = result.map_err(|problem| fault(self, problem))?;
                }
                Operation::Plain(step) if crate::lanes::touches_memory(step.op) => {
                    let mut own = *before;
                    self.other(step, &mut own).map_err(|problem| fault(self, problem))?;
                    if let Some(register) = placed.operation.writes() {
                        r[usize::from(register)] = own[usize::from(register)];
                    }
                }
                _ => {}
            }
        }
        for placed in row.operations() {
            if let Operation::Store { base, at, bytes, value: operand } = placed.operation {
                let to = before[usize::from(base)].wrapping_add(i64::from(at) as u64);
                self.note(to, u32::from(bytes), trace);
                let stored = self.store_bytes(to, bytes, value(before, operand));
                stored.map_err(|problem| self.fault_at(code, placed, problem))?;
            }
        }
        Ok(())
    }

    /// The jump or end of a row that takes place.
    fn control<'r>(&self, row: &'r Row, before: &Registers) -> Option<&'r Placed> {
        row.operations().filter(|placed| placed.operation.is_control()).find(|placed| {
            match placed.operation {
                Operation::Branch { condition, wide, a, b, .. } => {
                    let (a, b) = (before[usize::from(a)], value(before, b));
                    if wide { condition.holds(a, b) } else { condition.holds32(a as u32, b as u32) }
                }
                _ => true,
            }
        })
    }

    fn load_bytes(&mut self, at: u64, bytes: u8, signed: bool) -> Result<u64, Fault> {
        let Some(width) = width(bytes) else {
            let low = self.load(at, Width::B4)?;
            return Ok(low | self.load(at.wrapping_add(4), Width::B2)? << 32);
        };
        let loaded = self.load(at, width)?;
        Ok(if signed { width.extended(loaded) } else { loaded })
    }

    fn store_bytes(&mut self, at: u64, bytes: u8, value: u64) -> Result<(), Fault> {
        match width(bytes) {
            Some(width) => self.store(at, width, value),
            None => {
                self.store(at, Width::B4, value)?;
                self.store(at.wrapping_add(4), Width::B2, value >> 32)
            }
        }
    }

    /// Bytes of the key of a helper's map; 0 where it has none.
    fn key_bytes(&self, number: u32, first: u64) -> u32 {
        let Some(helper @ (Helper::MapLookup | Helper::MapUpdate | Helper::MapDelete)) = Helper::of(number)
        else {
            return 0;
        };
        self.map_argument(first, helper, 1).map_or(0, |map| self.maps[map].definition.key_size)
    }

    /// Notes the bytes of the packet that a helper reads: keys, values, and those of a checksum.
    fn note_arguments(&self, number: u32, r: &Registers, trace: &mut Trace) {
        let Some(helper) = Helper::of(number) else { return };
        if helper == Helper::CsumDiff {
            self.note(r[1], r[2] as u32, trace);
            self.note(r[3], r[4] as u32, trace);
        }
        self.note(r[2], self.key_bytes(number, r[1]), trace);
        if let (Helper::MapUpdate, Ok(map)) = (helper, self.map_argument(r[1], helper, 1)) {
            self.note(r[3], self.maps[map].definition.value_size, trace);
        }
    }

    /// Notes the furthest byte of the packet. Bytes arrive by their place in the frame, and those in front of it are there.
    fn note(&self, at: u64, bytes: u32, trace: &mut Trace) {
        let (region, offset) = address::parts(at);
        if region != address::PACKET || bytes == 0 {
            return;
        }
        let Some(byte) = (offset.saturating_add(bytes)).checked_sub(self.origin as u32) else { return };
        if byte > trace.reach.last().map_or(0, |&(_, furthest)| furthest) {
            trace.reach.push((trace.rows - 1, byte));
        }
    }

    fn fault_at(&self, code: &Linked, placed: &Placed, fault: Fault) -> Fault {
        let step = code.code.slots.partition_point(|&slot| slot < placed.slot);
        Fault::Inner(Box::new(self.trap(code, step, fault)))
    }
}

fn value(r: &Registers, operand: Operand) -> u64 {
    match operand {
        Operand::Reg(register) => r[usize::from(register)],
        Operand::Imm(number) => number as u64,
    }
}

fn computed(alu: Alu, wide: bool, a: u64, b: u64) -> u64 {
    if wide { alu.of64(a, b) } else { u64::from(alu.of32(a as u32, b as u32)) }
}

fn width(bytes: u8) -> Option<Width> {
    match bytes {
        1 => Some(Width::B1),
        2 => Some(Width::B2),
        4 => Some(Width::B4),
        8 => Some(Width::B8),
        _ => None,
    }
}
