//! Traps: a [`Trap`] has the reason why a handler was stopped, the address, and the C source line.

use crate::isa::Extension;
use crate::text::printable;
use std::borrow::Cow;
use std::fmt;

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

impl Access {
    const fn noun(self) -> &'static str {
        match self {
            Access::Read => "load",
            Access::Write => "store",
            Access::Execute => "jump",
        }
    }
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

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Illegal::Unknown => f.write_str("no instruction of this core"),
            Illegal::Zero => f.write_str("zeros: a compiler's trap, or no code"),
            Illegal::Needs(extension) => {
                write!(f, "it needs extension {extension}, which the isa does not name")
            }
            Illegal::NoSuchCsr(csr) => write!(f, "there is no CSR {csr:#05x} here"),
            Illegal::ReadOnlyCsr(csr) => write!(f, "CSR {csr:#05x} is read-only"),
            Illegal::RoundingMode(mode) => write!(f, "rounding mode {mode} is reserved"),
        }
    }
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

impl fmt::Display for Location {
    /// `in payload_handler at ping.c:42`, or its known part; `in PtlHandlerCAS, called in payload_handler at ping.c:42`
    /// for an interface function.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(called) = &self.called {
            write!(f, "in {called}, called ")?;
        }
        match (&self.function, self.file_name()) {
            (Some(function), Some(file)) => write!(f, "in {function} at {file}")?,
            (Some(function), None) => return write!(f, "in {function}"),
            (None, Some(file)) => write!(f, "at {file}")?,
            (None, None) => return f.write_str("at an unknown place"),
        }
        match self.line {
            Some(line) => write!(f, ":{line}"),
            None => Ok(()),
        }
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

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Some(reason) => f.write_str(reason)?,
            None => self.kind.fmt(f)?,
        }
        match &self.location {
            Some(location) => write!(f, ", {location} (pc {:#010x})", self.pc),
            None => write!(f, ", at pc {:#010x}", self.pc),
        }
    }
}

impl fmt::Display for TrapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TrapKind::IllegalInstruction { word, why } => {
                let digits = if word & 3 == 3 { 10 } else { 6 };
                write!(f, "illegal instruction {word:#0digits$x} ({why})")
            }
            TrapKind::Misaligned { access: Access::Execute, address, .. } => {
                write!(f, "jump to {address:#x}, in the middle of an instruction word")
            }
            TrapKind::Misaligned { access, address, size } => {
                write!(f, "{} at {address:#x}, which is not a multiple of {size}", wanted(access, size))
            }
            TrapKind::OutOfRegion { access: Access::Execute, address, .. } => {
                write!(f, "jump to {address:#x} outside the code{}", null_hint(address))
            }
            TrapKind::OutOfRegion { access, address, size, nearest } => {
                let (wanted, to) = (wanted(access, size), preposition(access));
                write!(f, "{wanted} {to} {address:#x} outside its memory{}", null_hint(address))?;
                match nearest {
                    Some(nearest) if !is_null(address) => nearest.describe(f, address, size),
                    _ => Ok(()),
                }
            }
            TrapKind::BeyondAddresses { access: Access::Execute, address, .. } => {
                write!(f, "jump to {address:#018x}: code addresses have 32 bits")
            }
            TrapKind::BeyondAddresses { access, address, size } => {
                let (wanted, to) = (wanted(access, size), preposition(access));
                write!(f, "{wanted} {to} {address:#018x}: memory addresses have 32 bits")
            }
            TrapKind::WideOnDevice { access, address, region } => {
                let (wanted, to) = (wanted(access, 8), preposition(access));
                write!(f, "{wanted} {to} {address:#x} in {region}, which has registers of 4 bytes")
            }
            TrapKind::Forbidden { access, address, size, region } => {
                let (wanted, to) = (wanted(access, size), preposition(access));
                let only = if access == Access::Write { "read-only" } else { "write-only" };
                write!(f, "{wanted} {to} {address:#x} in {region}, which is {only}")
            }
            TrapKind::PartOfWord { access, address, size, region } => {
                let (wanted, to) = (wanted(access, size), preposition(access));
                write!(f, "{wanted} {to} {address:#x} in {region}, which has whole words only")
            }
            TrapKind::AtomicOnDevice { address, region } => {
                write!(f, "atomic access to {address:#x} in {region}, a device without atomics")
            }
            TrapKind::StackOverflow { address, bottom, size } => {
                write!(f, "stack overflow: access to {address:#x}")?;
                if address < bottom {
                    write!(f, ", {} bytes below the stack", bottom - address)?;
                }
                write!(f, " of {size} bytes at {bottom:#x}")
            }
            TrapKind::StackExhausted { pointer, bottom, size } => {
                // One below zero is a negative number.
                let below = i64::from(bottom).saturating_sub(pointer as i64).max(0);
                write!(
                    f,
                    "stack overflow: the stack pointer goes to {pointer:#x}, {below} bytes below the stack of {size} \
                     bytes at {bottom:#x}"
                )
            }
            TrapKind::CycleLimit { limit } => {
                write!(f, "still running at its limit of {limit} cycles (does it loop for ever?)")
            }
            TrapKind::CodeChanged { address } => write!(
                f,
                "fence.i after the program has changed its code at {address:#x}: code runs here as it was loaded"
            ),
            TrapKind::Breakpoint => f.write_str("ebreak (abort or a compiler's trap)"),
            TrapKind::CallRefused { call, why } => write!(f, "{call}: {why}"),
            TrapKind::ArgumentBeyond { argument } => {
                write!(f, "ecall with the argument {argument:#018x}, and addresses have 32 bits")
            }
            TrapKind::UnknownCall { number, served } => {
                write!(f, "ecall with a7 = {number}, which is no known call; {served}")
            }
        }
    }
}

