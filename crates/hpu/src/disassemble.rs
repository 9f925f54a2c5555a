//! Instructions as text, by the names of the decoder: compressed ones as what they expand to.

use crate::decode::{Class, Inst, Kind, csr};
use std::fmt::Write;

/// The names of registers: the integer ones, then the float ones.
const REGISTERS: [&str; 64] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6",
    "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6", "ft0", "ft1",
    "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5", "fa6",
    "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10",
    "ft11",
];

fn register(number: u8) -> &'static str {
    REGISTERS[usize::from(number) & 63]
}

/// Returns the text of an instruction. `label` names the target of a jump.
pub(crate) fn text(inst: &Inst, label: impl Fn(u32) -> String) -> String {
    let name = name(inst);
    let [rd, rs1, rs2] = [inst.rd, inst.rs1, inst.rs2].map(register);
    let (kind, imm) = (inst.kind, inst.imm as i32);
    match kind.class() {
        Class::Load => format!("{name} {rd}, {imm}({rs1})"),
        Class::Store => format!("{name} {rs2}, {imm}({rs1})"),
        Class::Branch if inst.rs2 == 0 => format!("{name}z {rs1}, {}", label(inst.imm)),
        Class::Branch => format!("{name} {rs1}, {rs2}, {}", label(inst.imm)),
        Class::Jump => match inst.rd {
            0 => format!("j {}", label(inst.imm)),
            1 => format!("jal {}", label(inst.imm)),
            _ => format!("jal {rd}, {}", label(inst.imm)),
        },
        Class::JumpRegister => match (inst.rd, inst.rs1, imm) {
            (0, 1, 0) => "ret".to_owned(),
            (0, _, 0) => format!("jr {rs1}"),
            (0, ..) => format!("jr {imm}({rs1})"),
            (1, _, 0) => format!("jalr {rs1}"),
            _ => format!("jalr {rd}, {imm}({rs1})"),
        },
        Class::Atomic if kind == Kind::Lr => format!("{name} {rd}, ({rs1})"),
        Class::Atomic => format!("{name} {rd}, {rs2}, ({rs1})"),
        Class::Csr => format!("csrr {rd}, {}", counter(kind, inst.imm)),
        Class::Fence | Class::Ecall | Class::Never => name,
        _ => computation(inst, &name),
    }
}

/// Returns the text of an instruction that computes a register of others.
fn computation(inst: &Inst, name: &str) -> String {
    let [rd, rs1, rs2] = [inst.rd, inst.rs1, inst.rs2].map(register);
    let imm = inst.imm as i32;
    match inst.kind {
        Kind::Nop => "nop".to_owned(),
        Kind::Addi if inst.rd == 0 => "nop".to_owned(),
        Kind::Addi if inst.rs1 == 0 => format!("li {rd}, {imm}"),
        Kind::Addi if imm == 0 => format!("mv {rd}, {rs1}"),
        Kind::Add if inst.rs1 == 0 => format!("mv {rd}, {rs2}"),
        Kind::Sub if inst.rs1 == 0 => format!("neg {rd}, {rs2}"),
        Kind::Xori if imm == -1 => format!("not {rd}, {rs1}"),
        Kind::Sltiu if imm == 1 => format!("seqz {rd}, {rs1}"),
        Kind::Sltu if inst.rs1 == 0 => format!("snez {rd}, {rs2}"),
        Kind::Constant => format!("li {rd}, {:#x}", inst.imm),
        Kind::Auipc => format!("auipc {rd}, {:#x}", inst.imm),
        kind if has_constant(kind) => format!("{name} {rd}, {rs1}, {imm}"),
        kind if has_one_source(kind) => format!("{name} {rd}, {rs1}"),
        _ => format!("{name} {rd}, {rs1}, {rs2}"),
    }
}

const fn has_constant(kind: Kind) -> bool {
    use Kind::{
        Addi, Addiw, Andi, Bclri, Bexti, Binvi, Bseti, Ori, Rori, Roriw, Slli, SlliUw, Slliw, Slti, Sltiu,
        Srai, Sraiw, Srli, Srliw, Xori,
    };
    matches!(
        kind,
        Addi | Slti
            | Sltiu
            | Xori
            | Ori
            | Andi
            | Slli
            | Srli
            | Srai
            | Addiw
            | Slliw
            | Srliw
            | Sraiw
            | Rori
            | Roriw
            | SlliUw
            | Bclri
            | Bexti
            | Binvi
            | Bseti
    )
}

fn has_one_source(kind: Kind) -> bool {
    use Kind::{Clz, Clzw, Cpop, Cpopw, Ctz, Ctzw, Fclass, Fmv, Fsqrt, OrcB, Rev8, SextB, SextH};
    matches!(
        kind,
        Clz | Clzw | Ctz | Ctzw | Cpop | Cpopw | SextB | SextH | OrcB | Rev8 | Fmv | Fsqrt | Fclass
    ) || kind.class() == Class::FloatConvert
}

fn counter(kind: Kind, number: u32) -> String {
    if kind == Kind::FloatCsr {
        return match csr::unpack(number).0 {
            csr::FFLAGS => "fflags".to_owned(),
            csr::FRM => "frm".to_owned(),
            _ => "fcsr".to_owned(),
        };
    }
    if number == csr::MHARTID {
        return "mhartid".to_owned();
    }
    let name = ["cycle", "time", "instret", "instret"][(number & csr::WHICH) as usize];
    let high = if number & csr::HIGH == 0 { "" } else { "h" };
    format!("{name}{high}")
}

/// Returns the name of an operation: the decoder's, with the suffixes of the manual.
fn name(inst: &Inst) -> String {
    let kind = inst.kind;
    let known = format!("{kind:?}");
    // `AddUw` is add.uw, `SextB` sext.b, and `FenceI` fence.i.
    let mut name = String::new();
    for (index, letter) in known.char_indices() {
        if index > 0 && letter.is_ascii_uppercase() && !kind.is_atomic() {
            name.push('.');
        }
        name.push(letter.to_ascii_lowercase());
    }
    if kind.is_atomic() {
        let _ = write!(name, "{}", if inst.imm == 8 { ".d" } else { ".w" });
    } else if kind.is_float() && !name.contains('.') && kind != Kind::Fmv {
        name.push_str(".s");
    }
    name
}
