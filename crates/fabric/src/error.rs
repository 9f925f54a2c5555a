//! Errors for topologies that cannot be built.

use std::error::Error;
use std::fmt;

/// An error for a topology that cannot be built. The text has the reason and a correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError {
    why: String,
    instead: Vec<Correction>,
}

/// The correction, without the name of the key or option.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Correction {
    Nodes(String),
    Topology(String),
    /// Overrides a value of the card's spec.
    Set(String),
}

impl TopologyError {
    pub(crate) fn new(why: String) -> TopologyError {
        TopologyError { why, instead: Vec::new() }
    }

    pub(crate) fn nodes(mut self, nodes: impl Into<String>) -> TopologyError {
        self.instead.push(Correction::Nodes(nodes.into()));
        self
    }

    pub(crate) fn topology(mut self, topology: impl Into<String>) -> TopologyError {
        self.instead.push(Correction::Topology(topology.into()));
        self
    }

    pub(crate) fn set(mut self, entry: String) -> TopologyError {
        self.instead.push(Correction::Set(entry));
        self
    }

    /// The reason, and the corrections as options of a command line. `has_nodes` says whether `--nodes` is an option.
    pub fn of_options(&self, has_nodes: bool) -> String {
        self.text(|instead| match instead {
            Correction::Nodes(nodes) => has_nodes.then(|| format!("--nodes {nodes}")),
            Correction::Topology(topology) => Some(format!("--topology {topology}")),
            Correction::Set(entry) => Some(format!("--set {entry}")),
        })
    }

    fn text(&self, write: impl Fn(&Correction) -> Option<String>) -> String {
        let instead: Vec<String> = self.instead.iter().filter_map(write).collect();
        match instead.is_empty() {
            true => self.why.clone(),
            false => format!("{}; write {}", self.why, instead.join(", or ")),
        }
    }
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(|instead| {
            Some(match instead {
                Correction::Nodes(nodes) => format!("nodes = {nodes}"),
                Correction::Topology(topology) => format!("topology {topology}"),
                Correction::Set(entry) => format!("set {entry}"),
            })
        }))
    }
}

impl Error for TopologyError {}
