//! Causes of cycles.

use crate::decode::{Class, Kind};
use arrayvec::ArrayVec;

/// The cause of a cycle of a core. Each cycle has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// The first cycle of an instruction.
    #[default]
    Issue,
    /// Further cycles of an instruction, such as a division. On a core that overlaps instructions, also waits for
    /// operands and units.
    Execute,
    /// Further cycles of a jump or a taken branch, and those after a wrong prediction.
    Branch,
    /// An instruction uses the value that the previous one loads.
    LoadUse,
    /// A misaligned access.
    Misaligned,
    /// The latency of a core's private memory.
    Core,
    /// The latency of a cluster's memory.
    L1,
    /// The latency of the memory of all cores.
    L2,
    /// The latency of the memory behind L2.
    Device,
    /// An access waits for its bank, or for the unit of atomic operations, which other accesses use. On a flow
    /// processor, a reference waits for its memory.
    Bank,
    /// An access waits for its bank, which DMA uses.
    DmaBank,
    /// An access waits for its line, or for other caches.
    Cache,
    /// Further cycles of an atomic operation.
    Atomic,
    /// The core waits for code.
    Fetch,
    /// The issue of a command, and its use of the core.
    Command,
    /// A command waits for its place in a queue, or for its answer.
    Queue,
    /// A command waits until a transfer is complete.
    Transfer,
    /// `printf`.
    Printf,
    /// The start and the end of a run.
    Dispatch,
    /// A process waits for a reference to a memory of its card.
    Memory,
    /// A process waits for a signal of another one.
    Signal,
    /// A process waits for the other end of a channel.
    Channel,
    /// A process waits for a frame, or for the port to take one.
    Port,
    /// A process could run, and the core runs others or changes to it.
    Ready,
}

/// Number of causes.
pub const CAUSES: usize = 24;

impl Cause {
    /// All causes, in the order of reports.
    pub const ALL: [Cause; CAUSES] = [
        Cause::Issue,
        Cause::Execute,
        Cause::Branch,
        Cause::LoadUse,
        Cause::Misaligned,
        Cause::Core,
        Cause::L1,
        Cause::L2,
        Cause::Device,
        Cause::Bank,
        Cause::DmaBank,
        Cause::Cache,
        Cause::Atomic,
        Cause::Fetch,
        Cause::Command,
        Cause::Queue,
        Cause::Transfer,
        Cause::Printf,
        Cause::Dispatch,
        Cause::Memory,
        Cause::Signal,
        Cause::Channel,
        Cause::Port,
        Cause::Ready,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Issue => "issue",
            Cause::Execute => "execute",
            Cause::Branch => "branch",
            Cause::LoadUse => "load-use",
            Cause::Misaligned => "misaligned",
            Cause::Core => "core",
            Cause::L1 => "l1",
            Cause::L2 => "l2",
            Cause::Device => "device",
            Cause::Bank => "bank",
            Cause::DmaBank => "dma-bank",
            Cause::Cache => "cache",
            Cause::Atomic => "atomic",
            Cause::Fetch => "fetch",
            Cause::Command => "command",
            Cause::Queue => "queue",
            Cause::Transfer => "transfer",
            Cause::Printf => "printf",
            Cause::Dispatch => "dispatch",
            Cause::Memory => "memory",
            Cause::Signal => "signal",
            Cause::Channel => "channel",
            Cause::Port => "port",
            Cause::Ready => "ready",
        }
    }

    /// The cause of an instruction's own cycles after the first one.
    pub(crate) const fn behind(kind: Kind) -> Cause {
        match kind.class() {
            Class::Branch | Class::Jump | Class::JumpRegister => Cause::Branch,
            Class::Atomic => Cause::Atomic,
            Class::Ecall => Cause::Command,
            _ => Cause::Execute,
        }
    }
}

/// Cycles by cause, in the order in which they pass.
pub type Parts = ArrayVec<(Cause, u64), 6>;
