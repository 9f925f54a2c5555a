//! The interface for calls that are not the core's own; the card around the processor serves them.

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
pub(in crate::nfp) enum Served {
    /// It goes on with this result.
    Now(u32),
    /// It sleeps until [`Nfp::resume`](crate::nfp::Nfp::resume).
    Later,
}

/// Serves the calls from [`FIRST`] on.
pub(in crate::nfp) trait Services {
    /// Serves a call with registers a0 to a7, whose instruction ends at this instant. None where there is no such
    /// call.
    fn serve(&self, place: Place, registers: &[u32; 8]) -> Option<Result<Served, TrapKind>>;

    /// A process has sent the signal that another one waited for.
    fn released(&self, by: Place, released: Place);

    /// A process has returned or trapped.
    fn ended(&self, place: Place);
}
