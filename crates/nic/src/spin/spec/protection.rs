//! The protection entries of a core that runs handlers written for PsPIN: before a handler the runtime sets one up for each piece
//! of memory that the handler may access, and any other access stops it.

use crate::spin::spec::HpuSpec;
use std::fmt;

/// What a handler may do there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads, stores and atomic operations.
    Data,
    /// Loads, and instructions.
    Code,
}

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The core's own.
    Core,
    /// The message's, or its packet's.
    Message,
    /// The program's, which all of its handlers share.
    Program,
}

/// A protection entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The piece of memory.
    pub what: String,
    /// Whose it is.
    pub owner: Owner,
    /// What the handler may do there.
    pub access: Access,
}

/// The entries of a handler, with variables of its program or without.
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

/// More entries than a core has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooMany {
    needed: Vec<Entry>,
    limit: usize,
}

/// Checks that a core has entries for a handler.
///
/// # Errors
/// The entries that it would take.
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
