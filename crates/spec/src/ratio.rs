//! Exact fractions for the decimal numbers of a spec.

use std::fmt;

/// A fraction of unsigned numbers in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rational {
    numerator: u128,
    denominator: u128,
}

impl Rational {
    pub(crate) const fn new(numerator: u128, denominator: u128) -> Rational {
        let divisor = gcd(numerator, denominator);
        Rational { numerator: numerator / divisor, denominator: denominator / divisor }
    }

    /// Parses a number such as "12", "12.5" or "1/3". The error text continues a sentence that begins with the input.
    pub(crate) fn parse(text: &str) -> Result<Rational, &'static str> {
        const LONG: &str = "has more digits than 64 bits hold";
        let digits = |text: &str| {
            if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
                return Err(if text.contains(',') {
                    "is not a number: the decimal point is '.'"
                } else {
                    "is not a number"
                });
            }
            text.parse::<u128>().map_err(|_| LONG)
        };
        if let Some((above, below)) = text.split_once('/') {
            return match (digits(above)?, digits(below)?) {
                (_, 0) => Err("is not a number"),
                (above, below) => Ok(Rational::new(above, below)),
            };
        }
        let Some((whole, fraction)) = text.split_once('.') else {
            return Ok(Rational::new(digits(text)?, 1));
        };
        let (whole, part) = (digits(whole)?, digits(fraction)?);
        let scale = u32::try_from(fraction.len()).ok().and_then(|n| 10u128.checked_pow(n)).ok_or(LONG)?;
        let all = whole.checked_mul(scale).and_then(|w| w.checked_add(part)).ok_or(LONG)?;
        Ok(Rational::new(all, scale))
    }

    pub(crate) const fn is_zero(self) -> bool {
        self.numerator == 0
    }

    pub(crate) const fn is_whole(self) -> bool {
        self.denominator == 1
    }

    /// Returns the value, if it is a whole number of at most 64 bits.
    pub(crate) fn whole(self) -> Option<u64> {
        u64::try_from(self.numerator).ok().filter(|_| self.is_whole())
    }

    /// Returns the value rounded down to a whole number, if it has at most 64 bits.
    pub(crate) fn floor(self) -> Option<u64> {
        u64::try_from(self.numerator / self.denominator).ok()
    }

    /// Returns the value rounded to the nearest whole number, with halves rounded up, if it has at most 64 bits.
    pub(crate) fn nearest(self) -> Option<u64> {
        let doubled = self.numerator.checked_mul(2)?.checked_add(self.denominator)?;
        u64::try_from(doubled / self.denominator.checked_mul(2)?).ok()
    }

    /// Returns numerator and denominator, if both have at most 64 bits.
    pub(crate) fn fraction(self) -> Option<(u64, u64)> {
        Some((u64::try_from(self.numerator).ok()?, u64::try_from(self.denominator).ok()?))
    }

    pub(crate) fn times(self, other: Rational) -> Option<Rational> {
        // Each numerator is reduced with the other denominator first, so the product overflows only if the result is
        // too large.
        let a = Rational::new(self.numerator, other.denominator);
        let b = Rational::new(other.numerator, self.denominator);
        let numerator = a.numerator.checked_mul(b.numerator)?;
        Some(Rational { numerator, denominator: a.denominator.checked_mul(b.denominator)? })
    }

    /// Divides by `other`, which must not be zero.
    pub(crate) fn divided_by(self, other: Rational) -> Option<Rational> {
        self.times(Rational { numerator: other.denominator, denominator: other.numerator })
    }
}

impl fmt::Display for Rational {
    /// Prints a value with a finite decimal expansion as a decimal, and any other value as a fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_whole() {
            return write!(f, "{}", self.numerator);
        }
        for digits in 1..=18u32 {
            let scale = 10u128.pow(digits);
            if scale.is_multiple_of(self.denominator)
                && let Some(scaled) = self.numerator.checked_mul(scale / self.denominator)
            {
                let width = digits as usize;
                return write!(f, "{}.{:0width$}", scaled / scale, scaled % scale);
            }
        }
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    if a == 0 { 1 } else { a }
}

