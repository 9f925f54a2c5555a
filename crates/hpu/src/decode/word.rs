//! Decodes instruction words of 32 bits, by their major opcode.

use crate::decode::{Inst, Kind, csr, float, sign_extend};
use crate::isa::{Extension, Isa};
use crate::trap::Illegal;

/// Decodes the instruction word at `pc`.
pub(super) fn decode(word: u32, pc: u32, isa: &Isa) -> Result<Inst, Illegal> {
    let word = Word {
        word,
        rd: (word >> 7 & 31) as u8,
        rs1: (word >> 15 & 31) as u8,
        rs2: (word >> 20 & 31) as u8,
        funct3: word >> 12 & 7,
        funct7: word >> 25,
        isa,
    };
    word.decode(pc)
}

/// The fields of an instruction word.
struct Word<'a> {
    word: u32,
    rd: u8,
    rs1: u8,
    rs2: u8,
    funct3: u32,
    funct7: u32,
    isa: &'a Isa,
}

impl Word<'_> {
    fn decode(&self, pc: u32) -> Result<Inst, Illegal> {
        let Word { word, rs1, rs2, funct3, .. } = *self;
        Ok(match word & 0x7f {
            0x37 => self.make(Kind::Constant, 0, 0, word & 0xffff_f000),
            0x17 if self.isa.is_wide() => self.make(Kind::Auipc, 0, 0, word & 0xffff_f000),
            0x17 => self.make(Kind::Constant, 0, 0, pc.wrapping_add(word & 0xffff_f000)),
            0x6f => {
                let offset = word >> 31 << 20
                    | (word >> 12 & 0xff) << 12
                    | (word >> 20 & 1) << 11
                    | (word >> 21 & 0x3ff) << 1;
                self.make(Kind::Jal, 0, 0, pc.wrapping_add(sign_extend(offset, 21)))
            }
            0x67 if funct3 == 0 => self.unary(Kind::Jalr, sign_extend(word >> 20, 12)),
            0x63 => {
                let offset = word >> 31 << 12
                    | (word >> 7 & 1) << 11
                    | (word >> 25 & 0x3f) << 5
                    | (word >> 8 & 0xf) << 1;
                self.make(self.branch()?, rs1, rs2, pc.wrapping_add(sign_extend(offset, 13)))
            }
            0x03 => self.unary(self.load()?, sign_extend(word >> 20, 12)),
            0x23 => {
                let offset = sign_extend(self.funct7 << 5 | u32::from(self.rd), 12);
                self.make(self.store()?, rs1, rs2, offset)
            }
            0x13 => return self.with_constant(),
            0x33 => return self.with_registers(),
            0x1b if self.isa.is_wide() => return self.word_with_constant(),
            0x3b if self.isa.is_wide() => return self.word_with_registers(),
            0x0f if funct3 == 0 => self.make(Kind::Fence, 0, 0, 0),
            0x0f if funct3 == 1 => {
                self.needs(Extension::Zifencei)?;
                self.make(Kind::FenceI, 0, 0, 0)
            }
            0x73 => return self.system(),
            0x2f if funct3 == 2 || funct3 == 3 && self.isa.is_wide() => {
                self.needs(Extension::A)?;
                self.make(self.atomic()?, rs1, rs2, 1 << funct3)
            }
            0x07 | 0x27 | 0x43 | 0x47 | 0x4b | 0x4f | 0x53 => return float::decode(word, self.isa),
            _ => return Err(Illegal::Unknown),
        })
    }

    const fn needs(&self, extension: Extension) -> Result<(), Illegal> {
        if self.isa.has(extension) { Ok(()) } else { Err(Illegal::Needs(extension)) }
    }

    /// Returns an instruction that reads these registers.
    const fn make(&self, kind: Kind, rs1: u8, rs2: u8, imm: u32) -> Inst {
        let reads = (1u64 << rs1 | 1u64 << rs2) & !1;
        Inst { kind, rd: self.rd, rs1, rs2, imm, reads, len: 4 }
    }

    const fn unary(&self, kind: Kind, imm: u32) -> Inst {
        self.make(kind, self.rs1, 0, imm)
    }

    const fn binary(&self, kind: Kind) -> Inst {
        self.make(kind, self.rs1, self.rs2, 0)
    }

    const fn branch(&self) -> Result<Kind, Illegal> {
        Ok(match self.funct3 {
            0 => Kind::Beq,
            1 => Kind::Bne,
            4 => Kind::Blt,
            5 => Kind::Bge,
            6 => Kind::Bltu,
            7 => Kind::Bgeu,
            _ => return Err(Illegal::Unknown),
        })
    }

    const fn load(&self) -> Result<Kind, Illegal> {
        Ok(match self.funct3 {
            0 => Kind::Lb,
            1 => Kind::Lh,
            2 => Kind::Lw,
            3 if self.isa.is_wide() => Kind::Ld,
            4 => Kind::Lbu,
            5 => Kind::Lhu,
            6 if self.isa.is_wide() => Kind::Lwu,
            _ => return Err(Illegal::Unknown),
        })
    }

    const fn store(&self) -> Result<Kind, Illegal> {
        Ok(match self.funct3 {
            0 => Kind::Sb,
            1 => Kind::Sh,
            2 => Kind::Sw,
            3 if self.isa.is_wide() => Kind::Sd,
            _ => return Err(Illegal::Unknown),
        })
    }

    /// Decodes an operation on a register and a constant.
    fn with_constant(&self) -> Result<Inst, Illegal> {
        let imm = sign_extend(self.word >> 20, 12);
        Ok(match self.funct3 {
            0 => self.unary(Kind::Addi, imm),
            2 => self.unary(Kind::Slti, imm),
            3 => self.unary(Kind::Sltiu, imm),
            4 => self.unary(Kind::Xori, imm),
            6 => self.unary(Kind::Ori, imm),
            7 => self.unary(Kind::Andi, imm),
            _ => return self.shift(),
        })
    }

    /// Decodes a shift by a constant, or another operation in its encoding.
    fn shift(&self) -> Result<Inst, Illegal> {
        let wide = self.isa.is_wide();
        // The amount has six bits in RV64.
        let (amount, funct7) = match wide {
            true => (self.word >> 20 & 63, self.funct7 & !1),
            false => (u32::from(self.rs2), self.funct7),
        };
        let with = |extension, kind, imm| self.needs(extension).map(|()| self.unary(kind, imm));
        let reversed = if wide { 0x38 } else { 0x18 };
        Ok(match (self.funct3, funct7) {
            (1, 0x00) => self.unary(Kind::Slli, amount),
            (5, 0x00) => self.unary(Kind::Srli, amount),
            (5, 0x20) => self.unary(Kind::Srai, amount),
            (1, 0x30) => {
                let kind = match amount {
                    0 => Kind::Clz,
                    1 => Kind::Ctz,
                    2 => Kind::Cpop,
                    4 => Kind::SextB,
                    5 => Kind::SextH,
                    _ => return Err(Illegal::Unknown),
                };
                with(Extension::Zbb, kind, 0)?
            }
            (5, 0x30) => with(Extension::Zbb, Kind::Rori, amount)?,
            (5, 0x14) if amount == 0x07 => with(Extension::Zbb, Kind::OrcB, 0)?,
            (5, 0x34) if amount == reversed => with(Extension::Zbb, Kind::Rev8, 0)?,
            (5, 0x24) => with(Extension::Zbs, Kind::Bexti, amount)?,
            (1, 0x24) if wide => with(Extension::Zbs, Kind::Bclri, amount)?,
            (1, 0x34) if wide => with(Extension::Zbs, Kind::Binvi, amount)?,
            (1, 0x14) if wide => with(Extension::Zbs, Kind::Bseti, amount)?,
            (1, 0x24) => with(Extension::Zbs, Kind::Andi, !(1 << amount))?,
            (1, 0x34) => with(Extension::Zbs, Kind::Xori, 1 << amount)?,
            (1, 0x14) => with(Extension::Zbs, Kind::Ori, 1 << amount)?,
            _ => return Err(Illegal::Unknown),
        })
    }

    /// Decodes an operation of RV64 on a word and a constant.
    fn word_with_constant(&self) -> Result<Inst, Illegal> {
        let amount = u32::from(self.rs2);
        let with = |extension, kind, imm| self.needs(extension).map(|()| self.unary(kind, imm));
        Ok(match (self.funct3, self.funct7) {
            (0, _) => self.unary(Kind::Addiw, sign_extend(self.word >> 20, 12)),
            (1, 0x00) => self.unary(Kind::Slliw, amount),
            (5, 0x00) => self.unary(Kind::Srliw, amount),
            (5, 0x20) => self.unary(Kind::Sraiw, amount),
            // Its amount has six bits.
            (1, 0x04 | 0x05) => with(Extension::Zba, Kind::SlliUw, self.word >> 20 & 63)?,
            (1, 0x30) => {
                let kind = match self.rs2 {
                    0 => Kind::Clzw,
                    1 => Kind::Ctzw,
                    2 => Kind::Cpopw,
                    _ => return Err(Illegal::Unknown),
                };
                with(Extension::Zbb, kind, 0)?
            }
            (5, 0x30) => with(Extension::Zbb, Kind::Roriw, amount)?,
            _ => return Err(Illegal::Unknown),
        })
    }

    /// Decodes an operation of RV64 on two words.
    fn word_with_registers(&self) -> Result<Inst, Illegal> {
        let (needed, kind) = match (self.funct7, self.funct3) {
            (0x00, 0) => (None, Kind::Addw),
            (0x20, 0) => (None, Kind::Subw),
            (0x00, 1) => (None, Kind::Sllw),
            (0x00, 5) => (None, Kind::Srlw),
            (0x20, 5) => (None, Kind::Sraw),
            (0x01, 0) if self.isa.has(Extension::Zmmul) => (None, Kind::Mulw),
            (0x01, 0) => (Some(Extension::M), Kind::Mulw),
            (0x01, 4) => (Some(Extension::M), Kind::Divw),
            (0x01, 5) => (Some(Extension::M), Kind::Divuw),
            (0x01, 6) => (Some(Extension::M), Kind::Remw),
            (0x01, 7) => (Some(Extension::M), Kind::Remuw),
            (0x04, 0) => (Some(Extension::Zba), Kind::AddUw),
            (0x10, 2) => (Some(Extension::Zba), Kind::Sh1addUw),
            (0x10, 4) => (Some(Extension::Zba), Kind::Sh2addUw),
            (0x10, 6) => (Some(Extension::Zba), Kind::Sh3addUw),
            (0x30, 1) => (Some(Extension::Zbb), Kind::Rolw),
            (0x30, 5) => (Some(Extension::Zbb), Kind::Rorw),
            (0x04, 4) if self.rs2 == 0 => {
                self.needs(Extension::Zbb)?;
                return Ok(self.zero_extended_half());
            }
            _ => return Err(Illegal::Unknown),
        };
        needed.map_or(Ok(()), |extension| self.needs(extension))?;
        Ok(self.binary(kind))
    }

    /// `zext.h`, which has another opcode in RV64.
    const fn zero_extended_half(&self) -> Inst {
        self.unary(Kind::Andi, 0xffff)
    }

    /// Decodes an operation on two registers.
    fn with_registers(&self) -> Result<Inst, Illegal> {
        let (funct7, funct3) = (self.funct7, self.funct3);
        if let Some((extension, kind)) = bit_manipulation(funct7, funct3) {
            self.needs(extension)?;
            return Ok(self.binary(kind));
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
                if funct3 >= 4 || !self.isa.has(Extension::Zmmul) {
                    self.needs(Extension::M)?;
                }
                MULTIPLICATIONS[funct3 as usize]
            }
            (0x04, 4) if self.rs2 == 0 && !self.isa.is_wide() => {
                self.needs(Extension::Zbb)?;
                return Ok(self.zero_extended_half());
            }
            _ => return Err(Illegal::Unknown),
        };
        Ok(self.binary(kind))
    }

    /// Decodes a call, a trap, or an access to a CSR.
    fn system(&self) -> Result<Inst, Illegal> {
        let (word, funct3) = (self.word, self.funct3);
        match word {
            0x0000_0073 => return Ok(self.make(Kind::Ecall, 0, 0, 0)),
            0x0010_0073 => return Ok(self.make(Kind::Ebreak, 0, 0, 0)),
            _ if funct3 & 3 == 0 => return Err(Illegal::Unknown),
            _ => self.needs(Extension::Zicsr)?,
        }
        let csr = word >> 20;
        if csr::FLOAT.contains(&csr) {
            self.needs(Extension::F)?;
            let inst = self.make(Kind::FloatCsr, self.rs1, 0, csr::pack(csr, funct3));
            let reads = if funct3 & csr::IMMEDIATE != 0 { 0 } else { inst.reads };
            return Ok(Inst { reads, ..inst });
        }
        let is_high = csr != csr::MHARTID && csr & csr::HIGH != 0;
        if !COUNTERS.contains(&csr) || is_high && self.isa.is_wide() {
            return Err(Illegal::NoSuchCsr(csr));
        }
        // csrrw always writes. The others write if their operand is not x0 or zero.
        if funct3 & 3 == 1 || self.rs1 != 0 {
            return Err(Illegal::ReadOnlyCsr(csr));
        }
        Ok(self.make(Kind::Csr, 0, 0, csr))
    }

    const fn atomic(&self) -> Result<Kind, Illegal> {
        Ok(match self.funct7 >> 2 {
            0x02 if self.rs2 == 0 => Kind::Lr,
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
        })
    }
}

/// Multiplications and divisions, by funct3.
const MULTIPLICATIONS: [Kind; 8] =
    [Kind::Mul, Kind::Mulh, Kind::Mulhsu, Kind::Mulhu, Kind::Div, Kind::Divu, Kind::Rem, Kind::Remu];

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
