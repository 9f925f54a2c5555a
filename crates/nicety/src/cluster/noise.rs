//! Background noise on the CPUs of a cluster's hosts, as users write it.

use crate::Error;
use nicety_host::{NoiseSpec, Regularity};
use nicety_spec::units::parse_time;
use nicety_types::Duration;
use std::str::FromStr;

/// Background noise on the CPUs of all hosts, or of one.
///
/// As a text: `PERIOD,DURATION`, optionally followed by `fixed` and `rank=N`, as in `1ms,25us` or
/// `100us,1us,fixed,rank=1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Period and duration.
    pub spec: NoiseSpec,
    /// The only host with noise; none for all hosts.
    pub rank: Option<u32>,
}

impl Noise {
    /// The noise of a host.
    pub(crate) fn on(self, rank: u32) -> Option<NoiseSpec> {
        self.rank.is_none_or(|only| only == rank).then_some(self.spec)
    }
}

impl FromStr for Noise {
    type Err = Error;

    fn from_str(text: &str) -> Result<Noise, Error> {
        let wrong = |why: String| Error::Input(format!("noise '{text}': {why}"));
        let time = |part: &str, what: &str| -> Result<Duration, Error> {
            let time = parse_time(part).map_err(|error| wrong(format!("the {what}: {error}")))?;
            if time.is_zero() { Err(wrong(format!("a {what} of 0 is no noise"))) } else { Ok(time) }
        };
        let mut parts = text.split(',').map(str::trim);
        let (Some(period), Some(duration)) = (parts.next(), parts.next()) else {
            return Err(wrong("no duration; write PERIOD,DURATION, as in 1ms,25us".into()));
        };
        let (period, duration) = (time(period, "period")?, time(duration, "duration")?);
        if period < Duration::from_ns(1) {
            return Err(wrong("the period is 1 ns at least".into()));
        }
        if duration >= period {
            return Err(wrong(
                "the duration is not shorter than the period, so nothing else would ever run".into(),
            ));
        }
        let mut noise =
            Noise { spec: NoiseSpec { period, duration, regularity: Regularity::Exponential }, rank: None };
        for part in parts {
            match part.strip_prefix("rank=") {
                None if part == "fixed" => noise.spec.regularity = Regularity::Fixed,
                None => {
                    return Err(wrong(format!(
                        "'{part}' is no option of noise; write fixed for intervals a period apart, or rank=N for one \
                         host only"
                    )));
                }
                Some(rank) => {
                    let rank =
                        rank.parse().map_err(|_| wrong(format!("'{rank}' is no rank; write rank=1")))?;
                    noise.rank = Some(rank);
                }
            }
        }
        Ok(noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(period: Duration, duration: Duration, regularity: Regularity) -> NoiseSpec {
        NoiseSpec { period, duration, regularity }
    }

    #[test]
    fn noise_as_it_is_written() {
        let parse = |text: &str| text.parse::<Noise>().unwrap();
        let random = spec(Duration::from_us(1000), Duration::from_us(25), Regularity::Exponential);
        assert_eq!(parse("1ms,25us"), Noise { spec: random, rank: None });
        assert_eq!(parse(" 1 ms , 25000 ns "), Noise { spec: random, rank: None });
        assert_eq!(parse("1ms,25us,rank=3"), Noise { spec: random, rank: Some(3) });
        let fixed = spec(Duration::from_us(100), Duration::from_us(1), Regularity::Fixed);
        assert_eq!(parse("100us,1us,fixed"), Noise { spec: fixed, rank: None });
        assert_eq!(parse("100us,1us,rank=0,fixed"), Noise { spec: fixed, rank: Some(0) });
    }

    #[test]
    fn noise_on_one_host() {
        let noise: Noise = "1ms,25us,rank=1".parse().unwrap();
        assert_eq!((noise.on(0), noise.on(1)), (None, Some(noise.spec)));
        let noise = Noise { rank: None, ..noise };
        assert_eq!((noise.on(0), noise.on(1)), (Some(noise.spec), Some(noise.spec)));
    }

    #[test]
    fn invalid_noise_is_refused() {
        for (text, why) in [
            ("", "no duration; write PERIOD,DURATION"),
            ("1ms", "no duration"),
            ("1ms,", "the duration: "),
            ("1,25us", "the period: "),
            ("1ms,25", "the duration: "),
            ("1ms,25 furlongs", "furlongs"),
            ("0ns,0ns", "a period of 0"),
            ("1ms,0us", "a duration of 0"),
            ("25us,1ms", "not shorter than the period"),
            ("1us,1us", "not shorter than the period"),
            ("900ps,1ps", "1 ns at least"),
            ("1ms,25us,often", "'often' is no option"),
            ("1ms,25us,", "'' is no option"),
            ("1ms,25us,rank=one", "'one' is no rank"),
        ] {
            let error = text.parse::<Noise>().unwrap_err();
            assert!(matches!(error, Error::Input(_)));
            let error = error.to_string();
            assert!(error.starts_with("noise '") && error.contains(why), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_times_are_read(duration in 1u64..1_000_000_000, more in 1u64..1_000_000_000) {
            let period = duration + more + 1000;
            let noise: Noise = format!("{period}ps,{duration}ps").parse().unwrap();
            prop_assert_eq!(noise.spec.period, Duration::from_ps(period));
            prop_assert_eq!(noise.spec.duration, Duration::from_ps(duration));
        }

        #[test]
        fn no_text_panics(text in "[0-9a-z,.=µ -]{0,30}") {
            let _ = text.parse::<Noise>();
        }
    }
}
