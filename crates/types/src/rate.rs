//! Exact rates: time per byte and clock frequency. A duration is rounded up once, for the whole amount.

use crate::Duration;
use std::fmt;

/// Picoseconds per byte as an exact fraction, the G of the LogGP models. n bytes take ceil(n x gap).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gap {
    numerator: u64,
    denominator: u64,
}

impl Gap {
    /// The gap of zero: any number of bytes takes no time.
    pub const ZERO: Gap = Gap { numerator: 0, denominator: 1 };

    /// Returns a gap of `numerator / denominator` picoseconds per byte, in lowest terms.
    ///
    /// # Panics
    /// When the denominator is zero.
    pub const fn new(numerator: u64, denominator: u64) -> Gap {
        assert!(denominator > 0, "a gap's denominator is at least one");
        let divisor = gcd(numerator, denominator);
        Gap { numerator: numerator / divisor, denominator: denominator / divisor }
    }

    /// Returns the gap of a bandwidth in bytes per second.
    ///
    /// # Panics
    /// When the bandwidth is zero.
    pub const fn from_bytes_per_s(bytes_per_s: u64) -> Gap {
        Gap::new(1_000_000_000_000, bytes_per_s)
    }

    /// The time that `bytes` bytes take, rounded up once, at most [`Duration::MAX`].
    #[inline]
    pub fn cover(self, bytes: u64) -> Duration {
        // The product nearly always fits 64 bits. A 64-bit division is many times faster.
        if let Some(product) = bytes.checked_mul(self.numerator) {
            return Duration::from_ps(product.div_ceil(self.denominator));
        }
        let ps = (u128::from(bytes) * u128::from(self.numerator)).div_ceil(u128::from(self.denominator));
        Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// The bytes that pass in `time`, rounded up. Returns `u64::MAX` if a byte takes no time.
    pub fn bytes_in(self, time: Duration) -> u64 {
        let scaled = u128::from(time.ps()) * u128::from(self.denominator);
        match self.numerator {
            0 => u64::MAX,
            numerator => u64::try_from(scaled.div_ceil(u128::from(numerator))).unwrap_or(u64::MAX),
        }
    }

    /// Returns the gap of `wires` parallel wires that have this gap each.
    ///
    /// # Panics
    /// When `wires` is zero.
    pub const fn of_wires(self, wires: u32) -> Gap {
        Gap::new(self.numerator, self.denominator * wires as u64)
    }

    /// Picoseconds per byte, for display and results only.
    pub fn ps_per_byte(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Bytes per second, for display and results only; infinite for a zero gap.
    pub fn bytes_per_s(self) -> f64 {
        1e12 * self.denominator as f64 / self.numerator as f64
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ps/B", self.ps_per_byte())
    }
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    if a == 0 { 1 } else { a }
}

const PS_PER_S: u64 = 1_000_000_000_000;

/// A clock's frequency in hertz, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frequency {
    hz: u64,
    /// The fewest cycles that take a whole number of picoseconds, and this number of picoseconds. With this pair, usual
    /// products fit 64 bits.
    beat: (u64, u64),
}

impl Frequency {
    /// Returns a clock of `hz` hertz.
    ///
    /// # Panics
    /// When `hz` is zero: a stopped clock never begins a cycle.
    pub const fn from_hz(hz: u64) -> Frequency {
        assert!(hz > 0, "a clock's frequency is at least 1 Hz");
        let common = gcd(hz, PS_PER_S);
        Frequency { hz, beat: (hz / common, PS_PER_S / common) }
    }

    /// The frequency in hertz.
    pub const fn hz(self) -> u64 {
        self.hz
    }

    /// The time from the start of cycle 0 to the start of cycle `k`: ceil(k x 10^12 / f) ps, at most [`Duration::MAX`].
    #[inline]
    pub fn cycles(self, k: u64) -> Duration {
        let (cycles, beat) = self.beat;
        match k.checked_mul(beat) {
            // The cycles of most clocks take whole picoseconds.
            Some(product) if cycles == 1 => Duration::from_ps(product),
            Some(product) => Duration::from_ps(product.div_ceil(cycles)),
            None => self.many_cycles(k),
        }
    }

