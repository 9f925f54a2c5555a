//! A machine to run hand-made code on: code, a stack, a memory of 4 KiB.
#![allow(dead_code)] // each test binary uses a part of it

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

    /// One slice, with the usual memory.
    pub fn slice(&mut self, until: u64) -> Exit {
        self.slice_in(until, |memory| Region::memory("memory", MEMORY, memory))
    }

    /// One slice, with another region instead.
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

    /// Runs to the end, performing what has to be in order at once.
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

/// What the code leaves in a0, called with these arguments.
pub fn eval(words: &[u32], args: &[u32]) -> u32 {
    let mut machine = Machine::new(&[words, &[ret()]].concat());
    machine.call(args);
    match machine.finish() {
        Exit::Return(value) => value,
        exit => panic!("no return but {exit:?}"),
    }
}
