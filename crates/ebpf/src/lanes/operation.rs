//! Operations of a lane: instructions of eBPF, and those that the core adds.

use crate::helper;
use crate::op::{Alu, Atomic, Condition, Op, Step, Width};
use std::fmt;

/// The second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Reg(u8),
    /// A number.
    Imm(i64),
}

/// An operation of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Arithmetic with three operands. A move has no first operand.
    Alu {
        /// The operation.
        alu: Alu,
        /// Whether it has 64 bits.
        wide: bool,
        /// The destination register.
        dst: u8,
        /// The register of the first operand.
        a: u8,
        /// The second operand.
        b: Operand,
    },
    /// A step that stays as it is: byte orders, extensions, constants and atomic operations.
    Plain(Step),
    /// A load of 1, 2, 4, 6 or 8 bytes.
    Load {
        /// The destination register.
        dst: u8,
        /// The register with the address.
        base: u8,
        /// The distance from the address.
        at: i32,
        /// Bytes.
        bytes: u8,
        /// Whether it extends the sign.
        signed: bool,
    },
    /// A store of 1, 2, 4, 6 or 8 bytes.
    Store {
        /// The register with the address.
        base: u8,
        /// The distance from the address.
        at: i32,
        /// Bytes.
        bytes: u8,
        /// The value.
        value: Operand,
    },
    /// A call of a helper.
    Helper(u32),
    /// A jump that compares.
    Branch {
        /// The comparison.
        condition: Condition,
        /// Whether it compares 64 bits.
        wide: bool,
        /// The register of the first operand.
        a: u8,
        /// The second operand.
        b: Operand,
        /// The row that follows where the comparison holds; a block before rows exist.
        to: usize,
    },
    /// A jump without condition.
    Jump(usize),
    /// The end, with the result in r0.
    Exit,
    /// The end with a constant result.
    ExitWith(u32),
    /// A check of the packet's length outside the lanes: a shorter packet ends with this result.
    Guard {
        /// Bytes that the packet has.
        bytes: u32,
        /// The result of a shorter packet.
        result: u32,
    },
}

/// A set of registers: a bit for each.
pub type Registers = u16;

fn bit(register: u8) -> Registers {
    1 << register
}

impl Operation {
    /// The operation of a step. Jumps lead to steps.
    pub(super) fn of(step: &Step) -> Operation {
        let Step { dst, src, to, imm, .. } = *step;
        let alu = |alu, wide, b| Operation::Alu { alu, wide, dst, a: dst, b };
        let branch =
            |condition, wide, b| Operation::Branch { condition, wide, a: dst, b, to: to.max(0) as usize };
        let (register, number) = (Operand::Reg(src), Operand::Imm(imm));
        match step.op {
            Op::Alu64Imm(kind) => alu(kind, true, number),
            Op::Alu64Reg(kind) => alu(kind, true, register),
            Op::Alu32Imm(kind) => alu(kind, false, number),
            Op::Alu32Reg(kind) => alu(kind, false, register),
            Op::Load(width) => load(step, width, false),
            Op::LoadSigned(width) => load(step, width, true),
            Op::Store(width) => {
                Operation::Store { base: dst, at: to, bytes: width.bytes() as u8, value: register }
            }
            Op::StoreImm(width) => {
                Operation::Store { base: dst, at: to, bytes: width.bytes() as u8, value: number }
            }
            Op::Helper => Operation::Helper(imm as u32),
            Op::Jump => Operation::Jump(to.max(0) as usize),
            Op::Jump64Imm(condition) => branch(condition, true, number),
            Op::Jump64Reg(condition) => branch(condition, true, register),
            Op::Jump32Imm(condition) => branch(condition, false, number),
            Op::Jump32Reg(condition) => branch(condition, false, register),
            Op::Exit => Operation::Exit,
            _ => Operation::Plain(*step),
        }
    }

