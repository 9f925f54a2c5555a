//! What a processor offers to its processes beyond its own calls: whoever built a card around it serves them.

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
    /// Which of the microengine's contexts it is.
    pub context: usize,
}

/// What becomes of the process that made a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// It goes on with this result.
    Now(u32),
    /// It sleeps until [`Nfp::resume`].
    Later,
}

/// Serves the calls from [`FIRST`] on.
pub(super) trait Services {
    /// A call of a process, with the registers a0 to a7; its instruction is over at this instant. None where there is
    /// no such call.
    fn serve(&self, place: Place, registers: &[u32; 8]) -> Option<Result<Served, TrapKind>>;

    /// A process has sent another one the signal that this one waited for.
    fn released(&self, by: Place, released: Place);

    /// A process has ended, one way or the other.
    fn ended(&self, place: Place);
}

impl Nfp {
    /// Has `services` serve the calls that are not the microengines' own.
    ///
    /// # Panics
    /// When somebody does already.
    pub(super) fn offer(&self, services: impl Services + 'static) {
        assert!(self.services.set(Box::new(services)).is_ok(), "a processor is part of one card");
    }

    /// Ends a call that sleeps: its context sees `result` as soon as it would see a signal that is sent now.
    ///
    /// # Panics
    /// When the context sleeps in no such call.
    pub(super) fn resume(&self, place: Place, result: u32) {
        let engine = &self.engines[place.core];
        let at = self.next_cycle() + self.spec.signal;
        engine.state.borrow_mut().resume(place.context, result, at);
        engine.wake.notify_all();
    }

    /// When a context that is resumed now goes on at the earliest.
    pub(super) fn resumes_at(&self) -> Time {
        self.time(self.next_cycle() + self.spec.signal)
    }

    /// Copies bytes out of what a context has of its microengine: local memory and the code store.
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
    /// When they are not all in local memory that the context may write.
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
