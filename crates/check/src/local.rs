//! Variables in a microengine's local memory. Its contexts give up the core only at references and calls, so that a
//! variable may be changed without a lock between two of these. A value from before is stale.

use crate::checker::Checker;
use crate::execute::Reference;
use crate::finding::Defect;
use crate::held::{LastStore, Value};
use crate::raw::Place;
use crate::run::Running;

impl Running {
    /// The context gives up the core.
    pub(crate) fn rests(&mut self) {
        if let Some(held) = &mut self.held {
            held.section += 1;
        }
    }
}

impl Checker {
    /// A load from a variable. It follows all stores to it: contexts of a microengine run one at a time.
    pub(crate) fn load_local(&mut self, run: &mut Running, reference: &Reference, rd: u8) {
        self.acquire(run, reference.key);
        let stored = self.processes.stores.get(&reference.key).map_or(0, |last| last.number);
        if let Some(held) = &mut run.held {
            held.values[usize::from(rd) & 31] = Value { key: reference.key, stored, section: held.section };
        }
    }

    /// A store to a variable, of a register.
    pub(crate) fn store_local(&mut self, run: &mut Running, reference: &Reference, source: u8) {
        let key = reference.key;
        let last = self.processes.stores.entry(key).or_default();
        let before = *last;
        *last = LastStore { number: before.number + 1, run: run.number, site: run.site };
        let stale = run.held.as_ref().is_some_and(|held| {
            let value = held.values[usize::from(source) & 31];
            value.key == key && value.section != held.section && value.stored != before.number
        });
        if stale && before.run != run.number {
            let text = "stores to the data in local memory a value that it loaded before it gave up the core"
                .to_owned();
            let action = "stores to it after that load".to_owned();
            let other = Place { run: before.run, site: before.site, action };
            self.report(Defect::Race, run, run.site, text, Some(other));
        }
        self.release(run, key);
    }
}