    /// [`Frequency::cycles`] where the product exceeds 64 bits.
    #[cold]
    fn many_cycles(self, k: u64) -> Duration {
        let ps = (u128::from(k) * u128::from(PS_PER_S)).div_ceil(u128::from(self.hz));
        Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// The fewest cycles that take a whole number of picoseconds, and their time. The clock edges repeat with this period.
    #[inline]
    pub const fn beat(self) -> (u64, Duration) {
        (self.beat.0, Duration::from_ps(self.beat.1))
    }

    /// The whole cycles that begin in `d`: the largest k with `cycles(k) <= d`; at most 2^64 - 1.
    #[inline]
    pub fn cycles_in(self, d: Duration) -> u64 {
        let (cycles, beat) = self.beat;
        match d.ps().checked_mul(cycles) {
            Some(product) => product / beat,
            None => self.many_cycles_in(d),
        }
    }

    /// [`Frequency::cycles_in`] where the product exceeds 64 bits.
    #[cold]
    fn many_cycles_in(self, d: Duration) -> u64 {
        let k = u128::from(d.ps()) * u128::from(self.hz) / u128::from(PS_PER_S);
        u64::try_from(k).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hz = self.hz as f64;
        match self.hz {
            1_000_000_000.. => write!(f, "{} GHz", hz / 1e9),
            1_000_000.. => write!(f, "{} MHz", hz / 1e6),
            1_000.. => write!(f, "{} kHz", hz / 1e3),
            _ => write!(f, "{hz} Hz"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_rounds_up_once_on_the_whole_amount() {
        let bus = Gap::new(156, 10);
        assert_eq!(bus.cover(8), Duration::from_ps(125)); // 124.8
        assert_eq!(bus.cover(4096), Duration::from_ps(63_898)); // 63 897.6
        assert_eq!(bus.cover(0), Duration::ZERO);
        assert_eq!(Gap::new(20, 1).cover(65_536), Duration::from_ps(1_310_720));
        assert_eq!(Gap::from_bytes_per_s(50_000_000_000), Gap::new(20, 1));
        assert_eq!(Gap::ZERO.cover(u64::MAX), Duration::ZERO);
    }

    #[test]
    fn long_durations_saturate() {
        assert_eq!(Gap::new(2, 1).cover(u64::MAX), Duration::MAX);
        assert_eq!(Gap::new(u64::MAX, 2).cover(u64::MAX), Duration::MAX);
        assert_eq!(Frequency::from_hz(1).cycles(u64::MAX), Duration::MAX);
        assert_eq!(Frequency::from_hz(2_000_000_000_000).cycles_in(Duration::MAX), u64::MAX);
    }

    #[test]
    fn long_and_short_times_count_alike() {
        let clock = Frequency::from_hz(600_000_000);
        // The products that `cycles` and `cycles_in` try first fit 64 bits up to about these cycles. 5000 k fits up to
        // the first, 10^12 k up to the second, and 6 x 10^8 ps up to the third.
        let few = Duration::from_ps(u64::MAX / 600_000_000);
        for around in [u64::MAX / 5000, u64::MAX / PS_PER_S, clock.cycles_in(few)] {
            for k in around - 20..around + 20 {
                let exact = (u128::from(k) * 5000).div_ceil(3) as u64;
                assert_eq!(clock.cycles(k), Duration::from_ps(exact));
                assert_eq!(clock.cycles_in(Duration::from_ps(exact)), k);
                assert_eq!(clock.cycles_in(Duration::from_ps(exact - 1)), k - 1);
            }
        }
    }

    #[test]
    fn cycles_begin_at_the_ceiling() {
        let hpu = Frequency::from_hz(2_500_000_000);
        assert_eq!(hpu.cycles(3), Duration::from_ps(1_200));
        let nfp = Frequency::from_hz(600_000_000);
        assert_eq!(nfp.cycles(1), Duration::from_ps(1_667));
        assert_eq!(nfp.cycles(3), Duration::from_ps(5_000));
        for k in 0..100 {
            assert_eq!(nfp.cycles_in(nfp.cycles(k)), k);
        }
        for (clock, cycles, ps) in [(hpu, 1, 400), (nfp, 3, 5_000), (Frequency::from_hz(7), 7, PS_PER_S)] {
            assert_eq!(clock.beat(), (cycles, Duration::from_ps(ps)));
            assert_eq!(clock.cycles(cycles), Duration::from_ps(ps));
        }
    }
}
