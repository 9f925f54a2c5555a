//! The compact form of instructions: decoded once, executed many times.

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The operation.
    pub op: Op,
    /// The destination register.
    pub dst: u8,
    /// The source register.
    pub src: u8,
    /// A distance in bytes of memory, or the step after a jump or a call.
    pub to: i32,
    /// The constant, with its sign extended, or the number of a helper.
    pub imm: i64,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// 64-bit arithmetic with a constant.
    Alu64Imm(Alu),
    /// 64-bit arithmetic with a register.
    Alu64Reg(Alu),
    /// 32-bit arithmetic with a constant.
    Alu32Imm(Alu),
    /// 32-bit arithmetic with a register.
    Alu32Reg(Alu),
    /// 64-bit negation.
    Neg64,
    /// 32-bit negation.
    Neg32,
    /// A 64-bit move that extends the sign of a narrower register.
    Extend64(Width),
    /// A 32-bit move that extends the sign of a narrower register.
    Extend32(Width),
    /// Keeps the low bytes.
    Truncate(Width),
    /// Reverses the low bytes, and clears the others.
    Swap(Width),
    /// Loads a 64-bit constant.
    Constant,
    /// Loads and extends with zeros.
    Load(Width),
    /// Loads and extends the sign.
    LoadSigned(Width),
    /// Stores a register.
    Store(Width),
    /// Stores a constant.
    StoreImm(Width),
    /// A 32-bit atomic operation.
    Atomic32(Atomic),
    /// A 64-bit atomic operation.
    Atomic64(Atomic),
    /// A load with acquire order.
    LoadAcquire(Width),
    /// A store with release order.
    StoreRelease(Width),
    /// A jump without condition.
    Jump,
    /// A jump that compares 64 bits with a constant.
    Jump64Imm(Condition),
    /// A jump that compares 64 bits with a register.
    Jump64Reg(Condition),
    /// A jump that compares 32 bits with a constant.
    Jump32Imm(Condition),
    /// A jump that compares 32 bits with a register.
    Jump32Reg(Condition),
    /// A call of a helper.
    Helper,
    /// A call of a function of the program.
    Call,
    /// The end of a function.
    Exit,
}

/// Arithmetic with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Alu {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Unsigned quotient; 0 where the divisor is 0.
    Div,
    /// Signed quotient; 0 where the divisor is 0.
    SignedDiv,
    /// Unsigned remainder; the dividend where the divisor is 0.
    Mod,
    /// Signed remainder; the dividend where the divisor is 0.
    SignedMod,
    /// Bits of either.
    Or,
    /// Bits of both.
    And,
    /// Bits of one.
    Xor,
    /// Shift left.
    Lsh,
    /// Shift right with zeros.
    Rsh,
    /// Shift right with the sign.
    Arsh,
    /// Copy.
    Mov,
}

impl Alu {
    /// The 64-bit result.
    #[inline(always)]
    pub fn of64(self, a: u64, b: u64) -> u64 {
        match self {
            Alu::Add => a.wrapping_add(b),
            Alu::Sub => a.wrapping_sub(b),
            Alu::Mul => a.wrapping_mul(b),
            Alu::Div => a.checked_div(b).unwrap_or(0),
            Alu::SignedDiv if b == 0 => 0,
            Alu::SignedDiv => (a as i64).wrapping_div(b as i64) as u64,
            Alu::Mod => a.checked_rem(b).unwrap_or(a),
            Alu::SignedMod if b == 0 => a,
            Alu::SignedMod => (a as i64).wrapping_rem(b as i64) as u64,
            Alu::Or => a | b,
            Alu::And => a & b,
            Alu::Xor => a ^ b,
            Alu::Lsh => a.wrapping_shl(b as u32),
            Alu::Rsh => a.wrapping_shr(b as u32),
            Alu::Arsh => (a as i64).wrapping_shr(b as u32) as u64,
            Alu::Mov => b,
        }
    }

