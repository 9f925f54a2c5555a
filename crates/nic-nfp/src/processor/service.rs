//! The interface for calls that the card serves instead of the core.

use crate::processor::intrinsics;
use nicety_hpu::TrapKind;

/// The lowest number of a call that the card serves.
pub(super) const FIRST: u32 = 0x300;

/// Whether a call that the card serves is one of its port.
pub(super) const fn is_of_port(number: u32) -> bool {
    matches!(number, intrinsics::ETH_SEND..=intrinsics::ETH_OPEN)
}

/// A context of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of the microengine.
    pub core: usize,
    /// The number of the context in the microengine.
    pub context: usize,
}

/// The card's answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// The context continues with this result.
    Now(u32),
    /// The context sleeps until [`Nfp::resume`](crate::Nfp::resume).
    Later,
}

/// Serves the calls from [`FIRST`] on.
pub(crate) trait Services {
    /// Serves the call in registers a0 to a7. The call's instruction ends at this instant. Returns `None` if the call
    /// does not exist.
    fn serve(&self, place: Place, registers: &[u32; 8]) -> Option<Result<Served, TrapKind>>;

    /// Handles a signal from the process at `by` that ends the wait of the process at `released`.
    fn released(&self, by: Place, released: Place);

    /// Handles the return or trap of a process.
    fn ended(&self, place: Place);
}
