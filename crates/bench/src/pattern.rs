//! Traffic patterns: the ranks that send, and the ranks that receive.

use nicety::{Error, Topology};
use std::fmt;
use std::str::FromStr;

/// The pattern of senders and receivers in a benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pattern {
    /// Rank 0 sends to rank 1.
    #[default]
    Pair,
    /// Ranks 0 and 1 send to each other at the same time.
    Bidirectional,
    /// The given number of ranks, from 0 on, send to the next rank at the same time.
    Incast(u32),
}

/// One direction of a pattern: a sender and a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Direction {
    /// The sending rank.
    pub source: u32,
    /// The receiving rank.
    pub target: u32,
}

impl Pattern {
    /// The number of nodes.
    pub const fn nodes(self) -> u32 {
        match self {
            Pattern::Pair | Pattern::Bidirectional => 2,
            Pattern::Incast(senders) => senders.saturating_add(1),
        }
    }

    /// The default topology of the pattern.
    pub const fn topology(self) -> Topology {
        match self {
            Pattern::Pair | Pattern::Bidirectional => Topology::Pair,
            Pattern::Incast(_) => Topology::Star,
        }
    }

    /// Returns the directions, in the order of their senders.
    pub(super) fn directions(self) -> Vec<Direction> {
        match self {
            Pattern::Pair => vec![Direction { source: 0, target: 1 }],
            Pattern::Bidirectional => {
                vec![Direction { source: 0, target: 1 }, Direction { source: 1, target: 0 }]
            }
            Pattern::Incast(senders) => {
                (0..senders).map(|source| Direction { source, target: senders }).collect()
            }
        }
    }

    /// Whether several ranks send at the same time, so that each iteration needs a barrier.
    pub(super) fn is_concurrent(self) -> bool {
        self != Pattern::Pair
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Pair => f.write_str("pair"),
            Pattern::Bidirectional => f.write_str("bidirectional"),
            Pattern::Incast(senders) => write!(f, "incast:{senders}"),
        }
    }
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Pattern, Error> {
        let wrong = |why: &str| {
            Err(Error::Input(format!(
                "--pattern {text}: {why}; write pair, bidirectional, or incast:N for N senders, as in incast:4"
            )))
        };
        match text {
            "pair" => Ok(Pattern::Pair),
            "bidirectional" => Ok(Pattern::Bidirectional),
            "incast" => wrong("the number of senders is missing"),
            _ => match text.strip_prefix("incast:") {
                None => wrong("no such pattern"),
                Some(senders) => match senders.parse::<u32>() {
                    Ok(0) => wrong("an incast has one sender at least"),
                    Ok(senders) if senders < u32::MAX && !text.contains('+') => Ok(Pattern::Incast(senders)),
                    _ => wrong("the number of senders is a whole number below 4294967295"),
                },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn senders_and_receivers() {
        let directions =
            |pattern: Pattern| pattern.directions().iter().map(|d| (d.source, d.target)).collect::<Vec<_>>();
        assert_eq!(directions(Pattern::Pair), [(0, 1)]);
        assert_eq!(directions(Pattern::Bidirectional), [(0, 1), (1, 0)]);
        assert_eq!(directions(Pattern::Incast(3)), [(0, 3), (1, 3), (2, 3)]);
        assert_eq!(directions(Pattern::Incast(1)), directions(Pattern::Pair));
        for pattern in [Pattern::Pair, Pattern::Bidirectional, Pattern::Incast(7)] {
            let last = pattern.directions().iter().map(|d| d.source.max(d.target)).max();
            assert_eq!(last, Some(pattern.nodes() - 1));
        }
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for (text, why) in [
            ("", "no such pattern"),
            ("ring", "no such pattern"),
            ("Pair", "no such pattern"),
            ("incast", "the number of senders is missing"),
            ("incast:", "whole number"),
            ("incast:0", "one sender at least"),
            ("incast:-1", "whole number"),
            ("incast:+1", "whole number"),
            ("incast:1.5", "whole number"),
            ("incast:4294967295", "whole number"),
            ("incast:99999999999", "whole number"),
        ] {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("incast:N"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn parsing_inverts_printing(senders in 1..u32::MAX) {
            let pattern = Pattern::Incast(senders);
            prop_assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
        }

        #[test]
        fn no_text_panics(text in "(pair|bidirectional|incast)?:?.{0,12}") {
            if let Ok(pattern) = text.parse::<Pattern>() {
                prop_assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
            }
        }
    }
}
