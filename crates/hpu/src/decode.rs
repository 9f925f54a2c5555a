//! Decodes instruction words to operations, registers and constants. Registers 0 to 31 are the integer ones, 32 to 63
//! the float ones.
//!
//! Everything independent of register contents is computed here: constants of `lui` and `auipc`, targets of jumps,
//! counters of CSR instructions.

use crate::compressed;
use crate::isa::{Extension, Isa};
use crate::trap::Illegal;

mod float;

pub(crate) use float::{DYNAMIC, Operands};

/// The operation an instruction performs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Nop,
    /// rd = imm: `lui`, `auipc`.
    Constant,
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
    Lb,
    Lh,
    Lw,
    Lbu,
    Lhu,
    Sb,
    Sh,
    Sw,
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
    /// Moves bits between the two kinds of registers.
    Fmv,
    /// `fflags`, `frm` or `fcsr`; imm is [`csr::pack`]ed.
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
            Kind::Mul => Class::Mul,
            Kind::Mulh | Kind::Mulhsu | Kind::Mulhu => Class::MulHigh,
            Kind::Div | Kind::Divu | Kind::Rem | Kind::Remu => Class::Div,
            Kind::Lb | Kind::Lh | Kind::Lw | Kind::Lbu | Kind::Lhu => Class::Load,
            Kind::Sb | Kind::Sh | Kind::Sw => Class::Store,
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

    pub(crate) const fn is_atomic(self) -> bool {
        self as u8 >= Kind::Lr as u8 && self as u8 <= Kind::AmoMaxu as u8
    }

    /// Whether it loads from memory or stores to it.
    pub(crate) const fn accesses(self) -> bool {
        matches!(self.class(), Class::Load | Class::Store | Class::Atomic)
    }

    /// Whether it is of extension F, other than loads and stores.
    pub(crate) const fn is_float(self) -> bool {
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
    /// The immediate, or the absolute target of a branch or jump.
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
        let word = compressed::expand(half).ok_or(illegal(Illegal::Unknown))?;
        let inst = decode_word(word, pc, isa).map_err(illegal)?;
        return Ok(Inst { len: 2, ..inst });
    }
    let Some(&bytes) = code.first_chunk() else { return Ok(end) };
    let word = u32::from_le_bytes(bytes);
    decode_word(word, pc, isa).map_err(|why| (word, why))
}

/// Sign-extends the low `bits` of `value`.
const fn sign_extend(value: u32, bits: u32) -> u32 {
    ((value << (32 - bits)) as i32 >> (32 - bits)) as u32
}

