//! Parses the items that describe times: the rate, the arrivals and the start.

use super::Items;
use crate::error::TrafficError;
use crate::expression::{Arrivals, Rate, Source};
use nicety_spec::units::{PerSecond, parse_count, parse_rate, parse_time};

/// Maximum rate, in bits or frames per second.
const MOST_RATE: u64 = 1 << 50;
/// The latest allowed start, in picoseconds: an hour.
pub(super) const LATEST: u64 = 3600 * 1_000_000_000_000;

impl Items<'_> {
    pub(super) fn rate(&self, source: &Source) -> Result<Rate, TrafficError> {
        let captured = matches!(source, Source::Capture { .. });
        let Some((value, at)) = self.value("rate") else {
            return Ok(if captured { Rate::Recorded } else { Rate::Wire });
        };
        match value {
            "wire" => return Ok(Rate::Wire),
            "recorded" if captured => return Ok(Rate::Recorded),
            "recorded" => {
                return self.wrong(
                    at,
                    "generated frames have no recorded times; write rate=wire, rate=10Gbps or rate=5Mpps",
                );
            }
            _ => {}
        }
        let inside = |rate: u64| (1..=MOST_RATE).contains(&rate);
        let message = match parse_rate(value) {
            Ok(PerSecond::Bits(rate)) if inside(rate) => return Ok(Rate::BitsPerSecond(rate)),
            Ok(PerSecond::Packets(rate)) if inside(rate) => return Ok(Rate::PacketsPerSecond(rate)),
            Ok(_) => format!("a rate is a whole number from 1 to {MOST_RATE} a second, as in 5Mpps"),
            Err(_) if is_exponential(value) => "write the number with k, M, G or T, as in 5Mpps".to_owned(),
            Err(error) => format!(
                "{error}; a rate is wire, recorded, bits a second as in 10Gbps, or frames a second as in 5Mpps"
            ),
        };
        self.wrong(at, message)
    }

    pub(super) fn arrivals(&self, rate: Rate) -> Result<Arrivals, TrafficError> {
        let Some((value, at)) = self.value("arrivals") else { return Ok(Arrivals::Paced) };
        let arrivals = match value {
            "paced" => Arrivals::Paced,
            "poisson" => Arrivals::Poisson,
            _ => match value
                .strip_prefix("burst:")
                .and_then(|frames| parse_count(frames).ok())
                .filter(|n| (1..=1 << 32).contains(n))
            {
                Some(frames) => Arrivals::Bursts(frames),
                None => {
                    return self.wrong(at, "arrivals are paced, poisson, or bursts of frames as in burst:32");
                }
            },
        };
        match rate {
            Rate::Wire => self.wrong(
                at,
                "at the wire's rate, frames have no gaps between them; write a rate, as in rate=10Gbps",
            ),
            Rate::Recorded => self.wrong(
                at,
                "frames arrive at their recorded times; write a rate, as in rate=10Gbps, or leave arrivals \
                 out",
            ),
            _ => Ok(arrivals),
        }
    }

    /// Returns the earliest start of the first frame in picoseconds, if the expression gives it.
    pub(super) fn start(&self) -> Result<Option<u64>, TrafficError> {
        let Some((value, at)) = self.value("start") else { return Ok(None) };
        let why = match parse_time(value) {
            Ok(time) if time.ps() <= LATEST => return Ok(Some(time.ps())),
            Ok(_) => "the maximum is one hour".to_owned(),
            Err(error) => error.to_string(),
        };
        self.wrong(at, format!("{why}; write for example start=20us, and at most start=3600s"))
    }
}

/// Whether a text begins with a number that has an exponent, such as 1e6.
fn is_exponential(text: &str) -> bool {
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let exponent = number.strip_prefix(['e', 'E']).map(|rest| rest.trim_start_matches(['+', '-']));
    number.len() < text.len() && exponent.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}
