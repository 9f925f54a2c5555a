//! Words that runs keep by the number of their core. Runs on one core follow one another, so that these need no lock. A run
//! that yields lets others run in between, and a value from before is stale.

use crate::checker::Checker;
use crate::execute::Reference;
use crate::finding::Defect;
use crate::held::LastStore;
use crate::raw::Place;
use crate::run::{Loaded, Running};
use crate::shadow::BY_CORE;

impl Running {
    /// Whether a register has an address by the number of the core.
    fn is_by_core(&self, reference: &Reference) -> bool {
        self.origins[usize::from(reference.base) & 31] == BY_CORE
    }
}

impl Checker {
    /// A load of shared memory.
    #[inline]
    pub(crate) fn load_by_core(&self, run: &mut Running, reference: &Reference) {
        if run.is_by_core(reference) {
            let stored = self.by_core.get(&reference.address).map_or(0, |last| last.number);
            run.loaded.insert(reference.address, Loaded { stored, section: run.section });
        }
    }

    /// A store to shared memory.
    #[inline]
    pub(crate) fn store_by_core(&mut self, run: &mut Running, reference: &Reference, atomic: bool) {
        if run.is_by_core(reference) {
            self.stored_by_core(run, reference, atomic);
        }
    }

    fn stored_by_core(&mut self, run: &mut Running, reference: &Reference, atomic: bool) {
        let last = self.by_core.entry(reference.address).or_default();
        let before = *last;
        *last = LastStore { number: before.number + 1, run: run.number, site: run.site };
        let Some(loaded) = run.loaded.remove(&reference.address) else { return };
        let stale = loaded.section != run.section && loaded.stored != before.number;
        if stale && !atomic && before.run != run.number {
            let text = format!(
                "stores to {}, indexed by core, a value that it loaded before it yielded",
                reference.memory
            );
            let action = "stores to it after that load".to_owned();
            let other = Place { run: before.run, site: before.site, action };
            self.report(Defect::Race, run, run.site, text, Some(other));
        }
    }
}
