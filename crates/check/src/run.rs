//! The shadow of a run: registers, its own memory, calls and transfers in flight.

use crate::area::Area;
use crate::calls::{Calls, Site};
use crate::clocks::Clock;
use crate::held::Held;
use crate::shadow::{OriginId, Shadow};
use nicety_hpu::{Image, TrapError};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The stack pointer, the first argument, and the register with the number of a command.
pub(crate) const SP: usize = 2;
pub(crate) const A0: usize = 10;

/// The kind of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// The first one of a message.
    Header,
    /// One for each packet.
    Payload,
    /// The last one of a message.
    Completion,
    /// A handler of frames, which are in no message.
    Frame,
    /// A process on a context of a microengine.
    Process,
}

impl Handler {
    /// Returns its name in findings.
    pub const fn name(self) -> &'static str {
        match self {
            Handler::Header => "header handler",
            Handler::Payload => "payload handler",
            Handler::Completion => "completion handler",
            Handler::Frame => "frame handler",
            Handler::Process => "process",
        }
    }
}

/// A run that begins.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    /// The kind of the handler.
    pub handler: Handler,
    /// The message, unique in the check.
    pub message: u64,
    /// The packet's offset in its message.
    pub offset: Option<u64>,
    /// The core.
    pub core: u32,
}

/// A process that begins.
#[derive(Clone, Debug)]
pub struct BeginProcess<'b> {
    /// Its program.
    pub image: &'b Arc<Image>,
    /// Its name and place in findings.
    pub name: String,
    /// The number of its context on the card, as `nfp_hart` has it.
    pub context: u32,
    /// The island of its microengine.
    pub island: u32,
}

/// A load of a word by the number of the core.
#[derive(Clone, Copy)]
pub(crate) struct Loaded {
    /// The number of the store that gave it the value.
    pub(crate) stored: u32,
    /// The number of times that the run had yielded.
    pub(crate) section: u32,
}

/// The facts of a run that remain after its end.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    pub handler: Handler,
    pub message: u64,
    pub offset: Option<u64>,
    pub core: u32,
    /// The number of its packet in the order of handlers.
    pub packet: Option<u64>,
    /// The number of its program, and the island of its microengine.
    pub program: u32,
    pub island: u32,
}

/// A part of an instruction that depends on its execution. The next step of the run completes it.
#[derive(Clone, Copy, Default)]
pub(crate) enum Pending {
    #[default]
    Nothing,
    /// An SC: the address, and the values before and after.
    Conditional { address: u32, key: u32, old: u64, new: u64, waits: bool, rd: u8, at: Site },
    /// A command of nicety.h with its registers.
    Command { registers: [u32; 8], at: Site },
    /// A load of a register of the core, into `rd`.
    Register { address: u32, rd: u8, at: Site },
    /// A load of CMD_ISSUE into `rd`, which issues this command of PsPIN.
    Issued { words: [u32; 8], rd: u8, at: Site },
    /// A wait for a command of PsPIN.
    Waited { handle: u32 },
    /// A call of nfp.h with its registers.
    Call { registers: [u32; 8], at: Site },
}

impl Pending {
    #[inline]
    pub const fn is_some(&self) -> bool {
        !matches!(self, Pending::Nothing)
    }
}

/// A word of an LR, with its value and the LR's address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserved {
    pub key: u32,
    pub value: u64,
    pub pc: u32,
}

/// The place of an instruction behind a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Behind {
    Nothing,
    /// A fence is somewhere before.
    Earlier,
    /// Stores lie between a fence and it.
    Stores,
    /// Only computations lie between a fence and it.
    Fence,
}

/// The unit that numbers a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Handles of DMA, and of PsPIN's command unit.
    Commands,
    /// Transfers of a cluster's engine.
    Engine,
}

/// Bytes of a transfer in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub unit: Unit,
    pub number: u32,
    pub address: u32,
    pub bytes: u32,
    /// Whether it writes the bytes. Otherwise it reads them.
    pub writes: bool,
    /// The memory of the bytes.
    pub area: Area,
    pub run: u32,
    pub at: Site,
}

impl Transfer {
    pub const fn overlaps(&self, address: u32, bytes: u32) -> bool {
        let (own, other) = (self.address as u64, address as u64);
        own < other + bytes as u64 && other < own + self.bytes as u64
    }
}

/// A run in progress.
pub(crate) struct Running {
    /// Its number among all runs.
    pub number: u32,
    pub record: Record,
    pub image: Arc<Image>,
    /// Undefined bits of integer and float registers.
    pub undefined: [u64; 64],
    pub origins: [OriginId; 64],
    /// The shadow of its stack, packet and arguments.
    pub own: Shadow,
    pub calls: Calls,
    pub clock: Clock,
    pub transfers: Vec<Transfer>,
    pub pending: Pending,
    /// The site of the latest instruction, and of the latest write of a0.
    pub site: Site,
    pub result_at: Site,
    pub stack_pointer: u32,
    /// The place of the present instruction behind a fence that orders stores, and all that precedes that fence.
    pub behind: Behind,
    pub before_fence: Clock,
    /// All that precedes the values of loads that do not acquire. A fence makes them acquire.
    pub loads: Clock,
    /// An LR without its SC.
    pub reserved: Option<Reserved>,
    /// The command that CMD_TEST asks for, and the engine's registers: source, destination, bytes.
    pub tested: u32,
    pub engine: [u32; 3],
    /// Whether a finding explains a stop of the handler.
    pub explained: bool,
    /// The error for which the handler is stopped.
    pub error: TrapError,
    /// Whether the present instruction polls a word of memory in a loop.
    pub polls: bool,
    /// The number of times that it has yielded, and its loads by the number of the core.
    pub section: u32,
    pub loaded: FxHashMap<u32, Loaded>,
    /// The values from local memory, for a process.
    pub held: Option<Box<Held>>,
}

impl Running {
    /// The origin of pointers to its packet.
    pub const fn packet_origin(number: u32) -> OriginId {
        2 * number + 1
    }

    /// The origin of pointers to its stack.
    pub const fn stack_origin(number: u32) -> OriginId {
        2 * number + 2
    }

    pub fn new(number: u32, record: Record, clock: Clock, image: Arc<Image>) -> Running {
        let mut origins = [0; 64];
        origins[SP] = Running::stack_origin(number);
        Running {
            number,
            record,
            image,
            undefined: [0; 64],
            origins,
            own: Shadow::default(),
            calls: Calls::default(),
            clock,
            transfers: Vec::new(),
            pending: Pending::Nothing,
            site: Site::default(),
            result_at: Site::default(),
            stack_pointer: 0,
            behind: Behind::Nothing,
            before_fence: Clock::default(),
            loads: Clock::default(),
            reserved: None,
            tested: 0,
            engine: [0; 3],
            explained: false,
            error: TrapError::Other,
            polls: false,
            section: 0,
            loaded: FxHashMap::default(),
            held: (record.handler == Handler::Process).then(Box::default),
        }
    }
}
