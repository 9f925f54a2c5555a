//! An observer of every instruction of processes, for a debugger or a checker.
//!
//! With an observer, a slice is executed in single steps. Cycles, results and the order of events are those of a run
//! without one, unless the observer changes registers or memory. An observer takes no simulated time.
//!
//! Each completed instruction was reported exactly once, and so was one that trapped. References to memories outside
//! the core and calls are reported in their turn, directly before their effect. Others are reported inside a slice,
//! which runs ahead of the simulated time.

use crate::map::MemoryKind;
use crate::processor::engine::Outcome;
use crate::processor::intrinsics;
use crate::processor::memory::Memories;
use crate::processor::service::Place;
use nicety_hpu::{AddressSpace, Context, Exit, Image, Kind, Reservations, Trap};
use nicety_types::Time;
use std::rc::Rc;
use std::sync::Arc;

/// Receives the instructions, starts and ends of a card's processes. Each method does nothing by default.
pub trait Observe {
    /// Reports a process with its registers set, before its first instruction.
    fn begins(&self, process: &Rc<ObservedProcess>) {
        let _ = process;
    }

    /// Reports that a context has the core, before its next instruction. The observer may stall the context.
    fn resumes(&self, process: &ObservedProcess, context: &mut Context) {
        let _ = (process, context);
    }

    /// Reports an instruction before it is executed. The observer may change registers, memory and the pc. At another
    /// pc, the instruction there is reported next.
    fn instruction(&self, at: &mut Instruction<'_, '_>) {
        let _ = at;
    }

    /// Reports the registers and the stack of a context that has executed instructions.
    fn rests(&self, process: &ObservedProcess, context: &Context, stack: Stack<'_>) {
        let _ = (process, context, stack);
    }

    /// Reports a trap of the instruction at the pc. The process ends.
    fn traps(&self, at: &mut Instruction<'_, '_>, trap: &Trap) {
        let _ = (at, trap);
    }

    /// Reports the end of a process.
    fn ends(&self, process: &ObservedProcess, outcome: &Outcome) {
        let _ = (process, outcome);
    }
}

/// A process, as an observer sees it.
#[derive(Debug)]
pub struct ObservedProcess {
    /// Its context.
    pub place: Place,
    /// The number of the microengine's island.
    pub island: usize,
    /// The number of the process on this card, from 1.
    pub number: u64,
    /// The address of its function.
    pub entry: u32,
    /// Its program.
    pub image: Arc<Image>,
}

/// The stack of a context: its first address and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Stack<'s> {
    /// The first address.
    pub base: u32,
    /// The bytes.
    pub bytes: &'s [u8],
}

/// The memories outside the core, in the view of a microengine.
#[derive(Clone, Debug)]
pub struct Outer(Memories);

impl Outer {
    pub(super) const fn new(memories: Memories) -> Outer {
        Outer(memories)
    }

    /// Copies bytes out of the memory at an address. Returns the number of bytes up to the end of this memory, at most
    /// those of `into`; none elsewhere.
    pub fn read(&self, address: u32, into: &mut [u8]) -> usize {
        let Some((memory, offset)) = self.0.find(address, 1) else { return 0 };
        let len = into.len().min((memory.size() - offset) as usize);
        memory.peek(offset, &mut into[..len]).expect("the bytes are in the memory");
        len
    }

    /// Copies bytes into a memory. Returns false if they are in none.
    pub fn write(&self, address: u32, from: &[u8]) -> bool {
        let found = self.0.find(address, from.len() as u32);
        found.is_some_and(|(memory, offset)| memory.poke(offset, from).is_ok())
    }

    /// Returns the memories: kind and size in bytes.
    pub fn all(&self) -> impl Iterator<Item = (MemoryKind, u64)> {
        self.0.0.iter().map(|memory| (memory.kind(), memory.size()))
    }
}

/// An instruction about to be executed: the one at the context's pc.
pub struct Instruction<'o, 'm> {
    /// Its process.
    pub process: &'o ObservedProcess,
    /// The program.
    pub image: &'o Image,
    /// The registers.
    pub context: &'o mut Context,
    /// The context's memory. The first region of an instruction that refers to another memory has its bytes.
    pub space: &'o mut AddressSpace<'m>,
    /// The memories outside the core.
    pub outer: &'o Outer,
    clock: &'o dyn Fn(u64) -> Time,
}

impl Instruction<'_, '_> {
    /// Returns the time at which it begins, or of its effect outside the core.
    pub fn time(&self) -> Time {
        (self.clock)(self.context.cycle())
    }
}

/// The observer of a slice.
pub(super) struct Observed<'o> {
    pub(super) observer: &'o dyn Observe,
    pub(super) process: &'o ObservedProcess,
    pub(super) outer: &'o Outer,
    /// The start of a cycle.
    pub(super) time: &'o dyn Fn(u64) -> Time,
    /// The instructions completed at the last report: the next one is reported if there are others since.
    pub(super) reported: &'o mut Option<u64>,
}

impl Observed<'_> {
    /// Executes a slice up to cycle `until`, and reports each instruction.
    pub(super) fn run(
        &mut self,
        context: &mut Context,
        space: &mut AddressSpace<'_>,
        reservations: &mut Reservations,
        until: u64,
    ) -> Exit {
        loop {
            if !self.leaves_core(context) && self.report(context, space) {
                continue;
            }
            let exit = context.step(&self.process.image, space, reservations, until);
            if exit != Exit::Limit || context.cycle() >= until {
                return exit;
            }
            // The instructions up to the next one that may end the slice, which is a step again.
            let mut watch = |context: &mut Context, space: &mut AddressSpace<'_>| {
                self.observer.instruction(&mut self.at(context, space));
            };
            let exit = context.run_watched(&self.process.image, space, reservations, until, &mut watch);
            if exit != Exit::Limit || context.cycle() >= until {
                return exit;
            }
        }
    }

    /// Whether the next instruction has an effect outside the core.
    fn leaves_core(&self, context: &Context) -> bool {
        let image = &self.process.image;
        if image.instruction(context.pc()).is_some_and(|next| next.kind == Kind::Ecall) {
            return context.args()[7] != intrinsics::CRC32;
        }
        let access = context.next_access(image);
        access.is_some_and(|access| self.outer.0.find(access.address, access.size).is_some())
    }

    /// Reports an instruction in its turn. Returns whether the observer has changed the registers, so that the
    /// instruction at the pc must begin again.
    pub(super) fn in_turn(&mut self, context: &mut Context, space: &mut AddressSpace<'_>) -> bool {
        let registers =
            |context: &Context| -> [u64; 32] { std::array::from_fn(|number| context.reg(number)) };
        let before = registers(context);
        self.report(context, space) || registers(context) != before
    }

    /// Reports the instruction at the pc, unless it has been. Returns whether the observer has changed the pc.
    fn report(&mut self, context: &mut Context, space: &mut AddressSpace<'_>) -> bool {
        if *self.reported == Some(context.instret()) {
            return false;
        }
        let pc = context.pc();
        self.observer.instruction(&mut self.at(context, space));
        let moved = context.pc() != pc;
        *self.reported = (!moved).then(|| context.instret());
        moved
    }

    /// Returns the instruction at the pc.
    pub(super) fn at<'s, 'm>(
        &'s self,
        context: &'s mut Context,
        space: &'s mut AddressSpace<'m>,
    ) -> Instruction<'s, 'm> {
        Instruction {
            process: self.process,
            clock: self.time,
            image: &self.process.image,
            context,
            space,
            outer: self.outer,
        }
    }
}
