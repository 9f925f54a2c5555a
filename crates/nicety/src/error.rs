//! Errors of calls and runs, with a variant for each cause.

use nicety_fabric::{FaultsError, TopologyError};
use nicety_nic_core::{CardError, ProgramFailure};
use nicety_nic_nfp::ChannelError;
use nicety_nic_processors::HandlerError;
use nicety_nic_qnix::QnixError;
use nicety_nic_spin::CallError;
use nicety_spec::SpecErrors;
use serde::de::DeserializeOwned;
use std::fmt;

/// The error of a call or a run. The text gives the place and a correction.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// The user's input is invalid, such as a specification, an option or a handler.
    Input(String),
    /// A program of the run returned an error.
    Program(String),
    /// A call of a host's operating system failed.
    System {
        /// The name of the error in `errno.h`.
        name: &'static str,
        /// A text with the call and the error.
        text: String,
    },
    /// A handler or process failed or trapped. Either a program waited for the effect of this handler or process, or
    /// the verdict of the run does not allow the failure.
    HandlerTrap(String),
    /// A call with a timeout expired.
    TimedOut(String),
    /// Programs waited, but no event was left that could end their wait.
    Deadlock(String),
    /// Messages were not delivered, because of faults of the network or full buffers.
    Undelivered(String),
    /// The run was interrupted.
    Interrupted,
}

impl Error {
    /// Returns the exit status of a command with this error: 2 for invalid input, 1 for a failed run, 130 for an interrupt.
    pub const fn exit_status(&self) -> i32 {
        match self {
            Error::Input(_) => 2,
            Error::Program(_)
            | Error::System { .. }
            | Error::HandlerTrap(_)
            | Error::TimedOut(_)
            | Error::Deadlock(_)
            | Error::Undelivered(_) => 1,
            Error::Interrupted => 130,
        }
    }
}

