//! Measured noise: a trace of intervals, which repeats.

use std::fmt;

/// Intervals in which noise occupied a CPU. Times are in picoseconds from the start of the trace. The trace ends with
/// its last interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoiseTrace {
    /// Start and end of each interval, in order and without overlap. The list is not empty.
    intervals: Vec<(u64, u64)>,
}

/// The error of a text that is not a noise trace: the line, counted from 1, and the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoTrace {
    /// The number of the line, or 0 if the problem is with the whole trace.
    pub line: usize,
    /// The problem.
    pub text: String,
}

impl fmt::Display for NoTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.text),
            line => write!(f, "line {line}: {}", self.text),
        }
    }
}

impl NoiseTrace {
    /// Reads a trace in the format of LogGOPSim. Each line has the start and the length of an interval in nanoseconds.
    /// A comment follows `#`.
    ///
    /// # Errors
    /// If a line is malformed, or the trace has no interval. Also if an interval begins before the previous one ends,
    /// or if no time is left between intervals.
    pub fn parse(text: &str) -> Result<NoiseTrace, NoTrace> {
        let mut intervals: Vec<(u64, u64)> = Vec::new();
        let mut taken = 0_u64;
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            let wrong = |text: String| NoTrace { line, text };
            let mut words = content.split_whitespace();
            let (Some(begin), Some(duration), None) = (words.next(), words.next(), words.next()) else {
                return Err(wrong("a start and a duration in ns are expected, as in 1000000 25000".into()));
            };
            let time = |word: &str| {
                picoseconds(word).ok_or_else(|| wrong(format!("'{}' is no time in ns", word.escape_debug())))
            };
            let (begin, duration) = (time(begin)?, time(duration)?);
            let end =
                begin.checked_add(duration).ok_or_else(|| wrong("the interval ends after 2^64 ps".into()))?;
            if intervals.last().is_some_and(|(_, before)| begin < *before) {
                return Err(wrong("the interval begins before the end of the previous interval".into()));
            }
            if duration > 0 {
                taken += duration;
                intervals.push((begin, end));
            }
        }
        let whole = |text: &str| NoTrace { line: 0, text: text.to_owned() };
        match intervals.last() {
            None => Err(whole("there is no interval of noise")),
            Some((_, end)) if taken == *end => Err(whole("noise takes all of the time")),
            Some(_) => Ok(NoiseTrace { intervals }),
        }
    }

    /// Length of the trace in picoseconds. The trace ends with its last interval, and then repeats from its start.
    pub fn length_ps(&self) -> u64 {
        self.intervals[self.intervals.len() - 1].1
    }

    /// Returns the number of the first interval that ends after this point of the trace.
    pub(super) fn first_behind(&self, offset: u64) -> usize {
        self.intervals.partition_point(|(_, end)| *end <= offset)
    }

    /// Returns the start and end of interval `number`, in picoseconds. Numbers continue through repetitions of the
    /// trace. Returns `None` beyond the end of time.
    pub(super) fn get(&self, number: usize) -> Option<(u64, u64)> {
        let (round, within) = (number / self.intervals.len(), number % self.intervals.len());
        let before = self.length_ps().checked_mul(round as u64)?;
        let (begin, end) = self.intervals[within];
        Some((before.checked_add(begin)?, before.checked_add(end)?))
    }
}

/// Parses nanoseconds with up to three decimals. Further decimals are truncated.
fn picoseconds(word: &str) -> Option<u64> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let digits = fraction.bytes().chain(*b"000").take(3);
    let ps = digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(ps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_read_line_by_line_and_repeated() {
        let trace = NoiseTrace::parse("# ns\n\n10\t5\n20.5 0.25 # a comment\n30 0\n").unwrap();
        assert_eq!(trace.length_ps(), 20_750);
        let found: Vec<_> = (0..4).map(|number| trace.get(number).unwrap()).collect();
        assert_eq!(found, [(10_000, 15_000), (20_500, 20_750), (30_750, 35_750), (41_250, 41_500)]);
        assert_eq!([0, 14_999, 15_000, 20_749].map(|at| trace.first_behind(at)), [0, 0, 1, 1]);
        assert_eq!(trace.get(usize::MAX), None);
    }

    #[test]
    fn invalid_traces_are_reported_with_their_line() {
        for (text, wrong) in [
            ("", "there is no interval of noise"),
            ("0 5\n5 5", "noise takes all of the time"),
            ("1 2 3", "line 1: a start and a duration in ns are expected, as in 1000000 25000"),
            ("#\n1 x", "line 2: 'x' is no time in ns"),
            ("1 -2", "line 1: '-2' is no time in ns"),
            ("1 99999999999999999999", "line 1: '99999999999999999999' is no time in ns"),
            ("18446744073709551 1", "line 1: the interval ends after 2^64 ps"),
            ("1 5\n5 1", "line 2: the interval begins before the end of the previous interval"),
        ] {
            assert_eq!(NoiseTrace::parse(text).unwrap_err().to_string(), wrong, "{text}");
        }
    }
}
