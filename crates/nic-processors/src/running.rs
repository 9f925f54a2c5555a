//! A running handler: the context of its commands, and its memory.

use crate::commands::codes::Stop;
use crate::hpus::Thread;
use crate::hpus::edges::Edges;
use crate::programs::application::Application;
use crate::programs::attachments::Attachment;
use crate::programs::program::{Kind, map};
use crate::pspin::command_unit::Issued;
use crate::pspin::hardware::{Bytes, Hardware};
use crate::pspin::ports::Ports;
use crate::spec::{Piece, Timings};
use nicety_hpu::profile::Parts;
use nicety_hpu::{AddressSpace, DeviceAccess, Isa, Region};
use nicety_types::{Buffer, MessageId, Path, Payload, Time};
use std::ops::Range;
use std::rc::Rc;

/// Bytes of a handler's arguments: the header of its message or packet.
pub(crate) const ARGUMENTS: usize = 64;

/// The memory of a run, without HPU memory.
pub struct RunMemory {
    /// The real bytes of its packet, if any.
    pub packet: Option<Buffer>,
    /// The range of the packet in these bytes, where other bytes surround it.
    part: Option<Range<usize>>,
    /// A phantom payload. It has no bytes to map, so a handler that touches it is stopped.
    pub(crate) phantom: Option<Payload>,
    /// The arguments of the handler.
    pub arguments: [u8; ARGUMENTS],
    /// The registers of its core and its memory in the cluster, for a handler written for PsPIN.
    pub hardware: Option<Box<Hardware>>,
}

impl RunMemory {
    /// Returns memory without a packet.
    pub const fn empty() -> RunMemory {
        RunMemory { packet: None, part: None, phantom: None, arguments: [0; ARGUMENTS], hardware: None }
    }

    /// Takes a packet's payload.
    pub fn hold(&mut self, payload: Payload) {
        match payload.is_real() {
            true if payload.is_empty() => {}
            true => self.packet = Some(payload.into_buffer().expect("every segment is real")),
            false => self.phantom = Some(payload),
        }
    }

    /// Writes a pointer into the arguments, of 8 bytes for a core with registers of 64 bits. Returns the offset behind
    /// it.
    pub fn put_pointer(&mut self, at: usize, address: u32, isa: &Isa) -> usize {
        let behind = at + isa.register_bits() as usize / 8;
        self.arguments[at..behind].fill(0);
        self.arguments[at..at + 4].copy_from_slice(&address.to_le_bytes());
        behind
    }

    /// Takes the first bytes of a place of the packet buffer. `part` is the range of the packet in them.
    pub(crate) fn hold_part(&mut self, place: Buffer, part: Range<usize>) {
        (self.packet, self.part) = (Some(place), Some(part));
    }

    /// Returns the range of the packet in its place.
    pub(crate) fn part(&self) -> Range<usize> {
        self.part.clone().unwrap_or(0..0)
    }

    /// Sets the range of the packet in its place of `place` bytes. Unused bytes of the place are zeros.
    pub(crate) fn set_part(&mut self, part: Range<usize>, place: usize) {
        if let Some(packet) = self.packet.take_if(|packet| packet.len() < part.end) {
            self.packet = Some(Buffer::filled_by(place, |whole| {
                let (used, behind) = whole.split_at_mut(packet.len());
                used.copy_from_slice(&packet);
                behind.fill(0);
            }));
        }
        self.part = Some(part);
    }

    /// Returns the place, and the range of the packet in it.
    pub(crate) fn into_part(self) -> (Buffer, Range<usize>) {
        let part = self.part();
        (self.packet.unwrap_or_else(Buffer::empty), part)
    }

    /// Returns whether all of these addresses are in a phantom payload.
    pub(crate) fn is_phantom(&self, address: u32, len: u32) -> bool {
        let phantom = self.phantom.as_ref().map_or(0, Payload::len);
        let end = u64::from(address) + u64::from(len);
        let packet = self.hardware.as_ref().map_or(map::PACKET, |hardware| hardware.packet);
        address >= packet && end <= u64::from(packet) + phantom
    }

