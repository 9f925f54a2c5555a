//! Decodes instruction words to operations, registers and constants. Registers 0 to 31 are the integer ones, 32 to 63
//! the float ones.
//!
//! Everything independent of register contents is computed here: constants of `lui` and `auipc`, targets of jumps,
//! counters of CSR instructions.

use crate::compressed;
use crate::isa::{Extension, Isa};
use crate::trap::Illegal;

mod float;
mod word;

pub(crate) use float::{DYNAMIC, Operands};

/// The operation an instruction performs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are those of the RISC-V manual")]
pub enum Kind {
    Nop,
    /// rd = imm: `lui`, and in RV32 `auipc`.
    Constant,
    /// `auipc` of RV64, with its offset.
    Auipc,
    Addi,
    Slti,
    Sltiu,
    Xori,
    Ori,
    Andi,
    Slli,
    Srli,
    Srai,
    Add,
    Sub,
    Sll,
    Slt,
    Sltu,
    Xor,
    Srl,
    Sra,
    Or,
    And,
    Mul,
    Mulh,
    Mulhsu,
    Mulhu,
    Div,
    Divu,
    Rem,
    Remu,
    // Word forms of RV64.
    Addiw,
    Slliw,
    Srliw,
    Sraiw,
    Addw,
    Subw,
    Sllw,
    Srlw,
    Sraw,
    Mulw,
    Divw,
    Divuw,
    Remw,
    Remuw,
    Lb,
    Lh,
    Lw,
    Ld,
    Lbu,
    Lhu,
    Lwu,
    Sb,
    Sh,
    Sw,
    Sd,
    /// rd = the counter with number imm.
    Csr,
    // Zba, Zbb and Zbs, without those that are one of the above with another constant.
    Sh1add,
    Sh2add,
    Sh3add,
    Andn,
    Orn,
    Xnor,
    Clz,
    Ctz,
    Cpop,
    Max,
    Maxu,
    Min,
    Minu,
    SextB,
    SextH,
    Rol,
    Ror,
    Rori,
    OrcB,
    Rev8,
    Bclr,
    Bext,
    Bexti,
    Binv,
    Bset,
    // Their forms of RV64.
    AddUw,
    Sh1addUw,
    Sh2addUw,
    Sh3addUw,
    SlliUw,
    Clzw,
    Ctzw,
    Cpopw,
    Rolw,
    Rorw,
    Roriw,
    Bclri,
    Binvi,
    Bseti,
    // F. Its loads and stores are those of words.
    Fadd,
    Fsub,
    Fmul,
    Fdiv,
    Fsqrt,
    Fmadd,
    Fmsub,
    Fnmsub,
    Fnmadd,
    Fsgnj,
    Fsgnjn,
    Fsgnjx,
    Fmin,
    Fmax,
    Feq,
    Flt,
    Fle,
    Fclass,
    FcvtWS,
    FcvtWuS,
    FcvtSW,
    FcvtSWu,
    // To and from 64-bit integers.
    FcvtLS,
    FcvtLuS,
    FcvtSL,
    FcvtSLu,
    /// Moves bits between the two kinds of registers.
    Fmv,
    /// `fflags`, `frm` or `fcsr`; imm is packed by `csr::pack`.
    FloatCsr,
    // From here on, an operation ends its block.
    Beq,
    Bne,
    Blt,
    Bge,
    Bltu,
    Bgeu,
    Jal,
    Jalr,
    Fence,
    FenceI,
    Ecall,
    Ebreak,
    // Atomics; imm is their size in bytes.
    Lr,
    Sc,
    AmoSwap,
    AmoAdd,
    AmoXor,
    AmoAnd,
    AmoOr,
    AmoMin,
    AmoMax,
    AmoMinu,
    AmoMaxu,
    /// A word that is not an instruction of the core.
    Illegal,
    /// The code ends here: a further fetch traps.
    CodeEnd,
    /// Not an instruction: the block has reached its maximum length and continues in the next one.
    Through,
}

/// The class of an instruction, which determines its cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Alu,
    Mul,
    MulHigh,
    Div,
    DivWord,
    Load,
    Store,
    Branch,
    Jump,
    JumpRegister,
    Csr,
    FloatAdd,
    FloatMul,
    FloatFused,
    FloatDiv,
    FloatSqrt,
    FloatConvert,
    FloatCompare,
    FloatMove,
    Atomic,
    Fence,
    Ecall,
    /// It never completes.
    Never,
}

