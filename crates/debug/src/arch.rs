//! RISC-V for GDB: registers, their order, and the description of the target. Values of RV32 are widened to 64 bits.

use gdbstub::arch::{Arch, Registers as GdbRegisters};
use nicety_hpu::{Context, Extension, Isa};
use std::fmt::Write;

/// The integer registers and the pc.
const INTEGERS: usize = 33;

/// The float registers and `fcsr`. Its parts `fflags` and `frm` are no registers of their own here.
const FLOATS: usize = 33;

/// The names of the integer registers in the calling convention, as GDB has them.
const NAMES: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6",
    "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
];

/// The names of the float registers.
const FLOAT_NAMES: [&str; 32] = [
    "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2", "fa3", "fa4",
    "fa5", "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8",
    "ft9", "ft10", "ft11",
];

/// Cores of 32 or 64 bits.
pub(crate) enum RiscV {}

impl Arch for RiscV {
    type Usize = u64;
    type Registers = Registers;
    type BreakpointKind = usize;
    type RegId = ();
}

/// The registers of a core.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Registers {
    wide: bool,
    has_floats: bool,
    integers: [u64; 32],
    pc: u64,
    floats: [u32; 32],
    fcsr: u32,
    /// Bytes from GDB, not decoded yet.
    received: Vec<u8>,
}

impl Registers {
    /// Returns the registers of a context.
    pub(crate) fn of(context: &Context, isa: &Isa) -> Registers {
        Registers {
            wide: isa.is_wide(),
            has_floats: isa.has(Extension::F),
            integers: std::array::from_fn(|number| context.reg(number)),
            pc: context.pc().into(),
            floats: std::array::from_fn(|number| context.freg(number)),
            fcsr: context.fcsr(),
            received: Vec::new(),
        }
    }

    /// Returns the registers that were received from GDB, for a core with registers like these. None if they have
    /// another length.
    pub(crate) fn decoded(&self, received: &Registers) -> Option<Registers> {
        let width = if self.wide { 8 } else { 4 };
        let (integers, rest) = received.received.split_at_checked(INTEGERS * width)?;
        if rest.len() != if self.has_floats { 4 * FLOATS } else { 0 } {
            return None;
        }
        let mut registers = self.clone();
        let mut values = integers.chunks_exact(width).map(|bytes| {
            let mut value = [0; 8];
            value[..width].copy_from_slice(bytes);
            u64::from_le_bytes(value)
        });
        registers.integers.iter_mut().zip(&mut values).for_each(|(register, value)| *register = value);
        registers.pc = values.next()?;
        let words = rest.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        for (number, word) in words.enumerate() {
            match registers.floats.get_mut(number) {
                Some(register) => *register = word,
                None => registers.fcsr = word,
            }
        }
        Some(registers)
    }

    /// Writes the registers that differ into a context. Returns whether there were any.
    pub(crate) fn apply(&self, context: &mut Context) -> bool {
        let mut changed = false;
        for (number, &value) in self.integers.iter().enumerate().skip(1) {
            if context.reg(number) != value {
                context.set_reg(number, value);
                changed = true;
            }
        }
        for (number, &bits) in self.floats.iter().enumerate() {
            if context.freg(number) != bits {
                context.set_freg(number, bits);
                changed = true;
            }
        }
        if context.fcsr() != self.fcsr {
            context.set_fcsr(self.fcsr);
            changed = true;
        }
        if u64::from(context.pc()) != self.pc {
            context.set_pc(self.pc as u32);
            changed = true;
        }
        changed
    }
}

impl GdbRegisters for Registers {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        self.pc
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        let width = if self.wide { 8 } else { 4 };
        for value in self.integers.iter().chain([&self.pc]) {
            value.to_le_bytes()[..width].iter().for_each(|&byte| write_byte(Some(byte)));
        }
        if self.has_floats {
            for value in self.floats.iter().chain([&self.fcsr]) {
                value.to_le_bytes().iter().for_each(|&byte| write_byte(Some(byte)));
            }
        }
    }

    /// Keeps the bytes from GDB: their meaning depends on the core. [`Registers::decoded`] gives it.
    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        self.received = bytes.to_vec();
        Ok(())
    }
}