    /// The 32-bit result.
    #[inline(always)]
    pub fn of32(self, a: u32, b: u32) -> u32 {
        match self {
            Alu::Add => a.wrapping_add(b),
            Alu::Sub => a.wrapping_sub(b),
            Alu::Mul => a.wrapping_mul(b),
            Alu::Div => a.checked_div(b).unwrap_or(0),
            Alu::SignedDiv if b == 0 => 0,
            Alu::SignedDiv => (a as i32).wrapping_div(b as i32) as u32,
            Alu::Mod => a.checked_rem(b).unwrap_or(a),
            Alu::SignedMod if b == 0 => a,
            Alu::SignedMod => (a as i32).wrapping_rem(b as i32) as u32,
            Alu::Or => a | b,
            Alu::And => a & b,
            Alu::Xor => a ^ b,
            Alu::Lsh => a.wrapping_shl(b),
            Alu::Rsh => a.wrapping_shr(b),
            Alu::Arsh => (a as i32).wrapping_shr(b) as u32,
            Alu::Mov => b,
        }
    }
}

/// The condition of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Condition {
    /// Equal.
    Equal,
    /// Unequal.
    Unequal,
    /// A common bit.
    Test,
    /// Unsigned greater.
    Above,
    /// Unsigned greater or equal.
    AboveOrEqual,
    /// Unsigned less.
    Below,
    /// Unsigned less or equal.
    BelowOrEqual,
    /// Signed greater.
    Greater,
    /// Signed greater or equal.
    GreaterOrEqual,
    /// Signed less.
    Less,
    /// Signed less or equal.
    LessOrEqual,
}

impl Condition {
    /// Whether it holds for 64-bit operands.
    #[inline(always)]
    pub fn holds(self, a: u64, b: u64) -> bool {
        let signed = (a as i64, b as i64);
        match self {
            Condition::Equal => a == b,
            Condition::Unequal => a != b,
            Condition::Test => a & b != 0,
            Condition::Above => a > b,
            Condition::AboveOrEqual => a >= b,
            Condition::Below => a < b,
            Condition::BelowOrEqual => a <= b,
            Condition::Greater => signed.0 > signed.1,
            Condition::GreaterOrEqual => signed.0 >= signed.1,
            Condition::Less => signed.0 < signed.1,
            Condition::LessOrEqual => signed.0 <= signed.1,
        }
    }

    /// Whether it holds for 32-bit operands. Extended signs keep every order of the low halves.
    #[inline(always)]
    pub fn holds32(self, a: u32, b: u32) -> bool {
        self.holds(a as i32 as u64, b as i32 as u64)
    }
}

/// Bytes of an access or of a part of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Width {
    /// One byte.
    B1,
    /// Two bytes.
    B2,
    /// Four bytes.
    B4,
    /// Eight bytes.
    B8,
}

impl Width {
    /// The bytes.
    pub fn bytes(self) -> usize {
        match self {
            Width::B1 => 1,
            Width::B2 => 2,
            Width::B4 => 4,
            Width::B8 => 8,
        }
    }

    /// The low bytes of a register.
    #[inline(always)]
    pub fn truncated(self, value: u64) -> u64 {
        match self {
            Width::B1 => u64::from(value as u8),
            Width::B2 => u64::from(value as u16),
            Width::B4 => u64::from(value as u32),
            Width::B8 => value,
        }
    }

    /// The low bytes of a register as a number with a sign.
    #[inline(always)]
    pub fn extended(self, value: u64) -> u64 {
        match self {
            Width::B1 => value as i8 as u64,
            Width::B2 => value as i16 as u64,
            Width::B4 => value as i32 as u64,
            Width::B8 => value,
        }
    }

    /// The low bytes of a register in reverse order.
    #[inline(always)]
    pub fn swapped(self, value: u64) -> u64 {
        match self {
            Width::B1 => u64::from(value as u8),
            Width::B2 => u64::from((value as u16).swap_bytes()),
            Width::B4 => u64::from((value as u32).swap_bytes()),
            Width::B8 => value.swap_bytes(),
        }
    }
}

