//! A small assembler: one function per instruction, which returns its word. For tests and benches that need code but no
//! compiler.
//!
//! Shifts by more than 31, and instructions of 64-bit registers, are those of RV64. Registers are numbers; the constants give them their ABI names. Branch and jump offsets are in bytes from the
//! instruction itself.
//!
//! ```
//! use nicety_hpu::asm::*;
//! let double = [add(A0, A0, A0), ret()];
//! assert_eq!(double, [0x00a5_0533, 0x0000_8067]);
//! ```
//!
//! # Panics
//! Every function panics when a register or an immediate does not fit its field.

#![allow(missing_docs)] // each function is the instruction of its name, each constant the register

macro_rules! registers {
    ($($name:ident = $number:literal),* $(,)?) => { $(pub const $name: u32 = $number;)* };
}

registers! {
    ZERO = 0, RA = 1, SP = 2, GP = 3, TP = 4, T0 = 5, T1 = 6, T2 = 7, S0 = 8, S1 = 9, A0 = 10, A1 = 11, A2 = 12,
    A3 = 13, A4 = 14, A5 = 15, A6 = 16, A7 = 17, S2 = 18, S3 = 19, S4 = 20, S5 = 21, S6 = 22, S7 = 23, S8 = 24,
    S9 = 25, S10 = 26, S11 = 27, T3 = 28, T4 = 29, T5 = 30, T6 = 31,
}

registers! {
    FT0 = 0, FT1 = 1, FT2 = 2, FT3 = 3, FT4 = 4, FT5 = 5, FT6 = 6, FT7 = 7, FS0 = 8, FS1 = 9, FA0 = 10, FA1 = 11,
    FA2 = 12, FA3 = 13, FA4 = 14, FA5 = 15, FA6 = 16, FA7 = 17, FS2 = 18, FS3 = 19, FS4 = 20, FS5 = 21, FS6 = 22,
    FS7 = 23, FS8 = 24, FS9 = 25, FS10 = 26, FS11 = 27, FT8 = 28, FT9 = 29, FT10 = 30, FT11 = 31,
}

// Rounding modes: to the nearest, ties to even; towards zero; down; up; to the nearest, ties away from zero; as in
// `frm`.
registers! { RNE = 0, RTZ = 1, RDN = 2, RUP = 3, RMM = 4, DYN = 7 }

// Control and status registers of floats.
registers! { FFLAGS = 1, FRM = 2, FCSR = 3 }

fn reg(register: u32, shift: u32) -> u32 {
    assert!(register < 32, "x{register} is no register");
    register << shift
}

fn signed(value: i32, bits: u32) -> u32 {
    let half = 1i32 << (bits - 1);
    assert!((-half..half).contains(&value), "immediate {value} does not fit {bits} bits");
    value as u32 & ((1u32 << bits) - 1)
}

fn even(value: i32, bits: u32) -> u32 {
    assert!(value % 2 == 0, "offset {value} is odd");
    signed(value, bits)
}

fn r_type(opcode: u32, funct3: u32, funct7: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    opcode | reg(rd, 7) | funct3 << 12 | reg(rs1, 15) | reg(rs2, 20) | funct7 << 25
}

fn i_type(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: i32) -> u32 {
    opcode | reg(rd, 7) | funct3 << 12 | reg(rs1, 15) | signed(imm, 12) << 20
}

fn s_type(opcode: u32, funct3: u32, rs2: u32, imm: i32, rs1: u32) -> u32 {
    let imm = signed(imm, 12);
    opcode | (imm & 0x1f) << 7 | funct3 << 12 | reg(rs1, 15) | reg(rs2, 20) | (imm >> 5) << 25
}

fn b_type(funct3: u32, rs1: u32, rs2: u32, offset: i32) -> u32 {
    let imm = even(offset, 13);
    0x63 | (imm >> 11 & 1) << 7
        | (imm >> 1 & 0xf) << 8
        | funct3 << 12
        | reg(rs1, 15)
        | reg(rs2, 20)
        | (imm >> 5 & 0x3f) << 25
        | (imm >> 12) << 31
}