    /// Returns the bytes of the packet, including a phantom one.
    pub fn bytes(&self) -> u64 {
        let real = self.packet.as_ref().map_or(0, |packet| packet.len() as u64);
        self.phantom.as_ref().map_or(real, Payload::len)
    }

    /// Takes the packet.
    pub fn take_payload(&mut self) -> Payload {
        self.phantom.take().unwrap_or_else(|| self.packet.take().map_or_else(Payload::empty, Payload::real))
    }
}

/// Fills the empty address space of a slice. It is filled in place, because it is large and each slice has one.
pub(crate) fn fill<'a>(
    space: &mut AddressSpace<'a>,
    timings: &Timings,
    attachment: &'a Attachment,
    bytes: Bytes<'a>,
    run: &'a mut RunMemory,
) {
    if let Some(hardware) = &mut run.hardware {
        let packet = run.packet.as_mut().map_or(&mut [][..], |packet| &mut packet[..]);
        return hardware.fill(space, timings, attachment, bytes, packet);
    }
    let Bytes { data, state, stack, .. } = bytes;
    let (start, packet) = match (run.packet.as_mut(), &run.part) {
        (None, _) => (0, &mut [][..]),
        (Some(packet), None) => (0, &mut packet[..]),
        (Some(packet), Some(part)) => (part.start as u32, &mut packet[part.clone()]),
    };
    let code = &attachment.program.code;
    let mut push = |piece, region| space.push(timings.apply(piece, region));
    push(Piece::State, Region::memory("the state", attachment.state_address(), state));
    push(Piece::Stack, Region::stack("the stack", map::STACK, stack, map::STACK_GUARD));
    push(Piece::Packet, Region::memory("the packet", map::PACKET + start, packet));
    push(Piece::Constants, Region::read_only("program memory", map::CODE, code));
    push(Piece::Data, Region::memory("the program's data", map::MEMORY, data));
    push(Piece::Arguments, Region::read_only("the header", map::ARGUMENTS, &run.arguments));
}

impl Running {
    /// Returns the commands of a handler written for PsPIN.
    pub fn commands(&self) -> &Rc<Issued> {
        self.issued.as_ref().expect("only handlers written for PsPIN have a command unit")
    }

    /// Returns an access by its next instruction.
    pub(crate) fn turn(&mut self) -> Turn<'_> {
        let (cycle, pc) = {
            let context = &self.thread.state.borrow().context;
            (context.time(), context.pc())
        };
        Turn {
            core: self.thread.core,
            cycle,
            pc,
            attachment: &self.attachment,
            shared_accesses: &mut self.shared_accesses,
            memory_waits: &mut self.memory_waits,
            causes: &mut self.causes,
        }
    }

    /// Returns its application.
    pub fn application(&self) -> &Rc<Application> {
        self.attachment.application()
    }

    /// Calls `act` on its address space.
    pub fn with_space<R>(&mut self, act: impl FnOnce(&mut AddressSpace<'_>) -> R) -> R {
        let Running { attachment, memory, thread, .. } = self;
        let mut thread = thread.state.borrow_mut();
        let (mut data, mut state) =
            (attachment.program.data.bytes.borrow_mut(), attachment.state.bytes.borrow_mut());
        let mut pads = attachment.program.pads.borrow_mut();
        let (mut space, stack) = (AddressSpace::new(), &mut thread.stack);
        let bytes = Bytes { data: &mut data, state: &mut state, stack, pads: &mut pads };
        fill(&mut space, &Timings::NONE, attachment, bytes, memory);
        act(&mut space)
    }
}

/// A running handler: the context of its commands.
pub struct Running {
    /// The thread.
    pub thread: Rc<Thread>,
    /// The kind of the handler.
    pub kind: Kind,
    /// Index of its message among the messages in progress.
    pub place: usize,
    /// Its packet's offset in the message.
    pub packet: Option<u64>,
    /// The message.
    pub message: MessageId,
    /// The attached handlers.
    pub attachment: Rc<Attachment>,
    /// Its memory, without HPU memory.
    pub memory: RunMemory,
    /// Its cycles, shifted by the times while it was parked.
    pub edges: Edges,
    /// The time since which it has the core.
    pub since: Time,
    /// The path up to its latest step.
    pub path: Path,
    /// Cycles for which a command has used the core, without issuing and waiting.
    pub busy: u64,
    /// Its number on this card.
    pub number: u64,
    /// Its atomic commands on memory.
    pub atomic_commands: u64,
    /// Its accesses to contended levels, and the cycles of their waits.
    pub shared_accesses: u64,
    /// The cycles of the waits of these accesses.
    pub memory_waits: u64,
    /// Its commands to the command unit, for a handler written for PsPIN.
    pub issued: Option<Rc<Issued>>,
    /// Cycles of its waits for instruction fetches.
    pub fetch_waits: u64,
    /// The causes of the cycles of its last access in turn.
    pub(crate) causes: Parts,
}

