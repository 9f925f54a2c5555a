//! A machine for hand-made code: code, a stack, a memory of 4 KiB.
#![allow(dead_code, reason = "the tests and the benchmark each use a part of it")]

use nicety_hpu::asm::*;
use nicety_hpu::{AddressSpace, Context, Core, Exit, Image, Region, Reservations, Trap};
use std::sync::Arc;

pub const CODE: u32 = 0x1d00_0000;
pub const MEMORY: u32 = 0x1c00_0000;
pub const MEMORY_SIZE: usize = 4096;
pub const STACK: u32 = 0x1f00_0000;
pub const STACK_SIZE: usize = 1024;
pub const STACK_TOP: u32 = STACK + STACK_SIZE as u32;
pub const GUARD: u32 = 128;

pub struct Machine {
    pub image: Arc<Image>,
    pub memory: Vec<u8>,
    pub stack: Vec<u8>,
    pub context: Context,
    pub reservations: Reservations,
}

impl Machine {
    pub fn new(words: &[u32]) -> Machine {
        Machine::of(&Core::default(), &bytes(words))
    }

    pub fn on(core: &Core, words: &[u32]) -> Machine {
        Machine::of(core, &bytes(words))
    }

    pub fn of(core: &Core, code: &[u8]) -> Machine {
        Machine {
            image: Image::from_bytes(CODE, code, core),
            memory: vec![0; MEMORY_SIZE],
            stack: vec![0; STACK_SIZE],
            context: Context::new(7),
            reservations: Reservations::new(),
        }
    }

    pub fn word(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.memory[offset..offset + 4].try_into().unwrap())
    }

    pub fn set_word(&mut self, offset: usize, value: u32) {
        self.memory[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    }

    pub fn call(&mut self, args: &[u32]) {
        let limit = self.context.cycle() + 1_000_000;
        self.context.call(&self.image, CODE, STACK_TOP, args, limit);
    }

    /// Runs one slice, with the usual memory.
    pub fn slice(&mut self, until: u64) -> Exit {
        self.slice_in(until, |memory| Region::memory("memory", MEMORY, memory))
    }

    /// Runs one slice, with another region instead.
    pub fn slice_in(&mut self, until: u64, region: impl for<'b> FnOnce(&'b mut [u8]) -> Region<'b>) -> Exit {
        let mut space = AddressSpace::new()
            .with(Region::stack("stack", STACK, &mut self.stack, GUARD))
            .with(region(&mut self.memory));
        self.context.run(&self.image, &mut space, &mut self.reservations, until)
    }

    pub fn perform(&mut self) -> Result<(), Box<Trap>> {
        let mut space = AddressSpace::new()
            .with(Region::stack("stack", STACK, &mut self.stack, GUARD))
            .with(Region::memory("memory", MEMORY, &mut self.memory));
        self.context.perform(&self.image, &mut space, &mut self.reservations)
    }

    /// Runs to the end, and performs ordered instructions at once.
    pub fn finish(&mut self) -> Exit {
        loop {
            match self.slice(u64::MAX) {
                Exit::Order(_) => {
                    if let Err(trap) = self.perform() {
                        return Exit::Trap(trap);
                    }
                }
                exit => return exit,
            }
        }
    }

    pub fn trap(&mut self) -> Trap {
        match self.finish() {
            Exit::Trap(trap) => *trap,
            exit => panic!("no trap but {exit:?}"),
        }
    }
}

/// A core with every extension.
pub fn everything() -> Core {
    Core { isa: "rv32imafc_zicsr_zifencei_zba_zbb_zbs".parse().unwrap(), ..Core::default() }
}

/// A core of RV64 with every extension.
pub fn everything_64() -> Core {
    Core { isa: "rv64imafc_zicsr_zifencei_zba_zbb_zbs".parse().unwrap(), ..Core::default() }
}

/// Returns a0 of RV64 after the code with these arguments.
pub fn eval_64(words: &[u32], args: &[u64]) -> u64 {
    let mut machine = Machine::on(&everything_64(), &[words, &[ret()]].concat());
    machine.call(&[]);
    for (register, &arg) in (A0 as usize..).zip(args) {
        machine.context.set_reg(register, arg);
    }
    match machine.finish() {
        Exit::Return(_) => machine.context.reg(A0 as usize),
        exit => panic!("no return but {exit:?}"),
    }
}