/// An exact share or factor without a unit: `0.25` or "25 %".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

impl Ratio {
    /// Zero.
    pub const ZERO: Ratio = Ratio { numerator: 0, denominator: 1 };
    /// One.
    pub const ONE: Ratio = Ratio { numerator: 1, denominator: 1 };

    /// Returns a whole number as a ratio.
    pub const fn whole(number: u64) -> Ratio {
        Ratio { numerator: number, denominator: 1 }
    }

    /// Returns the numerator, in lowest terms.
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// Returns the denominator, in lowest terms. It is at least one.
    pub const fn denominator(self) -> u64 {
        self.denominator
    }

    /// Returns the nearest floating-point number, for display and for comparison with random numbers.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Parses a ratio such as `0.25`, "25 %", "1/3" or `2.5e-3`. The error text continues a sentence that begins with
    /// the input.
    pub(crate) fn parse(text: &str) -> Result<Ratio, &'static str> {
        const LONG: &str = "has more digits than 64 bits hold";
        let text = text.trim();
        let (number, percent) = match text.strip_suffix('%') {
            Some(number) => (number.trim_end(), 100),
            None => (text, 1),
        };
        let (number, power) = match number.split_once(['e', 'E']) {
            None => (number, Rational::new(1, 1)),
            Some((number, exponent)) => {
                let exponent = exponent.parse::<i32>().map_err(|_| "is not a number")?;
                let scale = 10u128.checked_pow(exponent.unsigned_abs()).ok_or(LONG)?;
                let power = if exponent < 0 { Rational::new(1, scale) } else { Rational::new(scale, 1) };
                (number, power)
            }
        };
        let value =
            Rational::parse(number)?.times(Rational::new(1, percent)).and_then(|value| value.times(power));
        let (numerator, denominator) = value.and_then(Rational::fraction).ok_or(LONG)?;
        Ok(Ratio { numerator, denominator })
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Ratio) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Ratio) -> std::cmp::Ordering {
        let cross = |a: u64, b: u64| u128::from(a) * u128::from(b);
        cross(self.numerator, other.denominator).cmp(&cross(other.numerator, self.denominator))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Rational::new(u128::from(self.numerator), u128::from(self.denominator)).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_exact_and_ordered() {
        let quarter = Ratio::parse("0.25").unwrap();
        assert_eq!((quarter.numerator(), quarter.denominator()), (1, 4));
        assert_eq!(Ratio::parse(" 25 % "), Ok(quarter));
        assert_eq!(quarter.to_string(), "0.25");
        assert_eq!(Ratio::parse("1/3").unwrap().to_string(), "1/3");
        assert!(Ratio::ZERO < quarter && quarter < Ratio::ONE);
        assert_eq!(quarter.as_f64(), 0.25);
        let rate = Ratio::parse("2.36e-14").unwrap();
        assert_eq!((rate.numerator(), rate.denominator()), (59, 2_500_000_000_000_000));
        assert_eq!(Ratio::parse("25e-2"), Ok(quarter));
        assert_eq!(Ratio::parse("0.0025E2"), Ok(quarter));
        for text in ["e-3", "1e", "1e1.5", "1e-99", "1e--3"] {
            assert!(Ratio::parse(text).is_err(), "{text}");
        }
        assert_eq!(Ratio::parse("x"), Err("is not a number"));
        assert_eq!(Ratio::parse("0.00000000000000000001"), Err("has more digits than 64 bits hold"));
        assert!(Rational::parse(&format!("0.{}", "1".repeat(40))).is_err());
        assert!(Rational::parse(&"9".repeat(40)).is_err());
    }

    #[test]
    fn fractions_print_as_decimals_where_they_end() {
        assert_eq!(Rational::new(78, 5).to_string(), "15.6");
        assert_eq!(Rational::new(1, 1_000_000).to_string(), "0.000001");
        assert_eq!(Rational::new(6, 3).to_string(), "2");
        assert_eq!(Rational::new(2, 3).to_string(), "2/3");
        assert_eq!(Rational::new(5, 2).nearest(), Some(3));
    }
}