impl Kind {
    #[inline]
    pub(crate) const fn class(self) -> Class {
        match self {
            Kind::Mul | Kind::Mulw => Class::Mul,
            Kind::Mulh | Kind::Mulhsu | Kind::Mulhu => Class::MulHigh,
            Kind::Div | Kind::Divu | Kind::Rem | Kind::Remu => Class::Div,
            Kind::Divw | Kind::Divuw | Kind::Remw | Kind::Remuw => Class::DivWord,
            Kind::Lb | Kind::Lh | Kind::Lw | Kind::Ld | Kind::Lbu | Kind::Lhu | Kind::Lwu => Class::Load,
            Kind::Sb | Kind::Sh | Kind::Sw | Kind::Sd => Class::Store,
            Kind::Beq | Kind::Bne | Kind::Blt | Kind::Bge | Kind::Bltu | Kind::Bgeu => Class::Branch,
            Kind::Jal => Class::Jump,
            Kind::Jalr => Class::JumpRegister,
            Kind::Csr | Kind::FloatCsr => Class::Csr,
            Kind::Fadd | Kind::Fsub => Class::FloatAdd,
            Kind::Fmul => Class::FloatMul,
            Kind::Fmadd | Kind::Fmsub | Kind::Fnmsub | Kind::Fnmadd => Class::FloatFused,
            Kind::Fdiv => Class::FloatDiv,
            Kind::Fsqrt => Class::FloatSqrt,
            Kind::FcvtWS | Kind::FcvtWuS | Kind::FcvtSW | Kind::FcvtSWu => Class::FloatConvert,
            Kind::FcvtLS | Kind::FcvtLuS | Kind::FcvtSL | Kind::FcvtSLu => Class::FloatConvert,
            Kind::Fmin | Kind::Fmax | Kind::Feq | Kind::Flt | Kind::Fle | Kind::Fclass => Class::FloatCompare,
            Kind::Fsgnj | Kind::Fsgnjn | Kind::Fsgnjx | Kind::Fmv => Class::FloatMove,
            Kind::Fence | Kind::FenceI => Class::Fence,
            Kind::Ecall => Class::Ecall,
            Kind::Ebreak | Kind::Illegal | Kind::CodeEnd | Kind::Through => Class::Never,
            _ if self.is_atomic() => Class::Atomic,
            _ => Class::Alu,
        }
    }

    pub(crate) const fn ends_block(self) -> bool {
        self as u8 >= Kind::Beq as u8
    }

    /// Whether it is LR, SC or an AMO.
    pub const fn is_atomic(self) -> bool {
        self as u8 >= Kind::Lr as u8 && self as u8 <= Kind::AmoMaxu as u8
    }

    /// Whether it loads from memory or stores to it.
    pub(crate) const fn accesses(self) -> bool {
        matches!(self.class(), Class::Load | Class::Store | Class::Atomic)
    }

    /// Whether it is of extension F, other than loads and stores.
    pub const fn is_float(self) -> bool {
        self as u8 >= Kind::Fadd as u8 && self as u8 <= Kind::FloatCsr as u8
    }

    /// Whether the result comes from memory, so that its immediate use costs a load-use penalty.
    pub(crate) const fn loads(self) -> bool {
        matches!(self.class(), Class::Load | Class::Atomic)
    }
}

/// One decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inst {
    pub kind: Kind,
    pub rd: u8,
    pub rs1: u8,
    pub rs2: u8,
    /// The immediate, which RV64 sign-extends, or the absolute target of a branch or jump.
    pub imm: u32,
    /// The registers that it reads, as a bit set without x0.
    pub reads: u64,
    /// Its length, 2 or 4 bytes.
    pub len: u8,
}

/// Decodes the instruction at the beginning of `code`, which is at `pc`. The error has the word.
///
/// Returns [`Kind::CodeEnd`] if there are fewer bytes than the instruction needs.
pub(crate) fn decode(code: &[u8], pc: u32, isa: &Isa) -> Result<Inst, (u32, Illegal)> {
    let end = Inst { kind: Kind::CodeEnd, rd: 0, rs1: 0, rs2: 0, imm: 0, reads: 0, len: 0 };
    let Some(&[low, high]) = code.first_chunk() else { return Ok(end) };
    let half = u16::from_le_bytes([low, high]);
    if half & 3 != 3 {
        let illegal = |why| (u32::from(half), why);
        if half == 0 {
            return Err(illegal(Illegal::Zero));
        }
        if !isa.has(Extension::C) {
            return Err(illegal(Illegal::Needs(Extension::C)));
        }
        let word = compressed::expand(half, isa.is_wide()).ok_or(illegal(Illegal::Unknown))?;
        let inst = word::decode(word, pc, isa).map_err(illegal)?;
        return Ok(Inst { len: 2, ..inst });
    }
    let Some(&bytes) = code.first_chunk() else { return Ok(end) };
    let word = u32::from_le_bytes(bytes);
    word::decode(word, pc, isa).map_err(|why| (word, why))
}

/// Sign-extends the low `bits` of `value`.
const fn sign_extend(value: u32, bits: u32) -> u32 {
    ((value << (32 - bits)) as i32 >> (32 - bits)) as u32
}

/// Numbers of the CSRs, and the bits by which the interpreter distinguishes them.
pub(crate) mod csr {
    pub(crate) const MHARTID: u32 = 0xf14;
    /// Set in the number of a high half.
    pub(crate) const HIGH: u32 = 0x80;
    /// The low bits that distinguish cycle (0), time (1) and instret (2).
    pub(crate) const WHICH: u32 = 3;

    pub(crate) const FFLAGS: u32 = 1;
    pub(crate) const FRM: u32 = 2;
    /// `fflags`, `frm`, and `fcsr`, which is both.
    pub(crate) const FLOAT: [u32; 3] = [FFLAGS, FRM, 3];
    /// Set in the funct3 of instructions with a number as operand.
    pub(crate) const IMMEDIATE: u32 = 4;

    /// A CSR's number and the funct3 of the instruction, in one constant.
    pub(crate) const fn pack(number: u32, funct3: u32) -> u32 {
        number | funct3 << 12
    }

    pub(crate) const fn unpack(packed: u32) -> (u32, u32) {
        (packed & 0xfff, packed >> 12)
    }
}