fn decode_word(word: u32, pc: u32, isa: &Isa) -> Result<Inst, Illegal> {
    let rd = (word >> 7 & 31) as u8;
    let rs1 = (word >> 15 & 31) as u8;
    let rs2 = (word >> 20 & 31) as u8;
    let funct3 = word >> 12 & 7;
    let funct7 = word >> 25;
    let i_imm = sign_extend(word >> 20, 12);
    let needs = |extension| if isa.has(extension) { Ok(()) } else { Err(Illegal::Needs(extension)) };

    // The formats: the registers read, and the immediate.
    let make = |kind, rs1: u8, rs2: u8, imm| -> Result<Inst, Illegal> {
        let reads = (1u64 << rs1 | 1u64 << rs2) & !1;
        Ok(Inst { kind, rd, rs1, rs2, imm, reads, len: 4 })
    };
    let with = |extension, inst: Result<Inst, Illegal>| needs(extension).and(inst);
    let unary = |kind, imm| make(kind, rs1, 0, imm);
    let binary = |kind| make(kind, rs1, rs2, 0);

    match word & 0x7f {
        0x37 => make(Kind::Constant, 0, 0, word & 0xffff_f000),
        0x17 => make(Kind::Constant, 0, 0, pc.wrapping_add(word & 0xffff_f000)),
        0x6f => {
            let offset = word >> 31 << 20
                | (word >> 12 & 0xff) << 12
                | (word >> 20 & 1) << 11
                | (word >> 21 & 0x3ff) << 1;
            make(Kind::Jal, 0, 0, pc.wrapping_add(sign_extend(offset, 21)))
        }
        0x67 if funct3 == 0 => unary(Kind::Jalr, i_imm),
        0x63 => {
            let offset =
                word >> 31 << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 0x3f) << 5 | (word >> 8 & 0xf) << 1;
            let target = pc.wrapping_add(sign_extend(offset, 13));
            let kind = match funct3 {
                0 => Kind::Beq,
                1 => Kind::Bne,
                4 => Kind::Blt,
                5 => Kind::Bge,
                6 => Kind::Bltu,
                7 => Kind::Bgeu,
                _ => return Err(Illegal::Unknown),
            };
            make(kind, rs1, rs2, target)
        }
        0x03 => {
            let kind = match funct3 {
                0 => Kind::Lb,
                1 => Kind::Lh,
                2 => Kind::Lw,
                4 => Kind::Lbu,
                5 => Kind::Lhu,
                _ => return Err(Illegal::Unknown),
            };
            unary(kind, i_imm)
        }
        0x23 => {
            let kind = match funct3 {
                0 => Kind::Sb,
                1 => Kind::Sh,
                2 => Kind::Sw,
                _ => return Err(Illegal::Unknown),
            };
            make(kind, rs1, rs2, sign_extend(funct7 << 5 | u32::from(rd), 12))
        }
        0x13 => match (funct3, funct7) {
            (0, _) => unary(Kind::Addi, i_imm),
            (2, _) => unary(Kind::Slti, i_imm),
            (3, _) => unary(Kind::Sltiu, i_imm),
            (4, _) => unary(Kind::Xori, i_imm),
            (6, _) => unary(Kind::Ori, i_imm),
            (7, _) => unary(Kind::Andi, i_imm),
            (1, 0x00) => unary(Kind::Slli, u32::from(rs2)),
            (5, 0x00) => unary(Kind::Srli, u32::from(rs2)),
            (5, 0x20) => unary(Kind::Srai, u32::from(rs2)),
            (1, 0x30) => {
                let kind = match rs2 {
                    0 => Kind::Clz,
                    1 => Kind::Ctz,
                    2 => Kind::Cpop,
                    4 => Kind::SextB,
                    5 => Kind::SextH,
                    _ => return Err(Illegal::Unknown),
                };
                with(Extension::Zbb, unary(kind, 0))
            }
            (5, 0x30) => with(Extension::Zbb, unary(Kind::Rori, u32::from(rs2))),
            (5, 0x14) if rs2 == 0x07 => with(Extension::Zbb, unary(Kind::OrcB, 0)),
            (5, 0x34) if rs2 == 0x18 => with(Extension::Zbb, unary(Kind::Rev8, 0)),
            (1, 0x24) => with(Extension::Zbs, unary(Kind::Andi, !(1 << rs2))),
            (1, 0x34) => with(Extension::Zbs, unary(Kind::Xori, 1 << rs2)),
            (1, 0x14) => with(Extension::Zbs, unary(Kind::Ori, 1 << rs2)),
            (5, 0x24) => with(Extension::Zbs, unary(Kind::Bexti, u32::from(rs2))),
            _ => Err(Illegal::Unknown),
        },
        0x33 => {
            if let Some((extension, kind)) = bit_manipulation(funct7, funct3) {
                return with(extension, binary(kind));
            }
            let kind = match (funct7, funct3) {
                (0x00, 0) => Kind::Add,
                (0x20, 0) => Kind::Sub,
                (0x00, 1) => Kind::Sll,
                (0x00, 2) => Kind::Slt,
                (0x00, 3) => Kind::Sltu,
                (0x00, 4) => Kind::Xor,
                (0x00, 5) => Kind::Srl,
                (0x20, 5) => Kind::Sra,
                (0x00, 6) => Kind::Or,
                (0x00, 7) => Kind::And,
                (0x01, _) => {
                    // Multiplications come before divisions.
                    if funct3 >= 4 || !isa.has(Extension::Zmmul) {
                        needs(Extension::M)?;
                    }
                    const M: [Kind; 8] = [
                        Kind::Mul,
                        Kind::Mulh,
                        Kind::Mulhsu,
                        Kind::Mulhu,
                        Kind::Div,
                        Kind::Divu,
                        Kind::Rem,
                        Kind::Remu,
                    ];
                    M[funct3 as usize]
                }
                // zext.h
                (0x04, 4) if rs2 == 0 => return with(Extension::Zbb, unary(Kind::Andi, 0xffff)),
                _ => return Err(Illegal::Unknown),
            };
            binary(kind)
        }
        0x0f if funct3 == 0 => make(Kind::Fence, 0, 0, 0),
        0x0f if funct3 == 1 => {
            needs(Extension::Zifencei)?;
            make(Kind::FenceI, 0, 0, 0)
        }
        0x73 => match word {
            0x0000_0073 => make(Kind::Ecall, 0, 0, 0),
            0x0010_0073 => make(Kind::Ebreak, 0, 0, 0),
            _ if funct3 & 3 != 0 => {
                needs(Extension::Zicsr)?;
                let csr = word >> 20;
                if csr::FLOAT.contains(&csr) {
                    needs(Extension::F)?;
                    let imm = csr::pack(csr, funct3);
                    let inst = make(Kind::FloatCsr, rs1, 0, imm)?;
                    let reads = if funct3 & csr::IMMEDIATE != 0 { 0 } else { inst.reads };
                    return Ok(Inst { reads, ..inst });
                }
                if !COUNTERS.contains(&csr) {
                    return Err(Illegal::NoSuchCsr(csr));
                }
                // csrrw always writes. The others write if their operand is not x0 or zero.
                if funct3 & 3 == 1 || rs1 != 0 {
                    return Err(Illegal::ReadOnlyCsr(csr));
                }
                make(Kind::Csr, 0, 0, csr)
            }
            _ => Err(Illegal::Unknown),
        },
        0x2f if funct3 == 2 => {
            needs(Extension::A)?;
            let kind = match funct7 >> 2 {
                0x02 if rs2 == 0 => Kind::Lr,
                0x03 => Kind::Sc,
                0x01 => Kind::AmoSwap,
                0x00 => Kind::AmoAdd,
                0x04 => Kind::AmoXor,
                0x0c => Kind::AmoAnd,
                0x08 => Kind::AmoOr,
                0x10 => Kind::AmoMin,
                0x14 => Kind::AmoMax,
                0x18 => Kind::AmoMinu,
                0x1c => Kind::AmoMaxu,
                _ => return Err(Illegal::Unknown),
            };
            binary(kind)
        }
        0x07 | 0x27 | 0x43 | 0x47 | 0x4b | 0x4f | 0x53 => float::decode(word, isa),
        _ => Err(Illegal::Unknown),
    }
}

