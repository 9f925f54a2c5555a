//! smoltcp's clock: microseconds that run so fast that its least retransmission timeout, 1 s, is the spec's.

use nicety_types::{Duration, Time};
use smoltcp::time::{Duration as Fast, Instant};

/// The scale between virtual time and smoltcp's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Picoseconds of virtual time in one second of smoltcp's.
    second: u64,
}

impl Clock {
    pub(crate) fn new(min_rto: Duration) -> Clock {
        Clock { second: min_rto.ps() }
    }

    /// smoltcp's time now, rounded down: no deadline comes early.
    pub(crate) fn instant(self, now: Time) -> Instant {
        let micros = u128::from(now.ps()) * 1_000_000 / u128::from(self.second);
        Instant::from_micros(i64::try_from(micros).unwrap_or(i64::MAX / 2))
    }

    /// When smoltcp's clock will show `at`, to the picosecond.
    pub(crate) fn time(self, at: Instant) -> Time {
        let micros = u128::try_from(at.total_micros()).unwrap_or(0);
        let ps = (micros * u128::from(self.second)).div_ceil(1_000_000);
        Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// A duration of virtual time on smoltcp's clock, rounded up.
    pub(crate) fn duration(self, d: Duration) -> Fast {
        let micros = (u128::from(d.ps()) * 1_000_000).div_ceil(u128::from(self.second));
        Fast::from_micros(u64::try_from(micros).unwrap_or(u64::MAX).min(1 << 52))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_met_exactly() {
        // 200 ms is 1 s of smoltcp's, so that its microsecond is 200 ns.
        let clock = Clock::new(Duration::from_us(200_000));
        assert_eq!(clock.instant(Time::from_ps(199_999)).total_micros(), 0);
        assert_eq!(clock.instant(Time::from_ps(200_000)).total_micros(), 1);
        assert_eq!(clock.time(Instant::from_micros(5)).ps(), 1_000_000);
        assert_eq!(clock.duration(Duration::from_us(40_000)).total_millis(), 200);
        let odd = Clock::new(Duration::from_ps(333_333_333));
        for micros in [1i64, 2, 3, 999_999] {
            let at = odd.time(Instant::from_micros(micros));
            assert_eq!(odd.instant(at).total_micros(), micros);
            assert_eq!(odd.instant(Time::from_ps(at.ps() - 1)).total_micros(), micros - 1);
        }
    }
}
