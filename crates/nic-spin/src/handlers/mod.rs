//! Handlers: from the disposition of a packet to the handler's result, in slices on the handler processors.
//!
//! | part | file |
//! |---|---|
//! | the disposition of packets: to handlers, to host memory, or dropped | `disposition.rs` |
//! | numbers of commands and of their results | `codes.rs` |
//! | commands that the card has refused | `refusals.rs` |
//! | words of memory that handlers wait for or hold one at a time | `contention` |
//! | DMA transfers in flight of a thread's handlers | `transfers.rs` |
//! | a core as seen by handlers written for PsPIN | `pspin` |
//! | handler processors, their threads and their queue | `hpus` |
//! | a running handler and its memory | `running.rs` |
//! | the levels of memory, their banks, and the caches before them | `memory` |
//! | words of memory that processors share | `shared.rs` |
//! | commands of handlers: DMA, puts, output | `commands` |
//! | a handler's result, and its effects | `outcome.rs` |
//! | the packet scheduler of clusters, and the slots of packets | `clusters` |
//! | the run of a handler, slice after slice; handlers of frames, which have no messages | `run` |

pub(super) mod clusters;
pub(super) mod codes;
pub(super) mod commands;
pub(super) mod contention;
pub(super) mod disposition;
pub(super) mod hpus;
pub(super) mod memory;
mod outcome;
mod pspin;
pub(super) mod refusals;
pub(crate) mod run;
pub(super) mod running;
pub(super) mod shared;
pub(super) mod transfers;
