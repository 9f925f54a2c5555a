//! The search for the highest rate without loss.

use super::trial::{Place, Trial};
use crate::losslessly::highest;
use nicety::Error;

/// Returns the run at the highest rate without loss, to 1 %; none if every rate loses frames. `given` is the run at the traffic's own
/// rate, which lost some.
///
/// # Errors
/// A run fails.
pub(super) fn search(place: &Place<'_>, given: &Trial) -> Result<Option<Trial>, Error> {
    highest(
        (given.times, given.through_pps() / given.offered_pps()),
        |times| place.run(times),
        |trial| keeps_up(place, trial),
        |trial| trial.times,
    )
}

/// Whether no frame was lost, the work of the busiest part takes no longer than the frames, and the driver does not fall behind. At
/// the end, frames of an interrupt and of a poll may wait in each channel.
pub(super) fn keeps_up(place: &Place<'_>, trial: &Trial) -> bool {
    let spec = place.card.spec();
    let of_channel = spec.interrupts.packets + spec.driver.budget;
    trial.lost() == 0
        && trial.work().all(|(_, busy)| busy <= trial.offered.time)
        && trial.behind() <= of_channel * spec.receive.channels as u64
}