fn shift_type(funct3: u32, funct7: u32, rd: u32, rs1: u32, amount: u32) -> u32 {
    assert!(amount < 64, "a shift by {amount}");
    0x13 | reg(rd, 7) | funct3 << 12 | reg(rs1, 15) | amount << 20 | funct7 << 25
}

fn u_type(opcode: u32, rd: u32, imm20: u32) -> u32 {
    assert!(imm20 < 1 << 20, "immediate {imm20:#x} does not fit 20 bits");
    opcode | reg(rd, 7) | imm20 << 12
}

macro_rules! instructions {
    (register: $($name:ident $opcode:literal $funct3:literal $funct7:literal;)*) => {
        $(pub fn $name(rd: u32, rs1: u32, rs2: u32) -> u32 { r_type($opcode, $funct3, $funct7, rd, rs1, rs2) })*
    };
    (immediate: $($name:ident $opcode:literal $funct3:literal;)*) => {
        $(pub fn $name(rd: u32, rs1: u32, imm: i32) -> u32 { i_type($opcode, $funct3, rd, rs1, imm) })*
    };
    (load: $($name:ident $funct3:literal;)*) => {
        $(pub fn $name(rd: u32, offset: i32, base: u32) -> u32 { i_type(0x03, $funct3, rd, base, offset) })*
    };
    (store: $($name:ident $funct3:literal;)*) => {
        $(pub fn $name(rs2: u32, offset: i32, base: u32) -> u32 { s_type(0x23, $funct3, rs2, offset, base) })*
    };
    (branch: $($name:ident $funct3:literal;)*) => {
        $(pub fn $name(rs1: u32, rs2: u32, offset: i32) -> u32 { b_type($funct3, rs1, rs2, offset) })*
    };
    (atomic: $($name:ident $double:ident $funct5:literal;)*) => {
        $(pub fn $name(rd: u32, rs2: u32, base: u32) -> u32 { r_type(0x2f, 2, $funct5 << 2, rd, base, rs2) }
        pub fn $double(rd: u32, rs2: u32, base: u32) -> u32 { r_type(0x2f, 3, $funct5 << 2, rd, base, rs2) })*
    };
    (unary: $($name:ident $opcode:literal $funct3:literal $funct7:literal $rs2:literal;)*) => {
        $(pub fn $name(rd: u32, rs1: u32) -> u32 { r_type($opcode, $funct3, $funct7, rd, rs1, $rs2) })*
    };
    (shift: $($name:ident $funct3:literal $funct7:literal;)*) => {
        $(pub fn $name(rd: u32, rs1: u32, amount: u32) -> u32 { shift_type($funct3, $funct7, rd, rs1, amount) })*
    };
    (fused: $($name:ident $opcode:literal;)*) => {
        $(pub fn $name(rd: u32, rs1: u32, rs2: u32, rs3: u32) -> u32 {
            r_type($opcode, DYN, 0, rd, rs1, rs2) | reg(rs3, 27)
        })*
    };
    (csr: $($name:ident $funct3:literal;)*) => {
        $(pub fn $name(rd: u32, csr: u32, rs1: u32) -> u32 {
            assert!(csr < 4096, "CSR {csr:#x} does not fit 12 bits");
            0x73 | reg(rd, 7) | $funct3 << 12 | reg(rs1, 15) | csr << 20
        })*
    };
}

