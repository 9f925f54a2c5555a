//! Applications of programmable network cards, written as users would write them with the crate `nicety`.
//!
//! - [`tsp`]: the travelling salesman on a network flow processor.
//! - [`cardinality`]: distinct addresses of a capture, counted on a network flow processor by [`pcsa`].
//!
//! The programs on the cards are `handlers/nfp/tsp.c` and `handlers/nfp/pcsa.c`. `experiment.rs` measures both on a processor
//! alone, or on a card beside its host.

pub mod cardinality;
mod experiment;
pub mod pcsa;
pub mod tsp;

pub use experiment::ExperimentError;