impl Error {
    /// Returns the name of the Python exception for this error.
    pub const fn python(&self) -> &'static str {
        match self {
            Error::Input(_) => "InputError",
            Error::Program(_) | Error::Undelivered(_) => "RunError",
            Error::System { .. } => "OSError",
            Error::HandlerTrap(_) => "HandlerTrap",
            Error::TimedOut(_) => "TimedOut",
            Error::Deadlock(_) => "Deadlock",
            Error::Interrupted => "KeyboardInterrupt",
        }
    }

    /// Converts the error of a call on a channel. `what` is the call.
    pub(crate) fn from_channel(what: &str, error: ChannelError) -> Error {
        use nicety_nic_nfp::{ChannelFailure as Failure, ChannelRefusal as Refusal};
        let text = format!("{what}: {error}");
        match error {
            // The library detects these errors before it uses the card.
            ChannelError::Refused(
                Refusal::ZeroSize
                | Refusal::DirectTooLong(_)
                | Refusal::TooLong { .. }
                | Refusal::NoGuards
                | Refusal::RepeatedGuard(_),
            ) => Error::Input(text),
            ChannelError::Failed(Failure::Timeout) => Error::TimedOut(text),
            ChannelError::Refused(_) | ChannelError::Failed(_) => Error::Program(text),
        }
    }

    /// Returns the same error with `place` as the beginning of its text.
    pub fn inside(self, place: &str) -> Error {
        let wrap = |text: String| format!("{place}: {text}");
        match self {
            Error::Input(text) => Error::Input(wrap(text)),
            Error::Program(text) => Error::Program(wrap(text)),
            Error::System { name, text } => Error::System { name, text: wrap(text) },
            Error::HandlerTrap(text) => Error::HandlerTrap(wrap(text)),
            Error::TimedOut(text) => Error::TimedOut(wrap(text)),
            Error::Deadlock(text) => Error::Deadlock(wrap(text)),
            Error::Undelivered(text) => Error::Undelivered(wrap(text)),
            Error::Interrupted => Error::Interrupted,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Input(text)
            | Error::Program(text)
            | Error::System { text, .. }
            | Error::HandlerTrap(text)
            | Error::TimedOut(text)
            | Error::Deadlock(text)
            | Error::Undelivered(text) => f.write_str(text),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

impl From<SpecErrors> for Error {
    fn from(errors: SpecErrors) -> Error {
        // In a list of errors, each error begins with 'error:'. A single error does not need this prefix.
        let text = errors.to_string();
        Error::Input(match errors.iter().len() {
            1 => text.trim_start_matches("error: ").to_owned(),
            _ => text,
        })
    }
}

impl From<TopologyError> for Error {
    fn from(error: TopologyError) -> Error {
        Error::Input(error.to_string())
    }
}

impl From<FaultsError> for Error {
    fn from(error: FaultsError) -> Error {
        Error::Input(format!("faults: {error}"))
    }
}

impl From<nicety_nic_core::WrongDesign> for Error {
    fn from(error: nicety_nic_core::WrongDesign) -> Error {
        Error::Input(error.to_string())
    }
}

impl From<HandlerError> for Error {
    fn from(error: HandlerError) -> Error {
        Error::Input(error.to_string())
    }
}

impl From<CardError> for Error {
    fn from(error: CardError) -> Error {
        match error {
            CardError::Input(text) => Error::Input(text),
            CardError::Failed(text) => Error::Program(text),
            CardError::Trapped(text) => Error::HandlerTrap(text),
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Error {
        CardError::from(error).into()
    }
}

impl From<QnixError> for Error {
    fn from(error: QnixError) -> Error {
        CardError::from(error).into()
    }
}

/// The text of the error of a run or a computation that would end after the last instant of virtual time.
pub(crate) const END_OF_TIME: &str = "virtual time ends after 2^64 ps (213 days), before this would end";

impl From<nicety_host::MemoryError> for Error {
    fn from(error: nicety_host::MemoryError) -> Error {
        Error::Program(error.to_string())
    }
}

/// Maximum number of listed failures. One faulty handler may fail for many packets.
const FAULTS_TOLD: usize = 8;

/// Returns the first failures, one per line, and the number of further failures. Equal failures of several nodes share
/// one line.
pub fn failure_lines(failures: &[ProgramFailure]) -> String {
    let mut different: Vec<(&ProgramFailure, u64, u64)> = Vec::new();
    for failure in failures {
        match different.iter_mut().find(|(known, ..)| known.text == failure.text) {
            Some((_, times, nodes)) => (*times, *nodes) = (*times + failure.times, *nodes + 1),
            None => different.push((failure, failure.times, 1)),
        }
    }
    let line = |&(failure, times, nodes): &(&ProgramFailure, u64, u64)| {
        let ProgramFailure { time, node, text, .. } = failure;
        let hpu = failure.hpu.map_or_else(String::new, |hpu| format!(" HPU {hpu}"));
        let all = match (times, nodes) {
            (1, _) => String::new(),
            (times, 1) => format!(" ({times} times)"),
            (times, nodes) => format!(" ({times} times, on {nodes} nodes)"),
        };
        format!("[{time} {node}{hpu}] {text}{all}")
    };
    let mut lines: Vec<String> = different.iter().take(FAULTS_TOLD).map(line).collect();
    if let more @ 1.. = different.len().saturating_sub(FAULTS_TOLD) {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

/// Parses a request from its JSON text. `what` names the request in errors.
///
/// # Errors
/// [`Error::Input`] with the invalid JSON or fields.
pub fn from_json<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::Input(format!("{what}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_nic_core::FailureKind;
    use nicety_types::{NodeId, Time};

    #[test]
    fn equal_faults_share_a_line() {
        let failure = |node, hpu, text: &str, times| ProgramFailure {
            kind: FailureKind::Trap,
            time: Time::from_ps(1500),
            node: NodeId(node),
            hpu,
            text: text.to_owned(),
            times,
        };
        let failures = [
            failure(1, Some(3), "a", 1),
            failure(1, None, "b", 1),
            failure(2, Some(0), "a", 4),
            failure(2, None, "c", 64),
        ];
        assert_eq!(
            failure_lines(&failures),
            "[1.5 ns node 1 HPU 3] a (5 times, on 2 nodes)\n[1.5 ns node 1] b\n[1.5 ns node 2] c (64 times)"
        );
        let different: Vec<ProgramFailure> = (0..11).map(|i| failure(1, None, &i.to_string(), 1)).collect();
        assert!(failure_lines(&different).ends_with("[1.5 ns node 1] 7\nand 3 more"));
    }
}