instructions! { register:
    add 0x33 0 0x00; sub 0x33 0 0x20; sll 0x33 1 0x00; slt 0x33 2 0x00; sltu 0x33 3 0x00;
    xor 0x33 4 0x00; srl 0x33 5 0x00; sra 0x33 5 0x20; or 0x33 6 0x00; and 0x33 7 0x00;
    mul 0x33 0 0x01; mulh 0x33 1 0x01; mulhsu 0x33 2 0x01; mulhu 0x33 3 0x01;
    div 0x33 4 0x01; divu 0x33 5 0x01; rem 0x33 6 0x01; remu 0x33 7 0x01;
}
instructions! { immediate:
    addi 0x13 0; slti 0x13 2; sltiu 0x13 3; xori 0x13 4; ori 0x13 6; andi 0x13 7; jalr 0x67 0;
}
instructions! { load: lb 0; lh 1; lw 2; lbu 4; lhu 5; }
instructions! { store: sb 0; sh 1; sw 2; }
instructions! { branch: beq 0; bne 1; blt 4; bge 5; bltu 6; bgeu 7; }
instructions! { atomic:
    sc_w sc_d 0x03; amoswap_w amoswap_d 0x01; amoadd_w amoadd_d 0x00; amoxor_w amoxor_d 0x04;
    amoand_w amoand_d 0x0c; amoor_w amoor_d 0x08; amomin_w amomin_d 0x10; amomax_w amomax_d 0x14;
    amominu_w amominu_d 0x18; amomaxu_w amomaxu_d 0x1c;
}
// The last operand is a register, or a 5-bit number in the three `i` forms.
instructions! { csr: csrrw 1; csrrs 2; csrrc 3; csrrwi 5; csrrsi 6; csrrci 7; }

instructions! { shift: slli 1 0x00; srli 5 0x00; srai 5 0x20; }

// Zba, Zbb, Zbs.
instructions! { register:
    sh1add 0x33 2 0x10; sh2add 0x33 4 0x10; sh3add 0x33 6 0x10;
    andn 0x33 7 0x20; orn 0x33 6 0x20; xnor 0x33 4 0x20;
    max 0x33 6 0x05; maxu 0x33 7 0x05; min 0x33 4 0x05; minu 0x33 5 0x05; rol 0x33 1 0x30; ror 0x33 5 0x30;
    bclr 0x33 1 0x24; bext 0x33 5 0x24; binv 0x33 1 0x34; bset 0x33 1 0x14;
}
instructions! { unary:
    clz 0x13 1 0x30 0; ctz 0x13 1 0x30 1; cpop 0x13 1 0x30 2; sext_b 0x13 1 0x30 4; sext_h 0x13 1 0x30 5;
    zext_h 0x33 4 0x04 0; orc_b 0x13 5 0x14 0x07; rev8 0x13 5 0x34 0x18;
}
instructions! { shift: rori 5 0x30; bclri 1 0x24; bexti 5 0x24; binvi 1 0x34; bseti 1 0x14; }

// RV64, with its forms of M, Zba and Zbb.
instructions! { load: ld 3; lwu 6; }
instructions! { store: sd 3; }
instructions! { immediate: addiw 0x1b 0; }
instructions! { register:
    addw 0x3b 0 0x00; subw 0x3b 0 0x20; sllw 0x3b 1 0x00; srlw 0x3b 5 0x00; sraw 0x3b 5 0x20;
    mulw 0x3b 0 0x01; divw 0x3b 4 0x01; divuw 0x3b 5 0x01; remw 0x3b 6 0x01; remuw 0x3b 7 0x01;
    add_uw 0x3b 0 0x04; sh1add_uw 0x3b 2 0x10; sh2add_uw 0x3b 4 0x10; sh3add_uw 0x3b 6 0x10;
    rolw 0x3b 1 0x30; rorw 0x3b 5 0x30;
}
// The last operand of these is the amount of the shift, below 32.
instructions! { register: slliw 0x1b 1 0x00; srliw 0x1b 5 0x00; sraiw 0x1b 5 0x20; roriw 0x1b 5 0x30; }
instructions! { unary:
    clzw 0x1b 1 0x30 0; ctzw 0x1b 1 0x30 1; cpopw 0x1b 1 0x30 2; zext_h_64 0x3b 4 0x04 0; rev8_64 0x13 5 0x35 0x18;
}
pub fn slli_uw(rd: u32, rs1: u32, amount: u32) -> u32 {
    slli(rd, rs1, amount) | 0x08 | 0x04 << 25
}
pub fn lr_d(rd: u32, base: u32) -> u32 {
    r_type(0x2f, 3, 0x02 << 2, rd, base, 0)
}

