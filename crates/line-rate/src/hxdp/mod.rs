//! XDP programs on a card with a core that executes eBPF, under traffic: the highest rate without loss, rows and cycles of a frame.
//!
//! Frames come at the rate of the traffic, and then at other rates, as for a program in a host's driver.

mod listing;
mod published;
mod row;
mod trial;

pub use listing::{ListedRow, RowsReport, rows};
pub use published::{DumpReport, dump};
pub use row::Row;

use crate::losslessly::highest;
use crate::object::XdpObject;
use nicety::{Environment, Error};
use nicety_ebpf::Object;
use nicety_nic_hxdp::{HxdpSpec, Program};
use std::sync::Arc;
use trial::{Place, Trial};

/// Checks a program of an object, its maps and the traffic, without a run.
///
/// # Errors
/// They are wrong for the card.
pub(super) fn check(given: &Given<'_>) -> Result<(), Error> {
    given.place().program().map(drop)?;
    given.place().stream().map(drop)
}

/// A program on a card.
pub(super) struct Given<'g> {
    /// The card's name.
    pub(super) nic: &'g str,
    pub(super) spec: &'g HxdpSpec,
    pub(super) object: &'g [u8],
    pub(super) program: &'g XdpObject,
    pub(super) traffic: &'g str,
    pub(super) seed: u64,
    pub(super) environment: &'g Environment<'g>,
}

impl Given<'_> {
    fn place(&self) -> Place<'_> {
        Place { given: self }
    }

    /// Loads the program.
    fn load(&self) -> Result<Program, Error> {
        let object = Object::read(self.object).map_err(|error| Error::Input(error.to_string()))?;
        let entries: Vec<_> =
            self.program.maps.iter().map(|map| (map.map.clone(), map.json.clone())).collect();
        Program::load(Arc::new(self.spec.clone()), object, self.program.program.as_deref(), &entries)
            .map_err(|error| Error::Input(format!("{}: {error}", self.nic)))
    }
}

/// Measures a program.
///
/// # Errors
/// A trap of the program, or wrong traffic.
pub(super) fn measure(given: &Given<'_>) -> Result<Row, Error> {
    let place = given.place();
    let at_rate = place.run(1.0)?;
    let best = match at_rate.keeps_up() {
        true => None,
        false => highest(
            (1.0, at_rate.taken_pps() / at_rate.offered_pps()),
            |times| place.run(times),
            Trial::keeps_up,
            |trial: &Trial| trial.times,
        )?,
    };
    Ok(row::row(given, &at_rate, best.as_ref()))
}
