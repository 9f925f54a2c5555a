//! Applications of programmable network cards. They use the crate `nicety` as any user does.
//!
//! - [`tsp`]: the travelling salesman problem on a network flow processor.
//! - [`cardinality`]: counts the distinct addresses of a capture. A network flow processor does this by [`pcsa`].
//!
//! The programs on the cards are `handlers/nfp/tsp.c` and `handlers/nfp/pcsa.c`. `experiment.rs` runs both on a processor alone,
//! or on a card with its host.

pub mod cardinality;
mod experiment;
pub mod pcsa;
pub mod tsp;

pub use experiment::ExperimentError;
