//! The interface for calls that are not the core's own; the card around the processor serves them.

use super::Nfp;
use super::engine::State;
use nicety_hpu::{AddressSpace, TrapKind};
use nicety_types::Time;

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
pub(super) enum Served {
    /// It goes on with this result.
    Now(u32),
    /// It sleeps until [`Nfp::resume`].
    Later,
}

/// Serves the calls from [`FIRST`] on.
pub(super) trait Services {
    /// Serves a call with registers a0 to a7, whose instruction ends at this instant. None where there is no such
    /// call.
    fn serve(&self, place: Place, registers: &[u32; 8]) -> Option<Result<Served, TrapKind>>;

    /// A process has sent the signal that another one waited for.
    fn released(&self, by: Place, released: Place);

    /// A process has returned or trapped.
    fn ended(&self, place: Place);
}

impl Nfp {
    /// Installs the server of calls that are not the core's own.
    ///
    /// # Panics
    /// When one is installed already.
    pub(super) fn offer(&self, services: impl Services + 'static) {
        assert!(self.services.set(Box::new(services)).is_ok(), "a processor is part of one card");
    }

    /// Ends a call that sleeps: its context sees `result` as soon as it would see a signal that is sent now.
    ///
    /// # Panics
    /// When the context does not sleep in such a call.
    pub(super) fn resume(&self, place: Place, result: u32) {
        let engine = &self.engines[place.core];
        let at = self.next_cycle() + self.spec.signal;
        engine.state.borrow_mut().resume(place.context, result, at);
        engine.wake.notify_all();
    }

    /// The earliest time at which a context resumed now runs.
    pub(super) fn resumes_at(&self) -> Time {
        self.time(self.next_cycle() + self.spec.signal)
    }

    /// Copies bytes out of a context's local memory or code store.
    pub(super) fn read_local(&self, place: Place, address: u32, into: &mut [u8]) -> Result<(), TrapKind> {
        let engine = &self.engines[place.core];
        let mut state = engine.state.borrow_mut();
        let mut space = AddressSpace::new();
        state.open(place.context, &engine.memories, &mut space);
        into.copy_from_slice(space.read(address, into.len() as u32)?);
        Ok(())
    }

    /// Copies bytes into a context's local memory.
    ///
    /// # Errors
    /// When they reach beyond the local memory that the context may write.
    pub fn write_local(&self, place: Place, address: u32, from: &[u8]) -> Result<(), TrapKind> {
        let engine = &self.engines[place.core];
        let mut state = engine.state.borrow_mut();
        let mut space = AddressSpace::new();
        state.open(place.context, &engine.memories, &mut space);
        space.write(address, from.len() as u32)?.copy_from_slice(from);
        Ok(())
    }

    /// Whether these bytes are local memory that a context may write.
    pub(super) fn check_local(&self, place: Place, address: u32, len: u32) -> Result<(), TrapKind> {
        let engine = &self.engines[place.core];
        let mut state = engine.state.borrow_mut();
        let mut space = AddressSpace::new();
        state.open(place.context, &engine.memories, &mut space);
        space.write(address, len).map(|_| ())
    }
}

impl super::engine::EngineState {
    /// The call in which a context sleeps has ended; it goes on at `cycle`.
    fn resume(&mut self, number: usize, result: u32, cycle: u64) {
        let slot = &mut self.slots[number];
        assert!(matches!(slot.state, State::Called { .. }), "context {number} sleeps in a call");
        slot.cpu.set_reg(nicety_hpu::asm::A0 as usize, result);
        slot.state = State::Ready { at: cycle };
    }
}
