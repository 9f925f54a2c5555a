//! The reports of a context between its slices: references, calls, rests, traps and ends.

use crate::processor::engine::{Outcome, State};
use crate::processor::nfp::Nfp;
use crate::processor::observe::{Observed, Stack};
use crate::processor::service::Place;
use nicety_hpu::{AddressSpace, Exit, OrderPoint, Region};

impl Nfp {
    /// Reports the reference or call that has ended a slice, in its turn. Returns whether the observer has changed the
    /// registers, so that the context must begin again at its pc.
    pub(super) fn reports(&self, place: Place, exit: &Exit) -> bool {
        let Some((observer, process, outer)) = self.observed(place) else { return false };
        let engine = &self.engines[place.core];
        let mut state = engine.state.borrow_mut();
        let (base, bytes) = state.stack(place.context);
        observer.rests(&process, &state.slots[place.context].cpu, Stack { base, bytes });
        let reference = match exit {
            Exit::Device(access) => Some((access.address, access.size)),
            Exit::Order(OrderPoint::Atomic { address, .. }) => Some((*address, 4)),
            Exit::Ecall => None,
            _ => return false,
        };
        let mut word = [0; 4];
        let mut space = AddressSpace::new();
        if let Some((address, size)) = reference
            && let Some((memory, offset)) = engine.memories.find(address, size)
        {
            let bytes = &mut word[..size as usize];
            memory.peek(offset, bytes).expect("the bytes are in the memory");
            space.push(Region::memory(memory.kind().name(), address, bytes));
        }
        let mut reported = state.slots[place.context].reported;
        let time = |cycle| self.time(cycle);
        let (cpu, _) = state.open(place.context, &engine.memories, &mut space);
        let mut observed =
            Observed { observer, process: &process, outer, time: &time, reported: &mut reported };
        let changed = observed.in_turn(cpu, &mut space);
        drop(space);
        state.slots[place.context].reported = reported;
        changed
    }

    /// Reports that a context releases the core, and its trap or end.
    pub(super) fn reports_rest(&self, place: Place, next: &State) {
        let Some((observer, process, outer)) = self.observed(place) else { return };
        let engine = &self.engines[place.core];
        let mut state = engine.state.borrow_mut();
        let (base, bytes) = state.stack(place.context);
        observer.rests(&process, &state.slots[place.context].cpu, Stack { base, bytes });
        let State::Ended(outcome) = next else { return };
        if let Outcome::Trapped(trap) = outcome {
            let mut space = AddressSpace::new();
            let time = |cycle| self.time(cycle);
            let (cpu, _) = state.open(place.context, &engine.memories, &mut space);
            let mut reported = None;
            let observed =
                Observed { observer, process: &process, outer, time: &time, reported: &mut reported };
            observer.traps(&mut observed.at(cpu, &mut space), trap);
        }
        observer.ends(&process, outcome);
    }
}
