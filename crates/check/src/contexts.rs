//! The state of a card's processes: signals, transfers in flight, frames and variables.

use crate::calls::Site;
use crate::clocks::Clock;
use crate::held::LastStores;
use crate::run::Transfer;
use rustc_hash::FxHashMap;

/// The frame of a process.
#[derive(Clone, Copy, Default)]
pub(crate) enum Frame {
    /// It has received none.
    #[default]
    None,
    /// It has one.
    Held,
    /// It has given it up.
    GivenUp(Site),
}

/// The state of a card's processes.
#[derive(Default)]
pub(crate) struct Processes {
    /// The names of processes, by their runs.
    pub names: FxHashMap<u32, String>,
    /// All that precedes news from outside the card.
    pub outside: Clock,
    /// All that precedes each signal: of a context, by its number.
    pub signals: FxHashMap<(u32, u32), Clock>,
    /// Transfers in flight.
    pub transfers: Vec<Transfer>,
    /// Whether a load polls, by its program and address.
    pub polls: FxHashMap<(u32, u32), bool>,
    pub frames: FxHashMap<u32, Frame>,
    /// The last stores to variables in local memory.
    pub stores: LastStores,
}
