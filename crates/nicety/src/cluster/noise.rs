//! Background noise on the CPUs of a cluster's hosts, as users write it.

use crate::Error;
use nicety_host::{Intervals, NoiseSpec, NoiseTrace, Regularity};
use nicety_spec::units::parse_time;
use nicety_types::Duration;
use std::fs::File;
use std::io::{self, Read};
use std::str::FromStr;

/// Maximum size of a trace file, in bytes. This is enough for sixteen million intervals.
const MOST_BYTES: u64 = 256 << 20;

/// Background noise on the CPUs of all hosts, or of one host.
///
/// As a text it is `PERIOD,DURATION`, optionally followed by `fixed` and `rank=N`, such as `1ms,25us` or
/// `100us,1us,fixed,rank=1`. A text without these numbers is the name of a trace file, optionally followed by `rank=N`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noise {
    /// The intervals during which noise occupies CPUs.
    pub intervals: Intervals,
    /// The rank of the only host with noise. `None` if all hosts have noise.
    pub rank: Option<u32>,
}

impl Noise {
    /// Returns the noise of a host. `None` if the host has no noise.
    pub(crate) fn on(&self, rank: u32) -> Option<&Intervals> {
        self.rank.is_none_or(|only| only == rank).then_some(&self.intervals)
    }
}

impl FromStr for Noise {
    type Err = Error;

    fn from_str(text: &str) -> Result<Noise, Error> {
        let wrong = |why: String| Error::Input(format!("noise '{text}': {why}"));
        let mut parts = text.split(',').map(str::trim);
        let first = parts.next().unwrap_or_default();
        let rest: Vec<&str> = parts.collect();
        match rest.first() {
            Some(duration) if !duration.starts_with("rank=") => drawn(first, duration, &rest[1..]),
            _ => recorded(first, &rest),
        }
        .map_err(wrong)
    }
}

/// Parses noise by period, duration and options.
fn drawn(period: &str, duration: &str, options: &[&str]) -> Result<Noise, String> {
    let time = |part: &str, what: &str| -> Result<Duration, String> {
        let time = parse_time(part).map_err(|error| format!("the {what}: {error}"))?;
        if time.is_zero() {
            Err(format!("a {what} of 0 is not possible; write more than 0"))
        } else {
            Ok(time)
        }
    };
    let (period, duration) = (time(period, "period")?, time(duration, "duration")?);
    if period < Duration::from_ns(1) {
        return Err("the period is below 1 ns; write 1ns or more".into());
    }
    if duration >= period {
        return Err("the duration is not shorter than the period, so nothing else would ever run".into());
    }
    let (mut regularity, mut rank) = (Regularity::Exponential, None);
    for option in options {
        match option.strip_prefix("rank=") {
            None if *option == "fixed" => regularity = Regularity::Fixed,
            None => {
                return Err(format!(
                    "'{option}' is no option of noise; write fixed for a fixed period, or rank=N for one \
                     host only"
                ));
            }
            Some(number) => rank = Some(rank_of(number)?),
        }
    }
    Ok(Noise { intervals: Intervals::Drawn(NoiseSpec { period, duration, regularity }), rank })
}

/// Reads noise from a trace file.
fn recorded(file: &str, options: &[&str]) -> Result<Noise, String> {
    let mut rank = None;
    for option in options {
        let Some(number) = option.strip_prefix("rank=") else {
            return Err(format!("'{option}' is no option of a trace; write rank=N for one host only"));
        };
        rank = Some(rank_of(number)?);
    }
    let mut text = String::new();
    File::open(file)
        .and_then(|opened| opened.take(MOST_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| no_file(file, &error))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("a trace is at most {} MiB long", MOST_BYTES >> 20));
    }
    let trace = NoiseTrace::parse(&text).map_err(|error| error.to_string())?;
    Ok(Noise { intervals: Intervals::Recorded(trace.into()), rank })
}

fn rank_of(number: &str) -> Result<u32, String> {
    number.parse().map_err(|_| format!("'{number}' is no rank; write rank=1"))
}