    /// The registers that it reads.
    pub fn reads(&self) -> Registers {
        let of = |operand: Operand| match operand {
            Operand::Reg(register) => bit(register),
            Operand::Imm(_) => 0,
        };
        match *self {
            Operation::Alu { alu: Alu::Mov, b, .. } => of(b),
            Operation::Alu { a, b, .. } | Operation::Branch { a, b, .. } => bit(a) | of(b),
            Operation::Plain(step) => plain_reads(&step),
            Operation::Load { base, .. } => bit(base),
            Operation::Store { base, value, .. } => bit(base) | of(value),
            Operation::Helper(number) => (1..=arguments(number)).map(bit).sum(),
            Operation::Exit => bit(0),
            Operation::Jump(_) | Operation::ExitWith(_) | Operation::Guard { .. } => 0,
        }
    }

    /// The register that it writes.
    pub fn writes(&self) -> Option<u8> {
        match *self {
            Operation::Alu { dst, .. } | Operation::Load { dst, .. } => Some(dst),
            Operation::Helper(_) => Some(0),
            Operation::Plain(step) => match step.op {
                Op::Atomic32(atomic) | Op::Atomic64(atomic) => match atomic {
                    Atomic::CompareExchange => Some(0),
                    _ => atomic.fetches().then_some(step.src),
                },
                Op::StoreRelease(_) => None,
                _ => Some(step.dst),
            },
            _ => None,
        }
    }

    /// Whether it may send the program elsewhere, or end it.
    pub fn is_control(&self) -> bool {
        matches!(
            self,
            Operation::Branch { .. } | Operation::Jump(_) | Operation::Exit | Operation::ExitWith(_)
        )
    }

    /// Whether another row than the next one always follows, or none.
    pub fn ends(&self) -> bool {
        self.is_control() && !matches!(self, Operation::Branch { .. })
    }

    /// Whether its only effect is the register that it writes.
    pub(super) fn is_pure(&self) -> bool {
        match self {
            Operation::Alu { .. } | Operation::Load { .. } => true,
            Operation::Plain(step) => !touches_memory(step.op),
            _ => false,
        }
    }
}

/// Whether a plain step accesses memory.
pub(crate) fn touches_memory(op: Op) -> bool {
    matches!(op, Op::Atomic32(_) | Op::Atomic64(_) | Op::LoadAcquire(_) | Op::StoreRelease(_))
}

fn load(step: &Step, width: Width, signed: bool) -> Operation {
    Operation::Load { dst: step.dst, base: step.src, at: step.to, bytes: width.bytes() as u8, signed }
}

fn plain_reads(step: &Step) -> Registers {
    match step.op {
        Op::Constant => 0,
        Op::Neg64 | Op::Neg32 | Op::Truncate(_) | Op::Swap(_) => bit(step.dst),
        Op::Extend64(_) | Op::Extend32(_) | Op::LoadAcquire(_) => bit(step.src),
        Op::Atomic32(Atomic::CompareExchange) | Op::Atomic64(Atomic::CompareExchange) => {
            bit(step.dst) | bit(step.src) | bit(0)
        }
        _ => bit(step.dst) | bit(step.src),
    }
}

/// The number of a helper's arguments. Unknown helpers have five.
fn arguments(number: u32) -> u8 {
    use helper::Helper as H;
    match helper::Helper::of(number) {
        Some(H::KtimeGet | H::KtimeGetBoot | H::KtimeGetCoarse | H::KtimeGetTai) => 0,
        Some(H::Jiffies | H::Random | H::Cpu) => 0,
        Some(H::BuffLen | H::SpinLock | H::SpinUnlock) => 1,
        Some(
            H::MapLookup
            | H::MapDelete
            | H::MapPop
            | H::MapPeek
            | H::Redirect
            | H::AdjustHead
            | H::AdjustMeta
            | H::AdjustTail
            | H::RingbufSubmit
            | H::RingbufDiscard
            | H::RingbufQuery,
        ) => 2,
        Some(H::MapPush | H::RedirectMap | H::RingbufReserve | H::MapLookupPercpu) => 3,
        Some(H::MapUpdate | H::RingbufOutput | H::LoadBytes | H::StoreBytes) => 4,
        _ => 5,
    }
}