// F. Instructions that round use the mode in `frm`, unless `with_rounding` sets one.
instructions! { register:
    fadd_s 0x53 7 0x00; fsub_s 0x53 7 0x04; fmul_s 0x53 7 0x08; fdiv_s 0x53 7 0x0c;
    fsgnj_s 0x53 0 0x10; fsgnjn_s 0x53 1 0x10; fsgnjx_s 0x53 2 0x10; fmin_s 0x53 0 0x14; fmax_s 0x53 1 0x14;
    feq_s 0x53 2 0x50; flt_s 0x53 1 0x50; fle_s 0x53 0 0x50;
}
instructions! { unary:
    fsqrt_s 0x53 7 0x2c 0; fcvt_w_s 0x53 7 0x60 0; fcvt_wu_s 0x53 7 0x60 1; fcvt_s_w 0x53 7 0x68 0;
    fcvt_s_wu 0x53 7 0x68 1; fcvt_l_s 0x53 7 0x60 2; fcvt_lu_s 0x53 7 0x60 3; fcvt_s_l 0x53 7 0x68 2;
    fcvt_s_lu 0x53 7 0x68 3; fmv_x_w 0x53 0 0x70 0; fmv_w_x 0x53 0 0x78 0; fclass_s 0x53 1 0x70 0;
}
instructions! { fused: fmadd_s 0x43; fmsub_s 0x47; fnmsub_s 0x4b; fnmadd_s 0x4f; }

pub fn flw(rd: u32, offset: i32, base: u32) -> u32 {
    i_type(0x07, 2, rd, base, offset)
}
pub fn fsw(rs2: u32, offset: i32, base: u32) -> u32 {
    s_type(0x27, 2, rs2, offset, base)
}
/// Returns a rounding instruction with its own rounding mode.
pub fn with_rounding(word: u32, mode: u32) -> u32 {
    assert!(mode < 8, "rounding mode {mode} does not fit 3 bits");
    word & !(7 << 12) | mode << 12
}

pub fn lui(rd: u32, imm20: u32) -> u32 {
    u_type(0x37, rd, imm20)
}
pub fn auipc(rd: u32, imm20: u32) -> u32 {
    u_type(0x17, rd, imm20)
}
pub fn jal(rd: u32, offset: i32) -> u32 {
    let imm = even(offset, 21);
    0x6f | reg(rd, 7)
        | (imm >> 12 & 0xff) << 12
        | (imm >> 11 & 1) << 20
        | (imm >> 1 & 0x3ff) << 21
        | (imm >> 20) << 31
}
pub fn lr_w(rd: u32, base: u32) -> u32 {
    r_type(0x2f, 2, 0x02 << 2, rd, base, 0)
}
pub const fn fence() -> u32 {
    0x0ff0_000f
}
pub const fn fence_i() -> u32 {
    0x0000_100f
}
pub const fn ecall() -> u32 {
    0x0000_0073
}
pub const fn ebreak() -> u32 {
    0x0010_0073
}

// Pseudo-instructions.

pub fn nop() -> u32 {
    addi(ZERO, ZERO, 0)
}
pub fn mv(rd: u32, rs: u32) -> u32 {
    addi(rd, rs, 0)
}
pub fn j(offset: i32) -> u32 {
    jal(ZERO, offset)
}
pub fn ret() -> u32 {
    jalr(ZERO, RA, 0)
}
/// `lui` and `addi`: any 32-bit value, always two words. RV64 sign-extends `lui`, and needs `addiw` behind it.
pub fn li(rd: u32, value: u32) -> [u32; 2] {
    let low = (value << 20) as i32 >> 20;
    [lui(rd, value.wrapping_sub(low as u32) >> 12), addi(rd, rd, low)]
}

/// Any 64-bit value, always eight words: for RV64.
pub fn li_64(rd: u32, value: u64) -> [u32; 8] {
    // Each piece is added to the shifted value before it. 32 bits remain below the first two words.
    let low = value as u32;
    let [upper, lower] = li(rd, (value >> 32) as u32);
    let eleven = |shift: u32| (low >> shift & 0x7ff) as i32;
    [
        upper,
        addiw(rd, rd, (lower as i32) >> 20),
        slli(rd, rd, 11),
        ori(rd, rd, eleven(21)),
        slli(rd, rd, 11),
        ori(rd, rd, eleven(10)),
        slli(rd, rd, 10),
        ori(rd, rd, (low & 0x3ff) as i32),
    ]
}

