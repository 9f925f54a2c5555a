//! Decodes slots to steps, and refuses what Linux's verifier refuses by form: unused fields, unknown codes, jumps outside.

use crate::address;
use crate::instruction::*;
use crate::op::{Alu, Atomic, Condition, Op, Step, Width};
use std::fmt;

/// Decoded code.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The steps.
    pub steps: Vec<Step>,
    /// The slot of each step.
    pub slots: Vec<u32>,
    /// The steps as the machine runs them.
    pub(crate) fast: Vec<crate::machine::fast::Fast>,
}

/// The most slots of a program, as in Linux for root.
pub const MOST_SLOTS: usize = 1_000_000;

/// A slot that is no instruction, or that stands at a wrong place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The slot.
    pub slot: usize,
    /// The problem, and advice behind a semicolon.
    pub problem: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instruction {}: {}", self.slot, self.problem)
    }
}

impl std::error::Error for DecodeError {}

/// Decodes a program with its functions, one after another. Constants of maps have the numbers of maps.
///
/// # Errors
/// A slot is no instruction of this machine.
pub fn decode(slots: &[Instruction]) -> Result<Code, DecodeError> {
    let refuse = |slot: usize, problem: String| Err(DecodeError { slot, problem });
    if slots.is_empty() {
        return refuse(0, "the program is empty; write at least an exit".to_owned());
    }
    if slots.len() > MOST_SLOTS {
        return refuse(MOST_SLOTS, format!("the program is longer than {MOST_SLOTS} instructions; split it"));
    }
    let step_of = steps_of_slots(slots)?;
    let mut code = Code::default();
    let mut at = 0;
    while at < slots.len() {
        let place = Place { slots, at, step_of: &step_of };
        let step = place.decode().map_err(|problem| DecodeError { slot: at, problem })?;
        code.steps.push(step);
        code.slots.push(at as u32);
        at += if slots[at].is_wide() { 2 } else { 1 };
    }
    match code.steps.last().map(|step| step.op) {
        Some(Op::Exit | Op::Jump) => {
            code.fast = crate::machine::fast::fast(&code.steps);
            Ok(code)
        }
        _ => refuse(
            slots.len() - 1,
            "the last instruction is no exit or jump; end the program with exit".to_owned(),
        ),
    }
}

const NO_STEP: u32 = u32::MAX;

/// The step of each slot; none for the second slot of a constant.
fn steps_of_slots(slots: &[Instruction]) -> Result<Vec<u32>, DecodeError> {
    let mut step_of = vec![NO_STEP; slots.len()];
    let (mut at, mut step) = (0, 0);
    while at < slots.len() {
        step_of[at] = step;
        step += 1;
        if slots[at].is_wide() && at + 1 == slots.len() {
            let problem = "a 64-bit constant lacks its second slot; compile the program again".to_owned();
            return Err(DecodeError { slot: at, problem });
        }
        at += if slots[at].is_wide() { 2 } else { 1 };
    }
    Ok(step_of)
}

type Decoded = Result<Step, String>;

struct Place<'p> {
    slots: &'p [Instruction],
    at: usize,
    step_of: &'p [u32],
}

