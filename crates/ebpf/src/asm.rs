//! Instructions by name, for programs in tests and generators.

use crate::helper::Helper;
use crate::instruction::*;

/// The code of a 64-bit sum.
pub const ADD: u8 = 0x00;
/// The code of a difference.
pub const SUB: u8 = 0x10;
/// The code of a product.
pub const MUL: u8 = 0x20;
/// The code of a quotient.
pub const DIV: u8 = 0x30;
/// The code of bits of either.
pub const OR: u8 = 0x40;
/// The code of bits of both.
pub const AND: u8 = 0x50;
/// The code of a shift left.
pub const LSH: u8 = 0x60;
/// The code of a shift right with zeros.
pub const RSH: u8 = 0x70;
/// The code of a remainder.
pub const MOD: u8 = 0x90;
/// The code of bits of one.
pub const XOR: u8 = 0xa0;
/// The code of a move.
pub const MOV: u8 = 0xb0;
/// The code of a shift right with the sign.
pub const ARSH: u8 = 0xc0;

/// The code of a jump where both are equal.
pub const JEQ: u8 = 0x10;
/// The code of an unsigned greater.
pub const JGT: u8 = 0x20;
/// The code of a jump where both differ.
pub const JNE: u8 = 0x50;

/// Sizes of accesses.
pub const W: u8 = 0x00;
/// Two bytes.
pub const H: u8 = 0x08;
/// One byte.
pub const B: u8 = 0x10;
/// Eight bytes.
pub const DW: u8 = 0x18;

fn slot(code: u8, dst: u8, src: u8, offset: i16, imm: i32) -> Instruction {
    Instruction { code, dst, src, offset, imm }
}

/// 64-bit arithmetic with a constant.
pub fn alu64_imm(operation: u8, dst: u8, imm: i32) -> Instruction {
    slot(ALU64 | operation, dst, 0, 0, imm)
}

/// 64-bit arithmetic with a register.
pub fn alu64(operation: u8, dst: u8, src: u8) -> Instruction {
    slot(ALU64 | REGISTER | operation, dst, src, 0, 0)
}

/// 32-bit arithmetic with a constant.
pub fn alu32_imm(operation: u8, dst: u8, imm: i32) -> Instruction {
    slot(ALU32 | operation, dst, 0, 0, imm)
}

/// 32-bit arithmetic with a register.
pub fn alu32(operation: u8, dst: u8, src: u8) -> Instruction {
    slot(ALU32 | REGISTER | operation, dst, src, 0, 0)
}

/// Moves a constant.
pub fn mov_imm(dst: u8, imm: i32) -> Instruction {
    alu64_imm(MOV, dst, imm)
}

/// Moves a register.
pub fn mov(dst: u8, src: u8) -> Instruction {
    alu64(MOV, dst, src)
}

/// Loads.
pub fn load(size: u8, dst: u8, src: u8, offset: i16) -> Instruction {
    slot(LDX | MODE_MEM | size, dst, src, offset, 0)
}

/// Stores a register.
pub fn store(size: u8, dst: u8, offset: i16, src: u8) -> Instruction {
    slot(STX | MODE_MEM | size, dst, src, offset, 0)
}

/// Stores a constant.
pub fn store_imm(size: u8, dst: u8, offset: i16, imm: i32) -> Instruction {
    slot(ST | MODE_MEM | size, dst, 0, offset, imm)
}

/// An atomic operation by its number.
pub fn atomic(size: u8, operation: i32, dst: u8, offset: i16, src: u8) -> Instruction {
    slot(STX | MODE_ATOMIC | size, dst, src, offset, operation)
}

/// A 64-bit jump that compares with a constant.
pub fn jump_imm(operation: u8, dst: u8, imm: i32, distance: i16) -> Instruction {
    slot(JMP | operation, dst, 0, distance, imm)
}

/// A 64-bit jump that compares with a register.
pub fn jump(operation: u8, dst: u8, src: u8, distance: i16) -> Instruction {
    slot(JMP | REGISTER | operation, dst, src, distance, 0)
}

/// A jump without condition.
pub fn goto(distance: i16) -> Instruction {
    slot(JMP, 0, 0, distance, 0)
}

/// A call of a helper.
pub fn call(helper: Helper) -> Instruction {
    slot(CALL, 0, 0, 0, helper as i32)
}

/// A call of a function at a distance in slots.
pub fn call_local(distance: i32) -> Instruction {
    slot(CALL, 0, CALL_LOCAL, 0, distance)
}

/// The end of a function.
pub fn exit() -> Instruction {
    slot(EXIT, 0, 0, 0, 0)
}

/// A 64-bit constant.
pub fn constant(dst: u8, value: u64) -> [Instruction; 2] {
    wide(dst, CONSTANT, value as i32, (value >> 32) as i32)
}

/// A map by its number.
pub fn map(dst: u8, number: u32) -> [Instruction; 2] {
    wide(dst, CONSTANT_MAP, number as i32, 0)
}

/// A function at a distance in slots.
pub fn function(dst: u8, distance: i32) -> [Instruction; 2] {
    wide(dst, CONSTANT_FUNCTION, distance, 0)
}

fn wide(dst: u8, kind: u8, low: i32, high: i32) -> [Instruction; 2] {
    [slot(LOAD_CONSTANT, dst, kind, 0, low), slot(0, 0, 0, 0, high)]
}
