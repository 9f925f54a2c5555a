//! Transfers in flight, of all runs: the accesses that they forbid, and their ends.

use crate::area::Area;
use crate::checker::Checker;
use crate::execute::{Reference, verb};
use crate::finding::Defect;
use crate::raw::Place;
use crate::run::{Running, Transfer, Unit};

impl Checker {
    /// Begins a transfer of a run.
    pub(crate) fn begin_transfer(&mut self, run: &mut Running, transfer: Transfer) {
        run.transfers.push(transfer);
        if transfer.area.is_shared() {
            self.flights.push(transfer);
        }
    }

    /// Ends the transfers of a unit with some numbers. A run may wait for a transfer of another one.
    pub(crate) fn end_transfers(&mut self, run: &mut Running, unit: Unit, ended: impl Fn(u32) -> bool) {
        let is_ended = |transfer: &Transfer| transfer.unit == unit && ended(transfer.number);
        let before = run.transfers.len();
        run.transfers.retain(|transfer| !is_ended(transfer));
        let own = run.transfers.len() < before;
        self.flights.retain(|transfer| !is_ended(transfer) || own && transfer.run != run.number);
    }

    /// Checks an access against the transfers in flight.
    #[inline]
    pub(crate) fn check_transfers(&mut self, run: &mut Running, reference: &Reference, store: bool) {
        if !run.transfers.is_empty() || reference.area.is_shared() {
            self.check_flights(run, reference, store);
        }
    }

    fn check_flights(&mut self, run: &mut Running, reference: &Reference, store: bool) {
        let Reference { address, bytes, .. } = *reference;
        let hit = |transfer: &&Transfer| transfer.overlaps(address, bytes) && (transfer.writes || store);
        let shared = reference.area.is_shared();
        let others = || self.fetches(run).iter().chain(&self.flights).filter(|_| shared);
        let Some(transfer) = run.transfers.iter().find(hit).or_else(|| others().find(hit)).copied() else {
            return;
        };
        let action = if transfer.writes { "begins to write the bytes" } else { "begins to read the bytes" };
        let place = Place { run: transfer.run, site: transfer.at, action: action.to_owned() };
        let (defect, what) = match transfer.writes {
            true => (Defect::BufferReuse, "that a transfer in flight writes"),
            false => (Defect::WriteWhileSending, "that a transfer in flight reads"),
        };
        let text = format!("{} bytes {what}", verb(store));
        self.report(defect, run, run.site, text, Some(place));
    }

    /// Checks the transfers of a run that returns. The next run of the core has the same stack.
    pub(crate) fn leave_transfers(&mut self, run: &Running) {
        for transfer in run.transfers.iter().filter(|transfer| transfer.area == Area::Stack) {
            let (defect, verb) = match transfer.writes {
                true => (Defect::BufferReuse, "writes"),
                false => (Defect::WriteWhileSending, "reads"),
            };
            let text = format!("begins a transfer that still {verb} the stack when the handler returns");
            self.report(defect, run, transfer.at, text, None);
        }
    }
}
