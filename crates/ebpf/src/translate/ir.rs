//! Instructions with three operands, by function: what the passes change, and what the code is made of.

use crate::error::ObjectError;
use crate::instruction::{CONSTANT_FUNCTION, CONSTANT_MAP, CONSTANT_VALUE};
use crate::object::Linked;
use crate::op::{Alu, Atomic, Condition, Op, Step, Width};
use std::collections::BTreeSet;

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A register.
    Reg(u8),
    /// A number.
    Const(i64),
    /// A distance from the end of the function's stack.
    Frame(i32),
    /// A map by its number.
    Map(u32),
    /// A byte of a data section, by its map.
    Data(u32, u32),
    /// A byte of an array's memory, by its map.
    Memory(u32, u32),
    /// A function by its first step.
    Function(u32),
}

/// An operation on operands `a` and `b`. `true` stands for 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Nothing,
    Alu(Alu, bool),
    Neg(bool),
    /// A move of `b` that extends its sign.
    Extend(Width, bool),
    Truncate(Width),
    Swap(Width),
    /// A load from `a`, with the sign extended, or with acquire order.
    Load(Width, bool, bool),
    /// A store of `b` at `a`, or one with release order.
    Store(Width, bool),
    Atomic(Atomic, bool),
    Jump,
    Branch(Condition, bool),
    /// A jump that compares the result of the lookup in front of it with 0; the lookup does it.
    Tested(Condition),
    /// The address of an array's value in r0. The key is `a` itself, or at `a`.
    Array {
        map: u32,
        entries: u32,
        number: bool,
    },
    /// The address of a hash's value in r0, or 0. The key is at `a`, on the stack.
    Hash {
        map: u32,
    },
    /// The folded sum of bytes at `a` in r0, from the seed `b` on.
    Sum {
        bytes: u32,
    },
    /// A command to the card that adds bytes in front of the frame. It writes 0 to r0.
    Push(u32),
    Helper(u32),
    Call,
    /// The end of a function, with the result `a`.
    Exit,
}

impl Kind {
    /// Whether it leaves r0 to r5 as a call does: a call, or code in its place.
    pub(super) const fn changes_as_a_call(self) -> bool {
        let in_place =
            matches!(self, Kind::Array { .. } | Kind::Hash { .. } | Kind::Sum { .. } | Kind::Push(_));
        in_place || matches!(self, Kind::Helper(_) | Kind::Call)
    }
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ins {
    pub kind: Kind,
    pub dst: u8,
    pub a: Value,
    pub b: Value,
    /// A distance in bytes of memory, or a step.
    pub to: i32,
}

impl Ins {
    /// Whether `to` is a step that can be next.
    pub fn jumps(&self) -> bool {
        matches!(self.kind, Kind::Jump | Kind::Branch(..) | Kind::Tested(_))
    }
}

/// A function: a row of steps.
#[derive(Clone, Debug)]
pub(super) struct Function {
    /// The number of the first step in the program.
    pub first: usize,
    pub ins: Vec<Ins>,
    /// Whether a block begins at each step.
    pub leads: Vec<bool>,
    /// Whether it is the program itself.
    pub is_main: bool,
    /// Whether a helper calls it.
    pub is_callback: bool,
}

impl Function {
    /// The blocks' first and last steps.
    pub fn blocks(&self) -> Vec<(usize, usize)> {
        let starts: Vec<usize> = (0..self.ins.len()).filter(|&at| self.leads[at]).collect();
        let ends = starts.iter().skip(1).copied().chain([self.ins.len()]);
        starts.iter().copied().zip(ends.map(|end| end - 1)).collect()
    }

    /// The end that a step jumps to with a result in r0, if the step is a conditional jump or one over other steps.
    pub fn end_of(&self, at: usize) -> Option<usize> {
        let ins = &self.ins[at];
        if !matches!(ins.kind, Kind::Jump | Kind::Branch(..)) {
            return None;
        }
        let target = ins.to as usize - self.first;
        let end = &self.ins[target];
        (target != at + 1 && end.kind == Kind::Exit && end.a == Value::Reg(0)).then_some(target)
    }