/// Returns the error of a trace file that cannot be read. The error also explains noise with a period, because the user
/// may not have meant a file.
fn no_file(file: &str, error: &io::Error) -> String {
    let said = error.to_string();
    let said = said.split(" (os error").next().unwrap_or_default();
    match parse_time(file) {
        Ok(_) => "no duration; write PERIOD,DURATION, as in 1ms,25us".to_owned(),
        Err(_) => format!("cannot read it ({said}); write PERIOD,DURATION, as in 1ms,25us, or name a trace"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(period: Duration, duration: Duration, regularity: Regularity) -> Intervals {
        Intervals::Drawn(NoiseSpec { period, duration, regularity })
    }

    #[test]
    fn noise_as_it_is_written() {
        let parse = |text: &str| text.parse::<Noise>().unwrap();
        let random = spec(Duration::from_us(1000), Duration::from_us(25), Regularity::Exponential);
        assert_eq!(parse("1ms,25us"), Noise { intervals: random.clone(), rank: None });
        assert_eq!(parse(" 1 ms , 25000 ns "), Noise { intervals: random.clone(), rank: None });
        assert_eq!(parse("1ms,25us,rank=3"), Noise { intervals: random, rank: Some(3) });
        let fixed = spec(Duration::from_us(100), Duration::from_us(1), Regularity::Fixed);
        assert_eq!(parse("100us,1us,fixed"), Noise { intervals: fixed.clone(), rank: None });
        assert_eq!(parse("100us,1us,rank=0,fixed"), Noise { intervals: fixed, rank: Some(0) });
    }

    #[test]
    fn noise_on_one_host() {
        let noise: Noise = "1ms,25us,rank=1".parse().unwrap();
        assert_eq!((noise.on(0), noise.on(1)), (None, Some(&noise.intervals)));
        let noise = Noise { rank: None, ..noise };
        assert_eq!((noise.on(0), noise.on(1)), (Some(&noise.intervals), Some(&noise.intervals)));
    }

    #[test]
    fn a_trace_is_named() {
        let file = std::env::temp_dir().join(format!("nicety-noise-{}.txt", std::process::id()));
        let name = file.to_str().unwrap();
        std::fs::write(&file, "0 300\n1000 200\n").unwrap();
        let trace = Intervals::Recorded(NoiseTrace::parse("0 300\n1000 200\n").unwrap().into());
        assert_eq!(name.parse(), Ok(Noise { intervals: trace.clone(), rank: None }));
        assert_eq!(format!("{name},rank=2").parse(), Ok(Noise { intervals: trace, rank: Some(2) }));
        std::fs::write(&file, "0 300\n1 x\n").unwrap();
        let error = name.parse::<Noise>().unwrap_err().to_string();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(error, format!("noise '{name}': line 2: 'x' is no time in ns"));
    }

    #[test]
    fn invalid_noise_is_refused() {
        for (text, why) in [
            (
                "",
                "cannot read it (No such file or directory); write PERIOD,DURATION, as in 1ms,25us, or name a trace",
            ),
            ("1ms", "no duration; write PERIOD,DURATION"),
            ("no such file", "cannot read it (No such file"),
            ("/", "cannot read it (Is a directory)"),
            ("no such file,rank=x", "'x' is no rank"),
            ("no such file,rank=1,fixed", "'fixed' is no option of a trace"),
            ("1ms,", "the duration: "),
            ("1,25us", "the period: "),
            ("1ms,25", "the duration: "),
            ("1ms,25 furlongs", "furlongs"),
            ("0ns,0ns", "a period of 0"),
            ("1ms,0us", "a duration of 0"),
            ("25us,1ms", "not shorter than the period"),
            ("1us,1us", "not shorter than the period"),
            ("900ps,1ps", "below 1 ns; write 1ns or more"),
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
            let (period, duration) = (Duration::from_ps(period), Duration::from_ps(duration));
            prop_assert_eq!(noise.intervals, spec(period, duration, Regularity::Exponential));
        }

        #[test]
        fn no_text_panics(text in "[0-9a-z,.=µ -]{0,30}") {
            let _ = text.parse::<Noise>();
        }
    }
}
