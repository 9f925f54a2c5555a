//! What programs on cards leave behind, of whatever design the card is: lines that they print, how they failed, and what
//! their card refused them.

use nicety_hpu::printable_line;
use nicety_types::{NodeId, Time};
use std::fmt;
use std::sync::Arc;

/// Lines that a card hands on in a run; the rest is counted.
pub const LINES_KEPT: u64 = 1000;

/// Lines that a handler printed at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When.
    pub time: Time,
    /// On which node.
    pub node: NodeId,
    /// On which handler processor.
    pub hpu: usize,
    /// What, as it is: for a terminal there is [`Display`](fmt::Display).
    pub text: String,
}

impl LogLine {
    /// How many lines it is.
    pub fn lines(&self) -> usize {
        lines(&self.text).count()
    }
}

impl fmt::Display for LogLine {
    /// Each line by itself behind its origin, with what a terminal would obey as escapes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, line) in lines(&self.text).enumerate() {
            let end = if i == 0 { "" } else { "\n" };
            write!(f, "{end}[{} {} HPU {}] {}", self.time, self.node, self.hpu, printable_line(line))?;
        }
        Ok(())
    }
}

/// What a log is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logged {
    /// A handler has printed.
    Line(LogLine),
    /// At the end of a run: lines of a node's handlers that were counted only.
    LeftOut {
        /// The node.
        node: NodeId,
        /// How many.
        lines: u64,
    },
}

impl fmt::Display for Logged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Logged::Line(line) => line.fmt(f),
            Logged::LeftOut { node, lines } => {
                write!(f, "[{node}] {lines} more lines of handlers are not shown; a card shows {LINES_KEPT}")
            }
        }
    }
}

/// The lines of a text; one at least.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.strip_suffix('\n').unwrap_or(text).split('\n')
}

/// Takes the lines that handlers print; shared by all nodes.
pub type Log = Arc<dyn Fn(&Logged) + Send + Sync>;

/// How a handler or process can fail, or a command of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It trapped: an access, an instruction or a cycle limit stopped it.
    Trap,
    /// It returned that it failed, or a number that is no return code.
    Fail,
    /// A budget of its application was used up.
    Budget,
    /// The card refused a command, or could not carry it out.
    Refused,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [FaultKind; 4] = [FaultKind::Trap, FaultKind::Fail, FaultKind::Budget, FaultKind::Refused];

    /// The name in reports and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::Trap => "trap",
            FaultKind::Fail => "fail",
            FaultKind::Budget => "budget",
            FaultKind::Refused => "refused",
        }
    }
}

/// A handler that failed, or several for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// How.
    pub kind: FaultKind,
    /// When, the first time.
    pub time: Time,
    /// On which node.
    pub node: NodeId,
    /// On which handler processor, the first time; none where the card itself refused a command.
    pub hpu: Option<usize>,
    /// What went wrong, where in the source.
    pub text: String,
    /// How many times.
    pub times: u64,
}

/// A command that the card has refused at one place of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCommand {
    /// The function of nicety.h.
    pub command: &'static str,
    /// What it returned: `PTL_ARG_INVALID`, `PTL_SEGV` or `PTL_NO_SPACE`.
    pub code: &'static str,
    /// The line that calls it, `ping.c:42`; the function or the pc where the program has no line tables; `elsewhere`
    /// where there are too many of these.
    pub place: String,
    /// How many times.
    pub times: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_lines_behind_their_origin_and_obeys_none() {
        let shown = |text: &str| {
            let line = LogLine { time: Time::from_ps(1000), node: NodeId(1), hpu: 2, text: text.to_owned() };
            Logged::Line(line).to_string()
        };
        let origin = "[1 ns node 1 HPU 2]";
        assert_eq!(shown("got\t5\n"), format!("{origin} got\t5"));
        assert_eq!(shown(""), format!("{origin} "));
        // Nobody can write a line as if it were another's.
        assert_eq!(
            shown("a\n\n[0 ns node 0 HPU 0] b\r\n"),
            format!("{origin} a\n{origin} \n{origin} [0 ns node 0 HPU 0] b\\x0d")
        );
        assert_eq!(shown("\x1b[2J\u{9b}31m\u{202e}x"), format!("{origin} \\x1b[2J\\x9b31m\\u{{202e}}x"));
        let rest = Logged::LeftOut { node: NodeId(3), lines: 12 };
        assert_eq!(rest.to_string(), "[node 3] 12 more lines of handlers are not shown; a card shows 1000");
    }
}
