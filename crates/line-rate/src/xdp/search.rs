//! The search for the highest rate without loss.

use super::trial::{Place, Trial};
use nicety::Error;

/// Highest ratio of a rate that loses frames to the rate that is reported.
const CLOSE: f64 = 1.01;
/// Maximum runs that look for any rate without loss.
const LOOKS: u32 = 8;

/// Returns the run at the highest rate without loss, to 1 %; none if every rate loses frames. `given` is the run at the traffic's own
/// rate, which lost some.
///
/// # Errors
/// A run fails.
pub(super) fn search(place: &Place<'_>, given: &Trial) -> Result<Option<Trial>, Error> {
    let mut too_fast = given.times;
    let guess = given.times * given.through_pps() / given.offered_pps();
    let mut next = (guess * CLOSE).min(given.times / CLOSE);
    let mut best: Option<Trial> = None;
    let mut looks = 0;
    loop {
        let trial = place.run(next)?;
        match keeps_up(place, &trial) {
            true => best = Some(trial),
            false => too_fast = next,
        }
        next = match &best {
            Some(best) if too_fast / best.times <= CLOSE => break,
            Some(best) => f64::midpoint(best.times, too_fast),
            None if looks == LOOKS => break,
            None => {
                looks += 1;
                next / (1.0 + 0.03 * f64::from(1 << looks))
            }
        };
    }
    Ok(best)
}

/// Whether no frame was lost, and the driver does not fall behind. At the end, frames of an interrupt and of a poll may wait in each
/// channel.
pub(super) fn keeps_up(place: &Place<'_>, trial: &Trial) -> bool {
    let spec = place.card.spec();
    let of_channel = spec.interrupts.packets + spec.driver.budget;
    trial.lost() == 0 && trial.behind() <= of_channel * spec.receive.channels as u64
}