/// The bytes of a program made of words.
pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words from GNU and LLVM assemblers.
    #[test]
    fn words_are_those_of_other_assemblers() {
        assert_eq!(addi(SP, SP, -16), 0xff01_0113);
        assert_eq!(sw(RA, 12, SP), 0x0011_2623);
        assert_eq!(sw(A0, -4, S0), 0xfea4_2e23);
        assert_eq!(lw(RA, 12, SP), 0x00c1_2083);
        assert_eq!(bne(A0, A1, -12), 0xfeb5_1ae3);
        assert_eq!(beq(A0, ZERO, 2048 - 2), 0x7e05_0f63);
        assert_eq!(jal(RA, -4), 0xffdf_f0ef);
        assert_eq!(jal(ZERO, 2048), 0x0010_006f);
        assert_eq!(lui(A0, 0x000d_eadb), 0xdead_b537);
        assert_eq!(li(A0, 0xdead_beef), [0xdead_c537, 0xeef5_0513]);
        assert_eq!(srai(A0, A1, 31), 0x41f5_d513);
        assert_eq!(mulhsu(A0, A1, A2), 0x02c5_a533);
        assert_eq!(lr_w(A0, A1), 0x1005_a52f);
        assert_eq!(sc_w(A0, A2, A1), 0x18c5_a52f);
        assert_eq!(amomaxu_w(A0, A2, A1), 0xe0c5_a52f);
        assert_eq!(csrrs(A0, 0xc00, ZERO), 0xc000_2573);
        assert_eq!(sh1add(A0, A1, A2), 0x20c5_a533);
        assert_eq!(clz(A0, A1), 0x6005_9513);
        assert_eq!(rev8(A0, A1), 0x6985_d513);
        assert_eq!(zext_h(A0, A1), 0x0805_c533);
        assert_eq!(bseti(A0, A1, 31), 0x29f5_9513);
        assert_eq!(flw(FA0, 4, A1), 0x0045_a507);
        assert_eq!(fsw(FA0, 4, A1), 0x00a5_a227);
        assert_eq!(fadd_s(FA0, FA1, FA2), 0x00c5_f553);
        assert_eq!(fmadd_s(FA0, FA1, FA2, FA3), 0x68c5_f543);
        assert_eq!(ld(RA, 8, SP), 0x0081_3083);
        assert_eq!(sd(RA, 8, SP), 0x0011_3423);
        assert_eq!(lwu(A0, 4, A1), 0x0045_e503);
        assert_eq!(addiw(A0, A1, -1), 0xfff5_851b);
        assert_eq!(subw(A0, A1, A2), 0x40c5_853b);
        assert_eq!(sraiw(A0, A1, 31), 0x41f5_d51b);
        assert_eq!(srai(A0, A1, 63), 0x43f5_d513);
        assert_eq!(divuw(A0, A1, A2), 0x02c5_d53b);
        assert_eq!(lr_d(A0, A1), 0x1005_b52f);
        assert_eq!(amoadd_d(A0, A2, A1), 0x00c5_b52f);
        assert_eq!(slli_uw(A0, A1, 33), 0x0a15_951b);
        assert_eq!(add_uw(A0, A1, ZERO), 0x0805_853b);
        assert_eq!(zext_h_64(A0, A1), 0x0805_c53b);
        assert_eq!(rev8_64(A0, A1), 0x6b85_d513);
        assert_eq!(fcvt_l_s(A0, FA0), 0xc025_7553);
        assert_eq!(with_rounding(fcvt_w_s(A0, FA0), RTZ), 0xc005_1553);
    }

    #[test]
    #[should_panic(expected = "does not fit 12 bits")]
    fn an_immediate_that_does_not_fit_is_refused() {
        addi(A0, A0, 2048);
    }
}
