//! The search for the highest rate without loss.

use nicety::Error;

/// Highest ratio of a rate that loses frames to the rate that is reported.
const CLOSE: f64 = 1.01;
/// Maximum runs that look for any rate without loss.
const LOOKS: u32 = 8;

/// Returns the run at the highest rate without loss, to 1 %; none if every rate loses frames. A run at `lossy` times the traffic's rate
/// lost some, and `guess` of them came through.
///
/// # Errors
/// A run fails.
pub(crate) fn highest<T>(
    (lossy, guess): (f64, f64),
    run: impl Fn(f64) -> Result<T, Error>,
    keeps_up: impl Fn(&T) -> bool,
    times: impl Fn(&T) -> f64,
) -> Result<Option<T>, Error> {
    let mut too_fast = lossy;
    let mut next = (lossy * guess * CLOSE).min(lossy / CLOSE);
    let mut best: Option<T> = None;
    let mut looks = 0;
    loop {
        let trial = run(next)?;
        match keeps_up(&trial) {
            true => best = Some(trial),
            false => too_fast = next,
        }
        next = match &best {
            Some(best) if too_fast / times(best) <= CLOSE => break,
            Some(best) => f64::midpoint(times(best), too_fast),
            None if looks == LOOKS => break,
            None => {
                looks += 1;
                next / (1.0 + 0.03 * f64::from(1 << looks))
            }
        };
    }
    Ok(best)
}
