//! The verdict on a completed run: which failures happened, and which of them are allowed.

use super::NodeReport;
use crate::Error;
use crate::error::failure_lines;
use nicety_nic_core::{FailureKind, ProgramFailure};
use schemars::JsonSchema;
use serde::Serialize;
use std::str::FromStr;

/// Maximum number of failures listed in a text, in addition to those of `failure_lines`.
const LISTED: usize = 8;

/// The kinds of failures that do not fail the run; none by default. So a trap, a failure, an exceeded budget or a refused command
/// fails the run, even if no program waited for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    kinds: u8,
}

impl Allowed {
    /// Every failure.
    pub const ALL: Allowed = Allowed { kinds: u8::MAX };

    /// Adds the kinds of another set.
    #[must_use]
    pub const fn with(self, kind: FailureKind) -> Allowed {
        Allowed { kinds: self.kinds | 1 << kind as u8 }
    }

    /// Whether this kind of failure is allowed.
    pub const fn has(self, kind: FailureKind) -> bool {
        self.kinds >> kind as u8 & 1 != 0
    }
}

impl FromStr for Allowed {
    type Err = Error;

    /// Parses names of kinds, separated by commas, or `all`.
    fn from_str(text: &str) -> Result<Allowed, Error> {
        if text == "all" {
            return Ok(Allowed::ALL);
        }
        text.split(',').filter(|name| !name.is_empty()).try_fold(Allowed::default(), |allowed, name| {
            let kind = FailureKind::ALL.into_iter().find(|kind| kind.name() == name);
            let kind = kind.ok_or_else(|| {
                let names: Vec<_> = FailureKind::ALL.iter().map(|kind| kind.name()).collect();
                Error::Input(format!(
                    "there is no failure {name:?} to allow; write {}, or 'all' for all of them",
                    names.join(", ")
                ))
            })?;
            Ok(allowed.with(kind))
        })
    }
}

/// A failure on a card in a completed run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Failure {
    /// The rank of its card.
    pub rank: u32,
    /// `trap`: an error stopped a handler or process. `fail`: a handler or process returned a failure or an invalid code.
    /// `budget`: an application used up a budget. `refused`: the card refused a command. `lost`: the network lost or damaged
    /// packets of this node, and nothing resends them.
    #[serde(serialize_with = "name")]
    #[schemars(with = "String")]
    pub kind: FailureKind,
    /// Description, with the source line if known.
    pub text: String,
    /// Number of occurrences.
    pub times: u64,
}

fn name<S: serde::Serializer>(kind: &FailureKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.name())
}

/// Returns the failures on a node: of its programs, refused commands, and messages without budget.
pub(crate) fn failures(rank: u32, node: &NodeReport) -> Vec<Failure> {
    let own = |failure: &ProgramFailure| Failure {
        rank,
        kind: failure.kind,
        text: failure.text.clone(),
        times: failure.times,
    };
    let refused = node.refused_commands.iter().map(|refused| Failure {
        rank,
        kind: FailureKind::Refused,
        text: format!("{} refused: {}, {}", refused.command, refused.code, refused.place),
        times: refused.times,
    });
    let unserved = node.unserved.iter().map(|(application, times)| Failure {
        rank,
        kind: FailureKind::Budget,
        text: format!("messages refused: the budget of application '{application}' is used up"),
        times: *times,
    });
    node.failures.iter().map(own).chain(refused).chain(unserved).collect()
}

/// Checks that the nodes of a completed run have only allowed failures. `label` returns the label of a rank in texts.
///
/// # Errors
/// [`Error::HandlerTrap`] with the failures that are not allowed.
pub(crate) fn check(
    nodes: &[NodeReport],
    allowed: Allowed,
    label: impl Fn(u32) -> String,
) -> Result<(), Error> {
    let all = (0..).zip(nodes).flat_map(|(rank, node)| failures(rank, node));
    let failed: Vec<Failure> = all.filter(|failure| !allowed.has(failure.kind)).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let failures: Vec<ProgramFailure> = nodes
        .iter()
        .flat_map(|node| &node.failures)
        .filter(|failure| !allowed.has(failure.kind))
        .cloned()
        .collect();
    let other = |failure: &&Failure| failures.iter().all(|own| own.text != failure.text);
    let others: Vec<&Failure> = failed.iter().filter(other).collect();
    let line = |failure: &&Failure| match failure.times {
        1 => format!("{}: {}", label(failure.rank), failure.text),
        times => format!("{}: {} ({times} times)", label(failure.rank), failure.text),
    };
    let mut lines: Vec<String> =
        (!failures.is_empty()).then(|| failure_lines(&failures)).into_iter().collect();
    lines.extend(others.iter().take(LISTED).map(line));
    if let more @ 1.. = others.len().saturating_sub(LISTED) {
        lines.push(format!("and {more} more"));
    }
    lines.push("the run was completed nevertheless".to_owned());
    Err(Error::HandlerTrap(lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_failures_have_names() {
        let of = |text: &str| text.parse::<Allowed>();
        assert_eq!(of(""), Ok(Allowed::default()));
        let some = of("fail,refused").unwrap();
        let found: Vec<_> = FailureKind::ALL.into_iter().filter(|&kind| some.has(kind)).collect();
        assert_eq!(found, [FailureKind::Fail, FailureKind::Refused]);
        assert!(FailureKind::ALL.into_iter().all(|kind| of("all").unwrap().has(kind)));
        let error = of("fail,traps").unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no failure \"traps\" to allow; write trap, fail, budget, refused, lost, or 'all' for all of them"
        );
    }
}
