//! The protection entries of a core that runs handlers written for PsPIN. Before a handler, the runtime sets up one
//! entry for each piece of memory that the handler may access. Any other access stops the handler.

use crate::spec::HpuSpec;
use std::fmt;

/// The accesses that an entry permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads, stores and atomic operations.
    Data,
    /// Loads and instruction fetches.
    Code,
}

/// The owner of a piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The core.
    Core,
    /// The message, or its packet.
    Message,
    /// The program: all of its handlers share the memory.
    Program,
}

/// A protection entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The piece of memory.
    pub what: String,
    /// The owner of the memory.
    pub owner: Owner,
    /// The permitted accesses.
    pub access: Access,
}

/// Returns the entries of a handler. `variables` says whether its program has variables.
pub fn entries(hpu: &HpuSpec, variables: bool) -> Vec<Entry> {
    let data = |what: &str, owner| Entry { what: what.to_owned(), owner, access: Access::Data };
    let scratchpads = match hpu.pspin {
        Some(commands) if commands.scratchpad > 0 => hpu.cores / hpu.memories.cluster.max(1),
        _ => 0,
    };
    let mut entries = vec![
        data("stack", Owner::Core),
        data("registers", Owner::Core),
        data("packet in L1", Owner::Message),
        data("packet in L2", Owner::Message),
        Entry { what: "program memory".to_owned(), owner: Owner::Program, access: Access::Code },
    ];
    entries.extend(variables.then(|| data("variables", Owner::Program)));
    entries.push(data("state", Owner::Program));
    entries.extend(
        (0..scratchpads).map(|cluster| data(&format!("scratchpad of cluster {cluster}"), Owner::Program)),
    );
    entries
}

/// The error that a handler needs more entries than a core has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooMany {
    needed: Vec<Entry>,
    limit: usize,
}

/// Checks that a core has enough entries for a handler.
///
/// # Errors
/// The entries that the handler needs.
pub fn check(hpu: &HpuSpec, variables: bool) -> Result<(), TooMany> {
    let Some(commands) = hpu.pspin else { return Ok(()) };
    let (needed, limit) = (entries(hpu, variables), commands.protection as usize);
    if needed.len() <= limit { Ok(()) } else { Err(TooMany { needed, limit }) }
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = self.needed.len();
        let what: Vec<&str> = self.needed.iter().map(|entry| entry.what.as_str()).collect();
        write!(
            f,
            "a handler takes {many} protection entries of a core ({}), and hpu.protection is {}; write --set hpu.protection={many}, \
             or leave clusters out with hpu.cores",
            what.join(", "),
            self.limit
        )
    }
}