/// Returns the description of a core of this instruction set, in XML.
pub(crate) fn description(isa: &Isa) -> String {
    let bits = isa.register_bits();
    let mut xml = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target version=\"1.0\">\
         <architecture>riscv:rv{bits}</architecture><feature name=\"org.gnu.gdb.riscv.cpu\">"
    );
    let mut register = |name: &str, number: usize, bits: u32, kind: &str| {
        let _ = write!(xml, "<reg name=\"{name}\" bitsize=\"{bits}\" type=\"{kind}\" regnum=\"{number}\"/>");
        if number + 1 == INTEGERS {
            xml.push_str("</feature>");
            if isa.has(Extension::F) {
                xml.push_str("<feature name=\"org.gnu.gdb.riscv.fpu\">");
            }
        }
        if number + 1 == INTEGERS + FLOATS {
            xml.push_str("</feature>");
        }
    };
    for (number, name) in NAMES.iter().enumerate() {
        let kind = match number {
            1 => "code_ptr",
            2..=4 | 8 => "data_ptr",
            _ => "int",
        };
        register(name, number, bits, kind);
    }
    register("pc", INTEGERS - 1, bits, "code_ptr");
    if isa.has(Extension::F) {
        for (number, name) in FLOAT_NAMES.iter().enumerate() {
            register(name, INTEGERS + number, 32, "ieee_single");
        }
        register("fcsr", INTEGERS + FLOATS - 1, 32, "int");
    }
    xml.push_str("</target>");
    xml
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(registers: &Registers) -> Vec<u8> {
        let mut bytes = Vec::new();
        registers.gdb_serialize(|byte| bytes.push(byte.expect("all registers are known")));
        bytes
    }

    #[test]
    fn registers_survive_the_wire() {
        for (isa, length) in
            [("rv32imac", 132), ("rv32imafc_zicsr", 264), ("rv64imac", 264), ("rv64imafc_zicsr", 396)]
        {
            let isa: Isa = isa.parse().unwrap();
            let mut context = Context::new(0);
            context.set_reg(10, 0x1234_5678);
            context.set_pc(0x1d00_0004);
            let mut registers = Registers::of(&context, &isa);
            if isa.has(Extension::F) {
                registers.floats[3] = 0x3f80_0000;
                registers.fcsr = 0x25;
            }
            assert_eq!(bytes(&registers).len(), length, "{isa:?}");
            let mut back = Registers::default();
            back.gdb_deserialize(&bytes(&registers)).unwrap();
            let shape = Registers::of(&Context::new(0), &isa);
            assert_eq!(shape.decoded(&back), Some(registers));
            back.gdb_deserialize(&[0; 131]).unwrap();
            assert_eq!(shape.decoded(&back), None);
        }
    }

    #[test]
    fn registers_that_differ_are_written() {
        let isa: Isa = "rv32imac".parse().unwrap();
        let mut context = Context::new(0);
        let mut registers = Registers::of(&context, &isa);
        assert!(!registers.apply(&mut context));
        registers.integers[0] = 1;
        assert!(!registers.apply(&mut context), "x0 is zero");
        registers.integers[5] = 7;
        registers.pc = 0x1d00_0000;
        assert!(registers.apply(&mut context));
        assert_eq!((context.reg(5), context.pc()), (7, 0x1d00_0000));
    }

    #[test]
    fn the_description_names_every_register_once() {
        let count = |isa: &str| description(&isa.parse().unwrap()).matches("<reg ").count();
        assert_eq!((count("rv32imac"), count("rv64imafc_zicsr")), (33, 33 + 33));
        assert!(description(&"rv64imac".parse().unwrap()).contains("<architecture>riscv:rv64<"));
    }
}
