//! An observer of every instruction and command of handlers, for a debugger or a checker.
//!
//! With an observer, a slice is executed with a report of each instruction. Cycles, results and the order of events are those of a run
//! without one, unless the observer changes registers or memory. An observer takes no simulated time.
//!
//! Each completed instruction was reported exactly once, and so was one that trapped. An atomic, a fence or an access to
//! ordered memory is reported in its turn, directly before it. Others are reported inside a slice, which runs ahead of
//! the simulated time: [`Instruction::time`] may lie after the times of other cores' later reports. An instruction
//! with code that is missing in the instruction cache is reported before the fetch.

use crate::Processors;
use crate::hpus::edges::Edges;
use crate::programs::attachments::Attachment;
use crate::programs::program::Kind;
use crate::running::{Ended, Running};
use nicety_hpu::{
    AddressSpace, Context, DeviceAccess, Exit, Image, OrderPoint, Reservations, Trap, TrapError,
};
use nicety_types::{MessageId, Time};
use std::rc::Rc;

/// Receives the instructions, commands, begins and ends of a card's handlers. Each method does nothing by default.
///
/// A [`Running`] gives registers (`running.thread.state`) and memory ([`Running::with_space`]).
pub trait Observe {
    /// Reports a handler with its registers set, before its first instruction.
    fn begins(&self, running: &mut Running) {
        let _ = running;
    }

    /// Reports an instruction before it is executed. The observer may change registers, memory and the pc. At another
    /// pc, the instruction there is reported next.
    fn instruction(&self, at: &mut Instruction<'_, '_>) {
        let _ = at;
    }

    /// Reports a command before it is carried out, at the present time.
    fn command(&self, running: &mut Running, command: &Command) {
        let _ = (running, command);
    }

    /// Reports a command that was carried out, with its result in the registers. One that stops or ends its handler is
    /// not reported here.
    fn commanded(&self, running: &mut Running, command: &Command) {
        let _ = (running, command);
    }

    /// Reports a trap of the instruction at the pc. The handler ends.
    fn traps(&self, running: &mut Running, trap: &Trap) {
        let _ = (running, trap);
    }

    /// Reports the error for which a handler is stopped, directly before its end.
    fn stops(&self, running: &mut Running, error: TrapError) {
        let _ = (running, error);
    }

    /// Reports the end of a handler, with its memory.
    fn ends(&self, running: &mut Running, ended: &Ended) {
        let _ = (running, ended);
    }
}

/// A command of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A call, with a0 to a7: the arguments, and the number in a7.
    Call([u32; 8]),
    /// An access to a register of the core, by a handler written for PsPIN.
    Register(DeviceAccess),
}

/// The handler of an instruction.
#[derive(Clone)]
pub struct ObservedRun {
    /// Its core.
    pub core: usize,
    /// The number of its run on this card, from 1.
    pub number: u64,
    /// Its kind.
    pub kind: Kind,
    /// Index of its message among the messages in progress.
    pub place: usize,
    /// Its message.
    pub message: MessageId,
    /// Its packet's offset in the message, in bytes.
    pub packet: Option<u64>,
    /// The attached handlers.
    pub attachment: Rc<Attachment>,
}

impl ObservedRun {
    /// Returns the facts of a running handler.
    pub fn of(running: &Running) -> ObservedRun {
        ObservedRun {
            core: running.thread.core,
            number: running.number,
            kind: running.kind,
            place: running.place,
            message: running.message,
            packet: running.packet,
            attachment: running.attachment.clone(),
        }
    }
}

/// An instruction about to be executed: the one at the context's pc.
pub struct Instruction<'o, 'm> {
    /// Its handler.
    pub run: &'o ObservedRun,
    /// The program.
    pub image: &'o Image,
    /// The registers. Inside a slice, the count of completed instructions is that at its begin.
    pub context: &'o mut Context,
    /// The memory of the slice.
    pub space: &'o mut AddressSpace<'m>,
    /// The order point, for an instruction that is executed in its turn.
    pub order: Option<OrderPoint>,
    edges: &'o Edges,
}

impl Instruction<'_, '_> {
    /// Returns the time at which it begins. Waits for memory and for code may still follow.
    pub fn time(&self) -> Time {
        self.edges.at(self.context.cycle())
    }
}

impl Processors {
    /// Reports the instructions and commands of all handlers to `observer` from now on.
    ///
    /// # Panics
    /// When the card already has an observer.
    pub fn observed_by(&self, observer: Rc<dyn Observe>) {
        assert!(self.observer.set(observer).is_ok(), "a card has one observer");
    }
}

/// The observer of a slice.
pub(crate) struct Observed<'o> {
    pub(crate) observer: &'o dyn Observe,
    pub(crate) run: &'o ObservedRun,
    pub(crate) image: &'o Image,
    pub(crate) edges: &'o Edges,
    /// The instructions completed at the last report: the next one is reported if there are others since.
    pub(crate) reported: &'o mut Option<u64>,
}

impl Observed<'_> {
    /// Executes a slice up to cycle `until`, and reports each instruction.
    pub(crate) fn run(
        &mut self,
        context: &mut Context,
        space: &mut AddressSpace<'_>,
        reservations: &mut Reservations,
        until: u64,
    ) -> Exit {
        loop {
            if !context.is_ordered_next(self.image, space) && self.report(context, space, None) {
                continue;
            }
            let exit = context.step(self.image, space, reservations, until);
            if exit != Exit::Limit || context.cycle() >= until {
                return exit;
            }
            // The instructions up to the next one that may end the slice, which is a step again.
            let mut watch =
                |context: &mut Context, space: &mut AddressSpace<'_>| self.tell(context, space, None);
            let exit = context.run_watched(self.image, space, reservations, until, &mut watch);
            if exit != Exit::Limit || context.cycle() >= until {
                return exit;
            }
        }
    }

    #[inline]
    fn tell(&self, context: &mut Context, space: &mut AddressSpace<'_>, order: Option<OrderPoint>) {
        let Observed { run, image, edges, .. } = *self;
        self.observer.instruction(&mut Instruction { run, image, context, space, order, edges });
    }

    /// Reports an instruction in its turn. Returns whether the observer has changed the registers, so that the
    /// instruction at the pc must begin again.
    pub(crate) fn in_turn(
        &mut self,
        context: &mut Context,
        space: &mut AddressSpace<'_>,
        point: OrderPoint,
    ) -> bool {
        let registers =
            |context: &Context| -> [u64; 32] { std::array::from_fn(|number| context.reg(number)) };
        let before = registers(context);
        self.report(context, space, Some(point)) || registers(context) != before
    }

    /// Reports the instruction at the pc, unless it has been. Returns whether the observer has changed the pc.
    fn report(
        &mut self,
        context: &mut Context,
        space: &mut AddressSpace<'_>,
        order: Option<OrderPoint>,
    ) -> bool {
        if *self.reported == Some(context.instret()) {
            return false;
        }
        let pc = context.pc();
        self.tell(context, space, order);
        let moved = context.pc() != pc;
        *self.reported = (!moved).then(|| context.instret());
        moved
    }
}