/// Instructions of Zba, Zbb and Zbs with two registers.
const fn bit_manipulation(funct7: u32, funct3: u32) -> Option<(Extension, Kind)> {
    use Extension::{Zba, Zbb, Zbs};
    Some(match (funct7, funct3) {
        (0x10, 2) => (Zba, Kind::Sh1add),
        (0x10, 4) => (Zba, Kind::Sh2add),
        (0x10, 6) => (Zba, Kind::Sh3add),
        (0x20, 4) => (Zbb, Kind::Xnor),
        (0x20, 6) => (Zbb, Kind::Orn),
        (0x20, 7) => (Zbb, Kind::Andn),
        (0x05, 4) => (Zbb, Kind::Min),
        (0x05, 5) => (Zbb, Kind::Minu),
        (0x05, 6) => (Zbb, Kind::Max),
        (0x05, 7) => (Zbb, Kind::Maxu),
        (0x30, 1) => (Zbb, Kind::Rol),
        (0x30, 5) => (Zbb, Kind::Ror),
        (0x24, 1) => (Zbs, Kind::Bclr),
        (0x24, 5) => (Zbs, Kind::Bext),
        (0x34, 1) => (Zbs, Kind::Binv),
        (0x14, 1) => (Zbs, Kind::Bset),
        _ => return None,
    })
}

/// `cycle`, `time`, `instret`, their high halves, the machine-mode aliases of the first and last, and `mhartid`.
const COUNTERS: [u32; 11] =
    [0xc00, 0xc01, 0xc02, 0xc80, 0xc81, 0xc82, 0xb00, 0xb02, 0xb80, 0xb82, csr::MHARTID];

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