fn wanted(access: Access, size: u32) -> String {
    format!("{} of {size} byte{}", access.noun(), if size == 1 { "" } else { "s" })
}

const fn preposition(access: Access) -> &'static str {
    match access {
        Access::Read => "from",
        Access::Write | Access::Execute => "to",
    }
}

/// Such low addresses come from null pointers and field offsets.
const fn is_null(address: u32) -> bool {
    address < 256
}

const fn null_hint(address: u32) -> &'static str {
    if is_null(address) { " (a null pointer?)" } else { "" }
}

/// Maximum distance at which a region is named.
const NEAR: u64 = 4 << 10;

impl Nearest {
    /// Bytes between the region and `size` bytes at `address`, zero where they touch or overlap.
    pub(crate) fn distance(&self, address: u32, size: u32) -> u64 {
        let (start, end) = (u64::from(address), u64::from(address) + u64::from(size));
        let base = u64::from(self.base);
        base.saturating_sub(end).max(start.saturating_sub(base + self.size))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>, address: u32, size: u32) -> fmt::Result {
        if self.distance(address, size) > NEAR {
            return Ok(());
        }
        let (start, base) = (u64::from(address), u64::from(self.base));
        let (region, region_size) = (self.region, self.size);
        let end = base + region_size;
        if start >= end {
            write!(f, ", {} bytes past the end of {region}", start - end)?;
        } else if start < base {
            write!(f, ", {} bytes before {region}", base - start)?;
        } else {
            write!(f, ", over the end of {region}")?;
        }
        write!(f, " ({region_size} bytes at {base:#x})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: TrapKind) -> String {
        let location = Location {
            function: Some("payload_handler".to_owned()),
            file: Some("/home/you/ping.c".to_owned()),
            line: Some(42),
            called: None,
            reason: None,
        };
        Trap { kind, pc: 0x1d00_0012, location: Some(location) }.to_string()
    }

    #[track_caller]
    fn check(cases: &[(TrapKind, &str)]) {
        for (kind, expected) in cases {
            let place = ", in payload_handler at ping.c:42 (pc 0x1d000012)";
            assert_eq!(text(*kind), format!("{expected}{place}"));
        }
    }

    #[test]
    fn traps_at_accesses_read_as_sentences() {
        let (read, write) = (Access::Read, Access::Write);
        let nearest = Some(Nearest { region: "packet", base: 0x1000, size: 64 });
        let out = |access, address, size| TrapKind::OutOfRegion { access, address, size, nearest };
        check(&[
            (out(write, 0x9_1234, 4), "store of 4 bytes to 0x91234 outside its memory"),
            (
                out(write, 0x1040, 1),
                "store of 1 byte to 0x1040 outside its memory, 0 bytes past the end of packet \
                 (64 bytes at 0x1000)",
            ),
            (
                out(read, 0xfff, 2),
                "load of 2 bytes from 0xfff outside its memory, 1 bytes before packet (64 bytes at 0x1000)",
            ),
            (
                out(read, 0x103e, 4),
                "load of 4 bytes from 0x103e outside its memory, over the end of packet \
                 (64 bytes at 0x1000)",
            ),
            (
                TrapKind::OutOfRegion { access: read, address: 8, size: 4, nearest: None },
                "load of 4 bytes from 0x8 outside its memory (a null pointer?)",
            ),
            (
                TrapKind::OutOfRegion { access: Access::Execute, address: 0, size: 2, nearest: None },
                "jump to 0x0 outside the code (a null pointer?)",
            ),
            (
                TrapKind::Misaligned { access: Access::Execute, address: 0x102, size: 4 },
                "jump to 0x102, in the middle of an instruction word",
            ),
            (
                TrapKind::Misaligned { access: read, address: 0x102, size: 4 },
                "load of 4 bytes at 0x102, which is not a multiple of 4",
            ),
            (
                TrapKind::Forbidden { access: write, address: 0x20, size: 1, region: "header" },
                "store of 1 byte to 0x20 in header, which is read-only",
            ),
            (
                TrapKind::Forbidden { access: read, address: 0x20, size: 2, region: "doorbell" },
                "load of 2 bytes from 0x20 in doorbell, which is write-only",
            ),
            (
                TrapKind::PartOfWord { access: read, address: 0x20, size: 2, region: "the task" },
                "load of 2 bytes from 0x20 in the task, which has whole words only",
            ),
            (
                TrapKind::AtomicOnDevice { address: 0x20, region: "doorbell" },
                "atomic access to 0x20 in doorbell, a device without atomics",
            ),
        ]);
    }

    #[test]
    fn other_traps_read_as_sentences() {
        check(&[
            (
                TrapKind::StackExhausted { pointer: 0xff0, bottom: 0x1000, size: 512 },
                "stack overflow: the stack pointer goes to 0xff0, 16 bytes below the stack of 512 bytes at 0x1000",
            ),
            (
                TrapKind::StackOverflow { address: 0xff0, bottom: 0x1000, size: 512 },
                "stack overflow: access to 0xff0, 16 bytes below the stack of 512 bytes at 0x1000",
            ),
            (
                TrapKind::StackOverflow { address: 0x2000, bottom: 0x1000, size: 512 },
                "stack overflow: access to 0x2000 of 512 bytes at 0x1000",
            ),
            (
                TrapKind::CycleLimit { limit: 100 },
                "still running at its limit of 100 cycles (does it loop for ever?)",
            ),
            (TrapKind::Breakpoint, "ebreak (abort or a compiler's trap)"),
            (
                TrapKind::CallRefused { call: "nfp_read", why: "no bytes; write 1 at least" },
                "nfp_read: no bytes; write 1 at least",
            ),
            (
                TrapKind::UnknownCall { number: 7, served: "there are 64 and 93" },
                "ecall with a7 = 7, which is no known call; there are 64 and 93",
            ),
            (
                TrapKind::IllegalInstruction { word: 0x02c5_c533, why: Illegal::Needs(Extension::M) },
                "illegal instruction 0x02c5c533 (it needs extension m, which the isa does not name)",
            ),
            (
                TrapKind::IllegalInstruction { word: 0, why: Illegal::Zero },
                "illegal instruction 0x0000 (zeros: a compiler's trap, or no code)",
            ),
            (
                TrapKind::IllegalInstruction { word: 0x3000_2573, why: Illegal::NoSuchCsr(0x300) },
                "illegal instruction 0x30002573 (there is no CSR 0x300 here)",
            ),
            (
                TrapKind::IllegalInstruction { word: 0xc000_1573, why: Illegal::ReadOnlyCsr(0xc00) },
                "illegal instruction 0xc0001573 (CSR 0xc00 is read-only)",
            ),
            (
                TrapKind::IllegalInstruction { word: 0xffff_ffff, why: Illegal::Unknown },
                "illegal instruction 0xffffffff (no instruction of this core)",
            ),
        ]);
    }

    #[test]
    fn the_error_of_a_trap_does_not_depend_on_names() {
        let error = |kind, reason: Option<&str>| {
            let location = Location {
                function: Some("frame_stack_outside its memory".to_owned()),
                reason: reason.map(str::to_owned),
                ..Location::default()
            };
            Trap { kind, pc: 0, location: Some(location) }.error()
        };
        let out = |access| TrapKind::OutOfRegion { access, address: 1 << 20, size: 4, nearest: None };
        assert_eq!(error(out(Access::Read), None), TrapError::OutOfBounds);
        assert_eq!(error(out(Access::Execute), None), TrapError::Other);
        assert_eq!(
            error(TrapKind::Misaligned { access: Access::Read, address: 1, size: 4 }, None),
            TrapError::Other
        );
        assert_eq!(error(TrapKind::Breakpoint, None), TrapError::Other);
        let undefined = |reason| error(TrapKind::Breakpoint, Some(&format!("undefined behaviour: {reason}")));
        assert_eq!(undefined("an index outside its array"), TrapError::OutOfBounds);
        assert_eq!(undefined("a division by zero"), TrapError::DivisionByZero);
        assert_eq!(undefined("a null pointer"), TrapError::Other);
        // A reason belongs to a compiler's trap alone.
        assert_eq!(
            error(out(Access::Write), Some("undefined behaviour: a division by zero")),
            TrapError::OutOfBounds
        );
    }

    #[test]
    fn a_location_prints_its_known_parts() {
        let location = |function: Option<&str>, file: Option<&str>, line| Location {
            function: function.map(str::to_owned),
            file: file.map(str::to_owned),
            line,
            called: None,
            reason: None,
        };
        let called = |location: Location| Location { called: Some("PtlHandlerCAS".to_owned()), ..location };
        let text = called(location(Some("f"), Some("/h/f.c"), Some(3))).to_string();
        assert_eq!(text, "in PtlHandlerCAS, called in f at f.c:3");
        assert_eq!(
            called(location(None, Some("f.c"), Some(3))).to_string(),
            "in PtlHandlerCAS, called at f.c:3"
        );
        let location = |function, file, line| location(function, file, line).to_string();
        assert_eq!(location(Some("f"), None, None), "in f");
        assert_eq!(location(None, Some("C:\\h\\f.c"), Some(3)), "at f.c:3");
        assert_eq!(location(Some("f"), Some("f.c"), None), "in f at f.c");
        assert_eq!(location(None, None, Some(1)), "at an unknown place");
        let trap = Trap { kind: TrapKind::Breakpoint, pc: 16, location: None };
        assert_eq!(trap.to_string(), "ebreak (abort or a compiler's trap), at pc 0x00000010");
        assert_eq!(trap.address(), None);
        let reason = Some("undefined behaviour: an index outside its array".to_owned());
        let checked = Location { reason, called: None, ..called(Location::default()) };
        let zero = TrapKind::IllegalInstruction { word: 0, why: Illegal::Zero };
        let trap = |kind| Trap { kind, pc: 16, location: Some(checked.clone()) }.to_string();
        let expected = "undefined behaviour: an index outside its array, at an unknown place (pc 0x00000010)";
        assert_eq!((trap(zero), trap(TrapKind::Breakpoint)), (expected.to_owned(), expected.to_owned()));
        assert!(trap(TrapKind::CycleLimit { limit: 3 }).starts_with("still running"));
        let kind = TrapKind::StackOverflow { address: 0x2000, bottom: 0x1000, size: 512 };
        assert_eq!(Trap { kind, pc: 0, location: None }.address(), Some(0x2000));
    }
}