impl Place<'_> {
    fn instruction(&self) -> Instruction {
        self.slots[self.at]
    }

    fn step(&self, op: Op) -> Step {
        let i = self.instruction();
        Step { op, dst: i.dst, src: i.src, to: i32::from(i.offset), imm: i64::from(i.imm) }
    }

    fn decode(&self) -> Decoded {
        let i = self.instruction();
        if i.dst > 10 || (i.src > 10) {
            return Err(format!("register r{} does not exist; registers are r0 to r10", i.dst.max(i.src)));
        }
        match i.class() {
            LD => self.constant(),
            LDX => self.load(),
            ST => self.store_constant(),
            STX => self.store(),
            ALU32 | ALU64 => self.arithmetic(),
            _ => self.jump(),
        }
    }

    fn unknown(&self) -> Decoded {
        Err(format!("unknown code {:#04x}; instructions are those of RFC 9669", self.instruction().code))
    }

    fn unused(&self, wrong: bool) -> Result<(), String> {
        if wrong {
            return Err(format!(
                "code {:#04x} has a value in an unused field; write 0 in it",
                self.instruction().code
            ));
        }
        Ok(())
    }

    /// Refuses a change of the frame pointer.
    fn writable(&self, register: u8) -> Result<(), String> {
        if register == 10 {
            return Err("it changes r10, the frame pointer; use another register".to_owned());
        }
        Ok(())
    }

    fn constant(&self) -> Decoded {
        let i = self.instruction();
        if matches!(i.code & MODE, MODE_ABS | MODE_IND) {
            return Err("a legacy load from the packet (BPF_ABS or BPF_IND); read the packet between data and data_end".to_owned());
        }
        if !i.is_wide() {
            return self.unknown();
        }
        let second = self.slots[self.at + 1];
        self.unused(
            i.offset != 0 || second.code != 0 || second.dst != 0 || second.src != 0 || second.offset != 0,
        )?;
        self.writable(i.dst)?;
        let imm = match i.src {
            CONSTANT => (u64::from(second.imm as u32) << 32) | u64::from(i.imm as u32),
            CONSTANT_MAP => address::map(i.imm as u32),
            CONSTANT_VALUE => address::value(i.imm as u32, second.imm as u32),
            CONSTANT_FUNCTION => {
                let step = self.target(i64::from(i.imm))?;
                address::function(step as u32)
            }
            kind => return Err(format!("a 64-bit constant of kind {kind}; kinds 0, 1, 2 and 4 are known")),
        };
        Ok(Step { imm: imm as i64, ..self.step(Op::Constant) })
    }

    fn width(&self) -> Width {
        match self.instruction().code & SIZE {
            0x10 => Width::B1,
            0x08 => Width::B2,
            0x00 => Width::B4,
            _ => Width::B8,
        }
    }

    fn load(&self) -> Decoded {
        let i = self.instruction();
        self.unused(i.imm != 0)?;
        self.writable(i.dst)?;
        match (i.code & MODE, self.width()) {
            (MODE_MEM, width) => Ok(self.step(Op::Load(width))),
            (MODE_SIGNED, Width::B8) => self.unknown(),
            (MODE_SIGNED, width) => Ok(self.step(Op::LoadSigned(width))),
            _ => self.unknown(),
        }
    }

    fn store_constant(&self) -> Decoded {
        if self.instruction().code & MODE != MODE_MEM {
            return self.unknown();
        }
        self.unused(self.instruction().src != 0)?;
        Ok(self.step(Op::StoreImm(self.width())))
    }

    fn store(&self) -> Decoded {
        let i = self.instruction();
        match i.code & MODE {
            MODE_MEM => {
                self.unused(i.imm != 0)?;
                Ok(self.step(Op::Store(self.width())))
            }
            MODE_ATOMIC => self.atomic(),
            _ => self.unknown(),
        }
    }

    fn atomic(&self) -> Decoded {
        let i = self.instruction();
        match i.imm {
            0x100 => {
                self.writable(i.dst)?;
                return Ok(self.step(Op::LoadAcquire(self.width())));
            }
            0x110 => return Ok(self.step(Op::StoreRelease(self.width()))),
            _ => {}
        }
        let atomic = match i.imm {
            0x00 => Atomic::Add,
            0x40 => Atomic::Or,
            0x50 => Atomic::And,
            0xa0 => Atomic::Xor,
            0x01 => Atomic::FetchAdd,
            0x41 => Atomic::FetchOr,
            0x51 => Atomic::FetchAnd,
            0xa1 => Atomic::FetchXor,
            0xe1 => Atomic::Exchange,
            0xf1 => Atomic::CompareExchange,
            other => {
                return Err(format!("unknown atomic operation {other:#x}; operations are those of RFC 9669"));
            }
        };
        if atomic.fetches() {
            self.writable(i.src)?;
        }
        match self.width() {
            Width::B4 => Ok(self.step(Op::Atomic32(atomic))),
            Width::B8 => Ok(self.step(Op::Atomic64(atomic))),
            width => Err(format!("an atomic operation on {} bytes; use 4 or 8", width.bytes())),
        }
    }

    fn arithmetic(&self) -> Decoded {
        let i = self.instruction();
        self.writable(i.dst)?;
        let wide = i.class() == ALU64;
        let register = i.code & REGISTER != 0;
        match i.code & 0xf0 {
            0x80 => {
                self.unused(register || i.src != 0 || i.offset != 0 || i.imm != 0)?;
                return Ok(self.step(if wide { Op::Neg64 } else { Op::Neg32 }));
            }
            0xd0 => return self.byte_order(wide, register),
            0xb0 if register && i.offset != 0 => return self.extension(wide),
            _ => {}
        }
        let alu = self.alu()?;
        self.unused(if register { i.imm != 0 } else { i.src != 0 })?;
        if !register {
            self.check_constant(alu, wide)?;
        }
        Ok(self.step(match (wide, register) {
            (true, true) => Op::Alu64Reg(alu),
            (true, false) => Op::Alu64Imm(alu),
            (false, true) => Op::Alu32Reg(alu),
            (false, false) => Op::Alu32Imm(alu),
        }))
    }

    fn alu(&self) -> Result<Alu, String> {
        let i = self.instruction();
        let signed = i.offset == 1;
        let alu = match i.code & 0xf0 {
            0x30 if signed => return Ok(Alu::SignedDiv),
            0x90 if signed => return Ok(Alu::SignedMod),
            0x00 => Alu::Add,
            0x10 => Alu::Sub,
            0x20 => Alu::Mul,
            0x30 => Alu::Div,
            0x40 => Alu::Or,
            0x50 => Alu::And,
            0x60 => Alu::Lsh,
            0x70 => Alu::Rsh,
            0x90 => Alu::Mod,
            0xa0 => Alu::Xor,
            0xb0 => Alu::Mov,
            0xc0 => Alu::Arsh,
            _ => return self.unknown().map(|_| Alu::Mov),
        };
        self.unused(i.offset != 0)?;
        Ok(alu)
    }

    fn check_constant(&self, alu: Alu, wide: bool) -> Result<(), String> {
        let imm = self.instruction().imm;
        match alu {
            Alu::Div | Alu::SignedDiv | Alu::Mod | Alu::SignedMod if imm == 0 => {
                Err("a division by the constant 0; write another divisor".to_owned())
            }
            Alu::Lsh | Alu::Rsh | Alu::Arsh => {
                let bits = if wide { 64 } else { 32 };
                if (0..bits).contains(&imm) {
                    return Ok(());
                }
                Err(format!("a shift by {imm}; write 0 to {}", bits - 1))
            }
            _ => Ok(()),
        }
    }

    fn extension(&self, wide: bool) -> Decoded {
        let i = self.instruction();
        self.unused(i.imm != 0)?;
        let width = match (i.offset, wide) {
            (8, _) => Width::B1,
            (16, _) => Width::B2,
            (32, true) => Width::B4,
            (bits, _) => {
                return Err(format!("a move that extends {bits} bits; write 8, 16, or 32 to 64 bits"));
            }
        };
        Ok(self.step(if wide { Op::Extend64(width) } else { Op::Extend32(width) }))
    }

    fn byte_order(&self, wide: bool, big: bool) -> Decoded {
        let i = self.instruction();
        self.unused(i.offset != 0 || i.src != 0 || (wide && big))?;
        let width = match i.imm {
            16 => Width::B2,
            32 => Width::B4,
            64 => Width::B8,
            bits => return Err(format!("a byte swap of {bits} bits; write 16, 32 or 64")),
        };
        Ok(self.step(if wide || big { Op::Swap(width) } else { Op::Truncate(width) }))
    }

    fn jump(&self) -> Decoded {
        let i = self.instruction();
        let wide = i.class() == JMP;
        let register = i.code & REGISTER != 0;
        match (i.code & 0xf0, wide) {
            (0x00, _) => {
                self.unused(register || i.dst != 0 || i.src != 0)?;
                self.unused(if wide { i.imm != 0 } else { i.offset != 0 })?;
                let distance = if wide { i64::from(i.offset) } else { i64::from(i.imm) };
                return Ok(Step { to: self.target(distance)?, ..self.step(Op::Jump) });
            }
            (0x80, true) => return self.call(register),
            (0x90, true) => {
                self.unused(register || i.dst != 0 || i.src != 0 || i.offset != 0 || i.imm != 0)?;
                return Ok(self.step(Op::Exit));
            }
            _ => {}
        }
        let condition = match i.code & 0xf0 {
            0x10 => Condition::Equal,
            0x20 => Condition::Above,
            0x30 => Condition::AboveOrEqual,
            0x40 => Condition::Test,
            0x50 => Condition::Unequal,
            0x60 => Condition::Greater,
            0x70 => Condition::GreaterOrEqual,
            0xa0 => Condition::Below,
            0xb0 => Condition::BelowOrEqual,
            0xc0 => Condition::Less,
            0xd0 => Condition::LessOrEqual,
            _ => return self.unknown(),
        };
        self.unused(if register { i.imm != 0 } else { i.src != 0 })?;
        let op = match (wide, register) {
            (true, true) => Op::Jump64Reg(condition),
            (true, false) => Op::Jump64Imm(condition),
            (false, true) => Op::Jump32Reg(condition),
            (false, false) => Op::Jump32Imm(condition),
        };
        Ok(Step { to: self.target(i64::from(i.offset))?, ..self.step(op) })
    }

    fn call(&self, register: bool) -> Decoded {
        let i = self.instruction();
        if register {
            return Err("a call through a register; compile with -O2, so that helpers are called by number"
                .to_owned());
        }
        self.unused(i.dst != 0 || i.offset != 0)?;
        match i.src {
            0 => Ok(self.step(Op::Helper)),
            CALL_LOCAL => Ok(Step { to: self.target(i64::from(i.imm))?, ..self.step(Op::Call) }),
            CALL_KERNEL => Err("a call of a kernel function (kfunc); use helpers".to_owned()),
            kind => Err(format!("a call of kind {kind}; kinds 0 and 1 are known")),
        }
    }

    /// The step `distance` slots behind the next slot.
    fn target(&self, distance: i64) -> Result<i32, String> {
        let slot = self.at as i64 + 1 + distance;
        let step = usize::try_from(slot).ok().and_then(|slot| self.step_of.get(slot));
        match step {
            Some(&step) if step != NO_STEP => Ok(step as i32),
            Some(_) => Err(format!("a jump into the constant at {}; jump to an instruction", slot - 1)),
            None => {
                let end = self.slots.len() - 1;
                Err(format!("a jump to {slot}, outside the program; jump to 0 to {end}"))
            }
        }
    }
}
