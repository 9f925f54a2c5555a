//! Handlers: from the disposition of a packet to the handler's result.
//!
//! | part | file |
//! |---|---|
//! | disposition of packets: to handlers, to host memory, or dropped | `fate.rs` |
//! | commands of handlers: DMA, puts, counters | `commands` |
//! | a handler's result, and its effects | `outcome.rs` |
//! | the runs of handlers, on the handler processors | `run.rs` |

mod commands;
mod fate;
mod outcome;
mod run;