/// An access of a handler in its turn, and the counters of the access.
pub(crate) struct Turn<'r> {
    pub(crate) core: usize,
    /// The card's cycle at which the accessing instruction begins, and its address in the program.
    pub(crate) cycle: u64,
    pub(crate) pc: u32,
    pub(crate) attachment: &'r Attachment,
    pub(crate) shared_accesses: &'r mut u64,
    pub(crate) memory_waits: &'r mut u64,
    pub(crate) causes: &'r mut Parts,
}

impl Turn<'_> {
    pub fn application(&self) -> &Application {
        self.attachment.application()
    }
}

/// The services of a card for its handlers while they run.
#[expect(async_fn_in_trait, reason = "tasks stay on the thread of their node")]
pub trait Commands {
    /// Carries out a command. Returns the value of its function in the handlers' header.
    ///
    /// # Errors
    /// The reason to stop the handler.
    async fn command(self: &Rc<Self>, running: &mut Running, registers: [u32; 8]) -> Result<u32, Stop>;

    /// Carries out an access to a register of the handler's core. Returns the value that it loads. None if the
    /// handler has ended.
    ///
    /// # Errors
    /// The reason to stop the handler.
    async fn register(
        self: &Rc<Self>,
        running: &mut Running,
        access: DeviceAccess,
    ) -> Result<Option<u32>, Stop>;

    /// Returns the ports by which DMA uses the memory of a core's cluster, if the core's accesses wait for DMA.
    fn ports(&self, core: usize) -> Option<&Ports>;

    /// Ends a handler. Its transfers in flight continue without it.
    ///
    /// # Errors
    /// The reason to stop the handler, which has already ended.
    fn leave(&self, running: &mut Running) -> Result<(), Stop>;
}

/// Return codes of handlers, as numbered in nicety.h.
#[expect(missing_docs, reason = "the names are those of nicety.h")]
pub mod returned {
    pub const SUCCESS: u32 = 0;
    pub const SUCCESS_PENDING: u32 = 1;
    pub const PROCESS_DATA: u32 = 2;
    pub const PROCESS_DATA_PENDING: u32 = 3;
    pub const PROCEED: u32 = 4;
    pub const PROCEED_PENDING: u32 = 5;
    pub const DROP: u32 = 6;
    pub const DROP_PENDING: u32 = 7;
    pub const FAIL: u32 = -1i32 as u32;
    pub const SEGV: u32 = -2i32 as u32;
}

/// The end of a handler.
pub enum Ended {
    /// Returned, with its result.
    Returned(u32),
    /// Stopped, with the reason.
    Stopped(String),
    /// Stopped because a budget of its application was used up, with the budget and the place.
    OutOfBudget(String),
}

impl Ended {
    /// Returns the name in tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Ended::Stopped(_) => "stopped",
            Ended::OutOfBudget(_) => "out of budget",
            Ended::Returned(value) => match *value {
                returned::SUCCESS => "SUCCESS",
                returned::SUCCESS_PENDING => "SUCCESS_PENDING",
                returned::PROCESS_DATA => "PROCESS_DATA",
                returned::PROCESS_DATA_PENDING => "PROCESS_DATA_PENDING",
                returned::PROCEED => "PROCEED",
                returned::PROCEED_PENDING => "PROCEED_PENDING",
                returned::DROP => "DROP",
                returned::DROP_PENDING => "DROP_PENDING",
                returned::FAIL => "FAIL",
                returned::SEGV => "SEGV",
                _ => "invalid",
            },
        }
    }
}
