//! Traps: a [`Trap`] has the reason why a handler was stopped, the address, and the C source line.

#[cfg(test)]
mod tests;
mod text;

use crate::isa::Extension;
use crate::text::printable;
use std::borrow::Cow;

/// The kind of memory access of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// To load from it.
    Read,
    /// To store to it, or to change it atomically.
    Write,
    /// To fetch an instruction from it.
    Execute,
}

/// The reason why an instruction is illegal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Illegal {
    /// The word is no instruction, or an instruction of an extension that is not modelled.
    Unknown,
    /// The word is zero: memory that was never code, or `__builtin_trap` if the isa has C.
    Zero,
    /// It belongs to an extension that the core's isa does not name.
    Needs(Extension),
    /// There is no such control and status register.
    NoSuchCsr(u32),
    /// It writes a counter.
    ReadOnlyCsr(u32),
    /// It rounds in a reserved mode, in the instruction or in `frm`.
    RoundingMode(u32),
}

/// The nearest region to an address outside all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The region's name.
    pub region: &'static str,
    /// Its first address.
    pub base: u32,
    /// Its size in bytes.
    pub size: u64,
}

/// The reason for a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrapKind {
    /// The word at the pc cannot be executed.
    IllegalInstruction {
        /// The word, or the halfword of a compressed instruction.
        word: u32,
        /// Why not.
        why: Illegal,
    },
    /// The address is not a multiple of the access's size, where this is not allowed.
    Misaligned {
        /// The kind of access.
        access: Access,
        /// The address.
        address: u32,
        /// The size of the access in bytes.
        size: u32,
    },
    /// No region contains the whole access.
    OutOfRegion {
        /// The kind of access.
        access: Access,
        /// The first address of the access.
        address: u32,
        /// The size of the access in bytes.
        size: u32,
        /// The nearest region to the address, if any.
        nearest: Option<Nearest>,
    },
    /// An address of more than 32 bits, which only RV64 can form.
    BeyondAddresses {
        /// The kind of access.
        access: Access,
        /// The address.
        address: u64,
        /// The size of the access in bytes.
        size: u32,
    },
    /// An access that the region does not allow.
    Forbidden {
        /// The kind of access: a write to read-only memory, or a read of write-only memory.
        access: Access,
        /// The address.
        address: u32,
        /// The size of the access in bytes.
        size: u32,
        /// The region's name.
        region: &'static str,
    },
    /// An access to a part of a word, where only whole words are decoded.
    PartOfWord {
        /// The kind of access.
        access: Access,
        /// The address.
        address: u32,
        /// The size of the access in bytes.
        size: u32,
        /// The region's name.
        region: &'static str,
    },
    /// An atomic access to a device, which supports none.
    AtomicOnDevice {
        /// The address.
        address: u32,
        /// The device's name.
        region: &'static str,
    },
    /// An access of 8 bytes to a device. Its registers have 4 at most.
    WideOnDevice {
        /// The kind of access.
        access: Access,
        /// The address.
        address: u32,
        /// The device's name.
        region: &'static str,
    },
    /// A stack region that is too small.
    StackOverflow {
        /// The address of the access.
        address: u32,
        /// The lowest address of the stack.
        bottom: u32,
        /// The stack's size in bytes.
        size: u64,
    },
    /// The stack pointer was moved below the stack.
    StackExhausted {
        /// The new stack pointer.
        pointer: u64,
        /// The lowest address of the stack.
        bottom: u32,
        /// The stack's size in bytes.
        size: u64,
    },
    /// The cycles of the call are used up.
    CycleLimit {
        /// The cycle at which the call should have ended.
        limit: u64,
    },
    /// `fence.i` in a program that has written to its own code, which runs as it was loaded.
    CodeChanged {
        /// The first changed instruction word.
        address: u32,
    },
    /// `ebreak`, also the result of `__builtin_trap` and `abort`.
    Breakpoint,
    /// An `ecall` with invalid arguments.
    CallRefused {
        /// The function that makes the call.
        call: &'static str,
        /// The error and the correction.
        why: &'static str,
    },
    /// An `ecall` with an argument of more than 32 bits, which is no address of a card.
    ArgumentBeyond {
        /// The argument.
        argument: u64,
    },
    /// An `ecall` with an unknown number.
    UnknownCall {
        /// The number in a7.
        number: u32,
        /// The known numbers, as a sentence.
        served: &'static str,
    },
}

