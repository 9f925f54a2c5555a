//! Accesses to shared memory, and the order that acquires and releases make.

use crate::area::Area;
use crate::checker::Checker;
use crate::code::Fences;
use crate::execute::{Reference, verb};
use crate::finding::Defect;
use crate::races::Access;
use crate::raw::Place;
use crate::run::{Behind, Running};
use crate::shadow::BY_CORE;

/// Bytes of a word, which processes store in one reference.
const WORD: u32 = 4;

/// The word of a byte. Atomic operations on bytes are those on their words.
const fn word_of(address: u32) -> u32 {
    address & !(WORD - 1)
}

impl Running {
    /// A fence. Earlier relaxed loads acquire, and later relaxed stores release, as in C11.
    #[inline(never)]
    pub(crate) fn fence(&mut self, fences: Fences) {
        if fences.acquires {
            self.clock.join(&std::mem::take(&mut self.loads));
        }
        if fences.releases {
            self.before_fence = self.clock.clone();
            self.clock.advance(self.number);
            self.behind = Behind::Fence;
        }
    }
}

impl Checker {
    /// Takes an access to memory that other runs access too.
    pub(crate) fn shared_access(&mut self, run: &Running, reference: &Reference, store: bool, atomic: bool) {
        let Reference { key, bytes, memory, base, .. } = *reference;
        let by_core = (run.origins[usize::from(base) & 31] == BY_CORE).then_some(run.record.core);
        let step = run.clock.step(run.number);
        let single = reference.area == Area::Outer && store && bytes <= WORD;
        let polls = reference.area == Area::Outer && !store && run.polls;
        let (number, site, behind) = (run.number, run.site, run.behind);
        let access = Access { run: number, step, site, store, atomic, single, polls, behind, by_core };
        let Some(other) = self.races.access(access, key, bytes, &run.clock) else { return };
        let action = |access: &Access| {
            format!("{} {memory}{}", verb(access.store), if access.atomic { ", atomically" } else { "" })
        };
        let place = Place { run: other.run, site: other.site, action: action(&other) };
        let text = action(&access);
        self.report(Defect::Race, run, run.site, text, Some(place));
    }

    /// Orders all that a release of a word preceded before the next steps of a run.
    pub(crate) fn acquire(&mut self, run: &mut Running, address: u32) {
        if let Some(released) = self.releases.get(&word_of(address)) {
            run.clock.join(released);
        }
    }

    /// A load that does not acquire. A later fence orders all that a release of the word preceded.
    pub(crate) fn acquire_at_fence(&self, run: &mut Running, address: u32) {
        if let Some(released) = self.releases.get(&word_of(address)) {
            run.loads.join(released);
        }
    }

    /// Lets later acquires of a word follow all steps of a run before its fence.
    pub(crate) fn release_from_fence(&mut self, run: &Running, address: u32) {
        self.releases.entry(word_of(address)).or_default().join(&run.before_fence);
    }

    /// Lets later acquires of a word follow all earlier steps of a run.
    pub(crate) fn release(&mut self, run: &mut Running, address: u32) {
        self.releases.entry(word_of(address)).or_default().join(&run.clock);
        run.clock.advance(run.number);
    }
}
