//! Virtual time: integers of picoseconds, so that a run is the same to the last bit everywhere.
//!
//! Sums and products saturate at the end of time, 2^64 ps, which is 213 days. So a user may ask for any time, and a model need
//! not check for overflow. An event at the end of time never happens. A run that reaches the end of time ends with an error.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// An instant of virtual time, in picoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time(u64);

/// A length of virtual time, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Duration(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// The end of time, later than any event.
    pub const MAX: Time = Time(u64::MAX);

    /// The instant `ps` picoseconds after the start.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// Picoseconds since the start.
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Nanoseconds since the start, for display and results only.
    pub fn ns(self) -> f64 {
        Duration(self.0).ns()
    }

    /// Returns the time from `earlier` to `self`.
    ///
    /// # Panics
    /// When `earlier` is later: a model that measures backwards is wrong.
    #[inline]
    pub fn since(self, earlier: Time) -> Duration {
        if earlier.0 > self.0 {
            self.backwards(earlier);
        }
        Duration(self.0 - earlier.0)
    }

    #[cold]
    fn backwards(self, earlier: Time) -> ! {
        panic!("measured backwards: from {earlier} to {self}");
    }

    /// Returns the time from `earlier` to `self`, or zero where `earlier` is later.
    pub fn saturating_since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// A duration of zero.
    pub const ZERO: Duration = Duration(0);
    /// The longest duration.
    pub const MAX: Duration = Duration(u64::MAX);

    /// `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Duration {
        Duration(ps)
    }

    /// `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Duration {
        Duration(ns.saturating_mul(1_000))
    }

    /// `us` microseconds.
    pub const fn from_us(us: u64) -> Duration {
        Duration(us.saturating_mul(1_000_000))
    }

    /// Picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Nanoseconds, for display and results only.
    pub fn ns(self) -> f64 {
        self.0 as f64 / 1_000.0
    }

    /// Whether this is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the difference, or zero where `other` is longer.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(d.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, d: Duration) -> Duration {
        Duration(self.0.saturating_add(d.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, d: Duration) -> Duration {
        Duration(self.0.checked_sub(d.0).expect("a duration cannot be negative"))
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, n: u64) -> Duration {
        Duration(self.0.saturating_mul(n))
    }
}

impl Sum for Duration {
    fn sum<I: Iterator<Item = Duration>>(durations: I) -> Duration {
        durations.fold(Duration::ZERO, |a, b| a + b)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, unit, scale) = match self.0 {
            0 => return f.write_str("0 ns"),
            1..=999 => return write!(f, "{} ps", self.0),
            1_000..=999_999 => (self.0 / 1_000, "ns", 1_000),
            1_000_000..=999_999_999 => (self.0 / 1_000_000, "us", 1_000_000),
            1_000_000_000..=999_999_999_999 => (self.0 / 1_000_000_000, "ms", 1_000_000_000),
            _ => (self.0 / 1_000_000_000_000, "s", 1_000_000_000_000u64),
        };
        let rest = self.0 % scale;
        let digits = scale.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        let fraction = fraction.trim_end_matches('0');
        if fraction.is_empty() { write!(f, "{whole} {unit}") } else { write!(f, "{whole}.{fraction} {unit}") }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_exactly() {
        assert_eq!(Duration::from_ps(693_685).to_string(), "693.685 ns");
        assert_eq!(Duration::from_ps(2_040_018).to_string(), "2.040018 us");
        assert_eq!(Duration::from_ps(125).to_string(), "125 ps");
        assert_eq!(Duration::from_ns(250).to_string(), "250 ns");
        assert_eq!(Duration::ZERO.to_string(), "0 ns");
        assert_eq!(Duration::from_us(3_000_000).to_string(), "3 s");
    }

    #[test]
    fn sums_and_products_stop_at_the_end_of_time() {
        let long = Duration::from_ps(u64::MAX - 1);
        assert_eq!(Time::from_ps(2) + long, Time::MAX);
        assert_eq!(long + long, Duration::MAX);
        assert_eq!(long * 2, Duration::MAX);
        assert_eq!(Duration::from_us(u64::MAX), Duration::MAX);
        assert_eq!(Time::from_ps(1) + long, Time::MAX);
        assert_eq!(Time::ZERO + long, Time::from_ps(u64::MAX - 1));
        assert_eq!([long, long].into_iter().sum::<Duration>(), Duration::MAX);
    }

    #[test]
    #[should_panic(expected = "measured backwards")]
    fn time_does_not_run_backwards() {
        let _ = Time::ZERO.since(Time::from_ps(1));
    }
}
