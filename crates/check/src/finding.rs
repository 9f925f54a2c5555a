//! Findings: each defect once, with its places and advice.

use schemars::JsonSchema;
use serde::Serialize;

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "FindingKind")]
pub enum Defect {
    /// A value that depends on memory or registers without a value decides something.
    Uninitialised,
    /// An access outside the memory of the handler.
    OutOfBounds,
    /// A store to bytes of a transfer that still reads them.
    WriteWhileSending,
    /// An access to the packet or the stack of another run.
    UseAfterFree,
    /// Two accesses that nothing orders.
    Race,
    /// A release of a lock that the run does not hold.
    UnlockWithoutLock,
    /// A second acquisition of a lock that the run holds.
    DoubleLock,
    /// A lock that a run holds at its end.
    LockKept,
    /// Locks that runs take in different orders.
    LockOrder,
    /// An access to bytes that a transfer in flight writes.
    BufferReuse,
    /// A command that sends more than a packet.
    LongSend,
    /// A return code that the handler's kind does not have.
    ReturnCode,
    /// A division by zero.
    DivisionByZero,
    /// Any other stop of a handler.
    Trap,
}

impl Defect {
    /// Returns its name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Defect::Uninitialised => "uninitialised",
            Defect::OutOfBounds => "out-of-bounds",
            Defect::WriteWhileSending => "write-while-sending",
            Defect::UseAfterFree => "use-after-free",
            Defect::Race => "race",
            Defect::UnlockWithoutLock => "unlock-without-lock",
            Defect::DoubleLock => "double-lock",
            Defect::LockKept => "lock-kept",
            Defect::LockOrder => "lock-order",
            Defect::BufferReuse => "buffer-reuse",
            Defect::LongSend => "long-send",
            Defect::ReturnCode => "return-code",
            Defect::DivisionByZero => "division-by-zero",
            Defect::Trap => "trap",
        }
    }

    /// Returns the correction.
    pub const fn advice(self) -> &'static str {
        match self {
            Defect::Uninitialised => "give the variable a value on every path, as with = {0} or memset",
            Defect::OutOfBounds => "compare the index or length with the size before the access",
            Defect::WriteWhileSending => "wait for the command before the store, or store elsewhere",
            Defect::UseAfterFree => "copy the bytes to the state in the handler that owns them",
            Defect::Race => {
                "write an atomic operation such as __atomic_fetch_add, or take one lock around both accesses"
            }
            Defect::UnlockWithoutLock => "release the lock only on paths that have taken it",
            Defect::DoubleLock => {
                "release the lock before the call, or split off a function for callers with the lock"
            }
            Defect::LockKept => "release the lock on every path to the end",
            Defect::LockOrder => "take the locks in one order everywhere",
            Defect::BufferReuse => {
                "wait for the transfer first: PtlHandlerDMAWait, spin_cmd_wait or spin_dma_wait"
            }
            Defect::LongSend => "send at most one packet per command",
            Defect::ReturnCode => "return a code of this kind of handler",
            Defect::DivisionByZero => "compare the divisor with zero first",
            Defect::Trap => "see the text of the trap",
        }
    }
}

impl Defect {
    /// Returns the correction for processes of a flow processor.
    pub const fn advice_of_process(self) -> &'static str {
        match self {
            Defect::Race => {
                "order the accesses by a signal or a channel, or write an atomic operation such as nfp_fetch_add"
            }

            Defect::BufferReuse | Defect::WriteWhileSending => {
                "wait until the call has returned, by a signal that follows it"
            }
            Defect::UseAfterFree => "move the bytes before the frame is given up, or keep them in a variable",
            Defect::LongSend => {
                "send at most CHANNEL_DIRECT bytes in a direct message, and one frame per call"
            }
            Defect::OutOfBounds => {
                "compare the address and the length with the memory of nfp.h before the access"
            }
            _ => self.advice(),
        }
    }
}

/// A function of a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(rename = "CheckedFrame")]
pub struct Frame {
    /// Its name, if known.
    pub function: Option<String>,
    /// The source file, without its folder.
    pub file: Option<String>,
    /// The line, from 1 on.
    pub line: Option<u32>,
}

/// A place of a finding: a run at an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "FindingSide")]
pub struct Side {
    /// The kind of the handler.
    pub handler: &'static str,
    /// The number of the packet in the order of arrival at handlers, from 0 on. None for a handler without one.
    pub packet: Option<u64>,
    /// The name of the process and its context. None for a handler.
    pub process: Option<String>,
    /// The access or operation, as a phrase.
    pub action: String,
    /// The address of the instruction.
    pub pc: u32,
    /// The file and line of the author's source.
    pub place: Frame,
    /// The call stack, innermost first, functions inlined by the compiler included.
    pub stack: Vec<Frame>,
}

/// A place: its file, and its line, or its instruction where no line is known.
pub type PlaceKey = (Option<String>, u32);

impl Side {
    /// Returns the identity of the place: its line, or its instruction where no line is known.
    pub fn key(&self) -> PlaceKey {
        (self.place.file.clone(), self.place.line.unwrap_or(self.pc))
    }
}

/// A defect of a program, once for each place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// Its kind.
    pub kind: Defect,
    /// The place at which it was found.
    pub at: Side,
    /// The other place: of a race, of a transfer, of another order of locks.
    pub other: Option<Side>,
    /// The correction.
    pub advice: &'static str,
    /// The number of times it was found.
    pub times: u64,
}

impl Finding {
    /// Returns the identity of the finding: its kind and its places, in either order.
    pub fn key(&self) -> (Defect, [Option<PlaceKey>; 2]) {
        let mut places = [Some(self.at.key()), self.other.as_ref().map(Side::key)];
        places.sort();
        (self.kind, places)
    }
}
