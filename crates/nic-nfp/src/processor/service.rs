//! The interface for calls that the card serves, and not the core.

use nicety_hpu::TrapKind;

/// The lowest number of the calls that the card serves.
pub(super) const FIRST: u32 = 0x300;

/// A context of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its microengine.
    pub core: usize,
    /// The context within it.
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
    /// Serves a call with registers a0 to a7. The call's instruction ends at this instant. `None` if there is no such
    /// call.
    fn serve(&self, place: Place, registers: &[u32; 8]) -> Option<Result<Served, TrapKind>>;

    /// Handles a signal from the process at `by` that ends the wait of the process at `released`.
    fn released(&self, by: Place, released: Place);

    /// Handles the return or trap of a process.
    fn ended(&self, place: Place);
}