/// A place in the source of a handler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// The innermost function outside `nicety.h`, `frame.h` and similar headers, inlined ones included; [printable].
    pub function: Option<String>,
    /// The source file with the compiler's directory, as in the file.
    pub file: Option<String>,
    /// The line, counted from 1.
    pub line: Option<u32>,
    /// The interface function that is called there, if the place is inside one.
    pub called: Option<String>,
    /// The compiler's reason for its own trap there: undefined behaviour, or the text of `__builtin_verbose_trap`.
    pub reason: Option<String>,
}

impl Location {
    /// The name of the source file without its directory, [printable].
    pub fn file_name(&self) -> Option<Cow<'_, str>> {
        self.file.as_deref().map(|file| printable(file.rsplit(['/', '\\']).next().unwrap_or(file)))
    }
}

/// The error that ended a handler's call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The reason.
    pub kind: TrapKind,
    /// The faulting instruction. For a jump out of the code, the jump if it is known.
    pub pc: u32,
    /// Its place in the source, if the image has symbols or line tables.
    pub location: Option<Location>,
}

/// The begin of the compiler's reason for undefined behaviour, and two of its reasons.
pub(crate) const UNDEFINED_BEHAVIOUR: &str = "undefined behaviour: ";
pub(crate) const INDEX: &str = "an index outside its array";
pub(crate) const BY_ZERO: &str = "a division by zero";

/// The error of a program that a trap shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrapError {
    /// An access outside the memory that the program may access.
    OutOfBounds,
    /// A division by zero.
    DivisionByZero,
    /// Any other.
    Other,
}

impl Trap {
    /// The error of the program that the trap shows.
    pub fn error(&self) -> TrapError {
        if let Some(reason) = self.reason() {
            return match reason.strip_prefix(UNDEFINED_BEHAVIOUR) {
                Some(INDEX) => TrapError::OutOfBounds,
                Some(BY_ZERO) => TrapError::DivisionByZero,
                _ => TrapError::Other,
            };
        }
        match self.kind {
            TrapKind::OutOfRegion { access: Access::Execute, .. }
            | TrapKind::BeyondAddresses { access: Access::Execute, .. } => TrapError::Other,
            TrapKind::OutOfRegion { .. }
            | TrapKind::BeyondAddresses { .. }
            | TrapKind::Forbidden { .. }
            | TrapKind::StackOverflow { .. }
            | TrapKind::StackExhausted { .. } => TrapError::OutOfBounds,
            _ => TrapError::Other,
        }
    }

    /// The compiler's reason, if the compiler inserted the trap.
    fn reason(&self) -> Option<&str> {
        // `unimp`: zeros, or a write of a counter if the isa has no C; and gcc's `ebreak`.
        let by_compiler = matches!(
            self.kind,
            TrapKind::Breakpoint
                | TrapKind::IllegalInstruction { why: Illegal::Zero | Illegal::ReadOnlyCsr(_), .. }
        );
        self.location.as_ref().filter(|_| by_compiler)?.reason.as_deref()
    }

    /// The faulting data address, or the target of a jump.
    pub const fn address(&self) -> Option<u32> {
        match self.kind {
            TrapKind::Misaligned { address, .. }
            | TrapKind::OutOfRegion { address, .. }
            | TrapKind::Forbidden { address, .. }
            | TrapKind::PartOfWord { address, .. }
            | TrapKind::AtomicOnDevice { address, .. }
            | TrapKind::WideOnDevice { address, .. }
            | TrapKind::StackOverflow { address, .. } => Some(address),
            _ => None,
        }
    }
}

impl std::error::Error for Trap {}

impl Nearest {
    /// Bytes between the region and `size` bytes at `address`, zero where they touch or overlap.
    pub(crate) fn distance(&self, address: u32, size: u32) -> u64 {
        let (start, end) = (u64::from(address), u64::from(address) + u64::from(size));
        let base = u64::from(self.base);
        base.saturating_sub(end).max(start.saturating_sub(base + self.size))
    }
}