    /// The steps that can follow a step.
    pub fn next(&self, at: usize) -> impl Iterator<Item = usize> {
        let ins = self.ins[at];
        let target = ins.jumps().then(|| ins.to as usize - self.first);
        let falls = (!matches!(ins.kind, Kind::Jump | Kind::Exit)).then_some(at + 1);
        falls.into_iter().chain(target)
    }
}

/// The functions of a program.
pub(super) fn functions(linked: &Linked) -> Result<Vec<Function>, ObjectError> {
    let steps = &linked.code.steps;
    let kind = |at: usize| linked.slots[linked.code.slots[at] as usize].src;
    let mut starts = BTreeSet::from([0]);
    let mut callbacks = BTreeSet::new();
    for (at, step) in steps.iter().enumerate() {
        match step.op {
            Op::Call => starts.insert(step.to as usize),
            Op::Constant if kind(at) == CONSTANT_FUNCTION => {
                let to = function_of(step);
                callbacks.insert(to as usize);
                starts.insert(to as usize)
            }
            _ => continue,
        };
    }
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([steps.len()]).collect();
    let mut functions = Vec::new();
    for (&first, end) in starts.iter().zip(ends) {
        let ins = (first..end).map(|at| lowered(&steps[at], kind(at), &linked.slots, linked.code.slots[at]));
        let mut function = Function {
            first,
            ins: ins.collect(),
            leads: vec![false; end - first],
            is_main: first == 0,
            is_callback: callbacks.contains(&first),
        };
        check_ends(linked, &function)?;
        lead(&mut function);
        join_shifts(&mut function);
        functions.push(function);
    }
    Ok(functions)
}

fn function_of(step: &Step) -> u32 {
    crate::address::parts(step.imm as u64).1 / 8
}

/// Refuses jumps from one function into another, and a last step that is no end.
fn check_ends(linked: &Linked, function: &Function) -> Result<(), ObjectError> {
    let inside = function.first..function.first + function.ins.len();
    for (at, ins) in function.ins.iter().enumerate() {
        let jumps = matches!(ins.kind, Kind::Jump | Kind::Branch(..));
        let ends = matches!(ins.kind, Kind::Jump | Kind::Exit);
        let leaves = jumps && !inside.contains(&(ins.to as usize));
        if leaves || (at + 1 == function.ins.len() && !ends) {
            let place = linked.place(linked.code.slots[function.first + at] as usize);
            let problem = "the code continues in another function";
            return Err(ObjectError::refused(
                place,
                problem,
                "end each function with exit, and call the other",
            ));
        }
    }
    Ok(())
}

fn lead(function: &mut Function) {
    function.leads[0] = true;
    for at in 0..function.ins.len() {
        let ins = function.ins[at];
        if matches!(ins.kind, Kind::Jump | Kind::Branch(..)) {
            function.leads[ins.to as usize - function.first] = true;
        }
        if matches!(ins.kind, Kind::Jump | Kind::Branch(..) | Kind::Exit) && at + 1 < function.ins.len() {
            function.leads[at + 1] = true;
        }
    }
}

/// Turns a shift left and a shift right by the same constant into one extension.
fn join_shifts(function: &mut Function) {
    for at in 1..function.ins.len() {
        let (first, second) = (function.ins[at - 1], function.ins[at]);
        let (Kind::Alu(Alu::Lsh, true), Kind::Alu(right, true)) = (first.kind, second.kind) else { continue };
        let (Value::Const(left), Value::Const(count)) = (first.b, second.b) else { continue };
        if function.leads[at] || left != count || count == 0 || first.dst != second.dst {
            continue;
        }
        let joined = match (right, count) {
            (Alu::Rsh, _) => {
                Ins { kind: Kind::Alu(Alu::And, true), b: Value::Const((u64::MAX >> count) as i64), ..first }
            }
            (Alu::Arsh, 56) => Ins { kind: Kind::Extend(Width::B1, true), b: first.a, ..first },
            (Alu::Arsh, 48) => Ins { kind: Kind::Extend(Width::B2, true), b: first.a, ..first },
            (Alu::Arsh, 32) => Ins { kind: Kind::Extend(Width::B4, true), b: first.a, ..first },
            _ => continue,
        };
        function.ins[at - 1].kind = Kind::Nothing;
        function.ins[at] = joined;
    }
}

fn lowered(step: &Step, kind: u8, slots: &[crate::Instruction], slot: u32) -> Ins {
    let (dst, src) = (Value::Reg(step.dst), Value::Reg(step.src));
    let imm = Value::Const(step.imm);
    let ins = |kind, a, b| Ins { kind, dst: step.dst, a, b, to: step.to };
    match step.op {
        Op::Alu64Imm(Alu::Sub) => ins(Kind::Alu(Alu::Add, true), dst, Value::Const(-step.imm)),
        Op::Alu32Imm(Alu::Sub) => {
            ins(Kind::Alu(Alu::Add, false), dst, Value::Const(i64::from((step.imm as i32).wrapping_neg())))
        }
        Op::Alu64Imm(alu) => ins(Kind::Alu(alu, true), dst, imm),
        Op::Alu64Reg(alu) => ins(Kind::Alu(alu, true), dst, src),
        Op::Alu32Imm(alu) => ins(Kind::Alu(alu, false), dst, Value::Const(i64::from(step.imm as i32))),
        Op::Alu32Reg(alu) => ins(Kind::Alu(alu, false), dst, src),
        Op::Neg64 => ins(Kind::Neg(true), dst, dst),
        Op::Neg32 => ins(Kind::Neg(false), dst, dst),
        Op::Extend64(width) => ins(Kind::Extend(width, true), dst, src),
        Op::Extend32(width) => ins(Kind::Extend(width, false), dst, src),
        Op::Truncate(width) => ins(Kind::Truncate(width), dst, dst),
        Op::Swap(width) => ins(Kind::Swap(width), dst, dst),
        Op::Constant => {
            let second = slots[slot as usize + 1].imm as u32;
            let first = slots[slot as usize].imm as u32;
            let value = match kind {
                CONSTANT_MAP => Value::Map(first),
                CONSTANT_VALUE => Value::Data(first, second),
                CONSTANT_FUNCTION => Value::Function(function_of(step)),
                _ => imm,
            };
            ins(Kind::Alu(Alu::Mov, true), dst, value)
        }
        Op::Load(width) => ins(Kind::Load(width, false, false), src, src),
        Op::LoadSigned(width) => ins(Kind::Load(width, true, false), src, src),
        Op::LoadAcquire(width) => ins(Kind::Load(width, false, true), src, src),
        Op::Store(width) => ins(Kind::Store(width, false), dst, src),
        Op::StoreImm(width) => ins(Kind::Store(width, false), dst, imm),
        Op::StoreRelease(width) => ins(Kind::Store(width, true), dst, src),
        Op::Atomic32(atomic) => ins(Kind::Atomic(atomic, false), dst, src),
        Op::Atomic64(atomic) => ins(Kind::Atomic(atomic, true), dst, src),
        Op::Jump => ins(Kind::Jump, dst, dst),
        Op::Jump64Imm(condition) => ins(Kind::Branch(condition, true), dst, imm),
        Op::Jump64Reg(condition) => ins(Kind::Branch(condition, true), dst, src),
        Op::Jump32Imm(condition) => {
            ins(Kind::Branch(condition, false), dst, Value::Const(i64::from(step.imm as i32)))
        }
        Op::Jump32Reg(condition) => ins(Kind::Branch(condition, false), dst, src),
        Op::Helper => ins(Kind::Helper(step.imm as u32), dst, dst),
        Op::Call => ins(Kind::Call, dst, dst),
        Op::Exit => ins(Kind::Exit, Value::Reg(0), Value::Reg(0)),
    }
}
