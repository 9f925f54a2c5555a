//! The interface for calls of the card, which are not the core's own.

use nicety_hpu::TrapKind;

/// The first call that is not the microengine's own.
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
    /// Serves a call with registers a0 to a7. Its instruction ends at this instant. None if there is no such call.
    fn serve(&self, place: Place, registers: &[u32; 8]) -> Option<Result<Served, TrapKind>>;

    /// Handles a signal that a process has sent, and for which another one waited.
    fn released(&self, by: Place, released: Place);

    /// Handles the return or trap of a process.
    fn ended(&self, place: Place);
}
