//! Offered load, as a fraction of the bandwidth of a node's link.

use nicety::Error;
use std::fmt;

/// Number of units in a load of 1.
const WHOLE: u32 = 1_000_000;
/// Default step of a range, in units.
const STEP: u32 = 100_000;
/// Maximum number of loads in a range.
const MOST: usize = 1000;

/// A load in millionths, above 0 and at most 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Load(u32);

impl Load {
    /// Reads loads: `0.25`; `0.1,0.5`; `0.1:1.0`, which steps by 0.1; or `0.1:1.0:0.05`. A range includes its end.
    pub(super) fn parse(text: &str) -> Result<Vec<Load>, Error> {
        let mut loads = Vec::new();
        for part in text.split(',') {
            let parts: Vec<u32> = part.split(':').map(|of| millionths(text, of)).collect::<Result<_, _>>()?;
            let (first, last, step) = match parts[..] {
                [only] => (only, only, STEP),
                [first, last] => (first, last, STEP),
                [first, last, step] => (first, last, step),
                _ => return wrong(text, "a range is FIRST:LAST or FIRST:LAST:STEP"),
            };
            if first > last {
                return wrong(text, "the first load of a range is above its last");
            }
            let steps = (last - first) / step;
            if loads.len() + steps as usize > MOST {
                return wrong(text, &format!("the list has more than {MOST} loads"));
            }
            loads.extend((0..=steps).map(|number| Load(first + number * step)));
            loads.push(Load(last));
        }
        loads.sort_unstable();
        loads.dedup();
        Ok(loads)
    }

    /// The load as a fraction.
    pub(super) fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }

    /// Returns the mean interval between packets in picoseconds. A packet takes `packet_ps` picoseconds on the link.
    pub(super) fn spacing(self, packet_ps: u64) -> u64 {
        packet_ps.saturating_mul(u64::from(WHOLE)) / u64::from(self.0)
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fraction().fmt(f)
    }
}

fn wrong<T>(text: &str, why: &str) -> Result<T, Error> {
    Err(Error::Input(format!(
        "--load {text}: {why}; a load is a fraction of the link's bandwidth above 0, up to 1: write 0.5, 0.1,0.2, 0.1:1.0 \
         for steps of 0.1, or 0.1:1.0:0.05"
    )))
}

/// Reads a fraction with at most six decimal places, exactly.
fn millionths(text: &str, part: &str) -> Result<u32, Error> {
    let (whole, digits) = part.split_once('.').unwrap_or((part, ""));
    let digital = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if part.starts_with('-') {
        return wrong(text, &format!("'{part}' is below 0"));
    }
    if !digital(whole) || !digital(digits) || whole.is_empty() && digits.is_empty() || whole.len() > 3 {
        return wrong(text, &format!("'{part}' is no number"));
    }
    if digits.len() > 6 {
        return wrong(text, &format!("'{part}' has more than six decimals"));
    }
    let value = format!("0{whole}{digits:0<6}").parse().unwrap_or(u32::MAX);
    match value {
        1..=WHOLE => Ok(value),
        0 => wrong(text, "a load of 0 has no traffic, and a step is above 0"),
        _ => wrong(text, "a load or a step is at most 1, the full rate of the link"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_exact() {
        let of = |text: &str| Load::parse(text).unwrap().iter().map(|load| load.0).collect::<Vec<_>>();
        assert_eq!(of("0.1:1.0"), (1..=10).map(|tenth| tenth * 100_000).collect::<Vec<_>>());
        assert_eq!(of("0.1:0.25:0.05"), [100_000, 150_000, 200_000, 250_000]);
        assert_eq!(of("0.05:0.3"), [50_000, 150_000, 250_000, 300_000]);
        assert_eq!(of(".5,1,0.000001,0.5"), [1, 500_000, 1_000_000]);
        assert_eq!(Load(300_000).spacing(81_920), 273_066);
        assert_eq!(Load(300_000).to_string(), "0.3");
    }

    #[test]
    fn invalid_loads_are_refused() {
        for (text, why) in [
            ("", "no number"),
            (".", "no number"),
            ("a", "no number"),
            ("-0.1", "'-0.1' is below 0"),
            ("1e-3", "no number"),
            ("0.5,", "no number"),
            ("0", "no traffic"),
            ("0:1", "no traffic"),
            ("0.1:1:0", "no traffic"),
            ("1.1", "at most 1, the full rate"),
            ("4295", "no number"),
            ("0.0000001", "six decimals"),
            ("0.9:0.1", "above its last"),
            ("0.1:0.2:0.1:0.1", "FIRST:LAST"),
            ("0.1:1:0.0001", "more than 1000 loads"),
        ] {
            let error = Load::parse(text).unwrap_err();
            assert!(error.exit_status() == 2 && error.to_string().contains(why), "{text}: {error}");
        }
    }
}
