//! Traps as sentences, with hints at the probable mistake.

use super::{Access, Illegal, Location, Nearest, Trap, TrapKind};
use std::fmt;

impl Access {
    const fn noun(self) -> &'static str {
        match self {
            Access::Read => "load",
            Access::Write => "store",
            Access::Execute => "jump",
        }
    }
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
                    "stack overflow: the stack pointer moves to {pointer:#x}, {below} bytes below the stack of {size} \
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
