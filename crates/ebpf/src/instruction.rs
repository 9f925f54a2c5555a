//! One slot of eBPF code, as RFC 9669 encodes it, and the numbers of its fields.

/// A slot of eight bytes. A 64-bit constant takes two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// Class, operation or size, and kind of operand.
    pub code: u8,
    /// The destination register.
    pub dst: u8,
    /// The source register, or the kind of a call or constant.
    pub src: u8,
    /// A distance in bytes or in slots, or a variant of the operation.
    pub offset: i16,
    /// The constant operand.
    pub imm: i32,
}

/// Bytes of a slot.
pub const SLOT: usize = 8;

impl Instruction {
    /// Reads a slot, little-endian.
    pub fn read(bytes: [u8; SLOT]) -> Instruction {
        let [code, registers, offset_low, offset_high, imm @ ..] = bytes;
        Instruction {
            code,
            dst: registers & 0xf,
            src: registers >> 4,
            offset: i16::from_le_bytes([offset_low, offset_high]),
            imm: i32::from_le_bytes(imm),
        }
    }

    /// Writes a slot, little-endian. Registers take four bits each.
    pub fn bytes(self) -> [u8; SLOT] {
        let [offset_low, offset_high] = self.offset.to_le_bytes();
        let [a, b, c, d] = self.imm.to_le_bytes();
        [self.code, (self.src << 4) | (self.dst & 0xf), offset_low, offset_high, a, b, c, d]
    }

    /// The class: the low three bits.
    pub fn class(self) -> u8 {
        self.code & 7
    }

    /// Whether this is the first slot of a 64-bit constant.
    pub fn is_wide(self) -> bool {
        self.code == LOAD_CONSTANT
    }

    /// Whether this is a call of a function of the program.
    pub fn is_local_call(self) -> bool {
        self.code == CALL && self.src == CALL_LOCAL
    }
}

/// Loads of constants, and the refused loads of classic BPF.
pub const LD: u8 = 0;
/// Loads.
pub const LDX: u8 = 1;
/// Stores of constants.
pub const ST: u8 = 2;
/// Stores of registers, and atomic operations.
pub const STX: u8 = 3;
/// 32-bit arithmetic.
pub const ALU32: u8 = 4;
/// 64-bit jumps, calls and exits.
pub const JMP: u8 = 5;
/// 32-bit jumps.
pub const JMP32: u8 = 6;
/// 64-bit arithmetic.
pub const ALU64: u8 = 7;

/// The operand is a register.
pub const REGISTER: u8 = 8;

/// The first slot of a 64-bit constant.
pub const LOAD_CONSTANT: u8 = 0x18;
/// A call.
pub const CALL: u8 = 0x85;
/// The end of a function.
pub const EXIT: u8 = 0x95;

/// `src` of a call of a function of the program.
pub const CALL_LOCAL: u8 = 1;
/// `src` of a call of a function of the kernel by its BTF number.
pub const CALL_KERNEL: u8 = 2;

/// `src` of a plain constant.
pub const CONSTANT: u8 = 0;
/// `src` of a map.
pub const CONSTANT_MAP: u8 = 1;
/// `src` of an address in the value of a map with one entry.
pub const CONSTANT_VALUE: u8 = 2;
/// `src` of a function of the program.
pub const CONSTANT_FUNCTION: u8 = 4;

/// Bits of the mode in loads and stores.
pub const MODE: u8 = 0xe0;
/// A plain access.
pub const MODE_MEM: u8 = 0x60;
/// A load that extends the sign.
pub const MODE_SIGNED: u8 = 0x80;
/// An atomic operation.
pub const MODE_ATOMIC: u8 = 0xc0;
/// A legacy load from the packet at a constant.
pub const MODE_ABS: u8 = 0x20;
/// A legacy load from the packet at a register.
pub const MODE_IND: u8 = 0x40;

/// Bits of the size in loads and stores.
pub const SIZE: u8 = 0x18;

/// The bit of an atomic operation that gives the old value.
pub const FETCH: i32 = 1;
