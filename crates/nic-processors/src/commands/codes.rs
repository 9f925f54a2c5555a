//! The numbers of handlers' commands and results, as in nicety.h, and the reasons why a command stops its handler.

use nicety_hpu::{Trap, TrapError, TrapKind};

/// Numbers of commands.
pub mod number {
    pub use nicety_hpu::calls::handler::*;

    /// The number in FPsPIN of the call that reads the cycle counter.
    pub const FPSPIN_CYCLES: u32 = 1;
}

/// Returns the name of a command in timelines.
pub(crate) const fn command_name(number: u32) -> &'static str {
    match number {
        number::PUT_FROM_DEVICE => "put from device",
        number::PUT_FROM_HOST => "put from host",
        number::GET_TO_HOST => "get to host",
        number::DMA_TO_HOST => "DMA to host",
        number::DMA_FROM_HOST => "DMA from host",
        number::DMA_CAS => "DMA compare and swap",
        number::DMA_FETCH_ADD => "DMA fetch and add",
        number::DMA_TEST => "DMA test",
        number::DMA_WAIT => "DMA wait",
        number::YIELD => "yield",
        number::FPSPIN_CYCLES => "cycles",
        number::FRAME_PUSH | number::FRAME_PULL | number::FRAME_RESIZE => "frame length",
        _ => "command",
    }
}

/// Returns the function of nicety.h for a command, if it returns a code.
pub(crate) const fn function(registers: &[u32; 8]) -> Option<&'static str> {
    let [_, _, _, _, handle, _, _, number] = *registers;
    Some(match (number, handle) {
        (number::PUT_FROM_DEVICE, _) => "PtlHandlerPutFromDevice",
        (number::PUT_FROM_HOST, _) => "PtlHandlerPutFromHost",
        (number::GET_TO_HOST, _) => "PtlHandlerGetToHost",
        (number::DMA_TO_HOST, 0) => "PtlHandlerDMAToHostB",
        (number::DMA_TO_HOST, _) => "PtlHandlerDMAToHostNB",
        (number::DMA_FROM_HOST, 0) => "PtlHandlerDMAFromHostB",
        (number::DMA_FROM_HOST, _) => "PtlHandlerDMAFromHostNB",
        (number::DMA_CAS, 0) => "PtlHandlerDMACASB",
        (number::DMA_CAS, _) => "PtlHandlerDMACASNB",
        (number::DMA_FETCH_ADD, 0) => "PtlHandlerDMAFetchAddB",
        (number::DMA_FETCH_ADD, _) => "PtlHandlerDMAFetchAddNB",
        (number::DMA_WAIT, _) => "PtlHandlerDMAWait",
        (number::CT_INC, _) => "PtlHandlerCTInc",
        (number::CT_GET, _) => "PtlHandlerCTGet",
        (number::CT_SET, _) => "PtlHandlerCTSet",
        // These return a boolean, a number of bytes, or always PTL_OK.
        _ => return None,
    })
}

/// Return codes of the functions of nicety.h.
#[expect(missing_docs, reason = "the names are those of nicety.h")]
pub mod code {
    pub const OK: u32 = 0;
    pub const ARG_INVALID: u32 = 2;
    pub const SEGV: u32 = 3;
    pub const NO_SPACE: u32 = 4;

    /// Returns its name in nicety.h.
    pub const fn name(code: u32) -> &'static str {
        match code {
            ARG_INVALID => "PTL_ARG_INVALID",
            SEGV => "PTL_SEGV",
            NO_SPACE => "PTL_NO_SPACE",
            _ => "PTL_FAIL",
        }
    }
}

/// The reason why a handler is stopped in a command.
pub enum Stop {
    /// An invalid pointer, or an unknown number.
    Trap(TrapKind),
    /// Phantom host memory: it has a length but no bytes.
    PhantomMemory {
        /// Requested bytes.
        len: u64,
    },
    /// A frame's begin or end outside its place in memory, as a text.
    BeyondFrame(String),
}

impl Stop {
    /// The error of the handler.
    pub(crate) fn error(&self) -> TrapError {
        match self {
            Stop::Trap(kind) => Trap { kind: *kind, pc: 0, location: None }.error(),
            Stop::PhantomMemory { .. } => TrapError::Other,
            Stop::BeyondFrame(_) => TrapError::OutOfBounds,
        }
    }
}

impl From<TrapKind> for Stop {
    fn from(kind: TrapKind) -> Stop {
        Stop::Trap(kind)
    }
}

/// Returns the reason to stop a handler that has fetched phantom memory.
pub fn phantom_memory(len: u64) -> String {
    format!(
        "the {len} bytes of host memory that it fetched are phantom: they have no contents; give the match entry real \
         memory"
    )
}
