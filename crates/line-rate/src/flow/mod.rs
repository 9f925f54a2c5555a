//! XDP programs on the microengines of a network flow processor, under traffic: the highest rate without loss, and the cycles of a
//! frame.
//!
//! Frames come at the rate of the traffic, and then at other rates, as for a program in a host's driver.

mod row;
mod trial;

pub use row::Row;

use crate::losslessly::highest;
use nicety::nfp::NfpSpec;
use nicety::nfp::xdp::XdpProgram;
use nicety::{Environment, Error};
use trial::Trial;

/// A program on a card.
pub(super) struct Given<'g> {
    /// The card's name.
    pub(super) nic: &'g str,
    pub(super) spec: &'g NfpSpec,
    /// The program, compiled for the card.
    pub(super) elf: &'g [u8],
    pub(super) traffic: &'g str,
    pub(super) seed: u64,
    pub(super) environment: &'g Environment<'g>,
}

impl Given<'_> {
    fn program(&self) -> Result<XdpProgram, Error> {
        XdpProgram::load(self.elf, self.spec).map_err(|error| self.wrong(&error))
    }

    /// An error of the user's input, with the card.
    fn wrong(&self, error: &impl ToString) -> Error {
        Error::Input(format!("{}: {}", self.nic, error.to_string()))
    }
}

/// Checks a program and the traffic, without a run.
///
/// # Errors
/// They are wrong for the card.
pub(super) fn check(given: &Given<'_>) -> Result<(), Error> {
    given.program().map(drop)?;
    trial::stream(given).map(drop)
}

/// Measures a program.
///
/// # Errors
/// A trap of the program, or wrong traffic.
pub(super) fn measure(given: &Given<'_>) -> Result<Row, Error> {
    let program = given.program()?;
    let at_rate = trial::run(given, &program, 1.0)?;
    let best = match at_rate.keeps_up() {
        true => None,
        false => highest(
            (1.0, at_rate.taken_pps() / at_rate.offered_pps()),
            |times| trial::run(given, &program, times),
            Trial::keeps_up,
            |trial: &Trial| trial.times,
        )?,
    };
    Ok(row::row(given, &at_rate, best.as_ref()))
}
