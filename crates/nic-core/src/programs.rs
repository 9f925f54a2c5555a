//! Output and failures of programs on cards of any design: printed lines, failures, and refused commands.

use nicety_hpu::printable_line;
use nicety_types::{NodeId, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Maximum number of lines that a card outputs in a run. Further lines are only counted.
pub const LINES_KEPT: u64 = 1000;

/// The text that a handler printed by one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The simulated time of the call.
    pub time: Time,
    /// The node of the card.
    pub node: NodeId,
    /// The handler core.
    pub hpu: usize,
    /// The raw text; [`Display`](fmt::Display) escapes it for a terminal.
    pub text: String,
}

impl LogLine {
    /// Number of lines of the text.
    pub fn lines(&self) -> usize {
        lines(&self.text).count()
    }
}

impl fmt::Display for LogLine {
    /// Prints each line after its origin: time, node and processor. Control characters are escaped for a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, line) in lines(&self.text).enumerate() {
            let end = if i == 0 { "" } else { "\n" };
            write!(f, "{end}[{} {} HPU {}] {}", self.time, self.node, self.hpu, printable_line(line))?;
        }
        Ok(())
    }
}

/// A message from a card to a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Logged {
    /// Output of a handler.
    Line(LogLine),
    /// At the end of a run: the number of lines of a node that were beyond the limit.
    LeftOut {
        /// The node.
        node: NodeId,
        /// Number of lines.
        lines: u64,
    },
}

impl Logged {
    /// The order of this message among the messages of a run: by time and node. Counts of omitted lines come last.
    pub fn order(&self) -> (Time, NodeId) {
        match self {
            Logged::Line(line) => (line.time, line.node),
            Logged::LeftOut { node, .. } => (Time::MAX, *node),
        }
    }
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

/// Returns the lines of a text, at least one.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.strip_suffix('\n').unwrap_or(text).split('\n')
}

/// Receives the output of handlers. All nodes share it.
pub type Log = Arc<dyn Fn(&Logged) + Send + Sync>;

/// The kinds of failures of a handler, a process, a command or a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// A trap stopped the handler or process: an invalid access or instruction, or the cycle limit.
    Trap,
    /// The handler or process returned a failure, or an invalid return code.
    Fail,
    /// A budget of the application was used up.
    Budget,
    /// The card refused a command, or could not execute it.
    Refused,
    /// The network lost or damaged packets that no card resends, and the sender's program continued.
    Lost,
}

impl FailureKind {
    /// All kinds.
    pub const ALL: [FailureKind; 5] =
        [FailureKind::Trap, FailureKind::Fail, FailureKind::Budget, FailureKind::Refused, FailureKind::Lost];

    /// The name in reports and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            FailureKind::Trap => "trap",
            FailureKind::Fail => "fail",
            FailureKind::Budget => "budget",
            FailureKind::Refused => "refused",
            FailureKind::Lost => "lost",
        }
    }
}

/// A failed handler, several handlers that failed for the same reason, or lost packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFailure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// Simulated time of the first failure.
    pub time: Time,
    /// The node of the card.
    pub node: NodeId,
    /// Handler core of the first failure. `None` if the card itself refused a command.
    pub hpu: Option<usize>,
    /// The reason, and the place in the source.
    pub text: String,
    /// Number of failures for this reason.
    pub times: u64,
}

/// A command that a card refused at one place of a handler. The handler continued with the command's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefusedCommand {
    /// The function of nicety.h, for example `PtlHandlerPutFromDevice`.
    pub command: &'static str,
    /// Its return code: `PTL_ARG_INVALID`, `PTL_SEGV` or `PTL_NO_SPACE`.
    pub code: &'static str,
    /// The line with the call, for example `ping.c:42`; the function or the pc if the program has no line tables. A
    /// card distinguishes 64 places. The others are counted by command and code, as `elsewhere`.
    pub place: String,
    /// Number of times.
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
        // A handler cannot print a line that looks like the line of another handler.
        assert_eq!(
            shown("a\n\n[0 ns node 0 HPU 0] b\r\n"),
            format!("{origin} a\n{origin} \n{origin} [0 ns node 0 HPU 0] b\\x0d")
        );
        assert_eq!(shown("\x1b[2J\u{9b}31m\u{202e}x"), format!("{origin} \\x1b[2J\\x9b31m\\u{{202e}}x"));
        let rest = Logged::LeftOut { node: NodeId(3), lines: 12 };
        assert_eq!(rest.to_string(), "[node 3] 12 more lines of handlers are not shown; a card shows 1000");
    }
}
