//! Handlers in hand-assembled code, for the cores of the shipped sPIN cards.

pub use nicety_nic_testing::code::*;

use nicety_nic_processors::Handlers;

/// Returns a program of up to three handlers.
pub fn program(header: Option<Code>, payload: Option<Code>, completion: Option<Code>) -> Handlers {
    program_for(super::spec(&[]).hpu.core, header, payload, completion)
}

/// Returns a program with only a payload handler.
pub fn payload(code: Code) -> Handlers {
    program(None, Some(code), None)
}
