//! Reasons to refuse a command, with the return codes of the specification.

use std::fmt;

/// The reason for a refused command. A refused command changes no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// `PTL_NO_SPACE`: a resource of the card is exhausted.
    NoSpace {
        /// The exhausted resource.
        what: &'static str,
        /// The field of [`crate::Limits`] that limits the resource.
        name: &'static str,
        /// The size of the resource.
        limit: u32,
    },
    /// `PTL_LIST_TOO_LONG`: a list of match entries is full.
    ListTooLong {
        /// The longest list allowed, in entries.
        limit: u32,
    },
    /// `PTL_ARG_INVALID`: an argument is invalid. The text names the argument and the valid values.
    ArgInvalid(&'static str),
    /// `PTL_ARG_INVALID`: the handle's resource was freed or unlinked, or never existed.
    Stale(&'static str),
    /// `PTL_PT_IN_USE`: the wanted portal table entry is already allocated, or the entry to free still has match
    /// entries.
    PtInUse {
        /// The portal table index.
        index: u32,
    },
    /// `PTL_PT_FULL`: all portal table entries are allocated.
    PtFull {
        /// The size of the portal table.
        limit: u32,
    },
    /// `PTL_PT_EQ_NEEDED`: a portal table entry with flow control needs an event queue.
    PtEqNeeded,
    /// `PTL_NO_SPACE`: the event queue has no room for the command's events, and flow control does not allow their
    /// loss.
    EqFull {
        /// The number of events that need room.
        needed: u32,
    },
    /// `PTL_IN_USE`: the resource still has users.
    InUse {
        /// The resource to be freed.
        what: &'static str,
        /// The user of the resource.
        by: &'static str,
    },
}

impl Error {
    /// Returns the return code's name in the specification.
    pub const fn code(&self) -> &'static str {
        match self {
            Error::NoSpace { .. } | Error::EqFull { .. } => "PTL_NO_SPACE",
            Error::PtEqNeeded => "PTL_PT_EQ_NEEDED",
            Error::ListTooLong { .. } => "PTL_LIST_TOO_LONG",
            Error::ArgInvalid(_) | Error::Stale(_) => "PTL_ARG_INVALID",
            Error::PtInUse { .. } => "PTL_PT_IN_USE",
            Error::PtFull { .. } => "PTL_PT_FULL",
            Error::InUse { .. } => "PTL_IN_USE",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.code())?;
        match self {
            Error::NoSpace { what, name, limit } => {
                write!(f, "no {what} is left of the card's {limit}; free one, or raise limits.{}", key(name))
            }
            Error::ListTooLong { limit } => write!(
                f,
                "the list already has {limit} match entries; unlink one, or raise limits.match_entries"
            ),
            Error::ArgInvalid(text) => f.write_str(text),
            Error::Stale(what) => {
                write!(f, "this handle names no {what}: it was freed before, or comes from another interface")
            }
            Error::PtInUse { index } => write!(
                f,
                "portal table entry {index} is in use; unlink its match entries and free it, or use another index"
            ),
            Error::PtFull { limit } => write!(
                f,
                "all {limit} portal table entries are in use; free one, or raise limits.portal_table"
            ),
            Error::PtEqNeeded => f.write_str("flow control needs an event queue in `eq` for its events"),
            Error::EqFull { needed } => write!(
                f,
                "the event queue has no room for {needed} more events; read events and try again, or make the \
                 queue deeper"
            ),
            Error::InUse { what, by } => {
                write!(f, "the {what} is still in use by {by}; wait for it or free it first")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Returns the key in a card's spec for a field of [`crate::Limits`].
fn key(field: &str) -> &str {
    match field {
        "entries" => "match_entries",
        "atomic_bytes" => "atomic",
        "fetch_atomic_bytes" => "fetch_atomic",
        same => same,
    }
}

/// Refuses to free a resource that has users.
pub(crate) fn release(users: u32, what: &'static str, by: &'static str) -> Result<(), Error> {
    if users > 0 { Err(Error::InUse { what, by }) } else { Ok(()) }
}