/// Returns a0 after the code with these arguments.
pub fn eval(words: &[u32], args: &[u32]) -> u32 {
    eval_on(&Core::default(), words, args)
}

/// Like [`eval`], on a core of that kind.
pub fn eval_on(core: &Core, words: &[u32], args: &[u32]) -> u32 {
    let mut machine = Machine::on(core, &[words, &[ret()]].concat());
    machine.call(args);
    match machine.finish() {
        Exit::Return(value) => value,
        exit => panic!("no return but {exit:?}"),
    }
}

/// Number of random cases: `usual`, or `PROPTEST_CASES` for a long run.
pub fn cases(usual: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Pseudo-random numbers from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    pub fn below(&mut self, n: u32) -> u32 {
        self.next() % n
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u32) as usize]
    }
}

pub const EXECUTABLE: u32 = 1;
pub const WRITABLE: u32 = 2;
pub const READABLE: u32 = 4;

/// A segment of a generated ELF file.
pub struct Load {
    pub address: u32,
    pub flags: u32,
    pub bytes: Vec<u8>,
    pub size: u32,
}

pub fn code(address: u32, words: &[u32]) -> Load {
    let bytes = bytes(words);
    Load { address, flags: READABLE | EXECUTABLE, size: bytes.len() as u32, bytes }
}

pub fn data(address: u32, bytes: &[u8], size: u32) -> Load {
    Load { address, flags: READABLE | WRITABLE, bytes: bytes.to_vec(), size }
}

/// An RV64 executable without sections.
pub fn elf_64(entry: u32, loads: &[Load]) -> Vec<u8> {
    const PAGE: u64 = 4096;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend([2, 0, 243, 0, 1, 0, 0, 0]); // executable, RISC-V, version 1
    [u64::from(entry), 64, 0].iter().for_each(|word| file.extend(word.to_le_bytes()));
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, loads.len() as u8, 0, 64, 0, 0, 0, 0, 0]);
    let mut offset = 64 + 56 * loads.len() as u64;
    let mut bytes = Vec::new();
    for load in loads {
        let (address, len) = (u64::from(load.address), load.bytes.len() as u64);
        let padding = address.wrapping_sub(offset) % PAGE;
        bytes.resize(bytes.len() + padding as usize, 0);
        bytes.extend(&load.bytes);
        offset += padding;
        [1, load.flags].iter().for_each(|word| file.extend(word.to_le_bytes()));
        let fields = [offset, address, address, len, load.size.into(), PAGE];
        fields.iter().for_each(|word| file.extend(word.to_le_bytes()));
        offset += len;
    }
    file.extend(bytes);
    file
}

/// An RV32 executable without sections: header, program headers, bytes.
pub fn elf(entry: u32, loads: &[Load]) -> Vec<u8> {
    // A file offset must be congruent to the address modulo this, as operating systems require.
    const PAGE: u32 = 4096;
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend([2, 0, 243, 0, 1, 0, 0, 0]); // executable, RISC-V, version 1
    let words = |file: &mut Vec<u8>, words: &[u32]| words.iter().for_each(|w| file.extend(w.to_le_bytes()));
    words(&mut file, &[entry, 52, 0, 0]);
    file.extend([52, 0, 32, 0, loads.len() as u8, 0, 40, 0, 0, 0, 0, 0]);
    let mut offset = 52 + 32 * loads.len() as u32;
    let mut bytes = Vec::new();
    for load in loads {
        let padding = (load.address.wrapping_sub(offset)) % PAGE;
        bytes.resize(bytes.len() + padding as usize, 0);
        bytes.extend(&load.bytes);
        offset += padding;
        let len = load.bytes.len() as u32;
        words(&mut file, &[1, offset, load.address, load.address, len, load.size, load.flags, PAGE]);
        offset += len;
    }
    file.extend(bytes);
    file
}
