//! Accesses to shared memory, and the order that acquires and releases make.

use crate::area::Area;
use crate::checker::Checker;
use crate::execute::{Reference, verb};
use crate::finding::Defect;
use crate::races::Access;
use crate::raw::Place;
use crate::run::Running;
use crate::shadow::BY_CORE;

/// Bytes of a word, which processes store in one reference.
const WORD: u32 = 4;

impl Checker {
    /// Takes an access to memory that other runs access too.
    pub(crate) fn shared_access(&mut self, run: &Running, reference: &Reference, store: bool, atomic: bool) {
        let Reference { key, bytes, memory, base, .. } = *reference;
        let by_core = (run.origins[usize::from(base) & 31] == BY_CORE).then_some(run.record.core);
        let step = run.clock.step(run.number);
        let single = reference.area == Area::Outer && store && bytes <= WORD;
        let polls = reference.area == Area::Outer && !store && run.polls;
        let access = Access { run: run.number, step, site: run.site, store, atomic, single, polls, by_core };
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
        if let Some(released) = self.releases.get(&address) {
            run.clock.join(released);
        }
    }

    /// Lets later acquires of a word follow all earlier steps of a run.
    pub(crate) fn release(&mut self, run: &mut Running, address: u32) {
        self.releases.entry(address).or_default().join(&run.clock);
        run.clock.advance(run.number);
    }
}