/// An atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atomic {
    /// Sum.
    Add,
    /// Bits of either.
    Or,
    /// Bits of both.
    And,
    /// Bits of one.
    Xor,
    /// Sum, with the old value in the source register.
    FetchAdd,
    /// Bits of either, with the old value in the source register.
    FetchOr,
    /// Bits of both, with the old value in the source register.
    FetchAnd,
    /// Bits of one, with the old value in the source register.
    FetchXor,
    /// The source register and the old value change places.
    Exchange,
    /// The source register where the old value is that of `r0`, which gets the old value.
    CompareExchange,
}

impl Atomic {
    /// The new value of memory with `old`, for the source register and `r0`.
    pub fn stored(self, old: u64, src: u64, r0: u64) -> u64 {
        match self {
            Atomic::Add | Atomic::FetchAdd => old.wrapping_add(src),
            Atomic::Or | Atomic::FetchOr => old | src,
            Atomic::And | Atomic::FetchAnd => old & src,
            Atomic::Xor | Atomic::FetchXor => old ^ src,
            Atomic::Exchange => src,
            Atomic::CompareExchange if old == r0 => src,
            Atomic::CompareExchange => old,
        }
    }

    /// Whether the source register gets the old value.
    pub fn fetches(self) -> bool {
        !matches!(self, Atomic::Add | Atomic::Or | Atomic::And | Atomic::Xor | Atomic::CompareExchange)
    }
}

/// A conformance group of RFC 9669.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// 32-bit arithmetic and jumps, loads and stores to four bytes, calls.
    Base32,
    /// 64-bit arithmetic and jumps, loads and stores of eight bytes.
    Base64,
    /// 32-bit atomic operations.
    Atomic32,
    /// 64-bit atomic operations.
    Atomic64,
    /// 32-bit products, quotients and remainders.
    Divmul32,
    /// 64-bit products, quotients and remainders.
    Divmul64,
}

impl Group {
    /// All groups.
    pub const ALL: [Group; 6] =
        [Group::Base32, Group::Base64, Group::Atomic32, Group::Atomic64, Group::Divmul32, Group::Divmul64];

    /// The name in RFC 9669.
    pub fn name(self) -> &'static str {
        match self {
            Group::Base32 => "base32",
            Group::Base64 => "base64",
            Group::Atomic32 => "atomic32",
            Group::Atomic64 => "atomic64",
            Group::Divmul32 => "divmul32",
            Group::Divmul64 => "divmul64",
        }
    }
}

impl Op {
    /// Its conformance group, as in the table of RFC 9669, appendix A.
    pub fn group(self) -> Group {
        let divides = |alu| matches!(alu, Alu::Mul | Alu::Div | Alu::SignedDiv | Alu::Mod | Alu::SignedMod);
        match self {
            Op::Alu64Imm(alu) | Op::Alu64Reg(alu) if divides(alu) => Group::Divmul64,
            Op::Alu32Imm(alu) | Op::Alu32Reg(alu) if divides(alu) => Group::Divmul32,
            Op::Atomic32(_) => Group::Atomic32,
            Op::Atomic64(_) => Group::Atomic64,
            Op::LoadAcquire(Width::B8) | Op::StoreRelease(Width::B8) => Group::Atomic64,
            Op::LoadAcquire(_) | Op::StoreRelease(_) => Group::Atomic32,
            Op::Alu64Imm(_) | Op::Alu64Reg(_) | Op::Neg64 | Op::Extend64(_) | Op::Constant => Group::Base64,
            Op::Jump64Imm(_) | Op::Jump64Reg(_) => Group::Base64,
            Op::Load(Width::B8) | Op::Store(Width::B8) | Op::StoreImm(Width::B8) => Group::Base64,
            // A sign extends to all 64 bits.
            Op::LoadSigned(_) | Op::Swap(Width::B8) | Op::Truncate(Width::B8) => Group::Base64,
            _ => Group::Base32,
        }
    }
}