fn sign(alu: Alu) -> &'static str {
    match alu {
        Alu::Add => "+",
        Alu::Sub => "-",
        Alu::Mul => "*",
        Alu::Div => "/",
        Alu::SignedDiv => "s/",
        Alu::Mod => "%",
        Alu::SignedMod => "s%",
        Alu::Or => "|",
        Alu::And => "&",
        Alu::Xor => "^",
        Alu::Lsh => "<<",
        Alu::Rsh => ">>",
        Alu::Arsh => "s>>",
        Alu::Mov => "",
    }
}

fn comparison(condition: Condition) -> &'static str {
    match condition {
        Condition::Equal => "==",
        Condition::Unequal => "!=",
        Condition::Test => "&",
        Condition::Above => ">",
        Condition::AboveOrEqual => ">=",
        Condition::Below => "<",
        Condition::BelowOrEqual => "<=",
        Condition::Greater => "s>",
        Condition::GreaterOrEqual => "s>=",
        Condition::Less => "s<",
        Condition::LessOrEqual => "s<=",
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Reg(register) => write!(f, "r{register}"),
            Operand::Imm(number) => write!(f, "{number}"),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = |wide: bool| if wide { "r" } else { "w" };
        match *self {
            Operation::Alu { alu: Alu::Mov, wide, dst, b, .. } => write!(f, "{}{dst} = {b}", prefix(wide)),
            Operation::Alu { alu, wide, dst, a, b } => {
                let p = prefix(wide);
                write!(f, "{p}{dst} = {p}{a} {} {b}", sign(alu))
            }
            Operation::Plain(step) => plain(f, &step),
            Operation::Load { dst, base, at, bytes, signed } => {
                let kind = if signed { 's' } else { 'u' };
                write!(f, "r{dst} = *({kind}{} *)(r{base} {at:+})", 8 * u32::from(bytes))
            }
            Operation::Store { base, at, bytes, value } => {
                write!(f, "*(u{} *)(r{base} {at:+}) = {value}", 8 * u32::from(bytes))
            }
            Operation::Helper(number) => match helper::name(number) {
                Some(name) => write!(f, "call {name}"),
                None => write!(f, "call {number}"),
            },
            Operation::Branch { condition, wide, a, b, to } => {
                write!(f, "if {}{a} {} {b} goto {to}", prefix(wide), comparison(condition))
            }
            Operation::Jump(to) => write!(f, "goto {to}"),
            Operation::Exit => write!(f, "exit"),
            Operation::ExitWith(result) => write!(f, "exit {result}"),
            Operation::Guard { bytes, result } => write!(f, "below {bytes} B: exit {result}"),
        }
    }
}

fn plain(f: &mut fmt::Formatter<'_>, step: &Step) -> fmt::Result {
    let Step { dst, src, to, imm, .. } = step;
    let bits = |width: Width| 8 * width.bytes();
    match step.op {
        Op::Constant if *imm as u64 >> 32 == u64::from(crate::address::MAP) => {
            write!(f, "r{dst} = map {}", (*imm as u32) / 8)
        }
        Op::Constant => write!(f, "r{dst} = {imm:#x} ll"),
        Op::Neg64 | Op::Neg32 => write!(f, "r{dst} = -r{dst}"),
        Op::Swap(width) => write!(f, "r{dst} = bswap{} r{dst}", bits(width)),
        Op::Truncate(width) => write!(f, "r{dst} = le{} r{dst}", bits(width)),
        Op::Extend64(width) | Op::Extend32(width) => write!(f, "r{dst} = (s{})r{src}", bits(width)),
        Op::LoadAcquire(width) => write!(f, "r{dst} = acquire u{} (r{src} {to:+})", bits(width)),
        Op::StoreRelease(width) => write!(f, "release u{} (r{dst} {to:+}) = r{src}", bits(width)),
        Op::Atomic32(_) | Op::Atomic64(_) => write!(f, "lock (r{dst} {to:+}) r{src}"),
        _ => write!(f, "{:?} r{dst} r{src}", step.op),
    }
}
