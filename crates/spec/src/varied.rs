//! Halves or doubles a parameter, for a study of its effect.

use crate::listing::Parameter;
use crate::ratio::{Ratio, Rational};
use crate::units::{self, Quantity};
use nicety_types::{Duration, Frequency};

/// A change of a parameter by a factor of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variation {
    /// Half of the value. Whole numbers are rounded down.
    Halve,
    /// Twice the value.
    Double,
}

impl Parameter {
    /// Returns half or twice the value, in the form of a value of `--set`. Returns `None` if the value is no number or
    /// is zero, or if its half would be zero.
    ///
    /// The card may not allow the new value. In this case, [`crate::Reader`] refuses it.
    pub fn varied(&self, to: Variation) -> Option<String> {
        let (number, _) = self.exact.split_once(' ').unwrap_or((&self.exact, ""));
        let value = match self.quantity {
            Quantity::Choice | Quantity::Text | Quantity::Flag => return None,
            Quantity::Ratio => {
                let ratio = Ratio::parse(number).ok()?;
                Rational::new(ratio.numerator().into(), ratio.denominator().into())
            }
            _ => Rational::parse(number).ok()?,
        };
        let two = Rational::new(2, 1);
        let varied = match to {
            Variation::Halve => value.divided_by(two)?,
            Variation::Double => value.times(two)?,
        };
        // These quantities are whole numbers, so half of 1 is 0.
        let whole = || varied.floor().filter(|&whole| whole > 0);
        let text = match self.quantity {
            Quantity::Time => units::print_time(Duration::from_ps(whole()?)),
            Quantity::Frequency => units::print_frequency(Frequency::from_hz(whole()?)),
            Quantity::Size => units::print_size(whole()?),
            Quantity::Count => whole()?.to_string(),
            Quantity::Gap => {
                let (above, below) = varied.fraction().filter(|(above, _)| *above > 0)?;
                units::print_gap(above, below)
            }
            _ => {
                let (above, below) = varied.fraction().filter(|(above, _)| *above > 0)?;
                Rational::new(above.into(), below.into()).to_string()
            }
        };
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::Kind;
    use proptest::prelude::*;

    fn parameter(quantity: Quantity, exact: &str) -> Parameter {
        Parameter {
            section: "hpu".into(),
            key: "x".into(),
            value: exact.into(),
            exact: exact.into(),
            quantity,
            doc: String::new(),
            allowed: None,
            kind: Kind::Assumed,
            source: String::new(),
            note: None,
            against: None,
            place: String::new(),
            replaces: None,
        }
    }

    #[test]
    fn values_of_each_quantity() {
        let both = |quantity, exact| {
            let parameter = parameter(quantity, exact);
            [Variation::Halve, Variation::Double].map(|to| parameter.varied(to))
        };
        let texts = |half: &str, twice: &str| [Some(half.to_owned()), Some(twice.to_owned())];
        assert_eq!(both(Quantity::Time, "6700 ps"), texts("3.35 ns", "13.4 ns"));
        assert_eq!(both(Quantity::Gap, "78/5 ps/B"), texts("7.8 ps/B", "31.2 ps/B"));
        assert_eq!(both(Quantity::Gap, "1/3 ps/B"), texts("1/6 ps/B", "2/3 ps/B"));
        assert_eq!(both(Quantity::Frequency, "2500000000 Hz"), texts("1.25 GHz", "5 GHz"));
        assert_eq!(both(Quantity::Size, "65536 B"), texts("32 KiB", "128 KiB"));
        assert_eq!(both(Quantity::Count, "7"), texts("3", "14"));
        assert_eq!(both(Quantity::Count, "1"), [None, Some("2".to_owned())]);
        assert_eq!(both(Quantity::Ratio, "1/4"), texts("0.125", "0.5"));
        assert_eq!(both(Quantity::Count, "0"), [None, None]);
        assert_eq!(both(Quantity::Time, "0 ps"), [None, None]);
        assert_eq!(both(Quantity::Choice, "ideal"), [None, None]);
        assert_eq!(both(Quantity::Flag, "true"), [None, None]);
    }

    proptest! {
        #[test]
        fn varied_values_read_back(ps in 1u64..1 << 40, to in prop::sample::select(vec![Variation::Halve, Variation::Double])) {
            let varied = parameter(Quantity::Time, &format!("{ps} ps")).varied(to);
            let expected = if to == Variation::Halve { ps / 2 } else { ps * 2 };
            let read = varied.map(|text| units::parse_time(&text));
            prop_assert_eq!(read, (expected > 0).then_some(Ok(Duration::from_ps(expected))));
        }

        #[test]
        fn any_exact_text_is_moved_or_not(
            text in "\\PC{0,20}|[0-9./]{0,40} ?[a-zA-Z/]{0,5}",
            quantity in prop::sample::select(vec![
                Quantity::Time, Quantity::Gap, Quantity::Frequency, Quantity::Size, Quantity::Count, Quantity::Ratio,
            ]),
        ) {
            let parameter = parameter(quantity, &text);
            let _ = (parameter.varied(Variation::Halve), parameter.varied(Variation::Double));
        }
    }
}
